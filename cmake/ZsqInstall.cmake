# cmake --install: headers under include/zsq, static libraries, the program, and zsqConfig.cmake, so
# that another project says find_package(zsq) and links zsq::pipeline.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ZSQ_LIBRARIES)
foreach(library IN LISTS libraries)
  string(REGEX REPLACE "^zsq_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
install(
  TARGETS ${libraries}
  EXPORT zsqTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set_target_properties(zsq PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS zsq RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(
  DIRECTORY recipes/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsq/recipes
  FILES_MATCHING
  PATTERN "*.yaml")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zsq)
configure_package_config_file(cmake/zsqConfig.cmake.in ${PROJECT_BINARY_DIR}/zsqConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zsqConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zsqConfig.cmake ${PROJECT_BINARY_DIR}/zsqConfigVersion.cmake
              cmake/FindLibtorch.cmake DESTINATION ${package_folder})
install(
  EXPORT zsqTargets
  NAMESPACE zsq::
  DESTINATION ${package_folder})
install(
  FILES scripts/completion.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME zsq)
install(FILES ${PROJECT_BINARY_DIR}/cli/zsq.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
