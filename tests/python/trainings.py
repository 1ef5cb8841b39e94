#!/usr/bin/env python3
"""ree.Training and ree.TrainingReceipt: the same losses, states, checkpoints and receipts as `ree-run train` and `ree-run
verify`, and errors as exceptions."""
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "harness"), str(HERE.parent / "train")]
import harness  # noqa: E402
import numpy  # noqa: E402
import ree  # noqa: E402
import steps  # noqa: E402
from harness import check, fails  # noqa: E402

STEPS = ROOT / "tests" / "data" / "training"
args = None


def run(*arguments, code=0):
    done = harness.call(args.ree_run, *arguments)
    check(done.returncode == code, lambda: f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def as_ree_run(folder, name, samples, n):
    """Losses, states, checkpoint and receipt are those of ree-run."""
    step, data = STEPS / f"{name}.onnx", folder / f"{name}.npz"
    steps.npz(data, samples(n))
    seeded = ["--seed", 2 ** 63 + 7]
    losses, checkpoint, receipt = folder / "losses.csv", folder / "run.safetensors", folder / "run.json"
    shown = json.loads(run("train", step, "--data", data, "--steps", 6, *seeded, "--losses", losses, "--checkpoint", checkpoint,
                           "--receipt-path", receipt, "--receipt-interval", 2, "--json").stdout)
    expected = [float(line.split(",")[1]) for line in losses.read_text().splitlines() if line[0].isdigit()]
    arrays = dict(numpy.load(data).items())
    device = ree.Device("cpu", n_threads=1)
    with ree.Training(step, arrays, device, seed=2 ** 63 + 7) as training:
        arrays[next(iter(arrays))][:] = 0  # the training has copies
        before = training.states
        training.record(2)
        made = [training.step() for _ in range(6)]
        check(made == expected, f"{name}: losses {made}, expected {expected}")
        check(training.n_steps == 6 and training.steps_per_epoch * training.batch_size <= len(arrays[next(iter(arrays))]), f"{name}: numbers")
        check(training.sha256 == shown["states_sha256"], f"{name}: {training.sha256}, expected {shown}")
        after = training.states
        check(list(before) == list(after) and any((before[k] != after[k]).any() for k in before), f"{name}: copies of states")
        training.save(folder / "mine.safetensors")
        check((folder / "mine.safetensors").read_bytes() == checkpoint.read_bytes(), f"{name}: checkpoints")
        mine = training.receipt()
    theirs = ree.TrainingReceipt(receipt)
    check(mine.sha256 == theirs.sha256 and mine.points == theirs.points, f"{name}: receipts {mine} {theirs}")
    check(mine.fields["seed"] == 2 ** 63 + 7 and mine.fields["interval"] == 2 and mine.fields["trace_root"] is None, f"{mine.fields}")
    check([point.step for point in mine.points] == [0, 2, 4, 6] and mine.points[-1].states_sha256 == shown["states_sha256"], f"{mine.points}")
    return step, data, mine


def continued(folder, step, data):
    with ree.Training(step, data, seed=5) as training:
        for _ in range(4):
            training.step()
        training.save(folder / "four.safetensors")
        rest = [training.step() for _ in range(3)]
        whole = training.sha256
        training.load(folder / "four.safetensors")
        check(training.n_steps == 4 and [training.step() for _ in range(3)] == rest and training.sha256 == whole, "loaded")
    with ree.Training(step, data, "cpu", seed=5, resume=folder / "four.safetensors", fuse=False) as training:
        check([training.step() for _ in range(3)] == rest and training.sha256 == whole, "resumed without fusion")
    with fails(ree.Error, "closed"):
        training.step()
    with fails(ree.InvalidError, "seed"):
        ree.Training(step, data, seed=6, resume=folder / "four.safetensors")


def receipts(folder, step, data, receipt):
    path, key = folder / "signed.json", folder / "trainer"
    public = ree.create_key(key)
    receipt.sign(key)
    receipt.save(path)
    check(receipt.fields["public_key"] == public and ree.TrainingReceipt(path.read_bytes()).sha256 == receipt.sha256, "signed")
    check(all(f.ok for f in ree.TrainingReceipt.validate(path, public_key=f"{key}.pub")), "valid")
    other = ree.create_key(folder / "other")
    check(not all(f.ok for f in ree.TrainingReceipt.validate(path, public_key=other)), "another key")
    run("verify", path, step, "--data", data, "--public-key", f"{key}.pub")
    found = receipt.verify(step, data, public_key=public)
    check(found.ok and (found.first, found.n_steps) == (1, 6) and found.seconds > 0, f"{found}")
    found = receipt.verify(ree.Model(step), dict(numpy.load(data).items()), n_steps=3)
    check(found.verdict == "verified in part" and not found.ok and found.n_steps == 2, f"up to a point of the receipt: {found}")
    lie = json.loads(path.read_text())
    lie["body"]["data"]["seed"] = "1"
    (folder / "lie.json").write_text(json.dumps(lie))
    with fails(ree.InvalidError, "hash"):
        ree.TrainingReceipt(folder / "lie.json")
    samples = dict(numpy.load(data).items())
    samples["image"] = samples["image"] + 1
    found = receipt.verify(step, samples)
    check(found.verdict == "differs" and any(c.outcome == "differs" for c in found.checks), f"other samples: {found}")


def errors(step, data):
    with fails(ree.InvalidError, "image"):
        ree.Training(step, {"kind": numpy.zeros(16, numpy.int64)})
    with fails(ree.NotFoundError, "none.npz"):
        ree.Training(step, "none.npz")
    with fails(ree.InvalidError, ""):
        ree.Training(ROOT / "tools" / "sample" / "digits.onnx", data)
    with fails(ValueError, "the seed is -1"):
        ree.Training(step, data, seed=-1)
    with ree.Training(step, data) as training:
        with fails(ree.InvalidError, ""):
            training.receipt()
        with fails(TypeError, "cannot be pickled"):
            training.__reduce__()


def main():
    global args
    args = harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        as_ree_run(folder, "words", steps.words, 12)
        step, data, receipt = as_ree_run(folder, "pictures", steps.pictures, 12)
        continued(folder, step, data)
        receipts(folder, step, data, receipt)
        errors(step, data)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
