#!/usr/bin/env python3
"""Writes SUPPORT.md, or checks that it is up to date.

    tools/support.py --write
    tools/support.py --check

Its sources are the operator table (graph/lower/ops/ops.def and the files it includes) and recorded test
results: tests/models/coverage.txt (ONNX's operator tests, written by onnx_cases) and
tests/contrib/coverage.txt (random nodes compared with ONNX Runtime, written by contrib.py). It runs
nothing.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COVERAGE = ["tests/models/coverage.txt", "tests/contrib/coverage.txt"]
ROW = re.compile(r'^OP\("([^"]*)",\s*"([^"]*)",\s*(\d+),\s*(\d+),.*?(WIDEN|AS_IS|ANY)', re.M | re.S)
TYPES = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint64",
         "uint32", "uint16", "uint8", "bool"]

INTRODUCTION = """\
# What ree supports

tools/support.py makes this page from the operator table and from the recorded results of the tests;
the suite fails if the page is stale. {rows} operators, {shown} of them with operator tests.

- *opsets*: the opsets that the operator's rule supports.
- *shown*: the types of the first input, each with the opsets of the operator tests that pass with
  it. The tests are ONNX's own; for com.microsoft they are random nodes, compared with ONNX Runtime.
- Backends: there is one column for all of them, because the suite fails unless every case that
  passes on the CPU also passes on Vulkan with the same bytes, fused or not (`models/onnx_vulkan`,
  `contrib/vulkan`: a few of the random nodes). ree emulates what a device lacks (64-bit integers,
  16-bit storage, exact fma); `ree-run devices` prints it. The exception is float64: a device adds,
  multiplies, divides and computes roots, but refuses other functions of float64. Only the CPU
  computes those.
- An operator without an entry in *shown* has its own tests under tests/, or no ONNX case consists of
  only that node.
- Not supported although ONNX lists the types: Erf of integers. ONNX does not define how the result
  becomes an integer. If the result is not 0, it would depend on how a number just below 1 is rounded.
- The operators of the domain ree are ree's own. src/repops/NUMERICS.md defines them.
- Operators with a + compute float16 and bfloat16 in float32 and round once.
"""


def table(path="graph/lower/ops/ops.def"):
    """Maps (domain, operator) to its rows (since, until, widens); follows includes."""
    rows = collections.defaultdict(list)
    text = (ROOT / path).read_text()
    for included in re.findall(r'^#include "([^"]+)"', text, re.M):
        for key, more in table(included).items():
            rows[key] += more
    for domain, name, since, until, narrow in ROW.findall(re.sub(r"//.*", "", text)):
        if domain != "ree.internal":  # operators that passes insert instead of ONNX's operators
            rows[domain or "ai.onnx", name].append((int(since), int(until), narrow == "WIDEN"))
    return rows


def coverage():
    """Maps (domain, operator) to {type: opsets}."""
    shown = collections.defaultdict(lambda: collections.defaultdict(set))
    for path in COVERAGE:
        for line in (ROOT / path).read_text().splitlines():
            if line and not line.startswith("#"):
                domain, name, opset, dtype = line.split()
                shown[domain, name][dtype].add(int(opset))
    return shown


def spans(numbers):
    """Formats [7, 13, 14, 15] as '7, 13-15'."""
    runs = []
    for n in sorted(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def order(dtype):
    return (TYPES.index(dtype) if dtype in TYPES else len(TYPES), dtype)


def by_opsets(types):
    """Groups types that were tested with the same opsets."""
    groups = collections.defaultdict(list)
    for dtype in sorted(types, key=order):
        groups[spans(types[dtype])].append(dtype)
    return "; ".join(f"{', '.join(dtypes)} ({opsets})" for opsets, dtypes in groups.items())


def page():
    rows, shown = table(), coverage()
    unknown = sorted(set(shown) - set(rows))
    # Functions of a model, and operators that passes remove, have no row of their own.
    known = {key for key in shown if key in rows}
    parts = [INTRODUCTION.format(rows=len(rows), shown=len(known))]
    for domain in sorted({domain for domain, _ in rows}, key=lambda d: (d != "ai.onnx", d)):
        parts.append(f"\n## {domain}\n\n| operator | opsets | shown |\n|---|---|---|\n")
        for key in sorted(key for key in rows if key[0] == domain):
            opsets = spans({n for since, until, _ in rows[key] for n in range(since, until + 1)})
            plus = " +" if any(widens for _, _, widens in rows[key]) else ""
            parts.append(f"| {key[1]}{plus} | {opsets} | {by_opsets(shown.get(key, {}))} |\n")
    if unknown:
        parts.append("\n## Shown without a row\n\n"
                     "The readers replace calls of these with other operators.\n\n")
        parts += [f"- {' '.join(key)}: {by_opsets(shown[key])}\n" for key in unknown]
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser()
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write SUPPORT.md")
    action.add_argument("--check", action="store_true", help="fail if SUPPORT.md is not up to date")
    args = parser.parse_args()
    path = ROOT / "SUPPORT.md"
    text = page()
    if args.write:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        print("FAILED: SUPPORT.md is stale; run tools/support.py --write")
        sys.exit(1)


if __name__ == "__main__":
    main()
