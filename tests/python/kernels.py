#!/usr/bin/env python3
"""The kernels that dispatches run, as a session hands them over: on the CPU, with Vulkan's driver on the CPU, and with
the argument "cuda" on the emulator of CUDA."""
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import numpy  # noqa: E402
import ree  # noqa: E402
from harness import check, fails  # noqa: E402
from ree.kernels import Kernels  # noqa: E402

DIGITS, SEVEN = ROOT / "tools" / "sample" / "digits.onnx", numpy.load(ROOT / "tools" / "sample" / "seven.npy")


def run_on(device):
    """A session, its kernels, and the RepOps of its dispatches."""
    kernels, programs = Kernels(), []
    session = ree.Session(DIGITS, device, on_kernel=kernels.add, on_program=lambda what, text: programs.append((what, text)))
    inputs = {session.inputs[0].name: SEVEN}
    session.run(inputs)
    lowered = next(text for what, text in programs if what == "lowered")
    repops = re.findall(r"(?m)^ +[0-9]+  (\w+) .*# ", lowered)
    n = len(list(kernels))
    session.run(inputs)
    check(len(list(kernels)) == n, "a second run with the same shapes launches the same kernels")
    return session, list(kernels), repops


def on_cpu():
    session, kernels, repops = run_on("cpu")
    check([k.name for k in kernels] == [f"ree_cpu_{name}" for name in dict.fromkeys(repops)], f"{kernels} for {repops}")
    check(all(k.format == "" and k.code == b"" for k in kernels), f"{kernels}")
    if shutil.which("objdump"):
        text = str(next(k for k in kernels if k.name == "ree_cpu_conv"))
        check("<ree_cpu_conv>:" in text and text.count("\n") > 20, text[:300])
    with fails(ree.NotFoundError, "no symbol 'ree_cpu_nothing'" if shutil.which("objdump") else "objdump is not installed"):
        ree.Kernel("ree_cpu_nothing", "", b"").text  # pylint: disable=expression-not-assigned
    # As ree.convert returns it.
    module = types.SimpleNamespace(artifacts_dir="", kernels=kernels)
    check(ree.last_kernels(module) == kernels, "last_kernels")
    with fails(ree.NotFoundError, "has not been called yet"):
        ree.last_kernels(types.SimpleNamespace(artifacts_dir="", kernels=[]))
    with fails(ree.NotFoundError, "was not compiled"):
        ree.last_kernels(print)

    def failing(*_):
        raise KeyError("mine")
    with fails(KeyError, "mine"):
        ree.Session(DIGITS, session.device, on_kernel=failing).run({session.inputs[0].name: SEVEN})


def on_vulkan(spec):
    session, kernels, repops = run_on(spec)
    check(len(kernels) >= len(set(repops)), f"{[k.name for k in kernels]} for {repops}")
    with tempfile.TemporaryDirectory() as folder:
        collected = Kernels(pathlib.Path(folder))
        for kernel in kernels * 2:
            check(kernel.format == "SPIR-V" and struct.unpack("<I", kernel.code[:4])[0] == 0x07230203, kernel.name)
            collected.add(*kernel)
        files = sorted(pathlib.Path(folder).iterdir())
        check([f.name for f in files] == [f"{i:03}-{k.name}.spv" for i, k in enumerate(kernels, 1)], f"{files}")
        for file in files if shutil.which("spirv-val") else []:
            done = subprocess.run(["spirv-val", "--target-env", "vulkan1.2", "--scalar-block-layout", file], capture_output=True, text=True, check=False)
            check(done.returncode == 0, f"{file.name}: {done.stderr}")
    if shutil.which("spirv-dis"):
        check("OpEntryPoint GLCompute" in kernels[0].text, kernels[0].text[:300])
    check(any(k.name.startswith("conv") for k in kernels), f"{[k.name for k in kernels]}")
    # The text of a program names no kernel twice, and other shapes may have others.
    check(len(set(kernels)) == len(kernels), "each kernel once")
    check(ree.sha256(session.run({session.inputs[0].name: SEVEN})) == ree.sha256(ree.Session(DIGITS).run({session.inputs[0].name: SEVEN})), "the bits")


def on_cuda():
    _, kernels, repops = run_on("cuda")
    check(len(kernels) >= len(set(repops)), f"{kernels} for {repops}")
    check(all(k.format in ("PTX", "fatbin", "") for k in kernels), f"{[(k.name, k.format) for k in kernels]}")
    check(any(k.name.startswith("ree_conv") for k in kernels), f"{[k.name for k in kernels]}")
    for kernel in kernels:
        check(kernel.format != "PTX" or f".entry {kernel.name}" in kernel.text, kernel.name)


def main():
    if sys.argv[1:] == ["cuda"]:
        on_cuda()
        return harness.finish()
    on_cpu()
    for listed in [listed for listed in ree.devices() if listed.spec.startswith("vulkan")][:1]:
        on_vulkan(listed.spec)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
