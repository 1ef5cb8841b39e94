#!/usr/bin/env python3
"""ree-run inspect: its statements about a model agree with a run of the model."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
import harness  # noqa: E402
from harness import check  # noqa: E402
import onnx_writer as onnx  # noqa: E402

FLOAT, INT32, INT64, BOOL, COMPLEX64 = 1, 6, 7, 9, 14
ree_run = None
work = None


def run(*args):
    return subprocess.run([ree_run, *map(str, args)], capture_output=True, text=True)


def save(name, nodes, inputs, outputs, **more):
    path = work / f"{name}.onnx"
    path.write_bytes(onnx.model(nodes, inputs, outputs, **more))
    return path


def refused(path, *messages):
    """Checks that a run and inspect both give the reason."""
    done = run(path, "--random-inputs", "1")
    about = json.loads(run("inspect", path, "--json").stdout)
    text = run("inspect", path)
    check(done.returncode == 1, f"{path.name} runs: {done.stdout}")
    check(path.name in done.stderr, done.stderr)
    check(about["runnable"] is False and len(about["problems"]) == 1, about)
    check(text.returncode == 0 and "ree cannot run this model" in text.stdout, text)
    check("every operator is supported" not in text.stdout, text.stdout)
    for message in messages:
        check(message in done.stderr, f"a run does not say '{message}': {done.stderr}")
        check(message in " ".join(about["problems"]), f"'{message}': {about}")
        check(message in text.stdout, text.stdout)


def runs(path, *options):
    done = run(path, "--random-inputs", "1", *options)
    about = json.loads(run("inspect", path, "--json").stdout)
    check(done.returncode == 0, f"{path.name}: {done.stderr}")
    check(about["runnable"] is True and about["problems"] == [], about)
    return about


def test_declared_types():
    x, relu = onnx.port("x", FLOAT, [2, 3]), onnx.node("Relu", ["x"], ["y"], "r")
    says = ("node 'r' (Relu)", "'y' is declared as int64, but is float32")
    refused(save("output", [relu], [x], [onnx.port("y", INT64, [2, 3])]), *says)
    refused(save("open", [relu], [onnx.port("x", FLOAT, ["n", 3])],
                 [onnx.port("y", INT64, ["n", 3])]), *says)
    # A declared type of an intermediate tensor, also if a pass removes the node that makes or reads
    # it.
    last = onnx.node("Neg", ["y"], ["z"], "n")
    info = [onnx.port("y", INT64, [2, 3])]
    out = onnx.port("z", FLOAT, [2, 3])
    refused(save("inner", [relu, last], [x], [out], value_info=info), *says)
    copy = onnx.node("Identity", ["y"], ["z"], "i")
    path = save("copied", [relu, copy], [x], [onnx.port("z", INT64, [2, 3])])
    done = run(path, "--random-inputs", "1")
    check(done.returncode == 1 and "declared as int64, but is float32" in done.stderr, done)
    both = [relu, onnx.node("Relu", ["x"], ["w"], "s"), onnx.node("Add", ["y", "w"], ["z"], "a")]
    for name in "y", "w":
        path = save("merged_" + name, both, [x], [out], value_info=[onnx.port(name, INT64, [2, 3])])
        done = run(path, "--random-inputs", "1")
        check(done.returncode == 1 and "declared as int64" in done.stderr, done)
    # A model output that is a model input.
    done = run(save("through", [relu], [x], [onnx.port("y", FLOAT, [2, 3]),
                                             onnx.port("x", INT64, [2, 3])]), "--random-inputs", "1")
    check(done.returncode == 1 and "'x'" in done.stderr and "int64" in done.stderr, done)
    runs(save("right", both, [x], [out], value_info=[onnx.port("w", FLOAT, [2, 3])]))


def test_declared_shapes():
    x, relu = onnx.port("x", FLOAT, [2, 3]), onnx.node("Relu", ["x"], ["y"], "r")
    path = save("shape", [relu], [x], [onnx.port("y", FLOAT, [7, 7])])
    about = runs(path)
    check(len(about["warnings"]) == 1 and "node 'r' (Relu): 'y'" in about["warnings"][0] and
          "[7,7]" in about["warnings"][0] and "[2,3]" in about["warnings"][0], about)
    check("warnings\n  node 'r'" in run("inspect", path).stdout, "warnings as text")
    for shape in [2, 3], ["a", 3], None:
        check(runs(save("fits", [relu], [x], [onnx.port("y", FLOAT, shape)]))["warnings"] == [],
              f"declared as {shape}")
    # A batch size that is declared as 1 for the output and left open for the input is no
    # contradiction.
    about = runs(save("batch", [relu], [onnx.port("x", FLOAT, ["n", 3])],
                      [onnx.port("y", FLOAT, [1, 3])]))
    check(about["warnings"] == [], about)


def test_types_that_ree_lacks():
    def one(op, dtype, shape=(2, 3)):
        return save(op, [onnx.node(op, ["x"], ["y"], "o")], [onnx.port("x", dtype, list(shape))],
                    [onnx.port("y", dtype, list(shape))])

    refused(one("Identity", COMPLEX64), "node 'o' (Identity)", "complex64")
    refused(one("Erf", INT64), "node 'o' (Erf): Erf of int64 is not supported")
    refused(one("Erf", INT64, ("n", 3)), "node 'o' (Erf): Erf of int64 is not supported")
    runs(one("Shrink", INT64))
    # Sizes that do not match are an error if all are known. Sizes that inspect assumes are not.
    add = onnx.node("Add", ["x", "w"], ["y"], "a")
    y = onnx.port("y", FLOAT, None)
    w = onnx.floats("w", [2], [1, 2])
    refused(save("sizes", [add], [onnx.port("x", FLOAT, [3])], [y], initializers=[w]),
            "node 'a' (Add)")
    path = save("open_sizes", [add], [onnx.port("x", FLOAT, ["n"])], [y], initializers=[w])
    runs(path, "--dim", "n=2")
    # A node that no output depends on is not run.
    runs(save("dead", [onnx.node("Erf", ["x"], ["d"], "d"), onnx.node("Neg", ["x"], ["y"], "n")],
              [onnx.port("x", INT64, [2])], [onnx.port("y", INT64, [2])]))


def test_long_loop():
    """inspect stops in a loop that is too long, but still names a node after it that cannot run."""
    body = onnx.graph([onnx.node("Neg", ["v"], ["w"])],
                      [onnx.port("i", INT64, []), onnx.port("go", BOOL, []), onnx.port("v", FLOAT, [])],
                      [onnx.port("go", BOOL, []), onnx.port("w", FLOAT, [])])
    trips = onnx.tensor("trips", INT64, [], (5000).to_bytes(8, "little"))
    loop = onnx.node("Loop", ["trips", "", "x"], ["y"], "l", attributes={"body": body})
    erf = onnx.node("Erf", ["n"], ["z"], "e")
    x, y = onnx.port("x", FLOAT, []), onnx.port("y", FLOAT, [])
    n, z = onnx.port("n", INT64, [2]), onnx.port("z", INT64, [2])
    runs(save("loop", [loop], [x], [y], initializers=[trips]))
    path = save("after_loop", [loop, erf], [x, n], [y, z], initializers=[trips])
    refused(path, "node 'e' (Erf): Erf of int64 is not supported")


HEADINGS = ["after read", "after identity", "after factors", "after dead-code", "after fold",
            "after common-subexpressions", "after dead-code", "after shapes", "lowered",
            "memory plan"]


def sections(*args):
    done = run("inspect", "--passes", *args)
    check(done.returncode == 0, done.stderr)
    parts = re.split(r"^== (.*)\n", done.stdout, flags=re.M)
    return parts[1::2], parts[2::2]


def plan_of(lowered, plan):
    """Checks the offsets in the memory plan against the tensors that dispatches read and write.
    Returns the number of dispatches and the two totals."""
    slots = dict(re.findall(r"^ +(\d+)  (\D.*)$", lowered[:lowered.index("dispatches")], re.M))
    arena = [s for s, name in slots.items() if name == "intermediate tensors"]
    lines = re.findall(r"^ +(\d+)  (.*)  # node .*$", lowered[lowered.index("dispatches"):], re.M)
    check([int(n) for n, _ in lines] == list(range(len(lines))), "dispatches are in order")
    placed = [(int(o), int(n), int(a), len(lines) if b == "end" else int(b))
              for o, n, a, b in re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+|end)  ", plan, re.M)]
    used = set()
    for i, line in lines:
        for write, slot, offset, size in re.findall(r"(-> )?(\d+)\+(\d+):(\d+)(?=[,)])", line):
            if slot not in arena:
                check(not write, f"a constant is written: {line}")
                continue
            fits = [k for k, (at, n, first, last) in enumerate(placed)
                    if at <= int(offset) and int(offset) + int(size) <= at + n
                    and first <= int(i) <= last]
            check(len(fits) == 1, f"dispatch {i} uses {offset}:{size}, in the plan {fits}")
            used.update((k, int(i)) for k in fits)
    for k, (at, n, first, last) in enumerate(placed):
        when = [i for j, i in used if j == k]
        check(when and min(when) == first and (last == len(lines) or max(when) == last),
              f"{placed[k]}: used by {when}")
        for other in placed[:k]:
            apart = at + n <= other[0] or other[0] + other[1] <= at
            check(apart or last < other[2] or other[3] < first, f"{placed[k]} over {other}")
    total, whole = map(int, re.search(r"^total (\d+) bytes, without reuse (\d+)$", plan,
                                      re.M).groups())
    check(whole == sum((n + 255) // 256 * 256 for _, n, _, _ in placed), "the sum without reuse")
    return len(lines), total, whole


def test_passes():
    for model, dims in ((SAMPLE / "digits.onnx", []), (work / "chain.onnx", ["--dim", "n=1000"])):
        chain = [onnx.node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"], f"m{i}") for i in range(5)]
        save("chain", chain, [onnx.port("v0", FLOAT, ["n", 2])], [onnx.port("v5", FLOAT, ["n", 2])],
             initializers=[onnx.floats("w", [2, 2], [1, 2, 3, 4])])
        names, texts = sections(model, *dims)
        check(names == HEADINGS, names)
        n, total, whole = plan_of(texts[-2], texts[-1])
        done = run(model, "--random-inputs", "1", "--stats", "--json", *dims)
        stats = json.loads(done.stdout)["stats"]
        check(stats["n_dispatches"] == n, f"{stats}: {n} dispatches printed")
        check(stats["arena_bytes"] == total, f"{stats}: the plan has {total}")
        check(total < whole, "memory is used again")
    one, ten = (sections(work / "chain.onnx", "--dim", f"n={n}")[1][-1] for n in (1000, 10000))
    check(one != ten, "the plan is that of the sizes given")
    # Shapes that depend on computed data divide the program into segments; each is printed separately.
    nodes = [onnx.node("Abs", ["x"], ["a"], "ab"), onnx.node("NonZero", ["a"], ["i"], "nz"),
             onnx.node("Shape", ["i"], ["s"], "sh"),
             onnx.node("Expand", ["one", "s"], ["e"], "ex"), onnx.node("Neg", ["e"], ["y"], "ng")]
    path = save("parts", nodes, [onnx.port("x", FLOAT, [4])], [onnx.port("y", FLOAT, None)],
                initializers=[onnx.floats("one", [1], [1])])
    names, _ = sections(path)
    check(names[:8] == HEADINGS[:8] and names[-2:] == ["lowered, segment 2", "memory plan, segment 2"],
          names)
    # A model that cannot be bound fails after all earlier passes are printed.
    path = save("shapeless", [onnx.node("Neg", ["x"], ["y"], "n")], [onnx.port("x", FLOAT, None)],
                [onnx.port("y", FLOAT, None)])
    done = run("inspect", "--passes", path)
    check(done.returncode == 1 and "== after shapes" in done.stdout and "'x'" in done.stderr, done)
    done = run("inspect", path, "--dim", "n=2")
    check(done.returncode == 2 and "--passes" in done.stderr, done)


def main():
    global ree_run, work
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    ree_run = parser.parse_args().ree_run
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
