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
from causality import PROMPT, STORIES, VOCAB, Model, harness, onnx, vectors, with_cache  # noqa: E402

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


def untyped_outputs(folder):
    """Outputs whose element type the model does not declare. Passes find it, also from hints, which no hash covers; the
    purposes of outputs do not depend on what they find."""
    def one_hot(shift):
        return [10.0 if j == (i + shift) % VOCAB else 0.0 for i in range(VOCAB) for j in range(VOCAB)]

    def make(name, first, value_info=(), caches=()):
        """The logits are `b`. The output `a` before it, of the nodes `first`, would be chosen if it had a type."""
        path, (inputs, nodes, outputs) = folder / f"{name}.onnx", caches or ((), (), ())
        path.write_bytes(onnx.model(
            [onnx.node("Gather", ["table", "input_ids"], ["h"]), *first, *nodes, onnx.node("MatMul", ["h", "next"], ["b"])],
            [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"]), *inputs],
            [onnx.port("a", 0, ["batch", "sequence", VOCAB]), onnx.port("b", onnx.FLOAT, ["batch", "sequence", VOCAB]), *outputs],
            [onnx.floats("table", [VOCAB, VOCAB], one_hot(0)), onnx.floats("next", [VOCAB, VOCAB], one_hot(1)),
             onnx.floats("other", [VOCAB, VOCAB], one_hot(2)), onnx.floats("c", [1, 1, VOCAB], one_hot(5)[:VOCAB])],
            value_info=value_info))
        return path

    made = [onnx.node("MatMul", ["h", "other"], ["p"]), onnx.node("Identity", ["p"], ["a"])]
    models = {"plain": make("plain", made), "hint": make("hint", made, [onnx.port("p", onnx.FLOAT, None)]),
              "constant": make("constant", [onnx.node("Add", ["c", "c"], ["a"])])}
    for name, model in models.items():
        for options in (), ("--no-fold",):
            receipt = folder / "r.json"
            found = tokens(model, receipt, *options)
            check(found == [2, 3, 4, 5, 6, 7], f"{name} {options}: {found}")
            for copy in {"plain": "hint", "hint": "plain"}.get(name, name), name:
                for more in (), ("--no-fold",):
                    done = run("verify", receipt, models[copy], "--ignore-eos", *more)
                    check(done.returncode == 0, f"{name} {options} with {copy} {more}: {done.stdout}{done.stderr}")

    # The same for a cache: it is refused in one stage and in two.
    cache = ([onnx.port("past.key", onnx.FLOAT, ["batch", 1, "past", VOCAB])],
             [onnx.node("Unsqueeze", ["h", "axes"], ["h4"]), onnx.node("Concat", ["past.key", "h4"], ["q"], attributes={"axis": 2}),
              onnx.node("Identity", ["q"], ["present.key"])], [onnx.chunk(1, "present.key")])
    made.append(onnx.node("Constant", [], ["axes"], attributes={"value_ints": [1]}))
    for name, hints in (("plain", []), ("hint", [onnx.port("q", onnx.FLOAT, None)])):
        model = make(f"cache-{name}", made, hints, cache)
        for options in (), ("--n-partitions", 2):
            done = run(model, *RUN, *options)
            check(done.returncode == 1 and "'past.key' and its output 'present.key' have different types" in done.stderr,
                  f"cache, {name} {options}: {done}")


def context_lengths(folder):
    """A checkpoint and its export have one length, whatever keys of other families its config.json has."""
    export = folder / "export" / "model.onnx"
    for name, changes in (("another key", {"max_position_embeddings": None, "n_positions": 64}),
                          ("within", {"text_config": {"max_position_embeddings": 100}})):
        model = shutil.copytree(STORIES, folder / name)
        config = json.loads((model / "config.json").read_text())
        config.update(changes)
        (model / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
        export.parent.mkdir(exist_ok=True)
        harness.run(args.ree_run, "export", model, "-o", export, "--colocate-tensors")
        harness.run(args.ree_run, "export", model)  # beside the checkpoint
        receipts = [folder / f"{where}.json" for where in ("folder", "export", "beside")]
        for source, receipt in zip((model, export, model / "model.onnx"), receipts):
            harness.run(args.ree_run, source, "--prompt-ids", "0,80,90", "--max-new-tokens", 3, "--receipt-path", receipt)
        lengths = [json.loads(r.read_text())["body"]["sampling"]["context_length"] for r in receipts]
        check(len(set(lengths)) == 1, f"{name}: {lengths}")


def ends(folder):
    """What ends a text follows from the model and from the tokenizer's own files, wherever the tokenizer lies."""
    model = shutil.copytree(STORIES, folder / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "eos_token_id": 289}))
    (model / "generation_config.json").write_text(json.dumps({"eos_token_id": [86]}))
    export, apart = folder / "apart" / "model.onnx", folder / "tokenizer"
    export.parent.mkdir()
    apart.mkdir()
    harness.run(args.ree_run, "export", model, "-o", export, "--colocate-tensors")
    for place in export.parent, apart:
        for file in model.glob("*token*.json"):
            shutil.copy(file, place)
    shutil.copy(model / "config.json", export.parent)  # but not generation_config.json
    found = []
    for source, options in ((model, ()), (export, ()), (model, ("--tokenizer", apart))):
        receipt = folder / "r.json"
        harness.run(args.ree_run, source, "--prompt-ids", "0,80,90", "--max-new-tokens", 3, "--receipt-path", receipt, *options)
        found.append(json.loads(receipt.read_text())["body"]["sampling"]["eos"])
    check(found[0] == found[1] == found[2] and 86 in found[0] and 289 not in found[0], f"{found}")


def window_caches(folder):
    """A cache that keeps only the last rows. The positions of the steps would not be those that a verifier derives."""
    m = Model(17)
    m.inputs += [onnx.port("position_ids", onnx.INT64, ["batch", "sequence"]), onnx.port("past.key", onnx.FLOAT, ["batch", 1, "past", 1])]
    m.op("Unsqueeze", ["seen", "n1"], "row")
    m.op("Concat", ["past.key", "row"], "all", axis=2)
    m.const("from", [-3])
    m.const("to", [2**31 - 1])
    m.op("Slice", ["all", "from", "to", "n2"], "present.key")
    m.op("Cast", ["position_ids"], "place", to=onnx.FLOAT)
    m.op("Unsqueeze", ["place", "n2"], "leak")
    m.outputs.append(onnx.port("present.key", onnx.FLOAT, ["batch", 1, "total", 1]))
    model = m.finish(folder / "m.onnx")
    done = run(model, *RUN)
    check(done.returncode == 1 and "'past.key' has 3 positions after 5 tokens" in done.stderr, f"{done}")


def main():
    global args
    args = harness.parser(__doc__).parse_args()
    for part in (metadata, ports, untyped_outputs, context_lengths, ends, window_caches):
        with tempfile.TemporaryDirectory() as name:
            part(pathlib.Path(name))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
