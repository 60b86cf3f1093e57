#include <c10/core/GradMode.h>
#include <muster/base/check.h>
#include <muster/base/text.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/io/weights.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace muster {
namespace {

using Targets = std::span<const std::pair<std::string, at::Tensor>>;
using ByName = std::map<std::string, at::Tensor>;

std::filesystem::path file_of(const std::filesystem::path& path) {
  check(std::filesystem::exists(path), "no such file or folder with weights: {}", path.native());
  if (!std::filesystem::is_directory(path)) {
    return path;
  }
  auto inside = path / "model.safetensors";
  check(std::filesystem::exists(inside), "the folder {} holds no model.safetensors", path.native());
  return inside;
}

/// The first few of `names`, each with the one of `others` that may be meant by it.
std::string list_of(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  constexpr size_t most = 5;
  std::string text;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) {
    const auto near = closest_name(names[i], others);
    text += (i == 0 ? "" : ", ") + names[i] + (near.empty() ? "" : " (there is " + near + ")");
  }
  if (names.size() > most) {
    text += format(" and {} more", names.size() - most);
  }
  return text;
}

void check_names(const ByName& found, Targets targets, std::string_view file) {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::map<std::string, int> wanted;
  for (const auto& [name, tensor] : targets) {
    check(++wanted[name] == 1, "Two tensors that weights are loaded into are called '{}'", name);
    if (!found.contains(name)) {
      missing.push_back(name);
    }
  }
  for (const auto& [name, tensor] : found) {
    if (!wanted.contains(name)) {
      unexpected.push_back(name);
    }
  }
  if (missing.empty() && unexpected.empty()) {
    return;
  }
  std::string what;
  if (!missing.empty()) {
    what += format("; {} missing in the file: {}", missing.size(), list_of(missing, unexpected));
  }
  if (!unexpected.empty()) {
    what +=
        format("; {} unknown to the model: {}", unexpected.size(), list_of(unexpected, missing));
  }
  fail(ErrorKind::data, "{}: its weights are not those of this model{}", file, what);
}

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

void check_tensor(const std::string& name, const at::Tensor& source, const at::Tensor& target,
                  std::string_view file) {
  check(source.sizes() == target.sizes(), ErrorKind::data,
        "{}: tensor '{}' has shape {}, and the model's has {}", file, name, shape_of(source),
        shape_of(target));
  const auto from = source.scalar_type();
  const auto to = target.scalar_type();
  check(from == to || (at::isFloatingType(from) && at::isFloatingType(to)), ErrorKind::data,
        "{}: tensor '{}' is of type {}, and the model's of {}", file, name, c10::toString(from),
        c10::toString(to));
}

}  // namespace

std::vector<std::string> copy_weights(NamedTensors from, Targets targets, std::string_view file) {
  const ByName found{std::make_move_iterator(from.begin()), std::make_move_iterator(from.end())};
  check_names(found, targets, file);
  for (const auto& [name, target] : targets) {
    check_tensor(name, found.at(name), target, file);
  }
  const c10::AutoGradMode without_gradients{false};
  std::vector<std::string> converted;
  for (const auto& [name, target] : targets) {
    const auto& source = found.at(name);
    target.copy_(source);
    if (source.scalar_type() != target.scalar_type()) {
      converted.push_back(name);
    }
  }
  return converted;
}

std::vector<std::string> load_weights(const std::filesystem::path& path, Targets targets) {
  const auto file = file_of(path);
  auto tensors =
      checkpoint_moment(path) ? read_checkpoint_model(path) : load_safetensors(file).tensors;
  return copy_weights(std::move(tensors), targets, file.native());
}

}  // namespace muster
