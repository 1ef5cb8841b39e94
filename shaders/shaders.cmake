# GLSL to SPIR-V at build time, validated, embedded as C arrays.
#
#   ree_shader(NAME SOURCE [glslc options...])
#
# adds one module; src/device/vulkan refers to it as REE_VK_SHADER_<NAME>. A module is compiled
# without optimization when the host stitches an expression into it (spirv_stitch.c needs the scalar
# functions as they were written), and drivers optimize anyway.
set(shader_dir ${CMAKE_CURRENT_LIST_DIR})
set(shader_out ${CMAKE_CURRENT_BINARY_DIR}/shaders)
file(MAKE_DIRECTORY ${shader_out})
set(shader_names)
set(shader_modules)

function(ree_shader name source)
  set(module ${shader_out}/${name}.spv)
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${GLSLC} --target-env=vulkan1.2 -O0 -Werror -I ${shader_dir}/include
            -I ${PROJECT_SOURCE_DIR}/src ${ARGN} -MD -MF ${module}.d -MT ${module}
            -o ${module} ${shader_dir}/${source}
    COMMAND ${SPIRV_VAL} --target-env vulkan1.2 ${module}
    DEPENDS ${shader_dir}/${source}
    DEPFILE ${module}.d
    COMMENT "Shader ${name}"
    VERBATIM)
  list(APPEND shader_names ${name})
  list(APPEND shader_modules ${module})
  set(shader_names ${shader_names} PARENT_SCOPE)
  set(shader_modules ${shader_modules} PARENT_SCOPE)
endfunction()

ree_shader(copy copy.comp)
ree_shader(map map.comp)

add_custom_command(
  OUTPUT ${shader_out}/shaders.c ${shader_out}/shaders.h
  COMMAND ${Python3_EXECUTABLE} ${shader_dir}/embed.py ${shader_out} ${shader_modules}
  DEPENDS ${shader_dir}/embed.py ${shader_modules}
  VERBATIM)
