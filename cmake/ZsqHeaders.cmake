# zsq::headers: the public headers as users see them, <zsq/...>. They are copied to <build>/include/zsq and their
# includes, which are spelled from the root of the repository, rewritten to <zsq/...>: neither the build folder
# nor an installation then adds names such as core/ or models/ to the include path of a user.
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt headers REGEX "\\.h$")
set(copies)
foreach(header IN LISTS headers)
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(REGEX REPLACE "#include \"([^\"]+)\"" "#include <zsq/\\1>" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/zsq/${header} CONTENT "${text}" @ONLY)
  list(APPEND copies ${PROJECT_BINARY_DIR}/include/zsq/${header})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers} cmake/public_headers.txt)

add_library(zsq_headers INTERFACE)
add_library(zsq::headers ALIAS zsq_headers)
target_compile_features(zsq_headers INTERFACE cxx_std_17)
target_sources(zsq_headers INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include FILES ${copies})
set_property(GLOBAL APPEND PROPERTY ZSQ_LIBRARIES zsq_headers)
if(ZSQ_TESTS)
  # One source per header that includes nothing else.
  set_target_properties(zsq_headers PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  add_custom_target(public_headers_alone ALL)
  add_dependencies(public_headers_alone zsq_headers_verify_interface_header_sets)
endif()
