#include "files.h"

#include <muster/base/check.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace muster::app {

namespace fs = std::filesystem;

namespace {

/// The pictures of a folder by stem; more than one path where extensions differ.
using Pictures = std::map<std::string, std::vector<fs::path>>;

constexpr size_t most_folders = 100'000;
constexpr size_t most_depth = 100;

bool is_picture_name(const std::string& name) {
  constexpr std::array<std::string_view, 5> extensions{".png", ".jpg", ".jpeg", ".jpe", ".jfif"};
  std::string extension = fs::path{name}.extension().native();
  for (char& c : extension) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

std::string without_extension(const std::string& name) { return name.substr(0, name.rfind('.')); }

/// Collects the pictures below a folder.
class Search {
 public:
  Search(fs::path root, std::vector<Problem>& problems)
      : root_{std::move(root)}, problems_{problems} {}

  Pictures find() {
    enter(root_, "");
    return std::move(pictures_);
  }

 private:
  using Identity = std::pair<dev_t, ino_t>;

  void enter(const fs::path& folder, const std::string& prefix) {
    struct stat about {};
    if (stat(folder.c_str(), &about) != 0) {
      return add_problem(prefix, folder, std::generic_category().message(errno));
    }
    const Identity identity{about.st_dev, about.st_ino};
    // A link back to a folder that this one lies in.
    if (std::find(open_.begin(), open_.end(), identity) != open_.end()) {
      return;
    }
    if (++folders_ > most_folders || open_.size() >= most_depth) {
      return add_problem(prefix, folder,
                         "there are too many folders; do symbolic links lead in circles?");
    }
    open_.push_back(identity);
    for (const auto& name : names_in(folder, prefix)) {
      const fs::path path = folder / name;
      std::error_code unknown;
      if (fs::is_directory(path, unknown)) {
        enter(path, prefix + name + "/");
      } else if (is_picture_name(name)) {
        pictures_[prefix + without_extension(name)].push_back(path);
      }
    }
    open_.pop_back();
  }

  std::vector<std::string> names_in(const fs::path& folder, const std::string& prefix) {
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator at{folder, error};
    for (; !error && at != fs::directory_iterator{}; at.increment(error)) {
      std::string name = at->path().filename().native();
      if (!name.starts_with('.')) {
        names.push_back(std::move(name));
      }
    }
    if (error) {
      add_problem(prefix, folder, error.message());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void add_problem(const std::string& prefix, const fs::path& folder, const std::string& why) {
    problems_.push_back(
        {.place = prefix,
         .text = format("{}: the folder cannot be read: {}", folder.native(), why)});
  }

  fs::path root_;
  std::vector<Problem>& problems_;
  Pictures pictures_;
  std::vector<Identity> open_;
  size_t folders_ = 0;
};

/// The one path of a stem; nothing, and a problem, where there are several.
std::optional<fs::path> only_one(const std::string& stem, const std::vector<fs::path>& paths,
                                 std::vector<Problem>& problems) {
  if (paths.size() == 1) {
    return paths.front();
  }
  std::string names = paths.front().native();
  for (size_t i = 1; i < paths.size(); ++i) {
    names += " and " + paths[i].native();
  }
  problems.push_back(
      {.place = stem,
       .text = names + ": both would be the same image; remove one, or give them other names"});
  return std::nullopt;
}

class Matcher {
 public:
  explicit Matcher(const MattingInputs& inputs) : inputs_{inputs} {
    predictions_ = Search{inputs.prediction, problems_}.find();
    truths_ = Search{inputs.truth, problems_}.find();
    if (inputs.trimap) {
      trimaps_ = Search{*inputs.trimap, problems_}.find();
    }
  }

  MatchedFiles match() {
    if (truths_.empty()) {
      problems_.push_back({.text = format("{}: there is no picture (PNG or JPEG) in this folder",
                                          inputs_.truth.native())});
    }
    for (const auto& [stem, paths] : truths_) {
      add(stem, paths);
    }
    for (const auto& [stem, paths] : predictions_) {
      if (!truths_.contains(stem)) {
        warn_of_stray(stem, paths);
      }
    }
    return {std::move(samples_), std::move(problems_)};
  }

 private:
  void add(const std::string& stem, const std::vector<fs::path>& paths) {
    const auto truth = only_one(stem, paths, problems_);
    const auto found = predictions_.find(stem);
    const auto prediction = found == predictions_.end() ? std::optional<fs::path>{}
                                                        : only_one(stem, found->second, problems_);
    bool whole = truth && prediction;
    if (truth && found == predictions_.end()) {
      problems_.push_back(
          {.place = stem,
           .kind = inputs_.skip_missing ? Problem::Kind::warning : Problem::Kind::error,
           .text = format("{}: it has no prediction; {} with a picture's extension was expected",
                          truth->native(), (inputs_.prediction / stem).native())});
    }
    std::optional<fs::path> trimap;
    if (const auto given = trimaps_.find(stem); given != trimaps_.end()) {
      trimap = only_one(stem, given->second, problems_);
      whole = whole && trimap;
    } else if (inputs_.trimap && whole) {
      problems_.push_back(
          {.place = stem,
           .kind = Problem::Kind::warning,
           .text = format("{}: it has no trimap; {} with a picture's extension was expected. Its "
                          "unknown region has no values",
                          truth->native(), (*inputs_.trimap / stem).native())});
    }
    if (whole) {
      samples_.push_back(
          {.stem = stem, .prediction = *prediction, .truth = *truth, .trimap = trimap});
    }
  }

  void warn_of_stray(const std::string& stem, const std::vector<fs::path>& paths) {
    // Two of them would be an error wherever they belong.
    if (const auto path = only_one(stem, paths, problems_)) {
      problems_.push_back({.place = stem,
                           .kind = Problem::Kind::warning,
                           .text = format("{}: it is the prediction of no picture in {}",
                                          path->native(), inputs_.truth.native())});
    }
  }

  const MattingInputs& inputs_;
  std::vector<Problem> problems_;
  Pictures predictions_;
  Pictures truths_;
  Pictures trimaps_;
  std::vector<MattingSample> samples_;
};

bool is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  check(there.type() != fs::file_type::not_found, ErrorKind::data,
        "{}: there is no such file or folder", path.native());
  check(there.type() != fs::file_type::none, ErrorKind::data, "{}: cannot be read: {}",
        path.native(), error.message());
  return fs::is_directory(there);
}

}  // namespace

std::string MattingSample::dataset() const {
  const size_t slash = stem.find('/');
  return slash == std::string::npos ? "" : stem.substr(0, slash);
}

std::string MattingSample::name() const { return stem.substr(stem.find('/') + 1); }

MatchedFiles match_files(const MattingInputs& inputs) {
  const bool folders = is_folder(inputs.truth);
  const auto check_kind = [&](const fs::path& other, std::string_view what) {
    check(is_folder(other) == folders,
          "GT {} is a {} and {} {} is a {}: give all of them as files, or all as folders",
          inputs.truth.native(), folders ? "folder" : "file", what, other.native(),
          folders ? "file" : "folder");
  };
  check_kind(inputs.prediction, "PRED");
  if (inputs.trimap) {
    check_kind(*inputs.trimap, "--trimap");
  }
  if (folders) {
    return Matcher{inputs}.match();
  }
  const fs::path name = inputs.truth.filename();
  MattingSample sample{.stem = name.stem().native(),
                       .prediction = inputs.prediction,
                       .truth = inputs.truth,
                       .trimap = inputs.trimap};
  return {.samples = {std::move(sample)}};
}

}  // namespace muster::app
