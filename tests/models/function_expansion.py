#!/usr/bin/env python3
"""ONNX's operator tests contain many operators twice: as one node, and as the function that defines
the operator (NAME_expanded). Both must give the same bits, unless function_expansion.txt gives a
reason why the function is a different sequence of roundings."""

import argparse
import fnmatch
import os
import pathlib
import re
import subprocess
import sys


def read_rules(path):
    lines = (line.split(None, 1) for line in path.read_text().splitlines())
    return [line[0] for line in lines if line and not line[0].startswith("#")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--onnx-cases", required=True)
    parser.add_argument("--listed", type=pathlib.Path, required=True)
    parser.add_argument("--exceptions", required=True)
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    run = subprocess.run([args.onnx_cases, "--exceptions", args.exceptions, "--hashes", *args.folders],
                         stdout=subprocess.PIPE, text=True)
    if run.returncode not in (0, 77):
        sys.stdout.write(run.stdout[-2000:])
        return 1
    hashes = {}
    for match in re.finditer(r"^([0-9a-f]{64})  (\S+) (\d+)$", run.stdout, re.M):
        hashes[match[2], match[3]] = match[1]
    rules = read_rules(args.listed)
    used, n_same, n_differ, n_failed = set(), 0, 0, 0
    for (folder, data_set), digest in sorted(hashes.items()):
        unexpanded = re.sub(r"_expanded(_ver\d+)?$", "", folder)
        if unexpanded == folder or (unexpanded, data_set) not in hashes:
            continue
        if digest == hashes[unexpanded, data_set]:
            n_same += 1
            continue
        name = folder.rsplit("/", 1)[-1]
        rule = next((r for r in rules if fnmatch.fnmatch(name, r)), None)
        used.add(rule)
        if rule:
            n_differ += 1
        else:
            n_failed += 1
            print(f"FAILED: {folder} {data_set}: not the bits of the operator itself")
    if not n_same and not n_failed:
        print("skipped: no operator is there twice")
        return 77
    # The older operator tests by themselves, or a sample, do not contain all cases of the list.
    if "REE_TEST_SAMPLE" not in os.environ and all(pathlib.Path(folder).is_dir() for folder in args.folders):
        for rule in rules:
            if rule not in used:
                n_failed += 1
                print(f"FAILED: no case of {rule} differs: remove the line")
    print(f"{n_same} pairs with the same bits, {n_differ} differ as listed, {n_failed} failed")
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
