#include "device/probe_vectors.h"

#include "base/memory.h"
#include "repops/scalar/ops.h"

#include <stdlib.h>
#include <string.h>

const struct ree_probe_primitive ree_probe_primitives[REE_PROBE_N_PRIMITIVES] = {
    {"add", REE_PROBE_ADD, 2},
    {"mul", REE_PROBE_MUL, 1},
    {"div", REE_PROBE_DIV, 1},
    {"sqrt", REE_PROBE_SQRT, 1},
    {"fma", REE_PROBE_FMA, 1},
    {"int to float", REE_PROBE_INT_TO_FLOAT, 2},
    {"float to int", REE_PROBE_FLOAT_TO_INT, 3},
    {"min, max", REE_PROBE_MIN, 2},
    {"compare", REE_PROBE_EQUAL, 3},
    {"round", REE_PROBE_FLOOR, 4},
};

int ree_probe_find(const struct ree_probe_primitive *primitives, uint32_t n, const char *name) {
    for (uint32_t p = 0; p < n; p++)
        if (strcmp(primitives[p].name, name) == 0) return (int)p;
    return -1;
}

#define N_RANDOM 1024 // random vectors per operation, in addition to the special ones
#define N_SPECIAL 24
#define MAX_VECTORS (REE_PROBE_N_OPERATIONS * (N_RANDOM + N_SPECIAL * N_SPECIAL))

static uint32_t random_bits(struct ree_probe_vectors *v) {
    v->random = v->random * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = v->random ^ v->random >> 33;
    return (uint32_t)(x * 0xFF51AFD7ED558CCDu >> 32);
}

static uint32_t compute(const struct ree_probe_vector *v) {
    uint32_t a = v->a, b = v->b;
    switch ((enum ree_probe_operation)v->operation) {
    case REE_PROBE_ADD: return ree_op_add_f32(a, b);
    case REE_PROBE_SUB: return ree_op_sub_f32(a, b);
    case REE_PROBE_MUL: return ree_op_mul_f32(a, b);
    case REE_PROBE_DIV: return ree_op_div_f32(a, b);
    case REE_PROBE_SQRT: return ree_op_sqrt_f32(a);
    case REE_PROBE_FMA: return ree_op_fma_f32(a, b, v->c);
    case REE_PROBE_INT_TO_FLOAT: return ree_op_i32_to_f32(a);
    case REE_PROBE_UINT_TO_FLOAT: return ree_op_u32_to_f32(a);
    case REE_PROBE_FLOAT_TO_INT: return ree_soft_f32_to_i32(a);
    case REE_PROBE_FLOAT_TO_UINT: return ree_soft_f32_to_u32(a);
    case REE_PROBE_INT_AND_BACK: return ree_op_i32_to_f32(ree_soft_f32_to_i32(a));
    case REE_PROBE_MIN: return ree_op_min_f32(a, b);
    case REE_PROBE_MAX: return ree_op_max_f32(a, b);
    case REE_PROBE_EQUAL: return ree_op_eq_f32(a, b);
    case REE_PROBE_LESS: return ree_op_lt_f32(a, b);
    case REE_PROBE_LESS_EQUAL: return ree_op_le_f32(a, b);
    case REE_PROBE_FLOOR: return ree_op_floor_f32(a);
    case REE_PROBE_CEIL: return ree_op_ceil_f32(a);
    case REE_PROBE_TRUNC: return ree_op_trunc_f32(a);
    case REE_PROBE_ROUND_EVEN: return ree_op_round_f32(a);
    case REE_PROBE_N_OPERATIONS: break;
    }
    return 0;
}

// Returns whether shaders define the operation for argument a. Conversions of values out of range
// are undefined.
static bool is_defined(uint32_t operation, uint32_t a) {
    float x = ree_float(a);
    if (operation == REE_PROBE_FLOAT_TO_UINT) return x > -1 && x < 4294967296.0f;
    if (operation == REE_PROBE_FLOAT_TO_INT || operation == REE_PROBE_INT_AND_BACK)
        return x > -2147483648.0f && x < 2147483648.0f;
    return true;
}

static void add(struct ree_probe_vectors *v, uint32_t operation, uint32_t a, uint32_t b,
                uint32_t c) {
    if (v->n == MAX_VECTORS || !is_defined(operation, a)) return;
    v->list[v->n] = (struct ree_probe_vector){operation, a, b, c};
    v->expected[v->n] = compute(&v->list[v->n]);
    v->n++;
}

// Returns a number with a biased exponent within `spread` of `biased`.
static uint32_t random_near(struct ree_probe_vectors *v, uint32_t biased, uint32_t spread) {
    uint32_t r = random_bits(v);
    uint32_t e = biased + random_bits(v) % (2 * spread + 1) - spread;
    return (r & 0x807FFFFFu) | (e & 255u) << 23;
}

// Adds a vector with random arguments. i % 8 selects a kind: products that nearly cancel, sums near
// midpoints, results near and below the smallest normal number, and others.
static void add_random(struct ree_probe_vectors *v, uint32_t operation, uint32_t i) {
    uint32_t a = random_near(v, 127, 3), b = random_near(v, 127, 3), c = random_near(v, 127, 28);
    switch (i % 8) {
    case 0: c = ree_bits(-(ree_float(a) * ree_float(b))); break;
    case 1: c = ree_bits(ree_float(a) * ree_float(b)) ^ (random_bits(v) & 0x80000003u); break;
    case 2: // few significant bits: exact results and ties
        a &= 0xFFFFF000u;
        b &= 0xFFFFF800u;
        break;
    case 3: // the result of a product, a quotient or a root is subnormal
        a = random_near(v, 40, 20);
        b = random_near(v, operation == REE_PROBE_DIV ? 168 : 87 - 40, 20);
        c = random_near(v, 2, 2);
        break;
    case 4: // subnormal operands
        a &= 0x807FFFFFu;
        if (i & 8) b &= 0x807FFFFFu;
        break;
    case 5: // exponents far apart
        c = random_near(v, 127, 90);
        a = random_near(v, 127, 60);
        break;
    case 6: // near overflow
        a = random_near(v, 250, 4);
        b = random_near(v, operation == REE_PROBE_MUL || operation == REE_PROBE_FMA ? 129 : 250, 4);
        c = random_near(v, 250, 4);
        break;
    default: a = random_bits(v), b = random_bits(v), c = random_bits(v); break;
    }
    if (i % 8 == 2 &&
        (operation == REE_PROBE_ADD || operation == REE_PROBE_SUB)) // exact ties of sums
        b = (a & 0x7F800000u) - (24u << 23) < 0x7F000000u ? (a & 0xFF800000u) - (24u << 23) : b;
    add(v, operation, a, b, c);
}

static void fill(struct ree_probe_vectors *v) {
    static const uint32_t special[N_SPECIAL] = {
        0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x80000001,
        0x007FFFFF, 0x00800000, 0x80800000, 0x00800001, 0x7F7FFFFF, 0xFF7FFFFF,
        0x7F800000, 0xFF800000, 0x7FC00000, 0x3F000000, 0xBF000000, 0x3F7FFFFF,
        0x3F800001, 0x4B000001, 0xCB7FFFFF, 0x3EFFFFFF, 0x4EFFFFFF, 0x40490FDB,
    };
    v->random = 1;
    for (uint32_t operation = 0; operation < REE_PROBE_N_OPERATIONS; operation++) {
        bool unary = operation == REE_PROBE_SQRT || operation >= REE_PROBE_FLOOR ||
                     (operation >= REE_PROBE_INT_TO_FLOAT && operation <= REE_PROBE_INT_AND_BACK);
        for (uint32_t i = 0; i < N_SPECIAL; i++)
            for (uint32_t j = 0; j < (unary ? 1 : N_SPECIAL); j++)
                add(v, operation, special[i], special[j], special[(i + 5 * j) % N_SPECIAL]);
        for (uint32_t i = 0; i < N_RANDOM; i++)
            add_random(v, operation, i);
    }
}

enum ree_status ree_probe_vectors_init(struct ree_probe_vectors *vectors, struct ree_error *err) {
    *vectors = (struct ree_probe_vectors){
        .list = ree_alloc(MAX_VECTORS * sizeof *vectors->list),
        .expected = ree_alloc(MAX_VECTORS * sizeof *vectors->expected),
    };
    if (vectors->list && vectors->expected) {
        fill(vectors);
        return REE_OK;
    }
    ree_probe_vectors_finish(vectors);
    return ree_fail(err, REE_NO_MEMORY, "no memory for the probe");
}

void ree_probe_vectors_finish(struct ree_probe_vectors *vectors) {
    ree_free(vectors->list);
    ree_free(vectors->expected);
    *vectors = (struct ree_probe_vectors){0};
}

struct ree_probe_count ree_probe_judge(const struct ree_probe_vectors *vectors,
                                       const uint32_t *results, uint32_t begin, uint32_t n,
                                       const struct ree_probe_primitive *primitive) {
    struct ree_probe_count count = {0};
    for (uint32_t i = begin; i < begin + n; i++) {
        const struct ree_probe_vector *v = &vectors->list[i];
        if (v->operation - primitive->first >= primitive->n) continue;
        count.n_vectors++;
        bool integer =
            v->operation == REE_PROBE_FLOAT_TO_INT || v->operation == REE_PROBE_FLOAT_TO_UINT;
        uint32_t got = integer ? results[i] : ree_canon(results[i]);
        if (got == vectors->expected[i] || count.n_wrong++ > 0) continue;
        const uint32_t example[5] = {v->a, v->b, v->c, got, vectors->expected[i]};
        memcpy(count.example, example, sizeof example);
    }
    return count;
}
