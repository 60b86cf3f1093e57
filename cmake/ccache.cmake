# Clones in other folders share one cache: paths under the source folder count as relative, and no result names
# its folder (see also -ffile-prefix-map in flags.cmake).
find_program(MUSTER_CCACHE ccache DOC "The compiler cache; optional")
if(MUSTER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${MUSTER_CCACHE}")
endif()
