#!/usr/bin/env python3
"""ree-run train: the steps that ree.export_training wrote have the recorded states on every device; order of samples,
states and losses are those that single runs of the step give; interruption and resumption; result files.

    tests/train/train.py --ree-run build/ree-run [--device vulkan|cuda]
"""
import hashlib
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "models"))
import harness  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402

# As in tests/python/training_steps.py: SHA-256 of 30 losses, and of all states by name.
RECORDED = {"pictures": "45a5512a98d2f39bd6e9c12cf6768721bc4bb861a87295c2b656b31f49998a3e",
            "words": "8bdc9815ba031a1945aab7fb0dd1304141151b165fd24d04aceb3dd5ba246fc0"}
N_STEPS = 30


def train(*arguments, code=0):
    done = harness.call(args.ree_run, "train", *arguments)
    check(done.returncode == code, lambda: f"train {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done


def losses_of(path):
    lines = path.read_text().splitlines()
    check(lines[0] == "step,loss", lines[0])
    return [(int(line.split(",")[0]), float(line.split(",")[1])) for line in lines[1:]]


def recorded(device):
    """Both fixtures, with the batches of the other test."""
    for name, make in (("pictures", steps.pictures), ("words", steps.words)):
        data = steps.npz(folder / f"{name}.npz", make(N_STEPS))
        end, losses = folder / f"{name}.safetensors", folder / f"{name}.csv"
        train(steps.DATA / f"{name}.onnx", "--data", data, "--in-order", "--seed", 7, "--steps", N_STEPS, "--checkpoint", end,
              "--losses", losses, *device)
        h = hashlib.sha256(struct.pack(f"<{N_STEPS}f", *(loss for _, loss in losses_of(losses))))
        states, _ = steps.read_safetensors(end)
        for key in sorted(states):
            h.update(key.encode() + states[key][1])
        check(h.hexdigest() == RECORDED[name], f"{name} {device}: SHA-256 {h.hexdigest()}, recorded {RECORDED[name]}")


def shuffled():
    """A step that is run by hand, with the batches that NUMERICS.md gives."""
    import npy
    n, seed, n_steps = 7, 5, 8
    step, tensors = steps.line_step(folder / "line.onnx"), steps.line_data(n)
    data = steps.npz(folder / "line.npz", tensors)
    end, losses = folder / "line.safetensors", folder / "line.csv"
    done = train(step, "--data", data, "--seed", seed, "--steps", n_steps, "--checkpoint", end, "--losses", losses)
    states, own = {}, []
    for t in range(n_steps):
        samples = steps.batch_of(t, n, steps.BATCH, seed)
        given = {name: tensor.rows(samples) for name, tensor in tensors.items()} | states
        options = []
        for name, tensor in given.items():
            (folder / f"{name}.npy").write_bytes(tensor.npy())
            options += ["--input", f"{name}={folder / name}.npy"]
        harness.run(args.ree_run, step, *options, "--output-dir", folder / "next")
        states = {name: steps.Tensor("<f4", (steps.WIDTH,), npy.load(folder / "next" / f"{name}.next.npy")[2])
                  for name in ("w", "m")}
        own.append(npy.load(folder / "next" / "loss.npy")[2][0])
    found, _ = steps.read_safetensors(end)
    check(losses_of(losses) == [(t + 1, loss) for t, loss in enumerate(own)], "losses are those of single runs")
    check({k: v[1] for k, v in found.items()} == {k: v.raw() for k, v in states.items()}, "states are those of single runs")
    root = steps.states_root({name: states[name].digest() for name in ("w", "m")}).hex()
    check(f"states after step {n_steps}  {root}\n" in done.stdout, done.stdout)
    numerics = (HERE.parents[1] / "src" / "repops" / "NUMERICS.md").read_text()
    for epoch in range(2):
        check(f"{', '.join(map(str, steps.order(7, 5, epoch)))} in epoch {epoch}" in numerics, f"the example of epoch {epoch}")
    check(sorted(steps.order(100, 1, 3)) == list(range(100)), "a permutation")
    # An epoch of three steps leaves one of seven samples out; the epochs differ.
    seen = [steps.batch_of(t, n, 2, seed) for t in range(6)]
    check(len({i for batch in seen[:3] for i in batch}) == 6 and seen[:3] != seen[3:], seen)
    by_epochs = train(step, "--data", data, "--seed", seed, "--epochs", 2, "--json").stdout
    by_steps = train(step, "--data", data, "--seed", seed, "--steps", 6, "--json").stdout
    check(json.loads(by_epochs) == json.loads(by_steps), "two epochs are six steps")
    other = train(step, "--data", data, "--seed", seed + 1, "--steps", 6, "--json").stdout
    check(json.loads(other)["states_sha256"] != json.loads(by_steps)["states_sha256"], "another seed")


def files():
    """Kinds of datasets; pictures and reports."""
    step, tensors = folder / "line.onnx", steps.line_data()
    extra = {**tensors, "not used": steps.Tensor("|b1", (2,), [True, False])}
    hashes = set()
    for data in (steps.npz(folder / "a.npz", tensors), steps.npz(folder / "b.npz", extra, zipfile.ZIP_DEFLATED),
                 steps.safetensors(folder / "c.safetensors", extra)):
        hashes.add(json.loads(train(step, "--data", data, "--steps", 5, "--json").stdout)["states_sha256"])
    check(len(hashes) == 1, f"the file's kind changes the result: {hashes}")
    for n in (1, 2, 700):
        train(step, "--data", folder / "a.npz", "--steps", n, "--curve", folder / "curve.svg", "--stats")
        picture = xml.dom.minidom.parse(str(folder / "curve.svg")).documentElement
        curve = [p for p in picture.getElementsByTagName("path") if p.getAttribute("stroke") == "#1f5fbf"]
        check(len(curve) == 1 and curve[0].getAttribute("d").startswith("M"), f"{n} steps: {curve}")
    # Losses that overflow: the curve has gaps, JSON has no number for them.
    wild = steps.npz(folder / "wild.npz", {name: steps.Tensor("<f4", t.shape, [v * 3e38 / 64 for v in t.values])
                                           for name, t in tensors.items()})
    found = train(step, "--data", wild, "--steps", 4, "--curve", folder / "wild.svg", "--losses", folder / "wild.csv", "--json")
    xml.dom.minidom.parse(str(folder / "wild.svg"))
    check("nan" not in (folder / "wild.svg").read_text() and "inf" not in (folder / "wild.svg").read_text(), "numbers in a picture")
    check("loss" not in json.loads(found.stdout), found.stdout)
    lines = train(step, "--data", folder / "a.npz", "--steps", 1000).stdout.splitlines()
    check(len(lines) == 12 and lines[0].startswith("step 1  loss ") and lines[-2].startswith("step 1000  loss "), lines)


def resumed():
    """A training in parts gives the files of one without interruption."""
    step, data = folder / "line.onnx", folder / "a.npz"
    common = [step, "--data", data, "--seed", 3]
    whole, part, rest = (folder / f"{name}.safetensors" for name in ("whole", "part", "rest"))
    train(*common, "--steps", 9, "--checkpoint", whole)
    train(*common, "--steps", 4, "--checkpoint", part)
    train(*common, "--steps", 9, "--resume", part, "--checkpoint", rest)
    check(rest.read_bytes() == whole.read_bytes(), "resumed: the same checkpoint")
    train(*common, "--steps", 9, "--resume", part)
    check(part.read_bytes() == whole.read_bytes(), "resumed into its own file")
    done = train(*common, "--steps", 9, "--resume", part, code=2)
    check("already has 9 steps" in done.stderr, done.stderr)
    # The pictures: dropout and batch norm go on where they were.
    common = [steps.DATA / "pictures.onnx", "--data", folder / "pictures.npz", "--seed", 1 << 40 | 9]
    train(*common, "--steps", 7, "--checkpoint", whole)
    train(*common, "--steps", 3, "--checkpoint", part)
    train(*common, "--steps", 7, "--resume", part)
    check(part.read_bytes() == whole.read_bytes(), "pictures: resumed")
    # Ctrl-C: the checkpoint has the steps made so far.
    cut = folder / "cut.safetensors"
    running = subprocess.Popen([args.ree_run, "train", *map(str, common), "--steps", "1000000", "--checkpoint", cut,
                                "--checkpoint-every", "5"], stdout=subprocess.PIPE, text=True)
    while not cut.exists() and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    printed, _ = running.communicate()
    n = json.loads(steps.read_safetensors(cut)[1]["ree.training"])["n_steps"]
    check(running.returncode == 130 and n >= 5 and f"states after step {n}  " in printed, f"{running.returncode}, {n}: {printed}")
    train(*common, "--steps", n + 2, "--resume", cut)
    train(*common, "--steps", n + 2, "--checkpoint", whole)
    check(cut.read_bytes() == whole.read_bytes(), "resumed after Ctrl-C")


def main():
    global args, folder
    parser = harness.parser(__doc__)
    parser.add_argument("--device")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if args.device:
            harness.need_device(args.ree_run, args.device)
            recorded(["--device", args.device])
            return harness.finish()
        for options in (["--threads", "1"], ["--threads", "2"], ["--cpu-isa", "portable"], ["--no-fuse", "--no-fold"]):
            recorded(options)
        shuffled()
        files()
        resumed()
    return harness.finish()


sys.exit(main())
