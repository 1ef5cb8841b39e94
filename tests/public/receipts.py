"""Runs public_receipts, a program that uses only public headers, and compares its SHA-256 with
those of ree-run. ree-run verifies the receipts that the program wrote, and the reverse."""
import argparse
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from harness import run

parser = argparse.ArgumentParser()
for name in ("--ree-run", "--program", "--source"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
sample = os.path.join(args.source, "tools/sample")
stories, digits, seven = (os.path.join(sample, name) for name in ("stories", "digits.onnx", "seven.npy"))


with tempfile.TemporaryDirectory() as folder:
    out = run(args.program, stories, digits, seven, folder)
    ours = dict(re.findall(r"^(tokens|receipt|tensors) ([0-9a-f]{64})$", out, flags=re.M))
    text = run(args.ree_run, stories, "--prompt-text", "Once upon a time", "--max-new-tokens", "16",
               "--receipt-path", f"{folder}/theirs.json")
    image = run(args.ree_run, digits, "--input", seven, "--receipt-path", f"{folder}/theirs-image.json")
    theirs = {
        "tokens": re.search(r"^tokens .*SHA-256 ([0-9a-f]{64})$", text, flags=re.M).group(1),
        "receipt": re.search(r"^receipt ([0-9a-f]{64})$", text, flags=re.M).group(1),
        "tensors": re.search(r"^receipt ([0-9a-f]{64})$", image, flags=re.M).group(1),
    }
    if ours != theirs:
        sys.exit(f"the program has {ours}, ree-run has {theirs}")
    for name in ("text", "signed"):
        run(args.ree_run, "verify", f"{folder}/{name}.json", stories)
    run(args.ree_run, "verify", f"{folder}/private.json", stories, "--prompt-text", "Once upon a time")
    run(args.ree_run, "verify", f"{folder}/tensors.json", digits, "--input", seven)
    run(args.ree_run, "validate", f"{folder}/signed.json", "--public-key", f"{folder}/key.pub",
        "--dsse", f"{folder}/signed.dsse")
    run(args.ree_run, "validate", f"{folder}/signed.json", "--public-key", f"{folder}/other.pub", code=1)
print(out.splitlines()[-1])
