# What every target of ours is compiled with. Third-party headers come in as SYSTEM and stay out of the warnings.
add_library(muster_flags INTERFACE)
target_compile_features(muster_flags INTERFACE cxx_std_20)
target_compile_options(muster_flags INTERFACE -Wall -Wextra -Wpedantic)
if(MUSTER_WERROR)
  target_compile_options(muster_flags INTERFACE -Werror)
endif()

# A fused multiply-add rounds once where two operations round twice: results must not depend on the compiler's choice.
target_compile_options(muster_flags INTERFACE -ffp-contract=off)

# __FILE__ and source_location give src/train/x.cpp, whether the compiler sees the absolute path or the one that
# ccache made relative to the build folder.
file(RELATIVE_PATH muster_source_from_build "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
target_compile_options(muster_flags INTERFACE
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${muster_source_from_build}=")

if(MUSTER_SANITIZE)
  target_compile_options(muster_flags INTERFACE
    "-fsanitize=${MUSTER_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(muster_flags INTERFACE "-fsanitize=${MUSTER_SANITIZE}")
endif()
