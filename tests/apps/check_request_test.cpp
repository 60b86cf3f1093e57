#include "apps/muster/check/request.h"

#include <muster/base/error.h>

#include <gtest/gtest.h>

#include <filesystem>

namespace muster::app {
namespace {

using Arguments = std::vector<std::string>;

TEST(CheckRequest, TakesItsOptionsFromBeforeAndFromAmongThoseOfTheProgram) {
  EXPECT_EQ(own_options_first({"matting", "test", "--world", "1,2", "--seed", "3", "--keep=a"}),
            (Arguments{"--world", "1,2", "--keep=a", "matting", "test", "--seed", "3"}));
  EXPECT_EQ(own_options_first({"--keep", "a", "matting", "test"}),
            (Arguments{"--keep", "a", "matting", "test"}));
  EXPECT_EQ(own_options_first({"matting", "--world"}), (Arguments{"--world", "matting"}));
}

TEST(CheckRequest, ReadsTheNumbersOfRanks) {
  EXPECT_EQ(worlds_of("1,2,3"), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(worlds_of("5,1"), (std::vector<int>{5, 1}));
  for (const char* wrong : {"", "1", "1,", ",1", "1,,2", "1,1", "0,1", "1,1025", "1,two", "1 2"}) {
    EXPECT_THROW(worlds_of(wrong), Error) << wrong;
  }
}

TEST(CheckRequest, FindsTheCommandAmongOptionsAndRefusesATraining) {
  EXPECT_NO_THROW(check_program_command({"p", "validate"}));
  EXPECT_NO_THROW(check_program_command({"p", "--seed", "fit", "--model.x=1", "test", "fit"}));
  EXPECT_NO_THROW(check_program_command({"p", "--print_config", "predict"}));
  EXPECT_THROW(check_program_command({"p", "fit"}), Error);
  EXPECT_THROW(check_program_command({"p", "--seed", "test"}), Error);
  EXPECT_THROW(check_program_command({"p"}), Error);
}

TEST(CheckRequest, ReplacesTheRunFolderAndTheNumberOfRanks) {
  EXPECT_EQ(program_for_run({"p", "test", "--run_dir", "mine"}, "/tmp/x", 3),
            (Arguments{"p", "test", "--run_dir", "mine", "--trainer.run_dir", "/tmp/x",
                       "--trainer.devices", "3"}));
}

TEST(CheckRequest, BestAndLastAreThoseOfTheProgramsOwnRunFolder) {
  const auto checkpoint = [](const Arguments& program) {
    const auto all = program_for_run(program, "/tmp/x", 2);
    const std::string& path = all.at(all.size() - 5);
    return std::filesystem::path{path}.lexically_relative(std::filesystem::current_path()).string();
  };
  EXPECT_EQ(checkpoint({"bin/p", "test", "--ckpt_path", "best"}), "runs/p/checkpoints/best.ckpt");
  EXPECT_EQ(checkpoint({"p", "test", "--ckpt_path=last", "--run_dir=mine"}),
            "mine/checkpoints/last.ckpt");
  EXPECT_EQ(checkpoint({"p", "test", "--trainer.run_dir", "mine", "--ckpt_path", "last"}),
            "mine/checkpoints/last.ckpt");
  EXPECT_THROW(checkpoint({"p", "test", "--config", "a.yaml", "--ckpt_path", "last"}), Error);
  EXPECT_EQ(program_for_run({"p", "test", "--ckpt_path", "a.safetensors"}, "/tmp/x", 2).size(), 8U);
}

TEST(CheckRequest, CountsRanksInWords) {
  EXPECT_EQ(ranks_text(1), "1 rank");
  EXPECT_EQ(ranks_text(2), "2 ranks");
  EXPECT_EQ(ranks_text({1, 2, 3}), "1, 2 and 3 ranks");
  EXPECT_EQ(ranks_text({2, 1}), "2 and 1 ranks");
}

}  // namespace
}  // namespace muster::app
