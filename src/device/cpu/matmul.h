// Shared by the files matmul*.c: plans of matrix products, their operands and their methods.
#ifndef REE_DEVICE_CPU_MATMUL_H
#define REE_DEVICE_CPU_MATMUL_H

#include "device/cpu/cpu_internal.h"
#include "device/cpu/expr.h"
#include "device/cpu/operand.h"
#include "device/cpu/tiles_pairs.h"

// A matmul whose batch dimensions are folded into m if the layout allows it.
struct ree_matmul_plan {
    enum ree_dtype a_dtype, b_dtype;
    bool integer; // 8-bit integers, summed in int32; false: float32 sums
    bool blocks;  // b holds blockwise weights
    uint32_t m, n, k;
    int64_t a_stride_m, a_stride_k, b_stride_k, b_stride_n;
    uint32_t n_batch, batch_rank;
    uint32_t batch_dims[REE_MAX_RANK];
    int64_t a_batch_strides[REE_MAX_RANK], b_batch_strides[REE_MAX_RANK];
    // The product was transposed (B' A') to make its m small: element (i, j) of the plan is element
    // (j, i) of the output.
    bool swapped;
};

struct ree_matmul_output {
    const struct ree_cpu_expr_plan *epilogue; // NULL: none
    void *out;
    size_t elem_size; // bytes per element of out
};

// The rows of A as floats: A itself, or a dense copy of the rows of all products of the batch.
struct ree_matmul_rows {
    const float *floats;
    int64_t stride_m, stride_k;
    bool copied;
};

// Sets *out to the rows of A as floats. Copies them, to slot 0 of thread 0's scratch, if A is not
// float32, or if `adjacent` and stride_k is not 1.
enum ree_status ree_matmul_rows(const struct ree_cpu_context *ctx, const struct ree_tiles *tiles,
                                const struct ree_matmul_plan *plan, const struct ree_cpu_operand *a,
                                bool adjacent, struct ree_matmul_rows *out, struct ree_error *err);
const float *ree_matmul_rows_at(const struct ree_matmul_plan *plan,
                                const struct ree_matmul_rows *rows, uint32_t batch);

// A product of few rows with constant weights that are narrower than float32 and were packed in
// advance (matmul_panels.c).
struct ree_panels {
    const struct ree_tiles *tiles;
    const struct ree_matmul_plan *plan;
    const struct ree_matmul_output *output;
    struct ree_matmul_rows a; // rows whose stride_k is 1
    const void *b;            // packed weights (ree_panels_pack)
    const float *scales;      // packed scales of blockwise weights
    const uint8_t *zeros;     // packed zero points; NULL: 2^(bits - 1)
    uint32_t bits, block;
};
// Returns whether constant weights are packed as panels: narrow weights for few rows, and blockwise
// weights for any number of rows, so that a language model's prompt and steps read the same copy.
bool ree_panels_keep(const struct ree_tiles *tiles, const struct ree_matmul_plan *plan);
// Returns whether ree_panels_run computes the product: as ree_panels_keep, for few rows.
bool ree_panels_suit(const struct ree_tiles *tiles, const struct ree_matmul_plan *plan);

// Packing of operand 1, 2 or 3 (B, its scales, its zero points) as panels of REE_PANEL_VECS *
// tiles->lanes columns: the size in bytes of one panel and of all, and the packing of one panel and
// of all.
size_t ree_panel_size(const struct ree_tiles *tiles, const struct ree_matmul_params *p,
                      uint32_t operand);
size_t ree_panels_size(const struct ree_tiles *tiles, const struct ree_matmul_params *p,
                       uint32_t operand);
void ree_panel_pack(const struct ree_tiles *tiles, const struct ree_matmul_params *p,
                    uint32_t operand, uint32_t panel, const void *src, void *dst);
void ree_panels_pack(const struct ree_cpu_context *ctx, const struct ree_tiles *tiles,
                     const struct ree_matmul_params *p, uint32_t operand, const void *src,
                     void *out);
enum ree_status ree_panels_run(const struct ree_cpu_context *ctx, const struct ree_panels *panels,
                               struct ree_error *err);

// One product of a batch, computed with tiles. Everything below counts K in packed words
// (operand.h). A word is one float, or several terms of an integer product; in that case the
// "floats" in c and out are int32.
struct ree_gemm {
    const struct ree_tiles *tiles;
    uint32_t m, n, k; // k: in words
    uint32_t n_terms; // length of K in terms
    struct ree_cpu_operand a, b;
    // the pair tiles that contain `tiles`, if a and b are pairs of bfloat16; else NULL
    const struct ree_pair_tiles *pairs;
    bool as_floats; // with pairs: multiply all panels as floats, because the instruction is slower
    const float *packed_b; // all of b, packed; NULL: not packed in advance
    // a is packed as a - a_shift, so a_shift times the sum of each column of b must be added.
    int32_t a_shift;
    uint32_t first; // index in the whole output of this product's element (0, 0)
    const struct ree_matmul_output *output;
};

// Layout of packed b: for each chunk of k, for each panel of tiles->cols columns, a matrix (words
// of the chunk, cols). If a_shift is not 0, the sums of all columns follow. With pairs, the least
// exponents of all panels follow, in the order of the panels (tiles_pairs.h).
size_t ree_gemm_packed_b_floats(const struct ree_gemm *gemm);
void ree_gemm_pack_b(const struct ree_gemm *gemm, float *out);

// Computes one product with n_threads threads of the context.
enum ree_status ree_gemm_run(const struct ree_cpu_context *ctx, const struct ree_gemm *gemm,
                             uint32_t n_threads, struct ree_error *err);
// Computes n_batch products, one per thread at a time. make(user, i, gemm) fills in product i.
enum ree_status ree_gemm_run_batch(const struct ree_cpu_context *ctx, uint32_t n_batch,
                                   void (*make)(const void *user, uint32_t i,
                                                struct ree_gemm *gemm),
                                   const void *user, uint32_t n_threads, struct ree_error *err);

// Writes elements [first, first + count) of the output from finished sums, through the epilogue if
// there is one. `values` may be the output's own memory.
void ree_matmul_write(const struct ree_matmul_output *output, const void *values, uint32_t first,
                      uint32_t count);

// Computes products of blockwise activations and blockwise weights (matmul_int8.c). `operands` are
// the dispatch's.
enum ree_status ree_matmul_int8(const struct ree_cpu_context *ctx,
                                const struct ree_matmul_params *p, void *const *operands,
                                const struct ree_matmul_output *output, struct ree_error *err);

// Computes a product of 32-bit or 64-bit integers, whose sums wrap.
void ree_matmul_integer(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                        const void *a, const void *b, const struct ree_matmul_output *output);

// Computes a float64 product without an epilogue (float64.c). `a` and `b` point to the start of the
// operands; the offsets in *p are not yet added.
void ree_cpu_matmul_f64(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                        const double *a, const double *b, double *out);

// Returns the offset, in elements, of batch `index` in a tensor with these strides.
static inline int64_t ree_batch_offset(uint32_t rank, const uint32_t *dims, const int64_t *strides,
                                       uint32_t index) {
    int64_t offset = 0;
    for (uint32_t i = rank; i-- > 0;) {
        offset += (int64_t)(index % dims[i]) * strides[i];
        index /= dims[i];
    }
    return offset;
}

#endif
