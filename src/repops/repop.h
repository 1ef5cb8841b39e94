// RepOps/1: the operators that a backend implements. Each has one parameter struct, with the same
// layout for every backend. NUMERICS.md in this folder defines the arithmetic; this header
// defines shapes and layout.
//
// A dispatch is one RepOp and its operands; an operand is a range of bytes in a buffer. Kernels get
// the parameter struct and one pointer per operand. Rules for all operands:
// - Every tensor has fewer than 2^31 elements. Indices and strides are 32-bit and count elements.
// - "Dense" means row-major without gaps. Outputs are always dense, except those of `copy`.
// - An operand starts at a multiple of 4 bytes and of its element size; a whole tensor starts at a
//   multiple of 64 bytes.
// - Kernels may read and write a buffer up to the next multiple of 4 bytes after a tensor's end,
//   because a GPU without byte stores writes whole words.
//
// bool is a byte of 0 or 1. Every RepOp writes canonical NaNs (float32: 0x7FC00000). Exceptions:
// `copy` and `gather`, which move bytes (the session canonicalises the values that become visible).
#ifndef REE_REPOPS_REPOP_H
#define REE_REPOPS_REPOP_H

#include "ree/tensor.h"

enum ree_repop {
    REE_REPOP_COPY,
    REE_REPOP_MAP,
    REE_REPOP_REDUCE,
    REE_REPOP_MATMUL,
    REE_REPOP_CONV,
    REE_REPOP_POOL,
    REE_REPOP_SOFTMAX,
    REE_REPOP_NORM,
    REE_REPOP_GATHER,
    REE_REPOP_SCATTER,
    REE_REPOP_TOPK,
    REE_REPOP_SCAN,
    REE_REPOP_RESIZE,
    REE_REPOP_ATTENTION,
    REE_N_REPOPS
};

const char *ree_repop_name(enum ree_repop op); // "copy", "map", ...

#define REE_CHUNK 256 // chunk length of the reduction scheme, NUMERICS.md section 3

// Expressions (struct ree_expr): what `map` computes for each element, and what the epilogue of
// `matmul` and `conv` computes from each finished sum.
//
// Values are numbered: 0 ... n_operands-1 are the operands, n_operands + i is the result of
// instrs[i]. In an epilogue, value 0 is the finished sum (class W, float32 or int32), values 1 ...
// n_operands are the operands, and n_operands + 1 + i is the result of instrs[i]. The value of the
// expression is the result of its last instruction, or value 0 if there are no instructions.
//
// Each value has a class, W (32 bits) or D (64 bits). map_ops.def gives the classes of
// instructions. An operand of type i64, u64 or f64 is D, all others are W.
// - Load: i8, i16, i4 and i2 are sign-extended. Other types below 32 bits are zero-extended, so
//   narrow floats arrive as raw bits (convert them with f16_to_f32, narrow_to_f32, ...).
// - Store: the low bytes are kept. A float32 or float64 result has its NaN canonicalised.

#define REE_EXPR_MAX_OPERANDS 8
#define REE_EXPR_MAX_INSTRS 32

enum ree_map_op {
    REE_MAP_CONST32, // imm[0] is the value
    REE_MAP_CONST64, // imm[0] is the low word, imm[1] the high word
#define MAP_OP(name, n_args, result, a, b, c) REE_MAP_##name,
#include "repops/map_ops.def"
    REE_N_MAP_OPS
};

// True for the float64 functions that only the CPU implements (REE_HOST_MAP_OPS in map_ops.def):
// remainders and elementary functions.
static inline bool ree_map_op_is_host_only(uint32_t op) {
    return op >= REE_MAP_mod_f64;
}
// Returns the float64 operation that corresponds to this float32 operation; REE_N_MAP_OPS if there
// is none.
enum ree_map_op ree_map_op_in_f64(enum ree_map_op op);

enum ree_class { REE_CLASS_NONE, REE_CLASS_W, REE_CLASS_D };

struct ree_map_op_info {
    const char *name;
    uint32_t n_args;
    enum ree_class result;
    enum ree_class args[3];
};
extern const struct ree_map_op_info ree_map_op_infos[REE_N_MAP_OPS];
enum ree_class ree_dtype_class(enum ree_dtype dtype);

enum ree_expr_operand_kind {
    // An element of the dispatch's next tensor: element offset + sum(i * strides) for index i over
    // the expression's dims.
    REE_EXPR_TENSOR,
    // The number offset + sum(i * strides) for index i over the expression's dims. Reads no memory;
    // dtype is i32 or i64.
    REE_EXPR_IOTA,
};

struct ree_expr_operand {
    uint32_t kind;
    uint32_t dtype;
    int32_t offset;                // in elements
    int32_t strides[REE_MAX_RANK]; // in elements, per dimension of the expression; 0 broadcasts
};

struct ree_expr_instr {
    uint32_t op; // enum ree_map_op
    uint32_t args[3];
    uint32_t imm[2];
};

struct ree_expr {
    uint32_t rank; // at least 1
    uint32_t dims[REE_MAX_RANK];
    uint32_t n_elements; // product of dims
    uint32_t out_dtype;
    uint32_t n_operands;
    uint32_t n_instrs;
    struct ree_expr_operand operands[REE_EXPR_MAX_OPERANDS];
    struct ree_expr_instr instrs[REE_EXPR_MAX_INSTRS];
};

// copy: dst[dst_offset + sum(i * dst_strides)] = src[src_offset + sum(i * src_strides)] for every
// index i over dims. Operands: src, dst. elem_size is 1, 2, 4 or 8 bytes. No element of dst is
// written twice; the other elements of dst keep their values.
struct ree_copy_params {
    uint32_t elem_size;
    uint32_t rank; // at least 1
    uint32_t n_elements;
    int32_t src_offset, dst_offset;
    uint32_t dims[REE_MAX_RANK];
    int32_t src_strides[REE_MAX_RANK]; // in elements; may be 0 or negative
    int32_t dst_strides[REE_MAX_RANK]; // in elements; positive
};

// map: out[i] = expr(i) for every index i over expr.dims. Operands: the expression's tensors in
// order, out. out is dense, of type expr.out_dtype.
struct ree_map_params {
    struct ree_expr expr;
};

// reduce: out[o] = reduction of x[offset + sum(o * outer_strides) + sum(r * reduce_strides)] over
// all indices r, in ascending row-major order. o is an index over outer_dims, r over reduce_dims.
// Operands: x, out. out is dense and has x's dtype; for
// ARGMAX and ARGMIN it is i64. dtypes: f32, f64, i32, u32, i64, u64, i8, u8, bool. The rules for
// f32 also hold for f64, in binary64. If n_reduce is 0, the result is 0 for SUM, 1 for PROD, -inf
// or the lowest integer for MAX, and +inf or the highest integer for MIN.
enum ree_reduce_kind {
    // f32: sums in chunks of REE_CHUNK (NUMERICS.md, section 3). Integers wrap around in their
    // type.
    REE_REDUCE_SUM,
    REE_REDUCE_SUM_SQ, // f32: sum of squares in chunks, acc = fma(x, x, acc)
    REE_REDUCE_SUM_ABS,
    // f32: within a chunk acc = acc * x, from 1; chunk results are multiplied in ascending order.
    REE_REDUCE_PROD,
    REE_REDUCE_MAX, // f32: as max_f32, a NaN wins and +0 wins over -0
    REE_REDUCE_MIN,
    REE_REDUCE_ARGMAX, // first index of the maximum (last if select_last); the first NaN wins
    REE_REDUCE_ARGMIN,
};
struct ree_reduce_params {
    uint32_t kind;
    uint32_t dtype;
    uint32_t select_last;
    int32_t offset;
    uint32_t n_outer; // product of outer_dims; 1 if outer_rank is 0
    uint32_t n_reduce;
    uint32_t outer_rank, reduce_rank;
    uint32_t outer_dims[REE_MAX_RANK];
    int32_t outer_strides[REE_MAX_RANK];
    uint32_t reduce_dims[REE_MAX_RANK];
    int32_t reduce_strides[REE_MAX_RANK];
};

// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), NUMERICS.md section 3 (dot).
// Operands: A, B, for blockwise weights the scales and zero points, for blockwise activations the
// scales, the epilogue's tensors in order, out. out is dense, (batch..., m, n), of type
// epilogue.out_dtype, or `dtype` without an epilogue.
//
// `dtype` is the type of the sum and decides which types A and B may have:
//
//   f32                  f32, f16, bf16, i8 and u8, each widened exactly to float32
//   i32                  each i8 or u8, extended to 32 bits; or both i32
//   f64, u32, i64, u64   only that type
//
// Integers wrap around. If there is an epilogue, `dtype` must be f32 or i32.
//
// Blockwise weights, b_block != 0: a column of B is n_blocks = ceil(k / b_block) blocks of b_block
// numbers q with b_bits bits each (4 or 8), low bits first. The operand B (u8) is dense, (n,
// n_blocks, b_block * b_bits / 8). B[l, j] = (q - z) * s, rounded once to float32. s is the scale
// and z the zero point of the block:
// - s: operand 2, the scales, f32 (n, n_blocks).
// - z: operand 3 if has_zero_points, the zero points, u8 (n, n_blocks) below 2^b_bits; otherwise
//   2^(b_bits - 1).
// b_block is a power of two from 16 to 256; b_offset and the strides of B are 0.
//
// Blockwise activations, a_block != 0 (requires b_block != 0): A is i8, and a row of A is
// ceil(k / a_block) blocks of a_block numbers, the last one may be shorter. A block has one scale:
// the last operand before the epilogue's tensors, f32, dense (m, ceil(k / a_block)). The sum is the
// block-dot of NUMERICS.md section 3. a_block is a power of two from 16 to 256; n_batch is 1.
struct ree_matmul_params {
    uint32_t dtype;
    uint32_t a_dtype, b_dtype;
    uint32_t m, n, k;
    int32_t a_offset, b_offset;
    int32_t a_stride_m, a_stride_k;
    int32_t b_stride_k, b_stride_n;
    uint32_t batch_rank; // at most REE_MAX_RANK - 2
    uint32_t n_batch;    // product of batch_dims; 1 if batch_rank is 0
    uint32_t batch_dims[REE_MAX_RANK];
    int32_t a_batch_strides[REE_MAX_RANK]; // 0 broadcasts
    int32_t b_batch_strides[REE_MAX_RANK];
    // Blockwise weights of B: numbers per block, bits per number, and whether the blocks have zero
    // points; all 0 if B has no blockwise weights.
    uint32_t b_block, b_bits, has_zero_points;
    uint32_t a_block; // blockwise activations: numbers per block of A; 0: A has no blocks
    uint32_t has_epilogue;
    struct ree_expr epilogue; // its dims are (batch..., m, n)
};
// Returns the number of operands before the epilogue's tensors: 2 to 5.
uint32_t ree_matmul_n_operands(const struct ree_matmul_params *p);

// conv: out[b, g*M + i, o] = expr(sum over (c, k) of x[b, g*C + c, o*stride + k*dilation - pad] *
// w[g*M + i, c, k]), where x is 0 outside its bounds. b: sample, g: group, i: output channel of the
// group, c: input channel of the group. o (output position) and k (kernel position) have 3
// dimensions; the leading sizes are 1 for 1-D and 2-D.
// Transposed: out[b, g*M + m, o] = expr(sum over (c, k) of x[b, g*C + c, i] * w[g*C + c, m, k]),
// where i solves i*stride + k*dilation - pad = o. If no i inside x solves it, the term uses 0 for
// x. Operands, all dense: x (n, groups*C, in); w (groups*M, C, kernel), transposed (groups*C, M,
// kernel); the pad value, one element of x's type, if has_pad_value; epilogue tensors; out (n,
// groups*M, out).
//
// Either x, w and the sum are f32. Or x and w are each i8 or u8, extended to 32 bits, and the sum
// is i32 and wraps around; then the convolution must not be transposed, and positions outside x
// have the pad value, if there is one, instead of 0.
struct ree_conv_params {
    uint32_t n, groups;
    uint32_t c; // input channels per group
    uint32_t m; // output channels per group
    uint32_t in[3], kernel[3], out[3];
    uint32_t stride[3], dilation[3];
    int32_t pad[3]; // padding at the beginning of each dimension
    uint32_t transposed;
    uint32_t x_dtype, w_dtype;
    uint32_t has_pad_value;
    uint32_t has_epilogue;
    struct ree_expr epilogue; // its dims are (n, groups*m, out[0], out[1], out[2])
};
// Returns the number of operands before the epilogue's tensors: 2 or 3.
uint32_t ree_conv_n_operands(const struct ree_conv_params *p);
// Returns the type of the sum: f32 or i32.
enum ree_dtype ree_conv_sum_dtype(const struct ree_conv_params *p);

// pool: reduces the window of x at each output position. Operands, dense: x (planes, in), out
// (planes, out). If has_indices, MAX also writes an i64 tensor (planes, out): the index of the
// window's first maximum in the whole flat x. If storage_order is 1, the index counts column-major
// within a plane. dtype is f32, for MAX also i8 or u8.
enum ree_pool_kind {
    REE_POOL_MAX, // maximum of the window's positions inside x; padding does not count
    // Sum in chunks of REE_CHUNK, row-major in the window, with 0 for padding; divided by the
    // number of positions (count_include_pad).
    REE_POOL_AVG,
    REE_POOL_SUM_SQ, // sum of squares in chunks, acc = fma(x, x, acc), with 0 for padding
};
struct ree_pool_params {
    uint32_t kind;
    uint32_t dtype;
    uint32_t planes;
    uint32_t in[3], kernel[3], out[3];
    uint32_t stride[3], dilation[3];
    int32_t pad_begin[3], pad_end[3];
    // AVG: 1: the divisor counts the padding positions too; 0: only positions inside x.
    uint32_t count_include_pad;
    uint32_t has_indices;
    uint32_t storage_order;
};

// softmax along dimension k: m = max x; e = exp(x - m); s = sum e; out = e / s, or if `log` is set,
// out = (x - m) - log(s). If zero_empty is set and m is -inf, m becomes 0 and s becomes 1, so that
// the row becomes 0 (`log`: -inf).
// Operands: x, out, both dense (outer, k, inner), f32.
struct ree_softmax_params {
    uint32_t log;
    uint32_t outer, k, inner;
    uint32_t zero_empty;
};

// norm over the last dimension of (rows, cols): m = mean x; d = x - m; v = mean(d*d); out = d /
// sqrt(v + epsilon) * scale + bias. If `rms` is set, d = x. Scale and bias are read at element (row
// / scale_row_div % scale_row_mod) * scale_row_stride + col * scale_col_stride. Operands: x, scale
// (if has_scale), bias (if has_bias), out; all f32, x and out dense.
struct ree_norm_params {
    uint32_t rms;
    uint32_t rows, cols;
    float epsilon;
    uint32_t has_scale, has_bias;
    uint32_t scale_row_div, scale_row_mod, scale_row_stride, scale_col_stride;
};

// gather: out[i] = data[data_offset + sum(i * data_strides) + sum over j of c(i, j)], where i is an
// index over dims, j counts the n_components components of an index, and c(i, j) is
// wrap(index[sum(i * index_strides) + j * component_stride], component_sizes[j]) *
// component_strides[j]; wrap(x, n) = x < 0 ? x + n : x. If component j is outside
// [-component_sizes[j], component_sizes[j]), the run fails and names the node.
// Operands: data, index (i32 or i64, dense), out (dense over dims).
struct ree_gather_params {
    uint32_t elem_size; // 1, 2, 4, 8
    uint32_t index_dtype;
    uint32_t rank; // at least 1
    uint32_t n_elements;
    uint32_t dims[REE_MAX_RANK];
    int32_t data_offset;
    int32_t data_strides[REE_MAX_RANK];
    int32_t index_strides[REE_MAX_RANK];
    uint32_t n_components; // numbers that form one index; 1 for Gather and GatherElements
    int32_t component_stride;
    uint32_t component_sizes[REE_MAX_RANK];
    int32_t component_strides[REE_MAX_RANK];
};

// scatter: data[target(i)] = combine(data[target(i)], updates[sum(i * update_strides)]) for every
// index i over `dims`. The last n_step_dims dimensions are the steps, the others the vectors. The
// steps of a vector run one after the other, in row-major order, so that several updates of one
// element are applied in this order. Two vectors have no target in common and may run in any order.
// target(i) = sum(i * data_strides) + sum over j of wrap(index[...], component_sizes[j]) *
// component_strides[j], as in gather. Operands: data (changed in place), index, updates.
enum ree_scatter_kind {
    REE_SCATTER_SET,
    REE_SCATTER_ADD,
    REE_SCATTER_MUL,
    REE_SCATTER_MIN,
    REE_SCATTER_MAX,
};
struct ree_scatter_params {
    uint32_t kind;
    // Type of data and updates. SET: any type of 1, 2, 4 or 8 bytes; other kinds: f32, f64, i32,
    // u32, i64, u64, i8, u8.
    uint32_t dtype;
    uint32_t index_dtype;
    uint32_t rank, n_step_dims;
    uint32_t n_vectors, n_steps;
    uint32_t dims[REE_MAX_RANK];
    int32_t data_strides[REE_MAX_RANK];
    int32_t index_strides[REE_MAX_RANK];
    int32_t update_strides[REE_MAX_RANK];
    uint32_t n_components;
    int32_t component_stride;
    uint32_t component_sizes[REE_MAX_RANK];
    int32_t component_strides[REE_MAX_RANK];
};

// topk: sorts x (outer, n, inner) along its middle dimension and returns the first k values and
// their indices: the largest first if `largest` is set, otherwise the smallest first, equal values
// by ascending index. A NaN counts as larger than everything. Operands, dense: x, values (outer, k,
// inner), indices (i64, outer, k, inner). dtype f32, f64, i32, u32, i64, u64, i8, u8.
struct ree_topk_params {
    uint32_t dtype;
    uint32_t outer, n, inner, k;
    uint32_t largest;
};

// scan: running sum, or product if `product` is set, along the middle dimension of (outer, k,
// inner). Element j is the sum of the terms 0 ... j (`exclusive`: 0 ... j-1), in chunks of
// REE_CHUNK as in NUMERICS.md, section 3. With `reverse`, terms and elements are counted from the
// end. Operands: x, out, dense. dtype f32, f64, i32, u32, i64, u64.
struct ree_scan_params {
    uint32_t product;
    uint32_t dtype;
    uint32_t outer, k, inner;
    uint32_t exclusive, reverse;
};

// resize: applies one axis of a separable filter: out[o, j, i] = sum over taps t of w[j*taps + t] *
// x[o, index[j*taps + t], i] (dot, t ascending). If index[j*taps] is -1, the result is
// `extrapolation` instead of the sum. Operands: x (outer, k_in, inner), index i32 (k_out, taps), w
// f32 (k_out, taps), out (outer, k_out, inner). f32.
struct ree_resize_params {
    uint32_t outer, k_in, k_out, inner, taps;
    float extrapolation;
};

// attention: out[b, h, i] = sum over keys j of w[j] * v[b, h / group, j], where group = n_heads /
// n_kv_heads and w is the softmax of query i's scores in head h; NUMERICS.md, "Attention".
// Operands: q (f32); k, v (f32, f16 or bf16, widened exactly); the optional operands that are
// present, in this order: starts, n_keys (i32 or i64), allowed (bool), bias (f32), sink (f32),
// pages (i32); out (f32).
//
// If page_bits is not 0, k and v are pools of pages of 2^page_bits keys, and the operand `pages`
// (batch, ceil(kv_len / 2^page_bits)) is the page table: key j of batch b is key pages[b, j >>
// page_bits] << page_bits | (j & (2^page_bits - 1)) of the pool. The batch strides of k and v are
// then 0. A chunk of REE_CHUNK keys consists of whole pages.
//
// Query i of batch b has position p = start + starts[b] + i among the keys. Key j takes part in
// query i if all of these conditions hold; the condition of an absent operand holds always:
// - p - left <= j and j <= p + right; REE_ATTENTION_UNBOUNDED means no limit on that side;
// - j < n_keys[b];
// - allowed[b, h, i, j] is true;
// - bias[b, h, i, j] is not -inf.
// The sums run only over the keys that ree_attention_keys returns, which form whole chunks. Values
// of `starts` and `n_keys` beyond +-REE_ATTENTION_FAR are clamped to it.
//
// If all scores of a query and its sink are -inf, its weights are +0 if zero_empty is set,
// otherwise NaN.
#define REE_ATTENTION_UNBOUNDED (-1)
#define REE_ATTENTION_FAR (1 << 30)     // largest value of starts, n_keys, left and right
#define REE_ATTENTION_MAX_LEN (1 << 28) // largest value of q_len, kv_len, pool_len and |start|
struct ree_attention_params {
    uint32_t batch;
    uint32_t n_heads, n_kv_heads; // n_kv_heads divides n_heads; neighbouring heads share keys
    uint32_t q_len, kv_len, head_dim, v_head_dim;
    uint32_t k_dtype, v_dtype;
    int32_t q_offset, k_offset, v_offset;
    int32_t q_strides[4]; // in elements, along (batch, n_heads, q_len, head_dim)
    int32_t k_strides[4]; // in elements, along (batch, n_kv_heads, kv_len, head_dim)
    int32_t v_strides[4]; // in elements, along (batch, n_kv_heads, kv_len, v_head_dim)
    // In elements, along (batch, n_heads, q_len). out is dense in some order of these dimensions;
    // the v_head_dim elements of a row are adjacent.
    int32_t out_strides[3];
    float scale;   // factor of the scores; 1: no multiplication
    float softcap; // s becomes softcap * tanh(s / softcap); 0: no such step
    // Number of keys that a query sees before and after its position; REE_ATTENTION_UNBOUNDED: all.
    int32_t left, right;
    int32_t start;
    uint32_t starts_dtype; // REE_DTYPE_NONE: there is no operand `starts`
    uint32_t n_keys_dtype; // REE_DTYPE_NONE: there is no operand `n_keys`
    uint32_t has_allowed, has_bias, has_sink;
    int32_t starts_offset, n_keys_offset, allowed_offset, bias_offset, sink_offset;
    int32_t starts_stride, n_keys_stride; // in elements, along batch
    // In elements, along (batch, n_heads, q_len, kv_len); 0 broadcasts.
    int32_t allowed_strides[4];
    int32_t bias_strides[4];
    int32_t sink_strides[3]; // in elements, along (batch, n_heads, q_len)
    uint32_t zero_empty;
    // log2 of the keys per page, REE_ATTENTION_MIN_PAGE_BITS to REE_ATTENTION_MAX_PAGE_BITS; 0:
    // there is no operand `pages`.
    uint32_t page_bits;
    uint32_t pool_len; // number of keys in the pool
    // Page table: offset of its first entry, and stride from batch to batch, in elements. The
    // entries of a batch are adjacent.
    int32_t pages_offset, pages_stride;
};
#define REE_ATTENTION_MAX_PAGE_BITS 8 // 2^8 = REE_CHUNK
#define REE_ATTENTION_MIN_PAGE_BITS 4
// Returns the range of keys that the sums of query `row` run over, first <= j < end. If `starts` or
// `n_keys` is an operand, these are all keys; otherwise the chunks in which `left` and `right`
// allow at least one key.
void ree_attention_keys(const struct ree_attention_params *p, uint32_t row, uint32_t *out_first,
                        uint32_t *out_end);
// Index of each optional operand in ree_dispatch.operands; UINT32_MAX: absent. `out`, the result,
// is always present and follows them.
struct ree_attention_operands {
    uint32_t starts, n_keys, allowed, bias, sink, pages, out;
};
struct ree_attention_operands ree_attention_operands(const struct ree_attention_params *p);

union ree_params {
    struct ree_copy_params copy;
    struct ree_map_params map;
    struct ree_reduce_params reduce;
    struct ree_matmul_params matmul;
    struct ree_conv_params conv;
    struct ree_pool_params pool;
    struct ree_softmax_params softmax;
    struct ree_norm_params norm;
    struct ree_gather_params gather;
    struct ree_scatter_params scatter;
    struct ree_topk_params topk;
    struct ree_scan_params scan;
    struct ree_resize_params resize;
    struct ree_attention_params attention;
};
size_t ree_repop_params_size(enum ree_repop op); // size in bytes of its struct in union ree_params

#define REE_MAX_OPERANDS (REE_EXPR_MAX_OPERANDS + 4)

// A range of bytes in a buffer. A program numbers its buffers from 0; the number is the slot.
struct ree_operand {
    uint32_t slot;
    uint64_t offset, size; // bytes
};

struct ree_dispatch {
    enum ree_repop op;
    uint32_t node; // the graph's node, as index into ree_program.node_names
    uint32_t n_operands;
    // The dispatch writes its last n_outputs operands. 0 for scatter, which changes its first one.
    uint32_t n_outputs;
    struct ree_operand operands[REE_MAX_OPERANDS];
    union ree_params params;
};

// A list of dispatches that run in order. Later dispatches see what earlier ones wrote.
struct ree_program {
    const struct ree_dispatch *dispatches;
    uint32_t n_dispatches;
    uint32_t n_slots;
    const char *const *node_names; // (n_node_names) for messages: "node 'conv1' (Conv)", ...
    uint32_t n_node_names;
};

// Checks one dispatch on its own: the number of operands, that the elements which the parameters
// reach lie inside the operands, and the expression. Fails with REE_INTERNAL. Tests and debug
// builds call it; backends may rely on these properties.
enum ree_status ree_dispatch_check(const struct ree_dispatch *dispatch, struct ree_error *err);
struct ree_strbuf;
// Appends one line of text to `out`: RepOp, parameters, operands.
void ree_dispatch_print(const struct ree_dispatch *dispatch, struct ree_strbuf *out);

#endif
