// RepOps/1: the operators that a backend implements, with one parameter struct each, which has the
// same bytes for every backend. NUMERICS.md in this folder defines the arithmetic; this header
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
// bool is a byte of 0 or 1. Every RepOp writes a float NaN as 0x7FC00000. Exceptions: `copy` and
// `gather`, which move bytes (the session canonicalises the values that become visible).
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

// Expressions: the computation of `map`, and the epilogue of `matmul` and `conv`.
//
// Values are numbered: 0 ... n_operands-1 are the operands, n_operands + i is the result of
// instrs[i]. In an epilogue, value 0 is the accumulator (class W, float32 or int32), values 1 ...
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

// Float64 functions beyond basic arithmetic. Only the CPU implements them (REE_HOST_MAP_OPS in
// map_ops.def).
static inline bool ree_map_op_is_host_only(uint32_t op) {
    return op >= REE_MAP_mod_f64;
}
// Returns the float64 operation that corresponds to this float32 operation; REE_N_MAP_OPS: none.
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
    // loads element offset + sum(coordinate * stride) of the next tensor operand
    REE_EXPR_TENSOR,
    // the number offset + sum(coordinate * stride) itself; dtype i32 or i64; reads no memory
    REE_EXPR_IOTA,
};

struct ree_expr_operand {
    uint32_t kind;
    uint32_t dtype;
    int32_t offset;                // in elements
    int32_t strides[REE_MAX_RANK]; // per dimension of the expression; 0 broadcasts
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

// copy: dst[dst_offset + sum(i * dst_stride)] = src[src_offset + sum(i * src_stride)]. Operands:
// src, dst. The element size is 1, 2, 4 or 8 bytes. No element of dst is written twice; elements
// that are not written keep their value.
struct ree_copy_params {
    uint32_t elem_size;
    uint32_t rank; // at least 1
    uint32_t n_elements;
    int32_t src_offset, dst_offset;
    uint32_t dims[REE_MAX_RANK];
    int32_t src_strides[REE_MAX_RANK]; // may be 0 or negative
    int32_t dst_strides[REE_MAX_RANK]; // positive
};

// map: out[i] = expr(i) for i over expr.dims, out dense. Operands: the expression's tensors in
// order, out.
struct ree_map_params {
    struct ree_expr expr;
};

// reduce: out[o] = reduction over r, in ascending row-major order, of x[offset + sum(o *
// outer_stride) + sum(r * reduce_stride)]. Operands: x, out. out is dense and has x's dtype; for
// ARGMAX and ARGMIN it is i64. dtypes: f32, f64, i32, u32, i64, u64, i8, u8, bool. The rules for
// f32 also hold for f64, in binary64. Results for n_reduce = 0: SUM 0, PROD 1, MAX lowest / -inf,
// MIN highest / +inf.
enum ree_reduce_kind {
    REE_REDUCE_SUM,    // f32: chunk scheme; integers wrap around in their own type
    REE_REDUCE_SUM_SQ, // f32: chunk scheme with acc = fma(x, x, acc)
    REE_REDUCE_SUM_ABS,
    // f32: acc = acc * x from 1 within chunks; chunk results multiplied in ascending order
    REE_REDUCE_PROD,
    REE_REDUCE_MAX, // as max_f32: NaN wins, +0 wins over -0
    REE_REDUCE_MIN,
    REE_REDUCE_ARGMAX, // first index of the maximum (last if select_last); the first NaN wins
    REE_REDUCE_ARGMIN,
};
struct ree_reduce_params {
    uint32_t kind;
    uint32_t dtype;
    uint32_t select_last;
    int32_t offset;
    uint32_t n_outer; // product of outer_dims (1 without dimensions)
    uint32_t n_reduce;
    uint32_t outer_rank, reduce_rank;
    uint32_t outer_dims[REE_MAX_RANK];
    int32_t outer_strides[REE_MAX_RANK];
    uint32_t reduce_dims[REE_MAX_RANK];
    int32_t reduce_strides[REE_MAX_RANK];
};

// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), NUMERICS.md section 3 (dot).
// Operands: A, B, the scales and zero points of blockwise weights, the scales of blockwise
// activations, the epilogue's tensors in order, out. out is dense, (batch..., m, n), of type epilogue.out_dtype, or `dtype` without an epilogue.
//
// `dtype` is the type of the sum and decides which operand types are allowed:
//
//   f32             f32, f16, bf16, i8 and u8, each widened exactly to float32
//   i32             i8 and u8, each extended to 32 bits; or i32 and i32
//   f64, u32, i64, u64   only that type
//
// Integers wrap around. An epilogue requires f32 or i32.
//
// Blockwise weights, b_block != 0: a column of B is n_blocks = ceil(k / b_block) blocks of b_block
// numbers with b_bits bits each (4 or 8), low bits first. The operand B (u8) is dense, (n,
// n_blocks, b_block * b_bits / 8). B[l, j] = (q - z) * s, rounded once to float32. s and z belong
// to the block:
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
    uint32_t n_batch;    // product of batch_dims (1 without dimensions)
    uint32_t batch_dims[REE_MAX_RANK];
    int32_t a_batch_strides[REE_MAX_RANK]; // 0 broadcasts
    int32_t b_batch_strides[REE_MAX_RANK];
    uint32_t b_block, b_bits, has_zero_points; // all 0 for plain B
    uint32_t a_block;                          // 0 for plain A
    uint32_t has_epilogue;
    struct ree_expr epilogue; // over dims (batch..., m, n)
};
// Number of operands before the epilogue's tensors: 2 to 5.
uint32_t ree_matmul_n_operands(const struct ree_matmul_params *p);

// conv: out[b, g*M + i, o] = expr(sum over (c, k) of x[b, g*C + c, o*stride + k*dilation - pad] *
// w[g*M + i, c, k]), with zeros outside x. o and k are 3-dimensional (leading sizes are 1 for 1-D
// and 2-D).
// Transposed: out[b, g*M + m, o] = expr(sum over (c, k) of x[b, g*C + c, i] * w[g*C + c, m, k]),
// where i solves i*stride + k*dilation - pad = o. Without a solution inside x the term uses 0 for
// x. Operands, all dense: x (n, groups*C, in); w (groups*M, C, kernel), transposed (groups*C, M,
// kernel); with has_pad_value one element of x's type; epilogue tensors; out (n, groups*M, out).
//
// Either x and w are f32 and so is the sum; or each is i8 or u8, extended to 32 bits, and the sum
// is i32 and wraps around. For integers (never transposed) a position outside x has the pad value
// instead of zero.
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
    struct ree_expr epilogue; // over dims (n, groups*m, out[0], out[1], out[2]), rank 5
};
// Number of operands before the epilogue's tensors: 2 or 3. The type of the sum: f32 or i32.
uint32_t ree_conv_n_operands(const struct ree_conv_params *p);
enum ree_dtype ree_conv_sum_dtype(const struct ree_conv_params *p);

// pool: reduces the window of each output position. Operands, dense: x (planes, in), out (planes,
// out). MAX with has_indices also writes an i64 tensor (planes, out): the flat index, in the whole
// of x, of the window's first maximum (column-major within the plane if storage_order is 1). dtype
// f32; MAX also i8, u8.
enum ree_pool_kind {
    REE_POOL_MAX, // padding never wins
    // sum by the chunk scheme in window order, padding as zero, divided by the count
    REE_POOL_AVG,
    REE_POOL_SUM_SQ, // sum of squares, acc = fma(x, x, acc), chunk scheme
};
struct ree_pool_params {
    uint32_t kind;
    uint32_t dtype;
    uint32_t planes;
    uint32_t in[3], kernel[3], out[3];
    uint32_t stride[3], dilation[3];
    int32_t pad_begin[3], pad_end[3];
    // AVG: the count includes padding positions; otherwise only positions inside x
    uint32_t count_include_pad;
    uint32_t has_indices;
    uint32_t storage_order;
};

// softmax over k: m = max x; e = exp(x - m); s = sum e; SOFTMAX e / s; LOG (x - m) - log(s).
// zero_empty: if m is -inf, m is replaced by 0 and s by 1, so the row becomes 0 (LOG: -inf).
// Operands: x, out, both dense (outer, k, inner), f32.
struct ree_softmax_params {
    uint32_t log;
    uint32_t outer, k, inner;
    uint32_t zero_empty;
};

// norm over the last dimension of (rows, cols): m = mean x; d = x - m; v = mean(d*d); out = d /
// sqrt(v + eps) * scale + bias (RMS: d = x). Index into scale and bias: (row / scale_row_div %
// scale_row_mod) * scale_row_stride + col * scale_col_stride. Operands: x, scale (if has_scale),
// bias (if has_bias), out. Dense f32.
// has_bias), out. Dense f32.
struct ree_norm_params {
    uint32_t rms;
    uint32_t rows, cols;
    float epsilon;
    uint32_t has_scale, has_bias;
    uint32_t scale_row_div, scale_row_mod, scale_row_stride, scale_col_stride;
};

// gather: out[i] = data[offset + sum(i * data_stride) + sum over j of wrap(index[sum(i *
// index_stride) + j * component_stride], size[j]) * stride[j]], with wrap(x, n) = x < 0 ? x + n :
// x. An index outside [-n, n) is a fault: the run fails and names the node. Operands: data, index
// (i32 or i64, dense), out (dense over dims).
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

// scatter: data[target(u, i)] = combine(data[target], updates[u, i]) for u ascending: several
// updates of one element are applied in that order. The iteration space is (vectors..., steps...):
// `dims` has `rank` dimensions. The last n_step_dims are iterated in row-major order. The others
// are independent: no two vectors share a target. target = sum(i * data_stride) + sum over j of
// wrap(index[...]) * stride[j], as in gather. Operands: data (in place), index, updates (addressed
// by update_strides).
enum ree_scatter_kind {
    REE_SCATTER_SET,
    REE_SCATTER_ADD,
    REE_SCATTER_MUL,
    REE_SCATTER_MIN,
    REE_SCATTER_MAX,
};
struct ree_scatter_params {
    uint32_t kind;
    // SET: any type of 1, 2, 4 or 8 bytes; otherwise f32, f64, i32, u32, i64, u64, i8, u8
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

// topk: the first k of n along the middle dimension of (outer, n, inner), ordered by value (largest
// or smallest first) and equal values by ascending index. NaN counts as larger than everything. The
// result is always sorted. Operands, dense: x, values, indices (i64). dtype f32, f64, i32, u32,
// i64, u64, i8, u8.
struct ree_topk_params {
    uint32_t dtype;
    uint32_t outer, n, inner, k;
    uint32_t largest;
};

// scan: running sum (or product) along the middle dimension of (outer, k, inner). Element j is the
// sum of the terms 0 ... j (exclusive: 0 ... j-1) by the chunk scheme. reverse: terms are counted
// from the end. Operands: x, out, dense. dtype f32, f64, i32, u32, i64, u64.
struct ree_scan_params {
    uint32_t product;
    uint32_t dtype;
    uint32_t outer, k, inner;
    uint32_t exclusive, reverse;
};

// resize: one axis of a separable filter: out[o, j, i] = sum over t of w[j*taps + t] * x[o,
// index[j*taps + t], i] (dot, t ascending). If the index of the first tap is -1, `extrapolation`
// replaces the whole sum. Operands: x (outer, k_in, inner), index i32 (k_out, taps), w f32 (k_out,
// taps), out (outer, k_out, inner). f32.
struct ree_resize_params {
    uint32_t outer, k_in, k_out, inner, taps;
    float extrapolation;
};

// attention: out[b, h, i] = sum over j of w[j] * v[b, h / group, j], group = n_heads / n_kv_heads,
// w = the weights of query i's scores; NUMERICS.md, "Attention". Operands: q (f32); k, v (f32, f16
// or bf16, widened exactly); the optional operands that are present, in this order: starts, n_keys
// (i32 or i64), allowed (bool), bias (f32), sink (f32), pages (i32); out (f32).
//
// With pages, k and v are pools of pages of 2^page_bits keys, and pages (batch, pages of kv_len
// keys) is the table of each batch's pages: key j is key pages[b, j >> page_bits] << page_bits | (j
// & (2^page_bits - 1)) of the pool. Batch strides of k and v are then 0. A page divides a chunk.
//
// Query i of batch b has position p = start + starts[b] + i among the keys. Key j takes part in
// query i if all of these hold:
// - p - left <= j <= p + right, for each side that is bounded;
// - j < n_keys[b];
// - allowed is true;
// - the bias is not -inf.
// The sums run over the keys of ree_attention_keys only, which form whole chunks. Values beyond
// +-REE_ATTENTION_FAR are clamped to it.
//
// If all scores of a query (and its sink) are -inf: with zero_empty its weights are +0, otherwise
// NaN.
#define REE_ATTENTION_UNBOUNDED (-1)
#define REE_ATTENTION_FAR (1 << 30)     // limit of starts, n_keys, left and right
#define REE_ATTENTION_MAX_LEN (1 << 28) // limit of q_len, kv_len and |start|
struct ree_attention_params {
    uint32_t batch;
    uint32_t n_heads, n_kv_heads; // n_kv_heads divides n_heads; neighbouring heads share keys
    uint32_t q_len, kv_len, head_dim, v_head_dim;
    uint32_t k_dtype, v_dtype;
    int32_t q_offset, k_offset, v_offset;
    int32_t q_strides[4]; // (batch, n_heads, q_len, head_dim)
    int32_t k_strides[4]; // (batch, n_kv_heads, kv_len, head_dim)
    int32_t v_strides[4]; // (batch, n_kv_heads, kv_len, v_head_dim)
    // (batch, n_heads, q_len); dense in some order of these dimensions, with the v_head_dim
    // elements of a row adjacent
    int32_t out_strides[3];
    float scale;         // 1: the step is skipped
    float softcap;       // 0: the step is skipped
    int32_t left, right; // REE_ATTENTION_UNBOUNDED, or at least 0
    int32_t start;
    uint32_t starts_dtype; // REE_DTYPE_NONE: no operand
    uint32_t n_keys_dtype; // REE_DTYPE_NONE: no operand
    uint32_t has_allowed, has_bias, has_sink;
    int32_t starts_offset, n_keys_offset, allowed_offset, bias_offset, sink_offset;
    int32_t starts_stride, n_keys_stride; // (batch)
    int32_t allowed_strides[4];           // (batch, n_heads, q_len, kv_len); 0 broadcasts
    int32_t bias_strides[4];
    int32_t sink_strides[3]; // (batch, n_heads, q_len)
    uint32_t zero_empty;
    uint32_t page_bits;                 // 0: no operand; at most REE_ATTENTION_MAX_PAGE_BITS
    uint32_t pool_len;                  // keys in the pool
    int32_t pages_offset, pages_stride; // (batch); pages of one batch are adjacent
};
#define REE_ATTENTION_MAX_PAGE_BITS 8 // 2^8 = REE_CHUNK
#define REE_ATTENTION_MIN_PAGE_BITS 4
// The range of keys that the sums of query `row` run over: the chunks in which causality and window
// allow at least one key, or all keys if `starts` or `n_keys` is an operand.
void ree_attention_keys(const struct ree_attention_params *p, uint32_t row, uint32_t *out_first,
                        uint32_t *out_end);
// Index of each optional operand; UINT32_MAX: absent. `out`, the result, follows them.
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
size_t ree_repop_params_size(enum ree_repop op); // sizeof its member of union ree_params

#define REE_MAX_OPERANDS (REE_EXPR_MAX_OPERANDS + 4)

// A range of bytes in a buffer slot. Slots are a program's numbering of its buffers.
struct ree_operand {
    uint32_t slot;
    uint64_t offset, size; // bytes
};

struct ree_dispatch {
    enum ree_repop op;
    uint32_t node; // index into ree_program.node_names
    uint32_t n_operands;
    // the last n_outputs operands are written; 0 for scatter, which writes its first operand
    uint32_t n_outputs;
    struct ree_operand operands[REE_MAX_OPERANDS];
    union ree_params params;
};

// A sequence of dispatches without control flow. Later dispatches see what earlier ones wrote.
struct ree_program {
    const struct ree_dispatch *dispatches;
    uint32_t n_dispatches;
    uint32_t n_slots;
    const char *const *node_names; // "node 'conv1' (Conv)", for messages
    uint32_t n_node_names;
};

// Checks one dispatch on its own: operand count, sizes of operands against the elements that the
// parameters reach, well-formed expression. For tests and debug builds; backends may rely on these
// properties.
enum ree_status ree_dispatch_check(const struct ree_dispatch *dispatch, struct ree_error *err);
// Appends one line of text: op, parameters, operands.
struct ree_strbuf;
void ree_dispatch_print(const struct ree_dispatch *dispatch, struct ree_strbuf *out);

#endif
