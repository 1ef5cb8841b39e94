#!/usr/bin/env python3
"""Compares real models with ONNX Runtime if it is installed (REE_ORACLE_PYTHON names a Python that
has it; by default the Python that runs this script).

The inputs are pseudo-random. ONNX Runtime sums in other orders and approximates exp and similar
functions, so each output is compared with |difference| <= 1e-3 max|output| + 1e-6: the accuracy
that float32 keeps in a deep network, and far less than the error of a wrong operator. For a float16
output the tolerance is 1e-2 max|output|: both round every step to 11 bits.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

harness.use_oracle_python()

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    harness.skip(error)

from real_models import read_recorded

TOKENS = {"batch_size": 2, "seq_len": 3, "past_seq_len": 2, "total_seq_len": 5}
# By folder and file: sizes of symbolic dimensions (default 1), and inputs that are a single number.
DIMS = {
    "yunet/yunet_s_dynamic.onnx": {"height": 160, "width": 96},
    "tiny-random-gpt2-fp32/past.onnx": TOKENS,
    # With a past, ONNX Runtime accepts only one batch.
    "tiny-qwen35-cuda/decoder.onnx": TOKENS | {"batch_size": 1},
    "silero-vad/silero_vad_16k_op15.onnx": {"sequence": 576},
    "silero-vad/silero_vad_op18_ifless.onnx": {"sequence": 576},
    "swift-f0/model.onnx": {"audio_length": 4000},
    "vscode-ext-rec/model.onnx": {"unk__103": 16, "unk__104": 3450},
}
NUMBERS = {
    "tiny-qwen35-cuda/decoder.onnx": {"attention_mask": 1},
    "silero-vad/silero_vad_16k_op15.onnx": {"sr": 16000},
    "silero-vad/silero_vad_op18_ifless.onnx": {"sr": 16000},
}
# The fraction of ones in an integer input, if a fraction of one half is not realistic: the
# recommender counts installed extensions, and for many of them it returns 0, whatever they are.
DENSITY = {"vscode-ext-rec/model.onnx": 0.001}
TYPES = {"float32": np.float32, "float16": np.float16, "int64": np.int64, "int32": np.int32,
         "bool": np.bool_}


def make_inputs(about, sizes, numbers, density, rng):
    inputs = {}
    for port in about["inputs"]:
        if port["optional"]:
            continue
        shape = [d if isinstance(d, int) else sizes.get(d, 1) for d in port["shape"]]
        dtype = TYPES[port["type"]]
        if port["name"] in numbers:
            inputs[port["name"]] = np.full(shape, numbers[port["name"]], dtype)
        elif issubclass(dtype, np.floating):
            inputs[port["name"]] = rng.uniform(-1, 1, shape).astype(dtype)
        else:
            inputs[port["name"]] = (rng.random(shape) < density).astype(dtype)
    return inputs


def compare(ree_run, path, about, work):
    rng = np.random.default_rng(7)
    key = f"{path.parent.name}/{path.name}"
    inputs = make_inputs(about, DIMS.get(key, {}), NUMBERS.get(key, {}), DENSITY.get(key, 0.5),
                         rng)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    want = session.run(None, inputs)

    args = [ree_run, path, "--output-dir", work / "out", "--json"]
    for i, (name, value) in enumerate(inputs.items()):
        np.save(work / f"{i}.npy", value)
        args += ["--input", f"{name}={work / str(i)}.npy"]
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    worst = 0.0
    for output, expected in zip(json.loads(done.stdout)["outputs"], want):
        file = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_"
                       for c in output["name"])
        got = np.load(work / "out" / f"{file}.npy")
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return f"{output['name']}: {got.dtype}{got.shape}, {expected.dtype}{expected.shape}"
        if expected.size == 0:
            continue
        if got.dtype.kind != "f":
            if not np.array_equal(got, expected):
                return f"{output['name']}: integers differ"
            continue
        scale = float(np.abs(expected).max())
        if scale == 0:
            return f"{output['name']}: all zero, which shows nothing"
        difference = np.abs(got.astype(np.float64) - expected).max()
        tolerance = (1e-2 if got.dtype == np.float16 else 1e-3) * scale + 1e-6
        if not difference <= tolerance:
            return f"{output['name']}: differs by {difference} of at most {scale}"
        worst = max(worst, difference / tolerance)
    print(f"{path.parent.name}/{path.name}: within {100 * worst:.2g} % of the tolerance")
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    args = parser.parse_args()
    paths = sorted(args.models.glob("**/*.onnx"))
    paths.append(pathlib.Path(__file__).resolve().parents[2] / "tools" / "sample" / "digits.onnx")
    recorded = [name.split()[0] for name in read_recorded()]  # without the name of an input
    passed, failed = 0, 0
    for path in paths:
        done = subprocess.run([args.ree_run, "inspect", path, "--json"], capture_output=True)
        about = json.loads(done.stdout)
        if not about["runnable"]:
            if any(str(path).endswith(f"/{name}") for name in recorded):
                failed += 1
                print(f"FAILED: {path} has a recorded hash, but ree cannot run it")
            continue
        with tempfile.TemporaryDirectory() as work:
            problem = compare(args.ree_run, path, about, pathlib.Path(work))
        if problem:
            failed += 1
            print(f"FAILED: {path.parent.name}/{path.name}: {problem}")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
