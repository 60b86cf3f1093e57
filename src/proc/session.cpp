#include "src/proc/session_internal.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace muster::detail {

namespace fs = std::filesystem;

bool session_lives(pid_t session) {
  std::error_code error;
  for (auto entry = fs::directory_iterator{"/proc", error};
       !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    std::string line;
    std::getline(std::ifstream{entry->path() / "stat"}, line);
    // "pid (name) state parent group session": a name may hold blanks and brackets.
    const size_t after_name = line.rfind(')');
    if (after_name == std::string::npos) {
      continue;
    }
    std::istringstream fields{line.substr(after_name + 1)};
    std::string state;
    pid_t parent = 0;
    pid_t group = 0;
    pid_t of = 0;
    if (fields >> state >> parent >> group >> of && of == session && state != "Z") {
      return true;
    }
  }
  return false;
}

}  // namespace muster::detail
