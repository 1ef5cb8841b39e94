#!/usr/bin/env python3
"""Writes polynomials.inc: the polynomials and constants of the integer elementary functions.

    python3 -m pip install mpmath
    python3 src/repops/scalar/gen/polynomials.py > src/repops/scalar/polynomials.inc

Each polynomial is interpolated at Chebyshev nodes with 200 bits and evaluated by Horner's rule in
64-bit fixed point. The variable is a fraction t / 2^64. Where every partial sum keeps its sign
over the interval, magnitudes are added and subtracted unsigned; the script stops when one does
not. The error printed beside each is of the polynomial alone, before rounding.
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, sin, sqrt, log, exp, expm1, atan, erf, floor, nint

mp.prec = 300
COLUMNS = 100


def interpolate(f, width, degree):
    n = degree + 1
    nodes = [mpf(width) / 2 * (1 - cos(pi * (2 * i + 1) / (2 * n))) for i in range(n)]
    a = matrix(n, n)
    b = matrix(n, 1)
    for i, x in enumerate(nodes):
        # Powers of the variable relative to the width keep the system well conditioned.
        for j in range(n):
            a[i, j] = (x / width) ** j
        b[i] = f(x)
    c = lu_solve(a, b)
    return [c[j] / mpf(width) ** j for j in range(n)]


def error(f, c, width, samples=400):
    worst = mpf(0)
    for i in range(samples):
        x = mpf(width) * (i + mpf(1) / 2) / samples
        p = mpf(0)
        for k in reversed(c):
            p = p * x + k
        worst = max(worst, abs(p - f(x)))
    return worst


def u64(v):
    v = int(nint(v))
    assert 0 <= v < 2**64, hex(v)
    return "REE_U64(0x%08Xu, 0x%08Xu)" % (v >> 32, v & 0xFFFFFFFF)


def polynomial(name, comment, f, width, degree, scale):
    c = interpolate(f, width, degree)
    e = error(f, c, width)
    signs = []
    for k in range(degree + 1):
        values = []
        for i in range(65):
            x = mpf(width) * i / 64
            p = mpf(0)
            for coefficient in reversed(c[k:]):
                p = p * x + coefficient
            values.append(p)
        assert all(v > 0 for v in values) or all(v < 0 for v in values), (name, k)
        assert max(abs(v) for v in values) * 2**scale < 2**64, (name, k)
        signs.append(values[0] > 0)
    assert signs[0]
    print("// %s," % comment)
    print("// times 2^%d, for t up to %s: degree %d, error 2^%.1f." %
          (scale, mp.nstr(mpf(width), 4), degree, float(log(e, 2))))
    print("REE_FN u64 ree_poly_%s(u64 t) {" % name)
    print("    u64 p = %s;" % u64(abs(c[degree]) * 2**scale))
    for k in range(degree - 1, -1, -1):
        operation = "add" if signs[k] == signs[k + 1] else "sub"
        print("    p = u64_%s(%s, u64_mulh(p, t));" % (operation, u64(abs(c[k]) * 2**scale)))
    print("    return p;")
    print("}")
    print()


def even(f):
    """f(x) / x as a function of x * x, by its own definition away from 0."""
    def g(t):
        x = sqrt(t)
        return f(x) / x
    return g


def bits_of(value, first, count):
    """count 32-bit words of a fraction, from its bit `first` (0 is worth 1/2)."""
    return [int(floor(value * mpf(2) ** (first + 32 * (i + 1)))) & 0xFFFFFFFF for i in range(count)]


def main():
    print("// Made by gen/polynomials.py. Do not edit.")
    print()
    ln2 = log(mpf(2))
    polynomial("exp2", "(2^t - 1) / t", lambda t: expm1(t * ln2) / t, 1, 12, 64)
    polynomial("expm1", "((e^t - 1) / t - 1) / t", lambda t: (expm1(t) - t) / t / t, 0.25, 9, 64)
    polynomial("expm1n", "(1 - (1 - e^-t) / t) / t", lambda t: (t + expm1(-t)) / t / t, 0.25, 9, 64)
    polynomial("log2", "log2((1 + s) / (1 - s)) / s, t = s^2",
               even(lambda s: log((1 + s) / (1 - s)) / ln2), 0.0296, 8, 62)
    polynomial("sin", "(1 - sin(x) / x) / t, t = x^2",
               lambda t: (1 - even(sin)(t)) / t, 0.62, 6, 64)
    polynomial("cos", "(1 - cos(x)) / t, t = x^2", lambda t: (1 - cos(sqrt(t))) / t, 0.62, 7, 64)
    polynomial("atan", "(1 - atan(y) / y) / t, t = y^2",
               lambda t: (1 - even(atan)(t)) / t, 0.0626, 10, 64)

    # 1/sqrt(1 + t) on [0, 1) and half that argument's root, in 32 bits: the start of Newton's step.
    c = interpolate(lambda t: 1 / sqrt(1 + t), 1, 5)
    e = error(lambda t: 1 / sqrt(1 + t), c, 1)
    print("// 1 / sqrt(1 + t), t below 1 as t / 2^32, times 2^31: error 2^%.1f." % float(log(e, 2)))
    print("REE_FN u32 ree_poly_rsqrt32(u32 t) {")
    print("    u32 p = 0x%08Xu;" % int(nint(abs(c[5]) * 2**31)))
    for k in range(4, -1, -1):
        assert (c[k] > 0) != (c[k + 1] > 0)
        print("    p = 0x%08Xu - u64_hi(u64_mul32(p, t));" % int(nint(abs(c[k]) * 2**31)))
    print("    return p;")
    print("}")
    print()

    half_pi = pi / 2
    for name, comment, value, scale in [
            ("LN2", "ln 2", ln2, 64),
            ("HALF_PI", "pi / 2", half_pi, 63),
            ("QUARTER_PI", "pi / 4", pi / 4, 64),
            ("ATAN_HALF", "atan(1 / 2)", atan(mpf(1) / 2), 65)]:
        print("// %s, times 2^%d." % (comment, scale))
        print("#define REE_%s %s" % (name, u64(value * mpf(2)**scale)))
    words = bits_of(ln2, 0, 4)
    print("// ln 2, times 2^128: the high and the low 64 bits.")
    print("#define REE_LN2_HIGH REE_U64(0x%08Xu, 0x%08Xu)" % (words[0], words[1]))
    print("#define REE_LN2_LOW REE_U64(0x%08Xu, 0x%08Xu)" % (words[2], words[3]))
    print("// log2(e), times 2^95, in words from the high end.")
    words = bits_of(1 / ln2 / 2, 0, 3)
    for i, w in enumerate(words):
        print("#define REE_LOG2E_%d 0x%08Xu" % (i, w))
    print()

    print("// 2 / pi behind 32 zero bits, in words from the high end.")
    print("REE_TABLE u32 REE_TWO_OVER_PI[10] = {")
    words = [0] + bits_of(2 / pi, 0, 9)
    for i in range(0, 10, 5):
        print("    " + " ".join("0x%08Xu," % w for w in words[i:i + 5]))
    print("};")
    print()

    degree = 12
    print("// erf(x) / x at x = (i + t) / 4, times 2^62, two's complement: row i, the highest")
    print("// coefficient first.")
    print("#define REE_ERF_TERMS %du" % (degree + 1))
    print("REE_TABLE u64 REE_ERF[%d] = {" % (16 * (degree + 1)))
    worst = mpf(0)
    for i in range(16):
        def g(t):
            x = (i + t) / 4
            return erf(x) / x if x != 0 else 2 / sqrt(pi)
        c = interpolate(g, 1, degree)
        worst = max(worst, error(g, c, 1, 100) / g(mpf(1)))
        for k in reversed(c):
            print("    %s," % u64(int(nint(k * 2**62)) & (2**64 - 1)))
    print("};")
    print("// Relative error of these polynomials: 2^%.1f." % float(log(worst, 2)))


main()
