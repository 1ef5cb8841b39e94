# ree_add_test(NAME area/name [LABELS label...] [CONFIGURATIONS ...] COMMAND ...): add_test with the
# project's rules. `area` is the folder. Exit code 77 means skipped. A test ends after 20 minutes,
# unless set_tests_properties says something else. Labels of all tests of a folder: REE_TEST_LABELS.
#
#   unit          needs nothing but the build; a test without any of the next four has it
#   models        runs whole models: real ones, the sample models, or ONNX's operator tests
#   vulkan        runs on the Vulkan driver that VK_ICD_FILENAMES names
#   cuda          runs CUDA kernels, on the emulator
#   oracle        compares with another implementation, which must be installed
#   slow          takes more than 10 seconds on 2 cores, and a faster test covers part of it
#
# For the choices of tools/test.sh:
#
#   driver        shows how a Vulkan driver compiles and runs our shaders; runs on every driver
#   driver_few    the few of these that show most in little time
#   planted       plants faults into a driver's modules
#   validation    runs with the Vulkan validation layer
#   sampled       runs a part of its cases if REE_TEST_SAMPLE is set
#   one_compiler  code that counts, compares and refuses: bits that a compiler could change do not
#                 matter, or the test takes long
#   no_sanitizer  not in the build with AddressSanitizer: impossible there, or too slow
#   sanitized     of the tests of Vulkan, those that run in that build
set(REE_LABELS unit models vulkan cuda oracle slow driver driver_few planted validation sampled one_compiler
  no_sanitizer sanitized)

function(ree_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME" "LABELS;CONFIGURATIONS;COMMAND")
  get_filename_component(area ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(NOT test_NAME MATCHES "^${area}/[a-z0-9_]+$")
    message(FATAL_ERROR "test ${test_NAME}: its name must be ${area}/ and lower-case letters, digits and _")
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
  set_tests_properties(${test_NAME} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1200)
endfunction()
