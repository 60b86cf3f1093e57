#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/data/batch.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace {

using muster::Batch;

struct Photo {
  at::Tensor image{};
  at::Tensor alpha{};
  std::string name{};
  int label = 0;
  float weight = 0;
  double score = 0;
};

Batch<Photo> batch_of(std::vector<Photo> photos) {
  std::vector<int64_t> indices;
  for (size_t i = 0; i < photos.size(); ++i) {
    indices.push_back(static_cast<int64_t>(10 + i));
  }
  return {3, indices, std::move(photos)};
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const muster::Error& error) {
    EXPECT_EQ(error.kind(), muster::ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 64 == 0;
}

TEST(Batch, KnowsItsNumberAndItsSamplesIndices) {
  const auto batch = batch_of({{.name = "a"}, {.name = "b"}});
  EXPECT_EQ(batch.batch_idx(), 3);
  EXPECT_EQ(batch.size(), 2);
  EXPECT_EQ(batch.indices(), (std::vector<int64_t>{10, 11}));
  std::string seen;
  for (const auto& [index, photo] : batch.indexed()) {
    seen += std::to_string(index) + photo.name;
  }
  EXPECT_EQ(seen, "10a11b");
  EXPECT_EQ(&batch.indexed()[0].second, &batch.samples()[0]);
  EXPECT_EQ(batch.list(&Photo::name), (std::vector<std::string>{"a", "b"}));
  EXPECT_THROW((Batch<Photo>{0, {1, 2}, {Photo{}}}), muster::Error);
}

TEST(Batch, StacksTensorsAlongANewFirstDimension) {
  const auto batch = batch_of({{.image = at::full({2, 3}, 1.0)}, {.image = at::full({2, 3}, 2.0)}});
  const at::Tensor images = batch.stack(&Photo::image);
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_TRUE(images.equal(at::stack({at::full({2, 3}, 1.0), at::full({2, 3}, 2.0)})));
  EXPECT_TRUE(is_aligned(images));
}

TEST(Batch, StacksNumbersByTheirType) {
  const auto batch = batch_of(
      {{.label = 7, .weight = 0.5F, .score = 0.1}, {.label = -1, .weight = 2, .score = 0.2}});
  EXPECT_TRUE(batch.stack(&Photo::label).equal(at::arange(7, -2, -8)));
  EXPECT_EQ(batch.stack(&Photo::label).scalar_type(), at::kLong);
  EXPECT_EQ(batch.stack(&Photo::weight).scalar_type(), at::kFloat);
  EXPECT_EQ(batch.stack(&Photo::score).scalar_type(), at::kDouble);
  EXPECT_EQ(batch.stack(&Photo::score)[1].item().toDouble(), 0.2);
}

TEST(Batch, NamesBothSamplesWhenShapesDiffer) {
  const auto batch = batch_of(
      {{.alpha = at::zeros({3, 4})}, {.alpha = at::zeros({3, 4})}, {.alpha = at::zeros({5})}});
  EXPECT_EQ(
      message_of([&] { (void)batch.stack(&Photo::alpha); }),
      "batch 3: cannot stack 'alpha': it is float32[3, 4] in sample 10 and float32[5] in sample "
      "12; "
      "make them alike in the data set, use batch_size 1, or take them one by one with batch.list");
}

TEST(Batch, RefusesToStackOtherDtypesUndefinedTensorsAndNothing) {
  const auto dtypes = batch_of({{.image = at::zeros({2})}, {.image = at::zeros({2}, at::kDouble)}});
  EXPECT_NE(message_of([&] { (void)dtypes.stack(&Photo::image); }).find("float64[2] in sample 11"),
            std::string::npos);
  const auto undefined = batch_of({{.image = at::zeros({2})}, {}});
  EXPECT_EQ(message_of([&] { (void)undefined.stack(&Photo::image); }),
            "batch 3: cannot stack 'image': it is undefined in sample 11");
  EXPECT_EQ(message_of([] { (void)batch_of({}).stack(&Photo::image); }),
            "an empty batch has nothing to stack");
}

struct Inner {
  at::Tensor mask{};
  std::pair<int, at::Tensor> pair{};
};

struct Nested {
  at::Tensor plain{};
  std::vector<at::Tensor> list{};
  std::vector<Inner> inners{};
  std::optional<at::Tensor> maybe{};
  std::map<std::string, at::Tensor> map{};
  std::array<at::Tensor, 2> array{};
  muster::Value value{};
  std::vector<bool> flags{true};
  const int constant = 3;
};

TEST(Tensors, AreReachedAtAnyDepthOfASample) {
  Nested sample{.plain = at::zeros({1}),
                .list = {at::zeros({1}), at::zeros({1})},
                .inners = {{at::zeros({1}), {1, at::zeros({1})}}},
                .maybe = at::zeros({1}),
                .map = {{"a", at::zeros({1})}},
                .array = {at::zeros({1}), at::zeros({1})},
                .value = muster::Value::Dict{{"x", muster::Value::List{at::zeros({1}), 3}}}};
  int seen = 0;
  muster::replace_tensors(sample, [&seen](const at::Tensor& tensor) { return tensor.add(++seen); });
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(sample.plain.item().toInt(), 1);
  EXPECT_EQ(sample.list[1].item().toInt(), 3);
  EXPECT_EQ(sample.inners[0].pair.second.item().toInt(), 5);
  EXPECT_EQ(sample.maybe->item().toInt(), 6);
  EXPECT_EQ(sample.map["a"].item().toInt(), 7);
  EXPECT_EQ(sample.array[1].item().toInt(), 9);
  EXPECT_EQ(sample.value.find("x")->as_list()[0].as_tensor().item().toInt(), 10);
}

TEST(Tensors, AreCopiedToAlignedMemoryOnlyWhereTheyAreNot) {
  std::vector<float> memory(64, 1.0F);
  for (int offset = 0; offset < 4; ++offset) {
    const at::Tensor foreign = at::from_blob(memory.data() + 1 + offset, {2, 3}, at::kFloat);
    const at::Tensor copy = muster::in_aligned_memory(foreign);
    EXPECT_TRUE(is_aligned(copy));
    EXPECT_TRUE(copy.equal(foreign));
  }
  const at::Tensor own = at::rand({4, 5});
  EXPECT_EQ(muster::in_aligned_memory(own).const_data_ptr(), own.const_data_ptr());
  const at::Tensor odd = at::rand({100}).slice(0, 1, 50);
  EXPECT_TRUE(is_aligned(muster::in_aligned_memory(odd)));
  EXPECT_FALSE(muster::in_aligned_memory(at::Tensor{}).defined());
  EXPECT_EQ(muster::in_aligned_memory(at::zeros({0, 3})).sizes(), (std::vector<int64_t>{0, 3}));
}

TEST(Tensors, HaveALayoutThatDoesNotDependOnTheirAddress) {
  const at::Tensor memory = at::rand({1000});
  for (const int64_t offset : {0, 1, 16}) {
    const at::Tensor dense = memory.slice(0, offset, offset + 60).view({5, 12}).t();
    EXPECT_EQ(muster::in_aligned_memory(dense).strides(), dense.strides());
    const at::Tensor gaps = memory.slice(0, offset, offset + 60).view({5, 12}).slice(1, 0, 7);
    EXPECT_EQ(muster::in_aligned_memory(gaps).strides(), (std::vector<int64_t>{7, 1}));
  }
}

TEST(Tensors, LoseTheirGradient) {
  EXPECT_FALSE(muster::in_aligned_memory(at::rand({3}).set_requires_grad(true)).requires_grad());
}

TEST(Batch, MovesEveryTensorToTheDevice) {
  const Batch<Nested> batch{0, {0}, {Nested{.plain = at::zeros({2}), .list = {at::zeros({3})}}}};
  const auto moved = batch.to(at::kMeta);
  EXPECT_TRUE(moved.samples()[0].plain.is_meta());
  EXPECT_TRUE(moved.samples()[0].list[0].is_meta());
  EXPECT_EQ(moved.indices(), batch.indices());
  EXPECT_TRUE(batch.samples()[0].plain.is_cpu());
  EXPECT_EQ(batch.to(at::kCPU).samples()[0].plain.const_data_ptr(),
            batch.samples()[0].plain.const_data_ptr());
}

}  // namespace
