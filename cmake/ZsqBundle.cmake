# What a machine without libtorch needs of it, as files of component runtime in lib/zsq: its CPU half, the OpenMP
# runtime that it brings, and, as wheels with CUDA link their CPU half to them, two small libraries of CUDA.
if(ZSQ_HAS_CUDA)
  message(FATAL_ERROR "ZSQ_BUNDLE_LIBTORCH=ON is for builds without CUDA kernels: libtorch's GPU half and its "
                      "libraries take gigabytes. Use -DZSQ_CUDA=OFF")
endif()
get_filename_component(wheels ${LIBTORCH_LIB_DIR}/../.. ABSOLUTE)
file(GLOB cuda_libraries ${wheels}/nvidia/cu*/lib/libcudart.so.* ${wheels}/nvidia/cu*/lib/libcupti.so.*)
install(FILES ${LIBTORCH_CPU} ${LIBTORCH_C10} ${LIBTORCH_OPENMP} ${cuda_libraries} DESTINATION ${bundle})

file(GLOB licences ${wheels}/torch-*.dist-info/licenses/* ${wheels}/nvidia_cuda_runtime-*.dist-info/licenses/*)
install(FILES ${licences} DESTINATION ${CMAKE_INSTALL_DOCDIR}/libtorch)
