// Rewriting SPIR-V before it goes to the driver.
//
// The shaders that evaluate expressions (map, and the epilogues of matmul and conv) are compiled
// with every scalar function as an OpFunction named ree_op_<name>, and one function
//
//     uvec2 ree_expr(uvec2 v0, ..., uvec2 v8)
//
// whose body becomes the calls of the expression. A value of class W has its bits in x. What the
// entry point then no longer reaches is dropped, so that the driver compiles only what runs.
#ifndef REE_DEVICE_VULKAN_SPIRV_STITCH_H
#define REE_DEVICE_VULKAN_SPIRV_STITCH_H

#include "base/status.h"
#include "repops/repop.h"

struct ree_spirv_options {
    const struct ree_expr *expr; // NULL: ree_expr, if there is one, stays as it is
    bool is_epilogue;            // value 0 is the accumulator, operands follow it
    bool denorm_preserve;        // declare the execution modes of VK_KHR_shader_float_controls
    bool rounding_rte;
    bool signed_zero_inf_nan_preserve;
    // Compare words with 0 in a way that no compiler can take for a comparison of floats. LLVM 22
    // makes "(x << 1) == 0" of a word that lies in a float register "f == 0.0", which is also true
    // of subnormal numbers where the device takes those for zero.
    bool guard_words;
};

// words must be valid SPIR-V of one entry point. *out is malloc'ed.
enum ree_status ree_spirv_stitch(const uint32_t *words, size_t n_words,
                                 const struct ree_spirv_options *options, uint32_t **out,
                                 size_t *out_n_words, struct ree_error *err);

#endif
