#!/usr/bin/env python3
"""Disputes with a party that lies, over the sample model. liars.c tells hundreds of consistent lies
about one run, and every one must be named. This script makes that run, checks in other runs that
the inputs are what the rules say, and lies through the command line with forged traces and receipts
that are sealed again."""

import hashlib
import json
import pathlib
import re
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "harness"), str(HERE.parent / "receipt")]
import harness  # noqa: E402
import sealing  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
DIGITS = HERE.parents[1] / "tools" / "sample" / "digits.onnx"
SEVEN, FIVE = (HERE.parents[1] / "tools" / "sample" / f"{name}.npy" for name in ("seven", "five"))
PROMPT = ["--prompt-text", "Once upon a time", "--device", "cpu", "--ignore-eos"]
MAGIC = b"ree-trace/2\n"

ree_run = None


def run(*args):
    return harness.call(ree_run, *args)


@harness.helper
def answer(*args, code):
    done = run(*args, "--json")
    check(done.returncode == code, f"{args}: exit code {done.returncode}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout) if done.stdout else {}


@harness.helper
def refused(*args, says, code=2):
    done = run(*args)
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}")
    check(re.search(says, done.stderr), f"{args}: '{says}' is not in: {done.stderr}")


# Forging


class Trace:
    """The bytes of a trace, for forging; save() computes the root of the changed contents."""

    def __init__(self, path):
        data = path.read_bytes()
        n = struct.unpack_from("<Q", data, len(MAGIC))[0]
        start = len(MAGIC) + 8
        self.header = data[start:start + n]
        self.steps = bytearray(data[start + n:-len(b"end\n") - 40])
        self.n_steps = struct.unpack_from("<Q", data, len(data) - 40)[0]

    def each(self):
        return len(self.steps) // self.n_steps

    def set(self, step, place, digest):
        at = step * self.each() + 32 * place
        self.steps[at:at + 32] = digest

    def get(self, step, place):
        at = step * self.each() + 32 * place
        return bytes(self.steps[at:at + 32])

    def save(self, path):
        def text(root):
            return (MAGIC + struct.pack("<Q", len(self.header)) + self.header + bytes(self.steps) + b"end\n" +
                    struct.pack("<Q", self.n_steps) + root)
        path.write_bytes(text(bytes(32)))
        contents = re.search(r"its contents have ([0-9a-f]{64})", run("trace", path).stderr)
        root = bytes.fromhex(contents[1])
        path.write_bytes(text(root))
        return root.hex()


def seal(receipt, path, root, **changes):
    """Writes a receipt with another root and optionally other trace fields, sealed again."""
    body = receipt["body"]
    body["trace"]["root"] = root
    body["trace"].update(changes)
    receipt.pop("signature", None)
    path.write_text(json.dumps(sealing.seal(receipt)))


def without_texts(receipt):
    """A receipt as of a run without a tokenizer: only the hash of the tokens depends on the
    tokens."""
    body = receipt["body"]
    del body["tokenizer_sha256"]
    for part in ("prompt", "output"):
        del body[part]["text"], body[part]["text_sha256"]
    return receipt


def tensor_i64(ids):
    return hashlib.sha256(b"ree-tensor/1\0" + struct.pack("<IIqq", 7, 2, 1, len(ids)) +
                          struct.pack(f"<{len(ids)}q", *ids)).digest()


# Runs


def make(folder, name, *args, dump=True):
    made = run(SAMPLE, *PROMPT, *args, "--trace", folder / f"{name}.trace", "--receipt-path", folder / f"{name}.json",
               *(["--dump-tensors", ".", "--dump-folder", folder / "values"] if dump else []))
    check(made.returncode == 0, made.stderr)


def liars(program, *args):
    done = harness.call(program, *args)
    print(done.stdout, end="")
    check(done.returncode == 0, done.stderr)


def rules(folder, program):
    """The rules predict the inputs that the trace of an honest run has, for each way to run it."""
    for i, args in enumerate((["--prefill-chunk", "1"], ["--prefill-chunk", "3", "--logits-hash"],
                              ["--prefill-chunk", "512", "--logits-hash"],
                              ["--temperature", "0.8", "--repetition-penalty", "1.3", "--seed", "7"])):
        other = folder / f"rules-{i}"
        other.mkdir()
        make(other, "clean", *args, "--max-new-tokens", "6", dump=False)
        liars(program, SAMPLE, other, "--rules")


# Lies through the command line


def with_receipts(folder, a, b):
    return ["--a-receipt", folder / f"{a}.json", "--b-receipt", folder / f"{b}.json"]


@harness.helper
def names_b(folder, result, kind, reason):
    """Disputes forged.trace and forged.json against the true ones. The dispute names B if that needs
    no value; the referee names B. With A's receipt alone it also names B, or refuses."""
    claim = folder / "claim.json"
    claim.unlink(missing_ok=True)
    found = answer("dispute", "--a", folder / "clean.trace", "--b", folder / "forged.trace", "--claim", claim,
                   "--model", SAMPLE, *with_receipts(folder, "clean", "forged"), code=1)
    check(found["result"] == result, f"{found}")
    if kind != "node" and "logits" not in reason:
        check(found["wrong"] == ["B"] and re.search(reason, found["reason_b"]), f"{found}")
    decide = ["referee", claim, SAMPLE, "--inputs", folder / "values"]
    ruling = answer(*decide, *with_receipts(folder, "clean", "forged"), code=0)
    check(ruling.get("right") == "A" and ruling["bound"] and ruling["kind"] == kind, f"{ruling}")
    check(re.search(reason, ruling["b"].get("reason", "")), f"{ruling}")
    for side, name in (("a", "clean"), ("b", "forged")):
        body = json.loads((folder / f"{name}.json").read_text())
        check(ruling[side]["root"] == body["body"]["trace"]["root"] and
              ruling[side]["receipt"] == body["receipt_hash"], f"{ruling}")
    text = run(*decide, *with_receipts(folder, "clean", "forged")).stdout
    check(ruling["a"]["root"] in text and ruling["b"]["root"] in text and "binds nobody" not in text, text)
    refused(*decide, *with_receipts(folder, "forged", "clean"), says="the root of A in the claim")
    refused(*decide, *with_receipts(folder, "clean", "clean"), says="the root of B in the claim")
    one = run(*decide, "--a-receipt", folder / "clean.json")
    check(one.returncode in (2, 3) and "A is right" in one.stdout + "A is right" * (one.returncode == 2), one.stdout)
    return claim, found


def forged_cache(folder, about):
    """One changed digest of a cache: version 0.1.0 could not decide this dispute."""
    for step, reason in ((5, "own step 4 wrote"), (0, "not empty")):
        forged = Trace(folder / "clean.trace")
        forged.set(step, about["cache"], hashlib.sha256(b"no such cache").digest())
        seal(json.loads((folder / "clean.json").read_text()), folder / "forged.json", forged.save(folder / "forged.trace"))
        claim, _ = names_b(folder, "input", "input", reason)
        # The model is enough to decide it, but the ruling binds nobody.
        done = run("referee", claim, SAMPLE)
        check(done.returncode == 3 and "A is right\nthis binds nobody" in done.stdout, done.stdout)
        found = answer("dispute", "--a", folder / "forged.trace", "--b", folder / "clean.trace", "--claim", claim,
                       "--model", SAMPLE, code=1)
        check(found["wrong"] == ["A"], f"{found}")
        claim.unlink()
        found = answer("dispute", "--a", folder / "clean.trace", "--b", folder / "forged.trace", "--claim", claim, code=2)
        check(found["result"] == "input" and not found["claim"] and not claim.exists(), f"{found}")


def forged_token(folder, about):
    receipt = json.loads((folder / "clean.json").read_text())
    tokens = receipt["body"]["output"]["tokens"]
    place = 4
    step = about["n_steps"] - (len(tokens) - 1) + place
    forged = Trace(folder / "clean.trace")
    check(forged.get(step, about["tokens"]) == tensor_i64([tokens[place]]), "the token ids of a step")
    forged.set(step, about["tokens"], tensor_i64([tokens[place] + 1]))
    root = forged.save(folder / "forged.trace")
    seal(receipt, folder / "forged.json", root)
    names_b(folder, "input", "input", "does not follow from its receipt")
    tokens[place] += 1
    seal(receipt, folder / "forged.json", root)
    names_b(folder, "input", "input", f"token .* is {tokens[place]}, but its logits choose {tokens[place] - 1}")
    # No step reads the last token: both roots are equal.
    (folder / "forged.trace").write_bytes((folder / "clean.trace").read_bytes())
    receipt = json.loads((folder / "clean.json").read_text())
    receipt["body"]["output"]["tokens"][-1] += 1
    seal(receipt, folder / "forged.json", receipt["body"]["trace"]["root"])
    claim = folder / "claim.json"
    both = with_receipts(folder, "clean", "forged")
    dispute = ["dispute", "--a", folder / "clean.trace", "--b", folder / "forged.trace", "--claim", claim, "--model",
               SAMPLE, *both]
    found = answer(*dispute, code=1)
    check(found["result"] == "token" and found["wrong"] == ["B"] and "text of its answer" in found["reason_b"],
          f"{found}")
    seal(without_texts(receipt), folder / "forged.json", receipt["body"]["trace"]["root"])
    found = answer(*dispute, code=1)
    check(found["result"] == "token" and "logits" in found["undecided"], f"{found}")
    ruling = answer("referee", claim, SAMPLE, *both, "--inputs", folder / "values", code=0)
    check(ruling["right"] == "A", f"{ruling}")
    refused("referee", claim, SAMPLE, *both, says="--inputs DIR")
    refused("referee", claim, SAMPLE, "--inputs", folder / "values", says="--a-receipt")


def forged_header(folder, about):
    forged = Trace(folder / "clean.trace")
    forged.header = forged.header.replace(b'"domain":""', b'"domain":"another"', 1)
    seal(json.loads((folder / "clean.json").read_text()), folder / "forged.json", forged.save(folder / "forged.trace"))
    names_b(folder, "header", "header", "its header is not")


def forged_length(folder, about):
    forged = Trace(folder / "clean.trace")
    each = forged.each()
    del forged.steps[-each:]
    forged.n_steps -= 1
    root = forged.save(folder / "forged.trace")
    receipt = json.loads((folder / "clean.json").read_text())
    seal(receipt, folder / "forged.json", root, n_steps=forged.n_steps)
    names_b(folder, "length", "length", "tokens of its receipt require")
    receipt["body"]["output"]["tokens"].pop()
    seal(receipt, folder / "forged.json", root)
    names_b(folder, "length", "length", "nothing ends it")
    receipt["body"]["output"]["finish_reason"] = "interrupted"
    seal(without_texts(receipt), folder / "forged.json", root)
    claim = folder / "claim.json"
    both = with_receipts(folder, "clean", "forged")
    found = answer("dispute", "--a", folder / "clean.trace", "--b", folder / "forged.trace", "--claim", claim,
                   "--model", SAMPLE, *both, code=1)
    check("interrupted" in found["undecided"] and not found["wrong"], f"{found}")
    refused("referee", claim, SAMPLE, *both, says="interrupted")


def stopped(folder, about):
    """A stop text ends an answer exactly where it is complete."""
    make(folder, "full", *about["args"], dump=False)
    made = run(SAMPLE, *PROMPT, *about["args"], "--stop", "was", "--trace", folder / "stop.trace", "--receipt-path",
               folder / "stop.json")
    check(made.returncode == 0, made.stderr)
    honest, full = (json.loads((folder / f"{name}.json").read_text()) for name in ("stop", "full"))
    n = len(honest["body"]["output"]["tokens"])
    check(honest["body"]["output"]["finish_reason"] == "stop" and 2 < n < 12, f"{n} tokens up to the stop text")
    claim = folder / "claim.json"
    for longer in (True, False):
        forged = json.loads(json.dumps(full if longer else honest))
        if longer:  # the forged answer continues after the stop text
            forged["body"]["sampling"]["stop"] = honest["body"]["sampling"]["stop"]
            trace = Trace(folder / "full.trace")
        else:
            forged["body"]["output"]["tokens"].pop()
            trace = Trace(folder / "stop.trace")
            del trace.steps[-trace.each():]
            trace.n_steps -= 1
        seal(forged, folder / "forged.json", trace.save(folder / "forged.trace"), n_steps=trace.n_steps)
        both = with_receipts(folder, "stop", "forged")
        found = answer("dispute", "--a", folder / "stop.trace", "--b", folder / "forged.trace", "--claim", claim,
                       "--model", SAMPLE, *both, code=1)
        says = "continues after token" if longer else "nothing ends it"
        check(found["result"] == "length" and found["wrong"] == ["B"] and says in found["reason_b"], f"{found}")
        ruling = answer("referee", claim, SAMPLE, *both, code=0)
        check(ruling["right"] == "A" and says in ruling["b"]["reason"], f"{ruling}")


def forged_node(folder, about):
    """What the ruling on a node's claim says without and with receipts; keys; ree-claim/1."""
    node = next(i for i, n in enumerate(about["nodes"]) if n["op_type"] == "MatMul")
    made = run(SAMPLE, *PROMPT, *about["args"], "--trace", folder / "forged.trace", "--receipt-path",
               folder / "forged.json", "--inject-fault", f"{node}:5:3")
    check(made.returncode == 0, made.stderr)
    claim, _ = names_b(folder, "node", "node", "output 0")
    decide = ["referee", claim, SAMPLE, "--inputs", folder / "values"]
    done = run(*decide)
    check(done.returncode == 3 and "of no receipt" in done.stdout and "this binds nobody: neither root" in done.stdout,
          done.stdout)
    done = run(*decide, "--b-receipt", folder / "forged.json")
    check(done.returncode == 3 and "this binds nobody: A's root" in done.stdout, done.stdout)

    # A claim of another version, about roots that its version does not make.
    old = json.loads(claim.read_text())
    for version in (1, 2):
        old["op"]["name"] = about["nodes"][node]["name"]
        old["header"]["trace"] = 1
        if version == 1:
            old["schema"] = "ree-claim/1"
            del old["kind"], old["a"]["header_sha256"], old["b"]["header_sha256"], old["header"]["trace"]
        path = folder / "old.json"
        path.write_text(json.dumps(old, sort_keys=True, separators=(",", ":")) + "\n")
        refused("referee", path, SAMPLE, "--inputs", folder / "values", *with_receipts(folder, "clean", "forged"),
                says="do(es)? not lead to the root")
        old = json.loads(claim.read_text())

    # Receipts that are signed, altered, or of other runs.
    run("keygen", folder / "key")
    run("keygen", folder / "other-key")
    made = run(SAMPLE, *PROMPT, *about["args"], "--trace", folder / "signed.trace", "--receipt-path",
               folder / "signed.json", "--sign", folder / "key")
    check(made.returncode == 0, made.stderr)
    signed = [*decide, *with_receipts(folder, "signed", "forged")]
    ruling = answer(*signed, "--a-public-key", folder / "key.pub", code=0)
    check("public_key" in ruling["a"] and "public_key" not in ruling["b"], f"{ruling}")
    check("no key was required" in run(*signed).stdout, "a key that was not required is printed as such")
    refused(*signed, "--a-public-key", folder / "other-key.pub", says="A's receipt is signed with another key")
    refused(*signed, "--b-public-key", folder / "key.pub", says="B's receipt is not signed")
    altered = json.loads((folder / "signed.json").read_text())
    altered["body"]["output"]["tokens"][0] += 1
    (folder / "altered.json").write_text(json.dumps(altered))
    refused(*decide, *with_receipts(folder, "altered", "forged"), says="A's receipt is altered")
    refused(*decide, "--a-public-key", folder / "key.pub", says="--a-receipt")
    make(folder, "stranger", *about["args"], "--temperature", "0.5", dump=False)
    refused(*decide, *with_receipts(folder, "clean", "stranger"), says="the root of B in the claim")
    dispute = ["dispute", "--a", folder / "clean.trace", "--b", folder / "forged.trace", "--claim", claim]
    refused(*dispute, "--model", SAMPLE, *with_receipts(folder, "clean", "stranger"), says="different runs: sampling")
    refused(*dispute, *with_receipts(folder, "clean", "forged"), says="--model")
    refused(*dispute, "--model", SAMPLE, "--a-receipt", folder / "clean.json", says="--a-receipt and --b-receipt must be given together")

    # An invented counterparty: no receipt has its root.
    lines = folder / "transcript.jsonl"
    found = answer(*dispute, "--model", SAMPLE, *with_receipts(folder, "clean", "clean"), "--transcript", lines, code=3)
    last = json.loads(lines.read_text().splitlines()[-1])
    check(last["named"] == "B" and last["reason"] == found["reason"] and "none for others" in last["proof"], f"{last}")
    check(found["result"] == "lied" and found["liar"] == "B" and "its receipt" in found["reason"], f"{found}")
    text = run(*dispute, "--model", SAMPLE, *with_receipts(folder, "clean", "clean")).stdout
    check("does not prove it to others" in text, text)


def requested(folder, about):
    """A request names the party whose receipt is of another run. A receipt that contradicts itself
    names its own party."""
    request, claim = folder / "request.json", folder / "claim.json"
    made = run("request", SAMPLE, "--prompt-text", "Once upon a time", "--max-new-tokens", 12, "--output", request)
    check(made.returncode == 0, made.stderr)
    for name, args in (("asked", []), ("forged", ["--inject-fault", "20:5:3"])):
        made = run(SAMPLE, "--request", request, "--device", "cpu", "--prefill-chunk", 4, "--trace",
                   folder / f"{name}.trace", "--receipt-path", folder / f"{name}.json", "--dump-tensors", ".",
                   "--dump-folder", folder / f"{name}-values", *args)
        check(made.returncode == 0, made.stderr)
    traces = ["dispute", "--a", folder / "asked.trace", "--b", folder / "forged.trace", "--claim", claim,
              "--model", SAMPLE]
    both = with_receipts(folder, "asked", "forged")
    decide = ["referee", claim, SAMPLE, "--inputs", folder / "asked-values", *both, "--request", request]
    answer(*traces, *both, "--request", request, code=1)
    ruling = answer(*decide, code=0)
    check(ruling["right"] == "A" and ruling["b"]["reason"] == "output 0", f"{ruling}")
    receipt = json.loads((folder / "forged.json").read_text())
    receipt["body"]["sampling"]["max_new_tokens"] += 1
    seal(receipt, folder / "forged.json", receipt["body"]["trace"]["root"])
    found = answer(*traces, *both, code=1)  # another limit is no way out, with or without a request
    check(found["result"] == "node", f"{found}")
    refused(*traces, *both, "--request", request, says="B's receipt is false: it does not answer", code=3)
    ruling = answer(*decide, code=0)
    check(ruling["right"] == "A" and "max_new_tokens is not as requested" in ruling["b"]["reason"], f"{ruling}")
    receipt["body"]["sampling"]["max_new_tokens"] = 5
    seal(receipt, folder / "forged.json", receipt["body"]["trace"]["root"])
    refused(*traces, *both, says="B's receipt is false: it contradicts itself: counts", code=3)
    refused(*traces, "--request", request, says="--a-receipt")


def rewrite(folder, name, new, change, schema=None):
    """Writes a receipt of the trace `name` in another form, sealed."""
    receipt = json.loads((folder / f"{name}.json").read_text())
    receipt["schema"] = schema or receipt["schema"]
    change(receipt["body"])
    seal(receipt, folder / f"{new}.json", receipt["body"]["trace"]["root"])


def forms(folder, about):
    """Forms of a receipt that `verify` accepts, or that no run produces, are no way out of a
    dispute: the party that computed something else is named as it is with the usual form."""
    request, claim = folder / "request.json", folder / "claim.json"
    run("request", SAMPLE, "--prompt-text", "Once upon a time", "--max-new-tokens", 6, "--output", request)
    for name, args in (("true", []), ("false", ["--inject-fault", "20:5:3"])):
        made = run(SAMPLE, "--request", request, "--device", "cpu", "--prefill-chunk", 4, "--trace",
                   folder / f"{name}.trace", "--receipt-path", folder / f"{name}.json", *args)
        check(made.returncode == 0, made.stderr)
    traces = ["dispute", "--a", folder / "true.trace", "--b", folder / "false.trace", "--claim", claim, "--model", SAMPLE]
    for what, key, value in (("eos", "eos", [1, 1]), ("other eos", "eos", [639, 1]), ("no eos", "eos", []),
                             ("context", "context_length", 0)):
        rewrite(folder, "false", "form", lambda body: body["sampling"].update({key: value}))
        rewrite(folder, "true", "true-form", lambda body: body["sampling"].update({key: value}))
        done = run("verify", folder / "true-form.json", SAMPLE, "--request", request)
        check(done.returncode in (0, 3) and "differs" not in done.stdout, f"{what}: {done.stdout}")
        for more in ([], ["--request", request]):
            both = [*with_receipts(folder, "true", "form"), *more]
            found = answer(*traces, *both, code=1)
            check(found["result"] == "node", f"{what}: {found}")
            ruling = answer("referee", claim, SAMPLE, *both, "--inputs", folder / "asked-values", code=0)
            check(ruling["right"] == "A" and ruling["b"]["reason"] == "output 0", f"{what}: {ruling}")
    # A truncated answer that claims to end by a stop text, which cannot be checked with this
    # tokenizer.
    for name, n in (("whole", 6), ("cut", 4)):
        make(folder, name, "--max-new-tokens", n, "--stop", "zebra", dump=False)
    for tokenizer, says in (("", "nothing ends it"), ("ab" * 32, "does not have the model's tokenizer")):
        def change(body):
            body["sampling"]["max_new_tokens"] = 6
            body["output"]["finish_reason"] = "stop"
            body["tokenizer_sha256"] = tokenizer or body["tokenizer_sha256"]
        rewrite(folder, "cut", "form", change)
        both = with_receipts(folder, "whole", "form")
        found = answer("dispute", "--a", folder / "whole.trace", "--b", folder / "cut.trace", "--claim", claim, "--model",
                       SAMPLE, *both, code=1)
        check(found["wrong"] == ["B"] and says in found["reason_b"], f"{found}")
        ruling = answer("referee", claim, SAMPLE, *both, code=0)
        check(ruling["right"] == "A" and says in ruling["b"]["reason"], f"{ruling}")
    # Both parties continue after the stop text.
    for name in ("whole", "cut"):
        def beyond(body):
            body["sampling"].update(stop=[" there"], max_new_tokens=20)
            body["output"]["finish_reason"] = "stop"
        rewrite(folder, name, f"{name}-beyond", beyond)
    both = with_receipts(folder, "cut-beyond", "whole-beyond")
    found = answer("dispute", "--a", folder / "cut.trace", "--b", folder / "whole.trace", "--claim", claim, "--model",
                   SAMPLE, *both, code=1)
    check(found["wrong"] == ["A", "B"], f"{found}")
    ruling = answer("referee", claim, SAMPLE, *both, code=1)
    check(ruling["right"] == "neither" and all("continues after token" in ruling[k]["reason"] for k in "ab"), f"{ruling}")


def versions(folder, about):
    """Only ree-receipt/1 counts the bytes that a prompt's last tokens begin as text of the answer.
    Each answer ends by its own receipt's version: neither version makes the party with the other
    version wrong, or hides a lie."""
    vocabulary = json.loads((SAMPLE / "tokenizer.json").read_text())["model"]["vocab"]
    prompt = ",".join(str(i) for i in (5, 6, vocabulary["\u00e2"], vocabulary["\u0124"]))  # bytes e2 82 at the end
    stop, claim = "\ufffd", folder / "claim.json"
    for name, n in (("new", 6), ("old", 1)):
        made = run(SAMPLE, "--prompt-ids", prompt, "--device", "cpu", "--ignore-eos", "--max-new-tokens", n, "--stop", stop,
                   "--trace", folder / f"{name}.trace", "--receipt-path", folder / f"{name}.json")
        check(made.returncode == 0, made.stderr)

    def old(body, text=""):
        body["sampling"]["max_new_tokens"] = 6
        body["prompt"]["text"] = body["prompt"]["text"].rstrip(stop)
        body["output"].update(text=text, finish_reason="stop")
    rewrite(folder, "old", "old-1", old, "ree-receipt/1")
    done = run("verify", folder / "old-1.json", SAMPLE, "--ignore-eos")
    check(done.returncode == 3 and "differs" not in done.stdout, done.stdout)
    for a, b in (("new", "old"), ("old", "new")):
        both = [x for k, name in (("a", a), ("b", b))
                for x in (f"--{k}-receipt", folder / f"{'old-1' if name == 'old' else name}.json")]
        traces = ["dispute", "--a", folder / f"{a}.trace", "--b", folder / f"{b}.trace", "--claim", claim, "--model", SAMPLE]
        found = answer(*traces, *both, code=1)
        check(not found["wrong"] and "schema differs" in found["undecided"], f"{found}")
        refused("referee", claim, SAMPLE, *both, says="schema differs")
    # The same tokens in version 2 have no end. An older receipt must be right by its own version.
    rewrite(folder, "old", "old-2", old)
    rewrite(folder, "old", "old-3", lambda body: old(body, "x"), "ree-receipt/1")
    request = folder / "request.json"
    run("request", SAMPLE, "--prompt-ids", prompt, "--max-new-tokens", 6, "--stop", stop, "--output", request)
    traces = ["dispute", "--a", folder / "new.trace", "--b", folder / "old.trace", "--claim", claim, "--model", SAMPLE]
    for name, says in (("old-2", "nothing ends it"), ("old-3", "text of its answer")):
        found = answer(*traces, *with_receipts(folder, "new", name), code=1)
        check(found["wrong"] == ["B"] and says in found["reason_b"], f"{name}: {found}")
    refused(*traces, *with_receipts(folder, "new", "old-1"), "--request", request, says="it does not answer", code=3)


def same_root(folder, about):
    """Receipts of one trace that differ in fields that a trace does not contain."""
    dispute = ["dispute", "--a", folder / "clean.trace", "--b", folder / "clean.trace", "--claim", folder / "claim.json",
               "--model", SAMPLE]
    found = answer(*dispute, *with_receipts(folder, "clean", "clean"), code=0)
    check(found["result"] == "same" and not found["receipts_differ"] and not found["wrong"], f"{found}")
    for change, names, says in (
            (lambda body: body["output"].update(finish_reason="interrupted"), ["finish_reason"], "ends by \"length\""),
            (lambda body: body["output"].update(text="another"), ["text of the answer"], "text of its answer"),
            (lambda body: body["sampling"].update(eos=[1, 639]), ["eos"], None)):
        rewrite(folder, "clean", "form", change)
        both = with_receipts(folder, "clean", "form")
        found = answer(*dispute, *both, code=3 if says else 2)
        check(found["result"] == "same" and found["receipts_differ"] == names and
              found["wrong"] == (["B"] if says else []) and (says or "") in found.get("reason_b", ""), f"{found}")
        text = run(*dispute, *both).stdout
        check(f"fields that a trace does not contain: {', '.join(names)}\n" in text and ("B is wrong" in text) == bool(says), text)


def private(folder, about):
    """Roots of private receipts are blinded; the salt opens them."""
    for name, args in (("hidden", []), ("forged-hidden", ["--inject-fault", "20:5:3"])):
        made = run(SAMPLE, *PROMPT, *about["args"], "--trace", folder / f"{name}.trace", "--receipt-path",
                   folder / f"{name}.json", "--private", *args)
        check(made.returncode == 0, made.stderr)
    both, claim = with_receipts(folder, "hidden", "forged-hidden"), folder / "claim.json"
    answer("dispute", "--a", folder / "hidden.trace", "--b", folder / "forged-hidden.trace", "--claim", claim, "--model",
           SAMPLE, *both, code=1)
    decide = ["referee", claim, SAMPLE, "--inputs", folder / "values", *both]
    ruling = answer(*decide, code=0)
    check(ruling["right"] == "A" and ruling["bound"], f"{ruling}")
    salt = folder / "hidden.json.salt"
    salt.rename(folder / "salt")
    refused(*decide, says="its salt is required")
    answer(*decide, "--a-salt", folder / "salt", code=0)
    refused(*decide, "--a-salt", folder / "forged-hidden.json.salt", says="salt of another receipt")
    (folder / "salt").rename(salt)

    # A token: receipts that do not contain their tokens need them from files.
    receipt = json.loads((folder / "clean.json").read_text())["body"]
    ids = receipt["prompt"]["tokens"] + receipt["output"]["tokens"]
    place, step = len(receipt["prompt"]["tokens"]) + 3, about["n_steps"] - (len(receipt["output"]["tokens"]) - 1) + 3
    files = {}
    for name, change in (("hidden", 0), ("forged-hidden", 1)):
        told = [*ids[:place], ids[place] + change, *ids[place + 1:]]
        files[name] = folder / f"{name}.ids"
        files[name].write_text(", ".join(map(str, told)) + "\n")
        if not change:
            continue
        forged = Trace(folder / "hidden.trace")
        forged.set(step, about["tokens"], tensor_i64([told[place]]))
        blind = json.loads((folder / "hidden.json").read_text())
        opened = bytes.fromhex(salt.read_text().strip())
        output = told[len(receipt["prompt"]["tokens"]):]
        root = forged.save(folder / "forged-hidden.trace")
        body = blind["body"]
        del body["tokenizer_sha256"], body["prompt"]["text_sha256"], body["output"]["text_sha256"]
        for part, key, digest in (
                (body["output"], "tokens_sha256",
                 hashlib.sha256(b"ree-tokens/1\0" + struct.pack(f"<{len(output)}i", *output)).digest()),
                (body["trace"], "root", bytes.fromhex(root))):
            part[key] = hashlib.sha256(b"ree-blind/1\0" + opened + digest).hexdigest()
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        blind["receipt_hash"] = hashlib.sha256(b"ree-receipt/2\0" + text.encode()).hexdigest()
        (folder / "forged-hidden.json").write_text(json.dumps(blind))
        (folder / "forged-hidden.json.salt").write_text(salt.read_text())
    tokens = ["--a-tokens", files["hidden"], "--b-tokens", files["forged-hidden"]]
    found = answer("dispute", "--a", folder / "hidden.trace", "--b", folder / "forged-hidden.trace", "--claim", claim,
                   "--model", SAMPLE, *both, *tokens, code=1)
    check(found["result"] == "input" and found["input"] == "input_ids", f"{found}")
    refused(*decide, says="--a-tokens")
    # A party that withholds its tokens is named as one that does not answer.
    traces = ["dispute", "--a", folder / "hidden.trace", "--b", folder / "forged-hidden.trace", "--claim",
              folder / "withheld.json", "--model", SAMPLE, *both]
    for given, k in ((tokens[:2], "B"), (tokens[2:], "A")):
        lines = folder / "withheld.jsonl"
        found = answer(*traces, *given, "--transcript", lines, code=3)
        check(found["result"] == "silent" and found["liar"] == k and f"--{k.lower()}-tokens" in found["reason"], f"{found}")
        check(json.loads(lines.read_text().splitlines()[-1])["named"] == k, "the transcript names it")
        refused("referee", claim, SAMPLE, *both, *given, says=f"{k} withholds the tokens")
    check(not (folder / "withheld.json").exists(), "there is no claim")
    refused(*traces, *tokens[:2], "--b-tokens", files["hidden"], says="B's receipt: the passed tokens are not the receipt's", code=3)
    found = answer(*traces, code=1)
    check(not found["wrong"] and "both parties withhold the tokens" in found["undecided"], f"{found}")
    ruling = answer(*decide, *tokens[2:], code=0)  # B's own logits and tokens are enough
    check(ruling["right"] == "A" and "logits choose" in ruling["b"]["reason"], f"{ruling}")
    same = ["dispute", "--a", folder / "hidden.trace", "--b", folder / "hidden.trace", "--claim", folder / "withheld.json",
            "--model", SAMPLE, *with_receipts(folder, "hidden", "hidden")]
    found = answer(*same, code=2)
    check(found["result"] == "same" and found["withheld"] == ["A", "B"], f"{found}")
    found = answer(*same, *tokens[:2], "--b-tokens", files["hidden"], code=0)
    check(found["result"] == "same" and not found["withheld"], f"{found}")
    refused(*decide, *tokens[:2], "--b-tokens", files["hidden"], says="not the receipt's")
    ruling = answer(*decide, *tokens, code=0)
    check(ruling["right"] == "A" and "logits choose" in ruling["b"]["reason"], f"{ruling}")
    (folder / "bad.ids").write_text("1,2,x")
    refused(*decide, "--a-tokens", folder / "bad.ids", says="token 2 is not an integer")


def once(folder):
    """A model that runs once: its inputs are those that the receipts state."""
    for name, picture in (("seven", SEVEN), ("five", FIVE)):
        made = run(DIGITS, "--input", picture, "--device", "cpu", "--trace", folder / f"{name}.trace", "--receipt-path",
                   folder / f"{name}.json", "--dump-tensors", ".", "--dump-folder", folder / f"{name}-values")
        check(made.returncode == 0, made.stderr)
    claim = folder / "claim.json"
    traces = ["dispute", "--a", folder / "seven.trace", "--b", folder / "five.trace", "--claim", claim]
    refused(*traces, "--model", DIGITS, *with_receipts(folder, "seven", "five"), says="different runs: inputs differs")
    # B computed something else than its receipt says.
    seven, five = (json.loads((folder / f"{name}.json").read_text()) for name in ("seven", "five"))
    five["body"]["inputs"] = seven["body"]["inputs"]
    both = with_receipts(folder, "seven", "five")
    for version in (2, 1):
        for name, receipt in (("seven", seven), ("five", five)):
            receipt["schema"] = f"ree-receipt/{version}"
            (folder / f"{name}.json").write_text(json.dumps(sealing.seal(receipt)))
        found = answer(*traces, "--model", DIGITS, *both, code=1)
        check(found["result"] == "input" and found["wrong"] == (["B"] if version == 2 else []), f"version {version}: {found}")
        if version == 2:
            check(answer("referee", claim, DIGITS, *both, code=0)["right"] == "A", "the claim shows it")
    # Receipts of version 1 hash NaNs as they are, so only the floats themselves show it.
    refused("referee", claim, DIGITS, *both, says="does not follow from the receipt")
    ruling = answer("referee", claim, DIGITS, *both, "--inputs", folder / "seven-values", code=0)
    check(ruling["right"] == "A", f"{ruling}")
    refused("referee", claim, DIGITS, *both, "--inputs", folder / "five-values", says="not the receipt's input")


def main():
    global ree_run
    parser = harness.parser()
    parser.add_argument("--liars", required=True)
    parser.add_argument("--short", action="store_true", help="tell fewer random lies")
    options = parser.parse_args()
    ree_run = options.ree_run
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        args = ["--prefill-chunk", "4", "--max-new-tokens", "12"]
        make(folder, "clean", *args)
        about = answer("trace", folder / "clean.trace", code=0)
        header = json.loads(Trace(folder / "clean.trace").header)
        inputs = header["inputs"]
        about.update(args=args, tokens=next(i for i, x in enumerate(inputs) if x["name"] == "input_ids"),
                     cache=next(i for i, x in enumerate(inputs) if x.get("cache_axis", -1) >= 0))
        liars(options.liars, SAMPLE, folder, *(["--short"] if options.short else []))
        rules(folder, options.liars)
        for part in (forged_cache, forged_token, forged_header, forged_length, stopped, forged_node, requested, forms, versions,
                     same_root, private):
            part(folder, about)
        once(folder)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
