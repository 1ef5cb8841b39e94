// RepOps/1: the operators a backend implements, and the one parameter struct of each, the same
// bytes for every backend. NUMERICS.md beside this file defines the arithmetic; here are shapes and
// layout.
//
// A dispatch is one RepOp over operands, each a range of bytes in a buffer. Kernels get the
// parameter struct and one pointer per operand. Every tensor has fewer than 2^31 elements, so
// indices and strides are 32 bits, in elements. "Dense" means row-major without gaps. Outputs are
// always dense, `copy` excepted. Operands start at a multiple of 4 bytes and of
// their element's size (of 64 for whole tensors),
// and a buffer may be read and written up to the next multiple of 4 bytes past a tensor's end (a
// GPU without byte stores writes whole words).
//
// bool is a byte of 0 or 1. A float NaN leaves a RepOp as 0x7FC00000, except `copy` and `gather`,
// which move bytes (the session canonicalises what becomes visible).
#ifndef REE_REPOPS_REPOP_H
#define REE_REPOPS_REPOP_H

#include "ree.h"

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

#define REE_CHUNK 256 // the reduction scheme's chunk length, NUMERICS.md section 3

// Expressions: the body of `map`, and the epilogue of `matmul` and `conv`.
//
// Values are numbered: 0 ... n_operands-1 are the operands, n_operands + i is the result of
// instrs[i]. An epilogue's value 0 is the accumulator, before any operand (class W, float32 or
// int32): its operands are 1 ... n_operands, and instrs[i] is n_operands + 1 + i. Each value has a
// class, W (32 bits) or D (64 bits), by map_ops.def; an operand's class follows from its type: i64,
// u64 and f64 are D, everything else is W. On load: i8, i16, i4 and i2 are sign-extended; other
// types below 32 bits zero-extended, so that narrow floats are raw bits (convert with f16_to_f32,
// narrow_to_f32,
// ...). On store the low bytes are kept; a float32 or float64 result has its NaN canonicalised. The
// expression's value is its last instruction's, or, without instructions, value 0.

#define REE_EXPR_MAX_OPERANDS 8
#define REE_EXPR_MAX_INSTRS 32

enum ree_map_op {
    REE_MAP_CONST32, // imm[0]
    REE_MAP_CONST64, // imm[0] low, imm[1] high
#define MAP_OP(name, n_args, result, a, b, c) REE_MAP_##name,
#include "repops/map_ops.def"
    REE_N_MAP_OPS
};

// Float64 functions beyond arithmetic, which the CPU alone computes (REE_HOST_MAP_OPS in
// map_ops.def).
static inline bool ree_map_op_is_host_only(uint32_t op) {
    return op >= REE_MAP_mod_f64;
}
// The float64 operation that does what this float32 operation does; REE_N_MAP_OPS: none.
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
    REE_EXPR_TENSOR, // loads element offset + sum(coordinate * stride) of the next tensor operand
    REE_EXPR_IOTA,   // is the number offset + sum(coordinate * stride) itself; dtype i32 or i64; no
                     // memory
};

struct ree_expr_operand {
    uint32_t kind;
    uint32_t dtype;
    int32_t offset;                // elements
    int32_t strides[REE_MAX_RANK]; // per dimension of the expression; 0 repeats (broadcasting)
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

// copy: dst[dst_offset + sum(i * dst_stride)] = src[src_offset + sum(i * src_stride)]. Element size
// 1, 2, 4 or 8. Operands: src, dst. No element of dst is written twice; the rest of dst stays as it
// was.
struct ree_copy_params {
    uint32_t elem_size;
    uint32_t rank; // at least 1
    uint32_t n_elements;
    int32_t src_offset, dst_offset;
    uint32_t dims[REE_MAX_RANK];
    int32_t src_strides[REE_MAX_RANK]; // may be 0 or negative
    int32_t dst_strides[REE_MAX_RANK]; // positive
};

// map: out[i] = expr(i) over expr.dims, out dense. Operands: the expression's tensors in order,
// out.
struct ree_map_params {
    struct ree_expr expr;
};

// reduce: out[o] = over r of x[offset + sum(o * outer_stride) + sum(r * reduce_stride)], r
// ascending row-major. Operands: x, out (dense; x's dtype, i64 for ARGMAX and ARGMIN). dtypes: f32,
// f64, i32, u32, i64, u64, i8, u8, bool. What is said of f32 holds for f64 in binary64. n_reduce =
// 0: SUM 0, PROD 1, MAX lowest / -inf, MIN highest / +inf.
enum ree_reduce_kind {
    REE_REDUCE_SUM,    // f32: chunk scheme; integers wrap in their own type
    REE_REDUCE_SUM_SQ, // f32: chunk scheme with acc = fma(x, x, acc)
    REE_REDUCE_SUM_ABS,
    REE_REDUCE_PROD, // f32: acc = acc * x from 1 within chunks; chunk results multiplied ascending
    REE_REDUCE_MAX,  // as max_f32: NaN wins, +0 over -0
    REE_REDUCE_MIN,
    REE_REDUCE_ARGMAX, // first index of the maximum (last with select_last); the first NaN wins
    REE_REDUCE_ARGMIN,
};
struct ree_reduce_params {
    uint32_t kind;
    uint32_t dtype;
    uint32_t select_last;
    int32_t offset;
    uint32_t n_outer; // product of outer_dims (1 when there are none)
    uint32_t n_reduce;
    uint32_t outer_rank, reduce_rank;
    uint32_t outer_dims[REE_MAX_RANK];
    int32_t outer_strides[REE_MAX_RANK];
    uint32_t reduce_dims[REE_MAX_RANK];
    int32_t reduce_strides[REE_MAX_RANK];
};

// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), NUMERICS.md section 3 (dot).
// Operands: A, B, of blockwise weights the scales and zero points, the epilogue's tensors in order,
// out (dense, (batch..., m, n), epilogue.out_dtype or `dtype` without an epilogue).
//
// `dtype` is the sum's, and says which types may meet:
//
//   f32             f32, f16, bf16, i8 and u8, each widened exactly to float32
//   i32             i8 and u8, each extended to 32 bits; or i32 and i32
//   f64, u32, i64, u64   that type alone
//
// Integers wrap. An epilogue needs f32 or i32.
//
// Blockwise weights, b_block != 0: a column of B is n_blocks = ceil(k / b_block) blocks of b_block
// numbers of b_bits bits (4 or 8), low bits first, so that the operand B (u8) is dense
// (n, n_blocks, b_block * b_bits / 8). B[l, j] = (q - z) * s, rounded once to float32, where s and
// z are the block's: operand 2 is the scales, f32 (n, n_blocks); operand 3, with has_zero_points,
// the zero points, u8 (n, n_blocks) below 2^b_bits; without them z = 2^(b_bits - 1). b_block is a
// power of two from 16 to 256; b_offset and the strides of B are 0.
struct ree_matmul_params {
    uint32_t dtype;
    uint32_t a_dtype, b_dtype;
    uint32_t m, n, k;
    int32_t a_offset, b_offset;
    int32_t a_stride_m, a_stride_k;
    int32_t b_stride_k, b_stride_n;
    uint32_t batch_rank; // at most REE_MAX_RANK - 2
    uint32_t n_batch;    // product of batch_dims (1 when there are none)
    uint32_t batch_dims[REE_MAX_RANK];
    int32_t a_batch_strides[REE_MAX_RANK]; // 0 repeats
    int32_t b_batch_strides[REE_MAX_RANK];
    uint32_t b_block, b_bits, has_zero_points; // 0: plain B
    uint32_t has_epilogue;
    struct ree_expr epilogue; // over dims (batch..., m, n)
};
// Operands before the epilogue's tensors: 2 to 4.
uint32_t ree_matmul_n_factors(const struct ree_matmul_params *p);

// conv: out[b, g*M + i, o] = expr(sum over (c, k) of x[b, g*C + c, o*stride + k*dilation - pad] *
// w[g*M + i, c, k]), zeros outside x; o and k are 3-dimensional (leading sizes 1 for 1-D and 2-D).
// Transposed: out[.., o] takes x[b, g*C + c, i] * w[g*C + c, m, k] where i*stride + k*dilation -
// pad = o, zero where no such i. Operands: x (n, groups*C, in), w (groups*M, C, kernel), transposed
// (groups*C, M, kernel); with has_pad_value one element of x's type; epilogue tensors; out (n,
// groups*M, out). All dense.
//
// x and w are f32, and so is the sum; or each is i8 or u8, extended to 32 bits, and the sum is i32
// and wraps. Of integers (not transposed) a position outside x is the pad value instead of zero.
struct ree_conv_params {
    uint32_t n, groups;
    uint32_t c; // input channels per group
    uint32_t m; // output channels per group
    uint32_t in[3], kernel[3], out[3];
    uint32_t stride[3], dilation[3];
    int32_t pad[3]; // at the beginning
    uint32_t transposed;
    uint32_t x_dtype, w_dtype;
    uint32_t has_pad_value;
    uint32_t has_epilogue;
    struct ree_expr epilogue; // over dims (n, groups*m, out[0], out[1], out[2]), rank 5
};
// Operands before the epilogue's tensors: 2 or 3. The type of the sum: f32 or i32.
uint32_t ree_conv_n_factors(const struct ree_conv_params *p);
enum ree_dtype ree_conv_sum_dtype(const struct ree_conv_params *p);

// pool: over the window of each output position. Operands: x (planes, in), out (planes, out), and
// for MAX with has_indices also an i64 tensor (planes, out): the flat index of the first maximum in
// the whole of x (column-major within the plane when storage_order is 1). Dense. dtype f32; MAX
// also i8, u8.
enum ree_pool_kind {
    REE_POOL_MAX, // padding never wins
    REE_POOL_AVG, // sum by the chunk scheme in window order, padding as zero, divided by the count
    REE_POOL_SUM_SQ, // sum of squares, acc = fma(x, x, acc), chunk scheme
};
struct ree_pool_params {
    uint32_t kind;
    uint32_t dtype;
    uint32_t planes;
    uint32_t in[3], kernel[3], out[3];
    uint32_t stride[3], dilation[3];
    int32_t pad_begin[3], pad_end[3];
    uint32_t count_include_pad; // AVG: count positions inside in + padding, else inside in alone
    uint32_t has_indices;
    uint32_t storage_order;
};

// softmax over k: m = max x; e = exp(x - m); s = sum e; SOFTMAX e / s; LOG (x - m) - log(s). With
// zero_empty, where m is -inf it counts as 0 and s as 1, so that such a row becomes 0 (LOG: -inf).
// Operands: x, out, both dense (outer, k, inner), f32.
struct ree_softmax_params {
    uint32_t log;
    uint32_t outer, k, inner;
    uint32_t zero_empty;
};

// norm over the last dimension of (rows, cols): m = mean x; d = x - m; v = mean(d*d); out = d /
// sqrt(v + eps) * scale + bias (RMS: d = x). Scale and bias index: (row / scale_row_div %
// scale_row_mod) * scale_row_stride + col * scale_col_stride. Operands: x, scale, bias (if
// has_bias), out. Dense f32.
struct ree_norm_params {
    uint32_t rms;
    uint32_t rows, cols;
    float epsilon;
    uint32_t has_scale, has_bias;
    uint32_t scale_row_div, scale_row_mod, scale_row_stride, scale_col_stride;
};

// gather: out[i] = data[offset + sum(i * data_stride) + sum over j of wrap(index[sum(i *
// index_stride) + j * component_stride], size[j]) * stride[j]], wrap(x, n) = x < 0 ? x + n : x. An
// index outside [-n, n) is a fault (the run fails, naming the node). Operands: data, index (i32 or
// i64, dense), out (dense over dims).
struct ree_gather_params {
    uint32_t elem_size; // 1, 2, 4, 8
    uint32_t index_dtype;
    uint32_t rank; // at least 1
    uint32_t n_elements;
    uint32_t dims[REE_MAX_RANK];
    int32_t data_offset;
    int32_t data_strides[REE_MAX_RANK];
    int32_t index_strides[REE_MAX_RANK];
    uint32_t n_components; // 1 for Gather and GatherElements
    int32_t component_stride;
    uint32_t component_sizes[REE_MAX_RANK];
    int32_t component_strides[REE_MAX_RANK];
};

// scatter: data[target(u, i)] = combine(data[target], updates[u, i]) for u ascending: updates that
// meet in one element are applied in that order. The iteration space is (lines..., steps...):
// `dims` has rank dimensions of which the last n_step_dims are walked in order (row-major) and the
// others are independent (no two lines share a target). target = sum(i * data_stride) + sum over j
// of wrap(index[...]) * stride[j], as in gather. Operands: data (in place), index, updates (dense
// over nothing: update_strides).
enum ree_scatter_kind {
    REE_SCATTER_SET,
    REE_SCATTER_ADD,
    REE_SCATTER_MUL,
    REE_SCATTER_MIN,
    REE_SCATTER_MAX,
};
struct ree_scatter_params {
    uint32_t kind;
    uint32_t
        dtype; // any of 1, 2, 4 or 8 bytes for SET; f32, f64, i32, u32, i64, u64, i8, u8 otherwise
    uint32_t index_dtype;
    uint32_t rank, n_step_dims;
    uint32_t n_lines, n_steps;
    uint32_t dims[REE_MAX_RANK];
    int32_t data_strides[REE_MAX_RANK];
    int32_t index_strides[REE_MAX_RANK];
    int32_t update_strides[REE_MAX_RANK];
    uint32_t n_components;
    int32_t component_stride;
    uint32_t component_sizes[REE_MAX_RANK];
    int32_t component_strides[REE_MAX_RANK];
};

// topk: the k first of n along the middle dimension of (outer, n, inner), by value (largest or
// smallest), equal values by ascending index; NaN counts as larger than everything. Always sorted.
// Operands: x, values, indices (i64), dense. dtype f32, f64, i32, u32, i64, u64, i8,
// u8.
struct ree_topk_params {
    uint32_t dtype;
    uint32_t outer, n, inner, k;
    uint32_t largest;
};

// scan: running sum (or product) along the middle dimension of (outer, k, inner). Element j is the
// sum of the terms 0 ... j (exclusive: 0 ... j-1) by the chunk scheme, terms counted from the end
// when reverse. Operands: x, out, dense. dtype f32, f64, i32, u32, i64, u64.
struct ree_scan_params {
    uint32_t product;
    uint32_t dtype;
    uint32_t outer, k, inner;
    uint32_t exclusive, reverse;
};

// resize: one axis of a separable filter: out[o, j, i] = sum over t of w[j*taps + t] * x[o,
// index[j*taps + t], i] (dot, t ascending). An index of -1 takes `extrapolation` in place of the
// whole sum when it is the first tap. Operands: x (outer, k_in, inner), index i32 (k_out, taps), w
// f32 (k_out, taps), out (outer, k_out, inner). f32.
struct ree_resize_params {
    uint32_t outer, k_in, k_out, inner, taps;
    float extrapolation;
};

// attention: out[b, h, i] = sum over j of w[j] * v[b, h / group, j], group = n_heads / n_kv_heads,
// where w are the weights of query i's scores; NUMERICS.md, "Attention". Operands: q (f32), k, v
// (f32, f16 or bf16, widened exactly); then those that are there, in this order: starts, n_keys
// (i32 or i64), allowed (bool), bias (f32), sink (f32); out (f32).
//
// Query i of batch b stands at position p = start + starts[b] + i among the keys. Key j takes part
// for it when p - left <= j <= p + right, as far as these are bounded, j < n_keys[b], allowed holds
// and the bias is not -inf. The sums take the keys of ree_attention_keys alone, which lie in whole
// chunks. Numbers beyond +-REE_ATTENTION_FAR count as that.
//
// With zero_empty a query whose scores (and sink) are all -inf has weights of +0, else NaN.
#define REE_ATTENTION_UNBOUNDED (-1)
#define REE_ATTENTION_FAR (1 << 30)     // of starts, n_keys, left and right
#define REE_ATTENTION_MAX_LEN (1 << 28) // of q_len and kv_len, and of start in magnitude
struct ree_attention_params {
    uint32_t batch;
    uint32_t n_heads, n_kv_heads; // n_kv_heads divides n_heads; neighbouring heads share keys
    uint32_t q_len, kv_len, head_dim, v_head_dim;
    uint32_t k_dtype, v_dtype;
    int32_t q_offset, k_offset, v_offset;
    int32_t q_strides[4];   // (batch, n_heads, q_len, head_dim)
    int32_t k_strides[4];   // (batch, n_kv_heads, kv_len, head_dim)
    int32_t v_strides[4];   // (batch, n_kv_heads, kv_len, v_head_dim)
    int32_t out_strides[3]; // (batch, n_heads, q_len); dense in one order of these, the
                            // v_head_dim elements of a row side by side
    float scale;            // 1: no step
    float softcap;          // 0: no step
    int32_t left, right;    // REE_ATTENTION_UNBOUNDED, or 0 and more
    int32_t start;
    uint32_t starts_dtype; // REE_DTYPE_NONE: no operand
    uint32_t n_keys_dtype; // likewise
    uint32_t has_allowed, has_bias, has_sink;
    int32_t starts_offset, n_keys_offset, allowed_offset, bias_offset, sink_offset;
    int32_t starts_stride, n_keys_stride; // (batch)
    int32_t allowed_strides[4];           // (batch, n_heads, q_len, kv_len), 0 repeats
    int32_t bias_strides[4];
    int32_t sink_strides[3]; // (batch, n_heads, q_len)
    uint32_t zero_empty;
};
// The keys that the sums of query `row` run over: those in chunks where causality and window let at
// least one take part, or all of them where positions or numbers of keys are operands.
void ree_attention_keys(const struct ree_attention_params *p, uint32_t row, uint32_t *out_first,
                        uint32_t *out_end);
// Where an optional operand is; UINT32_MAX: it is not there. The result follows them.
struct ree_attention_operands {
    uint32_t starts, n_keys, allowed, bias, sink, out;
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
size_t ree_repop_params_size(enum ree_repop op); // sizeof of its member

#define REE_MAX_OPERANDS (REE_EXPR_MAX_OPERANDS + 4)

// Which part of which buffer slot an operand is. Slots are a program's numbering of buffers.
struct ree_operand {
    uint32_t slot;
    uint64_t offset, size; // bytes
};

struct ree_dispatch {
    enum ree_repop op;
    uint32_t node; // index into ree_program.node_names
    uint32_t n_operands;
    uint32_t n_outputs; // the last n_outputs operands are written (scatter: its first, 0 here)
    struct ree_operand operands[REE_MAX_OPERANDS];
    union ree_params params;
};

// A straight line of dispatches. Later dispatches see what earlier ones wrote.
struct ree_program {
    const struct ree_dispatch *dispatches;
    uint32_t n_dispatches;
    uint32_t n_slots;
    const char *const *node_names; // "node 'conv1' (Conv)", for messages
    uint32_t n_node_names;
};

// Checks one dispatch as far as its own numbers go: operand count, sizes of operands against what
// the parameters reach, expression well-formed. For tests and debug builds; backends may rely on
// it.
enum ree_status ree_dispatch_check(const struct ree_dispatch *dispatch, struct ree_error *err);
// One line of text: op, parameters, operands.
struct ree_strbuf;
void ree_dispatch_print(const struct ree_dispatch *dispatch, struct ree_strbuf *out);

#endif
