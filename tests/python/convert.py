#!/usr/bin/env python3
"""ree.convert: models as modules of PyTorch; every field of CompileOptions; the artifacts' folder.

    PYTHONPATH=build/python tests/python/convert.py      # needs PyTorch
"""
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
for folder in ("harness", "cli"):
    sys.path.insert(0, str(HERE.parent / folder))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402
import onnx_writer as onnx  # noqa: E402

try:
    import numpy as np
    import torch
except ImportError:
    harness.skip("PyTorch is not installed")
import ree  # noqa: E402
from ree import onnx_files  # noqa: E402

DIGITS = SAMPLE / "digits.onnx"
SEVEN = torch.from_numpy(np.load(SAMPLE / "seven.npy"))
HASH = "68df3063cf598907320cff1effc7321932c3de7a4d47db850d2f60629ee5c623"


class Proto:
    """What onnx.ModelProto has."""
    def __init__(self, path):
        self.path = path

    def SerializeToString(self):
        return self.path.read_bytes()


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x, *, scale=1, masks=None):
        y = self.dropout(torch.relu(self.norm(self.linear(x)))) * scale
        return {"y": y if masks is None else y * masks[0] + masks[1], "none": None, "sums": (x.sum(1), 3)}


class WithUnused(torch.nn.Module):
    def forward(self, x, unused, y):
        return x - y


def external(name, shape, location):
    """A TensorProto of float32 whose data is in another file."""
    return b"".join(onnx.number(1, d) for d in shape) + onnx.number(2, onnx.FLOAT) + onnx.chunk(8, name) + \
        onnx.chunk(13, onnx.chunk(1, "location") + onnx.chunk(2, location)) + onnx.number(14, 1)


def external_model():
    """A model whose weights are in another file: y = x + w."""
    weights = np.arange(6, dtype="f4")
    pathlib.Path("parts").mkdir(exist_ok=True)
    pathlib.Path("parts/w.bin").write_bytes(weights.tobytes())
    w = external("w", [6], "w.bin")
    model = onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [onnx.port("x", onnx.FLOAT, ["n", 6])],
                       [onnx.port("y", onnx.FLOAT, ["n", 6])], initializers=[w])
    pathlib.Path("parts/m.onnx").write_bytes(model)
    return pathlib.Path("parts/m.onnx"), weights


def test_sources():
    for source in (DIGITS, str(DIGITS), DIGITS.read_bytes(), Proto(DIGITS)):
        module = ree.convert(source)
        check(isinstance(module, torch.nn.Module) and not list(module.parameters()), "a module without parameters")
        for output in (module(SEVEN), module(image=SEVEN)):
            check(isinstance(output, torch.Tensor) and int(output.argmax()) == 7, f"{output}")
            check(ree.sha256({"probabilities": output}) == HASH, "the hash")
        check("ree.Device 'cpu'" in repr(module), f"{module!r}")
        check((pathlib.Path(module.artifacts_dir) / "model.onnx").read_bytes() == DIGITS.read_bytes(), "the model")
    with fails(ree.InvalidError, "2 inputs"):
        module(SEVEN, SEVEN)
    with fails(ree.InvalidError, "given twice"):
        module(SEVEN, image=SEVEN)
    with fails(ree.InvalidError, "no input 'x'"):
        module(x=SEVEN)
    with fails(ree.InvalidError, "example inputs"):
        ree.convert(DIGITS, args=(SEVEN,))
    with fails(ree.NotFoundError, "nothing.onnx"):
        ree.convert("nothing.onnx")
    with fails(ree.InvalidError):
        ree.convert(b"not a model")
    two = onnx.model([onnx.node("Split", ["x"], ["a", "b"], attributes={"num_outputs": 2})],
                     [onnx.port("x", onnx.FLOAT, [4])],
                     [onnx.port("a", onnx.FLOAT, [2]), onnx.port("b", onnx.FLOAT, [2])], opset=18)
    made = ree.convert(two)(torch.arange(4.0))
    check(isinstance(made, tuple) and [part.tolist() for part in made] == [[0, 1], [2, 3]], f"{made}")
    check(ree.convert(two)(np.arange(4, dtype="f4"))[0].tolist() == [0, 1], "NumPy in, PyTorch out")


def test_modules():
    torch.manual_seed(1)
    module, x, masks = Small(), torch.randn(4, 8), (torch.randn(4, 16), torch.randn(16))
    module.linear.training = False
    converted = ree.convert(module, args=(x,), kwargs={"scale": 2, "masks": masks})
    check(module.training and module.dropout.training and not module.linear.training, "its mode is as it was")
    module.eval()
    with torch.no_grad():
        expected, made = (run(x, masks=masks, scale=2) for run in (module, converted))
    check(list(made) == list(expected) and made["none"] is None and made["sums"][1] == 3, f"{made}")
    check(torch.allclose(made["y"], expected["y"], atol=1e-6), "the values")
    check(torch.equal(made["sums"][0], expected["sums"][0]) or
          torch.allclose(made["sums"][0], expected["sums"][0], atol=1e-6), "the other values")
    with fails(ree.InvalidError, "another structure"):
        converted(x, scale=2)
    made = ree.convert(WithUnused(), args=tuple(torch.full((3,), n) for n in (5.0, 7.0, 1.0)))
    made = made(*(torch.full((3,), n) for n in (5.0, 7.0, 1.0)))
    check(made.tolist() == [4.0] * 3, f"an input that the module does not use: {made}")
    with fails(ree.InvalidError, "exported with 2"):
        converted(x, scale=3, masks=masks)
    with fails(ree.UnsupportedError, "no_grad"):
        converted(x.clone().requires_grad_(), scale=2, masks=masks)
    with fails(ree.InvalidError):
        converted(torch.randn(4, 9), scale=2, masks=masks)
    with fails(ree.InvalidError, "example inputs"):
        ree.convert(module)


def test_artifacts():
    path, weights = external_model()
    check(onnx_files.external_files(path) == ["w.bin"], "external files")
    x = torch.ones(2, 6)
    for colocate in (False, True, False):
        options = ree.CompileOptions(artifacts_dir="made", colocate_tensors=colocate)
        module = ree.convert(path, options)
        check(torch.equal(module(x), x + torch.from_numpy(weights)), "x + w")
        folder = pathlib.Path("made")
        for name in ("model.onnx", "w.bin"):
            check((folder / name).samefile(path.parent / name if name == "w.bin" else path) != colocate,
                  f"{name}, {colocate}")
        check(module.artifacts_dir == folder.absolute(), f"{module.artifacts_dir}")
        passes = sorted(file.name for file in (folder / "passes").iterdir())
        check(passes[0] == "00-read.txt" and passes[-1].endswith("-shapes.txt"), f"{passes}")
        check("Add" in (folder / "passes" / passes[0]).read_text(), "the graph")
        check("add" in (folder / "programs" / "001-lowered.txt").read_text(), "what runs")
        module(torch.ones(3, 6))
        check(sorted(file.name for file in (folder / "programs").iterdir()) ==
              ["001-lowered.txt", "001-memory-plan.txt", "002-lowered.txt", "002-memory-plan.txt"], "two shapes")
        options = json.loads((folder / "options.json").read_text())
        check(options["colocate_tensors"] == colocate and options["graph_sha256"] == module.session.model.graph_sha256,
              f"{options}")
        check(json.loads((folder / "plan.json").read_text()), "a plan")
    moved = ree.convert(folder / "model.onnx", ree.CompileOptions(artifacts_dir="made"))
    check(torch.equal(moved(x), x + torch.from_numpy(weights)), "a model in its own folder")
    # The folder of a checkpoint.
    module = ree.convert(SAMPLE / "stories", ree.CompileOptions(artifacts_dir="stories"))
    check(pathlib.Path("stories/model/config.json").exists() and module.session.inputs, "a checkpoint")
    check(not list(pathlib.Path("made").rglob("*.new")), "nothing half-written is left")
    # A temporary folder ends with the module, unless REE_DEBUG is set.
    module = ree.convert(DIGITS)
    folder = pathlib.Path(module.artifacts_dir)
    check(folder.is_dir() and module(SEVEN) is not None, "a temporary folder")
    del module
    gc.collect()
    check(not folder.exists(), "was removed")
    code = f"import ree; print(ree.convert({str(DIGITS)!r}).artifacts_dir)"
    for debug in ("", "1"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                              env={**os.environ, "REE_DEBUG": debug, "TMPDIR": os.getcwd()})
        check(os.path.isdir(done.stdout.strip()) == bool(debug), f"REE_DEBUG={debug}: {done}")


def test_options():
    check(ree.CompileOptions() == ree.CompileOptions(None, False, True, "cpu", None, None), "the defaults")
    for numerics in (None, ree.numerics):
        check(int(ree.convert(DIGITS, ree.CompileOptions(numerics=numerics))(SEVEN).argmax()) == 7, f"{numerics}")
    with fails(ree.UnsupportedError, "RepOps/0", ree.numerics):
        ree.convert(DIGITS, ree.CompileOptions(numerics="RepOps/0"))
    fast = ree.convert(DIGITS, ree.CompileOptions(requires_reproducibility=False))
    check(fast.session.device.operation_set == "default" and int(fast(SEVEN).argmax()) == 7, "without the promise")
    with ree.Device("cpu", n_threads=1) as device:
        module = ree.convert(DIGITS, ree.CompileOptions(device=device))
        check(module.session.device is device and ree.sha256({"probabilities": module(SEVEN)}) == HASH, "its device")
        module.session.close()
    with ree.Device("cpu", operation_set="default") as device:
        with fails(ree.InvalidError, "requires_reproducibility"):
            ree.convert(DIGITS, ree.CompileOptions(device=device))
    for listed in ree.devices():
        if "llvmpipe" in listed.name:
            module = ree.convert(DIGITS, ree.CompileOptions(device=listed.spec))
            check(ree.sha256({"probabilities": module(SEVEN)}) == HASH, listed.name)
    with fails(ree.InvalidError, "cpu:7"):
        ree.convert(DIGITS, ree.CompileOptions(device="cpu:7"))
    module = ree.convert(torch.nn.Linear(3, 4), ree.CompileOptions(opset=13), args=(torch.ones(2, 3),))
    check(module(torch.ones(2, 3)).shape == (2, 4), "opset 13")


def test_external_files():
    """The reader of ONNX files: damaged files end it, and locations outside of the folder are left out."""
    path, _ = external_model()
    content, wrong = path.read_bytes(), 0
    for n in range(len(content)):
        pathlib.Path("damaged.onnx").write_bytes(content[:n])
        wrong = wrong + (onnx_files.external_files("damaged.onnx") not in ([], ["w.bin"]))
    check(not wrong, f"{wrong} damaged files")
    for location in ("../w.bin", "/etc/passwd", "a/../../w.bin"):
        w = external("w", [6], location)
        pathlib.Path("outside.onnx").write_bytes(onnx.model([], [], [], initializers=[w]))
        check(onnx_files.external_files("outside.onnx") == [], location)


with tempfile.TemporaryDirectory() as work:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            (pathlib.Path(work) / name).mkdir()
            os.chdir(pathlib.Path(work) / name)
            test()
    os.chdir("/")
sys.exit(harness.finish())
