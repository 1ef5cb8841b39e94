#!/usr/bin/env python3
"""The proof of causality allows a NaN instead of a row's value, and relies on operators to
propagate NaN. Checks this with a NaN in each place of each float input, for every operator of
graph/causality/rules.c that computes or moves floats. (Those that give numbers of other types are
not proved with an input that may be NaN.)"""

import itertools
import math
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
INT32, FLOAT16, BFLOAT16 = 6, 10, 16  # of onnx.proto
DOMAINS = b"".join(onnx.chunk(8, onnx.chunk(1, name) + onnx.number(2, 1)) for name in ("com.microsoft", "ree"))

# Operators whose output elements depend on the same element of each input; others mix a row's
# elements.
PAIRS = {"Add", "Sum", "Sub", "Mul", "Div", "Min", "Max"}
# Operators with more inputs, which are constant, and attributes; a NaN spreads over its row.
BY_ROW = {
    "Softmax": ([], {"axis": -1}), "ReduceSum": (["last"], {}), "ReduceMean": (["last"], {}),
    "ReduceMax": (["last"], {}), "ReduceMin": (["last"], {}), "ReduceProd": (["last"], {}), "ReduceL1": (["last"], {}),
    "ReduceL2": (["last"], {}), "ReduceSumSquare": (["last"], {}),
}
# Rules that do not allow an input that may be NaN, or that have no float input.
WITHOUT_NAN = ("compare", "logic", "logic_not", "constant_node", "shape", "constant_of_shape", "range")


def rows():
    """Returns (domain, operator, rule, argument of the rule) for each entry of the table."""
    found = re.findall(r'\{(""|MS|"ree.internal"|"ree"), "(\w+)", [^{}]*?ree_causality_(\w+),\s*(\w+),\s*["O]', RULES.read_text())
    check(len(found) > 80, f"{len(found)} rules are found")
    return [({'""': "", "MS": "com.microsoft"}.get(domain, domain.strip('"')), op, rule, arg) for domain, op, rule, arg in found]


def cases(others):
    """Yields a test of each operator that is not in `others`."""
    for domain, op, rule, arg in rows():
        if domain == "ree.internal" or (domain, op) in others or arg in ("REE_LOSES_NAN", "REE_IS_NAN"):
            continue
        name = f"{domain}:{op}"
        if op in PAIRS:
            yield name, domain, op, ["x", "other"], {}, False
            yield name + ":second", domain, op, ["other", "x"], {}, False
        elif op in BY_ROW:
            more, attributes = BY_ROW[op]
            yield name, domain, op, ["x", *more], attributes, True
        elif op == "Pow":
            yield name, domain, op, ["x", "two"], {}, False
        elif rule == "unary":
            yield name, domain, op, ["x"], {}, False
        elif rule not in WITHOUT_NAN:
            check(False, f"{name} is not run with a NaN")


def model(path, cases):
    nodes, outputs = [], []
    for i, (_, domain, op, inputs, attributes, _) in enumerate(cases):
        nodes.append(onnx.node(op, inputs, [f"y{i}"], name=f"n{i}", domain=domain, attributes=attributes))
        outputs.append(onnx.port(f"y{i}", onnx.FLOAT, None))
    consts = [onnx.floats("other", [ROWS, WIDTH], [0.5 * k - 2 for k in range(ROWS * WIDTH)]),
              onnx.floats("two", [], [2.0]), onnx.tensor("last", onnx.INT64, [1], struct.pack("<q", -1))]
    inputs = [onnx.port("x", onnx.FLOAT, [ROWS, WIDTH])]
    path.write_bytes(onnx.model(nodes, inputs, outputs, consts, OPSET) + DOMAINS)


def is_nan(value):
    return value != value


def grid(*sizes):
    """Returns the indices of a tensor's elements, in order."""
    return list(itertools.product(*map(range, sizes)))


class Case:
    """An operator with operands of its own. Of each float input, every element in turn is NaN; the other
    inputs are constant. Then each element of the output for which `spread` is true must be NaN.

    inputs: (shape, spread) of a float input; (type, shape, values) of another constant; None: absent.
    spread(at, out): `at` is the index of the NaN, `out` the index of an element of the output.
    n_outputs, output: the number of outputs, and the one to check.
    exactly: the output's other elements are not NaN.
    then: the type to which a Cast node converts the output; None: no such node."""

    def __init__(self, domain, op, inputs, out_shape, n_outputs=1, output=0, exactly=False, then=None, **attributes):
        self.domain, self.op, self.inputs, self.out_shape = domain, op, inputs, out_shape
        self.n_outputs, self.output, self.exactly, self.then = n_outputs, output, exactly, then
        self.attributes = attributes
        self.label = f"{domain}:{op} {attributes or ''}"


def value(k):
    return 0.5 * (k % 5 - 2)  # some are 0, whose product with NaN must be NaN too


def bytes_of(shape):
    """Returns a constant of type uint8."""
    return onnx.UINT8, shape, bytes(37 * k % 256 for k in range(math.prod(shape)))


def ints(*values):
    return onnx.INT64, [len(values)], values


def same(at, out):
    return out == at


def same_row(at, out):
    return out[-2] == at[-2]


def same_column(at, out):
    return out[-1] == at[-1]


def everywhere(at, out):
    return True


def products():
    x, matrix, scale = ([ROWS, WIDTH], same_row), ([WIDTH, WIDTH], same_column), ([WIDTH], same_column)
    shape = x[0]
    yield Case("", "MatMul", [x, matrix], shape)
    yield Case("", "Gemm", [x, matrix, scale], shape)
    transposed = ([WIDTH, WIDTH], lambda at, out: out[1] == at[0])
    yield Case("", "Gemm", [x, transposed, ([1, WIDTH], same_column)], shape, transB=1, alpha=0.5, beta=2.0)
    yield Case("", "LayerNormalization", [x, scale, scale], shape, axis=-1)
    yield Case("", "RMSNormalization", [x, scale], shape, axis=-1)
    for domain in ("", "com.microsoft"):
        yield Case(domain, "SimplifiedLayerNormalization", [x, scale], shape, axis=-1)
    bias = ([WIDTH], everywhere)  # part of what is normalised
    yield Case("com.microsoft", "SkipLayerNormalization", [x, x, scale, scale, bias], shape)
    yield Case("com.microsoft", "SkipSimplifiedLayerNormalization", [x, x, scale, bias], shape)
    for op in ("BiasGelu", "FastGelu"):
        yield Case("com.microsoft", op, [(shape, same), scale], shape)
    x3 = ([1, ROWS, WIDTH], same)
    yield Case("com.microsoft", "BiasAdd", [x3, scale, x3], x3[0])
    for domain, bits in itertools.product(("com.microsoft", "ree"), (4, 8)):
        scales = ([2 * WIDTH], lambda at, out: out[1] == at[0] // 2)
        yield Case(domain, "MatMulNBits", [([1, 32], same_row), bytes_of([WIDTH, 2, 2 * bits]), scales], [1, WIDTH],
                   K=32, N=WIDTH, bits=bits, block_size=16)
    # Output i reads inputs i - 4, i - 2 and i.
    x = ([1, 2, 7], lambda at, out: out[2] - at[2] in (0, 2, 4))
    weights = ([3, 2, 3], lambda at, out: out[1] == at[0] and out[2] >= 2 * (2 - at[2]))
    bias = ([3], lambda at, out: out[1] == at[0])
    yield Case("", "Conv", [x, weights, bias], [1, 3, 7], pads=[4, 0], dilations=[2])
    x = ([1, 6, WIDTH], lambda at, out: out[1] >= at[1] and out[2] == at[2])
    yield Case("", "CumSum", [x, (onnx.INT64, [], [1])], x[0])


def attentions():
    """Keys and values later than the query are excluded; their NaNs may reach the output or not."""
    n, past, size = 3, 2, 4  # tokens of the run and of the cache; elements of a head

    def query(at, out):
        return out[1] == at[1] and out[2] // size == at[2] // size

    def key(at, out):
        return out[1] >= at[1]

    def element(at, out):
        return out[1] >= at[1] and out[2] % size == at[2] % size

    x, cache = [1, n, size], [1, 1, past, size]
    caches = [(cache, everywhere), (cache, lambda at, out: out[2] % size == at[3])]
    mask = ([n, n], lambda at, out: out[1] == at[0] and at[1] <= at[0])
    qkv = [(x, query), (x, key), (x, element)]
    heads = {"q_num_heads": 1, "kv_num_heads": 1}
    yield Case("", "Attention", [*qkv, mask], x, is_causal=1, **heads)
    yield Case("", "Attention", [*qkv, None, *caches], x, n_outputs=3, is_causal=1, **heads)

    # Two heads of queries, and one of keys and values.
    def lengths(n):
        return [(INT32, [1], [past + n - 1]), (INT32, [1], [past + n])]

    def packed(at, out):
        return query(at, out) if at[2] < 2 * size else key(at, out) if at[2] < 3 * size else element(at, out)

    y, heads = [1, n, 2 * size], {"num_heads": 2, "kv_num_heads": 1}
    separate = [(y, query), *qkv[1:], *caches, *lengths(n)]
    # Row past + i of the tables is that of token i: its query, and its key for the queries from it on.
    table = ([past + n, size // 2], lambda at, out: at[0] >= past and out[1] >= at[0] - past)
    yield Case("com.microsoft", "GroupQueryAttention", separate, y, n_outputs=3, **heads)
    yield Case("com.microsoft", "GroupQueryAttention", [*separate, table, table], y, n_outputs=3, do_rotary=1, **heads)
    yield Case("com.microsoft", "GroupQueryAttention", [([1, 2, 4 * size], packed), None, None, *caches, *lengths(2)],
               [1, 2, 2 * size], n_outputs=3, **heads)


def rotary():
    n, size, positions = 3, 8, [4, 0, 2]
    for interleaved in (0, 1):
        def pair(i, interleaved=interleaved):
            return i // 2 if interleaved else i % (size // 2)

        x = ([1, 1, n, size], lambda at, out, pair=pair: out[2] == at[2] and pair(out[3]) == pair(at[3]))
        table = ([5, size // 2], lambda at, out, pair=pair: positions[out[2]] == at[0] and pair(out[3]) == at[1])
        by_token = ([1, n, size // 2], lambda at, out, pair=pair: out[2] == at[1] and pair(out[3]) == at[2])
        ids = (onnx.INT64, [1, n], positions)
        yield Case("", "RotaryEmbedding", [x, table, table, ids], x[0], interleaved=interleaved)
        yield Case("", "RotaryEmbedding", [x, by_token, by_token], x[0], interleaved=interleaved)
        yield Case("com.microsoft", "RotaryEmbedding", [x, ids, table, table], x[0], interleaved=interleaved)


def moves():
    """Operators that copy elements and do not change the others."""
    shape = [ROWS, WIDTH]
    x = (shape, same)
    chosen = [k % 3 != 0 for k in range(ROWS * WIDTH)]

    def is_chosen(at):
        return chosen[at[0] * WIDTH + at[1]]

    same_place = (shape, lambda at, out: out[-2:] == at)
    condition = (onnx.BOOL, shape, bytes(chosen))
    first, second = ((shape, lambda at, out, side=side: out == at and is_chosen(at) == side) for side in (True, False))
    below = (shape, lambda at, out: out == (at[0] + ROWS, at[1]))
    right = (shape, lambda at, out: out == (at[0], at[1] - 1))
    lower = (shape, lambda at, out: out == (at[0] - 1, at[1]))
    upper = (shape, lambda at, out: out == at and at[1] >= at[0])
    of_table = (shape, lambda at, out: (2, 0)[out[0]] == at[0] and out[1] == at[1])
    scales = ([ROWS, 1], lambda at, out: (2, 0)[out[0]] == at[0])
    for domain, op, inputs, out_shape, more in (
            ("", "Identity", [x], shape, {}),
            ("", "Reshape", [same_place, ints(1, 1, *shape)], [1, 1, *shape], {}),
            ("", "Squeeze", [([1, *shape], lambda at, out: out == at[1:]), ints(0)], shape, {}),
            ("", "Unsqueeze", [same_place, ints(0)], [1, *shape], {}),
            ("", "Transpose", [(shape, lambda at, out: out == at[::-1])], shape[::-1], {"perm": [1, 0]}),
            ("", "Expand", [([WIDTH], same_column), ints(*shape)], shape, {}),
            ("", "Concat", [x, below], [2 * ROWS, WIDTH], {"axis": 0}),
            ("", "Split", [right, ints(1, WIDTH - 1)], [ROWS, WIDTH - 1], {"axis": 1, "n_outputs": 2, "output": 1}),
            ("", "Slice", [lower, ints(1), ints(ROWS)], [ROWS - 1, WIDTH], {}),
            ("", "Gather", [of_table, ints(2, 0)], [2, WIDTH], {}),
            ("", "GatherND", [(shape, lambda at, out: at == (2, 1)), (onnx.INT64, [1, 2], [2, 1])], [1], {}),
            ("com.microsoft", "GatherBlockQuantized", [bytes_of([ROWS, 16]), ints(2, 0), scales], [2, 16],
             {"bits": 8, "block_size": 16}),
            ("", "Where", [condition, first, second], shape, {}),
            ("", "Cast", [x], shape, {"to": FLOAT16, "then": onnx.FLOAT}),
            ("", "Cast", [x], shape, {"to": BFLOAT16, "then": onnx.FLOAT}),
            ("", "Cast", [x], shape, {"to": onnx.FLOAT}),
            ("", "Trilu", [upper], shape, {"upper": 1}),
            ("com.microsoft", "Trilu", [upper], shape, {"upper": 1})):
        yield Case(domain, op, inputs, out_shape, exactly=True, **more)


def constant(name, dtype, shape, values):
    codes = {onnx.INT64: "q", INT32: "i", onnx.FLOAT: "f"}
    code = codes.get(dtype, "B")
    return onnx.tensor(name, dtype, shape, struct.pack(f"<{len(values)}{code}", *values))


def operands(args, folder):
    """Runs a model with one node for each float input of each case. Run k has a NaN in element k of each of
    these inputs that has so many elements; the first run has none. The model's output has the elements of
    all results, because writing many files takes long. Returns the operators."""
    all_cases = [*products(), *attentions(), *rotary(), *moves()]
    nodes, inputs, tests = [], [], []
    constants = [constant("flat", onnx.INT64, [1], [-1])]
    for c, case in enumerate(all_cases):
        for i, given in enumerate(case.inputs):
            if given and len(given) == 3:
                constants.append(constant(f"c{c}.{i}", *given))
            elif given:
                constants.append(onnx.floats(f"c{c}.{i}", given[0], list(map(value, range(math.prod(given[0]))))))
        for i, given in enumerate(case.inputs):
            if not given or len(given) == 3:
                continue
            name, last = f"{c}.{i}", f"between{c}.{i}" if case.then else f"y{c}.{i}"
            names = [("x" if j == i else "c") + f"{c}.{j}" if other else "" for j, other in enumerate(case.inputs)]
            results = [last if j == case.output else f"more{name}.{j}" for j in range(case.n_outputs)]
            inputs.append(onnx.port("x" + name, onnx.FLOAT, given[0]))
            nodes.append(onnx.node(case.op, names, results, "n" + name, case.domain, case.attributes))
            if case.then:
                nodes.append(onnx.node("Cast", results, ["y" + name], "cast" + name, attributes={"to": case.then}))
            nodes.append(onnx.node("Reshape", ["y" + name, "flat"], ["flat" + name], "flat" + name))
            tests.append((name, case, i, *given))
    nodes.append(onnx.node("Concat", ["flat" + test[0] for test in tests], ["y"], "all", attributes={"axis": 0}))
    outputs = [onnx.port("y", onnx.FLOAT, None)]
    (folder / "operands.onnx").write_bytes(onnx.model(nodes, inputs, outputs, constants, OPSET) + DOMAINS)
    for k in range(-1, max(math.prod(shape) for _, _, _, shape, _ in tests)):
        options = []
        for name, _, _, shape, _ in tests:
            file = folder / f"{'x'.join(map(str, shape))}.npy"
            npy.save(file, "<f4", shape, [NAN if e == k else value(e) for e in range(math.prod(shape))])
            options += ["--input", f"x{name}={file}"]
        done = harness.call(args.ree_run, folder / "operands.onnx", *options, "--output-dir", folder / "out")
        if not check(done.returncode == 0, done.stderr):
            break
        values = iter(npy.load(folder / "out" / "y.npy")[2])
        for _, case, i, shape, spread in tests:
            at = grid(*shape)[k] if 0 <= k < math.prod(shape) else None
            what = f"{case.label}: input {i} is {f'NaN at {at}' if at else 'finite'}, the output"
            for out in grid(*case.out_shape):
                got = next(values)
                if at and spread(at, out):
                    check(is_nan(got), f"{what} is {got} at {out}")
                elif not at or case.exactly:
                    check(not is_nan(got), f"{what} is NaN at {out}")
        check(next(values, None) is None, "the output has as many elements as the results")
    return {(case.domain, case.op) for case in all_cases}


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
    (folder / "q.onnx").write_bytes(onnx.model(nodes, [onnx.port("x", onnx.FLOAT, [k + 1, k])],
                                               [onnx.port(f"y{i}", onnx.FLOAT, None) for i in range(len(labels))],
                                               consts, OPSET) + DOMAINS)
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
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        all_cases = list(cases(operands(args, folder)))
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
