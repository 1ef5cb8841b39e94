#!/usr/bin/env python3
"""Receipts of trainings: their hashes by an independent computation, validation and attestations, verification of all
steps and of parts, and at least 20 lies about each field, sealed again; none may be called verified.

    tests/train/receipts.py --ree-run build/ree-run
"""
import base64
import copy
import hashlib
import json
import pathlib
import random
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE.parent / "models"))
import harness  # noqa: E402
import npy  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402

N_LIES = 20
SEED, N_STEPS, INTERVAL = 6, 8, 3


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def seal(receipt):
    receipt["receipt_hash"] = hashlib.sha256(b"ree-training-receipt/1\0" + canonical(receipt["body"])).hexdigest()
    return receipt


def write(receipt, name="lie.json"):
    (folder / name).write_bytes(canonical(receipt) + b"\n")
    return folder / name


def verify(path, *options, step=None, samples=None):
    return harness.call(args.ree_run, "verify", path, step or line, "--data", samples or data, *options)


@harness.helper
def verdict(done, code, *words):
    check(done.returncode == code, lambda: f"exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}")
    for word in words:
        check(word in done.stdout + done.stderr, lambda: f"'{word}' is not in: {done.stdout}{done.stderr}")


def train(path, *options, step=None):
    harness.run(args.ree_run, "train", step or line, "--data", data, "--seed", SEED, "--receipt-path", path, *options)
    return json.loads(path.read_text())


def independent(receipt):
    """Every hash of the body, by the code of steps.py and single runs of the step."""
    body, tensors = receipt["body"], steps.line_data()
    states = {name: steps.Tensor("<f4", (3,), values) for name, values in (("w", (0.5, -0.25, 0.125)), ("m", (0, 0, 0)))}
    root = steps.states_root({k: v.digest() for k, v in states.items()})
    chain = steps.chain_begin(0, root)
    points = [(root, chain)]
    for t in range(N_STEPS):
        given = {name: tensor.rows(steps.batch_of(t, 7, 2, SEED)) for name, tensor in tensors.items()} | states
        options = []
        for name, tensor in given.items():
            (folder / f"{name}.npy").write_bytes(tensor.npy())
            options += ["--input", f"{name}={folder / name}.npy"]
        harness.run(args.ree_run, line, *options, "--output-dir", folder / "next")
        states = {name: steps.Tensor("<f4", (3,), npy.load(folder / "next" / f"{name}.next.npy")[2]) for name in ("w", "m")}
        root = steps.states_root({k: v.digest() for k, v in states.items()})
        loss = steps.Tensor("<f4", (), npy.load(folder / "next" / "loss.npy")[2]).digest()
        chain = steps.chain_add(chain, loss, root)
        if (t + 1) % INTERVAL == 0 or t + 1 == N_STEPS:
            points.append((root, chain))
    check([(p["states_sha256"], p["chain_sha256"]) for p in body["points"]] == [(r.hex(), c.hex()) for r, c in points], "points")
    names = json.loads(harness.run(args.ree_run, "inspect", line, "--hash", "--json"))
    check(body["model"] == {k: names[k] for k in ("graph_sha256", "weights_sha256")}, "hashes of the model")
    samples = b"".join(steps.string(k) + tensors[k].digest() for k in ("x", "y"))
    check(body["data"]["sha256"] == hashlib.sha256(b"ree-tensors/1\0" + samples).hexdigest(), "hash of the samples")
    check(body["roles_sha256"] == steps.roles(["x", "y"], "loss", [("w", "w.next"), ("m", "m.next")], 0), "roles")
    own = seal(copy.deepcopy(receipt))
    check(own["receipt_hash"] == receipt["receipt_hash"], "receipt_hash")
    check((folder / "r.json").read_bytes() == canonical(receipt) + b"\n", "canonical JSON")
    check({k: body[k] for k in ("first_step", "n_steps", "interval", "batch_size")} ==
          {"first_step": 0, "n_steps": N_STEPS, "interval": INTERVAL, "batch_size": 2}, body)


def parts():
    """What is verified, and what is verified only in part."""
    r = folder / "r.json"
    verdict(verify(r), 0, "initial states: agrees", "steps: agrees: steps 1 to 8", "\nverified (8 steps")
    verdict(verify(r, "--no-fuse", "--threads", 1, "--cpu-isa", "portable"), 0, "\nverified (8 steps")
    found = json.loads(verify(r, "--json").stdout)
    check(found["result"] == "verified" and found["steps"] == 8 and found["first_step"] == 1, found)
    verdict(verify(r, "--steps", 7), 3, "steps 1 to 6", "steps after: not checked: steps 7 to 8", "verified in part")
    verdict(verify(r, "--steps", 2), 2, "next point is 3 steps away")
    for n, begins in ((3, True), (6, True), (4, False), (8, False)):
        at = folder / f"at{n}.safetensors"
        harness.run(args.ree_run, "train", line, "--data", data, "--seed", SEED, "--steps", n, "--checkpoint", at)
        if begins:
            verdict(verify(r, "--resume", at), 3, f"steps before: not checked: steps 1 to {n}", f"steps {n + 1} to 8", "verified in part")
            verdict(verify(r, "--resume", at, "--steps", 3), 3, "verified in part")
        else:
            verdict(verify(r, "--resume", at), 2, "has no point" if n == 4 else "no step follows")
    # A training that continued: only in part, and only with its checkpoint.
    went = folder / "went.json"
    made = train(went, "--resume", folder / "at3.safetensors", "--checkpoint", folder / "end.safetensors", "--steps", 8)
    check(made["body"]["first_step"] == 3 and made["body"]["n_steps"] == 5 and made["body"]["interval"] == 1, made["body"])
    verdict(verify(went), 2, "continued after 3 steps, so a checkpoint")
    verdict(verify(went, "--resume", folder / "at3.safetensors"), 3, "steps before: not checked: steps 1 to 3", "verified in part")
    # A checkpoint with other states than the receipt has at this point.
    lied, metadata = steps.read_safetensors(folder / "at3.safetensors")
    tensors = {k: steps.Tensor("<f4", (3,), struct.unpack("<3f", raw)) for k, (_, raw) in lied.items()}
    tensors["w"].values[0] += 1
    about = json.loads(metadata["ree.training"])
    about["states_sha256"] = steps.states_root({name: tensors[name].digest() for name in ("w", "m")}).hex()
    steps.safetensors(folder / "lied.safetensors", tensors, {"ree.training": json.dumps(about)})
    verdict(verify(r, "--resume", folder / "lied.safetensors"), 2, "its states after 3 steps have the SHA-256")
    # A receipt that begins with these states, as if they were the initial ones: never verified, whatever is given.
    lie = json.loads(r.read_text())
    lie["body"]["points"][0] = {"states_sha256": about["states_sha256"],
                                "chain_sha256": steps.chain_begin(0, bytes.fromhex(about["states_sha256"])).hex()}
    verdict(verify(write(seal(lie))), 1, "initial states: differs")
    steps.safetensors(folder / "zero.safetensors", tensors, {"ree.training": json.dumps({**about, "n_steps": 0})})
    verdict(verify(folder / "lie.json", "--resume", folder / "zero.safetensors"), 1, "initial states: differs")
    verdict(verify(r, "--resume", folder / "zero.safetensors"), 2, "is not the initial one")
    # Another step, other samples.
    verdict(verify(r, step=steps.line_step(folder / "other.onnx", w=(1, 2, 3))), 1, "weights: differs", "\ndiffers")
    swapped = {**steps.METADATA, "states": {"w": "m.next", "m": "w.next"}}
    verdict(verify(r, step=steps.line_step(folder / "other.onnx", swapped)), 1, "roles: differs", "\ndiffers")
    verdict(verify(r, step=steps.line_step(folder / "other.onnx", nodes=[onnx.node("Neg", ["w"], ["u"])])), 1, "graph: differs")
    verdict(verify(r, samples=steps.npz(folder / "d8.npz", steps.line_data(8))), 1, "samples: differs", "batches: differs")
    # Usage
    verdict(harness.call(args.ree_run, "verify", r, line), 2, "--data")
    for option in (["--stepwise"], ["--ignore-eos"], ["--prefill-chunk", 3], ["--raw-prompt"], ["--n-partitions", 2], ["--quantize", 8]):
        verdict(verify(r, *option), 2, "--data is for the receipt of a training")
    # A receipt whose hash is wrong is called that by every command.
    lie = json.loads(r.read_text())
    lie["receipt_hash"] = "0" * 64
    verdict(harness.call(args.ree_run, "verify", write(lie), line), 2, "receipt_hash is 0000")
    verdict(harness.call(args.ree_run, "validate", write(lie)), 1, "but the receipt has 0000")
    verdict(verify(r, "--prompt-text", "x"), 2, "--data is for the receipt of a training")
    verdict(harness.call(args.ree_run, "verify", r, line, "--steps", 3), 2, "require --data")
    verdict(verify(line), 2, "")
    # Made without a promise of bits.
    loose = train(folder / "loose.json", "--steps", 2, "--operation-set", "default")
    check(loose["body"]["operation_set"] == "default", loose["body"])
    verdict(verify(folder / "loose.json"), 2, "operation set: not checked", "cannot be checked")


def versions():
    """A trace of another version of ree may have other nodes: its root is not checked, but not called wrong."""
    made = train(folder / "v.json", "--steps", 2, "--trace", folder / "v.trace")
    made["body"]["trace_root"] = "1" * 64
    made["unbound"]["ree_version"] = "0.1.0"
    verdict(verify(write(seal(made)), "--trace", folder / "again.trace"), 3, "trace: not checked", "ree 0.1.0 made it")


def signatures():
    key, other, r = folder / "key.pem", folder / "other.pem", folder / "signed.json"
    for path in (key, other):
        harness.run(args.ree_run, "keygen", path)
    signed = train(r, "--steps", 4, "--sign", key)
    public = signed["signature"]["public_key"]
    verdict(verify(r), 0, f"signature: agrees: signed with the key {public}", "\nverified")
    verdict(verify(r, "--public-key", f"{key}.pub"), 0, "\nverified")
    verdict(verify(r, "--public-key", f"{other}.pub"), 1, "signature: differs")
    verdict(verify(folder / "r.json", "--public-key", f"{key}.pub"), 1, "signature: differs: the receipt is not signed")
    lie = copy.deepcopy(signed)
    lie["body"]["data"]["seed"] = "7"
    verdict(verify(write(seal(lie))), 1, "signature: differs")
    for i in (0, 64, 127):
        lie = copy.deepcopy(signed)
        text = lie["signature"]["signature"]
        lie["signature"]["signature"] = text[:i] + ("0" if text[i] != "0" else "1") + text[i + 1:]
        verdict(verify(write(lie)), 1, "signature: differs")


def seeds_without_effect():
    """In order and without random inputs, the seed has no effect: it is 0 in the receipt, and another one is a lie."""
    first, second = folder / "seed0.json", folder / "seed7.json"
    made = train(first, "--steps", 3, "--in-order")
    harness.run(args.ree_run, "train", line, "--data", data, "--seed", 7, "--receipt-path", second, "--steps", 3, "--in-order")
    check(made["body"] == json.loads(second.read_text())["body"] and made["body"]["data"]["seed"] == "0", "equal trainings, equal receipts")
    verdict(verify(second), 0, "\nverified")
    for seed in ("7", "18446744073709551615"):
        made["body"]["data"]["seed"] = seed
        verdict(verify(write(seal(made))), 1, "batches: differs", "must be 0")


def validated():
    """validate: what follows from the file alone, for receipts and for attestations of them."""
    r, envelope, other = folder / "validated.json", folder / "r.dsse", folder / "other.dsse"
    key, liar = folder / "key.pem", folder / "other.pem"
    made = train(r, "--steps", 4, "--sign", key, "--dsse", envelope)
    train(folder / "second.json", "--steps", 3, "--sign", key, "--dsse", other)
    public = made["signature"]["public_key"]

    def validate(path, code, *options, wrong=()):
        done = harness.call(args.ree_run, "validate", path, "--json", *options)
        check(done.returncode == code, lambda: f"exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}")
        if code == 2:
            return done.stderr
        shown = json.loads(done.stdout)
        check(shown["valid"] == (code == 0) and shown["receipt_hash"] == json.loads(path.read_text())["receipt_hash"], shown)
        found = {f["what"] for f in shown["findings"] if not f["ok"]}
        check(found == set(wrong), lambda: f"wrong: {found}, expected {set(wrong)}")
        return {f["what"] for f in shown["findings"]}

    check(validate(r, 0) == {"receipt", "signature"}, "what is checked")
    check(validate(folder / "r.json", 0) == {"receipt"}, "a receipt without a signature")
    check(validate(r, 0, "--public-key", f"{key}.pub", "--dsse", envelope) ==
          {"receipt", "signature", "public key", "attestation"}, "all is checked")
    validate(folder / "r.json", 1, "--public-key", f"{key}.pub", wrong=["public key"])
    validate(r, 1, "--public-key", f"{liar}.pub", wrong=["public key"])
    validate(r, 1, "--public-key", f"{liar}.pub", "--dsse", envelope, wrong=["public key", "attestation"])
    validate(r, 1, "--dsse", other, wrong=["attestation"])
    text = harness.call(args.ree_run, "validate", r).stdout
    check(f"by {public}\nvalid\n" in text, text)
    # The statement that other tools read is about this file and has its contents.
    statement = json.loads(base64.b64decode(json.loads(envelope.read_text())["payload"]))
    check(statement["predicateType"] == "urn:ree:training-receipt:1" and
          statement["subject"] == [{"name": r.name, "digest": {"sha256": hashlib.sha256(r.read_bytes()).hexdigest()}}] and
          statement["predicate"] == {k: v for k, v in made.items() if k != "signature"}, "the statement")
    # One byte of the file, each field of the body, and what is not in the body.
    r.write_text(r.read_text().replace("}\n", "} \n"))
    validate(r, 1, "--dsse", envelope, wrong=["attestation"])
    for change, wrong in ((lambda m: m["body"]["data"].update(seed="7"), ["receipt"]),
                          (lambda m: m["body"].update(interval=2, points=m["body"]["points"][::2]), ["receipt"]),
                          (lambda m: m["body"]["points"][1].update(chain_sha256="0" * 64), ["receipt"]),
                          (lambda m: m.update(receipt_hash="0" * 64), ["receipt", "signature"]),
                          (lambda m: m["body"]["data"].update(seed="7") or seal(m), ["signature"]),
                          (lambda m: m["signature"].update(signature="0" * 128), ["signature"])):
        lie = copy.deepcopy(made)
        change(lie)
        validate(write(lie), 1, wrong=wrong)
    lie = copy.deepcopy(made)
    del lie["body"]["interval"]
    check("interval" in validate(write(lie), 2), "a malformed receipt cannot be checked")
    done = harness.call(args.ree_run, "train", line, "--data", data, "--steps", 1, "--receipt-path", folder / "x.json",
                        "--dsse", folder / "x.dsse")
    check(done.returncode == 2 and "--dsse requires --sign" in done.stderr and not (folder / "x.json").exists(), done.stderr)


# Lies about each field of a body: functions of the true value and a random generator. A field without a row fails.

def other_hash(value, draw):
    return draw.choice(["0" * 64, hashlib.sha256(struct.pack("<q", draw.getrandbits(60))).hexdigest(), value[::-1],
                        ("0" if value[0] != "0" else "1") + value[1:]])


def other_number(low, high):
    def lie(value, draw):
        while True:
            made = draw.choice([value + 1, value - 1, value * 2, 0, 1, draw.randint(low, high), draw.randint(1, 12), high])
            if made != value:
                return made
    return lie


LIES = {
    "numerics": lambda v, d: d.choice(["RepOps/2", "RepOps/0", "", "repops/1", 1, None]),
    "operation_set": lambda v, d: d.choice(["deterministic", "default", "", "other", None, 0]),
    "model.graph_sha256": other_hash, "model.weights_sha256": other_hash, "roles_sha256": other_hash, "data.sha256": other_hash,
    "data.n_samples": other_number(1, 1 << 32), "data.order": lambda v, d: d.choice(["in order", "", "random", None, 1]),
    "data.seed": lambda v, d: d.choice([str(d.getrandbits(64)), "0", "06", "-6", 6, str(1 << 64), "7"]),
    "batch_size": other_number(1, 1 << 32), "first_step": other_number(0, 1 << 33), "n_steps": other_number(0, 1 << 33),
    "interval": other_number(0, 1 << 33),
    "points.states_sha256": other_hash, "points.chain_sha256": other_hash, "trace_root": other_hash,
}


def fields(value, path=""):
    if isinstance(value, dict):
        return {name for key, part in value.items() for name in fields(part, f"{path}.{key}" if path else key)}
    if isinstance(value, list):
        return {name for part in value for name in fields(part, path)}
    return {path}


def lie_about(receipt, path, draw):
    lie = copy.deepcopy(receipt)
    at = lie["body"]
    *outer, last = path.split(".")
    for key in outer:
        at = at[key]
        if isinstance(at, list):
            at = at[draw.randrange(len(at))]
    at[last] = LIES[path](at[last], draw)
    return seal(lie)


def forged(receipt):
    """`receipt` has a trace, which is computed again."""
    draw, n, again = random.Random(29), 0, ["--trace", folder / "again.trace"]
    check(fields(receipt["body"]) == set(LIES), f"fields and rows: {fields(receipt['body']) ^ set(LIES)}")
    for path in LIES:
        for _ in range(N_LIES):
            lie = lie_about(receipt, path, draw)
            done = verify(write(lie), *again)
            n += 1
            check(done.returncode in (1, 2) and "\nverified" not in done.stdout, lambda: f"{path}: {lie['body']}\n{done.stdout}{done.stderr}")
    # Consistent in itself: another chain from the true first state, and with points of another number of steps.
    for kind in range(60):
        lie = copy.deepcopy(receipt)
        body = lie["body"]
        i = 1 + kind % (len(body["points"]) - 1)
        root = hashlib.sha256(struct.pack("<q", kind)).digest()
        if kind % 3 == 0:  # other states at the end of an interval
            body["points"][i] = {"states_sha256": root.hex(), "chain_sha256": steps.chain_add(bytes.fromhex(body["points"][i - 1]["chain_sha256"]), root, root).hex()}
        elif kind % 3 == 1:  # a shorter or longer training
            body["n_steps"] = draw.choice([3, 6, 7, 9, 10, 12])
            count = 1 + -(-body["n_steps"] // INTERVAL)
            body["points"] = [copy.deepcopy(body["points"][min(k, len(body["points"]) - 1)]) for k in range(count)]
            if body["n_steps"] in (3, 6):  # a true receipt of fewer steps, but for its trace
                verdict(verify(write(seal(lie)), *again), 1, "steps: agrees", "trace: differs")
                del body["trace_root"]
                verdict(verify(write(seal(lie))), 0, "\nverified")
                continue
        else:  # other first states, with the chain that begins there
            body["points"][0] = {"states_sha256": root.hex(), "chain_sha256": steps.chain_begin(0, root).hex()}
        done = verify(write(seal(lie)), *again)
        n += 1
        check(done.returncode in (1, 2) and "\nverified" not in done.stdout, lambda: f"{kind}: {lie['body']}\n{done.stdout}{done.stderr}")
    # Malformed: members that are missing, unknown or twice; a hash that is not of the body.
    text = canonical(receipt).decode()
    for bad in (text.replace('"body":{', '"body":{"more":1,'), text.replace('"schema":', '"critical":[],"schema":'),
                text.replace("training-receipt/1", "training-receipt/2"), text.replace('"batch_size":2', '"batch_size":2,"batch_size":2'),
                text.replace(receipt["receipt_hash"], "0" * 64), text[:-1], "", "[]", "{}", "null", text.replace('"interval":3', '"interval":3e300'),
                text.replace('"n_steps":8', '"n_steps":4294967297'), text.replace('"first_step":0', '"first_step":4294967290')):
        (folder / "lie.json").write_text(bad)
        verdict(verify(folder / "lie.json"), 2, "lie.json")
    for key in [*receipt["body"], "schema", "receipt_hash"]:
        if key == "trace_root":
            continue  # optional
        lie = copy.deepcopy(receipt)
        (lie["body"] if key in lie["body"] else lie).pop(key)
        verdict(verify(write(lie if key == "receipt_hash" else seal(lie))), 2, "lie.json")
    print(f"{n} lies")


def main():
    global args, folder, line, data
    args = harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        line = steps.line_step(folder / "line.onnx")
        data = steps.npz(folder / "line.npz", steps.line_data())
        receipt = train(folder / "r.json", "--steps", N_STEPS, "--receipt-interval", INTERVAL)
        independent(receipt)
        parts()
        versions()
        signatures()
        seeds_without_effect()
        validated()
        forged(train(folder / "traced.json", "--steps", N_STEPS, "--receipt-interval", INTERVAL, "--trace", folder / "r.trace"))
    return harness.finish()


sys.exit(main())
