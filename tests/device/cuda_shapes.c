// Shapes beyond the size of random cases, compared between the first CUDA device and the CPU: rows
// that do not fit into shared memory, vectors of more chunks than a block has threads, outputs that
// many blocks share, top-k of a vocabulary. The same shapes are repeated as if the device had one
// multiprocessor, which needs few threads to be full. Without a GPU they run on the emulator, like
// cuda_matches_cpu.
//
// Usage: cuda_shapes [N]: only the N-th shape, counted from 0.
#include "device/cuda/cuda.h"
#include "device_cases.h"

struct shape {
    enum ree_repop op;
    uint32_t a, b, c; // sizes; their meaning depends on the RepOp
    uint32_t kind, dtype;
};

enum { WHOLE, CAUSAL, WINDOW, AFTER, BEFORE }; // kinds of attention

static const struct shape shapes[] = {
    // outer, k, inner; kind 1: logarithmic
    {REE_REPOP_SOFTMAX, 2, 50257, 1, 0, 0},
    {REE_REPOP_SOFTMAX, 1, 70004, 1, 0, 0},
    {REE_REPOP_SOFTMAX, 1, 66000, 1, 1, 0},
    {REE_REPOP_SOFTMAX, 700, 64, 1, 0, 0},
    {REE_REPOP_SOFTMAX, 300, 197, 1, 1, 0},
    {REE_REPOP_SOFTMAX, 40, 4096, 1, 0, 0},
    {REE_REPOP_SOFTMAX, 3, 1000, 40, 0, 0},
    // rows, cols; kind 1: RMS
    {REE_REPOP_NORM, 3, 30000, 0, 0, 0},
    {REE_REPOP_NORM, 1, 70001, 0, 1, 0},
    {REE_REPOP_NORM, 600, 128, 0, 0, 0},
    {REE_REPOP_NORM, 300, 768, 0, 0, 0},
    {REE_REPOP_NORM, 9, 4096, 0, 1, 0},
    // outer, reduced, inner; kind: enum ree_reduce_kind
    {REE_REPOP_REDUCE, 1, 300000, 1, REE_REDUCE_SUM, REE_F32},
    {REE_REPOP_REDUCE, 1, 300001, 1, REE_REDUCE_SUM_SQ, REE_F32},
    {REE_REPOP_REDUCE, 40, 5000, 1, REE_REDUCE_SUM_ABS, REE_F32},
    {REE_REPOP_REDUCE, 3000, 60, 1, REE_REDUCE_SUM, REE_F32},
    {REE_REPOP_REDUCE, 1, 2000, 100, REE_REDUCE_SUM, REE_F32},
    {REE_REPOP_REDUCE, 30, 300, 50, REE_REDUCE_PROD, REE_F32},
    {REE_REPOP_REDUCE, 5, 9000, 3, REE_REDUCE_SUM, REE_F64},
    {REE_REPOP_REDUCE, 2, 128256, 1, REE_REDUCE_ARGMAX, REE_F32},
    {REE_REPOP_REDUCE, 1, 300000, 1, REE_REDUCE_MAX, REE_F32},
    {REE_REPOP_REDUCE, 1, 300000, 1, REE_REDUCE_MIN, REE_I8},
    {REE_REPOP_REDUCE, 3, 50000, 1, REE_REDUCE_ARGMIN, REE_F64},
    {REE_REPOP_REDUCE, 1, 3000, 64, REE_REDUCE_SUM, REE_I64},
    {REE_REPOP_REDUCE, 1100, 600, 1, REE_REDUCE_SUM, REE_F32},
    {REE_REPOP_REDUCE, 2, 600, 600, REE_REDUCE_SUM_SQ, REE_F32},
    {REE_REPOP_REDUCE, 1, 600, 1100, REE_REDUCE_SUM, REE_F64},
    // outer, k, inner; kind 1: product
    {REE_REPOP_SCAN, 1, 200000, 1, 0, REE_F32},
    {REE_REPOP_SCAN, 2, 5000, 3, 0, REE_F64},
    {REE_REPOP_SCAN, 500, 600, 1, 0, REE_I64},
    {REE_REPOP_SCAN, 300, 600, 1, 0, REE_F32},
    {REE_REPOP_SCAN, 4, 600, 80, 0, REE_F32},
    // outer, n, inner; kind: k
    {REE_REPOP_TOPK, 2, 50000, 1, 50, REE_F32},
    {REE_REPOP_TOPK, 1, 50257, 1, 2048, REE_F32},
    {REE_REPOP_TOPK, 1, 3000, 1, 3000, REE_F32},
    {REE_REPOP_TOPK, 1, 2500, 2, 2100, REE_I64},
    {REE_REPOP_TOPK, 1, 40000, 1, 300, REE_U8}, // almost all values are ties
    {REE_REPOP_TOPK, 2, 9000, 1, 1, REE_F64},
    {REE_REPOP_TOPK, 1000, 64, 1, 8, REE_F32},
    // elements of data, steps, vectors
    {REE_REPOP_SCATTER, 50, 3000, 20, REE_SCATTER_ADD, REE_F32},
    {REE_REPOP_SCATTER, 1000, 20000, 1, REE_SCATTER_MUL, REE_F32},
    {REE_REPOP_SCATTER, 300, 5000, 8, REE_SCATTER_SET, REE_F32},
    {REE_REPOP_SCATTER, 7, 3000, 5, REE_SCATTER_MAX, REE_U8},
    // queries, keys, elements; kind: the keys that each query attends to
    {REE_REPOP_ATTENTION, 130, 130, 64, WHOLE, 0},
    {REE_REPOP_ATTENTION, 70, 600, 40, CAUSAL, 0},
    {REE_REPOP_ATTENTION, 100, 580, 33, WINDOW, 0}, // tiles whose rows have different chunks
    {REE_REPOP_ATTENTION, 40, 520, 80, AFTER, 0},   // and rows that have no chunk
    {REE_REPOP_ATTENTION, 65, 300, 16, BEFORE, 0},
    {REE_REPOP_ATTENTION, 1, 1000, 128, CAUSAL, 0},
    {REE_REPOP_ATTENTION, 9, 800, 64, WINDOW, 0},
};

static void make_reduce(struct test_case *c, struct rng *rng, const struct shape *s) {
    struct ree_reduce_params *p = &c->dispatch.params.reduce;
    *p = (struct ree_reduce_params){
        .kind = s->kind,
        .dtype = s->dtype,
        .n_outer = s->a * s->c,
        .n_reduce = s->b,
        .outer_rank = 2,
        .reduce_rank = 1,
        .outer_dims = {s->a, s->c},
        .outer_strides = {(int32_t)(s->b * s->c), 1},
        .reduce_dims = {s->b},
        .reduce_strides = {(int32_t)s->c},
    };
    case_input(c, rng, (enum ree_dtype)s->dtype, (uint64_t)s->a * s->b * s->c);
    case_output(c, rng, s->kind >= REE_REDUCE_ARGMAX ? REE_I64 : (enum ree_dtype)s->dtype,
                p->n_outer);
}

// data (a, vectors), updates (steps, vectors), one index for each step.
static void make_scatter(struct test_case *c, struct rng *rng, const struct shape *s) {
    c->dispatch.params.scatter = (struct ree_scatter_params){
        .kind = s->kind,
        .dtype = s->dtype,
        .index_dtype = REE_I32,
        .rank = 2,
        .n_step_dims = 1,
        .n_vectors = s->c,
        .n_steps = s->b,
        .dims = {s->c, s->b},
        .data_strides = {1, 0},
        .index_strides = {0, 1},
        .update_strides = {1, (int32_t)s->c},
        .n_components = 1,
        .component_sizes = {s->a},
        .component_strides = {(int32_t)s->c},
    };
    case_input(c, rng, (enum ree_dtype)s->dtype, (uint64_t)s->a * s->c);
    c->is_written[0] = true;
    int32_t *index = case_input(c, rng, REE_I32, s->b);
    for (uint32_t i = 0; i < s->b; i++)
        index[i] = rng_between(rng, -(int32_t)s->a, (int32_t)s->a - 1);
    case_input(c, rng, (enum ree_dtype)s->dtype, (uint64_t)s->b * s->c);
}

// Two heads that share keys, all dense; query i, at position start + i, attends to some of the b
// keys.
static void make_attention(struct test_case *c, struct rng *rng, const struct shape *s) {
    struct ree_attention_params *p = &c->dispatch.params.attention;
    const int32_t q = (int32_t)s->a, keys = (int32_t)s->b, d = (int32_t)s->c;
    *p = (struct ree_attention_params){
        .batch = 1,
        .n_heads = 2,
        .n_kv_heads = 1,
        .q_len = s->a,
        .kv_len = s->b,
        .head_dim = s->c,
        .v_head_dim = s->c,
        .k_dtype = REE_F32,
        .v_dtype = REE_F32,
        .q_strides = {2 * q * d, q * d, d, 1},
        .k_strides = {keys * d, keys * d, d, 1},
        .v_strides = {keys * d, keys * d, d, 1},
        .out_strides = {2 * q * d, q * d, d},
        .scale = 0.125f,
        .left = s->kind == WINDOW || s->kind == AFTER ? 30 : REE_ATTENTION_UNBOUNDED,
        .right = s->kind == WHOLE ? REE_ATTENTION_UNBOUNDED : 0,
        .start = s->kind == AFTER    ? keys + 200 - q
                 : s->kind == BEFORE ? -q / 2
                                     : keys - q,
        .zero_empty = 1,
    };
    case_input(c, rng, REE_F32, (uint64_t)2 * s->a * s->c);
    case_input(c, rng, REE_F32, (uint64_t)s->b * s->c);
    case_input(c, rng, REE_F32, (uint64_t)s->b * s->c);
    case_output(c, rng, REE_F32, (uint64_t)2 * s->a * s->c);
}

static void make(struct test_case *c, struct rng *rng, const struct shape *s) {
    case_begin(c, s->op);
    union ree_params *p = &c->dispatch.params;
    enum ree_dtype dtype = s->dtype ? (enum ree_dtype)s->dtype : REE_F32;
    uint64_t n = (uint64_t)s->a * s->b * s->c;
    switch (s->op) {
    case REE_REPOP_SOFTMAX:
        p->softmax = (struct ree_softmax_params){s->kind, s->a, s->b, s->c, 0};
        case_input(c, rng, dtype, n);
        case_output(c, rng, dtype, n);
        break;
    case REE_REPOP_NORM:
        p->norm = (struct ree_norm_params){s->kind, s->a, s->b, 1e-5f, 1, 1, 1, 1, 0, 1};
        n = (uint64_t)s->a * s->b;
        case_input(c, rng, dtype, n);
        case_input(c, rng, dtype, s->b);
        case_input(c, rng, dtype, s->b);
        case_output(c, rng, dtype, n);
        break;
    case REE_REPOP_SCAN:
        p->scan = (struct ree_scan_params){s->kind, s->dtype, s->a, s->b, s->c, 0, 1};
        case_input(c, rng, dtype, n);
        case_output(c, rng, dtype, n);
        break;
    case REE_REPOP_TOPK:
        p->topk = (struct ree_topk_params){s->dtype, s->a, s->b, s->c, s->kind, 1};
        case_input(c, rng, dtype, n);
        case_output(c, rng, dtype, (uint64_t)s->a * s->kind * s->c);
        case_output(c, rng, REE_I64, (uint64_t)s->a * s->kind * s->c);
        break;
    case REE_REPOP_SCATTER: make_scatter(c, rng, s); break;
    case REE_REPOP_ATTENTION: make_attention(c, rng, s); break;
    default: make_reduce(c, rng, s);
    }
}

// Makes all numbers of a float operand finite, so that a long sum stays a number: 1/2 ... 2, both
// signs.
static void tame(struct test_case *c, struct rng *rng, const struct shape *s, uint32_t operand) {
    const enum ree_dtype dtype = s->dtype ? (enum ree_dtype)s->dtype : REE_F32;
    const uint64_t n = c->dispatch.operands[operand].size / ree_dtype_size(dtype);
    uint32_t *x = c->contents[operand];
    uint64_t *y = c->contents[operand];
    for (uint64_t i = 0; i < n && dtype == REE_F32; i++)
        x[i] = ((uint32_t)rng_next(rng) & 0x80FFFFFFu) | 0x3F000000u;
    for (uint64_t i = 0; i < n && dtype == REE_F64; i++)
        y[i] = (rng_next(rng) & 0x801FFFFFFFFFFFFF) | 0x3FE0000000000000;
}

int main(int argc, char **argv) {
    struct ree_device_options options = {.size = sizeof options};
    struct ree_device *device;
    struct ree_error err;
    enum ree_status status = ree_cuda_device_open("", &options, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return test_finish();
    struct ree_cuda *cuda = ree_cuda_of(device);
    const uint32_t n_multiprocessors = cuda->limits.n_multiprocessors;
    uint32_t n_printed = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (argc > 1 && (size_t)atoi(argv[1]) != i) continue;
        for (int turn = 0; turn < 4; turn++) {
            const bool wild = turn % 2, small = turn / 2;
            cuda->limits.n_multiprocessors = small ? 1 : n_multiprocessors;
            struct rng rng = {.state = 1000 + i};
            struct test_case c = {0};
            make(&c, &rng, &shapes[i]);
            if (!wild) {
                tame(&c, &rng, &shapes[i], 0);
                if (shapes[i].op == REE_REPOP_SCATTER) tame(&c, &rng, &shapes[i], 2);
                for (uint32_t o = 1; o < 3 && shapes[i].op == REE_REPOP_ATTENTION; o++)
                    tame(&c, &rng, &shapes[i], o);
                // Infinite values, each in a different element, reveal a kernel that multiplies by
                // a weight of 0.
                for (uint32_t j = 0; j < shapes[i].b && shapes[i].op == REE_REPOP_ATTENTION;
                     j += 97)
                    ((uint32_t *)c.contents[2])[j * shapes[i].c + j / 97] = 0x7F800000;
            }
            // The seed decides how operands are aligned: with one multiprocessor, the other way.
            compare_case(device, wild ? "any numbers" : "tame numbers", shapes[i].op, i + small, &c,
                         &n_printed);
            test_case_finish(&c);
        }
    }
    ree_device_destroy(device);
    return test_finish();
}
