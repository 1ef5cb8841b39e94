#!/usr/bin/env python3
"""Models and receipts with very many inputs, weights and outputs. A name is looked up in O(log n),
so four times as many names cost less than eight times the CPU time, from loading to verifying."""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

FEW, MANY, MOST = 6000, 24000, 100000
LIMIT = 100  # limit of CPU time in seconds; exceeding it is a failure

ree_run = None


def write(path, n):
    """Writes a model of n sums of an input and a weight; all inputs have one symbolic size."""
    nodes = [onnx.node("Add", [f"x{i}", f"w{i}"], [f"y{i}"], f"n{i}") for i in range(n)]
    path.write_bytes(onnx.model(nodes, [onnx.port(f"x{i}", onnx.FLOAT, ["n"]) for i in range(n)],
                                [onnx.port(f"y{i}", onnx.FLOAT, ["n"]) for i in range(n)],
                                [onnx.floats(f"w{i}", [1], [1.0]) for i in range(n)]))


def seconds(*args, code=0):
    """Runs ree-run and returns its CPU time in seconds."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([ree_run, *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          preexec_fn=limit, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(done.returncode == code, f"{args}: exit code {done.returncode}: {done.stderr[-300:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def steps(folder, n):
    model, receipt, trace = folder / f"{n}.onnx", folder / f"{n}.json", folder / "trace"
    traced, other, other_trace = (folder / name for name in ("traced.json", "other.json", "other.trace"))
    write(model, n)
    spent = {
        "inspect": seconds("inspect", model),
        "run": seconds(model, "--random-inputs", 1),
        "trace": seconds(model, "--random-inputs", 1, "--trace", trace, "--receipt-path", traced),
        "receipt": seconds(model, "--random-inputs", 1, "--receipt-path", receipt),
        "validate": seconds("validate", receipt),
        "verify": seconds("verify", receipt, model, "--random-inputs", 1),
    }
    seconds(model, "--random-inputs", 2, "--trace", other_trace, "--receipt-path", other)
    # Every input and output of both receipts is looked up in a trace; then the inputs turn out to be different.
    spent["dispute"] = seconds("dispute", "--a", trace, "--b", other_trace, "--model", model, "--a-receipt", traced,
                               "--b-receipt", other, "--claim", folder / "claim.json", code=2)
    return spent


def main():
    global ree_run
    args = harness.parser(__doc__).parse_args()
    ree_run = args.ree_run
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        few, many = steps(folder, FEW), steps(folder, MANY)
        for step in few:
            # Both include the start-up time. 0.2 s is the tolerance for other load on the machine.
            check(many[step] < 8 * few[step] + 0.2, f"{step}: {few[step]:.2f} s of {FEW}, {many[step]:.2f} s of {MANY}")
        model, receipt = folder / "most.onnx", folder / "most.json"
        write(model, MOST)
        spent = seconds(model, "--random-inputs", 1, "--receipt-path", receipt)
        spent += seconds("verify", receipt, model, "--random-inputs", 1)
        print(f"{MOST} inputs: {spent:.1f} s for a receipt and its verification")
        check(spent < 30, f"{MOST} inputs: {spent:.1f} s")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
