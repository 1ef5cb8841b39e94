"""Prepares a SPIR-V module for specialization when a program runs (src/device/vulkan/spirv_fold.c).

Usage: optimize.py SPIRV_OPT SPIRV_VAL MODULE.spv OUTPUT.spv

Inlines functions and replaces local variables by values, so that the specialization constants reach
the conditions that depend on them. No pass of the list computes floats. In a module with ree_expr,
whose body the host writes (spirv_stitch.c), that function, the functions ree_op_* and what these call
stay functions.

The environment variable REE_SHADER_CACHE names a folder that keeps the results, for builds in several
folders. The key of a result is the SHA-256 of the module, spirv-opt's version and this file.
"""

import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

OP_NAME, OP_FUNCTION, OP_FUNCTION_CALL = 5, 54, 57
DONT_INLINE = 2  # function control

# No pass folds constants: the host does, when it knows the specialization constants.
LOCAL_VALUES = ["--convert-local-access-chains", "--eliminate-local-single-block", "--eliminate-local-single-store"]
PASSES = [
    "--eliminate-dead-functions", "--merge-return", "--inline-entry-points-exhaustive", "--eliminate-dead-functions",
    "--private-to-local", *LOCAL_VALUES, "--scalar-replacement=0", *LOCAL_VALUES, "--ssa-rewrite",
    "--eliminate-dead-code-aggressive", "--merge-blocks", "--eliminate-dead-const",
]


def keep_functions(words):
    """Marks the functions that must stay."""
    names, functions, calls, current, at = {}, {}, {}, None, 5
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if opcode == OP_NAME:
            text = struct.pack(f"<{length - 2}I", *words[at + 2 : at + length])
            names[words[at + 1]] = text.split(b"\0")[0].decode()
        elif opcode == OP_FUNCTION:
            current = words[at + 2]
            functions[current], calls[current] = at, set()
        elif opcode == OP_FUNCTION_CALL:
            calls[current].add(words[at + 3])
        at += length
    expr = [f for f in functions if names.get(f, "").startswith("ree_expr(")]
    waiting = [f for f in functions if expr and names.get(f, "").startswith("ree_op_")]
    kept = set(expr)
    while waiting:
        function = waiting.pop()
        if function not in kept:
            kept.add(function)
            waiting += calls[function]
    for function in kept:
        words[functions[function] + 3] |= DONT_INLINE


def allow_inlining(words):
    """Removes the marks. With NVIDIA's driver (580, H100) products with them did not end: 10 of 10 variants of
    matmul_1_integer that call a marked function in a loop. The same module without passes and marks, and one whose loop
    has a second condition, gave the right bits. That the marks are the cause is a conclusion: modules with passes and
    without marks have not run there."""
    at = 5
    while at < len(words):
        if words[at] & 0xFFFF == OP_FUNCTION:
            words[at + 3] &= ~DONT_INLINE
        at += words[at] >> 16


def read_words(path):
    data = pathlib.Path(path).read_bytes()
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def write_words(path, words):
    pathlib.Path(path).write_bytes(struct.pack(f"<{len(words)}I", *words))


def cached(spirv_opt, data):
    """Returns the path of the module's result in the cache, or None if there is no cache."""
    folder = os.environ.get("REE_SHADER_CACHE")
    if not folder:
        return None
    version = subprocess.run([spirv_opt, "--version"], capture_output=True, check=True).stdout
    key = hashlib.sha256(data + version + pathlib.Path(__file__).read_bytes()).hexdigest()
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    return pathlib.Path(folder) / f"{key}.spv"


def main(spirv_opt, spirv_val, source, out):
    data = pathlib.Path(source).read_bytes()
    kept = cached(spirv_opt, data)
    if kept and kept.exists():
        shutil.copyfile(kept, out)
        return
    words = read_words(source)
    keep_functions(words)
    with tempfile.TemporaryDirectory() as folder:
        marked = pathlib.Path(folder) / "marked.spv"
        write_words(marked, words)
        # spirv-opt would check its input, which takes longer than all passes; the result is checked below.
        command = [spirv_opt, "--skip-validation", "--target-env=vulkan1.2", *PASSES, marked, "-o", out]
        subprocess.run(command, check=True)
    words = read_words(out)
    allow_inlining(words)
    write_words(out, words)
    subprocess.run([spirv_val, "--target-env", "vulkan1.2", out], check=True)
    if kept:
        # Several builds may do this at the same time.
        partial = kept.with_suffix(f".{os.getpid()}")
        shutil.copyfile(out, partial)
        partial.replace(kept)


main(*sys.argv[1:])
