"""A ree that was built without nvcc runs the PTX that it contains, and says so.

Usage: ptx_embedded_test.py REE_RUN ROOT

The emulator runs the images that ree gives it (REE_EMULATOR=kernels=image) and refuses what a real driver refuses: PTX
that declares a newer ISA than the driver's. The sample models must have the CPU's hashes; digits.onnx also the
recorded one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

REE_RUN, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SAMPLE, RECORD = ROOT / "tools/sample", json.loads((ROOT / "cuda/ptx/record.json").read_text())
n_failed = 0


def check(condition, text):
    global n_failed
    if not condition:
        print(f"FAILED: {text}")
        n_failed += 1


def run(arguments, words):
    environment = dict(os.environ, REE_EMULATOR=f"kernels=image,{words}")
    done = subprocess.run([REE_RUN, *arguments], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def cuda(version):
    return f"CUDA {version // 1000}.{version % 1000 // 10}"


def main():
    oldest = RECORD["driver"]
    code, output = run(["devices", "cuda"], f"driver={oldest}")
    expected = f"PTX from ree's repository, made by nvcc of CUDA {'.'.join(RECORD['nvcc'].split('.')[:2])}"
    check(code == 0 and expected in output, f"'{expected}' is not in:\n{output}")
    check("compiled by the driver" in output, f"expressions are not compiled:\n{output}")

    code, output = run(["devices", "cuda"], f"driver={oldest - 10}")
    expected = f"requires a driver for {cuda(oldest)} or later, and this driver is for {cuda(oldest - 10)}"
    check(code == 1 and expected in output, f"'{expected}' is not in:\n{output}")

    digit = [SAMPLE / "digits.onnx", "--input", f"image={SAMPLE / 'seven.npy'}"]
    story = [SAMPLE / "stories", "--prompt-text", "Once upon a time", "--max-new-tokens", "2", "--logits-hash"]
    recorded = (SAMPLE / "recorded.txt").read_text()
    for command in (digit, story):
        hashes = {}
        for device in ("cpu", "cuda"):
            code, output = run([*command, "--device", device], f"driver={oldest}")
            hashes[device] = re.findall(r"\b[0-9a-f]{64}\b", output)
            check(code == 0 and hashes[device], f"{device}: {output}")
            # ree replaces a kernel that fails its self-test, so that the hashes would still be right.
            check("a self-test failed" not in output, f"{device}: {output}")
        check(hashes["cpu"] == hashes["cuda"], f"the CPU has {hashes['cpu']}, CUDA {hashes['cuda']}")
        if command is digit:
            check(any(value in recorded for value in hashes["cuda"]), f"not the recorded hash: {hashes['cuda']}")
    print(f"{n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
