#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/io/tensor_image.h>

#include <cmath>
#include <limits>

#include "support/temp_folder.h"
#include "tests/io/picture_support.h"

namespace muster {
namespace {

/// The values of the PNG that `encode_png` writes, as a tensor of C x H x W.
at::Tensor written(const at::Tensor& image) {
  return image_to_tensor(decode_image(encode_png(image), "written"));
}

at::Tensor random_bytes(at::IntArrayRef sizes) { return at::rand(sizes).mul(256).to(at::kByte); }

std::string refusal_of(const at::Tensor& image) {
  try {
    encode_png(image);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

class TensorImageFile : public testing::Test {
 protected:
  std::filesystem::path save(const std::string& name, const std::string& bytes) {
    write_file_atomically(folder_ / name, bytes, Durability::process);
    return folder_ / name;
  }

 private:
  test::TempFolder folder_;
};

TEST(TensorImage, WritesBytesAsTheyAreInEveryShape) {
  const auto gray = random_bytes({9, 7});
  EXPECT_TRUE(at::equal(written(gray), gray.unsqueeze(0)));
  for (const int64_t channels : {1, 3, 4}) {
    const auto image = random_bytes({channels, 9, 7});
    EXPECT_TRUE(at::equal(written(image), image));
    const auto channels_last = image.permute({1, 2, 0}).contiguous();
    EXPECT_TRUE(at::equal(written(channels_last), image));
  }
}

TEST(TensorImage, TakesTheFirstSizeAsChannelsWhereBothCouldBe) {
  const auto image = random_bytes({3, 5, 4});
  EXPECT_TRUE(at::equal(written(image), image));
}

TEST(TensorImage, WritesTurnedAndMirroredTensorsAsTheyLook) {
  const auto image = random_bytes({3, 8, 6});
  for (const auto& view :
       {image.transpose(1, 2), image.flip({1}), image.flip({1, 2}), image.slice(2, 0, 6, 2),
        image.narrow(1, 2, 4), image.expand({3, 8, 6})}) {
    EXPECT_TRUE(at::equal(written(view), view.contiguous()));
  }
  const auto constant = at::full({1, 1, 1}, 0.5).expand({3, 4, 5});
  EXPECT_TRUE(at::equal(written(constant), at::full({3, 4, 5}, 128).to(at::kByte)));
}

TEST(TensorImage, ScalesFloatsWithRounding) {
  const auto levels = at::arange(256).to(at::kByte).view({16, 16});
  for (const auto type : {at::kFloat, at::kDouble}) {
    EXPECT_TRUE(at::equal(written(levels.to(type).div(255))[0], levels)) << type;
  }
  EXPECT_TRUE(
      at::equal(written(at::tensor({0.0, 0.25, 0.5, 1.0}).to(at::kHalf).view({1, 4})).view({4}),
                at::tensor({0, 64, 128, 255}).to(at::kByte)));
  EXPECT_TRUE(at::equal(written(at::tensor({0.25, 0.5}).to(at::kBFloat16).view({1, 2})).view({2}),
                        at::tensor({64, 128}).to(at::kByte)));
}

TEST(TensorImage, ClampsWhatIsOutOfRangeAndCountsIt) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto image = at::tensor({-0.5, 1.5, infinity, -infinity, std::nan(""), 1.0, -0.0, 0.2})
                           .to(type)
                           .view({2, 4});
    PngInfo info;
    const auto file = encode_png(image, {}, &info);
    EXPECT_EQ(info.out_of_range, 5);
    EXPECT_EQ(info.width, 4);
    EXPECT_EQ(info.height, 2);
    EXPECT_EQ(test::values_of(decode_image(file, "")),
              (std::vector<uint16_t>{0, 255, 255, 0, 0, 255, 0, 51}));
  }
}

TEST(TensorImage, WritesBoolsAsBlackAndWhite) {
  const auto mask = at::tensor({1, 0, 0, 1}).to(at::kBool).view({2, 2});
  EXPECT_TRUE(at::equal(written(mask).view({4}), at::tensor({255, 0, 0, 255}).to(at::kByte)));
}

TEST(TensorImage, WritesATensorThatWantsGradients) {
  const auto image = at::rand({3, 4, 4}).requires_grad_();
  EXPECT_EQ(written(image).sizes(), (at::IntArrayRef{3, 4, 4}));
}

TEST(TensorImage, SaysWhatATensorIsThatIsNoImage) {
  const auto contains = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(refusal_of(at::zeros({2, 3, 4, 5})), "[2, 3, 4, 5] of Float");
  contains(refusal_of(at::zeros({1, 3, 4, 5})), "image[0]");
  contains(refusal_of(at::zeros({5, 6, 7})), "[5, 6, 7]");
  contains(refusal_of(at::zeros({6, 6}, at::kLong)), "of Long");
  contains(refusal_of(at::zeros({3, 0, 6})), "no pixels");
  contains(refusal_of(at::zeros({6})), "dimensions");
  contains(refusal_of(at::Tensor{}), "undefined");
}

TEST_F(TensorImageFile, ReadsWhatWasWritten) {
  const auto image = random_bytes({3, 12, 10});
  const auto path = save("a.png", encode_png(image));
  const auto read = read_image(path);
  EXPECT_TRUE(at::equal(read, image));
  EXPECT_TRUE(read.is_contiguous());
  EXPECT_TRUE(
      at::equal(read_image(path, {.type = PixelType::float32}), image.to(at::kFloat).div(255)));
  EXPECT_EQ(read_image(path, {.mode = ImageMode::gray}).sizes(), (at::IntArrayRef{1, 12, 10}));
  EXPECT_EQ(read_image(path, {.mode = ImageMode::rgba}).sizes(), (at::IntArrayRef{4, 12, 10}));
}

TEST_F(TensorImageFile, KeepsSixteenBitsOnlyInFloats) {
  auto raw = test::random_png(20, 10, 16, 0, 4);
  raw.samples[0] = 65535;
  const auto path = save("deep.png", test::write_by_libpng(raw));
  const auto bytes = read_image(path);
  const auto floats = read_image(path, {.type = PixelType::float32});
  for (int64_t i = 0; i < 200; ++i) {
    const double exact = raw.samples[static_cast<size_t>(i)] / 65535.0;
    EXPECT_EQ(floats.const_data_ptr<float>()[i], static_cast<float>(exact));
    EXPECT_EQ(bytes.const_data_ptr<uint8_t>()[i], std::lround(exact * 255));
  }
}

TEST_F(TensorImageFile, NamesAFileThatCannotBeRead) {
  const auto path = save("cut.png", encode_png(random_bytes({3, 12, 10})).substr(0, 60));
  try {
    read_image(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string{error.what()}.find(path.string()), std::string::npos);
  }
  EXPECT_THROW(read_image(path.parent_path() / "missing.png"), Error);
}

}  // namespace
}  // namespace muster
