# Looks for nvcc: ZSQ_HAS_CUDA says whether the CUDA kernels are built.
set(ZSQ_HAS_CUDA OFF)
if(NOT ZSQ_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Each architecture takes as long to compile as the first: what runs here needs the one that is
    # here. Without a GPU the oldest will do, whose code the driver translates on a newer GPU.
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
      if(ZSQ_CUDA STREQUAL "ON")
        set(CMAKE_CUDA_ARCHITECTURES 75 80 90 120)
      elseif(no_gpu)
        set(CMAKE_CUDA_ARCHITECTURES 75)
      else()
        set(CMAKE_CUDA_ARCHITECTURES native)
      endif()
    endif()
    # CMake 3.25 does not know CUDA20; the .cu files hold no torch header, so 17 serves them.
    set(CMAKE_CUDA_STANDARD 17)
    enable_language(CUDA)
    # One CUDA runtime per process: libtorch brings the shared one.
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    set(ZSQ_HAS_CUDA ON)
  elseif(ZSQ_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ZSQ_CUDA=ON, but no nvcc was found: put it on PATH, or use -DZSQ_CUDA=OFF")
  endif()
endif()
message(STATUS "zsq: CUDA kernels ${ZSQ_HAS_CUDA}")
