#!/usr/bin/env python3
"""One training of PyTorch's, made in every way that ree has: through torch.compile(backend="ree"), and from one file of
ree.export_training by ree-run train on each device, by one process and by several, and interrupted and continued. All
must end with the same bits of all parameters. Losses and time per step stand beside eager PyTorch's.

    PYTHONPATH=build/python tests/python/train_file.py --ree-run build/ree-run [--steps N] [--model stories] [--portable] [--vulkan] [--emulator FILE]

Three models: a convolutional network on pictures, one with grouped and depthwise convolutions, and a language model of
the shape of tools/sample/stories, from scratch, with AdamW. Batches of 59 and 29 samples, which 2, 3 and 4 ranks cannot
divide evenly. Needs torch 2.5 or later and transformers, so it runs on demand; docs/TRAINING.md has its results.
"""
import argparse
import copy
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "train"))
import harness  # noqa: E402
import mpi  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402

try:
    import numpy
    import torch
    import transformers
except ImportError as missing:
    harness.skip(f"{missing.name} is not installed")
from torch import nn  # noqa: E402
import ree  # noqa: E402
from ree import compiler  # noqa: E402


class Pictures(nn.Module):
    """A small convolutional network with batch norm."""
    batch = 59

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(16, 10, 1))

    def forward(self, image, kind):
        return nn.functional.cross_entropy(self.layers(image).mean((2, 3)), kind)

    @staticmethod
    def samples(n):
        """Noisy pictures of ten kinds."""
        generator = torch.Generator().manual_seed(5)
        kinds = torch.rand(10, 1, 28, 28, generator=generator)
        kind = torch.randint(0, 10, (n,), generator=generator)
        return {"image": kinds[kind] + 0.7 * torch.randn(n, 1, 28, 28, generator=generator), "kind": kind}


class Mobile(Pictures):
    """Convolutions with groups, and with a group for each channel."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 1
        for to, size, stride, groups in ((12, 3, 2, 1), (12, 3, 1, 12), (24, 1, 1, 1), (24, 5, 2, 24), (32, 3, 1, 4)):
            layers += [nn.Conv2d(channels, to, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(to), nn.ReLU()]
            channels = to
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, 10, 1))


class Stories(nn.Module):
    """A language model that predicts the next tokens."""
    batch, length = 29, 100

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

    @classmethod
    def samples(cls, n):
        """Pieces of stories that the sample model tells."""
        with ree.Generator(STORIES) as generator:
            told = generator.generate(["Once upon a time", "The", "One day", "A"] * 8, max_new_tokens=150, temperature=1.0,
                                      seed=3, ignore_eos=True)
        ids = torch.tensor([i for story in told for i in story.prompt_ids + story.ids])
        generator = torch.Generator().manual_seed(5)
        at = torch.randint(0, len(ids) - cls.length, (n,), generator=generator)
        return {"ids": torch.stack([ids[i:i + cls.length] for i in at.tolist()])}


def adamw(module):
    return torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01, foreach=True)


def trained(module, batches, backend):
    """Trains a copy with PyTorch; returns it, the losses, and the median time of a step."""
    torch._dynamo.reset()
    module = copy.deepcopy(module)
    optimizer = adamw(module)
    run, step = module, optimizer.step
    if backend:
        run = torch.compile(module, backend=backend, fullgraph=True)
        step = torch.compile(optimizer.step, backend=backend)
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


def digest(parameters):
    """SHA-256 of the parameters' bytes, by name."""
    h = hashlib.sha256()
    for name in sorted(parameters):
        h.update(name.encode() + parameters[name])
    return h.hexdigest()


class Runs:
    """Runs of ree-run train with the same step and samples."""

    def __init__(self, folder, step, data, names):
        self._call = [step, "--data", data, "--in-order", "--json", "--stats"]
        self._folder, self._names = folder, names

    def run(self, n_ranks, n_steps, *arguments, resume=None, env=None):
        """Returns the digest of the parameters, the losses, and the report."""
        end, losses = self._folder / "end.safetensors", self._folder / "losses.csv"
        call = ["train", *self._call, "--steps", n_steps, "--checkpoint", end, "--losses", losses, *arguments]
        call += ["--resume", resume] if resume else []
        command = mpi.command(args.ree_run, (n_ranks, call)) if n_ranks > 1 else [args.ree_run, *map(str, call)]
        done = subprocess.run(list(map(str, command)), env={**(mpi.ENVIRONMENT if n_ranks > 1 else os.environ), **(env or {})},
                              capture_output=True, text=True)
        if not check(done.returncode == 0, f"{n_ranks} ranks {arguments}: {done.stderr}"):
            return None, [], {}
        states, _ = steps.read_safetensors(end)
        numbers = [float(line.split(",")[1]) for line in losses.read_text().splitlines()[1:]]
        return digest({name: states[name][1] for name in self._names}), numbers, json.loads(done.stdout)

    def checkpoint(self):
        """The last run's checkpoint, under a name of its own."""
        return (self._folder / "end.safetensors").rename(self._folder / "half.safetensors")


def ways():
    """Label, number of ranks and options of each run."""
    yield "cpu, 2 threads", 1, ["--threads", 2]
    yield "cpu, 1 thread", 1, ["--threads", 1]
    # Without fused multiply-adds a step takes fifty times as long.
    for isa in ("avx512", "avx2", *(["portable"] if args.portable else [])):
        if harness.call(args.ree_run, "devices", "cpu", "--cpu-isa", isa).returncode == 0:
            yield f"cpu, {isa}", 1, ["--threads", 2, "--cpu-isa", isa]
    for n in (2, 3, 4):
        yield f"{n} ranks", n, []
    if args.vulkan:
        yield "vulkan", 1, ["--device", "vulkan"]


def train(label, kind, folder):
    """Makes one training in every way."""
    torch.manual_seed(7)
    module = kind().train()
    data = kind.samples(kind.batch * args.steps)
    batches = [tuple(v[i * kind.batch:(i + 1) * kind.batch] for v in data.values()) for i in range(args.steps)]
    numpy.savez(folder / f"{label}.npz", **{name: v.numpy() for name, v in data.items()})
    ree.export_training(module, None, adamw(module), batches[0], folder / f"{label}.onnx")
    names = [name for name, _ in module.named_parameters()]
    eager, losses, seconds = trained(module, batches, None)
    compiled, compiled_losses, compiled_seconds = trained(module, batches, compiler.backend)
    hashes = {"torch.compile": digest({name: p.detach().numpy().tobytes() for name, p in compiled.named_parameters()})}
    print(f"{label:9} {'torch.compile':16} {compiled_seconds * 1e3:7.1f} ms a step  {hashes['torch.compile'][:16]}", flush=True)
    runs = Runs(folder, folder / f"{label}.onnx", folder / f"{label}.npz", names)
    found = []
    for way, n, options in ways():
        hashes[way], found, report = runs.run(n, args.steps, *options)
        shares = [p["products"] for p in report.get("processes", [])]
        largest = max(shares) / sum(shares) * n if shares else 1
        check(largest <= 1.2, f"{label}, {way}: a rank has {largest:.2f}/{n} of the products")
        print(f"{label:9} {way:16} {report.get('seconds_per_step', 0) * 1e3:7.1f} ms a step  {hashes[way][:16]}"
              f"{f'  largest share {largest:.2f}/{n}' if shares else ''}", flush=True)
        check(found == compiled_losses, f"{label}, {way}: the losses are not those of torch.compile")
    if args.emulator:
        few = {way: runs.run(1, 3, *options, env={"REE_CUDA_DRIVER": str(args.emulator)})[0]
               for way, options in (("cpu", []), ("cuda", ["--device", "cuda"]))}
        check(len(set(few.values())) == 1, f"{label}, 3 steps: {few}")
        print(f"{label:9} CUDA, emulated: 3 steps have the same bits", flush=True)
    runs.run(3, args.steps * 2 // 5)
    hashes["continued"], _, _ = runs.run(2, args.steps, resume=runs.checkpoint())
    check(len(set(hashes.values())) == 1, f"{label}: {hashes}")
    largest = max(abs(a - b) for a, b in zip(losses, compiled_losses))
    difference = max((a - b).detach().abs().max().item() for a, b in zip(eager.parameters(), compiled.parameters()))
    print(f"{label:9} {'eager PyTorch':16} {seconds * 1e3:7.1f} ms a step  loss {losses[0]:.4f} to {losses[-1]:.4f}; largest "
          f"difference of a loss {largest:.1e}, of a parameter {difference:.1e}", flush=True)
    check(args.steps < 100 or losses[-1] < 0.9 * losses[0] and compiled_losses[-1] < 0.9 * losses[0], f"{label} learns nothing")
    # Differences grow from step to step, because AdamW divides small gradients by their size.
    check(largest < 0.05 * losses[0], f"{label}: a loss differs by {largest} from eager PyTorch's")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--ree-run", required=True)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--model", choices=("pictures", "mobile", "stories"))
parser.add_argument("--portable", action="store_true", help="also with the CPU's portable kernels")
parser.add_argument("--emulator", type=pathlib.Path, help="also on CUDA's emulator: build/tests/cuda/libcuda-emulator.so")
parser.add_argument("--vulkan", action="store_true", help="also on the first Vulkan device")
args = parser.parse_args()
mpi.need_mpi(args.ree_run)
print(f"torch {torch.__version__}, ree {ree.__version__}, {args.steps} steps of AdamW")
with tempfile.TemporaryDirectory() as temporary:
    for name, model in (("pictures", Pictures), ("mobile", Mobile), ("stories", Stories)):
        if args.model in (None, name):
            train(name, model, pathlib.Path(temporary))
sys.exit(harness.finish())
