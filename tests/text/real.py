#!/usr/bin/env python3
"""Real vocabularies, if present: results of other implementations recorded for GPT-2, Qwen 2 and
Llama 2, and the tokens of a small Llama's texts; the same vocabulary as tokenizer.json, as
vocab.json with merges.txt, and as a tiktoken file."""

import argparse
import base64
import json
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

import pipe
import texts


def recorded(folder, name, tokenizer):
    """Compares the strings of an .inp file with the recorded ids of the .out file."""
    marks = "\n__ggml_vocab_test__\n"
    with open(folder / f"{name}.inp", encoding="utf-8", newline="") as file:
        strings = file.read().split(marks)
    ids = [[int(word) for word in line.split()]
           for line in (folder / f"{name}.out").read_text().split("\n")]
    check(len(strings) == len(ids) == 47, f"{name}: {len(strings)} strings, {len(ids)} lines")
    right = 0
    for text, want in zip(strings, ids):
        got = tokenizer.encode(text)
        check(got == want, f"{name}: {text!a} gives {got}, not {want}")
        right += got == want
        check(tokenizer.decode(got) == text, f"{name}: {text!a} does not come back")
    print(f"{name}: {right} of {len(ids)} as recorded")


def letter(byte):
    """Returns GPT-2's character for a byte."""
    if 33 <= byte <= 126 or 0xA1 <= byte <= 0xAC or byte >= 0xAE:
        return chr(byte)
    return chr(0x100 + byte) if byte <= 32 else chr(0x121 + byte - 127) if byte <= 160 else chr(0x143)


BYTES = {letter(b): b for b in range(256)}


def write_tiktoken(path, vocab):
    with open(path, "w", encoding="ascii") as file:
        for piece, rank in sorted(vocab.items(), key=lambda item: item[1]):
            data = bytes(BYTES[c] for c in piece)
            file.write(f"{base64.b64encode(data).decode()} {rank}\n")


def gpt2(program, folder, work):
    whole = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    # This file has additional tokens for runs of spaces, which the recorded ids do not use.
    whole["added_tokens"] = [t for t in whole["added_tokens"] if t["id"] < 50257]
    vocab = {k: v for k, v in whole["model"]["vocab"].items() if v < 50256}
    (work / "vocab.json").write_text(json.dumps({**vocab, "<|endoftext|>": 50256}))
    (work / "merges.txt").write_text("#version: 0.2\n" + "\n".join(whole["model"]["merges"]) + "\n",
                                     encoding="utf-8")
    config = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "added_tokens_decoder": {
        "50256": {k: v for k, v in whole["added_tokens"][0].items() if k != "id"}}}
    (work / "tokenizer_config.json").write_text(json.dumps(config))
    write_tiktoken(work / "gpt2.tiktoken", vocab)
    text = texts.mixed(3, 100000)
    with pipe.Tokenizer(program, whole) as a, pipe.Tokenizer(program, work) as b, \
            pipe.Tokenizer(program, work / "gpt2.tiktoken") as c:
        recorded(folder, "ggml-vocab-gpt-2.gguf", a)
        recorded(folder, "ggml-vocab-gpt-2.gguf", b)
        recorded(folder, "ggml-vocab-gpt-2.gguf", c)
        check(a.sha256 == b.sha256, "GPT-2: tokenizer.json and vocab.json differ in their hash")
        ids = a.encode(text)
        check(ids == b.encode(text) == c.encode(text), "GPT-2: the three files differ on mixed text")
        check(a.decode(ids) == text, "GPT-2: mixed text does not come back")
        check(c.encode("a<|endoftext|>", pipe.PARSE_SPECIAL) == [64, 50256], "tiktoken's special token")
    # The layout of the JSON does not change the hash; every change that affects tokens does.
    turned = dict(reversed(whole.items()))
    turned["model"] = {**whole["model"], "vocab": dict(reversed(whole["model"]["vocab"].items())),
                       "merges": [m.split(" ") for m in whole["model"]["merges"]]}
    with pipe.Tokenizer(program, turned) as d:
        check(a.sha256 == d.sha256, "GPT-2: the hash depends on the layout")
    merges = whole["model"]["merges"]
    merges[100], merges[101] = merges[101], merges[100]
    with pipe.Tokenizer(program, whole) as d:
        check(a.sha256 != d.sha256, "GPT-2: the hash does not see the order of merges")
    (work / "unknown.tiktoken").write_bytes((work / "gpt2.tiktoken").read_bytes())
    (work / "tokenizer_config.json").unlink()
    try:
        pipe.Tokenizer(program, work / "unknown.tiktoken").close()
        check(False, "a tiktoken file that does not say how to cut is taken")
    except pipe.Failure as failure:
        check("the pre-tokenizer is unknown" in str(failure), str(failure))


def qwen2(program, folder, work):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(folder / name, work / name)
    shutil.copyfile(folder / "tokenizer_config.qwen2.5.json", work / "tokenizer_config.json")
    write_tiktoken(work / "qwen.tiktoken", json.loads((work / "vocab.json").read_text("utf-8")))
    text = texts.mixed(4, 100000)
    with pipe.Tokenizer(program, work) as a, pipe.Tokenizer(program, work / "qwen.tiktoken") as b:
        recorded(folder, "ggml-vocab-qwen2.gguf", a)
        ids = a.encode(text)
        check(ids == b.encode(text), "Qwen 2: tiktoken and vocab.json differ on mixed text")
        check(a.family == "qwen2.5", f"Qwen 2.5's chat template is taken for {a.family}")
        prompt = a.chat([{"role": "user", "content": "Hi"}])
        check(a.encode(prompt, pipe.PARSE_SPECIAL)[:3] == [151644, 8948, 198], "Qwen 2.5's prompt")
        check(prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"), prompt)


def stories(program, folder):
    golden = folder / "golden"
    with pipe.Tokenizer(program, folder) as tokenizer:
        check(tokenizer.vocab_size == 512, "stories260K has 512 tokens")
        files = sorted(golden.glob("*.tokens.txt"))
        check(files, "no golden tokens")
        for path in files:
            ids = [int(word) for word in path.read_text().replace(",", " ").split()]
            text = path.with_name(path.name.replace(".tokens", "")).read_text(encoding="utf-8")
            body = ids[1:] if ids[0] == 1 else ids
            got = tokenizer.decode(body)
            # The recorded text ends with the last chosen token, which the ids do not contain.
            check(len(got) > 100 and text.startswith(got), f"{path.name}: {got!a} is not {text!a}")
            check(tokenizer.decode(tokenizer.encode(got)) == got, f"{path.name} does not come back")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipe", required=True)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    options = parser.parse_args()
    folder = options.shared / "tokenizers"
    if not folder.is_dir():
        print(f"skipped: no real vocabularies in {options.shared}")
        return 77
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        gpt2(options.pipe, folder / "gpt2", pathlib.Path(one))
        qwen2(options.pipe, folder / "qwen2", pathlib.Path(two))
    with pipe.Tokenizer(options.pipe, folder / "llama2") as tokenizer:
        recorded(folder / "llama2", "ggml-vocab-llama-spm.gguf", tokenizer)
    if (options.shared / "models" / "stories260K").is_dir():
        stories(options.pipe, options.shared / "models" / "stories260K")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
