# cpack (scripts/package.sh): zsq and libzsq-dev as Debian packages, and all of it as one .tar.gz.
set(CPACK_PACKAGE_NAME zsq)
set(CPACK_PACKAGE_CONTACT "The maintainers of zsq")
set(CPACK_PACKAGE_FILE_NAME zsq-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd) # half a minute for libtorch, where xz takes several
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME zsq)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The program zsq and the library libzsq.so, which quantize trained networks
without their training data. CPU only; libtorch is included.")
# The Debian libraries, with versions, that the program and the library are linked with.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LIBTORCH_LIB_DIR} ${LIBTORCH_LIB_DIR}/../../nvidia/cu13/lib)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libzsq-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "zsq (= ${PROJECT_VERSION})")
# What zsq::pipeline, the static C++ library, is linked with; C programs need none of it.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS
    "libopencv-dev, libjpeg-dev, libpng-dev, libwebp-dev, libyaml-cpp-dev, nlohmann-json3-dev, libzip-dev, libssl-dev, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers of the C and C++ interfaces of zsq, static libraries, and what CMake
and pkg-config read.")
include(CPack)
