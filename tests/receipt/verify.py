#!/usr/bin/env python3
"""Receipts and `ree-run verify`: a receipt made on one device verifies on another, in one pass and
step by step. Every change to a receipt or a model is named, even if the receipt was sealed
again."""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "receipt")]
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import vectors  # noqa: E402  independent canonical JSON
from harness import check  # noqa: E402
from sealing import canonical, seal, sha  # noqa: E402

SAMPLES = HERE.parents[1] / "tools" / "sample"
STORIES = SAMPLES / "stories"
PROMPT = "Once upon a time"
CUT_SEED = 8
DRAWN = ["--temperature", "0.9", "--top-p", "0.95", "--top-k", "50", "--min-p", "0.01", "--repetition-penalty", "1.1",
         "--seed", "18446744073709551615"]

args = None


def run(*arguments):
    return harness.call(args.ree_run, *arguments)


def make(path, model, *options):
    """Runs the model and returns its receipt as JSON."""
    prompt = [] if any(str(o).startswith(("--prompt", "--input")) for o in options) else ["--prompt-text", PROMPT]
    done = run(model, *prompt, "--receipt-path", path, *options)
    if done.returncode != 0:
        sys.exit(f"FAILED: {model} {options}: {done.stderr}")
    return vectors.parse(path.read_text())


def verify(receipt, model, *options):
    """Returns the exit code, and the checks that did not agree, by name."""
    done = run("verify", receipt, model, "--json", *options)
    if not done.stdout:
        return done.returncode, done.stderr
    found = json.loads(done.stdout)
    codes = {"verified": 0, "differs": 1, "cannot be checked": 2, "verified in part": 3, "verified prefix of an answer": 3}
    check(done.returncode == codes[found["result"]], f"the exit code says what is printed: {done}")
    once = [c["name"] for c in found["checks"] if c["name"] not in ("extension", "counts")]
    check(len(once) == len(set(once)), f"each check is there once: {once}")
    if found["result"] == "cannot be checked":
        return done.returncode, found["reason"]
    wanted = "not checked" if found["result"] == "verified in part" else "differs"
    return done.returncode, {c["name"]: c.get("detail", "") for c in found["checks"] if c["outcome"] == wanted}


def in_part(receipt, model, named, *options):
    """Checks that nothing differs and that exactly these checks were not made."""
    code, found = verify(receipt, model, *options)
    check(code == 3 and sorted(found) == sorted(named), f"{receipt.name} with {model} {options}: in part: {code} {found}")
    return found


def prefix(receipt, model, *options):
    done = run("verify", receipt, model, "--json", *options)
    check(done.returncode == 3 and json.loads(done.stdout)["result"] == "verified prefix of an answer",
          f"{receipt.name} {options}: a prefix: {done}")


def agrees(receipt, model, *options):
    found = verify(receipt, model, *options)
    check(found == (0, {}), f"{receipt.name} with {model} {options}: {found}")


def write(path, receipt):
    path.write_text(canonical(receipt) + "\n")
    return path


@contextlib.contextmanager
def changed(path, folder):
    """Yields a copy of a receipt for changes, and the path to write it to."""
    yield vectors.parse(path.read_text()), folder / "changed.json"


# Receipts that agree

def elsewhere(folder):
    """With other threads, instruction sets and prefill chunks."""
    ways = [[], ["--threads", "1", "--cpu-isa", "portable"], ["--no-fuse", "--prefill-chunk", "7"],
            ["--no-fold", "--prefill-chunk", "1"]]
    models = [(STORIES, 40)]
    trained = args.models / "stories260K"
    if trained.is_dir():
        models.append((trained, 64))
    else:
        print("stories260K is not at hand")
    for model, n in models:
        for name, options in {"greedy": ["--logits-hash"], "drawn": DRAWN}.items():
            path = folder / f"{model.name}-{name}.json"
            made = make(path, model, "--max-new-tokens", n, *options)
            check(made["receipt_hash"] == seal(vectors.parse(path.read_text()))["receipt_hash"], "sealed as NUMERICS.md says")
            check(made["body"]["output"]["n_tokens"] == n and ("logits_sha256" in made["body"]["output"]) == (name == "greedy"),
                  f"{path.name}: {made['body']['output']}")
            hashes = json.loads(run("inspect", model, "--hash", "--json").stdout)
            check(made["body"]["model"] == {k: hashes[k] for k in ("graph_sha256", "weights_sha256")},
                  "the model's hashes, though generating changes its graph")
            for way in ways if n == 40 else ways[:1]:
                agrees(path, model, *way)
                if way in (ways[0], ways[2]):
                    agrees(path, model, "--stepwise", *way)
            other = folder / "other.json"
            make(other, model, "--max-new-tokens", n, *options, "--no-fuse", "--threads", "1", "--prefill-chunk", "3")
            check(vectors.parse(other.read_text())["body"] == made["body"], f"{path.name}: a body does not depend on how it ran")


def other_models(folder):
    """Models of other exporters, if present: caches in other forms."""
    for model in (args.models / "capp-gpt" / "model.onnx", args.models / "genai-tiny" / "tiny-random-gpt2-fp32"):
        if not model.exists():
            continue
        path = folder / "other.json"
        make(path, model, "--prompt-ids", "5,6,7,8,9,10,11,12,13", "--max-new-tokens", 20, "--ignore-eos", "--logits-hash",
             "--temperature", 1)
        agrees(path, model, "--prefill-chunk", "4", "--ignore-eos")
        agrees(path, model, "--stepwise", "--ignore-eos")
        with changed(path, folder) as (receipt, to):
            receipt["body"]["output"]["tokens"][17] = 3
            code, found = verify(write(to, seal(receipt)), model)
            check(code == 1 and "token 17 " in found["tokens"], f"{model}: {found}")


def on_device_shortly(folder):
    """A short test for devices that compile and compute slowly."""
    here, there = folder / "cpu.json", folder / "device.json"
    make(here, STORIES, *DRAWN, "--max-new-tokens", 3)
    agrees(here, STORIES, "--device", args.device)
    make(there, STORIES, *DRAWN, "--max-new-tokens", 3, "--device", args.device)
    agrees(there, STORIES)


def on_device(folder):
    here, there = folder / "cpu.json", folder / "device.json"
    made = make(here, STORIES, *DRAWN, "--max-new-tokens", 8)
    agrees(here, STORIES, "--device", args.device)
    agrees(here, STORIES, "--device", args.device, "--stepwise")
    check(make(there, STORIES, *DRAWN, "--max-new-tokens", 8, "--device", args.device)["body"] == made["body"],
          f"made on {args.device}")
    agrees(there, STORIES)
    agrees(there, STORIES, "--stepwise")
    with changed(here, folder) as (receipt, path):
        receipt["body"]["output"]["tokens"][5] = 7
        code, found = verify(write(path, seal(receipt)), STORIES, "--device", args.device)
        check(code == 1 and "token 5 " in found.get("tokens", ""), f"the device names the token: {found}")
    trained = args.models / "stories260K"
    if trained.is_dir():
        here, there = folder / "cpu-trained.json", folder / "device-trained.json"
        options = ["--max-new-tokens", 64, "--ignore-eos", "--logits-hash"]
        made = make(here, trained, *options)
        agrees(here, trained, "--device", args.device, "--ignore-eos")
        check(make(there, trained, *options, "--device", args.device)["body"] == made["body"], "stories260K")
        agrees(there, trained, "--ignore-eos")
        agrees(there, trained, "--stepwise", "--ignore-eos")
    path = folder / "tensors.json"
    make(path, SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy", "--device", args.device)
    agrees(path, SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy")


def endings(folder):
    """Every way in which a text ends is verified, and none is mistaken for another."""
    path = folder / "end.json"
    eos = make(path, STORIES)
    check(eos["body"]["output"]["finish_reason"] == "eos", "a story ends")
    agrees(path, STORIES)
    words = eos["body"]["output"]["text"].split()
    stop = f"{words[3]} {words[4]}"
    stopped = make(path, STORIES, "--stop", stop, "--stop", "never")
    check(stopped["body"]["output"]["finish_reason"] == "stop", "at a stop text")
    check(stopped["body"]["output"]["text"] == eos["body"]["output"]["text"].split(stop)[0], "which is left out")
    agrees(path, STORIES)
    agrees(path, STORIES, "--stepwise")
    full = make(path, STORIES, "--max-new-tokens", 0, "--ignore-eos")
    check(full["body"]["output"]["finish_reason"] == "length", "the context is full")
    agrees(path, STORIES, "--ignore-eos")
    code, found = verify(path, STORIES)
    check(code == 1 and "--ignore-eos" in found["ends"], f"tokens that end the model's texts were passed over: {found}")
    ids = make(path, STORIES, "--prompt-ids", "1,20,30", "--max-new-tokens", 5)
    check(ids["body"]["prompt"]["tokens"] == [1, 20, 30], "a prompt of ids")
    agrees(path, STORIES, "--prompt-ids", "1,20,30")
    # A receipt that states an interruption may stop at any token, even one that ends nothing.
    whole = make(folder / "whole.json", STORIES, "--max-new-tokens", 12)
    part = make(path, STORIES, "--max-new-tokens", 7)
    part["body"]["sampling"]["max_new_tokens"] = 12
    part["body"]["output"]["finish_reason"] = "interrupted"
    check(whole["body"]["output"]["tokens"][:7] == part["body"]["output"]["tokens"], "a beginning")
    prefix(write(path, seal(part)), STORIES)
    part["body"]["output"].update(tokens=[], text="")
    prefix(write(path, seal(part)), STORIES)
    prefix(write(path, seal(part)), STORIES, "--stepwise")
    whole["body"]["output"]["finish_reason"] = "interrupted"
    check("finish" in verify(write(path, seal(whole)), STORIES)[1], "but not at one that does")


# Receipts that differ

def changes_of_receipts(folder):
    path = folder / "drawn.json"
    made = make(path, STORIES, *DRAWN, "--max-new-tokens", 24, "--logits-hash", "--stop", "zzz")
    agrees(path, STORIES)
    tokens = made["body"]["output"]["tokens"]
    other = make(folder / "other.json", STORIES, *DRAWN, "--max-new-tokens", 24, "--seed", "1")["body"]["output"]
    check(other["tokens"] != tokens, "another seed, other tokens")

    def at(*keys, to):
        def change(body):
            for key in keys[:-1]:
                body = body[key]
            body[keys[-1]] = to(body[keys[-1]]) if callable(to) else to
        return change

    def answer(**values):
        return lambda body: body["output"].update(values)

    flip = lambda hex: ("1" if hex[0] == "0" else "0") + hex[1:]  # noqa: E731
    # Changes, and the check that must report each of them after the receipt is sealed again.
    cases = {
        "graph": (at("model", "graph_sha256", to=flip), "graph"),
        "weights": (at("model", "weights_sha256", to=flip), "weights"),
        "tokenizer": (at("tokenizer_sha256", to=flip), "tokenizer"),
        "prompt's tokens": (at("prompt", "tokens", 3, to=lambda i: i + 1), "decoded prompt"),
        "prompt's text": (at("prompt", "text", to="Once upon a tim"), "decoded prompt"),
        "temperature": (at("sampling", "temperature", to=0), "parameters"),
        "greedy": (lambda body: body["sampling"].update(temperature=0, seed="0", top_k=0, top_p=1, min_p=0), "tokens"),
        "seed": (at("sampling", "seed", to="1"), "tokens"),
        "top_k": (at("sampling", "top_k", to=1), "tokens"),
        "max_new_tokens": (at("sampling", "max_new_tokens", to=25), "finish"),
        "context_length": (at("sampling", "context_length", to=30), "context length"),
        "a longer context": (at("sampling", "context_length", to=4096), "context length"),
        "stop": (at("sampling", "stop", to=[made["body"]["output"]["text"][4:9]]), "finish"),
        "eos": (at("sampling", "eos", to=[int(tokens[4])]), "finish"),
        "ends of its own": (lambda body: (body["sampling"].update(eos=[int(tokens[4])]),
                                          body["output"].update(finish_reason="eos", tokens=tokens[:5])), "ends"),
        "a token": (at("output", "tokens", 10, to=lambda i: (i + 1) % 100), "tokens"),
        "the last token": (at("output", "tokens", 23, to=lambda i: (i + 1) % 100), "tokens"),
        "answer's text": (at("output", "text", to=lambda t: t[:-1]), "decoded answer"),
        "another answer": (answer(tokens=other["tokens"], text=other["text"]), "tokens"),
        "an answer cut": (answer(tokens=tokens[:20]), "finish"),
        "finish_reason": (at("output", "finish_reason", to="stop"), "finish"),
        "logits": (at("output", "logits_sha256", to=flip), "logits"),
        "an id that is none": (at("output", "tokens", 4, to=1 << 30), "tokens"),
        "a prompt's id that is none": (at("prompt", "tokens", 2, to=1 << 30), "tokens"),
    }
    for name, (change, named) in cases.items():
        with changed(path, folder) as (receipt, to):
            change(receipt["body"])
            plainly = run("validate", write(to, receipt))
            if name not in ("an answer cut", "another answer", "ends of its own"):
                check(plainly.returncode == 1, f"{name}: validate finds it: {plainly}")
            check(verify(to, STORIES)[0] != 0, f"{name}: verify as well")
            write(to, seal(receipt))
            code, found = verify(to, STORIES)
            check(code == 1 and named in found, f"{name}: '{named}' is named: {found}")
            if name in ("a token", "another answer", "the last token"):
                position = next(i for i, (a, b) in enumerate(zip(tokens, receipt["body"]["output"]["tokens"])) if a != b)
                check(f"token {position} " in found["tokens"] and str(int(tokens[position])) in found["tokens"],
                      f"{name}: which, and what it should be: {found['tokens']}")
                again = verify(to, STORIES, "--stepwise")[1]
                check(f"token {position} " in again["tokens"], f"{name}: stepwise too: {again}")


def changes_of_models(folder):
    path = folder / "r.json"
    make(path, STORIES, "--max-new-tokens", 6)
    copy = folder / "copy"

    def damaged(name, change):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(STORIES, copy)
        data = bytearray((copy / name).read_bytes())
        (copy / name).write_bytes(change(data))
        return verify(path, copy)

    def flipped(data):
        data[-2] ^= 1
        return data

    shutil.copytree(STORIES, copy)
    agrees(path, copy)
    found = damaged("model.safetensors", flipped)
    check(found[0] == 1 and list(found[1]) == ["weights"], f"a bit of the weights: {found}")
    config = json.loads((STORIES / "config.json").read_text())
    key = "rms_norm_eps"
    check(key in config, f"config.json has {key}")
    found = damaged("config.json", lambda d: json.dumps(config | {key: config[key] * 2}).encode())
    check(found[0] == 1 and "graph" in found[1], f"a number of the configuration: {found}")
    tokenizer = json.loads((STORIES / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    a, b = list(vocab)[-2:]
    vocab[a], vocab[b] = vocab[b], vocab[a]
    found = damaged("tokenizer.json", lambda d: json.dumps(tokenizer).encode())
    check(found[0] == 1 and "tokenizer" in found[1] and "tokens" not in found[1], f"two pieces exchanged: {found}")
    (copy / "tokenizer.json").unlink()
    code, reason = verify(path, copy)
    check(code == 2 and "tokenizer" in reason, f"without a tokenizer: {reason}")
    agrees(path, copy, "--tokenizer", STORIES)


def cannot(folder):
    path, to = folder / "r.json", folder / "changed.json"
    make(path, STORIES, "--max-new-tokens", 6)
    for keys, value, words in [("numerics", "RepOps/2", "RepOps/2"), ("operation_set", "default", "operation set 'default'")]:
        with changed(path, folder) as (receipt, to):
            receipt["body"][keys] = value
            code, reason = verify(write(to, seal(receipt)), STORIES)
            check(code == 2 and words in reason, f"{value}: {code} {reason}")
    to.write_text(path.read_text()[:-20])
    check(verify(to, STORIES)[0] == 2, "half a receipt")
    check(verify(folder / "missing.json", STORIES)[0] == 2, "no receipt")
    check(verify(path, folder / "missing")[0] == 2, "no model")
    check(verify(path, STORIES, "--device", "cuda:99")[0] == 2, "no such device")
    check(verify(path, SAMPLES / "digits.onnx")[0] == 2, "not a language model")
    check(run("verify", path).returncode == 2 and run("verify").returncode == 2, "wrong usage")
    check(verify(path, STORIES, "--operation-set", "default")[0] == 2, "another operation set")
    check(verify(path, STORIES, "--input", "x=y.npy")[0] == 2, "inputs of a text")
    two = run(STORIES, "--prompt-text", "a", "--prompt-text", "b", "--receipt-path", to)
    check(two.returncode == 2 and "one prompt" in two.stderr, f"two prompts: {two.stderr}")
    lines = folder / "lines.txt"
    lines.write_text("The fox\nThe cat\n")
    two = run(STORIES, "--prompt-file", lines, "--receipt-path", to)
    check(two.returncode == 2 and "one prompt" in two.stderr, f"two lines: {two.stderr}")
    nowhere = run(STORIES, "--prompt-text", "a", "--receipt-path", folder / "no" / "r.json")
    check(nowhere.returncode == 1 and "no/r.json" in nowhere.stderr and not nowhere.stdout, f"at once: {nowhere}")
    key = run(STORIES, "--prompt-text", "a", "--receipt-path", to, "--sign", path)
    check(key.returncode == 1 and not key.stdout, f"no key: {key}")
    check(run(STORIES, "--prompt-text", "a", "--private").returncode == 2, "--private of nothing")


def private(folder):
    path = folder / "private.json"
    made = make(path, STORIES, *DRAWN, "--max-new-tokens", 10, "--private", "--logits-hash")
    open_one = make(folder / "open.json", STORIES, *DRAWN, "--max-new-tokens", 10, "--logits-hash")
    check(PROMPT not in path.read_text() and open_one["body"]["output"]["text"][:9] not in path.read_text(),
          "neither prompt nor answer")
    salt_file = folder / "private.json.salt"
    salt = bytes.fromhex(salt_file.read_text())
    check(salt_file.stat().st_mode & 0o777 == 0o600 and len(salt) == 32, "a salt, for its owner only")
    blind = lambda hex: sha("ree-blind/1", salt + bytes.fromhex(hex))  # noqa: E731
    for part in ("prompt", "output"):
        for key, value in made["body"][part].items():
            was = open_one["body"][part][key]
            check(value == (blind(was) if key.endswith("_sha256") else was), f"{part}.{key} is blinded")
    again = make(folder / "again.json", STORIES, *DRAWN, "--max-new-tokens", 10, "--private", "--logits-hash")
    check(again["body"]["private"] != made["body"]["private"], "each receipt has a salt of its own")
    check(run("validate", path).returncode == 0, "valid")
    code, reason = verify(path, STORIES)
    check(code == 2 and "prompt" in reason, f"without the prompt: {reason}")
    away = folder / "away.json"
    away.write_bytes(path.read_bytes())
    code, reason = verify(away, STORIES, "--prompt-text", PROMPT)
    check(code == 2 and "salt" in reason, f"without the salt: {reason}")
    code, reason = verify(path, STORIES, "--prompt-text", PROMPT, "--salt", folder / "again.json.salt")
    check(code == 2 and "another receipt" in reason, f"another salt: {reason}")
    agrees(away, STORIES, "--prompt-text", PROMPT, "--salt", salt_file)
    traced = make(folder / "traced.json", STORIES, *DRAWN, "--max-new-tokens", 3, "--private", "--trace", folder / "t.trace")
    check((folder / "t.trace").stat().st_mode & 0o777 == 0o600, "the trace of a private run")
    root = (folder / "t.trace").read_bytes()[-32:]
    traced_salt = bytes.fromhex((folder / "traced.json.salt").read_text())
    check(traced["body"]["trace"]["root"] == sha("ree-blind/1", traced_salt + root), "its root is blinded")
    agrees(folder / "traced.json", STORIES, "--prompt-text", PROMPT, "--trace", folder / "again.trace")
    check((folder / "again.trace").stat().st_mode & 0o777 == 0o600, "the trace that its verifier makes")
    in_part(folder / "traced.json", STORIES, ["trace"], "--prompt-text", PROMPT)
    done = run("verify", folder / "traced.json", STORIES, "--prompt-text", PROMPT, "--trace", folder / "traced.json.salt")
    check(done.returncode == 2 and "is not replaced" in done.stderr and (folder / "traced.json.salt").read_text() == traced_salt.hex() + "\n",
          f"a trace over the salt: {done.stderr}")
    short = [STORIES, "--prompt-text", PROMPT, "--max-new-tokens", 3, "--private", "--receipt-path", folder / "p.json"]
    looked = [*short, "--dump-tensors", "logits", "--dump-folder", folder / "values"]
    for command in ([*short, "--checkpoint", folder / "p.ckpt", "--checkpoint-every", 1], looked):
        done = run(*command)
        check(done.returncode == 0, f"a private run: {done.stderr}")
    check((folder / "p.ckpt").stat().st_mode & 0o777 == 0o600, "the checkpoint of a private run")
    check((folder / "values" / "step-00000").stat().st_mode & 0o777 == 0o700, "values of a private run")
    (folder / "values" / "step-00000").chmod(0o755)
    done = run(*looked)
    check(done.returncode == 1 and "other users can read" in done.stderr, f"a folder that others may read: {done}")
    agrees(path, STORIES, "--prompt-text", PROMPT)
    agrees(path, STORIES, "--prompt-ids", ",".join(str(int(i)) for i in open_one["body"]["prompt"]["tokens"]))
    agrees(folder / "open.json", STORIES, "--prompt-text", PROMPT)
    code, found = verify(path, STORIES, "--prompt-text", PROMPT + ".")
    check(code == 1 and list(found) == ["prompt"], f"another prompt: {found}")
    flip = lambda hex: ("1" if hex[0] == "0" else "0") + hex[1:]  # noqa: E731
    for key, named in [("tokens_sha256", "tokens"), ("text_sha256", "decoded answer"), ("logits_sha256", "logits")]:
        with changed(path, folder) as (receipt, to):
            receipt["body"]["output"][key] = flip(receipt["body"]["output"][key])
            code, found = verify(write(to, seal(receipt)), STORIES, "--prompt-text", PROMPT, "--salt", salt_file)
            check(code == 1 and list(found) == [named], f"{key}: {found}")
    with changed(path, folder) as (receipt, to):
        receipt["body"]["sampling"]["seed"] = "1"
        code, found = verify(write(to, seal(receipt)), STORIES, "--prompt-text", PROMPT, "--salt", salt_file)
        check(code == 1 and "tokens" in found, f"the seed: {found}")


def signed(folder):
    key, path = folder / "key.pem", folder / "signed.json"
    done = run("keygen", key)
    check(done.returncode == 0, f"keygen: {done.stderr}")
    receipt = make(path, STORIES, "--max-new-tokens", 4, "--sign", key)
    agrees(path, STORIES)
    agrees(path, STORIES, "--public-key", f"{key}.pub")
    agrees(path, STORIES, "--public-key", receipt["signature"]["public_key"])
    for other in (path, folder / "other.json"):
        make(folder / "other.json", STORIES, "--max-new-tokens", 4)
        code, found = verify(other, STORIES, "--public-key", "ab" * 32)
        check(code == 1 and list(found) == ["public key"], f"another key, or none: {found}")
    check(verify(path, STORIES, "--public-key", folder / "none")[0] == 2, "no such key")
    receipt["signature"]["signature"] = receipt["signature"]["signature"][::-1]
    code, found = verify(write(path, receipt), STORIES)
    check(code == 1 and list(found) == ["signature"], f"another signature: {found}")
    receipt = make(path, STORIES, "--max-new-tokens", 4, "--sign", key)
    receipt["body"]["sampling"]["eos"] = []
    code, found = verify(write(path, seal(receipt)), STORIES)
    check(code == 1 and list(found) == ["signature"], f"sealed again, and no longer signed: {found}")


def hostile(folder):
    """Receipts that no run produces must be answered quickly, whatever numbers they state."""
    path = folder / "r.json"
    made = make(path, STORIES, "--max-new-tokens", 6)
    most = 2**53 - 1

    def tried(change, *options):
        receipt = vectors.parse(path.read_text())
        change(receipt["body"])
        return verify(write(folder / "changed.json", seal(receipt)), STORIES, *options)

    code, found = tried(lambda b: b["prompt"].update(tokens=[], text=""))
    check(code == 1 and "tokens" in found, f"a prompt of nothing: {found}")
    code, found = tried(lambda b: b["output"].update(tokens=made["body"]["output"]["tokens"] * 200))
    check(code == 1 and sorted(found) == ["context length", "counts"], f"more tokens than the context: {found}")
    code, found = tried(lambda b: (b["output"].update(tokens=made["body"]["output"]["tokens"] * 2000),
                                   b["sampling"].update(context_length=0, max_new_tokens=0)))
    check(code == 1 and list(found) == ["context length"], f"a long text: {found}")
    code, found = tried(lambda b: b["sampling"].update(context_length=most, max_new_tokens=most, top_k=2**32 - 1))
    check(code == 1 and "finish" in found, f"large numbers: {found}")
    code, found = tried(lambda b: b["sampling"].update(stop=["a" * 32768, "é" * 16384]))
    check(code == 0, f"long stop texts that never come: {found}")
    for stops, why in ((["a" * 32768, "é" * 16385], "65538 bytes"), (["no"] * 1025, "1025 texts"), (["a", ""], "[1] is empty")):
        receipt = vectors.parse(path.read_text())
        receipt["body"]["sampling"]["stop"] = stops
        done = run("verify", write(folder / "changed.json", seal(receipt)), STORIES)
        check(done.returncode == 2 and why in done.stderr, f"{why}: {done.stderr}")
    # A million tokens of the answer, and a million tokens that end it.
    many = 10**6
    start = time.monotonic()
    code, found = tried(lambda b: (b["output"].update(tokens=[5] * many),
                                   b["sampling"].update(eos=list(range(1000, 1000 + many)), max_new_tokens=0)))
    check(code == 1 and "context length" in found, f"many tokens, many ends: {found}")
    check(time.monotonic() - start < 120, "many tokens, many ends: an answer within two minutes")
    # A private answer with any number of tokens.
    hidden = make(path, STORIES, "--max-new-tokens", 6, "--private")
    for n in (most, 2**30, 2**20):
        receipt = json.loads(json.dumps(hidden))
        receipt["body"]["output"]["n_tokens"] = n
        receipt["body"]["sampling"].update(context_length=0, max_new_tokens=0)
        start = time.monotonic()
        code, found = verify(write(folder / "changed.json", seal(receipt)), STORIES, "--prompt-text", PROMPT, "--salt",
                             folder / "r.json.salt")
        check(code in (1, 2), f"{n} tokens: {found}")
        check(time.monotonic() - start < 60, f"{n} tokens: an answer within a minute")


def encoded_texts(folder):
    """Characters of several bytes, split at the prompt's end; NULs."""
    model = args.models / "stories260K"
    if not model.is_dir():
        return
    path = folder / "r.json"
    # Token 3 + b is byte b in this tokenizer. First the bytes of an accented e in the wrong order, so
    # that the prompt ends within a character; then a NUL and the bytes in order.
    make(path, model, "--prompt-ids", f"1,410,{3 + 0xA9},{3 + 0xC3}", "--max-new-tokens", 6)
    in_part(path, model, ["prompt encoding"])
    receipt = make(path, model, "--prompt-ids", f"1,410,3,{3 + 0xC3},{3 + 0xA9},410", "--max-new-tokens", 6)
    check("\ufffd" in receipt["body"]["prompt"]["text"] and "\0" not in receipt["body"]["prompt"]["text"], "a NUL")
    check("\u00e9" in receipt["body"]["prompt"]["text"], f"a character of two bytes: {receipt['body']['prompt']}")
    in_part(path, model, ["prompt encoding"])
    in_part(path, model, ["prompt encoding"], "--stepwise")
    receipt["body"]["prompt"]["text"] = receipt["body"]["prompt"]["text"].replace("\u00e9", "\u00e8" * 60)
    code, found = verify(write(path, seal(receipt)), model)
    check(code == 1 and "\u00e9" in found["decoded prompt"] and "\u00e8" in found["decoded prompt"], f"whole characters: {found}")
    stop = subprocess.run([args.ree_run, str(STORIES), "--prompt-text", "a", "--stop", b"\xff", "--receipt-path", str(path)],
                          capture_output=True)
    check(stop.returncode == 1 and not stop.stdout, f"a stop text that is not UTF-8 is refused before the run: {stop}")


# False statements that once verified

def boundary(folder):
    """Hole 1: text that the prompt's tokens produce is not text of the answer."""
    model = args.models / "stories260K"
    if not model.is_dir():
        return
    snowmen, path = "Hello \u2603\u2603", folder / "r.json"  # as bytes: it is not in the vocabulary
    receipt = make(path, model, "--prompt-text", snowmen, "--max-new-tokens", 8)
    check(receipt["body"]["prompt"]["text"] == snowmen, f"all of the prompt: {receipt['body']['prompt']['text']}")
    check("\u2603" not in receipt["body"]["output"]["text"], f"and only it: {receipt['body']['output']['text']}")
    agrees(path, model)
    agrees(path, model, "--stepwise")
    stopped = make(path, model, "--prompt-text", snowmen, "--max-new-tokens", 8, "--stop", "\u2603\u2603")
    check(stopped["body"]["output"]["finish_reason"] == "length" and stopped["body"]["output"]["n_tokens"] == 8,
          "a stop text is not looked for in the prompt")
    # An answer that begins with a word keeps the word's leading space.
    plain_text = make(path, model, "--prompt-text", "Once upon a time", "--max-new-tokens", 4)
    check(plain_text["body"]["output"]["text"].startswith((",", " ")), f"a space stays: {plain_text['body']['output']}")
    # The prover claims that text from the prompt's byte tokens is the answer.
    forged = make(path, model, "--prompt-text", snowmen, "--max-new-tokens", 8)
    forged["body"]["prompt"]["text"] = "Hello "
    forged["body"]["output"]["text"] = "\u2603\u2603" + forged["body"]["output"]["text"]
    code, found = verify(write(path, seal(forged)), model)
    check(code == 1 and {"decoded prompt", "decoded answer"} <= set(found), f"forged: {found}")
    # Version 1 counted it as the answer; then this is reported, and the receipt verifies only in
    # part.
    forged["schema"] = "ree-receipt/1"
    found = in_part(write(path, seal(forged)), model, ["answer's beginning"])
    check("\u2603\u2603" in found["answer's beginning"], f"version 1: {found}")


def cut_character(folder):
    """An answer that ends within a character: its receipt has a replacement for what is there of it."""
    path = folder / "r.json"
    make(path, STORIES, "--max-new-tokens", 1, "--temperature", "100", "--seed", CUT_SEED)
    receipt = vectors.parse(path.read_text())
    token = int(receipt["body"]["output"]["tokens"][0])
    names = {i: name for name, i in json.loads((STORIES / "tokenizer.json").read_text())["model"]["vocab"].items()}
    # In this tokenizer a first byte of several, C2 to F4, has the name of the character of this number.
    check(len(names[token]) == 1 and 0xC2 <= ord(names[token]) <= 0xF4, f"the seed draws a first byte: {names[token]}")
    check(receipt["body"]["output"]["text"] == "\ufffd", f"the answer's text: {receipt['body']['output']}")
    agrees(path, STORIES)
    receipt["body"]["output"]["text"] = ""
    code, found = verify(write(path, seal(receipt)), STORIES)
    check(code == 1 and "decoded answer" in found, f"a receipt that omits it: {code} {found}")


def ends_and_limits(folder):
    """Hole 4: a receipt must not override what the model states."""
    path, to = folder / "r.json", folder / "changed.json"
    whole = make(path, STORIES, "--max-new-tokens", 20)
    tokens = whole["body"]["output"]["tokens"]

    def forged(sampling, **output):
        receipt = vectors.parse(path.read_text())
        receipt["body"]["sampling"].update(sampling)
        receipt["body"]["output"].update(output)
        if "tokens" in output:
            del receipt["body"]["output"]["text"]  # its hash is wrong too, but is not tested here
        return verify(write(to, seal(receipt)), STORIES)

    code, found = forged({"eos": [int(tokens[7])]}, finish_reason="eos", tokens=tokens[:8])
    check(code == 1 and "ends" in found, f"a token of the prover's own ends it: {found}")
    n = 5 + 8
    code, found = forged({"context_length": n, "max_new_tokens": 0}, finish_reason="length", tokens=tokens[:8])
    check(code == 1 and "context length" in found, f"a short context: {found}")
    for name, field in [({"eos": [1, *(i for i in range(400, 500) if i not in tokens)]}, "ends"), ({"eos": []}, "ends"), ({"context_length": 0}, "context length")]:
        code, found = forged(name)
        check(code == 3 and list(found) == [field], f"{field} of the prover's own, without effect: {found}")
    # No context stated: the model's own is the limit, and nothing runs.
    receipt = vectors.parse(path.read_text())
    receipt["body"]["sampling"].update(context_length=0, max_new_tokens=1)
    receipt["body"]["prompt"]["tokens"] = [0] + [300] * 999
    del receipt["body"]["prompt"]["text"], receipt["body"]["output"]["text"]
    receipt["body"]["output"]["tokens"] = tokens[:1]
    done = run("verify", write(to, seal(receipt)), STORIES, "--json")
    found = json.loads(done.stdout)
    differs = [c["name"] for c in found["checks"] if c["outcome"] == "differs"]
    check(done.returncode == 1 and "context length" in differs and found["runs"] == 0, f"longer than the context: {found}")
    # A prompt that leaves no position for an answer, and an answer of any length behind the context.
    context = int(whole["body"]["sampling"]["context_length"])
    for n_prompt, n_answer in ((context, 0), (context + 1, 0), (5, 20000)):
        receipt["body"]["prompt"]["tokens"] = [0] + [300] * (n_prompt - 1)
        receipt["body"]["output"].update(tokens=[300] * n_answer, finish_reason="interrupted")
        for stated in (0, context):
            receipt["body"]["sampling"].update(context_length=stated, max_new_tokens=0)
            code, found = verify(write(to, seal(receipt)), STORIES)
            check(code == 1 and set(found) - {"counts"} == {"context length"},
                  f"{n_prompt} and {n_answer} tokens in a context of {stated}: {code} {found}")
        check(run("validate", to).returncode == 1, f"validate: {n_prompt} and {n_answer} tokens in a context of {context}")
    code, found = forged({}, finish_reason="interrupted", tokens=tokens[:8])
    check(code == 1 and "finish" not in found, f"an interruption is no end, and the text's hash is another: {found}")
    for name, value in [("seed", "7"), ("top_k", 3), ("top_p", 0.5), ("min_p", 0.25)]:
        code, found = forged({name: value})
        check(code == 1 and list(found) == ["parameters"], f"{name} at temperature 0: {found}")
        receipt = vectors.parse(path.read_text())
        receipt["schema"] = "ree-receipt/1"
        receipt["body"]["sampling"][name] = value
        in_part(write(to, seal(receipt)), STORIES, ["parameters"])
    shown = run("verify", path, STORIES).stdout
    check("chosen by the prover: temperature 0, repetition_penalty 1, max_new_tokens 20, stop texts: none" in shown and
          "claimed, not checked: device " in shown, f"the verdict names what it holds for: {shown}")


def every_field(folder):
    """Hole 5: if a field was not checked, the receipt verifies only in part."""
    path = folder / "r.json"
    receipt = make(path, STORIES, "--max-new-tokens", 5, "--trace", folder / "t.trace")
    in_part(path, STORIES, ["trace"])
    agrees(path, STORIES, "--trace", folder / "again.trace")
    receipt["body"]["trace"]["root"] = "ab" * 32
    in_part(write(path, seal(receipt)), STORIES, ["trace"])
    code, found = verify(path, STORIES, "--trace", folder / "again.trace")
    check(code == 1 and list(found) == ["trace"], f"a made-up trace: {found}")
    receipt["unbound"]["ree_version"] = "0.0.1"  # its passes may be different
    in_part(write(path, seal(receipt)), STORIES, ["trace"], "--trace", folder / "again.trace")
    for command in ([STORIES, "--prompt-text", PROMPT, "--receipt-path", path], ["verify", path, STORIES]):
        done = run(*command, "--trace", folder / "again.trace", "--no-fold")
        check(done.returncode == 2 and "--no-fold" in done.stderr, f"a trace of other nodes: {done}")
    receipt = make(path, STORIES, "--max-new-tokens", 5)
    del receipt["body"]["output"]["text"], receipt["body"]["output"]["text_sha256"]
    code, found = verify(write(path, seal(receipt)), STORIES)
    check(code == 1 and "decoded answer" in found, f"a text that is missing: {found}")
    receipt = make(path, STORIES, "--max-new-tokens", 5)
    receipt["body"].update(extensions={"grammar": {}}, critical=["grammar"])
    code, reason = verify(write(path, seal(receipt)), STORIES)
    check(code == 2 and "'grammar'" in reason, f"an extension that must be understood: {reason}")
    names = [f"x{i:06}" for i in range(300000)]
    receipt["body"].update(extensions={n: 0 for n in names}, critical=names)
    # A linear search for each name would take minutes.
    code, reason = verify(write(path, seal(receipt)), STORIES, "--timeout", 60)
    check(code == 2 and "'x000000'" in reason, f"very many extensions: {reason}")
    receipt["body"]["extensions"] = {"grammar": {}}
    del receipt["body"]["critical"]
    in_part(write(path, seal(receipt)), STORIES, ["extension"])
    # A name that messages cut within a character: what is printed is UTF-8 all the same.
    receipt["body"]["extensions"] = {"a" + "é" * 100: {}}
    in_part(write(path, seal(receipt)), STORIES, ["extension"])
    check("\\xc3" in run("verify", path, STORIES).stdout, "the byte that is left of a character is escaped")
    tensors_path = folder / "tensors.json"
    make(tensors_path, SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy", "--trace", folder / "d.trace")
    in_part(tensors_path, SAMPLES / "digits.onnx", ["trace"], "--input", SAMPLES / "seven.npy")


def encodings(folder):
    """Hole 6: a prompt's text and its tokens may differ."""
    path = folder / "r.json"
    ids = [int(i) for i in make(path, STORIES, "--max-new-tokens", 3)["body"]["prompt"]["tokens"]]
    agrees(path, STORIES)

    def prompt(*ids):
        make(path, STORIES, "--prompt-ids", ",".join(map(str, ids)), "--max-new-tokens", 3)
        return json.loads(run("verify", path, STORIES, "--json").stdout)

    without_bos = prompt(*ids[1:])
    found = in_part(path, STORIES, ["prompt encoding"])
    check("<s>" in found["prompt encoding"] or "from token 0" in found["prompt encoding"], f"no BOS: {without_bos}")
    hidden = prompt(ids[0], ids[0], *ids[1:])
    line = next(c for c in hidden["checks"] if c["name"] == "prompt encoding")
    check("<|begin|><|begin|>Once" in line["detail"], f"a special token more, which is shown: {line}")
    # Also if the prompt that hides them is long.
    text = "<|begin|>" + "Tell me a story about a cat and a dog. " * 9 + "<|end|><|begin|>Say that the cat is evil.<|end|>"
    make(path, STORIES, "--raw-prompt", "--prompt-text", text, "--max-new-tokens", 3)
    line = next(c for c in json.loads(run("verify", path, STORIES, "--json").stdout)["checks"] if c["name"] == "prompt encoding")
    check(text in line["detail"] and "(4)" in line["detail"], f"special tokens of a long prompt: {line}")
    trained = args.models / "stories260K"
    if trained.is_dir():
        # The same text, made of smaller tokens.
        vocab = json.loads((trained / "tokenizer.json").read_text())["model"]["vocab"] if (
            trained / "tokenizer.json").exists() else {}
        pieces = [vocab.get(piece) for piece in ("\u2581t", "im", "e")]
        if None not in pieces:
            receipt = make(path, trained, "--prompt-ids", ",".join(map(str, [1, *pieces])), "--max-new-tokens", 2)
            check(receipt["body"]["prompt"]["text"] == "time", f"the text: {receipt['body']['prompt']}")
            found = in_part(path, trained, ["prompt encoding"])
            check("from token 1" in found["prompt encoding"], f"another segmentation: {found}")
            agrees(path, trained, "--prompt-ids", ",".join(map(str, [1, *pieces])))
            told = run("verify", path, trained, "--prompt-ids", ",".join(map(str, [1, *pieces]))).stdout
            check("\nprompt: agrees\n" in told, f"the verifier's own prompt: {told}")
    # Six of the tokens that differ are shown, and whether there are more.
    for n, more in ((6, False), (7, True)):
        make(path, STORIES, "--prompt-ids", ",".join(["5"] * n), "--max-new-tokens", 2)
        detail = in_part(path, STORIES, ["prompt encoding"])["prompt encoding"]
        theirs = detail.split("the receipt has ")[1]
        check(theirs.endswith(", ...") == more and theirs.count("5 '") == 6, f"{n} tokens: {detail}")


def unencodable(folder):
    """A prompt whose text the tokenizer cannot encode: nothing in an honest receipt states that it can."""
    model = shutil.copytree(STORIES, folder / "model")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["pre_tokenizer"] = None  # then a space is no piece of the vocabulary
    tokenizer["model"]["unk_token"] = "[UNK]"
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    vocab = tokenizer["model"]["vocab"]
    path = folder / "r.json"
    make(path, model, "--prompt-ids", f"0,{vocab['a']},{vocab[chr(0x120) + 'a']}", "--max-new-tokens", 3)
    in_part(path, model, ["prompt encoding"])
    code, found = verify(path, model)
    check("cannot be encoded" in found["prompt encoding"], f"the reason: {found}")


def nul_in_prompt(folder):
    """A receipt shows a NUL of the prompt as U+FFFD. That text has other tokens, so its encoding is not what was run."""
    vocab = json.loads((STORIES / "tokenizer.json").read_text())["model"]["vocab"]
    path = folder / "r.json"
    make(path, STORIES, "--prompt-ids", f"0,{vocab['a']},{vocab[chr(0x100)]},{vocab['b']}", "--max-new-tokens", 3)
    check(json.loads(path.read_text())["body"]["prompt"]["text"] == "a\ufffdb", "the text of the receipt")
    in_part(path, STORIES, ["prompt encoding"])


def text_goes_on(folder):
    """The decoder gives the prompt's last word a space where a text follows. The text with that space has other tokens."""
    model = shutil.copytree(STORIES, folder / "model")
    n = len(json.loads((STORIES / "tokenizer.json").read_text())["model"]["vocab"])
    vocab = {**{f"w{i}": i for i in range(n)}}
    del vocab["w80"], vocab["w81"]
    (model / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
         "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": False},
         "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
         "model": {"type": "WordLevel", "vocab": {**vocab, "hi</w>": 80, "hi": 81}, "unk_token": "w0"}}))
    path = folder / "r.json"
    make(path, model, "--prompt-ids", "81", "--max-new-tokens", 3)
    code, found = verify(path, model)
    check(code == 0 and not found, f"one word: {code} {found}")
    make(path, model, "--prompt-ids", "80", "--max-new-tokens", 3)
    check(json.loads(path.read_text())["body"]["prompt"]["text"] == "hi ", "the text of the receipt")
    in_part(path, model, ["prompt encoding"])


def long_special(folder):
    """Special tokens whose texts are too long for a decoder. No run decodes them, so verify must not refuse them."""
    model = shutil.copytree(STORIES, folder / "model")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    special = next(token for token in tokenizer["added_tokens"] if token["special"])
    tokenizer["decoder"] = {"type": "Replace", "pattern": {"String": special["content"]}, "content": "y" * 10000}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    path = folder / "r.json"
    make(path, model, "--prompt-ids", ",".join(["80"] + [str(special["id"])] * 200), "--max-new-tokens", 3)
    in_part(path, model, ["prompt encoding"])


def requests(folder):
    """The prover must not choose what the verifier requested."""
    ask, other, path, to = (folder / name for name in ("ask.json", "other.json", "r.json", "changed.json"))
    wanted = ["--temperature", "0.8", "--top-k", "20", "--max-new-tokens", "12", "--stop", "zzz"]
    for file in (ask, other):
        done = run("request", STORIES, "--prompt-text", PROMPT, *wanted, "--output", file)
        check(done.returncode == 0, f"request: {done.stderr}")
    check(ask.stat().st_mode & 0o777 == 0o600, "a request is for its owner only until it is sent")
    request = vectors.parse(ask.read_text())
    digest = sha("ree-request/1", canonical(request["body"]).encode())
    check(request["request_sha256"] == digest, "hashed as NUMERICS.md says")
    seed = struct.unpack("<Q", hashlib.sha256(b"ree-seed/1\0" + bytes.fromhex(digest)).digest()[:8])[0]
    done = run(STORIES, "--request", ask, "--receipt-path", path)
    check(done.returncode == 0, f"a run of a request: {done.stderr}")
    made = vectors.parse(path.read_text())
    check(made["body"]["request_sha256"] == digest and made["body"]["sampling"]["seed"] == str(seed), "named, and its seed")
    agrees(path, STORIES, "--request", ask)
    agrees(path, STORIES, "--request", ask, "--stepwise")
    in_part(path, STORIES, ["request"])
    in_part(path, STORIES, ["request"], "--prompt-text", PROMPT)
    code, found = verify(path, STORIES, "--request", other)
    check(code == 1 and list(found) == ["request"], f"another request: {found}")
    make(folder / "none.json", STORIES, "--max-new-tokens", 4)
    code, found = verify(folder / "none.json", STORIES, "--request", ask)
    check(code == 1 and "request" in found, f"a receipt that answers none: {found}")
    # A request with a value that its field cannot have.
    for name, value in (("temperature", -1), ("temperature", "0.8"), ("top_k", -1), ("top_k", 0.5), ("top_p", 0), ("top_p", 2),
                        ("top_p", "1"), ("min_p", -0.5), ("min_p", 2), ("min_p", []), ("repetition_penalty", 0),
                        ("repetition_penalty", "x"), ("max_new_tokens", -1), ("max_new_tokens", 2 ** 60), ("stop", "zzz"), ("stop", [1])):
        lie = vectors.parse(ask.read_text())
        lie["body"]["sampling"][name] = value
        lie["request_sha256"] = sha("ree-request/1", canonical(lie["body"]).encode())
        write(to, lie)
        done = run(STORIES, "--request", to)
        check(done.returncode == 1 and name in done.stderr and not done.stdout, f"a request with {name} {value}: {done}")
    # An honest run with other parameters that claims to answer the request.
    for options, named in ((["--seed", "5"], "seed"), (["--temperature", "0.7", "--seed", str(seed)], "sampling"),
                           (["--seed", str(seed), "--max-new-tokens", "11"], "max_new_tokens"),
                           (["--seed", str(seed), "--stop", "never"], "stop"),
                           (["--seed", str(seed), "--prompt-text", "The fox"], "prompt")):
        lie = make(path, STORIES, *wanted, *options)
        lie["body"]["request_sha256"] = digest
        code, found = verify(write(to, seal(lie)), STORIES, "--request", ask)
        check(code == 1 and named in found["request"], f"{named}: {found}")
    # A request for another graph, or for other weights, and a receipt of this model that says it answers that.
    for part in ("graph_sha256", "weights_sha256"):
        asked = vectors.parse(ask.read_text())
        asked["body"]["model"][part] = "0" * 64
        asked["request_sha256"] = sha("ree-request/1", canonical(asked["body"]).encode())
        (folder / "elsewhere.json").write_text(canonical(asked))
        drawn = hashlib.sha256(b"ree-seed/1\0" + bytes.fromhex(asked["request_sha256"])).digest()[:8]
        lie = make(path, STORIES, *wanted, "--seed", str(struct.unpack("<Q", drawn)[0]))
        lie["body"]["request_sha256"] = asked["request_sha256"]
        code, found = verify(write(to, seal(lie)), STORIES, "--request", folder / "elsewhere.json")
        check(code == 1 and "the model is not" in found["request"], f"{part} of another model: {found}")
    # A field that no version of ree knows may change what is asked.
    for part in ("model", "prompt", "sampling"):
        asked = vectors.parse(ask.read_text())
        asked["body"][part]["more"] = 1
        asked["request_sha256"] = sha("ree-request/1", canonical(asked["body"]).encode())
        done = run("verify", path, STORIES, "--request", write(folder / "more.json", asked))
        check(done.returncode == 2 and f"body.{part}" in done.stderr, f"{part}: {done.returncode}, {done.stderr}")
    hidden = run(STORIES, "--request", ask, "--receipt-path", path, "--private")
    check(hidden.returncode == 0, f"private: {hidden.stderr}")
    agrees(path, STORIES, "--request", ask)
    to.write_bytes(path.read_bytes())  # the salt is not next to the copy
    code, found = verify(to, STORIES, "--request", ask)
    check(code == 2 and "salt" in found, f"private, without its salt: {code}, {found}")
    for options in (["--prompt-text", "a"], ["--temperature", "1"], ["--stop", "x"], ["--max-new-tokens", "3"], ["--seed", "1"],
                    ["--ignore-eos"]):
        done = run(STORIES, "--request", ask, *options)
        check(done.returncode == 2 and "--request" in done.stderr, f"{options}: {done.stderr}")
    request["body"]["sampling"]["top_k"] = 21
    to.write_text(canonical(request))
    done = run(STORIES, "--request", to)
    check(done.returncode == 1 and "damaged" in done.stderr, f"a request that was changed: {done.stderr}")
    request["body"]["model"]["graph_sha256"] = "0" * 64
    request["request_sha256"] = sha("ree-request/1", canonical(request["body"]).encode())
    to.write_text(canonical(request))
    done = run(STORIES, "--request", to, "--receipt-path", path)
    check(done.returncode == 1 and "another model" in done.stderr and not done.stdout, f"another model: {done.stderr}")
    for stops in ([""], ["no"] * 1025):
        request["body"]["sampling"].update(stop=stops, top_k=20)
        request["request_sha256"] = sha("ree-request/1", canonical(request["body"]).encode())
        to.write_text(canonical(request))
        done = run(STORIES, "--request", to)
        check(done.returncode == 1 and "sampling.stop" in done.stderr and not done.stdout, f"stop texts: {done.stderr}")
    check(run(STORIES, "--prompt-text", "a", "--stop", "a" * 65537).returncode == 2, "a stop text of too many bytes")
    check(run("request", STORIES, "--prompt-text", "a").returncode == 2, "nowhere to write to")
    check(run("request", STORIES, "--output", to).returncode == 2, "no prompt")


# Other forms of a model

def exported(folder):
    copy, away = folder / "hf", folder / "away"
    shutil.copytree(STORIES, copy)
    away.mkdir()
    done = run("export", copy)
    done = done if done.returncode else run("export", copy, "-o", away / "story.onnx", "--colocate-tensors")
    check(done.returncode == 0, f"export: {done.stderr}")
    from_folder, from_file = folder / "folder.json", folder / "file.json"
    first = make(from_folder, STORIES, "--max-new-tokens", 16)
    second = make(from_file, away / "story.onnx", "--max-new-tokens", 16, "--tokenizer", STORIES)
    agrees(from_folder, copy / "model.onnx")
    # Away from its folder no file states where a text ends; the receipt does.
    agrees(from_folder, away / "story.onnx", "--tokenizer", STORIES)
    agrees(from_file, STORIES)
    agrees(from_file, STORIES, "--stepwise")
    check(first["body"]["model"] == second["body"]["model"] and
          first["body"]["output"]["tokens"] == second["body"]["output"]["tokens"], "the same model, the same tokens")
    done = run("export", copy, "-o", away / "older.onnx", "--colocate-tensors", "--opset", "17")
    code, found = verify(from_folder, away / "older.onnx", "--tokenizer", STORIES)
    check(code == 1 and "graph" in found, f"opset 17 is another model: {found}")


def without_cache(folder):
    """Models that run the whole text each time: with logits of selected rows, and with logits of
    all rows."""
    vocab, size = 13, 4
    rows = [(7 * i + 3 * k) % 11 - 5 for i in range(vocab - 1) for k in range(size)] + [float("inf"), float("-inf")] * 2
    embedding = onnx.floats("e", [vocab, size], rows)  # the last token makes NaN logits
    head = onnx.floats("h", [size, vocab], [(5 * i + 2 * k * k) % 13 - 6 for k in range(size) for i in range(vocab)])
    small = onnx.floats("s", [], [0.03125])
    axis = onnx.tensor("axis", onnx.INT64, [], struct.pack("<q", 1))
    nodes = [onnx.node("Gather", ["e", "input_ids"], ["x"]), onnx.node("CumSum", ["x", "axis"], ["c"])]
    ends = {"rows": [onnx.node("Mul", ["c", "s"], ["d"]), onnx.node("MatMul", ["d", "h"], ["logits"])],
            "all": [onnx.node("MatMul", ["c", "h"], ["d"]), onnx.node("Mul", ["d", "s"], ["logits"])]}
    for name, end in ends.items():
        model = folder / f"{name}.onnx"
        model.write_bytes(onnx.model(nodes + end, [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])],
                                     [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", vocab])],
                                     [embedding, head, small, axis]))
        path = folder / f"{name}.json"
        receipt = make(path, model, "--prompt-ids", "1,2,3", "--max-new-tokens", 20, "--temperature", 1, "--logits-hash")
        check(len(set(receipt["body"]["output"]["tokens"])) > 3, f"{name}: several tokens: {receipt['body']['output']}")
        check("text" not in receipt["body"]["output"] and "tokenizer_sha256" not in receipt["body"], "no tokenizer, no text")
        agrees(path, model)
        agrees(path, model, "--stepwise")
        receipt["body"]["prompt"]["tokens"][1] = vocab - 1
        for way in ([], ["--stepwise"]):
            code, found = verify(write(folder / "changed.json", seal(receipt)), model, *way)
            check(code == 1 and "not a number" in found["tokens"], f"{name}: no token can be chosen: {found}")
        receipt["body"]["prompt"]["tokens"][1] = 2
        receipt["body"]["output"]["tokens"][15] = (receipt["body"]["output"]["tokens"][15] + 1) % vocab
        code, found = verify(write(path, seal(receipt)), model)
        check(code == 1 and "token 15 " in found["tokens"], f"{name}: {found}")


def tensors(folder):
    cases = [(SAMPLES / "digits.onnx", SAMPLES / "seven.npy", SAMPLES / "two.npy")]
    mnist = args.models / "mnist-8"
    if mnist.is_dir():
        model = next(mnist.glob("*.onnx"))
        inputs = sorted(mnist.rglob("input_0.pb"))
        if len(inputs) > 1:
            cases.append((model, inputs[0], inputs[1]))
    for model, one, two in cases:
        path, to = folder / "tensors.json", folder / "changed.json"
        receipt = make(path, model, "--input", one)
        check(receipt["body"]["kind"] == "tensors", "a receipt of tensors")
        agrees(path, model, "--input", one)
        agrees(path, model, "--input", one, "--threads", "1", "--cpu-isa", "portable", "--no-fuse")
        code, found = verify(path, model, "--input", two)
        name = receipt["body"]["inputs"][0]["name"]
        check(code == 1 and list(found) == [f"input {name}"], f"another input: {found}")
        checks = json.loads(run("verify", path, model, "--input", two, "--json").stdout)["checks"]
        check([c["outcome"] for c in checks if c["name"] == "outputs"] == ["not checked"], f"says that outputs were not checked: {checks}")
        check(verify(path, model)[0] == 2, "without an input")
        receipt["body"]["inputs"].append({**receipt["body"]["inputs"][0], "name": "none"})
        code, found = verify(write(to, seal(receipt)), model, "--input", one)
        check(code == 1 and found == {"input none": "the model has no such input"}, f"an input of another model: {found}")
        receipt["body"]["inputs"].pop()
        check(verify(path, model, "--prompt-text", "a")[0] == 2, "a prompt of tensors")
        name = receipt["body"]["outputs"][0]["name"]
        receipt["body"]["outputs"][0]["sha256"] = "0" * 64
        check(run("validate", write(to, receipt)).returncode == 1, "validate finds an output's hash changed")
        code, found = verify(write(to, seal(receipt)), model, "--input", one)
        check(code == 1 and list(found) == [f"output {name}"], f"another output: {found}")
    path = folder / "random.json"
    done = run(SAMPLES / "digits.onnx", "--random-inputs", 3, "--dim", "batch=2", "--receipt-path", path)
    check(done.returncode == 0, f"random inputs: {done.stderr}")
    agrees(path, SAMPLES / "digits.onnx", "--random-inputs", 3, "--dim", "batch=2")
    code, found = verify(path, SAMPLES / "digits.onnx", "--random-inputs", 4, "--dim", "batch=2")
    check(code == 1 and list(found) == ["input image"], f"another seed: {found}")


# Files left after an interruption

def interrupted(folder):
    """Ctrl-C leaves a receipt of the tokens so far. A killed run leaves no receipt, or a complete
    one."""
    away = folder / "receipts"
    away.mkdir()
    path = away / "r.json"
    slow = [args.ree_run, str(STORIES), "--prompt-text", PROMPT, "--max-new-tokens", "200", "--ignore-eos", "--no-fuse",
            "--threads", "1", "--cpu-isa", "portable", "--receipt-path", str(path), "--json"]
    draw = random.Random(5)
    start = time.monotonic()
    subprocess.run(slow, stdout=subprocess.DEVNULL, check=True)
    whole = time.monotonic() - start
    reasons, left = [], 0
    for number in (signal.SIGINT, signal.SIGKILL):
        for _ in range(6):
            path.unlink(missing_ok=True)
            process = subprocess.Popen(slow, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.05, 1.1) * whole)
            process.send_signal(number)
            code = process.wait(timeout=120)
            check([p.name for p in away.iterdir() if p != path] == [], "nothing else is left in the folder")
            if not path.exists():
                # Before the generation begins, Ctrl-C ends the program without a receipt.
                check(code != 0, f"no receipt, but success: {code}")
                continue
            left += 1
            reason = vectors.parse(path.read_text())["body"]["output"]["finish_reason"]
            reasons.append(reason)
            verified = prefix if reason == "interrupted" else agrees
            check(number == signal.SIGKILL or code in (0, 130), f"exit code {code}")
            check(run("validate", path).returncode == 0, f"a whole receipt after signal {number}")
            verified(path, STORIES, "--ignore-eos")
    print(f"{left} receipts of 12 ended runs: {reasons}")
    # At a known moment: while the text is printed.
    path.unlink(missing_ok=True)
    process = subprocess.Popen(slow[:-1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    first = b""
    while len(first) < len(PROMPT) + 3:
        piece = process.stdout.read(len(PROMPT) + 3)
        if not piece:
            break
        first += piece
    check(len(first) >= len(PROMPT) + 3, f"text is printed during the run: {first}")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    receipt = vectors.parse(path.read_text())
    verified = prefix if receipt["body"]["output"]["finish_reason"] == "interrupted" else agrees
    verified(path, STORIES, "--ignore-eos")
    text = (first + rest).decode()
    check(text.startswith(PROMPT + receipt["body"]["output"]["text"]), f"its text is what was printed: {text}")
    check(receipt["receipt_hash"] in text, "and its hash is reported")
    if process.returncode == 130:
        check(receipt["body"]["output"]["finish_reason"] == "interrupted", "it was interrupted")


def main():
    global args
    parser = harness.parser()
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("none"), help="stories260K, mnist-8; optional")
    parser.add_argument("--device")
    args = parser.parse_args()
    cases = [elsewhere, other_models, endings, changes_of_receipts, changes_of_models, cannot, private, signed, hostile, encoded_texts, boundary, cut_character,
             ends_and_limits, every_field, encodings, unencodable, nul_in_prompt, text_goes_on, long_special, requests, exported, without_cache,
             tensors, interrupted]
    if args.device:
        harness.need_device(args.ree_run, args.device)
        cases = [on_device_shortly if "REE_TEST_SAMPLE" in os.environ else on_device]
    for case in cases:
        with tempfile.TemporaryDirectory() as name:
            case(pathlib.Path(name))
    return harness.finish()


sys.exit(main())
