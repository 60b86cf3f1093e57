# muster_layer(NAME LINKS TARGET...): the static library muster_NAME (alias muster::NAME) from src/NAME/*.cpp.
# A layer without sources is its headers alone.
function(muster_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  set(target muster_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:muster_flags>)
    # Internal headers of a layer: #include "src/NAME/x_internal.h" is for that layer and its tests.
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    install(TARGETS ${target} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(muster::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  target_link_libraries(${target} ${scope} ${arg_LINKS})
  set(MUSTER_LAYERS ${MUSTER_LAYERS} muster::${name} PARENT_SCOPE)
endfunction()

# muster_program(TARGET OUTPUT NAME SOURCES FILE... LINKS TARGET...): a program in bin/, part of muster_programs.
function(muster_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT" "SOURCES;LINKS")
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME "${arg_OUTPUT}")
  target_link_libraries(${target} PRIVATE muster_flags ${arg_LINKS})
  # A program that uses nothing of torch does not load it. libtorch exports parts of the C++ library, so that the
  # library itself must come before it.
  target_link_options(${target} PRIVATE LINKER:--no-as-needed -lstdc++ LINKER:--as-needed)
  add_dependencies(muster_programs ${target})
endfunction()
