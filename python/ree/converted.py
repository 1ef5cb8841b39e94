"""Modules of PyTorch that run on ree. Imports PyTorch; ree.conversion imports it when it is called."""
import contextlib
import inspect
import warnings
from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree

from ree.errors import InvalidError, UnsupportedError


class Structure(NamedTuple):
    """What an exported module takes and returns.

    inputs      pytree spec of (args, kwargs); leaves: each leaf of the example; None in place of a tensor
    names       for each tensor among the leaves, the name of its input of the ONNX model
    outputs     pytree spec of what it returns
    constants   for each leaf of the outputs: (True, its value), or (False, None) for a tensor"""
    inputs: object
    leaves: list
    names: list
    outputs: object
    constants: list


class ConvertedModule(torch.nn.Module):
    """A model on a ree.Device.

    session          the ree.Session
    artifacts_dir    the folder with the model, its passes, its programs and their kernels

    It has no parameters and computes no gradients. Its outputs are on the device of PyTorch on which the
    first tensor of the inputs is."""

    def __init__(self, session, artifacts, structure):
        super().__init__()
        self.session = session
        self._artifacts = artifacts
        self._structure = structure
        self._names = [port.name for port in session.inputs]
        unknown = set(self._names) - set(structure.names if structure else self._names)
        if unknown:
            raise UnsupportedError(f"PyTorch's export has an input '{sorted(unknown)[0]}', but the module has not")

    @property
    def artifacts_dir(self):
        """Path of the folder."""
        return self._artifacts.path

    @property
    def kernels(self):
        """The kernels of what has run: iterable of ree.Kernel."""
        return self._artifacts.kernels

    def forward(self, *args, **kwargs):
        """Runs the model once."""
        values = self.values_of(args, kwargs)
        tensors = [value for value in values.values() if isinstance(value, torch.Tensor)]
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            raise UnsupportedError("an input requires a gradient, and a converted module computes none: call it "
                                   "within torch.no_grad()")
        made = self.session.run(values)
        device = tensors[0].device if tensors else torch.device("cpu")
        outputs = [_on(device, made[port.name]) for port in self.session.outputs]
        if self._structure is None:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        rest = iter(outputs)
        leaves = [value if is_constant else next(rest) for is_constant, value in self._structure.constants]
        return pytree.tree_unflatten(leaves, self._structure.outputs)

    def values_of(self, args, kwargs):
        """The values of a call, by the names of the model's inputs."""
        return self._by_name(args, kwargs) if self._structure is None else self._by_structure(args, kwargs)

    def _by_name(self, args, kwargs):
        if len(args) > len(self._names):
            raise InvalidError(f"{len(args)} inputs, but the model has {len(self._names)}: {', '.join(self._names)}")
        values = dict(zip(self._names, args))
        for name, value in kwargs.items():
            if name in values:
                raise InvalidError(f"input '{name}' is given twice")
            values[name] = value
        return values

    def _by_structure(self, args, kwargs):
        leaves, spec = pytree.tree_flatten((args, _sorted(kwargs)))
        if spec != self._structure.inputs:
            raise InvalidError(f"the inputs have another structure than the example: {spec}, expected "
                               f"{self._structure.inputs}")
        tensors = []
        for leaf, expected in zip(leaves, self._structure.leaves):
            if isinstance(leaf, torch.Tensor):
                tensors.append(leaf)
            elif leaf is not expected and leaf != expected:
                raise InvalidError(f"an input is {leaf!r}, but the module was exported with {expected!r}")
        return {name: tensor for name, tensor in zip(self._structure.names, tensors) if name in self._names}

    def extra_repr(self):
        """What print(module) shows."""
        return f"{len(self._names)} inputs, on {self.session.device!r}"


def _on(device, value):
    """An output as PyTorch's tensor on a device; a sequence as a list of them; an absent value as None."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_on(device, item) for item in value]
    if not isinstance(value, torch.Tensor):
        value = torch.as_tensor(value)
    return value if value.device == device else value.to(device)


def _sorted(kwargs):
    return {name: kwargs[name] for name in sorted(kwargs)}


@contextlib.contextmanager
def _in_eval_mode(module):
    """All parts of the module in eval mode, and afterwards as they were."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def export(module, args, kwargs, dynamic_shapes, opset, path):
    """Exports a module to the ONNX file `path`; returns its Structure."""
    kwargs = _sorted(kwargs)
    leaves, inputs = pytree.tree_flatten((args, kwargs))
    if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise InvalidError("a torch.nn.Module is exported with example inputs: set args or kwargs")
    leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    has_dynamo = "dynamo" in inspect.signature(torch.onnx.export).parameters
    with _in_eval_mode(module), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write = _write_with_dynamo if has_dynamo else _write_with_trace
        outputs, constants, names = write(module, args, kwargs, dynamic_shapes, opset, str(path))
    return Structure(inputs, leaves, names, outputs, constants)


def _write_with_dynamo(module, args, kwargs, dynamic_shapes, opset, path):
    try:
        program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
        mutated = list(program.graph_signature.buffers_to_mutate.values())
        if mutated:
            raise UnsupportedError(f"the module changes its buffer '{mutated[0]}' when it runs")
        torch.onnx.export(program, (), path, dynamo=True, opset_version=opset, verbose=False, external_data=True)
    except (torch.onnx.OnnxExporterError, RuntimeError) as e:
        raise UnsupportedError(f"PyTorch cannot export {type(module).__name__} to ONNX: {e}") from e
    constants = []
    for spec in program.graph_signature.output_specs:
        is_tensor = type(spec.arg).__name__ == "TensorArgument"
        constants.append((not is_tensor, None if is_tensor else getattr(spec.arg, "value", None)))
    names = [spec.arg.name for spec in program.graph_signature.input_specs
             if spec.kind.name == "USER_INPUT" and type(spec.arg).__name__ == "TensorArgument"]
    return program.call_spec.out_spec, constants, names


class _Flat(torch.nn.Module):
    """A module whose inputs and outputs are the tensors among the leaves of the real ones."""

    def __init__(self, module, args, kwargs):
        super().__init__()
        self.module = module
        self._leaves, self._inputs = pytree.tree_flatten((args, kwargs))

    def forward(self, *tensors):
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._inputs)
        made, _ = pytree.tree_flatten(self.module(*args, **kwargs))
        return tuple(leaf for leaf in made if isinstance(leaf, torch.Tensor))


def _write_with_trace(module, args, kwargs, dynamic_shapes, opset, path):
    """For versions of PyTorch before 2.5."""
    if dynamic_shapes is not None:
        raise UnsupportedError("dynamic_shapes: a newer version of PyTorch is needed")
    leaves, outputs = pytree.tree_flatten(module(*args, **kwargs))
    constants = [(not isinstance(leaf, torch.Tensor), None if isinstance(leaf, torch.Tensor) else leaf)
                 for leaf in leaves]
    tensors = tuple(leaf for leaf in pytree.tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor))
    names = [f"input_{i}" for i in range(len(tensors))]
    try:
        torch.onnx.export(_Flat(module, args, kwargs).eval(), tensors, path, opset_version=opset or 17,
                          input_names=names)
    except RuntimeError as e:
        raise UnsupportedError(f"PyTorch cannot export {type(module).__name__} to ONNX: {e}") from e
    return outputs, constants, names
