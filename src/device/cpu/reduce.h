// Implements the reduction scheme of NUMERICS.md section 3 for floats, for the RepOps reduce,
// softmax and norm. Shared by the files reduce*.c.
//
// The terms of a chunk are summed sequentially, so vectors run across chunks: 16 lanes, each with
// its own chunk, of one row or of neighbouring rows.
#ifndef REE_DEVICE_CPU_REDUCE_H
#define REE_DEVICE_CPU_REDUCE_H

#include "device/cpu/expr.h"

#define REE_CPU_LANES 16

// out[l] = x[l][0 ... n-1] accumulated in order, n <= REE_CHUNK. Indexed by REE_REDUCE_SUM,
// _SUM_SQ, _SUM_ABS (start +0) and _PROD (start 1). NaNs are not canonicalised.
struct ree_cpu_reduce_kernels {
    void (*lanes[4])(const float *const x[REE_CPU_LANES], uint32_t n, float out[REE_CPU_LANES]);
};
extern const struct ree_cpu_reduce_kernels ree_cpu_reduce_kernels_portable;
// The AVX2 kernels exist only if REE_CPU_HAVE_AVX2 is defined, the AVX-512 kernels only if
// REE_CPU_HAVE_AVX512 is defined.
extern const struct ree_cpu_reduce_kernels ree_cpu_reduce_kernels_avx2;
extern const struct ree_cpu_reduce_kernels ree_cpu_reduce_kernels_avx512;
const struct ree_cpu_reduce_kernels *ree_cpu_reduce_kernels(enum ree_cpu_isa isa);

// out[r] = reduction of the n contiguous floats at rows[r] by the scheme, for n_rows <=
// REE_CPU_LANES rows. kind: REE_REDUCE_SUM, _SUM_SQ, _SUM_ABS or _PROD.
void ree_cpu_reduce_rows(const struct ree_cpu_reduce_kernels *kernels, uint32_t kind,
                         const float *const *rows, uint32_t n_rows, uint32_t n, float *out);

// Adds a chunk's result to the total of the earlier chunks (PROD: multiplies).
static inline float ree_cpu_reduce_join(uint32_t kind, float total, float chunk) {
    return kind == REE_REDUCE_PROD ? total * chunk : total + chunk;
}
static inline float ree_cpu_reduce_start(uint32_t kind) {
    return kind == REE_REDUCE_PROD ? 1.0f : 0.0f;
}
// The last step of the scheme: a sum of -0 becomes +0, and any NaN becomes the canonical one.
static inline float ree_cpu_reduce_finish(uint32_t kind, float total) {
    return ree_cpu_canonical_nan(kind == REE_REDUCE_PROD ? total : total + 0.0f);
}

// A reduction with its dimensions merged.
struct ree_cpu_reduce_plan {
    const struct ree_reduce_params *params;
    const struct ree_cpu_reduce_kernels *kernels;
    const struct ree_cpu_expr_kernels *expr;
    const char *x; // address of the operand's first element, params->offset included
    char *out;
    size_t size; // bytes per element of x
    uint32_t n_outer, n_reduce, n_chunks;
    // true for float32 sums and products: their terms are combined in chunks, in a fixed order
    bool chunked;
    bool contiguous; // the terms of an output are adjacent
    // number of dimensions of the outputs, and number of reduced dimensions; each at least 1
    uint32_t outer_rank, reduce_rank;
    uint32_t outer_dims[REE_MAX_RANK], reduce_dims[REE_MAX_RANK];
    int64_t outer_strides[REE_MAX_RANK], reduce_strides[REE_MAX_RANK];
};

// Returns the element offset of position `at` (flat) of a row-major index space.
static inline int64_t ree_cpu_reduce_offset(uint32_t rank, const uint32_t *dims,
                                            const int64_t *strides, uint32_t at) {
    int64_t offset = 0;
    for (uint32_t d = rank; d-- > 0;) {
        offset += at % dims[d] * strides[d];
        at /= dims[d];
    }
    return offset;
}

// Returns a pointer to terms [first, first + n) of the output whose first term is at `row`. They
// are contiguous: in place, or packed into `buffer`.
const void *ree_cpu_reduce_terms(const struct ree_cpu_reduce_plan *plan, const char *row,
                                 uint32_t first, uint32_t n, void *buffer);

// The state of a reduction whose terms may be combined in any order (reduce_fold.c).
struct ree_cpu_fold {
    union {
        float f;
        int64_t i;
        uint64_t u;
    } value;
    int64_t index; // ARGMAX, ARGMIN: index of the term found; -1: none yet
};
// Sets *fold to the state before the first term, which is the result of a reduction without terms.
void ree_cpu_fold_start(uint32_t kind, uint32_t dtype, struct ree_cpu_fold *fold);
// Combines *fold with n contiguous terms; `first` is the index of the first one among the output's
// terms.
void ree_cpu_fold_terms(const struct ree_cpu_reduce_plan *plan, struct ree_cpu_fold *fold,
                        const void *terms, uint32_t first, uint32_t n);
// Combines *fold with the fold of terms that come after its own.
void ree_cpu_fold_join(const struct ree_cpu_reduce_plan *plan, struct ree_cpu_fold *fold,
                       const struct ree_cpu_fold *later);
void ree_cpu_fold_store(const struct ree_cpu_reduce_plan *plan, const struct ree_cpu_fold *fold,
                        uint32_t o);

// Returns whether ree_cpu_reduce_columns can compute the reduction: neighbouring outputs have
// neighbouring terms, so that vectors run across outputs (reduce_columns.c).
bool ree_cpu_reduce_is_columns(const struct ree_cpu_reduce_plan *plan);
enum ree_status ree_cpu_reduce_columns(const struct ree_cpu_context *ctx,
                                       const struct ree_cpu_reduce_plan *plan,
                                       struct ree_error *err);

// Computes a reduction of float64 values (float64.c).
enum ree_status ree_cpu_reduce_f64(const struct ree_cpu_context *ctx,
                                   const struct ree_cpu_reduce_plan *plan, struct ree_error *err);

#endif
