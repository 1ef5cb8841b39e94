# ree_add_test(NAME area/name [LABELS label...] [CONFIGURATIONS ...] COMMAND ...): add_test with the
# project's rules. `area` is the name of the folder. Exit code 77 means skipped. CTest stops a test
# after 20 minutes, unless set_tests_properties sets another TIMEOUT. A folder's CMakeLists.txt can
# set REE_TEST_LABELS, labels for all its tests.
#
#   unit          needs nothing but the build; added to tests that have none of the next four
#   models        runs whole models: real ones, the sample models, or ONNX's operator tests
#   vulkan        runs on the Vulkan driver that VK_ICD_FILENAMES names
#   cuda          runs CUDA kernels, on the emulator
#   oracle        compares with another implementation, which must be installed
#   slow          takes more than 10 seconds on 2 cores, and a faster test covers part of it
#
# For the choices of tools/test.sh:
#
#   driver        shows how a Vulkan driver compiles and runs ree's shaders; runs on every driver
#   driver_few    a quick choice of these, for drivers that differ little from another one
#   planted       plants faults into a driver's modules
#   validation    runs with the Vulkan validation layer
#   one_compiler  not run in the build with clang: its result does not depend on bits that a
#                 compiler could change, or it takes long
#   no_sanitizer  not run in the build with AddressSanitizer: impossible there, or too slow
#   sanitized     a test with the label vulkan that also runs in the build with AddressSanitizer
set(REE_LABELS unit models vulkan cuda oracle slow driver driver_few planted validation one_compiler no_sanitizer
  sanitized)

# The folder with the settings of the validation layer that is installed. Layers older than 1.3.280 have
# other names for them.
set(REE_VALIDATION_SETTINGS ${PROJECT_SOURCE_DIR}/tests/validation)
find_file(REE_VALIDATION_LAYER VkLayer_khronos_validation.json NO_CACHE
  PATHS /usr/local/share /usr/share /etc PATH_SUFFIXES vulkan/explicit_layer.d NO_DEFAULT_PATH)
if(REE_VALIDATION_LAYER)
  file(READ ${REE_VALIDATION_LAYER} manifest)
  string(JSON version ERROR_VARIABLE error GET "${manifest}" layer api_version)
  if(NOT error AND version VERSION_LESS 1.3.280)
    string(APPEND REE_VALIDATION_SETTINGS /older)
  endif()
endif()

function(ree_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME" "LABELS;CONFIGURATIONS;COMMAND")
  get_filename_component(area ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(NOT test_NAME MATCHES "^${area}/[a-z0-9_]+$")
    message(FATAL_ERROR "test ${test_NAME}: its name must be ${area}/ and lower-case letters, digits and _")
  endif()
  # If false, $<condition:word> is an empty argument, which CMake 3.25 drops and newer versions pass on.
  if(test_COMMAND MATCHES "\\$<\\$<|\\$<[01]:")
    message(FATAL_ERROR "test ${test_NAME}: use if() instead of $<condition:...> for an argument that may be absent")
  endif()
  set(labels ${test_LABELS} ${REE_TEST_LABELS})
  foreach(label ${labels})
    if(NOT label IN_LIST REE_LABELS)
      message(FATAL_ERROR "test ${test_NAME}: unknown label ${label}; tests/functions.cmake lists them")
    endif()
  endforeach()
  set(kinds ${labels})
  list(FILTER kinds INCLUDE REGEX "^(models|vulkan|cuda|oracle)$")
  if(NOT kinds)
    list(APPEND labels unit)
  endif()
  if(test_CONFIGURATIONS)
    list(PREPEND test_CONFIGURATIONS CONFIGURATIONS)
  endif()
  add_test(NAME ${test_NAME} ${test_CONFIGURATIONS} COMMAND ${test_COMMAND} COMMAND_EXPAND_LISTS)
  set_tests_properties(${test_NAME} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1200
    # Read by the validation layer, if the test enables it.
    ENVIRONMENT_MODIFICATION "VK_LAYER_SETTINGS_PATH=set:${REE_VALIDATION_SETTINGS}")
endfunction()
