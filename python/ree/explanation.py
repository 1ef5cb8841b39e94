"""What a model's run costs: for each dispatch its operator, bytes, floating-point operations, time, and how much of
what the device can do it reaches."""
import html
import sys
from typing import Any, List, NamedTuple, Union

from ree._ree import ffi, lib
from ree.annotations import Path
from ree.device import Device
from ree.errors import InvalidError, NotFoundError, check
from ree.session import Session

_COLUMNS = ("RepOp", "node", "time", "part", "GFLOP/s", "GB/s", "of limit")
_COPY, _FMA = "copy on the device", "fma in registers"


class DispatchCost(NamedTuple):
    """One dispatch of a run.

    repop      the RepOp that runs, such as "matmul"
    node       the node of the graph that it computes, such as "node 'conv1' (Conv)"; if a dispatch computes
               several, one of them
    seconds    its shortest time in several runs; each dispatch is measured by itself
    flops      floating-point operations of its products; 0 for other RepOps
    nbytes     size of all operands
    limit      its rate divided by the highest that the device reached in two simple loops, for operations or for
               bytes, whichever is closer. Above 1 if the operands are in a cache"""
    repop: str
    node: str
    seconds: float
    flops: float
    nbytes: float
    limit: float


class GraphCost(NamedTuple):
    """A run of one graph.

    name            of the graph: "forward", "backward"; of a single model, its file
    device          what ran it
    seconds         time of a whole run, with transfers of inputs and outputs: the median
    n_nodes         nodes of the graph. Fusion joins several to one dispatch, and
                    nodes that only change shapes need none
    dispatches      list of DispatchCost, the slowest first; empty if the device cannot measure single dispatches"""
    name: str
    device: str
    seconds: float
    n_nodes: int
    dispatches: List[DispatchCost]


class Explanation:
    """What ree.explain returns. str(explanation) is a text, explanation.html a page with a picture.

    graphs         list of GraphCost
    flop_rate      floating-point operations per second that the device reached
    byte_rate      bytes per second, read and written, that it reached"""

    def __init__(self, graphs: List[GraphCost], flop_rate: float, byte_rate: float):
        self.graphs, self.flop_rate, self.byte_rate = graphs, flop_rate, byte_rate

    def __str__(self) -> str:
        lines = []
        for graph in self.graphs:
            lines += [self._head(graph), ""]
            if not graph.dispatches:
                continue
            rows = [_COLUMNS, *(_cells(graph, cost) for cost in graph.dispatches)]
            widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
            for row in rows:
                left = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
                right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]
                lines.append("  ".join([*left, *right]))
            lines.append("")
        lines.append(self._limits())
        return "\n".join(lines)

    def _head(self, graph: GraphCost) -> str:
        text = f"{graph.name}: {_time(graph.seconds)} a run on {graph.device}"
        if not graph.dispatches:
            return text + "; this device cannot measure single dispatches"
        measured = sum(cost.seconds for cost in graph.dispatches)
        return text + f"; {graph.n_nodes} nodes are {len(graph.dispatches)} dispatches, which take {_time(measured)}"

    def _limits(self) -> str:
        return f"limits: {self.flop_rate / 1e9:.1f} GFLOP/s, {self.byte_rate / 1e9:.1f} GB/s (measured)"

    @property
    def html(self) -> str:
        """A page that needs no other file: for each graph a picture of the dispatches' times, and the table."""
        parts = []
        for graph in self.graphs:
            parts.append(f"<h2>{html.escape(self._head(graph))}</h2>")
            if graph.dispatches:
                parts.append(_picture(graph))
                head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
                rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(graph, cost)) + "</tr>"
                               for cost in graph.dispatches)
                parts.append(f"<table><tr>{head}</tr>{rows}</table>")
        return ("<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>ree.explain</title><style>"
                "body{font:14px sans-serif;margin:2em}td,th{padding:2px 10px;text-align:right}"
                "td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}tr:nth-child(even){background:#f2f2f2}"
                f"</style></head><body><h1>What a run costs</h1>{''.join(parts)}<p>{html.escape(self._limits())}. "
                "In the pictures, the width of a bar is its part of the time; the darker, the closer to the limit.</p>"
                "</body></html>\n")

    def _repr_html_(self) -> str:
        return self.html

    def save(self, path: Path) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)


def _time(seconds):
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _cells(graph, cost):
    whole = sum(each.seconds for each in graph.dispatches) or 1
    return (cost.repop, cost.node, _time(cost.seconds), f"{100 * cost.seconds / whole:.1f} %",
            f"{cost.flops / cost.seconds / 1e9:.2f}" if cost.flops and cost.seconds else "",
            f"{cost.nbytes / cost.seconds / 1e9:.2f}" if cost.seconds else "", f"{100 * cost.limit:.0f} %")


def _picture(graph):
    """An SVG picture: one bar for each dispatch, side by side."""
    whole, at, bars = sum(cost.seconds for cost in graph.dispatches) or 1, 0.0, []
    for cost in graph.dispatches:
        width = 900 * cost.seconds / whole
        light = 85 - 50 * min(1.0, cost.limit)
        title = html.escape(f"{cost.repop}, {cost.node}: {_time(cost.seconds)}, {100 * cost.limit:.0f} % of the limit")
        bars.append(f"<rect x=\"{at:.2f}\" y=\"0\" width=\"{max(width - 0.5, 0.25):.2f}\" height=\"40\" "
                    f"fill=\"hsl(215,60%,{light:.0f}%)\"><title>{title}</title></rect>")
        at += width
    return f"<svg width=\"900\" height=\"40\" viewBox=\"0 0 900 40\" role=\"img\">{''.join(bars)}</svg>"


class _Benchmark:
    """A struct ree_benchmark of a device. `shape`: sizes for `rates`."""

    def __init__(self, device, n_runs, shape=b""):
        self._err = ffi.new("struct ree_error *")
        options = ffi.new("struct ree_benchmark_options *",
                          {"size": ffi.sizeof("struct ree_benchmark_options"), "n_runs": n_runs})
        self._shape = ffi.new("char[]", shape)
        options.shape = self._shape if shape else ffi.NULL
        out = ffi.new("struct ree_benchmark **")
        check(lib.ree_benchmark_create(device.handle(), options, out, self._err), self._err)
        self._benchmark = ffi.gc(out[0], lib.ree_benchmark_destroy)

    def rates(self, name):
        """The rates of a RepOp's benchmark, {what: per second}."""
        out = ffi.new("struct ree_bench_report **")
        check(lib.ree_benchmark_repop(self._benchmark, name, out, self._err), self._err)
        results = [out[0].results[i] for i in range(out[0].n_results)]
        return {ffi.string(r.name).decode(): r.rate * 1e9 for r in results}

    def session(self, session, inputs):
        """The struct ree_bench_model_report of a session's model; valid until the next call."""
        out = ffi.new("const struct ree_bench_model_report **")
        filled = session.inputs_of(inputs)
        check(lib.ree_benchmark_model(self._benchmark, session.model.handle, filled.structs, filled.n, out, self._err),
              self._err)
        return out[0]


def explain(function: Any, *args: Any, device: Union[Device, str, None] = None, runs: int = 7,
            **kwargs: Any) -> Explanation:
    """Measures what each dispatch of a model costs, and returns an Explanation.

        print(ree.explain("model.onnx", {"image": image}, device="vulkan"))
        ree.explain(torch.compile(model, backend="ree"), x).save("costs.html")

    function    a model, as for ree.Model, or a ree.Session; args is then its inputs by name. Or what ree.convert or
                torch.compile(..., backend="ree") returned; args and kwargs are those of a call. A compiled function is
                called twice, and if the result is one number with a gradient, its backward graph runs, too
    device      of a model; a session and a compiled function have one
    runs        runs of each measurement"""
    if runs < 1 or runs > lib.REE_BENCH_MAX_RUNS:
        raise InvalidError(f"runs is {runs}; 1 to {lib.REE_BENCH_MAX_RUNS} is expected")
    if hasattr(function, "artifacts_dir"):  # of ree.convert
        graphs = [("the model", function.session, function.values_of(args, kwargs))]
    elif callable(function) and not isinstance(function, Session):
        graphs = _called(function, args, kwargs)
    else:
        session = function if isinstance(function, Session) else Session(function, device or "cpu")
        if len(args) != 1 or kwargs:
            raise InvalidError("the inputs of a model are one mapping from names to values")
        graphs = [("the model", session, args[0])]
    return _measure(graphs, runs)


def _called(function, args, kwargs):
    """Calls a compiled function; returns the name, session and inputs of each graph that ran."""
    compiler = sys.modules.get("ree.compiler")
    if compiler is None and "torch" in sys.modules:  # the first call would import it
        from ree import compiler  # pylint: disable=import-outside-toplevel # imports PyTorch
    if compiler:
        function(*args, **kwargs)  # so that all graphs are compiled
    if not compiler or not compiler.graphs_of(function):
        raise NotFoundError(f"{function!r} was not compiled with backend \"ree\"")
    with compiler.kept_inputs() as kept:
        made = function(*args, **kwargs)
        if getattr(made, "requires_grad", False) and made.numel() == 1:
            made.backward()
    graphs = compiler.graphs_of(function)  # with the backward graph
    return [(graph.kind, graph.session, kept[graph]) for graph in graphs if graph in kept and graph.session]


def _measure(graphs, runs):
    session = graphs[0][1]
    with session.model.shared.lock, session.device.lock:
        # One after the other: each is released before the next begins.
        rates = _Benchmark(session.device, runs, b"4194304").rates(b"ceilings")
        products = _Benchmark(session.device, runs, b"768x768x768").rates(b"matmul")
        flop_rate = max([rate for name, rate in rates.items() if name.startswith(_FMA)] + list(products.values()), default=0.0)
        benchmark = _Benchmark(session.device, runs)
        byte_rate = max((rate for name, rate in rates.items() if name.startswith(_COPY)), default=0.0)
        found = []
        for name, each, inputs in graphs:
            report = benchmark.session(each, inputs)
            costs = [_cost(report.dispatches[i], flop_rate, byte_rate) for i in range(report.n_dispatches)]
            found.append(GraphCost(name, session.device.name, report.sets[0].seconds, _n_nodes(each.model), costs))
    return Explanation(found, flop_rate, byte_rate)


def _cost(cost, flop_rate, byte_rate):
    node = ffi.string(cost.node).decode() if cost.node else ""
    seconds = cost.seconds
    limit = 0.0
    if seconds > 0:
        limit = max(cost.flops / seconds / flop_rate if flop_rate else 0.0,
                    cost.bytes / seconds / byte_rate if byte_rate else 0.0)
    return DispatchCost(ffi.string(cost.repop).decode(), node, seconds, cost.flops, cost.bytes, limit)


def _n_nodes(model):
    counts = lib.ree_model_op_counts(model.handle)
    return sum(counts[i].count for i in range(lib.ree_model_n_op_counts(model.handle)))
