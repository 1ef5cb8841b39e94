#!/usr/bin/env python3
"""Compares the time of Session.run of the Python package with that of ONNX Runtime, for models so small that the
time is that of the call. Prints the median of interleaved rounds, and the ratio.

    PYTHONPATH=build/python tools/python_overhead.py      # needs numpy and onnxruntime
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy
import onnxruntime

import ree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "cli"))
import onnx_writer as onnx  # noqa: E402


def one_node(shape):
    x, y = onnx.port("x", onnx.FLOAT, shape), onnx.port("y", onnx.FLOAT, shape)
    return onnx.model([onnx.node("Relu", ["x"], ["y"])], [x], [y], opset=17)


def seconds(run, n):
    began = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - began) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=2000, help="runs per round (default 2000)")
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    print(f"ree {ree.__version__}, ONNX Runtime {onnxruntime.__version__}, one thread each")
    for shape in ([4, 4], [64, 64], [256, 256]):
        model, x = one_node(shape), numpy.ones(shape, "f4")
        theirs = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        with ree.Device("cpu", n_threads=1) as device, ree.Session(model, device) as ours:
            assert ours.run({"x": x})["y"].tobytes() == theirs.run(None, {"x": x})[0].tobytes()
            runs = (lambda: ours.run({"x": x}), lambda: theirs.run(None, {"x": x}))
            times = [[seconds(run, args.runs) for run in runs] for _ in range(args.rounds)]
        ree_us, ort_us = (statistics.median(column) * 1e6 for column in zip(*times))
        print(f"Relu of {shape[0]} x {shape[1]}: ree {ree_us:.1f} us, ONNX Runtime {ort_us:.1f} us, "
              f"ratio {ree_us / ort_us:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
