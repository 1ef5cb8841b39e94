#include "device/selftest/hard_values.h"

#include "base/dtype.h"
#include "repops/scalar/convert.h"

#include <string.h>

// splitmix64 (Steele, Lea, Flood 2014)
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

enum style {
    STYLE_FULL,                    // full mantissas, similar exponents: every sum rounds
    STYLE_TIES,                    // multiples of 2^-12: sums of products are midpoints
    STYLE_CANCELLING,              // x, then nearly -x
    STYLE_INTEGERS,                // -4 ... 4
    N_MIDDLE_STYLES,               // the styles above have no extreme exponents
    STYLE_SMALL = N_MIDDLE_STYLES, // subnormals and the smallest normal numbers
    STYLE_WIDE,                    // exponents far apart
    N_FINITE_STYLES,
    STYLE_SPECIALS = N_FINITE_STYLES, // STYLE_FULL with some NaN, infinities and ends of the range
    N_STYLES
};

static uint32_t full(uint64_t r, uint32_t lowest_exponent, uint32_t n_exponents) {
    uint32_t exponent = lowest_exponent + (uint32_t)(r >> 40) % n_exponents;
    return ((uint32_t)r & 0x807FFFFFu) | exponent << 23;
}

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline __attribute__((always_inline)) uint32_t styled(enum style style, uint64_t i,
                                                             uint64_t r, uint32_t previous) {
    static const uint32_t specials[] = {
        0x7FC00000, 0xFFC00001, 0x7F800001, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000,
        0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF,
        0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x4F000000, 0xCF000000, 0x5F000000, 0x3EFFFFFF,
    };
    switch (style) {
    case STYLE_TIES: return float_bits((float)((int32_t)((uint32_t)r % 8193) - 4096) * 0x1p-12f);
    case STYLE_CANCELLING:
        return i % 2 == 0 ? full(r, 120, 12) : previous ^ 0x80000000u ^ ((uint32_t)r & 0xFu);
    case STYLE_SMALL:
        return r >> 63 ? (uint32_t)r & 0x807FFFFFu : full(r, 1, 20); // subnormal, or nearly
    case STYLE_WIDE: return full(r, 87, 80);
    case STYLE_INTEGERS: return float_bits((float)((int32_t)((uint32_t)r % 9) - 4));
    case STYLE_SPECIALS:
        if (r >> 61 == 0) return specials[(uint32_t)r % (sizeof specials / sizeof *specials)];
        return full(r, 124, 4);
    default: return full(r, 124, 4);
    }
}

// Returns whether the elements are floats. Otherwise they are integers or booleans.
static bool has_floats(const struct ree_hard_values *v) {
    return v->role < REE_HARD_BOUNDED && (v->dtype == REE_F32 || v->dtype == REE_F64 ||
                                          v->dtype == REE_F16 || v->dtype == REE_BF16);
}

static bool is_masked(const struct ree_hard_values *v, uint64_t run) {
    return v->role == REE_HARD_MASKED && run % 5 == 4;
}

static enum style style_of_vector(enum ree_hard_role role, uint64_t run, uint32_t round) {
    static const enum style query[REE_HARD_ROUNDS] = {STYLE_FULL, STYLE_WIDE, STYLE_SPECIALS,
                                                      STYLE_TIES, STYLE_SMALL},
                            key[REE_HARD_ROUNDS] = {STYLE_FULL, STYLE_SMALL, STYLE_FULL, STYLE_TIES,
                                                    STYLE_SMALL};
    if (round != 3 && run % (role == REE_HARD_QUERY ? 17 : 97) != 3) return STYLE_FULL;
    return (role == REE_HARD_QUERY ? query : key)[round];
}

static enum style style_of(const struct ree_hard_values *v, uint64_t run, uint32_t round) {
    static const struct {
        uint32_t n, first; // number of styles, style of the first run
    } any[REE_HARD_ROUNDS] = {{N_MIDDLE_STYLES, STYLE_FULL},
                              {N_FINITE_STYLES, STYLE_WIDE},
                              {N_STYLES, STYLE_SPECIALS},
                              {N_FINITE_STYLES, STYLE_TIES},
                              {N_FINITE_STYLES, STYLE_SMALL}},
      finite[REE_HARD_ROUNDS] = {{N_MIDDLE_STYLES, STYLE_FULL},
                                 {N_MIDDLE_STYLES, STYLE_INTEGERS},
                                 {N_FINITE_STYLES, STYLE_WIDE},
                                 {N_FINITE_STYLES, STYLE_TIES},
                                 {N_FINITE_STYLES, STYLE_WIDE}};
    switch (v->role) {
    case REE_HARD_ANY:
    case REE_HARD_PEAKED:
    case REE_HARD_MASKED: return (enum style)((run + any[round].first) % any[round].n);
    case REE_HARD_SPARSE:
    case REE_HARD_FINITE: return (enum style)((run + finite[round].first) % finite[round].n);
    case REE_HARD_QUERY:
    case REE_HARD_KEY: return style_of_vector(v->role, run, round);
    default: return STYLE_FULL;
    }
}

// Changes a value x as the role requires. x is a value of MODERATE (for BIAS and SCALE) or of
// FINITE (for SPARSE).
static uint32_t of_role(enum ree_hard_role role, uint32_t round, uint32_t x, uint64_t r) {
    static const uint32_t scales[] = {0x00000000, 0x00000001, 0x00400000, 0x44000000};
    static const uint32_t specials[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0xFFC00001};
    const bool some = r >> 61 == 0;
    switch (role) {
    case REE_HARD_BIAS: return some ? 0xFF800000u : x;
    case REE_HARD_SCALE:
        if (round == 0) return x & 0xFFFFE000u;
        return round == 2 && some ? scales[(uint32_t)r % 4] : x;
    case REE_HARD_SPARSE:
        return (round == 2 || round == 4) && r >> 54 == 0 ? specials[(uint32_t)r % 4] : x;
    default: return x;
    }
}

static uint32_t peaked(const struct ree_hard_values *v, uint64_t i, uint64_t r) {
    if (i / (uint64_t)v->high % v->run == v->run / 3) return 0;
    return float_bits((float)(r >> 40) * (-10.0f / 0x1p24f) - 8.0f);
}

// Converts a float32 to float64, and fills the lower mantissa bits of normal numbers with random
// bits.
static uint64_t widened(uint32_t bits, uint64_t r) {
    float x;
    memcpy(&x, &bits, sizeof x);
    double wide = (double)x;
    uint64_t result;
    memcpy(&result, &wide, sizeof result);
    uint32_t exponent = bits >> 23 & 255u;
    if (exponent != 0 && exponent != 255) result |= r & 0x1FFFFFFFu;
    return result;
}

// One random element of an integer or boolean type, for roles with bounds.
static uint64_t bounded(const struct ree_hard_values *v, uint64_t i, uint32_t round, uint64_t r) {
    if (v->role == REE_HARD_DISTINCT) {
        const uint64_t n = (uint64_t)v->high + 1, index = (i * (n == 5 ? 3 : 5) + round) % n;
        return (r & 1) ? index : index - n; // sometimes negative: counted from the end
    }
    if (v->role == REE_HARD_TAPS && i % v->run == 0 && (r >> 63)) return UINT64_MAX;
    uint64_t span = (uint64_t)(v->high - v->low) + 1;
    return (uint64_t)(v->low + (int64_t)(r % span));
}

// A block is some elements of one run. The functions below are short loops over all of them,
// because a self-test spends most of its time here.
#define BLOCK 256
struct block {
    const struct ree_hard_values *v;
    uint32_t round, n;     // n: elements
    uint64_t run, first;   // index of their run; index of the first element
    uint32_t draws;        // random numbers per element, at r[element * draws]
    uint64_t r[2 * BLOCK]; // random numbers, or the elements if they are integers
    uint32_t x[BLOCK];     // values as float32
};

// Generates the block's values before the role is applied. *previous: the number before the block's
// first element; updated to the block's last.
static void make_floats(struct block *block, uint32_t *previous) {
    const struct ree_hard_values *v = block->v;
    const uint32_t n = block->n, draws = block->draws;
    const uint64_t *r = block->r;
    uint32_t *x = block->x, last = *previous;
    if (v->role == REE_HARD_NEAR_ONE) {
        for (uint32_t i = 0; i < n; i++)
            x[i] = full(r[i * draws], 126, 2);
        *previous = x[n - 1];
        return;
    }
#define STYLE(style)                                                                               \
    case style:                                                                                    \
        for (uint32_t i = 0; i < n; i++)                                                           \
            x[i] = last = styled(style, block->first + i, r[i * draws], last);                     \
        break;
    switch (style_of(v, block->run, block->round)) {
        STYLE(STYLE_FULL)
        STYLE(STYLE_TIES)
        STYLE(STYLE_CANCELLING)
        STYLE(STYLE_INTEGERS)
        STYLE(STYLE_SMALL)
        STYLE(STYLE_WIDE)
        STYLE(STYLE_SPECIALS)
    case N_STYLES: break;
    }
#undef STYLE
    *previous = last;
}

static void apply_role(struct block *block) {
    const struct ree_hard_values *v = block->v;
    const bool masked = is_masked(v, block->run);
    const bool is_peaked = v->role == REE_HARD_PEAKED && block->round >= 3;
    const bool has_own =
        v->role == REE_HARD_BIAS || v->role == REE_HARD_SCALE || v->role == REE_HARD_SPARSE;
    if (!masked && !is_peaked && !has_own) return;
    for (uint32_t i = 0; i < block->n; i++) {
        const uint64_t r = block->r[i * block->draws];
        uint32_t x = masked ? 0xFF800000u : block->x[i];
        if (is_peaked) x = peaked(v, block->first + i, r);
        block->x[i] = of_role(v->role, block->round, x, r);
    }
}

// Stores elements as bytes, little-endian. memcpy from an integer would make the integer's type the
// effective type of these objects.
#define STORE(out, size, i, bits)                                                                  \
    for (size_t b_ = 0; b_ < (size); b_++)                                                         \
    (out)[(i) * (size) + b_] = (uint8_t)((uint64_t)(bits) >> 8 * b_)

// Replaces the random numbers by elements of an integer or boolean type.
static void make_integers(struct block *block) {
    const struct ree_hard_values *v = block->v;
    const uint32_t n = block->n;
    uint64_t *r = block->r;
    if (v->role >= REE_HARD_BOUNDED) {
        for (uint32_t i = 0; i < n; i++)
            r[i] = bounded(v, block->first + i, block->round, r[i]);
    } else if (v->dtype == REE_BOOL) {
        const bool masked = is_masked(v, block->run);
        for (uint32_t i = 0; i < n; i++)
            r[i] = !masked && (r[i] & 3) != 0;
    } else if ((block->run + block->round) % 2 == 1) {
        for (uint32_t i = 0; i < n; i++)
            r[i] = (uint64_t)((int64_t)(r[i] % 13) - 6);
    }
}

static void store(const struct block *block, uint8_t *out) {
    const struct ree_hard_values *v = block->v;
    const uint32_t *x = block->x, n = block->n;
    const uint64_t *r = block->r;
    const size_t size = ree_dtype_size((enum ree_dtype)v->dtype);
    out += block->first * size;
    switch (has_floats(v) ? v->dtype : REE_DTYPE_NONE) {
    case REE_F32:
        for (uint32_t i = 0; i < n; i++)
            STORE(out, 4u, i, x[i]);
        break;
    case REE_F64:
        for (uint32_t i = 0; i < n; i++)
            STORE(out, 8u, i, widened(x[i], r[2 * i + 1]));
        break;
    case REE_F16:
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t bits = ree_soft_f32_to_f16(x[i]);
            STORE(out, 2u, i, bits);
        }
        break;
    case REE_BF16:
        for (uint32_t i = 0; i < n; i++)
            STORE(out, 2u, i, x[i] >> 16);
        break;
    default:
        switch (size) {
        case 1:
            for (uint32_t i = 0; i < n; i++)
                STORE(out, 1u, i, r[i]);
            break;
        case 4:
            for (uint32_t i = 0; i < n; i++)
                STORE(out, 4u, i, r[i]);
            break;
        default:
            for (uint32_t i = 0; i < n; i++)
                STORE(out, size, i, r[i]);
        }
    }
}

// Returns whether all runs have the same style.
static bool has_one_style(const struct ree_hard_values *v) {
    switch (v->role) {
    case REE_HARD_MODERATE:
    case REE_HARD_BIAS:
    case REE_HARD_SCALE:
    case REE_HARD_NEAR_ONE: return has_floats(v);
    case REE_HARD_BOUNDED:
    case REE_HARD_TAPS:
    case REE_HARD_DISTINCT: return true;
    default: return false;
    }
}

void ree_hard_values_fill(const struct ree_hard_values *v, uint32_t round, uint32_t salt,
                          void *out) {
    uint64_t state = (round + salt * UINT64_C(101)) * UINT64_C(1000003) + v->dtype * UINT64_C(7919);
    const uint64_t length = has_one_style(v) ? v->n : v->run ? v->run : 1;
    const bool floats = has_floats(v);
    // r and x stay undefined: clearing them would take longer than a short fill.
    struct block block;
    block.v = v;
    block.round = round;
    block.draws = floats && v->dtype == REE_F64 ? 2 : 1;
    block.run = block.first = 0;
    uint32_t previous = 0;
    for (uint64_t end = 0; block.first < v->n; block.first += block.n) {
        if (block.first == end) {
            block.run = block.first / length;
            end = v->n - end < length ? v->n : end + length;
        }
        block.n = end - block.first < BLOCK ? (uint32_t)(end - block.first) : BLOCK;
        for (uint32_t i = 0; i < block.n * block.draws; i++)
            block.r[i] = next(&state);
        if (floats) {
            make_floats(&block, &previous);
            apply_role(&block);
        } else {
            make_integers(&block);
        }
        store(&block, out);
    }
}
