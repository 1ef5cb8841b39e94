"""Captures a training step of PyTorch as an ONNX model. Imports PyTorch.

torch.compile gives the graph of loss and gradients, and that of the optimizer. They are joined, and ree.lowering makes
an ONNX model of both. A captured graph takes tensors in an order of its own; which is which, their addresses tell."""
import copy
import inspect
import json
import types
import warnings
from typing import NamedTuple

import torch
from functorch.compile import default_partition, make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

from ree import aten, lowering  # noqa: F401 # pylint: disable=unused-import # aten: its rules
from ree.errors import InvalidError, UnsupportedError

_COPY = torch.ops.aten.copy_.default


def captured(model, loss, optimizer, example, max_norm):
    """The bytes of the ONNX model; see ree.export_training for the arguments."""
    names, batch = _named(model, loss, example)
    _check_copyable(model, optimizer)
    try:
        model, optimizer = _copies(model, optimizer)  # running them changes both
    except RuntimeError as e:
        raise UnsupportedError(f"{type(model).__name__} cannot be copied: {e}") from e
    with torch.random.fork_rng():  # dropout draws from the default generator
        step = _Step(model)
        step.add_loss(model, loss, names, batch)
        step.add_update(optimizer, max_norm)
    return step.model(type(optimizer).__name__)


def _copies(model, optimizer):
    """Copies of both. The optimizer's copying leaves out attributes that a class of its own has added."""
    known = {}
    model, made = copy.deepcopy(model, known), copy.deepcopy(optimizer, known)
    for name, value in vars(optimizer).items():
        if name not in vars(made):
            setattr(made, name, copy.deepcopy(value, known))
    return model, made


def _check_copyable(model, optimizer):
    """Refuses what a copy of the model and the optimizer would lose: hooks, and memory shared by two tensors."""
    owners = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        memory = tensor.untyped_storage().data_ptr()
        if memory and owners.setdefault(memory, name) != name:
            raise UnsupportedError(f"'{owners[memory]}' and '{name}' are different tensors with the same memory")
        if any(getattr(tensor, hooks, None) for hooks in ("_backward_hooks", "_post_accumulate_grad_hooks")):
            raise UnsupportedError(f"parameter '{name}' has hooks")
        if tensor.requires_grad and not isinstance(tensor, torch.nn.Parameter):
            raise UnsupportedError(f"buffer '{name}' requires a gradient; only parameters are trained")
    if any(getattr(optimizer, hooks, None) for hooks in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")):
        raise UnsupportedError(f"{type(optimizer).__name__} has hooks of its steps")


def _named(model, loss, example):
    """The names and the tensors of a batch."""
    signature = inspect.signature(model.forward if loss is None else loss)
    expected = [name for name, parameter in signature.parameters.items()
                if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    expected = expected if loss is None else expected[1:]
    if isinstance(example, dict):
        unknown = set(example) - set(expected)
        if unknown:
            raise InvalidError(f"the example has '{sorted(unknown)[0]}'; the function takes {', '.join(expected)}")
        names = [name for name in expected if name in example]
        if names != expected[:len(names)]:
            raise InvalidError(f"the example lacks '{next(name for name in expected if name not in example)}'")
        batch = tuple(example[name] for name in names)
    else:
        batch = tuple(example) if isinstance(example, (tuple, list)) else (example,)
        if len(batch) > len(expected):
            raise InvalidError(f"the example has {len(batch)} tensors; the function takes {', '.join(expected)}")
        names = expected[:len(batch)]
    for name, value in zip(names, batch):
        if not isinstance(value, torch.Tensor):
            raise InvalidError(f"'{name}' of the example is {type(value).__name__}; a tensor is expected")
    return names, tuple(value.detach().clone() for value in batch)


class _Step:
    """A graph under construction: first loss and gradients, then the update."""

    def __init__(self, model):
        self._graph = torch.fx.Graph()
        self._constants = torch.nn.Module()
        self._names, self._initial = {}, {}  # of inputs, by node
        self._data = []  # names
        self._parameters = dict(model.named_parameters())
        self._tensors = {_address(tensor): name for name, tensor in
                         [*self._parameters.items(), *model.named_buffers()]}  # names of the model's, by address
        self._known = {}  # the node of a tensor's present value, by address
        self._input_of = {}  # the input with a tensor's value before the step, by address
        self._loss = None
        self._gradients = {}  # by the name of the parameter
        self._updates = {}  # input that is a state -> the node of its next value

    def add_loss(self, model, loss, names, batch):
        """Adds loss and gradients."""
        joint, args, initial, mutated = _recorded_loss(model, loss, batch)
        trained = {name for name, parameter in self._parameters.items() if parameter.requires_grad}
        of_batch = {_address(tensor): name for name, tensor in zip(names, batch)}
        changing = {i for i, arg in enumerate(args) if self._tensors.get(_address(arg)) in trained} | set(mutated)
        placeholders, values, inputs = _placeholders(joint), {}, []
        if len(placeholders) != len(args) + 1:
            raise UnsupportedError("the model must make one loss of which gradients are computed")
        for i, (node, arg, value) in enumerate(zip(placeholders, args, initial)):
            name, address = self._tensors.get(_address(arg)), _address(arg)
            if address in of_batch:
                name = of_batch[address]
                if i in mutated:
                    raise UnsupportedError(f"the loss changes '{name}' of its batch")
                self._data.append(name)
                values[node] = self._add_input(node, name)
            elif i in changing:
                if name is None:
                    raise UnsupportedError("the loss changes a tensor that is neither a parameter nor a buffer")
                values[node] = self._known[address] = self._input_of[address] = self._add_input(node, name, value)
            else:
                values[node] = self._add_constant(value, node)
            inputs.append((name, values[node], address))
        fake = placeholders[-1].meta["val"]
        if fake.numel() != 1:
            raise InvalidError(f"the loss has the shape {tuple(fake.shape)}; one element is expected")
        values[placeholders[-1]] = self._add_constant(torch.ones(fake.shape, dtype=fake.dtype), placeholders[-1])
        outputs, _ = self._add_nodes(joint, values)
        if len(outputs) != len(mutated) + 1 + len(args):
            raise UnsupportedError("the loss must be one tensor: it returns several, or it assigns a tensor to an "
                                   "attribute (change a buffer in place instead)")
        for i, value in zip(mutated, outputs):
            self._updates[inputs[i][1]] = self._known[inputs[i][2]] = value
        self._loss = outputs[len(mutated)]
        for (name, *_), value in zip(inputs, outputs[len(outputs) - len(args):]):
            if value is not None and name in trained:
                self._gradients[name] = value
        unread = set(names) - set(self._data)
        if unread:
            raise InvalidError(f"the loss does not depend on '{sorted(unread)[0]}'")

    def add_update(self, optimizer, max_norm):
        """Adds what the optimizer computes."""
        trained = {name: parameter for name, parameter in self._parameters.items() if name in self._gradients}
        for name, parameter in trained.items():
            parameter.grad = torch.zeros_like(parameter)
            self._known[_address(parameter.grad)] = self._gradients[name]
        update = Update(optimizer, self._parameters, trained, max_norm)
        names = {_address(tensor): name for name, tensor in update.kept.items()}
        for call in update.calls:
            self._add_call(call, names, update.initial)
        for name, tensor in update.kept_after.items():  # kept as a new tensor
            before, after = _address(update.kept[name]), _address(tensor)
            if before == after:
                continue
            if before not in self._input_of or after not in self._known:
                raise UnsupportedError(f"the optimizer computes '{name}' outside of the captured graphs")
            self._updates[self._input_of[before]] = self._known[after]
        if not any(name in {self._names[node] for node in self._updates} for name in trained):
            raise UnsupportedError("the optimizer changes no parameter of the model")

    def _add_call(self, call, names, initial):
        """Adds a graph of the optimizer: what it computes, and the states that it is the first to read."""
        values, address_of = {}, {}
        for node, arg in zip(_placeholders(call.graph_module), call.args):
            address = address_of[node] = _address(arg)
            if address not in self._known:
                if address not in names:
                    raise UnsupportedError("the optimizer reads a tensor that is neither a parameter nor its own nor "
                                           "computed in the captured step")
                name = names[address]
                self._known[address] = self._input_of[address] = self._add_input(node, name, initial[name])
            values[node] = self._known[address]
        outputs, copies = self._add_nodes(call.graph_module, values)
        for tensor, value in zip(call.made, outputs):
            if isinstance(tensor, torch.Tensor):
                self._known[_address(tensor)] = value
        for node, value in copies.items():
            address = address_of[node]
            self._known[address] = value
            if address in self._input_of:  # clipping changes gradients, which are no states
                self._updates[self._input_of[address]] = value

    def model(self, optimizer):
        """The bytes of the ONNX model. optimizer: its name."""
        self._sort_inputs()
        # An input that nothing updates, such as a rate, is no state.
        states = {self._names[node]: f"{self._names[node]}.next" for node in self._updates}
        names = [*self._names.values(), *states.values(), "loss", "random.seed", "random.step"]
        for name in names:
            if names.count(name) > 1:
                raise InvalidError(f"two tensors of the step are named '{name}'; rename a parameter or a part of the "
                                   "batch")
        self._graph.output([self._loss, *self._updates.values()])
        module = torch.fx.GraphModule(self._constants, self._graph)
        missing = lowering.unsupported(module.graph)
        if missing:
            raise UnsupportedError(f"PyTorch's operators {', '.join(missing)} are not supported")
        of_copy = dict(zip(_placeholders_of(self._graph), _placeholders(module)))
        lowered = lowering.Lowering(
            module.graph, names={of_copy[node]: name for node, name in self._names.items()},
            defaults={of_copy[node]: value for node, value in self._initial.items()},
            outputs=["loss", *states.values()])
        lowered.b.metadata("ree.training", json.dumps(
            {"version": 1, "data": self._data, "loss": "loss", "states": states,
             "parameters": [name for name in self._tensors.values() if name in self._gradients and name in states],
             "random": lowered.n_random > 0, "optimizer": optimizer, "torch": torch.__version__},
            sort_keys=True, separators=(",", ":")))
        return lowered.b.model()

    def _sort_inputs(self):
        """The batch first, then parameters and buffers as in the model, then what the optimizer keeps."""
        order = {name: i for i, name in enumerate([*self._data, *self._tensors.values()])}
        inputs = sorted(self._names, key=lambda node: order.get(self._names[node], len(order)))
        for node in reversed(inputs):
            next(iter(self._graph.nodes)).prepend(node)
        self._updates = {node: self._updates[node] for node in inputs if node in self._updates}

    def _add_input(self, node, name, initial=None):
        made = self._graph.placeholder(f"input{len(self._names)}")
        made.meta["val"] = node.meta["val"]
        self._names[made] = name
        if initial is not None:
            self._initial[made] = initial.detach().clone()
        return made

    def _add_constant(self, tensor, node):
        """A tensor that never changes."""
        name = f"constant{len(list(self._constants.buffers()))}"
        self._constants.register_buffer(name, tensor.detach().clone())
        made = self._graph.get_attr(name)
        made.meta["val"] = node.meta.get("val")
        return made

    def _add_nodes(self, graph_module, values):
        """Adds the nodes of a graph, given the values of its inputs. Returns its outputs, and the values that it
        copies to its inputs, by input."""
        copies, outputs = {}, []
        for node in graph_module.graph.nodes:
            if node in values:
                continue
            if node.op == "output":
                outputs = [values[value] if isinstance(value, torch.fx.Node) else value for value in node.args[0]]
            elif node.target == _COPY and node.args[0].op == "placeholder":
                copies[node.args[0]] = values[node] = values[node.args[1]]
            elif node.op == "get_attr":
                values[node] = self._add_constant(_attribute(graph_module, node.target), node)
            else:
                values[node] = self._graph.node_copy(node, values.__getitem__)
        return outputs, copies


def _attribute(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _address(tensor):
    """Which tensor it is: several Python objects may have the same memory."""
    return tensor.data_ptr() or id(tensor), tuple(tensor.shape)


def _placeholders_of(graph):
    return [node for node in graph.nodes if node.op == "placeholder"]


def _placeholders(graph_module):
    return _placeholders_of(graph_module.graph)


def _compiled(function, fullgraph, **how):
    """A function compiled with PyTorch's AOTAutograd. It has code of its own, so it takes no place in
    the cache of a function that is compiled again."""
    bound = getattr(function, "__self__", None)
    function = getattr(function, "__func__", function)
    code = function.__code__.replace(co_name=f"{function.__name__}_{id(function)}")
    own = types.FunctionType(code, function.__globals__, closure=function.__closure__)
    own = own if bound is None else types.MethodType(own, bound)
    backend = aot_autograd(decompositions=lowering.decompositions(), **how)
    compiled = torch.compile(own, backend=backend, fullgraph=fullgraph, dynamic=False)
    config = torch._dynamo.config  # pylint: disable=protected-access
    # A part of an optimizer's step is compiled for itself, again for each optimizer. Names depend on the version.
    wanted = {"allow_rnn": True, "recompile_limit": 2 ** 31, "cache_size_limit": 2 ** 31,
              "accumulated_recompile_limit": 2 ** 31, "accumulated_cache_size_limit": 2 ** 31}
    wanted = {name: value for name, value in wanted.items() if hasattr(config, name)}

    def run(*args):
        with warnings.catch_warnings(), config.patch(wanted):
            warnings.simplefilter("ignore")
            try:
                return compiled(*args)
            except torch._dynamo.exc.TorchDynamoException as e:  # pylint: disable=protected-access
                raise UnsupportedError(f"PyTorch cannot capture it: {e}") from e
    return run


def _before(args):
    return [arg.detach().clone() if isinstance(arg, torch.Tensor) else arg for arg in args]


def _recorded_loss(model, loss, batch):
    """The graph of loss and gradients, the tensors that it is called with, their values before, and the numbers of
    those that it changes. Its outputs: the changed tensors, the loss, and a gradient or None for each input."""
    joint, called, mutated = [], [], []

    def partition(graph_module, inputs, **how):
        joint.append(copy.deepcopy(graph_module))
        return default_partition(graph_module, inputs, **how)

    def record(graph_module, _inputs):
        mutated[:] = TracingContext.get().fw_metadata.mutated_inp_runtime_indices

        def run(*args):
            called.append((args, _before(args)))
            return graph_module(*args)
        return make_boxed_func(run)

    def step_loss(*given):
        return model(*given) if loss is None else loss(model, *given)
    run = _compiled(step_loss, True, fw_compiler=record, bw_compiler=record, inference_compiler=record,
                    partition_fn=partition)
    with torch.enable_grad():
        for _ in range(3):
            run(*[value.clone() for value in batch] if called else batch)
    if not joint:
        raise InvalidError("the loss depends on no parameter that requires a gradient")
    _check_repeatable(joint, called, {_address(t) for t in [*model.parameters(), *model.buffers()]})
    return joint[0], *called[0], mutated


def _check_repeatable(joint, called, of_model):
    """Refuses a loss that depends on numbers of Python that change from call to call, or on another model."""
    changing = UnsupportedError("the loss differs in its second call: it changes its batch, or depends on a number or "
                                "a tensor of Python that changes; keep what changes in a buffer, and change it in place")
    (args, before), *others = called
    with torch.no_grad():
        for arg, value in zip(args, before):  # a tensor of somebody else is as it was
            if _address(arg) not in of_model and not _is_same(arg.detach(), value):
                arg.copy_(value)
    if any(arg.requires_grad and _address(arg) not in of_model for arg in args):
        raise InvalidError("the loss reads a parameter that is not one of the model that it is given")
    if len(joint) != 1 or len(called) != 3:
        raise changing
    for _, again in others:
        for arg, value, value_again in zip(args, before, again):
            if _address(arg) not in of_model and not _is_same(value, value_again):
                raise changing


def _is_same(a, b):
    """Whether two tensors have the same bytes."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.reshape(-1).view(torch.uint8),
                                                                     b.reshape(-1).view(torch.uint8))


class Call(NamedTuple):
    """A call of a captured graph. The tensors are kept so that no other gets their addresses."""
    graph_module: torch.fx.GraphModule
    args: tuple
    before: list  # values of the arguments before the call
    after: list  # and after it
    made: list


class Update:
    """A captured step of an optimizer. It is not the first, because that one may create states, such as a momentum,
    and do something else.

    calls         list of Call: usually one
    kept          what the optimizer keeps, tensors by name
    kept_after    the same after the step
    initial       values of what it keeps before its first step; of what that creates: zeros"""

    def __init__(self, optimizer, parameters, trained, max_norm):
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise UnsupportedError(f"{type(optimizer).__name__} computes the loss several times in a step")
        self._optimizer, self._trained, self._max_norm = optimizer, trained, max_norm
        self._of_parameter = {id(parameter): name for name, parameter in parameters.items()}
        self._called = []
        # Not one graph: PyTorch splits before the step of an optimizer.
        self._update = _compiled(self._apply, False, fw_compiler=self._record, inference_compiler=self._record,
                                 keep_inference_input_mutations=True)
        generator = torch.Generator().manual_seed(0)
        self._gradients = [torch.randn(p.shape, generator=generator).to(p.dtype) for p in trained.values()]

        self._parameters = parameters
        at_first, values = _before(trained.values()), dict(zip(*self._kept_values()))
        first, expected = self._step(), _before(trained.values())
        self.kept, numbers = self._kept(), self._numbers()
        read = {_address(arg): value for call in reversed(first) for arg, value in zip(call.args, call.before)}
        self.initial = {name: values.get(name, read.get(_address(tensor), torch.zeros_like(tensor)))
                        for name, tensor in self.kept.items()}
        self.calls = self._step()
        self.kept_after = self._kept()
        if numbers != self._numbers() or self.kept.keys() != self.kept_after.keys():
            raise UnsupportedError(f"{type(optimizer).__name__} keeps something that is no tensor and changes")
        self._first = first  # its tensors keep their addresses
        graphs = [call.graph_module for call in self.calls]
        for _ in range(3):
            if [call.graph_module for call in self._step()] != graphs:
                raise UnsupportedError(f"the steps of {type(optimizer).__name__} are not all the same")
        self._check_first_step(at_first, expected)

    def _apply(self):
        if self._max_norm is not None:
            torch.nn.utils.clip_grad_norm_(list(self._trained.values()), self._max_norm)
        self._optimizer.step()

    def _record(self, graph_module, _inputs):
        def run(*args):
            before = _before(args)
            made = graph_module(*args)
            self._called.append(Call(graph_module, args, before, _before(args), list(made)))
            return made
        return make_boxed_func(run)

    def _step(self):
        """Makes a step, always with the same gradients; returns the calls of graphs in it."""
        for parameter, gradient in zip(self._trained.values(), self._gradients):
            parameter.grad.copy_(gradient)
        n = len(self._called)
        tracked = [*self._parameters.items(), *self._kept().items(),
                   *((f"the gradient of {name}", p.grad) for name, p in self._trained.items())]
        values = {_address(tensor): tensor.detach().clone() for _, tensor in tracked}
        self._update()
        calls = self._called[n:]
        self._check_captured(calls, values, tracked)
        return calls

    def _check_captured(self, calls, values, tracked):
        """Checks that nothing but the captured graphs has changed a tensor. values: by address, before the step."""
        names = {_address(tensor): name for name, tensor in tracked}

        def check(address, value):
            if address in values and not _is_same(values[address], value):
                raise UnsupportedError(f"{type(self._optimizer).__name__} changes '{names.get(address, 'a tensor')}' "
                                       "outside of the captured graphs")
        for call in calls:
            for arg, before, after in zip(call.args, call.before, call.after):
                check(_address(arg), before)
                values[_address(arg)] = after
        for _, tensor in tracked:
            check(_address(tensor), tensor.detach())

    def _check_first_step(self, parameters, expected):
        """Checks that the captured step, from `initial`, does what the first step did."""
        with torch.no_grad():
            for tensor, value in [*zip(self._trained.values(), parameters),
                                  *((tensor, self.initial[name]) for name, tensor in self.kept_after.items())]:
                tensor.copy_(value)
        self._step()
        if not all(_is_same(tensor.detach(), value) for tensor, value in zip(self._trained.values(), expected)):
            raise UnsupportedError(f"the first step of {type(self._optimizer).__name__} differs from those after it: "
                                   "let it make one step first")

    def _kept(self):
        """What the optimizer keeps, by name: states of parameters, and numbers such as a rate that are tensors."""
        named = {f"{self._of_parameter.get(id(parameter), 'optimizer')}.{key}": value
                 for parameter, states in self._optimizer.state.items() for key, value in states.items()}
        seen = set()
        for i, group in enumerate(self._optimizer.param_groups):
            for key, value in group.items():
                if isinstance(value, torch.Tensor) and id(value) not in seen:  # groups may share it
                    seen.add(id(value))
                    named[f"{key}.{i}" if i else key] = value
        return {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}

    def _kept_values(self):
        kept = self._kept()
        return list(kept), _before(kept.values())

    def _numbers(self):
        """What the optimizer keeps that is no tensor."""
        return [value for kept in [*self._optimizer.state.values(), *self._optimizer.param_groups]
                for key, value in kept.items() if key != "params" and not isinstance(value, torch.Tensor)]
