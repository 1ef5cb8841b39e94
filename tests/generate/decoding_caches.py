#!/usr/bin/env python3
"""Writes small models with unusual kv caches, and runs the program decoding_caches on each."""

import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "harness"), str(HERE.parent / "cli")]
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

VOCAB = 16
PAST, PRESENT = "past_key_values.0.key", "present.0.key"


def i64(name, values):
    return onnx.tensor(name, onnx.INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))


def op(op_type, inputs, output, **attributes):
    return onnx.node(op_type, inputs, [output], name=output, attributes=attributes)


def write(path, nodes, summed):
    """`nodes` make the new cache of the rows `row`, which are the ids. The logits are a different multiple, for
    each vocabulary entry, of the sum over `summed` after each token of the call."""
    consts = [i64("n1", [1]), i64("n2", [2]), i64("last", [-1]), i64("before_all", [-2**62]), onnx.floats("half", [], [0.5]),
              onnx.floats("zero", [], [0.0]), onnx.floats("constant_row", [1, 1, 1, 1], [3.0]),
              onnx.floats("table", [1, 1, VOCAB], [1 / (i + 3) for i in range(VOCAB)])]
    before = [op("Cast", ["input_ids"], "ids", to=1), op("Unsqueeze", ["ids", "n1"], "ids3"),
              op("Unsqueeze", ["ids3", "last"], "row")]
    after = [op("ReduceSum", [summed, "n2"], "sum", keepdims=0), op("Unsqueeze", ["ids", "n2"], "column"),
             op("Mul", ["column", "zero"], "nothing"), op("Add", ["nothing", "sum"], "sums"),
             op("Mul", ["sums", "table"], "logits")]
    path.write_bytes(onnx.model(
        before + nodes + after,
        [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"]), onnx.port(PAST, onnx.FLOAT, ["batch", 1, "past", 1])],
        [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", VOCAB]), onnx.port(PRESENT, onnx.FLOAT, ["batch", 1, "total", 1])],
        consts, 17))
    return path


def write_query(path):
    """GroupQueryAttention, which is proved to be causal. Its lengths are data, so it copies caches in pages."""
    caches = [(PAST, PRESENT), ("past_key_values.0.value", "present.0.value")]
    consts = [i64("n1", [1]), i64("n2", [2]), onnx.floats("row_of", [VOCAB, 8], [i % 7 - 3.0 for i in range(8 * VOCAB)]),
              onnx.floats("table", [8, VOCAB], [i % 5 / 4 for i in range(8 * VOCAB)])]
    nodes = [op("Gather", ["row_of", "input_ids"], "row"), op("Shape", [PAST], "past_shape"),
             op("Gather", ["past_shape", "n2"], "past_length", axis=0), op("Shape", ["input_ids"], "shape"),
             op("Gather", ["shape", "n1"], "length", axis=0), op("Add", ["past_length", "length"], "total"),
             op("Sub", ["total", "n1"], "lengths"), op("Cast", ["lengths"], "lengths32", to=6),
             op("Cast", ["total"], "total32", to=6),
             onnx.node("GroupQueryAttention", ["row", "row", "row", *(past for past, _ in caches), "lengths32", "total32"],
                       ["attended", *(present for _, present in caches)], name="attention", domain="com.microsoft",
                       attributes={"num_heads": 1, "kv_num_heads": 1}),
             op("MatMul", ["attended", "table"], "logits")]
    path.write_bytes(onnx.model(
        nodes,
        [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])]
        + [onnx.port(past, onnx.FLOAT, ["batch", 1, "past", 8]) for past, _ in caches],
        [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", VOCAB])]
        + [onnx.port(present, onnx.FLOAT, ["batch", 1, "total", 8]) for _, present in caches],
        consts, 17) + onnx.chunk(8, onnx.chunk(1, "com.microsoft") + onnx.number(2, 1)))
    return path


def run(program, kind, path):
    done = subprocess.run([program, kind, path], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{path.name}: {done.returncode}: {done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    args = parser.parse_args()
    appended = op("Concat", [PAST, "row"], PRESENT, axis=2)
    keys = op("Concat", [PAST, "constant_row"], "keys", axis=2)
    joined = op("Concat", [PAST, "row"], "joined", axis=2)
    models = {
        "replaces": {
            "decayed": ([joined, op("Mul", ["joined", "half"], PRESENT)], PRESENT),
            "turned": ([joined, op("Slice", ["joined", "last", "before_all", "n2", "last"], PRESENT)], PRESENT),
            "prepended": ([op("Concat", ["row", PAST], PRESENT, axis=2)], PRESENT)},
        "appends": {
            "appended": ([appended], PRESENT),
            "constant_row_first": ([keys, appended], "keys"),
            "constant_row_last": ([appended, keys], "keys")},
    }
    with tempfile.TemporaryDirectory() as folder:
        for kind, of_kind in models.items():
            for name, (nodes, summed) in of_kind.items():
                run(args.program, kind, write(pathlib.Path(folder) / f"{name}.onnx", nodes, summed))
        run(args.program, "proved", write_query(pathlib.Path(folder) / "query.onnx"))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
