#!/usr/bin/env python3
"""The two hashes of a model: compared with an independent implementation of NUMERICS.md, section 9;
which changes alter them and which do not; a checkpoint's folder and its exports have equal
hashes."""

import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import sealing  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
NONE = 0xFFFFFFFF



def hashes(ree_run, path):
    done = subprocess.run([ree_run, "inspect", str(path), "--hash", "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: {path}: {done.stderr}")
    found = json.loads(done.stdout)
    return found["graph_sha256"], found["weights_sha256"]


# NUMERICS.md, section 9

def u32(*n):
    return struct.pack(f"<{len(n)}I", *n)


def i64(*n):
    return struct.pack(f"<{len(n)}q", *n)


def text(s):
    return u32(len(s.encode())) + s.encode()


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def type_of(dtype, dims, sequence=0, optional=0):
    """Encodes a type. Each dimension is an integer or a symbol."""
    out = u32(sequence, optional, dtype) + u32(NONE if dims is None else len(dims))
    for d in dims or []:
        out += (i64(-1) + text(d)) if isinstance(d, str) else (i64(d) + text(""))
    return out


def port(name, *of):
    return text(name) + type_of(*of)


def tree(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else bytes(32)
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha(b"ree-tree/1\0", tree(leaves[:half]), tree(leaves[half:]))


def weight(name, dtype, dims, data):
    chunks = [data[i:i + (1 << 20)] for i in range(0, len(data), 1 << 20)]
    return sha(b"ree-weight/1\0", text(name), u32(dtype, len(dims)), i64(*dims), struct.pack("<Q", len(chunks)),
               *[sha(c) for c in chunks])


def root(leaves):
    return sha(b"ree-root/1\0", struct.pack("<Q", len(leaves)), tree(leaves)).hex()


def against_the_text(ree_run, folder):
    """The example in NUMERICS.md."""
    path = folder / "example.onnx"
    data = struct.pack("<2f", 1, -0.0)
    path.write_bytes(onnx.model([onnx.node("Add", ["x", "w"], ["y"], name="no matter")],
                                [onnx.port("x", onnx.FLOAT, ["n", 2])], [onnx.port("y", onnx.FLOAT, ["n", 2])],
                                [onnx.tensor("w", onnx.FLOAT, [2], data)]))
    graph = sha(b"ree-graph/1\0", u32(1), text(""), i64(17),           # operator sets
                u32(1), port("x", 1, ["n", 2]),                        # inputs: value 0
                u32(1), text("w"), u32(1, 1, 1), i64(2),               # initializers: value 1
                u32(1), text(""), text("Add"), i64(17), u32(0), u32(2, 0, 1), u32(1, 2),
                u32(1), text("y"), u32(2), type_of(1, ["n", 2])).hex()  # outputs
    weights = root([weight("w", 1, [2], data)])
    check(hashes(ree_run, path) == (graph, weights), "a graph of one node")
    numerics = (HERE.parents[1] / "src" / "repops" / "NUMERICS.md").read_text()
    check(graph in numerics and weights in numerics, f"NUMERICS.md gives this example: {graph} {weights}")

    # Inputs with default values, in a subgraph too: their numbers follow the graph.
    def with_defaults(version):
        branch = onnx.graph([onnx.node("Add", ["inner", "w"], ["sum"])], [], [onnx.port("sum", onnx.FLOAT, [2])],
                            [onnx.tensor("inner", onnx.FLOAT, [2], data)])
        made = onnx.model([onnx.node("If", ["go"], ["y"], attributes={"then_branch": branch, "else_branch": branch})],
                          [onnx.port("go", onnx.BOOL, []), onnx.port("w", onnx.FLOAT, [2])],
                          [onnx.port("y", onnx.FLOAT, [2])], [onnx.tensor("w", onnx.FLOAT, [2], data)])
        path.write_bytes(b"\x08" + bytes([version]) + made[2:])
        return hashes(ree_run, path)[0]

    def encoded(*defaults):
        def branch(first):  # the graph of a branch, whose values are numbered from `first` on
            return (u32(0), u32(1), text("inner"), u32(first, 1, 1), i64(2), u32(1), text(""), text("Add"), i64(17),
                    u32(0), u32(2, first, 1), u32(1, first + 1), u32(1), text("sum"), u32(first + 1), type_of(1, [2]))
        return sha(b"ree-graph/1\0", u32(1), text(""), i64(17), u32(2), port("go", 9, []), port("w", 1, [2]),
                   u32(1), text("w"), u32(1, 1, 1), i64(2),
                   u32(1), text(""), text("If"), i64(17), u32(2), text("else_branch"), u32(5), *branch(2),
                   text("then_branch"), u32(5), *branch(4), u32(1, 0), u32(1, 6),
                   u32(1), text("y"), u32(6), type_of(1, [2]), *defaults).hex()
    check(with_defaults(3) == encoded(), "constants of IR version 3")
    check(with_defaults(4) == encoded(u32(1, 1)), "default values of IR version 4")

    # Larger: a weight of several chunks, two integer attributes, an omitted input.
    big = bytes(range(256)) * (5 << 11)  # 2.5 MiB
    path.write_bytes(onnx.model(
        [onnx.node("Clip", ["b", "", "high"], ["c"], attributes={}),
         onnx.node("ReduceSum", ["c", "axes"], ["d"], attributes={"noop_with_empty_axes": 0, "keepdims": 1}),
         onnx.node("Mul", ["d", "x"], ["y"])],
        [onnx.port("x", onnx.FLOAT, None)], [onnx.port("y", onnx.FLOAT, [1])],
        [onnx.tensor("high", onnx.FLOAT, [], struct.pack("<f", 2)), onnx.tensor("b", onnx.FLOAT, [len(big) // 4], big),
         onnx.tensor("axes", onnx.INT64, [1], i64(0)), onnx.tensor("unused", onnx.INT64, [0], b"")]))
    graph = sha(b"ree-graph/1\0", u32(1), text(""), i64(17), u32(1), port("x", 1, None),
                u32(4), text("axes"), u32(1, 7, 1), i64(1), text("b"), u32(2, 1, 1), i64(len(big) // 4),
                text("high"), u32(3, 1, 0), text("unused"), u32(4, 7, 1), i64(0),
                u32(3),
                text(""), text("Clip"), i64(17), u32(0), u32(3, 2, NONE, 3), u32(1, 5),
                text(""), text("ReduceSum"), i64(17), u32(2), text("keepdims"), u32(2), i64(1),
                text("noop_with_empty_axes"), u32(2), i64(0), u32(2, 5, 1), u32(1, 6),
                text(""), text("Mul"), i64(17), u32(0), u32(2, 6, 0), u32(1, 7),
                u32(1), text("y"), u32(7), type_of(1, [1])).hex()
    weights = root([weight("axes", 7, [1], i64(0)), weight("b", 1, [len(big) // 4], big),
                    weight("high", 1, [], struct.pack("<f", 2)), weight("unused", 7, [0], b"")])
    check(hashes(ree_run, path) == (graph, weights), "several nodes and weights")


def attribute_tensor(name, value):
    return onnx.chunk(1, name) + onnx.chunk(5, value) + onnx.number(20, 4)


def attribute_graph(name, value):
    return onnx.chunk(1, name) + onnx.chunk(6, value) + onnx.number(20, 5)


def node_with(op_type, inputs, outputs, *attributes):
    return onnx.node(op_type, inputs, outputs) + b"".join(onnx.chunk(5, a) for a in attributes)


def attribute_type(name, value):
    return onnx.chunk(1, name) + onnx.chunk(14, value) + onnx.number(20, 13)


def attributes_and_types(ree_run, folder):
    """Attributes of the other kinds; sequences, optional values and both."""
    path = folder / "kinds.onnx"
    element = onnx.chunk(1, onnx.number(1, onnx.INT64))
    sequence = onnx.chunk(onnx.SEQUENCE, onnx.chunk(1, element))
    # In another order than that of the encoding, which sorts attributes by name.
    attributes = [attribute_type("g", onnx.chunk(onnx.OPTIONAL, onnx.chunk(1, sequence))),
                  attribute_type("h", sequence),
                  onnx.attribute("f", ["", "caf\xe9", "s"]), onnx.attribute("e", [3, -(1 << 62)]),
                  onnx.attribute("d", [0.5, -0.0, 1e-45]), onnx.attribute("c", "caf\xe9"),
                  onnx.attribute("b", -7), onnx.attribute("a", -1.5)]
    within = (), (onnx.SEQUENCE,), (onnx.OPTIONAL,), (onnx.SEQUENCE, onnx.OPTIONAL)
    path.write_bytes(onnx.model([node_with("Identity", ["x1"], ["y"], *attributes)],
                                [onnx.port(f"x{i}", onnx.FLOAT, ["n", 3], *w) for i, w in enumerate(within)],
                                [onnx.port("y", onnx.FLOAT, None, onnx.SEQUENCE)]))
    kinds = [(i in (1, 3), i in (2, 3)) for i in range(4)]  # (sequence, optional)
    graph = sha(b"ree-graph/1\0", u32(1), text(""), i64(17),
                u32(4), *[port(f"x{i}", 1, ["n", 3], *kind) for i, kind in enumerate(kinds)], u32(0),
                u32(1), text(""), text("Identity"), i64(17), u32(8),
                text("a"), u32(1), struct.pack("<f", -1.5), text("b"), u32(2), i64(-7),
                text("c"), u32(3), text("caf\xe9"),
                text("d"), u32(6), u32(3), struct.pack("<3f", 0.5, -0.0, 1e-45),
                text("e"), u32(7), u32(2), i64(3, -(1 << 62)),
                text("f"), u32(8), u32(3), text(""), text("caf\xe9"), text("s"),
                text("g"), u32(13), type_of(7, None, 1, 1), text("h"), u32(13), type_of(7, None, 1, 0),
                u32(1, 1), u32(1, 4), u32(1), text("y"), u32(4), type_of(1, None, 1, 0)).hex()
    found = hashes(ree_run, path)
    check(found == (graph, root([])), f"attributes and types: {found}, expected {graph}")
    # ree stores the strings of a list as C strings. A string with a NUL must be refused, or two graphs
    # would have equal hashes.
    path.write_bytes(onnx.model([onnx.node("Identity", ["x"], ["y"], attributes={"a": ["b\0c"]})],
                                [onnx.port("x", onnx.FLOAT, [1])], [onnx.port("y", onnx.FLOAT, [1])]))
    done = harness.call(ree_run, "inspect", path, "--hash")
    check(done.returncode == 1 and "has a string that contains a NUL byte" in done.stderr, f"a NUL in a list of strings: {done}")


def npy(folder, name, descr, shape, data):
    """Writes the input `name` as a file of NumPy. Returns the value of --input."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    path = folder / f"{name}.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    return f"{name}={path}"


def copies(ree_run, folder):
    """Files that differ only in what no hash covers have the same trace: the order of attributes, and hints of types, of
    which one is wrong in a branch that does not run or for a value that nothing reads."""
    def branch(output, nodes, hints):
        return (b"".join(onnx.chunk(1, node) for node in nodes) + onnx.chunk(2, output) + onnx.chunk(12, onnx.port(output, onnx.FLOAT, None))
                + b"".join(onnx.chunk(13, onnx.port(name, dtype, [3])) for name, dtype in hints))

    inputs = [npy(folder, "c", "|b1", (), b"\0"), npy(folder, "x", "<f4", (3,), struct.pack("<3f", 1, -2, 3)),
              npy(folder, "z", "<f4", (3,), struct.pack("<3f", 1, 2, -3))]

    def root_of(name, is_swapped, *hints):
        path, receipt = folder / f"{name}.onnx", folder / f"{name}.json"
        then = branch("t", [onnx.node("Relu", ["x"], ["a"]), onnx.node("Identity", ["a"], ["b"]), onnx.node("Neg", ["b"], ["m"]),
                            onnx.node("Neg", ["b"], ["n"]), onnx.node("Add", ["m", "n"], ["s"]), onnx.node("Neg", ["w"], ["v"]),
                            onnx.node("Add", ["s", "v"], ["t"])], [hint for hint in hints if hint[0] != "dead"])
        attributes = [attribute_graph("then_branch", then),
                      attribute_graph("else_branch", branch("e", [onnx.node("Abs", ["z"], ["e"])], ()))]
        dead = [onnx.port(name, dtype, [3]) for name, dtype in hints if name == "dead"]
        path.write_bytes(onnx.model([onnx.node("Identity", ["x"], ["dead"]),
                                     node_with("If", ["c"], ["y"], *(attributes[::-1] if is_swapped else attributes))],
                                    [onnx.port("c", onnx.BOOL, []), onnx.port("x", onnx.FLOAT, [3]), onnx.port("z", onnx.FLOAT, [3])],
                                    [onnx.port("y", onnx.FLOAT, None)], [onnx.floats("w", [3], [1, 2, 3])], value_info=dead))
        done = harness.call(ree_run, path, *[word for given in inputs for word in ("--input", given)], "--trace", folder / "t",
                            "--receipt-path", receipt)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        body = json.loads(receipt.read_text())["body"] if receipt.exists() else {}
        return body.get("model"), body.get("trace")

    plain = root_of("plain", False)
    for name, is_swapped, hints in (("swapped", True, ()), ("identity", False, [("a", onnx.FLOAT), ("b", onnx.INT64)]),
                                    ("merged", False, [("m", onnx.FLOAT), ("n", onnx.INT64)]),
                                    ("folded", False, [("v", onnx.INT64)]), ("dead", False, [("dead", onnx.INT64)])):
        found = root_of(name, is_swapped, *hints)
        check(plain[1] and found == plain, f"{name}: {found}, expected {plain}")


def bodies_that_do_not_run(ree_run, folder):
    """The shape and type of the output of a Loop or SequenceMap without iterations come from values of enclosing graphs, or
    from what the body declares for its outputs, which graph_sha256 covers. Hints for other values do not change them, nor
    do passes or the number of stages."""
    inputs = [npy(folder, "n", "<i8", (), struct.pack("<q", 0)), npy(folder, "x", "<f4", (2, 3), struct.pack("<6f", *range(6)))]

    def untyped(name):
        return onnx.chunk(1, name)

    def loop(nodes, returned, inner):
        given = [onnx.port("i", onnx.INT64, []), onnx.port("go", onnx.BOOL, [])]
        body = onnx.graph([*nodes, onnx.node("Identity", ["go"], ["on"])], given, [untyped("on"), returned], value_info=inner)
        return [onnx.node("Loop", ["n", ""], ["y"], attributes={"body": body})], untyped("y")

    def sequence_map(nodes, returned, inner):
        body = onnx.graph(nodes, [onnx.port("item", onnx.FLOAT, None)], [returned], value_info=inner)
        return [onnx.node("SequenceEmpty", [], ["none"]),
                onnx.node("SequenceMap", ["none"], ["mapped"], attributes={"body": body}),
                onnx.node("SequenceInsert", ["mapped", "t"], ["y"])], onnx.port("y", onnx.FLOAT, None, onnx.SEQUENCE)

    def run(name, op, body, *options, outer=(), inner=()):
        """Returns what is printed: the output, or an error without the node's number, which depends on the stage."""
        path = folder / f"{name}.onnx"
        last, output = op(*body, inner)
        sizes = [onnx.node("Shape", ["t"], ["sizes"]), onnx.node("Cast", ["sizes"], ["floats"], attributes={"to": onnx.FLOAT}),
                 onnx.node("Sqrt", ["floats"], ["roots"]), onnx.node("Cast", ["roots"], ["shape"], attributes={"to": onnx.INT64})]
        path.write_bytes(onnx.model([onnx.node("Neg", ["x"], ["s"]), onnx.node("MatMul", ["s", "w"], ["t"]), *sizes, *last],
                                    [onnx.port("n", onnx.INT64, []), onnx.port("x", onnx.FLOAT, ["a", "b"])], [output],
                                    [onnx.floats("w", [3, 3], range(9))], opset=19, value_info=outer))
        done = harness.call(ree_run, path, *[word for given in inputs for word in ("--input", given)], *options)
        return done.stdout.splitlines()[0] if done.returncode == 0 else done.stderr.split(" (")[-1]

    def hint(name):
        return [onnx.port(name, onnx.FLOAT, [7])]

    copy_of_t = onnx.node("Identity", ["t"], ["e"])
    made = [onnx.node("Neg", ["t"], ["d"]), onnx.node("Identity", ["d"], ["e"])]
    constant = [onnx.node("Constant", [], ["d"], attributes={"value_float": 1.0}), onnx.node("Identity", ["d"], ["e"])]
    one, unknown = "sequence of 1", "cannot insert float32 into a sequence of unknown"
    bodies = (("outer", [], untyped("t"), "[0,2,3]", one), ("copy", [copy_of_t], untyped("e"), "[0,2,3]", unknown),
              ("declared", [copy_of_t], onnx.port("e", onnx.FLOAT, None), "[0,2,3]", one),
              ("made", made, untyped("e"), "[0,2,3]", unknown), ("whole", made, onnx.port("e", onnx.FLOAT, [5]), "[0,5]", one),
              ("constant", constant, untyped("e"), "[0]", unknown),
              # The device may compute the shape, or another stage may.
              ("shaped", [onnx.node("Expand", ["x", "shape"], ["e"])], untyped("e"), "[0,2,3]", unknown))
    cases = [(loop, name, body, of_loop) for name, *body, of_loop, _ in bodies]
    cases += [(sequence_map, name, body, of_map) for name, *body, _, of_map in bodies]
    for op, name, body, expected in cases:
        plain = run(name, op, body)
        check(expected in plain, f"{op.__name__}, {name}: {plain}, expected {expected}")
        for options in [("--no-fold",)] + [("--n-partitions", 2)] * (name != "constant"):
            found = run(name, op, body, *options)
            check(found == plain, f"{op.__name__}, {name} {options}: {found}, expected {plain}")
        for outer, inner in (hint("t"), ()), (hint("s"), ()), ((), hint("d")):
            found = run(name, op, body, outer=outer, inner=inner)
            check(found == plain, f"{op.__name__}, {name}, hints: {found}, expected {plain}")


def subgraphs(ree_run, folder):
    """An If whose branches have a tensor attribute and an initializer."""
    path = folder / "if.onnx"

    def make(constant=3, initial=4):
        value = onnx.tensor("", onnx.FLOAT, [1], struct.pack("<f", constant))
        one = onnx.chunk(1, node_with("Constant", [], ["k"], attribute_tensor("value", value)))
        one += onnx.chunk(2, "then") + onnx.chunk(12, onnx.port("k", onnx.FLOAT, [1]))
        two = onnx.chunk(1, onnx.node("Add", ["i", "x"], ["s"])) + onnx.chunk(2, "else")
        two += onnx.chunk(5, onnx.floats("i", [1], [initial])) + onnx.chunk(12, onnx.port("s", onnx.FLOAT, [1]))
        branches = attribute_graph("then_branch", one), attribute_graph("else_branch", two)
        path.write_bytes(onnx.model([node_with("If", ["c"], ["y"], *branches)],
                                    [onnx.port("c", onnx.BOOL, []), onnx.port("x", onnx.FLOAT, [1])],
                                    [onnx.port("y", onnx.FLOAT, [1])]))
        return hashes(ree_run, path)

    number = struct.pack("<f", 3)
    then = (u32(0) + u32(0) + u32(1) + text("") + text("Constant") + i64(17) + u32(1) + text("value") + u32(4) +
            sha(b"ree-tensor/1\0", u32(1, 1), i64(1), number) + u32(0) + u32(1, 4) +
            u32(1) + text("k") + u32(4) + type_of(1, [1]))
    other = (u32(0) + u32(1) + text("i") + u32(2, 1, 1) + i64(1) + u32(1) + text("") + text("Add") + i64(17) + u32(0) +
             u32(2, 2, 1) + u32(1, 3) + u32(1) + text("s") + u32(3) + type_of(1, [1]))
    graph = sha(b"ree-graph/1\0", u32(1), text(""), i64(17), u32(2), port("c", 9, []), port("x", 1, [1]), u32(0),
                u32(1), text(""), text("If"), i64(17), u32(2), text("else_branch"), u32(5), other,
                text("then_branch"), u32(5), then, u32(1, 0), u32(1, 5),
                u32(1), text("y"), u32(5), type_of(1, [1])).hex()
    first = make()
    check(first == (graph, root([weight("i", 1, [1], struct.pack("<f", 4))])), "subgraphs")
    check(make(constant=5)[0] != first[0] and make(constant=5)[1] == first[1], "a constant is part of the graph")
    check(make(initial=5)[0] == first[0] and make(initial=5)[1] != first[1], "an initializer within is a weight")


def independence(ree_run, folder):
    path = folder / "m.onnx"

    def make(nodes=None, weights=None, dims=("n", 2), opset=17, metadata=(), output="y"):
        nodes = nodes or [onnx.node("Add", ["x", "a"], ["t"]), onnx.node("Mul", ["t", "b"], ["y"])]
        weights = weights or [onnx.floats("a", [2], [1, 2]), onnx.floats("b", [2], [3, 4])]
        path.write_bytes(onnx.model(nodes, [onnx.port("x", onnx.FLOAT, list(dims))],
                                    [onnx.port(output, onnx.FLOAT, list(dims))], weights, opset, metadata))
        return hashes(ree_run, path)

    base = make()
    a, b = onnx.floats("a", [2], [1, 2]), onnx.floats("b", [2], [3, 4])
    # float_data instead of raw bytes
    encoded = onnx.number(1, 2) + onnx.number(2, 1) + onnx.chunk(8, "a") + onnx.chunk(4, struct.pack("<2f", 1, 2))
    same = {
        "weights in another order": make(weights=[b, a]),
        "weights in another field": make(weights=[encoded, b]),
        "metadata": make(metadata=[("author", "someone")]),
        "names of nodes": make([onnx.node("Add", ["x", "a"], ["t"], name="p"), onnx.node("Mul", ["t", "b"], ["y"])]),
        "names between nodes": make([onnx.node("Add", ["x", "a"], ["q"]), onnx.node("Mul", ["q", "b"], ["y"])]),
        "nodes listed backwards": make([onnx.node("Mul", ["t", "b"], ["y"]), onnx.node("Add", ["x", "a"], ["t"])]),
    }
    for what, got in same.items():
        check(got == base, f"{what} do not matter")
    graphs = {
        "an operator": make([onnx.node("Sub", ["x", "a"], ["t"]), onnx.node("Mul", ["t", "b"], ["y"])]),
        "a connection": make([onnx.node("Add", ["x", "a"], ["t"]), onnx.node("Mul", ["t", "a"], ["y"])]),
        "inputs exchanged": make([onnx.node("Add", ["a", "x"], ["t"]), onnx.node("Mul", ["t", "b"], ["y"])]),
        "an attribute": make([onnx.node("Add", ["x", "a"], ["t"]),
                              onnx.node("Mul", ["t", "b"], ["y"], attributes={"axis": 1})]),
        "a symbol": make(dims=("m", 2)),
        "a size": make(dims=(1, 2)),
        "the operator set": make(opset=18),
        "the output's name": make([onnx.node("Add", ["x", "a"], ["t"]), onnx.node("Mul", ["t", "b"], ["z"])], output="z"),
    }
    for what, got in graphs.items():
        check(got[0] != base[0] and got[1] == base[1], f"{what} is part of the graph alone")
    check(len({g[0] for g in graphs.values()}) == len(graphs), "each in its own way")
    bits = make(weights=[onnx.floats("a", [2], [1, 2.0000002]), b])
    check(bits[0] == base[0] and bits[1] != base[1], "a bit of a weight")
    swapped = make(weights=[onnx.floats("a", [2], [3, 4]), onnx.floats("b", [2], [1, 2])])
    check(swapped[0] == base[0] and swapped[1] != base[1], "weights exchanged")
    shaped = make(weights=[onnx.floats("a", [1, 2], [1, 2]), b])
    check(shaped[0] != base[0] and shaped[1] != base[1], "a weight's shape is part of both")


def random_nodes(ree_run, folder):
    """A random node without a seed draws from the name of its first output, so the graph's hash covers this name; with a
    seed, and for other operators, it does not."""
    def make(op_type, name, inputs=("x",), **attributes):
        path = folder / "random.onnx"
        nodes = [onnx.node(op_type, list(inputs), [name], attributes=attributes), onnx.node("Add", ["x", name], ["y"])]
        flag = [onnx.floats("ratio", [], [0.5]), onnx.tensor("train", 9, [], b"\1")]
        path.write_bytes(onnx.model(nodes, [onnx.port("x", onnx.FLOAT, [4])], [onnx.port("y", onnx.FLOAT, [4])], flag, 17))
        done = subprocess.run([ree_run, str(path), "--random-inputs", "1", "--json"], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        return hashes(ree_run, path), json.loads(done.stdout)["sha256"]

    for op_type, inputs in (("RandomNormalLike", ("x",)), ("RandomUniformLike", ("x",)), ("Dropout", ("x", "ratio", "train"))):
        (first, result), (second, other) = make(op_type, "a", inputs), make(op_type, "b", inputs)
        check(result != other, f"{op_type}: the name decides")
        check(first[0] != second[0] and first[1] == second[1], f"{op_type}: {first} {second}")
        seed = {"seed": 3 if op_type == "Dropout" else 3.0}
        (first, result), (second, other) = make(op_type, "a", inputs, **seed), make(op_type, "b", inputs, **seed)
        check(first == second and result == other, f"{op_type} with a seed: {first} {second}")
    (first, result), (second, other) = make("Dropout", "a"), make("Dropout", "b")
    check(first == second and result == other, "Dropout at inference")


def templates(ree_run, folder):
    """The tokenizer's hash covers what a template adds to a text: with other tokens a text has another prompt."""
    tokenizer = json.loads((SAMPLE / "tokenizer.json").read_text())
    names = {index: token for token, index in tokenizer["model"]["vocab"].items()}
    names.update({token["id"]: token["content"] for token in tokenizer["added_tokens"]})
    text = {"Sequence": {"id": "A", "type_id": 0}}

    def hash_of(*items, ids=None):
        single, tokens = [], {}
        for item in items:
            single.append(text if item is None else {"SpecialToken": {"id": names[item], "type_id": 0}})
            if item is not None:
                tokens[names[item]] = {"id": names[item], "ids": ids or [item], "tokens": [names[item]]}
        tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": tokens}
        path = folder / "template" / "tokenizer.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(tokenizer))
        done = subprocess.run([ree_run, "tokenize", str(path), "--text", "Once", "--json"], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        found = json.loads(done.stdout)
        return found["tokenizer_sha256"], tuple(found["ids"])
    made = [hash_of(*items) for items in ((0, None), (1, None), (None, 0), (None, 300), (None, None), (0, 0, None))]
    made += [hash_of(0, None, ids=[0, 0]), hash_of(0, None, ids=[5])]
    by_hash = {}
    for sha256, ids in made:
        by_hash.setdefault(sha256, set()).add(ids)
    check(all(len(ids) == 1 for ids in by_hash.values()), f"one hash, one text, different tokens: {by_hash}")
    check(len(by_hash) == len(made), f"{len(by_hash)} hashes of {len(made)} templates")


def unknown_tokens(ree_run, folder):
    """The tokenizer's hash says whether a character without a token is dropped or is an error."""
    tokenizer = json.loads((SAMPLE / "tokenizer.json").read_text())
    del tokenizer["model"]["vocab"]["Q"]
    tokenizer["model"]["merges"] = [merge for merge in tokenizer["model"]["merges"] if "Q" not in "".join(merge)]
    path = folder / "unknown" / "tokenizer.json"
    path.parent.mkdir(exist_ok=True)
    made = {}
    for unk in (None, "<none such>"):
        tokenizer["model"]["unk_token"] = unk
        path.write_text(json.dumps(tokenizer))
        for text in ("Once", "Once Q"):
            done = subprocess.run([ree_run, "tokenize", str(path), "--text", text, "--json"], capture_output=True, text=True)
            check((done.returncode == 0) == (text == "Once" or unk is None), f"{unk}, {text}: {done.stdout}{done.stderr}")
            if done.returncode == 0:
                made.setdefault(unk, json.loads(done.stdout)["tokenizer_sha256"])
    check(len(made) == 2 and made[None] != made["<none such>"], made)


def default_values(ree_run, folder):
    """An initializer that is also an input is a constant before IR version 4, and may be replaced since. So the two
    models have different hashes, and a receipt of one is not a receipt of the other."""
    nodes = [onnx.node("Gather", ["e", "input_ids"], ["a"]), onnx.node("Gather", ["p", "total_sequence_length"], ["b"]),
             onnx.node("Add", ["a", "b"], ["logits"])]
    inputs = [onnx.port("input_ids", onnx.INT64, ["batch", "n"]), onnx.port("total_sequence_length", onnx.INT64, [1])]
    weights = [onnx.floats("e", [4, 4], [(7 * i + i * i) % 11 / 4 for i in range(16)]),
               onnx.floats("p", [9, 4], [(5 * i * i + 3 * i) % 13 / 4 for i in range(36)]),
               onnx.tensor("total_sequence_length", onnx.INT64, [1], struct.pack("<q", 3))]
    made = onnx.model(nodes, inputs, [onnx.port("logits", onnx.FLOAT, ["batch", "n", 4])], weights)
    check(made[:2] == b"\x08\x08", "the model begins with its IR version")
    models, receipts = {}, {}
    for version in (3, 4, 8):
        models[version] = folder / f"ir{version}.onnx"
        models[version].write_bytes(b"\x08" + bytes([version]) + made[2:])
        receipts[version] = folder / f"ir{version}.json"
        harness.run(ree_run, models[version], "--prompt-ids", "1,2", "--max-new-tokens", "5", "--receipt-path", receipts[version])
    found = {version: hashes(ree_run, path) for version, path in models.items()}
    check(found[4] == found[8] and found[3][0] != found[8][0] and found[3][1] == found[8][1], found)
    for model in models:
        for receipt in receipts:
            same = (model == 3) == (receipt == 3)
            done = harness.call(ree_run, "verify", receipts[receipt], models[model])
            check((done.returncode == 0) == same and ("graph: agrees" in done.stdout) == same,
                  f"{receipt} with {model}: {done.stdout}")
    # Receipts of version 1 lack what tells the models apart, and verify says so.
    old = json.loads(receipts[8].read_text())
    old["body"]["model"]["graph_sha256"] = found[3][0]
    old["schema"] = "ree-receipt/1"
    path = folder / "ir8-old.json"
    path.write_text(json.dumps(sealing.seal(old)))
    done = harness.call(ree_run, "verify", path, models[8])
    check(done.returncode == 3 and "graph: agrees" in done.stdout and "default values: not checked" in done.stdout, done.stdout)


def exports(ree_run, model, folder):
    before = hashes(ree_run, model)
    local = folder / model.name
    local.mkdir()
    for file in model.iterdir():
        if file.is_file():
            (local / file.name).write_bytes(file.read_bytes())

    def export(name, *options):
        path = local / name
        done = subprocess.run([ree_run, "export", str(local), "-o", str(path), *options], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"FAILED: export: {done.stderr}")
        return path

    pointing, whole = export("pointing.onnx"), export("whole.onnx", "--colocate-tensors")
    check(hashes(ree_run, local) == before, f"{model.name}: the folder copied")
    check(hashes(ree_run, pointing) == before, f"{model.name}: exported")
    check(hashes(ree_run, whole) == before, f"{model.name}: exported with its weights copied")
    elsewhere = folder / f"{model.name}-elsewhere"
    elsewhere.mkdir()
    whole.rename(elsewhere / "renamed.onnx")
    pathlib.Path(f"{whole}.data").rename(elsewhere / "whole.onnx.data")
    check(hashes(ree_run, elsewhere / "renamed.onnx") == before, f"{model.name}: moved")
    older = hashes(ree_run, export("older.onnx", "--opset", "17"))
    check(older[0] != before[0], f"{model.name}: opset 17 is another graph")
    print(f"{model.name}: graph {before[0]}, weights {before[1]}; at opset 17 the weights are "
          f"{'the same' if older[1] == before[1] else 'others'}")
    weights = local / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    after = hashes(ree_run, local)
    check(after[0] == before[0] and after[1] != before[1], f"{model.name}: a bit of the weights")
    check(hashes(ree_run, pointing) == after, f"{model.name}: which the exported file points to")


def main():
    parser = harness.parser()
    parser.add_argument("--models", type=pathlib.Path, help="with stories260K; optional")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        against_the_text(args.ree_run, folder)
        attributes_and_types(args.ree_run, folder)
        subgraphs(args.ree_run, folder)
        copies(args.ree_run, folder)
        bodies_that_do_not_run(args.ree_run, folder)
        independence(args.ree_run, folder)
        random_nodes(args.ree_run, folder)
        templates(args.ree_run, folder)
        unknown_tokens(args.ree_run, folder)
        default_values(args.ree_run, folder)
        exports(args.ree_run, SAMPLE, folder)
        trained = args.models / "stories260K" if args.models else None
        if trained and trained.is_dir():
            exports(args.ree_run, trained, folder)
    return harness.finish()


sys.exit(main())
