#include "bytes.h"

#include <muster/base/check.h>

#include <cstring>

namespace muster::app {

namespace {

template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

void ByteWriter::put(int64_t number) { append(bytes_, number); }
void ByteWriter::put(double number) { append(bytes_, number); }
void ByteWriter::put(std::string_view text) {
  put(static_cast<int64_t>(text.size()));
  bytes_ += text;
}

std::string_view ByteReader::next(size_t count) {
  check(count <= bytes_.size(), ErrorKind::mismatch,
        "another rank's results are cut short; all ranks must run the same program");
  const std::string_view part = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return part;
}

void ByteReader::take(int64_t& number) {
  std::memcpy(&number, next(sizeof number).data(), sizeof number);
}

void ByteReader::take(double& number) {
  std::memcpy(&number, next(sizeof number).data(), sizeof number);
}

void ByteReader::take(std::string& text) {
  int64_t size = 0;
  take(size);
  text = next(static_cast<size_t>(size));
}

}  // namespace muster::app
