#!/usr/bin/env python3
"""One text on one process and on several: equal bits; the number of bytes in messages; refused
runs.

Without --all a part of the tests, in half a minute."""

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import mpi  # noqa: E402
from mpi import check  # noqa: E402

PROMPT = ("--prompt-text", "Once upon a time there was a", "--max-new-tokens", 24, "--ignore-eos")
LONG = ("--prompt-text", "Once upon a time there was a little dog. " * 8, "--max-new-tokens", 24, "--ignore-eos")
REPORT = ("--json", "--stats", "--logits-hash")


def alone(ree_run, *arguments):
    done = subprocess.run([ree_run, *map(str, arguments)], env=mpi.ENVIRONMENT, capture_output=True, text=True)
    check(done.returncode == 0, f"alone: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def several(ree_run, n, *arguments):
    done = mpi.run(ree_run, (n, arguments))
    if not check(done.returncode == 0, f"{n} ranks: exit code {done.returncode}: {done.stderr}"):
        return None
    lines = done.stdout.splitlines()
    check(len(lines) == 1, f"{n} ranks: rank 0 alone prints, one line of JSON: {done.stdout}")
    return json.loads(lines[0])


BATCH = ("--prompt-ids", "1,403", "--prompt-ids", "1,80,90,100,7,9", "--prompt-ids", "1,5,6",
         "--max-new-tokens", 9, "--temperature", "0.8", "--seed", 3, "--batch-size", 2)


def same_bits(ree_run, model, cases):
    expected = {}
    for what, n, more in cases:
        if what not in expected:
            expected[what] = alone(ree_run, model, *what, *REPORT)
        got = several(ree_run, n, model, *what, *REPORT, *more)
        if not got:
            continue
        for a, b in zip(expected[what].get("sequences", [expected[what]]), got.get("sequences", [got]), strict=True):
            check(a["tokens"] == b["tokens"], f"{n} ranks, {more}: the same tokens")
            check(a["tokens_sha256"] == b["tokens_sha256"], f"{n} ranks, {more}: the same SHA-256 of tokens")
            check(a["logits_sha256"] == b["logits_sha256"] and len(a["logits_sha256"]) == 64,
                  f"{n} ranks, {more}: the same SHA-256 of logits")


# Long messages are passed to MPI in pieces; with --message-piece also short ones.
FEW = ((PROMPT, 4, ()), (LONG, 2, ("--message-piece", 1000)), (BATCH, 3, ("--n-partitions", 5)))
ALL = [(what, n, more) for what in (PROMPT, LONG, BATCH)
       for n, more in ((2, ()), (4, ()), (2, ("--n-partitions", 5)), (3, ("--prefill-chunk", 5)),
                       (3, ("--message-piece", 128)))]


def groups(ree_run, model, folder):
    """Several groups of sequences at the same time."""
    prompts = folder / "prompts.txt"
    prompts.write_text("Once upon a time\nThe sun was\nA boy named Tim went\nOne day, a cat\n")
    several_prompts = ("--prompt-file", prompts, "--max-new-tokens", 20, "--ignore-eos", "--batch-size", 1)
    expected = alone(ree_run, model, *several_prompts, *REPORT)
    for n, sets in ((2, 2), (2, 4), (3, 3)):
        got = several(ree_run, n, model, *several_prompts, *REPORT, "--micro-batches", sets)
        if not got:
            continue
        for a, b in zip(expected["sequences"], got["sequences"], strict=True):
            check(a["logits_sha256"] == b["logits_sha256"] and a["tokens"] == b["tokens"], f"{n} ranks, {sets} groups")
        check(got["processes"]["overlap"] > 0, "overlap is measured")


def has_tokens(path):
    """Returns whether there is a checkpoint of an unfinished text with some tokens."""
    try:
        sequence = json.loads(path.read_text())["body"]["sequences"][0]
    except FileNotFoundError:
        return False
    return "finish_reason" not in sequence and len(sequence["tokens"]) >= 5


def seal(checkpoint):
    """Computes the hash of a checkpoint again. Returns the file's contents."""
    def text(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    tagged = b"ree-checkpoint/1\0" + text(checkpoint["body"]).encode()
    checkpoint["checkpoint_sha256"] = hashlib.sha256(tagged).hexdigest()
    return text(checkpoint) + "\n"


def checkpoints(ree_run, model, folder):
    """3 ranks write a checkpoint, which is copied while they run; 2 ranks continue from the copy. The
    digests of caches in it are compared with what the other ranks compute."""
    what = ("--prompt-text", "Once upon a time there was a", "--max-new-tokens", 200, "--ignore-eos")
    expected = alone(ree_run, model, *what, *REPORT, "--receipt-path", folder / "receipt.json")
    path, copy = folder / "checkpoint.json", folder / "copy.json"
    command = mpi.command(ree_run, (3, (model, *what, *REPORT, "--checkpoint", path, "--checkpoint-every", 1)))
    for _ in range(10):  # a run may end before its checkpoint is seen
        path.unlink(missing_ok=True)
        copy.unlink(missing_ok=True)
        process = subprocess.Popen(command, env=mpi.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True)
        while process.poll() is None and not copy.exists():
            if has_tokens(path):
                shutil.copyfile(path, copy)
            time.sleep(0.001)
        out, errors = process.communicate(timeout=600)
        if not check(process.returncode == 0, f"3 ranks with a checkpoint: {errors}"):
            return
        if has_tokens(copy):
            break
    if not check(has_tokens(copy), "an unfinished checkpoint of 3 ranks"):
        return
    checkpoint = json.loads(copy.read_text())
    caches = checkpoint["body"]["sequences"][0]["caches"]
    check(caches and all(caches), f"each cache has a digest: {caches}")
    resumed = several(ree_run, 2, model, *what, *REPORT, "--resume", copy)
    for got in (json.loads(out), resumed):
        for name in ("tokens_sha256", "logits_sha256"):
            check(got and got[name] == expected[name], f"{name} with a checkpoint")
    for i in (0, len(caches) - 1):
        caches[i], digest = "1" * 64, caches[i]
        copy.write_text(seal(checkpoint))
        done = mpi.run(ree_run, (2, (model, *what, *REPORT, "--resume", copy)))
        check(done.returncode not in (0, None) and "the cache '" in done.stderr, f"digest {i} is wrong: {done.stderr}")
        caches[i] = digest
    got = several(ree_run, 2, model, *what, *REPORT, "--receipt-path", folder / "again.json")
    check(got and got["receipt_hash"] == expected["receipt_hash"], "the same receipt")


def wire(ree_run, model):
    """The bytes sent for a decoded token do not depend on the context; logits are counted
    separately."""
    config = json.loads((model / "config.json").read_text())
    per_token = set()
    for what in (PROMPT, LONG):
        got = several(ree_run, 2, model, *what, *REPORT)
        if not got:
            return
        first, last = got["processes"]["ranks"]
        check(first["decode_tokens"] == 23, f"23 tokens were decoded one by one: {first['decode_tokens']}")
        per_token.add(first["decode_bytes"] / first["decode_tokens"])
        rows = got["stats"]["prompt_tokens"] + 23
        fixed = 4 * config["vocab_size"] * rows + last["logits_messages"] * (72 + 16 + 24)
        check(last["logits_bytes"] == fixed, f"logits: {last['logits_bytes']} bytes, expected {fixed}")
        check(first["sign_bytes"] == 72 * first["sign_messages"], "heartbeats have no contents")
        # A rank holds at least the boundary tensors of a prompt at once, whether it sends or
        # receives them.
        piece = 4 * config["hidden_size"] * got["stats"]["prompt_tokens"]
        for rank in (first, last):
            check(rank["message_buffer_bytes"] >= piece, f"{rank['message_buffer_bytes']} bytes held, {piece} sent")
        check(last["step_bytes"] == 0 and first["logits_bytes"] == 0, "one way each")
        check(last["resident_bytes"] > 0 and first["busy_seconds"] > 0 and last["busy_seconds"] > 0, "measured")
    expected = 4 * config["hidden_size"] + 216
    check(per_token == {expected}, f"bytes per decoded token: {per_token}, expected {expected} = 4 * hidden size + 216")
    print(f"bytes per decoded token: {per_token}, hidden size {config['hidden_size']}")


def timeline(ree_run, model, folder):
    path = folder / "timeline.json"
    got = several(ree_run, 2, model, *PROMPT, *REPORT, "--timeline", path)
    if not got:
        return
    events = json.loads(path.read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    for rank in (0, 1):
        runs = [e for e in spans if e["pid"] == rank and e["name"] == "run"]
        check(len(runs) == got["stats"]["runs"], f"rank {rank}: {len(runs)} runs in the timeline")
        check(all(e["dur"] >= 0 and e["args"]["set"] == 0 for e in runs), "runs take time")
    # On one machine both ranks have the same clock: a message arrives after it was sent.
    sent = {e["args"]["step"]: e["ts"] for e in spans if e["pid"] == 0 and e["name"] == "send"}
    for e in spans:
        if e["pid"] == 1 and e["name"] == "run":
            check(e["ts"] > sent[e["args"]["step"]] - 5000, f"step {e['args']['step']} ran before it was sent")


def refused(ree_run, what, good, bad, *words, n_lines=2):
    done = mpi.run(ree_run, (1, good), (1, bad))
    check(done.returncode not in (0, None), f"{what}: exit code {done.returncode}")
    check(done.stdout.strip() == "" or what == "corrupted", f"{what}: nothing is printed: {done.stdout}")
    # Search in MPI's output too: mpirun may append a message to a line that another rank has begun.
    messages = re.findall(r"ree-run: (rank \d+): (.*)", done.stderr)
    said = {rank for rank, text in messages if all(w in f"{rank}: {text}" for w in words)}
    check(len(said) >= n_lines, f"{what}: every rank says {words}: {done.stderr}")


def flip(path, name):
    """Flips a bit in the middle of a tensor of a safetensors file."""
    data = bytearray(path.read_bytes())
    (n,) = struct.unpack_from("<Q", data)
    first, last = json.loads(data[8:8 + n])[name]["data_offsets"]
    data[8 + n + (first + last) // 2] ^= 1
    path.write_bytes(data)


def refusals(ree_run, model, folder, wants_all):
    good = (model, *PROMPT)
    other = folder / "other"
    shutil.copytree(model, other, copy_function=shutil.copyfile)
    layers = json.loads((model / "config.json").read_text())["num_hidden_layers"]
    flip(other / "model.safetensors", f"model.layers.{layers - 1}.mlp.down_proj.weight")
    refused(ree_run, "a byte of a weight", good, (other, *PROMPT), "rank 1 has other weights",
            f"layers.{layers - 1}.mlp.down_proj")
    refused(ree_run, "another version", good, (*good, "--claim-numerics", "RepOps/0"),
            "rank 1 has numerics version RepOps/0, but rank 0 has RepOps/1")
    refused(ree_run, "no model", good, (folder / "none", *PROMPT), "none")
    for rank, number in ((0, 1), (0, 9), (0, 10), (0, 20), (1, 1), (1, 20)) if wants_all else ((0, 20), (1, 20)):
        damaged = (*good, "--corrupt-message", number)
        apps = (damaged, good) if rank == 0 else (good, damaged)
        refused(ree_run, "corrupted", *apps, f"from rank {rank}", "damaged")
    if not wants_all:
        return
    pieces = (*good, "--message-piece", 128)
    refused(ree_run, "corrupted", (*pieces, "--corrupt-message", 20), pieces, "from rank 0", "damaged")
    config = json.loads((other / "config.json").read_text())
    config["rms_norm_eps"] = 2e-5
    (other / "config.json").write_text(json.dumps(config))
    refused(ree_run, "another graph", good, (other, *PROMPT), "rank 1 has the graph SHA-256")
    refused(ree_run, "other partitions", good, (*good, "--n-partitions", 3),
            "rank 1 has the number of stages 3, but rank 0 has 2")
    refused(ree_run, "another operation set", good, (*good, "--operation-set", "deterministic"),
            "rank 1 has --operation-set deterministic, but rank 0 has reproducible")
    refused(ree_run, "another batch", good, (*good, "--batch-size", 3),
            "rank 1 has --batch-size 3, but rank 0 has 16")
    refused(ree_run, "too many ranks", (*good, "--n-partitions", 1), (*good, "--n-partitions", 1),
            "1 stages are too few for 2 ranks", n_lines=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--model", required=True, type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    mpi.need_mpi(args.ree_run)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        same_bits(args.ree_run, args.model, ALL if args.all else FEW)
        wire(args.ree_run, args.model)
        refusals(args.ree_run, args.model, folder, args.all)
        if args.all:
            groups(args.ree_run, args.model, folder)
            checkpoints(args.ree_run, args.model, folder)
            timeline(args.ree_run, args.model, folder)
    mpi.finish()


main()
