#!/usr/bin/env python3
"""Fault injection is detected: one bit of one value is flipped during a run, and `ree-run diff`
must name that node and step, even if the results do not change."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "tools" / "sample"

args = None


def run(*arguments):
    return subprocess.run([args.ree_run, *map(str, arguments), "--json"], capture_output=True, text=True)


def results(output):
    keys = ("tokens", "logits_sha256", "sha256")
    return {k: output[k] for k in keys if k in output}


def flips(folder, name, command, n, draw):
    """Returns whether all n faults were found. A fault in a cache or in a value that is computed
    while binding is refused: then another fault is drawn, and the refusal is counted."""
    whole, damaged = folder / "whole.trace", folder / "damaged.trace"
    done = run(*command, "--trace", whole)
    if done.returncode:
        print(f"FAILED: {name}: exit code {done.returncode}: {done.stderr}")
        return False
    output = json.loads(done.stdout)
    nodes = json.loads(run("trace", whole).stdout)["nodes"]
    n_steps = output["trace"]["n_steps"]
    found, wrong, refused, broken, erased = 0, 0, 0, 0, 0
    while found + wrong < n and refused < 20 * n:
        node, step, bit = draw.randrange(len(nodes)), draw.randrange(n_steps), draw.randrange(1 << 40)
        fault = f"{node}:{step}:{bit}:{draw.randrange(nodes[node]['n_outputs'])}"
        done = run(*command, "--trace", damaged, "--inject-fault", fault)
        if done.returncode:
            # A fault may make the run fail, which is noticed without a trace.
            breaks = "is not a number" in done.stderr
            broken += breaks
            refused += not breaks
            if not breaks and "cannot inject a fault" not in done.stderr and "has no output" not in done.stderr:
                print(f"FAILED: {name} {fault}: exit code {done.returncode}: {done.stderr}")
                wrong += 1
            continue
        erased += results(json.loads(done.stdout)) == results(output)
        done = run("diff", whole, damaged)
        diff = json.loads(done.stdout) if done.stdout else {}
        first = diff.get("first", {})
        if done.returncode == 1 and (first.get("node"), first.get("step")) == (node, step) and \
                first.get("inputs_agree") and diff.get("new_after") == 0:
            found += 1
        else:
            wrong += 1
            print(f"FAILED: {name} {fault}: {done.returncode} {done.stdout[:300]}{done.stderr}")
    print(f"{name}: {found} of {n} flips found, {wrong} not; {erased} left no sign in the results; "
          f"{refused} draws could not be damaged, {broken} ended the run", flush=True)
    return found == n and wrong == 0 and (n < 50 or erased > 0)


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--flips", type=int, default=200)
    args = parser.parse_args()
    draw = random.Random(20261122)
    shared = pathlib.Path(args.models)
    stories = [SAMPLES / "stories", "--prompt-text", "Once upon a time", "--max-new-tokens", 6, "--ignore-eos",
               "--logits-hash", "--threads", 1]
    digits = [SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy", "--threads", 1]
    ok = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ok = flips(folder, "stories", stories, args.flips, draw) and ok
        ok = flips(folder, "digits", digits, args.flips // 2, draw) and ok
        if (shared / "mnist-8").is_dir():
            data = shared / "mnist-8" / "test_data_set_0" / "input_0.pb"
            command = [shared / "mnist-8" / "model.onnx", "--input", data, "--threads", 1]
            ok = flips(folder, "mnist-8", command, args.flips // 10, draw) and ok
        if (shared / "stories260K").is_dir():
            command = [shared / "stories260K", "--prompt-ids", "1,403,407", "--max-new-tokens", 4, "--logits-hash",
                       "--threads", 1]
            ok = flips(folder, "stories260K", command, args.flips // 10, draw) and ok
    return 0 if ok else 1


sys.exit(main())
