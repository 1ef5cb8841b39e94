#!/usr/bin/env python3
"""No hash of a model covers the metadata of its file or the genai_config.json next to it. Neither
may decide which answer a receipt of the model must have."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from causality import PROMPT, VOCAB, Model, harness, onnx, vectors, with_cache  # noqa: E402

check = harness.check
args = None
RUN = ["--prompt-ids", ",".join(map(str, PROMPT)), "--max-new-tokens", 6, "--ignore-eos"]


def run(*arguments):
    return subprocess.run([args.ree_run, *map(str, arguments)], capture_output=True, text=True)


def tokens(model, receipt, *options):
    done = run(model, *RUN, "--receipt-path", receipt, *options)
    if not check(done.returncode == 0, f"{model} {options}: {done.stderr}"):
        return None
    return [int(t) for t in vectors.parse(receipt.read_text())["body"]["output"]["tokens"]]


def past_size(m):
    """Logits that depend on the capacity of the past cache, unused positions included."""
    m.inputs.append(onnx.port("position_ids", onnx.INT64, ["batch", "sequence"]))
    with_cache(m)
    m.op("Concat", ["past_key_values.0.key", "row"], "present.0.key", axis=2)
    m.op("Shape", ["past_key_values.0.key"], "past_shape")
    m.op("Gather", ["past_shape", "s2"], "past_length", axis=0)
    m.op("Cast", ["past_length"], "past_float", to=1)
    m.const("hundred", [100.0], [])
    m.op("Sub", ["past_float", "hundred"], "over")
    m.op("Relu", ["over"], "much")
    m.op("Cast", ["position_ids"], "positions_float", to=1)
    m.op("Unsqueeze", ["positions_float", "n2"], "positions_column")
    m.const("zeros", [0.0], [1, 1, 1])
    m.op("Mul", ["positions_column", "zeros"], "nothing")
    m.op("Add", ["nothing", "much"], "leak")


def metadata(folder):
    """ree's own metadata says that sequences of different lengths may run together over caches with
    unused positions. A model that reads the cache's capacity must still have one answer, with and
    without a trace."""
    plain, marked = folder / "plain.onnx", folder / "marked.onnx"
    m = Model(17)
    past_size(m)
    m.finish(plain)
    mark = onnx.chunk(14, onnx.chunk(1, b"ree.format") + onnx.chunk(2, b"ree-causal-lm/1"))
    marked.write_bytes(plain.read_bytes() + mark)
    found = {name: tokens(model, folder / f"{name}.json", *options) for name, model, options in
             (("plain", plain, ()), ("marked", marked, ()), ("traced", marked, ("--trace", folder / "t.trace")))}
    check(found["plain"] and len(set(map(str, found.values()))) == 1, f"one answer: {found}")
    for name in ("plain", "marked"):
        for model in (plain, marked):
            done = run("verify", folder / f"{name}.json", model, "--ignore-eos")
            check(done.returncode == 0, f"{name} with {model.name}: {done.stdout}")


def two_logits(m, names):
    """A second output that could be the logits: it prefers token 5."""
    m.op("Identity", ["seen"], "leak")
    m.op("Neg", [m.base], "turned")
    m.const("five", [5.0 if i == 5 else 0.0 for i in range(VOCAB)], [1, 1, VOCAB])
    m.op("Add", ["turned", "five"], names[1])
    m.outputs.append(onnx.port(names[1], onnx.FLOAT, ["batch", "sequence", VOCAB]))


def genai(folder, model, logits, ids="input_ids"):
    folder.mkdir()
    shutil.copy(model, folder / "model.onnx")
    decoder = {"filename": "model.onnx", "inputs": {"input_ids": ids}, "outputs": {"logits": logits}}
    (folder / "genai_config.json").write_text(json.dumps(
        {"model": {"type": "x", "context_length": 64, "eos_token_id": 15, "decoder": decoder}}))
    return folder


def ports(folder):
    model, receipt = folder / "m.onnx", folder / "r.json"
    m = Model(17)
    two_logits(m, ("logits", "logits2"))
    m.finish(model)
    right, wrong = genai(folder / "right", model, "logits"), genai(folder / "wrong", model, "logits2")
    check(tokens(right, receipt) == [2, 3, 4, 5, 6, 7], "the name that the model says, too")
    check(run("verify", receipt, right, "--ignore-eos").returncode == 0, "and a receipt of it")
    for command, code in (([wrong, *RUN], 1), (["verify", receipt, wrong], 2)):
        done = run(*command)
        check(done.returncode == code and "'logits2'" in done.stderr, f"the folder contradicts the model: {done}")
    # Names without a known meaning: only the folder can say what they are, and then there is no
    # receipt.
    model.write_bytes(model.read_bytes().replace(b"input_ids", b"other_ids"))
    odd = genai(folder / "odd", model, "logits", "other_ids")
    done = run(odd, *RUN)
    check(done.returncode == 0, f"it runs: {done.stderr}")
    for command, code in (([odd, *RUN, "--receipt-path", folder / "odd.json"], 1), (["verify", receipt, odd], 2)):
        done = run(*command)
        check(done.returncode == code and "genai_config.json" in done.stderr, f"nothing binds the ports: {done}")
    check(not (folder / "odd.json").exists(), "no receipt")


def main():
    global args
    args = harness.parser(__doc__).parse_args()
    for part in (metadata, ports):
        with tempfile.TemporaryDirectory() as name:
            part(pathlib.Path(name))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
