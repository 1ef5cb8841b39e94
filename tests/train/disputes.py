#!/usr/bin/env python3
"""Disputes about trainings. With one bit flipped in a node of a random step, `dispute` names the step and the operator,
within the bound on messages, and `referee` computes this operator and rules that the unchanged training is right. A
training that began with other states is named.

    tests/train/disputes.py --ree-run build/ree-run
"""
import json
import math
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402

N_STEPS, N_FLIPS = 12, 50
UNBOUND = 3  # the referee's exit code without receipts


def answer(*arguments, codes):
    done = harness.call(args.ree_run, *arguments, "--json")
    check(done.returncode in codes, lambda: f"{arguments}: exit code {done.returncode}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout) if done.stdout else {}


def bound(n_nodes, n_inputs):
    """The maximum number of messages, as in tests/dispute/dispute.py: both parties are asked for their commitment, each
    level of both trees, the step, the node, and each input of the node."""
    return 4 * (math.ceil(math.log2(N_STEPS)) + math.ceil(math.log2(n_nodes)) + 3 + n_inputs)


def flips():
    step, draw = steps.DATA / "pictures.onnx", random.Random(31)
    common = ["train", step, "--data", steps.npz(folder / "p.npz", steps.pictures(4)), "--seed", 2, "--steps", N_STEPS]
    clean, damaged, claim, values = (folder / name for name in ("clean.trace", "damaged.trace", "claim.json", "values"))
    plain = json.loads(harness.run(args.ree_run, *common, "--json"))
    made = json.loads(harness.run(args.ree_run, *common, "--json", "--trace", clean, "--dump-tensors", ".*", "--dump-folder", values))
    check(made["states_sha256"] == plain["states_sha256"], "recording changes no bit")
    about = json.loads(harness.run(args.ree_run, "trace", clean, "--json"))
    check(about["n_steps"] == N_STEPS, about["n_steps"])
    nodes, done, worst, kinds, fixed = about["nodes"], 0, 0, set(), set()
    while done < N_FLIPS:
        node, at, bit = draw.randrange(len(nodes)), draw.randrange(N_STEPS), draw.randrange(1 << 20)
        if node in fixed:
            continue
        flipped = harness.call(args.ree_run, *common, "--trace", damaged, "--inject-fault", f"{node}:{at}:{bit}")
        if flipped.returncode and "computed while binding" in flipped.stderr:
            fixed.add(node)
            continue
        if flipped.returncode:  # an index that is not in its table any more, for example
            check(f"step {at + 1}" in flipped.stderr, flipped.stderr)
            continue
        swap = draw.random() < 0.5
        parties = ["--a", damaged, "--b", clean] if swap else ["--a", clean, "--b", damaged]
        found = answer("dispute", *parties, "--claim", claim, "--model", step, codes=(0, 1))
        if found["result"] == "same":  # a flipped bit of a NaN does not change its digest
            continue
        done += 1
        check((found["result"], found["step"], found["node"]) == ("node", at, node), f"{found}, damaged was {node} in step {at}")
        most = bound(len(nodes), found["n_inputs"])
        check(found["messages"] <= most, f"{found['messages']} messages, at most {most}")
        worst = max(worst, found["messages"])
        kinds.add(found["op_type"])
        ruling = answer("referee", claim, step, "--inputs", values, codes=(UNBOUND,))
        check(ruling.get("right") == "AB"[swap], f"{found['op_type']}, node {node} in step {at}: {ruling}")
    print(f"{done} faults; at most {worst} messages over {N_STEPS} steps of {len(nodes)} nodes; refereed: {' '.join(sorted(kinds))}")


def other_beginnings():
    """Trainings that do not begin with the step's own states, or read other samples."""
    step, data = steps.line_step(folder / "line.onnx"), steps.npz(folder / "line.npz", steps.line_data())
    common = ["train", step, "--data", data, "--seed", 1]
    harness.run(args.ree_run, *common, "--steps", 2, "--checkpoint", folder / "two.safetensors")
    a, b, claim = folder / "a.trace", folder / "b.trace", folder / "c.json"
    harness.run(args.ree_run, *common, "--steps", 4, "--trace", a)
    harness.run(args.ree_run, *common, "--steps", 6, "--resume", folder / "two.safetensors", "--trace", b)
    found = answer("dispute", "--a", a, "--b", b, "--claim", claim, "--model", step, codes=(1,))
    check((found["result"], found["step"]) == ("input", 0), found)
    harness.run(args.ree_run, *common[:-1], 2, "--steps", 4, "--trace", b)
    found = answer("dispute", "--a", a, "--b", b, "--claim", claim, "--model", step, codes=(1, 2))
    check((found["result"], found["step"], found["input"]) == ("input", 0, "x"), found)
    harness.run(args.ree_run, *common, "--steps", 5, "--trace", b)
    found = answer("dispute", "--a", a, "--b", b, "--claim", claim, "--model", step, codes=(1, 2))
    check(found["result"] == "length", found)
    harness.run(args.ree_run, *common, "--steps", 4, "--trace", b, "--threads", 1, "--cpu-isa", "portable")
    check(answer("dispute", "--a", a, "--b", b, "--claim", claim, "--model", step, codes=(0,))["result"] == "same", "the same training")


def main():
    global args, folder
    args = harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        other_beginnings()
        flips()
    return harness.finish()


sys.exit(main())
