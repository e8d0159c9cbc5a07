# What whoever works on zsq wants and who uses it decides for themselves, so it is read only where zsq is the
# top-level project: warnings, sanitizers, the build type, where programs go, ccache, mold.

# Reading libtorch's headers takes longer than compiling what a source says itself, even precompiled: several sources
# at a time take a quarter of the time. Whoever changes one file after the other sets it to OFF.
option(CMAKE_UNITY_BUILD "Compile several sources of a target as one" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16 CACHE STRING "How many sources are compiled as one")

# GCC 12 takes string concatenation for overlapping copies (its bug 105651), and a source that another includes for a
# header, where a class with members of an anonymous namespace would differ from file to file.
set(ZSQ_WARNINGS -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                 $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>)
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
