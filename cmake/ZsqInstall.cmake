# cmake --install: the program, libzsq.so, headers under include/zsq, static libraries, and what find_package(zsq)
# and pkg-config read. Component runtime is what programs need to run, development what building them needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
option(ZSQ_BUNDLE_LIBTORCH "Install the CPU half of libtorch with zsq, for machines without one" OFF)

# Where an installed program and library look for libtorch: beside them, or where this build found it.
set(bundle ${CMAKE_INSTALL_LIBDIR}/zsq)
if(ZSQ_BUNDLE_LIBTORCH)
  file(RELATIVE_PATH from_bin /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${bundle})
  set_target_properties(zsq PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin}")
  set_target_properties(zsq_c PROPERTIES INSTALL_RPATH "$ORIGIN/zsq")
else()
  # By name, as CMake leaves out what lies in the source folder, as .deps does.
  set_target_properties(zsq zsq_c PROPERTIES INSTALL_RPATH ${LIBTORCH_LIB_DIR} INSTALL_RPATH_USE_LINK_PATH ON)
endif()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
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
install(
  TARGETS zsq_c
  EXPORT zsqCTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zsq)
configure_package_config_file(
  cmake/zsqConfig.cmake.in ${PROJECT_BINARY_DIR}/zsqConfig.cmake
  INSTALL_DESTINATION ${package_folder}
  PATH_VARS bundle)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zsqConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zsqConfig.cmake ${PROJECT_BINARY_DIR}/zsqConfigVersion.cmake
              cmake/FindLibtorch.cmake DESTINATION ${package_folder})
foreach(targets zsqTargets zsqCTargets)
  install(
    EXPORT ${targets}
    NAMESPACE zsq::
    DESTINATION ${package_folder})
endforeach()
file(RELATIVE_PATH from_pkgconfig /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/zsq.pc.in ${PROJECT_BINARY_DIR}/zsq.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/zsq.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)
install(TARGETS zsq RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(
  DIRECTORY recipes/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsq/recipes
  FILES_MATCHING
  PATTERN "*.yaml")
install(
  FILES scripts/completion.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME zsq)
install(FILES ${PROJECT_BINARY_DIR}/cli/zsq.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(
  FILES LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR}
  RENAME copyright)
if(ZSQ_BUNDLE_LIBTORCH)
  include(ZsqBundle)
endif()
include(ZsqPackage)
