#!/usr/bin/env python3
"""The Python package generates what ree-run generates: hashes, batches, streams, chat, Ctrl-C.

    PYTHONPATH=build/python tests/python/generation.py --ree-run build/ree-run
"""
import json
import math
import os
import pathlib
import pickle
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402
import ree  # noqa: E402

PROMPT = "Once upon a time"


def of_ree_run(*options):
    """ree-run's answer: an object with ids, text, hashes."""
    return json.loads(harness.run(ree_run, STORIES, "--json", "--device", "cpu", *options))


@harness.helper
def same(made, said, options):
    check(made.tokens_sha256 == said["tokens_sha256"], f"{options}: tokens {made.tokens_sha256}, ree-run: {said}")
    check(made.finish == said["finish_reason"], f"{options}: {made.finish}, ree-run: {said['finish_reason']}")
    check(made.text == said["text"], f"{options}: {made.text!r}, ree-run: {said['text']!r}")
    if said["logits_sha256"]:
        check(made.logits_sha256 == said["logits_sha256"], f"{options}: logits")


def test_same_as_ree_run(generator):
    for options, flags in (({}, ["--logits-hash"]),
                           ({"max_new_tokens": 20, "ignore_eos": True}, ["--max-new-tokens", 20, "--ignore-eos"]),
                           ({"temperature": 0.9, "top_p": 0.9, "top_k": 40, "min_p": 0.01, "repetition_penalty": 1.1,
                             "seed": 2 ** 40 + 1, "max_new_tokens": 40},
                            ["--temperature", 0.9, "--top-p", 0.9, "--top-k", 40, "--min-p", 0.01,
                             "--repetition-penalty", 1.1, "--seed", 2 ** 40 + 1, "--max-new-tokens", 40]),
                           ({"stop": ["castle", "."]}, ["--stop", "castle", "--stop", "."])):
        made = generator.generate(PROMPT, **options)
        said = of_ree_run("--prompt-text", PROMPT, *map(str, flags))
        same(made, said, options)
        check(generator.tokenizer.encode(PROMPT) == made.prompt_ids, "the prompt's ids")
        check(generator.generate(made.prompt_ids, **options) == made, "a prompt of ids")
    check(made.finish == "stop" and not made.text.endswith("castle"), "stop texts are not part of the answer")
    # A batch, and the function that does all.
    texts = [PROMPT, "Nils", "The fox had a"]
    batch = generator.generate(texts, max_new_tokens=12)
    for text, made in zip(texts, batch):
        same(made, of_ree_run("--prompt-text", text, "--max-new-tokens", "12", "--logits-hash"), text)
    check(ree.generate(STORIES, texts[1], max_new_tokens=12).tokens_sha256 == batch[1].tokens_sha256, "ree.generate")


def test_stream(generator):
    whole = generator.generate(PROMPT)
    stream = generator.stream(PROMPT)
    parts = list(stream)
    check("".join(parts) == whole.text and len(parts) > 20 and stream.result == whole, "parts of a stream")
    check(list(stream) == [], "a stream ends once")
    received = {}
    batch = generator.generate([PROMPT, "Nils"], on_text=lambda i, part: received.setdefault(i, []).append(part))
    check([made.text for made in batch] == ["".join(received[0]), "".join(received[1])], "on_text in a batch")
    for part in generator.stream(PROMPT, max_new_tokens=400, ignore_eos=True):
        break
    began = time.monotonic()
    check(generator.generate(PROMPT) == whole, f"after a stream that was left at '{part}'")
    check(time.monotonic() - began < 30, "the stream that was left went on")
    with generator.stream(PROMPT, ignore_eos=True) as stream:
        next(stream)
    check(stream.result.finish == "interrupted" and len(stream.result.ids) < 400, f"closed: {stream.result}")
    with fails(ree.InvalidError, "top_p"):
        list(generator.stream(PROMPT, top_p=2))
    with fails(ZeroDivisionError):
        generator.generate(PROMPT, on_text=lambda i, part: 1 // 0)
    check(generator.generate(PROMPT) == whole, "after an exception of on_text")


def test_logprobs(generator):
    made = generator.generate(PROMPT, max_new_tokens=10, logprobs=3)
    check(len(made.logprobs) == len(made.ids) == 10, "one entry for each token")
    for token, (logprob, top) in zip(made.ids, made.logprobs):
        check(len(top) == 3 and top[0] == (token, logprob), f"greedy takes the most likely token: {top}")
        check(all(a[1] >= b[1] for a, b in zip(top, top[1:])), "in order")
        check(math.exp(top[0][1]) + math.exp(top[1][1]) <= 1.0001, "probabilities")
    check(generator.generate(PROMPT, max_new_tokens=2).logprobs is None, "without")


def test_tokenizer(generator):
    tokenizer = ree.Tokenizer(STORIES)
    for text in (PROMPT, "", "größer ☃ \0 end", " two  spaces"):
        ids = tokenizer.encode(text)
        check(ids == generator.tokenizer.encode(text), f"{text!r}")
        if "\0" not in text:
            said = json.loads(harness.run(ree_run, "tokenize", STORIES, "--json", "--text", text))
            check(said.get("ids", []) == ids, f"{text!r}: {ids}, ree-run: {said}")
        check(tokenizer.decode(ids, skip_special=True).strip() == text.strip(), f"{text!r} and back")
    check(tokenizer.bos == tokenizer.encode("a")[0], "bos")
    check(tokenizer.bos not in tokenizer.encode("a", add_special=False), "without bos")
    check(tokenizer.eos and tokenizer.vocab_size == generator.vocab_size and len(tokenizer.sha256) == 64, "facts")
    messages = [{"role": "user", "content": "Hello"}]
    check("chatml" in ree.chat_families(), f"{ree.chat_families()}")
    text = tokenizer.chat_prompt(messages, family="chatml")
    check(text == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", f"{text!r}")
    made = generator.generate(messages, chat_family="chatml", max_new_tokens=3)
    check(made.prompt_ids == tokenizer.encode(text, add_special=False, parse_special=True), "a conversation's ids")
    with fails(ree.NotFoundError, "no-family"):
        tokenizer.chat_prompt(messages, family="no-family")
    with fails(ree.InvalidError):
        tokenizer.decode([10 ** 6])
    with fails(ree.NotFoundError, "nothing"):
        ree.Tokenizer("nothing")
    for thing in (tokenizer, generator):
        with fails(TypeError, "cannot be pickled"):
            pickle.dumps(thing)


def test_errors(generator):
    with fails(ree.InvalidError, "top_p is 2"):
        generator.generate(PROMPT, top_p=2)
    with fails(ree.InvalidError):
        generator.generate([10 ** 6])
    for wrong in ([1.9, 2.2], ["a", 1]):
        with fails(TypeError):
            generator.generate(wrong)
    check(generator.generate(b"Once", max_new_tokens=2) == generator.generate("Once", max_new_tokens=2),
          "bytes are text")
    with fails(TypeError, "a text is expected"):
        generator.tokenizer.encode(5)
    with fails(TypeError, "on_text"):
        generator.stream(PROMPT, on_text=print)
    with fails(TypeError, "beam"):
        generator.generate(PROMPT, beam=3)
    with fails(TypeError, "one prompt"):
        generator.stream([PROMPT, PROMPT])
    with fails(ree.UnsupportedError):
        ree.Generator(STORIES.parent / "digits.onnx")
    with fails(ree.NotFoundError, "nothing"):
        ree.Generator("nothing")
    with ree.Device("cpu") as device:
        other = ree.Generator(STORIES, device)
        with fails(ree.Error, "open sessions"):
            device.close()
        other.close()
    with fails(ree.Error, "closed"):
        other.generate(PROMPT)


def test_interrupt(generator):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        for _ in range(200):
            generator.generate([PROMPT] * 8, max_new_tokens=400, ignore_eos=True)
        check(False, "Ctrl-C did not end the run")
    except KeyboardInterrupt:
        check(True, "")
    timer.join()
    check(generator.generate(PROMPT, max_new_tokens=5).finish == "length", "usable after Ctrl-C")


ree_run = harness.parser(__doc__).parse_args().ree_run
with ree.Generator(STORIES, all_logits=True) as shared:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(shared)
sys.exit(harness.finish())
