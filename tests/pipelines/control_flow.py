"""Specialized modules stay valid SPIR-V, whatever control flow depends on the constants: each shader of
control_flow_shaders.py, for several values of its constants."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import control_flow_shaders as shaders

import harness
from harness import check

parser = argparse.ArgumentParser(description=__doc__)
shaders.add_tools(parser)
parser.add_argument("--program", required=True)
args = parser.parse_args()


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for title, module in shaders.modules(args, folder):
        for value in shaders.VALUES:
            out = folder / "out.spv"
            done = run(args.program, module, out, "0=64", f"1={value}", f"2={value % 2}")
            if not check(done.returncode == 0, f"{module.name}, C = {value}: {done.stdout}"):
                continue
            done = run(args.spirv_val, "--target-env", "vulkan1.2", out)
            check(done.returncode == 0, f"{module.name}, C = {value}: {done.stdout}{done.stderr}")
sys.exit(harness.finish())
