"""Runs the sample models on the kernels as nvcc compiled them. Their hashes must be the CPU's; that of digits.onnx also
the recorded one.

Usage: ptx_texts_test.py REE_RUN ROOT

The environment names the emulator (REE_CUDA_DRIVER) and the modules (REE_EMULATOR_PTX). The statistics must show that
one of the modules' kernels was run.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def run(arguments, environment):
    result = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    # ree replaces a kernel that fails its self-test, so that the hashes would still be right.
    if result.returncode or "a self-test failed" in result.stdout + result.stderr:
        print("FAILED:", result.stdout, result.stderr)
        sys.exit(1)
    return result.stdout


def main():
    ree_run, sample = sys.argv[1], pathlib.Path(sys.argv[2]) / "tools/sample"
    recorded = dict(re.findall(r"^(\w{64})  (.*)$", (sample / "recorded.txt").read_text(), re.M)[::-1])
    n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        # ree-run may write only below its cache folder.
        file = pathlib.Path(folder) / "ree/statistics.json"
        file.parent.mkdir()
        environment = dict(os.environ, REE_EMULATOR_STATISTICS=str(file), XDG_CACHE_HOME=folder)
        story = [ree_run, sample / "stories", "--prompt-text", "Once upon a time", "--max-new-tokens", "6"]
        digit = [ree_run, sample / "digits.onnx", "--input", f"image={sample / 'seven.npy'}"]
        for command in (digit, [*story, "--logits-hash"]):
            hashes = {}
            for device in ("cpu", "cuda"):
                text = run([*command, "--device", device], environment)
                hashes[device] = re.findall(r"\b[0-9a-f]{64}\b", text)
            print(hashes["cuda"])
            if not hashes["cpu"] or hashes["cpu"] != hashes["cuda"]:
                print("FAILED: the CPU has", hashes["cpu"])
                n_failed += 1
            if command is digit and not set(hashes["cuda"]) & set(recorded):
                print("FAILED: not the recorded hash")
                n_failed += 1
        kernels = json.loads(file.read_text())
        n_threads = sum(kernel["threads"] for kernel in kernels.values())
        print(f"{len(kernels)} kernels, {n_threads / 1e6:.0f} million instructions of threads")
        if kernels.get("ree_norm_rows", {}).get("instructions", 0) == 0:
            print("FAILED: ree_norm_rows did not run as PTX")
            n_failed += 1
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
