// From a RepOp to kernel launches: which kernel, how many blocks, what it is told. One
// encode_<op>.c for each RepOp that needs more than a few lines, and a table in encode.c.
#ifndef REE_DEVICE_CUDA_ENCODE_H
#define REE_DEVICE_CUDA_ENCODE_H

#include "base/status.h"
#include "device/cuda/args.h"
#include "device/cuda/driver.h"

struct ree_cuda;

enum ree_cuda_module {
#define MODULE(name) REE_CUDA_MODULE_##name,
#define KERNEL(name)
#include "cuda/kernels.def"
    REE_CUDA_N_MODULES
};

enum ree_cuda_kernel {
#define MODULE(name)
#define KERNEL(name) REE_CUDA_##name,
#include "cuda/kernels.def"
    REE_CUDA_N_KERNELS
};

#define REE_CUDA_MAX_STEPS 4

// One launch.
struct ree_cuda_step {
    enum ree_cuda_kernel kernel;
    uint32_t threads;      // in a block
    uint32_t grid[2];      // blocks: x below 2^31, y below 2^16
    uint32_t shared_bytes; // of dynamic shared memory
    uint32_t extra[5];     // of the header
};

// Where and how a dispatch is computed.
enum ree_cuda_form {
    REE_CUDA_COMPILED, // a map's expression by a kernel written for it; other RepOps as below
    REE_CUDA_KERNELS,  // by the kernels of kernels.def
    REE_CUDA_ON_HOST,  // by the CPU backend, in the host's memory
};

// The launches of one RepOp, one after the other.
struct ree_cuda_encoding {
    enum ree_cuda_form form;
    CUfunction written; // the kernel of the only step; NULL: steps' own
    uint32_t n_steps;   // 0: nothing to do (an empty output), or ON_HOST
    struct ree_cuda_step steps[REE_CUDA_MAX_STEPS];
    bool by_cublas;         // params.matmul.p goes to the library, before the steps
    uint64_t scratch_bytes; // memory between the steps, shared by all dispatches of a program
    union ree_cuda_params params;
};

// Fills *out from a dispatch that ree_dispatch_check accepts.
enum ree_status ree_cuda_encode(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                struct ree_cuda_encoding *out, struct ree_error *err);

// The same in a form of its own choice. A map whose expression the driver cannot compile is
// interpreted.
enum ree_status ree_cuda_encode_form(struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                     enum ree_cuda_form form, struct ree_cuda_encoding *out,
                                     struct ree_error *err);

// Adds a step of blocks of `threads` threads, enough of them for n_threads.
struct ree_cuda_step *ree_cuda_add_step(struct ree_cuda_encoding *out, enum ree_cuda_kernel kernel,
                                        uint32_t threads, uint64_t n_threads);

struct ree_cuda_divider ree_cuda_divider_of(uint32_t d); // 1 <= d < 2^31

// Makes an expression ready for cuda/expr.h. An epilogue has the accumulator behind its operands.
void ree_cuda_expr_prepare(const struct ree_expr *expr, bool epilogue, struct ree_cuda_expr *out);
// Whether kernels with REE_EXPR_ARITHMETIC (cuda/expr.h) have all that the expression needs.
bool ree_cuda_expr_is_arithmetic(const struct ree_expr *expr);

// The epilogue of a matmul whose float32 sums lie at the beginning of the scratch memory.
void ree_cuda_encode_epilogue(const struct ree_dispatch *dispatch, struct ree_cuda_encoding *out);

// The encoders, one for each RepOp. out->params holds the dispatch's parameters already where the
// types agree.
typedef enum ree_status ree_cuda_encoder(const struct ree_cuda *cuda,
                                         const struct ree_dispatch *dispatch,
                                         struct ree_cuda_encoding *out, struct ree_error *err);
ree_cuda_encoder ree_cuda_encode_copy, ree_cuda_encode_map, ree_cuda_encode_reduce,
    ree_cuda_encode_matmul, ree_cuda_encode_conv, ree_cuda_encode_pool, ree_cuda_encode_softmax,
    ree_cuda_encode_norm, ree_cuda_encode_gather, ree_cuda_encode_scatter, ree_cuda_encode_topk,
    ree_cuda_encode_scan, ree_cuda_encode_resize, ree_cuda_encode_attention;

#endif
