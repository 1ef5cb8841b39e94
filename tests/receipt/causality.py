#!/usr/bin/env python3
"""Models that look ahead: in one pass over a whole text they choose tokens that they could not have
chosen while they generated the text. A receipt with these tokens must be refused. An honest receipt
of the same model must verify. Models that are proved causal must be verified in one pass."""

import itertools
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "receipt")]
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import vectors  # noqa: E402
from harness import check  # noqa: E402
from sealing import canonical, seal, sha  # noqa: E402

STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
VOCAB, LIE, PROMPT, ANSWER = 16, 7, [1, 2, 3, 4, 1], 8
INF = float("inf")

args = None


def i64(name, values, shape=None):
    return onnx.tensor(name, onnx.INT64, [len(values)] if shape is None else shape, struct.pack(f"<{len(values)}q", *values))


class Model:
    """A model whose logits prefer the token after each token (1 after 0, ...), and token 7 if
    `leak` is large. `leak` is a value [1, sequence, 1] that each test model computes in its own way
    from `seen` (1 at the positions whose token is 7)."""

    def __init__(self, opset=17):
        self.nodes, self.consts, self.opset = [], [], opset
        self.inputs = [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])]
        self.outputs = [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", VOCAB])]
        table = [10.0 if j == (i + 1) % VOCAB else 0.0 for i in range(VOCAB) for j in range(VOCAB)]
        self.consts.append(onnx.floats("table", [VOCAB, VOCAB], table))
        self.consts.append(onnx.floats("marks", [VOCAB, 1], [float(i == LIE) for i in range(VOCAB)]))
        self.base = self.op("Gather", ["table", "input_ids"], "base")
        self.op("Gather", ["marks", "input_ids"], "seen")
        self.sizes()

    def op(self, op_type, inputs, output, domain="", **attributes):
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(onnx.node(op_type, inputs, outputs, name=outputs[0], domain=domain, attributes=attributes))
        return outputs[0]

    def const(self, name, values, shape=None):
        make = i64 if all(isinstance(v, int) for v in values) else onnx.floats
        self.consts.append(make(name, values, shape) if make is i64 else make(name, shape if shape is not None else [len(values)], values))
        return name

    def sizes(self):
        for i in range(-1, 3):
            self.const(f"n{i}" if i >= 0 else "last", [i])
            self.const(f"s{i}" if i >= 0 else "slast", [i], [])
        self.op("Shape", ["input_ids"], "shape")
        self.op("Gather", ["shape", "s1"], "length", axis=0)
        self.op("Range", ["s0", "length", "s1"], "positions")
        self.op("Unsqueeze", ["positions", "n1"], "column")

    def attend(self, scores, values, mask="mask", axis=-1):
        """`scores` [sequence, sequence] masked by Where, softmax, multiplied by `values`."""
        self.const("minus_inf", [-INF], [])
        self.op("Where", [mask, scores, "minus_inf"], "masked")
        self.op("Softmax", ["masked"], "weights", axis=axis)
        return self.op("MatMul", ["weights", values], "leak")

    def causal_mask(self, name="mask"):
        return self.op("LessOrEqual", ["positions", "column"], name)

    def zero_scores(self):
        self.op("Concat", ["length1", "length1"], "square", axis=0)
        return self.op("ConstantOfShape", ["square"], "scores")

    def finish(self, path, weight=1000.0, metadata=None, value_info=()):
        self.const("direction", [weight if i == LIE else 0.0 for i in range(VOCAB)], [1, 1, VOCAB])
        self.op("Mul", ["leak", "direction"], "bonus")
        self.op("Add", [self.base, "bonus"], "logits")
        contrib = onnx.chunk(8, onnx.chunk(1, "com.microsoft") + onnx.number(2, 1))
        for key, value in (metadata or {}).items():
            contrib += onnx.chunk(14, onnx.chunk(1, key) + onnx.chunk(2, value))
        path.write_bytes(onnx.model(self.nodes, self.inputs, self.outputs, self.consts, self.opset, value_info=value_info) + contrib)
        return path


# The look-ahead models. Each function returns the last token of an answer of 7s: the token that one
# pass chooses when no token follows. None: the answer has one 7, at its beginning.

def shifted(m, source="seen"):
    """The next token's row; zeros after the last row."""
    m.const("zero_row", [0.0], [1, 1, 1])
    m.const("far", [2**31 - 1])
    m.op("Slice", [source, "n1", "far", "n1"], "rest")
    return m.op("Concat", ["rest", "zero_row"], "next", axis=1)


def trigger(m):
    shifted(m)
    m.op("Identity", ["next"], "leak")
    return 8


def one_position(m):
    shifted(m)
    m.const("where", [len(PROMPT) - 1], [])
    m.op("Equal", ["column", "where"], "here")
    m.op("Cast", ["here"], "here_f", to=1)
    m.op("Mul", ["next", "here_f"], "leak")
    return None


def mask_hole(m):
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.causal_mask("plain")
    m.op("Add", ["column", "s1"], "after")
    m.op("Equal", ["positions", "after"], "hole")
    m.op("Or", ["plain", "hole"], "mask")
    m.attend(m.zero_scores(), "seen")
    return 7


def softmax_axis(m):
    m.causal_mask()
    m.const("ten", [10.0], [])
    m.op("Mul", ["seen", "ten"], "score_of_query")
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.op("Concat", ["n1", "length1", "length1"], "cube", axis=0)
    m.op("Expand", ["score_of_query", "cube"], "scores")
    m.const("half", [0.5], [])
    m.const("one", [1.0], [])
    m.op("Add", ["seen", "one"], "some")
    m.op("Mul", ["some", "half"], "halves")
    m.const("minus_inf", [-INF], [])
    m.op("Where", ["mask", "scores", "minus_inf"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-2)
    m.op("MatMul", ["weights", "halves"], "sum")
    m.const("little", [0.001], [])
    m.op("Less", ["sum", "little"], "small")
    m.op("Cast", ["small"], "leak", to=1)
    return None


def reverse_cumsum(m):
    m.op("CumSum", ["seen", "s1"], "leak", reverse=1, exclusive=1)
    return 8


def tiny_max(m):
    m.const("tie", [9.9999 if i == LIE else 0.0 for i in range(VOCAB)], [1, 1, VOCAB])
    m.op("ReduceMax", ["seen"], "any", axes=[1], keepdims=1)
    m.const("tiny", [0.00001], [])
    m.op("Mul", ["any", "tiny"], "leak")
    m.base = m.op("Max", ["base", "tie"], "tied")
    return 7


def right_padding(m):
    m.op("Transpose", ["seen"], "signal", perm=[0, 2, 1])
    m.const("kernel", [0.0, 0.0, 1.0], [1, 1, 3])
    m.op("Conv", ["signal", "kernel"], "filtered", pads=[1, 1])
    m.op("Transpose", ["filtered"], "leak", perm=[0, 2, 1])
    return 8


def gather_next(m):
    m.op("Sub", ["length", "s1"], "last_one")
    m.op("Add", ["positions", "s1"], "later")
    m.op("Min", ["later", "last_one"], "index")
    m.op("Gather", ["seen", "index"], "leak", axis=1)
    return 7


def total_length(m):
    m.op("Cast", ["length"], "length_f", to=1)
    m.const("bound", [len(PROMPT) + ANSWER - 2.5], [])
    m.op("Sub", ["length_f", "bound"], "over")
    m.op("Relu", ["over"], "positive")
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "positive"], "leak")
    return 7


def length_by_shape(m):
    """The sum of a vector of `length` ones: a sequence length as a float without a cast."""
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.const("bound", [len(PROMPT) + ANSWER - 2.5], [])
    m.const("unit", [1.0], [])
    m.op("Expand", ["unit", "length1"], "ones")
    m.op("ReduceSum", ["ones", "n0"], "total", keepdims=0)
    m.op("Sub", ["total", "bound"], "over")
    m.op("Relu", ["over"], "positive")
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "positive"], "leak")
    return 7


def data_mask(m):
    """Non-causal attention with a mask that lets a later 7 through."""
    m.causal_mask("plain")
    m.const("seven", [LIE], [])
    m.op("Equal", ["input_ids", "seven"], "is_seven")
    m.op("Or", ["plain", "is_seven"], "mask")
    m.op("Attention", ["seen", "seen", "seen", "mask"], "leak", q_num_heads=1, kv_num_heads=1, is_causal=0)
    return 7


def zero_times_infinity(m):
    """A value that is infinite at positions of token 7. If such a position is later, an earlier token
    gets its masked weight 0 times infinity, which is NaN."""
    m.causal_mask()
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.const("huge", [3e38], [])
    m.op("Mul", ["seen", "huge"], "large")
    m.op("Mul", ["large", "huge"], "infinite")
    m.const("minus_inf", [-INF], [])
    m.op("Where", ["mask", m.zero_scores(), "minus_inf"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-1)
    m.op("MatMul", ["weights", "infinite"], "sum")
    m.op("IsNaN", ["sum"], "told")
    m.op("Cast", ["told"], "leak", to=1)
    return 8


def infinity_by_attention(m):
    """As zero_times_infinity, with the Attention operator, and a comparison instead of IsNaN."""
    m.const("huge", [3e38], [])
    m.op("Mul", ["seen", "huge"], "large")
    m.op("Mul", ["large", "huge"], "infinite")
    m.op("Attention", ["seen", "seen", "infinite"], "sum", q_num_heads=1, kv_num_heads=1, is_causal=1)
    m.op("Equal", ["sum", "sum"], "same")
    m.op("Not", ["same"], "told")
    m.op("Cast", ["told"], "leak", to=1)
    return 8


def large_negative_mask(m):
    """A mask of the lowest finite number instead of -infinity: if all scores are that low, later
    tokens weigh as much as earlier ones."""
    m.causal_mask()
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.const("lowest", [-3.4028234663852886e38], [])
    m.op("Sub", [m.zero_scores(), "lowest"], "up")
    m.op("Sub", ["scores", "up"], "down")
    m.op("Where", ["mask", "down", "lowest"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-1)
    m.op("MatMul", ["weights", "seen"], "leak")
    return 7


def over_diagonal(m):
    """-infinity from the second superdiagonal on: each token sees the next token."""
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.op("Concat", ["length1", "length1"], "square", axis=0)
    m.const("minus_inf", [-INF], [])
    m.op("Expand", ["minus_inf", "square"], "all")
    m.op("Trilu", ["all", "s2"], "masked", upper=1)
    m.op("Softmax", ["masked"], "weights", axis=-1)
    m.op("MatMul", ["weights", "seen"], "leak")
    return 7


def under_diagonal(m):
    """As over_diagonal, with weights that are 0 there."""
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.op("Concat", ["length1", "length1"], "square", axis=0)
    m.const("unit", [1.0], [])
    m.op("Expand", ["unit", "square"], "all")
    m.op("Trilu", ["all", "s1"], "weights", upper=0)
    m.op("MatMul", ["weights", "seen"], "leak")
    return 7


def with_cache(m, *kinds):
    for kind in kinds or ("key",):
        m.inputs.append(onnx.port(f"past_key_values.0.{kind}", onnx.FLOAT, ["batch", 1, "past", 1]))
        m.outputs.append(onnx.port(f"present.0.{kind}", onnx.FLOAT, ["batch", 1, "total", 1]))
    m.op("Unsqueeze", ["seen", "n1"], "row")


def group_query(m):
    """GroupQueryAttention over all keys."""
    with_cache(m, "key", "value")
    m.op("Shape", ["past_key_values.0.key"], "past_shape")
    m.op("Gather", ["past_shape", "s2"], "past_length", axis=0)
    m.op("Add", ["past_length", "length"], "total")
    m.op("Cast", ["total"], "total32", to=6)
    m.op("Sub", ["total", "n1"], "lengths")
    m.op("Cast", ["lengths"], "lengths32", to=6)
    m.op("GroupQueryAttention", ["seen", "seen", "seen", "past_key_values.0.key", "past_key_values.0.value", "lengths32",
                                 "total32"], ["leak", "present.0.key", "present.0.value"], domain="com.microsoft",
         num_heads=1, kv_num_heads=1, causal=0)
    return 7


def unmasked_cache(m):
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    m.op("ReduceMax", ["present.0.key"], "any", axes=[2], keepdims=0)
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "any"], "leak")
    return 7


def other_cache(m):
    """Attention sees other values of the new tokens than the cache keeps: the cache forgets 4s."""
    with_cache(m)
    m.const("fours", [float(i == 4) for i in range(VOCAB)], [VOCAB, 1])
    m.op("Gather", ["fours", "input_ids"], "four")
    m.op("Unsqueeze", ["four", "n1"], "four_row")
    m.const("zeros", [0.0], [1, 1, 1, 1])
    m.op("Mul", ["four_row", "zeros"], "forgotten")
    m.op("Concat", ["past_key_values.0.key", "forgotten"], "present.0.key", axis=2)
    m.op("Concat", ["past_key_values.0.key", "four_row"], "keys", axis=2)
    m.op("Shape", ["past_key_values.0.key"], "past_shape")
    m.op("Gather", ["past_shape", "s2"], "past_length", axis=0)
    m.op("Add", ["past_length", "length"], "total")
    m.op("Range", ["s0", "total", "s1"], "key_positions")
    m.op("Range", ["past_length", "total", "s1"], "new_positions")
    m.op("Unsqueeze", ["new_positions", "n1"], "query_positions")
    m.op("LessOrEqual", ["key_positions", "query_positions"], "mask")
    m.const("minus_inf", [-INF], [])
    m.op("MatMul", ["four_row", "keys_t"], "products")
    m.nodes.insert(-1, onnx.node("Transpose", ["keys"], ["keys_t"], attributes={"perm": [0, 1, 3, 2]}))
    m.const("flat", [0.0], [])
    m.op("Mul", ["products", "flat"], "scores")
    m.op("Where", ["mask", "scores", "minus_inf"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-1)
    m.op("MatMul", ["weights", "keys"], "sum")
    m.op("Squeeze", ["sum", "n1"], "leak")
    return 7


def positions_from_zero(m):
    """A mask over a cache whose query positions start from 0 in each run. In one pass it is
    correct."""
    with_cache(m)
    m.const("fours", [float(i == 4) for i in range(VOCAB)], [VOCAB, 1])
    m.op("Gather", ["fours", "input_ids"], "four")
    m.op("Unsqueeze", ["four", "n1"], "four_row")
    m.op("Concat", ["past_key_values.0.key", "four_row"], "present.0.key", axis=2)
    m.op("Shape", ["present.0.key"], "present_shape")
    m.op("Gather", ["present_shape", "s2"], "total", axis=0)
    m.op("Range", ["s0", "total", "s1"], "key_positions")
    m.op("LessOrEqual", ["key_positions", "column"], "mask")
    m.op("Transpose", ["present.0.key"], "keys", perm=[0, 1, 3, 2])
    m.op("MatMul", ["four_row", "keys"], "products")
    m.const("flat", [0.0], [])
    m.op("Mul", ["products", "flat"], "scores")
    m.const("minus_inf", [-INF], [])
    m.op("Where", ["mask", "scores", "minus_inf"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-1)
    m.op("MatMul", ["weights", "present.0.key"], "sum")
    m.op("Squeeze", ["sum", "n1"], "leak")
    return 7


def chunk_mask(m):
    """Positions of the new tokens start from 0: correct only in one pass."""
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    m.op("Attention", ["row", "present.0.key", "present.0.key"], "sum", is_causal=1)
    m.op("Squeeze", ["sum", "n1"], "leak_seven")
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["leak_seven", "zeros"], "nothing")
    m.const("four", [4], [])
    m.op("GreaterOrEqual", ["column", "four"], "late")
    m.op("Cast", ["late"], "late_f", to=1)
    m.op("Add", ["nothing", "late_f"], "leak")
    return 7


def not_foldable(m, values, name):
    """The numbers as a list that no pass can fold into a constant: added to 0 times the text's
    length."""
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.op("Mul", ["length1", "n0"], "nothing")
    m.const(name + "_known", values)
    return m.op("Add", ["nothing", name + "_known"], name)


def sum_over_second(m, matrix):
    """The sum over the axis that the second of four elements names: 1, the token axis."""
    m.const("four", [4])
    m.op("Reshape", [matrix, "four"], "flat")
    m.op("Slice", ["flat", "n1", "n2", "n0"], "axis")
    m.op("ReduceSum", ["seen", "axis"], "leak", keepdims=1)
    return 7


def outer_counts(m):
    """Two lists, broadcast across each other: [[0, 1], [1, 2]]. A flat sum would be [0, 2], which
    gives axis 2."""
    not_foldable(m, [0, 1], "list")
    m.op("Unsqueeze", ["list", "n1"], "down")
    m.op("Unsqueeze", ["list", "n0"], "across")
    return sum_over_second(m, m.op("Add", ["down", "across"], "matrix"))


def transposed_counts(m):
    """[[2, 2], [1, 1]] transposed, which begins with 2, 1. Without the transposition it would begin
    with 2, 2."""
    not_foldable(m, [2, 2, 1, 1], "list")
    m.const("square", [2, 2])
    m.op("Reshape", ["list", "square"], "rows")
    return sum_over_second(m, m.op("Transpose", ["rows"], "matrix", perm=[1, 0]))


def see_twice_as_far(m, queries):
    """Causal attention with 2 * sequence queries, which a wrong proof takes for `sequence`: query
    2 i + 1 lands at position i."""
    m.op("Attention", [queries, "keys", "seen"], "sums", q_num_heads=1, kv_num_heads=1, is_causal=1)
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.op("Concat", ["n1", "length1", "last"], "pairs", axis=0)
    m.op("Reshape", ["sums", "pairs"], "both")
    m.op("ReduceMax", ["both", "n2"], "leak", keepdims=1)
    return 7


def step_overflow(m):
    """A step of 2^63 - 1 selects one element. If a proof assumes that it selects none, it misses
    the doubled rows."""
    m.op("Concat", ["seen"] * 4, "wide", axis=2)
    m.const("far", [2**31 - 1])
    m.const("step", [2**63 - 1])
    m.op("Slice", ["wide", "n0", "far", "n2", "step"], "part")
    m.op("Concat", ["seen", "part"], "twice", axis=2)
    m.const("rows", [1, -1, 1])
    m.op("Identity", ["seen"], "keys")
    return see_twice_as_far(m, m.op("Reshape", ["twice", "rows"], "queries"))


def head_sizes(m):
    """GroupQueryAttention whose values have another head size than the queries."""
    m.op("Concat", ["seen"] * 2, "keys", axis=2)
    m.op("Concat", ["seen"] * 4, "values", axis=2)
    m.op("Sub", ["length", "n1"], "before")
    m.op("Cast", ["before"], "before32", to=6)
    m.op("Cast", ["length"], "length32", to=6)
    m.op("GroupQueryAttention", ["keys", "keys", "values", "", "", "before32", "length32"], "four",
         domain="com.microsoft", num_heads=1, kv_num_heads=1)
    m.const("rows", [1, -1, 2])
    return see_twice_as_far(m, m.op("Reshape", ["four", "rows"], "queries"))


LIARS = {trigger: 17, one_position: 17, mask_hole: 17, softmax_axis: 17, reverse_cumsum: 17, tiny_max: 17,
         right_padding: 17, gather_next: 17, total_length: 17, length_by_shape: 17, data_mask: 23,
         large_negative_mask: 17, over_diagonal: 17, under_diagonal: 17, group_query: 17, zero_times_infinity: 17, infinity_by_attention: 23, unmasked_cache: 17, other_cache: 17,
         positions_from_zero: 17, chunk_mask: 23, outer_counts: 17, transposed_counts: 17, step_overflow: 23, head_sizes: 23}


# Models with extreme numbers or missing inputs, which must not crash the proof. What they compute
# does not matter; some cannot run.

def many_counts(m):
    """Broadcast integer lists of 8 * 8 * ... elements, and a slice far beyond the first eight."""
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.const("ones", [1] * 8)
    m.op("Mul", ["length1", "ones"], "list")
    total = None
    for i in range(7):
        m.const(f"sizes{i}", [8 if k == i else 1 for k in range(7)])
        m.op("Reshape", ["list", f"sizes{i}"], f"part{i}")
        total = m.op("Add", [total, f"part{i}"], f"total{i}") if total else f"part{i}"
    m.const("all", [8**7])
    m.op("Reshape", [total, "all"], "flat")
    m.const("far", [2**31 - 1])
    m.const("start", [8**7 - 8])
    m.op("Slice", ["flat", "start", "far", "n0"], "cut")
    m.op("Gather", ["cut", "s0"], "one")
    m.op("Cast", ["one"], "number", to=1)
    m.op("Mul", ["seen", "number"], "leak")


def no_heads(m):
    """Packed heads: 2 + 2 * (2^63 - 1) is 0 in 64 bits."""
    m.op("Cast", ["length"], "length32", to=6)
    m.op("GroupQueryAttention", ["seen", "", "", "", "", "length32", "length32"], "leak", domain="com.microsoft",
         num_heads=2, kv_num_heads=2**63 - 1)


def omitted_input(m):
    m.op("Sum", ["seen", ""], "leak")


def empty_list(m):
    m.nodes.append(onnx.node("Constant", [], ["list"], name="list") +
                   onnx.chunk(5, onnx.chunk(1, "value_ints") + onnx.number(20, 7)))
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.op("Concat", ["length1", "list"], "longer", axis=0)
    m.outputs.append(onnx.port("longer", onnx.INT64, None))
    m.op("Identity", ["seen"], "leak")


def long_cast(m):
    """A type number that means int64 if only its low 32 bits are read."""
    m.op("Cast", ["length"], "same", to=2**32 + 7)
    m.op("Range", ["s0", "same", "s1"], "numbers")
    m.outputs.append(onnx.port("numbers", onnx.INT64, None))
    m.op("Identity", ["seen"], "leak")


def long_bounds(m):
    """Slices of a list and of the token axis, with every combination of extreme starts, ends and
    steps."""
    m.op("Shape", ["seen"], "sizes")
    numbers = [0, 1, -1, 2**31 - 1, 2**62, 2**63 - 1, -2**63, -2**63 + 1]
    for i, n in enumerate(numbers):
        m.const(f"bound{i}", [n])
    names = [f"bound{i}" for i in range(len(numbers))]
    for k, bounds in enumerate(itertools.product(names, repeat=3)):
        for data, axis, dtype in (("sizes", "n0", onnx.INT64), ("seen", "n1", onnx.FLOAT)):
            start, end, step = bounds
            m.op("Slice", [data, start, end, axis, step], f"{data}{k}")
            m.outputs.append(onnx.port(f"{data}{k}", dtype, None))
    m.op("Identity", ["seen"], "leak")


# Model -> (expected result of verify, expected reason). Verify proves causality before it runs the
# model. The reason is why the model is verified token by token ("": in one pass) or why it cannot run.
HOSTILE = {many_counts: ("verified", "it converts the number of tokens of a run into data"),
           no_heads: ("differs", "kv_num_heads = 9223372036854775807"),
           omitted_input: ("differs", "input 1 is omitted"),
           empty_list: ("verified", "causality is not proved: node 'l"),
           long_cast: ("differs", "attribute 'to' is 4294967303"),
           long_bounds: ("differs", "steps has a 0")}


def false_answer(last):
    if last is None:
        answer = [LIE]
        while len(answer) < ANSWER:
            answer.append((answer[-1] + 1) % VOCAB)
        return answer
    return [LIE] * (ANSWER - 1) + [last]


def run(*arguments):
    return harness.call(args.ree_run, *arguments)


def forge(path, receipt, answer):
    receipt["body"]["output"]["tokens"] = answer
    path.write_text(canonical(seal(receipt)) + "\n")
    return path


def verify(receipt, model, *options):
    done = run("verify", receipt, model, "--json", "--ignore-eos", *options)
    check(done.stdout != "", f"{model.name}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout else {"result": "none"}


def make(path, model, *options):
    done = run(model, "--prompt-ids", ",".join(map(str, PROMPT)), "--max-new-tokens", ANSWER, "--ignore-eos",
               "--receipt-path", path, *options)
    check(done.returncode == 0, f"{model.name}: {done.stderr}")
    return vectors.parse(path.read_text())


def liars(folder):
    for liar, opset in LIARS.items():
        m = Model(opset)
        last = liar(m)
        model = folder / f"{liar.__name__}.onnx"
        m.finish(model)
        honest, false = folder / "honest.json", folder / "false.json"
        receipt = make(honest, model)
        made = [int(t) for t in receipt["body"]["output"]["tokens"]]
        answer = false_answer(last)
        check(made != answer, f"{model.name}: stepwise it makes the false answer: {made}")
        for options in ((), ("--no-fold", "--no-fuse")):
            found = verify(honest, model, *options)
            check(found["result"] == "verified", f"{model.name}: its own text: {found}")
            check("causality is not proved" in found.get("token_by_token", ""), f"{model.name}: {found}")
        text = run("verify", honest, model).stdout
        check("\nran token by token: causality is not proved: node '" in text, f"{model.name}: the line that says so: {text}")
        found = verify(forge(false, receipt, answer), model)
        check(found["result"] == "differs" and any(c["name"] == "tokens" and c["outcome"] == "differs" for c in found["checks"]),
              f"{model.name}: a false text: {found}")
        # The result of one pass, if a program that verifies without the proof is passed with
        # --before.
        if args.before:
            done = subprocess.run([args.before, "verify", str(false), str(model)], capture_output=True, text=True)
            print(f"{model.name}: without the proof: {done.stdout.splitlines()[-1:]} {done.stderr}")
            print(f"    {found.get('token_by_token')}")


def hostile(folder):
    plain = Model(23)
    plain.op("Identity", ["seen"], "leak")
    path = folder / "claim.json"
    receipt = make(path, plain.finish(folder / "plain.onnx"))
    for attack, (result, reason) in HOSTILE.items():
        m = Model(17)
        attack(m)
        model = m.finish(folder / f"{attack.__name__}.onnx")
        # Insert the hashes of this model, so that verify examines its graph.
        told = run("inspect", model, "--hash", "--json")
        check(told.returncode == 0, f"{model.name}: {told.stderr}")
        for name in ("graph_sha256", "weights_sha256"):
            receipt["body"]["model"][name] = json.loads(told.stdout)[name]
        path.write_text(canonical(seal(receipt)) + "\n")
        for options in ((), ("--no-fold", "--no-fuse")):
            done = run("verify", path, model, "--json", "--ignore-eos", *options)
            broken = "Sanitizer" in done.stderr or "runtime error" in done.stderr
            check(done.returncode in (0, 1, 2) and not broken, f"{model.name}: {done.returncode} {done.stdout} {done.stderr}")
            found = json.loads(done.stdout) if done.stdout else {}
            checks = {c["name"]: c for c in found.get("checks", [])}
            for name in ("graph", "weights"):
                check(checks.get(name, {}).get("outcome") == "agrees", f"{model.name}: {found}")
            said = found.get("token_by_token", "") + checks.get("tokens", {}).get("detail", "")
            check(found.get("result") == result and reason in said and bool(reason) == bool(said),
                  f"{model.name}: {found}")


def resumed(folder):
    """A checkpoint with a look-ahead answer cannot be resumed either."""
    for liar in (trigger, unmasked_cache):
        m = Model()
        last = liar(m)
        model, path = m.finish(folder / f"{liar.__name__}.onnx"), folder / "run.checkpoint"
        form = [model, "--prompt-ids", ",".join(map(str, PROMPT)), "--max-new-tokens", ANSWER, "--ignore-eos"]
        done = run(*form, "--checkpoint", path)
        check(done.returncode == 0, done.stderr)
        done = run(*form, "--resume", path)
        check(done.returncode == 0, f"{model.name}: its own checkpoint: {done.stderr}")
        checkpoint = json.loads(path.read_text())
        checkpoint["body"]["sequences"][0]["tokens"] = false_answer(last)
        checkpoint["checkpoint_sha256"] = sha("ree-checkpoint/1", canonical(checkpoint["body"]).encode())
        path.write_text(canonical(checkpoint) + "\n")
        done = run(*form, "--resume", path)
        check(done.returncode != 0 and "cannot continue: token" in done.stderr, f"{model.name}: a false checkpoint: {done}")
        if args.before:
            done = subprocess.run([args.before, *map(str, form), "--resume", str(path)], capture_output=True, text=True)
            print(f"{model.name}: resumed without the proof: exit code {done.returncode} {done.stderr}")


def infinite_values(folder):
    """A causal model whose values become infinite. In one pass, the weight 0 times a later infinite
    value is NaN, so the answer must be verified token by token, and then verifies."""
    m = Model(23)
    m.const("huge", [3e38], [])
    m.op("Mul", ["seen", "huge"], "large")
    m.op("Mul", ["large", "huge"], "infinite")
    m.op("Attention", ["seen", "seen", "infinite"], "sum", q_num_heads=1, kv_num_heads=1, is_causal=1)
    m.const("unit", [1.0], [])
    m.op("Min", ["sum", "unit"], "leak")
    model, path = m.finish(folder / "infinite.onnx"), folder / "r.json"
    made = make(path, model)["body"]["output"]["tokens"]
    check([int(t) for t in made] == [2, 3, 4, 5, 6, 7, 7, 7], f"a text with 7s: {made}")
    found = verify(path, model)
    check(found["result"] == "verified" and "NaN" in found.get("token_by_token", ""), f"{found}")


def weigh_by_position(m):
    """Infinite values in the cache, and equal weights of the keys up to each query's position."""
    m.inputs.append(onnx.port("position_ids", onnx.INT64, ["batch", "sequence"]))
    m.const("huge", [3e38], [])
    m.op("Mul", ["row", "huge"], "large")
    m.op("Mul", ["large", "huge"], "infinite")
    m.op("Concat", ["past_key_values.0.key", "infinite"], "present.0.key", axis=2)
    m.op("Shape", ["present.0.key"], "present_shape")
    m.op("Gather", ["present_shape", "s2"], "total", axis=0)
    m.op("Range", ["s0", "total", "s1"], "keys")
    m.op("Unsqueeze", ["position_ids", "last"], "queries")
    m.op("LessOrEqual", ["keys", "queries"], "sees")
    m.const("always", [0.0], [])
    m.const("never", [-INF], [])
    m.op("Where", ["sees", "always", "never"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-1)


def slack(folder):
    """Metadata says that sequences of different lengths may share a batch, so caches have unused positions. After one
    pass they hold infinite values of later tokens; token by token, the same text must still verify."""
    m = Model(17)
    with_cache(m)
    weigh_by_position(m)
    m.op("Squeeze", ["present.0.key", "n1"], "values")
    m.op("MatMul", ["weights", "values"], "sum")
    m.const("unit", [1.0], [])
    m.op("Min", ["sum", "unit"], "leak")
    model, path = m.finish(folder / "slack.onnx", metadata={"ree.format": "ree-causal-lm/1"}), folder / "r.json"
    made = make(path, model)["body"]["output"]["tokens"]
    check([int(t) for t in made] == [2, 3, 4, 5, 6, 7, 7, 7], f"a text with 7s: {made}")
    found = verify(path, model)
    check(found["result"] == "verified" and "NaN" in found.get("token_by_token", ""), f"{found}")


def infinite_in_prompt(folder):
    """As infinite_values, with caches and two layers. In one run over the prompt the first rows of the first layer are NaN,
    because of a later token, and so is the last row of the second. Token by token nothing is NaN: an answer that was
    generated like that must verify."""
    m = Model(17)
    with_cache(m, "key", "value")
    weigh_by_position(m)
    m.op("MatMul", ["weights", "present.0.key"], "sum")
    m.const("unit", [1.0], [])
    m.op("Min", ["sum", "unit"], "first")
    m.op("Concat", ["past_key_values.0.value", "first"], "present.0.value", axis=2)
    m.op("MatMul", ["weights", "present.0.value"], "second")
    m.op("Squeeze", ["second", "n1"], "leak")
    model, path = m.finish(folder / "prompt.onnx"), folder / "r.json"
    for n_new in (1, 3):
        form = [model, "--prompt-ids", "1,2,7,3", "--max-new-tokens", n_new, "--ignore-eos", "--receipt-path", path]
        done = run(*form, "--prefill-chunk", 1)
        check(done.returncode == 0, f"token by token: {done}")
        made = [int(t) for t in vectors.parse(path.read_text())["body"]["output"]["tokens"]]
        check(made == [7] * n_new, f"token by token: {made}")
        found = verify(path, model)
        check(found["result"] == "verified" and "NaN" in found.get("token_by_token", ""), f"{found}")
        found = verify(path, model, "--stepwise")
        check(found["result"] == "verified", f"stepwise: {found}")
        private = folder / "private.json"
        done = run(*form[:-1], private, "--prefill-chunk", 1, "--private")
        check(done.returncode == 0, f"{done}")
        found = verify(private, model, "--prompt-ids", "1,2,7,3")
        check(found["result"] == "verified", f"private: {found}")


def window_and_cache(m, value="seen", leak="leak"):
    """GroupQueryAttention with a window."""
    group_query(m)
    m.nodes[-1] = onnx.node("GroupQueryAttention", ["seen", "seen", value, "past_key_values.0.key", "past_key_values.0.value",
                                                    "lengths32", "total32"], [leak, "present.0.key", "present.0.value"],
                            name=leak, domain="com.microsoft", attributes={"num_heads": 1, "kv_num_heads": 1, "local_window_size": 4})


def window_far_back(folder):
    """An infinite value so far before the window that its chunk of keys could be left out: 0 times infinity is NaN in
    every run, however the prompt is divided."""
    m = Model(17)
    m.const("huge", [3e38], [])
    m.op("Mul", ["seen", "huge"], "large")
    m.op("Mul", ["large", "huge"], "infinite")
    window_and_cache(m, "infinite", "sum")
    m.const("unit", [1.0], [])
    m.op("Min", ["sum", "unit"], "leak")
    model = m.finish(folder / "far_back.onnx")
    for first, runs in ((1, True), (LIE, False)):
        prompt = ",".join(map(str, [first] + [1] * 299))
        for chunk in (1, 100, 512):
            done = run(model, "--prompt-ids", prompt, "--max-new-tokens", 1, "--ignore-eos", "--prefill-chunk", chunk)
            check((done.returncode == 0) == runs and ("not a number" in done.stderr) != runs,
                  f"a prompt that begins with {first}, in pieces of {chunk}: {done}")


def ahead_in_cache(m):
    """Each run puts into the cache, for each token, whether the next token of this run is a 7."""
    with_cache(m)
    shifted(m)
    m.op("Unsqueeze", ["next", "n1"], "later")
    m.op("Concat", ["past_key_values.0.key", "later"], "present.0.key", axis=2)
    m.op("ReduceMax", ["present.0.key"], "any", axes=[2], keepdims=0)
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "any"], "leak")


def chunks(folder):
    """How a prompt is divided must not decide the answer of a model that is not causal."""
    m = Model()
    ahead_in_cache(m)
    model, path, trace = m.finish(folder / "ahead.onnx"), folder / "r.json", folder / "r.trace"
    prompt = ["--prompt-ids", "1,2,7,3", "--max-new-tokens", 3, "--ignore-eos", "--receipt-path", path]
    for options in ((), ("--prefill-chunk", 1), ("--prefill-chunk", 3, "--logits-hash"), ("--prefill-chunk", 1024), ("--trace", trace)):
        done = run(model, *prompt, *options)
        check(done.returncode == 0, f"{options}: {done}")
        receipt = vectors.parse(path.read_text())
        made = [int(t) for t in receipt["body"]["output"]["tokens"]]
        check(made == [7, 7, 7], f"{options}: {made}")
        for chunk in (1, 512):
            found = verify(path, model, "--prefill-chunk", chunk)
            check(found["result"] != "differs", f"{options}, verified in chunks of {chunk}: {found}")
    found = verify(path, model, "--trace", folder / "again.trace")
    check(found["result"] == "verified" and int(receipt["body"]["trace"]["prefill_chunk"]) == 512, f"{receipt['body']['trace']} {found}")
    honest_receipt, honest_trace = folder / "honest.json", folder / "honest.trace"
    honest_receipt.write_bytes(path.read_bytes())
    honest_trace.write_bytes(trace.read_bytes())
    for chunk in (1, 3, 4, 511, 1024):
        receipt["body"]["trace"]["prefill_chunk"] = chunk
        for version, outcome in ((2, "differs"), (1, "not checked" if chunk < 4 else None)):
            receipt["schema"] = f"ree-receipt/{version}"
            (folder / "false.json").write_text(canonical(seal(receipt)) + "\n")
            found = verify(folder / "false.json", model)
            outcomes = [c["outcome"] for c in found["checks"] if c["name"] == "prefill chunk"]
            check(outcomes == [outcome][:outcome is not None], f"a chunk of {chunk}, version {version}: {found}")
    # Whoever makes a new receipt of version 1 chooses the chunk, and it is never plainly verified.
    receipt["body"]["trace"].update(prefill_chunk=1, n_steps=6)
    receipt["body"]["output"]["tokens"] = [4, 5, 6]
    (folder / "false.json").write_text(canonical(seal(receipt)) + "\n")
    found = verify(folder / "false.json", model, "--trace", folder / "again.trace")
    check(any(c["name"] == "tokens" and c["outcome"] == "agrees" for c in found["checks"]) and found["result"] != "verified", f"{found}")
    receipt["schema"] = "ree-receipt/2"
    # A trace whose header states chunks of 3 tokens, with one more step for them, and its receipt: against the honest
    # ones, and against themselves.
    start = len(b"ree-trace/2\n") + 8
    data = trace.read_bytes()
    size = struct.unpack_from("<Q", data, start - 8)[0]
    header = data[start:start + size].replace(b'"prefill_chunk":512', b'"prefill_chunk":3')
    steps = data[start + size:-44]
    forged = (data[:start - 8] + struct.pack("<Q", len(header)) + header + steps[:len(steps) // 3] + steps + b"end\n" +
              struct.pack("<Q", 4))
    trace.write_bytes(forged + bytes(32))
    root = re.search(r"its contents have ([0-9a-f]{64})", run("trace", trace).stderr)[1]
    trace.write_bytes(forged + bytes.fromhex(root))
    receipt["body"]["trace"].update(prefill_chunk=3, root=root, n_steps=4)
    path.write_text(canonical(seal(receipt)) + "\n")
    mine, theirs = (honest_receipt, honest_trace), (path, trace)
    for sides, wrong in (((mine, theirs), "B"), ((theirs, mine), "A"), ((theirs, theirs), "A")):
        done = run("dispute", "--a", sides[0][1], "--b", sides[1][1], "--a-receipt", sides[0][0], "--b-receipt", sides[1][0],
                   "--model", model, "--claim", folder / "claim.json")
        check(done.returncode == 3 and f"{wrong}'s receipt is false: its prompt ran in chunks of 3 tokens" in done.stderr, f"{done}")


def no_folding(folder):
    """What is proved depends on folding; a verifier who does not fold must not call a receipt false."""
    m = Model(23)
    with_cache(m, "key", "value")
    m.const("ones", [1.0, 1.0], [2])
    m.op("Einsum", ["ones", "ones"], "two", equation="i,i->")
    m.op("Mul", ["seen", "two"], "query")
    m.op("Attention", ["query", "seen", "seen", "", "past_key_values.0.key", "past_key_values.0.value"],
         ["leak", "present.0.key", "present.0.value"], q_num_heads=1, kv_num_heads=1, is_causal=1)
    model, path = m.finish(folder / "fold.onnx", weight=1.0), folder / "r.json"
    make(path, model, "--prefill-chunk", 2, "--trace", folder / "r.trace")
    for options, result in (((), "verified in part"), (("--trace", folder / "again.trace"), "verified"), (("--no-fold",), "verified in part")):
        found = verify(path, model, *options)
        check(found["result"] == result, f"{options}: {found}")


def requested_rows(folder):
    """A model may not see which logits are requested: --logits-hash would decide the answer."""
    m = Model()
    m.inputs.append(onnx.port("logits_rows", onnx.INT64, ["batch", "rows", 1]))
    m.op("Shape", ["logits_rows"], "rows_shape")
    m.op("Gather", ["rows_shape", "s1"], "n_rows", axis=0)
    m.op("Greater", ["n_rows", "s1"], "many")
    m.op("Cast", ["many"], "many_f", to=1)
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "many_f"], "leak")
    done = run(m.finish(folder / "rows.onnx"), "--prompt-ids", "1,2,3", "--max-new-tokens", 3, "--ignore-eos")
    check(done.returncode != 0 and "the purpose of the input 'logits_rows' is unknown" in done.stderr, f"{done}")


def declared_types(folder):
    """No hash covers what value_info says about values within a graph. A copy of a model with a wrong type there cannot
    check a receipt, and must not call it false."""
    def build(name, *value_info):
        m = Model()
        m.op("Identity", ["seen"], "leak")
        return m.finish(folder / f"{name}.onnx", value_info=value_info)
    path = folder / "r.json"
    make(path, build("right"))
    for what, lie in (("int64", onnx.port("bonus", onnx.INT64, ["b", "s", VOCAB])), ("float16", onnx.port("bonus", 10, ["b", "s", VOCAB])),
                      ("a sequence", onnx.port("bonus", onnx.FLOAT, [1], onnx.SEQUENCE)), (None, onnx.port("bonus", onnx.FLOAT, [7, 2]))):
        for options in ((), ("--stepwise",)):
            done = run("verify", path, build("copy", lie), "--ignore-eos", *options)
            check(done.returncode == (2 if what else 0) and ("'bonus' is declared as" in done.stderr) == bool(what), f"declared as {what}: {done}")


def hints_of_constants(folder):
    """A hint that says nothing about a folded constant except another kind. The model stays proved, with its chunks."""
    def build(name, value_info):
        m = Model()
        m.outputs.append(onnx.port("present.0.key", onnx.FLOAT, ["batch", 1, "total", 1]))
        m.inputs.append(onnx.port("past_key_values.0.key", onnx.FLOAT, ["batch", 1, "past", 1]))
        m.op("Unsqueeze", ["seen", "n1"], "row")
        m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
        m.const("half", [0.5], [1])
        m.op("Add", ["half", "half"], "one")
        m.op("Mul", ["seen", "one"], "leak")
        return m.finish(folder / f"{name}.onnx", value_info=value_info)
    plain = build("plain", ())
    hinted = build("hinted", [onnx.port("one", 0, None, onnx.SEQUENCE)])
    bodies = []
    for model in plain, hinted:
        path = folder / f"{model.stem}.json"
        make(path, model, "--trace", folder / f"{model.stem}.trace")
        bodies.append(vectors.parse(path.read_text())["body"])
        for other in plain, hinted:
            done = run("verify", path, other, "--ignore-eos", "--trace", folder / "again.trace")
            check(done.returncode == 0, f"{model.stem} with {other.stem}: {done.stdout}{done.stderr}")
    check(bodies[0]["model"] == bodies[1]["model"] and bodies[0]["trace"] == bodies[1]["trace"], f"{bodies[0]['trace']}, {bodies[1]['trace']}")


def cache_of_the_mask(folder):
    """A cache that only small operators make, which stages copy, and that is read late. Its trace is the same however the
    model runs; here no cut leaves the cache to one stage."""
    m = Model()
    m.inputs += [onnx.port("attention_mask", onnx.INT64, ["batch", "total"]),
                 onnx.port("past_key_values.0.key", onnx.FLOAT, ["batch", 1, "past", 1])]
    m.outputs.append(onnx.port("present.0.key", onnx.FLOAT, ["batch", 1, "total", 1]))
    m.op("Cast", ["attention_mask"], "floats", to=onnx.FLOAT)
    m.const("axes", [1, 3])
    m.op("Unsqueeze", ["floats", "axes"], "present.0.key")
    m.op("ReduceSum", ["present.0.key", "n2"], "sums", keepdims=0)
    m.op("Mul", ["seen", "sums"], "h0")
    for i, size in enumerate(((1, 64), (64, 1), (1, 64), (64, 1))):
        m.const(f"w{i}", [0.25] * 64, list(size))
        m.op("MatMul", [f"h{i}", f"w{i}"], f"h{i + 1}")
    m.op("ReduceSum", ["past_key_values.0.key", "n2"], "before", keepdims=0)
    m.op("Sub", ["h4", "before"], "leak")
    model, path = m.finish(folder / "m.onnx", weight=1e-6), folder / "r.json"
    done = run(model, "--prompt-ids", ",".join(map(str, PROMPT)), "--max-new-tokens", 1, "--ignore-eos", "--trace", folder / "r.trace",
               "--receipt-path", folder / "cut.json", "--n-partitions", 2)
    if done.returncode != 0:
        check("cannot be cut" in done.stderr, done.stderr)
        return
    make(path, model, "--trace", folder / "r.trace", "--max-new-tokens", 1)
    traces = [vectors.parse(p.read_text())["body"]["trace"] for p in (path, folder / "cut.json")]
    check(traces[0] == traces[1], f"{traces}")


def cut(path, n, n_caches):
    """Makes a checkpoint as if it had been written after n tokens of each answer."""
    checkpoint = json.loads(path.read_text())
    for sequence in checkpoint["body"]["sequences"]:
        sequence["tokens"] = sequence["tokens"][:n]
        for key in ("finish_reason", "logits_sha256"):
            sequence.pop(key, None)
        if n_caches:
            sequence["caches"] = [None] * n_caches
    checkpoint["checkpoint_sha256"] = sha("ree-checkpoint/1", canonical(checkpoint["body"]).encode())
    path.write_text(canonical(checkpoint) + "\n")


def infinite_with_cache(m):
    """Attention with a cache and infinite values."""
    with_cache(m, "key", "value")
    m.const("huge", [3e38], [])
    m.op("Mul", ["seen", "huge"], "large")
    m.op("Mul", ["large", "huge"], "infinite")
    m.op("Attention", ["seen", "seen", "infinite", "", "past_key_values.0.key", "past_key_values.0.value"],
         ["sum", "present.0.key", "present.0.value"], q_num_heads=1, kv_num_heads=1, is_causal=1)
    m.const("unit", [1.0], [])
    m.op("Min", ["sum", "unit"], "leak")


def hashed_logits(folder):
    """A resumed run must have the hash that the first run would have had, or be refused. A NaN in a prompt makes the hash
    depend on how the prompt was divided: an honest receipt then does not differ."""
    receipt = folder / "r.json"
    for build, n_caches, why in ((trigger, 0, "no kv cache"), (tiny_max, 0, "no kv cache"), (infinite_with_cache, 2, "is NaN"), (unmasked_cache, 1, None)):
        m = Model(23 if n_caches == 2 else 17)
        build(m)
        model = m.finish(folder / f"{build.__name__}.onnx", weight=1.0 if n_caches == 2 else 1000.0)
        path = folder / f"{build.__name__}.checkpoint"
        form = [model, "--prompt-ids", "1,2,3", "--max-new-tokens", ANSWER, "--ignore-eos", "--logits-hash", "--receipt-path", receipt]
        done = run(*form, "--checkpoint", path)
        check(done.returncode == 0, f"{model.name}: {done}")
        whole = vectors.parse(receipt.read_text())["body"]["output"]
        cut(path, 6, n_caches)
        done = run(*form, "--resume", path)
        if why:
            check(done.returncode != 0 and "cannot be resumed" in done.stderr and why in done.stderr, f"{model.name}: {done}")
        else:
            again = vectors.parse(receipt.read_text())["body"]["output"]
            check(done.returncode == 0 and again == whole, f"{model.name}: {done} {again}, {whole}")
    m = Model(23)
    infinite_with_cache(m)
    model = m.finish(folder / "hashed.onnx", weight=1.0)
    for chunk, results in ((512, {"verified"}), (1, {"verified in part"})):
        done = run(model, "--prompt-ids", "1,7,3", "--max-new-tokens", 2, "--ignore-eos", "--logits-hash", "--prefill-chunk", chunk,
                   "--receipt-path", receipt)
        check(done.returncode == 0, f"{done}")
        found = [verify(receipt, model, "--prefill-chunk", n) for n in (1, 512)]
        check({each["result"] for each in found} == results, f"chunks of {chunk}: {found}")
        false = vectors.parse(receipt.read_text())
        false["body"]["output"]["logits_sha256"] = "0" * 64
        (folder / "false.json").write_text(canonical(seal(false)) + "\n")
        check(verify(folder / "false.json", model)["result"] != "verified", "a made-up hash")
    # The same of runs that are checked token by token, and of receipts with a trace.
    form = [model, "--prompt-ids", "1,7,3", "--max-new-tokens", 2, "--ignore-eos", "--logits-hash", "--prefill-chunk", 1, "--receipt-path", receipt]
    for extra, checks in (((), [["--stepwise"]]), (("--trace", folder / "t"), [[], ["--stepwise"]]),
                          (("--private",), [["--salt", f"{receipt}.salt", "--prompt-ids", "1,7,3"]])):
        done = run(*form, *extra)
        check(done.returncode == 0, f"{extra}: {done}")
        for options in checks:
            found = verify(receipt, model, *options)
            check(found["result"] == "verified in part", f"{extra}, {options}: {found}")


def one_token(m):
    """Each run has one token."""
    m.inputs[0] = onnx.port("input_ids", onnx.INT64, [1, 1])
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    m.op("Identity", ["seen"], "leak")


def distances(m):
    """Looks up a score for the distance of each key before its query. One pass also has keys after it."""
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    for name, value in (("past_key_values.0.key", "past"), ("present.0.key", "total")):
        m.op("Shape", [name], f"{value}_shape")
        m.op("Gather", [f"{value}_shape", "s2"], value, axis=0)
    m.op("Range", ["s0", "total", "s1"], "keys")
    m.op("Range", ["past", "total", "s1"], "queries")
    m.op("Unsqueeze", ["queries", "n1"], "rows_of")
    m.op("Sub", ["rows_of", "keys"], "distance")
    m.const("far", [3], [])
    m.op("Min", ["distance", "far"], "near")
    m.const("scores_of", [0.0, 1.0, 2.0, 3.0])
    m.op("Gather", ["scores_of", "near"], "scores")
    m.op("LessOrEqual", ["keys", "rows_of"], "sees")
    m.const("never", [-INF], [])
    m.op("Where", ["sees", "scores", "never"], "masked")
    m.op("Softmax", ["masked"], "weights", axis=-1)
    m.op("MatMul", ["weights", "present.0.key"], "mixed")
    m.op("Squeeze", ["mixed", "n1"], "sum")
    m.const("hundredth", [0.01], [])
    m.op("Mul", ["sum", "hundredth"], "leak")


def beside_a_resumed_one(folder):
    """A prompt in one batch with an answer that is resumed. The answer runs token by token; the prompt must not."""
    m = Model()
    ahead_in_cache(m)
    model, path = m.finish(folder / "ahead.onnx"), folder / "run.checkpoint"
    form = [model, "--prompt-ids", "1,2,3", "--prompt-ids", "1,2,3,7,1", "--max-new-tokens", 6, "--ignore-eos"]
    done = run(*form, "--checkpoint", path)
    check(done.returncode == 0, f"{done}")
    checkpoint = json.loads(path.read_text())
    resumed, fresh = checkpoint["body"]["sequences"]
    answers = [resumed["tokens"], fresh["tokens"]]
    check(answers == [[4, 5, 6, 7, 8, 9], [7] * 6], f"{answers}")
    # As if interrupted: three tokens of the first answer, none of the second.
    for sequence, n in ((resumed, 3), (fresh, 0)):
        sequence["tokens"] = sequence["tokens"][:n]
        del sequence["finish_reason"]
    resumed["caches"] = [None]
    checkpoint["checkpoint_sha256"] = sha("ree-checkpoint/1", canonical(checkpoint["body"]).encode())
    path.write_text(canonical(checkpoint) + "\n")
    done = run(*form, "--resume", path)
    check(done.returncode == 0, f"{done}")
    again = [s["tokens"] for s in json.loads(path.read_text())["body"]["sequences"]]
    check(again == answers, f"resumed: {again}, at once: {answers}")


def only_in_steps(folder):
    """Models of which one pass is no run of a generation, or cannot be made: their own texts verify token by token."""
    for build, prompt, why in ((one_token, [1], "an input of a fixed length"), (distances, [1, 2], "in one pass: ")):
        m = Model(17)
        build(m)
        model, path = folder / f"{build.__name__}.onnx", folder / "r.json"
        m.finish(model, weight=1.0)
        done = run(model, "--prompt-ids", ",".join(map(str, prompt)), "--max-new-tokens", ANSWER, "--ignore-eos", "--receipt-path", path)
        check(done.returncode == 0, f"{model.name}: {done.stderr}")
        receipt = vectors.parse(path.read_text())
        found = verify(path, model)
        check(found["result"] == "verified" and why in found.get("token_by_token", ""), f"{model.name}: {found}")
        answer = [int(t) for t in receipt["body"]["output"]["tokens"]]
        found = verify(forge(folder / "false.json", receipt, answer[:-1] + [LIE if answer[-1] != LIE else 1]), model)
        check(found["result"] == "differs", f"{model.name}: a false text: {found}")
    # A prompt of which a longer piece is no run either.
    m = Model(17)
    distances(m)
    model = m.finish(folder / "pieces.onnx", weight=1.0)
    make_pieces = [model, "--prompt-ids", "1,2,3,4,5,6,8,9", "--max-new-tokens", 4, "--ignore-eos", "--receipt-path", path]
    done = run(*make_pieces)
    check(done.returncode == 1 and "out of range" in done.stderr, f"as one piece: {done}")
    for more in ((), ("--logits-hash",)):
        done = run(*make_pieces, "--prefill-chunk", 1, *more)
        check(done.returncode == 0, done.stderr)
        for options in ((), ("--stepwise",), ("--prefill-chunk", 1)):
            found = verify(path, model, *options)
            check(found["result"].startswith("verified"), f"one token at a time, {more} {options}: {found}")
    # Six tokens in every run: no text of another length exists.
    m = Model(17)
    m.inputs[0] = onnx.port("input_ids", onnx.INT64, [1, 6])
    m.op("Identity", ["seen"], "leak")
    model = m.finish(folder / "six.onnx")
    done = run(model, "--prompt-ids", "1,2,3,4,5,6", "--max-new-tokens", 1, "--ignore-eos", "--receipt-path", path)
    check(done.returncode == 0, done.stderr)
    receipt = vectors.parse(path.read_text())
    receipt["body"]["prompt"]["tokens"] = [1, 2, 3]
    receipt["body"]["sampling"]["max_new_tokens"] = 4
    found = verify(forge(folder / "false.json", receipt, [4, 5, 6, 7]), model)
    check(found["result"] == "differs", f"{model.name}: a text of another length: {found}")


def proved(folder):
    """Models whose causality must be proved, and two whose causality is not: their masks are finite
    numbers."""
    forms = [STORIES]
    for opset in (17, 23):
        path = folder / f"stories-{opset}.onnx"
        done = run("export", STORIES, "-o", path, "--opset", opset, "--colocate-tensors")
        check(done.returncode == 0, done.stderr)
        forms.append(path)
    others = [args.models / "stories260K", args.models / "genai-tiny" / "tiny-qwen35-cuda"]
    for model in forms + [m for m in others if m.exists()]:
        path = folder / "r.json"
        make(path, model)
        for options in ((), ("--no-fold",), ("--no-fuse",)):
            # A prompt of ids may differ from the encoding of its text; then it verifies only in
            # part.
            found = verify(path, model, *options)
            check(found["result"].startswith("verified") and "token_by_token" not in found, f"{model} {options}: {found}")
            check(found["runs"] == 1, f"{model}: one pass: {found}")
    m = Model(17)
    window_and_cache(m)
    model = m.finish(folder / "window.onnx", weight=1.0)
    receipt = make(folder / "r.json", model)
    found = verify(folder / "r.json", model)
    check(found["result"] == "verified" and "token_by_token" not in found, f"{model}: {found}")
    answer = [int(t) for t in receipt["body"]["output"]["tokens"]]
    found = verify(forge(folder / "false.json", receipt, answer[:-1] + [LIE if answer[-1] != LIE else 1]), model)
    check(found["result"] == "differs", f"{model}: a false text: {found}")
    for model in (args.models / "capp-gpt" / "model.onnx", args.models / "genai-tiny" / "tiny-random-gpt2-fp32"):
        if model.exists():
            make(folder / "r.json", model)
            found = verify(folder / "r.json", model)
            check(found["result"] == "verified" and "token_by_token" in found, f"{model}: {found}")


class Surplus(Model):
    """A model whose node number `i` has an attribute that its operator does not have."""

    def __init__(self, i):
        self.i, self.sources = i, {}
        super().__init__(17)

    def op(self, op_type, inputs, output, domain="", **attributes):
        if len(self.nodes) == self.i:
            attributes["steps"] = [2]
        self.sources[output if isinstance(output, str) else output[0]] = (len(self.nodes), inputs)
        return super().op(op_type, inputs, output, domain, **attributes)

    def needed(self, name):
        """Returns the numbers of the nodes that compute a value."""
        i, inputs = self.sources.get(name, (None, []))
        return set().union(*map(self.needed, inputs), {i} - {None})


def surplus_attributes(folder):
    """Lowering might read an attribute that the proof does not know. Slice has no attribute `steps`, but once had one for
    lowering: an axis was 1 for the proof and 2 in runs, and a sum over all tokens was proved to be causal."""
    n_nodes = i = 0
    while i <= n_nodes:
        m = Surplus(i)
        window_and_cache(m)
        model = m.finish(folder / "surplus.onnx", weight=1.0)
        n_nodes = len(m.nodes)
        make(folder / "r.json", model)
        found = verify(folder / "r.json", model, "--no-fold")
        why = found.get("token_by_token", "")
        surplus = i in m.needed("logits") and i != m.sources["leak"][0]  # window_and_cache replaces that node
        check(found["result"] == "verified" and ("ree has no rule for its attribute 'steps'" in why) == surplus,
              f"node {i} of {n_nodes}: {found}")
        i += 1
    m = Model(17)
    not_foldable(m, [2, 2, 1], "list")
    m.const("big", [2**31 - 1])
    m.op("Slice", ["list", "n0", "big"], "every_second", steps=[2])
    m.op("Slice", ["every_second", "n1", "n2", "n0"], "axis")
    m.op("ReduceSum", ["seen", "axis"], "leak", keepdims=1)
    receipt = make(folder / "r.json", m.finish(folder / "steps.onnx"))
    found = verify(forge(folder / "false.json", receipt, [LIE] * 8), folder / "steps.onnx")
    check(found["result"] == "differs", f"an axis by the attribute: {found}")


def appended(m):
    """Two caches, each followed by its new row."""
    with_cache(m, "key", "value")
    for cache in ("key", "value"):
        m.op("Concat", [f"past_key_values.0.{cache}", "row"], f"present.0.{cache}", axis=2)
    m.const("zeros", [0.0], [1, 1, 1])


def overwritten(path, comes_first):
    """The mean of `seen`, beside a GroupQueryAttention that says it has one key, whose result is only an output of the
    graph: it must not write into a cache that another node reads."""
    m = Model(23)
    m.op("Cast", ["n0"], "seqlens", to=6)
    m.const("ones", [1.0], [1, 1, 1])
    appended(m)
    m.op("Shape", ["past_key_values.0.key"], "past_shape")
    m.op("Gather", ["past_shape", "s2"], "past", axis=0)
    m.op("Add", ["past", "length"], "total")
    m.op("Cast", ["total"], "total32", to=6)
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "ones"], "row_of_ones")
    m.op("GroupQueryAttention", ["row_of_ones"] * 3 + ["past_key_values.0.key", "past_key_values.0.value", "seqlens", "total32"],
         ["extra"], domain="com.microsoft", num_heads=1, kv_num_heads=1)
    if comes_first:
        concats = [n for n in m.nodes if b"Concat" in n]
        m.nodes = [n for n in m.nodes if n not in concats] + concats
    m.outputs.append(onnx.port("extra", onnx.FLOAT, ["batch", "sequence", 1]))
    m.op("Range", ["s0", "total", "s1"], "keys")
    m.op("Range", ["past", "total", "s1"], "queries")
    m.op("Unsqueeze", ["queries", "n1"], "rows_of")
    m.op("LessOrEqual", ["keys", "rows_of"], "mask")
    m.op("Cast", ["mask"], "weights", to=1)
    m.op("Squeeze", ["present.0.value", "n1"], "values")
    m.op("MatMul", ["weights", "values"], "leak")
    return m.finish(path)


def shared_symbol(m):
    """The mask is as long as the new tokens: true of one pass, and false of each step."""
    m.inputs.append(onnx.port("attention_mask", onnx.INT64, ["batch", "sequence"]))
    appended(m)
    m.op("Mul", ["seen", "zeros"], "leak")


def twelve_tokens(m):
    """An output that only a run over 12 tokens has."""
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["seen", "zeros"], "leak")
    m.const("twelve", [12])
    m.op("Reshape", ["input_ids", "twelve"], "extra")
    m.outputs.append(onnx.port("extra", onnx.INT64, [12]))


def of_fixed_length(name):
    """An input that no node reads, but that only a run over 12 tokens has."""
    def build(m):
        m.inputs.append(onnx.port(name, onnx.INT64, ["batch", 12]))
        m.const("zeros", [0.0], [1, 1, 1])
        m.op("Mul", ["seen", "zeros"], "leak")
    build.__name__ = f"fixed_{name}"
    return build


def without_past(m):
    """An output that only a run without a past has."""
    appended(m)
    m.op("Shape", ["past_key_values.0.key"], "past_shape")
    m.op("Gather", ["past_shape", "n2"], "past", axis=0)
    m.op("Expand", ["n0", "past"], "zeros_of_past")
    m.op("Reshape", ["zeros_of_past", "n0"], "extra", allowzero=1)
    m.outputs.append(onnx.port("extra", onnx.INT64, ["p"]))
    m.op("Mul", ["seen", "zeros"], "leak")


def too_large(m):
    """Scores that are larger than a tensor can be if many tokens run at once."""
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    for name, value in (("past_key_values.0.key", "past"), ("present.0.key", "total")):
        m.op("Shape", [name], f"{value}_shape")
        m.op("Gather", [f"{value}_shape", "s2"], value, axis=0)
        m.op("Unsqueeze", [value, "n0"], f"{value}1")
    m.op("Unsqueeze", ["length", "n0"], "length1")
    m.const("many", [15000000])
    m.const("n3", [3])
    m.op("Concat", ["n1", "length1", "total1", "many"], "size", axis=0)
    m.op("ConstantOfShape", ["size"], "large")
    m.op("Slice", ["large", "n0", "n1", "n3"], "column_of_scores")
    m.op("Squeeze", ["column_of_scores", "n3"], "scores")
    m.op("Range", ["s0", "total", "s1"], "keys")
    m.op("Range", ["past", "total", "s1"], "queries")
    m.op("Unsqueeze", ["queries", "n1"], "rows_of")
    m.op("LessOrEqual", ["keys", "rows_of"], "mask")
    m.op("Squeeze", ["present.0.key", "n1"], "values")
    m.attend("scores", "values")
    m.nodes[-1] = onnx.node("MatMul", ["weights", "values"], ["sum"], name="sum")
    m.const("zero", [0.0], [1, 1, 1])
    m.op("Mul", ["sum", "zero"], "leak")


def rows_of_ids(m):
    """The new rows of two caches: r is the token's id, double 2 r, more r + 1."""
    with_cache(m, "key", "value")
    m.const("two", [2.0], [])
    m.const("one", [1.0], [])
    m.op("Cast", ["input_ids"], "ids", to=1)
    m.op("Unsqueeze", ["ids", "n1"], "ids3")
    m.op("Unsqueeze", ["ids3", "last"], "r")
    m.op("Mul", ["r", "two"], "double")
    m.op("Add", ["r", "one"], "more")


def leak_difference(m, first, second, weight):
    """The sum over one cache times a weight, less the sum over another."""
    m.const("weight", [weight], [])
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("ReduceSum", [first, "n2"], "sum_1", keepdims=0)
    m.op("ReduceSum", [second, "n2"], "sum_2", keepdims=0)
    m.op("Mul", ["sum_1", "weight"], "weighted")
    m.op("Sub", ["weighted", "sum_2"], "difference")
    m.op("Mul", ["seen", "zeros"], "nothing")
    m.op("Add", ["nothing", "difference"], "leak")


def swapped(m, first):
    """Each cache continues the other one."""
    rows_of_ids(m)
    nodes = [("key", "double", "value"), ("value", "more", "key")]
    for past, row, present in nodes if first else nodes[::-1]:
        m.op("Concat", [f"past_key_values.0.{past}", row], f"present.0.{present}", axis=2)
    leak_difference(m, "present.0.key", "present.0.value", 0.7)


def two_of_one(m, first):
    """Two nodes append different rows to one cache. One result is its next value, the other that of another cache."""
    rows_of_ids(m)
    nodes = [("r", "present.0.value"), ("double", "present.0.key")]
    for row, output in nodes if first else nodes[::-1]:
        m.op("Concat", ["past_key_values.0.key", row], output, axis=2)
    leak_difference(m, "past_key_values.0.value", "present.0.key", 3.1)


def order_of_outputs(folder):
    """What a run computes does not depend on the order of nodes or outputs, whichever cache an output continues."""
    for build in (swapped, two_of_one):
        found = set()
        for first in (True, False):
            for turned in (False, True):
                m = Model(17)
                build(m, first)
                if turned:
                    m.outputs[1:] = m.outputs[:0:-1]
                path = folder / "r.json"
                done = run(m.finish(folder / "order.onnx", weight=1.0), "--prompt-ids", "1,2,5,4,3", "--max-new-tokens", 6, "--ignore-eos",
                           "--logits-hash", "--receipt-path", path)
                check(done.returncode == 0, done.stderr)
                found.add(vectors.parse(path.read_text())["body"]["output"]["logits_sha256"])
        check(len(found) == 1, f"{build.__name__}: {found}")


def fewer_keys(m, has_other_reader):
    """GroupQueryAttention that says it has two keys fewer than there are tokens; the logits depend on the sum of its new
    cache. has_other_reader: another node reads the past, so the cache is copied in any case."""
    rows_of_ids(m)
    m.op("Squeeze", ["r", "last"], "new")
    m.op("Shape", ["past_key_values.0.key"], "past_shape")
    m.op("Gather", ["past_shape", "s2"], "past_length", axis=0)
    m.op("Add", ["past_length", "length"], "total")
    m.op("Cast", ["total"], "total32", to=6)
    m.const("n3", [3])
    m.op("Sub", ["total", "n3"], "fewer")
    m.op("Cast", ["fewer"], "lengths32", to=6)
    m.op("Transpose", ["new"], "turned", perm=[0, 2, 1])
    m.op("GroupQueryAttention", ["turned"] * 3 + ["past_key_values.0.key", "past_key_values.0.value", "lengths32", "total32"],
         ["attended", "present.0.key", "present.0.value"], domain="com.microsoft", num_heads=1, kv_num_heads=1)
    m.const("zero", [0.0], [])
    m.op("Mul", ["past_key_values.0.key" if has_other_reader else "present.0.value", "zero"], "zeros_of_cache")
    leak_difference(m, "present.0.key", "zeros_of_cache", 3.1)


def rows_behind_the_keys(folder):
    """The rows of a new cache behind a sequence's keys are zeros, whether the cache grows in place or is copied."""
    found = set()
    for has_other_reader in (False, True):
        m = Model(17)
        fewer_keys(m, has_other_reader)
        path = folder / "r.json"
        done = run(m.finish(folder / "fewer.onnx", weight=1.0), "--prompt-ids", "1,2,5,4,3", "--max-new-tokens", 6, "--ignore-eos",
                   "--logits-hash", "--receipt-path", path)
        check(done.returncode == 0, done.stderr)
        found.add(vectors.parse(path.read_text())["body"]["output"]["logits_sha256"])
    check(len(found) == 1, f"with and without another reader of the past: {found}")


def outside_the_proof(folder):
    """What the logits do not depend on can differ between one pass and steps, too."""
    path = folder / "r.json"
    answers = []
    for comes_first in (True, False):
        model = overwritten(folder / f"overwritten-{comes_first}.onnx", comes_first)
        receipt = make(path, model)
        answers.append([int(t) for t in receipt["body"]["output"]["tokens"]])
        found = verify(path, model)
        check(found["result"] == "verified", f"{model.name}: {found}")
        found = verify(forge(folder / "false.json", receipt, answers[0][:1] + [LIE] * (ANSWER - 1)), model)
        check(found["result"] == "differs", f"{model.name}: a false text: {found}")
    check(answers[0] == answers[1], f"the order of nodes does not matter: {answers}")
    twelve = "1,2,3,4,5,6,7,8,9,10,11,12"
    fixed = [(of_fixed_length(name), twelve) for name in ("position_ids", "token_type_ids", "attention_mask")]
    for build, prompt in [(shared_symbol, "1,2,3,4,1"), (twelve_tokens, twelve), (without_past, "1,2,3,4,1"), *fixed]:
        m = Model(23)
        build(m)
        model = m.finish(folder / f"{build.__name__}.onnx")
        done = run(model, "--prompt-ids", prompt, "--max-new-tokens", 1, "--ignore-eos", "--receipt-path", path)
        check(done.returncode == 0, f"{model.name}: {done.stderr}")
        receipt = vectors.parse(path.read_text())
        receipt["body"]["prompt"]["tokens"] = [1, 2, 3, 4, 1]
        receipt["body"]["sampling"]["max_new_tokens"] = ANSWER
        check(verify(path, model)["result"] == "verified", f"{model.name}: one token")
        found = verify(forge(folder / "false.json", receipt, list(range(2, 2 + ANSWER))), model)
        check(found["result"] == "differs", f"{model.name}: a text that it cannot generate: {found}")
    m = Model(23)
    too_large(m)
    model = m.finish(folder / "large.onnx")
    done = run(model, "--prompt-ids", "1", "--max-new-tokens", 12, "--ignore-eos", "--receipt-path", path)
    check(done.returncode == 0, f"{model.name}: {done.stderr}")
    found = verify(path, model)
    check(found["result"] == "verified" and "cannot make a tensor" in found.get("token_by_token", ""), f"{model.name}: {found}")


def heads_first(m):
    """A cache [heads, batch, past, 1]: its first dimension is not the batch."""
    m.inputs.append(onnx.port("position_ids", onnx.INT64, ["batch", "sequence"]))
    m.inputs.append(onnx.port("past_key_values.0.key", onnx.FLOAT, [2, "batch", "past", 1]))
    m.outputs.append(onnx.port("present.0.key", onnx.FLOAT, [2, "batch", "total", 1]))
    m.op("Unsqueeze", ["seen", "n0"], "head")
    m.op("Concat", ["head", "head"], "row", axis=0)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    return "position_ids", "n0", [2.0]


def shared_positions(m):
    """One list of positions for the whole batch."""
    m.inputs.append(onnx.port("cache_position", onnx.INT64, ["sequence"]))
    m.inputs.append(onnx.port("position_ids", onnx.INT64, ["batch", "sequence"]))
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    return "cache_position", "n1", [1.0]


def mixed_batches(folder):
    """Prompts of different lengths in one batch, and a part of the prompts, give the same logits as each prompt alone."""
    prompts = "7,1,7,2,7", "1,7,7,7,3,1,1,1,1"
    for build in (heads_first, shared_positions):
        m = Model(17)
        queries, heads, n_heads = build(m)
        m.op("Shape", ["present.0.key"], "present_shape")
        m.op("Gather", ["present_shape", "s2"], "total", axis=0)
        m.op("Range", ["s0", "total", "s1"], "keys")
        m.op("Unsqueeze", [queries, "last"], "queries")
        m.op("LessOrEqual", ["keys", "queries"], "sees")
        m.const("always", [0.0], [])
        m.const("never", [-INF], [])
        m.op("Where", ["sees", "always", "never"], "masked")
        m.op("Softmax", ["masked"], "weights", axis=-1)
        m.op("MatMul", ["weights", "present.0.key"], "sums")
        m.op("ReduceSum", ["sums", heads], "leak", keepdims=0)
        model = m.finish(folder / f"{build.__name__}.onnx", weight=20.0 / n_heads[0], metadata={"ree.format": "ree-causal-lm/1"})

        def logits(*given):
            options = [x for prompt in given for x in ("--prompt-ids", prompt)]
            done = run("generate", model, *options, "--max-new-tokens", 6, "--ignore-eos", "--json", "--logits-hash")
            check(done.returncode == 0, f"{model.name}: {done.stderr}")
            made = json.loads(done.stdout or "{}")
            return [(s.get("tokens"), s.get("logits_sha256")) for s in made.get("sequences", [made])]
        alone = [logits(prompt)[0] for prompt in prompts]
        check(all(digest for tokens, digest in alone), f"{model.name}: no hash of logits: {alone}")
        check(logits(*prompts) == alone, f"{model.name}: together: {logits(*prompts)}, alone: {alone}")
        check(logits(*prompts[::-1]) == alone[::-1], f"{model.name}: in another order")


def more_logits_than_declared(folder):
    """The answer has tokens beyond the vocabulary that the output declares."""
    m = Model()
    m.op("Identity", ["seen"], "leak")
    m.outputs[0] = onnx.port("logits", onnx.FLOAT, ["batch", "sequence", 8])
    model, path = m.finish(folder / "declared.onnx", weight=0.0), folder / "r.json"
    done = run(model, "--prompt-ids", "1,2,3,4,5", "--max-new-tokens", 6, "--ignore-eos", "--receipt-path", path)
    check(done.returncode == 0, f"{done}")
    for options in ((), ("--stepwise",)):
        check(verify(path, model, *options)["result"] == "verified", f"more logits than declared, {options}: {verify(path, model, *options)}")


def unused_positions(folder):
    """A table with a row for each position of the text, but not for the unused positions that metadata allows in caches.
    Metadata is in no hash, so a copy with it checks a receipt of a copy without."""
    path = folder / "r.json"
    for metadata in (None, {"ree.format": "ree-causal-lm/1"}):
        m = Model(17)
        with_cache(m)
        m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
        m.inputs.append(onnx.port("position_ids", onnx.INT64, ["batch", "sequence"]))
        m.op("Shape", ["present.0.key"], "present_shape")
        m.op("Gather", ["present_shape", "s2"], "total", axis=0)
        m.op("Range", ["s0", "total", "s1"], "keys")
        m.const("table40", [0.5] * 40, [40])
        m.op("Gather", ["table40", "keys"], "bias")
        m.op("Unsqueeze", ["position_ids", "last"], "queries")
        m.op("LessOrEqual", ["keys", "queries"], "sees")
        m.const("never", [-INF], [])
        m.op("Where", ["sees", "bias", "never"], "masked")
        m.op("Softmax", ["masked"], "weights", axis=-1)
        m.op("MatMul", ["weights", "present.0.key"], "sums")
        m.op("Squeeze", ["sums", "n1"], "leak")
        model = m.finish(folder / f"table-{bool(metadata)}.onnx", metadata=metadata)
        if not metadata:
            make(path, model)
        for options in ((), ("--stepwise",)):
            check(verify(path, model, *options)["result"] == "verified", f"{model.name} {options}: {verify(path, model, *options)}")


def main():
    global args
    parser = harness.parser(__doc__)
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("none"), help="stories260K, ...; optional")
    parser.add_argument("--before", help="an older program that checks in one pass without a proof; its verdicts are printed")
    args = parser.parse_args()
    for test in (liars, hostile, resumed, infinite_values, slack, infinite_in_prompt, window_far_back, chunks, no_folding, requested_rows, declared_types,
                 hints_of_constants, cache_of_the_mask, hashed_logits, beside_a_resumed_one, only_in_steps, proved,
                 surplus_attributes, outside_the_proof,
                 order_of_outputs, rows_behind_the_keys, mixed_batches, more_logits_than_declared, unused_positions):
        with tempfile.TemporaryDirectory() as name:
            test(pathlib.Path(name))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
