#!/usr/bin/env python3
"""Writes fast_trig.inc: the constants of the double forms of sin, cos and tan in fast_trig.h.

    python3 -m pip install mpmath
    python3 src/repops/scalar/gen/fast_trig.py | clang-format > src/repops/scalar/fast_trig.inc

After a change, run the exhaustive proof again.
"""
from mpmath import cos, floor, mpf, pi, sin, sqrt

from fast import polynomial

LIMIT = mpf("0.6169")  # (pi/4)^2 and a little more
N_PIECES = 8
PIECE_BITS = 29


def main():
    print("// Made by gen/fast_trig.py. Do not edit.")
    print()
    polynomial("sin", "(1 - sin(r) / r) / t, t = r^2 up to %s" % LIMIT,
               lambda t: (1 - sin(sqrt(t)) / sqrt(t)) / t, "1e-40", LIMIT, 6, LIMIT)
    polynomial("cos", "(1 - cos(r)) / t, t = r^2 up to %s" % LIMIT,
               lambda t: (1 - cos(sqrt(t))) / t, "1e-40", LIMIT, 6, LIMIT)
    print("// 2/pi in pieces of %d bits: the bits worth 2^-1 to 2^-%d, then the next ones, and so on." %
          (PIECE_BITS, PIECE_BITS))
    rest = 2 / pi
    for i in range(N_PIECES):
        unit = mpf(2) ** (-PIECE_BITS * (i + 1))
        piece = floor(rest / unit) * unit
        rest -= piece
        print("#define REE_FAST_TWO_OVER_PI_%d %s" % (i, float(piece).hex()))
    print("#define REE_FAST_HALF_PI %s" % float(pi / 2).hex())


if __name__ == "__main__":
    main()
