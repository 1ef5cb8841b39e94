// Encodes a RepOp as kernel launches: which kernel, how many blocks, which arguments. There is one
// encode_<op>.c for each RepOp that needs more than a few lines, and a table in encode.c.
#ifndef REE_DEVICE_CUDA_ENCODE_H
#define REE_DEVICE_CUDA_ENCODE_H

#include "base/status.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernel_interface.h"
#include "device/cuda/kernel_numbers.h"

struct ree_cuda;

#define REE_CUDA_MAX_STEPS 4

// One launch.
struct ree_cuda_step {
    enum ree_cuda_kernel kernel;
    uint32_t threads;      // threads per block
    uint32_t grid[2];      // number of blocks: x < 2^31, y < 2^16
    uint32_t shared_bytes; // bytes of dynamic shared memory
    uint32_t extra[5];     // copied to ree_cuda_header.extra
};

// How and where a dispatch is computed.
enum ree_cuda_form {
    // A map runs a kernel generated for its expression; other RepOps run as in REE_CUDA_KERNELS.
    REE_CUDA_COMPILED,
    REE_CUDA_KERNELS, // by kernels that are built into ree (kernels.def)
    REE_CUDA_ON_HOST, // by the CPU backend, in host memory
};

// The launches of one RepOp, in order.
struct ree_cuda_encoding {
    enum ree_cuda_form form;
    // JIT-generated kernel that the only step launches; NULL: each step launches its `kernel`.
    CUfunction jit;
    uint32_t n_steps; // 0 if the output is empty, or if the host or cuBLAS computes all
    struct ree_cuda_step steps[REE_CUDA_MAX_STEPS];
    bool by_cublas; // cuBLAS computes the product params.matmul.p before the steps run
    // Size of the device memory through which the steps pass results to each other. All dispatches
    // of a program use the same memory, one after another.
    uint64_t scratch_bytes;
    union ree_cuda_params params;
};

// Fills *out with the launches of a dispatch that ree_dispatch_check has accepted. Fails with
// REE_UNSUPPORTED if no kernel can compute it.
enum ree_status ree_cuda_encode(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                struct ree_cuda_encoding *out, struct ree_error *err);

// Like ree_cuda_encode, in the form that the caller chooses. If the driver cannot compile a map's
// expression for REE_CUDA_COMPILED, a kernel of kernels.def interprets it.
enum ree_status ree_cuda_encode_form(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                     enum ree_cuda_form form, struct ree_cuda_encoding *out,
                                     struct ree_error *err);

// Appends a step with `threads` threads per block and enough blocks for n_threads threads in total.
// Returns the step, whose other fields are 0.
struct ree_cuda_step *ree_cuda_add_step(struct ree_cuda_encoding *out, enum ree_cuda_kernel kernel,
                                        uint32_t threads, uint64_t n_threads);

// Returns the factor and shift that replace a division by d. Requires 1 <= d < 2^31.
struct ree_cuda_divider ree_cuda_divider_of(uint32_t d);

// Translates an expression for the interpreter of cuda/expr.h. epilogue: the expression is that of
// an epilogue, so the slot after its operands is its accumulator.
void ree_cuda_expr_prepare(const struct ree_expr *expr, bool epilogue, struct ree_cuda_expr *out);
// Returns whether kernels compiled with REE_EXPR_ARITHMETIC (cuda/expr.h) can compute the
// expression: all its values are 32-bit words, and none of its operations is in REE_CUDA_LONG_OPS.
bool ree_cuda_expr_is_arithmetic(const struct ree_expr *expr);

// Adds the launch that applies a matmul's epilogue to its sums: float32 (n_batch, m, n), for which
// the call reserves the beginning of the scratch memory. For products that cuBLAS computes.
void ree_cuda_encode_epilogue(const struct ree_dispatch *dispatch, struct ree_cuda_encoding *out);

// Fills *out for a dispatch of one RepOp. ree_cuda_encode has zeroed *out and, except for copy and
// map, copied the dispatch's parameters to out->params.
typedef enum ree_status ree_cuda_encoder(const struct ree_cuda *cuda,
                                         const struct ree_dispatch *dispatch,
                                         struct ree_cuda_encoding *out, struct ree_error *err);
ree_cuda_encoder ree_cuda_encode_copy, ree_cuda_encode_map, ree_cuda_encode_reduce,
    ree_cuda_encode_matmul, ree_cuda_encode_conv, ree_cuda_encode_pool, ree_cuda_encode_softmax,
    ree_cuda_encode_norm, ree_cuda_encode_gather, ree_cuda_encode_scatter, ree_cuda_encode_topk,
    ree_cuda_encode_scan, ree_cuda_encode_resize, ree_cuda_encode_attention;

#endif
