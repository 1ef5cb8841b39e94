# GLSL to SPIR-V at build time, validated, embedded by embed.py.
#
#   ree_shader(NAME SOURCE [glslc options...])
#
# adds one module; src/device/vulkan refers to it as REE_VK_SHADER_<NAME>. glslc does not optimize;
# optimize.py prepares the module for the host, which stitches expressions into it and specializes it
# (spirv_stitch.c, spirv_fold.c).
#
# REE_SHADERS_FROM: the folder `shaders` of another build of the same sources, whose results are used; a relative
# path begins at the project's folder.
set(shader_dir ${CMAKE_CURRENT_LIST_DIR})
set(REE_SHADERS_FROM "" CACHE STRING "the folder of another build's shaders, to compile them only once")
if(REE_SHADERS_FROM)
  get_filename_component(shader_out ${REE_SHADERS_FROM} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  if(NOT EXISTS ${shader_out}/shaders.c)
    message(FATAL_ERROR "REE_SHADERS_FROM: ${shader_out} has no shaders.c; build the other tree first")
  endif()
else()
  set(shader_out ${CMAKE_CURRENT_BINARY_DIR}/shaders)
  file(MAKE_DIRECTORY ${shader_out})
endif()
set(shader_names)
set(shader_modules)

function(ree_shader name source)
  # For modules that tests compile once more, with a fault.
  set_property(GLOBAL PROPERTY REE_SHADER_${name} ${shader_dir}/${source} ${ARGN})
  if(REE_SHADERS_FROM)
    return()
  endif()
  set(module ${shader_out}/${name}.spv)
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${GLSLC} --target-env=vulkan1.2 -O0 -Werror -I ${shader_dir}/include
            -I ${PROJECT_SOURCE_DIR}/src ${ARGN} -MD -MF ${module}.d -MT ${module}
            -o ${module}.glslc ${shader_dir}/${source}
    COMMAND ${Python3_EXECUTABLE} ${shader_dir}/optimize.py ${SPIRV_OPT} ${SPIRV_VAL} ${module}.glslc ${module}
    DEPENDS ${shader_dir}/${source} ${shader_dir}/optimize.py
    DEPFILE ${module}.d
    COMMENT "Shader ${name}"
    VERBATIM)
  list(APPEND shader_names ${name})
  list(APPEND shader_modules ${module})
  set(shader_names ${shader_names} PARENT_SCOPE)
  set(shader_modules ${shader_modules} PARENT_SCOPE)
endfunction()

# Two modules, NAME and NAME_f64 right behind it: ree_vk_variant chooses.
macro(ree_shader_f64 name source)
  ree_shader(${name} ${source} ${ARGN})
  ree_shader(${name}_f64 ${source} ${ARGN} -DREE_F64)
endmacro()

ree_shader_f64(probe probe.comp)
ree_shader(probe_conversions probe.comp -DCONVERSIONS)
ree_shader(observe observe.comp)
ree_shader(loops loops.comp)
ree_shader(copy copy.comp)
ree_shader_f64(map map.comp)
# The products: one module for each form of fma. NAME_1_* compute one row for each thread, for products of
# few rows; NAME_n_* the number of rows that suits the form.
foreach(name matmul conv)
  ree_shader(${name}_1_native ${name}.comp -DTILE_FORM=0 -DTM=1)
  ree_shader(${name}_1_float64 ${name}.comp -DTILE_FORM=1 -DTM=1 -DREE_F64)
  ree_shader(${name}_1_float32 ${name}.comp -DTILE_FORM=2 -DTM=1)
  ree_shader(${name}_1_integer ${name}.comp -DTILE_FORM=3 -DTM=1)
  ree_shader(${name}_n_native ${name}.comp -DTILE_FORM=0 -DTM=8)
  ree_shader(${name}_n_float64 ${name}.comp -DTILE_FORM=1 -DTM=16 -DREE_F64 -DTILE_SUBGROUP)
  ree_shader(${name}_n_float32 ${name}.comp -DTILE_FORM=2 -DTM=4)
endforeach()
# Few rows of narrow factors are converted as they are read; more rows, and forms in which that would be
# too much code for a driver's compiler, by matmul_widen beforehand.
ree_shader(matmul_narrow_native matmul.comp -DNARROW -DTILE_FORM=0 -DTM=1)
ree_shader(matmul_narrow_float64 matmul.comp -DNARROW -DTILE_FORM=1 -DTM=1 -DREE_F64)
ree_shader(matmul_widen matmul_widen.comp)
ree_shader_f64(matmul_words matmul_words.comp)
ree_shader_f64(conv_integer conv_integer.comp)
# Products of 8-bit factors: a step that packs each factor, then the sums, by four bytes at a time.
ree_shader(matmul_pack matmul_pack.comp)
ree_shader(conv_pack conv_pack.comp)
foreach(form mul dot)
  set(options)
  if(form STREQUAL dot)
    set(options -DDOT8)
  endif()
  ree_shader_f64(matmul_${form}8 dot8.comp ${options})
  ree_shader_f64(conv_${form}8 dot8.comp ${options} -DCONV)
endforeach()
# Products of blockwise activations and weights: a step that packs the rows, for many rows one that packs the
# columns, then the product, of one row for each thread or of several.
ree_shader(matmul_int8_pack matmul_int8_pack.comp)
ree_shader_f64(matmul_int8_1_mul matmul_int8.comp -DTM=1)
ree_shader_f64(matmul_int8_1_dot matmul_int8.comp -DTM=1 -DDOT8)
ree_shader_f64(matmul_int8_n_mul matmul_int8.comp -DTM=4)
ree_shader_f64(matmul_int8_n_dot matmul_int8.comp -DTM=4 -DDOT8)
ree_shader_f64(reduce reduce.comp)
ree_shader_f64(softmax softmax.comp)
ree_shader_f64(norm norm.comp)
ree_shader_f64(pool pool.comp)
ree_shader_f64(resize resize.comp)
ree_shader(gather gather.comp)
ree_shader(scatter scatter.comp)
ree_shader(topk topk.comp)
ree_shader(scan scan.comp)
# The two products of attention, as those above; keys and values of 16 bits are converted as they are
# read where the device has fma, else by attention_widen beforehand.
foreach(name attention_scores attention_values)
  ree_shader(${name}_1_native ${name}.comp -DTILE_FORM=0 -DTM=1)
  ree_shader(${name}_1_float64 ${name}.comp -DTILE_FORM=1 -DTM=1 -DREE_F64)
  ree_shader(${name}_1_float32 ${name}.comp -DTILE_FORM=2 -DTM=1)
  ree_shader(${name}_1_integer ${name}.comp -DTILE_FORM=3 -DTM=1)
  ree_shader(${name}_n_native ${name}.comp -DTILE_FORM=0 -DTM=8)
  ree_shader(${name}_n_float64 ${name}.comp -DTILE_FORM=1 -DTM=16 -DREE_F64 -DTILE_SUBGROUP)
  ree_shader(${name}_n_float32 ${name}.comp -DTILE_FORM=2 -DTM=4)
  ree_shader(${name}_1_narrow ${name}.comp -DNARROW -DTILE_FORM=0 -DTM=1)
  ree_shader(${name}_n_narrow ${name}.comp -DNARROW -DTILE_FORM=0 -DTM=8)
endforeach()
ree_shader_f64(attention_softmax attention_softmax.comp)
ree_shader(attention_widen attention_widen.comp)
# float64
foreach(name matmul_words reduce scan scatter)
  ree_shader(${name}_double ${name}.comp -DDOUBLE)
endforeach()

if(NOT REE_SHADERS_FROM)
  add_custom_command(
    OUTPUT ${shader_out}/shaders.c ${shader_out}/shaders.h ${shader_out}/shaders.bin
    COMMAND ${Python3_EXECUTABLE} ${shader_dir}/embed.py ${shader_out} ${shader_modules}
    DEPENDS ${shader_dir}/embed.py ${shader_modules}
    VERBATIM)
endif()
set_source_files_properties(${shader_out}/shaders.c PROPERTIES OBJECT_DEPENDS ${shader_out}/shaders.bin)
