#!/usr/bin/env python3
"""Writes the C source of ree._ree, the extension module of the Python package: a binding of every
function, struct and constant of the public headers, made by cffi.

    bindings.py --compiler cc --output _ree.c SOURCE_FOLDER

cffi cannot read preprocessor directives, so the C compiler expands ree.h first. The standard headers
that ree.h includes are replaced by empty ones (python/headers): cffi knows their types.
"""
import argparse
import pathlib
import re
import subprocess
import sys

import cffi

HERE = pathlib.Path(__file__).resolve().parent
# A macro whose value is an integer. Others (REE_API, include guards, strings) are left out.
CONSTANT = re.compile(r"^#define (REE_\w+) (?:\(?-?\d[\w <()*+-]*)$")
# A struct with a field that points to constant arrays, for which cffi 1.15 generates C that does not
# compile. "..." tells cffi that the struct has more fields than those it knows.
CONST_ARRAY = re.compile(r"^(struct \w+ {\n(?:[^}]*\n)?) *const [\w ]+\(\*\w+\)\[\d+\];\n};", re.M)


def preprocessed(source, compiler, *options):
    """Returns ree.h, and bench.h, which it does not include, after the preprocessor. Without __GNUC__ their attributes
    are empty."""
    return subprocess.run([*compiler, "-E", *options, "-U__GNUC__", "-nostdinc", "-I", str(HERE / "headers"),
                           "-I", str(source), "-include", str(source / "ree" / "bench.h"), "-x", "c", str(source / "ree.h")],
                          check=True, stdout=subprocess.PIPE, text=True).stdout


def declarations(source, compiler):
    """Returns what ree.h declares, as C without directives."""
    return CONST_ARRAY.sub(r"\1...;\n};", preprocessed(source, compiler, "-P"))


def constants(source, compiler):
    """Returns the names of the integer macros of the public headers."""
    lines = preprocessed(source, compiler, "-dM").splitlines()
    return sorted(match[1] for match in map(CONSTANT.match, lines) if match)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--compiler", nargs="+", default=["cc"])
    parser.add_argument("--output", required=True)
    parser.add_argument("source", type=pathlib.Path, help="the folder of ree.h")
    args = parser.parse_args()
    ffi = cffi.FFI()
    ffi.cdef(declarations(args.source, args.compiler))
    ffi.cdef("\n".join(f"#define {name} ..." for name in constants(args.source, args.compiler)))
    ffi.cdef((HERE / "callbacks.cdef").read_text())
    ffi.set_source("ree._ree", (HERE / "callbacks.c").read_text())
    ffi.emit_c_code(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
