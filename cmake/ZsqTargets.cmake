# GCC 12 takes string concatenation for overlapping copies (its bug 105651).
set(ZSQ_WARNINGS -Wall -Wextra -Wno-restrict)

# zsq_library(<folder> SOURCES ... DEPS ...): the static library zsq_<folder>, linking only its row of
# the level table. zsq_test(<folder> SOURCES ... DEPS ...): the GoogleTest program <folder>_test.
function(zsq_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(zsq_${folder} STATIC ${ARG_SOURCES})
  add_library(zsq::${folder} ALIAS zsq_${folder})
  target_link_libraries(zsq_${folder} PUBLIC ${ARG_DEPS})
  target_include_directories(zsq_${folder} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:include/zsq>)
  target_compile_options(zsq_${folder} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ZSQ_WARNINGS}>)
  set_property(GLOBAL APPEND PROPERTY ZSQ_LIBRARIES zsq_${folder})
endfunction()

function(zsq_test folder)
  if(NOT ZSQ_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${folder}_test ${ARG_SOURCES})
  target_link_libraries(${folder}_test PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  target_include_directories(${folder}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${folder}_test PRIVATE ZSQ_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${folder}_test PRIVATE ${ZSQ_WARNINGS})
  gtest_discover_tests(${folder}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${folder};${ARG_LABELS}" TIMEOUT 900)
endfunction()
