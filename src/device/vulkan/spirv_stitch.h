// Inserts an expression into a SPIR-V module before the module is passed to the driver.
//
// The shaders that evaluate expressions (map, and the epilogues of matmul and conv) are compiled
// with every scalar function as an OpFunction named ree_op_<name>, and one function
//
//     uvec2 ree_expr(uvec2 v0, ..., uvec2 v8)
//
// whose body is replaced by the calls of the expression. The bits of a value of class W are in x.
// Functions that the entry point no longer reaches are removed, so that the driver compiles only
// code that runs.
#ifndef REE_DEVICE_VULKAN_SPIRV_STITCH_H
#define REE_DEVICE_VULKAN_SPIRV_STITCH_H

#include "base/status.h"
#include "repops/repop.h"

// Whether to declare the execution mode of this name (VK_KHR_shader_float_controls).
struct ree_spirv_modes {
    bool denorm_preserve;
    bool rounding_rte;
    bool signed_zero_inf_nan_preserve;
};
struct ree_spirv_options {
    // The expression that function ree_expr of the module computes. NULL: the function, if the
    // module has it, keeps its body.
    const struct ree_expr *expr;
    bool is_epilogue; // value 0 of the expression is the accumulator; the operands follow it
    struct ree_spirv_modes float32;
    struct ree_spirv_modes float64; // ignored if the module does not use float64
    // Compare words with 0 in a form that no compiler can mistake for a comparison of floats. LLVM
    // 22 turns "(x << 1) == 0", for a word in a float register, into "f == 0.0". That is also true
    // for subnormal numbers if the device treats them as zero.
    bool guard_words;
};

// Returns a copy of a module with the changes that `options` request. `words` must be valid SPIR-V
// with one entry point. The caller releases *out with ree_free.
enum ree_status ree_spirv_stitch(const uint32_t *words, size_t n_words,
                                 const struct ree_spirv_options *options, uint32_t **out,
                                 size_t *out_n_words, struct ree_error *err);

#endif
