"""Lowers graphs of PyTorch's ATen operators to ONNX models. Imports PyTorch.

A rule for each operator, named as in ATen ("add.Tensor"), adds nodes to an onnx_builder.Builder. The modules of
ree.aten have the rules. Operators without a rule are decomposed by PyTorch before they come here
(`decompositions`), or are unsupported."""
import ctypes
import math
import operator
from typing import Any, Callable, Dict

import sympy
import torch
from torch.utils._python_dispatch import _disable_current_modes

from ree import onnx_builder as onnx
from ree.errors import UnsupportedError

TYPES = {torch.float32: onnx.FLOAT, torch.float64: onnx.DOUBLE, torch.float16: onnx.FLOAT16,
         torch.bfloat16: onnx.BFLOAT16, torch.int64: onnx.INT64, torch.int32: onnx.INT32, torch.int16: onnx.INT16,
         torch.int8: onnx.INT8, torch.uint8: onnx.UINT8, torch.bool: onnx.BOOL}
RULES: Dict[str, Callable[..., Any]] = {}
_ASSERTIONS = ("_assert_async.msg", "_assert_async.default")


class Tensor:
    """A tensor of the graph: the name of its value, and PyTorch's fake tensor with its type and shape."""

    def __init__(self, name, fake):
        self.name, self.fake = name, fake
        self.dtype, self.shape = fake.dtype, fake.shape
        self.rank = len(fake.shape)

    def axis(self, dim):
        """The number of a dimension, counted from 0."""
        return dim + max(self.rank, 1) if dim < 0 else dim

    def axes(self, dims):
        """The numbers of dimensions; none given: all."""
        dims = [dims] if isinstance(dims, int) else dims
        return sorted(self.axis(d) for d in dims) if dims and self.rank else list(range(self.rank))


def rule(*names):
    """Decorates the function that lowers ATen operators: rule(lowering, *arguments of the operator)."""
    def add(function):
        for name in names:
            RULES[name] = function
        return function
    return add


def name_of(target):
    """The name of an operator, "add.Tensor"."""
    text = str(target)
    return text[5:] if text.startswith("aten.") else text


# Operators of PyTorch's core set that are decomposed none the less.
_MORE = ("native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward",
         "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit_functional",
         "_native_batch_norm_legit_no_training", "_native_batch_norm_legit", "_batch_norm_with_update",
         "_batch_norm_with_update_functional", "_batch_norm_no_update", "batch_norm_backward", "nll_loss_forward",
         "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "_adaptive_avg_pool2d",
         "_adaptive_avg_pool2d_backward", "embedding_dense_backward", "upsample_bilinear2d", "upsample_nearest2d",
         "upsample_nearest2d_backward", "_cdist_forward", "col2im", "grid_sampler_2d", "log1p", "expm1",
         "_fused_rms_norm", "_fused_rms_norm_backward", "smooth_l1_loss", "huber_loss", "mse_loss", "mse_loss_backward",
         "binary_cross_entropy", "binary_cross_entropy_backward", "elu", "elu_backward", "leaky_relu",
         "leaky_relu_backward", "hardtanh", "hardtanh_backward", "gelu_backward", "silu", "silu_backward",
         "hardsigmoid", "hardswish", "softplus", "mish", "log_sigmoid_forward", "glu", "lerp", "addcmul", "addcdiv",
         "masked_fill", "index_add", "index_copy", "index_fill", "unfold", "unfold_backward", "roll", "stack",
         "squeeze", "native_dropout_backward", "threshold_backward", "sigmoid_backward", "tanh_backward",
         "_softmax_backward_data", "_log_softmax_backward_data", "std", "std_mean", "norm", "linalg_vector_norm",
         "baddbmm", "mv", "dot", "addmv", "rsub", "zero", "fill", "bucketize", "pixel_shuffle", "pixel_unshuffle")


def decompositions():
    """PyTorch's decompositions of operators that have no rule here."""
    more = [getattr(torch.ops.aten, name) for name in _MORE if hasattr(torch.ops.aten, name)]
    table = {**torch._decomp.core_aten_decompositions(),  # pylint: disable=protected-access
             **torch._decomp.get_decompositions(more)}  # pylint: disable=protected-access
    return {op: function for op, function in table.items() if name_of(op) not in RULES}


def unsupported(graph):
    """The names of the operators of an FX graph that have no rule, in order."""
    found = {}
    for node in graph.nodes:
        if node.op == "call_function" and not _is_size(node) and node.target is not operator.getitem and \
                name_of(node.target) not in RULES and name_of(node.target) not in _ASSERTIONS:
            found[name_of(node.target)] = None
    return list(found)


def _is_size(node):
    """Whether a node computes a number for shapes."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, torch.SymFloat, int, bool, float))


class Lowering:
    """The ONNX model of an FX graph.

    model      its bytes
    inputs     for each input: its name; None: the graph does not read it, or it is None
    outputs    for each output: ("output", name), ("input", number of the input that it is), ("value", number)
    n_random   how many operators draw random numbers: then the inputs "random.seed" and "random.step" are
               added
    asserted   outputs that must be true: a list of (name, message)

    names      names of inputs, by node; by default the names of the nodes
    defaults   values of inputs that need not be given, tensors by node
    outputs    names of the outputs, in order; by default new ones"""

    def __init__(self, graph, names=None, defaults=None, outputs=None):
        self._names, self._defaults = names or {}, defaults or {}
        self._output_names = iter(outputs or ())
        self.b = onnx.Builder({*self._names.values(), *(outputs or ())})
        self.n_random, self.asserted = 0, []
        self._values = {}  # node -> Tensor, list of them, or a number
        self._symbols = {}  # sympy.Symbol -> name of a value
        self._random = None
        self._node = None
        self.fake = None  # the result of the operator: a fake tensor, or a tuple of them
        self.inputs, self.outputs = [], []
        placeholders = []
        for node in graph.nodes:
            self._node = node
            if node.op == "placeholder":
                placeholders.append(node)
                self._add_input(node)
            elif node.op == "call_function":
                self._values[node] = self._call(node)
            elif node.op == "get_attr":
                self._values[node] = self._constant_tensor(graph, node)
            elif node.op == "output":
                made = node.args[0]  # one value of a part of a graph, otherwise a list
                for value in made if isinstance(made, (list, tuple)) else [made]:
                    self.outputs.append(self._add_output(value, placeholders))
            else:
                raise UnsupportedError(f"an FX node of kind '{node.op}'")
        self.model = self.b.model()

    def _add_input(self, node):
        fake, name = node.meta.get("val"), None
        if isinstance(fake, torch.Tensor):
            self._check_type(fake.dtype)
            named = self._names.get(node, node.name)
            if node.users or node in self._names:
                default = _bytes_of(self._defaults[node]) if node in self._defaults else None
                name = self.b.input(named, TYPES[fake.dtype], [self._dim(size) for size in fake.shape], default)
            self._values[node] = Tensor(named, fake)
        elif isinstance(fake, torch.SymInt):
            name = self.b.input(node.name, onnx.INT64, ())
            self._symbols[fake.node.expr] = node.name
            self._values[node] = fake
        else:
            self._values[node] = fake
        self.inputs.append(name)

    def _dim(self, size):
        return size if isinstance(size, int) else str(size.node.expr)

    def _check_type(self, dtype):
        if dtype not in TYPES:
            raise UnsupportedError(f"{self._node.name}: ree has no rules for PyTorch's type {dtype}")

    def _constant_tensor(self, graph, node):
        tensor = graph.owning_module
        for part in node.target.split("."):
            tensor = getattr(tensor, part)
        self._check_type(tensor.dtype)
        return Tensor(self.b.data(TYPES[tensor.dtype], tensor.shape, _bytes_of(tensor)), tensor)

    def _add_output(self, node, placeholders):
        if node is None or isinstance(node, (int, float, bool)):
            return "value", node
        if node in placeholders:
            return "input", placeholders.index(node)
        if _is_size(node):
            fake = node.meta["val"]
            if isinstance(fake, (int, float, bool)):
                return "value", fake
            return "size", self.b.output(self.sym(fake), onnx.INT64, ())
        tensor = self._values[node]
        return "output", self.b.output(tensor.name, TYPES[tensor.dtype], [self._dim(size) for size in tensor.shape],
                                       next(self._output_names, None))

    def _call(self, node):
        if _is_size(node):
            return node.meta["val"]
        args = torch.fx.node.map_arg(node.args, self._values.__getitem__)
        kwargs = torch.fx.node.map_arg(node.kwargs, self._values.__getitem__)
        if node.target is operator.getitem:
            return args[0][args[1]]
        name = name_of(node.target)
        if name in _ASSERTIONS:
            value = self.reshape(self.cast(args[0], torch.bool), ())
            self.asserted.append((self.b.output(value, onnx.BOOL, ()), args[1] if len(args) > 1 else "an assertion"))
            return None
        if name not in RULES:
            raise UnsupportedError(f"PyTorch's operator '{name}' is not supported")
        self.fake = fakes = node.meta["val"]
        for fake in fakes if isinstance(fakes, (tuple, list)) else [fakes]:
            if isinstance(fake, torch.Tensor):
                self._check_type(fake.dtype)
        made = RULES[name](self, *args, **kwargs)
        if isinstance(fakes, (tuple, list)):
            return [None if value is None or fake is None else Tensor(value, fake) for value, fake in zip(made, fakes)]
        return Tensor(made, fakes)

    # What rules use.

    @property
    def op_name(self):
        """The name of the operator, "add.Tensor"."""
        return name_of(self._node.target)

    def fail(self, reason):
        """Raises UnsupportedError about the operator."""
        raise UnsupportedError(f"PyTorch's operator '{self.op_name}': {reason}")

    def cast(self, value, dtype, source=None):
        """A value converted to a type. value: a Tensor, or a name whose type `source` is."""
        if isinstance(value, Tensor):
            value, source = value.name, value.dtype
        return value if source == dtype else self.b.op("Cast", value, to=TYPES[dtype])

    def value(self, item, dtype):
        """A Tensor or a number, as a value of this type."""
        if isinstance(item, Tensor):
            return self.cast(item, dtype)
        if isinstance(item, (torch.SymInt, torch.SymFloat)):
            return self.cast(self.sym(item), dtype, torch.int64)
        return self.b.constant(TYPES[dtype], _number_of(item, dtype))

    def ints(self, values):
        """A vector of int64: sizes, axes. Its elements may be symbolic."""
        if all(isinstance(value, int) for value in values):
            return self.b.constant(onnx.INT64, [int(value) for value in values])
        parts = [self.b.op("Unsqueeze", self.sym(value), self.ints([0])) if isinstance(value, torch.SymInt) else
                 self.ints([value]) for value in values]
        return parts[0] if len(parts) == 1 else self.b.op("Concat", *parts, axis=0)

    def sym(self, value):
        """A symbolic number, as a scalar of int64."""
        if isinstance(value, int):
            return self.b.constant(onnx.INT64, value)
        return self._expression(value.node.expr)

    def _expression(self, e):
        if e in self._symbols:
            return self._symbols[e]
        if e.is_Integer:
            return self.b.constant(onnx.INT64, int(e))
        kinds = {"Add": "Add", "Mul": "Mul", "Max": "Max", "Min": "Min"}
        kind = type(e).__name__
        if kind in kinds:
            args = [self._expression(arg) for arg in e.args]
            made = args[0]
            for arg in args[1:]:
                made = self.b.op(kinds[kind], made, arg)
        elif kind == "FloorDiv" or kind == "CleanDiv":  # sizes are not negative
            made = self.b.op("Div", *(self._expression(arg) for arg in e.args))
        elif kind in ("Mod", "PythonMod"):
            made = self.b.op("Mod", *(self._expression(arg) for arg in e.args))
        elif isinstance(e, sympy.Pow) and e.exp.is_Integer and e.exp > 0:
            made = self._expression(e.base)
            base = made
            for _ in range(int(e.exp) - 1):
                made = self.b.op("Mul", made, base)
        else:
            raise UnsupportedError(f"a size is {e}, which backend \"ree\" does not compute")
        self._symbols[e] = made
        return made

    def reshape(self, name, shape):
        """A value in another shape, a list of numbers."""
        return self.b.op("Reshape", name, self.ints(list(shape)), allowzero=1)

    def product(self, sizes):
        """The product of sizes, as a scalar of int64."""
        if all(isinstance(size, int) for size in sizes):
            return self.sym(math.prod(sizes))
        made = self.sym(sizes[0])
        for size in sizes[1:]:
            made = self.b.op("Mul", made, self.sym(size))
        return made

    def full(self, value, dtype, shape):
        """A tensor of equal elements."""
        return self.b.op("Expand", self.value(value, dtype), self.ints(list(shape)))

    def random_inputs(self):
        """For an operator that draws random numbers: the values of seed (2) and step, and the operator's number
        among those that draw."""
        if self._random is None:
            self._random = self.b.input("random.seed", onnx.UINT32, (2,)), self.b.input("random.step", onnx.UINT32, ())
        self.n_random += 1
        return (*self._random, self.n_random - 1)


def _bytes_of(tensor):
    with _disable_current_modes():  # the tensor is a real one
        data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return ctypes.string_at(data.data_ptr(), data.numel()) if data.numel() else b""


def repeated(values, n):
    """A list of n numbers for n dimensions; one number counts for all."""
    return list(values) * n if len(values) == 1 else list(values)


def _number_of(item, dtype):
    """A number in a type; integers wrap around, as in eager PyTorch."""
    if dtype == torch.bool:
        return bool(item)
    if dtype.is_floating_point:
        return float(item)
    info = torch.iinfo(dtype)
    return (int(item) - info.min) % 2 ** info.bits + info.min
