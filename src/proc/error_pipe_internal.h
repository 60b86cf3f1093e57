#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::detail {

/// The value of MUSTER_ERROR_FD and MUSTER_PLACE_FD: "FD:INODE". The inode keeps a process that was
/// started with the variable but without the descriptor from writing into whatever has that number
/// there.
std::string descriptor_variable(int fd);

/// The pipe to the launcher that this process has inherited, or nothing.
std::optional<int> inherited_error_pipe();

/// Writes all of it, or returns false.
bool write_all(int fd, std::string_view bytes);

}  // namespace muster::detail
