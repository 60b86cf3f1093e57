#include <gtest/gtest.h>

#include <source_location>
#include <string>

namespace {

// Messages name source lines; the build maps its folders away (cmake/flags.cmake).
TEST(SourcePaths, AreRelativeToTheRepository) {
  EXPECT_STREQ(std::source_location::current().file_name(), "tests/base/source_paths_test.cpp");
  EXPECT_EQ(std::string{__FILE__}, "tests/base/source_paths_test.cpp");
}

}  // namespace
