"""torch.compile(model, backend="ree"): graphs of ATen operators, forward and backward, run on ree. Imports PyTorch.

PyTorch's AOTAutograd gives graphs of functional operators; ree.lowering makes an ONNX model of each, which a
ree.Session runs."""
import contextlib
import sys
import threading
import warnings
from typing import Dict

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ree import aten, lowering  # noqa: F401 # pylint: disable=unused-import # aten: its rules
from ree.device import Device
from ree.errors import UnsupportedError
from ree.kernels import Kernels
from ree.model import Model
from ree.resident import Resident, is_kept
from ree.session import Session
from ree.stages import Stage

_OPTIONS = {"device": "cpu", "fallback": False, "resident": False}
_devices: Dict[str, Device] = {}  # spec -> an open device
_devices_lock = threading.Lock()


class Random:
    """What dropout and other random operators of compiled graphs draw from: a seed, and the number of the next
    call of a graph that draws."""
    seed = 0
    step = 0
    lock = threading.Lock()


def manual_seed(seed):
    """Sets the seed of the random numbers of compiled graphs, 0 to 2^64 - 1, and begins again."""
    if not 0 <= seed < 2 ** 64:
        raise ValueError(f"the seed is {seed}; 0 to 2^64 - 1 is expected")
    with Random.lock:
        Random.seed, Random.step = seed, 0


def _device(spec):
    if isinstance(spec, Device):
        return spec
    with _devices_lock:
        if spec not in _devices:
            _devices[spec] = Device(spec)
        return _devices[spec]


def resident_of(device):
    """The copies of parameters on a device, which all compiled graphs share."""
    with _devices_lock:
        if "resident" not in vars(device):
            vars(device)["resident"] = Resident(device)
        return vars(device)["resident"]


class CompiledGraph:
    """An FX graph of ATen operators, as a model on a device. Called with the graph's inputs; returns a list of
    its outputs.

    stages    list of ree.Stage: the captured graph, the ONNX graph after each pass of the compiler and, once it
              has run, the program and its memory plan, for each set of shapes
    kernels   the kernels that these programs launch"""

    def __init__(self, graph_module, device, kind="graph", resident=None):
        self.kind, self._resident = kind, resident
        self.stages = [Stage(f"{kind}: captured", graph_module.print_readable(print_output=False))]
        lowered = lowering.Lowering(graph_module.graph)
        self._inputs, self._outputs, self._n_random = lowered.inputs, lowered.outputs, lowered.n_random
        self.onnx = lowered.model
        self._asserted = lowered.asserted
        runs = lowered.asserted or any(kind in ("output", "size") for kind, _ in self._outputs)
        self.session, self.kernels = None, Kernels()
        if runs:
            self.session = Session(Model(lowered.model, on_pass=self._note), device, on_program=self._note,
                                   on_kernel=self.kernels.add)

    kept = None  # a dict from graphs to their last inputs by name, while kept_inputs is used

    def _note(self, name, text):
        self.stages.append(Stage(f"{self.kind}: {name}", text))

    def __call__(self, *args):
        values = {name: value if isinstance(value, torch.Tensor) else torch.tensor(value)
                  for name, value in zip(self._inputs, args) if name is not None}
        if self._n_random:
            values["random.seed"], values["random.step"] = _draw()
        if CompiledGraph.kept is not None:
            CompiledGraph.kept[self] = values
        if self._resident is not None and self.session:
            values = {name: self._resident.of(value) if is_kept(value) else value for name, value in values.items()}
        made = self.session.run(values) if self.session else {}
        for name, message in self._asserted:
            if not bool(made[name]):
                raise RuntimeError(message)
        return [args[what] if kind == "input" else what if kind == "value" else
                int(made[what]) if kind == "size" else _tensor(made[what]) for kind, what in self._outputs]


def _draw():
    """The seed and the step of a call, as uint32."""
    with Random.lock:
        seed, step = Random.seed, Random.step
        Random.step += 1
    words = memoryview(b"".join((seed >> shift & 0xFFFFFFFF).to_bytes(4, "little") for shift in (0, 32)))
    return words.cast("I"), memoryview((step & 0xFFFFFFFF).to_bytes(4, "little")).cast("I", [])


def _tensor(value):
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)


class _Supported(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and not lowering.unsupported(_OneNode(node))


class _OneNode:
    """A graph of one node, for lowering.unsupported."""

    def __init__(self, node):
        self.nodes = [node]


def _compile(graph_module, device, chosen, kind, made):
    """What runs a graph. Adds the CompiledGraphs to the list `made`. chosen: the options."""
    resident = resident_of(device) if chosen["resident"] else None
    missing = lowering.unsupported(graph_module.graph)
    if not missing:
        made.append(CompiledGraph(graph_module, device, kind, resident))
        return made[-1]
    if not chosen["fallback"]:
        raise UnsupportedError(f"PyTorch's operators {', '.join(missing)} are not supported; with options="
                               "{'fallback': True} PyTorch computes them, without the promise of equal bits")
    warnings.warn(f"PyTorch computes {', '.join(missing)}: these results may differ between devices", stacklevel=2)
    partitioner = CapabilityBasedPartitioner(graph_module, _Supported(), allows_single_node_partition=True)
    fused = partitioner.partition_and_fuse()
    for name, part in list(fused.named_children()):
        if name.startswith("fused_"):
            compiled = CompiledGraph(part, device, f"{kind}, {name}", resident)
            made.append(compiled)
            is_list = isinstance(_output_of(part), (list, tuple))
            setattr(fused, name, _Part(compiled, is_list))
    return fused.forward


def _output_of(graph_module):
    return next(node for node in graph_module.graph.nodes if node.op == "output").args[0]


class _Part(torch.nn.Module):
    """A part of a graph that ree runs."""

    def __init__(self, compiled, is_list):
        super().__init__()
        self._compiled, self._is_list = compiled, is_list

    def forward(self, *args):
        made = self._compiled(*args)
        return tuple(made) if self._is_list else made[0]


def backend(graph_module, example_inputs, options=None):
    """The backend "ree" of torch.compile.

        torch.compile(model, backend="ree", options={"device": "vulkan"})

    options    "device": a ree.Device or the spec of one (default "cpu"); "fallback": True lets PyTorch compute
               operators that ree lacks, and warns about each graph with some (default False: raise);
               "resident": True keeps copies of parameters on the device and copies a parameter again only if
               PyTorch's counter says that it has changed, or after a step of an optimizer. Changes of
               `parameter.data` or of memory that NumPy shares are not noticed (default False: parameters are
               read in each call)"""
    unknown = set(options or {}) - set(_OPTIONS)
    if unknown:
        raise ValueError(f"backend 'ree': unknown option '{sorted(unknown)[0]}'; there are {', '.join(_OPTIONS)}")
    chosen = {**_OPTIONS, **(options or {})}
    device = _device(chosen["device"])

    made = _graphs_of_caller()

    def compile_graph(kind):
        return lambda graph, inputs: make_boxed_func(_compile(graph, device, chosen, kind, made))
    compile_all = aot_autograd(fw_compiler=compile_graph("forward"), bw_compiler=compile_graph("backward"),
                               inference_compiler=compile_graph("inference"),
                               decompositions=lowering.decompositions())
    return compile_all(graph_module, example_inputs)


def _graphs_of_caller():
    """A list for CompiledGraphs. It belongs to the object of torch.compile that calls the backend, which is a
    local variable of a frame of PyTorch; graphs_of finds it there."""
    frame = sys._getframe(2)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if getattr(caller, "compiler_fn", None) is backend:
            return caller.__dict__.setdefault("ree_graphs", [])
        frame = frame.f_back
    return []


@contextlib.contextmanager
def kept_inputs():
    """A context in which each CompiledGraph that runs is a key of a dict, with its inputs by name."""
    CompiledGraph.kept = {}
    try:
        yield CompiledGraph.kept
    finally:
        CompiledGraph.kept = None


def graphs_of(function):
    """The CompiledGraphs of a function or module that torch.compile returned, in the order of their compilation."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for callback in [getattr(getattr(function, "dynamo_ctx", None), "callback", None), *cells]:
        while callback is not None:
            if hasattr(callback, "ree_graphs"):
                return callback.ree_graphs
            callback = getattr(callback, "_torchdynamo_orig_backend", None)
    return []
