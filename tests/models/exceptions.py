#!/usr/bin/env python3
"""Tests the rules of exceptions.h: a listed case must fail, a "case" rule applies only to one
release's files, and a "data" rule excuses only a contradiction of types. The case is the sample
model of digits, in the layout without a folder."""

import argparse
import hashlib
import pathlib
import re
import shutil
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import call, check

N = 28 * 28


def npy(values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 28, 28), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


def tensor(type_of_data, values):
    """Returns a TensorProto of shape [1, 10]."""
    return bytes([0x08, 1, 0x08, 10, 0x10, type_of_data, 0x4a, len(values)]) + values


def main():
    parser = argparse.ArgumentParser()
    for name in ("--ree-run", "--onnx-cases", "--sample"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data, rules = folder / "data", folder / "rules.txt"
        data.mkdir()
        shutil.copyfile(pathlib.Path(args.sample) / "digits.onnx", data / "digits.onnx")
        image = folder / "image.npy"
        image.write_bytes(npy(b"".join(struct.pack("<f", i / N) for i in range(N))))
        done = call(args.ree_run, data / "digits.onnx", "--input", image, "--output-dir", folder)
        check(done.returncode == 0, f"the sample model runs: {done.stderr}")
        right = (folder / "probabilities.npy").read_bytes()[-40:]
        expected = data / "digits_output_0.pb"

        def cases(*lines):
            rules.write_text("".join(line + "  because\n" for line in lines))
            done = call(args.onnx_cases, "--sample", "1/1", "--exceptions", rules, data)
            return done.returncode, done.stdout + done.stderr

        def files():
            """Returns the digest of the files, as defined in case.h."""
            contents = [path.read_bytes() for path in (data / "digits.onnx", expected)]
            return hashlib.sha256(b"".join(struct.pack("<Q", len(c)) + c for c in contents)).hexdigest()[:16]

        def digest(*lines):
            """Returns the digest that is printed for a failed case."""
            code, text = cases(*lines)
            found = re.search(r"^FAILED +digits@([0-9a-f]{16}): ", text, re.M)
            check(code == 1 and found, f"a case that fails, and its digest: {code} {text}")
            return found[1] if found else "0" * 16

        expected.write_bytes(tensor(1, bytes(40)))
        wrong = digest()
        check(wrong == files(), f"the digest is that of case.h: {wrong}")
        check(digest("case:digits@" + "0" * 16) == wrong, "a rule for other files does not count")
        check(digest(f"case:digit@{wrong}") == wrong, "a rule for another name does not count")
        check(digest("data:digits") == wrong, "a data rule excuses no wrong numbers")
        for rule in (f"case:digits@{wrong}", "name:digits", "op:Gemm"):
            code, text = cases(rule)
            check(code == 0 and " 1 failed as listed" in text, f"{rule}: {code} {text}")

        expected.write_bytes(tensor(1, right))
        for rule in ("#", f"case:digits@{wrong}", "data:digits", "pass:digits"):
            code, text = cases(rule)
            check(code == 0 and " 1 passed" in text, f"repaired, {rule}: {code} {text}")
        for rule in ("name:digits", "op:Gemm", f"case:digits@{files()}"):
            code, text = cases(rule)
            check(code == 1 and "PASSED    digits, though" in text, f"repaired, {rule}: {code} {text}")

        for bad in ("case:digits", "case:digits@12", f"case:digits@{wrong}0", "path:digits"):
            code, text = cases(bad)
            check(code == 2 and "rules.txt:1: " in text, f"{bad}: {code} {text}")
    harness.finish()


main()
