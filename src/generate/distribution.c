// Computes log probabilities and divergences. Every operation is IEEE 754 binary64, rounded once,
// in the order of NUMERICS.md. The only other function is the logarithm of a sum, once for each
// row, which MPFR rounds correctly.
#include "generate/distribution.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "repops/elementary64.h"

#define CHUNK 256

// Returns e^d for d <= 0, within an ulp: d = k ln 2 + r, then Taylor's polynomial of degree 13 in
// r. libm's exp has other bits on other systems, and MPFR's takes microseconds. The code has no
// branches, so that compilers vectorise the loops around it.
static inline double exp_of(double d) {
    static const double log2e = 0x1.71547652b82fep+0;
    // ln 2 in two parts. The first has 33 bits, so its product with k is exact.
    static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    // Adding and subtracting 1.5 * 2^52 rounds to an integer, ties to even.
    static const double shift = 0x1.8p52;
    double clamped = d < -708 ? -708 : d, shifted = clamped * log2e + shift, k = shifted - shift;
    double r = (clamped - k * ln2_high) - k * ln2_low;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // The low bits of `shifted` are k in two's complement; 1023 + k is the exponent of 2^k.
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return d < -708 ? 0 : p * scale;
}

// The sum of the results of chunks, added in ascending order.
struct chunks {
    double total;
};

static void add_chunk(struct chunks *c, const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum + x[i];
    c->total = c->total + sum;
}

double ree_chunk_sum64(const double *x, size_t n) {
    struct chunks sum = {0};
    for (size_t i = 0; i < n; i += CHUNK)
        add_chunk(&sum, x + i, n - i < CHUNK ? n - i : CHUNK);
    return sum.total;
}

bool ree_distribution_init(struct ree_distribution *out, const float *logits, size_t n) {
    // The loop has no early exit, so that compilers can vectorise it.
    int wrong = 0;
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        wrong |= !(logits[i] < INFINITY);
        max = logits[i] > max ? logits[i] : max;
    }
    if (wrong || !(max > -INFINITY)) return false;
    size_t top = 0;
    while (logits[top] != max)
        top++;
    *out = (struct ree_distribution){.logits = logits, .n = n, .max = (double)max, .top = top};
    struct chunks sum = {0};
    for (size_t i = 0; i < n; i += CHUNK) {
        double e[CHUNK];
        size_t length = n - i < CHUNK ? n - i : CHUNK;
        for (size_t k = 0; k < length; k++)
            e[k] = exp_of((double)logits[i + k] - out->max);
        add_chunk(&sum, e, length);
    }
    out->sum = sum.total;
    out->log_sum = ree_exact_log(out->sum);
    return true;
}

double ree_distribution_logprob(const struct ree_distribution *d, size_t i) {
    return ((double)d->logits[i] - d->max) - d->log_sum;
}

double ree_distribution_divergence(const struct ree_distribution *d,
                                   const struct ree_distribution *reference) {
    struct chunks sum = {0};
    for (size_t i = 0; i < d->n; i += CHUNK) {
        double terms[CHUNK];
        size_t length = d->n - i < CHUNK ? d->n - i : CHUNK;
        for (size_t k = 0; k < length; k++) {
            double x = (double)reference->logits[i + k] - reference->max;
            double e = exp_of(x), other = ree_distribution_logprob(d, i + k);
            double term = e * ((x - reference->log_sum) - other);
            // The product would be NaN for 0 * infinity.
            terms[k] = e == 0 ? 0 : term;
        }
        add_chunk(&sum, terms, length);
    }
    double divergence = sum.total / reference->sum;
    // Rounding can make a divergence of almost 0 negative.
    return divergence > 0 ? divergence : 0;
}
