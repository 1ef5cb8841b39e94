#!/usr/bin/env python3
"""Compares RNN, GRU and LSTM with ONNX Runtime on random draws of attributes and shapes, if ONNX
Runtime is installed (REE_ORACLE_PYTHON names a Python that has it; by default the Python that runs
this script).

ONNX Runtime sums in other orders and approximates its activations by polynomials with errors of
some 1e-6, which are carried from step to step. So outputs are compared with |difference| <=
1e-4 max|output| + 1e-5; a wrong gate is off by 1e-1.
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import onnx_writer

FLOAT, INT32 = 1, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
STATES = {"RNN": ["initial_h"], "GRU": ["initial_h"], "LSTM": ["initial_h", "initial_c"]}
# Without Relu and Affine, which let values grow from step to step.
ACTIVATIONS = ["Tanh", "Sigmoid", "HardSigmoid", "Softsign", "ScaledTanh", "Elu", "LeakyRelu"]
SCALINGS = {"HardSigmoid": (0.3, 0.4), "ScaledTanh": (0.7, 0.9), "Elu": (0.8, None),
            "LeakyRelu": (0.1, None)}


def draw_activations(rng, attributes, n):
    names = [str(rng.choice(ACTIVATIONS)) for _ in range(n)]
    scalings = [SCALINGS.get(name, (None, None)) for name in names]
    attributes["activations"] = names
    for i, key in enumerate(("activation_alpha", "activation_beta")):
        given = [s[i] for s in scalings if s[i] is not None]
        if given:
            attributes[key] = given


def draw(rng, op):
    """Returns a node's attributes and inputs."""
    steps, batch, n_in, hidden = (int(rng.integers(1, top)) for top in (12, 5, 9, 20))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    attributes = {"direction": direction, "hidden_size": hidden}
    gates = GATES[op]

    def tensor(*shape):
        return rng.uniform(-0.7, 0.7, shape).astype(np.float32)
    inputs = {"X": tensor(steps, batch, n_in), "W": tensor(directions, gates * hidden, n_in),
              "R": tensor(directions, gates * hidden, hidden)}
    if rng.random() < 0.7:
        inputs["B"] = tensor(directions, 2 * gates * hidden)
    if rng.random() < 0.4:
        inputs["sequence_lens"] = rng.integers(1, steps + 1,
                                               batch).astype(np.int32)
        inputs["sequence_lens"][0] = steps
    if rng.random() < 0.6:
        for name in STATES[op]:
            inputs[name] = tensor(directions, batch, hidden)
    if op == "LSTM" and rng.random() < 0.4:
        inputs["P"] = tensor(directions, 3 * hidden)
    if op == "LSTM" and rng.random() < 0.2:
        attributes["input_forget"] = 1
    if op == "GRU" and rng.random() < 0.5:
        attributes["linear_before_reset"] = 1
    if rng.random() < 0.3:
        attributes["clip"] = 0.6
    if rng.random() < 0.4:
        draw_activations(rng, attributes, directions * FUNCTIONS[op])
    return attributes, inputs


def write(path, op, attributes, inputs, constants):
    """Returns a model of one node; the inputs in `constants` are initializers."""
    names = ["X", "W", "R", "B", "sequence_lens", *STATES[op], "P"]
    used = [name if name in inputs else "" for name in names]
    while not used[-1]:
        used.pop()
    outputs = ["Y", "Y_h"] + (["Y_c"] if op == "LSTM" else [])
    types = {name: INT32 if value.dtype == np.int32 else FLOAT for name, value in inputs.items()}
    ports = [onnx_writer.port(name, types[name], value.shape) for name, value in inputs.items()
             if name not in constants]
    tensors = [onnx_writer.tensor(name, types[name], inputs[name].shape, inputs[name].tobytes())
               for name in inputs if name in constants]
    node = onnx_writer.node(op, used, outputs, "cell", attributes=attributes)
    path.write_bytes(onnx_writer.model([node], ports,
                                       [onnx_writer.port(name, FLOAT, None) for name in outputs],
                                       tensors, opset=14))
    return outputs


def compare(ree_run, work, op, attributes, inputs, constants):
    path = work / "model.onnx"
    outputs = write(path, op, attributes, inputs, constants)
    feeds = {name: value for name, value in inputs.items() if name not in constants}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    want = session.run(None, feeds)
    args = [ree_run, path, "--output-dir", work / "out", "--json"]
    for name, value in feeds.items():
        np.save(work / f"{name}.npy", value)
        args += ["--input", f"{name}={work / name}.npy"]
    digests = set()
    for variant in (["--no-fuse"], []):
        done = subprocess.run([*args, *variant], capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip()
        digests.add(json.loads(done.stdout)["sha256"])
    if len(digests) != 1:
        return "fusion changes bits"
    for name, expected in zip(outputs, want):
        got = np.load(work / "out" / f"{name}.npy")
        if got.shape != expected.shape:
            return f"{name}: {got.shape}, expected {expected.shape}"
        difference = np.abs(got - expected).max()
        if not difference <= 1e-4 * np.abs(expected).max() + 1e-5:
            return f"{name}: differs by {difference} of at most {np.abs(expected).max()}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--draws", type=int, default=100, help="number of random draws of each operator")
    args = parser.parse_args()
    passed, failed = 0, 0
    for op in GATES:
        rng = np.random.default_rng(11)
        for i in range(args.draws):
            attributes, inputs = draw(rng, op)
            constants = {"W", "R", "B", "P"} if i % 2 else set()
            with tempfile.TemporaryDirectory() as work:
                problem = compare(args.ree_run, pathlib.Path(work), op, attributes, inputs,
                                  constants)
            if problem:
                failed += 1
                shapes = {name: value.shape for name, value in inputs.items()}
                print(f"FAILED: {op} draw {i}: {problem}\n    {attributes} {shapes}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
