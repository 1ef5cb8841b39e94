#include "cases.h"
#include "splitmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const case_generator case_generators[REE_N_REPOPS] = {
    [REE_REPOP_COPY] = case_copy,       [REE_REPOP_MAP] = case_map,
    [REE_REPOP_REDUCE] = case_reduce,   [REE_REPOP_MATMUL] = case_matmul,
    [REE_REPOP_CONV] = case_conv,       [REE_REPOP_POOL] = case_pool,
    [REE_REPOP_SOFTMAX] = case_softmax, [REE_REPOP_NORM] = case_norm,
    [REE_REPOP_GATHER] = case_gather,   [REE_REPOP_SCATTER] = case_scatter,
    [REE_REPOP_TOPK] = case_topk,       [REE_REPOP_SCAN] = case_scan,
    [REE_REPOP_RESIZE] = case_resize,   [REE_REPOP_ATTENTION] = case_attention,
};

uint64_t rng_next(struct rng *rng) {
    return splitmix_step(&rng->state);
}

uint32_t rng_below(struct rng *rng, uint32_t n) {
    return (uint32_t)((rng_next(rng) >> 32) * n >> 32);
}

int32_t rng_between(struct rng *rng, int32_t low, int32_t high) {
    return low + (int32_t)rng_below(rng, (uint32_t)(high - low) + 1);
}

bool rng_one_in(struct rng *rng, uint32_t n) {
    return rng_below(rng, n) == 0;
}

uint32_t rng_of(struct rng *rng, uint32_t n, const uint32_t *choices) {
    return choices[rng_below(rng, n)];
}

void test_case_finish(struct test_case *c) {
    for (uint32_t i = 0; i < c->dispatch.n_operands; i++)
        free(c->contents[i]);
    memset(c, 0, sizeof *c);
}

void case_begin(struct test_case *c, enum ree_repop op) {
    memset(c, 0, sizeof *c);
    c->dispatch.op = op;
}

static void *append(struct test_case *c, enum ree_dtype dtype, uint64_t n) {
    uint32_t i = c->dispatch.n_operands++;
    uint64_t size = n * ree_dtype_size(dtype);
    c->dispatch.operands[i] = (struct ree_operand){.slot = i, .offset = 0, .size = size};
    c->contents[i] = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!c->contents[i]) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return c->contents[i];
}

void *case_input(struct test_case *c, struct rng *rng, enum ree_dtype dtype, uint64_t n) {
    void *data = append(c, dtype, n);
    case_fill(rng, dtype, n, data);
    return data;
}

void *case_output(struct test_case *c, struct rng *rng, enum ree_dtype dtype, uint64_t n) {
    c->is_written[c->dispatch.n_operands] = true;
    c->dispatch.n_outputs++;
    void *data = append(c, dtype, n);
    uint64_t size = n * ree_dtype_size(dtype);
    for (uint64_t i = 0; i < size; i++)
        ((uint8_t *)data)[i] = (uint8_t)rng_next(rng);
    return data;
}

static uint32_t special_f32(struct rng *rng) {
    static const uint32_t specials[] = {
        0x7FC00000, 0xFFC00001, 0x7F800001, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000,
        0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF,
        0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x4F000000, 0xCF000000, 0x5F000000, 0x3EFFFFFF,
    };
    return rng_of(rng, sizeof specials / sizeof *specials, specials);
}

static void fill_f32(struct rng *rng, uint64_t n, uint32_t *out) {
    uint32_t style = rng_below(rng, 8);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t r = rng_next(rng);
        uint32_t low = (uint32_t)r;
        float x = 0;
        switch (style) {
        case 0: x = (float)((int32_t)(low % 9) - 4); break; // small integers: ties
        case 1:                                             // magnitudes whose squares stay normal
            out[i] = (low & 0x807FFFFFu) | (((uint32_t)(r >> 32) % 126u + 64u) << 23);
            continue;
        case 2: // specials among the other values
            if (low % 5 == 0) {
                out[i] = special_f32(rng);
                continue;
            }
            x = (float)(int32_t)low * 0x1p-30f;
            break;
        case 3: out[i] = low; continue; // any bits
        default: x = (float)(int32_t)low * 0x1p-30f;
        }
        memcpy(&out[i], &x, 4);
    }
}

// Returns a number made from `bits` in one of eight styles. Any bits are rare in floats, because
// one NaN among the terms of a long sum makes the sum NaN.
static uint64_t number(enum ree_dtype dtype, uint32_t style, uint64_t bits) {
    const int64_t small = (int64_t)(bits % 13) - 6;
    const double x = (double)small;
    switch (dtype) {
    case REE_BOOL: return bits & 1;
    case REE_F16: // exponents from -3 to 4
        if (style >= 6) return bits;
        return (bits & 0x9FFF) | (bits & 0x1000 ? 0x2000 : 0x4000);
    case REE_BF16: // exponents from -15 to 16
        if (style >= 6) return bits;
        return (bits & 0x8FFF) | (bits & 0x0800 ? 0x3000 : 0x4000);
    case REE_F64:
        if (style >= 6) return bits;
        if (style == 5) return (uint64_t)small; // 0, the least subnormals, NaN
        if (style < 2 && bits >> 32 & 1) {      // small integers: ties
            memcpy(&bits, &x, sizeof bits);
            return bits;
        }
        return (bits & 0x81FFFFFFFFFFFFFF) | // exponents from -15 to 16
               (bits & UINT64_C(1) << 56 ? 0x3E00000000000000 : 0x4000000000000000);
    default: return style < 4 ? (uint64_t)small : bits;
    }
}

void case_fill(struct rng *rng, enum ree_dtype dtype, uint64_t n, void *out) {
    if (dtype == REE_F32) {
        fill_f32(rng, n, out);
        return;
    }
    size_t size = ree_dtype_size(dtype);
    uint32_t style = rng_below(rng, 8);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = number(dtype, style, rng_next(rng));
        memcpy((char *)out + i * size, &bits, size);
    }
}

uint64_t case_count(uint32_t rank, const uint32_t *dims) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= dims[d];
    return n;
}

uint32_t case_dims(struct rng *rng, uint32_t max_rank, uint32_t budget, uint32_t *dims) {
    uint32_t rank = 1 + rng_below(rng, max_rank);
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = 1;
    // Dimensions are visited in a random order, so that the long ones can be anywhere.
    uint32_t start = rng_below(rng, rank);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = (start + i) % rank, dim;
        switch (rng_below(rng, 5)) {
        case 0: dim = 1; break;
        case 1: dim = 1 + rng_below(rng, 300); break;
        case 2: dim = 1 + rng_below(rng, 2000); break;
        default: dim = 1 + rng_below(rng, 9); break;
        }
        dims[d] = dim < budget ? dim : budget;
        budget /= dims[d];
        if (budget == 0) budget = 1;
    }
    if (rng_one_in(rng, 30)) dims[rng_below(rng, rank)] = 0;
    return rank;
}

void case_dense_strides(uint32_t rank, const uint32_t *dims, int32_t *strides) {
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = (int32_t)stride;
        stride *= dims[d];
    }
}

uint64_t case_view(struct rng *rng, uint32_t flags, uint32_t rank, const uint32_t *dims,
                   int32_t *strides, int32_t *offset) {
    *offset = 0;
    if (rng_one_in(rng, 3)) {
        case_dense_strides(rank, dims, strides);
        return case_count(rank, dims);
    }
    uint32_t order[REE_MAX_RANK]; // dimensions in memory order, innermost first
    bool permuted = rng_one_in(rng, 2), gaps = rng_one_in(rng, 3);
    for (uint32_t d = 0; d < rank; d++)
        order[d] = rank - 1 - d;
    for (uint32_t d = rank; permuted && d > 1; d--) {
        uint32_t other = rng_below(rng, d), swapped = order[d - 1];
        order[d - 1] = order[other];
        order[other] = swapped;
    }
    int64_t stride = 1, first = (int64_t)rng_below(rng, 4);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = order[i];
        if ((flags & CASE_VIEW_REPEATS) && rng_one_in(rng, 4)) {
            strides[d] = 0;
            continue;
        }
        if (gaps && rng_one_in(rng, 2)) stride *= 2;
        strides[d] = (int32_t)stride;
        if ((flags & CASE_VIEW_BACKWARDS) && rng_one_in(rng, 5) && dims[d] > 0) {
            strides[d] = -strides[d];
            first += (dims[d] - 1) * stride;
        }
        stride *= dims[d] > 0 ? dims[d] : 1;
        if (gaps) stride += rng_below(rng, 3);
    }
    *offset = (int32_t)first;
    return (uint64_t)stride + 4 + rng_below(rng, 3);
}

uint32_t case_length(struct rng *rng) {
    static const uint32_t lengths[] = {0,    1,    2,    3,    7,    16,   17,   100,
                                       255,  256,  257,  300,  511,  512,  513,  767,
                                       1000, 1023, 1024, 1025, 2047, 2048, 2304, 2500};
    if (rng_one_in(rng, 3)) return 1 + rng_below(rng, 40);
    return rng_of(rng, sizeof lengths / sizeof *lengths, lengths);
}
