#include "src/track/events_internal.h"

#include <muster/base/text.h>

#include <protozero/pbf_writer.hpp>

namespace muster::track {

namespace {

using protozero::pbf_writer;

// Field numbers of TensorBoard's event.proto, summary.proto and tensor.proto.
namespace event {
enum : uint32_t { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
}
namespace value {
enum : uint32_t { tag = 1, simple_value = 2, tensor = 8, metadata = 9 };
}
namespace metadata {
enum : uint32_t { plugin_data = 1, description = 3, data_class = 4 };
}
enum class DataClass : int32_t { tensor = 2, blob_sequence = 3 };

void begin_event(pbf_writer& writer, double wall_time, int64_t step) {
  writer.add_double(event::wall_time, wall_time);
  if (step != 0) {
    writer.add_int64(event::step, step);
  }
}

void add_plugin(pbf_writer& writer, std::string_view plugin, std::string_view description,
                DataClass data_class) {
  pbf_writer metadata_writer{writer, value::metadata};
  {
    pbf_writer data{metadata_writer, metadata::plugin_data};
    data.add_string(1, plugin.data(), plugin.size());
  }
  if (!description.empty()) {
    metadata_writer.add_string(metadata::description, valid_utf8(description));
  }
  metadata_writer.add_enum(metadata::data_class, static_cast<int32_t>(data_class));
}

/// A one-dimensional tensor of byte strings.
void add_string_tensor(pbf_writer& writer, std::span<const std::string> head,
                       std::span<const std::string> tail) {
  constexpr int32_t dt_string = 7;
  pbf_writer tensor{writer, value::tensor};
  tensor.add_enum(1, dt_string);
  {
    pbf_writer shape{tensor, 2};
    pbf_writer dimension{shape, 2};
    dimension.add_int64(1, static_cast<int64_t>(head.size() + tail.size()));
  }
  for (const auto part : {head, tail}) {
    for (const auto& bytes : part) {
      tensor.add_bytes(8, bytes);
    }
  }
}

}  // namespace

std::string version_event(double wall_time) {
  std::string out;
  pbf_writer writer{out};
  begin_event(writer, wall_time, 0);
  writer.add_string(event::file_version, "brain.Event:2");
  return out;
}

std::string session_start_event(double wall_time, int64_t step) {
  constexpr int32_t start = 1;
  std::string out;
  pbf_writer writer{out};
  begin_event(writer, wall_time, step);
  pbf_writer session{writer, event::session_log};
  session.add_enum(1, start);
  session.commit();
  return out;
}

std::string scalars_event(double wall_time, int64_t step,
                          std::span<const std::pair<std::string, double>> values) {
  std::string out;
  pbf_writer writer{out};
  begin_event(writer, wall_time, step);
  {
    pbf_writer summary{writer, event::summary};
    for (const auto& [name, number] : values) {
      pbf_writer entry{summary, 1};
      entry.add_string(value::tag, valid_utf8(name));
      entry.add_float(value::simple_value, static_cast<float>(number));
    }
  }
  return out;
}

std::string images_event(double wall_time, int64_t step, std::string_view tag,
                         std::span<const ImageRecord> images, std::span<const std::string> pngs) {
  std::string captions;
  for (const auto& image : images) {
    captions += image.caption.empty() ? "" : (captions.empty() ? "" : "\n\n") + image.caption;
  }
  const std::vector<std::string> size{std::to_string(images.front().width),
                                      std::to_string(images.front().height)};
  std::string out;
  pbf_writer writer{out};
  begin_event(writer, wall_time, step);
  {
    pbf_writer summary{writer, event::summary};
    pbf_writer entry{summary, 1};
    entry.add_string(value::tag, valid_utf8(tag));
    add_plugin(entry, "images", captions, DataClass::blob_sequence);
    add_string_tensor(entry, size, pngs);
  }
  return out;
}

std::string text_event(double wall_time, int64_t step, std::string_view tag,
                       std::string_view text) {
  const std::vector<std::string> content{valid_utf8(text)};
  std::string out;
  pbf_writer writer{out};
  begin_event(writer, wall_time, step);
  {
    pbf_writer summary{writer, event::summary};
    pbf_writer entry{summary, 1};
    entry.add_string(value::tag, valid_utf8(tag));
    add_plugin(entry, "text", "", DataClass::tensor);
    add_string_tensor(entry, content, {});
  }
  return out;
}

}  // namespace muster::track
