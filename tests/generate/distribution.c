// Probabilities of logits in float64: compared with a second, plain implementation of NUMERICS.md,
// "Perplexity", by bytes; its exponential compared with MPFR's.
#include "generate/distribution.h"

#include <math.h>
#include <string.h>

#include "base/sha256.h"
#include "repops/elementary64.h"
#include "splitmix.h"
#include "test.h"

#define MOST 1000

// SHA-256 of the divergences and log probabilities of test_rows, the same on every processor.
static const char recorded[] = "4b450574239f218966698dab278b1a7ab4cb8af7d774ee5b47eb4b9925e96a5b";

static bool same(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static double rounded(double x) {
    // Not rint: its result depends on the rounding direction.
    double whole = floor(x), rest = x - whole;
    bool is_odd = fmod(whole, 2) != 0;
    return rest > 0.5 || (rest == 0.5 && is_odd) ? whole + 1 : whole;
}

static double e(double d) {
    if (d < -708) return 0;
    double k = rounded(d * 0x1.71547652b82fep+0);
    double high = k * 0x1.62e42feep-1, low = k * 0x1.a39ef35793c76p-33;
    double r = (d - high) - low, p = 0;
    for (int i = 13; i >= 0; i--) {
        double factorial = 1;
        for (int j = 2; j <= i; j++)
            factorial *= j;
        double product = p * r;
        p = product + 1 / factorial;
    }
    return ldexp(p, (int)k);
}

static double sum_of(const double *x, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i += 256) {
        double sum = 0;
        for (size_t k = i; k < n && k < i + 256; k++)
            sum += x[k];
        total += sum;
    }
    return total;
}

struct row {
    double d[MOST], e[MOST], l[MOST], sum;
};

static void make_row(const float *x, size_t n, struct row *out) {
    float max = x[0];
    for (size_t i = 1; i < n; i++)
        max = fmaxf(max, x[i]);
    for (size_t i = 0; i < n; i++) {
        out->d[i] = (double)x[i] - (double)max;
        out->e[i] = e(out->d[i]);
    }
    out->sum = sum_of(out->e, n);
    for (size_t i = 0; i < n; i++)
        out->l[i] = out->d[i] - ree_exact_log(out->sum);
}

static double divergence_of(const struct row *x, const struct row *y, size_t n) {
    double t[MOST];
    for (size_t i = 0; i < n; i++)
        t[i] = y->e[i] == 0 ? 0 : y->e[i] * (y->l[i] - x->l[i]);
    double quotient = sum_of(t, n) / y->sum;
    return quotient > 0 ? quotient : 0;
}

// Draws logits like those of a language model. A few are very large or infinite.
static void draw(struct splitmix *rng, float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = ((float)splitmix_below(rng, 1 << 20) - (1 << 19)) / (1 << 15);
        uint32_t kind = splitmix_below(rng, 100);
        if (kind == 0) x[i] = -INFINITY;
        if (kind == 1) x[i] *= 60;
        if (kind == 2) x[i] *= 1e30f;
    }
    x[splitmix_below(rng, (uint32_t)n)] = 17;
}

static void test_rows(void) {
    static struct row p, q;
    struct splitmix rng = {20261126};
    struct ree_hasher *hasher = ree_hasher_create("test");
    for (int trial = 0; trial < 400; trial++) {
        float x[MOST], y[MOST];
        size_t n = trial < 20 ? (size_t)trial % 3 + 1 : 1 + splitmix_below(&rng, MOST);
        draw(&rng, x, n);
        draw(&rng, y, n);
        struct ree_distribution a, b;
        REQUIRE(ree_distribution_init(&a, x, n) && ree_distribution_init(&b, y, n));
        make_row(x, n, &p);
        make_row(y, n, &q);
        CHECK(same(a.sum, p.sum) && same(b.sum, q.sum));
        for (size_t i = 0; i < n; i++)
            CHECK(same(ree_distribution_logprob(&a, i), p.l[i]));
        for (size_t i = 0; i < n; i++)
            CHECK(x[i] <= x[a.top] && (x[i] < x[a.top] || i >= a.top));
        double divergence = ree_distribution_divergence(&a, &b);
        CHECK(same(divergence, divergence_of(&p, &q, n)));
        CHECK(same(ree_distribution_divergence(&a, &a), 0));
        CHECK(divergence >= 0);
        ree_hasher_update(hasher, &divergence, sizeof divergence);
        ree_hasher_update(hasher, p.l, n * sizeof *p.l);
    }
    char hex[65];
    ree_hasher_finish(hasher, hex);
    CHECK_MSG(strcmp(hex, recorded) == 0, "%s instead of %s", hex, recorded);
}

// Two tokens, whose logits differ by d: the smaller probability is e(d) / (1 + e(d)).
static void test_exponential(void) {
    struct splitmix rng = {1};
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        float x[2] = {0, -(float)splitmix_below(&rng, 1 << 24) * (709.0f / (1 << 24))};
        // A third of them close to 0.
        if (i % 3 == 0) x[1] /= 1000;
        struct ree_distribution d;
        REQUIRE(ree_distribution_init(&d, x, 2));
        // d.sum - 1 would lose bits. So e() is compared with MPFR, and with ree by test_rows.
        double exact = ree_exact_exp((double)x[1]), computed = e((double)x[1]);
        CHECK(same(d.sum, 1 + computed));
        if (computed == 0) {
            CHECK(x[1] < -708);
            continue;
        }
        double ulp = nextafter(exact, INFINITY) - exact;
        worst = fmax(worst, fabs(computed - exact) / ulp);
    }
    printf("the exponential is within %.3f ulp\n", worst);
    CHECK(worst <= 1);
}

static void test_special(void) {
    struct ree_distribution a, b;
    const float nan_[3] = {1, NAN, 2}, infinite[3] = {1, 2, INFINITY},
                nothing[2] = {-INFINITY, -INFINITY};
    CHECK(!ree_distribution_init(&a, nan_, 3));
    CHECK(!ree_distribution_init(&a, infinite, 3));
    CHECK(!ree_distribution_init(&a, nothing, 2));
    CHECK(!ree_distribution_init(&a, nan_ + 1, 1));
    // One token of probability 1, the other excluded.
    const float sure[2] = {-INFINITY, -3}, equal[2] = {5, 5};
    REQUIRE(ree_distribution_init(&a, sure, 2) && ree_distribution_init(&b, equal, 2));
    CHECK(a.top == 1 && b.top == 0);
    CHECK(ree_distribution_logprob(&a, 1) == 0);
    CHECK(ree_distribution_logprob(&a, 0) == -INFINITY);
    CHECK(ree_distribution_logprob(&b, 0) == -ree_exact_log(2));
    // The reference is sure: ln 2. The model excludes what the reference expects: infinite.
    CHECK(ree_distribution_divergence(&b, &a) == ree_exact_log(2));
    CHECK(ree_distribution_divergence(&a, &b) == INFINITY);
    // Zeros of both signs are equal: the first is the most likely.
    const float zeros[3] = {-0.0f, 0.0f, -1};
    REQUIRE(ree_distribution_init(&a, zeros, 3));
    CHECK(a.top == 0);
    // Rounding errors must not make a divergence negative.
    float x[MOST], y[MOST];
    struct splitmix rng = {3};
    for (int trial = 0; trial < 1000; trial++) {
        draw(&rng, x, 50);
        memcpy(y, x, sizeof y);
        size_t i = splitmix_below(&rng, 50);
        y[i] = nextafterf(y[i], 0);
        REQUIRE(ree_distribution_init(&a, x, 50) && ree_distribution_init(&b, y, 50));
        CHECK(ree_distribution_divergence(&a, &b) >= 0);
        CHECK(!signbit(ree_distribution_divergence(&a, &b)));
    }
}

static void test_sum(void) {
    double x[512];
    for (int i = 0; i < 512; i++)
        x[i] = i ? 1 : 0x1p53;
    // 2^53 + 1 rounds to 2^53, so the first chunk loses its ones, but not the second.
    CHECK(ree_chunk_sum64(x, 512) == 0x1p53 + 256);
    CHECK(ree_chunk_sum64(x, 256) == 0x1p53);
    x[0] = -0.0;
    CHECK(same(ree_chunk_sum64(x, 1), 0) && same(ree_chunk_sum64(x, 0), 0));
}

int main(void) {
    test_rows();
    test_exponential();
    test_special();
    test_sum();
    return test_finish();
}
