# muster::torch  libtorch for the CPU and c10d: libc10, libtorch_cpu, libtorch.
# muster::fmt    only the fmt headers that torch carries, for the layers that have no torch.
#
# find_package(Torch) of a CUDA wheel asks for CUDA's compiler, so the targets are made here. Looked for: MUSTER_TORCH
# (-D or environment: a folder with include/ and lib/, a wheel's `torch` folder or an unpacked libtorch), then .venv.
set(MUSTER_TORCH "$ENV{MUSTER_TORCH}" CACHE PATH "A folder with libtorch's include/ and lib/; empty: the wheel in .venv")
set(muster_torch_dir "${MUSTER_TORCH}")
if(NOT muster_torch_dir)
  file(GLOB muster_torch_found "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  list(POP_FRONT muster_torch_found muster_torch_dir)
endif()
if(NOT EXISTS "${muster_torch_dir}/include/torch/headeronly/version.h")
  message(FATAL_ERROR "No libtorch in '${muster_torch_dir}'. Run scripts/setup.sh, which installs it into .venv, or "
    "set MUSTER_TORCH to a folder that holds libtorch's include/ and lib/.")
endif()

file(STRINGS "${muster_torch_dir}/include/torch/headeronly/version.h" muster_torch_version
  REGEX "^#define TORCH_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9;]" "" muster_torch_version "${muster_torch_version}")
string(REPLACE ";" "." muster_torch_version "${muster_torch_version}")
if(NOT muster_torch_version STREQUAL "2.13")
  message(WARNING "Muster is tested with libtorch 2.13; ${muster_torch_dir} holds ${muster_torch_version}.")
endif()

# A folder that holds fmt alone: torch's include folder would bring everything else along. Most sources take fmt's
# compiled form (FMT_HEADER_ONLY unset); one source of ours defines FMT_HEADER_ONLY and so holds the code.
set(muster_fmt_include "${PROJECT_BINARY_DIR}/fmt-include")
file(MAKE_DIRECTORY "${muster_fmt_include}")
file(CREATE_LINK "${muster_torch_dir}/include/fmt" "${muster_fmt_include}/fmt" SYMBOLIC)
add_library(muster_fmt INTERFACE)
add_library(muster::fmt ALIAS muster_fmt)
target_include_directories(muster_fmt SYSTEM INTERFACE "${muster_fmt_include}")

if(NOT MUSTER_CORE_ONLY)
  add_library(muster_torch INTERFACE)
  add_library(muster::torch ALIAS muster_torch)
  target_include_directories(muster_torch SYSTEM INTERFACE
    "${muster_torch_dir}/include" "${muster_torch_dir}/include/torch/csrc/api/include")
  foreach(library c10 torch_cpu torch)
    add_library(muster_lib${library} SHARED IMPORTED)
    set_target_properties(muster_lib${library} PROPERTIES
      IMPORTED_LOCATION "${muster_torch_dir}/lib/lib${library}.so")
    target_link_libraries(muster_torch INTERFACE muster_lib${library})
  endforeach()
  # What those libraries need in turn (libgomp of the wheel) lies beside them.
  target_link_options(muster_torch INTERFACE "LINKER:-rpath-link,${muster_torch_dir}/lib")
  message(STATUS "libtorch ${muster_torch_version} in ${muster_torch_dir}")
endif()
