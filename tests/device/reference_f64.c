#include "reference.h"
#include "repops/scalar/ops.h"

#include <stdlib.h>

// The reduction scheme over a list of terms: chunk results first, then their total.
uint64_t reference_f64_total(enum reference_f64_kind kind, uint32_t n, const double *a,
                             const double *b) {
    bool product = kind == REFERENCE_PRODUCT;
    uint32_t n_chunks = (n + REE_CHUNK - 1) / REE_CHUNK;
    double *chunks = calloc(n_chunks + 1, sizeof *chunks);
    if (!chunks) abort();
    for (uint32_t c = 0; c < n_chunks; c++) {
        chunks[c] = product ? 1 : 0;
        for (uint32_t i = c * REE_CHUNK; i < n && i < (c + 1) * REE_CHUNK; i++)
            chunks[c] = kind == REFERENCE_DOT ? fma(a[i], b[i], chunks[c])
                        : product             ? chunks[c] * a[i]
                                              : chunks[c] + a[i];
    }
    double total = n_chunks ? chunks[0] : product;
    for (uint32_t c = 1; c < n_chunks; c++)
        total = product ? total * chunks[c] : total + chunks[c];
    free(chunks);
    return ree_double_result(product ? total : total + 0.0);
}

static double *list(uint32_t n) {
    double *terms = malloc((n + 1) * sizeof *terms);
    if (!terms) abort();
    return terms;
}

static void reduce_output(const struct ree_reduce_params *p, uint32_t n, const double *x,
                          void *out) {
    uint32_t best = 0;
    double extreme = p->kind == REE_REDUCE_MAX ? -INFINITY : INFINITY;
    double *magnitudes = list(n);
    for (uint32_t i = 0; i < n; i++)
        magnitudes[i] = fabs(x[i]);
    switch (p->kind) {
    case REE_REDUCE_SUM: *(uint64_t *)out = reference_f64_total(REFERENCE_SUM, n, x, NULL); break;
    case REE_REDUCE_PROD:
        *(uint64_t *)out = reference_f64_total(REFERENCE_PRODUCT, n, x, NULL);
        break;
    case REE_REDUCE_SUM_SQ: *(uint64_t *)out = reference_f64_total(REFERENCE_DOT, n, x, x); break;
    case REE_REDUCE_SUM_ABS:
        *(uint64_t *)out = reference_f64_total(REFERENCE_SUM, n, magnitudes, NULL);
        break;
    case REE_REDUCE_MAX:
    case REE_REDUCE_MIN:
        for (uint32_t i = 0; i < n; i++) {
            bool is_max = p->kind == REE_REDUCE_MAX, tie = x[i] == 0 && extreme == 0;
            bool first = is_max ? x[i] > extreme : x[i] < extreme;
            if (tie) first = is_max ? !signbit(x[i]) : signbit(x[i]) != 0;
            if (extreme == extreme && (x[i] != x[i] || first)) extreme = x[i];
        }
        *(uint64_t *)out = ree_double_result(extreme);
        break;
    default:
        for (uint32_t i = 1; i < n; i++) {
            double v = x[i], b = x[best];
            if (b != b) break; // the first NaN
            bool beyond = p->kind == REE_REDUCE_ARGMAX ? v > b : v < b;
            if (v != v || beyond || (p->select_last && v == b)) best = i;
        }
        *(int64_t *)out = best;
    }
    free(magnitudes);
}

void reference_reduce_f64(const struct ree_reduce_params *p, const double *x, uint64_t *out) {
    double *terms = list(p->n_reduce);
    for (uint32_t o = 0; o < p->n_outer; o++) {
        int64_t base =
            p->offset + reference_offset(p->outer_rank, p->outer_dims, p->outer_strides, o);
        for (uint32_t r = 0; r < p->n_reduce; r++)
            terms[r] =
                x[base + reference_offset(p->reduce_rank, p->reduce_dims, p->reduce_strides, r)];
        reduce_output(p, p->n_reduce, terms, &out[o]);
    }
    free(terms);
}

void reference_matmul_f64(const struct ree_matmul_params *p, const double *a, const double *b,
                          uint64_t *out) {
    double *row = list(p->k), *column = list(p->k);
    for (uint64_t o = 0; o < (uint64_t)p->n_batch * p->m * p->n; o++) {
        uint64_t batch = o / p->n / p->m;
        int64_t i = (int64_t)(o / p->n % p->m), j = (int64_t)(o % p->n);
        int64_t at = p->a_offset + i * p->a_stride_m +
                     reference_offset(p->batch_rank, p->batch_dims, p->a_batch_strides, batch);
        int64_t bt = p->b_offset + j * p->b_stride_n +
                     reference_offset(p->batch_rank, p->batch_dims, p->b_batch_strides, batch);
        for (uint32_t l = 0; l < p->k; l++) {
            row[l] = a[at + (int64_t)l * p->a_stride_k];
            column[l] = b[bt + (int64_t)l * p->b_stride_k];
        }
        out[o] = reference_f64_total(REFERENCE_DOT, p->k, row, column);
    }
    free(row);
    free(column);
}

void reference_scan_f64(const struct ree_scan_params *p, const double *x, uint64_t *out) {
    enum reference_f64_kind kind = p->product ? REFERENCE_PRODUCT : REFERENCE_SUM;
    double *terms = list(p->k);
    for (uint64_t vector = 0; vector < (uint64_t)p->outer * p->inner; vector++) {
        uint64_t base = vector / p->inner * p->k * p->inner + vector % p->inner;
        for (uint32_t j = 0; j < p->k; j++) {
            uint64_t at = base + (uint64_t)(p->reverse ? p->k - 1 - j : j) * p->inner;
            terms[j] = x[at];
            out[at] = reference_f64_total(kind, p->exclusive ? j : j + 1, terms, NULL);
        }
    }
    free(terms);
}
