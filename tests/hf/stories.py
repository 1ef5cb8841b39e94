#!/usr/bin/env python3
"""Exports a trained model (stories260K, if present) and compares its logits and greedy tokens with
recorded ones: those of llama2.c, float32. All logits agree within 1e-4: both sum 64 to 512 float32
terms in different orders, through five layers, and logits reach 20.

Then checks that all ways to the same graph give the same bytes: the folder itself, the exported
file, the form of opset 17, copied weights, and a prompt in pieces. With --device, checks that
another device gives the CPU's bytes.
"""

import argparse
import array
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

VOCABULARY = 512


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(str(c) for c in command)}\n{done.stderr}")
    return done.stdout


def decode(args, model, work, pieces, steps, tokens, device="cpu"):
    logits = work / "logits.f32"
    os.environ["HF_DECODE_DEVICE"] = device
    text = run([args.decode, model, logits, pieces, steps, ",".join(map(str, tokens))])
    return [int(t) for t in text.strip().split(",")], logits.read_bytes()


def compare(name, tokens, got, want):
    """Row t of both contains the logits after token t; the next token must be the largest one's."""
    got, want = array.array("f", got), array.array("f", want)
    if len(got) < len(want) or len(want) != len(tokens) * VOCABULARY:
        sys.exit(f"FAILED: {name}: {len(got)} logits, {len(want)} are recorded")
    worst = max(abs(a - b) for a, b in zip(got, want))
    if not all(abs(a - b) <= 1e-4 for a, b in zip(got, want)):  # false of a NaN
        sys.exit(f"FAILED: {name}: a logit differs by {worst} or is NaN")
    for t in range(len(tokens)):
        row = slice(t * VOCABULARY, (t + 1) * VOCABULARY)
        if max(range(VOCABULARY), key=got[row].__getitem__) != max(
                range(VOCABULARY), key=want[row].__getitem__):
            sys.exit(f"FAILED: {name}: another token after token {t}")
    return worst


def compare_device(args):
    """A prompt in two pieces and a greedy token, on the device and on the CPU."""
    devices = run([args.ree_run, "devices"])
    if f"{args.device}:" not in devices:
        harness.skip(f"there is no device of the kind {args.device}")
    with tempfile.TemporaryDirectory() as folder:
        tokens = [int(line) for line in
                  (args.model / "golden" / "greedy_cat.tokens.txt").read_text().split()][:6]
        work, results = pathlib.Path(folder), []
        for device in ("cpu", args.device):
            results.append(decode(args, args.model, work, "4", 1, tokens, device))
    if results[0] != results[1]:
        sys.exit(f"FAILED: {args.device} gives other bytes")
    print(f"{args.device}: the same bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--decode", required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--device", help="only compare this device with the CPU")
    args = parser.parse_args()
    if not (args.model / "golden").is_dir():
        harness.skip(f"{args.model} is not here")
    if args.device:
        compare_device(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        checkpoint = work / "checkpoint"
        checkpoint.mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copyfile(args.model / name, checkpoint / name)
        run([args.ree_run, "export", checkpoint])
        run([args.ree_run, "export", checkpoint, "--opset", "17", "-o", checkpoint / "steps.onnx"])
        run([args.ree_run, "export", checkpoint, "--colocate-tensors", "-o", work / "copy.onnx"])
        for tokens_file in sorted((args.model / "golden").glob("*.tokens.txt")):
            name = tokens_file.name.removesuffix(".tokens.txt")
            tokens = [int(line) for line in tokens_file.read_text().split()]
            want = (args.model / "golden" / f"{name}.logits.f32").read_bytes()
            _, whole = decode(args, checkpoint, work, "", 0, tokens)
            worst = compare(name, tokens, whole, want)
            for model, pieces in ((checkpoint / "model.onnx", "7,1,1,30"),
                                  (checkpoint / "steps.onnx", ""), (work / "copy.onnx", "100")):
                if decode(args, model, work, pieces, 0, tokens)[1] != whole:
                    sys.exit(f"FAILED: {name}: {model.name} gives other bytes")
            print(f"{name}: {len(tokens)} tokens, logits within {worst:.2g}")
        # Greedy from the first token: "empty" has no prompt.
        tokens = [int(line) for line in
                  (args.model / "golden" / "greedy_empty.tokens.txt").read_text().split()]
        got, _ = decode(args, checkpoint / "model.onnx", work, "", len(tokens) - 1, tokens[:1])
        if got != tokens:
            sys.exit("FAILED: greedy tokens differ")
        print(f"{len(got)} greedy tokens agree")


if __name__ == "__main__":
    main()
