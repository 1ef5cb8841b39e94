"""Runs the programs of docs/examples and compares their output with ree-run's."""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "harness"), str(HERE.parent / "cli")]
import harness
import onnx_writer as onnx
from harness import check, run

parser = argparse.ArgumentParser()
for name in ("--ree-run", "--examples", "--source"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
sample = os.path.join(args.source, "tools/sample")
stories, digits, seven = (os.path.join(sample, name) for name in ("stories", "digits.onnx", "seven.npy"))
prompt = "Once upon a time"


def example(name, *arguments, code=0):
    return run(os.path.join(args.examples, name), *arguments, code=code)


def hash_of(text, label):
    return re.search(rf"^{label} .*?([0-9a-f]{{64}})$", text, flags=re.M).group(1)


for path in ("classify.c", "compare.c", "decode.c", "generate.c", "receipt.c"):
    with open(os.path.join(args.source, "docs/examples", path)) as file:
        lines = file.read().split("\n")
    check(len(lines) <= 80, f"{path} has {len(lines)} lines")
    includes = {line.split()[1] for line in lines if line.startswith("#include")}
    check("<ree.h>" in includes and not any(name.startswith('"') for name in includes), f"{path}: {includes}")

# The same text and hash as ree-run with these options.
said = example("generate", stories, prompt)
same = run(args.ree_run, stories, "--prompt-text", prompt, "--max-new-tokens", "64", "--temperature", "0.8",
           "--top-p", "0.95", "--seed", "7", "--stop", "\n")
check(said.split("\nprompt ")[0].strip() == same.split("\n\nprompt ")[0].strip(), f"{said}\nree-run: {same}")

# decode: the first of its two texts is the most likely one, ree-run's.
said = example("decode", stories, prompt)
same = run(args.ree_run, stories, "--prompt-text", prompt, "--max-new-tokens", "30", "--temperature", "0")
check(hash_of(said, "tokens") == hash_of(same, "tokens"), f"{said}\nree-run: {same}")
check(said.startswith(same.split("\n\n")[0].strip()), f"{said}\nree-run: {same}")
check(said.count(prompt) == 2 and said.endswith("71 tokens were run, 11 of them for both\n"), said)

with tempfile.TemporaryDirectory() as folder:
    path, theirs = f"{folder}/r.json", f"{folder}/theirs.json"
    said = example("receipt", "make", path, stories, prompt)
    same = run(args.ree_run, stories, "--prompt-text", prompt, "--max-new-tokens", "24", "--receipt-path", theirs)
    check(hash_of(said, "receipt") == hash_of(same, "receipt"), f"{said}\nree-run: {same}")
    check(example("receipt", "verify", path, stories) == "verified\n", "its own receipt")
    check(example("receipt", "verify", theirs, stories) == "verified\n", "a receipt of ree-run")
    run(args.ree_run, "verify", path, stories)
    with open(path) as file:
        receipt = json.load(file)
    receipt["body"]["output"]["tokens"][3] += 1
    with open(path, "w") as file:
        json.dump(receipt, file)
    check("differs\n" in example("receipt", "verify", path, stories, code=1), "a forged receipt")
    example("receipt", "verify", f"{folder}/none.json", stories, code=2)

said = example("classify", digits, seven)
same = run(args.ree_run, digits, "--input", seven, "--top", "1")
check(hash_of(said, "sha256") == hash_of(same, "sha256"), f"{said}\nree-run: {same}")
check(said.startswith("class 7"), said)

# compare: both devices, and one with a flipped bit.
ours = hash_of(said, "sha256")
for fault in (), ("2:0:20",):
    said = example("compare", digits, seven, "cpu", "cpu", *fault, code=len(fault))
    check(said.count(f"sha256  {ours} on cpu\n") == 2, f"{said}\nree-run: {same}")
    check(bool(re.search(r"^the same: \d+ nodes$" if not fault else
                         r"^node 2 .* is the first that differs; its inputs agree\n1 of \d+ elements differ",
                         said, flags=re.M)), said)

# A model without kv caches cannot be decoded by steps.
with tempfile.TemporaryDirectory() as folder:
    vocab = 8
    table = onnx.floats("table", [vocab, vocab], [float(i == j) for i in range(vocab) for j in range(vocab)])
    model = onnx.model([onnx.node("Gather", ["table", "input_ids"], ["logits"])],
                       [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])],
                       [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", vocab])], [table])
    pathlib.Path(folder, "model.onnx").write_bytes(model)
    shutil.copy(os.path.join(stories, "tokenizer.json"), folder)
    done = harness.call(os.path.join(args.examples, "decode"), folder, prompt)
    check(done.returncode == 1 and "has no kv caches" in done.stderr, done)
sys.exit(harness.finish())
