#!/usr/bin/env python3
"""torch.compile(fullgraph=True, backend="ree") of the models of small_models.py, forward and backward. For each: the
error of the gradients against eager float64, beside that of eager float32; that PyTorch computes nothing in the
compiled parts; one SHA-256 of outputs and gradients on the CPU with one and two threads and on lavapipe; the time of a
step beside eager PyTorch's.

    PYTHONPATH=build/python tests/python/compile_models.py [NAME...]

Needs torch 2.5 or later, torchvision and transformers, so it runs on demand; docs/PYTHON.md has its results.
"""
import copy
import hashlib
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

try:
    import torch
    from small_models import MODELS, randomise
except ImportError as missing:
    harness.skip(f"{missing.name} is not installed")
from torch.utils import _pytree as pytree  # noqa: E402
import ree  # noqa: E402
from nothing_computed import NothingComputed  # noqa: E402
from ree import compiler  # noqa: E402

torch._dynamo.config.allow_rnn = True


class Watched(compiler.CompiledGraph):
    """Notes which operators PyTorch computes while a compiled graph runs."""
    def __call__(self, *args):
        with NothingComputed():
            return super().__call__(*args)


def tensors_of(made):
    return [leaf for leaf in pytree.tree_flatten(made)[0] if isinstance(leaf, torch.Tensor)]


def without_dropout(module):
    """Dropout draws other numbers in eager mode, so it is off."""
    for part in module.modules():
        for name in ("p", "dropout", "dropout_prob", "attention_dropout"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)


def step(module, args, kwargs):
    """One step forward and backward: the outputs, and the gradients of the parameters."""
    module.zero_grad()
    made = tensors_of(module(*args, **kwargs))
    sum((value.double() ** 2).mean() for value in made if value.requires_grad).backward()
    return [value.detach() for value in made], [p.grad for p in module.parameters() if p.grad is not None]


def digest(tensors):
    h = hashlib.sha256()
    for tensor in tensors:
        h.update(tensor.contiguous().numpy().tobytes())
    return h.hexdigest()


def error(gradients, exact):
    """The L2 norm of the difference of all gradients, relative to that of the exact ones."""
    difference = sum(float((a.double() - b).pow(2).sum()) for a, b in zip(gradients, exact))
    return (difference / sum(float(b.pow(2).sum()) for b in exact)) ** 0.5


def median_seconds(function, n=5):
    times = []
    for _ in range(n):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return sorted(times)[n // 2]


def try_model(make, devices):
    torch.manual_seed(3)
    module, args, kwargs = make()
    randomise(module)
    without_dropout(module)
    module.train()
    wide = pytree.tree_map_only(torch.Tensor, lambda t: t.double() if t.is_floating_point() else t, (args, kwargs))
    _, exact = step(copy.deepcopy(module).double(), *wide)
    eager_module = copy.deepcopy(module)
    _, eager = step(copy.deepcopy(module), args, kwargs)
    hashes, ours, seconds, built = set(), None, 0, 0
    for device in devices:
        torch._dynamo.reset()
        trained = copy.deepcopy(module)  # batch norms change their statistics
        compiled = torch.compile(trained, backend=compiler.backend, fullgraph=True, options={"device": device})
        began = time.monotonic()
        outputs, gradients = step(compiled, args, kwargs)
        built = built or time.monotonic() - began
        hashes.add(digest(outputs + gradients + list(trained.buffers())))
        ours = ours or error(gradients, exact)
        seconds = seconds or median_seconds(lambda run=compiled: step(run, args, kwargs))
    theirs = error(eager, exact)
    check(len(exact) == len(gradients), f"{make.__name__}: {len(gradients)} gradients, expected {len(exact)}")
    check(ours <= 2 * theirs, f"{make.__name__}: error {ours}, eager {theirs}")
    check(len(hashes) == 1, f"{make.__name__}: {hashes}")
    eager_seconds = median_seconds(lambda: step(eager_module, args, kwargs))
    print(f"{make.__name__:12} first step {built:5.1f} s  error {ours:.1e}  eager {theirs:.1e}  step "
          f"{seconds * 1e3:6.1f} ms  eager {eager_seconds * 1e3:6.1f} ms  ratio {seconds / eager_seconds:4.2f}  "
          f"{hashes.pop()[:16]}", flush=True)


wanted = sys.argv[1:]
compiler.CompiledGraph = Watched
opened = [ree.Device("cpu", n_threads=2), ree.Device("cpu", n_threads=1)]
opened += [ree.Device(listed.spec) for listed in ree.devices() if "llvmpipe" in listed.name][:1]
print(f"torch {torch.__version__}, ree {ree.__version__}; {', '.join(device.name for device in opened)}")
for model in MODELS:
    if not wanted or model.__name__ in wanted:
        try:
            try_model(model, opened)
        except Exception as e:  # pylint: disable=broad-except # one model must not end the test
            check(False, f"{model.__name__}: {type(e).__name__}: {str(e)[:600]}")
sys.exit(harness.finish())
