"""Compiles narrow.c for 64-bit ARM and runs it under qemu."""
import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__)
for name in ("--source", "--folder", "--cc", "--qemu"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
os.makedirs(args.folder, exist_ok=True)
program = os.path.join(args.folder, "narrow")
for command in ([args.cc, "-std=gnu17", "-O2", "-ffp-contract=off", "-march=armv8.6-a+bf16+fp16fml", "-Wall", "-Wextra",
                 "-Werror", "-static", args.source, "-lm", "-o", program], [args.qemu, "-cpu", "max", program]):
    code = subprocess.run(command).returncode
    if code:
        sys.exit(f"{' '.join(command)}: exit code {code}")
