// The operator table: the rows from ops.def, found by name through a hash table that is built at
// first use.
#include "graph/lower/ops/rules.h"

#include <pthread.h>
#include <string.h>

static const struct ree_op rows[] = {
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    {domain, type, since, until, min_in, max_in, max_out, REE_NARROW_##narrow, rule},
#include "graph/lower/ops/ops.def"
#undef OP
};

// The message if the node's opset is outside the row's range; indexed like `rows`.
static const char *const ranges[] = {
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    "implemented for opsets " #since " to " #until " only",
#include "graph/lower/ops/ops.def"
#undef OP
};

#define N_ROWS (sizeof rows / sizeof rows[0])
#define N_BUCKETS 1024
#define NONE UINT16_MAX
_Static_assert(N_ROWS < NONE && N_ROWS < N_BUCKETS,
               "the operator table is larger than its hash table");

static uint16_t heads[N_BUCKETS], nexts[N_ROWS]; // chains of row numbers, in the table's order
static pthread_once_t once = PTHREAD_ONCE_INIT;

// FNV-1a over both names and the zero byte between them.
static uint32_t bucket_of(const char *domain, const char *type) {
    uint32_t h = 2166136261u;
    for (; *domain; domain++)
        h = (h ^ (uint8_t)*domain) * 16777619u;
    h *= 16777619u;
    for (; *type; type++)
        h = (h ^ (uint8_t)*type) * 16777619u;
    return (h ^ h >> 16) % N_BUCKETS;
}

static void build_index(void) {
    for (size_t i = 0; i < N_BUCKETS; i++)
        heads[i] = NONE;
    for (size_t i = N_ROWS; i-- > 0;) {
        uint32_t bucket = bucket_of(rows[i].domain, rows[i].op_type);
        nexts[i] = heads[bucket];
        heads[bucket] = (uint16_t)i;
    }
}

const struct ree_op *ree_op_find(const char *domain, const char *op_type, int64_t opset,
                                 const char **out_reason) {
    pthread_once(&once, build_index);
    const char *reason = "not implemented";
    for (uint16_t i = heads[bucket_of(domain, op_type)]; i != NONE; i = nexts[i]) {
        const struct ree_op *row = &rows[i];
        if (strcmp(row->op_type, op_type) || strcmp(row->domain, domain)) continue;
        if (opset >= row->since && opset <= row->until) return row;
        reason = ranges[i];
    }
    if (out_reason) *out_reason = reason;
    return NULL;
}
