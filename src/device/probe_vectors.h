// Test vectors for a device's arithmetic, run before the device is used. They cover each binary32
// primitive in which devices are known to deviate. The expected results come from the scalar source
// compiled as C. A few thousand vectors are no proof, but they expose all known kinds of deviation:
// subnormals flushed on input or output, fma with two roundings, division by reciprocal,
// float(int(x)) folded. Used by src/device/vulkan/probe.c and src/device/cuda/probe.c.
#ifndef REE_DEVICE_PROBE_VECTORS_H
#define REE_DEVICE_PROBE_VECTORS_H

#include "base/status.h"

// The operations that the vectors test. shaders/probe.comp and cuda/probe.cu use the same order.
enum ree_probe_operation {
    REE_PROBE_ADD,
    REE_PROBE_SUB,
    REE_PROBE_MUL,
    REE_PROBE_DIV,
    REE_PROBE_SQRT,
    REE_PROBE_FMA,
    REE_PROBE_INT_TO_FLOAT,
    REE_PROBE_UINT_TO_FLOAT,
    REE_PROBE_FLOAT_TO_INT,
    REE_PROBE_FLOAT_TO_UINT,
    REE_PROBE_INT_AND_BACK, // float(int(x)): folding it to trunc(x) turns +0 into -0
    REE_PROBE_MIN,
    REE_PROBE_MAX,
    REE_PROBE_EQUAL,
    REE_PROBE_LESS,
    REE_PROBE_LESS_EQUAL,
    REE_PROBE_FLOOR,
    REE_PROBE_CEIL,
    REE_PROBE_TRUNC,
    REE_PROBE_ROUND_EVEN,
    REE_PROBE_N_OPERATIONS
};

// A group of operations that gets one verdict, because a device computes all or none of them
// correctly.
struct ree_probe_primitive {
    const char *name;  // "fma"
    uint32_t first, n; // the operations [first, first + n) that it consists of
};
#define REE_PROBE_N_PRIMITIVES 10
extern const struct ree_probe_primitive ree_probe_primitives[REE_PROBE_N_PRIMITIVES];

// Returns the index in primitives[n] of the primitive called `name`, or -1 if there is none.
int ree_probe_find(const struct ree_probe_primitive *primitives, uint32_t n, const char *name);

// One vector: the operation and the bits of its arguments. The device reads these four words.
struct ree_probe_vector {
    uint32_t operation, a, b, c;
};

struct ree_probe_vectors {
    struct ree_probe_vector *list; // [n], ordered by operation
    uint32_t *expected;            // [n]: result bits; NaNs canonical
    uint32_t n;
    uint64_t random; // state of the random generator
};

enum ree_status ree_probe_vectors_init(struct ree_probe_vectors *vectors, struct ree_error *err);
void ree_probe_vectors_finish(struct ree_probe_vectors *vectors);

struct ree_probe_count {
    uint32_t n_vectors, n_wrong;
    uint32_t example[5]; // the first wrong vector: a, b, c, device's result, expected result
};
// Counts wrong results among the vectors of one primitive within [begin, begin + n). results[i] is
// the device's result for vector i. If a float NaN is expected, any NaN is accepted.
struct ree_probe_count ree_probe_judge(const struct ree_probe_vectors *vectors,
                                       const uint32_t *results, uint32_t begin, uint32_t n,
                                       const struct ree_probe_primitive *primitive);

#endif
