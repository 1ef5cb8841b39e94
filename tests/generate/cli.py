#!/usr/bin/env python3
"""Text generation with ree-run: prompts in every form, stop texts, reports, interruption, and
messages for invalid input. Uses the sample model of tools/sample."""

import hashlib
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
PROMPT = "Once upon a time"

ree_run = None


def run(*args):
    return harness.call(ree_run, *args)


@harness.helper
def generate(*args):
    done = run(SAMPLE, *args, "--json")
    check(done.returncode == 0, f"{args}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else {}


@harness.helper
def fails(args, *messages, code=1):
    done = run(*args)
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stderr}")
    check(done.stderr.startswith("ree-run: "), f"{args}: starts with the name: {done.stderr!r}")
    for message in messages:
        check(message in done.stderr, f"{args}: '{message}' is not in: {done.stderr}")


def forms_of_prompts(folder):
    alone = generate("--prompt-text", PROMPT, "--max-new-tokens", 12)
    ids = ",".join(map(str, alone["prompt_tokens"]))
    check(generate("--prompt-ids", ids, "--max-new-tokens", 12)["tokens"] == alone["tokens"], "ids instead of text")
    lines = folder / "prompts.txt"
    lines.write_text(f"{PROMPT}\n\nThe fox\n")
    several = generate("--prompt-file", lines, "--max-new-tokens", 12)["sequences"]
    check([s["prompt"] for s in several] == [PROMPT, "The fox"], "one prompt per line")
    check(several[0]["tokens"] == alone["tokens"], "together as alone")
    jsonl = folder / "prompts.jsonl"
    jsonl.write_text("\n".join([json.dumps(PROMPT), json.dumps({"prompt": "The fox"}),
                                json.dumps({"ids": alone["prompt_tokens"]})]))
    mixed = generate("--prompt-file", jsonl, "--max-new-tokens", 12)["sequences"]
    check([s["tokens"] for s in mixed] == [several[0]["tokens"], several[1]["tokens"], alone["tokens"]], "JSON lines")
    small = generate("--prompt-file", jsonl, "--max-new-tokens", 12, "--batch-size", 2)["sequences"]
    check(small == mixed, "two at a time")
    raw = generate("--prompt-text", "<|begin|>" + PROMPT, "--raw-prompt", "--max-new-tokens", 12)
    check(raw["prompt_tokens"] == alone["prompt_tokens"], "special tokens written in the text")
    explicit = generate("--prompt-text", PROMPT, "--max-new-tokens", 12, "--tokenizer", SAMPLE / "tokenizer.json")
    check(explicit["tokens"] == alone["tokens"], "a tokenizer by its path")


def whole_lines(folder):
    """No part of a line is ignored: neither text after a value nor text after a NUL."""
    path = folder / "lines.txt"
    for line in ('"Hello," said the fox.', '{"prompt": "a"} b', '"a" "b"', '{"prompt": "a"'):
        path.write_text(f"{PROMPT}\n{line}\n")
        fails([SAMPLE, "--prompt-file", path], "lines.txt, line 2", "must be one JSON value")
    path.write_text('"\\"Hello,\\" said the fox." \n')
    check(generate("--prompt-file", path, "--max-new-tokens", 1)["prompt"] == '"Hello," said the fox.', "a quotation")
    tokens = []
    for text in ("The fox\0 and", json.dumps("The fox\0 and"), json.dumps({"prompt": "The fox\0 and"})):
        path.write_text(text)
        result = generate("--prompt-file", path, "--max-new-tokens", 1)
        check(result["prompt"] == "The fox\ufffd and", f"{text!r}: {result['prompt']!r}")
        tokens.append(result["prompt_tokens"])
        shown = run(SAMPLE, "--prompt-file", path, "--prompt-text", "a", "--max-new-tokens", 1).stdout
        check("The fox\0 and" in shown, f"several, printed: {shown!r}")
    check(tokens[0] == tokens[1] == tokens[2], f"the same tokens: {tokens}")
    talks = []
    for content in ("The fox\0 and", "The fox\\u0000 and", "The fox"):
        messages = [{"role": "user", "content": content}]
        for option, text in (("--messages", messages), ("--prompt-file", {"messages": messages})):
            path.write_text(json.dumps(text))
            talks.append(tuple(generate(option, path, "--chat-family", "chatml", "--max-new-tokens", 1)["prompt_tokens"]))
    check(talks[0] == talks[1] and talks[2] == talks[3] and talks[4] == talks[5], "messages in both places")
    check(len(set(talks)) == 3, "and not the same for other texts")


def report():
    result = generate("--prompt-text", PROMPT, "--max-new-tokens", 12, "--logprobs", 3, "--logits-hash", "--stats")
    ids = result["prompt_tokens"] + result["tokens"]
    digest = hashlib.sha256(b"ree-tokens/1\0" + struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
    check(result["tokens_sha256"] == digest, "the hash of the tokens is that of NUMERICS.md")
    check(len(result["logits_sha256"]) == 64, "the hash of the logits")
    check(result["finish_reason"] == "length" and len(result["tokens"]) == 12, "12 tokens")
    check(len(result["logprobs"]) == 12, f"{len(result['logprobs'])} logprobs, one per token")
    for token, entry in zip(result["tokens"], result["logprobs"]):
        check(entry["id"] == token == entry["top"][0]["id"], "greedy takes the likeliest")
        logprobs = [t["logprob"] for t in entry["top"]]
        check(logprobs == sorted(logprobs, reverse=True) and logprobs[0] <= 0, f"in order: {logprobs}")
        check(entry["logprob"] == logprobs[0], "its own")
    check(result["stats"]["new_tokens"] == 12 and result["stats"]["binds"] <= 3, f"stats: {result['stats']}")
    check(generate("--prompt-text", PROMPT, "--max-new-tokens", 12)["logits_sha256"] is None, "no hash unless asked")
    text = run(SAMPLE, "--prompt-text", PROMPT, "--max-new-tokens", 12, "--logits-hash").stdout
    check(text.startswith(result["prompt"] + result["text"] + "\n"), f"the text comes first: {text!r}")
    check(result["tokens_sha256"] in text and result["logits_sha256"] in text and "tokens/s" in text, "then the report")
    bare = run(SAMPLE, "--prompt-text", PROMPT, "--max-new-tokens", 12, "--no-echo").stdout
    check(bare.startswith(result["text"]), "without the prompt")


def ends(folder):
    """A token that ends a text is listed once even if several files name it."""
    path = folder / "ends.json"
    generate("--prompt-text", PROMPT, "--max-new-tokens", 1, "--receipt-path", path)
    check(json.loads(path.read_text())["body"]["sampling"]["eos"] == [1], "one token ends a story")
    more = folder / "ends"
    shutil.copytree(SAMPLE, more)
    (more / "generation_config.json").write_text(json.dumps({"eos_token_id": [9, 1, 9, 5]}))
    done = run(more, "--prompt-text", PROMPT, "--max-new-tokens", 1, "--receipt-path", path)
    check(done.returncode == 0 and json.loads(path.read_text())["body"]["sampling"]["eos"] == [9, 1, 5],
          f"in their order: {done.stderr}")


def sampling():
    draws = {tuple(generate("--prompt-text", PROMPT, "--max-new-tokens", 16, "--temperature", 1.5, "--seed", s)["tokens"])
             for s in range(4)}
    check(len(draws) > 1, "seeds differ")
    again = [generate("--prompt-text", PROMPT, "--max-new-tokens", 16, "--temperature", 1.5, "--seed", 3)["tokens"]
             for _ in range(2)]
    check(again[0] == again[1] and tuple(again[0]) in draws, "the same seed, the same text")
    greedy = generate("--prompt-text", PROMPT, "--max-new-tokens", 16)["tokens"]
    check(generate("--prompt-text", PROMPT, "--max-new-tokens", 16, "--temperature", 1, "--top-k", 1)["tokens"] == greedy,
          "the first of one is the likeliest")
    check(generate("--prompt-text", PROMPT, "--max-new-tokens", 16, "--repetition-penalty", 5)["tokens"] != greedy,
          "the penalty does something")


def endings():
    long = generate("--prompt-text", PROMPT, "--max-new-tokens", 0)
    check(long["finish_reason"] == "eos", f"a story ends: {long['finish_reason']}")
    past = generate("--prompt-text", PROMPT, "--max-new-tokens", 0, "--ignore-eos")
    check(past["finish_reason"] == "length", "the context is full")
    check(len(past["prompt_tokens"] + past["tokens"]) == 512, "of 512 tokens")
    check(past["tokens"][:len(long["tokens"])] == long["tokens"], "which begin alike")
    words = long["text"].split()
    stop = words[4] + " " + words[5]
    cut = generate("--prompt-text", PROMPT, "--stop", stop, "--stop", "never found")
    check(cut["finish_reason"] == "stop" and cut["text"] == long["text"][:long["text"].index(stop)],
          f"ends before '{stop}': {cut['text']!r}")
    shown = run(SAMPLE, "--prompt-text", PROMPT, "--stop", stop).stdout
    check(shown.startswith(cut["prompt"] + cut["text"] + "\n"), f"and nothing of it is printed: {shown!r}")


def interrupted():
    process = subprocess.Popen([ree_run, str(SAMPLE), "--prompt-text", PROMPT, "--max-new-tokens", "0", "--ignore-eos",
                                "--no-fuse", "--threads", "1", "--cpu-isa", "portable"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.read(len(PROMPT) + 1)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    text = (first + rest).decode()
    check(process.returncode in (0, 130), f"exit code {process.returncode}: {errors}")
    check(text.startswith(PROMPT) and "SHA-256" in text, f"what was made is reported: {text!r}")
    if process.returncode == 130:
        check("finish  interrupted" in text, "and that it was interrupted")
    else:
        print("interrupted: it was done before the signal came")


def tables(vocab, size):
    """Small integers, so that sums are exact in any order."""
    embedding = [[(7 * i + 3 * k) % 11 - 5 for k in range(size)] for i in range(vocab)]
    head = [[(5 * i + 2 * k * k) % 13 - 6 for i in range(vocab)] for k in range(size)]
    return embedding, head


def continued(ids, n, embedding, head):
    """Returns greedy tokens of a model whose state is the sum of the embeddings so far."""
    ids = list(ids)
    for _ in range(n):
        state = [sum(embedding[i][k] for i in ids) for k in range(len(head))]
        logits = [sum(x * row[i] for x, row in zip(state, head)) for i in range(len(embedding))]
        ids.append(logits.index(max(logits)))
    return ids


def write_models(folder, vocab, embedding, head):
    """Writes a model without a cache, and the same model with a cache whose token axis is not the
    usual one: the cache grows by one row for each token."""
    size = len(head)
    weights = [onnx.floats("embedding", [vocab, size], [x for row in embedding for x in row]),
               onnx.floats("head", [size, vocab], [x for row in head for x in row]),
               onnx.tensor("one", onnx.INT64, [], struct.pack("<q", 1))]
    tokens = onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])
    logits = onnx.port("logits", onnx.FLOAT, ["batch", "sequence", vocab])
    plain = onnx.model([onnx.node("Gather", ["embedding", "input_ids"], ["x"]),
                        onnx.node("CumSum", ["x", "one"], ["sums"]),
                        onnx.node("MatMul", ["sums", "head"], ["logits"])], [tokens], [logits], weights)
    # The cache contains all embeddings so far; the sums of the new tokens are the last rows.
    cache = [onnx.tensor(name, onnx.INT64, [n], struct.pack(f"<{n}q", *values)) for name, n, values in
             [("axes", 1, [1]), ("flat", 3, [0, 0, size]), ("deep", 4, [0, 0, 1, size]), ("end", 1, [2**31])]]
    cached = onnx.model([onnx.node("Gather", ["embedding", "input_ids"], ["x"]),
                         onnx.node("Reshape", ["x", "deep"], ["x4"]),
                         onnx.node("Concat", ["past.0.key", "x4"], ["present.0.key"],
                                   attributes={"axis": 1}),
                         onnx.node("Reshape", ["present.0.key", "flat"], ["all"]),
                         onnx.node("CumSum", ["all", "one"], ["sums"]),
                         onnx.node("Shape", ["past.0.key"], ["shape"],
                                   attributes={"start": 1, "end": 2}),
                         onnx.node("Slice", ["sums", "shape", "end", "axes"], ["new"]),
                         onnx.node("MatMul", ["new", "head"], ["logits"])],
                        [tokens, onnx.port("past.0.key", onnx.FLOAT, ["batch", "past", 1, size])],
                        [logits, onnx.port("present.0.key", onnx.FLOAT, ["batch", "total", 1, size])],
                        weights + cache)
    paths = {}
    for name, model in (("plain", plain), ("cached", cached)):
        paths[name] = folder / f"{name}.onnx"
        paths[name].write_bytes(model)
    return paths


def models_of_others(folder):
    vocab, size = 17, 6
    embedding, head = tables(vocab, size)
    prompts = [[3, 5], [1], [8, 8, 2], [4, 16]]
    for name, path in write_models(folder, vocab, embedding, head).items():
        args = [a for p in prompts for a in ("--prompt-ids", ",".join(map(str, p)))]
        done = run(path, *args, "--max-new-tokens", 12, "--logits-hash", "--json")
        check(done.returncode == 0, f"{name}: {done.stderr}")
        if done.returncode:
            continue
        for prompt, sequence in zip(prompts, json.loads(done.stdout)["sequences"]):
            check(sequence["prompt_tokens"] + sequence["tokens"] == continued(prompt, 12, embedding, head),
                  f"{name}, {prompt}: {sequence['tokens']}")
        pieces = run(path, *args, "--max-new-tokens", 12, "--logits-hash", "--json", "--prefill-chunk", 1, "--no-fuse")
        hashes = [[s["logits_sha256"] for s in json.loads(text.stdout)["sequences"]] for text in (done, pieces)]
        check(hashes[0] == hashes[1], f"{name}: token by token")


def wrong_input(folder):
    text = ["--prompt-text", PROMPT]
    fails([folder / "nothing", *text], "nothing: no such file")
    fails([SAMPLE, "--prompt-ids", "1,640"], "no token 640")
    fails([SAMPLE, "--prompt-ids", "1,x"], "must be integers")
    fails([SAMPLE, "--prompt-ids", ""], "no tokens")
    fails([SAMPLE, "--prompt-ids", ",".join(["5"] * 512)], "has 512 tokens", "context is 512")
    fails([SAMPLE, "--messages", folder / "none.json"], "none.json")
    (folder / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    fails([SAMPLE, "--messages", folder / "chat.json"], "--raw-prompt")
    (folder / "bad.jsonl").write_text('"fine"\n{"prompt": 3}\n')
    fails([SAMPLE, "--prompt-file", folder / "bad.jsonl"], "bad.jsonl, line 2")
    (folder / "empty.txt").write_text("\n")
    fails([SAMPLE, "--prompt-file", folder / "empty.txt"], "no prompts")
    fails([SAMPLE, *text, "--temperature", "1e-30"], "temperature is 1e-30, expected 0, or 0.000001", code=2)
    for option, value in [("--temperature", "-1"), ("--top-p", "0"), ("--top-p", "x"), ("--min-p", "2"), ("--seed", "-1"),
                          ("--repetition-penalty", "0"), ("--stop", ""), ("--max-new-tokens", "many")]:
        fails([SAMPLE, *text, option, value], f"{option} requires", f"not '{value}'", code=2)
    fails(["generate", SAMPLE], "no prompt given", code=2)
    fails(["generate", *text], "no model given", code=2)
    digits = HERE.parents[1] / "tools" / "sample" / "digits.onnx"
    fails([digits, *text], "not a language model")
    # A folder without a tokenizer, or with an invalid one.
    bare = folder / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(SAMPLE / name, bare)
    fails([bare, *text], "tokenizer")
    check(run(bare, "--prompt-ids", "0,300", "--max-new-tokens", "3").returncode == 0, "ids need no tokenizer")
    fails([bare, "--prompt-ids", "1,640"], "token 1 of prompt 0 is 640", "vocabulary has 640")
    (bare / "tokenizer.json").write_text("{")
    fails([bare, *text], "tokenizer.json")
    (bare / "config.json").write_text("[]")
    fails([bare, "--prompt-ids", "0"], "config.json", "not a JSON object")
    genai = folder / "genai"
    genai.mkdir()
    (genai / "genai_config.json").write_text('{"model": {"decoder": {}}}')
    fails([genai, "--prompt-ids", "0"], "genai_config.json", "model.decoder.filename")
    (genai / "genai_config.json").write_text('{"model": {"decoder": {"filename": "../x.onnx"}}}')
    fails([genai, "--prompt-ids", "0"], "expected a file in this folder")
    for name in ("", ".", "..", "a/b"):
        (genai / "genai_config.json").write_text(json.dumps({"model": {"decoder": {"filename": name}}}))
        fails([genai, "--prompt-ids", "0"], f"filename is '{name}', expected a file in this folder")


def help_teaches():
    page = run("help", "generate").stdout
    for word in ("--prompt-text", "--temperature", "NUMERICS.md", "examples", "exit status"):
        check(word in page, f"'{word}' is in the help")
    check("--prompt-text" in run("--help").stdout, "the overview names it")


def main():
    global ree_run
    parser = harness.parser(__doc__)
    ree_run = parser.parse_args().ree_run
    with tempfile.TemporaryDirectory() as folder:
        forms_of_prompts(pathlib.Path(folder))
        whole_lines(pathlib.Path(folder))
        ends(pathlib.Path(folder))
        report()
        sampling()
        endings()
        interrupted()
        models_of_others(pathlib.Path(folder))
        wrong_input(pathlib.Path(folder))
        help_teaches()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
