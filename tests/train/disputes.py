#!/usr/bin/env python3
"""Disputes about trainings. With one bit flipped in a node of a random step, `dispute` names the step and the operator,
within the bound on messages, and `referee` computes this operator and rules that the unchanged training is right. A
party whose training is not what its receipt says is named: other samples, states, lengths or roots.

    tests/train/disputes.py --ree-run build/ree-run
"""
import hashlib
import json
import math
import os
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402

N_STEPS = 12
N_FLIPS = 15 if "REE_TEST_SAMPLE" in os.environ else 50
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


def party(name, *options, step=None, samples=None):
    """A training with a trace and a receipt; returns the two files."""
    trace, receipt = folder / f"{name}.trace", folder / f"{name}.json"
    harness.run(args.ree_run, "train", step or line, "--data", samples or data, "--trace", trace, "--receipt-path", receipt, *options)
    return trace, receipt


@harness.helper
def disputed(a, b, *options, codes=(1,), model=None):
    return answer("dispute", "--a", a[0], "--b", b[0], "--a-receipt", a[1], "--b-receipt", b[1], "--claim", folder / "c.json",
                  "--model", model or line, *options, codes=codes)


@harness.helper
def refereed(a, b, *options, codes=(0,), model=None):
    return answer("referee", folder / "c.json", model or line, "--a-receipt", a[1], "--b-receipt", b[1], *options, codes=codes)


def relabel(receipt, name, **changes):
    """A receipt that says something else about its training, sealed again."""
    lie = json.loads(receipt.read_text())
    for key, value in changes.items():
        if key in lie["body"]["data"]:
            lie["body"]["data"][key] = value
        else:
            lie["body"][key] = value
    body = json.dumps(lie["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    lie["receipt_hash"] = hashlib.sha256(b"ree-training-receipt/1\0" + body).hexdigest()
    path = folder / name
    path.write_text(json.dumps(lie, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")
    return path


def liars():
    """Trainings that are not what their receipts say: which party is wrong, with receipts that bind it."""
    seed = ["--seed", 1, "--steps", 4]
    honest = party("honest", *seed)
    # Other samples than the order gives: the batch of step 0.
    shuffled = party("seed", "--seed", 2, "--steps", 4)
    liar = shuffled[0], relabel(shuffled[1], "seed-lie.json", seed="1")
    found = disputed(honest, liar, "--data", data)
    check((found["result"], found["step"], found["input"], found["wrong"]) == ("input", 0, "x", ["B"]), found)
    ruling = refereed(honest, liar, "--data", data)
    check((ruling["right"], ruling["bound"]) == ("A", True), ruling)
    ruling = refereed(liar, honest, "--data", data, codes=(2,))  # the claim's sides are the other way round
    found = disputed(liar, honest, "--data", data)
    check(found["wrong"] == ["A"] and refereed(liar, honest, "--data", data)["right"] == "B", found)
    found = disputed(honest, liar, codes=(1,))
    check("--data" in found["undecided"], found)
    check("--data" in harness.call(args.ree_run, "referee", folder / "c.json", line, "--a-receipt", honest[1], "--b-receipt", liar[1]).stderr,
          "the samples are needed")
    # A file in another order, said to be shuffled.
    ordered = party("order", *seed, "--in-order")
    liar = ordered[0], relabel(ordered[1], "order-lie.json", order="shuffled")
    found = disputed(honest, liar, "--data", data)
    check((found["input"], found["wrong"]) == ("x", ["B"]), found)
    # Other states at the beginning: a continued training, said to be a new one.
    harness.run(args.ree_run, "train", line, "--data", data, "--seed", 1, "--steps", 3, "--checkpoint", folder / "three.safetensors")
    went = party("went", "--seed", 1, "--steps", 7, "--resume", folder / "three.safetensors", "--checkpoint", folder / "seven.safetensors")
    liar = went[0], relabel(went[1], "went-lie.json", first_step=0)
    found = disputed(honest, liar, "--data", data)
    check(found["result"] == "input" and found["wrong"] == ["B"] and found["step"] == 0, found)
    check(refereed(honest, liar, "--data", data)["right"] == "A", "the referee agrees")
    # Two continued trainings: equal ones, and one that says a length which its trace does not have.
    again = party("again", "--seed", 1, "--steps", 7, "--resume", folder / "three.safetensors", "--checkpoint", folder / "seven.safetensors",
                  "--threads", 1, "--cpu-isa", "portable")
    check(disputed(went, again, "--data", data, codes=(0,))["result"] == "same", "the same continued training")
    short = party("short", "--seed", 1, "--steps", 6, "--resume", folder / "three.safetensors", "--checkpoint", folder / "six.safetensors")
    found = disputed(went, short, "--data", data, codes=(1, 2))
    check(found["result"] == "length" and not found.get("wrong"), found)
    made = json.loads(short[1].read_text())["body"]
    liar = short[0], relabel(short[1], "short-lie.json", n_steps=4, points=[*made["points"], made["points"][-1]])
    found = disputed(went, liar, "--data", data)
    check(found["result"] == "length" and found["wrong"] == ["B"], found)
    check(refereed(went, liar, "--data", data)["right"] == "A", "the referee agrees")
    # A root that is not in the receipt, receipts of different trainings, of another step, without a trace, with a key.
    liar = honest[0], relabel(honest[1], "root-lie.json", trace_root="0" * 64)
    check(disputed(went, went, codes=(0,))["result"] == "same", "one party twice")
    found = disputed(honest, liar, codes=(3,))
    check((found["result"], found["liar"]) == ("lied", "B"), found)
    for other, words in ((shuffled, "seed differs"), (ordered, "order differs"), (went, "first step differs")):
        done = harness.call(args.ree_run, "dispute", "--a", honest[0], "--b", other[0], "--a-receipt", honest[1], "--b-receipt", other[1],
                            "--claim", folder / "c.json", "--model", line)
        check(done.returncode == 2 and words in done.stderr, done.stderr)
    bare = folder / "bare.json"
    harness.run(args.ree_run, "train", line, "--data", data, *seed, "--receipt-path", bare)
    other = steps.line_step(folder / "other.onnx", {**steps.METADATA, "states": {"w": "m.next", "m": "w.next"}})
    few = steps.npz(folder / "few.npz", steps.line_data(6))
    harness.run(args.ree_run, "keygen", folder / "key")
    a, b = ["--a", honest[0], "--b", ordered[0], "--claim", folder / "c.json"], ["--a-receipt", honest[1], "--b-receipt"]
    liar = relabel(ordered[1], "order-lie.json", order="shuffled")
    for arguments, words in (
        ([*a, *b, bare, "--model", line], "has no trace"), ([*a, *b, liar, "--model", other], "other roles"),
        ([*a, *b, liar, "--model", line, "--data", few], "those of the receipts"), ([*a, *b, liar], "--model"),
        ([*a, *b, liar, "--model", line, "--b-public-key", f"{folder / 'key'}.pub"], "is not signed"),
        ([*a, "--model", line, "--data", data], "--data requires"),
    ):
        done = harness.call(args.ree_run, "dispute", *arguments)
        check(done.returncode == 2 and words in done.stderr, f"'{words}': {done.returncode} {done.stderr}")
    # verify computes the trace again.
    done = harness.call(args.ree_run, "verify", honest[1], line, "--data", data)
    check(done.returncode == 3 and "trace: not checked" in done.stdout, done.stdout)
    done = harness.call(args.ree_run, "verify", honest[1], line, "--data", data, "--trace", folder / "mine.trace")
    check(done.returncode == 0 and "trace: agrees" in done.stdout and (folder / "mine.trace").read_bytes() == honest[0].read_bytes(), done.stdout)
    lie = relabel(honest[1], "trace-lie.json", trace_root="1" * 64)
    done = harness.call(args.ree_run, "verify", lie, line, "--data", data, "--trace", folder / "mine.trace")
    check(done.returncode == 1 and "trace: differs" in done.stdout, done.stdout)
    done = harness.call(args.ree_run, "verify", bare, line, "--data", data, "--trace", folder / "mine.trace")
    check(done.returncode == 2 and "no trace" in done.stderr, done.stderr)


def single_runs():
    """Without receipts of trainings, a step is an ordinary model: any states are allowed as its inputs."""
    two = folder / "two.safetensors"
    harness.run(args.ree_run, "train", line, "--data", data, "--seed", 1, "--steps", 2, "--checkpoint", two)
    harness.run(args.ree_run, "train", line, "--data", data, "--seed", 1, "--steps", 4, "--trace", folder / "a.trace")
    harness.run(args.ree_run, "train", line, "--data", data, "--seed", 1, "--steps", 6, "--resume", two, "--trace", folder / "b.trace")
    found = answer("dispute", "--a", folder / "a.trace", "--b", folder / "b.trace", "--claim", folder / "c.json", "--model", line, codes=(1, 2))
    check((found["result"], found["step"]) == ("input", 0) and not found.get("wrong"), found)


def main():
    global args, folder, line, data
    args = harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        line = steps.line_step(folder / "line.onnx")
        data = steps.npz(folder / "line.npz", steps.line_data())
        single_runs()
        liars()
        flips()
    return harness.finish()


sys.exit(main())
