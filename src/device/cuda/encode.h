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
    uint32_t grid[2];      // blocks: x < 2^31, y < 2^16
    uint32_t shared_bytes; // bytes of dynamic shared memory
    uint32_t extra[5];     // for header.extra
};

// How and where a dispatch is computed.
enum ree_cuda_form {
    // By a kernel generated for a map's expression; other RepOps as REE_CUDA_KERNELS.
    REE_CUDA_COMPILED,
    REE_CUDA_KERNELS, // by the kernels of kernels.def
    REE_CUDA_ON_HOST, // by the CPU backend, in host memory
};

// The launches of one RepOp, in order.
struct ree_cuda_encoding {
    enum ree_cuda_form form;
    CUfunction jit;   // JIT-generated kernel of the only step; NULL: steps' own
    uint32_t n_steps; // 0: nothing to launch (an empty output), or ON_HOST
    struct ree_cuda_step steps[REE_CUDA_MAX_STEPS];
    bool by_cublas;         // cuBLAS computes params.matmul.p before the steps
    uint64_t scratch_bytes; // memory kept between the steps, shared by all dispatches of a program
    union ree_cuda_params params;
};

// Fills *out from a dispatch that ree_dispatch_check accepts.
enum ree_status ree_cuda_encode(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                struct ree_cuda_encoding *out, struct ree_error *err);

// As ree_cuda_encode, in the form that the caller chooses. A map whose expression the driver cannot
// compile is interpreted.
enum ree_status ree_cuda_encode_form(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                     enum ree_cuda_form form, struct ree_cuda_encoding *out,
                                     struct ree_error *err);

// Adds a step with `threads` threads per block and enough blocks for n_threads. Returns the step.
struct ree_cuda_step *ree_cuda_add_step(struct ree_cuda_encoding *out, enum ree_cuda_kernel kernel,
                                        uint32_t threads, uint64_t n_threads);

struct ree_cuda_divider ree_cuda_divider_of(uint32_t d); // 1 <= d < 2^31

// Prepares an expression for cuda/expr.h. The accumulator of an epilogue is the slot after its
// operands.
void ree_cuda_expr_prepare(const struct ree_expr *expr, bool epilogue, struct ree_cuda_expr *out);
// Returns whether kernels with REE_EXPR_ARITHMETIC (cuda/expr.h) contain every operation of the
// expression.
bool ree_cuda_expr_is_arithmetic(const struct ree_expr *expr);

// Adds the epilogue of a matmul whose float32 sums are at the beginning of the scratch memory.
void ree_cuda_encode_epilogue(const struct ree_dispatch *dispatch, struct ree_cuda_encoding *out);

// The encoders, one per RepOp. out->params already holds the dispatch's parameters if the types
// agree.
typedef enum ree_status ree_cuda_encoder(const struct ree_cuda *cuda,
                                         const struct ree_dispatch *dispatch,
                                         struct ree_cuda_encoding *out, struct ree_error *err);
ree_cuda_encoder ree_cuda_encode_copy, ree_cuda_encode_map, ree_cuda_encode_reduce,
    ree_cuda_encode_matmul, ree_cuda_encode_conv, ree_cuda_encode_pool, ree_cuda_encode_softmax,
    ree_cuda_encode_norm, ree_cuda_encode_gather, ree_cuda_encode_scatter, ree_cuda_encode_topk,
    ree_cuda_encode_scan, ree_cuda_encode_resize, ree_cuda_encode_attention;

#endif
