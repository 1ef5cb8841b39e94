#!/usr/bin/env python3
"""Compares the operators of the domain com.microsoft with ONNX Runtime, on random nodes.

    contrib.py --ree-run build/ree-run [--device vulkan] [--draws 100] [--only OPERATOR] [--verbose]

Each operator's draws (draws.py) form one model. Without --device: every output is compared with
ONNX Runtime's result for the same node by itself, and the model without fusing must give the same
SHA-256. With --device: the model on that device must give the CPU's SHA-256. Requires a Python with
onnx and onnxruntime (REE_ORACLE_PYTHON names one); without it the test is skipped.

The tolerance is |difference| <= relative * max(1, max|expected|), for each output of a node:
  float32    2e-5: ONNX Runtime sums in other orders (mostly up to 400 terms) and approximates exp and
             tanh within a few ulp;
  float16    2^-10, bfloat16 2^-7: ONNX Runtime computes in float32 on the same numbers; ree rounds
             to the type once at the end, and attention rounds keys and values as a cache does.
ONNX Runtime refuses some draws (mostly empty tensors), but at most a quarter of an operator's
draws. If it has no CPU kernel at all, the expected values are computed with NumPy in float64, from
the operator's definition.
"""

import argparse
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

harness.use_oracle_python()

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as error:
    harness.skip(error)

import draws
import draws_attention

MOST_REFUSED = 0.25
TOLERANCE = {"float32": 2e-5, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16,
         "bfloat16": TensorProto.BFLOAT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
         "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL}
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]


def type_name(array, dtype):
    """Returns the type of an input of a node whose floats are of type `dtype`."""
    return dtype if array.dtype == np.float32 else str(array.dtype)


def narrow(array, dtype):
    """Returns the array as stored in .npy; bfloat16 is the upper half of float32's bits."""
    if array.dtype != np.float32 or dtype == "float32":
        return array
    if dtype == "float16":
        return array.astype(np.float16)
    return (array.view(np.uint32) >> 16).astype(np.uint16).view("V2")


def widen(array):
    if array.dtype.kind == "V":
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def node_of(draw, prefix):
    names = [f"{prefix}i{i}" if value is not None else "" for i, value in enumerate(draw.inputs)]
    outs = [f"{prefix}o{i}" if wanted else "" for i, wanted in enumerate(draw.outputs)]
    return helper.make_node(draw.op, names, outs, name=prefix, domain=draw.domain, **draw.attrs)


def model_of(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "draws", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10).SerializeToString()


def expected_of(draw):
    """Returns the expected outputs, or the reason why ONNX Runtime refuses the node."""
    if draw.reference:
        present = [value for value in draw.inputs if value is not None]
        with np.errstate(all="ignore"):
            results = draw.reference(*[v.astype(np.float64) for v in present])
        return [r for r, wanted in zip(results, draw.outputs) if wanted], None
    draw = draw.substitute or draw
    node = node_of(draw, "")
    inputs = [helper.make_tensor_value_info(name, TYPES[str(v.dtype)], v.shape)
              for name, v in zip(node.input, draw.inputs) if v is not None]
    # The type of the fourth output is explicit, because it is not inferred.
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) if name == "o3"
               else onnx.ValueInfoProto(name=name) for name in node.output if name]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model_of([node], inputs, outputs), options,
                                               providers=["CPUExecutionProvider"])
        feed = {f"i{i}": v for i, v in enumerate(draw.inputs) if v is not None}
        return session.run(None, feed), None
    except Exception as error:  # onnxruntime has a dozen classes for this
        return None, str(error).splitlines()[-1]


def expected_of_all(drawn):
    """Returns expected_of for each draw, computed in a child process. ONNX Runtime crashes on some
    draws (it divides by sizes that are 0), which counts as a refusal."""
    results = []
    while len(results) < len(drawn):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                with os.fdopen(writer, "wb") as pipe:
                    for draw in drawn[len(results):]:
                        pickle.dump(expected_of(draw), pipe)
                        pipe.flush()
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            try:
                while True:
                    results.append(pickle.load(pipe))
            except EOFError:
                pass
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            results.append((None, f"killed by {signal.Signals(os.WTERMSIG(status)).name}"))
        elif len(results) < len(drawn):
            raise RuntimeError(f"the oracle ended early, after {len(results)} draws")
    return results


class Batch:
    """One model for ree-run, with the draws of one operator that have an expected result."""

    def __init__(self, folder, device):
        self.folder, self.device = folder, device
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], []
        self.args = []
        self.names = []  # output names of each draw

    def add(self, number, draw, rng):
        prefix = f"d{number}_"
        node = node_of(draw, prefix)
        self.nodes.append(node)
        for name, value in zip(node.input, draw.inputs):
            if value is None:
                continue
            kind = TYPES[type_name(value, draw.dtype)]
            stored = narrow(value, draw.dtype)
            if rng.random() < 0.3:  # a constant, so that folding is tested too
                self.constants.append(helper.make_tensor(name, kind, value.shape, stored.tobytes(),
                                                         raw=True))
                continue
            self.inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
            np.save(self.folder / f"{name}.npy", stored)
            self.args += ["--input", f"{name}={self.folder / name}.npy"]
        names = [name for name in node.output if name]
        self.outputs += [onnx.ValueInfoProto(name=name) for name in names]
        self.names.append(names)

    def write(self):
        self.path = self.folder / "draws.onnx"
        self.path.write_bytes(model_of(self.nodes, self.inputs, self.outputs, self.constants))

    def run(self, ree_run, *options):
        """Returns (SHA-256, None) or (None, message)."""
        done = subprocess.run([ree_run, self.path, *self.args, "--json", *options],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip()
        return json.loads(done.stdout)["sha256"], None


def compare(draw, got, want):
    """Returns (the largest fraction of the tolerance that is used, None) or (that, a message)."""
    worst = 0.0
    for i, (a, b) in enumerate(zip(got, want)):
        stored = "bfloat16" if a.dtype.kind == "V" else str(a.dtype)
        kind = str(b.dtype) if b.dtype.kind != "f" else "float32" if i in draw.wide else draw.dtype
        if stored != kind:
            return worst, f"output {i} is {stored}, expected {kind}"
        a = widen(a)
        if draw.keep:
            a, b = draw.keep(i, a), draw.keep(i, b)
        if a.shape != b.shape:
            return worst, f"output {i} has shape {a.shape}, expected {b.shape}"
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                return worst, f"output {i}: {kind} differ"
            continue
        if b.size == 0:
            continue
        both_nan = np.isnan(a) & np.isnan(b)
        scale = max(1.0, float(np.abs(np.where(np.isfinite(b), b, 0)).max()))
        difference = np.where((a == b) | both_nan, 0, np.abs(a.astype(np.float64) - b))
        used = float(difference.max()) / (TOLERANCE[kind] * scale)
        worst = max(worst, used)
        if not used <= 1:
            return worst, f"output {i}: differs by {difference.max():.3g} of at most {scale:.3g}"
    return worst, None


def about(draw):
    shapes = ["-" if v is None else f"{type_name(v, draw.dtype)}{list(v.shape)}"
              for v in draw.inputs]
    return f"{draw.op}({', '.join(shapes)}) {draw.attrs} -> {draw.outputs}"


def test_operator(make, n_draws, args, tested):
    """Returns whether the operator passes. Prints a line and adds the draws to `tested`."""
    op = make.__name__
    refused, accepted = {}, []
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(pathlib.Path(folder), args.device)
        rngs = [draws.Rng([*op.encode(), number]) for number in range(n_draws)]
        drawn = [make(rng) for rng in rngs]
        for draw, rng in zip(drawn, rngs):
            draw.dtype = rng.dtype
        for number, (want, reason) in enumerate(expected_of_all(drawn)):
            draw = drawn[number]
            if want is None:
                refused[number] = (draw, reason)
                continue
            batch.add(number, draw, rngs[number].rng)
            accepted.append((number, draw, want))
        batch.write()
        tested += [draw for _, draw, _ in accepted]
        if args.verbose:
            for number, (draw, reason) in refused.items():
                print(f"  refused {number}: {about(draw)}: {reason}")
        problems = []
        if len(refused) > MOST_REFUSED * n_draws:
            problems.append(f"ONNX Runtime refuses {len(refused)}, e.g. "
                            + next(iter(refused.values()))[1])
        if args.device:
            cpu, error = batch.run(args.ree_run)
            other, error2 = batch.run(args.ree_run, "--device", args.device)
            if not cpu or cpu != other:
                problems.append(f"{args.device}: {other or error2}, on the CPU {cpu or error}")
            line = f"{op}: {len(accepted)} draws, {cpu}"
        else:
            worst = test_values(batch, accepted, args, problems)
            line = (f"{op}: {len(accepted)} draws within {100 * worst:.3g} % of the tolerance, "
                    f"{len(refused)} refused by ONNX Runtime")
    for problem in problems[:None if args.verbose else 5]:
        print(f"FAILED: {op}: {problem}")
    print(line, flush=True)
    return not problems


def test_values(batch, accepted, args, problems):
    out = batch.folder / "out"
    sha256, error = batch.run(args.ree_run, "--output-dir", out)
    if not sha256:
        problems.append(error)
        return float("nan")
    unfused, error = batch.run(args.ree_run, "--no-fuse")
    if unfused != sha256:
        problems.append(f"without fusing {unfused or error}, expected {sha256}")
    worst = 0.0
    for (number, draw, want), names in zip(accepted, batch.names):
        got = [np.load(out / f"{name}.npy") for name in names]
        used, problem = compare(draw, got, want)
        worst = max(worst, used)
        if problem:
            problems.append(f"draw {number}: {about(draw)}: {problem}")
    return worst


def coverage_of(tested):
    lines = sorted({f"{draw.domain or 'ai.onnx'} {draw.op} {opset_of(draw)} {main_type(draw)}"
                    for draw in tested})
    return ("# What random nodes beside ONNX Runtime show to work: domain, operator, opset, type of\n"
            "# the floats or the first input. Written by contrib.py --write-coverage; the suite checks it.\n"
            + "".join(line + "\n" for line in lines))


def opset_of(draw):
    return next(opset.version for opset in OPSETS if opset.domain == draw.domain)


def main_type(draw):
    """Returns the type of the floats if there are any, else the type of the first input."""
    types = [type_name(v, draw.dtype) for v in draw.inputs if v is not None]
    return draw.dtype if draw.dtype in types else types[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--device")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--only")
    parser.add_argument("--coverage", type=pathlib.Path, help="fail if the coverage differs from this file")
    parser.add_argument("--write-coverage", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if args.device:
        harness.need_device(args.ree_run, args.device)
    makers = [m for m in draws.OPERATORS + draws_attention.OPERATORS
              if not args.only or m.__name__ == args.only]
    tested = []
    failed = [m.__name__ for m in makers if not test_operator(m, args.draws, args, tested)]
    if args.write_coverage:
        args.write_coverage.write_text(coverage_of(tested))
    if args.coverage and args.coverage.read_text() != coverage_of(tested):
        print(f"FAILED: {args.coverage} is stale; after a change: contrib.py --write-coverage, "
              "tools/support.py --write")
        failed.append("coverage")
    print(f"{len(makers) - len(failed)} operators passed, {len(failed)} failed {' '.join(failed)}")
    sys.exit(1 if failed or not makers else 0)


if __name__ == "__main__":
    main()
