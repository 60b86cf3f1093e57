#include "track/support.h"

#include "src/track/event_file_internal.h"

#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>

namespace muster::test {

namespace {

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xffU);
  }
  return out;
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::string png_chunk(std::string_view kind, std::string_view body) {
  const std::string checked = std::string{kind} + std::string{body};
  return big_endian(static_cast<uint32_t>(body.size())) + checked + big_endian(crc_of(checked));
}

void read_items(const std::string& body, std::map<std::string, std::string>& items) {
  protozero::pbf_reader message{body};
  while (message.next(1)) {
    protozero::pbf_reader item{message.get_message()};
    std::string key;
    std::string value;
    while (item.next()) {
      switch (item.tag()) {
        case 1:
          key = item.get_string();
          break;
        case 16:
          value = item.get_string();
          break;
        default:
          item.skip();
      }
    }
    items[key] = value;
  }
}

WandbEntry read_entry(const std::string& payload) {
  WandbEntry entry;
  protozero::pbf_reader record{payload};
  while (record.next()) {
    if (record.tag() == 1) {
      entry.number = record.get_int64();
    } else if (record.tag() == 200) {
      record.skip();
    } else {
      entry.field = record.tag();
      entry.body = record.get_string();
    }
  }
  if (entry.field == 2 || entry.field == 3 || entry.field == 5 || entry.field == 6) {
    read_items(entry.body, entry.items);
  }
  return entry;
}

}  // namespace

std::string gray_png(int width, int height, int shade) {
  std::string rows;
  for (int y = 0; y < height; ++y) {
    rows += '\0';
    for (int x = 0; x < width; ++x) {
      rows += static_cast<char>(x * 255 / width / 2 + y * 127 / height / 2 + shade * 37);
    }
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
            reinterpret_cast<const Bytef*>(rows.data()), rows.size(), 1);
  packed.resize(size);
  const std::string head = big_endian(static_cast<uint32_t>(width)) +
                           big_endian(static_cast<uint32_t>(height)) +
                           std::string{"\x08\x00\x00\x00\x00", 5};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

ImageRecord make_image(const std::filesystem::path& dir, std::string key, int64_t step,
                       int64_t index, std::string caption, int width, int height, int shade) {
  const std::string png = gray_png(width, height, shade);
  ImageRecord image{.key = std::move(key),
                    .step = step,
                    .index = index,
                    .caption = std::move(caption),
                    .width = width,
                    .height = height,
                    .sha256 = sha256_hex(png)};
  const auto file = dir / (image.sha256 + ".png");
  write_file_atomically(file, png);
  image.file = file.string();
  return image;
}

std::string from_hex(std::string_view digits) {
  std::string out;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string{digits.substr(i, 2)}, nullptr, 16));
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

std::vector<WandbEntry> read_wandb(const std::filesystem::path& path, bool* is_whole) {
  const std::string data = read_file(path);
  std::vector<WandbEntry> entries;
  std::string payload;
  bool inside = false;
  size_t at = 7;
  bool good = data.starts_with(std::string_view{":W&B\xe1\xbe\0", 7});
  while (good && at < data.size()) {
    const size_t left = 32768 - at % 32768;
    if (left < 7) {
      at += left;
      continue;
    }
    good = at + 7 <= data.size();
    const std::string_view head = std::string_view{data}.substr(at, good ? 7 : 0);
    const size_t length = good ? little_endian(head.substr(4, 2)) : 0;
    good = good && at + 7 + length <= data.size() && length + 7 <= left &&
           crc_of(std::string_view{data}.substr(at + 6, length + 1)) ==
               little_endian(head.substr(0, 4)) &&
           inside == (head[6] == 3 || head[6] == 4);
    if (good) {
      payload += data.substr(at + 7, length);
      inside = head[6] == 2 || head[6] == 3;
      if (!inside) {
        entries.push_back(read_entry(payload));
        payload.clear();
      }
      at += 7 + length;
    }
  }
  if (is_whole != nullptr) {
    *is_whole = good && !inside;
  }
  return entries;
}

std::filesystem::path only_wandb_file(const std::filesystem::path& dir) {
  std::filesystem::path found;
  for (const auto& path : files_below(dir / "wandb")) {
    if (path.extension() == ".wandb") {
      if (!found.empty()) {
        throw std::runtime_error{"more than one .wandb file"};
      }
      found = path;
    }
  }
  return found;
}

std::vector<std::string> read_events(const std::filesystem::path& path, bool* is_whole) {
  const std::string data = read_file(path);
  std::vector<std::string> events;
  size_t at = 0;
  bool good = true;
  while (good && at < data.size()) {
    const size_t length =
        at + 16 <= data.size() ? little_endian(std::string_view{data}.substr(at, 8)) : data.size();
    good = at + 16 + length <= data.size();
    if (good) {
      const auto body = data.substr(at + 12, length);
      good = data.compare(at, length + 16, track::frame_tf_record(body)) == 0;
      events.push_back(body);
      at += length + 16;
    }
  }
  if (is_whole != nullptr) {
    *is_whole = good;
  }
  return events;
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{dir}) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace muster::test
