"""Traces: digests of what every node of a model computed in every step of a run."""
import os
from typing import List, NamedTuple, Optional

from ree._ree import ffi, lib
from ree.annotations import Path
from ree.errors import c_path, check, text_of
from ree.locks import UseLock


class Node(NamedTuple):
    """A node of a trace. inputs, outputs: numbers of values, None for one that the node omits; None in
    place of the list: unknown. Values count from 0: the inputs of the model, its constants, then the
    outputs of each node."""
    name: str
    domain: str
    op_type: str
    opset: int
    inputs: Optional[List[Optional[int]]]
    outputs: Optional[List[Optional[int]]]


class TraceDiff(NamedTuple):
    """Where two runs first differ, in the order in which nodes run.

    kind        "same": equal roots; "node", "input": the first difference is an output of a node, or an input
                of the model; "length": equal up to the end of the shorter trace; "other_run": traces of
                different models or of different divisions of the prompt, which cannot be compared
    header      kind "other_run": what differs, a list of "graph", "weights", "numerics", "operation_set",
                "chunk", "ports", "constants", "nodes"
    n_steps     steps that both traces have
    step        the first step that differs
    input, node     the number of the first input or node that differs; None
    name        its name; ""
    op_type     that of the node; ""
    inputs_agree    kind "node": all values that the node read agree, so it computed something else
    n_before    node runs before the difference
    n_after     node runs after it that also differ
    n_new       those of n_after whose inputs all agree"""
    kind: str
    header: List[str]
    n_steps: int
    step: int
    input: Optional[int]
    node: Optional[int]
    name: str
    op_type: str
    inputs_agree: bool
    n_before: int
    n_after: int
    n_new: int

    @property
    def same(self) -> bool:
        """Whether both runs computed the same values."""
        return self.kind == "same"


_HEADER = {lib.REE_DIFF_GRAPH: "graph", lib.REE_DIFF_WEIGHTS: "weights", lib.REE_DIFF_NUMERICS: "numerics",
           lib.REE_DIFF_OPERATION_SET: "operation_set", lib.REE_DIFF_CHUNK: "chunk", lib.REE_DIFF_PORTS: "ports",
           lib.REE_DIFF_CONSTANTS: "constants", lib.REE_DIFF_NODES: "nodes"}


class Trace:
    """A trace, read from a file that Session.record, Generator.record or ree-run wrote. The file need not be
    trusted: all of it is checked, including the root. Raises InvalidError if it is malformed or was changed.

    root                          the root: two runs with the same root computed the same values
    graph_sha256, weights_sha256  the model's hashes
    numerics, operation_set       "RepOps/1", "reproducible"
    n_steps, prefill_chunk        steps; prompt tokens per step, 0 for a session's runs
    inputs                        names of the model's inputs
    n_constants, n_nodes          how many the model has"""

    _use = UseLock("a trace")  # one for all: calls are short, and `diff` uses two traces

    def __init__(self, path: Path):
        out, err = ffi.new("struct ree_trace **"), ffi.new("struct ree_error *")
        status = lib.ree_trace_load(c_path(path), out, err)
        self._handle = ffi.gc(out[0], lib.ree_trace_destroy)
        check(status, err)
        self.path = os.fspath(path)
        info = ffi.new("struct ree_trace_info *", {"size": ffi.sizeof("struct ree_trace_info")})
        check(lib.ree_trace_info(self._handle, info, err), err)
        self.root = text_of(info.root)
        self.graph_sha256, self.weights_sha256 = text_of(info.graph_sha256), text_of(info.weights_sha256)
        self.numerics, self.operation_set = text_of(info.numerics), text_of(info.operation_set)
        self.n_steps, self.prefill_chunk = info.n_steps, info.prefill_chunk
        self.inputs = [text_of(lib.ree_trace_input_name(self._handle, i)) for i in range(info.n_inputs)]
        self.n_constants, self.n_nodes = info.n_constants, info.n_nodes

    def node(self, number: int) -> Node:
        """Returns the ree.trace.Node of this number. Raises NotFoundError if there is none."""
        info = ffi.new("struct ree_node_info *", {"size": ffi.sizeof("struct ree_node_info")})
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_trace_node(self._handle, number, info, err), err)
            inputs = outputs = None
            if info.inputs or not info.n_inputs:
                inputs = [None if value == lib.REE_VALUE_OMITTED else value
                          for value in (ffi.unpack(info.inputs, info.n_inputs) if info.n_inputs else [])]
            if info.omitted or not info.n_outputs:
                outputs = [None if info.omitted[i] else info.first_output + i for i in range(info.n_outputs)]
            return Node(text_of(info.name), text_of(info.domain), text_of(info.op_type), info.opset, inputs, outputs)

    def diff(self, other: "Trace", *, report: Optional[Path] = None) -> TraceDiff:
        """Finds where two runs first differ: returns a ree.TraceDiff. The devices of the runs do not matter.

        report    path of an HTML page to write, with a picture: which nodes of which steps differ"""
        diff = ffi.new("struct ree_diff *", {"size": ffi.sizeof("struct ree_diff")})
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_trace_diff(self._handle, other._handle, diff, err), err)
            agree = diff.kind == lib.REE_DIFF_NODE and lib.ree_trace_inputs_agree(self._handle, other._handle,
                                                                                 diff.step, diff.node)
            if report is not None:
                self._write_page(other, report, err)
        is_input = diff.kind == lib.REE_DIFF_INPUT
        node = self.node(diff.node) if diff.kind == lib.REE_DIFF_NODE else None
        return TraceDiff(
            kind=text_of(lib.ree_diff_kind_name(diff.kind)),
            header=[name for bit, name in _HEADER.items() if diff.header & bit],
            n_steps=diff.n_steps, step=diff.step, input=diff.input if is_input else None,
            node=diff.node if node else None,
            name=node.name if node else self.inputs[diff.input] if is_input else "",
            op_type=node.op_type if node else "", inputs_agree=bool(agree),
            n_before=diff.n_before, n_after=diff.n_after, n_new=diff.n_new)

    def _write_page(self, other, path, err):
        titles = [c_path(self.path), c_path(other.path)]
        html = ffi.new("char **")
        check(lib.ree_trace_diff_html(self._handle, other._handle, ffi.new("const char *[]", titles), html, err), err)
        write_page(html, path, err)

    def __repr__(self):
        return f"<ree.Trace {self.root}, {self.n_steps} steps>"

    def __reduce__(self):
        raise TypeError("a ree.Trace cannot be pickled. Pass its path instead")


def write_page(html, path, err):
    """Writes an HTML page, and releases it. html: a char ** of the library."""
    text = ffi.gc(html[0], lib.ree_free)
    content = ffi.string(text)
    check(lib.ree_file_write(c_path(path), content, len(content), err), err)
