// Sampling compared with a second, plain implementation of its definition in NUMERICS.md.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ree.h"
#include "repops/scalar/ops.h"
#include "tests/test.h"
#include "splitmix.h"

#define VOCAB 300

typedef unsigned __int128 wide;

// Returns Philox4x32-10 of the counter (a, 0) and the key b.
static uint64_t philox(uint64_t a, uint64_t b) {
    uint32_t x[4] = {(uint32_t)a, (uint32_t)(a >> 32), 0, 0};
    uint32_t k0 = (uint32_t)b, k1 = (uint32_t)(b >> 32);
    for (int i = 0; i < 10; i++) {
        uint64_t p = (uint64_t)0xD2511F53u * x[0], q = (uint64_t)0xCD9E8D57u * x[2];
        uint32_t y[4] = {(uint32_t)(q >> 32) ^ x[1] ^ k0, (uint32_t)q,
                         (uint32_t)(p >> 32) ^ x[3] ^ k1, (uint32_t)p};
        memcpy(x, y, sizeof x);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (uint64_t)x[1] << 32 | x[0];
}

// Returns whether token i comes before token j in the order of the definition.
static bool before(const float *x, int i, int j) {
    return x[i] > x[j] || (x[i] == x[j] && i < j);
}

static int rank_of(const float *x, const uint64_t *w, int i) {
    int rank = 0;
    for (int j = 0; j < VOCAB; j++)
        rank += w[j] && j != i && before(x, j, i);
    return rank;
}

static int32_t choose(const struct ree_sampling *s, const float *logits, const int32_t *ids,
                      size_t n, uint64_t position) {
    float x[VOCAB];
    uint64_t w[VOCAB];
    memcpy(x, logits, sizeof x);
    for (int i = 0; i < VOCAB && s->repetition_penalty != 1; i++)
        for (size_t k = 0; k < n; k++)
            if (ids[k] == i) {
                x[i] = x[i] < 0 ? x[i] * s->repetition_penalty : x[i] / s->repetition_penalty;
                break;
            }
    int best = 0;
    if (s->temperature == 0) {
        for (int i = 1; i < VOCAB; i++)
            if (x[i] > x[best]) best = i;
        return best;
    }
    for (int i = 0; i < VOCAB; i++) {
        x[i] = x[i] / s->temperature;
        if (x[i] > x[best]) best = i;
    }
    for (int i = 0; i < VOCAB; i++) {
        float e = x[i] == x[best] ? 1 : ree_float(ree_op_exp_f32(ree_bits(x[i] - x[best])));
        w[i] = (uint64_t)floor(ldexp((double)e, 40));
    }
    bool stays[VOCAB];
    for (int i = 0; i < VOCAB; i++)
        stays[i] = w[i] && (!s->top_k || rank_of(x, w, i) < (int)s->top_k);
    if (s->top_p < 1) {
        wide all = 0, p = (wide)floor(ldexp((double)s->top_p, 32));
        for (int i = 0; i < VOCAB; i++)
            all += stays[i] ? w[i] : 0;
        bool next[VOCAB];
        for (int i = 0; i < VOCAB; i++) {
            // The token stays if the sum of the weights before it has not reached p.
            wide sum = 0;
            for (int j = 0; j < VOCAB; j++)
                if (stays[j] && j != i && before(x, j, i)) sum += w[j];
            next[i] = stays[i] && (sum << 32) < p * all;
        }
        memcpy(stays, next, sizeof stays);
    }
    uint64_t most = 0, total = 0;
    for (int i = 0; i < VOCAB; i++)
        if (stays[i] && w[i] > most) most = w[i];
    wide p = (wide)floor(ldexp((double)s->min_p, 32));
    for (int i = 0; i < VOCAB; i++) {
        if (s->min_p > 0 && (wide)w[i] << 32 < p * most) stays[i] = false;
        total += stays[i] ? w[i] : 0;
    }
    uint64_t at = (uint64_t)((wide)philox(position, s->seed) * total >> 64);
    for (int i = 0; i < VOCAB; i++) {
        if (!stays[i]) continue;
        if (at < w[i]) return i;
        at -= w[i];
    }
    return -1;
}

static struct splitmix rng = {12345};

static uint32_t next(void) {
    return (uint32_t)(splitmix_next(&rng) >> 40);
}

static void draw_logits(float *x) {
    uint32_t kind = next() % 4;
    for (int i = 0; i < VOCAB; i++) {
        x[i] = ((float)(next() % 20000) - 10000) / (kind == 0 ? 500.0f : 4000.0f);
        // Ties, and tokens with probability zero.
        if (kind == 2) x[i] = (float)(next() % 5);
        if (kind == 3 && next() % 3 == 0) x[i] = -INFINITY;
    }
}

static void matches_the_definition(void) {
    float x[VOCAB];
    for (int k = 0; k < 3000; k++) {
        draw_logits(x);
        int32_t ids[8], got;
        for (int i = 0; i < 8; i++)
            ids[i] = (int32_t)(next() % VOCAB);
        static const float temperatures[] = {0, 0.3f, 1, 2.5f};
        struct ree_sampling s = {
            .temperature = temperatures[next() % 4],
            .top_k = next() % 2 ? 0 : 1 + next() % 40,
            .top_p = next() % 2 ? 1 : 0.05f + (float)(next() % 90) / 100,
            .min_p = next() % 2 ? 0 : (float)(next() % 100) / 200,
            .repetition_penalty = next() % 2 ? 1 : 1.3f,
            .seed = (uint64_t)next() << 20 | next(),
        };
        uint64_t position = next();
        CHECK(ree_sampling_choose(&s, x, VOCAB, ids, 8, position, &got, NULL) == REE_OK);
        CHECK(got == choose(&s, x, ids, 8, position));
    }
}

// Frequencies over positions equal the softmax within five standard deviations.
static void draws_as_softmax_says(void) {
    const float x[4] = {1, 0, 2, -1};
    struct ree_sampling s = ree_greedy;
    s.temperature = 1;
    s.seed = 7;
    int counts[4] = {0}, n = 20000;
    for (int i = 0; i < n; i++) {
        int32_t id;
        CHECK(ree_sampling_choose(&s, x, 4, NULL, 0, (uint64_t)i, &id, NULL) == REE_OK);
        counts[id]++;
    }
    double z = exp(1) + exp(0) + exp(2) + exp(-1);
    for (int i = 0; i < 4; i++) {
        double p = exp((double)x[i]) / z, deviation = sqrt(n * p * (1 - p));
        CHECK(fabs(counts[i] - n * p) < 5 * deviation);
    }
}

static void refuses(struct ree_sampling s, const float *x, size_t n, const char *message) {
    struct ree_error err = {0};
    int32_t id;
    CHECK(ree_sampling_choose(&s, x, n, NULL, 0, 0, &id, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, message), "'%s' is not in '%s'", message, err.message);
}

static void refuses_what_makes_no_sense(void) {
    const float good[2] = {0, 1}, nan[2] = {0, NAN}, none[2] = {-INFINITY, -INFINITY};
    struct ree_sampling s = ree_greedy;
    refuses(s, nan, 2, "the logit of token 1 is not a number");
    refuses(s, none, 2, "no token has a logit");
    refuses(s, good, 0, "a vocabulary of 0 tokens");
    s.temperature = -1;
    refuses(s, good, 2, "temperature is -1");
    s.temperature = nextafterf(1e-6f, 0);
    refuses(s, good, 2, "temperature is 1e-06, expected 0, or");
    s.temperature = 1e-40f;
    refuses(s, good, 2, "expected 0, or 0.000001");
    s = ree_greedy;
    s.top_p = 0;
    refuses(s, good, 2, "top_p is 0");
    s = ree_greedy;
    s.min_p = NAN;
    refuses(s, good, 2, "min_p is");
    s = ree_greedy;
    s.repetition_penalty = 0;
    refuses(s, good, 2, "repetition_penalty is 0");
}

// An infinite logit leaves no weight to the other tokens.
static void takes_infinity(void) {
    const float x[3] = {1, INFINITY, 2};
    struct ree_sampling s = ree_greedy;
    int32_t id;
    CHECK(ree_sampling_choose(&s, x, 3, NULL, 0, 0, &id, NULL) == REE_OK && id == 1);
    s.temperature = 1;
    CHECK(ree_sampling_choose(&s, x, 3, NULL, 0, 0, &id, NULL) == REE_OK && id == 1);
}

// The lowest temperature leaves no weight to any token but the likeliest.
static void least_temperature(void) {
    const float x[4] = {-3e4f, 2.5e4f, 2.4e4f, 1};
    struct ree_sampling s = ree_greedy;
    s.temperature = 1e-6f;
    for (uint64_t position = 0; position < 100; position++) {
        int32_t id;
        CHECK(ree_sampling_choose(&s, x, 4, NULL, 0, position, &id, NULL) == REE_OK && id == 1);
    }
}

// Zeros of both signs are equal, and the first of equal logits is chosen: by the greedy path, which
// only reads the logits, and by the path on which every token is a candidate.
static void first_of_equals(void) {
    const float rows[][5] = {
        {-1, -0.0f, 0, -0.0f, -2},
        {-1, 0, -0.0f, 0, -2},
        {-0.0f, -0.0f, -1, 0, -1},
        {-3, -2, -INFINITY, -2, -2.5f},
        {-1e-40f, 1e-45f, -0.0f, 1e-45f, 0},
        {-1e-45f, -1e-40f, -1e-45f, -INFINITY, -1},
        {-INFINITY, INFINITY, 3e38f, INFINITY, 0},
        {-INFINITY, -INFINITY, -INFINITY, -3e38f, -INFINITY},
    };
    const int32_t expected[] = {1, 1, 0, 1, 1, 0, 1, 3};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct ree_sampling s = ree_greedy;
        int32_t id;
        CHECK(ree_sampling_choose(&s, rows[i], 5, NULL, 0, 0, &id, NULL) == REE_OK);
        CHECK_MSG(id == expected[i], "row %zu: token %d", i, id);
        s.repetition_penalty = 2; // without any tokens to penalize
        CHECK(ree_sampling_choose(&s, rows[i], 5, NULL, 0, 0, &id, NULL) == REE_OK);
        CHECK_MSG(id == expected[i], "row %zu: token %d among candidates", i, id);
    }
}

// The weights of 2^24 equal logits, the most that are allowed, have a total of 2^64.
static void draws_of_most(void) {
    const size_t n = (size_t)1 << 24;
    float *x = calloc(n, sizeof *x);
    struct ree_sampling s = ree_greedy;
    REQUIRE(x);
    s.temperature = 1;
    for (s.seed = 1; s.seed <= 2; s.seed++) {
        int32_t id;
        CHECK(ree_sampling_choose(&s, x, n, NULL, 0, 7, &id, NULL) == REE_OK);
        CHECK_MSG((uint64_t)id == philox(7, s.seed) >> 40, "token %d", id);
    }
    free(x);
}

int main(void) {
    least_temperature();
    draws_of_most();
    first_of_equals();
    matches_the_definition();
    draws_as_softmax_says();
    refuses_what_makes_no_sense();
    takes_infinity();
    return test_finish();
}
