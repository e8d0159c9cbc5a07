file(REMOVE_RECURSE ${FOLDER})
foreach(
  command
  "--install;${BUILD};--prefix;${FOLDER}/prefix"
  "-S;${SOURCE};-B;${FOLDER}/build;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${FOLDER}/prefix;-DREADME=${README}"
  "--build;${FOLDER}/build")
  execute_process(COMMAND ${CMAKE_COMMAND} ${command} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endforeach()
execute_process(COMMAND ${FOLDER}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FOLDER}/prefix/bin/zsq --version COMMAND_ERROR_IS_FATAL ANY)
foreach(file man/man1/zsq.1 bash-completion/completions/zsq)
  if(NOT EXISTS ${FOLDER}/prefix/share/${file})
    message(FATAL_ERROR "share/${file} was not installed")
  endif()
endforeach()
