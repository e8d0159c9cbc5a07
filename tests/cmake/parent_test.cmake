# The parent asserts about itself while it is configured; here, what stands in the files that CMake wrote, and
# that a source of the parent finds the headers.
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G ${GENERATOR} -DZSQ=${ZSQ} -DZSQ_CUDA=OFF
                        -DLIBTORCH_ROOT=${TORCH}
                        COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(STRINGS ${FOLDER}/CMakeCache.txt build_type REGEX "^CMAKE_BUILD_TYPE:[A-Z]+=.+")
if(build_type)
  message(FATAL_ERROR "zsq chose the build type of its parent: ${build_type}")
endif()
if(EXISTS ${FOLDER}/compile_commands.json)
  message(FATAL_ERROR "zsq wrote a compile_commands.json that its parent did not ask for")
endif()
file(GLOB_RECURSE install_scripts ${FOLDER}/zsq/*cmake_install.cmake)
foreach(script IN LISTS install_scripts)
  file(STRINGS ${script} installs REGEX "file\\(INSTALL")
  if(installs)
    message(FATAL_ERROR "zsq installs itself with its parent: ${script}")
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER} --target CMakeFiles/program.dir/main.cpp.o
                        COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
