#!/usr/bin/env python3
"""Training through torch.compile(backend="ree"): a convolutional network on pictures, and a language model of the
shape of tools/sample/stories on its stories, from scratch, with AdamW compiled too. One SHA-256 of all parameters on
the CPU with one and two threads and each instruction set, and on lavapipe; losses beside eager PyTorch's from the same
weights and batches.

    PYTHONPATH=build/python tests/python/train.py [--steps N]

Needs torch 2.5 or later and transformers, so it runs on demand; docs/PYTHON.md has its results.
"""
import argparse
import copy
import hashlib
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

try:
    import torch
    import transformers
except ImportError as missing:
    harness.skip(f"{missing.name} is not installed")
from torch import nn  # noqa: E402
import ree  # noqa: E402
from ree import compiler  # noqa: E402


class Pictures(nn.Module):
    """A small convolutional network with batch norm and dropout."""
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 49, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x, target):
        return nn.functional.cross_entropy(self.head(self.features(x)), target)


def pictures(n_steps, batch=32):
    """Batches of noisy pictures of ten kinds."""
    generator = torch.Generator().manual_seed(5)
    kinds = torch.rand(10, 1, 28, 28, generator=generator)
    for _ in range(n_steps):
        target = torch.randint(0, 10, (batch,), generator=generator)
        yield kinds[target] + 0.7 * torch.randn(batch, 1, 28, 28, generator=generator), target


class Stories(nn.Module):
    """A language model that predicts the next tokens."""
    def __init__(self):
        super().__init__()
        config = transformers.AutoConfig.from_pretrained(STORIES)
        config.use_cache, config.attention_dropout = False, 0.0
        config._attn_implementation = "eager"
        config.torch_dtype = torch.float32
        self.model = transformers.AutoModelForCausalLM.from_config(config)

    def forward(self, ids):
        logits = self.model(input_ids=ids, return_dict=False)[0]
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())


def stories(n_steps, batch=4, length=48):
    """Batches from stories that the sample model tells."""
    with ree.Generator(STORIES) as generator:
        told = generator.generate(["Once upon a time", "The", "One day", "A"] * 8, max_new_tokens=100, temperature=1.0,
                                  seed=3, ignore_eos=True)
    ids = torch.tensor([i for story in told for i in story.prompt_ids + story.ids])
    generator = torch.Generator().manual_seed(5)
    for _ in range(n_steps):
        at = torch.randint(0, len(ids) - length, (batch,), generator=generator)
        yield (torch.stack([ids[i:i + length] for i in at.tolist()]),)


def trained(module, batches, options):
    """Trains a copy; returns it, the losses, and the median time of a step. options: of the backend; None: eager."""
    torch._dynamo.reset()
    module = copy.deepcopy(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01, foreach=True)
    run, step = module, optimizer.step
    if options is not None:
        run = torch.compile(module, backend=compiler.backend, fullgraph=True, options=options)
        step = torch.compile(optimizer.step, backend=compiler.backend, options=options)
    losses, times = [], []
    for batch in batches:
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = run(*batch)
        loss.backward()
        step()
        losses.append(float(loss.detach()))
        times.append(time.perf_counter() - began)
    return module, losses, sorted(times)[len(times) // 2]


def digest(module):
    h = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        h.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return h.hexdigest()


def train(name, make, make_batches, devices, n_steps):
    torch.manual_seed(7)
    module, batches = make().train(), list(make_batches(n_steps))
    hashes, first = {}, None
    for device in devices:
        made, losses, seconds = trained(module, batches, {"device": device})
        hashes[device.name] = digest(made)
        first = first or (made, losses, seconds)
        print(f"{name:9} {device.name:40} {seconds * 1e3:7.1f} ms a step  loss {losses[0]:.4f} to {losses[-1]:.4f}  "
              f"{hashes[device.name][:16]}", flush=True)
    check(len(set(hashes.values())) == 1, f"{name}: {hashes}")
    eager, losses, seconds = trained(module, batches, None)
    largest = max(abs(a - b) for a, b in zip(losses, first[1]))
    parameters = max(float((a - b).abs().max()) for a, b in zip(eager.parameters(), first[0].parameters()))
    print(f"{name:9} {'eager PyTorch':40} {seconds * 1e3:7.1f} ms a step  loss {losses[0]:.4f} to {losses[-1]:.4f}  "
          f"largest difference of a loss {largest:.1e}, of a parameter {parameters:.1e}; ratio of times "
          f"{first[2] / seconds:.2f}", flush=True)
    check(losses[-1] < 0.8 * losses[0] and first[1][-1] < 0.8 * first[1][0], f"{name} learns nothing")
    # Differences grow from step to step, because AdamW divides small gradients by their size.
    check(largest < 0.05 * losses[0], f"{name}: a loss differs by {largest} from eager PyTorch's")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--model", choices=("pictures", "stories"))
args = parser.parse_args()
opened = [ree.Device("cpu", n_threads=2), ree.Device("cpu", n_threads=1)]
for isa in ("avx512", "avx2", "portable"):
    try:
        opened.append(ree.Device("cpu", cpu_isa=isa))
    except ree.Error:
        print(f"this processor has no {isa}")
opened += [ree.Device(listed.spec) for listed in ree.devices() if "llvmpipe" in listed.name][:1]
print(f"torch {torch.__version__}, ree {ree.__version__}, {args.steps} steps of AdamW")
for label, build, data in (("pictures", Pictures, pictures), ("stories", Stories, stories)):
    if args.model in (None, label):
        train(label, build, data, opened, args.steps)
sys.exit(harness.finish())
