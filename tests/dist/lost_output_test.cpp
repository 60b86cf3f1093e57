// What was asked for on standard output and lost there is no success: of `muster`, and of programs.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/io/png.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace muster::test {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* one_line =
    "[a-z_]+: (error: )?the standard output did not take all that was printed: [A-Za-z ]+\n";

/// The program in a shell; `redirection` says what becomes of its standard output.
Outcome run_into(const std::string& redirection, const std::filesystem::path& folder,
                 const std::string& program, const Arguments& arguments) {
  const std::string script =
      "cd '" + folder.string() + "' && { sleep 0.3; exec \"$@\"; } " + redirection;
  Arguments all{"-c", script + "; exit ${PIPESTATUS[0]}", "bash", (bin_dir() / program).string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program("/bin/bash", all);
}

void expect_74(const std::string& program, const Arguments& arguments) {
  // A device that takes nothing, and a pipe whose reader has gone.
  for (const auto* redirection : {">/dev/full", "| true"}) {
    const TempFolder folder;
    const Outcome outcome = run_into(redirection, folder.path(), program, arguments);
    EXPECT_EQ(outcome.exit_code, 74) << program << " " << arguments.front() << redirection;
    EXPECT_TRUE(matches(outcome.err, one_line)) << program << " " << arguments.front();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << program << redirection;
  }
}

TEST(LostOutput, OfHelpEndsWith74AndOneLine) {
  expect_74("muster", {"--help"});
  expect_74("muster", {"launch", "--help"});
  expect_74("muster", {"check", "--help"});
  expect_74("muster", {"matting", "--help"});
  expect_74("minimal", {"--help"});
  expect_74("minimal", {"fit", "--print_config"});
}

TEST(LostOutput, OfMusterMattingEndsWith74AndOneLine) {
  const TempFolder folder;
  Image image = Image::uninitialised(1, 1, 1, 8);
  image.pixels[0] = 7;
  for (const auto* name : {"p/a.png", "g/a.png"}) {
    write_file_atomically(folder / name, encode_png(image.view()), Durability::process);
  }
  const Arguments folders{"matting", (folder / "p").string(), (folder / "g").string()};
  expect_74("muster", folders);
  Arguments json = folders;
  json.insert(json.end(), {"--json", "-"});
  expect_74("muster", json);
}

TEST(LostOutput, OfMusterCheckEndsWith74) {
  const TempFolder folder;
  for (const auto* redirection : {">/dev/full", "| true"}) {
    const Outcome outcome =
        run_into(redirection, folder.path(), "muster",
                 {"check", (bin_dir() / "log_images").string(), "predict", "--world", "1,2"});
    EXPECT_EQ(outcome.exit_code, 74) << redirection;
    EXPECT_TRUE(says(outcome.err, std::string{" s\n"} + one_line + "$")) << redirection;
  }
}

TEST(LostOutput, OfALoopOfOnesOwnEndsWith74) {
  const TempFolder folder;
  for (const auto* redirection : {">/dev/full", "| true"}) {
    const Outcome outcome = run_into(redirection, folder.path(), "own_loop", {});
    EXPECT_EQ(outcome.exit_code, 74) << redirection;
    EXPECT_TRUE(matches(outcome.err, one_line)) << redirection;
  }
}

}  // namespace
}  // namespace muster::test
