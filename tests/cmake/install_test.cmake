file(REMOVE_RECURSE ${FOLDER})
set(prefix ${FOLDER}/prefix)
set(ENV{PKG_CONFIG_PATH} ${prefix}/lib/pkgconfig)
foreach(
  command
  "--install;${BUILD};--prefix;${prefix}"
  "-S;${SOURCE}/consumer;-B;${FOLDER}/build;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${prefix};-DREADME=${ROOT}/README.md;-DVERSION=${VERSION}"
  "--build;${FOLDER}/build"
  "-S;${SOURCE}/c_consumer;-B;${FOLDER}/c;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${prefix};-DDOCUMENT=${ROOT}/docs/sdk.md;-DVERSION=${VERSION}"
  "--build;${FOLDER}/c")
  execute_process(COMMAND ${CMAKE_COMMAND} ${command} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endforeach()
execute_process(COMMAND ${FOLDER}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FOLDER}/c/by_cmake COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND pkg-config --cflags --libs zsq OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND ${CC} -std=c99 ${SOURCE}/c_consumer/main.c ${flags} -o ${FOLDER}/by_pkg_config
                        COMMAND_ERROR_IS_FATAL ANY)
# A library in a folder that the system does not search: the program has to be told.
execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${prefix}/lib ${FOLDER}/by_pkg_config
                        COMMAND_ERROR_IS_FATAL ANY)
# The version stands in one place, project(); what is installed has it from there.
execute_process(COMMAND ${prefix}/bin/zsq --version OUTPUT_VARIABLE program COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND pkg-config --modversion zsq OUTPUT_VARIABLE package COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${prefix}/include/zsq/zsq.h macro REGEX "define ZSQ_VERSION ")
foreach(said IN ITEMS "zsq ([0-9.]+)\n.*;${program}" "([0-9.]+)\n;${package}" "#define ZSQ_VERSION \"([0-9.]+)\";${macro}")
  list(GET said 0 form)
  list(GET said 1 text)
  if(NOT text MATCHES "^${form}$" OR NOT CMAKE_MATCH_1 STREQUAL VERSION)
    message(FATAL_ERROR "the version is ${VERSION}; found: ${text}")
  endif()
endforeach()
foreach(file man/man1/zsq.1 bash-completion/completions/zsq)
  if(NOT EXISTS ${prefix}/share/${file})
    message(FATAL_ERROR "share/${file} was not installed")
  endif()
endforeach()

# Each installed header compiles alone, without warnings, as C++17; C++20 is what public_headers_alone compiles.
# That of the C interface is C99, too.
set(strict -Wall -Wextra -pedantic -Werror -fsyntax-only -I${prefix}/include)
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/zsq/*.h)
list(LENGTH headers count)
if(count LESS 30)
  message(FATAL_ERROR "only ${count} headers were installed")
endif()
foreach(header IN LISTS headers)
  file(WRITE ${FOLDER}/alone.cpp "#include <${header}>\n")
  execute_process(COMMAND ${CXX} -std=c++17 ${strict} ${FOLDER}/alone.cpp COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(WRITE ${FOLDER}/alone.c "#include <zsq/zsq.h>\nint main(void) { return 0; }\n")
execute_process(COMMAND ${CC} -std=c99 ${strict} ${FOLDER}/alone.c COMMAND_ERROR_IS_FATAL ANY)
