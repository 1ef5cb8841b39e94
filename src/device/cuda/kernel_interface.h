// The argument of a CUDA kernel, with the same bytes on host and device: a header followed by the
// RepOp's parameter struct (from src/repops/repop.h or below). Compiled as C, as CUDA C and, in
// tests, by the host's C++ compiler.
#ifndef REE_DEVICE_CUDA_KERNEL_INTERFACE_H
#define REE_DEVICE_CUDA_KERNEL_INTERFACE_H

#include "repops/repop.h"

struct ree_cuda_header {
    uint64_t operands[REE_MAX_OPERANDS]; // device address of each operand
    uint64_t sizes[REE_MAX_OPERANDS];    // bytes of each operand
    // Address and bytes of the memory through which a RepOp's launches pass results; 0: none.
    uint64_t scratch, scratch_size;
    uint64_t fault;    // device address of a struct ree_cuda_fault
    uint32_t dispatch; // index of the dispatch in the program
    uint32_t extra[5]; // further values from the encoder; each kernel documents its own
};

// Report of the first index out of range that a thread found in a run.
struct ree_cuda_fault {
    uint32_t dispatch;  // index of the dispatch plus 1; 0: no fault
    uint32_t low, high; // low and high 32 bits of the index that is out of range
    uint32_t unused;
};

// Replaces a division by d by a multiplication: for n < 2^31, n / d is the high 32 bits of the
// 64-bit product n * factor, shifted right by `shift`. factor 0 means d = 1.
struct ree_cuda_divider {
    uint32_t d, factor, shift;
};

// struct ree_cuda_expr is an expression (struct ree_expr) in the form that the interpreter of
// cuda/expr.h reads. Its dimensions are merged. Each value that is needed later has a slot in
// shared memory; the slot is reused after the value's last use.
//
// Slots 0 to n_operands - 1 hold the operands. In an epilogue, slot n_operands holds the
// accumulator. An instruction's argument names a slot, a constant, or (REE_CUDA_ARG_LAST) the
// result of the previous instruction.
#define REE_CUDA_EXPR_MAX_SLOTS (REE_EXPR_MAX_OPERANDS + 1 + REE_EXPR_MAX_INSTRS)
#define REE_CUDA_ARG_CONSTANT 0x40u // an argument: 0x40 | index of the constant
#define REE_CUDA_ARG_LAST 0xFFu
#define REE_CUDA_NOWHERE 0xFFu // `to` of an instruction whose result only the next instruction uses

// Operations with long integer code. They have kernels of their own, so that the other kernels need
// fewer registers.
#define REE_CUDA_LONG_OPS(X)                                                                       \
    X(pow_f32)                                                                                     \
    X(log1p_f32)                                                                                   \
    X(sin_f32)                                                                                     \
    X(cos_f32)                                                                                     \
    X(tan_f32)                                                                                     \
    X(asin_f32)                                                                                    \
    X(acos_f32)                                                                                    \
    X(atan_f32)                                                                                    \
    X(sinh_f32)                                                                                    \
    X(cosh_f32)                                                                                    \
    X(asinh_f32)                                                                                   \
    X(acosh_f32)                                                                                   \
    X(atanh_f32)                                                                                   \
    X(mod_f32)                                                                                     \
    X(fmod_f32)                                                                                    \
    X(pow_i32)                                                                                     \
    X(pow_u32)

struct ree_cuda_instr {
    uint16_t op; // enum ree_map_op
    uint8_t to;  // slot of the result, or REE_CUDA_NOWHERE
    uint8_t args[3];
    uint8_t unused[2];
};

enum ree_cuda_access {
    REE_CUDA_LINEAR,  // element offset + i, where i is the element's index
    REE_CUDA_SAME,    // element `offset` for every i
    REE_CUDA_STRIDED, // element offset + sum over dimensions of coordinate * stride
};

struct ree_cuda_expr_operand {
    uint32_t kind, dtype; // as in struct ree_expr_operand
    uint32_t access;      // enum ree_cuda_access
    uint32_t tensor;      // index among the expression's operands that are tensors
    int32_t offset;
    int32_t strides[REE_MAX_RANK];
};

struct ree_cuda_expr {
    uint32_t rank;
    uint32_t n_elements;
    uint32_t out_dtype;
    uint32_t n_operands, n_tensors, n_instrs;
    uint32_t n_slots; // slots in use
    uint32_t result;  // the final value, encoded like an instruction's argument
    struct ree_cuda_divider dims[REE_MAX_RANK];
    struct ree_cuda_expr_operand operands[REE_EXPR_MAX_OPERANDS];
    struct ree_cuda_instr instrs[REE_EXPR_MAX_INSTRS];
    uint64_t constants[REE_EXPR_MAX_INSTRS];
};

struct ree_cuda_map_params {
    struct ree_cuda_expr expr;
};

struct ree_cuda_copy_params {
    uint32_t elem_size;
    uint32_t rank;
    uint32_t n_elements;
    int32_t src_offset, dst_offset;
    struct ree_cuda_divider dims[REE_MAX_RANK];
    int32_t src_strides[REE_MAX_RANK];
    int32_t dst_strides[REE_MAX_RANK];
};

// Parameters of a matmul.
struct ree_cuda_matmul_params {
    struct ree_matmul_params p;
    struct ree_cuda_expr epilogue; // kernels use this instead of p.epilogue
};
// Indices into header.extra for the kernels of a product.
enum ree_cuda_product_extra {
    REE_CUDA_PRODUCT_FLAGS,    // bits of enum ree_cuda_product_flag
    REE_CUDA_PRODUCT_N_PARTS,  // 1, or the number of chunks if several blocks share each sum
    REE_CUDA_PRODUCT_N_STAGES, // stages (slices of the tiles or of a matrix) in shared memory
    // Where the results [n_parts][n_outputs] begin in the scratch memory, in 32-bit elements.
    REE_CUDA_PRODUCT_PARTS_AT,
    REE_CUDA_PRODUCT_OTHER, // meaning depends on the kernel
};
enum ree_cuda_product_flag {
    // Store the sums in the scratch memory; a later launch does step 4 of NUMERICS.md section 3.
    REE_CUDA_TO_SCRATCH = 1,
    REE_CUDA_SWAPPED = 2, // the kernel's A is operand 1, its B is operand 0
    // WIDE: the kernel reads operand A or B from a dense copy in the scratch memory, which
    // matmul_widen wrote as float32 or matmul_pack as bytes. BY_K: k is the copy's last dimension,
    // otherwise its first (for bytes always the last). BATCHED: there is one copy per batch,
    // otherwise one for all batches.
    REE_CUDA_A_WIDE = 4,
    REE_CUDA_A_WIDE_BY_K = 8,
    REE_CUDA_A_WIDE_BATCHED = 16,
    REE_CUDA_B_WIDE = 32,
    REE_CUDA_B_WIDE_BY_K = 64,
    REE_CUDA_B_WIDE_BATCHED = 128,
};

struct ree_cuda_conv_params {
    struct ree_conv_params p;
    struct ree_cuda_expr epilogue; // kernels use this instead of p.epilogue
};

// How the blocks of softmax and norm handle rows, which are contiguous in memory. A block copies
// at_once rows to shared memory, divided into chunks of 256 elements.
struct ree_cuda_rows {
    uint32_t n_rows, n; // number of rows; elements per row
    uint32_t at_once;   // rows per block, a power of two up to 64
    uint32_t n_chunks;  // chunks per row
    uint32_t stride;    // elements from the beginning of a chunk to the next, in shared memory
    uint32_t width;     // elements per memory access, 4 or 1; divides n
    struct ree_cuda_divider items; // divides by n / width, the memory accesses per row
};

struct ree_cuda_softmax_params {
    struct ree_softmax_params p;
    struct ree_cuda_rows rows;
    struct ree_cuda_divider inner;
};

struct ree_cuda_norm_params {
    struct ree_norm_params p;
    struct ree_cuda_rows rows;
    struct ree_cuda_divider row_div, row_mod; // divide by p.scale_row_div, p.scale_row_mod
};

// Parameters of a reduce. The dimensions and strides of `p` are merged.
struct ree_cuda_reduce_params {
    struct ree_reduce_params p;
    uint32_t n_chunks; // chunks of 256 terms per output
    // outer[d] divides by p.outer_dims[d], reduce[d] by p.reduce_dims[d].
    struct ree_cuda_divider outer[REE_MAX_RANK], reduce[REE_MAX_RANK];
};

struct ree_cuda_scan_params {
    struct ree_scan_params p;
    uint32_t n_vectors, n_chunks; // n_chunks: chunks of 256 elements per vector
    struct ree_cuda_divider inner;
};

struct ree_cuda_pool_params {
    struct ree_pool_params p;
    struct ree_cuda_divider out[3];
};

struct ree_cuda_resize_params {
    struct ree_resize_params p;
    struct ree_cuda_divider inner, k_out;
};

// Parameters of a gather. The dimensions and strides of `p` are merged. Several adjacent elements
// may be combined into one, so p.elem_size may be up to 16 bytes.
struct ree_cuda_gather_params {
    struct ree_gather_params p;
    struct ree_cuda_divider dims[REE_MAX_RANK];
};

struct ree_cuda_scatter_params {
    struct ree_scatter_params p;
    struct ree_cuda_divider dims[REE_MAX_RANK], vectors;
};

struct ree_cuda_topk_params {
    struct ree_topk_params p;
    struct ree_cuda_divider inner;
};

// Parameters of the probe over n vectors. For tests, the kernel falsifies some results of the
// operations [broken, broken + n_broken).
struct ree_cuda_probe_params {
    uint32_t n, broken, n_broken;
};

union ree_cuda_params {
    struct ree_cuda_probe_params probe;
    struct ree_cuda_copy_params copy;
    struct ree_cuda_map_params map;
    struct ree_cuda_reduce_params reduce;
    struct ree_cuda_matmul_params matmul;
    struct ree_cuda_conv_params conv;
    struct ree_cuda_pool_params pool;
    struct ree_cuda_softmax_params softmax;
    struct ree_cuda_norm_params norm;
    struct ree_cuda_gather_params gather;
    struct ree_cuda_scatter_params scatter;
    struct ree_cuda_topk_params topk;
    struct ree_cuda_scan_params scan;
    struct ree_cuda_resize_params resize;
    struct ree_attention_params attention;
};

// The complete argument of a kernel, which reads `header` and its own member of `params`.
struct ree_cuda_args {
    struct ree_cuda_header header;
    union ree_cuda_params params;
};

#endif
