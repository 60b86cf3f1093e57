#include "src/proc/port_holder_internal.h"

#include <muster/base/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace muster::detail {

namespace {

namespace fs = std::filesystem;

// The sockets that listen at the port, as links in /proc/PID/fd name them.
std::set<std::string> listeners_at(int port) {
  const std::string suffix = format(":{:04X}", port);
  std::set<std::string> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file{table};
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields{line};
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      if (state == "0A" && local.ends_with(suffix)) {
        found.insert(format("socket:[{}]", inode));
      }
    }
  }
  return found;
}

bool has_one_of(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (auto entry = fs::directory_iterator{process / "fd", error};
       !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    std::error_code closed;
    if (sockets.contains(fs::read_symlink(entry->path(), closed).string())) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string port_holder(int port) {
  const auto sockets = listeners_at(port);
  std::error_code error;
  for (auto entry = fs::directory_iterator{"/proc", error};
       !sockets.empty() && !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    const std::string pid = entry->path().filename().string();
    if (pid.find_first_not_of("0123456789") == std::string::npos &&
        has_one_of(entry->path(), sockets)) {
      std::string name;
      std::getline(std::ifstream{entry->path() / "comm"}, name);
      return format("process {} ({})", pid, name);
    }
  }
  return "";
}

}  // namespace muster::detail
