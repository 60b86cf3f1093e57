#include "tests/base/expect_error.h"
#include "tests/support/temp_folder.h"

#include <muster/base/files.h>
#include <muster/base/unfinished.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {
namespace {

namespace fs = std::filesystem;

using test::contains;
using test::error_of;
using test::TempFolder;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder}) {
    names.push_back(entry.path().filename().native());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Lets no file of this process grow beyond `bytes`, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lower);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(ReadFile, GivesBackWhatWasWritten) {
  const TempFolder folder;
  const std::string binary{"a\0\r\n\xff", 5};
  for (const std::string& content : {std::string{}, binary, std::string(3000000, 'x')}) {
    write_file_atomically(folder / "file", content);
    EXPECT_EQ(read_file(folder / "file"), content);
    EXPECT_EQ(read_file_if_there(folder / "file"), content);
  }
}

TEST(ReadFile, ReadsFilesThatDoNotTellTheirSize) {
  EXPECT_FALSE(read_file("/proc/self/status").empty());
}

TEST(ReadFile, RefusesMoreThanTheMost) {
  const TempFolder folder;
  write_file_atomically(folder / "ten", "0123456789");
  EXPECT_EQ(read_file(folder / "ten", 10), "0123456789");
  EXPECT_EQ(read_file(folder / "ten", UINT64_MAX), "0123456789");
  for (const uint64_t most : {9, 1, 0}) {
    const Error error = error_of([&] { read_file(folder / "ten", most); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(contains(error.what(), (folder / "ten").native())) << error.what();
  }
  EXPECT_EQ(error_of([] { read_file("/dev/zero", 100000); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([] { read_file("/proc/self/status", 20); }).kind(), ErrorKind::data);
}

TEST(ReadFile, RefusesAPipeInsteadOfWaitingForIt) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_file_if_there(folder / "pipe"); }).kind(), ErrorKind::data);
  const Error error = error_of([&] { read_file(folder / "pipe"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(contains(error.what(), "no regular file")) << error.what();
}

TEST(ReadFile, NamesThePathThatCannotBeRead) {
  const TempFolder folder;
  write_file_atomically(folder / "file", "");
  for (const fs::path& path : {folder / "missing", folder.path(), folder / "file/below"}) {
    const Error error = error_of([&] { read_file(path); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(contains(error.what(), path.native())) << error.what();
  }
}

TEST(ReadFileIfThere, IsNothingOnlyWhereNothingIs) {
  const TempFolder folder;
  write_file_atomically(folder / "file", "");
  EXPECT_FALSE(read_file_if_there(folder / "missing"));
  EXPECT_FALSE(read_file_if_there(folder / "file/below"));
  EXPECT_EQ(read_file_if_there(folder / "file"), "");
  EXPECT_EQ(error_of([&] { read_file_if_there(folder.path()); }).kind(), ErrorKind::data);
}

TEST(WriteFileAtomically, LeavesTheFileAlone) {
  const TempFolder folder;
  write_file_atomically(folder / "a/b/file.txt", "one");
  write_file_atomically(folder / "a/b/file.txt", "two");
  EXPECT_EQ(read_file(folder / "a/b/file.txt"), "two");
  EXPECT_EQ(names_in(folder / "a/b"), std::vector<std::string>{"file.txt"});
}

TEST(WriteFileAtomically, ReplacesAFileThatNeedNotSurviveAPowerCut) {
  const TempFolder folder;
  write_file_atomically(folder / "a/file.txt", "one", Durability::process);
  write_file_atomically(folder / "a/file.txt", "two", Durability::process);
  EXPECT_EQ(read_file(folder / "a/file.txt"), "two");
  EXPECT_EQ(names_in(folder / "a"), std::vector<std::string>{"file.txt"});
}

TEST(WriteFileAtomically, TakesTheLongestNameOfTheFileSystem) {
  const TempFolder folder;
  const std::string name(255, 'n');
  write_file_atomically(folder / name, "x");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{name});
}

TEST(WriteFileAtomically, LetsOthersReadAsTheUserWantsIt) {
  const TempFolder folder;
  const mode_t mask = umask(022);
  write_file_atomically(folder / "file", "x");
  umask(mask);
  EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms{0644});
}

TEST(WriteFileAtomically, WritesBesideAReaderOfTheOldContent) {
  const TempFolder folder;
  write_file_atomically(folder / "file", "old");
  fs::create_hard_link(folder / "file", folder / "same");
  write_file_atomically(folder / "file", "new");
  EXPECT_EQ(read_file(folder / "same"), "old");
}

TEST(WriteFileAtomically, NamesTheFolderThatCannotBeMade) {
  const TempFolder folder;
  write_file_atomically(folder / "file", "");
  for (const fs::path& path : {folder / "file/below/x", fs::path{"/proc/muster/x"}}) {
    const Error error = error_of([&] { write_file_atomically(path, "x"); });
    EXPECT_EQ(error.kind(), ErrorKind::output);
    EXPECT_TRUE(contains(error.what(), path.parent_path().native())) << error.what();
  }
}

TEST(WriteFileAtomically, NamesThePathThatCannotBeCreated) {
  const TempFolder folder;
  make_folder(folder / "taken");
  for (const fs::path& path : {folder / "taken", fs::path{"/proc/self/x"}}) {
    const Error error = error_of([&] { write_file_atomically(path, "x"); });
    EXPECT_EQ(error.kind(), ErrorKind::output);
    EXPECT_TRUE(contains(error.what(), path.native())) << error.what();
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"taken"});
}

TEST(WriteFileAtomically, KeepsTheOldFileWhenTheDiskIsFull) {
  const TempFolder folder;
  write_file_atomically(folder / "file", "old");
  {
    const FileSizeLimit limit{4096};
    const Error error =
        error_of([&] { write_file_atomically(folder / "file", std::string(100000, 'x')); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_TRUE(contains(error.what(), (folder / "file").native())) << error.what();
  }
  EXPECT_EQ(read_file(folder / "file"), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"file"});
}

TEST(LinkOrCopy, LinksWithinAFileSystem) {
  const TempFolder folder;
  write_file_atomically(folder / "source", "bytes");
  link_or_copy(folder / "source", folder / "new/target");
  EXPECT_EQ(read_file(folder / "new/target"), "bytes");
  EXPECT_TRUE(fs::equivalent(folder / "source", folder / "new/target"));
}

TEST(LinkOrCopy, LinksTheFileThatASymbolicLinkNames) {
  const TempFolder folder;
  write_file_atomically(folder / "source", "bytes");
  fs::create_symlink("source", folder / "link");
  link_or_copy(folder / "link", folder / "target");
  EXPECT_FALSE(fs::is_symlink(folder / "target"));
  EXPECT_EQ(read_file(folder / "target"), "bytes");
}

TEST(LinkOrCopy, CopiesFromAnotherFileSystem) {
  const TempFolder folder;
  link_or_copy("/proc/self/cmdline", folder / "new/target");
  EXPECT_EQ(read_file(folder / "new/target"), read_file("/proc/self/cmdline"));
  EXPECT_EQ(names_in(folder / "new"), std::vector<std::string>{"target"});
}

TEST(LinkOrCopy, LeavesATargetThatIsThere) {
  const TempFolder folder;
  write_file_atomically(folder / "source", "new");
  write_file_atomically(folder / "target", "old");
  link_or_copy(folder / "source", folder / "target");
  link_or_copy("/proc/self/cmdline", folder / "target");
  EXPECT_EQ(read_file(folder / "target"), "old");
}

TEST(LinkOrCopy, NamesASourceThatIsNotThere) {
  const TempFolder folder;
  const Error error = error_of([&] { link_or_copy(folder / "source", folder / "target"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(contains(error.what(), (folder / "source").native())) << error.what();
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(Unfinished, IsWhatAProcessThatWasKilledLeavesOfAnAtomicWrite) {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit least{.rlim_cur = 100, .rlim_max = 100};  // SIGXFSZ ends it within the write
    setrlimit(RLIMIT_FSIZE, &least);
    write_file_atomically(folder / "killed", std::string(1000, 'x'));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  for (const auto* kept : {"name", ".part", ".0123456789abcdef.parts", ".0123456789abcdeg.part"}) {
    write_file_atomically(folder / kept, "");
  }
  EXPECT_EQ(names_in(folder.path()).size(), 5U);
  remove_unfinished(folder.path());
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{".0123456789abcdef.parts", ".0123456789abcdeg.part", ".part",
                                      "name"}));
  remove_unfinished(folder / "nowhere");
}

TEST(MakeFolder, MakesThoseAboveAndTakesWhatIsThere) {
  const TempFolder folder;
  make_folder(folder / "a/b/c/");
  make_folder(folder / "a/b/c");
  fs::create_directory_symlink("a", folder / "link");
  make_folder(folder / "link");
  make_folder(folder / "link/d");
  make_folder(".");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder / "a/d"));
}

TEST(MakeFolder, NamesTheFolderThatCannotBeMade) {
  const TempFolder folder;
  write_file_atomically(folder / "file", "");
  for (const fs::path& path : {folder / "file", folder / "file/below", fs::path{"/proc/muster"}}) {
    const Error error = error_of([&] { make_folder(path); });
    EXPECT_EQ(error.kind(), ErrorKind::output);
    EXPECT_TRUE(contains(error.what(), path.native())) << error.what();
  }
}

TEST(RemoveIfEmpty, LeavesLinksAndWhatHoldsSomething) {
  const TempFolder folder;
  for (const auto* name : {"empty", "full", "elsewhere"}) fs::create_directory(folder / name);
  write_file_atomically(folder / "full/file", "");
  fs::create_directory_symlink("elsewhere", folder / "link");
  for (const auto* name : {"empty", "full", "link", "missing"}) remove_if_empty(folder / name);
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"elsewhere", "full", "link"}));
}

}  // namespace
}  // namespace muster
