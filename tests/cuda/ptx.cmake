# The kernels as nvcc compiles them, run by the emulator's interpreter of PTX. Without nvcc, the PTX
# stored in cuda/ptx.
get_property(ptx_flags GLOBAL PROPERTY REE_CUDA_FLAGS)
get_property(ptx_modules GLOBAL PROPERTY REE_CUDA_MODULES)
list(APPEND ptx_flags -ptx)

# ptx_modules(FOLDER ARCHITECTURE TARGET): compiles all modules.
function(ptx_modules folder architecture target)
  file(MAKE_DIRECTORY ${folder})
  set(files)
  foreach(module ${ptx_modules})
    set(ptx ${folder}/${module}.ptx)
    add_custom_command(
      OUTPUT ${ptx}
      COMMAND ${REE_NVCC} ${ptx_flags} -arch=compute_${architecture} -MD -MF ${ptx}.d -MT ${ptx} -o ${ptx}
              ${PROJECT_SOURCE_DIR}/cuda/${module}.cu
      DEPENDS ${PROJECT_SOURCE_DIR}/cuda/${module}.cu
      DEPFILE ${ptx}.d
      COMMENT "PTX of the CUDA kernels ${module} for ${architecture}"
      VERBATIM)
    list(APPEND files ${ptx})
  endforeach()
  add_custom_target(${target} ALL DEPENDS ${files})
endfunction()
set(ptx_folder ${CMAKE_CURRENT_BINARY_DIR}/ptx)
if(REE_NVCC)
  # 8.0 is the oldest architecture with asynchronous copies and mma. For the newest of the build, nvcc
  # may generate other code. Fatbins have the PTX of both.
  ptx_modules(${ptx_folder} 80 cuda-ptx)
  get_property(ptx_last GLOBAL PROPERTY REE_CUDA_LAST_ARCHITECTURE)
else()
  set(store ${PROJECT_SOURCE_DIR}/cuda/ptx)
  file(GLOB stored CONFIGURE_DEPENDS ${store}/*.ptx.xz)
  list(TRANSFORM ptx_modules REPLACE "(.+)" "${ptx_folder}/\\1.ptx" OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${files}
    COMMAND ${Python3_EXECUTABLE} -B ${store}/store.py --extract ${ptx_folder}
    DEPENDS ${store}/store.py ${store}/record.json ${stored}
    COMMENT "PTX of the CUDA kernels, stored"
    VERBATIM)
  add_custom_target(cuda-ptx ALL DEPENDS ${files})
endif()

# ptx_test(NAME FOLDERS ENVIRONMENT ARGUMENTS...): a test cuda/ptx_NAME that runs a program on the
# modules of FOLDERS.
function(ptx_test name folders environment)
  ree_add_test(NAME cuda/ptx_${name} LABELS cuda ${ARGN})
  list(JOIN folders ":" folders)
  # As for device_cuda_*; tests/device/CMakeLists.txt explains the environment.
  set_tests_properties(cuda/ptx_${name} PROPERTIES ENVIRONMENT "REE_CUDA_DRIVER=$<TARGET_FILE:cuda-emulator>;\
REE_EMULATOR_PTX=${folders};ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0;${environment}")
endfunction()
foreach(order forward backward random:1)
  string(REPLACE ":" "_" suffix ${order})
  ptx_test(kernels_${suffix} ${ptx_folder} REE_EMULATOR=order=${order} COMMAND device_cuda_kernels 1)
endforeach()
if(ptx_last AND NOT ptx_last EQUAL 80)
  ptx_modules(${ptx_folder}-last ${ptx_last} cuda-ptx-last)
  ptx_test(kernels_last ${ptx_folder}-last "" COMMAND device_cuda_kernels 1)
endif()
# More cases, on demand.
ptx_test(matches_cpu ${ptx_folder} "" CONFIGURATIONS long COMMAND device_cuda_matches_cpu 200)
ptx_test(products ${ptx_folder} "" CONFIGURATIONS long COMMAND device_cuda_products)
ptx_test(shapes ${ptx_folder} "" CONFIGURATIONS long COMMAND device_cuda_shapes)
ptx_test(selftest ${ptx_folder} "" CONFIGURATIONS long COMMAND device_cuda_selftest)
ptx_test(texts ${ptx_folder} "" COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/ptx_texts_test.py
  $<TARGET_FILE:ree-run> ${PROJECT_SOURCE_DIR})

# planted_test(NAME MODULE KERNEL REGEX): device_cuda_kernels with the module in ptx-NAME must detect the
# fault in KERNEL: its output must match REGEX.
function(planted_test name module kernel regex)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ptx-${name})
  add_custom_target(cuda-ptx-${name} ALL DEPENDS ${folder}/${module}.ptx)
  add_dependencies(cuda-ptx-${name} cuda-ptx)
  ptx_test(mistake_${name} "${folder};${ptx_folder}" "" COMMAND device_cuda_kernels 2 ${kernel})
  set_tests_properties(cuda/ptx_mistake_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${regex}")
endfunction()

set(fragment_fault "self-test: failed: .*matmul_bytes_64x64: operand 2")
set(wait_fault "kernel ree_matmul_64x64.*asynchronous copy .* is under way")
set(barrier_fault "kernel ree_softmax_rows.*(race|under way|not written)")

# ptx_mistake(NAME FILE OLD NEW MODULE KERNEL REGEX): in a copy of FILE, OLD is replaced by NEW, and nvcc
# compiles the module from it.
function(ptx_mistake name file old new module)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ptx-${name})
  plant_fault(${name} ${folder} ${file} "${old}" "${new}" ${module})
  set(ptx ${folder}/${module}.ptx)
  add_custom_command(
    OUTPUT ${ptx}
    COMMAND ${REE_NVCC} -I ${folder} ${ptx_flags} -arch=compute_80 -MD -MF ${ptx}.d -MT ${ptx} -o ${ptx}
            ${folder}/${module}.cu
    DEPENDS ${folder}/${module}.cu
    DEPFILE ${ptx}.d
    COMMENT "PTX of the CUDA kernels ${module} with a wrong ${name}"
    VERBATIM)
  planted_test(${name} ${module} ${ARGN})
endfunction()

# text_mistake(NAME OLD NEW MODULE KERNEL REGEX): the same in the text of a stored module, of which only
# KERNEL is changed. OLD is a regular expression of Python.
function(text_mistake name old new module kernel)
  set(ptx ${CMAKE_CURRENT_BINARY_DIR}/ptx-${name}/${module}.ptx)
  add_custom_command(
    OUTPUT ${ptx}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/plant_ptx.py ${ptx_folder}/${module}.ptx ${ptx}
            ree_${kernel} "${old}" "${new}"
    DEPENDS ${ptx_folder}/${module}.ptx ${CMAKE_CURRENT_SOURCE_DIR}/plant_ptx.py
    COMMENT "PTX of the CUDA kernels ${module} with a wrong ${name}"
    VERBATIM)
  planted_test(${name} ${module} ${kernel} ${ARGN})
endfunction()

if(REE_NVCC)
  ptx_mistake(fragment bytes.h "\"r\"(a[1]), \"r\"(a[2])" "\"r\"(a[2]), \"r\"(a[1])"
    matmul_bytes matmul_bytes_64x64 "${fragment_fault}")
  ptx_mistake(wait kernel.h "asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(N) : \"memory\");" ""
    matmul matmul_64x64 "${wait_fault}")
  ptx_mistake(barrier softmax.cu "n_rows, tile);\n    __syncthreads();\n    ree_rows_max"
    "n_rows, tile);\n    ree_rows_max" softmax softmax_rows "${barrier_fault}")
else()
  text_mistake(fragment "(mma\\.sync[^}]*}, {%r\\d+, )(%r\\d+), (%r\\d+)" "\\1\\3, \\2"
    matmul_bytes matmul_bytes_64x64 "${fragment_fault}")
  text_mistake(wait "cp\\.async\\.wait_group \\d+;" "" matmul matmul_64x64 "${wait_fault}")
  text_mistake(barrier "bar\\.sync[ \\t]+0;" "" softmax softmax_rows "${barrier_fault}")
  ree_add_test(NAME cuda/ptx_embedded LABELS cuda COMMAND ${Python3_EXECUTABLE} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/ptx_embedded_test.py $<TARGET_FILE:ree-run> ${PROJECT_SOURCE_DIR})
  set_tests_properties(cuda/ptx_embedded PROPERTIES ENVIRONMENT
    "REE_CUDA_DRIVER=$<TARGET_FILE:cuda-emulator>;ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0")
endif()
