// Encodes a RepOp as compute dispatches: which shader, which specialization constants, how many
// workgroups. There is one encode_<op>.c for each RepOp that needs more than a few lines, and a
// table in encode.c.
#ifndef REE_DEVICE_VULKAN_ENCODE_H
#define REE_DEVICE_VULKAN_ENCODE_H

#include "base/status.h"
#include "device/vulkan/forms.h"
#include "repops/repop.h"

struct ree_vk;

#define REE_VK_MAX_STEPS 6
#define REE_VK_MAX_SPEC 32
#define REE_VK_SPEC_LOCAL_SIZE 0 // specialization constant ids, shaders/include/ree.glsl
#define REE_VK_SPEC_FORMS 1      // REE_VK_N_PRIMITIVES of them
#define REE_VK_SPEC_FIRST 16     // first id of a step's own constants

extern const struct ree_vk_thresholds ree_vk_gpu_thresholds, ree_vk_cpu_thresholds; // encode.c

// One launch of a shader. Its workgroups are numbered 0 to n_groups - 1. It may be recorded as
// several vkCmdDispatch that have a part of the groups each, so groups must be independent.
struct ree_vk_step {
    uint32_t shader;     // enum ree_vk_shader
    uint32_t local_size; // threads per workgroup
    struct ree_vk_forms forms;
    uint64_t n_groups;
    // Upper bound of one thread's loop iterations, summed over all loops (ree_vk_loop). Some
    // drivers end a thread's loops after loop_budget iterations (struct ree_vk). 0: at most a few
    // hundred.
    uint64_t loops;
    uint64_t store_loops; // the share of `loops` that stores results
    uint32_t n_spec;
    uint32_t spec[REE_VK_MAX_SPEC]; // constants with ids REE_VK_SPEC_FIRST + i
};

// The steps of one RepOp; each step waits for the previous one.
struct ree_vk_encoding {
    struct ree_vk_forms forms; // of all steps
    uint32_t n_steps;          // 0: nothing to do (an empty output)
    struct ree_vk_step steps[REE_VK_MAX_STEPS];
    const struct ree_expr *expr; // map or epilogue: becomes the shader's ree_expr
    uint64_t scratch_bytes;  // memory kept between the steps, shared by all dispatches of a program
    union ree_params params; // read by the shader; may be a simpler equivalent of the RepOp's
    uint32_t params_size;    // bytes of it that are read
};

// Fills *out from a dispatch that ree_dispatch_check accepts.
enum ree_status ree_vk_encode(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                              const struct ree_vk_forms *forms, struct ree_vk_encoding *out,
                              struct ree_error *err);

// Returns the contribution of a loop to ree_vk_step.loops. n: its iterations. body: the
// contribution of the loops inside it, per iteration. n_inner: the number of loops inside it, at
// all levels. A driver that runs several threads as one vector leaves a loop by one more iteration,
// in which no thread is active and each inner loop counts one.
static inline uint64_t ree_vk_loop(uint64_t n, uint64_t body, uint32_t n_inner) {
    return n * (body + 1) + 1 + n_inner;
}
// Returns the loop iterations of computing an expression once; expr may be NULL.
uint64_t ree_vk_expr_loops(const struct ree_expr *expr);
// Returns whether loops with this many iterations must be shortened: they exceed `threshold`, or
// the driver's limit less a margin for loops that the estimates omit.
bool ree_vk_is_long(const struct ree_vk *vk, uint64_t loops, uint64_t threshold);

// Adds a step with a local size of `local_size` and enough groups for n_threads. Returns the step.
struct ree_vk_step *ree_vk_add_step(struct ree_vk_encoding *out, uint32_t shader,
                                    uint32_t local_size, uint64_t n_threads);
#define REE_VK_TILE_COLUMNS 4 // results of a thread of a product in each row, in all modules
#define REE_VK_FEW_ROWS 4     // products of fewer rows use other modules or steps than larger ones
// Returns whether a product of m rows and n columns over k terms is too small for the modules that
// compute several rows per thread (ree_vk_thresholds).
bool ree_vk_is_small_product(const struct ree_vk *vk, uint32_t m, uint32_t n, uint64_t k,
                             uint64_t n_products);
// Adds the step of n_products products of m rows and n columns over k terms, computed with tiles
// (encode_matmul.c). can_split: the caller can split the sums by chunks. store_loops: the
// iterations of storing one result, not counting those of the epilogue. first_module is the first
// of these modules, in this order: NAME_1_native, float64, float32, integer, NAME_n_native,
// float64, float32 (shaders/shaders.cmake).
struct ree_vk_step *ree_vk_add_tiles(const struct ree_vk *vk, struct ree_vk_encoding *out,
                                     uint32_t first_module, uint32_t m, uint32_t n, uint64_t k,
                                     bool can_split, uint64_t n_products, uint64_t store_loops);
// Returns whether each thread must compute only one chunk, because it would exceed this device's
// loop limit over all chunks. Call it after ree_vk_add_tiles with can_split.
bool ree_vk_must_split(const struct ree_vk *vk, const struct ree_vk_encoding *out);
// Replaces the last step, whose constants must be complete, by two. The first computes one chunk
// per group, into n_outputs words of the scratch memory for each of n_chunks chunks. The second
// adds them, one output per thread. Their last constant is TILE_STAGE (in matmul_int8.comp, STAGE).
void ree_vk_split_chunks(struct ree_vk_encoding *out, uint64_t n_outputs, uint64_t n_chunks);
// Adds the steps of a matmul with blockwise activations. The caller has merged the epilogue of
// out->params and has set out->expr.
void ree_vk_encode_matmul_int8(const struct ree_vk *vk, struct ree_vk_encoding *out);
// Adds the step of n_rows rows of n elements (encode_rows.c). *out_group: whether a workgroup
// computes a row (otherwise one thread does).
struct ree_vk_step *ree_vk_add_rows(const struct ree_vk *vk, struct ree_vk_encoding *out,
                                    uint32_t shader, uint64_t n_rows, uint32_t n, bool *out_group);
// Returns the module of a ree_shader_f64 pair (shaders/shaders.cmake) that the encoding's form of
// fma requires.
uint32_t ree_vk_variant(const struct ree_vk_encoding *out, uint32_t shader);
// Appends a specialization constant to a step. The first one has id REE_VK_SPEC_FIRST.
void ree_vk_add_spec(struct ree_vk_step *step, uint32_t value);

// Adds constants 16 to 26 of a shader that includes expr.glsl. Must precede the step's own
// constants.
void ree_vk_add_expr_spec(struct ree_vk_step *step, const struct ree_expr *expr);

// The encoders, one per RepOp.
typedef enum ree_status ree_vk_encoder(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                       struct ree_vk_encoding *out, struct ree_error *err);
ree_vk_encoder ree_vk_encode_copy, ree_vk_encode_map, ree_vk_encode_reduce, ree_vk_encode_matmul,
    ree_vk_encode_conv;
ree_vk_encoder ree_vk_encode_pool, ree_vk_encode_softmax, ree_vk_encode_norm, ree_vk_encode_gather,
    ree_vk_encode_scatter, ree_vk_encode_topk, ree_vk_encode_scan, ree_vk_encode_resize,
    ree_vk_encode_attention;

#endif
