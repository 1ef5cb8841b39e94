#!/usr/bin/env python3
"""Runs sandbox_refusals in an empty folder, for the CPU and for both kinds of devices with drivers; then for the CPU
with the Landlock of older kernels, down to none."""

import os
import re
import subprocess
import sys
import tempfile

failed = []


def run(device, landlock=None):
    """Returns the exit code and what the program wrote."""
    environment = {**os.environ, **({} if landlock is None else {"REE_TEST_LANDLOCK": str(landlock)})}
    print(device, "" if landlock is None else f"with Landlock {landlock}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.argv[1], device], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environment)
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    if done.returncode not in (0, 77):
        failed.append(device)
    return done.returncode, done.stdout


code, shown = run("cpu")
run("vulkan")
run("cuda")
found = re.match(r"landlock (\d+)", shown)
newest = int(found.group(1)) if found else -1
for version in range(min(newest, 8) - 1, -1, -1):
    _, shown = run("cpu", version)
    expected = f"landlock {version}" if version else "kernel without landlock"
    if expected not in shown:
        print(f"expected '{expected}', got '{shown}'")
        failed.append(version)
sys.exit(1 if failed else code)
