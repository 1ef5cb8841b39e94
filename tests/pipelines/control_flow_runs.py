"""Specialized modules compute what the driver's specialization computes: each shader of control_flow_shaders.py that
ends, for several values of its constants."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import control_flow_shaders as shaders

parser = argparse.ArgumentParser(description=__doc__)
shaders.add_tools(parser)
parser.add_argument("--program", required=True, help="fold_runs")
args = parser.parse_args()

with tempfile.TemporaryDirectory() as name:
    runs = []
    for title, module in shaders.modules(args, pathlib.Path(name)):
        for value in shaders.VALUES:
            if (title, value) not in shaders.ENDLESS:
                runs += [str(module), str(value)]
    sys.exit(subprocess.run([args.program, *runs]).returncode)
