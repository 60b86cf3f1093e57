#include "src/io/safetensors_header_internal.h"

#include <muster/base/check.h>

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace muster {
namespace {

using Json = nlohmann::json;

/// Takes the header apart as the parser goes along. No tree is built, so that a hostile header
/// costs no more memory than its own size, and a repeated key is seen.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::string_view file) : file_{file} {}

  SafeTensorsHeader take() { return std::move(header_); }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a bool"); }
  bool number_integer(int64_t) override { refuse("a negative number"); }
  bool number_float(double, const std::string&) override {
    refuse("a fraction, or too large a number");
  }
  bool binary(Json::binary_t&) override { refuse("binary data"); }

  bool number_unsigned(uint64_t number) override {
    if (place_ != Place::list) {
      refuse("a number");
    }
    constexpr size_t most = 64;
    check(list_->size() < most, ErrorKind::data, "{}: {} of '{}' has more than {} numbers", file_,
          key_, name_, most);
    check(number <= static_cast<uint64_t>(INT64_MAX), ErrorKind::data,
          "{}: {} of '{}' holds {}, which is too large", file_, key_, name_, number);
    list_->push_back(static_cast<int64_t>(number));
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace_back(key_, std::move(text));
    } else if (place_ == Place::tensor && key_ == "dtype") {
      header_.tensors.back().dtype = std::move(text);
    } else {
      refuse("a text");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header) {
      keys_.clear();
      place_ = name_ == "__metadata__" ? Place::metadata : Place::tensor;
      if (place_ == Place::tensor) {
        header_.tensors.push_back({.name = name_});
      }
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& text) override {
    const bool first = (place_ == Place::header ? names_ : keys_).insert(text).second;
    check(first, ErrorKind::data, "{}: the header of safetensors names '{}' twice{}", file_, text,
          place_ == Place::header ? "" : " in '" + name_ + "'");
    if (place_ == Place::header) {
      name_ = std::move(text);
      return true;
    }
    check(place_ == Place::metadata || text == "dtype" || text == "shape" || text == "data_offsets",
          ErrorKind::data, "{}: tensor '{}' has '{}', which safetensors does not know", file_,
          name_, text);
    key_ = std::move(text);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      check(keys_.size() == 3 && header_.tensors.back().offsets.size() == 2, ErrorKind::data,
            "{}: tensor '{}' lacks dtype, shape or two data_offsets", file_, name_);
    }
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") {
      refuse("a list");
    }
    auto& tensor = header_.tensors.back();
    list_ = key_ == "shape" ? &tensor.shape : &tensor.offsets;
    place_ = Place::list;
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(size_t at, const std::string&, const Json::exception&) override {
    fail(ErrorKind::data, "{}: is no safetensors file: its header is no JSON (at byte {})", file_,
         at + 8);
  }

 private:
  enum class Place { outside, header, metadata, tensor, list };

  [[noreturn]] void refuse(std::string_view found) const {
    fail(ErrorKind::data, "{}: the header of safetensors has {} out of place, near '{}'", file_,
         found, name_);
  }

  std::string_view file_;
  SafeTensorsHeader header_;
  Place place_ = Place::outside;
  std::string name_;                       // the last key of the header
  std::string key_;                        // the last key of what stands under it
  std::vector<int64_t>* list_ = nullptr;   // what the numbers of a list go to
  std::unordered_set<std::string> names_;  // the keys of the header
  std::unordered_set<std::string> keys_;   // the keys of what stands under the last
};

}  // namespace

SafeTensorsHeader parse_safetensors_header(std::string_view json, std::string_view file) {
  check(json.starts_with('{'), ErrorKind::data,
        "{}: is no safetensors file: its header does not begin with a brace", file);
  // nlohmann's parser takes a zero byte for the end of the text.
  check(json.find('\0') == std::string_view::npos, ErrorKind::data,
        "{}: is no safetensors file: its header is no JSON (it holds a zero byte)", file);
  HeaderReader reader{file};
  Json::sax_parse(json, &reader);
  return reader.take();
}

}  // namespace muster
