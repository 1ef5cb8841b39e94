"""A program that gives libree an allocator of its own (allocator.c) gets ree-run's SHA-256 values."""
import argparse
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import run

parser = argparse.ArgumentParser()
for name in ("--libree", "--ree-run", "--source", "--cc"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
SAMPLES = os.path.join(args.source, "tools/sample")


harness.need_program(args.cc.split()[0], "C compiler")
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "allocator")
    run(args.cc, "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(args.source, "src"),
        os.path.join(args.source, "tests/library/allocator.c"), args.libree, 
        "-Wl,-rpath," + os.path.dirname(os.path.abspath(args.libree)), "-o", program)
    ours = run(program, SAMPLES)
    digits = run(args.ree_run, os.path.join(SAMPLES, "digits.onnx"), "--input", os.path.join(SAMPLES, "seven.npy"))
    stories = run(args.ree_run, os.path.join(SAMPLES, "stories"), "--prompt-text", "Once upon a time",
                  "--max-new-tokens", "4", "--json")
    for line, pattern, text in (("digits", r"^sha256\s+([0-9a-f]{64})$", digits),
                                ("stories", r'"tokens_sha256":\s*"([0-9a-f]{64})"', stories)):
        expected = re.search(pattern, text, re.M).group(1)
        if f"{line} {expected}\n" not in ours:
            sys.exit(f"{line}: ree-run {expected}\n{ours}")
    print(ours, end="")
