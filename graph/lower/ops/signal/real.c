// cos, sin, log and exp by their series, after a reduction of the argument to a small range.
#include "graph/lower/ops/signal/real.h"

#include <math.h>

#define TWO_PI 0x1.921fb54442d18p+2
#define LN2 0x1.62e42fefa39efp-1

// With z = t^2: cos t = 1 - z/2! + z^2/4! - ... if `last` is even, sin(t)/t = 1 - z/3! + z^2/5! -
// ... if it is odd. The last term is divided by `last`!. Evaluated from the innermost term, each
// with one division.
static double alternating(double z, int last) {
    double sum = 1;
    for (int k = last; k >= 2; k -= 2)
        sum = 1 - z / (double)(k * (k - 1)) * sum;
    return sum;
}

void ree_real_turn(int64_t m, int64_t n, double *out_cos, double *out_sin) {
    // The angle in units of which n are an eighth of a turn.
    int64_t at = 8 * m;
    double cos_sign = 1, sin_sign = 1;
    if (at > 4 * n) {
        at = 8 * n - at;
        sin_sign = -1;
    }
    if (at > 2 * n) {
        at = 4 * n - at;
        cos_sign = -1;
    }
    int swapped = at > n;
    if (swapped) at = 2 * n - at;
    double t = (double)at / (double)(8 * n) * TWO_PI, z = t * t;
    double c = alternating(z, 18), s = t * alternating(z, 19);
    *out_cos = cos_sign * (swapped ? s : c);
    *out_sin = sin_sign * (swapped ? c : s);
}

double ree_real_log(double x) {
    int e;
    double m = frexp(x, &e); // exact
    if (m < 0x1.6a09e667f3bcdp-1) {
        m = m * 2;
        e--;
    }
    double s = (m - 1) / (m + 1), z = s * s, sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * z + 1 / (double)k;
    return (double)e * LN2 + 2 * s * sum;
}

double ree_real_exp(double x) {
    double k = floor(x / LN2 + 0.5), r = x - k * LN2, sum = 1; // floor is exact
    for (int i = 16; i >= 1; i--)
        sum = 1 + r / (double)i * sum;
    return ldexp(sum, (int)k); // exact
}
