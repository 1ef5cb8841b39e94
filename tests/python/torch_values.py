#!/usr/bin/env python3
"""The Python package with PyTorch's tensors: no copies, every type, outputs as tensors.

    PYTHONPATH=build/python tests/python/torch_values.py
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("harness", "cli"):
    sys.path.insert(0, str(HERE.parent / folder))
import harness  # noqa: E402
from harness import check  # noqa: E402
import onnx_writer as onnx  # noqa: E402

try:
    import torch
except ImportError:
    harness.skip("PyTorch is not installed")
import ree  # noqa: E402
from ree import tensors  # noqa: E402


def identity(dtype):
    x, y = onnx.port("x", dtype, ["n", "m"]), onnx.port("y", dtype, ["n", "m"])
    return onnx.model([onnx.node("Identity", ["x"], ["y"])], [x], [y], opset=21)


def test_types():
    torch.manual_seed(1)
    for name in ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"):
        dtype = getattr(torch, name)
        with ree.Session(identity(tensors.NUMBERS[name])) as session:
            for shape in ((3, 5), (0, 4), (1, 1)):
                x = torch.randint(0, 2 if name == "bool" else 100, shape).to(dtype)
                y = session.run({"x": x})["y"]
                check(isinstance(y, torch.Tensor) and y.dtype == dtype and y.shape == x.shape and torch.equal(x, y),
                      f"{name} {shape}: {y}")
            x = torch.randint(0, 2, (6, 4)).to(dtype)
            check(torch.equal(session.run({"x": x.t()})["y"], x.t()), f"{name}, transposed")
            check(torch.equal(session.run({"x": x[::2]})["y"], x[::2]), f"{name}, strided")


def test_no_copies():
    with ree.Session(identity(onnx.FLOAT)) as session:
        x = torch.randn(3, 4, requires_grad=True)
        inputs = tensors.Inputs(1)
        inputs.set(0, tensors.ffi.NULL, x, session.inputs[0])
        address = int(tensors.ffi.cast("uintptr_t", inputs.structs[0].data))
        check(address == x.data_ptr(), "the input was copied")
        y = session.run({"x": x})["y"]
        check(torch.equal(x, y) and not y.requires_grad, "a parameter")
    y += 1
    check(torch.equal(x.detach() + 1, y), "an output can be changed and outlives its session")
    try:
        with ree.Session(identity(onnx.FLOAT)) as session:
            session.run({"x": torch.zeros(2, 2, dtype=torch.complex64)})
        check(False, "complex numbers were accepted")
    except ree.UnsupportedError as e:
        check("input 'x'" in str(e) and "complex64" in str(e), str(e))


test_types()
test_no_copies()
sys.exit(harness.finish())
