#!/usr/bin/env python3
"""Changes every field of a receipt to every plausible false value and seals it again: none
verifies.

A table has a row for each field of a body in receipt.schema.json; a field without a row fails the
test. Each changed receipt is consistent in itself: hashes that follow from the receipt are recomputed.
Expected results:

    DIFFERS   exit code 1, and one of the checks that the row names reports it
    REFUSED   exit code 2: it is not a valid receipt, or it cannot be checked
    PART      exit code 3: a check is reported as not made
    CHOICE    a parameter that the prover chooses. `generate` with the changed parameters decides: if
              it gives this very answer, the statement is true and must verify; otherwise it must
              differ

    forgery.py --ree-run build/ree-run [--lies 20] [--pairs 200]
"""

import concurrent.futures
import copy
import itertools
import json
import os
import pathlib
import random
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path[:0] = [str(HERE.parent / "receipt")]
import harness  # noqa: E402
import vectors  # noqa: E402  independent canonical JSON
from harness import check  # noqa: E402
from sealing import canonical, seal, sha  # noqa: E402

ROOT = HERE.parents[1]
STORIES = ROOT / "tools" / "sample" / "stories"
DIGITS, SEVEN = ROOT / "tools" / "sample" / "digits.onnx", ROOT / "tools" / "sample" / "seven.npy"
SCHEMA = ROOT / "src" / "receipt" / "receipt.schema.json"
VOCAB = len(json.loads((STORIES / "tokenizer.json").read_text())["model"]["vocab"])
DIFFERS, REFUSED, PART, CHOICE = "differs", "refused", "part", "choice"

args = None


def run(*arguments):
    return harness.call(args.ree_run, *arguments)


# False values for each type of field. `draw` is a random number generator.

def hashes(draw, value):
    yield ("1" if value[0] == "0" else "0") + value[1:]
    yield value[:-1] + ("1" if value[-1] == "0" else "0")
    yield "0" * 64
    while True:
        yield f"{draw.getrandbits(256):064x}"


def seeds(draw, value):
    for seed in (0, 1, int(value) ^ 1, 2**64 - 1, 2**63):
        yield str(seed)
    while True:
        yield str(draw.getrandbits(64))


def counts(draw, value):
    value = int(value)
    for n in (value - 1, value + 1, 0, 1, 2 * value, 2**31, 2**53 - 1):
        yield max(n, 0)
    while True:
        yield draw.randrange(0, 4 * value + 40)


def counts_above(most):
    def lies(draw, value):
        yield from (most + 1, 2**31, 2**32 - 1)
        while True:
            yield draw.randrange(most + 1, 2**32)
    return lies


def ids(draw, value):
    """Other lists of tokens: one changed, one added, one removed, two exchanged, or a different
    list."""
    while True:
        tokens = [int(i) for i in value]
        at = draw.randrange(len(tokens))
        how = draw.randrange(6)
        if how == 0:
            tokens[at] = (tokens[at] + 1 + draw.randrange(VOCAB - 1)) % VOCAB
        elif how == 1:
            tokens.insert(at, draw.randrange(VOCAB))
        elif how == 2:
            del tokens[at]
        elif how == 3:
            other = draw.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif how == 4:
            tokens.append(draw.randrange(VOCAB))
        else:
            tokens = tokens[:at]
        yield tokens


def texts(draw, value):
    """Other texts: a letter changed, a part, a beginning that is not there, a look-alike."""
    letters = "abcxyz .,\u00e9\u2603"
    while True:
        at = draw.randrange(len(value))
        how = draw.randrange(5)
        if how == 0:
            yield value[:at] + draw.choice(letters) + value[at + 1:]
        elif how == 1:
            yield value[:at] + value[at + 1:]
        elif how == 2:
            yield value[:at] + draw.choice(letters) + value[at:]
        elif how == 3:
            yield value + draw.choice(letters)
        else:
            yield value[:at]


def real(*values, low, high):
    binary32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]  # noqa: E731

    def lies(draw, value):
        yield from map(binary32, values)
        while True:
            yield binary32(draw.uniform(low, high))
    return lies


def words(*values):
    """These words, then random words."""
    def lies(draw, value):
        yield from values
        while True:
            yield "".join(draw.choice("abcdefghijklmnop/-1") for _ in range(draw.randrange(1, 12)))
    return lies


def stop_lists(draw, value):
    answer = drawn["body"]["output"]["text"]
    yield []
    yield value + ["never"]
    while True:
        at = draw.randrange(len(answer) - 3)
        yield draw.choice(([answer[at:at + 3]], value + [answer[at:at + 2]], ["\u2603" * draw.randrange(1, 9)],
                           [answer[at:at + 5], "qqq"]))


def end_lists(draw, value):
    tokens = [int(i) for i in drawn["body"]["output"]["tokens"]]
    yield [tokens[3]]
    yield [tokens[-1]]
    while True:
        yield sorted({draw.choice(tokens), draw.randrange(VOCAB)} | set(map(int, value)))


def ends_without_effect(draw, value):
    """Other lists with the same effect on each token of the answer: false all the same."""
    value, tokens = [*map(int, value)], [int(i) for i in drawn["body"]["output"]["tokens"]]
    foreign = [i for i in range(VOCAB) if i not in tokens and i not in value]
    kept = [i for i in value if i in tokens]
    yield from ([*value, foreign[0]], kept + foreign, kept + foreign[-1:])
    while True:
        yield sorted(kept + draw.sample(foreign, draw.randrange(1, 9)))


def finishes(draw, value):
    for reason in ("length", "eos", "stop", "interrupted"):
        if reason != value:
            yield reason
    yield from ("end", "", "Length", "error", None, 1)


def any_json(draw, value):
    while True:
        yield draw.choice((None, 1, "x", [], {}, [1], {"a": draw.randrange(99)}, True, {"salt_sha256": "0" * 63}))


# path -> (false values, expected result, checks of which one must report it), for the receipt `drawn`.
TEXT = {
    "kind": (words("tensors", "Text", "texts"), REFUSED, ()),
    "numerics": (words("RepOps/2", "RepOps/0", "repops/1"), REFUSED, ()),
    "operation_set": (words("deterministic", "default"), REFUSED, ()),
    "model.graph_sha256": (hashes, DIFFERS, ("graph",)),
    "model.weights_sha256": (hashes, DIFFERS, ("weights",)),
    "tokenizer_sha256": (hashes, DIFFERS, ("tokenizer",)),
    "prompt.tokens_sha256": (hashes, DIFFERS, ("prompt tokens",)),
    "prompt.n_tokens": (counts, REFUSED, ()),
    "prompt.text_sha256": (hashes, DIFFERS, ("prompt text",)),
    "prompt.tokens": (ids, DIFFERS, ("decoded prompt", "tokens", "logits", "finish", "counts", "context length")),
    "prompt.text": (texts, DIFFERS, ("decoded prompt",)),
    "sampling.temperature": (real(2e-6, 1e6, low=0.01, high=5), CHOICE, ("tokens", "parameters")),
    "sampling.top_k": (lambda draw, value: (n for n in counts(draw, value) if n < 2**32), CHOICE, ("tokens",)),
    "sampling.top_p": (real(1e-6, 1.0, low=0.01, high=1), CHOICE, ("tokens",)),
    "sampling.min_p": (real(0.0, 1.0, low=0, high=1), CHOICE, ("tokens",)),
    "sampling.repetition_penalty": (real(1.0, 1e6, low=0.1, high=3), CHOICE, ("tokens",)),
    "sampling.seed": (seeds, CHOICE, ("tokens",)),
    "sampling.max_new_tokens": (counts, CHOICE, ("finish", "counts")),
    "sampling.stop": (stop_lists, CHOICE, ("finish", "decoded answer")),
    "sampling.eos": (end_lists, DIFFERS, ("finish", "ends")),
    "sampling.context_length": (lambda draw, value: (n for n in counts(draw, value) if n), DIFFERS,
                                ("context length", "counts")),
    "output.tokens_sha256": (hashes, DIFFERS, ("output tokens",)),
    "output.n_tokens": (counts, REFUSED, ()),
    "output.text_sha256": (hashes, DIFFERS, ("output text",)),
    "output.finish_reason": (finishes, (DIFFERS, REFUSED), ("finish", "counts")),
    "output.logits_sha256": (hashes, DIFFERS, ("logits",)),
    "output.tokens": (ids, DIFFERS, ("tokens", "finish", "decoded answer", "ends")),
    "output.text": (texts, DIFFERS, ("decoded answer",)),
    "trace.root": (hashes, DIFFERS, ("trace",)),
    "trace.n_steps": (lambda draw, value: (n for n in counts(draw, value) if n), DIFFERS, ("trace",)),
    "trace.prefill_chunk": (lambda draw, value: iter((1, 2, 3, 63, 65, 127, 128, 512, *range(4, 40))), DIFFERS, ("trace",)),
    "private": (any_json, REFUSED, ()),
    "request_sha256": (hashes, DIFFERS, ("request",)),
    "extensions": (lambda draw, value: ({f"x{i}": draw.randrange(9)} for i in range(99)), PART, ("extension",)),
    "critical": (lambda draw, value: ([f"x{i}"] for i in range(99)), REFUSED, ()),
}
TENSORS = {
    "kind": TEXT["kind"], "numerics": TEXT["numerics"], "operation_set": TEXT["operation_set"],
    "model.graph_sha256": TEXT["model.graph_sha256"], "model.weights_sha256": TEXT["model.weights_sha256"],
    "inputs.0.name": (words("", "Image", "image "), (DIFFERS, REFUSED), ("input image",)),
    "inputs.0.sha256": (hashes, DIFFERS, ("input image",)),
    "outputs.0.name": (words("", "Digit"), DIFFERS, ("output",)),
    "outputs.0.sha256": (hashes, DIFFERS, ("output",)),
    "trace.root": TEXT["trace.root"], "trace.n_steps": TEXT["trace.n_steps"],
    "trace.prefill_chunk": (counts_above(0), REFUSED, ()),
    "extensions": TEXT["extensions"], "critical": TEXT["critical"],
}
# The fields that replace tokens and texts in a private receipt.
PRIVATE = {path: (hashes, DIFFERS, names) for path, names in {
    "prompt.tokens_sha256": ("prompt",), "prompt.text_sha256": ("decoded prompt",), "output.tokens_sha256": ("tokens",),
    "output.text_sha256": ("decoded answer",), "output.logits_sha256": ("logits",)}.items()} | {
    "private.salt_sha256": (hashes, REFUSED, ()),
    "prompt.n_tokens": (counts, DIFFERS, ("prompt", "counts")),
    "output.n_tokens": (counts, (DIFFERS, REFUSED), ("tokens", "counts", "finish")),
}

drawn = None  # the receipt that TEXT describes


def fields(schema, node, path=""):
    """Yields the paths of a body's fields."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    if "properties" in node:
        for name, child in node["properties"].items():
            if child is not False:
                yield from fields(schema, child, f"{path}{name}.")
    elif node.get("type") == "array" and "properties" in node.get("items", {}):
        yield from fields(schema, node["items"], f"{path}0.")
    else:
        yield path[:-1]


def walk(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def put(body, path, value):
    *outer, last = path.split(".")
    for key in outer:
        body = body[int(key)] if isinstance(body, list) else body.setdefault(key, {})
    body[int(last) if isinstance(body, list) else last] = value


# Further false values for fields of the table with another expected result. (verify.py tests a
# context of 0.)
WITHOUT_EFFECT = {"sampling.eos": (ends_without_effect, PART, ("ends",))}
OF_NO_RUN = {"trace.prefill_chunk": (lambda draw, value: itertools.chain((0,), counts_above(2**20)(draw, value)), REFUSED, ())}


def judge(body):
    """Runs `generate` with a receipt's prompt and parameters; returns the body of the honest
    receipt."""
    sampling = body["sampling"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "r.json")
        options = ["--max-new-tokens", int(sampling["max_new_tokens"]), "--temperature", repr(sampling["temperature"]),
                   "--top-k", min(int(sampling["top_k"]), 1 << 24), "--top-p", repr(sampling["top_p"]), "--min-p",
                   repr(sampling["min_p"]), "--repetition-penalty", repr(sampling["repetition_penalty"]), "--seed",
                   sampling["seed"]]
        for stop in sampling["stop"]:
            options += ["--stop", stop]
        done = run(STORIES, "--prompt-ids", ",".join(str(int(i)) for i in body["prompt"]["tokens"]), *options,
                   "--receipt-path", path)
        return vectors.parse(path.read_text())["body"] if done.returncode == 0 else None


def is_true(body):
    honest = judge(body)
    return honest is not None and all(honest["output"][key] == body["output"][key] for key in
                                      ("tokens", "text", "finish_reason"))


def tried(number, path, lie, row, model, options):
    """Tries one false value. Returns a description of the failure, or None."""
    _, outcome, named = row
    done = run("verify", write(number, lie), model, "--json", *options)
    code = done.returncode
    found = json.loads(done.stdout) if done.stdout else {"result": "no receipt", "checks": []}
    names = [c["name"] for c in found["checks"] if c["outcome"] == ("not checked" if code == 3 else "differs")]
    what = f"{path}: {code} {found['result']} {names} {done.stderr.strip()[:200]}"
    if outcome == CHOICE:
        outcome = "true" if is_true(lie["body"]) else DIFFERS
    codes = {DIFFERS: (1,), REFUSED: (2,), PART: (3,), "true": (0,)}
    allowed = sum((codes[o] for o in (outcome if isinstance(outcome, tuple) else (outcome,))), ())
    if code not in allowed:
        return f"{what}: expected {outcome}"
    if code in (1, 3) and not any(name.startswith(tuple(named)) for name in names):
        return f"{what}: expected one of {named}"
    return None


def write(number, lie):
    path = folder / f"{number}.json"
    path.write_text(canonical(lie))
    salt = folder / "private.json.salt"
    if "private" in lie["body"] and salt.exists():
        (folder / f"{number}.json.salt").write_text(salt.read_text())
    return path


def lies_of(name, table, receipt, draw, options):
    """Yields (path, lie, row, options) for each false value of each row of the table."""
    for path, row in table.items():
        try:
            value = walk(receipt["body"], path)
        except KeyError:
            value = None
        made, seen = 0, set()
        for change in row[0](draw, value):
            if made == args.lies:
                break
            lie = copy.deepcopy(receipt)
            put(lie["body"], path, change)
            if path == "critical":
                lie["body"]["extensions"] = {change[0]: 1}
            key = json.dumps(change)
            if key in seen and made < 6 or lie["body"] == receipt["body"]:
                continue
            if key in seen and len(seen) > 200:
                break
            seen.add(key)
            made += 1
            yield path, seal(lie, (path,)), row, options(path)
        check(made >= min(args.lies, 9), f"{name}: {path} has {made} lies")


def pairs(table, receipt, draw, n):
    """Two false values at a time, in fields that the prover may not choose: one of them must be
    reported."""
    paths = [p for p, row in table.items() if row[1] == DIFFERS and not p.startswith("trace") and p != "request_sha256"]
    for _ in range(n):
        lie = copy.deepcopy(receipt)
        chosen = draw.sample(paths, 2)
        named = ()
        for path in chosen:
            put(lie["body"], path, next(table[path][0](draw, walk(receipt["body"], path))))
            named += table[path][2]
        yield "+".join(chosen), seal(lie, chosen), (None, (DIFFERS, REFUSED), named), []


def make(path, *options):
    done = run(*options, "--receipt-path", path)
    if done.returncode != 0:
        sys.exit(f"FAILED: {options}: {done.stderr}")
    return vectors.parse(path.read_text())


def main():
    global args, folder, drawn
    parser = harness.parser(__doc__)
    sampled = "REE_TEST_SAMPLE" in os.environ
    parser.add_argument("--lies", type=int, default=9 if sampled else 20, help="number of lies about each field")
    parser.add_argument("--pairs", type=int, default=60 if sampled else 200)
    args = parser.parse_args()
    draw = random.Random(19)
    schema = json.loads(SCHEMA.read_text())
    for name, table in (("text_body", TEXT), ("tensors_body", TENSORS)):
        known = {path for path in fields(schema, schema["$defs"][name])}
        rows = {"private" if p.startswith("private") else p for p in table}
        missing = {"private" if p.startswith("private") else p for p in known} - rows
        check(not missing, f"{name}: fields without a row: {sorted(missing)}")
        check(rows <= {"private" if p.startswith("private") else p for p in known}, f"{name}: rows without a field: {rows - known}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ask = folder / "ask.json"
        text = [STORIES, "--prompt-text", "Once upon a time", "--max-new-tokens", 20, "--temperature", 0.9, "--top-k", 40,
                "--top-p", 0.95, "--min-p", 0.01, "--repetition-penalty", 1.1, "--seed", 7, "--stop", "zzz"]
        drawn = make(folder / "drawn.json", *text, "--logits-hash")
        traced = make(folder / "traced.json", *text, "--trace", folder / "t.trace")
        private = make(folder / "private.json", *text, "--logits-hash", "--private")
        check(run("request", STORIES, "--prompt-text", "Once upon a time", "--max-new-tokens", 6, "--temperature", 0.9,
                  "--output", ask).returncode == 0, "a request")
        asked = make(folder / "asked.json", STORIES, "--request", ask)
        tensors = make(folder / "tensors.json", DIGITS, "--input", SEVEN)
        tensors_traced = make(folder / "tensors-traced.json", DIGITS, "--input", SEVEN, "--trace", folder / "d.trace")

        def part(table, *prefixes):
            return {p: row for p, row in table.items() if p.startswith(prefixes)}

        def rest(table, *prefixes):
            return {p: row for p, row in table.items() if not p.startswith(prefixes)}

        numbers = iter(range(10**6))
        trace = lambda *more: lambda path: ["--trace", folder / f"n{next(numbers)}.trace", *more]  # noqa: E731
        given = lambda *options: lambda path: list(options)  # noqa: E731
        image = ["--input", SEVEN]
        jobs = [(STORIES, job) for job in (
            *lies_of("text", rest(TEXT, "trace", "request_sha256"), drawn, draw, given()),
            *lies_of("text without effect", WITHOUT_EFFECT, drawn, draw, given()),
            *lies_of("trace", part(TEXT, "trace"), traced, draw, trace()),
            *lies_of("trace of no run", OF_NO_RUN, traced, draw, trace()),
            *lies_of("request", part(TEXT, "request_sha256"), asked, draw, given("--request", ask)),
            *lies_of("private", PRIVATE, private, draw, given("--prompt-text", "Once upon a time")),
            *pairs(TEXT, drawn, draw, args.pairs))]
        jobs += [(DIGITS, job) for job in (
            *lies_of("tensors", rest(TENSORS, "trace"), tensors, draw, given(*image)),
            *lies_of("tensors' trace", part(TENSORS, "trace"), tensors_traced, draw, trace(*image)))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = [pool.submit(tried, i, path, lie, row, model, options)
                    for i, (model, (path, lie, row, options)) in enumerate(jobs)]
            for job in done:
                wrong = job.result()
                check(wrong is None, wrong)
        print(f"{len(jobs)} lies")
    return harness.finish()


sys.exit(main())
