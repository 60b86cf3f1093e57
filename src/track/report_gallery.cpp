#include "src/track/report_parts_internal.h"

#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/base/text.h>

#include <algorithm>
#include <set>

namespace muster::track {

namespace {

/// The picture itself, or a box of its shape that says why it is not here.
std::string picture_html(const ReportImage& image, const std::filesystem::path& media,
                         PictureBudget& budget) {
  std::optional<std::string> png;
  if (is_sha256_hex(image.sha256)) {
    png = read_file_if_there(media / (image.sha256 + ".png"));
  }
  if (!png || png->size() > budget.bytes_left) {
    ++budget.left_out;
    return format(R"(<div class="absent">{}</div>)", png ? "left out" : "no picture");
  }
  budget.bytes_left -= png->size();
  return format(R"(<button type="button" class="zoom"><img class="{}" alt="{}" width="{}" )"
                R"(height="{}" )"
                R"(loading="lazy" decoding="async" src="data:image/png;base64,{}"></button>)",
                std::max(image.width, image.height) < 128 ? "small" : "",
                escape_html(image.caption), image.width, image.height, base64(*png));
}

std::string figure_html(const ReportImage& image, bool with_key, const std::filesystem::path& media,
                        PictureBudget& budget) {
  std::string caption = shown_text(image.caption);
  if (with_key || image.caption.empty()) {
    caption += R"( <span class="key">)" + shown_text(image.key) + "</span>";
  }
  return format(
      "<figure>{}<figcaption>{}<span class=\"size\">{} × {}</span></figcaption></figure>\n",
      picture_html(image, media, budget), caption, image.width, image.height);
}

}  // namespace

std::string gallery_part(const ReportStage& stage, const std::filesystem::path& media,
                         PictureBudget& budget) {
  if (stage.images.empty()) {
    return "";
  }
  const auto differs = [&](auto member) {
    return std::any_of(stage.images.begin(), stage.images.end(), [&](const ReportImage& image) {
      return image.*member != stage.images.front().*member;
    });
  };
  const bool several_keys = differs(&ReportImage::key);
  const bool several_steps = differs(&ReportImage::step);
  const auto labels = sample_labels(stage);
  std::set<int64_t> anchored;  // a sample may be shown at several steps
  std::string out = format(R"(<h3>Images</h3><p class="note">{} in the order of the data set)",
                           stage.images.size());
  out += several_keys ? ".</p>" : ", key " + shown_text(stage.images.front().key) + ".</p>";
  out += "<div class=\"gallery\">\n";
  for (size_t i = 0; i < stage.images.size();) {
    const auto& first = stage.images[i];
    const std::string index = std::to_string(first.index);
    const auto label = labels.find(first.index);
    out += format(R"(<section class="sample"{}><h4><span class="index">{}</span>{}{}</h4>)"
                  "<div class=\"figures\">\n",
                  anchored.insert(first.index).second
                      ? R"( id=")" + sample_anchor(stage.name, index) + R"(")"
                      : "",
                  index, label == labels.end() ? "" : " " + shown_text(label->second),
                  several_steps ? format(R"( <span class="key">step {}</span>)", first.step) : "");
    for (; i < stage.images.size() && stage.images[i].index == first.index &&
           stage.images[i].step == first.step;
         ++i) {
      out += figure_html(stage.images[i], several_keys, media, budget);
    }
    out += "</div></section>\n";
  }
  return out + "</div>\n";
}

}  // namespace muster::track
