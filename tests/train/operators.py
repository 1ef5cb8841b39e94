"""A training step with every operator through which ree follows the samples of a batch (graph/share/rules.c). Each
chain of operators ends in a sum over the samples, which becomes the next value of a state of its own."""

import pathlib
import re
import struct

import steps
from steps import onnx

BATCH = 7
ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOAT, INT64, BOOL, FLOAT16 = onnx.FLOAT, onnx.INT64, onnx.BOOL, 10


class Step:
    """A step that is being written: nodes, constants, inputs, and one state for each chain."""

    def __init__(self, opset=20):
        self.opset = opset
        self.nodes, self.constants, self.inputs, self.outputs, self.states = [], [], [], [], {}
        self.used = set()
        self.counter = 0

    def name(self):
        self.counter += 1
        return f"v{self.counter}"

    def op(self, op_type, *inputs, n_outputs=1, **attributes):
        outputs = [self.name() for _ in range(n_outputs)]
        inputs = [i if isinstance(i, str) else self.ints(i) for i in inputs]
        self.nodes.append(onnx.node(op_type, inputs, outputs, attributes=attributes))
        self.used.add(op_type)
        return outputs[0] if n_outputs == 1 else outputs

    def ints(self, values):
        name, is_list = self.name(), isinstance(values, (list, tuple))
        values = list(values) if is_list else [values]
        self.constants.append(onnx.tensor(name, INT64, [len(values)] if is_list else [], struct.pack(f"<{len(values)}q", *values)))
        return name

    def floats(self, shape, values):
        name = self.name()
        self.constants.append(onnx.floats(name, shape, values))
        return name

    def state(self, label, value, shape, dtype=FLOAT):
        """`value` becomes the next value of a state."""
        n = 1
        for size in shape:
            n *= size
        name = f"{len(self.states)}.{label}"
        raw = b"\0" * n * {FLOAT: 4, INT64: 8, FLOAT16: 2}[dtype]
        self.constants.append(onnx.tensor(name, dtype, shape, raw))
        self.inputs.append(onnx.port(name, dtype, shape))
        self.outputs.append(onnx.port(f"{name}.next", dtype, shape))
        self.nodes.append(onnx.node("Identity", [value], [f"{name}.next"]))
        self.states[name] = f"{name}.next"

    def sum(self, label, value, shape, axes=(0,), **options):
        """The sum over axes, which must have the samples."""
        self.state(label, self.op("ReduceSum", value, list(axes), keepdims=0), shape, **options)

    def write(self, path, data, loss):
        metadata = {**steps.METADATA, "data": list(data), "states": self.states, "parameters": [], "loss": "loss"}
        self.nodes.append(onnx.node("ReduceMean", [loss], ["loss"], attributes={"keepdims": 0}))
        ports = [onnx.port(name, dtype, shape) for name, (dtype, shape) in data.items()]
        import json
        path.write_bytes(onnx.model(self.nodes, [*ports, *self.inputs], [onnx.port("loss", FLOAT, []), *self.outputs],
                                    self.constants, opset=self.opset, metadata=[("ree.training", json.dumps(metadata))]))
        return path


DATA = {"x": (FLOAT, [BATCH, 4, 6]), "k": (INT64, [BATCH, 4]), "long": (FLOAT, [BATCH, 100, 5]), "image": (FLOAT, [BATCH, 2, 9, 8])}


def samples(n):
    """n samples for DATA."""
    made = {}
    for seed, (name, (dtype, shape)) in enumerate(DATA.items()):
        size = n
        for d in shape[1:]:
            size *= d
        numbers = steps.numbers(size, seed + 5)
        made[name] = (steps.Tensor("<i8", (n, *shape[1:]), [v % 4 for v in numbers]) if dtype == INT64 else
                      steps.Tensor("<f4", (n, *shape[1:]), [(v - 32768) / 16384 for v in numbers]))
    return made


def elementwise(s):
    positive = s.op("Add", s.op("Abs", "x"), s.floats([], [0.5]))
    unary = {"x": "Neg Abs Exp Erf Floor Ceil Round Sign Tanh Sigmoid Relu Softplus Softsign Sin Cos Tan Sinh Cosh Atan Asinh "
                  "LeakyRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish ThresholdedRelu Shrink Identity",
             positive: "Log Sqrt Reciprocal"}
    for value, names in unary.items():
        for name in names.split():
            s.sum(name, s.op(name, value), [4, 6])
    small = s.op("Sigmoid", "x")
    for name in ("Asin", "Acos", "Atanh"):
        s.sum(name, s.op(name, small), [4, 6])
    s.sum("Acosh", s.op("Acosh", s.op("Add", positive, s.floats([], [1.0]))), [4, 6])
    row, each = s.floats([6], [0.5, -1, 2, 3, 4, 5]), s.floats([BATCH, 1, 6], [i / 4 + 0.25 for i in range(BATCH * 6)])
    for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum"):
        s.sum(name, s.op(name, "x", row), [4, 6])
        s.sum(f"{name} of a constant for each sample", s.op(name, each, "x"), [4, 6])
    s.sum("Pow", s.op("Pow", positive, row), [4, 6])
    s.sum("Mod", s.op("Mod", "x", row, fmod=1), [4, 6])
    s.sum("PRelu", s.op("PRelu", "x", row), [4, 6])
    s.sum("Clip", s.op("Clip", "x", s.floats([], [-0.5]), s.floats([], [0.5])), [4, 6])
    bools = {name: s.op(name, "x", row) for name in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")}
    for name in ("And", "Or", "Xor"):
        bools[name] = s.op(name, bools["Less"], bools["GreaterOrEqual"])
    bools["Not"] = s.op("Not", bools["Less"])
    bools["IsNaN"], bools["IsInf"] = s.op("IsNaN", s.op("Log", "x")), s.op("IsInf", s.op("Exp", s.op("Exp", s.op("Exp", "long"))))
    for name, value in bools.items():
        s.sum(name, s.op("Cast", value, to=INT64), [100, 5] if name == "IsInf" else [4, 6], dtype=INT64)
    s.sum("Where", s.op("Where", bools["Less"], "x", each), [4, 6])
    bits = s.op("Cast", "k", to=13)  # uint64
    three = s.op("Cast", s.ints(3), to=13)
    for name, value in {"BitShift": s.op("BitShift", bits, three, direction="LEFT"), "BitwiseNot": s.op("BitwiseNot", "k"),
                        "BitwiseAnd": s.op("BitwiseAnd", "k", s.ints(1)), "BitwiseOr": s.op("BitwiseOr", "k", s.ints(8)),
                        "BitwiseXor": s.op("BitwiseXor", "k", s.ints(5))}.items():
        s.sum(name, s.op("Cast", value, to=INT64), [4], dtype=INT64)


def movement(s):
    s.sum("Reshape", s.op("Reshape", "x", [BATCH, 24]), [24])
    s.sum("Reshape, joined with positions", s.op("Reshape", "x", [BATCH * 4, 6]), [6])
    s.sum("Reshape, behind others", s.op("Reshape", s.op("Transpose", "x", perm=[1, 0, 2]), [2, 2, BATCH * 6]), [2, 2], axes=[2])
    s.sum("Flatten", s.op("Flatten", "image", axis=1), [144])
    s.sum("Transpose", s.op("Transpose", "x", perm=[2, 0, 1]), [6, 4], axes=[1])
    s.sum("Unsqueeze", s.op("Unsqueeze", "x", [0, 2]), [1, 1, 4, 6], axes=[1])
    s.sum("Squeeze", s.op("Squeeze", s.op("Unsqueeze", "x", [1]), [1]), [4, 6])
    s.sum("Expand", s.op("Expand", s.op("Unsqueeze", "x", [1]), [1, 3, 4, 6]), [3, 4, 6])
    ones = s.op("Expand", s.floats([1, 1], [1.5]), [BATCH, 6])
    s.sum("Expand of a constant", s.op("Mul", s.op("Unsqueeze", ones, [1]), "x"), [4, 6])
    count = s.op("Range", s.ints(3), s.ints(3 + BATCH * 24 * 2), s.ints(2))
    by_element = s.op("Cast", s.op("Reshape", count, [BATCH, 4, 6]), to=FLOAT)
    s.sum("Range", s.op("Mul", by_element, "x"), [4, 6])
    turned = s.op("Transpose", s.op("Reshape", s.op("Squeeze", s.op("Unsqueeze", count, [0]), [0]), [BATCH, 24]), perm=[1, 0])
    s.sum("Transpose of a constant", s.op("Mul", s.op("Cast", turned, to=FLOAT), s.op("Transpose", s.op("Flatten", "x"), perm=[1, 0])),
          [24], axes=[1])
    s.sum("a constant that is computed whole",
          s.op("Mul", s.op("CumSum", s.op("Cast", s.op("Reshape", count, [BATCH, 4, 6]), to=FLOAT), s.ints(0)), "x"), [4, 6])
    both = s.op("Concat", "x", s.op("Expand", s.floats([1, 1, 1], [0.5]), [BATCH, 2, 6]), axis=1)
    s.sum("Concat", both, [6, 6])
    first, second = s.op("Split", "x", [1, 3], axis=1, n_outputs=2)
    s.sum("Split", first, [1, 6])
    s.sum("Split, second", second, [3, 6])
    s.sum("Slice", s.op("Slice", "x", [1, 0], [3, 100], [1, 0]), [2, 6])
    s.sum("Pad", s.op("Pad", "x", [0, 1, 0, 0, 0, 2]), [5, 8])
    table = s.floats([4, 3], [i / 8 for i in range(12)])
    s.sum("Gather", s.op("Gather", table, "k", axis=0), [4, 3])
    s.sum("Gather of samples", s.op("Gather", "x", [[0, 2], [5, 1]][0], axis=2), [4, 2])
    s.sum("Gather of a number", s.op("Gather", "x", s.ints(1), axis=1), [6])
    at = s.op("Unsqueeze", "k", [2])
    s.sum("GatherElements", s.op("GatherElements", "x", at, axis=2), [4, 1])
    zeros = s.op("Expand", s.floats([], [0.0]), [BATCH, 4, 6])
    s.sum("ScatterElements", s.op("ScatterElements", zeros, at, s.op("Slice", "x", [0], [1], [2]), axis=2), [4, 6])
    s.sum("ScatterElements, add", s.op("ScatterElements", "x", at, s.op("Slice", "x", [1], [2], [2]), axis=2, reduction="add"), [4, 6])
    s.state("ScatterND", s.op("ScatterND", s.floats([4, 6], [0.125] * 24), at, "x", reduction="add"), [4, 6])
    s.sum("Trilu", s.op("Trilu", "x", upper=0), [4, 6])
    s.sum("CumSum", s.op("CumSum", "x", s.ints(1)), [4, 6])
    places = s.op("Reshape", by_element, [BATCH, 24])
    s.nodes.append(onnx.node("TopK", [places, s.ints([1])], ["", "only the indices"], attributes={"axis": 1}))
    s.sum("a second output of a constant", s.op("Mul", s.op("Cast", s.op("Unsqueeze", "only the indices", [2]), to=FLOAT), "x"), [4, 6])
    best, where = s.op("TopK", "x", [2], axis=2, n_outputs=2)
    s.sum("TopK", best, [4, 2])
    s.sum("TopK, indices", where, [4, 2], dtype=INT64)
    s.sum("ArgMax", s.op("ArgMax", "x", axis=1, keepdims=0), [6], dtype=INT64)
    s.sum("ArgMin", s.op("ArgMin", "x", axis=2, keepdims=1), [4, 1], dtype=INT64)


def reductions(s):
    positive = s.op("Add", s.op("Abs", "x"), s.floats([], [0.5]))
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                 "ReduceLogSum", "ReduceLogSumExp"):
        s.sum(f"{name} of samples", s.op(name, positive, [1], keepdims=0), [6])
        s.sum(f"{name} of samples, kept", s.op(name, positive, [2], keepdims=1), [4, 1])
    s.state("ReduceSum", s.op("ReduceSum", "long", [0, 1], keepdims=1), [1, 1, 5])
    s.state("ReduceSum of all", s.op("ReduceSum", "long", keepdims=0), [])
    s.state("ReduceMean", s.op("ReduceMean", "long", [0, 2], keepdims=0), [100])
    s.state("ReduceMean of all", s.op("ReduceMean", "long", keepdims=1), [1, 1, 1])
    s.state("ReduceSum of integers", s.op("ReduceSum", "k", [0, 1], keepdims=0), [], dtype=INT64)
    half = s.op("Cast", "long", to=FLOAT16)
    s.state("ReduceSum of float16", s.op("ReduceSum", half, [0, 1], keepdims=0), [5], dtype=FLOAT16)
    s.state("ReduceMean of float16", s.op("ReduceMean", half, [0, 1], keepdims=0), [5], dtype=FLOAT16)
    s.sum("Softmax", s.op("Softmax", "x", axis=-1), [4, 6])
    s.sum("LogSoftmax", s.op("LogSoftmax", "x", axis=1), [4, 6])
    s.state("ReduceSum with NaN", s.op("ReduceSum", s.op("Log", "long"), [0, 1], keepdims=0), [5])
    big = s.op("Mul", "long", s.floats([], [1e38]))
    s.state("ReduceSum with infinities", s.op("ReduceSum", s.op("Mul", big, big), [0, 1], keepdims=0), [5])
    tiny = s.op("Mul", "long", s.floats([], [1e-38]))
    s.state("ReduceSum of subnormal numbers", s.op("ReduceSum", s.op("Mul", tiny, s.floats([], [-0.01])), [0, 1], keepdims=0), [5])
    s.state("ReduceSum of -0", s.op("ReduceSum", s.op("Mul", "long", s.floats([], [-0.0])), [0, 1], keepdims=0), [5])
    nothing = s.op("Slice", "x", [0], [0], [1])
    s.state("ReduceMean of no terms", s.op("ReduceMean", nothing, [0, 1], keepdims=0), [6])
    s.state("ReduceSum of no terms", s.op("ReduceSum", nothing, [0, 1], keepdims=0), [6])
    total = s.op("ReduceSum", "x", [0], keepdims=1)
    s.sum("a sum that samples read", s.op("Mul", s.op("Sub", "x", total), "x"), [4, 6])
    numbers = s.op("ReduceSum", "long", [0], keepdims=0)
    many = s.op("Slice", s.op("Reshape", numbers, [500]), [0], [BATCH], [0])
    s.sum("a sum as long as the batch", s.op("Mul", s.op("Reshape", many, [BATCH, 1, 1]), "x"), [4, 6])


def products(s):
    rows = s.op("Reshape", "long", [BATCH * 100, 5])
    weight = s.floats([5, 3], [i / 4 - 1 for i in range(15)])
    forward = s.op("MatMul", rows, weight)
    s.state("MatMul over samples", s.op("MatMul", s.op("Transpose", rows, perm=[1, 0]), forward), [5, 3])
    s.state("MatMul over samples, a vector", s.op("MatMul", s.op("ReduceSum", forward, [1], keepdims=0), rows), [5])
    s.state("MatMul over samples, a matrix and a vector",
            s.op("MatMul", s.op("Transpose", rows, perm=[1, 0]), s.op("ReduceSum", forward, [1], keepdims=0)), [5])
    s.state("MatMul over samples, with a constant",
            s.op("MatMul", s.op("Transpose", rows, perm=[1, 0]), s.op("Expand", s.floats([1, 1], [0.75]), [BATCH * 100, 2])), [5, 2])
    s.state("MatMul with no columns", s.op("MatMul", s.op("Transpose", rows, perm=[1, 0]), s.op("Slice", rows, [0], [0], [1])), [5, 0])
    s.state("MatMul with no rows", s.op("MatMul", s.op("Transpose", s.op("Slice", rows, [0], [0], [1]), perm=[1, 0]), rows), [0, 5])
    half = s.op("Cast", rows, to=FLOAT16)
    s.state("MatMul of float16", s.op("MatMul", s.op("Transpose", half, perm=[1, 0]), half), [5, 5], dtype=FLOAT16)
    s.sum("MatMul", forward, [3])
    s.sum("MatMul of a vector", s.op("MatMul", "x", s.floats([6], [1, 2, 3, 4, 5, 6])), [4])
    s.sum("MatMul of samples", s.op("MatMul", "x", s.op("Transpose", "x", perm=[0, 2, 1])), [4, 4])
    s.sum("MatMul with a matrix for each sample", s.op("MatMul", "x", s.op("Expand", s.floats([1, 1, 1], [0.5]), [BATCH, 6, 2])), [4, 2])
    s.sum("MatMul of columns", s.op("MatMul", s.floats([2, 5], list(range(10))), s.op("Transpose", rows, perm=[1, 0])), [2], axes=[1])
    s.sum("MatMul of a vector and columns", s.op("MatMul", s.floats([5], list(range(5))), s.op("Transpose", rows, perm=[1, 0])), [],
          axes=[0])
    heads = s.op("Unsqueeze", s.op("Transpose", rows, perm=[1, 0]), [1])  # 5 x 1 x 700
    left = s.op("Mul", heads, s.floats([1, 3, 1], [1, -2, 3]))
    right = s.op("Transpose", s.op("Mul", heads, s.floats([5, 2, 1], [i / 8 for i in range(10)])), perm=[0, 2, 1])
    s.state("MatMul over samples, several matrices", s.op("MatMul", left, right), [5, 3, 2])
    square = s.floats([5, 5], [(i * 3 % 7 - 3) / 4 for i in range(25)])
    s.sum("Einsum", s.op("Einsum", "long", weight, equation="bti, ij -> bjt"), [3, 100])
    s.sum("Einsum of three", s.op("Einsum", "long", square, weight, equation="bti,ij,jk->tbk"), [100, 3], axes=[1])
    s.sum("Einsum, a constant for each sample", s.op("Einsum", "x", s.op("Expand", s.floats([1, 1], [1.5]), [BATCH, 4]), equation="bti,bt->bi"),
          [6])
    s.sum("Einsum, a constant for all samples", s.op("Einsum", "x", s.floats([1, 4], [1, 2, 3, 4]), equation="bti,bt->bi"), [6])
    halves = s.op("Einsum", "long", weight, equation="bti,ij->btj")
    turned = s.op("Transpose", "long", perm=[2, 1, 0])
    for equation, other, shape in (("bti,btj->ij", halves, [5, 3]), ("bti,btj->ji", halves, [3, 5]), ("bti,btj->tji", halves, [100, 3, 5]),
                                   ("bti,itb->i", turned, [5]), ("bti,itb->", turned, [])):
        s.state(f"Einsum over samples, {equation}", s.op("Einsum", "long", other, equation=equation), shape)
    kernel = s.floats([3, 2, 3, 3], [(i * 7 % 11 - 5) / 8 for i in range(54)])
    made = s.op("Conv", "image", kernel, strides=[2, 1], pads=[1, 1, 1, 1])  # 5 x 8
    s.sum("Conv", made, [3, 5, 8])
    # The gradient of its weights, as ree.export_training writes it.
    gradient = s.op("Conv", s.op("Transpose", "image", perm=[1, 0, 2, 3]), s.op("Transpose", made, perm=[1, 0, 2, 3]), strides=[1, 1],
                    dilations=[2, 1], pads=[1, 1, 1, 1])
    s.state("Conv over samples", gradient, [2, 3, 3, 3])
    plain = s.op("Conv", "image", kernel)  # 7 x 6
    s.state("Conv over samples, no pads", s.op("Conv", s.op("Transpose", "image", perm=[1, 0, 2, 3]),
                                               s.op("Transpose", plain, perm=[1, 0, 2, 3])), [2, 3, 3, 3])
    doubled = s.op("Concat", "image", s.op("Neg", "image"), axis=1)
    for groups, label in ((2, "groups"), (4, "depthwise")):
        per_group, outputs = 4 // groups, 2 * groups
        few = s.floats([outputs, per_group, 3, 3], [(i * 5 % 13 - 6) / 8 for i in range(outputs * per_group * 9)])
        grouped = s.op("Conv", doubled, few, pads=[1, 0, 1, 0], group=groups)  # 9 x 6
        s.sum(f"Conv, {label}", grouped, [outputs, 9, 6])
        turned = s.op("Reshape", doubled, [BATCH, groups, per_group, 9, 8])
        turned = s.op("Reshape", s.op("Transpose", turned, perm=[2, 1, 0, 3, 4]), [per_group, groups * BATCH, 9, 8])
        s.state(f"Conv over samples, {label}",
                s.op("Conv", turned, s.op("Transpose", grouped, perm=[1, 0, 2, 3]), pads=[1, 0, 1, 0], group=groups),
                [per_group, outputs, 3, 3])
    s.sum("ConvTranspose", s.op("ConvTranspose", made, kernel, strides=[2, 1], pads=[1, 1, 1, 1]), [2, 9, 8])
    best, where = s.op("MaxPool", "image", kernel_shape=[2, 2], n_outputs=2)
    s.sum("MaxPool", best, [2, 8, 7])
    s.sum("MaxPool, indices", where, [2, 8, 7], dtype=INT64)
    s.sum("AveragePool", s.op("AveragePool", "image", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), [2, 9, 8])
    s.sum("GlobalAveragePool", s.op("GlobalAveragePool", "image"), [2, 1, 1])
    s.sum("GlobalMaxPool", s.op("GlobalMaxPool", "image"), [2, 1, 1])
    two, half = s.floats([2], [0.5, 2]), s.floats([2], [0.25, 0.5])
    s.sum("BatchNormalization", s.op("BatchNormalization", "image", two, half, half, two), [2, 9, 8])
    s.sum("InstanceNormalization", s.op("InstanceNormalization", "image", two, half), [2, 9, 8])
    s.sum("GroupNormalization", s.op("GroupNormalization", "image", s.floats([1], [1.5]), s.floats([1], [0.5]), num_groups=1), [2, 9, 8])
    s.sum("LayerNormalization with a scale for each sample",
          s.op("LayerNormalization", "x", s.floats([BATCH, 1, 6], [i / 8 for i in range(BATCH * 6)]), axis=-1), [4, 6])
    s.sum("LayerNormalization", s.op("LayerNormalization", "x", s.floats([6], [1, 2, 3, 4, 5, 6]), axis=-1), [4, 6])


def all_operators(path):
    """Writes the step, and returns the operators that it has."""
    s = Step()
    for part in (elementwise, movement, reductions, products):
        part(s)
    s.write(path, DATA, "x")
    return s.used


def rules():
    """The operators that graph/share/rules.c has rules for."""
    text = (ROOT / "graph" / "share" / "rules.c").read_text()
    table = re.search(r"elementwise_ops\[\] = \{(.*?)\};", text, re.S)[1]
    return set(re.findall(r'"(\w+)"', table)) | set(re.findall(r'^    \{"(\w+)", \w+\},$', text, re.M))
