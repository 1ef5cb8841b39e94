#!/usr/bin/env python3
"""The plan that `ree-run plan` prints is the one that a run with the same options uses."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402
from plan_test import chain, note, wish  # noqa: E402

ree_run = None


def call(*args, before=()):
    return subprocess.run([*before, ree_run, *map(str, args)], capture_output=True, text=True)


def ends(stages):
    return [s.get("ends_with") for s in stages]


def compare(model, run, options, before=(), processes=(), command="run"):
    """Checks that both plans end their stages at the same nodes, or that both commands refuse with
    the same reason. Returns the number of stages; 0 if refused."""
    shown = call("plan", model, "--json", *options, *processes)
    ran = call(command, model, "--json", "--stats", *run, *options, before=before)
    what = f"{model} {options} {before}: {shown.stderr}{ran.stderr}"
    check(shown.returncode == ran.returncode, what)
    if shown.returncode or ran.returncode:
        # A folder's name may end with a slash.
        reasons = [t.strip().replace("/: ", ": ") for t in (shown.stderr, ran.stderr)]
        check(reasons[0] == reasons[1], what)
        return 0
    # A run of one stage does not report stages.
    planned = ends(json.loads(shown.stdout)["stages"])
    taken = ends(json.loads(ran.stdout)["stats"].get("stages", [{}]))
    check(planned == taken, f"{what}\nplanned {planned}\ntaken {taken}")
    return len(planned)


def language_model(model, limits):
    run = ["--prompt-ids", "1,5", "--max-new-tokens", 1]
    counts = set()
    for limit in limits:
        for more in ([], ["--device", "cpu,cpu"], ["--micro-batches", 2]):
            counts.add(compare(model, run, ["--max-device-memory", limit, *more], command="generate"))
    compare(model, run, ["--max-device-memory", limits[0], "--n-partitions", 3], command="generate")
    compare(model, run, ["--device", "cpu,cpu,cpu"], command="generate")
    check(len(counts) > 3, f"{model}: limits that make no difference, {counts}")
    return counts


def test_language_models(models):
    check(0 in language_model(SAMPLE / "stories", ["2M", "1500K", "1300K", "1M", "3M"]), "one is too small")
    for name, limits in (("stories260K", ["1M", "1200K", "800K", "2M"]), ("capp-gpt", ["3M", "2600K", "2500K", "4M"])):
        if (models / name).exists():
            language_model(models / name, limits)
        else:
            print(f"no {name}: left out")


def test_processes(work):
    if not shutil.which("mpirun") or not (pathlib.Path(ree_run).parent / "ree_mpi.so").exists():
        print("no mpirun, or built without MPI: left out")
        return
    # The MPI library does not free all its memory at exit.
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                      OMPI_MCA_btl_vader_single_copy_mechanism="none",
                      ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    before = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    run = ["--prompt-ids", "1,5", "--max-new-tokens", 1]
    for options in ([], ["--max-device-memory", "900K"], ["--device", "cpu,cpu"]):
        n = compare(SAMPLE / "stories", run, options, before, ["--processes", 2], "generate")
        check(n >= 2, f"{options}: {n} stages")
    call("export", SAMPLE / "stories", "-o", work / "stories.onnx", "--colocate-tensors")
    call("plan", work / "stories.onnx", "--n-partitions", 3, "--write", work / "noted.onnx")
    n = compare(work / "noted.onnx", run, [], before, ["--processes", 2], "generate")
    check(n == 3, f"hints in two processes: {n} stages")


def test_graphs(work):
    model = work / "chain.onnx"
    run = ["--random-inputs", 7]
    model.write_bytes(chain(30, width=32))
    # One constant of 4 KiB, which every stage needs.
    check(compare(model, run, ["--max-device-memory", "4368"]) == 0, "not even that")
    check(compare(model, run, ["--max-device-memory", "9K"]) == 1, "it fits")
    check(compare(model, run, ["--max-device-memory", "9K", "--device", "cpu,cpu,cpu"]) == 3, "devices")
    check(compare(model, run, ["--n-partitions", 4, "--max-device-memory", "9K"]) == 4, "a number")

    # Stages that the nodes request.
    model.write_bytes(chain(30, width=32, wishes=lambda i: wish(i // 12)))
    several = ["--device", "cpu,cpu"]
    check(compare(model, run, several) == 3, "hints on several devices")
    check(compare(model, run, ["--max-device-memory", "9K"]) == 3, "hints within a limit")
    check(compare(model, run, ["--n-partitions", 2]) == 2, "a number goes before")
    check(compare(model, run, ["--device", "cpu,cpu,cpu,cpu"]) == 0, "too few stages")
    check(compare(model, run, ["--max-device-memory", "2K"]) == 0, "stages that are too large")
    whole = json.loads(call("run", model, "--json", "--stats", *run).stdout)
    check("stages" not in whole["stats"], "a run that is not asked for parts has none")
    plan = work / "plan.json"
    call("plan", model, "--n-partitions", 5, "-o", plan)
    check(compare(model, run, ["--plan", plan, *several]) == 5, "a file goes before")
    check(compare(model, run, ["--plan", plan, "--max-device-memory", "2K"]) == 0, "a file is held to the limit")
    for wishes in (lambda i: wish(i % 2), lambda i: note("soon"), lambda i: wish(1024), lambda i: note("9" * 40),
                   lambda i: wish(-1)):
        model.write_bytes(chain(30, width=32, wishes=wishes))
        check(compare(model, run, several) == 0, "hints that cannot be followed")
        check(compare(model, run, ["--n-partitions", 2, *several]) == 2, "and a number instead of them")


def wide(n):
    """A model with n values that are made before every cut and read after every cut."""
    nodes = [onnx.node("MatMul", ["x", "w"], ["e0"])]
    nodes += [onnx.node("Neg" if i % 2 else "Abs", [f"e{i - 1}"], [f"e{i}"]) for i in range(1, n)]
    last = f"e{n - 1}"
    for i in range(40):
        nodes.append(onnx.node("MatMul", [last, "w"], [f"p{i}"]))
        last = f"p{i}"
    for i in range(n):
        nodes.append(onnx.node("Min", [last, f"e{i}"], [f"t{i}"]))
        last = f"t{i}"
    return onnx.model(nodes, [onnx.port("x", onnx.FLOAT, ["rows", 8])], [onnx.port(last, onnx.FLOAT, ["rows", 8])],
                      [onnx.floats("w", [8, 8], [0.5] * 64)])


def test_wide(work):
    model = work / "wide.onnx"
    run = ["--random-inputs", 7]
    model.write_bytes(wide(20000))
    check(compare(model, run, ["--n-partitions", 6]) == 6, "many values cross")
    sums = [json.loads(call("run", model, "--json", *run, *parts).stdout)["sha256"]
            for parts in ([], ["--n-partitions", 6])]
    check(sums[0] == sums[1], "other bits")


def main():
    global ree_run
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    args = parser.parse_args()
    ree_run = args.ree_run
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        test_graphs(pathlib.Path(folder))
        test_wide(pathlib.Path(folder))
        test_language_models(args.models)
        test_processes(pathlib.Path(folder))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
