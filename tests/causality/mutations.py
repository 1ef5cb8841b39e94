#!/usr/bin/env python3
"""Small decoders in each form that the proof of causality supports. causality_mutate changes them
at random."""

import pathlib
import random
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
VOCAB, HIDDEN, HEADS, SIZE = 12, 8, 2, 4
UINT8 = 2


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.consts, self.inputs, self.outputs = [], [], [], []
        self.input("input_ids", onnx.INT64, ["batch", "sequence"])
        self.outputs.append(onnx.port("logits", onnx.FLOAT, ["batch", "sequence", VOCAB]))
        self.n = 0

    def input(self, name, dtype, shape):
        self.inputs.append(onnx.port(name, dtype, shape))
        return name

    def op(self, op_type, *inputs, out=None, n_out=1, domain="", **attributes):
        self.n += 1
        names = out if isinstance(out, list) else [out or f"{op_type}.{self.n}"]
        names += [f"{names[0]}.{i}" for i in range(1, n_out) if not isinstance(out, list)]
        self.nodes.append(onnx.node(op_type, inputs, names, name=names[0], domain=domain, attributes=attributes))
        return names[0] if len(names) == 1 else names

    def ints(self, *values, shape=None):
        name = f"ints.{len(self.consts)}"
        self.consts.append(onnx.tensor(name, onnx.INT64, [len(values)] if shape is None else shape,
                                       struct.pack(f"<{len(values)}q", *values)))
        return name

    def floats(self, values, shape):
        name = f"floats.{len(self.consts)}"
        self.consts.append(onnx.floats(name, shape, values))
        return name

    def weights(self, *shape):
        n = 1
        for d in shape:
            n *= d
        return self.floats([self.random.uniform(-1, 1) for _ in range(n)], list(shape))

    def scalar(self, value):
        return self.ints(value, shape=[]) if isinstance(value, int) else self.floats([value], [])

    def cache(self, kind):
        self.outputs.append(onnx.port(f"present.0.{kind}", onnx.FLOAT, ["batch", HEADS, "total", SIZE]))
        return self.input(f"past_key_values.0.{kind}", onnx.FLOAT, ["batch", HEADS, "past", SIZE])

    def embed(self):
        x = self.op("Gather", self.weights(VOCAB, HIDDEN), "input_ids")
        return self.op("LayerNormalization", x, self.weights(HIDDEN), self.weights(HIDDEN), axis=-1)

    def quantised(self):
        """A table whose rows are padded to a block of 16."""
        self.consts.append(onnx.tensor("table", UINT8, [VOCAB, 16], self.random.randbytes(VOCAB * 16)))
        self.consts.append(onnx.tensor("zeros", UINT8, [VOCAB, 1], self.random.randbytes(VOCAB)))
        x = self.op("GatherBlockQuantized", "table", "input_ids", self.weights(VOCAB, 1), "zeros",
                    domain="com.microsoft", bits=8, block_size=16)
        x = self.op("Slice", x, self.ints(0), self.ints(HIDDEN), self.ints(-1))
        return self.op("LayerNormalization", x, self.weights(HIDDEN), self.weights(HIDDEN), axis=-1)

    def project(self, x, n=HIDDEN):
        return self.op("Add", self.op("MatMul", x, self.weights(HIDDEN, n)), self.weights(n))

    def heads(self, x):
        return self.op("Transpose", self.op("Reshape", x, self.ints(0, 0, HEADS, SIZE)), perm=[0, 2, 1, 3])

    def weigh(self, q, k, v, mask, additive=False):
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.scalar(0.5))
        if additive:
            bias = self.op("Where", mask, self.scalar(0.0), self.scalar(-float("inf")))
            scores = self.op("Add", scores, bias)
        else:
            scores = self.op("Where", mask, scores, self.scalar(-float("inf")))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, -1, HIDDEN))

    def head(self, x):
        gate = self.project(x, HIDDEN)
        x = self.op("Add", x, self.op("Mul", gate, self.op("Sigmoid", gate)))
        self.op("MatMul", x, self.weights(HIDDEN, VOCAB), out="logits")

    def size(self, x, axis):
        return self.op("Gather", self.op("Shape", x), self.scalar(axis), axis=0)

    def write(self, path, opset, metadata=()):
        contrib = onnx.chunk(8, onnx.chunk(1, "com.microsoft") + onnx.number(2, 1))
        path.write_bytes(onnx.model(self.nodes, self.inputs, self.outputs, self.consts, opset, metadata) + contrib)
        return path


def without_cache(path):
    """A decoder without a cache: positions by Range, masks by Trilu, sums by CumSum, a causal
    convolution."""
    g = Graph(1)
    x = g.embed()
    n = g.size("input_ids", 1)
    square = g.op("Concat", g.op("Unsqueeze", n, g.ints(0)), g.op("Unsqueeze", n, g.ints(0)), axis=0)
    g.consts.append(onnx.floats("minus_infinity", [], [-float("inf")]))
    above = g.op("Trilu", g.op("Expand", "minus_infinity", square), g.scalar(1), upper=1)
    below = g.op("Range", g.scalar(0), n, g.scalar(1))
    mask = g.op("LessOrEqual", below, g.op("Unsqueeze", below, g.ints(1)))
    y = g.weigh(*(g.heads(g.project(x)) for _ in range(3)), mask)
    x = g.op("Add", x, y)
    products = g.op("MatMul", x, g.op("Transpose", x, perm=[0, 2, 1]))
    x = g.op("Add", x, g.op("MatMul", g.op("Where", mask, products, g.scalar(0.0)), g.project(x)))
    x = g.op("Add", x, g.op("MatMul", g.op("Trilu", products, upper=0), g.project(x)))
    x = g.op("Add", x, g.op("MatMul", g.op("Softmax", g.op("Add", products, above), axis=-1), g.project(x)))
    x = g.op("Add", g.op("CumSum", g.project(x), g.scalar(1)), x)
    wave = g.op("Transpose", x, perm=[0, 2, 1])
    wave = g.op("Conv", wave, g.weights(HIDDEN, HIDDEN, 3), pads=[2, 0])
    x = g.op("Add", x, g.op("Transpose", wave, perm=[0, 2, 1]))
    scale = g.op("ReduceMax", x, axes=[-1], keepdims=1)
    g.head(g.op("Tanh", g.op("Sub", x, scale)))
    return g.write(path, 17)


def steps_with_cache(path):
    g = Graph(2)
    g.input("position_ids", onnx.INT64, ["batch", "sequence"])
    g.input("attention_mask", onnx.INT64, ["batch", "total"])
    x = g.embed()
    x = g.op("Add", x, g.op("Gather", g.weights(64, HIDDEN), "position_ids"))
    q, k, v = (g.heads(g.project(x)) for _ in range(3))
    k = g.op("Concat", g.cache("key"), k, out="present.0.key", axis=2)
    v = g.op("Concat", g.cache("value"), v, out="present.0.value", axis=2)
    total = g.op("Add", g.size("past_key_values.0.key", 2), g.size("input_ids", 1))
    keys = g.op("Range", g.scalar(0), total, g.scalar(1))
    mask = g.op("LessOrEqual", keys, g.op("Unsqueeze", "position_ids", g.ints(2)))
    seen = g.op("Unsqueeze", g.op("Cast", "attention_mask", to=9), g.ints(1))
    mask = g.op("Unsqueeze", g.op("And", mask, seen), g.ints(1))
    g.head(g.op("Add", x, g.weigh(q, k, v, mask, additive=True)))
    return g.write(path, 17)


def attention(path):
    g = Graph(3)
    x = g.embed()
    q, k, v = (g.project(x) for _ in range(3))
    y = g.op("Attention", q, k, v, "", g.cache("key"), g.cache("value"), out=["y", "present.0.key", "present.0.value"],
             q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)[0]
    g.head(g.op("Add", x, y))
    return g.write(path, 23)


def group_query(path):
    g = Graph(4)
    g.input("attention_mask", onnx.INT64, ["batch", "total"])
    x = g.quantised()
    q, k, v = (g.project(x) for _ in range(3))
    ones = g.op("Cast", "attention_mask", to=6)
    g.consts.append(onnx.tensor("one32", 6, [1], struct.pack("<i", 1)))
    lengths = g.op("Sub", g.op("ReduceSum", ones, g.ints(1), keepdims=0), "one32")
    total = g.op("Cast", g.size("attention_mask", 1), to=6)
    cos, sin = g.weights(64, SIZE // 2), g.weights(64, SIZE // 2)
    y = g.op("GroupQueryAttention", q, k, v, g.cache("key"), g.cache("value"), lengths, total, cos, sin,
             out=["y", "present.0.key", "present.0.value"], domain="com.microsoft", num_heads=HEADS, kv_num_heads=HEADS,
             do_rotary=1)[0]
    g.head(g.op("Add", x, y))
    return g.write(path, 17)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--mutate", required=True, help="the program causality_mutate")
    parser.add_argument("--count", type=int, default=300, help="number of changed models of each form")
    parser.add_argument("--grown", type=int, default=20, help="number of models of each form to which random nodes are added")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models = [make(folder / f"{make.__name__}.onnx") for make in (without_cache, steps_with_cache, attention, group_query)]
        done = harness.call(args.ree_run, "export", STORIES, "-o", folder / "steps.onnx", "--opset", 17, "--colocate-tensors")
        check(done.returncode == 0, done.stderr)
        done = subprocess.run([args.mutate, str(args.count), str(args.grown), *map(str, models)], text=True, stderr=subprocess.STDOUT,
                              stdout=subprocess.PIPE)
        print(done.stdout)
        check(done.returncode == 0, "changed models that are said to be causal are")
        # Large models: a few changes.
        done = subprocess.run([args.mutate, str(args.count // 6), "0", str(folder / "steps.onnx"), str(STORIES)], text=True,
                              stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
        print(done.stdout)
        check(done.returncode == 0, "changed stories that are said to be causal are")
    return harness.finish()


sys.exit(main())
