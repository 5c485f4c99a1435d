# CEDAR_CUDA decides whether the module cedar-cuda.so is built; CEDAR_CUDA_ENABLED is the outcome. Nothing else of
# the program depends on it: the same sources, without a definition more or less, run with the module and without.
set(CEDAR_CUDA AUTO CACHE STRING "Build cedar-cuda.so: AUTO (if a CUDA toolkit is found), ON or OFF")
set_property(CACHE CEDAR_CUDA PROPERTY STRINGS AUTO ON OFF)
set(CEDAR_CUDA_ENABLED OFF)
set(CEDAR_CUDA_LEAST 13.0)  # the first whose calls are those that handles/cudart_runtime.cpp makes

if(NOT CEDAR_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "CEDAR_CUDA is '${CEDAR_CUDA}'; write AUTO, ON or OFF")
endif()
if(NOT CEDAR_CUDA STREQUAL OFF)
  include(CheckLanguage)
  # The released devices in their own instructions (wgmma, tcgen05 need the suffix), and one portable text that the
  # driver translates for later ones.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90a-real 100a-real 100-virtual)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # else libcudart and libcudart_static are both linked
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(cuda_missing "no nvcc in PATH")
  else()
    find_package(CUDAToolkit QUIET)
    if(NOT CUDAToolkit_FOUND)
      set(cuda_missing "${CMAKE_CUDA_COMPILER} has no toolkit around it")
    elseif(CUDAToolkit_VERSION VERSION_LESS CEDAR_CUDA_LEAST)
      set(cuda_missing "the toolkit of ${CMAKE_CUDA_COMPILER} is ${CUDAToolkit_VERSION}")
    endif()
  endif()
  if(NOT cuda_missing)
    enable_language(CUDA)
    # CMake 3.25 does not know that nvcc has C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    if(CCACHE_PROGRAM)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    endif()
    set(CEDAR_CUDA_ENABLED ON)
    message(STATUS "CUDA: cedar-cuda.so is built with toolkit ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(CEDAR_CUDA STREQUAL ON)
    message(FATAL_ERROR
      "CEDAR_CUDA is ON, but ${cuda_missing}: install CUDA toolkit ${CEDAR_CUDA_LEAST} or later and name its compiler "
      "(export CUDACXX=/usr/local/cuda/bin/nvcc, or put it in PATH), or configure with CEDAR_CUDA=OFF; the program "
      "is the same, but for the module cedar-cuda.so")
  else()
    message(STATUS "CUDA: cedar-cuda.so is not built: ${cuda_missing}")
  endif()
endif()
