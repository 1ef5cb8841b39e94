#!/usr/bin/env python3
"""The proof of causality allows a NaN instead of a row's value, and relies on operators to
propagate NaN. Checks every operator for which graph/causality/rules.c states this, with a NaN in
each place of each input."""

import pathlib
import re
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "models")]
import harness  # noqa: E402
import npy  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

RULES = HERE.parents[1] / "graph" / "causality" / "rules.c"
ROWS, WIDTH, OPSET = 3, 4, 24
NAN = float("nan")

# Operators whose output elements depend on the same element of each input; others mix a row's
# elements.
PAIRS = {"Add", "Sum", "Sub", "Mul", "Div", "Min", "Max", "BiasGelu", "FastGelu"}
MATRIX = [0.0 if i == j else float(i - j) for i in range(WIDTH) for j in range(WIDTH)]
# Operators with more inputs, which are constant, and attributes; a NaN spreads over its row.
BY_ROW = {
    "Softmax": ([], {"axis": -1}), "ReduceSum": (["last"], {}), "ReduceMean": (["last"], {}), "ReduceMax": (["last"], {}),
    "ReduceMin": (["last"], {}), "ReduceProd": (["last"], {}), "ReduceL1": (["last"], {}), "ReduceL2": (["last"], {}),
    "ReduceSumSquare": (["last"], {}), "MatMul": (["matrix"], {}), "Gemm": (["matrix"], {}),
    "LayerNormalization": (["scale"], {"axis": -1}), "RMSNormalization": (["scale"], {"axis": -1}),
    "SimplifiedLayerNormalization": (["scale"], {"axis": -1}),
}
# Operators with a NaN in each of two inputs in turn; the second input is `other`.
SKIP = {"SkipLayerNormalization": ["scale"], "SkipSimplifiedLayerNormalization": ["scale"]}
# Checked separately, or of another kind: moves, masks, numbers that are not float.
ELSEWHERE = {"BiasAdd", "Pow", "Where", "Cast", "MatMulNBits", "CumSum", "Conv", "Attention", "RotaryEmbedding",
             "GroupQueryAttention"}


def rows():
    """Returns (domain, operator, rule, argument of the rule) for each entry of the table."""
    found = re.findall(r'\{(""|MS|"ree.internal"|"ree"), "(\w+)", [^{}]*?ree_causality_(\w+),\s*(\w+)\}', RULES.read_text())
    check(len(found) > 80, f"{len(found)} rules are found")
    return [({'""': "", "MS": "com.microsoft"}.get(domain, domain.strip('"')), op, rule, arg) for domain, op, rule, arg in found]


def cases():
    for domain, op, rule, arg in rows():
        if domain == "ree.internal" or op in ELSEWHERE or arg in ("REE_LOSES_NAN", "REE_IS_NAN"):
            continue
        name = f"{domain}:{op}"
        if op in PAIRS:
            yield name, domain, op, ["x", "bias3" if op.endswith("Gelu") else "other"], {}, False
            if op not in ("BiasGelu", "FastGelu"):
                yield name + ":second", domain, op, ["other", "x"], {}, False
        elif op in BY_ROW:
            more, attributes = BY_ROW[op]
            yield name, domain, op, ["x", *more], attributes, True
        elif op in SKIP:
            yield name, domain, op, ["x", "other", *SKIP[op]], {}, True
            yield name + ":second", domain, op, ["other", "x", *SKIP[op]], {}, True
        elif rule == "unary":
            yield name, domain, op, ["x"], {}, False
        elif rule not in ("compare", "logic", "logic_not", "identity", "constant_node", "shape", "constant_of_shape", "range", "reshape",
                          "transpose", "squeeze", "unsqueeze", "expand", "concat", "split", "slice", "gather", "gather_nd",
                          "gather_block_quantized", "trilu"):
            check(False, f"{name}: the test does not know the rule {rule}")
    yield "Pow", "", "Pow", ["x", "two"], {}, False
    yield "BiasAdd", "com.microsoft", "BiasAdd", ["x3", "bias3", "other3"], {}, False


def model(path, cases):
    nodes, outputs = [], []
    for i, (_, domain, op, inputs, attributes, _) in enumerate(cases):
        nodes.append(onnx.node(op, inputs, [f"y{i}"], name=f"n{i}", domain=domain, attributes=attributes))
        outputs.append(onnx.port(f"y{i}", onnx.FLOAT, None))
    three = [1, ROWS, WIDTH]
    nodes.insert(0, onnx.node("Reshape", ["x", "three"], ["x3"]))
    consts = [onnx.floats("other", [ROWS, WIDTH], [0.5 * k - 2 for k in range(ROWS * WIDTH)]),
              onnx.floats("other3", three, [0.5 * k - 2 for k in range(ROWS * WIDTH)]), onnx.floats("bias3", [WIDTH], [1.0] * WIDTH),
              onnx.floats("matrix", [WIDTH, WIDTH], MATRIX), onnx.floats("scale", [WIDTH], [0.0, 1.0, 2.0, -1.0]),
              onnx.floats("two", [], [2.0]), onnx.tensor("last", onnx.INT64, [1], struct.pack("<q", -1)),
              onnx.tensor("three", onnx.INT64, [3], struct.pack("<3q", *three))]
    inputs = [onnx.port("x", onnx.FLOAT, [ROWS, WIDTH])]
    contrib = onnx.chunk(8, onnx.chunk(1, "com.microsoft") + onnx.number(2, 1))
    path.write_bytes(onnx.model(nodes, inputs, outputs, consts, OPSET) + contrib)


def is_nan(value):
    return value != value


def attention(args, folder):
    """A NaN in a key or value makes each row NaN that sees it. Earlier rows may be NaN or not."""
    for which in ("k", "v"):
        n, width = 6, 4
        inputs = [onnx.port(name, onnx.FLOAT, [1, n, width]) for name in "qkv"]
        node = onnx.node("Attention", ["q", "k", "v"], ["y"], name="a",
                         attributes={"q_num_heads": 1, "kv_num_heads": 1, "is_causal": 1})
        sums = onnx.node("CumSum", ["v", "axis"], ["sums"], name="c")
        axis = onnx.tensor("axis", onnx.INT64, [], struct.pack("<q", 1))
        outputs = [onnx.port("y", onnx.FLOAT, None), onnx.port("sums", onnx.FLOAT, None)]
        (folder / "a.onnx").write_bytes(onnx.model([node, sums], inputs, outputs, [axis], OPSET))
        for at in range(n):
            given = []
            for name in "qkv":
                x = [0.125 * (i % 7) for i in range(n * width)]
                if name == which:
                    x[at * width:(at + 1) * width] = [NAN] * width
                npy.save(folder / f"{name}.npy", "<f4", [1, n, width], x)
                given += ["--input", f"{name}={folder / name}.npy"]
            done = harness.call(args.ree_run, folder / "a.onnx", *given, "--output-dir", folder / "out")
            check(done.returncode == 0, done.stderr)
            y, sums_ = (npy.load(folder / "out" / f"{name}.npy")[2] for name in ("y", "sums"))
            for row in range(at, n):
                check(all(map(is_nan, y[row * width:(row + 1) * width])), f"Attention: row {row} sees a NaN of {which} at {at}")
                check(which == "k" or all(map(is_nan, sums_[row * width:(row + 1) * width])), f"CumSum: row {row}, a NaN at {at}")


def quantised(args, folder):
    """A NaN in any place of a row of A makes the row of MatMulNBits NaN, whole blocks and the last, shorter one,
    and no other row. Row i has its NaN at i; the last row has none."""
    k, n, block = 80, 3, 32
    blocks = -(-k // block)
    nodes, consts, labels = [], [], []
    for domain, bits in (("com.microsoft", 4), ("com.microsoft", 8), ("ree", 4), ("ree", 8)):
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        nodes.append(onnx.node("MatMulNBits", ["x", f"w{bits}", f"s{bits}"], [f"y{len(labels)}"], name=f"n{len(labels)}",
                               domain=domain, attributes=attributes))
        labels.append(f"{domain}:MatMulNBits, {bits} bits")
    for bits in (4, 8):
        size = block * bits // 8
        consts += [onnx.tensor(f"w{bits}", onnx.UINT8, [n, blocks, size], bytes(i % 256 for i in range(n * blocks * size))),
                   onnx.floats(f"s{bits}", [n * blocks], [0.0 if i == 1 else 0.5 for i in range(n * blocks)])]
    domains = b"".join(onnx.chunk(8, onnx.chunk(1, name) + onnx.number(2, 1)) for name in ("com.microsoft", "ree"))
    (folder / "q.onnx").write_bytes(onnx.model(nodes, [onnx.port("x", onnx.FLOAT, [k + 1, k])],
                                               [onnx.port(f"y{i}", onnx.FLOAT, None) for i in range(len(labels))],
                                               consts, OPSET) + domains)
    x = [NAN if i == j else 0.25 * (j % 9 - 4) for i in range(k + 1) for j in range(k)]
    npy.save(folder / "q.npy", "<f4", [k + 1, k], x)
    done = harness.call(args.ree_run, folder / "q.onnx", "--input", folder / "q.npy", "--output-dir", folder / "out")
    if not check(done.returncode == 0, done.stderr):
        return
    for i, label in enumerate(labels):
        values = npy.load(folder / "out" / f"y{i}.npy")[2]
        for row in range(k):
            check(all(map(is_nan, values[row * n:(row + 1) * n])), f"{label}: a NaN at {row} becomes {values[row * n:(row + 1) * n]}")
        check(not any(map(is_nan, values[k * n:])), f"{label}: a row without NaN becomes {values[k * n:]}")


def main():
    parser = harness.parser(__doc__)
    args = parser.parse_args()
    all_cases = list(cases())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        attention(args, folder)
        quantised(args, folder)
        model(folder / "all.onnx", all_cases)
        for at in range(ROWS * WIDTH):
            x = [0.25 * k for k in range(ROWS * WIDTH)]
            x[at] = NAN
            npy.save(folder / "x.npy", "<f4", [ROWS, WIDTH], x)
            done = harness.call(args.ree_run, folder / "all.onnx", "--input", folder / "x.npy", "--output-dir", folder / "out")
            if not check(done.returncode == 0, done.stderr):
                break
            for i, (label, _, _, _, _, by_row) in enumerate(all_cases):
                values = npy.load(folder / "out" / f"y{i}.npy")[2]
                width = len(values) // ROWS
                row = at // WIDTH
                told = values[row * width:(row + 1) * width] if by_row else [values[at]]
                check(all(map(is_nan, told)), f"{label}: a NaN at {at} becomes {told}")
    return harness.finish()


sys.exit(main())
