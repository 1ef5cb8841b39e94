#!/usr/bin/env python3
"""ree.convert on 12 modules of torchvision, transformers and PyTorch with small random weights. For each: the
largest difference from eager PyTorch in float64, of ree and of eager float32; that PyTorch computes nothing
while the converted module runs; one SHA-256 on the CPU with one and two threads and on lavapipe.

    PYTHONPATH=build/python tests/python/convert_models.py [NAME...]

Needs torch 2.5 or later, torchvision, transformers and onnxscript, so it runs on demand; docs/PYTHON.md has its
results.
"""
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

try:
    import torch
    import torchvision
    import transformers
    import onnxscript  # noqa: F401 # pylint: disable=unused-import
except ImportError as missing:
    harness.skip(f"{missing.name} is not installed")
from torch.utils import _pytree as pytree  # noqa: E402
import ree  # noqa: E402
from nothing_computed import NothingComputed  # noqa: E402
from small_models import MODELS, randomise  # noqa: E402


def tensors_of(made):
    return [leaf for leaf in pytree.tree_flatten(made)[0] if isinstance(leaf, torch.Tensor)]


def try_model(make, devices):
    torch.manual_seed(3)
    module, args, kwargs = make()
    randomise(module)
    module.eval()
    began = time.monotonic()
    converted = ree.convert(module, ree.CompileOptions(device=devices[0]), args=args, kwargs=kwargs)
    seconds = time.monotonic() - began
    with torch.no_grad():
        single = tensors_of(module(*args, **kwargs))
        with NothingComputed():
            made = converted(*args, **kwargs)
        made = tensors_of(made)
        wide = pytree.tree_map_only(torch.Tensor, lambda t: t.double() if t.is_floating_point() else t, (args, kwargs))
        exact = tensors_of(module.double()(*wide[0], **wide[1]))
    check(len(made) == len(single), f"{make.__name__}: {len(made)} outputs, expected {len(single)}")
    largest = max(float(t.abs().max()) for t in exact)
    ours, theirs = (max(float((a.double() - b).abs().max()) for a, b in zip(some, exact)) / largest
                    for some in (made, single))
    # Eager's own error, twice, and a few units in the last place where eager happens to be exact.
    check(ours <= 2 * theirs + 1e-6, f"{make.__name__}: error {ours}, eager {theirs}")
    hashes = set()
    path = converted.artifacts_dir / "model.onnx"
    feeds = dict(zip([port.name for port in converted.session.inputs], tensors_of((args, kwargs))))
    for device in devices:
        with ree.Session(path, device) as session:
            hashes.add(ree.sha256(session.run(feeds)))
    check(len(hashes) == 1, f"{make.__name__}: {hashes}")
    nodes = len((converted.artifacts_dir / "passes" / "00-read.txt").read_text().splitlines())
    print(f"{make.__name__:12} {nodes:5} lines  export and load {seconds:5.1f} s  error {ours:.1e}  "
          f"eager {theirs:.1e}  {hashes.pop()[:16]}", flush=True)


wanted = sys.argv[1:]
opened = [ree.Device("cpu", n_threads=2), ree.Device("cpu", n_threads=1)]
opened += [ree.Device(listed.spec) for listed in ree.devices() if "llvmpipe" in listed.name][:1]
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, transformers {transformers.__version__}, "
      f"ree {ree.__version__}; {', '.join(device.name for device in opened)}")
for model in MODELS:
    if not wanted or model.__name__ in wanted:
        try:
            try_model(model, opened)
        except (ree.Error, AssertionError) as e:
            check(False, f"{model.__name__}: {type(e).__name__}: {e}")
sys.exit(harness.finish())
