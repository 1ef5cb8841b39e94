# Finds what the project needs; README.md beside this file says why each is here.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
find_program(PROTOC_C protoc-c REQUIRED)
find_package(Python3 COMPONENTS Interpreter REQUIRED)

# Vulkan: headers, volk (one C file that loads the loader at run time), glslc and spirv-val.
find_path(VULKAN_INCLUDE_DIR vulkan/vulkan.h)
find_path(VOLK_INCLUDE_DIR volk.c)
find_program(GLSLC glslc)
find_program(SPIRV_VAL spirv-val)
if(VULKAN_INCLUDE_DIR AND VOLK_INCLUDE_DIR AND GLSLC AND SPIRV_VAL)
  set(REE_HAVE_VULKAN ON)
  message(STATUS "Vulkan backend: yes")
else()
  set(REE_HAVE_VULKAN OFF)
  message(STATUS "Vulkan backend: NO (needs libvulkan-dev, libvulkan-volk-dev, glslc, spirv-tools)")
endif()

# For the tests and the benchmark only.
find_library(MPFR_LIBRARY mpfr)
find_library(GMP_LIBRARY gmp)
find_path(MPFR_INCLUDE_DIR mpfr.h)
