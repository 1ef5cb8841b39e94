#!/usr/bin/env python3
"""ree-run train refuses malformed steps, datasets and checkpoints with messages that say what is wrong, writes nothing
then, and keeps what an interrupted or failed training has.

    tests/train/refused.py --ree-run build/ree-run
"""
import io
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402


@harness.helper
def refused(words, *arguments, code=1):
    """train must fail with this exit code and these words, and not write the checkpoint."""
    out = folder / "never.safetensors"
    done = harness.call(args.ree_run, "train", *arguments, *(["--checkpoint", out] if code == 1 else []))
    check(done.returncode == code, lambda: f"exit code {done.returncode}, expected {code}: {arguments}\n{done.stderr}")
    for word in [words] if isinstance(words, str) else words:
        check(word in done.stderr, lambda: f"'{word}' is not in: {done.stderr}")
    check(not out.exists() and len(done.stderr) < 2000, "nothing is written, and the message is short")


def metadata_refused():
    """Metadata that contradict the model, or are malformed."""
    good = steps.METADATA
    rows = [
        (None, "is not a training step"), ("", "ree.training"), ("[]", "not a JSON object"), ("{", "ree.training"),
        ({}, "version"), ({**good, "version": 2}, "its version is 2"), ({**good, "version": "1"}, "version"),
        ({**good, "data": []}, "'data' is not a list of inputs"), ({**good, "data": "x"}, "'data'"),
        ({**good, "data": ["x", "x"]}, "'x' is named twice"), ({**good, "data": ["x", "z"]}, "no input 'z'"),
        ({**good, "data": ["x", 3]}, "name of an input is missing"), ({**good, "data": ["x"]}, "input 'y' is neither"),
        ({**good, "data": ["x", "y", "w"]}, ""), ({**good, "states": {}}, "'states'"), ({**good, "states": []}, "'states'"),
        ({**good, "states": {"w": "w.next"}}, "output 'm.next' is neither the loss nor a state"),
        ({**good, "states": {"w": "w.next", "m": "w.next"}}, "'w.next' is named twice"),
        ({**good, "states": {"w": "w.next", "z": "m.next"}}, "no input 'z'"),
        ({**good, "states": {"w": "w.next", "m": 1}}, "name of an output is missing"),
        ({**good, "states": {"w": "w.next", "x": "m.next"}}, "'x' is named twice"),
        ({**good, "loss": "w.next"}, "'w.next' is named twice"), ({**good, "loss": "z"}, "no output 'z'"),
        ({**good, "loss": None}, "name of an output is missing"), ({**good, "random": True}, "no input 'random.seed'"),
        ({**good, "random": 1}, "random"), (json.dumps(good)[:-1] + ',"loss":"w.next"}', "ree.training"),
        ({**good, "x" * 70000: 1}, None), (json.dumps({**good, "deep": 0}).replace("0}", "[" * 100 + "]" * 100 + "}"), "ree.training"),
    ]
    for i, (metadata, words) in enumerate(rows):
        path = steps.line_step(folder / "bad.onnx", metadata)
        if words is None:  # unknown entries are ignored
            check(harness.call(args.ree_run, "train", path, "--data", data, "--steps", 1).returncode == 0, f"row {i}")
        else:
            refused(words, path, "--data", data, "--steps", 1)


def steps_refused():
    """Models whose inputs and outputs do not fit their metadata, or that compute other shapes than they declare."""
    port, f32 = onnx.port, onnx.FLOAT

    def outputs(loss=("loss", f32, []), w=("w.next", f32, [3])):
        return [port(*loss), port(*w), port("m.next", f32, [3])]

    good = steps.METADATA
    for words, metadata, options in (
        ("has no initial value", good, {"initializers": []}),
        ("output 'extra' is neither", good, {"nodes": [onnx.node("Neg", ["m"], ["extra"])],
                                             "outputs": [*outputs(), port("extra", f32, [3])]}),
        ("input 'more' is neither", good, {"inputs": [port("more", f32, [2])]}),
        ("input 'more' is neither", good, {"inputs": [port("more", f32, [2], onnx.OPTIONAL)]}),
        ("input 'more' is neither", good, {"inputs": [port("more", f32, [2], onnx.SEQUENCE, onnx.OPTIONAL)]}),
        ("have no elements", {**good, "data": ["x", "y", "e"]}, {"inputs": [port("e", f32, [2, 0])]}),
        ("fixed shape", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", f32, ["n"])]}),
        ("fixed shape", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", onnx.STRING, [2])]}),
        ("fixed shape", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", f32, None)]}),
        ("fixed shape", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", f32, [2], onnx.SEQUENCE)]}),
        ("no dimension of samples", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", f32, [])]}),
        ("no dimension of samples", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", f32, [0, 4])]}),
        ("has 3 samples, but other inputs of the batch 2", {**good, "data": ["x", "y", "z"]}, {"inputs": [port("z", f32, [3])]}),
        ("state 't' is not a tensor of numbers", {**good, "states": {**good["states"], "t": "t.next"}},
         {"inputs": [port("t", onnx.STRING, [1])], "nodes": [onnx.node("Identity", ["t"], ["t.next"])],
          "initializers": [onnx.floats("w", [3], [1] * 3), onnx.floats("m", [3], [0] * 3), onnx.strings("t", [1], ["a"])],
          "outputs": [*outputs(), port("t.next", onnx.STRING, [1])]}),
        ("state 'w' is float32, but its next value int64", {**good, "states": {"w": "i.next", "m": "m.next"}},
         {"nodes": [onnx.node("Cast", ["w"], ["i.next"], attributes={"to": 7})],
          "outputs": [port("loss", f32, []), port("i.next", onnx.INT64, [3]), port("m.next", f32, [3])]}),
        # The declared shape is right, the computed one is not.
        ("the loss 'long' is float32[2]", {**good, "loss": "long"},
         {"nodes": [onnx.node("Identity", ["d"], ["long"])], "outputs": outputs(loss=("long", f32, []))}),
        ("the loss 'long' is float32[0]", {**good, "loss": "long"},
         {"nodes": [onnx.node("Compress", ["d", "none"], ["long"])],
          "initializers": [onnx.floats("w", [3], [1] * 3), onnx.floats("m", [3], [0] * 3),
                           onnx.tensor("none", onnx.BOOL, [2], b"\0\0")], "outputs": outputs(loss=("long", f32, []))}),
        ("output 'wide' is float32[1,3], expected float32[3]", {**good, "states": {"w": "wide", "m": "m.next"}},
         {"nodes": [onnx.node("Unsqueeze", ["w", "axis"], ["wide"])],
          "initializers": [onnx.floats("w", [3], [1] * 3), onnx.floats("m", [3], [0] * 3),
                           onnx.tensor("axis", onnx.INT64, [1], bytes(8))], "outputs": outputs(w=("wide", f32, [3]))}),
        ("output 'short' is float32[1], expected float32[3]", {**good, "states": {"w": "short", "m": "m.next"}},
         {"nodes": [onnx.node("Compress", ["w", "one"], ["short"])],
          "initializers": [onnx.floats("w", [3], [1] * 3), onnx.floats("m", [3], [0] * 3),
                           onnx.tensor("one", onnx.BOOL, [3], b"\1\0\0")], "outputs": outputs(w=("short", f32, [3]))}),
        ("the loss 'whole' is not a float32 or float64", {**good, "loss": "whole"},
         {"nodes": [onnx.node("Cast", ["loss"], ["whole"], attributes={"to": 7})],
          "outputs": [port("whole", onnx.INT64, []), port("w.next", f32, [3]), port("m.next", f32, [3])]}),
    ):
        path = steps.line_step(folder / "bad.onnx", metadata, **options)
        done = harness.call(args.ree_run, "train", path, "--data", with_z, "--steps", 2)
        check(done.returncode == 1 and words in done.stderr, f"'{words}': exit code {done.returncode}: {done.stderr}")
    # Steps that compute what they declare: a loss of one element, and one in float64.
    path = steps.line_step(folder / "one.onnx", {**good, "loss": "one"}, nodes=[onnx.node("ReduceMean", ["q"], ["one"])],
                           outputs=outputs(loss=("one", f32, [1])))
    check(harness.call(args.ree_run, "train", path, "--data", data, "--steps", 1).returncode == 0, "a loss of shape [1]")


def npz_of(entries, compression=zipfile.ZIP_STORED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, contents in entries:
            archive.writestr(name, contents)
    return made.getvalue()


def datasets_refused():
    step, tensors = folder / "line.onnx", steps.line_data()
    x, y = tensors["x"], tensors["y"]
    big = steps.Tensor("<f4", (1 << 16,), [0] * (1 << 16))

    def data_of(name, contents):
        path = folder / name
        path.write_bytes(contents)
        return path

    def wrong(words, contents, name="bad.npz"):
        path = data_of(name, contents)
        refused([words, name], step, "--data", path, "--steps", 1)

    refused(["none.npz", "No such file"], step, "--data", folder / "none.npz", "--steps", 1)
    (folder / "dir.npz").mkdir()
    refused("neither with .npz nor with .safetensors", step, "--data", step, "--steps", 1)
    wrong("no tensor 'y'", npz_of([("x.npy", x.npy())]))
    wrong("two tensors are called 'x'", npz_of([("x.npy", x.npy()), ("x", x.npy()), ("y.npy", y.npy())]))
    wrong("'x' has 7 samples, but 'y' 6" if False else "samples", npz_of([("x.npy", x.npy()), ("y.npy", y.rows(range(6)).npy())]))
    wrong("tensor 'x' is float64[7,3], expected float32[N,3]", npz_of([("x.npy", steps.Tensor("<f8", x.shape, x.values).npy()), ("y.npy", y.npy())]))
    wrong("tensor 'x' is float32[21]", npz_of([("x.npy", steps.Tensor("<f4", (21,), x.values).npy()), ("y.npy", y.npy())]))
    wrong("tensor 'y' is float32[]", npz_of([("x.npy", x.npy()), ("y.npy", steps.Tensor("<f4", (), [1]).npy())]))
    wrong("fewer than a batch of 2", npz_of([("x.npy", x.rows([0]).npy()), ("y.npy", y.rows([0]).npy())]))
    wrong("fewer than a batch of 2", npz_of([("x.npy", x.rows([]).npy()), ("y.npy", y.rows([]).npy())]))
    wrong("x.npy", npz_of([("x.npy", x.npy()[:-1]), ("y.npy", y.npy())]))
    wrong("x.npy", npz_of([("x.npy", b"no array"), ("y.npy", y.npy())]))
    wrong("", b"")
    wrong("", b"PK\x05\x06" + bytes(18))
    wrong("", b"not an archive at all" * 10)
    text = "{'descr': '<U1', 'fortran_order': False, 'shape': (7,), }"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    words = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + "abcdefg".encode("utf-32-le")
    # Names of classes are left out, and are missing only where the step reads them.
    named = data_of("named.npz", npz_of([("x.npy", x.npy()), ("y.npy", y.npy()), ("t.npy", words)]))
    check(harness.call(args.ree_run, "train", step, "--data", named, "--steps", 1).returncode == 0, "an array of strings")
    wrong("no tensor 'y'", npz_of([("x.npy", x.npy()), ("y.npy", words)]))
    refused([str(folder), "is a folder"], step, "--data", folder / "dir.npz", "--steps", 1)
    # Archives that lie: a checksum, a size that the archive cannot have, entries that share bytes.
    good = npz_of([("x.npy", x.npy()), ("y.npy", y.npy())])
    at = good.index(x.raw())
    wrong("x.npy", good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
    wrong("", good[:-30])
    central = good.index(b"PK\x01\x02")
    for size in (1 << 31, 0xFFFFFFF0, len(good) * 1032):
        wrong("", good[:central + 24] + struct.pack("<I", size) + good[central + 28:])
    packed = npz_of([("x.npy", x.npy()), ("y.npy", y.npy()), ("big.npy", big.npy())], zipfile.ZIP_DEFLATED)
    check(harness.call(args.ree_run, "train", step, "--data", data_of("packed.npz", packed), "--steps", 1).returncode == 0, "packed")
    wrong("", overlapping(big.npy(), 4000))
    wrong("compression", npz_of([("x.npy", x.npy()), ("y.npy", y.npy())], zipfile.ZIP_BZIP2))
    draw = random.Random(23)
    for source, name in ((packed, "torn.npz"), ((folder / "line.safetensors").read_bytes(), "torn.safetensors")):
        for _ in range(150):
            torn = bytearray(source)
            for _ in range(draw.randint(1, 3)):
                torn[draw.randrange(len(torn))] = draw.randrange(256)
            torn = torn[:draw.randrange(len(torn))] if draw.random() < 0.3 else torn
            done = harness.call(args.ree_run, "train", step, "--data", data_of(name, bytes(torn)), "--steps", 1)
            check(done.returncode in (0, 1) and (done.returncode == 0 or done.stderr.startswith("ree-run: ")),
                  f"{name}: exit code {done.returncode}: {done.stderr[:300]}")
    # Values that a type does not have, in a file that is well formed.
    flags = steps.line_step(folder / "flags.onnx", {**steps.METADATA, "data": ["x", "y", "b"]}, inputs=[onnx.port("b", onnx.BOOL, [2])])
    made = steps.safetensors(folder / "flags.safetensors", {**tensors, "b": steps.Tensor("|b1", (7,), [True] * 7)})
    raw = made.read_bytes()
    made.write_bytes(raw[:-7] + b"\2" * 7)
    refused("'b'", flags, "--data", made, "--steps", 1)


def overlapping(contents, n):
    """An archive with n entries for the same packed bytes: a small file that would need much memory."""
    one = npz_of([("0.npy", contents)], zipfile.ZIP_DEFLATED)
    central, end = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    entry = one[central:end]
    entries = b"".join(entry.replace(b"0.npy", b"%05d" % i) for i in range(n))
    return one[:central] + entries + one[end:end + 8] + struct.pack("<HHII", n, n, len(entries), central) + b"\0\0"


def checkpoints_refused():
    step = folder / "line.onnx"
    start = folder / "start.safetensors"
    harness.run(args.ree_run, "train", step, "--data", data, "--steps", 3, "--seed", 4, "--checkpoint", start)
    again = ["--data", data, "--steps", 5, "--seed", 4, "--resume"]
    states, metadata = steps.read_safetensors(start)
    about = json.loads(metadata["ree.training"])
    tensors = {name: steps.Tensor("<f4", shape, struct.unpack("<3f", raw)) for name, (shape, raw) in states.items()}
    bad = folder / "bad.safetensors"

    def wrong(words, made=None, **changes):
        entry = {k: v for k, v in {**about, **changes}.items() if v is not None}
        steps.safetensors(bad, made or tensors, {"ree.training": json.dumps(entry)})
        refused([words, "bad.safetensors"], step, *again, bad)

    refused("another seed", step, "--data", data, "--steps", 5, "--seed", 5, "--resume", start)
    refused("another order", step, "--data", data, "--steps", 5, "--seed", 4, "--in-order", "--resume", start)
    refused("other samples", step, "--data", steps.npz(folder / "d8.npz", steps.line_data(8)), "--steps", 5, "--seed", 4, "--resume", start)
    refused("other initial states", steps.line_step(folder / "other.onnx", w=(1, 2, 3)), *again, start)
    refused("another step", steps.line_step(folder / "other.onnx", nodes=[onnx.node("Neg", ["w"], ["unused"])]), *again, start)
    swapped = {**steps.METADATA, "states": {"w": "m.next", "m": "w.next"}}
    refused("other roles", steps.line_step(folder / "other.onnx", swapped), *again, start)
    refused("not a checkpoint", step, *again, steps.safetensors(bad, tensors))
    refused("No such file", step, *again, folder / "none.safetensors")
    for key in about:  # every entry is required and checked
        wrong("", **{key: None})
        wrong("", **{key: [] if isinstance(about[key], str) else -1})
    for key, value in (("version", 2), ("n_steps", 1 << 33), ("n_steps", 2.5), ("n_steps", "3"), ("seed", "04"), ("seed", "5"), ("order", "in order"),
                       ("batch_size", 3), ("n_samples", 8), ("numerics", "RepOps/2"), ("graph_sha256", "0" * 64), ("extra", 1)):
        wrong("", **{key: value})
    torn = start.read_bytes()
    bad.write_bytes(torn[:-1] + bytes([torn[-1] ^ 1]))
    refused("its states are damaged", step, *again, bad)
    # No step made, but other states: not the beginning of a training of this step.
    other = {name: steps.Tensor("<f4", (3,), [9, 9, 9]) for name in ("w", "m")}
    root = steps.states_root({name: other[name].digest() for name in ("w", "m")}).hex()
    wrong("state 'w' is not the initial one", other, n_steps=0, states_sha256=root)
    wrong("state 'w' is missing", {"m": tensors["m"]})
    wrong("3 tensors, but the step has 2 states", {**tensors, "z": tensors["m"]})
    wrong("another type or shape", {**tensors, "w": steps.Tensor("<f8", (3,), [0] * 3)})
    wrong("another type or shape", {**tensors, "w": steps.Tensor("<f4", (3, 1), [0] * 3)})
    bad.write_bytes(start.read_bytes()[:-1])
    refused("bad.safetensors", step, *again, bad)


def usage_refused():
    step = folder / "line.onnx"
    for words, arguments in (
        ("no training step given", ["--data", data, "--steps", 1]), ("no samples given", [step, "--steps", 1]),
        ("either --steps or --epochs", [step, "--data", data]), ("either --steps or --epochs", [step, "--data", data, "--steps", 1, "--epochs", 1]),
        ("--checkpoint-every requires", [step, "--data", data, "--steps", 1, "--checkpoint-every", 2]),
        ("--sign requires", [step, "--data", data, "--steps", 1, "--sign", "key.pem"]),
        ("--receipt-interval requires", [step, "--data", data, "--steps", 1, "--receipt-interval", 2]),
        ("--steps", [step, "--data", data, "--steps", 0]), ("--seed", [step, "--data", data, "--steps", 1, "--seed", -1]),
        ("more than 2^32 - 1 steps", [step, "--data", data, "--epochs", (1 << 32) - 1]),
        ("choose a larger --receipt-interval", [step, "--data", data, "--steps", 262144, "--receipt-path", folder / "r.json"]),
    ):
        refused(words, *arguments, code=2)
    # No result replaces an input or another result, under another name either.
    link = folder / "link.npz"
    os.link(data, link)
    before = data.read_bytes()
    for option in ("--checkpoint", "--losses", "--curve", "--receipt-path"):
        for path in (data, link, folder / "." / "line.npz", step):
            done = harness.call(args.ree_run, "train", step, "--data", data, "--steps", 1, option, path)
            check(done.returncode == 1 and "is also another file of this command" in done.stderr, f"{option}: {done.stderr}")
        done = harness.call(args.ree_run, "train", step, "--data", data, "--steps", 1, option, folder / "nowhere" / "file")
        check(done.returncode == 1 and "nowhere" in done.stderr, f"{option}: {done.stderr}")
    done = harness.call(args.ree_run, "train", step, "--data", data, "--steps", 1, "--losses", folder / "one", "--curve", folder / "one")
    check(done.returncode == 1 and not (folder / "one").exists(), done.stderr)
    done = harness.call(args.ree_run, "train", step, "--data", data, "--steps", 1, "--losses", folder / "one", "--curve", f"{folder}/./one")
    check(done.returncode == 1 and not (folder / "one").exists(), done.stderr)
    # verify --trace replaces no file that it reads.
    receipt = folder / "kept.json"
    harness.run(args.ree_run, "train", step, "--data", data, "--steps", 1, "--receipt-path", receipt, "--trace", folder / "kept.trace")
    for path in (receipt, data, link, step):
        kept = path.read_bytes()
        done = harness.call(args.ree_run, "verify", receipt, step, "--data", data, "--trace", path)
        check(done.returncode == 2 and "is also a file to be read" in done.stderr and path.read_bytes() == kept, done.stderr)
    # A state that no checkpoint can hold is refused before the first step.
    small = steps.line_step(folder / "small.onnx", {**steps.METADATA, "states": {**steps.METADATA["states"], "k": "k.next"}},
                            inputs=[onnx.port("k", onnx.INT4, [1])], nodes=[onnx.node("Identity", ["k"], ["k.next"])],
                            initializers=[onnx.floats("w", [3], [1] * 3), onnx.floats("m", [3], [0] * 3), onnx.tensor("k", onnx.INT4, [1], b"\1")],
                            outputs=[onnx.port("loss", onnx.FLOAT, []), onnx.port("w.next", onnx.FLOAT, [3]), onnx.port("m.next", onnx.FLOAT, [3]),
                                     onnx.port("k.next", onnx.INT4, [1])], opset=21)
    done = harness.call(args.ree_run, "train", small, "--data", data, "--steps", 2, "--checkpoint", folder / "small.safetensors")
    check(done.returncode == 1 and "safetensors files lack" in done.stderr and "step 1" not in done.stdout, done.stdout + done.stderr)
    check(harness.call(args.ree_run, "train", small, "--data", data, "--steps", 2).returncode == 0, "without a checkpoint it trains")
    check(data.read_bytes() == before, "the samples are as they were")
    # A step that fails in the middle: what was made before is saved.
    tensors = {**steps.line_data(8), "i": steps.Tensor("<i8", (8,), [0, 1, 2, 0, 1, 2, 9, 0])}
    late = steps.line_step(folder / "late.onnx", {**steps.METADATA, "data": ["x", "y", "i"], "loss": "late"},
                           inputs=[onnx.port("i", onnx.INT64, [2])],
                           nodes=[onnx.node("Gather", ["w", "i"], ["picked"]), onnx.node("ReduceSum", ["picked"], ["none"], attributes={"keepdims": 0}),
                                  onnx.node("Add", ["none", "loss"], ["late"])],
                           outputs=[onnx.port("late", onnx.FLOAT, []), onnx.port("w.next", onnx.FLOAT, [3]), onnx.port("m.next", onnx.FLOAT, [3])])
    saved, losses = folder / "late.safetensors", folder / "late.csv"
    done = harness.call(args.ree_run, "train", late, "--data", steps.npz(folder / "late.npz", tensors), "--in-order", "--steps", 4,
                        "--checkpoint", saved, "--losses", losses)
    check(done.returncode == 1 and "step 4" in done.stderr, done.stderr)
    check(json.loads(steps.read_safetensors(saved)[1]["ree.training"])["n_steps"] == 3 and len(losses.read_text().splitlines()) == 4, "three steps are kept")


def main():
    global args, folder, data, with_z
    args = harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        steps.line_step(folder / "line.onnx")
        data = steps.npz(folder / "line.npz", steps.line_data())
        steps.safetensors(folder / "line.safetensors", steps.line_data())
        with_z = steps.npz(folder / "z.npz", {**steps.line_data(), "z": steps.Tensor("<f4", (7,), [0] * 7),
                                              "e": steps.Tensor("<f4", (7, 0), [])})
        metadata_refused()
        steps_refused()
        datasets_refused()
        checkpoints_refused()
        usage_refused()
    return harness.finish()


sys.exit(main())
