// How a Vulkan device computes RepOps: the form of each primitive, and the sizes by which encoders
// choose between equivalent ways to compute a RepOp.
#ifndef REE_DEVICE_VULKAN_FORMS_H
#define REE_DEVICE_VULKAN_FORMS_H

#include <stdint.h>

// Ways to compute a primitive on a device (shaders/include/primitives.glsl). The numbers are the
// values of specialization constants.
enum ree_vk_form {
    REE_VK_NATIVE,  // the device's own instruction
    REE_VK_FLOAT64, // by means of float64
    REE_VK_FLOAT32, // float32 operations that are correct in a safe range, integers outside it
    REE_VK_INTEGER, // integer operations only
    REE_VK_N_FORMS
};

enum ree_vk_primitive {
    REE_VK_ADD,
    REE_VK_MUL,
    REE_VK_DIV,
    REE_VK_SQRT,
    REE_VK_FMA,
    REE_VK_FROM_INT, // int and uint to float
    REE_VK_TO_INT,   // float to int
    REE_VK_MIN_MAX,
    REE_VK_COMPARE,
    REE_VK_ROUND, // floor, ceil, trunc, roundEven
    REE_VK_N_PRIMITIVES
};

// The form that a dispatch uses for each primitive.
struct ree_vk_forms {
    uint32_t of[REE_VK_N_PRIMITIVES]; // enum ree_vk_form
    uint32_t dot8;                    // 1: the device's own dot product computes products of bytes
    uint32_t guarded;                 // 1: guarded comparisons (spirv_stitch.h, guard_words)
};

// Sizes by which the encoders choose between equivalent ways to compute a RepOp.
struct ree_vk_thresholds {
    // Number of workgroups that fill the device. Work for fewer groups is split by chunks.
    uint64_t enough_groups;
    uint64_t many_outputs; // reduce: fewer outputs are reduced chunk by chunk
    uint64_t many_vectors; // scan: fewer vectors are computed chunk by chunk
    uint64_t many_rows;    // softmax and norm: fewer rows get one workgroup each
    // softmax and norm: rows get one thread each if the row length times the number of subgroups
    // needed for that is smaller. A CPU's driver takes longer to compile the code for groups, with
    // its barriers, than groups save in many runs.
    uint64_t few_elements;
    // matmul, conv and attention in float32: products with fewer multiplications use the modules
    // that compute one row per thread. These modules run slower, but drivers for CPUs compile them
    // several times faster. 0: no product is small.
    uint64_t small_product;
    // The same: products in the form float64 with fewer multiplications get threads that compute
    // one result instead of REE_VK_TILE_COLUMNS, which a CPU's driver compiles in half the time.
    uint64_t tiny_product;
    uint64_t long_row; // GPUs: from this row length on, workgroups have 128 threads, not 64
    // Maximum loop iterations of a thread, even if the driver's own limit is higher
    // (ree_vk_is_long). Beyond long_tiles, products use fewer rows per thread. Beyond long_loops,
    // all RepOps (products too) are split by chunks or groups.
    uint64_t long_tiles, long_loops;
    uint64_t max_split_scratch; // maximum bytes for the chunks' results of one product
};

#endif
