# cmake -DCOMPILER= -DSOURCE= -DEXPECT= -DINCLUDES= -P expect_failure.cmake (see CMakeLists.txt)
list(REMOVE_DUPLICATES INCLUDES)
list(REMOVE_ITEM INCLUDES "" /usr/include) # the compiler's own, whose place in the order matters
list(TRANSFORM INCLUDES PREPEND -isystem)
set(command "${COMPILER}" -std=c++20 -fsyntax-only -fdiagnostics-color=never ${INCLUDES} "${SOURCE}")

execute_process(COMMAND ${command} -DMUSTER_CONTROL RESULT_VARIABLE status ERROR_VARIABLE message)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} with -DMUSTER_CONTROL was to compile:\n${message}")
endif()

execute_process(COMMAND ${command} RESULT_VARIABLE status ERROR_VARIABLE message)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, and was not to.")
endif()
if(NOT message MATCHES "${EXPECT}")
  message(FATAL_ERROR "${SOURCE} does not compile, but the message does not match '${EXPECT}':\n${message}")
endif()
