// The steps of attention for one unit of work; attention.c distributes units and steps over
// threads.
//
// A unit is a set of rows: neighbouring queries of neighbouring heads that share a kv head and see
// the same keys. Each step handles one chunk of REE_CHUNK keys independently of the other chunks,
// so different threads may process different chunks:
//
//     scores    t = masked scores of the chunk, and their maxima
//     weights   e = exp(t - m) replaces t, and their sums; m is the row's maximum
//     values    w = e / z replaces e, and the chunk-dot of w and v; z is the row's sum of e
//
// Scores are stored chunk by chunk, (rows, keys of the chunk), so every step loops over memory that
// the previous step has just left in a cache.
#ifndef REE_DEVICE_CPU_ATTENTION_H
#define REE_DEVICE_CPU_ATTENTION_H

#include "device/cpu/operand.h"
#include "device/cpu/softmax.h"

// Units with at most this many rows read keys and values directly from memory; for more rows
// packing them pays off.
#define REE_ATTEND_STREAM_ROWS 16

struct ree_attend {
    const struct ree_attention_params *p;
    const struct ree_tiles *tiles;
    const struct ree_cpu_expr_kernels *expr;
    const struct ree_cpu_reduce_kernels *reduce;
    const float *q;
    const char *k, *v;
    const void *starts, *n_keys; // optional operands, NULL if absent
    const uint8_t *allowed;
    const float *bias, *sink;
    const int32_t *pages; // page numbers; NULL: keys and values are not in pages
    float *out;
    bool k_adjacent, v_adjacent; // the elements of a key, of a value, are adjacent in memory
};

// A block of neighbouring queries that see the same keys. The same block is used for every batch
// and head.
struct ree_attend_queries {
    uint32_t first, count;
    uint32_t key, n_keys; // first key, a multiple of REE_CHUNK, and number of keys
};

struct ree_attend_unit {
    uint32_t batch, kv_head;
    uint32_t head, n_heads;
    struct ree_attend_queries queries;
    uint32_t n_rows;   // n_heads * queries.count; row r is query r % count of head r / count
    uint32_t n_chunks; // chunks of REE_CHUNK keys
    // Memory of the unit; row i of each matrix belongs to row i of the unit.
    float *q; // dense (n_rows, head_dim)
    // q, packed: for each chunk of head_dim, for each panel of rows, a matrix (terms, rows)
    float *packed_q;
    // for each chunk of keys, a matrix (n_rows, number of keys rounded up to 16)
    float *scores;
    float *max, *sum; // maxima and sums of each chunk: (n_chunks, n_rows)
    // (n_chunks, n_rows): end << 16 | begin; a row sees no keys of the chunk outside [begin, end)
    ree_any_u32 *seen;
    // each row's maximum of the scores and sum of the unnormalised weights: (n_rows)
    float *row_max, *row_sum;
    float *y; // the results (n_rows, v_head_dim), or one matrix of this shape per chunk
};

// Returns the number of floats that a unit of at most n_rows rows and n_keys keys requires, with
// n_y matrices y.
size_t ree_attend_unit_floats(const struct ree_attend *a, uint32_t n_rows, uint32_t n_keys,
                              uint32_t n_y);
// Divides `memory` (ree_attend_unit_floats floats) among the unit's pointers and reads the queries.
// The caller must have set all other fields of the unit.
void ree_attend_begin(const struct ree_attend *a, struct ree_attend_unit *u, uint32_t n_y,
                      float *memory);
// Returns the number of floats that a thread requires as `work` in the steps below, for units of at
// most n_rows rows.
size_t ree_attend_work_floats(const struct ree_attend *a, uint32_t n_rows);

void ree_attend_scores(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                       float *work);
void ree_attend_join_max(const struct ree_attend *a, const struct ree_attend_unit *u);
void ree_attend_weights(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                        uint32_t n_chunks, float *work);
void ree_attend_join_sums(const struct ree_attend *a, const struct ree_attend_unit *u);
// Computes one chunk's values. alone: y belongs to this chunk only and is overwritten. Otherwise
// the chunk's values are added to y; chunk 0 initialises y.
void ree_attend_values(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                       bool alone, float *y, float *work);
void ree_attend_add(const struct ree_attend *a, const struct ree_attend_unit *u, const float *from,
                    float *y);
void ree_attend_store(const struct ree_attend *a, const struct ree_attend_unit *u);

#endif
