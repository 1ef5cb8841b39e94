// Tables computed on the host: sines and cosines, logarithm and exponential compared with the C
// library; windows and mel weights compared with their formulas.
#include "check.h"
#include "graph/lower/ops/signal/real.h"

#define TWO_PI 6.283185307179586476925286766559005768L

static double ulps(double got, long double want) {
    int e;
    frexp((double)want, &e);
    return (double)fabsl(((long double)got - want) / ldexpl(1, e - 53));
}

static void turns(void) {
    static const int64_t lengths[] = {1, 2, 3, 4, 7, 8, 12, 100, 255, 256, 1021, 4096, 1 << 20};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int64_t n = lengths[l], step = n > 5000 ? 997 : 1;
        for (int64_t m = 0; m < n; m += step) {
            double c, s;
            ree_real_turn(m, n, &c, &s);
            // The library's argument is rounded, so zeros are checked separately.
            long double angle = TWO_PI * (long double)m / (long double)n;
            bool quarter = 4 * m % n == 0;
            if (quarter) {
                static const double cosines[4] = {1, 0, -1, 0}, sines[4] = {0, 1, 0, -1};
                CHECK(c == cosines[4 * m / n] && s == sines[4 * m / n]);
                continue;
            }
            // ree_real_turn rounds the angle twice, and then the series and the sine's product.
            // Each rounding changes the result by less than 1 ulp. Measured: 2.1 ulps.
            CHECK_MSG(ulps(c, cosl(angle)) < 3 && ulps(s, sinl(angle)) < 3,
                      "%lld of %lld: cos %.17g sin %.17g", (long long)m, (long long)n, c, s);
            // The other half of the circle and the mirror image at an eighth have exactly the same
            // numbers.
            double c2, s2;
            ree_real_turn(n - m, n, &c2, &s2);
            CHECK(c2 == c && s2 == -s);
            if (n % 4 == 0 && m < n / 4 && 8 * m != n) {
                ree_real_turn(n / 4 - m, n, &c2, &s2);
                CHECK(c2 == s && s2 == c);
            }
        }
    }
    // With u = 2^-53: log(x) is e ln2 (two roundings: ln2 and the product) plus a series of
    // magnitude up to 0.35 (four roundings). The sum and the library's logarithm have up to 3u of
    // error, and |e ln2| is at most |log(x)| + 0.35. So the difference is up to 5u |log(x)| + 2.1u.
    //
    // exp(x) = 2^k exp(r), r = x - k ln2: the product and ln2 put an error of up to 2u x into r.
    // The series and the library's exponential have up to 4u of relative error.
    double x = 1e-3;
    for (int i = 0; i < 3000; i++, x *= 1.0057) {
        CHECK_MSG(fabs(ree_real_log(x) - log(x)) <= 6e-16 * fabs(log(x)) + 3e-16, "log(%.17g)", x);
        if (x < 700)
            CHECK_MSG(fabs(ree_real_exp(x) - exp(x)) <= 5e-16 * (1 + x) * exp(x), "exp(%.17g)", x);
    }
}

static void windows(void) {
    static const struct {
        const char *op;
        double a0, a1, a2;
    } kinds[] = {{"HannWindow", 0.5, 0.5, 0},
                 {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
                 {"BlackmanWindow", 0.42, 0.5, 0.08}};
    static double want[1024];
    for (size_t k = 0; k < 3; k++)
        for (int64_t size = 0; size < 1000; size = size * 2 + 1)
            // A symmetric window of size 1 would be 0 / 0.
            for (int periodic = size == 1; periodic < 2; periodic++) {
                for (int64_t i = 0; i < size; i++) {
                    double t = (double)TWO_PI * (double)i / (double)(size - !periodic);
                    want[i] = kinds[k].a0 - kinds[k].a1 * cos(t) + kinds[k].a2 * cos(2 * t);
                }
                struct test_node n;
                test_node_start(&n, kinds[k].op, 17);
                test_node_input(&n, REE_I64, 0, NULL, &size);
                test_node_int(&n, "periodic", periodic);
                CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
                // The angle, up to 2 pi, has three roundings of 2^-24, and a window changes by at
                // most 0.66 times as much: 7.4e-7. The steps after the cosine have a few roundings
                // more.
                check_close(&n, 0, 1, &size, want, 1e-6);
                test_node_finish(&n);
            }
}

static void mel(void) {
    static const int64_t settings[][3] = {{8, 16, 8192}, {40, 512, 16000}, {80, 1024, 22050}};
    for (size_t k = 0; k < 3; k++) {
        int64_t n_bins = settings[k][0], length = settings[k][1], rate = settings[k][2];
        int64_t rows = length / 2 + 1, edges[128];
        float low = 20, high = (float)rate / 2.1f;
        double from = 2595 * log10(1 + (double)low / 700);
        double step = (2595 * log10(1 + (double)high / 700) - from) / (double)(n_bins + 2);
        for (int64_t i = 0; i < n_bins + 2; i++) {
            double hertz = 700 * (pow(10, ((double)i * step + from) / 2595) - 1);
            edges[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
        }
        double *want = calloc((size_t)(rows * n_bins), sizeof *want);
        REQUIRE(want != NULL);
        for (int64_t i = 0; i < n_bins; i++)
            for (int64_t j = 0; j < rows; j++) {
                const int64_t *e = edges + i;
                if (j >= e[0] && j < e[1])
                    want[j * n_bins + i] = (double)(j - e[0]) / (double)(e[1] - e[0]);
                if (j == e[1]) want[j * n_bins + i] = 1;
                if (j > e[1] && j < e[2])
                    want[j * n_bins + i] = (double)(e[2] - j) / (double)(e[2] - e[1]);
            }
        struct test_node n;
        test_node_start(&n, "MelWeightMatrix", 17);
        for (int i = 0; i < 3; i++)
            test_node_input(&n, REE_I64, 0, NULL, &settings[k][i]);
        test_node_f32(&n, 0, NULL, &low);
        test_node_f32(&n, 0, NULL, &high);
        CHECK_MSG(test_node_run(&n, 1) == REE_OK, "%s", n.err.message);
        // The weights, at most 1, are rounded once to float32: by at most 2^-25.
        check_close(&n, 0, 2, (int64_t[]){rows, n_bins}, want, 3e-8);
        test_node_finish(&n);
        free(want);
    }
}

int main(void) {
    turns();
    windows();
    mel();
    return test_finish();
}
