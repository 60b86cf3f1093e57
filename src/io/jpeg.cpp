#include <muster/base/check.h>

#include <array>
#include <csetjmp>
#include <cstdio>

// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include <jerror.h>

#include "src/io/codecs_internal.h"

namespace muster {
namespace {

/// One decompression. libjpeg reports errors by a longjmp, which passes over destructors: whatever
/// calls libjpeg under a setjmp below has none, and nothing here needs one but the decompressor
/// itself.
struct Job {
  jpeg_decompress_struct codec{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  std::array<char, JMSG_LENGTH_MAX> message{};

  Job();
  ~Job() { jpeg_destroy_decompress(&codec); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
};

[[noreturn]] void leave(j_common_ptr codec) {
  auto* job = static_cast<Job*>(codec->client_data);
  codec->err->format_message(codec, job->message.data());
  std::longjmp(job->escape, 1);
}

/// Warnings that mean missing or wrong pixels are errors; the others concern nothing that is read.
void take_message(j_common_ptr codec, int level) {
  if (level >= 0) {
    return;
  }
  switch (codec->err->msg_code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL:
      leave(codec);
    default:
      break;
  }
}

/// A progressive file may hold any number of scans, each of which costs a pass over the whole
/// image.
void limit_scans(j_common_ptr codec) {
  constexpr int most = 200;
  auto* job = static_cast<Job*>(codec->client_data);
  if (job->codec.input_scan_number > most) {
    std::snprintf(job->message.data(), job->message.size(), "it has more than %d scans", most);
    std::longjmp(job->escape, 1);
  }
}

void be_silent(j_common_ptr) {}

Job::Job() {
  codec.err = jpeg_std_error(&errors);
  errors.error_exit = leave;
  errors.emit_message = take_message;
  errors.output_message = be_silent;
  codec.client_data = this;
  progress.progress_monitor = limit_scans;
}

bool read_header(Job& job, const unsigned char* bytes, unsigned long size) {
  if (setjmp(job.escape) != 0) {
    return false;
  }
  jpeg_create_decompress(&job.codec);
  job.codec.progress = &job.progress;
  jpeg_mem_src(&job.codec, bytes, size);
  jpeg_read_header(&job.codec, TRUE);
  return true;
}

bool read_pixels(Job& job, uint8_t* to, size_t row_bytes) {
  if (setjmp(job.escape) != 0) {
    return false;
  }
  job.codec.out_color_space = job.codec.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  job.codec.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&job.codec);
  while (job.codec.output_scanline < job.codec.output_height) {
    JSAMPROW row = to + job.codec.output_scanline * row_bytes;
    jpeg_read_scanlines(&job.codec, &row, 1);
  }
  jpeg_finish_decompress(&job.codec);
  return true;
}

ImageInfo open(Job& job, std::string_view bytes, std::string_view name) {
  const bool ok = read_header(job, reinterpret_cast<const unsigned char*>(bytes.data()),
                              static_cast<unsigned long>(bytes.size()));
  check(ok, ErrorKind::data, "{}: the JPEG cannot be read: {}", name, job.message.data());
  const int components = job.codec.num_components;
  check(components == 1 || components == 3, ErrorKind::data,
        "{}: the JPEG has {} components (CMYK for print); only gray and RGB are read: convert it",
        name, components);
  return {job.codec.image_width, job.codec.image_height, components, 8};
}

}  // namespace

ImageInfo jpeg_info(std::string_view bytes, std::string_view name) {
  Job job;
  return open(job, bytes, name);
}

Image decode_jpeg(std::string_view bytes, std::string_view name, const DecodeLimits& limits) {
  Job job;
  const ImageInfo info = open(job, bytes, name);
  check_limits(info, name, limits);
  const int64_t values = info.width * info.height * info.channels;
  constexpr int64_t coefficient = 2;  // bytes; libjpeg keeps all of a file of several scans
  const bool keeps_all = jpeg_has_multiple_scans(&job.codec) != FALSE;
  check_memory(values + (keeps_all ? coefficient * values : 0), name, limits);
  Image image = Image::uninitialised(info.width, info.height, info.channels, info.depth);
  check(read_pixels(job, image.pixels.get(), static_cast<size_t>(image.row_bytes())),
        ErrorKind::data, "{}: the JPEG is damaged or cut short: {}", name, job.message.data());
  return image;
}

}  // namespace muster
