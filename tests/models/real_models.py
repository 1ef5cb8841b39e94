#!/usr/bin/env python3
"""Runs whole models through ree-run. Each model must give one SHA-256, whatever the device, the
instruction set, the number of threads, fusion and folding. The recorded values must not change, and
a GPT must agree with its reference.

    real_models.py --ree-run build/ree-run [--models FOLDER] [--device vulkan]
    real_models.py --ree-run build/ree-run --record FOLDER

Without --device the CPU's variants are compared; with it, that device is compared with the CPU. The
models in FOLDER are optional; the sample model always exists. A device other than the CPU runs only
the smallest models, unless REE_TEST_SAMPLE is 1/1: drivers need seconds to compile each pipeline, and
SwiftShader emulates every fma, so the larger models take many minutes on it.

--record is for a machine without Python (tools/gpu-check.sh). It runs the models of FOLDER/sample
and FOLDER/models on the CPU and writes FOLDER/expected.txt: one line per run with SHA-256, name and
arguments of ree-run, separated by tabs, with paths relative to FOLDER. It writes the runs' input
files to FOLDER/inputs.
"""

import argparse
import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import npy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402
SAMPLE = HERE.parent.parent / "tools" / "sample"

# By folder and file: sizes of symbolic dimensions for which 1 is too small.
DIMS = {
    "yunet/yunet_s_dynamic.onnx": ["height=160", "width=96"],
    "tiny-random-gpt2-fp32/past.onnx": ["batch_size=2", "seq_len=3", "past_seq_len=2",
                                        "total_seq_len=5"],
    "tiny-qwen35-cuda/decoder.onnx": ["batch_size=2", "seq_len=3"],
    "silero-vad/silero_vad_16k_op15.onnx": ["sequence=576"],
    "silero-vad/silero_vad_op18_ifless.onnx": ["sequence=576"],
    "swift-f0/model.onnx": ["audio_length=4000"],
}
# Inputs with fixed values: type, shape and elements. The decoder attends to all tokens, sound has a
# sample rate, and only few extensions are installed (for many, the recommender returns 0, whatever
# they are).
INPUTS = {
    "tiny-qwen35-cuda/decoder.onnx": {"attention_mask": ("<i8", [2, 5], [1] * 10)} | {
        f"past_key_values.{layer}.{part}": ("<f2", [2, 2, 2, 16],
                                            [(i * 37 % 64 - 32) / 32 for i in range(128)])
        for layer in range(2) for part in ("key", "value")
    },
    "silero-vad/silero_vad_16k_op15.onnx": {"sr": ("<i8", [], [16000])},
    "silero-vad/silero_vad_op18_ifless.onnx": {"sr": ("<i8", [], [16000])},
    "vscode-ext-rec/model.onnx": {
        "inputs": ("<i4", [16, 3450], [i * 2654435761 % 2**32 < 2**22 for i in range(16 * 3450)])
    },
}


class Runner:
    def __init__(self, path, cwd=None):
        self.path, self.cwd = path, cwd

    def call(self, *args):
        return subprocess.run([self.path, *map(str, args)], capture_output=True, text=True,
                              cwd=self.cwd)

    def json(self, *args):
        done = self.call(*args, "--json")
        if done.returncode != 0:
            return None, done.stderr.strip()
        return json.loads(done.stdout), None

    def sha256(self, *args):
        result, error = self.json(*args)
        return result["sha256"] if result else f"({error})"

    def instruction_sets(self):
        devices, error = self.json("devices", "cpu")
        assert devices, error
        facts = devices["devices"][0]["facts"]
        return next(f["value"] for f in facts if f["name"] == "instruction sets").split(", ")


def variants(runner, device, small):
    """Returns the configurations that must give the same bits, as option lists."""
    if small:
        return [["--device", device]]
    if device:
        return [["--device", device], ["--device", device, "--no-fuse"],
                ["--device", device, "--no-fold"]]
    ways = [["--threads", "1"], ["--threads", "2"], ["--threads", "3"], ["--no-fuse"],
            ["--no-fold"], ["--no-fuse", "--no-fold", "--threads", "1"]]
    for isa in runner.instruction_sets():
        ways += [["--cpu-isa", isa], ["--cpu-isa", isa, "--no-fuse", "--threads", "1"]]
    return ways


def test_one_hash(runner, name, run, ways, recorded):
    """Checks that each configuration of `run` gives the CPU's hash, and any recorded one."""
    want = runner.sha256(*run)
    check(len(want) == 64, f"{name}: {want}")
    for way in ways:
        got = runner.sha256(*run, *way)
        check(got == want, f"{name} {' '.join(way)}: {got}, expected {want}")
    if name in recorded:
        check(want == recorded[name], f"{name}: {want}, recorded {recorded[name]}")
    print(f"{name}: {want} in {len(ways) + 1} ways", flush=True)


def test_sample(runner, ways, recorded, small):
    model = SAMPLE / "digits.onnx"
    images = sorted(SAMPLE.glob("*.npy"))
    check(len(images) >= 3, "sample images are there")
    for image in images[:1] if small else images:
        run = [model, "--input", f"image={image}"]
        result, error = runner.json(*run, "--top", "1")
        label = result and result["outputs"][0]["top"][0][0]["label"]
        check(label == image.stem, f"{image.name} is read as {label} ({error})")
        test_one_hash(runner, f"digits.onnx {image.stem}", run, ways, recorded)


def model_runs(runner, folder, work, recorded, small=False):
    """Returns name and arguments for each model in `folder` whose operators are all supported, with
    pseudo-random inputs; inputs that are files are written to `work`. Checks that the operators of
    every recorded model are supported."""
    for path in sorted(folder.glob("mnist-8/*.onnx" if small else "**/*.onnx")):
        name = str(path.relative_to(folder))
        about, error = runner.json("inspect", path)
        if not check(about, f"{name}: {error}"):
            continue
        if not about["runnable"]:
            missing = [o["type"] for o in about["operators"] if not o["supported"]]
            print(f"{name}: not run, lacks {', '.join(missing)}")
            check(name not in recorded, f"{name} has a recorded hash, but is not run")
            continue
        key = f"{path.parent.name}/{path.name}"
        run = [path, "--random-inputs", "1"]
        run += [arg for dim in DIMS.get(key, []) for arg in ("--dim", dim)]
        for port, tensor in INPUTS.get(key, {}).items():
            file = work / name / f"{port}.npy"
            file.parent.mkdir(parents=True, exist_ok=True)
            npy.save(file, *tensor)
            run += ["--input", f"{port}={file}"]
        yield name, run


def test_models(runner, folder, ways, recorded, small):
    with tempfile.TemporaryDirectory() as work:
        for name, run in model_runs(runner, folder, pathlib.Path(work), recorded, small):
            test_one_hash(runner, name, run, ways, recorded)


def record(runner, folder, recorded):
    """Writes expected.txt and inputs/ in `folder`."""
    model, images = folder / "sample" / "digits.onnx", (folder / "sample").glob("*.npy")
    runs = [(f"digits.onnx {image.stem}", [model, "--input", f"image={image}"])
            for image in sorted(images)]
    runs += model_runs(runner, folder / "models", folder / "inputs", recorded)
    lines = []
    for name, run in runs:
        args = [str(arg).replace(f"{folder}/", "") for arg in run]
        assert not any(c.isspace() for arg in args for c in arg), args
        test_one_hash(runner, name, args, [], recorded)
        lines.append("\t".join([runner.sha256(*args), name, " ".join(args)]))
    (folder / "expected.txt").write_text("".join(f"{line}\n" for line in lines))


class Gpt:
    """capp-gpt: a GPT-2 with a KV cache as inputs and outputs."""

    N_LAYERS, N_HEADS, HEAD_DIM, N_VOCAB = 4, 4, 16, 53

    def __init__(self, runner, model, work, options):
        self.runner, self.model, self.work, self.options = runner, model, work, options

    def run(self, tokens, n_past, cache):
        """Returns the logits of `tokens`, which follow `n_past` tokens in `cache`: row-major, one
        row per token."""
        inputs = {
            "input_ids": ("<i8", [1, len(tokens)], tokens),
            "attention_mask": ("<i8", [1, n_past + len(tokens)], [1] * (n_past + len(tokens))),
            "position_ids": ("<i8", [1, len(tokens)], range(n_past, n_past + len(tokens))),
        }
        args = []
        for name, (descr, shape, values) in inputs.items():
            npy.save(self.work / f"{name}.npy", descr, shape, values)
            args += ["--input", f"{name}={self.work / name}.npy"]
        for layer in range(self.N_LAYERS):
            for part in ("key", "value"):
                name = f"past_key_values.{layer}.{part}"
                path = cache / f"present.{layer}.{part}.npy" if cache else self.work / "empty.npy"
                if not cache:
                    npy.save(path, "<f4", [1, self.N_HEADS, 0, self.HEAD_DIM], [])
                args += ["--input", f"{name}={path}"]
        out = self.work / f"after-{n_past + len(tokens)}"
        done = self.runner.call(self.model, *args, *self.options, "--output-dir", out)
        if not check(done.returncode == 0, f"capp-gpt: {done.stderr.strip()}"):
            return None, None
        _, shape, logits = npy.load(out / "logits.npy")
        check(shape == (1, len(tokens), self.N_VOCAB), f"capp-gpt: logits have shape {shape}")
        return logits, out

    def test_reference(self, expected):
        """Checks that every logit is within 1e-4 of the float64 reference, and every choice the
        same. The reference has no float32 rounding; four layers of float32 lose about 1e-6."""
        worst = 0.0
        for case in expected["cases"]:
            tokens = case["tokens"][:len(case["logits"])]
            logits, _ = self.run(tokens, 0, None)
            if logits is None:
                return
            for t, want in enumerate(case["logits"]):
                row = logits[t * self.N_VOCAB:(t + 1) * self.N_VOCAB]
                apart = [abs(a - b) for a, b in zip(row, want)]
                check(len(row) == len(want) and all(x <= 1e-4 for x in apart),
                      f"capp-gpt: logits of token {t} differ by {apart}")
                worst = max(worst, *apart)
                if t + 1 < len(case["tokens"]) and t + 1 >= len(case["prompt"]):
                    choice = max(range(self.N_VOCAB), key=lambda i: row[i])
                    check(choice == case["tokens"][t + 1], f"capp-gpt: token {t + 1} is {choice}")
        print(f"capp-gpt: {len(expected['cases'])} texts, logits within {worst:.2g}", flush=True)

    def test_decode(self, tokens):
        """Checks that one token at a time gives the same bytes as all tokens at once."""
        together, _ = self.run(tokens, 0, None)
        apart, cache = array.array("f"), None
        for t, token in enumerate(tokens):
            logits, cache = self.run([token], t, cache)
            if logits is None:
                return
            apart.extend(logits)
        check(together == apart and together.tobytes() == apart.tobytes(),
              "capp-gpt: prefill and decode give the same logits")


def test_gpt(runner, folder, device):
    model = folder / "capp-gpt" / "model.onnx"
    if not model.exists():
        print("capp-gpt: skipped, not here")
        return
    expected = json.loads((model.parent / "expected_fp64.json").read_text())
    options = ["--device", device] if device else []
    with tempfile.TemporaryDirectory() as work:
        gpt = Gpt(runner, model, pathlib.Path(work), options)
        gpt.test_reference(expected)
        gpt.test_decode(expected["cases"][0]["tokens"][:4 if device else 8])


class FusedGpt:
    """genai-tiny's GPT-2, built from com.microsoft's operators, with random weights. It must give
    the tokens that ONNX Runtime's own tests expect, with and without a kv cache."""

    N_LAYERS, N_HEADS, HEAD_DIM, N_VOCAB = 5, 4, 8, 1000

    def __init__(self, runner, model, work, options):
        self.runner, self.model, self.work, self.options = runner, model, work, options

    def run(self, rows, n_past, cache):
        """Returns the logits of each row's last token, and a folder with the present keys and
        values."""
        n_rows, n_new = len(rows), len(rows[0])
        n_all = n_past + n_new
        ids = [token for row in rows for token in row]
        inputs = {
            "input_ids": ("<i4", [n_rows, n_new], ids),
            "position_ids": ("<i4", [n_rows, n_new], list(range(n_past, n_all)) * n_rows),
            "attention_mask": ("<i4", [n_rows, n_all], [1] * (n_rows * n_all)),
        }
        if not cache:
            shape = [2, n_rows, self.N_HEADS, 0, self.HEAD_DIM]
            inputs |= {f"past_{i}": ("<f4", shape, []) for i in range(self.N_LAYERS)}
        args = []
        for name, tensor in inputs.items():
            npy.save(self.work / f"{name}.npy", *tensor)
            args += ["--input", f"{name}={self.work / name}.npy"]
        for i in range(self.N_LAYERS if cache else 0):
            args += ["--input", f"past_{i}={cache / f'present_{i}.npy'}"]
        out = self.work / f"after-{n_all}-{n_new}"
        done = self.runner.call(self.model, *args, *self.options, "--output-dir", out)
        if not check(done.returncode == 0, f"genai-tiny: {done.stderr.strip()}"):
            return None, None
        _, _, logits = npy.load(out / "logits.npy")
        width = self.N_VOCAB
        last = [(row * n_new + n_new - 1) * width for row in range(n_rows)]
        return [logits[at:at + width] for at in last], out

    def test(self, expected, n_tokens):
        rows, n_past, cache = expected["input_ids"], 0, None
        texts = [list(row) for row in rows]
        for _ in range(n_tokens):
            logits, cache = self.run(rows, n_past, cache)
            if logits is None:
                return
            n_past += len(rows[0])
            rows = [[max(range(self.N_VOCAB), key=lambda i: row[i])] for row in logits]
            for text, row in zip(texts, rows):
                text += row
        want = [row[:len(texts[0])] for row in expected["expected"]]
        check(texts == want, f"genai-tiny: tokens {texts}, expected {want}")
        together, _ = self.run([text[:-1] for text in texts], 0, None)
        check(together and [row.tobytes() for row in together] == [row.tobytes() for row in logits],
              "genai-tiny: prefill and decode give the same logits")
        print(f"genai-tiny: {n_tokens} tokens for each of {len(texts)} texts", flush=True)


def test_fused_gpt(runner, folder, device):
    model = folder / "genai-tiny" / "tiny-random-gpt2-fp32" / "past.onnx"
    if not model.exists():
        print("genai-tiny: skipped, not here")
        return
    expected = json.loads((model.parent / "expected.json").read_text())["greedy"]
    options = ["--device", device] if device else []
    with tempfile.TemporaryDirectory() as work:
        gpt = FusedGpt(runner, model, pathlib.Path(work), options)
        n_new = expected["max_length"] - len(expected["input_ids"][0])
        gpt.test(expected, 2 if device else n_new)


def read_recorded():
    files = (SAMPLE / "recorded.txt", HERE / "recorded.txt")
    lines = [line for file in files for line in file.read_text().splitlines()]
    rows = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {name: sha256 for sha256, name in rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--device")
    parser.add_argument("--record", type=pathlib.Path)
    args = parser.parse_args()
    if args.record:
        folder = args.record.resolve()
        record(Runner(pathlib.Path(args.ree_run).resolve(), folder), folder, read_recorded())
        sys.exit(harness.finish())
    runner = Runner(args.ree_run)
    if args.device:
        harness.need_device(args.ree_run, args.device)
        print(harness.run(args.ree_run, "devices", args.device).splitlines()[0])
    small = bool(args.device and os.environ.get("REE_TEST_SAMPLE") != "1/1")
    ways = variants(runner, args.device, small)
    recorded = read_recorded()
    test_sample(runner, ways, recorded, small)
    if args.models and args.models.is_dir():
        test_models(runner, args.models, ways, recorded, small)
        if not small:
            test_gpt(runner, args.models, args.device)
            test_fused_gpt(runner, args.models, args.device)
    else:
        print("models: skipped, there is no such folder")
    sys.exit(harness.finish())


if __name__ == "__main__":
    main()
