#!/usr/bin/env python3
"""Compares quantised operators with ONNX Runtime on random draws of shapes, types and attributes,
if ONNX Runtime is installed (REE_ORACLE_PYTHON names a Python that has it; by default the Python
that runs this script).

Integer sums must agree exactly. When a real number is rounded to an integer, ONNX Runtime may
multiply by a reciprocal or in another order, so that a number next to a tie rounds the other way. A
result may then be off by one, in at most 2 % of the elements plus one. QLinearSigmoid,
QLinearLeakyRelu and averages may be off by one without that limit. Floats are compared with
|difference| <= 1e-4 max|output| + 1e-6: a dynamic scale differs by at most one rounding, and sums
of 4-bit weights run in another order.
"""

import argparse
import functools
import json
import os
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

TYPES = {np.dtype(t): n for t, n in [(np.float32, 1), (np.uint8, 2), (np.int8, 3), (np.uint16, 4),
                                     (np.int16, 5), (np.int32, 6), (np.float16, 10)]}
MICROSOFT = "com.microsoft"


class Refused(Exception):
    """ONNX Runtime has no kernel for the types of a draw."""


class Draw:
    """One node: inputs by position (None: omitted), attributes, which inputs are constant."""

    def __init__(self, op, inputs, attributes=None, n_outputs=1, domain="", off_by_one=0.02,
                 constants=()):
        self.op, self.inputs, self.attributes = op, inputs, attributes or {}
        self.n_outputs, self.domain, self.off_by_one = n_outputs, domain, off_by_one
        self.constants = set(constants)


def integers(rng, dtype, *shape):
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    if values.size and rng.random() < 0.3:  # only the extremes
        values = np.where(rng.random(shape) < 0.5, info.min, info.max).astype(dtype)
    return values


def weights(rng, dtype, *shape):
    values = integers(rng, dtype, *shape)
    if dtype == np.int8 and oracle_saturates():
        values = np.clip(values, -64, 64)
    return values


def floats(rng, *shape):
    return rng.uniform(-3, 3, shape).astype(np.float32)


def scale(rng, *shape):
    return rng.uniform(0.004, 0.06, shape).astype(np.float32)


def byte(rng):
    return rng.choice([np.int8, np.uint8])


def maybe(rng, value, p=0.5):
    return value if rng.random() < p else None


def sizes(rng, n, top=40):
    return [int(rng.integers(1, top)) for _ in range(n)]


def draw_linear(rng):
    dtype = rng.choice([np.int8, np.uint8, np.int16, np.uint16])
    shape = sizes(rng, int(rng.integers(1, 4)), 8)
    axis = int(rng.integers(0, len(shape)))
    n = () if rng.random() < 0.5 else (shape[axis],)
    zero = maybe(rng, integers(rng, dtype, *n), 0.7)
    if rng.random() < 0.5:
        if zero is None:
            zero = np.zeros(n, dtype)
        spread = 20 if np.iinfo(dtype).bits == 8 else 4000
        x = (floats(rng, *shape) * spread).astype(np.float32)
        return Draw("QuantizeLinear", [x, scale(rng, *n) + 0.1, zero], {"axis": axis})
    return Draw("DequantizeLinear", [integers(rng, dtype, *shape), scale(rng, *n), zero],
                {"axis": axis})


def draw_dynamic(rng):
    x = floats(rng, *sizes(rng, 2)) + np.float32(rng.choice([0, 2, -5]))
    return Draw("DynamicQuantizeLinear", [x], n_outputs=3)


def draw_matmul_integer(rng):
    m, n, k = sizes(rng, 3, 70)
    batch = sizes(rng, int(rng.integers(0, 2)), 4)
    a_type, b_type = np.uint8, byte(rng)
    return Draw("MatMulInteger", [integers(rng, a_type, *batch, m, k), weights(rng, b_type, k, n),
                                  maybe(rng, integers(rng, a_type)),
                                  maybe(rng, integers(rng, b_type, *([n] if rng.random() < 0.5 else [])))],
                constants=[1])


def draw_qlinear_matmul(rng):
    m, n, k = sizes(rng, 3, 70)
    a_type = byte(rng)
    b_type = np.int8 if a_type == np.int8 else byte(rng)
    per_column = [n] if rng.random() < 0.5 else []
    return Draw("QLinearMatMul", [
        integers(rng, a_type, m, k), scale(rng), integers(rng, a_type),
        weights(rng, b_type, k, n), scale(rng, *per_column), integers(rng, b_type, *per_column),
        scale(rng) * np.float32(k), integers(rng, a_type)], constants=[3, 4, 5])


def draw_conv(rng, quantised):
    groups = int(rng.integers(1, 4))
    c, m, height, width = sizes(rng, 4, 9)
    kernel = sizes(rng, 2, 4)
    pads = [int(rng.integers(0, k)) for k in kernel]
    x_type = np.uint8
    w_type = byte(rng)
    x = integers(rng, x_type, int(rng.integers(1, 3)), c * groups, height + 3, width + 3)
    w = weights(rng, w_type, m * groups, c, *kernel)
    attributes = {"group": groups, "pads": pads + pads, "strides": [int(rng.integers(1, 3))] * 2,
                  "kernel_shape": kernel}
    if not quantised:
        return Draw("ConvInteger", [x, w, maybe(rng, integers(rng, x_type)),
                                    maybe(rng, integers(rng, w_type), 0.4)], attributes,
                    constants=[1])
    n_scales = [m * groups] if rng.random() < 0.5 else []
    zero = integers(rng, w_type) if w_type == np.uint8 else np.zeros((), w_type)
    bias = maybe(rng, rng.integers(-9000, 9000, m * groups).astype(np.int32))
    return Draw("QLinearConv", [x, scale(rng), integers(rng, x_type), w, scale(rng, *n_scales),
                                np.broadcast_to(zero, n_scales).copy(),
                                scale(rng) * np.float32(c * 4), integers(rng, x_type), bias],
                attributes, constants=[3, 4, 5, 8])


def draw_to_float(rng):
    m, n, k = sizes(rng, 3, 70)
    a_type, b_type = np.uint8, byte(rng)
    columns = [n] if rng.random() < 0.5 else []
    return Draw("MatMulIntegerToFloat", [
        integers(rng, a_type, m, k), weights(rng, b_type, k, n), scale(rng), scale(rng, *columns),
        maybe(rng, integers(rng, a_type)), maybe(rng, integers(rng, b_type, *columns)),
        maybe(rng, floats(rng, n))], domain=MICROSOFT, constants=[1])


def draw_dynamic_matmul(rng):
    m, n, k = sizes(rng, 3, 70)
    b_type = byte(rng)
    columns = [n] if rng.random() < 0.5 else []
    return Draw("DynamicQuantizeMatMul", [
        floats(rng, m, k), weights(rng, b_type, k, n), scale(rng, *columns),
        maybe(rng, integers(rng, b_type, *columns)), maybe(rng, floats(rng, n))],
        domain=MICROSOFT, constants=[1])


def draw_qgemm(rng):
    m, n, k = sizes(rng, 3, 70)
    a_type = np.uint8
    b_type = byte(rng)
    attributes = {"transA": int(rng.integers(0, 2)), "transB": int(rng.integers(0, 2)),
                  "alpha": float(rng.choice([1.0, 0.5]))}
    a = integers(rng, a_type, *((k, m) if attributes["transA"] else (m, k)))
    b = weights(rng, b_type, *((n, k) if attributes["transB"] else (k, n)))
    quantised = rng.random() < 0.5
    bias = maybe(rng, rng.integers(-9000, 9000, n).astype(np.int32))
    return Draw("QGemm", [a, scale(rng), integers(rng, a_type), b, scale(rng), integers(rng, b_type),
                          bias, scale(rng) * np.float32(k) if quantised else None,
                          integers(rng, a_type) if quantised else None], attributes,
                domain=MICROSOFT, constants=[3])


def draw_nbits(rng):
    m, n = int(rng.choice([1, 2, 5, 20])), int(rng.integers(1, 90))
    bits, block = int(rng.choice([4, 4, 8])), int(rng.choice([16, 32, 64, 128, 256]))
    k = int(rng.integers(1, 700))
    if rng.random() < 0.6:
        k = max(1, k // block) * block
    n_blocks = (k + block - 1) // block
    b = rng.integers(0, 256, (n, n_blocks, block * bits // 8)).astype(np.uint8)
    scales = scale(rng, n * n_blocks)
    zeros = rng.integers(0, 256, n * ((n_blocks * bits + 7) // 8)).astype(np.uint8)
    bias = maybe(rng, floats(rng, n), 0.3)
    return Draw("MatMulNBits", [floats(rng, m, k), b, scales, maybe(rng, zeros), None, bias],
                {"K": k, "N": n, "bits": bits, "block_size": block}, domain=MICROSOFT,
                constants=[1, 2, 3])


def draw_binary(rng):
    dtype = byte(rng)
    shape = sizes(rng, 3, 12)
    other = [1 if rng.random() < 0.3 else d for d in shape]
    def zero():
        return integers(rng, dtype)
    return Draw(str(rng.choice(["QLinearAdd", "QLinearMul"])), [
        integers(rng, dtype, *shape), scale(rng), zero(), integers(rng, dtype, *other), scale(rng),
        zero(), scale(rng) + np.float32(0.05), zero()], domain=MICROSOFT)


def draw_unary(rng):
    dtype = byte(rng)
    op = str(rng.choice(["QLinearSigmoid", "QLinearLeakyRelu"]))
    x = integers(rng, dtype, *sizes(rng, 2))
    attributes = {"alpha": 0.25} if op == "QLinearLeakyRelu" else {}
    return Draw(op, [x, scale(rng), integers(rng, dtype), np.float32(0.005).reshape(()) if not attributes
                     else scale(rng), integers(rng, dtype)], attributes, domain=MICROSOFT,
                off_by_one=1, constants=[1, 2, 3, 4])


def draw_pool(rng):
    dtype = byte(rng)
    whole = rng.random() < 0.5
    shape = sizes(rng, 4, 9)
    shape[2:] = [d + 2 for d in shape[2:]]
    inputs = [integers(rng, dtype, *shape), scale(rng), integers(rng, dtype), scale(rng),
              integers(rng, dtype)]
    last = rng.random() < 0.5
    if whole:
        return Draw("QLinearGlobalAveragePool", inputs, {"channels_last": int(last)},
                    domain=MICROSOFT, off_by_one=1)
    return Draw("QLinearAveragePool", inputs, {"kernel_shape": [2, 3], "strides": [1, 2]},
                domain=MICROSOFT, off_by_one=1)


def draw_concat(rng):
    dtype = byte(rng)
    shape = sizes(rng, 3, 7)
    axis = int(rng.integers(0, 3))
    inputs = [scale(rng), integers(rng, dtype)]
    for _ in range(int(rng.integers(1, 4))):
        part = list(shape)
        part[axis] = int(rng.integers(1, 6))
        inputs += [integers(rng, dtype, *part), scale(rng), integers(rng, dtype)]
    constants = [i for i in range(len(inputs)) if i < 2 or i % 3 != 2]
    return Draw("QLinearConcat", inputs, {"axis": axis}, domain=MICROSOFT, constants=constants)


DRAWS = [draw_linear, draw_dynamic, draw_matmul_integer, draw_qlinear_matmul,
         lambda rng: draw_conv(rng, False), lambda rng: draw_conv(rng, True), draw_to_float,
         draw_dynamic_matmul, draw_qgemm, draw_nbits, draw_binary, draw_unary, draw_pool,
         draw_concat]


def write(path, draw):
    """Writes the model of a draw. Returns the names of its outputs and a session of ONNX Runtime."""
    used = [f"i{i}" if value is not None else "" for i, value in enumerate(draw.inputs)]
    while not used[-1]:
        used.pop()
    live = [(i, np.asarray(v)) for i, v in enumerate(draw.inputs) if v is not None]
    ports = [onnx_writer.port(f"i{i}", TYPES[v.dtype], v.shape) for i, v in live
             if i not in draw.constants]
    tensors = [onnx_writer.tensor(f"i{i}", TYPES[v.dtype], v.shape, v.tobytes()) for i, v in live
               if i in draw.constants]
    outputs = [f"y{i}" for i in range(draw.n_outputs)]
    node = onnx_writer.node(draw.op, used, outputs, "node", draw.domain, draw.attributes)
    # The outputs' types are inferred. In theory a model may leave them undeclared (type 0); in
    # practice ONNX Runtime requires them, so every type is tried in turn.
    def model(types):
        return onnx_writer.model([node], ports,
                                 [onnx_writer.port(n, t, None) for n, t in zip(outputs, types)],
                                 tensors, opset=21) + onnx_writer.chunk(
                                     8, onnx_writer.chunk(1, MICROSOFT) + onnx_writer.number(2, 1))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    failure = None
    candidates = [[2, 1, 2]] if draw.n_outputs == 3 else [[t] for t in (1, 2, 3, 6, 4, 5)]
    for types in candidates:
        path.write_bytes(model(types))
        try:
            return outputs, onnxruntime.InferenceSession(str(path), options,
                                                         providers=["CPUExecutionProvider"])
        except Exception as error:  # the type is another one, or the draw is not supported
            if failure is None or "Type Error" not in str(error):
                failure = error
    raise Refused(failure)


@functools.cache
def oracle_saturates():
    a = np.full((16, 64), 255, np.uint8)
    b = np.full((64, 32), 127, np.int8)
    with tempfile.TemporaryDirectory() as work:
        _, session = write(pathlib.Path(work) / "model.onnx",
                           Draw("MatMulInteger", [a, b], constants=[1]))
    return bool((session.run(None, {"i0": a})[0] != 64 * 255 * 127).any())


def difference(draw, got, expected):
    """Returns None, or a description of the difference."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}"
    if expected.size == 0:
        return None
    apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    if got.dtype.kind == "f":
        largest = np.abs(expected).max()
        tolerance = 1e-4 * largest + 1e-6
        if draw.op == "DynamicQuantizeMatMul":  # numbers of A next to a tie may be off by one step
            tolerance += float(np.abs(draw.inputs[0]).max()) / 100
        return None if apart.max() <= tolerance else f"differs by {apart.max()} of {largest}"
    if got.dtype == np.int32:
        return None if not apart.any() else f"integers differ by {apart.max()}"
    allowed = draw.off_by_one * apart.size + 1
    if apart.max() > 1 or np.count_nonzero(apart) > allowed:
        return f"differs by {apart.max()} in {np.count_nonzero(apart)} of {apart.size}"
    return None


def compare(ree_run, work, draw):
    path = work / "model.onnx"
    outputs, session = write(path, draw)
    feeds = {f"i{i}": np.asarray(v) for i, v in enumerate(draw.inputs)
             if v is not None and i not in draw.constants}
    try:
        want = session.run(None, feeds)
    except Exception as error:
        raise Refused(error) from error
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
        problem = difference(draw, np.load(work / "out" / f"{name}.npy"), np.asarray(expected))
        if problem:
            return f"{name}: {problem}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--draws", type=int, default=24, help="number of random draws of each kind")
    args = parser.parse_args()
    passed, failed, refused = 0, 0, 0
    if oracle_saturates():
        print("ONNX Runtime's sums saturate on this processor: weights of -64 to 64")
    for kind, make in enumerate(DRAWS):
        rng = np.random.default_rng(kind)
        passed_before = passed
        for i in range(args.draws):
            draw = make(rng)
            with tempfile.TemporaryDirectory() as work:
                try:
                    problem = compare(args.ree_run, pathlib.Path(work), draw)
                except Refused as error:
                    refused += 1
                    if os.environ.get("VERBOSE"):
                        print(f"refused: {draw.op}: {str(error)[:300]}")
                    continue
            if problem:
                failed += 1
                about = [None if v is None else (np.asarray(v).dtype.name, np.asarray(v).shape)
                         for v in draw.inputs]
                print(f"FAILED: {draw.op} draw {i}: {problem}\n    {draw.attributes} {about}")
            else:
                passed += 1
        if passed == passed_before:
            failed += 1
            print(f"FAILED: no draw of kind {kind} passed")
    print(f"{passed} passed, {failed} failed, {refused} that ONNX Runtime refuses")
    # A refused draw tests nothing, so only few draws may be refused.
    sys.exit(1 if failed or passed < 4 * refused else 0)


if __name__ == "__main__":
    main()
