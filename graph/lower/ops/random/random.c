// RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial.
#include "graph/lower/ops/random/random.h"

#include <string.h>

// The generator

// Returns the key of the generator: the bits of the seed attribute. Without a seed, it is a hash of
// the name of the node's first output, which is unique in its graph and the same each time the
// model is loaded.
static uint64_t key_of(struct ree_lower *lower) {
    const struct ree_node *node = lower->node;
    const struct ree_attr *seed = ree_node_attr(node, "seed");
    if (seed) {
        // Dropout's seed is an integer.
        float value =
            seed->kind == REE_ATTR_INT ? (float)seed->i : ree_rule_float(lower, "seed", 0);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    uint64_t hash = 0xCBF29CE484222325; // FNV-1a
    for (const char *name = ree_node_random_name(node); name && *name; name++)
        hash = (hash ^ (uint8_t)*name) * 0x100000001B3;
    return hash;
}

// Adds 64 random bits per element, determined by the key and the element's index in the result.
static int bits64(struct ree_expr_builder *b) {
    int64_t strides[REE_MAX_RANK], stride = 1;
    for (uint32_t i = b->expr.rank; i-- > 0;) {
        strides[i] = stride;
        stride *= b->expr.dims[i];
    }
    int number = ree_expr_iota(b, REE_I64, 0, strides);
    int key = ree_expr_i64(b, (int64_t)key_of(b->lower));
    return ree_expr_op2(b, REE_MAP_philox_b64, number, key);
}

// Adds the upper 24 bits of 32-bit word 0 or 1 of the random bits, as an integer.
static int bits24(struct ree_expr_builder *b, int word) {
    int value = bits64(b);
    if (word) value = ree_expr_op2(b, REE_MAP_shr_b64, value, ree_expr_i64(b, 32));
    value = ree_expr_op1(b, REE_MAP_i64_to_i32, value);
    return ree_expr_op2(b, REE_MAP_shr_b32, value, ree_expr_i32(b, 8));
}

// Adds value / 2^24, which is exact, as value is an integer up to 2^24.
static int fraction(struct ree_expr_builder *b, int value) {
    value = ree_expr_op1(b, REE_MAP_u32_to_f32, value);
    return ree_expr_op2(b, REE_MAP_mul_f32, value, ree_expr_f32(b, 0x1p-24f));
}

int ree_random_uniform(struct ree_expr_builder *b) {
    return fraction(b, bits24(b, 0));
}

// Adds a normally distributed number, as Box and Muller do: sqrt(-2 log u) cos(2 pi v), with u in
// (0, 1] and v in [0, 1).
int ree_random_normal(struct ree_expr_builder *b) {
    int u = fraction(b, ree_expr_op2(b, REE_MAP_add_i32, bits24(b, 0), ree_expr_i32(b, 1)));
    int v = fraction(b, bits24(b, 1));
    int square = ree_expr_op1(b, REE_MAP_log_f32, u);
    square = ree_expr_op2(b, REE_MAP_mul_f32, ree_expr_f32(b, -2), square);
    int angle = ree_expr_op2(b, REE_MAP_mul_f32, ree_expr_f32(b, 0x1.921fb6p+2f), v);
    return ree_expr_op2(b, REE_MAP_mul_f32, ree_expr_op1(b, REE_MAP_sqrt_f32, square),
                        ree_expr_op1(b, REE_MAP_cos_f32, angle));
}

// Fields of random numbers

static bool is_float(int64_t dtype) {
    return dtype == REE_F32 || dtype == REE_F16 || dtype == REE_BF16 || dtype == REE_F64;
}

// Makes offset + scale * number, rounded to the type that the attribute dtype gives.
static enum ree_status field(struct ree_lower *lower, int (*number)(struct ree_expr_builder *),
                             float offset, float scale, int64_t dtype, uint32_t rank,
                             const int64_t *dims, struct ree_view **out) {
    if (!is_float(dtype))
        return ree_lower_fail(lower, REE_INVALID, "dtype is %lld, expected a floating-point type",
                              (long long)dtype);
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    int value = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_f32(&b, scale), number(&b));
    value = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_f32(&b, offset), value);
    REE_TRY(ree_lower_map(&b, value, REE_F32, out));
    if (dtype == REE_F32) return REE_OK;
    return ree_lower_cast(lower, *out, (enum ree_dtype)dtype, out);
}

static enum ree_status uniform(struct ree_lower *lower, int64_t dtype, uint32_t rank,
                               const int64_t *dims, struct ree_view **out) {
    float low = ree_rule_float(lower, "low", 0);
    float high = ree_rule_float(lower, "high", 1), width = high - low;
    return field(lower, ree_random_uniform, low, width, dtype, rank, dims, out);
}

static enum ree_status normal(struct ree_lower *lower, int64_t dtype, uint32_t rank,
                              const int64_t *dims, struct ree_view **out) {
    float mean = ree_rule_float(lower, "mean", 0);
    float scale = ree_rule_float(lower, "scale", 1);
    return field(lower, ree_random_normal, mean, scale, dtype, rank, dims, out);
}

static enum ree_status read_shape(struct ree_lower *lower, const int64_t **dims, size_t *rank) {
    *dims = ree_rule_ints(lower, "shape", rank);
    if (!ree_node_attr(lower->node, "shape"))
        return ree_lower_fail(lower, REE_INVALID, "attribute 'shape' is missing");
    if (*rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "shape has %zu entries; at most %d are "
                              "supported",
                              *rank, REE_MAX_RANK);
    return REE_OK;
}

typedef enum ree_status (*distribution)(struct ree_lower *lower, int64_t dtype, uint32_t rank,
                                        const int64_t *dims, struct ree_view **out);

static enum ree_status of_shape(struct ree_lower *lower, distribution draw, struct ree_view **out) {
    const int64_t *dims;
    size_t rank;
    REE_TRY(read_shape(lower, &dims, &rank));
    return draw(lower, ree_rule_int(lower, "dtype", REE_F32), (uint32_t)rank, dims, out);
}

// The default type is the input's type if that is a float type, else float32.
static enum ree_status like(struct ree_lower *lower, distribution draw, const struct ree_view *t,
                            struct ree_view **out) {
    int64_t own = is_float(t->dtype) ? (int64_t)t->dtype : REE_F32;
    return draw(lower, ree_rule_int(lower, "dtype", own), t->rank, t->dims, out);
}

enum ree_status ree_lower_op_random_uniform(struct ree_lower *lower, struct ree_view *const *in,
                                            struct ree_view **out) {
    (void)in;
    return of_shape(lower, uniform, &out[0]);
}

enum ree_status ree_lower_op_random_normal(struct ree_lower *lower, struct ree_view *const *in,
                                           struct ree_view **out) {
    (void)in;
    return of_shape(lower, normal, &out[0]);
}

enum ree_status ree_lower_op_random_uniform_like(struct ree_lower *lower,
                                                 struct ree_view *const *in,
                                                 struct ree_view **out) {
    return like(lower, uniform, in[0], &out[0]);
}

enum ree_status ree_lower_op_random_normal_like(struct ree_lower *lower, struct ree_view *const *in,
                                                struct ree_view **out) {
    return like(lower, normal, in[0], &out[0]);
}

// Choices

// Converts an input of any float type to float32.
static enum ree_status as_float32(struct ree_lower *lower, struct ree_view *t,
                                  struct ree_view **out) {
    if (!is_float(t->dtype)) return ree_rule_unsupported(lower, t->dtype);
    *out = t;
    return t->dtype == REE_F32 ? REE_OK : ree_lower_cast(lower, t, REE_F32, out);
}

// Bernoulli: u < p, for a uniform random number u per element.
enum ree_status ree_lower_op_bernoulli(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    int64_t dtype = ree_rule_int(lower, "dtype", in[0]->dtype);
    struct ree_view *p;
    REE_TRY(as_float32(lower, in[0], &p));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, p->rank, p->dims);
    int one = ree_expr_op2(&b, REE_MAP_lt_f32, ree_random_uniform(&b), ree_expr_tensor(&b, p));
    REE_TRY(ree_lower_map(&b, one, REE_BOOL, &out[0]));
    if (dtype == REE_BOOL) return REE_OK;
    return ree_lower_cast(lower, out[0], (enum ree_dtype)dtype, &out[0]);
}

// Computes running sums of exp(x - max x) along the last axis of x (batch, classes).
static enum ree_status running_weights(struct ree_lower *lower, struct ree_view *x,
                                       struct ree_view **out) {
    struct ree_view *top, *operands[2];
    REE_TRY(ree_lower_reduce(lower, x, REE_REDUCE_MAX, 1u << 1, true, false, &top));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, x->dims);
    int value = ree_expr_tensor(&b, x);
    value = ree_expr_op2(&b, REE_MAP_sub_f32, value, ree_expr_tensor(&b, top));
    REE_TRY(ree_lower_map(&b, ree_expr_op1(&b, REE_MAP_exp_f32, value), REE_F32, &operands[0]));
    REE_TRY(ree_lower_new(lower, REE_F32, 2, x->dims, out));
    operands[1] = *out;
    union ree_params params = {.scan = {.dtype = REE_F32,
                                        .outer = (uint32_t)x->dims[0],
                                        .k = (uint32_t)x->dims[1],
                                        .inner = 1}};
    return ree_lower_emit(lower, REE_REPOP_SCAN, &params, operands, 2, 1);
}

// Multinomial, with a uniform random number u per sample: the class is the number of running sums
// that are <= u * (the last running sum), at most the last class.
enum ree_status ree_lower_op_multinomial(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    int64_t dtype = ree_rule_int(lower, "dtype", REE_I32);
    int64_t n = ree_rule_int(lower, "sample_size", 1);
    struct ree_view *x, *sums, *total, *drawn, *reached;
    REE_TRY(ree_rule_require_rank(lower, in[0], "input", 2, 2));
    REE_TRY(as_float32(lower, in[0], &x));
    int64_t batch = x->dims[0], classes = x->dims[1];
    if (dtype != REE_I32 && dtype != REE_I64)
        return ree_lower_fail(lower, REE_INVALID, "dtype is %lld, expected 6 (int32) or 7 (int64)",
                              (long long)dtype);
    if (n < 1 || classes < 1)
        return ree_lower_fail(lower, REE_INVALID,
                              "%lld samples of %lld classes, expected at least one of each",
                              (long long)n, (long long)classes);
    REE_TRY(running_weights(lower, x, &sums));
    REE_TRY(ree_lower_slice(lower, sums, 1, classes - 1, 1, 1, &total));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, (int64_t[]){batch, n});
    int value = ree_random_uniform(&b);
    value = ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_tensor(&b, total));
    REE_TRY(ree_lower_map(&b, value, REE_F32, &drawn));

    REE_TRY(ree_lower_reshape(lower, drawn, 3, (int64_t[]){batch, n, 1}, &drawn));
    REE_TRY(ree_lower_reshape(lower, sums, 3, (int64_t[]){batch, 1, classes}, &sums));
    ree_expr_init(&b, lower, 3, (int64_t[]){batch, n, classes});
    value = ree_expr_op2(&b, REE_MAP_le_f32, ree_expr_tensor(&b, sums), ree_expr_tensor(&b, drawn));
    REE_TRY(ree_lower_map(&b, value, REE_I32, &reached));
    REE_TRY(ree_lower_reduce(lower, reached, REE_REDUCE_SUM, 1u << 2, false, false, &reached));
    ree_expr_init(&b, lower, 2, reached->dims);
    value = ree_expr_op2(&b, REE_MAP_min_i32, ree_expr_tensor(&b, reached),
                         ree_expr_i32(&b, (int32_t)(classes - 1)));
    value = ree_expr_cast(&b, value, REE_I32, (enum ree_dtype)dtype);
    return ree_lower_map(&b, value, (enum ree_dtype)dtype, &out[0]);
}
