# What a machine without libtorch needs of it, as files of component runtime in lib/zsq: its CPU half, the OpenMP
# runtime that it brings, and, as wheels with CUDA link their CPU half to them, two small libraries of CUDA.
if(ZSQ_HAS_CUDA)
  message(FATAL_ERROR "ZSQ_BUNDLE_LIBTORCH=ON is for builds without CUDA kernels: libtorch's GPU half and its "
                      "libraries take gigabytes. Use -DZSQ_CUDA=OFF")
endif()
get_filename_component(wheels ${LIBTORCH_LIB_DIR}/../.. ABSOLUTE)
file(GLOB cuda_libraries ${wheels}/nvidia/cu*/lib/libcudart.so.* ${wheels}/nvidia/cu*/lib/libcupti.so.*)
install(FILES ${LIBTORCH_CPU} ${LIBTORCH_C10} ${LIBTORCH_OPENMP} ${cuda_libraries} DESTINATION ${bundle})

# Their licences, and those of the libraries that are compiled in.
file(GLOB licences ${wheels}/torch-*.dist-info/licenses/*)
install(FILES ${licences} DESTINATION ${CMAKE_INSTALL_DOCDIR}/libtorch)
foreach(part runtime cupti)
  file(GLOB licence ${wheels}/nvidia_cuda_${part}-*.dist-info/licenses/*)
  install(FILES ${licence} DESTINATION ${CMAKE_INSTALL_DOCDIR}/nvidia_cuda_${part})
endforeach()
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/third_party.txt headers REGEX "^[^#]")
set(packages libgomp1)
foreach(header IN LISTS headers)
  execute_process(COMMAND dpkg-query --search /usr/include/${header} OUTPUT_VARIABLE owner COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE ":.*" "" owner ${owner})
  list(APPEND packages ${owner})
endforeach()
foreach(package IN LISTS packages)
  install(
    FILES /usr/share/doc/${package}/copyright
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/third_party
    RENAME ${package}.txt)
endforeach()
