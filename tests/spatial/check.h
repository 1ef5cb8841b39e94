// Shared by these tests: random numbers, and comparing a node's output with a reference.
#ifndef REE_TESTS_SPATIAL_CHECK_H
#define REE_TESTS_SPATIAL_CHECK_H

#include "lower/node.h"
#include "test.h"
#include "splitmix.h"

#include <math.h>
#include <string.h>

// Returns a number in [low, high].
static inline int64_t pick(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(splitmix_step(state) >> 33) % (high - low + 1);
}

// Compares output i as float32 with the reference: the same shape, and differences within
// `tolerance` times the reference's largest magnitude, or times 1 (the magnitude of the inputs) if
// that is larger. The tolerance allows for float32 sums of a few hundred terms.
static inline void check_close(struct test_node *n, uint32_t i, uint32_t rank, const int64_t *dims,
                               const double *want, double tolerance) {
    const struct ree_view *t = n->out[i];
    REQUIRE(t != NULL);
    bool same = t->dtype == REE_F32 && t->rank == rank;
    for (uint32_t d = 0; same && d < rank; d++)
        same = t->dims[d] == dims[d];
    char text[128];
    CHECK_MSG(same, "%s gives %s", n->node.op_type, ree_view_text(t, text, sizeof text));
    if (!same) return;
    const float *got = test_node_output(n, i);
    int64_t count = ree_view_count(t);
    double largest = 1;
    for (int64_t k = 0; k < count; k++)
        if (fabs(want[k]) > largest) largest = fabs(want[k]);
    for (int64_t k = 0; k < count; k++) {
        bool close = fabs((double)got[k] - want[k]) <= tolerance * largest;
        CHECK_MSG(close, "%s of %s: element %lld is %.9g, expected %.9g", n->node.op_type,
                  ree_view_text(t, text, sizeof text), (long long)k, (double)got[k], want[k]);
        if (!close) return;
    }
}

// Stores output 0 of a fused run and compares the next run's bytes with it.
struct earlier_run {
    bool has;
    size_t nbytes;
    unsigned char bytes[1 << 16];
};
static inline void check_same_bytes(struct test_node *n, struct earlier_run *earlier) {
    size_t nbytes = (size_t)ree_view_count(n->out[0]) * ree_dtype_size(n->out[0]->dtype);
    REQUIRE(nbytes <= sizeof earlier->bytes);
    const void *bytes = test_node_output(n, 0);
    if (earlier->has)
        CHECK_MSG(nbytes == earlier->nbytes && !memcmp(bytes, earlier->bytes, nbytes),
                  "%s: fused and single steps differ", n->node.op_type);
    memcpy(earlier->bytes, bytes, nbytes);
    earlier->nbytes = nbytes;
    earlier->has = true;
}

#endif
