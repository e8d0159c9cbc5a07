# Finds libtorch, from the PyPI wheel in .deps/ or from an official libtorch archive, and defines
# Libtorch::libtorch. The wheel's own find_package(Torch) demands a CUDA toolkit even for a CPU build.
# Where to look: -DLIBTORCH_ROOT=..., the environment variable ZSQ_TORCH, then .deps/torch/torch.
set(_hints ${LIBTORCH_ROOT} $ENV{ZSQ_TORCH} ${CMAKE_CURRENT_LIST_DIR}/../.deps/torch/torch)
find_path(LIBTORCH_INCLUDE_DIR ATen/ATen.h HINTS ${_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_library(LIBTORCH_CPU torch_cpu HINTS ${_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LIBTORCH_C10 c10 HINTS ${_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Libtorch
  REQUIRED_VARS LIBTORCH_CPU LIBTORCH_C10 LIBTORCH_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run scripts/install_deps.sh, or pass -DLIBTORCH_ROOT=<folder that holds include/ and lib/>")
if(Libtorch_FOUND AND NOT TARGET Libtorch::libtorch)
  get_filename_component(LIBTORCH_LIB_DIR ${LIBTORCH_CPU} DIRECTORY)
  # The OpenMP runtime that libtorch brings: a second one in the process would fight it for the cores.
  file(GLOB LIBTORCH_OPENMP ${LIBTORCH_LIB_DIR}/libgomp*.so*)
  add_library(Libtorch::libtorch INTERFACE IMPORTED)
  set_target_properties(
    Libtorch::libtorch
    PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
               "${LIBTORCH_INCLUDE_DIR};${LIBTORCH_INCLUDE_DIR}/torch/csrc/api/include"
               INTERFACE_COMPILE_DEFINITIONS AT_PER_OPERATOR_HEADERS
               INTERFACE_LINK_LIBRARIES "${LIBTORCH_CPU};${LIBTORCH_C10};${LIBTORCH_OPENMP}"
               INTERFACE_LINK_OPTIONS
               "-Wl,--allow-shlib-undefined")
  # For code that calls at::parallel_for, which is serial without the flag.
  add_library(Libtorch::parallel INTERFACE IMPORTED)
  target_link_libraries(Libtorch::parallel INTERFACE Libtorch::libtorch)
  if(LIBTORCH_OPENMP)
    target_compile_options(Libtorch::parallel INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  endif()
endif()
