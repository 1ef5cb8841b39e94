#!/usr/bin/env python3
"""Models in several stages: one SHA-256 of tokens, logits, receipts, traces and outputs for any
number of stages on any devices.

The sample model is part of the project. The other models are in ../shared and are skipped if it is
absent.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402
SAMPLES = HERE.parents[1] / "tools" / "sample"

args = None


def run(*arguments, code=0):
    command = [args.ree_run, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == code,
          f"{' '.join(command)}: exit status {done.returncode}, not {code}: {done.stderr}")
    return done


def run_json(*arguments):
    done = run(*arguments, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def hashes(result):
    return [(s["tokens_sha256"], s["logits_sha256"]) for s in result.get("sequences", [result])]


def check_text(model, ways, prompts, n_new):
    ask = [model, "--max-new-tokens", n_new, "--ignore-eos", "--logits-hash"]
    for prompt in prompts:
        ask += ["--prompt-ids", ",".join(map(str, prompt))]
    whole = hashes(run_json(*ask, "--device", "cpu"))
    for way in ways:
        check(hashes(run_json(*ask, *way)) == whole, f"{model} {way}: other tokens or logits")


def check_records(folder, ways):
    """Receipts and traces are equal, and each way to run verifies what another made."""
    model = SAMPLES / "stories"
    whole = None
    for i, way in enumerate([["--device", "cpu"], *ways]):
        made = run_json(model, "--prompt-ids", "1,403,407", "--max-new-tokens", 5, *way,
                        "--receipt-path", folder / f"{i}.json", "--trace", folder / f"{i}.trace")
        found = made.get("receipt_hash"), made.get("trace")
        whole = whole or found
        check(found == whole and all(whole), f"{way}: {found}, not {whole}")
    for i, way in enumerate(ways):
        run("verify", folder / f"{i}.json", model, *way, code=3)  # because the trace is not checked
        run("verify", folder / f"{i}.json", model, *way, "--trace", folder / "again.trace")
    # A fault in any stage is found and named by its node, with another way to run.
    for node in (30, 60, 84):
        damaged = folder / f"damaged-{node}.trace"
        run(model, "--prompt-ids", "1,403,407", "--max-new-tokens", 5, *ways[0], "--trace", damaged,
            "--inject-fault", f"{node}:2:7")
        found = run("diff", folder / "0.trace", damaged, code=1).stdout
        check(re.search(rf"^step 2: node {node} ", found, re.M) is not None,
              f"node {node} was damaged: {found}")


def check_tensors(models):
    divided = []  # (name of the model, number of stages)
    for model in models:
        sizes = ["--dim", "batch=2"] if model.name == "digits.onnx" else []
        ask = [model, "--random-inputs", 1, *sizes]
        whole = subprocess.run([args.ree_run, *map(str, ask), "--json"], capture_output=True,
                               text=True)
        if whole.returncode != 0:
            continue  # some models fail on random inputs
        whole = json.loads(whole.stdout)["sha256"]
        for n in (2, 3):
            done = subprocess.run([args.ree_run, *map(str, ask), "--n-partitions", str(n),
                                   "--json"], capture_output=True, text=True)
            if done.returncode != 0 and ("possible cut" in done.stderr or "cannot be cut, so" in done.stderr):
                continue
            divided.append((model.name, n))
            check(done.returncode == 0 and json.loads(done.stdout)["sha256"] == whole,
                  f"{model} in {n} parts: {done.stdout}{done.stderr}")
    check({("digits.onnx", 2), ("digits.onnx", 3)} <= set(divided), f"divided: {divided}")


def check_refusals():
    stories = [SAMPLES / "stories", "--prompt-ids", "1,2", "--max-new-tokens", 2]
    many = run(*stories, "--n-partitions", 500, code=1).stderr
    check("possible cuts" in many and "not for 500" in many, f"500 parts: {many}")
    few = run(*stories, "--n-partitions", 1, "--device", "cpu,cpu", code=2).stderr
    check("2 devices" in few, f"more devices than parts: {few}")
    run(*stories, "--n-partitions", 0, code=2)
    run(*stories, "--plan", SAMPLES / "no-such-plan.json", code=1)
    run(*stories, "--device", "cpu,nothing", code=1)
    for size in ("", "M", "0", "1X", "1MM", "-1", "99999999999G"):
        run(*stories, "--max-device-memory", size, code=2)
    small = run(*stories, "--max-device-memory", "1K", code=1).stderr
    check("KiB" in small or "MiB" in small or "bytes" in small, f"1K of memory: {small}")


def check_memory(folder):
    """Memory held stays below the limit, in several stages and in one."""
    model = SAMPLES / "stories"
    ask = [model, "--prompt-ids", "1,403,407", "--max-new-tokens", 6, "--logits-hash", "--stats"]
    whole = run_json(*ask)
    weights = whole["stats"]["weight_bytes"]
    # One stage holds 1.33 times the weights' bytes.
    for limit, several in ((weights, True), (5 * weights // 4, True), (4 * weights, False)):
        limited = run_json(*ask, "--max-device-memory", limit)
        check(hashes(limited) == hashes(whole), f"limit {limit}: other tokens or logits")
        stats = limited.get("stats", {})
        check(("stages" in stats) == several, f"limit {limit}: {len(stats.get('stages', [0]))} stages")
        peak = stats.get("peak_bytes", 0)
        check(0 < peak <= limit, f"limit {limit}: {peak} bytes held")


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--mixed", help="run the stages on the CPU and on this device")
    args = parser.parse_args()
    stories = SAMPLES / "stories"
    texts = [[1, 403, 407], [1, 80, 90, 100, 7, 9], [1, 5]]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if args.mixed:
            harness.need_device(args.ree_run, args.mixed)
            mixed = ["--device", f"cpu,{args.mixed}"]
            ways = [mixed, [*mixed, "--n-partitions", "3", "--micro-batches", "2",
                            "--batch-size", "2"]]
            check_text(stories, ways, texts, 4)
            check_records(folder, [[*mixed, "--n-partitions", "4"]])
        else:
            counts = [["--n-partitions", n] for n in range(2, 9)]
            several = [["--device", "cpu,cpu,cpu", "--micro-batches", 3, "--batch-size", 1],
                       ["--device", "cpu,cpu", "--n-partitions", 5, "--micro-batches", 2,
                        "--batch-size", 2, "--threads", 1],
                       ["--n-partitions", 73], ["--n-partitions", 2, "--no-fuse"]]
            check_text(stories, [*counts, *several], texts, 8)
            check_records(folder, [["--n-partitions", "3"], ["--device", "cpu,cpu"],
                                   ["--n-partitions", "73"]])
            check_refusals()
            check_memory(folder)
            for name, prompt in (("stories260K", [1, 403, 407]), ("capp-gpt", [1, 2, 3])):
                if (args.models / name).exists():
                    check_text(args.models / name, counts, [prompt], 8)
                else:
                    print(f"left out: there is no {args.models / name}")
            check_tensors(sorted([*SAMPLES.glob("*.onnx"), *args.models.glob("*/*.onnx")]))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
