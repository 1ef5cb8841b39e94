"""Language models with one cache of one number for each position, and a vocabulary of eight tokens. Shared by tests.

The new cache of "kept" is the earlier one with the new positions appended. In the other kinds each run writes the whole
cache: the new positions come first ("prepended", "lowered"), or the earlier ones change ("decayed", "lowered")."""

import struct

import onnx_writer as onnx

KINDS = ("kept", "prepended", "decayed", "lowered")
VOCABULARY = 8
PAST, PRESENT = "past_key_values.0.key", "present.0.key"


def grow(kind):
    """Returns the nodes that compute PRESENT of PAST and of "row", the new positions."""
    if kind == "decayed":
        return [onnx.node("Mul", [PAST, "half"], ["smaller"]), onnx.node("Concat", ["smaller", "row"], [PRESENT], attributes={"axis": 2})]
    order = [PAST, "row"] if kind == "kept" else ["row", PAST]
    if kind != "lowered":
        return [onnx.node("Concat", order, [PRESENT], attributes={"axis": 2})]
    return [onnx.node("Concat", order, ["grown"], attributes={"axis": 2}), onnx.node("Sub", ["grown", "half"], [PRESENT])]


def write(path, kind):
    """Writes the model; returns path. Its last three nodes make PRESENT, read it, and make the logits."""
    table = [10.0 * (j == (i + 1) % VOCABULARY) + 0.25 * i for i in range(VOCABULARY) for j in range(VOCABULARY)]
    nodes = [onnx.node("Gather", ["table", "input_ids"], ["base"]), onnx.node("Gather", ["marks", "input_ids"], ["seen"]),
             onnx.node("Unsqueeze", ["seen", "one"], ["row"]), *grow(kind),
             onnx.node("ReduceMax", [PRESENT], ["most"], attributes={"axes": [2], "keepdims": 0}),
             onnx.node("Add", ["base", "most"], ["logits"])]
    inputs = [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"]), onnx.port(PAST, onnx.FLOAT, ["batch", 1, "past", 1])]
    outputs = [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", VOCABULARY]),
               onnx.port(PRESENT, onnx.FLOAT, ["batch", 1, "total", 1])]
    constants = [onnx.floats("table", [VOCABULARY, VOCABULARY], table),
                 onnx.floats("marks", [VOCABULARY, 1], [1.5 + i for i in range(VOCABULARY)]),
                 onnx.floats("half", [], [0.5]), onnx.tensor("one", onnx.INT64, [1], struct.pack("<q", 1))]
    path.write_bytes(onnx.model(nodes, inputs, outputs, constants, 17))
    return path
