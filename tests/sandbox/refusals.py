#!/usr/bin/env python3
"""Runs sandbox_refusals in an empty folder, once for the CPU and once for a device with drivers."""

import subprocess
import sys
import tempfile

codes = []
for device in ("cpu", "vulkan"):
    with tempfile.TemporaryDirectory() as folder:
        print(device, flush=True)
        codes.append(subprocess.run([sys.argv[1], device], cwd=folder, stdin=subprocess.DEVNULL).returncode)
sys.exit(next((code for code in codes if code not in (0, 77)), codes[0]))
