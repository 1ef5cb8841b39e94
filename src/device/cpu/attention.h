// The steps of attention over one block of queries, for the drivers in attention.c.
//
// A unit is some neighbouring queries of some neighbouring heads that share a head of keys, and
// whose sums run over the same keys: its rows. What a step makes of one chunk of REE_CHUNK keys
// stands by itself, so that chunks may be different threads' work:
//
//     scores    t = masked scores of the chunk, and their maxima
//     weights   e = exp(t - m) in place of t, and their sums; m is the row's maximum
//     values    w = e / z in place of e, and the chunk-dot of w and v
//
// The scores lie chunk by chunk, (rows, keys of the chunk), so that every step's loops run over
// memory that the one before has just left in a cache.
#ifndef REE_DEVICE_CPU_ATTENTION_H
#define REE_DEVICE_CPU_ATTENTION_H

#include "device/cpu/factor.h"
#include "device/cpu/softmax.h"

// Up to this many rows go along keys and values as they lie in memory; more are worth packing.
#define REE_ATTEND_STREAM_ROWS 16

struct ree_attend {
    const struct ree_attention_params *p;
    const struct ree_tiles *tiles;
    const struct ree_cpu_expr_kernels *expr;
    const struct ree_cpu_reduce_kernels *reduce;
    const float *q;
    const char *k, *v;
    const void *starts, *n_keys; // the optional operands, NULL where they are not there
    const uint8_t *allowed;
    const float *bias, *sink;
    float *out;
    bool k_adjacent, v_adjacent; // the elements of a row
};

// Queries with the same keys, of every batch and head.
struct ree_attend_queries {
    uint32_t first, count;
    uint32_t key, n_keys; // key is a multiple of REE_CHUNK
};

struct ree_attend_unit {
    uint32_t batch, kv_head;
    uint32_t head, n_heads;
    struct ree_attend_queries queries;
    uint32_t n_rows;   // n_heads * queries.count; row r is query r % count of head r / count
    uint32_t n_chunks; // of keys
    // For row i of the unit:
    float *q;                 // dense (n_rows, head_dim)
    float *packed_q;          // for each chunk of head_dim, for each panel of rows: (terms, rows)
    float *scores;            // for each chunk: (n_rows, keys of the chunk, rounded up)
    float *max, *sum;         // (n_chunks, n_rows)
    float *row_max, *row_sum; // m and z
    float *y;                 // (n_rows, v_head_dim), or such for each chunk
};

// Floats of memory of a unit of at most n_rows rows and n_keys keys; n_y: how many y.
size_t ree_attend_unit_floats(const struct ree_attend *a, uint32_t n_rows, uint32_t n_keys,
                              uint32_t n_y);
// Cuts `memory` up, after the numbers were filled in, and reads the queries.
void ree_attend_begin(const struct ree_attend *a, struct ree_attend_unit *u, uint32_t n_y,
                      float *memory);
// Memory of a thread for the steps below, in units of at most n_rows rows.
size_t ree_attend_work_floats(const struct ree_attend *a, uint32_t n_rows);

void ree_attend_scores(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                       float *work);
void ree_attend_join_max(const struct ree_attend *a, const struct ree_attend_unit *u);
void ree_attend_weights(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                        uint32_t n_chunks, float *work);
void ree_attend_join_sums(const struct ree_attend *a, const struct ree_attend_unit *u);
// Adds to y, or, of the first chunk, begins it. `alone`: y is the chunk's own.
void ree_attend_values(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                       bool alone, float *y, float *work);
void ree_attend_add(const struct ree_attend *a, const struct ree_attend_unit *u, const float *from,
                    float *y);
void ree_attend_store(const struct ree_attend *a, const struct ree_attend_unit *u);

#endif
