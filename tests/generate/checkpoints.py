#!/usr/bin/env python3
"""Checkpoints: a generation that is killed at any moment and resumed gives the result of an
uninterrupted one. A checkpoint that is changed, damaged or of another run is refused with the
reason."""

import hashlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE))
import cache_models  # noqa: E402
import harness  # noqa: E402
import cli  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
PROMPT, OTHER = "Once upon a time", "One day, a shy girl named Mira found"
LONG = ["--max-new-tokens", "200", "--ignore-eos"]
CPU = ["--threads", "1"]

args = None


def command(*arguments):
    device = [] if "--device" in arguments else CPU
    return [args.ree_run, *map(str, arguments), *device, "--json"]


def run(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=600, **options)


def result(*arguments, **options):
    done = run(*arguments, **options)
    check(done.returncode == 0, f"{arguments}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout.strip() else {}


def outcome(whole):
    """Returns the results that two equal runs must have in common."""
    keys = ("prompt_tokens", "tokens", "text", "finish_reason", "tokens_sha256", "logits_sha256")
    sequences = [{k: s.get(k) for k in keys} for s in whole.get("sequences", [whole])]
    return sequences, whole.get("receipt_hash")


def read(path):
    """Returns the checkpoint, or None if there is no file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def is_done(checkpoint):
    return all("finish_reason" in s for s in checkpoint["body"]["sequences"])


def canonical(body):
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def seal(checkpoint):
    tagged = b"ree-checkpoint/1\0" + canonical(checkpoint["body"]).encode()
    checkpoint["checkpoint_sha256"] = hashlib.sha256(tagged).hexdigest()
    return canonical(checkpoint) + "\n"


def partial(path, n, *arguments):
    """Kills a run and returns its checkpoint, which has at least n tokens of each answer."""
    for _ in range(10):
        path.unlink(missing_ok=True)
        process = subprocess.Popen(command(*arguments, "--checkpoint", path, "--checkpoint-every", 1),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None:
            checkpoint = read(path)
            if checkpoint and min(len(s["tokens"]) for s in checkpoint["body"]["sequences"]) >= n:
                break
        process.kill()
        _, errors = process.communicate()
        check(process.returncode in (0, -signal.SIGKILL), f"{arguments}: {process.returncode}: {errors}")
        checkpoint = read(path)
        if checkpoint and not is_done(checkpoint):
            return checkpoint
    check(False, f"{arguments}: no run was caught in the middle")
    return None


def killed(folder, seed):
    """Sequences of kills: 20 kills in all, in five forms of a run. At least one kill must leave an
    unfinished checkpoint with tokens."""
    sampled = ["--temperature", "0.9", "--top-p", "0.95", "--seed", "7"]
    forms = [
        [SAMPLE, "--prompt-text", PROMPT, "--logits-hash", *LONG],
        [SAMPLE, "--prompt-text", PROMPT, "--logits-hash", *LONG, *sampled],
        [SAMPLE, "--prompt-text", PROMPT, "--prompt-text", OTHER, "--logits-hash", *LONG, *sampled],
        [SAMPLE, "--prompt-text", OTHER, "--prompt-text", PROMPT, *LONG, "--micro-batches", "2"],
        [args.models / "stories260K", "--prompt-text", PROMPT, "--logits-hash", *LONG],
    ]
    dice = random.Random(seed)
    n_unfinished = 0
    for number, form in enumerate(forms):
        if not form[0].exists():
            print(f"{form[0]} is not there: left out")
            form[0] = SAMPLE
        path, receipt = folder / f"{number}.checkpoint", folder / f"{number}.receipt"
        if form.count("--prompt-text") == 1:
            form += ["--receipt-path", receipt]
        begin = time.monotonic()
        whole = outcome(result(*form))
        took = time.monotonic() - begin
        check(len(whole[0][0]["tokens"]) == 200, "200 tokens")
        form += ["--checkpoint", path, "--checkpoint-every", dice.choice([1, 3, 8])]
        n_before = 0
        for _ in range(4):
            there = read(path)
            resume = ["--resume"] if there else []
            process = subprocess.Popen(command(*form, *resume), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                process.wait(dice.uniform(0, took))
            except subprocess.TimeoutExpired:
                pass
            process.kill()
            _, errors = process.communicate()
            check(process.returncode in (0, -signal.SIGKILL), f"{form}: {process.returncode}: {errors}")
            there = read(path)
            n = sum(len(s["tokens"]) for s in there["body"]["sequences"]) if there else 0
            check(n >= n_before, f"{form}: {n} tokens after {n_before}")
            n_before = n
            n_unfinished += n > 0 and not is_done(there)
        resume = ["--resume"] if read(path) else []
        check(outcome(result(*form, *resume)) == whole, f"{form}: another result after {n_before} tokens")
        check(is_done(read(path)), f"{form}: a checkpoint that is done")
        # Resumed once more: the model is not run.
        again = result(*form, "--resume")
        check(outcome(again) == whole and again["stats"]["runs"] == 0, f"{form}: again")
    check(n_unfinished > 0, "no kill left an unfinished checkpoint with tokens")
    # A kill between the two steps of replacing a file leaves the new one under a temporary name
    # (base/file.h).
    left = sorted(p.name for p in folder.iterdir() if not re.search(r"\.receipt$|\.checkpoint\.[0-9]+-[0-9]+$", p.name))
    check(left == [f"{i}.checkpoint" for i in range(5)], f"nothing else is left: {left}")


def elsewhere(folder):
    """Resumed with another prefill chunk, another batching or another partitioning, and with
    another checkpoint file."""
    form = [SAMPLE, "--prompt-text", PROMPT, "--prompt-text", OTHER, "--prompt-text", "The", "--logits-hash",
            "--max-new-tokens", "40"]
    whole = outcome(result(*form))
    path = folder / "elsewhere.checkpoint"
    if not partial(path, 5, *form):
        return
    text = path.read_text()
    for number, way in enumerate([["--prefill-chunk", "3"], ["--batch-size", "1"], ["--micro-batches", "3"],
                                  ["--no-fuse", "--cpu-isa", "portable"],
                                  ["--n-partitions", "3", "--micro-batches", "2"]]):
        to = folder / f"to{number}.checkpoint"
        check(outcome(result(*form, *way, "--resume", path, "--checkpoint", to)) == whole, f"{way}: resumed")
        check(is_done(read(to)) and path.read_text() == text, f"{way}: another file is written")
    check(len({(folder / f"to{i}.checkpoint").read_text() for i in range(5)}) == 1, "the same contents")
    check(outcome(result(*form, f"--resume={path}")) == whole and is_done(read(path)), "--resume=FILE")
    # Started with several stages, resumed with one: the digests of caches are the same.
    path = folder / "parts.checkpoint"
    if partial(path, 5, *form, "--n-partitions", "4", "--micro-batches", "3"):
        check(outcome(result(*form, "--resume", path)) == whole, "begun in parts")
    # Interrupting a run keeps the tokens so far.
    path = folder / "interrupted.checkpoint"
    for _ in range(10):  # a run may end before the signal reaches it
        path.unlink(missing_ok=True)
        process = subprocess.Popen([args.ree_run, str(SAMPLE), "--prompt-text", PROMPT, *LONG, "--cpu-isa", "portable",
                                    "--no-fuse", *CPU, "--checkpoint", str(path), "--checkpoint-every", "100000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(len(PROMPT) + 20)
        process.send_signal(signal.SIGINT)
        process.communicate()
        if process.returncode != 0:
            break
    if check(process.returncode == 130, f"interrupted: exit code {process.returncode}"):
        tokens = read(path)["body"]["sequences"][0]["tokens"]
        check(0 < len(tokens) < 200, f"{len(tokens)} tokens are kept")
    again = outcome(result(SAMPLE, "--prompt-text", PROMPT, *LONG, "--resume", path))
    check(again == outcome(result(SAMPLE, "--prompt-text", PROMPT, *LONG)), "and it goes on")
    # Runs with stop texts.
    told = result(SAMPLE, "--prompt-text", PROMPT, *LONG)["text"]
    stop = ["--stop", told[100:110]]
    stopped = outcome(result(SAMPLE, "--prompt-text", PROMPT, *LONG, *stop))
    check(stopped[0][0]["finish_reason"] == "stop", "a stop text")
    path = folder / "stop.checkpoint"
    if partial(path, 3, SAMPLE, "--prompt-text", PROMPT, *LONG, *stop):
        for _ in range(2):
            check(outcome(result(SAMPLE, "--prompt-text", PROMPT, *LONG, *stop, "--resume", path)) == stopped, "stops")


def refused(path, code, arguments, *messages):
    done = run(*arguments, "--resume", path)
    check(done.returncode == code, f"{messages}: exit code {done.returncode}, expected {code}: {done.stderr}")
    check(done.stderr.startswith("ree-run: "), f"{messages}: {done.stderr!r}")
    for message in messages:
        check(message in done.stderr, f"'{message}' is not in: {done.stderr}")
    check(not done.stdout.strip() or code != 2, f"{messages}: nothing is printed")


def members(value, path=()):
    """Yields the paths of all values inside a JSON value, outer ones before inner ones."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield path + (key,)
        yield from members(item, path + (key,))


def other(value):
    """Returns a different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return ("1" if value[:1] != "1" else "2") + value[1:]
    return value[:-1] if value else [1]


def changed_fields(folder):
    form = [SAMPLE, "--prompt-text", PROMPT, "--temperature", "0.5", "--logits-hash", "--stop", "never",
            "--max-new-tokens", "60", "--ignore-eos"]
    path, bad = folder / "fields.checkpoint", folder / "bad.checkpoint"
    good = partial(path, 6, *form)
    if not good:
        return
    text = path.read_text()
    check(seal(json.loads(text)) == text, "the file is canonical and its hash that of NUMERICS.md")
    reasons = {"numerics": (1, "which this version of ree does not know"),
               "operation_set": (1, "which this version of ree does not know"),
               "graph_sha256": (2, "body.model.graph_sha256 is"), "weights_sha256": (2, "body.model.weights_sha256 is"),
               "tokenizer_sha256": (2, "body.tokenizer_sha256 is"), "top_p": (1, "sampling.top_p"),
               "prompt": (2, "body.sequences[0].prompt"), "tokens": (1, "sequence 0"), "caches": (1, ""),
               "logits_hash": (2, "body.logits_hash is false, expected true"),
               "sequences": (1, "body.sequences is empty"), "body": (1, ""), "model": (1, ""), "sampling": (1, "")}
    seen = set()
    for place in members(good):
        name = next(k for k in reversed(place) if isinstance(k, str))
        # Of the elements of lists only 0 and 3 are changed.
        if isinstance(place[-1], int) and place[-1] not in (0, 3):
            continue
        copy = json.loads(text)
        at = copy
        for key in place[:-1]:
            at = at[key]
        was = at[place[-1]]
        if isinstance(was, dict):
            del at[place[-1]]
        else:
            at[place[-1]] = other(was)
        bad.write_text(canonical(copy))
        if place[0] == "body":
            damaged = "is missing" if place == ("body",) else "it is damaged"
            if not isinstance(place[-1], int) or place[-1] == 0:
                refused(bad, 1, form, "bad.checkpoint: ", damaged)
            if place == ("body",):
                continue
            bad.write_text(seal(copy))
            code, message = reasons.get(name, (2, f"body.sampling.{name} is"))
            refused(bad, code, form, "bad.checkpoint" if code == 2 else "", message)
        else:
            refused(bad, 1, form, "checkpoint_sha256 is" if name != "schema" else "does not know")
        seen.add(name)
    check(seen >= set(good["body"]) - {"stop"}, f"all fields: {seen}")
    # The last token, which no cache contains; caches named in messages; impossible values.
    for change, message in [
            (lambda s: s["tokens"].__setitem__(-1, other(s["tokens"][-1])), "the model chooses"),
            (lambda s: s["caches"].__setitem__(2, "1" * 64), "the cache 'past_key_values.1.key' of sequence 0"),
            (lambda s: s["caches"].pop(), "its number of caches differs from the model's"),
            (lambda s: s["caches"].__setitem__(0, "0" * 63), "64 hexadecimal digits"),
            (lambda s: s["tokens"].__setitem__(0, 640), "640"),
            (lambda s: s["tokens"].__setitem__(0, -1), "not a token id"),
            (lambda s: s["tokens"].extend([5] * 500), "more than the maximum number of tokens"),
            (lambda s: s["tokens"].extend([5] * (60 - len(s["tokens"]))), "is not marked as done"),
            (lambda s: s.__setitem__("finish_reason", "length"), "logits_sha256 is missing"),
            (lambda s: (s.pop("caches"), s.update(finish_reason="length", logits_sha256="0" * 64)), "has fewer"),
            (lambda s: (s.pop("caches"), s.update(finish_reason="eos", logits_sha256="0" * 64)), "does not end it"),
            (lambda s: (s.pop("caches"), s.update(finish_reason="stop", logits_sha256="0" * 64)), "no stop text"),
            (lambda s: (s.pop("caches"), s.update(finish_reason="interrupted", logits_sha256="0" * 64)), "finish_reason is"),
            (lambda s: s.update(more=1), "more is unknown"), (lambda s: s.update(prompt=[]), "has no tokens")]:
        copy = json.loads(text)
        change(copy["body"]["sequences"][0])
        bad.write_text(seal(copy))
        refused(bad, 1, form, message)
    # A checkpoint of another run, by its options.
    for option, message in [(["--seed", "1"], 'body.sampling.seed is "0", expected "1"'),
                            (["--temperature", "0.25"], "body.sampling.temperature is 0.5, expected 0.25"),
                            (["--max-new-tokens", "61"], "body.sampling.max_new_tokens is 60, expected 61"),
                            (["--prompt-text", OTHER], "body.sequences has 1 prompts, expected 2"),
                            (["--top-k", "5", "--min-p", "0.125"], "body.sampling.top_k is 0, expected 5")]:
        refused(path, 2, form + option, message, "is the checkpoint of another run")
    refused(path, 2, [SAMPLE, "--prompt-text", OTHER, *form[3:]], "body.sequences[0].prompt[")
    check(path.read_text() == text, "the checkpoint is as it was")
    # Damaged files and files of other kinds.
    for n in range(0, len(text) - 1, 50):
        bad.write_text(text[:n])
        refused(bad, 1, form, "bad.checkpoint: ")
    for contents in (b"\xff\xfe\x00", b"[]", b'{"schema":"ree-receipt/1"}', b"[" * 100000, b"7"):
        bad.write_bytes(contents)
        refused(bad, 1, form, "bad.checkpoint: ")
    refused(folder / "none", 1, form, "No such file")
    refused(folder, 1, form, "is a folder")
    # A checkpoint that is not resumed is not overwritten.
    done = run(*form, "--checkpoint", path)
    check(done.returncode == 1 and "--resume" in done.stderr and path.read_text() == text, done.stderr)
    for wrong in (["--resume"], ["--checkpoint-every", "3"], ["--resume", path, "--logprobs", "2"],
                  ["--checkpoint", folder / "new", "--operation-set", "default"]):
        done = run(SAMPLE, "--prompt-text", PROMPT, *wrong)
        check(done.returncode == 2, f"{wrong}: {done.returncode}: {done.stderr}")


def full_disk(folder):
    """Later checkpoints are larger. They are written up to the size limit, and the last one written
    stays complete."""
    path = folder / "full.checkpoint"
    form = [SAMPLE, "--prompt-text", PROMPT, "--prompt-text", OTHER, *LONG, "--checkpoint-every", "4"]
    whole = outcome(result(*form, "--checkpoint", folder / "whole.checkpoint"))
    size = (folder / "whole.checkpoint").stat().st_size - 1

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = run(*form, "--checkpoint", path, preexec_fn=limit, env={**os.environ, "XDG_CACHE_HOME": str(folder)})
    check(done.returncode == 1 and "cannot write it" in done.stderr, f"{done.returncode}: {done.stderr}")
    check("the run continues, and the last checkpoint remains" in done.stderr, done.stderr)
    check(outcome(json.loads(done.stdout)) == whole, "the run goes on to its end")
    kept = read(path)
    n = len(kept["body"]["sequences"][0]["tokens"])
    check(not is_done(kept) and seal(json.loads(path.read_text())) == path.read_text() and n > 0, f"whole, {n} tokens")
    left = sorted(p.name for p in folder.iterdir() if p.name.startswith("full"))
    check(left == ["full.checkpoint"], f"nothing else is left: {left}")
    check(outcome(result(*form, "--resume", path)) == whole, "and resumed")

    # OpenMP libraries write small files of their own. With many prompts even the first checkpoint
    # exceeds the limit.
    def little():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    fresh = folder / "fresh.checkpoint"
    many = ["--prompt-text", PROMPT] * 60
    done = run(SAMPLE, *many, *LONG, "--checkpoint", fresh, preexec_fn=little)
    check(done.returncode == 1 and not fresh.exists() and not done.stdout, "the first one has to be written")


def rows_digest(ids, embedding):
    """The digest of a cache [1, rows, 1, size] whose rows are the embeddings of the tokens."""
    size = len(embedding[0])
    digest = hashlib.sha256(b"ree-rows/1\0" + struct.pack("<3I4q", 1, 4, 1, 1, 0, 1, size)).digest()
    for i in ids:
        digest = hashlib.sha256(b"ree-row/1\0" + digest + struct.pack(f"<{size}f", *embedding[i])).digest()
    return digest.hex()


def small_models(folder):
    """Models without a cache, and with a cache that only holds sequences of one length."""
    embedding, head = cli.tables(17, 6)
    for name, model in cli.write_models(folder, 17, embedding, head).items():
        path = folder / f"{name}.checkpoint"
        form = [model, "--prompt-ids", "3,5", "--prompt-ids", "8,8,2", "--prompt-ids", "4,16", "--max-new-tokens", "150",
                "--logits-hash"]
        whole = outcome(result(*form))
        checkpoint = partial(path, 3 if name == "cached" else 40, *form)
        if not checkpoint:
            continue
        text = path.read_text()
        for way in ([], ["--micro-batches", "2"], ["--batch-size", "1"]):
            path.write_text(text)
            check(outcome(result(*form, *way, "--resume", path)) == whole, f"{name}, {way}: resumed")
        sequence = next(s for s in checkpoint["body"]["sequences"] if "finish_reason" not in s)
        expected = [rows_digest(sequence["prompt"] + sequence["tokens"][:-1], embedding)] if name == "cached" else None
        check(sequence.get("caches") == expected, f"{name}: the digest of NUMERICS.md: {sequence.get('caches')}")
        sequence["tokens"][-1] = (sequence["tokens"][-1] + 1) % 17
        path.write_text(seal(checkpoint))
        refused(path, 1, form, "the model chooses")


def rewritten_caches(folder):
    """Caches whose earlier positions change, or move: the digest is that of the whole cache, whatever wrote it before."""
    for kind in cache_models.KINDS:
        path = folder / f"{kind}.checkpoint"
        model = cache_models.write(folder / f"{kind}.onnx", kind)
        form = [model, "--prompt-ids", "3,5", "--prompt-ids", "1,7,2", "--max-new-tokens", "150", "--ignore-eos", "--logits-hash"]
        whole = outcome(result(*form))
        checkpoint = partial(path, 40, *form)
        if checkpoint:
            check(outcome(result(*form, "--resume", path)) == whole, f"{kind}: resumed")
            sequence = next(s for s in checkpoint["body"]["sequences"] if "finish_reason" not in s)
            sequence["caches"][0] = "1" * 64
            path.write_text(seal(checkpoint))
            refused(path, 1, form, "the cache 'past_key_values.0.key' of sequence")


def to_device(folder, device):
    """Started on the CPU, resumed on a device."""
    path = folder / "device.checkpoint"
    form = [SAMPLE, "--prompt-ids", "1,300,5", "--prompt-ids", "7,8", "--max-new-tokens", "12", "--ignore-eos",
            "--logits-hash"]
    whole = outcome(result(*form))
    checkpoint = partial(path, 6, *form, "--cpu-isa", "portable", "--no-fuse")
    if checkpoint:
        check(outcome(result(*form, "--resume", path, "--device", device)) == whole, f"on {device}")
        # A cache that differs is noticed on the device, too.
        checkpoint["body"]["sequences"][1]["caches"][3] = "1" * 64
        path.write_text(seal(checkpoint))
        refused(path, 1, [*form, "--device", device], "of sequence 1")


def main():
    global args
    parser = harness.parser(__doc__)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--device")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="run only the part with this name")
    args = parser.parse_args()
    if args.device:
        harness.need_device(args.ree_run, args.device)
    parts = {"killed": lambda f: killed(f, args.seed), "elsewhere": elsewhere, "changed_fields": changed_fields,
             "full_disk": full_disk, "small_models": small_models,
             "rewritten_caches": rewritten_caches}
    if args.device:
        parts = {"to_device": lambda f: to_device(f, args.device)}
    for name, part in parts.items():
        if args.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(pathlib.Path(folder))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
