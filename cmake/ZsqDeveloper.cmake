# What whoever works on zsq wants and who uses it decides for themselves, so it is read only where zsq is the
# top-level project: warnings, sanitizers, the build type, where programs go, ccache, mold.

# GCC 12 takes string concatenation for overlapping copies (its bug 105651).
set(ZSQ_WARNINGS -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
option(ZSQ_WARNINGS_AS_ERRORS "Let no source compile that the compiler warns about" OFF)
if(ZSQ_WARNINGS_AS_ERRORS)
  list(APPEND ZSQ_WARNINGS -Werror)
endif()
set(ZSQ_SANITIZE OFF CACHE STRING "Sanitizers: address (with undefined), thread, fuzzer (clang; with both of address), OFF")
set_property(CACHE ZSQ_SANITIZE PROPERTY STRINGS address thread fuzzer OFF)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(ZSQ_CCACHE ccache)
if(ZSQ_CCACHE)
  # What a precompiled header needs, by ccache's manual: its content counts, not when it was written.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${ZSQ_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ZSQ_CCACHE})
endif()
find_program(ZSQ_MOLD mold)
if(ZSQ_MOLD)
  # Segments on pages of their own: without, a program whose code ends within 8 bytes of a page's end and
  # that has a thread-local variable does not start ("cannot apply additional memory protection").
  add_link_options(-fuse-ld=mold -Wl,-z,separate-code)
endif()
if(ZSQ_SANITIZE)
  string(REPLACE address address,undefined sanitizers ${ZSQ_SANITIZE})
  # Every library is instrumented; the targets of tests/fuzz/ also link libFuzzer's main().
  string(REPLACE fuzzer fuzzer-no-link,address,undefined sanitizers ${sanitizers})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizers}> -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
endif()
