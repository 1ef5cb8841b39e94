#!/usr/bin/env python3
"""A checkpoint's folder that is quantised when it is loaded gives the same tokens, logits, receipt,
trace and hashes as the file that `export` writes with the same options, in several stages too, and
leaves no files. Uses the sample model of tools/sample."""

import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "harness"), str(HERE.parent / "cli")]
import harness  # noqa: E402
import onnx_notes  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
PROMPT = ["--prompt-text", "Once upon a time", "--max-new-tokens", 24, "--logits-hash"]
# Recorded, so that no later version changes them.
INT8_LOGITS = {4: "88c5e05bdfc6646d4aa5ae99a3ffed76e149d3505c1db5621349ea4324743d1d",
               8: "974f289828095e2e51e4cdf97d0278449cc4d3a7a87d3c13d064035dcd400144"}
ree_run = None


def run(*arguments):
    return harness.call(ree_run, *arguments)


@harness.helper
def text(work, *arguments):
    """Returns the hashes of a run, and its receipt without what depends on the day and the
    machine."""
    receipt = work / "receipt.json"
    done = run(*arguments, *PROMPT, "--receipt-path", receipt, "--json")
    if not check(done.returncode == 0, f"{arguments}: {done.stderr}"):
        return {}
    said, body = json.loads(done.stdout), json.loads(receipt.read_text())
    return {"tokens": said["tokens_sha256"], "logits": said["logits_sha256"], "hash": body["receipt_hash"],
            "body": body["body"]}


@harness.helper
def verifies(receipt, result, *arguments):
    done = run("verify", receipt, *arguments, "--json")
    check(json.loads(done.stdout or "{}").get("result") == result, f"{arguments}: {done.stdout} {done.stderr}")


def same_as_exported(work, bits, block):
    """The exported file refers to the weights that are not quantised, so it must be next to
    them."""
    folder, options = work / "model", ["--quantize", bits, *(["--block", block] if block else [])]
    file = folder / f"q{bits}-{block}.onnx"
    done = run("export", folder, *options, "-o", file)
    check(done.returncode == 0, done.stderr)
    before = sorted(os.listdir(folder))
    want, got = text(work, file), text(work, SAMPLE, *options)
    check(want == got, f"{options}: {want} and {got}")
    check(sorted(os.listdir(folder)) == before, "nothing is written beside the checkpoint")
    planned = [json.loads(run("plan", *model, "--n-partitions", 2, "--json").stdout) for model in ([file], [SAMPLE, *options])]
    check(planned[0]["stages"] == planned[1]["stages"] and
          planned[0]["graph_sha256"] == planned[1]["graph_sha256"], f"{options}: {planned}")
    receipt = work / "receipt.json"
    verifies(receipt, "verified", SAMPLE, *options)
    verifies(receipt, "verified", file)
    verifies(receipt, "verified", SAMPLE, *options, "--stepwise", "--prefill-chunk", 3)
    verifies(receipt, "differs", SAMPLE)
    verifies(receipt, "differs", SAMPLE, "--quantize", 12 - bits)
    verifies(receipt, "differs", SAMPLE, "--quantize", bits, "--block", 128)
    parts = text(work, SAMPLE, *options, "--n-partitions", 3, "--max-device-memory", "2M")
    check(parts.get("logits") == got.get("logits"), f"{options}: in parts: {parts}")
    plan = work / "plan.json"
    done = run("plan", file, "--n-partitions", 2, "-o", plan)
    check(done.returncode == 0, done.stderr)
    planned = text(work, SAMPLE, *options, "--plan", plan)
    check(planned.get("logits") == got.get("logits"), f"{options}: by the plan of the file: {planned}")
    return got


def planned_bytes(file):
    """Returns the bytes of all weights that one device stores."""
    done = run("plan", file, "--n-partitions", 1, "--json")
    check(done.returncode == 0, done.stderr)
    return sum(stage["weight_bytes"] for stage in json.loads(done.stdout)["stages"])


def written(found):
    return b"".join(onnx.number(n, v) if isinstance(v, int) else onnx.chunk(n, v) for n, v in found)


def reordered(file, out):
    """Writes a model with its initializers in reverse order: another file of the same model."""
    model = list(onnx_notes.fields(file.read_bytes()))
    graph = list(onnx_notes.fields(dict(model)[7]))
    tensors = [(n, v) for n, v in graph if n == 5]
    check(len(tensors) > 10, f"{len(tensors)} initializers")
    graph = written(tensors[::-1] + [(n, v) for n, v in graph if n != 5])
    out.write_bytes(written([(n, graph if n == 7 else v) for n, v in model]))


def same_in_another_order(work):
    """The order of the initializers in the file is not part of the model: hashes, traces and plans
    stay."""
    file = work / "model" / "table-8.onnx"
    other = work / "model" / "reordered.onnx"
    reordered(file, other)
    seen = []
    for path in (file, other):
        trace = work / "order.trace"
        done = run(path, *PROMPT, "--trace", trace)
        check(done.returncode == 0, done.stderr)
        planned = run("plan", path, "--n-partitions", 2, "--json")
        check(planned.returncode == 0, planned.stderr)
        root = json.loads(run("trace", trace, "--json").stdout or "{}").get("root")
        body = text(work, path).get("body", {})
        seen.append((root, {k: v for k, v in json.loads(planned.stdout).items() if k != "model"}, body.get("model")))
    check(file.read_bytes() != other.read_bytes() and seen[0][0] and seen[0] == seen[1], f"{seen}")


def tables(work):
    """The sample's embedding table is its head. Quantised, it is one table in the file, looked up and
    multiplied; each choice has its own bits, and a receipt of one is not one of another. Without
    --quantize-table, verify tries 8 bits and, for receipts of earlier versions, the unquantised table."""
    seen, folder = {}, work / "model"
    for table in ("4", "8", "keep"):
        options = ["--quantize", 4, "--quantize-table", table]
        file = folder / f"table-{table}.onnx"
        done = run("export", folder, *options, "-o", file)
        check(done.returncode == 0, done.stderr)
        want, seen[table] = text(work, file), text(work, SAMPLE, *options)
        check(want == seen[table], f"{options}: {want} and {seen[table]}")
        receipt = work / "receipt.json"
        verifies(receipt, "verified", SAMPLE, *options)
        verifies(receipt, "verified" if table != "4" else "differs", SAMPLE, "--quantize", 4)
        if table == "keep":
            done = run("verify", receipt, SAMPLE, "--quantize", 4)
            check("embedding table" in done.stdout and "not quantised" in done.stdout, done.stdout)
            verifies(receipt, "differs", SAMPLE, "--quantize", 4, "--quantize-table", 8)
        about = json.loads(run("inspect", file, "--json").stdout)
        n_lookups = sum(op["count"] for op in about["operators"] if op["type"] == "GatherBlockQuantized")
        check(n_lookups == (table != "keep"), f"{table}: {n_lookups}")
    check(len({s.get("logits") for s in seen.values()}) == 3, f"{seen}")
    check(seen["8"] == text(work, SAMPLE, "--quantize", 4), "8 bits are the default")
    sizes = {t: os.path.getsize(folder / f"table-{t}.onnx.data") for t in seen}
    rows, columns = 640, 128
    bytes_of = {t: rows * (columns * int(t) // 8 + 4 * columns // 32) for t in ("4", "8")}
    for table, size in bytes_of.items():
        more = sizes[table] - sizes["keep"]
        check(size <= more < size + 3 * 4096, f"{table}: {more} more bytes in the file, {size} of the table")
    weights = {t: planned_bytes(folder / f"table-{t}.onnx") for t in seen}
    kept = rows * columns * 2  # bfloat16
    for table, size in bytes_of.items():
        more = weights["keep"] - weights[table]
        check(more == kept - size, f"{table}: {more} fewer bytes of weights, as if the table was counted twice")


def int8_activations(work):
    """Products of int8: bits of their own, the same with portable kernels and with other threads, chunks
    and stages; causality is proved; a receipt is verified without the option, but not with another type."""
    folder, receipt, seen = work / "model", work / "receipt.json", {}
    for bits in (4, 8):
        options = ["--quantize", bits, "--activations", "int8"]
        file = folder / f"int8-{bits}.onnx"
        done = run("export", folder, *options, "-o", file)
        check(done.returncode == 0, done.stderr)
        want, seen[bits] = text(work, file), text(work, SAMPLE, *options)
        check(want == seen[bits], f"{options}: {want} and {seen[bits]}")
        check(seen[bits] != text(work, SAMPLE, "--quantize", bits), f"{bits} bits: float32 activations have the same bits")
        check(want.get("logits") == INT8_LOGITS[bits], f"{bits} bits: the logits' hash was recorded as {INT8_LOGITS[bits]}")
        ways = [["--cpu-isa", "portable"], ["--threads", 1], ["--prefill-chunk", 3], ["--prefill-chunk", 1],
                ["--n-partitions", 3]]
        for way in ways:
            other = text(work, SAMPLE, *options, *way)
            check(other.get("logits") == want.get("logits"), f"{options} {way}: {other} and {want}")
        text(work, SAMPLE, *options)
        done = run("verify", receipt, SAMPLE, *options, "--json")
        found = json.loads(done.stdout or "{}")
        check(found.get("result") == "verified" and "token_by_token" not in found, f"{options}: {done.stdout} {done.stderr}")
        check(found.get("runs") == 1, f"{options}: one pass: {found}")
        verifies(receipt, "verified", SAMPLE, "--quantize", bits)  # found by the hash of the graph
        verifies(receipt, "verified", file)
        verifies(receipt, "differs", SAMPLE, "--quantize", bits, "--activations", "float32")
        verifies(receipt, "differs", SAMPLE, "--quantize", 12 - bits)
    check(seen[4].get("logits") != seen[8].get("logits"), "4 and 8 bits differ")
    options = ["--quantize", 4, "--activations", "int8", "--quantize-table", "keep"]
    text(work, SAMPLE, *options)
    verifies(receipt, "verified", SAMPLE, "--quantize", 4)  # both choices are found
    trace = work / "int8.trace"
    done = run(SAMPLE, *options, *PROMPT, "--trace", trace)
    check(done.returncode == 0, done.stderr)
    done = run("plan", SAMPLE, *options, "--n-partitions", 2, "--json")
    check(done.returncode == 0 and len(json.loads(done.stdout)["stages"]) == 2, done.stderr)
    done = run("perplexity", SAMPLE, "--text", SAMPLE / "config.json", "--against", SAMPLE, "--against-activations", "int8")
    check(done.returncode == 2 and "--against-quantize" in done.stderr, done.stderr)
    done = run(SAMPLE, "--activations", "int8", *PROMPT)
    check(done.returncode == 2 and "and --quantize" in done.stderr, done.stderr)


def int8_logits(work, device):
    """The recorded hashes of the logits, on one device."""
    for bits in (4, 8):
        found = text(work, SAMPLE, "--quantize", bits, "--activations", "int8", "--device", device)
        check(found.get("logits") == INT8_LOGITS[bits], f"{bits} bits on {device}: {found}, recorded {INT8_LOGITS[bits]}")


def requested(work):
    """A request names the quantised model."""
    ask, receipt, options = work / "ask.json", work / "asked.json", ["--quantize", 4, "--activations", "bfloat16"]
    done = run("request", SAMPLE, *options, "--prompt-text", "Once", "--max-new-tokens", 5, "--output", ask)
    check(done.returncode == 0, done.stderr)
    done = run(SAMPLE, *options, "--request", ask, "--receipt-path", receipt)
    check(done.returncode == 0, done.stderr)
    verifies(receipt, "verified", SAMPLE, *options, "--request", ask)
    done = run(SAMPLE, "--request", ask, "--receipt-path", receipt)
    check(done.returncode == 1 and "the request names another model" in done.stderr, f"of another model: {done.stderr}")
    done = run("bench", "model", SAMPLE, *options, "--runs", 1, "--json")
    check(done.returncode == 0 and json.loads(done.stdout)["weight_bytes"] < 1 << 20, done.stdout + done.stderr)


def traced(work):
    """Both have the same digest of every value and the same root. Also `compare`, and a run of
    tensors."""
    file = work / "model" / "q4-None.onnx"
    roots = []
    for k, model in enumerate(([file], [SAMPLE, "--quantize", 4])):
        path = work / f"{k}.trace"
        done = run(*model, *PROMPT, "--trace", path)
        check(done.returncode == 0, done.stderr)
        roots.append(json.loads(run("trace", path, "--json").stdout or "{}").get("root", k))
    check(roots[0] == roots[1], f"{roots}")
    done = run("compare", SAMPLE, "--quantize", 4, "--prompt-text", "Once", "--max-new-tokens", 2, "--cpu-isa", "portable",
               "--cpu-isa", "portable")
    check(done.returncode == 0, done.stdout + done.stderr)
    inputs = ["--random-inputs", 1, "--dim", "sequence=3", "--dim", "total_sequence=3", "--dim", "past_sequence=0"]
    sums = []
    for model in ([file], [SAMPLE, "--quantize", 4], [SAMPLE]):
        done = run(*model, *inputs)
        last = done.stdout.splitlines()[-1:]
        check(done.returncode == 0 and last and last[0].startswith("sha256"), f"{model}: {done.stdout}{done.stderr}")
        sums.append(last)
    check(sums[0] == sums[1] != sums[2], f"tensors: {sums}")


def refused(work):
    done = run(work / "model" / "q4-None.onnx", "--quantize", 4, *PROMPT)
    check(done.returncode == 1 and "not a folder with a Hugging Face checkpoint" in done.stderr, done.stderr)
    # A block with an infinite weight cannot be quantised.
    folder = work / "infinite"
    shutil.copytree(SAMPLE, folder)
    data = bytearray((folder / "model.safetensors").read_bytes())
    n = struct.unpack("<Q", data[:8])[0]
    name = "model.layers.0.self_attn.q_proj.weight"
    about = json.loads(data[8:8 + n])[name]
    size = {"F32": 4, "BF16": 2, "F16": 2}[about["dtype"]]
    at = 8 + n + about["data_offsets"][0]
    data[at:at + size] = {4: struct.pack("<f", float("inf")), 2: struct.pack("<H", 0x7F80)}[size]
    (folder / "model.safetensors").write_bytes(data)
    done = run(folder, "--quantize", 4, *PROMPT)
    check(done.returncode == 1 and name in done.stderr and str(folder) in done.stderr, done.stderr)


def main():
    global ree_run
    parser = harness.parser(__doc__)
    parser.add_argument("--device", help="run only the recorded hashes of int8 activations, on this device")
    options = parser.parse_args()
    ree_run = options.ree_run
    if options.device:
        with tempfile.TemporaryDirectory() as name:
            int8_logits(pathlib.Path(name), options.device)
        return harness.finish()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        shutil.copytree(SAMPLE, work / "model")
        seen = [same_as_exported(work, *case) for case in ((4, None), (8, 64), (4, 16))]
        seen.append(text(work, SAMPLE))
        check(len({s.get("logits") for s in seen}) == len(seen), "each has bits of its own")
        tables(work)
        same_in_another_order(work)
        int8_activations(work)
        requested(work)
        traced(work)
        refused(work)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
