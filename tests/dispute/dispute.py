#!/usr/bin/env python3
"""Disputes about runs of the sample model. With one bit flipped in one node, `dispute` names the
node that `diff` names, within the bound on messages, and `referee` rules that the unchanged run is
right. This holds for every node and for either party. Altered claims, inputs and traces are
refused."""

import json
import math
import pathlib
import random
import re
import shutil
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
for name in ("receipt", "cli", "train"):
    sys.path.insert(0, str(HERE.parent / name))
import cache_models  # noqa: E402
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402
from sealing import canonical, seal  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
PROMPT = ["--prompt-text", "Once upon a time", "--prefill-chunk", "4", "--max-new-tokens", "12", "--ignore-eos"]
N_FLIPS = 100
UNBOUND = 3  # the referee's exit code without receipts; tests/dispute/liars.py tests it with receipts

ree_run = None


def run(*args):
    return harness.call(ree_run, *args)


def answer(*args, codes):
    done = run(*args, "--json")
    check(done.returncode in codes, f"{args}: exit code {done.returncode}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout) if done.stdout else {}


def refused(*args, says, code=2):
    done = run(*args)
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stdout}")
    check(re.search(says, done.stderr), f"{args}: '{says}' is not in: {done.stderr}")


def bound(n_steps, n_nodes, n_inputs):
    """The maximum number of messages. Each of two parties gets a question and gives an answer for:
    its commitment, each level of both trees, the step, the node, and each of the node's inputs."""
    return 4 * (math.ceil(math.log2(n_steps)) + math.ceil(math.log2(n_nodes)) + 3 + n_inputs)


def flips(folder, about):
    """Faults in random nodes and steps. Each kind of operator that supports fault injection occurs
    at least once."""
    rng = random.Random(7)
    nodes = list(range(len(about["nodes"])))
    rng.shuffle(nodes)
    worst, kinds, fixed, done = 0, set(), set(), 0
    clean, damaged, claim = folder / "clean.trace", folder / "damaged.trace", folder / "claim.json"
    for k in range(6 * N_FLIPS):
        if done == N_FLIPS:
            break
        node = nodes[k % len(nodes)]
        if node in fixed:
            continue
        step, bit = rng.randrange(about["n_steps"]), rng.randrange(1 << 20)
        made = run(SAMPLE, *PROMPT, "--trace", damaged, "--inject-fault", f"{node}:{step}:{bit}")
        if made.returncode:
            if "computed while binding" in made.stderr:
                fixed.add(node)
            else:  # the largest exponent turns logits into NaN
                check("not a number" in made.stderr, made.stderr)
            continue
        swap = rng.random() < 0.5
        a, b = (damaged, clean) if swap else (clean, damaged)
        seen = answer("diff", a, b, codes=(0, 1))
        found = answer("dispute", "--a", a, "--b", b, "--claim", claim, codes=(0, 1))
        check(found["result"] == seen["result"], f"{found} where diff says {seen['result']}")
        if seen["result"] != "node":  # a flipped bit of a NaN does not change its digest
            continue
        done += 1
        first = seen["first"]
        kind = about["nodes"][node]["op_type"]
        check((first["step"], first["node"]) == (step, node), f"diff: {first}, damaged was {node} in step {step}")
        check((found["step"], found["node"]) == (step, node), f"dispute: {found}, damaged was {node} in step {step}")
        most = bound(about["n_steps"], len(about["nodes"]), found["n_inputs"])
        check(found["messages"] <= most, f"{found['messages']} messages, at most {most}")
        worst = max(worst, found["messages"])
        if kind in kinds and rng.random() < 0.6:
            continue
        kinds.add(kind)
        ruling = answer("referee", claim, SAMPLE, "--inputs", folder / "values", codes=(UNBOUND,))
        check(ruling.get("right") == "AB"[swap], f"{kind}, node {node} in step {step}: {ruling}")
    check(done >= 100, f"{done} faults")
    damageable = {about["nodes"][i]["op_type"] for i in nodes if i not in fixed}
    check(kinds == damageable, f"of {damageable} were refereed {kinds}")
    check({"Attention", "RMSNormalization", "MatMul", "Gather", "Mul"} <= kinds, f"{kinds}")
    print(f"{done} faults; at most {worst} messages over {about['n_steps']} steps of {len(nodes)} nodes; "
          f"refereed: {' '.join(sorted(kinds))}")


def damage(folder, about, op_type, step):
    """Makes a claim about a node of this kind. A is right."""
    node = next(i for i, n in enumerate(about["nodes"]) if n["op_type"] == op_type)
    made = run(SAMPLE, *PROMPT, "--trace", folder / "damaged.trace", "--inject-fault", f"{node}:{step}:3")
    check(made.returncode == 0, made.stderr)
    claim = folder / f"{op_type}.json"
    answer("dispute", "--a", folder / "clean.trace", "--b", folder / "damaged.trace", "--claim", claim, codes=(1,))
    return node, claim


def neither(folder, about):
    """Two runs with faults in the same node and step."""
    node, _ = damage(folder, about, "MatMul", 5)
    other, claim = folder / "other.trace", folder / "neither.json"
    run(SAMPLE, *PROMPT, "--trace", other, "--inject-fault", f"{node}:5:12")
    answer("dispute", "--a", other, "--b", folder / "damaged.trace", "--claim", claim, codes=(1,))
    ruling = answer("referee", claim, SAMPLE, "--inputs", folder / "values", codes=(UNBOUND,))
    check(ruling["right"] == "neither", f"{ruling}")


def flip_digit(text, at):
    return text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:]


def altered_claims(folder, about):
    node, claim = damage(folder, about, "Attention", 5)
    text = claim.read_text()
    bad = folder / "bad.json"

    def try_text(new, says):
        bad.write_text(new)
        refused("referee", bad, SAMPLE, "--inputs", folder / "values", says=says)

    for key in ('"root":"', '"nodes_root":"', '"steps_root":"', '"attributes_sha256":"', '"node_proof":["'):
        try_text(flip_digit(text, text.index(key) + len(key)), "does not lead|do not lead")
    for key, says in (('"graph_sha256":"', "graph is not the graph of the traces"), ('"weights_sha256":"', "weights are not the weights of the traces")):
        try_text(flip_digit(text, text.index(key) + len(key)), says)
    try_text(text.replace('"operation_set":"reproducible"', '"operation_set":"default"'), "operation set")
    try_text(text.replace("RepOps/1", "RepOps/9"), "RepOps/9")
    try_text(text.replace('"prefill_chunk":4', '"prefill_chunk":5'), "header")
    try_text(text.replace('{"a":', '{"x":1,"a":'), "x is unknown")
    try_text(text.replace('"step":5', '"step": 5'), "canonical")
    # One party's record of the node is longer, by an input or by an output.
    parsed = json.loads(text)
    for side in "ab":
        for part in ("inputs", "outputs"):
            lie = json.loads(text)
            assert part in lie[side], f"{sorted(lie[side])} {sorted(parsed)}"
            lie[side][part].append("0" * 64)
            try_text(canonical(lie), "different lengths")
    try_text(text[:-2], "JSON|canonical")
    try_text("", "bad.json: .*JSON")
    try_text("[" * 100000, "levels")
    first = re.search(r'"input":[1-9]\d*', text)
    if check(first, "an input other than 0"):
        try_text(text.replace(first[0], '"input":0', 1), "does not lead|does not come from where the model")
    refused("referee", folder / "none.json", SAMPLE, "--inputs", folder / "values", says="none.json")
    refused("referee", claim, SAMPLE, "--inputs", folder / "nothing", says="input 0 of the node")


def npy_flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def altered_inputs(folder, about):
    """Each file that the referee reads must match the digest that both parties committed to. The
    cache positions that each step wrote are among these files."""
    node, claim = damage(folder, about, "Attention", 5)
    values = folder / "altered"
    shutil.copytree(folder / "values", values)
    ok = answer("referee", claim, SAMPLE, "--inputs", values, codes=(UNBOUND,))
    check(ok.get("right") == "A", f"{ok}")
    cache = json.loads(claim.read_text())["inputs"]
    for file in (next((values / "step-00000").glob(f"{node:05}-*-1.npy")),
                 next((values / "step-00002").glob(f"{node:05}-*-1.npy")),
                 next((values / "step-00005").glob(f"{cache[0]['node']:05}-*-0.npy"))):
        good = file.read_bytes()
        npy_flip(file)
        refused("referee", claim, SAMPLE, "--inputs", values, says="does not have the digest")
        file.write_bytes(b"no array")
        refused("referee", claim, SAMPLE, "--inputs", values, says="npy")
        file.unlink()
        refused("referee", claim, SAMPLE, "--inputs", values, says="no file ")
        file.write_bytes(good)
    # Values of later steps do not matter.
    shutil.rmtree(values / "step-00006")
    ok = answer("referee", claim, SAMPLE, "--inputs", values, codes=(UNBOUND,))
    check(ok.get("right") == "A", f"{ok}")


def other_model(folder, about):
    """The sample with one weight changed."""
    _, claim = damage(folder, about, "MatMul", 3)
    model = folder / "model"
    shutil.copytree(SAMPLE, model)
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-2] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    refused("referee", claim, model, "--inputs", folder / "values", says="weights")


def altered_traces(folder, about):
    """An edited trace is refused. With a recomputed root it is accepted, and its owner is named as
    wrong."""
    data = bytearray((folder / "clean.trace").read_bytes())
    n_header = struct.unpack_from("<Q", data, len("ree-trace/2\n"))[0]
    at = len("ree-trace/2\n") + 8 + n_header
    each = 32 * (about["n_inputs"] + sum(n["n_outputs"] for n in about["nodes"]))
    node = next(i for i, n in enumerate(about["nodes"]) if n["op_type"] == "MatMul")
    place = about["n_inputs"] + sum(n["n_outputs"] for n in about["nodes"][:node])
    data[at + 4 * each + 32 * place] ^= 1
    forged = folder / "forged.trace"
    forged.write_bytes(data)
    done = run("dispute", "--a", forged, "--b", folder / "clean.trace", "--claim", folder / "x.json")
    check(done.returncode == 2, f"{done.returncode}")
    contents = re.search(r"its contents have ([0-9a-f]{64})", done.stderr)
    if not check(contents, done.stderr):
        return
    data[-32:] = bytes.fromhex(contents[1])
    forged.write_bytes(data)
    claim = folder / "forged.json"
    found = answer("dispute", "--a", forged, "--b", folder / "clean.trace", "--claim", claim, codes=(1,))
    check((found["step"], found["node"]) == (4, node), f"{found}")
    ruling = answer("referee", claim, SAMPLE, "--inputs", folder / "values", codes=(UNBOUND,))
    check(ruling["right"] == "B", f"{ruling}")


def others(folder, about):
    """Pairs of runs for which no node can be named."""
    clean, other, claim = folder / "clean.trace", folder / "other.trace", folder / "none.json"
    found = answer("dispute", "--a", clean, "--b", clean, "--claim", claim, codes=(0,))
    check(found["result"] == "same" and found["messages"] == 4, f"{found}")
    for args, result in ((["--prompt-text", "Once upon a dime"], "input"), (["--max-new-tokens", "9"], "length"),
                         (["--prefill-chunk", "8"], "other_run")):
        run(SAMPLE, *PROMPT, *args, "--trace", other)
        if args[0] == "--prompt-text":
            run(SAMPLE, *args, *PROMPT[2:], "--trace", other)
        found = answer("dispute", "--a", clean, "--b", other, "--claim", claim, codes=(2,))
        check(found["result"] == result, f"{args}: {found}")
    check(not claim.exists(), "there is no claim without a node")
    lines = folder / "transcript.jsonl"
    found = answer("dispute", "--a", clean, "--b", other, "--claim", claim, "--transcript", lines, codes=(2,))
    text = lines.read_text()
    check(len(text) == found["bytes"] and text.count("\n") == found["messages"], f"{found}")
    refused("dispute", "--a", clean, says="--b")
    refused("dispute", "--a", clean, "--b", clean, says="--claim")
    _, node_claim = damage(folder, about, "MatMul", 5)
    refused("referee", node_claim, SAMPLE, says="--inputs")
    refused("referee", clean, says="a claim and a model")


def tensors(folder, about):
    """Receipts of tensors: a party whose receipt states another input or output than its own trace
    is named."""
    model = SAMPLE.parent / "digits.onnx"
    trace, damaged, claim = folder / "digit.trace", folder / "other.trace", folder / "digit.claim"
    honest, lying = folder / "digit.json", folder / "lie.json"
    run(model, "--input", SAMPLE.parent / "seven.npy", "--trace", trace, "--receipt-path", honest)
    made = run(model, "--input", SAMPLE.parent / "seven.npy", "--trace", damaged, "--receipt-path", lying, "--inject-fault",
               "1:0:3")
    check(made.returncode == 0, made.stderr)

    def held(change, to=trace, whose=honest, codes=(3,)):
        receipt = json.loads(whose.read_text())
        change(receipt["body"])
        (folder / "sealed.json").write_text(json.dumps(seal(receipt)))
        sides = [("--a", trace, "--a-receipt", honest), ("--b", to, "--b-receipt", folder / "sealed.json")]
        return answer("dispute", *sides[0], *sides[1], "--claim", claim, "--model", model, codes=codes)

    for change, says in ((lambda b: b["inputs"][0].update(sha256="a" * 64), "input 'image'"),
                         (lambda b: b["outputs"][0].update(sha256="a" * 64), "output 'probabilities'"),
                         (lambda b: b["inputs"][0].update(name="zz"), "input 'zz'"),
                         (lambda b: b["outputs"][0].update(name="zz"), "'zz'"), (lambda b: b.update(outputs=[]), "0 outputs")):
        found = held(change)
        check(found["result"] == "lied" and found["liar"] == "B" and says in found["reason"], f"{says}: {found}")
        # With another trace: a claim if the receipts' inputs agree.
        names_input = says.startswith("input")
        found = held(change, damaged, lying, codes=(3,) if names_input else (1,))
        check(found["result"] == ("lied" if names_input else "node"), f"{says}, another trace: {found}")
    found = held(lambda b: None, codes=(0,))
    check(found["result"] == "same" and not found["receipts_differ"], f"the same: {found}")
    found = held(lambda b: None, damaged, lying, codes=(1,))
    check(found["result"] == "node", f"a damaged node, and a receipt that says so: {found}")
    for change, says in ((lambda b: b.update(extensions={"x": 1}), "extensions"),):
        found = held(change, codes=(2,))
        check(found["receipts_differ"] == [says], f"the same root, another receipt: {found}")


def tensors_of_other_kinds(folder):
    """Receipts of tensors whose inputs have NaNs or default values, and whose outputs no node computes."""
    model, claim = folder / "kinds.onnx", folder / "kinds.claim"
    model.write_bytes(onnx.model([onnx.node("Mul", ["x", "w"], ["y"])],
                                 [onnx.port("x", onnx.FLOAT, [3]), onnx.port("w", onnx.FLOAT, [1])],
                                 [onnx.port("y", onnx.FLOAT, [3]), onnx.port("two", onnx.FLOAT, [1]), onnx.port("x", onnx.FLOAT, [3])],
                                 [onnx.floats("w", [1], [2]), onnx.floats("two", [1], [2])]))
    values = {"plain": ([1, 2, 3], None), "nan": ([1, struct.unpack("<f", struct.pack("<I", 0xFFC00000))[0], 2], None),
              "other": ([4, 2, 3], None), "w": ([1, 2, 3], [5])}
    made = {}
    for name, (x, w) in values.items():
        inputs = []
        for input_name, numbers in (("x", x), ("w", w)):
            if numbers:
                path = folder / f"{input_name}.npy"
                path.write_bytes(steps.Tensor("<f4", (len(numbers),), numbers).npy())
                inputs += ["--input", f"{input_name}={path}"]
        made[name] = folder / f"{name}.trace", folder / f"{name}-kinds.json"
        done = run(model, *inputs, "--trace", made[name][0], "--receipt-path", made[name][1])
        check(done.returncode == 0, done.stderr)
        done = run("verify", made[name][1], model, *inputs, "--trace", folder / "again.trace")
        check(done.returncode == 0, f"{name}: {done.stdout}{done.stderr}")

    def sealed(name, change):
        receipt = json.loads(made[name][1].read_text())
        change(receipt["body"])
        path = folder / "kinds-lie.json"
        path.write_text(json.dumps(seal(receipt)))
        return made[name][0], path

    def held(a, b):
        done = run("dispute", "--a", a[0], "--a-receipt", a[1], "--b", b[0], "--b-receipt", b[1], "--claim", claim, "--model", model, "--json")
        found = json.loads(done.stdout) if done.stdout else {}
        return done.returncode, found.get("liar") or "".join(found.get("wrong", [])), found.get("reason", "") + done.stderr

    # Honest parties, with NaNs of other bits: the same run, and two runs.
    check(held(made["nan"], made["nan"])[:2] == (0, ""), "one run twice")
    for a, b in (("nan", "other"), ("other", "nan")):
        code, named, text = held(made[a], made[b])
        check((code, named) == (2, "") and "inputs differs" in text, f"two runs: {code}, {named}, {text}")
    # A receipt that states other floats than its trace has.
    for a in ("nan", "plain"):
        liar = sealed(a, lambda body: body["inputs"][0].update(sha256="a" * 64))
        check(held(made[a], liar)[:2] == (3, "B") and held(liar, made[a])[:2] == (3, "A"), f"{a}: a false input")
    # Another value than the default, left out of the receipt; with a false root, and with the root of the honest run.
    def without_w(body):
        body["inputs"] = [one for one in body["inputs"] if one["name"] == "x"]
    liar = sealed("w", without_w)
    check(held(made["plain"], liar)[:2] == (1, "B") and held(liar, made["plain"])[:2] == (1, "A"), "a hidden input")
    ruling = answer("referee", claim, model, "--a-receipt", liar[1], "--b-receipt", made["plain"][1], codes=(0,))
    check(ruling.get("right") == "B", ruling)
    check(held(liar, liar)[0] == 3, "the same hidden input twice")
    # A default value that one receipt states and the other leaves out: the same run, in which a fault is found.
    default = folder / "w.npy"
    default.write_bytes(steps.Tensor("<f4", (1,), [2]).npy())
    stated = ["--input", f"x={folder / 'plain.npy'}", "--input", f"w={default}"]
    (folder / "plain.npy").write_bytes(steps.Tensor("<f4", (3,), [1, 2, 3]).npy())
    for name, fault in (("stated", []), ("faulty", ["--inject-fault", "0:0:3"])):
        made[name] = folder / f"{name}.trace", folder / f"{name}-kinds.json"
        done = run(model, *stated, *fault, "--trace", made[name][0], "--receipt-path", made[name][1])
        check(done.returncode == 0, done.stderr)
    done = run("dispute", "--a", made["plain"][0], "--a-receipt", made["plain"][1], "--b", made["stated"][0], "--b-receipt", made["stated"][1],
               "--claim", claim, "--model", model, "--json")
    check(json.loads(done.stdout)["result"] == "same", f"two forms of one run: {done.stdout}{done.stderr}")
    for a, b in (("plain", "faulty"), ("faulty", "plain")):
        done = run("dispute", "--a", made[a][0], "--a-receipt", made[a][1], "--b", made[b][0], "--b-receipt", made[b][1], "--claim", claim,
                   "--model", model, "--json")
        check(json.loads(done.stdout)["result"] == "node", f"{a}, {b}: {done.stdout}{done.stderr}")
    # Outputs that are computed, a constant, an input.
    for i in range(3):
        liar = sealed("nan", lambda body, i=i: body["outputs"][i].update(sha256="a" * 64))
        code, named, text = held(made["nan"], liar)
        check((code, named) == (3, "B") and "the output" in text, f"output {i}: {code}, {named}, {text}")


def absent_inputs(folder):
    """An input that may be absent, hidden by the receipt of a run that had it."""
    model, claim = folder / "absent.onnx", folder / "absent.claim"
    present = onnx.graph([onnx.node("OptionalGetElement", ["o"], ["a"])], [], [onnx.port("a", onnx.FLOAT, [2])])
    absent = onnx.graph([onnx.node("Identity", ["x"], ["b"])], [], [onnx.port("b", onnx.FLOAT, [2])])
    model.write_bytes(onnx.model(
        [onnx.node("OptionalHasElement", ["o"], ["has"]),
         onnx.node("If", ["has"], ["y"], attributes={"then_branch": present, "else_branch": absent})],
        [onnx.port("x", onnx.FLOAT, [2]), onnx.port("o", onnx.FLOAT, [2], onnx.OPTIONAL)], [onnx.port("y", onnx.FLOAT, [2])], opset=18))
    made = {}
    for name, numbers in (("x", [1, 2]), ("o", [3, 4])):
        (folder / f"{name}.npy").write_bytes(steps.Tensor("<f4", (2,), numbers).npy())
    for name, inputs in (("without", ["x"]), ("with", ["x", "o"])):
        made[name] = folder / f"{name}.trace", folder / f"{name}-absent.json"
        given = [text for one in inputs for text in ("--input", f"{one}={folder / one}.npy")]
        done = run(model, *given, "--trace", made[name][0], "--receipt-path", made[name][1])
        check(done.returncode == 0, done.stderr)
    receipt = json.loads(made["with"][1].read_text())
    receipt["body"]["inputs"] = [one for one in receipt["body"]["inputs"] if one["name"] == "x"]
    (folder / "absent-lie.json").write_text(json.dumps(seal(receipt)))
    honest, liar = made["without"], (made["with"][0], folder / "absent-lie.json")
    for a, b, who in ((honest, liar, "B"), (liar, honest, "A")):
        found = answer("dispute", "--a", a[0], "--a-receipt", a[1], "--b", b[0], "--b-receipt", b[1], "--claim", claim, "--model", model,
                       codes=(1,))
        check(found.get("wrong") == [who], found)
    found = answer("dispute", "--a", liar[0], "--a-receipt", liar[1], "--b", liar[0], "--b-receipt", liar[1], "--claim", claim, "--model", model,
                   codes=(3,))
    check(found.get("liar") == "A", found)


def rewritten_caches(folder):
    """Caches that each step writes as a whole, because it puts the new position first or changes the earlier ones. A fault in
    any node that reads one of them, or makes one, can be decided in every step."""
    n_steps = 4
    for kind in cache_models.KINDS:
        below = folder / kind
        below.mkdir()
        path, claim = cache_models.write(below / "model.onnx", kind), below / "claim.json"
        pair = ["--a", below / "clean.trace", "--b", below / "damaged.trace", "--claim", claim]
        prompt = [path, "--prompt-ids", "1,2,5", "--max-new-tokens", n_steps, "--ignore-eos"]
        made = run(*prompt, "--trace", below / "clean.trace", "--dump-tensors", ".", "--dump-folder", below / "values")
        if not check(made.returncode == 0, f"{kind}: {made.stderr}"):
            continue
        about = answer("trace", below / "clean.trace", codes=(0,))
        decided, kept_in_place, empty = 0, 0, 0
        for step in range(n_steps):
            for node in range(len(about["nodes"])):
                made = run(*prompt, "--trace", below / "damaged.trace", "--inject-fault", f"{node}:{step}:3")
                if made.returncode:
                    kept_in_place += "kept from run to run" in made.stderr
                    empty += "it is empty" in made.stderr  # before the first position
                    continue
                found = answer("dispute", *pair, codes=(1,))
                check(found.get("step") == step, f"{kind}: {step}, {node}: {found}")
                ruling = answer("referee", claim, path, "--inputs", below / "values", codes=(UNBOUND,))
                decided += check(ruling.get("right") == "A", f"{kind}: step {step}, node {node}: {ruling}")
        check(kept_in_place == n_steps and empty <= 1 and decided == n_steps * (len(about["nodes"]) - 1) - empty,
              f"{kind}: {decided} decided, {kept_in_place} kept in place, {empty} empty")
        # The last claim is about a node that reads what the last step left.
        for step in range(n_steps):
            file = next((below / "values" / f"step-{step:05}").glob(f"{len(about['nodes']) - 3:05}-*-0.npy"))
            good = file.read_bytes()
            n_positions = 3 + step if kind != "kept" or step == 0 else 1
            check(len(good) == 128 + 4 * n_positions, f"{kind}: {len(good)} bytes in step {step}")
            if kind == "kept" or step == n_steps - 1:
                npy_flip(file)
                last = f"{len(about['nodes']) - 2}:{n_steps - 1}:3"
                run(*prompt, "--trace", below / "damaged.trace", "--inject-fault", last)
                answer("dispute", *pair, codes=(1,))
                refused("referee", claim, path, "--inputs", below / "values", says="does not have the digest")
                file.write_bytes(good)


def requests(folder):
    """With a request, whoever does not answer it is named, whatever else differs."""
    request, claim = folder / "request.json", folder / "request.claim"
    honest = folder / "answer.trace", folder / "answer.json"
    for args in (("request", SAMPLE, "--prompt-ids", "0,440,68,70", "--max-new-tokens", "3", "--output", request),
                 (SAMPLE, "--request", request, "--trace", honest[0], "--receipt-path", honest[1])):
        done = run(*args)
        check(done.returncode == 0, done.stderr)

    def held(a, b, *options):
        return run("dispute", "--a", a[0], "--a-receipt", a[1], "--b", b[0], "--b-receipt", b[1], "--claim", claim, "--model", SAMPLE, *options)

    old = HERE.parent / "data" / "version_0_1_0"
    lies = [((old / "fault.trace", old / "fault.json"), "answers none")]
    for change, says in ((lambda b: b.update(operation_set="default"), "the operation set is not as requested"),
                         (lambda b: b.update(extensions={"x": 1}, critical=["x"]), "the receipt requires 'x'"),
                         (lambda b: (b.update(extensions={"x": 1}, critical=["x"]), b["output"].update(text="no such text")), "contradicts itself")):
        receipt = json.loads(honest[1].read_text())
        change(receipt["body"])
        path = folder / f"unanswered-{len(lies)}.json"
        path.write_text(json.dumps(seal(receipt, keep=["output.text_sha256"])))
        lies.append(((honest[0], path), says))
        done = run("verify", path, SAMPLE, "--request", request)
        check(done.returncode == 1 and (says in done.stdout or says == "contradicts itself"), f"{says}: {done.stdout}")
    for liar, says in lies:
        for a, b, who in ((honest, liar, "B"), (liar, honest, "A")):
            done = held(a, b, "--request", request)
            check(done.returncode == 3 and f"{who}'s receipt is false" in done.stderr and says in done.stderr, f"{says}: {done.stdout}{done.stderr}")
    # Without one, a receipt that contradicts its own trace is named, and is no other run.
    for change, what in ((lambda b: b["model"].update(weights_sha256="a" * 64), "weights"),
                         (lambda b: b.update(operation_set="default"), "operation set")):
        receipt = json.loads(honest[1].read_text())
        change(receipt["body"])
        liar = honest[0], folder / "contradicts.json"
        liar[1].write_text(json.dumps(seal(receipt)))
        for a, b, who in ((honest, liar, "B"), (liar, honest, "A")):
            done = held(a, b)
            check(done.returncode == 3 and f"{who}'s receipt is false: it contradicts its trace: {what}" in done.stderr, done.stdout + done.stderr)


def main():
    global ree_run
    parser = harness.parser()
    ree_run = parser.parse_args().ree_run
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = run(SAMPLE, *PROMPT, "--trace", folder / "clean.trace", "--dump-tensors", ".", "--dump-folder",
                   folder / "values")
        check(made.returncode == 0, made.stderr)
        about = answer("trace", folder / "clean.trace", codes=(0,))
        for part in (flips, neither, altered_claims, altered_inputs, other_model, altered_traces, others, tensors):
            part(folder, about)
        tensors_of_other_kinds(folder)
        absent_inputs(folder)
        rewritten_caches(folder)
        requests(folder)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
