"""Comparisons: a model on two devices, node by node."""
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union, overload

from ree._ree import ffi, lib
from ree.annotations import Path, Prompt, Values
from ree.device import Device
from ree.errors import InvalidError, NotFoundError, c_text, check, text_of
from ree.generator import Generator
from ree.model import Model
from ree.prompts import Prompts, is_prompt
from ree.receipt import Receipt, ReceiptDifference
from ree.session import Session
from ree.tensors import DTYPES
from ree.trace import Trace, TraceDiff, write_page


class Ulp(NamedTuple):
    """How far the elements of two tensors a and b are apart, in ulps: the number of steps from one float to
    the other over the representable numbers.

    n, n_differ     elements; elements whose bits differ. The fields below are about these
    is_float        they are float64, float32, float16 or bfloat16
    histogram       distance -> count, as a dict from (first, last) of a range to the number of elements
    n_sign, n_nan   opposite signs; NaN in a or b
    max_ulp, max_abs, max_rel    largest distance, |a - b|, and |a - b| / max(|a|, |b|)
    worst, worst_a, worst_b      index of the worst element, and its values; None in a Drift"""
    n: int
    n_differ: int
    is_float: bool
    histogram: Dict[Tuple[int, int], int]
    n_sign: int
    n_nan: int
    max_ulp: int
    max_abs: float
    max_rel: float
    worst: Optional[int]
    worst_a: Optional[float]
    worst_b: Optional[float]


class Drift(NamedTuple):
    """The differences of one node over all steps.

    name, op_type     of the node
    n_runs            steps that ran it
    n_differ, n_new   those in which an output differs; although all values that it read agree
    other_shape       the type or shape of an output differs
    ulp               distances, over all outputs and steps"""
    name: str
    op_type: str
    n_runs: int
    n_differ: int
    n_new: int
    other_shape: bool
    ulp: Ulp


class First(NamedTuple):
    """The first difference.

    step, node, output    number of the step, of the node and of its output
    name                  of the output
    op_type               of the node
    dtype, shape          of the output, on the second device
    inputs_agree          all values that the node read agree, so the node computes something else
    other_shape           the type or shape differs; ulp is then zero"""
    step: int
    node: int
    output: int
    name: str
    op_type: str
    dtype: str
    shape: Tuple[int, ...]
    inputs_agree: bool
    other_shape: bool
    ulp: Ulp


class Suspect(NamedTuple):
    """A primitive that the first differing node depends on, and that a device does not compute natively.
    device: 0 or 1."""
    device: int
    name: str
    verdict: str


class Comparison(NamedTuple):
    """The result of ree.compare.

    n_steps           runs of the model
    first             a ree.comparison.First; None: every value of every node is the same on both devices
    n_differ, n_new   node runs that differ; those whose inputs all agree
    nodes             a ree.comparison.Drift for each node
    suspects          what may cause the first difference
    ids               the tokens of a language model that were generated"""
    n_steps: int
    first: Optional[First]
    n_differ: int
    n_new: int
    nodes: List[Drift]
    suspects: List[Suspect]
    ids: List[int]

    @property
    def same(self) -> bool:
        """Whether both devices computed the same bits."""
        return self.first is None


def compare(model: Any, inputs: Union[Values, Prompt], devices: Sequence[Union[Device, str]] = ("cpu", "vulkan"), *,
            max_new_tokens: int = 16, fault: Optional[str] = None, report: Optional[Path] = None,
            **weights: Any) -> Comparison:
    """Runs a model on two devices, and compares the result of every node byte by byte. Returns a
    ree.Comparison.

        ree.compare("model.onnx", {"x": x}, ("cpu", "vulkan")).first
        ree.compare("tools/sample/stories", "Once upon a time").same

    model             as for Session; of a language model, as for Generator: its path
    inputs            a dict, as for Session.run; or a prompt, as for Generator.generate
    devices           two ree.Device, or their specs
    max_new_tokens    language models: how many tokens follow the prompt, those most likely on the first device
    fault             for tests: "NODE:STEP:BIT" flips one bit on the second device
    report            path of an HTML page to write, with a plot of the differences from node to node
    weights           quantize_bits, quantize_block, quantize_table, activations: as for ree.Model"""
    if len(devices) != 2:
        raise ValueError(f"devices: two are expected, not {len(devices)}")
    with ExitStack() as stack:
        opened = [device if isinstance(device, Device) else stack.enter_context(Device(device)) for device in devices]
        if isinstance(inputs, Mapping):
            loaded = model if isinstance(model, Model) else Model(model, **weights)
            sides: List[Any] = [stack.enter_context(Session(loaded, device)) for device in opened]
        elif is_prompt(inputs):
            sides = [stack.enter_context(Generator(model, device, exact_lengths=True, **weights)) for device in opened]
        else:
            raise TypeError("compare: one prompt is expected")
        if isinstance(inputs, Mapping):
            stack.enter_context(loaded.shared.lock)
        for device in sorted({*opened}, key=id):
            stack.enter_context(device.lock)
            device.handle()
        result = _compare(sides, inputs, max_new_tokens, fault, report)
    return result


def _compare(sides, inputs, max_new_tokens, fault, report):
    """Compares two sessions or generators, whose devices are held."""
    c_fault = ffi.NULL if fault is None else c_text(fault)
    options = ffi.new("struct ree_compare_options *",
                      {"size": ffi.sizeof("struct ree_compare_options"), "fault": c_fault})
    out, err = ffi.new("struct ree_comparison **"), ffi.new("struct ree_error *")
    if isinstance(sides[0], Session):
        structs = sides[0].inputs_of(inputs)
        status = lib.ree_compare_sessions(sides[0].open(), sides[1].open(), structs.structs, structs.n, options, out,
                                          err)
    else:
        prompts = Prompts([inputs], sides[0].tokenizer.handle if sides[0].tokenizer else ffi.NULL)
        info = lib.ree_generator_info(sides[0].open())
        options.max_new_tokens, options.eos, options.n_eos = max_new_tokens, info.eos, info.n_eos
        status = lib.ree_compare_generators(sides[0].open(), sides[1].open(), prompts.list, options, out, err)
    try:
        for side in sides:
            side.progress.raise_pending()
        check(status, err)
        if report is not None:
            html = ffi.new("char **")
            check(lib.ree_comparison_html(out[0], b"ree.compare", html, err), err)
            write_page(html, report, err)
        return _comparison(out[0], err)
    finally:
        lib.ree_comparison_destroy(out[0])


def _comparison(made, err):
    result = lib.ree_comparison_result(made)
    info = ffi.new("struct ree_node_info *", {"size": ffi.sizeof("struct ree_node_info")})
    nodes, op_types = [], []
    for i in range(result.n_nodes):
        check(lib.ree_comparison_node(made, i, info, err), err)
        op_types.append(text_of(info.op_type))
        drift = result.drift[i]
        nodes.append(Drift(text_of(info.name), op_types[i], drift.n_runs, drift.n_differ, drift.n_new,
                           drift.other_shape, _ulp(drift.ulp, False)))
    found, first = result.first, None
    if found.found:
        first = First(found.step, found.node, found.output, text_of(found.name), op_types[found.node],
                      DTYPES.get(found.dtype, "?"), tuple(found.dims[0:found.rank]), found.inputs_agree,
                      found.other_shape, _ulp(found.ulp, True))
    suspects = [Suspect(suspect.side, text_of(suspect.name), text_of(suspect.verdict))
                for suspect in (result.suspects[i] for i in range(result.n_suspects))]
    ids = ffi.unpack(result.ids, result.n_ids) if result.n_ids else []
    return Comparison(result.n_steps, first, result.n_differ, result.n_new, nodes, suspects, ids)


def _ulp(ulp, has_worst):
    first, last, histogram = ffi.new("uint64_t *"), ffi.new("uint64_t *"), {}
    for bucket, count in enumerate(ulp.histogram):
        if count:
            lib.ree_ulp_range(bucket, first, last)
            histogram[first[0], last[0]] = count
    has_worst = has_worst and ulp.n_differ > 0
    return Ulp(ulp.n, ulp.n_differ, ulp.is_float, histogram, ulp.n_sign, ulp.n_nan, ulp.max_ulp, ulp.max_abs,
               ulp.max_rel, ulp.worst if has_worst else None, ulp.worst_a if has_worst else None,
               ulp.worst_b if has_worst else None)



@overload
def diff(a: Trace, b: Trace, *, report: Optional[Path] = None) -> TraceDiff: ...


@overload
def diff(a: Receipt, b: Receipt, *, report: None = None) -> List[ReceiptDifference]: ...


@overload
def diff(a: Union[Trace, Receipt, Path], b: Union[Trace, Receipt, Path], *, report: Optional[Path] = None) -> Any: ...


def diff(a: Any, b: Any, *, report: Optional[Path] = None) -> Any:
    """Finds where two runs differ.

    a, b      two traces: a ree.Trace or the path of one; returns a ree.TraceDiff. Or two receipts: a
              ree.Receipt, or the path of one; returns a list of ree.ReceiptDifference
    report    for traces, path of an HTML page to write: which nodes of which steps differ"""
    sides = [side if isinstance(side, (Trace, Receipt)) else _loaded(side) for side in (a, b)]
    if isinstance(sides[0], Trace) and isinstance(sides[1], Trace):
        return sides[0].diff(sides[1], report=report)
    if isinstance(sides[0], Trace) or isinstance(sides[1], Trace):
        raise InvalidError("a trace and a receipt cannot be compared")
    if report is not None:
        raise InvalidError("report: there is a page for traces only")
    return sides[0].diff(sides[1])


def _loaded(path):
    """The receipt or the trace in a file. Receipts are JSON objects; traces are not."""
    try:
        with open(path, "rb") as file:
            begin = file.read(64).lstrip()
    except FileNotFoundError as e:
        raise NotFoundError(f"{path}: there is no such file") from e
    return Receipt(path) if begin.startswith(b"{") else Trace(path)
