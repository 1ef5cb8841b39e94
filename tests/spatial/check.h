// Shared by the tests of operators on images, geometry and signals: random integers, and
// comparisons of a node's outputs with a reference or with an earlier run.
#ifndef REE_TESTS_SPATIAL_CHECK_H
#define REE_TESTS_SPATIAL_CHECK_H

#include "lower/node.h"
#include "test.h"
#include "splitmix.h"

#include <math.h>
#include <string.h>

// Returns a random integer in [low, high]. state: state of the random generator.
static inline int64_t pick(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(splitmix_step(state) >> 33) % (high - low + 1);
}

// Checks that output i is float32 and has the shape `dims`, and that its elements differ from the
// reference `want` by at most `tolerance` times the largest magnitude in `want`, or times 1 (the
// magnitude of the inputs) if that is larger. The tolerance is for the rounding errors of float32,
// each up to 2^-24 of a result. The inputs and the bits of the outputs are the same everywhere. So
// most callers set it to about three times the largest error that they measured, and name that
// error; the others derive it.
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

// Output 0 of the latest run that was passed to check_same_bytes. Must be zeroed before the first.
struct earlier_run {
    bool has;
    size_t nbytes;
    unsigned char bytes[1 << 16];
};
// Checks that output 0 has the same bytes as that of the earlier run, if there is one, and stores
// it. Tests call it for a run with fusion and then for one without.
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
