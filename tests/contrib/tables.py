#!/usr/bin/env python3
"""GatherBlockQuantized with tables that contrib.py cannot draw: int4 and uint4, compared with ONNX
Runtime, and uint8 with axes that ONNX Runtime does not support, compared with NumPy. The results
must have the same bits, because each is one product of a small integer and a scale. Requires a
Python with onnx, onnxruntime and ml_dtypes (REE_ORACLE_PYTHON names one); without it the test is
skipped."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

harness.use_oracle_python()

try:
    import ml_dtypes
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    harness.skip(error)

# Type, shape of the table, gather axis, quantisation axis, block, zero points.
CASES = [
    ("int4", (5, 32), 0, 1, 16, False),
    ("int4", (5, 40), 0, 1, 16, True),
    ("uint4", (5, 32), 0, 1, 32, True),
    ("uint4", (5, 48), 0, -1, 32, False),
    ("int4", (40, 3, 4), 1, 0, 16, True),
    ("uint4", (3, 40, 4), 2, 1, 16, True),
    ("int4", (3, 4, 32), 1, 2, 16, False),
    ("uint8", (3, 4, 32), 1, 2, 16, False),
    ("uint8", (40, 5), 1, 0, 16, True),
]


def model_of(case, rng):
    kind, dims, gather_axis, quantize_axis, block, has_zeros = case
    low, high = {"int4": (-8, 7), "uint4": (0, 15), "uint8": (0, 255)}[kind]
    blocks = list(dims)
    blocks[quantize_axis] = -(-dims[quantize_axis] // block)

    def table(shape):
        return rng.integers(low, high + 1, shape).astype(np.uint8 if kind == "uint8" else getattr(ml_dtypes, kind))

    constants = {"data": table(dims), "scales": rng.uniform(-2, 2, blocks).astype(np.float32)}
    if has_zeros:
        constants["zeros"] = table(blocks)
    inputs = ["data", "indices", "scales"] + ["zeros"] * has_zeros
    node = helper.make_node("GatherBlockQuantized", inputs, ["y"], domain="com.microsoft", gather_axis=gather_axis,
                            quantize_axis=quantize_axis, block_size=block, **({"bits": 8} if kind == "uint8" else {}))
    graph = helper.make_graph([node], "table",
                              [helper.make_tensor_value_info("indices", TensorProto.INT64, ["a", "b"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, name) for name, array in constants.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), constants


def by_numpy(case, constants, indices):
    """The definition, for uint8."""
    _, dims, gather_axis, quantize_axis, block, has_zeros = case
    spread = [np.repeat(constants[name], block, quantize_axis).take(range(dims[quantize_axis]), quantize_axis)
              if name in constants else 128 for name in ("scales", "zeros")]
    numbers = constants["data"].astype(np.int32) - np.asarray(spread[1], np.int32)
    return np.take(numbers.astype(np.float32) * spread[0], indices, gather_axis)


def compare(ree_run, case, rng, work):
    model, constants = model_of(case, rng)
    model = model.SerializeToString()
    rows = case[1][case[2]]
    indices = rng.integers(-rows, rows, (2, 3)).astype(np.int64)
    if case[0] == "uint8":
        want = by_numpy(case, constants, indices)
    else:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        want = session.run(None, {"indices": indices})[0]
    (work / "model.onnx").write_bytes(model)
    np.save(work / "indices.npy", indices)
    done = subprocess.run([ree_run, work / "model.onnx", "--input", f"indices={work / 'indices.npy'}", "--output-dir",
                           work], capture_output=True, text=True)
    if not check(done.returncode == 0, f"{case}: {done.stderr}"):
        return
    got = np.load(work / "y.npy")
    check(got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes(),
          f"{case}: {got} instead of {want}")


def main():
    ree_run = harness.parser(__doc__).parse_args().ree_run
    rng = np.random.default_rng(1)
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            compare(ree_run, case, rng, pathlib.Path(name))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
