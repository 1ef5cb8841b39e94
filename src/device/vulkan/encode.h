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
// Ids of specialization constants (shaders/include/ree.glsl): the workgroup size, the first of the
// REE_VK_N_PRIMITIVES forms, and the first of a step's own constants.
#define REE_VK_SPEC_LOCAL_SIZE 0
#define REE_VK_SPEC_FORMS 1
#define REE_VK_SPEC_FIRST 16

extern const struct ree_vk_thresholds ree_vk_gpu_thresholds, ree_vk_cpu_thresholds; // encode.c

// One launch of a shader. Its workgroups are numbered 0 to n_groups - 1. They must be independent,
// because several vkCmdDispatch may run a part of them each.
struct ree_vk_step {
    uint32_t shader;     // enum ree_vk_shader
    uint32_t local_size; // threads per workgroup
    struct ree_vk_forms forms;
    uint64_t n_groups;
    // Upper bound of one thread's loop iterations, summed over all loops (ree_vk_loop). Some
    // drivers end a thread's loops after loop_budget iterations (struct ree_vk). 0: at most a few
    // hundred.
    uint64_t loops;
    uint64_t store_loops; // the part of `loops` that stores results
    // Of ree_vk_add_tiles: rows of a thread, and results in each row; 0 in other steps.
    uint32_t rows, columns;
    uint32_t n_spec;
    uint32_t spec[REE_VK_MAX_SPEC]; // value of the specialization constant REE_VK_SPEC_FIRST + i
};

// The steps of one RepOp; each step waits for the previous one.
struct ree_vk_encoding {
    struct ree_vk_forms forms; // the forms that all steps use
    uint32_t n_steps;          // 0: nothing to do (an empty output)
    struct ree_vk_step steps[REE_VK_MAX_STEPS];
    // Expression of a map or an epilogue, which becomes the shader's function ree_expr; NULL: none.
    const struct ree_expr *expr;
    // Size of the device memory through which the steps pass results to each other. All dispatches
    // of a program use the same memory, one after another.
    uint64_t scratch_bytes;
    union ree_params params; // the dispatch's parameters for the shader, possibly simplified
    uint32_t params_size;    // bytes of `params` that the shader reads
};

// Fills *out with the steps that compute a dispatch in the forms *forms. ree_dispatch_check must
// have accepted the dispatch. Fails with REE_UNSUPPORTED if no shader can compute it.
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
// Returns the contribution to ree_vk_step.loops of computing an expression once; 0 if it is NULL.
uint64_t ree_vk_expr_loops(const struct ree_expr *expr);
// Returns whether loops with this many iterations must be shortened: they exceed `threshold`, or
// the driver's limit less a margin for loops that the estimates omit.
bool ree_vk_is_long(const struct ree_vk *vk, uint64_t loops, uint64_t threshold);

// Appends a step with `local_size` threads per workgroup and enough groups for n_threads threads in
// total. Returns the step.
struct ree_vk_step *ree_vk_add_step(struct ree_vk_encoding *out, uint32_t shader,
                                    uint32_t local_size, uint64_t n_threads);
#define REE_VK_TILE_COLUMNS 4 // most results of a thread of a product in each row
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
// Appends the constants of tile.glsl to a step of ree_vk_add_tiles, after all other constants.
void ree_vk_add_tile_spec(const struct ree_vk *vk, struct ree_vk_step *step);
// Returns whether the threads of the last step would exceed the device's loop limit, so that the
// step must be split by chunks. To be called after ree_vk_add_tiles with can_split.
bool ree_vk_must_split(const struct ree_vk *vk, const struct ree_vk_encoding *out);
// Replaces the last step, a product, by two; its constants must be complete. The first step
// computes one chunk per group; it writes float32 (n_chunks, n_outputs) to the scratch memory. The
// second step adds up the chunks, one output per thread. The call appends the constant TILE_STAGE
// of shaders/include/tile.glsl (STAGE of matmul_int8.comp) to both.
void ree_vk_split_chunks(struct ree_vk_encoding *out, uint64_t n_outputs, uint64_t n_chunks);
// Adds the steps of a matmul with blockwise activations (encode_matmul_int8.c). The caller has
// merged the epilogue of out->params and has set out->expr.
void ree_vk_encode_matmul_int8(const struct ree_vk *vk, struct ree_vk_encoding *out);
// Adds a step that computes n_rows rows of n elements each (encode_rows.c). *out_group: true if a
// workgroup computes each row, false if one thread does.
struct ree_vk_step *ree_vk_add_rows(const struct ree_vk *vk, struct ree_vk_encoding *out,
                                    uint32_t shader, uint64_t n_rows, uint32_t n, bool *out_group);
// Returns which module of a ree_shader_f64 pair (shaders/shaders.cmake) the encoding's form of fma
// requires. shader: the first module of the pair.
uint32_t ree_vk_variant(const struct ree_vk_encoding *out, uint32_t shader);
// Appends a specialization constant to a step. The first one of a step has id REE_VK_SPEC_FIRST;
// ids are consecutive.
void ree_vk_add_spec(struct ree_vk_step *step, uint32_t value);

// Appends the specialization constants 16 to 26, which describe the expression to a shader that
// includes expr.glsl. Must be called before any other constant is appended to the step.
void ree_vk_add_expr_spec(struct ree_vk_step *step, const struct ree_expr *expr);

// Fills *out for a dispatch of one RepOp. ree_vk_encode has zeroed *out and set forms, params and
// params_size before.
typedef enum ree_status ree_vk_encoder(const struct ree_vk *vk, const struct ree_dispatch *dispatch,
                                       struct ree_vk_encoding *out, struct ree_error *err);
ree_vk_encoder ree_vk_encode_copy, ree_vk_encode_map, ree_vk_encode_reduce, ree_vk_encode_matmul,
    ree_vk_encode_conv;
ree_vk_encoder ree_vk_encode_pool, ree_vk_encode_softmax, ree_vk_encode_norm, ree_vk_encode_gather,
    ree_vk_encode_scatter, ree_vk_encode_topk, ree_vk_encode_scan, ree_vk_encode_resize,
    ree_vk_encode_attention;

#endif
