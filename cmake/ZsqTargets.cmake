# Sources whose compiler flags are the same share one precompiled header: zsq_precompiled and
# zsq_precompiled_test are the targets that hold one. A library with flags of its own gets its
# own with OWN_FLAGS, one without libtorch none.
option(ZSQ_PRECOMPILED_HEADERS "Precompile libtorch's headers" ON)
function(zsq_precompile target)
  target_precompile_headers(
    ${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.h>"
    ${ARGN})
endfunction()

function(zsq_define_precompiled_headers)
  if(NOT ZSQ_PRECOMPILED_HEADERS)
    return()
  endif()
  set(empty ${PROJECT_BINARY_DIR}/precompiled.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "int main() {}\n")
  add_library(zsq_precompiled STATIC EXCLUDE_FROM_ALL ${empty})
  target_compile_options(zsq_precompiled PRIVATE ${ZSQ_WARNINGS})
  target_link_libraries(zsq_precompiled PRIVATE Libtorch::libtorch)
  zsq_precompile(zsq_precompiled)
  if(ZSQ_TESTS)
    add_executable(zsq_precompiled_test EXCLUDE_FROM_ALL ${empty})
    zsq_test_flags(zsq_precompiled_test)
    target_link_libraries(zsq_precompiled_test PRIVATE Libtorch::libtorch)
    zsq_precompile(zsq_precompiled_test "$<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h$<ANGLE-R>>")
  endif()
endfunction()

# For code that runs once: half of the time that compiling it takes at -O3 goes into optimising it.
set(ZSQ_RUNS_ONCE $<$<CONFIG:Release>:-O1>)
function(zsq_test_flags target)
  target_link_libraries(${target} PRIVATE GTest::gtest)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE ZSQ_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE ${ZSQ_WARNINGS} ${ZSQ_RUNS_ONCE})
endfunction()

# zsq_library(<folder> SOURCES ... DEPS ...): the static library zsq_<folder>, linking only its row of
# the level table. zsq_test(<folder> SOURCES ... DEPS ...): the GoogleTest program <folder>_test; with
# NETWORKS its tests wait for tests/networks. Each test is one of ctest's; with PARTS <n> the program runs n times and
# each run has its share of them: loading libtorch takes longer than most tests.
function(zsq_library folder)
  cmake_parse_arguments(ARG "OWN_FLAGS;RUNS_ONCE" "" "SOURCES;DEPS" ${ARGN})
  add_library(zsq_${folder} STATIC ${ARG_SOURCES})
  add_library(zsq::${folder} ALIAS zsq_${folder})
  target_compile_features(zsq_${folder} PRIVATE cxx_std_20)
  target_link_libraries(zsq_${folder} PUBLIC ${ARG_DEPS})
  target_include_directories(zsq_${folder} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(zsq_${folder} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ZSQ_WARNINGS}>)
  if(ARG_RUNS_ONCE)
    target_compile_options(zsq_${folder} PRIVATE ${ZSQ_RUNS_ONCE})
  endif()
  if(ZSQ_PRECOMPILED_HEADERS AND Libtorch::libtorch IN_LIST ARG_DEPS)
    if(ARG_OWN_FLAGS)
      zsq_precompile(zsq_${folder})
    else()
      target_precompile_headers(zsq_${folder} REUSE_FROM zsq_precompiled)
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY ZSQ_LIBRARIES zsq_${folder})
endfunction()

function(zsq_test folder)
  if(NOT ZSQ_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "WITHOUT_LIBTORCH;NETWORKS" "PARTS" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${folder}_test ${ARG_SOURCES})
  zsq_test_flags(${folder}_test)
  target_link_libraries(${folder}_test PRIVATE ${ARG_DEPS} GTest::gtest_main)
  if(ZSQ_PRECOMPILED_HEADERS AND NOT ARG_WITHOUT_LIBTORCH)
    target_precompile_headers(${folder}_test REUSE_FROM zsq_precompiled_test)
  endif()
  set(labels "${folder};${ARG_LABELS}")
  set(needs "$<$<BOOL:${ARG_NETWORKS}>:networks>")
  if(NOT ARG_PARTS)
    gtest_discover_tests(${folder}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS "${labels}" TIMEOUT 900 FIXTURES_REQUIRED "${needs}")
    return()
  endif()
  foreach(part RANGE 1 ${ARG_PARTS})
    set(name ${folder}.part_${part})
    math(EXPR index "${part} - 1")
    add_test(NAME ${name} COMMAND ${folder}_test --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 900 FIXTURES_REQUIRED "${needs}"
                                 ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_PARTS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
