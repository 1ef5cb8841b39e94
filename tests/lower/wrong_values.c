#include "base/dtype.h"
#include "wrong_draws.h"
#include "test.h"

#include <math.h>
#include <string.h>

uint32_t wrong_any(uint32_t n) {
    return wrong_below(&wrong.rng, n);
}

bool wrong_one_in(uint32_t n) {
    return wrong_any(n) == 0;
}

void *wrong_memory(size_t size) {
    void *bytes = ree_arena_alloc(&wrong.node.arena, size + 1);
    REQUIRE(bytes != NULL);
    return bytes;
}

int64_t wrong_int(void) {
    static const int64_t extremes[] = {
        INT64_MAX,
        INT64_MIN,
        INT32_MAX,
        INT32_MIN,
        INT64_C(1) << 31,
        -(INT64_C(1) << 31) - 1,
        INT64_C(1) << 32,
        INT64_C(1) << 62,
        INT64_C(0x55555555),
        65536,
        1 << 30,
        -1000000007,
    };
    if (wrong_one_in(wrong.careful ? 60 : 12))
        return extremes[wrong_any(sizeof extremes / sizeof *extremes)];
    if (wrong_one_in(wrong.careful ? 12 : 4)) return (int64_t)wrong_any(24) - 8;
    return wrong.careful ? wrong_any(3) : (int64_t)wrong_any(5) - 1;
}

float wrong_number(void) {
    static const float extremes[] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 3e9f, -3e9f, 1e-40f};
    if (wrong_one_in(12)) return extremes[wrong_any(sizeof extremes / sizeof *extremes)];
    if (wrong_one_in(2)) return (float)((int)wrong_any(9) - 3);
    return (float)((int)wrong_any(2001) - 700) / 256;
}

const char *wrong_text(void) {
    static const char *const words[] = {
        "",
        "a",
        "b",
        "Linear",
        "linear",
        "nearest",
        "cubic",
        "constant",
        "reflect",
        "edge",
        "wrap",
        "zeros",
        "border",
        "reflection",
        "bilinear",
        "bicubic",
        "add",
        "mul",
        "max",
        "min",
        "none",
        "sum",
        "mean",
        "avg",
        "tanh",
        "forward",
        "reverse",
        "bidirectional",
        "Tanh",
        "Sigmoid",
        "Relu",
        "Affine",
        "LEFT",
        "RIGHT",
        "L1",
        "L2",
        "MAX",
        "TF",
        "IDF",
        "TFIDF",
        "SAME_UPPER",
        "SAME_LOWER",
        "VALID",
        "NOTSET",
        "silu",
        "swish",
        "nesterov",
        "standard",
        "half_pixel",
        "output_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        "floor",
        "ceil",
        "round_prefer_floor",
        "circular",
        "gated",
        "delta",
        "gated_delta",
        "CRD",
        "DCR",
        "gelu",
        "ij->ji",
        "i,i->",
        "...i,ij->...j",
        "ii->i",
        "i...,i->...",
        "ab,,->",
        "zz...zz->",
        "1e30",
        "nan",
        "-7",
        " x ",
        "\xc3\xa9",
        "\xff\xfe",
        "LOWER",
        "UPPER",
        ".*",
        "(a|b)*c",
        "[",
        "inf",
        "stretch",
        "not_larger",
        "not_smaller",
        "down",
        "up",
        "round_even",
        "INT8",
        "FLOAT",
    };
    return words[wrong_any(sizeof words / sizeof *words)];
}

enum ree_dtype wrong_dtype(void) {
    static const enum ree_dtype common[] = {REE_F32, REE_F32, REE_F32, REE_I64, REE_I64,
                                            REE_I32, REE_U8,  REE_I8,  REE_BOOL};
    for (;;) {
        enum ree_dtype dtype = wrong_one_in(3) ? (enum ree_dtype)(1 + wrong_any(REE_I2))
                                               : common[wrong_any(sizeof common / sizeof *common)];
        if (ree_dtype_size(dtype)) return dtype;
    }
}

int64_t wrong_dim(void) {
    return wrong_one_in(20) ? 0 : wrong_one_in(30) ? 17 + wrong_any(50) : 1 + wrong_any(4);
}

uint32_t wrong_dims(int64_t *dims) {
    uint32_t rank = wrong_one_in(12) ? wrong_any(REE_MAX_RANK + 1) : wrong_any(5);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = wrong_dim();
    return rank;
}

// Returns dims that usually resemble those of the node's other inputs.
static uint32_t similar_dims(int64_t *dims) {
    uint32_t rank = wrong.base_rank;
    memcpy(dims, wrong.base_dims, sizeof wrong.base_dims);
    switch (wrong_any(wrong.careful ? 24 : 8)) {
    case 0: return wrong_dims(dims);
    case 1:
        if (rank) dims[wrong_any(rank)] = wrong_dim();
        return rank;
    case 2: return rank ? rank - 1 : 0;
    case 3: // a vector
        dims[0] = wrong.base_rank && !wrong_one_in(4) ? wrong.base_dims[wrong_any(wrong.base_rank)]
                                                      : (int64_t)wrong_any(6);
        return 1;
    case 4: return 0;
    case 5:
        if (rank >= 2)
            dims[rank - 1] = wrong.base_dims[rank - 2], dims[rank - 2] = wrong.base_dims[rank - 1];
        return rank;
    default: return rank;
    }
}

size_t wrong_count(uint32_t rank, const int64_t *dims) {
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

void *wrong_bytes(enum ree_dtype dtype, size_t n) {
    size_t size = ree_dtype_size(dtype);
    char *bytes = wrong_memory(n * size + 8);
    for (size_t i = 0; i < n; i++) {
        int64_t v = wrong_int();
        float f = wrong_number();
        double d = (double)f;
        uint8_t byte = (uint8_t)wrong_any(256);
        switch (dtype) {
        case REE_F32: memcpy(bytes + 4 * i, &f, 4); break;
        case REE_F64: memcpy(bytes + 8 * i, &d, 8); break;
        case REE_BOOL: bytes[i] = (char)(byte & 1); break;
        default:
            if (size > 1) {
                memcpy(bytes + size * i, &v, size);
            } else {
                while (!ree_dtype_byte_is_valid(dtype, byte))
                    byte = (uint8_t)wrong_any(256);
                bytes[i] = (char)byte;
            }
        }
    }
    return bytes;
}

static struct ree_view *random_tensor(void) {
    struct ree_view *t;
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = similar_dims(dims);
    enum ree_dtype dtype = wrong_one_in(wrong.careful ? 12 : 3) ? wrong_dtype() : wrong.base_dtype;
    // A tensor that could be a shape, a list of axes or an index.
    if (wrong_one_in(wrong.careful ? 6 : 4)) dtype = wrong_one_in(4) ? REE_I32 : REE_I64;
    if (wrong_one_in(wrong.careful ? 8 : 4)) rank = 1, dims[0] = wrong_any(6);
    size_t n = wrong_count(rank, dims);
    if (dtype == REE_STRING) {
        const char **texts = wrong_memory(n * sizeof *texts);
        for (size_t i = 0; i < n; i++)
            texts[i] = wrong_text();
        REQUIRE(ree_lower_strings(&wrong.node.lower, rank, dims, texts, &t) == REE_OK);
        return t;
    }
    // A value that is known only on the device.
    if (wrong_one_in(6))
        REQUIRE(ree_lower_new(&wrong.node.lower, dtype, rank, dims, &t) == REE_OK);
    else
        REQUIRE(ree_lower_literal(&wrong.node.lower, dtype, rank, dims, wrong_bytes(dtype, n),
                                  &t) == REE_OK);
    if (wrong_one_in(8) && rank >= 2) {
        uint32_t turned[REE_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++)
            turned[i] = rank - 1 - i;
        REQUIRE(ree_lower_transpose(&wrong.node.lower, t, turned, &t) == REE_OK);
    }
    if (wrong_one_in(8) && rank >= 1 && t->dims[0] >= 2)
        REQUIRE(ree_lower_slice(&wrong.node.lower, t, 0, t->dims[0] - 1, -1, t->dims[0] - 1, &t) ==
                REE_OK);
    return t;
}

struct ree_view *wrong_value(bool any_kind) {
    struct ree_view *t, *items[4];
    if (any_kind ? !wrong_one_in(2) : !wrong_one_in(40)) return random_tensor();
    if (wrong_one_in(4)) {
        REQUIRE(ree_lower_absent(&wrong.node.lower, wrong.base_dtype, &t) == REE_OK);
        return t;
    }
    size_t n = wrong_any(4), k = 0;
    while (k < n) {
        t = random_tensor();
        if (k && t->dtype != items[0]->dtype)
            REQUIRE(ree_lower_literal(&wrong.node.lower, items[0]->dtype, 0, NULL,
                                      wrong_bytes(items[0]->dtype, 1), &t) == REE_OK);
        items[k++] = t;
    }
    REQUIRE(ree_lower_sequence(&wrong.node.lower, n ? items[0]->dtype : wrong.base_dtype, n, items,
                               &t) == REE_OK);
    return t;
}
