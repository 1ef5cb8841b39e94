#!/usr/bin/env python3
"""ree-run perplexity, compared with the same figures computed here from the logits: those of a model
whose logits are a table, and those that 'ree-run run' computes with the sample model. The scores have
recorded bits on every device, for every division of the work."""

import array
import functools
import json
import math
import pathlib
import random
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
VOCAB = 640
# SHA-256 of the scores of text(), without and with a comparison (test_bits). Every device and compiler gives them.
ALONE = "c8fc4ccff807add6d51bfa171264162839755cecdb00f26300d5268a6c12863b"
# Quantised layers compared with the checkpoint, by --quantize-table.
COMPARED = {"8": "e1a1465b91f78b9aa12fd27a64240dfcb6b062b15c493e8e4477de17d7d97db3",
            "keep": "5d1dab17781f30f78044923044960baf2e2074c7a0e7c76c06597a3cf73aaf08"}
# ree and this test take exponentials and logarithms that are within an ulp, and add in other orders:
# some hundred roundings of 2^-53 in a log probability.
TOLERANCE = 1e-12

ree_run = work = None
device = []


def run(*args, **options):
    return harness.call(ree_run, *args, **options)


@harness.helper
def perplexity(*args):
    done = run("perplexity", *args, *device, "--json")
    if not check(done.returncode == 0, f"{args}: {done.stderr}"):
        sys.exit(1)
    return json.loads(done.stdout)


@harness.helper
def fails(args, *messages, code=1):
    done = run("perplexity", *args)
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stderr}")
    check(not done.stdout, f"{args}: no result")
    for message in ("ree-run: ", *messages):
        check(message in done.stderr, f"{args}: '{message}' is not in: {done.stderr}")


def text():
    """About 300 tokens, the same each time."""
    who, where = ("Nils", "Mia", "the fox", "a boy"), ("in the castle", "by the lake", "here")
    what = ("drum", "boat", "key")
    lines, state = [], 1
    for _ in range(22):
        state = (state * 1103515245 + 12345) % 2**31
        a, b, c = state >> 8, state >> 12, state >> 16
        lines.append(f"Once {who[a % 4]} lived {where[b % 3]}. He looked for a round {what[c % 3]}.")
    return "\n".join(lines)


def encode(path):
    return json.loads(run("tokenize", STORIES, "--file", path, "--json").stdout)["ids"]


# The definition. Rows are sequences of floats; computed values are kept, because rows of tables recur.

class Row:
    def __init__(self, logits):
        self.logits = logits
        self.divergences = {}

    @functools.cached_property
    def logprobs(self):
        most = max(self.logits)
        total = math.log(math.fsum(math.exp(x - most) for x in self.logits))
        return [x - most - total for x in self.logits]

    @functools.cached_property
    def top(self):
        return self.logprobs.index(max(self.logprobs))

    def divergence(self, reference):
        if reference not in self.divergences:
            pairs = zip(self.logprobs, reference.logprobs)
            self.divergences[reference] = math.fsum(math.exp(q) * (q - p) for p, q in pairs if math.exp(q) > 0)
        return self.divergences[reference]


def windows(n, context, score, stride=None):
    """Lists (begin, first scored, end) for each window."""
    found = []
    if score == "half":
        length = min(n, context)
        for begin in range(0, n - length + 1, length):
            found.append((begin, begin + min(length // 2 + 1, length - 1), begin + length))
        return found
    before = 0
    for begin in range(0, n, stride or context):
        end = min(begin + context, n)
        if max(before, begin + 1) < end:
            found.append((begin, max(before, begin + 1), end))
        before = end
        if end == n:
            break
    return found


def mean_and_error(values):
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean)**2 for v in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def prediction(scores):
    nll, error = mean_and_error(scores)
    return {"nll": nll, "nll_error": error, "perplexity": math.exp(nll), "perplexity_error": math.exp(nll) * error}


def expected(ids, parts, rows, reference=None):
    """The figures for windows `parts`. rows(window) returns the rows of logits after each token of the
    window but its last; `reference` is the same for the other model."""
    scores, others, divergences, same = [], [], [], 0
    for begin, first, end in parts:
        own, other = rows((begin, end)), reference and reference((begin, end))
        for t in range(first, end):
            p = own[t - begin - 1]
            scores.append(-p.logprobs[ids[t]])
            if not other:
                continue
            q = other[t - begin - 1]
            others.append(-q.logprobs[ids[t]])
            divergences.append(p.divergence(q))
            same += p.top == q.top
    out = {"scored_tokens": len(scores), "windows": len(parts), "model": prediction(scores)}
    if not reference:
        return out
    out["against"] = prediction(others)
    ratio, ratio_error = mean_and_error([a - b for a, b in zip(scores, others)])
    mean, error = mean_and_error(divergences)
    divergences.sort()
    quantiles = {f"{q / 1000:g}": divergences[-(-len(divergences) * q // 1000) - 1] for q in (500, 900, 950, 990, 999)}
    out["comparison"] = {"log_ratio": ratio, "log_ratio_error": ratio_error, "divergence": mean,
                         "divergence_error": error, "max_divergence": divergences[-1], "same_top": same,
                         "divergence_quantiles": quantiles}
    return out


@harness.helper
def equal(found, wanted, what):
    for key, value in wanted.items():
        if isinstance(value, dict):
            equal(found[key], value, f"{what}, {key}")
        elif isinstance(value, int):
            check(found[key] == value, f"{what}: {key} is {found[key]}, expected {value}")
        else:
            check(abs(found[key] - value) <= TOLERANCE * max(1, abs(value)),
                  f"{what}: {key} is {found[key]!r}, expected {value!r}")


# Models whose row of logits after token i is row i of a table

def table(seed, vocab=VOCAB):
    values, state = [], seed
    for _ in range(vocab * vocab):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(((state >> 40) - 2**23) / 2**20)  # -8 to 8, exact in float32
    return values


def write_model(path, values, vocab=VOCAB, ahead=False):
    nodes = [onnx.node("Gather", ["table", "input_ids"], ["rows" if ahead else "logits"])]
    if ahead:  # every row gets the largest logits of all rows
        nodes += [onnx.node("ReduceMax", ["rows"], ["most"], attributes={"axes": [1]}),
                  onnx.node("Add", ["rows", "most"], ["logits"])]
    path.write_bytes(onnx.model(nodes, [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])],
                                [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", vocab])],
                                [onnx.floats("table", [vocab, vocab], values)]))
    return path


def rows_of(values, ids):
    kept = {i: Row(values[i * VOCAB:(i + 1) * VOCAB]) for i in set(ids)}

    def with_bos(bos):
        def rows(window):
            begin, end = window
            return [kept[i] for i in [ids[0] if bos else ids[begin], *ids[begin + 1:end - 1]]]
        return rows
    return with_bos


def test_tables(path, ids):
    a, b = table(1), table(2)
    b = [x + y / 8 for x, y in zip(a, b)]
    b = list(array.array("f", b))  # rounded as in the file
    one, other = write_model(work / "a.onnx", a), write_model(work / "b.onnx", b)
    a_rows, b_rows = rows_of(a, ids), rows_of(b, ids)
    more = ["--text", path, "--tokenizer", STORIES]
    n = len(ids)
    for args, context, score, stride, limit in (
            ([], 512, "half", None, None), (["--context", 64], 64, "half", None, None),
            (["--context", 2], 2, "half", None, None), (["--context", 33, "--windows", 2], 33, "half", None, 2),
            (["--score", "half", "--context", n], n, "half", None, None), (["--score", "all"], 512, "all", None, None),
            (["--score", "all", "--context", n - 1], n - 1, "all", None, None),
            (["--score", "all", "--context", 50], 50, "all", None, None),
            (["--score", "all", "--context", 40, "--stride", 13], 40, "all", 13, None),
            (["--score", "all", "--context", 40, "--stride", 40, "--windows", 3], 40, "all", 40, 3)):
        parts = windows(n, context, score, stride)[:limit]
        bos = score == "half"
        found = perplexity(one, "--against", other, *more, *args)
        equal(found, expected(ids, parts, a_rows(bos), b_rows(bos)), f"{args}")
        check(found["text_tokens"] == n and found["bos"] and found["context"] == context, f"{args}: about the text")
        alone = perplexity(one, *more, *args)
        check({**alone["model"], **times(found["model"])} == found["model"], f"{args}: alone as in a comparison")
    check("why_not_causal" not in found["model"], "each row depends on its token only")
    # A context of any length takes no more memory than the text. The model file sets no maximum.
    # A sanitizer needs more address space than --max-memory allows.
    limit = [] if b"__asan_init" in pathlib.Path(ree_run).read_bytes() else ["--max-memory", "1G"]
    longest = perplexity(one, *more, "--context", 2**31 - 1, *limit)
    check(longest["scores_sha256"] == perplexity(one, *more)["scores_sha256"], "a context longer than the text")


def test_pieces(path):
    """The sample model returns its logits chunk by chunk, a table those of the whole window at once."""
    for pair in ([STORIES, "--against", work / "a.onnx"], [work / "a.onnx", "--against", STORIES]):
        usual = [*pair, "--text", path, "--tokenizer", STORIES, "--context", 90]
        whole, pieces = perplexity(*usual), perplexity(*usual, "--prefill-chunk", 7)
        check(whole["scores_sha256"] == pieces["scores_sha256"], f"{pair}: pieces of different lengths")


def write_checkpoint(folder, vocab):
    """A Llama of one layer with random weights and a large vocabulary."""
    shapes = {"model.embed_tokens": (vocab, 16), "model.norm": (16,)}
    for name, shape in (("input_layernorm", (16,)), ("post_attention_layernorm", (16,)), ("self_attn.q_proj", (16, 16)),
                        ("self_attn.k_proj", (8, 16)), ("self_attn.v_proj", (8, 16)), ("self_attn.o_proj", (16, 16)),
                        ("mlp.gate_proj", (16, 16)), ("mlp.up_proj", (16, 16)), ("mlp.down_proj", (16, 16))):
        shapes[f"model.layers.0.{name}"] = shape
    header, data, rng = {}, bytearray(), random.Random(1)
    for name, shape in shapes.items():
        # bfloat16 numbers from 0.5 to 2, of both signs: any low byte, then a sign and the exponent's high bits
        values = bytearray(rng.randbytes(2 * math.prod(shape)))
        values[1::2] = bytes(b & 0x80 | 0x3F for b in values[1::2])
        place = [len(data), len(data) + len(values)]
        header[f"{name}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": place}
        data += values
    head = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16, "intermediate_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": vocab,
        "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "tie_word_embeddings": True, "hidden_act": "silu"}))
    return folder


def test_large_vocabulary(path):
    """ree holds at most 64 MiB of logits, 139 rows of this vocabulary, so it divides longer runs. The
    scores do not change."""
    model = write_checkpoint(work / "large", 120000)
    usual = [model, "--text", path, "--tokenizer", STORIES, "--context", 400, "--windows", 1]
    for more in ([], ["--score", "all"]):
        whole, pieces = perplexity(*usual, *more), perplexity(*usual, *more, "--prefill-chunk", 100)
        check(whole["scores_sha256"] == pieces["scores_sha256"], f"{more}: a chunk whose logits are limited")
        check(whole["scored_tokens"] == (399 if more else 199), f"{more}: {whole['scored_tokens']} scored tokens")
        check(whole["vocab_size"] == 120000, "the vocabulary")


def times(figures):
    return {key: figures[key] for key in ("seconds", "tokens_per_second")}


def test_special(path):
    """Logits without probabilities, excluded tokens, a model that looks ahead."""
    more = ["--text", path, "--tokenizer", STORIES]
    values = table(1)
    ids = encode(path)
    good = write_model(work / "good.onnx", values)
    at = ids[200] * VOCAB  # the row after a scored token
    for name, wrong in (("nan", math.nan), ("infinite", math.inf)):
        changed = values.copy()
        changed[at + 5] = wrong
        bad = write_model(work / f"{name}.onnx", changed)
        fails([bad, *more], f"{name}.onnx", "no probabilities", "token", "of the text")
        fails([good, "--against", bad, *more], f"{name}.onnx", "no probabilities")
    nothing = values.copy()
    nothing[at:at + VOCAB] = [-math.inf] * VOCAB
    fails([write_model(work / "nothing.onnx", nothing), *more], "nothing.onnx", "no probabilities")
    # The model excludes a token of the text, which the reference does not.
    excluded = values.copy()
    excluded[at + ids[201]] = -math.inf
    found = perplexity(write_model(work / "excluded.onnx", excluded), "--against", good, *more)
    check(found["model"]["perplexity"] is None and found["model"]["nll_error"] is None, "an infinite perplexity")
    check(found["against"]["perplexity"] > 1, "the other is finite")
    check(found["comparison"]["max_divergence"] is None, "an infinite divergence")
    check(found["comparison"]["divergence_quantiles"]["0.5"] == 0, "most rows are equal")
    done = run("perplexity", work / "excluded.onnx", *more)
    check("perplexity  inf +/- nan" in done.stdout, f"as text: {done.stdout}")
    # The reference excludes it: the divergence is finite.
    found = perplexity(good, "--against", work / "excluded.onnx", *more)
    check(found["comparison"]["max_divergence"] > 0, "a finite divergence")
    ahead = write_model(work / "ahead.onnx", values, ahead=True)
    done = run("perplexity", ahead, *more, "--json")
    check("not proved" in done.stderr and "ahead.onnx" in done.stderr, f"a note: {done.stderr}")
    check("ReduceMax" in json.loads(done.stdout)["model"]["why_not_causal"], "in JSON, too")


# The sample model

def npy(path, form, shape, values):
    head = repr({"descr": {"q": "<i8", "f": "<f4"}[form], "fortran_order": False, "shape": shape}).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                     + struct.pack(f"<{len(values)}{form}", *values))
    return path


def read_floats(path):
    data = path.read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return array.array("f", data[start:])


def logits_of(model, ids):
    """The rows of logits after all ids, by one run of the exported model."""
    n = len(ids)
    inputs = [f"input_ids={npy(work / 'ids.npy', 'q', (1, n), ids)}",
              f"position_ids={npy(work / 'at.npy', 'q', (1, n), range(n))}"]
    empty = npy(work / "empty.npy", "f", (1, 2, 0, 32), [])
    inputs += [f"past_key_values.{layer}.{kind}={empty}" for layer in range(4) for kind in ("key", "value")]
    done = run("run", model, *[part for name in inputs for part in ("--input", name)], "--output-dir", work / "out")
    if done.returncode:
        sys.exit(done.stderr)
    values = read_floats(work / "out" / "logits.npy")
    return [Row(values[i * VOCAB:(i + 1) * VOCAB]) for i in range(n)]


def test_sample(path, ids):
    models = [work / "f32.onnx", work / "q4.onnx"]
    for model, more in zip(models, ([], ["--quantize", 4])):
        harness.run(ree_run, "export", STORIES, "-o", model, "--colocate-tensors", *more)

    def rows(model, bos):
        def of_window(window):
            begin, end = window
            return logits_of(model, [ids[0] if bos else ids[begin], *ids[begin + 1:end - 1]])
        return of_window

    for args, context, score, stride in ((["--context", 100], 100, "half", None),
                                         (["--context", 128, "--score", "all", "--stride", 64], 128, "all", 64)):
        parts, bos = windows(len(ids), context, score, stride), score == "half"
        found = perplexity(STORIES, "--quantize", 4, "--against", STORIES, "--text", path, *args)
        equal(found, expected(ids, parts, rows(models[1], bos), rows(models[0], bos)), f"the sample, {args}")
        exported = perplexity(models[1], "--against", models[0], "--tokenizer", STORIES, "--text", path, *args)
        check(exported["scores_sha256"] == found["scores_sha256"], "exported files as a folder")
        check(exported["comparison"] == found["comparison"], "the same figures")


def test_precisions(path):
    """A model does not diverge from itself; the fewer bits, the more it diverges."""
    same = perplexity(STORIES, "--against", STORIES, "--text", path)["comparison"]
    tokens = same.pop("same_top")
    check(tokens > 100 and not any(same.pop("divergence_quantiles").values()), "no divergence at any token")
    check(not any(same.values()), f"no divergence: {same}")
    quantised = {}
    for bits in (8, 4):
        found = perplexity(STORIES, "--quantize", bits, "--against", STORIES, "--text", path)
        quantised[bits] = found["comparison"]["divergence"]
        check(found["model"]["quantize"] == bits and found["model"]["block"] == 32, "the quantisation is in the report")
        check("quantize" not in found["against"], "of MODEL only")
        check(found["model"]["weight_bytes"] < found["against"]["weight_bytes"], "fewer bytes")
    check(0 < quantised[8] < quantised[4], f"divergences {quantised}")
    other = perplexity(STORIES, "--against", STORIES, "--against-quantize", 8, "--against-block", 16, "--text", path)
    check(other["against"]["quantize"] == 8 and other["against"]["block"] == 16, "of MODEL2")
    check("quantize" not in other["model"] and other["comparison"]["divergence"] > 0, "of MODEL2 only")


def test_bits(path, variants, is_short=False):
    for more in variants:
        for table, recorded in COMPARED.items():
            both = perplexity(STORIES, "--quantize", 4, "--quantize-table", table, "--against", STORIES, "--text", path,
                              "--context", 64, "--windows", 2, *more)
            check(both["scores_sha256"] == recorded, f"{table}, {more}: scores {both['scores_sha256']}, recorded {recorded}")
        if is_short:
            continue
        alone = perplexity(STORIES, "--text", path, "--context", 128, *more)
        check(alone["scores_sha256"] == ALONE, f"{more}: scores {alone['scores_sha256']}, recorded {ALONE}")


def test_texts(path):
    """Forms of the text, and reports."""
    content = path.read_text()
    piped = run("perplexity", STORIES, "--text", "-", "--json", input=content)
    usual = perplexity(STORIES, "--text", path)
    check(json.loads(piped.stdout)["scores_sha256"] == usual["scores_sha256"], "standard input")
    report = run("perplexity", STORIES, "--quantize", 4, "--against", STORIES, "--text", path).stdout
    for words in ("model   ", "quantised to 4 bits", "against ", "perplexity", "divergence", "(99.9 %)",
                  "same most likely token", "tokens with BOS", "scores  SHA-256 ", "device  "):
        check(words in report, f"'{words}' is not in {report}")
    special = work / "special.txt"
    special.write_text("The fox <|begin|> and")
    check(perplexity(STORIES, "--text", special)["text_tokens"] > 8, "special tokens in a text are ordinary text")
    short = work / "short.txt"
    short.write_text("a")
    found = perplexity(STORIES, "--text", short)
    check(found["scored_tokens"] == 1 and found["model"]["nll_error"] is None, f"one scored token: {found}")
    text_help = run("help", "perplexity").stdout
    for words in ("--against-quantize BITS", "--stride N", "llama.cpp", "Hugging", "exit status: 0"):
        check(words in text_help, f"'{words}' is not in the help")


def test_errors(path):
    usual = [STORIES, "--text", path]
    empty = work / "empty.txt"
    empty.write_text("")
    fails([STORIES, "--text", empty], "empty.txt: the text is empty")
    fails([STORIES, "--text", work / "nothing.txt"], "nothing.txt")
    fails([STORIES, "--text", work], "not a regular file")
    fails([STORIES], "no text given", code=2)
    fails(["--text", path], "no model given", code=2)
    fails([*usual, "--stride", 4], "--stride requires --score all", code=2)
    fails([*usual, "--score", "all", "--context", 4, "--stride", 5], "--stride 5 is longer than --context 4", code=2)
    fails([*usual, "--score", "all", "--stride", 513], "a stride of 513 tokens is longer than the context of 512")
    fails([*usual, "--context", 1], "--context requires", code=2)
    fails([*usual, "--context", 513], "a context of 513 tokens", "stories has at most 512")
    fails([*usual, "--score", "most"], "--score requires half or all, not 'most'", code=2)
    fails([*usual, "--against-quantize", 4], "--against-quantize requires --against", code=2)
    fails([*usual, "--against", STORIES, "--against-block", 16], "--against-block requires --against-quantize", code=2)
    fails([*usual, "--block", 16], "--block requires --quantize", code=2)
    fails([*usual, "--quantize-table", 4], "--quantize-table requires --quantize", code=2)
    fails([*usual, "--against", STORIES, "--against-quantize-table", 8],
          "--against-quantize-table requires --against-quantize", code=2)
    fails([*usual, "--windows", 0], "--windows requires", code=2)
    fails([work / "a.onnx", "--text", path], "no tokenizer")
    fails([work / "a.onnx", "--text", path, "--tokenizer", work / "a.onnx"], "a.onnx")
    fails([work / "a.onnx", "--quantize", 4, "--tokenizer", STORIES, "--text", path], "a.onnx",
          "not a folder with a Hugging Face checkpoint")
    fails([HERE.parents[1] / "tools" / "sample" / "digits.onnx", "--text", path, "--tokenizer", STORIES], "digits.onnx")
    small = write_model(work / "small.onnx", table(1, 64), 64)
    vocabularies = ("the vocabulary of", "stories has 640 tokens", "same vocabulary")
    fails([*usual, "--against", small], *vocabularies, "small.onnx has 64")
    fails([small, "--text", path, "--tokenizer", STORIES], "small.onnx: token 1 is 440", "has 64 tokens")
    larger = write_model(work / "larger.onnx", table(1, 641), 641)
    fails([*usual, "--against", larger], *vocabularies, "larger.onnx has 641")
    # A tokenizer without BOS, and one token.
    letters = HERE.parent / "data" / "tokenizers" / "byte_level.json"
    one = work / "one.txt"
    one.write_text("a")
    fails([STORIES, "--text", one, "--tokenizer", letters], "one.txt: the text has 1 token, but at least 2")
    # Two folders with different tokenizers.
    other = work / "other"
    other.mkdir()
    for name in ("config.json", "model.safetensors"):
        (other / name).write_bytes((STORIES / name).read_bytes())
    found = perplexity(other, "--against", STORIES, "--text", path)
    check(found["comparison"]["divergence"] == 0, "the tokenizer of MODEL2")
    (other / "tokenizer.json").write_bytes(letters.read_bytes())
    fails([*usual, "--against", other], "the tokenizers in", "differ", "--tokenizer")
    found = perplexity(*usual, "--against", other, "--tokenizer", STORIES)
    check(found["comparison"]["divergence"] == 0, "a tokenizer by its path")


def main():
    global ree_run, work, device
    arguments = harness.parser(__doc__)
    arguments.add_argument("--device")
    arguments = arguments.parse_args()
    ree_run = arguments.ree_run
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        path = work / "text.txt"
        path.write_text(text())
        if arguments.device:
            harness.need_device(ree_run, arguments.device)
            device = ["--device", arguments.device]
            test_bits(path, ([],), is_short=True)
        else:
            ids = encode(path)
            test_bits(path, (["--threads", 1], ["--threads", 2], ["--cpu-isa", "portable"], ["--no-fuse", "--no-fold"],
                             ["--prefill-chunk", 7], ["--n-partitions", 3], ["--max-device-memory", "2M"]))
            test_tables(path, ids)
            test_pieces(path)
            test_large_vocabulary(path)
            test_special(path)
            test_sample(path, ids)
            test_precisions(path)
            test_texts(path)
            test_errors(path)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
