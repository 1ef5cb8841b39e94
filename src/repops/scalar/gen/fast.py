#!/usr/bin/env python3
"""Writes fast.inc: the polynomials of the double forms in fast.h.

    python3 -m pip install mpmath
    python3 src/repops/scalar/gen/fast.py > src/repops/scalar/fast.inc

Interpolated at Chebyshev nodes with 250 bits, each coefficient rounded to double. Even and odd
coefficients are summed apart, which halves the chain of dependent operations. The order of the
operations is part of what the exhaustive proof covers: after a change, run it again.
"""
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, sqrt, log, exp, erf, erfc, polyval

mp.prec = 250


def interpolate(f, a, b, degree):
    n = degree + 1
    nodes = [(a + b) / 2 - (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    scale = max(abs(a), abs(b))
    m = matrix(n, n)
    v = matrix(n, 1)
    for i, x in enumerate(nodes):
        for j in range(n):
            m[i, j] = (x / scale) ** j
        v[i] = f(x)
    c = lu_solve(m, v)
    return [c[j] / scale ** j for j in range(n)]


def polynomial(name, comment, f, a, b, degree, weight=1):
    a, b = mpf(a), mpf(b)
    c = [float(k) for k in interpolate(f, a, b, degree)]
    worst = mpf(0)
    for i in range(300):
        x = a + (b - a) * (i + mpf("0.37")) / 300
        worst = max(worst, abs(polyval([mpf(k) for k in reversed(c)], x) - f(x)))
    print("// %s: degree %d, error 2^%.1f of the whole." %
          (comment, degree, float(log(worst * weight, 2))))
    print("REE_FN double ree_fast_poly_%s(double t) {" % name)
    print("    double t2 = t * t;")
    for half in (0, 1):
        part = c[half::2]
        terms = part[-1].hex()
        text = terms
        for k in reversed(part[:-1]):
            text = "(%s) * t2 + %s" % (text, k.hex()) if text != terms else \
                "%s * t2 + %s" % (text, k.hex())
        print("    double %s = %s;" % (("even", "odd")[half], text.replace("+ -", "- ")))
    print("    return even + t * odd;")
    print("}")
    print()


def main():
    print("// Made by gen/fast.py. Do not edit.")
    print()
    tiny = mpf("1e-40")
    polynomial("exp", "(e^t - 1 - t) / t^2 on [-0.3466, 0.3466]",
               lambda t: (exp(t) - 1 - t) / t / t, "-0.34660001", "0.3466", 10, mpf("0.12"))
    polynomial("log", "(ln((1 + s) / (1 - s)) / s - 2) / t, t = s^2 up to 0.0296",
               lambda t: (log((1 + sqrt(t)) / (1 - sqrt(t))) / sqrt(t) - 2) / t,
               mpf("1e-30"), "0.0296", 7, mpf("0.015"))
    polynomial("erf", "erf(x) / x, t = x^2 up to 1",
               lambda t: erf(sqrt(t)) / sqrt(t), tiny, 1, 12)
    polynomial("erfc", "erfc(x) * e^(x^2), t = (x - 5/2) / (x + 5/2), x from 1 to 4",
               lambda t: (lambda x: erfc(x) * exp(x * x))(mpf("2.5") * (1 + t) / (1 - t)),
               mpf("-1.5") / mpf("3.5"), mpf("1.5") / mpf("6.5"), 13, mpf("0.37"))
    ln2 = log(mpf(2))
    high = float(int(ln2 * 2**38)) / 2**38
    print("// ln 2 in two parts: multiples of the first up to 2^14 are exact.")
    print("#define REE_FAST_LN2_HIGH %s" % high.hex())
    print("#define REE_FAST_LN2_LOW %s" % float(ln2 - mpf(high)).hex())
    print("#define REE_FAST_LOG2E %s" % float(1 / ln2).hex())


if __name__ == "__main__":
    main()
