#!/usr/bin/env python3
"""ree.export_training: files of whole training steps have the bits of torch.compile(backend="ree"), and train like
eager PyTorch; optimizers, dropout, clipping, shared and frozen parameters; what is refused.

    PYTHONPATH=build/python tests/python/export_training.py      # needs PyTorch 2.5 or later; a minute
"""
import copy
import pathlib
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402

try:
    import torch
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
        harness.skip("PyTorch 2.5 or later is needed")
except ImportError:
    harness.skip("PyTorch is not installed")
from torch import nn  # noqa: E402
import ree  # noqa: E402
from ree import compiler  # noqa: E402

if hasattr(torch._dynamo.config, "allow_rnn"):
    torch._dynamo.config.allow_rnn = True  # for the comparison with torch.compile
F = nn.functional
folder = pathlib.Path(tempfile.mkdtemp())


class Trained:
    """A file of a training step, which runs step by step."""

    def __init__(self, path, device="cpu"):
        self.session = ree.Session(path, device)
        self.inputs = [port.name for port in self.session.model.inputs]
        self.states, self.losses = {}, []

    def step(self, **batch):
        made = self.session.run({**batch, **self.states})
        self.losses.append(float(made["loss"]))
        self.states = {name.removesuffix(".next"): torch.as_tensor(value) for name, value in made.items()
                       if name != "loss"}


class Pictures(nn.Module):
    """A convolutional network with batch norm, dropout and a frozen part."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(dropout))
        self.frozen = nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.head = nn.Linear(4, 5)

    def forward(self, image):
        return self.head(self.frozen(self.features(image).mean((2, 3))))


class Words(nn.Module):
    """A recurrent network whose first and last matrix are one parameter."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 6)
        self.lstm = nn.LSTM(6, 6, batch_first=True)
        self.head = nn.Linear(6, 9)
        self.head.weight = self.table.weight
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, ids):
        return self.head(self.lstm(self.table(ids))[0])


def picture_loss(model, image, kind):
    return F.cross_entropy(model(image), kind)


def word_loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def pictures(n):
    return [{"image": torch.randn(6, 1, 5, 5), "kind": torch.randint(0, 5, (6,))} for _ in range(n)]


def words(n):
    return [{"ids": torch.randint(0, 9, (3, 6))} for _ in range(n)]


def trained(model, loss, optimizer, batches, max_norm=None, compiled=True):
    """Trains a copy with backend "ree", or eagerly; returns it and the losses."""
    torch._dynamo.reset()
    model, optimizer = copy.deepcopy((model, optimizer))
    compiler.manual_seed(5)

    def run(*batch):
        return loss(model, *batch)

    def update():
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
    if compiled:
        run = torch.compile(run, backend=compiler.backend, fullgraph=True)
        update = torch.compile(update, backend=compiler.backend)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        made = run(*batch.values())
        made.backward()
        update()
        losses.append(float(made.detach()))
    return model, losses


def tried(name, model, loss, make_optimizer, batches, max_norm=None, random=False):
    """Exports a step, runs it, and compares parameters and buffers with torch.compile's and eager PyTorch's."""
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])
    before = {key: value.clone() for key, value in model.state_dict().items()}
    states_before = copy.deepcopy(optimizer.state_dict())
    path = folder / "step.onnx"
    torch._dynamo.reset()
    ree.export_training(model, loss, optimizer, batches[0], path, max_norm=max_norm)
    check(all(torch.equal(value, before[key]) for key, value in model.state_dict().items()) and
          str(states_before) == str(optimizer.state_dict()) and all(p.grad is None for p in model.parameters()),
          f"{name}: the model or the optimizer has changed")
    run = Trained(path)
    seed = {"random.seed": torch.tensor([5, 0], dtype=torch.uint32)} if random else {}
    for i, batch in enumerate(batches):
        run.step(**batch, **seed, **({"random.step": torch.tensor(i, dtype=torch.uint32)} if random else {}))
    ours, losses = trained(model, loss, optimizer, batches, max_norm)
    check(losses == run.losses, f"{name}: losses {run.losses}, torch.compile {losses}")
    changed = 0
    for key, value in [*ours.named_parameters(), *ours.named_buffers()]:
        if key in run.states:
            check(torch.equal(run.states[key], value), f"{name}: {key} differs from torch.compile's")
            changed += 1
        else:
            check(torch.equal(value, before[key]), f"{name}: {key} is no state of the file, but changes")
    check(changed > 2, f"{name}: {changed} states of the model")
    if not random:
        eager, losses = trained(model, loss, optimizer, batches, max_norm, compiled=False)
        check(all(abs(a - b) < 1e-4 * (1 + abs(b)) for a, b in zip(run.losses, losses)),
              f"{name}: losses {run.losses}, eager {losses}")
        for key, value in eager.named_parameters():
            if key in run.states:
                # Adam divides a gradient by its size, so small gradients may move a parameter by the rate.
                close = torch.isclose(run.states[key], value, rtol=1e-3, atol=1e-3)
                check(float(close.float().mean()) > 0.98, f"{name}: {key} {run.states[key]}, eager {value}")
    return run


def test_optimizers():
    for name, make in (("SGD", lambda p: torch.optim.SGD(p, 0.1)),
                       ("SGD with momentum", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True,
                                                                      weight_decay=0.01, foreach=True)),
                       ("Adam", lambda p: torch.optim.Adam(p, 0.01)),
                       ("AdamW", lambda p: torch.optim.AdamW(p, 0.01, foreach=True)),
                       ("AMSGrad", lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, foreach=True)),
                       ("RMSprop", lambda p: torch.optim.RMSprop(p, 0.01, foreach=True)),
                       ("Adagrad", lambda p: torch.optim.Adagrad(p, 0.1, foreach=True)),
                       ("groups", lambda p: torch.optim.AdamW([{"params": p[:2], "lr": 0.1, "weight_decay": 0},
                                                               {"params": p[2:]}], 0.01, foreach=True))):
        torch.manual_seed(3)
        tried(name, Pictures(), picture_loss, make, pictures(4))


def test_models():
    torch.manual_seed(4)
    run = tried("words", Words(), word_loss, lambda p: torch.optim.AdamW(p, 0.01, foreach=True), words(4))
    check("table.weight" in run.states and "head.weight" not in run.states and "unused" not in run.states and
          "table.weight.exp_avg" in run.states, f"states {sorted(run.states)}")
    for max_norm in (0.01, 100.0):
        tried(f"clipped to {max_norm}", Words(), word_loss, lambda p: torch.optim.SGD(p, 1.0, foreach=True), words(3),
              max_norm)
    tried("dropout", Pictures(0.3), picture_loss, lambda p: torch.optim.SGD(p, 0.1), pictures(3), random=True)


def test_file():
    """Names, metadata and defaults; a rate that is a tensor is an input."""
    torch.manual_seed(5)
    model = Pictures()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], torch.tensor(0.01))
    path = folder / "named.onnx"
    batch = pictures(1)[0]
    ree.export_training(model, picture_loss, optimizer, tuple(batch.values()), path)
    run = Trained(path)
    check(run.inputs[:4] == ["image", "kind", "features.0.weight", "features.1.weight"], f"inputs {run.inputs}")
    check("lr" in run.inputs and "lr.next" not in [port.name for port in run.session.model.outputs], "no rate")
    check(b"ree.training" in path.read_bytes(), "no metadata")
    run.step(**batch)
    slow = Trained(path)
    slow.step(**batch, lr=torch.tensor(0.0))
    check(torch.equal(slow.states["head.weight"], model.head.weight), "a rate of 0 changes parameters")
    check(not torch.equal(run.states["head.weight"], model.head.weight), "the default rate changes nothing")
    # An optimizer that has run goes on from its states.
    picture_loss(model, *batch.values()).backward()
    optimizer.step()
    ree.export_training(model, picture_loss, optimizer, batch, path)
    resumed = Trained(path)
    resumed.step(**batch)
    check(float(resumed.states["head.weight.step"]) == 2, "the states of the optimizer are lost")


class Counting(Pictures):
    """What a file cannot hold: numbers of Python, assigned tensors, several results."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.n, self.last = kind, 0, torch.zeros(())
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, image):
        if self.kind == "number":
            self.n += 1
            return super().forward(image) * self.n
        if self.kind == "assigned buffer":
            self.mean = 0.9 * self.mean + image.mean()
        if self.kind == "assigned tensor":
            self.last = image.mean()
        return super().forward(image) + self.mean + self.last


class Outside(torch.optim.SGD):
    """Steps that PyTorch captures only in part."""

    def __init__(self, parameters, kind):
        super().__init__(parameters, 0.1)
        self.kind, self.n = kind, 0

    def step(self, closure=None):
        super().step()
        self.n += 1
        if self.kind == "decay" or (self.kind == "every second" and self.n % 2):
            self._decay()

    @torch.compiler.disable
    @torch.no_grad()
    def _decay(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.mul_(0.99)


def test_what_changes():
    """Silent differences that a file could have."""
    (batch,), path = pictures(1), folder / "no.onnx"

    def refused(kind, words_of_it, model=None, loss=picture_loss, optimizer=None):
        model = model or Pictures()
        optimizer = optimizer or torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
        with fails(kind, words_of_it):
            ree.export_training(model, loss, optimizer, batch, path)
        check(not path.exists(), "a file was written")
    refused(ree.UnsupportedError, "second call", Counting("number"))
    refused(ree.UnsupportedError, "second call", Counting("assigned buffer"))
    refused(ree.UnsupportedError, "must be one tensor", Counting("assigned tensor"))
    refused(ree.UnsupportedError, "must be one tensor",
            loss=lambda m, image, kind: (m(image).sum().detach(), picture_loss(m, image, kind)))
    counter = []

    def count(model, image, kind):
        counter.append(0)
        return picture_loss(model, image, kind) * len(counter)
    refused(ree.UnsupportedError, "", loss=count)
    refused(ree.UnsupportedError, "changes its batch",
            loss=lambda m, image, kind: picture_loss(m, image.mul_(2), kind))
    for kind, words_of_it in (("decay", "outside of the captured graphs"), ("every second", "")):
        model = Pictures()
        refused(ree.UnsupportedError, words_of_it, model, optimizer=Outside(list(model.head.parameters()), kind))
    model = Pictures()
    model.head.weight.register_hook(lambda gradient: 2 * gradient)
    refused(ree.UnsupportedError, "has hooks", model)
    model = Pictures()
    optimizer = torch.optim.SGD(model.head.parameters(), 0.1)
    optimizer.register_step_post_hook(lambda *_: None)
    refused(ree.UnsupportedError, "has hooks", model, optimizer=optimizer)
    model = Pictures()
    model.head.same = nn.Parameter(model.head.weight.data)
    refused(ree.UnsupportedError, "the same memory", model)
    # The default generator and other models stay as they are.
    teacher, model = Pictures(0.5), Pictures(0.5)
    kept = {key: value.clone() for key, value in teacher.state_dict().items()}
    before = torch.random.get_rng_state()
    ree.export_training(model, lambda m, image, kind: picture_loss(m, image, kind), torch.optim.SGD(
        model.head.parameters(), 0.1), batch, path)
    path.unlink()
    with fails(ree.InvalidError, "not one of the model"):
        ree.export_training(model, lambda m, image, kind: (m(image) - teacher(image)).square().mean() + kind.sum(),
                            torch.optim.SGD(model.head.parameters(), 0.1), batch, path)
    check(torch.equal(before, torch.random.get_rng_state()), "the default generator")
    check(all(torch.equal(value, kept[key]) for key, value in teacher.state_dict().items()),
          "another model has changed")


def test_refused():
    model, (batch,) = Pictures(), pictures(1)
    optimizer = torch.optim.SGD(model.head.parameters(), 0.1)

    def export(model=model, loss=picture_loss, optimizer=optimizer, example=batch, path=folder / "no.onnx"):
        ree.export_training(model, loss, optimizer, example, path)
    for kind, words_of_it, change in (
            (ree.InvalidError, "torch.nn.Module is expected", {"model": picture_loss}),
            (ree.InvalidError, "Optimizer is expected", {"optimizer": model}),
            (ree.InvalidError, "lacks 'image'", {"example": {"kind": batch["kind"]}}),
            (ree.InvalidError, "the example has 'other'", {"example": {**batch, "other": batch["kind"]}}),
            (ree.InvalidError, "the example has 3 tensors", {"example": (batch["image"],) * 3}),
            (ree.InvalidError, "a tensor is expected", {"example": (batch["image"], 3)}),
            (ree.InvalidError, "no parameter", {"loss": lambda model, image, kind: image.sum()}),
            (ree.InvalidError, "depend on 'kind'", {"loss": lambda model, image, kind: model(image).sum()}),
            (ree.InvalidError, "one element", {"loss": lambda model, image, kind: model(image) * kind.sum()}),
            (ree.UnsupportedError, "cumprod", {"loss": lambda model, image, kind: model(image).cumprod(0).sum() *
                                               kind.sum()}),
            (ree.InvalidError, "not one of the model",
             {"loss": lambda _, image, kind: picture_loss(model, image, kind)}),
            (ree.UnsupportedError, "", {"loss": lambda model, image, kind: model(image).sum() *
                                               kind.sum().item()}),
            (ree.UnsupportedError, "several times", {"optimizer": torch.optim.LBFGS(model.head.parameters())}),
            (ree.UnsupportedError, "make one step first", {"optimizer": torch.optim.SGD(
                model.head.parameters(), 0.1, momentum=0.9, dampening=0.5)}),
            (ree.UnsupportedError, "changes no parameter",
             {"optimizer": torch.optim.SGD(Pictures().parameters(), 0.1)}),
            (FileNotFoundError, "", {"path": folder / "missing" / "step.onnx"})):
        with fails(kind, words_of_it):
            export(**change)
    check(not list(folder.glob("no.onnx*")), "a file was left")
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.image = nn.Parameter(torch.ones(2))

        def forward(self, image):
            return (self.image * image).sum()
    named = Named()
    with fails(ree.InvalidError, "two tensors of the step are named 'image'"):
        ree.export_training(named, None, torch.optim.SGD(named.parameters(), 0.1), torch.ones(2), folder / "no.onnx")


warnings.simplefilter("ignore")
for test in [value for key, value in list(globals().items()) if key.startswith("test_")]:
    if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
        print(test.__name__, flush=True)
        test()
sys.exit(harness.finish())
