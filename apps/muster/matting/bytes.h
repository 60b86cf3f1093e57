#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::app {

/// Numbers and texts one after the other, for ranks on machines of one type.
class ByteWriter {
 public:
  void put(int64_t number);
  void put(double number);
  void put(std::string_view text);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Takes them in the same order. Error of kind `mismatch` when there are no more.
class ByteReader {
 public:
  /// `bytes` must live as long.
  explicit ByteReader(std::string_view bytes) : bytes_{bytes} {}
  void take(int64_t& number);
  void take(double& number);
  void take(std::string& text);

 private:
  std::string_view next(size_t count);

  std::string_view bytes_;
};

}  // namespace muster::app
