#!/usr/bin/env python3
"""ree-run train on several ranks: states and losses are those of one process, whatever the number of ranks. Every operator
through which samples are followed; continued trainings, receipts; what is refused.

    tests/train/ranks.py --ree-run build/ree-run --train-share build/tests/train/train_share [--device vulkan|cuda]
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import mpi  # noqa: E402
import operators  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402
from steps import onnx  # noqa: E402

# As in tests/train/train.py: SHA-256 of 30 losses, and of all states by name.
RECORDED = {"pictures": "45a5512a98d2f39bd6e9c12cf6768721bc4bb861a87295c2b656b31f49998a3e",
            "words": "8bdc9815ba031a1945aab7fb0dd1304141151b165fd24d04aceb3dd5ba246fc0"}
N_STEPS = 30


def several(n, *arguments, code=0):
    done = mpi.run(args.ree_run, (n, ["train", *arguments]))
    check(done.returncode == code, lambda: f"{n} ranks, {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done


def alone(*arguments):
    done = harness.call(args.ree_run, "train", *arguments)
    check(done.returncode == 0, lambda: f"train {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done


def hash_of(done):
    return json.loads(done.stdout)["states_sha256"]


def recorded(names, *apps):
    """`apps`: number of ranks, and their own options."""
    for name in names:
        data = steps.npz(folder / f"{name}.npz", getattr(steps, name)(N_STEPS))
        end, losses = folder / f"{name}.safetensors", folder / f"{name}.csv"
        call = ["train", steps.DATA / f"{name}.onnx", "--data", data, "--in-order", "--seed", 7, "--steps", N_STEPS, "--checkpoint", end,
                "--losses", losses]
        done = mpi.run(args.ree_run, *[(n, [*call, *options]) for n, options in apps])
        check(done.returncode == 0, lambda: f"{name}, {apps}: exit code {done.returncode}\n{done.stderr}")
        numbers = [float(line.split(",")[1]) for line in losses.read_text().splitlines()[1:]]
        h = hashlib.sha256(struct.pack(f"<{N_STEPS}f", *numbers))
        states, _ = steps.read_safetensors(end)
        for key in sorted(states):
            h.update(key.encode() + states[key][1])
        check(h.hexdigest() == RECORDED[name], f"{name}, {apps}: SHA-256 {h.hexdigest()}, recorded {RECORDED[name]}")


def other_numbers():
    for name, numbers in (("pictures", (2, 4)), ("words", (2, 8))):
        call = (steps.DATA / f"{name}.onnx", "--data", folder / f"{name}.npz", "--steps", 4, "--json")
        expected = hash_of(alone(*call))
        for n in numbers:
            found = json.loads(several(n, *call, "--stats").stdout)
            check(found["states_sha256"] == expected, f"{name}: {n} ranks have other states")
            shares = [p["samples"] for p in found["processes"]]
            check(sum(shares) == 8 and max(shares) - min(shares) <= 1, f"{n} ranks have {shares} samples")


def all_operators(numbers):
    """If states differ, their names say in which chain of operators."""
    step, data = folder / "operators.onnx", steps.npz(folder / "operators.npz", operators.samples(14))
    used = operators.all_operators(step)
    missing = operators.rules() - used
    check(not missing, f"operators with a rule, but not in tests/train/operators.py: {sorted(missing)}")
    call = (step, "--data", data, "--steps", 2, "--json")
    end = folder / "operators.safetensors"
    expected = hash_of(alone(*call, "--checkpoint", end))
    states, _ = steps.read_safetensors(end)
    check(sum(any(raw) for _, raw in states.values()) > 0.95 * len(states), "states of zeros show nothing")
    for n in numbers:
        found = hash_of(several(n, *call, "--checkpoint", folder / "shared.safetensors"))
        if check(found == expected, f"{n} ranks have other states"):
            continue
        others, _ = steps.read_safetensors(folder / "shared.safetensors")
        wrong = [name for name in states if states[name] != others[name]]
        check(False, f"{n} ranks: {len(wrong)} states differ: {wrong[:20]}")


def continued():
    """The number of ranks may change, and a receipt does not show it."""
    step, data = steps.DATA / "words.onnx", folder / "words.npz"
    end, receipt = folder / "end.safetensors", folder / "receipt.json"
    expected = hash_of(alone(step, "--data", data, "--steps", 9, "--json"))
    several(3, step, "--data", data, "--steps", 4, "--checkpoint", end)
    found = hash_of(several(2, step, "--data", data, "--steps", 9, "--resume", end, "--json"))
    check(found == expected, "a training that continues with fewer ranks")
    written = {}
    for n in (1, 3):
        call = (step, "--data", data, "--steps", 5, "--receipt-path", receipt)
        if n == 1:
            alone(*call)
        else:
            several(n, *call)
        written[n] = json.loads(receipt.read_text())["body"]
    check(written[1] == written[3], "receipts of one process and of three")
    done = harness.call(args.ree_run, "verify", receipt, step, "--data", data)
    check(done.returncode == 0 and "verified (5 steps" in done.stdout, done.stdout)


def interrupted():
    """SIGTERM to the first rank ends all after a step, with a checkpoint."""
    step, data, end = steps.DATA / "words.onnx", folder / "words.npz", folder / "stopped.safetensors"
    command = mpi.command(args.ree_run, (2, ["train", step, "--data", data, "--steps", 1000000, "--checkpoint", end, "--checkpoint-every", 1]))
    with subprocess.Popen(command, env=mpi.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(600):
            if end.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        leader = mpi.ranks_of(process.pid).get(0)
        if check(leader is not None, "there is no rank 0"):
            os.kill(leader, signal.SIGTERM)
        else:
            process.kill()
        _, stderr = process.communicate(timeout=120)
    check(process.returncode == 143, f"exit code {process.returncode}: {stderr}")
    check(end.exists(), "a checkpoint")


def cannot_divide(step, words):
    done = harness.call(args.train_share, step, 2)
    check(done.returncode == 1 and words in done.stderr, f"{words}: exit code {done.returncode}: {done.stdout}{done.stderr}")


def refused():
    step, data = steps.DATA / "words.onnx", folder / "words.npz"
    call = ["train", step, "--data", data, "--steps", 2]
    other = steps.npz(folder / "other.npz", steps.words(N_STEPS - 1))
    cases = [((9, call), "a batch of 8 samples cannot be divided among 9 ranks"),
             ((1, call), (1, [*call, "--seed", 1]), "rank 1 has --seed 1, but rank 0 has 0"),
             ((1, call), (1, [*call, "--in-order"]), "rank 1 has --in-order on, but rank 0 has off"),
             ((1, call), (1, [*call, "--no-fold"]), "rank 1 has --no-fold (0 or 1) 1, but rank 0 has 0"),
             ((1, call), (1, [*call, "--operation-set", "default"]),
              "rank 1 has --operation-set default, but rank 0 has reproducible"),
             ((1, call), (1, ["train", step, "--data", other, "--steps", 2]), "rank 1 has the samples' SHA-256"),
             ((1, call), (1, ["train", steps.DATA / "pictures.onnx", "--data", folder / "pictures.npz", "--steps", 2]), "rank 1 has the step's"),
             ((2, [*call, "--trace", folder / "a.trace"]), "cannot be traced")]
    mixing = {"Softmax": lambda s: s.op("Softmax", "x", axis=0), "CumSum": lambda s: s.op("CumSum", "x", s.ints(0)),
              "ReduceMax": lambda s: s.op("ReduceMax", "x", [0], keepdims=1), "Slice": lambda s: s.op("Slice", "x", [1], [3], [0]),
              "Gather": lambda s: s.op("Gather", "x", [0, 1], axis=0), "Pad": lambda s: s.op("Pad", "x", [1, 0, 0, 0, 0, 0]),
              "Concat": lambda s: s.op("Concat", "x", "x", axis=0), "Reshape": lambda s: s.op("Reshape", "x", [4, operators.BATCH, 6]),
              "Add": lambda s: s.op("Add", s.op("Reshape", "x", [operators.BATCH, 1, 24]), s.op("Reshape", "x", [1, operators.BATCH, 24])),
              "Trilu": lambda s: s.op("Trilu", s.op("Transpose", "x", perm=[1, 0, 2])),
              "ReduceSum": lambda s: s.op("ReduceSum", s.op("Transpose", "x", perm=[1, 0, 2]), [0, 1], keepdims=0),
              "Conv": lambda s: s.op("Conv", s.op("Reshape", s.op("Transpose", "image", perm=[1, 0, 2, 3]), [2 * operators.BATCH, 1, 9, 8]),
                                     s.floats([1, 1, 2, 2], [1.0] * 4)),
              "Relu": lambda s: s.op("Relu", s.op("Reshape", s.op("Transpose", "x", perm=[1, 0, 2]), [4 * operators.BATCH, 6])),
              "Einsum": lambda s: s.op("Einsum", "x", s.floats([3], [1.0] * 3), equation="bti,j->tij"),
              "Det": lambda s: s.op("Det", s.op("Slice", "x", [0], [4], [2])),
              "BatchNormalization": lambda s: s.op("BatchNormalization", "image", *[s.floats([2], [1.0, 2.0])] * 4, training_mode=1)}
    for name, make in mixing.items():
        s = operators.Step()
        loss = make(s)
        s.state("any", s.floats([1], [1.0]), [1])
        path = s.write(folder / f"mixes {name}.onnx", operators.DATA, loss)
        cannot_divide(path, f"({name}): ")
    # What one process computes, and ranks would compute otherwise.
    s = operators.Step()
    half = [s.op("Cast", v, to=operators.FLOAT16) for v in (s.floats([4, 6], [0.125] * 24), "x")]
    made = s.op("ScatterND", half[0], s.op("Unsqueeze", "k", [2]), half[1], reduction="add")
    s.state("half", made, [4, 6], dtype=operators.FLOAT16)
    cannot_divide(s.write(folder / "half.onnx", operators.DATA, "x"), "(ScatterND): ree cannot sum this type")
    s = operators.Step()
    shape = s.op("Add", "0.shape", s.ints([operators.BATCH, 24]))
    s.state("shape", "other shape", [2], dtype=operators.INT64)
    s.nodes.insert(0, onnx.node("Add", [s.ints([1, 0]), "0.shape"], ["other shape"]))
    path = s.write(folder / "shape.onnx", operators.DATA, s.op("Softmax", s.op("Reshape", "x", shape), axis=1))
    cannot_divide(path, "a shape is not known")
    s = operators.Step(13)
    norm = onnx.node("BatchNormalization", ["image", *[s.floats([2], [1.0, 2.0])] * 4], ["normed", "mean", "var"])
    s.nodes.append(norm)
    s.state("mean", "mean", [2])
    cannot_divide(s.write(folder / "norm13.onnx", operators.DATA, "normed"), "(BatchNormalization): it mixes the samples")
    s = operators.Step(12)
    s.nodes.append(onnx.node("Softmax", ["x"], ["soft"], attributes={"axis": 1}))
    s.state("any", s.floats([1], [1.0]), [1])
    cannot_divide(s.write(folder / "opset12.onnx", operators.DATA, "soft"), "from opset 13 on")
    s = operators.Step()
    s.states["sample"] = "x.next"
    s.inputs.append(onnx.port("sample", onnx.FLOAT, [operators.BATCH, 4, 6]))
    s.constants.append(onnx.floats("sample", [operators.BATCH, 4, 6], [0.0] * operators.BATCH * 24))
    s.outputs.append(onnx.port("x.next", onnx.FLOAT, [operators.BATCH, 4, 6]))
    s.nodes.append(onnx.node("Neg", ["x"], ["x.next"]))
    path = s.write(folder / "keeps samples.onnx", operators.DATA, "x")
    cannot_divide(path, "the output 'x.next' consists of samples")
    # A failed run waits some seconds until all ranks have printed the reason: three at a time.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda case: mpi.run(args.ree_run, *case[:-1]), cases))
    for (*_, words), done in zip(cases, runs):
        check(done.returncode not in (0, None) and words in done.stderr, f"{words}: exit code {done.returncode}: {done.stderr}")
        check("states after" not in done.stdout, f"{words}: {done.stdout}")


def main():
    mpi.need_mpi(args.ree_run)
    if args.device:
        harness.need_device(args.ree_run, args.device)
        recorded(["words"], (1, []), (1, ["--device", args.device]))
        return
    recorded(["pictures", "words"], (3, []))
    other_numbers()
    all_operators([2, 3, 7])
    continued()
    interrupted()
    refused()


parser = harness.parser(__doc__)
parser.add_argument("--train-share")
parser.add_argument("--device")
args = parser.parse_args()
with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    main()
sys.exit(harness.finish())
