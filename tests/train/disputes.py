#!/usr/bin/env python3
"""Disputes about trainings. With one bit flipped in a node of a random step, `dispute` names the step and the operator,
within the bound on messages, and `referee` computes this operator and rules that the unchanged training is right. A
party whose training is not what its receipt says is named: other samples, states, lengths or roots.

    tests/train/disputes.py --ree-run build/ree-run
"""
import copy
import hashlib
import json
import math
import os
import pathlib
import random
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE.parent / "trace"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import steps  # noqa: E402
import trace_file  # noqa: E402
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


def dispute_of(a, b):
    return ["dispute", "--a", a[0], "--b", b[0], "--a-receipt", a[1], "--b-receipt", b[1], "--claim", folder / "c.json", "--model", line]


def rechained(receipt, losses):
    """The points of a receipt with a point after each step, as if its first step were step 0."""
    points = json.loads(receipt.read_text())["body"]["points"]
    values = [float(text.split(",")[1]) for text in losses.read_text().splitlines()[1:]]
    roots = [bytes.fromhex(point["states_sha256"]) for point in points]
    chain = steps.chain_begin(0, roots[0])
    made = [{"states_sha256": roots[0].hex(), "chain_sha256": chain.hex()}]
    for loss, root in zip(values, roots[1:]):
        chain = steps.chain_add(chain, steps.Tensor("<f4", (), [loss]).digest(), root)
        made.append({"states_sha256": root.hex(), "chain_sha256": chain.hex()})
    return made


def with_header(trace, path, **changes):
    """A trace with another header and its own root (src/trace/trace.h)."""
    data = trace.read_bytes()
    tag = b"ree-trace/2\n"
    size = struct.unpack("<Q", data[len(tag):len(tag) + 8])[0]
    header = json.loads(data[len(tag) + 8:len(tag) + 8 + size])

    def replace(part):
        for key in part:
            if key in changes:
                part[key] = changes[key]
            elif isinstance(part[key], dict):
                replace(part[key])

    replace(header)
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    body = data[len(tag) + 8 + size:-(4 + 8 + 32)]
    n_steps = struct.unpack("<Q", data[-40:-32])[0]
    size_of_step = len(body) // n_steps
    made = [step_digest(header, body[i * size_of_step:(i + 1) * size_of_step], i) for i in range(n_steps)]
    root = hashlib.sha256(b"ree-trace/2\0" + trace_file.header_digest(header) + root_of(made)).digest()
    path.write_bytes(tag + struct.pack("<Q", len(text)) + text + body + b"end\n" + struct.pack("<Q", n_steps) + root)
    return path, root.hex()


def step_digest(header, step, number):
    """The digest of a step. `step`: the digests of its inputs, then of the outputs of all nodes."""
    inputs = [step[32 * i:32 * i + 32] for i in range(len(header["inputs"]))]
    return hashlib.sha256(b"ree-step/1\0" + struct.pack("<Q", number) + root_of(inputs) + root_of(node_digests(header, step))).digest()


def node_digests(header, step):
    n_inputs = len(header["inputs"])
    values = [step[32 * i:32 * i + 32] for i in range(len(step) // 32)]
    known = values[:n_inputs] + [bytes.fromhex(c["sha256"]) for c in header["constants"]] + values[n_inputs:]
    nodes, at = [], n_inputs + len(header["constants"])
    for node in header["nodes"]:
        op = trace_file.op_digest(header, node)
        read, made = [known[i] for i in node["inputs"]], known[at:at + len(node["outputs"])]
        at += len(node["outputs"])
        nodes.append(hashlib.sha256(b"ree-node/1\0" + op + struct.pack("<I", len(read)) + b"".join(read) +
                                    struct.pack("<I", len(made)) + b"".join(made)).digest())
    return nodes


def root_of(leaves):
    return hashlib.sha256(b"ree-root/1\0" + struct.pack("<Q", len(leaves)) + steps.top(leaves)).digest()


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
    liar = ordered[0], relabel(ordered[1], "order-lie.json", order="shuffled", seed="1")
    found = disputed(honest, liar, "--data", data)
    check((found["input"], found["wrong"]) == ("x", ["B"]), found)
    # Other states at the beginning: a continued training, said to be a new one.
    harness.run(args.ree_run, "train", line, "--data", data, "--seed", 1, "--steps", 3, "--checkpoint", folder / "three.safetensors")
    went = party("went", "--seed", 1, "--steps", 7, "--resume", folder / "three.safetensors", "--checkpoint", folder / "seven.safetensors",
                 "--losses", folder / "went.csv")
    liar = went[0], relabel(went[1], "went-lie.json", first_step=0)
    found = harness.call(args.ree_run, *dispute_of(honest, liar))
    check(found.returncode == 3 and "B's receipt is false: its trace gives other hashes after step 0" in found.stderr, found.stderr)
    liar = went[0], relabel(went[1], "went-lie.json", first_step=0, points=rechained(went[1], folder / "went.csv"))
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
    # Points that are not those of the party's own trace: the published result of a training.
    points = json.loads(honest[1].read_text())["body"]["points"]
    for i in range(len(points)):
        for key in points[i]:
            lied = copy.deepcopy(points)
            lied[i][key] = "ab" * 32
            liar = honest[0], relabel(honest[1], "points-lie.json", points=lied)
            for a, b, who in ((honest, liar, "B"), (liar, honest, "A")):
                found = harness.call(args.ree_run, *dispute_of(a, b), "--data", data)
                check(found.returncode == 3 and f"{who}'s receipt is false" in found.stderr, f"{i}, {key}: {found.stdout}{found.stderr}")
    # Statements that the step or the samples contradict.
    for changes in ({"n_samples": 9}, {"batch_size": 3}):
        liar = honest[0], relabel(honest[1], "files-lie.json", **changes)
        found = harness.call(args.ree_run, *dispute_of(honest, liar), "--data", data)
        check(found.returncode == 3 and "B's receipt is false: it states" in found.stderr, f"{changes}: {found.stdout}{found.stderr}")
    liar = ordered[0], relabel(ordered[1], "seed-lie.json", seed="9")
    found = harness.call(args.ree_run, *dispute_of(ordered, liar), "--data", data)
    check(found.returncode == 3 and "B's receipt is false: it states the seed 9" in found.stderr, f"{found.stdout}{found.stderr}")
    # A trace whose header is not that of a training.
    for name, changes in (("chunk", {"prefill_chunk": 1}), ("set", {"operation_set": "deterministic"}), ("graph", {"graph_sha256": "0" * 64})):
        trace, root = with_header(honest[0], folder / f"{name}.trace", **changes)
        liar = trace, relabel(honest[1], f"{name}-lie.json", trace_root=root)
        found = disputed(honest, liar, "--data", data, codes=(1, 2, 3))
        check(found.get("wrong") == ["B"], f"{name}: {found}")
        # Another version of ree may make another header, so a party that states one is not named.
        receipt = json.loads(liar[1].read_text())
        receipt["unbound"]["ree_version"] = "0.9.9"
        liar[1].write_text(json.dumps(receipt))
        for a, b in ((honest, liar), (liar, honest)):
            found = disputed(a, b, "--data", data, codes=(1, 2, 3))
            check(not found.get("wrong") and "a referee of that version" in found.get("undecided", ""), f"{name}, of another version: {found}")
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
    liar = relabel(ordered[1], "order-lie.json", order="shuffled", seed="1")
    for arguments, words in (
        ([*a, *b, bare, "--model", line], "has no trace"), ([*a, *b, liar, "--model", other], "other roles"),
        ([*a, *b, liar, "--model", line, "--data", few], "but the receipts state"), ([*a, *b, liar], "--model"),
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


def proof_of(leaves, i):
    if len(leaves) < 2:
        return []
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    if i < half:
        return proof_of(leaves[:half], i) + [steps.top(leaves[half:])]
    return proof_of(leaves[half:], i - half) + [steps.top(leaves[:half])]


def side_of(trace, value):
    """What a claim about an input of step 0 says of a party, made from its trace."""
    data = trace.read_bytes()
    size = struct.unpack("<Q", data[12:20])[0]
    header, n_steps = json.loads(data[20:20 + size]), struct.unpack("<Q", data[-40:-32])[0]
    body = data[20 + size:-44]
    each = len(body) // n_steps
    leaves = [step_digest(header, body[i * each:(i + 1) * each], i) for i in range(n_steps)]
    n_inputs = len(header["inputs"])
    inputs = [body[32 * i:32 * i + 32] for i in range(n_inputs)]
    nodes = node_digests(header, body[:each])
    return {"root": data[-32:].hex(), "header_sha256": trace_file.header_digest(header).hex(), "n_steps": n_steps,
            "steps_root": root_of(leaves).hex(), "step_proof": [p.hex() for p in proof_of(leaves, 0)],
            "inputs_root": root_of(inputs).hex(), "nodes_root": root_of(nodes).hex(), "input_sha256": inputs[value].hex(),
            "input_proof": [p.hex() for p in proof_of(inputs, value)]}


def false_receipts():
    """A false receipt does not decide what the other party must have read. B continued after three steps; A's receipt says
    that it did not, and something else that is false; A's claim, made by hand, is about B's first state."""
    harness.run(args.ree_run, "train", line, "--data", data, "--steps", 3, "--checkpoint", folder / "false3.safetensors")
    honest = party("continued", "--steps", 6, "--resume", folder / "false3.safetensors", "--checkpoint", folder / "false6.safetensors")
    begun = party("begun", "--steps", 3)
    liar = begun[0], relabel(begun[1], "begun-lie.json", n_samples=9)
    harness.call(args.ree_run, "dispute", "--a", liar[0], "--b", honest[0], "--claim", folder / "c.json", "--model", line)
    claim = json.loads((folder / "c.json").read_text())
    claim = {key: claim[key] for key in ("schema", "header")} | {"kind": "input", "step": 0}
    for value in range(len(inputs_of(honest[0]))):
        for a, b, right in ((liar, honest, "B"), (honest, liar, "A")):
            claim |= {"input": value, "a": side_of(a[0], value), "b": side_of(b[0], value)}
            (folder / "c.json").write_text(json.dumps(claim, sort_keys=True, separators=(",", ":")) + "\n")
            if claim["a"]["input_sha256"] == claim["b"]["input_sha256"]:
                continue
            ruling = refereed(a, b, "--data", data)
            check(ruling.get("right") == right, f"input {value}: {ruling}")


def renamed():
    """Two copies of a step that differ in names which no hash of the model covers: of nodes, of values between them. Traces
    of both have the same root, and whoever is right is right by each of the copies."""
    plain = onnx.node

    def named(op_type, inputs, outputs, **rest):
        inputs, outputs = ([f"other {v}" if v in ("p", "d", "q", "g", "kept", "s") else v for v in part] for part in (inputs, outputs))
        return plain(op_type, inputs, outputs, name=f"node of {outputs[0]}", **rest)

    onnx.node = named
    try:
        copy_of = steps.line_step(folder / "named.onnx")
    finally:
        onnx.node = plain
    check(copy_of.read_bytes() != line.read_bytes(), "another file")
    here, there = party("here", "--steps", 4), party("there", "--steps", 4, step=copy_of)
    check(here[0].read_bytes()[-32:] == there[0].read_bytes()[-32:] and here[0].read_bytes() != there[0].read_bytes(), "one root")
    for receipt, step in ((here[1], copy_of), (there[1], line)):
        done = harness.call(args.ree_run, "verify", receipt, step, "--data", data, "--trace", folder / "again.trace")
        check(done.returncode == 0 and "trace: agrees" in done.stdout, done.stdout)
    check(disputed(here, there, "--data", data, codes=(0,))["result"] == "same", "nothing to dispute")
    values = folder / "values of names"
    party("values", "--steps", 4, "--dump-tensors", ".*", "--dump-folder", values)
    liar = party("liar", "--steps", 4, "--inject-fault", "3:1:5", step=copy_of)
    for a, b, right in ((here, liar, "A"), (liar, here, "B")):
        for step in (line, copy_of):
            found = disputed(a, b, "--data", data, model=step)
            check((found["result"], found["step"], found["node"]) == ("node", 1, 3), found)
            ruling = refereed(a, b, "--data", data, "--inputs", values, model=step)
            check(ruling["right"] == right, ruling)


def steps_of_all_kinds():
    """Values whose digests are easily confused: NaNs with other bits, states that no node computes, defaults."""
    nan = struct.unpack("<f", struct.pack("<I", 0xFFC00000))[0]  # x86's own NaN
    tensors = steps.line_data()
    tensors["x"].values[4] = nan
    odd = steps.npz(folder / "odd.npz", tensors)
    states = [onnx.floats("w", [3], [nan, 1, 1]), onnx.floats("m", [3], [0] * 3), onnx.floats("k", [1], [2]), onnx.floats("c", [1], [3]),
              onnx.floats("lr", [1], [nan])]
    metadata = {**steps.METADATA, "states": {**steps.METADATA["states"], "k": "k.next", "c": "c.next"}}
    # k is kept, c becomes a constant that folding computes, lr has a default.
    step = steps.line_step(
        folder / "kinds.onnx", metadata, initializers=states,
        inputs=[onnx.port(name, onnx.FLOAT, [1]) for name in ("k", "c", "lr")],
        nodes=[onnx.node("Identity", ["k"], ["k.next"]), onnx.node("Add", ["half", "half"], ["one"]), onnx.node("Reshape", ["one", "of"], ["c.next"]),
               onnx.node("Constant", [], ["of"], attributes={"value_ints": [1]})][::-1],
        outputs=[onnx.port("loss", onnx.FLOAT, []), onnx.port("w.next", onnx.FLOAT, [3]), onnx.port("m.next", onnx.FLOAT, [3]),
                 onnx.port("k.next", onnx.FLOAT, [1]), onnx.port("c.next", onnx.FLOAT, [1])])
    honest = party("kinds", "--seed", 1, "--steps", 4, step=step, samples=odd)
    done = harness.call(args.ree_run, "verify", honest[1], step, "--data", odd, "--trace", folder / "kinds2.trace")
    check(done.returncode == 0, done.stdout + done.stderr)
    n = len(inputs_of(honest[0]))
    for at in range(3):
        for i in range(n):
            trace, root = with_value(honest[0], folder / "kinds-lie.trace", at, i)
            liar = trace, relabel(honest[1], "kinds-lie.json", trace_root=root)
            for a, b, who in ((honest, liar, "B"), (liar, honest, "A")):
                done = harness.call(args.ree_run, *dispute_of(a, b)[:-1], step, "--data", odd, "--json")
                named = f"{who}'s receipt is false" in done.stderr or (done.stdout and json.loads(done.stdout).get("wrong") == [who])
                check(named, f"step {at}, input {inputs_of(honest[0])[i]}: {done.stdout}{done.stderr}")


def kept_states():
    """A state that no node computes, in a training that continued: it may not change between two steps."""
    metadata = {**steps.METADATA, "states": {**steps.METADATA["states"], "k": "k"}}
    step = steps.line_step(
        folder / "kept.onnx", metadata, inputs=[onnx.port("k", onnx.FLOAT, [1])],
        initializers=[onnx.floats("w", [3], [.5, 1, 1]), onnx.floats("m", [3], [0] * 3), onnx.floats("k", [1], [2])],
        outputs=[onnx.port("loss", onnx.FLOAT, []), *(onnx.port(name, onnx.FLOAT, [3]) for name in ("w.next", "m.next")),
                 onnx.port("k", onnx.FLOAT, [1])])
    begun = folder / "kept.safetensors"
    harness.run(args.ree_run, "train", step, "--data", data, "--steps", 3, "--checkpoint", begun)
    honest = party("kept", "--steps", 6, "--resume", begun, "--receipt-interval", 1, step=step)
    names = inputs_of(honest[0])

    def values(trace):
        """The digests of each step, as the trace has them."""
        read = trace.read_bytes()
        size, n_steps = struct.unpack("<Q", read[12:20])[0], struct.unpack("<Q", read[-40:-32])[0]
        body = read[20 + size:-44]
        each = len(body) // n_steps
        return [[body[t * each + i:t * each + i + 32] for i in range(0, each, 32)] for t in range(n_steps)]

    def points(trace, loss):
        """What a receipt with this trace states. What a step leaves is what the next one reads; of the last one it is known."""
        made, all_steps = [], values(trace)
        root = steps.states_root({name: all_steps[0][names.index(name)] for name in ("w", "m", "k")})
        chain = steps.chain_begin(3, root)
        made.append({"states_sha256": root.hex(), "chain_sha256": chain.hex()})
        for digests in all_steps:
            left = {name: digests[computed[name]] for name in ("w", "m")}
            root = steps.states_root({**left, "k": digests[names.index("k")]})
            chain = steps.chain_add(chain, digests[loss], root)
            made.append({"states_sha256": root.hex(), "chain_sha256": chain.hex()})
        return made
    all_steps = values(honest[0])
    n_values = range(len(names), len(all_steps[0]))
    # The values that a step computes for the next one, and the loss, are found by their digests.
    computed = {name: next(i for i in n_values if all(a[i] == b[names.index(name)] for a, b in zip(all_steps, all_steps[1:])))
                for name in ("w", "m")}
    stated = json.loads(honest[1].read_text())["body"]["points"]
    loss = [i for i in n_values if points(honest[0], i) == stated]
    check(len(loss) == 1, f"the points follow from the trace: {loss}")
    for at in (1, 2):
        trace, root = with_value(honest[0], folder / "kept-lie.trace", at, names.index("k"))
        liar = trace, relabel(honest[1], "kept-lie.json", trace_root=root, points=points(trace, loss[0]))
        for a, b, who in ((honest, liar, "B"), (liar, honest, "A")):
            done = harness.call(args.ree_run, *dispute_of(a, b)[:-1], step, "--data", data)
            check(done.returncode == 3 and f"{who}'s receipt is false: its trace changes the state 'k'" in done.stderr, done.stdout + done.stderr)


def inputs_of(trace):
    data = trace.read_bytes()
    size = struct.unpack("<Q", data[12:20])[0]
    return [one["name"] for one in json.loads(data[20:20 + size])["inputs"]]


def with_value(trace, path, step, value):
    """A trace in which one digest of a step is another, with its own root."""
    data = bytearray(trace.read_bytes())
    size = struct.unpack("<Q", data[12:20])[0]
    n_steps = struct.unpack("<Q", data[-40:-32])[0]
    size_of_step = (len(data) - 20 - size - 44) // n_steps
    at = 20 + size + step * size_of_step + 32 * value
    data[at] ^= 1
    path.write_bytes(bytes(data))
    return with_header(path, path)


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
        false_receipts()
        renamed()
        steps_of_all_kinds()
        kept_states()
        flips()
    return harness.finish()


sys.exit(main())
