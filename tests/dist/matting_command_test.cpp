// `muster matting` as a user runs it: real files, real processes.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/io/png.h>

#include <gtest/gtest.h>
#include <libdeflate.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

/// A gray PNG of 8 or 16 bits.
std::string png_of(int64_t width, int64_t height, int depth,
                   const std::function<unsigned(int64_t, int64_t)>& value) {
  Image image = Image::uninitialised(width, height, 1, depth);
  for (int64_t i = 0; i < width * height; ++i) {
    const unsigned v = value(i % width, i / width);
    if (depth == 16) {
      reinterpret_cast<uint16_t*>(image.pixels.get())[i] = static_cast<uint16_t>(v);
    } else {
      image.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(v);
    }
  }
  return encode_png(image.view());
}

std::string png(const std::vector<std::vector<unsigned>>& rows, int depth = 8) {
  return png_of(
      static_cast<int64_t>(rows.front().size()), static_cast<int64_t>(rows.size()), depth,
      [&](int64_t x, int64_t y) { return rows[static_cast<size_t>(y)][static_cast<size_t>(x)]; });
}

std::string flat(int64_t width, int64_t height, unsigned value, int depth = 8) {
  return png_of(width, height, depth, [value](int64_t, int64_t) { return value; });
}

/// A PNG without pixels whose header claims so many.
std::string bomb(uint32_t width, uint32_t height) {
  std::string file = flat(1, 1, 0);
  for (size_t i = 0; i < 4; ++i) {
    file[16 + i] = static_cast<char>(width >> (24 - 8 * i));
    file[20 + i] = static_cast<char>(height >> (24 - 8 * i));
  }
  const uint32_t checksum = libdeflate_crc32(0, file.data() + 12, 17);
  for (size_t i = 0; i < 4; ++i) {
    file[29 + i] = static_cast<char>(checksum >> (24 - 8 * i));
  }
  return file;
}

class MattingCommand : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    write_file_atomically(folder_ / name, bytes, Durability::process);
  }
  /// The same picture in p/ and g/ under that name.
  void put_pair(const std::string& name, const std::string& prediction,
                const std::string& truth) const {
    put("p/" + name, prediction);
    put("g/" + name, truth);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] Outcome matting(const Arguments& more, int ranks = 1) const {
    const std::string program = (bin_dir() / "muster").string();
    Arguments arguments{"matting", path("p"), path("g")};
    if (ranks > 1) {
      arguments.insert(arguments.begin(), {"launch", "-n", std::to_string(ranks), program});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(program, arguments);
  }
  /// The JSON without white space, and the outcome.
  [[nodiscard]] std::string json(Arguments more = {}, int exit_code = 0) const {
    more.insert(more.end(), {"--json", "-"});
    const Outcome outcome = matting(more);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    std::string text = outcome.out;
    text.erase(
        std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }),
        text.end());
    return text;
  }

  TempFolder folder_;
};

TEST_F(MattingCommand, GivesTheValuesOfTheCheckedExample) {
  put_pair("a.png", png({{0, 0, 0, 0}, {0, 255, 204, 0}, {0, 255, 128, 64}, {0, 0, 0, 0}}),
           png({{0, 0, 0, 0}, {0, 255, 255, 0}, {0, 255, 255, 128}, {0, 0, 0, 0}}));
  put("t/a.png",
      png({{0, 0, 128, 0}, {128, 255, 128, 128}, {128, 255, 128, 128}, {0, 128, 128, 128}}));
  const std::string dim = json({"--trimap", path("t")});
  EXPECT_TRUE(has(dim,
                  R"({"profile":"dim","images":[{"name":"a","dataset":"","width":4,"height":4,)"
                  R"("unknown":{"n":10,"sad":0.0009490196078431372,"mse":0.03510342176086121,)"));
  EXPECT_TRUE(has(dim, R"("conn":0.0010019607843137254},"all":{"n":16,)"));
  EXPECT_TRUE(has(json({"--trimap", path("t"), "--profile", "gca"}),
                  R"("conn":0.0009490196078431372},"all")"));
  EXPECT_TRUE(has(json(), R"("unknown":null,"all":{"n":16,)"));
}

TEST_F(MattingCommand, LetsTwoDepthsMeetOnTheFinerGrid) {
  put_pair("same.png", flat(5, 4, 77 * 257, 16), flat(5, 4, 77));
  put_pair("one.png", flat(1, 1, 77 * 257 + 1, 16), flat(1, 1, 77));
  const std::string text = json();
  EXPECT_TRUE(has(
      text,
      R"({"name":"one","dataset":"","width":1,"height":1,"unknown":null,"all":{"n":1,"sad":1.5259021896696422e-08,)"));
  EXPECT_TRUE(has(text, R"("all":{"n":20,"sad":0,"mse":0,"grad":0,"conn":0})"));
}

TEST_F(MattingCommand, NamesEveryFaultyFileComputesTheRestAndEndsWith65) {
  const std::string good = flat(8, 6, 100);
  put_pair("s/good.png", good, flat(8, 6, 200));
  put_pair("s/size.png", flat(6, 8, 1), good);
  put_pair("s/cut.png",
           png_of(64, 64, 8, [](int64_t x, int64_t y) { return (x * y) % 251; }).substr(0, 300),
           flat(64, 64, 1));
  put_pair("s/bomb.png", bomb(60000, 60000), bomb(60000, 60000));
  put_pair("s/text.png", "no picture", good);
  put_pair("s/trimap.png", good, good);
  put("g/s/missing.png", good);
  put("p/s/stray.png", good);
  put("t/s/trimap.png", good.substr(0, 50));
  put_pair("s/twice.png", good, good);
  put("p/s/twice.JPG", good);
  mkfifo((folder_ / "p/s/pipe.png").c_str(), 0600);
  put("g/s/pipe.png", good);
  const Arguments outputs{"--trimap", path("t"),     "--json", path("a.json"),
                          "--csv",    path("a.csv"), "--html", path("a.html")};
  const Outcome outcome = matting(outputs);
  EXPECT_EQ(outcome.exit_code, 65);
  for (const char* name :
       {"p/s/size.png", "p/s/cut.png", "g/s/bomb.png", "p/s/text.png", "t/s/trimap.png",
        "g/s/missing.png", "p/s/twice.png", "p/s/twice.JPG", "p/s/pipe.png"}) {
    EXPECT_TRUE(matches(outcome.err, "(.|\n)*muster: error: [^\n]*" + path(name) + "(.|\n)*"));
    EXPECT_TRUE(has(read_file(folder_ / "a.html"), path(name)));
  }
  EXPECT_TRUE(has(outcome.err, path("g/s/bomb.png") + ": is too large: its header claims 60000"));
  EXPECT_TRUE(has(outcome.err, "muster: warning: " + path("p/s/stray.png")));
  EXPECT_TRUE(has(outcome.err, "muster: warning: " + path("g/s/good.png")));
  const std::string csv = read_file(folder_ / "a.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2) << csv;
  EXPECT_TRUE(has(csv, "\ns,good,8,6,,,,,,48,"));
  EXPECT_TRUE(has(outcome.out, "1 image, profile dim"));

  const Outcome ranks = matting({"--trimap", path("t"), "--json", path("b.json")}, 2);
  EXPECT_EQ(ranks.exit_code, 65);
  EXPECT_EQ(read_file(folder_ / "b.json"), read_file(folder_ / "a.json"));
  EXPECT_EQ(ranks.out, outcome.out);
  const std::string told = path("p/s/cut.png") + ": ";
  EXPECT_EQ(ranks.err.find(told), ranks.err.rfind(told)) << ranks.err;
}

TEST_F(MattingCommand, GivesTheSameBytesForEveryNumberOfThreadsAndRanks) {
  for (int i = 0; i < 23; ++i) {
    const std::string name = "set" + std::to_string(i % 3) + "/" + std::to_string(i) + ".png";
    const auto soft = [i](int64_t x, int64_t y) {
      return static_cast<unsigned>((x * 7 + y * (3 + i)) % 256);
    };
    put_pair(name,
             png_of(40 + i, 30, 8,
                    [&](int64_t x, int64_t y) {
                      return (soft(x, y) * (90U + static_cast<unsigned>(i % 5))) / 100U;
                    }),
             png_of(40 + i, 30, 8, soft));
    put("t/" + name,
        png_of(40 + i, 30, 8, [](int64_t x, int64_t) { return x % 3 == 0 ? 128U : 255U; }));
  }
  // NOLINTNEXTLINE(misc-misleading-bidirectional): meant
  put_pair("set0/<b>&\"q\"', =1+1\n\xff\xe2\x80\xae.png", flat(3, 2, 9), flat(3, 2, 90));
  put("g/z/missing.png", flat(1, 1, 1));
  std::vector<std::string> first;
  for (const auto& [threads, ranks] :
       std::vector<std::pair<const char*, int>>{{"1", 1}, {"2", 1}, {"4", 1}, {"1", 2}, {"2", 3}}) {
    const Outcome outcome =
        matting({"--trimap", path("t"), "-j", threads, "--missing", "skip", "--json",
                 path("o/a.json"), "--csv", path("o/a.csv"), "--html", path("o/a.html")},
                ranks);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "warning"));
    std::vector<std::string> texts{outcome.out};
    for (const char* name : {"o/a.json", "o/a.csv", "o/a.html"}) {
      texts.push_back(read_file(folder_ / name));
    }
    first = first.empty() ? texts : first;
    EXPECT_EQ(texts, first) << threads << " threads, " << ranks << " ranks";
  }
  EXPECT_TRUE(has(first[2], "\"<b>&\"\"q\"\"', =1+1\n"));
  EXPECT_EQ(first[3].find("<b>&\"q\""), std::string::npos);
  EXPECT_EQ(files_of(folder_.path(), {"o"}).size(), 3U);  // no temporary file is left
}

TEST_F(MattingCommand, JsonAloneIsOnStdoutWhenAskedFor) {
  put_pair("a.png", flat(2, 2, 1), flat(2, 2, 2));
  const Outcome outcome = matting({"--json", "-"});
  EXPECT_EQ(outcome.out.front(), '{');
  EXPECT_TRUE(outcome.out.ends_with("}\n"));
  EXPECT_EQ(outcome.out.find("profile dim"), std::string::npos);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(MattingCommand, OfAnEmptyFolderEndsWith65AndWritesWhatThereIs) {
  fs::create_directory(folder_ / "p");
  fs::create_directory(folder_ / "g");
  const std::string text = json({}, 65);
  EXPECT_EQ(text,
            R"({"profile":"dim","images":[],"mean":{"unknown":null,"all":{"images":0,"sad":null,)"
            R"("mse":null,"grad":null,"conn":null}},"datasets":{}})");
}

TEST_F(MattingCommand, RefusesWhatItDoesNotUnderstandInOneLine) {
  put_pair("a.png", flat(2, 2, 1), flat(2, 2, 2));
  for (const Arguments& wrong : std::vector<Arguments>{{"--profle", "dim"},
                                                       {"--profile", "dime"},
                                                       {"--missing", "maybe"},
                                                       {"-j", "0"},
                                                       {"-j", "many"},
                                                       {"third"},
                                                       {"--json"},
                                                       {"--csv", "-"},
                                                       {"--json", path("x"), "--csv", path("x")},
                                                       {"--trimap", path("g/a.png")}}) {
    const Outcome outcome = matting(wrong);
    EXPECT_EQ(outcome.exit_code, 2) << wrong.front() << outcome.err;
    EXPECT_TRUE(matches(outcome.err, "muster: error: [^\n]*\n"));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_TRUE(has(matting({"--profle", "dim"}).err, "'--profile'"));
}

TEST_F(MattingCommand, SaysWhatItTakes) {
  const Outcome help = run_program(bin_dir() / "muster", {"matting", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* option :
       {"PRED", "GT", "--trimap", "--profile", "--json", "--csv", "--html", "-j", "--missing"}) {
    EXPECT_TRUE(has(help.out, option));
  }
}

TEST_F(MattingCommand, ARankThatIsKilledEndsTheJobWithItsCode) {
  const std::string picture = flat(2000, 2000, 100);
  for (int i = 0; i < 200; ++i) {
    put_pair(std::to_string(i) + ".png", picture, picture);
  }
  const std::string program = (bin_dir() / "muster").string();
  const Outcome outcome =
      run_program(program, {"launch", "-n", "2", "sh", "-c",
                            "if [ $RANK = 1 ]; then (sleep 0.2; kill -9 $$) & fi; exec " + program +
                                R"( matting "$0" "$1" -j 1)",
                            path("p"), path("g")});
  EXPECT_EQ(outcome.exit_code, 137) << outcome.err;
  EXPECT_TRUE(matches(outcome.err, "rank 1 \\(pid [0-9]+\\) killed by SIGKILL\n(.|\n)*"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(MattingCommand, AnOutputThatCannotBeWrittenIsToldAndTheOthersAreWritten) {
  put_pair("a.png", flat(2, 2, 1), flat(2, 2, 2));
  fs::create_directory(folder_ / "folder");
  const Outcome outcome = matting({"--json", path("folder"), "--csv", path("a.csv")});
  EXPECT_EQ(outcome.exit_code, 73);
  EXPECT_TRUE(has(outcome.err, path("folder")));
  EXPECT_TRUE(fs::exists(folder_ / "a.csv"));
}

TEST_F(MattingCommand, TakesNoMoreMemoryThanItMayForManyLargeImages) {
  // 64 million pixels each; four at a time would need 8 GB by their headers.
  const std::string large = flat(8000, 8000, 255);
  for (int i = 0; i < 6; ++i) {
    put_pair(std::to_string(i) + ".png", large, large);
    put_pair("bomb" + std::to_string(i) + ".png", bomb(10000, 10000), bomb(10000, 10000));
  }
  const Outcome outcome = matting({"-j", "4"});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "6 images"));
  const Outcome ranks = matting({"-j", "2"}, 2);
  EXPECT_EQ(ranks.out, outcome.out);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss, int64_t{1536} << 10U);
}

}  // namespace
}  // namespace muster::test
