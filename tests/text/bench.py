#!/usr/bin/env python3
"""Compares the speed of ree's tokenizers with Hugging Face's, one thread each: alternating runs,
medians of CPU time. Needs a Python with tokenizers (tools/test.sh makes build/oracle).

    build/oracle/bin/python tests/text/bench.py --bench build/tests/text/tokenizer_bench TOKENIZER...

TOKENIZER is a tokenizer.json or a folder with one. The texts: 1 MiB of mixed scripts, 1 MiB of
English (or --text FILE, of any size), and 1 MiB of a single word.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers
import texts

ENGLISH = ("It was the best of times, it was the worst of times; 12 of 300 people said they'd go, and "
           "in 1984 nobody's answer differed much from the others' (see chapter 4, page 77).\n")


def timed(action):
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def measure(path, text_path, bench, rounds):
    text = pathlib.Path(text_path).read_bytes().decode("utf-8")
    ours, theirs, tokens = [], [], 0
    for _ in range(rounds):
        line = subprocess.run([bench, path, text_path, "1"], check=True, capture_output=True).stdout
        line = json.loads(line)
        ours.append((line["load"], line["encode"], line["decode"]))
        load, tokenizer = timed(lambda: tokenizers.Tokenizer.from_file(path))
        tokenizer.encode_special_tokens = True
        encode, encoding = timed(lambda: tokenizer.encode(text, add_special_tokens=False))
        decode, _ = timed(lambda: tokenizer.decode(encoding.ids, skip_special_tokens=False))
        theirs.append((load, encode, decode))
        tokens = line["tokens"]
        if tokens != len(encoding.ids):
            print(f"  {tokens} tokens here, {len(encoding.ids)} there")
    return [statistics.median(column) for column in zip(*ours)], \
        [statistics.median(column) for column in zip(*theirs)], len(text.encode()), tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("tokenizers", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    mebibyte = 1 << 20
    inputs = {"mixed": texts.mixed(9, mebibyte), "english": (ENGLISH * 6000)[:mebibyte],
              "one word": "abcdefghij" * (mebibyte // 10)}
    if options.text:
        inputs["english"] = pathlib.Path(options.text).read_text(encoding="utf-8")
    print(f"tokenizers {tokenizers.__version__}; ratio: theirs over ours, above 1 ree is faster")
    for path in options.tokenizers:
        path = path / "tokenizer.json" if path.is_dir() else path
        print(path.parent.name)
        for name, text in inputs.items():
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                ours, theirs, size, tokens = measure(str(path), file.name, options.bench,
                                                     options.rounds)
            speed = size / ours[1] / mebibyte
            print(f"  {name:9} {tokens:7} tokens  encode {speed:6.1f} MiB/s, ratio "
                  f"{theirs[1] / ours[1]:5.1f}  decode {ours[2] * 1e3:6.1f} ms, ratio "
                  f"{theirs[2] / ours[2]:5.1f}  load {ours[0] * 1e3:6.1f} ms, ratio "
                  f"{theirs[0] / ours[0]:5.1f}")


if __name__ == "__main__":
    main()
