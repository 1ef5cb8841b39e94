#!/usr/bin/env python3
"""The Python package: generation by steps, and export of checkpoints.

    PYTHONPATH=build/python tests/python/decoding.py
"""
import gc
import os
import pathlib
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import warnings

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402

try:
    import numpy as np
except ImportError:
    harness.skip("NumPy is not installed")
import ree  # noqa: E402

STORIES, PROMPT = SAMPLE / "stories", "Once upon a time"
HOW = {"temperature": 0.9, "top_p": 0.9, "seed": 11}


def continued(sequence, logits, n, **how):
    """Chooses and appends n tokens; returns their ids."""
    ids = []
    for _ in range(n):
        ids.append(sequence.choose(logits, **how))
        logits = sequence.append(ids[-1:])
    return ids


def test_same_tokens(generator):
    prompt = generator.tokenizer.encode(PROMPT)
    for how in ({}, HOW):
        expected = generator.generate(PROMPT, max_new_tokens=20, ignore_eos=True, **how).ids
        with generator.decoding() as decoding:
            sequence = decoding.add()
            logits = sequence.append(prompt)
            check(logits.shape == (generator.vocab_size,) and logits.dtype == np.float32, f"{logits.shape}")
            ids = continued(sequence, logits, 20, **how)
            check(ids == expected, f"{how}: {ids}, not {expected}")
            check(sequence.ids == prompt + ids and len(sequence) == len(prompt) + 20, "its tokens")
            # The prompt in pieces; a fork; forced tokens.
            pieces = decoding.add(prompt[:2])
            fork = pieces.fork()
            logits_of_pieces = [pieces.append(prompt[2:3]), pieces.append(prompt[3:])][-1]
            check(logits_of_pieces.tobytes() == logits.tobytes(), "the same logits in pieces")
            check(fork.ids == prompt[:2] and fork.append(prompt[2:]).tobytes() == logits.tobytes(), "a fork")
            every = decoding.add().append(prompt + ids, logits="all")
            check(every.shape == (len(prompt) + 20, generator.vocab_size), f"{every.shape}")
            check(every[len(prompt) - 1].tobytes() == logits.tobytes(), "all logits of one call")
            fork.truncate(1)
            check(fork.append(prompt[1:]).tobytes() == logits.tobytes(), "after truncate")


def test_batches(generator):
    texts = [PROMPT, "Nils", "The fox had a"]
    expected = [generator.generate(text, max_new_tokens=8, ignore_eos=True).ids for text in texts]
    with generator.decoding() as decoding:
        sequences = [decoding.add() for _ in texts]
        logits = decoding.run({s: generator.tokenizer.encode(t) for s, t in zip(sequences, texts)})
        made = [[] for _ in texts]
        for _ in range(8):
            for ids, sequence in zip(made, sequences):
                ids.append(sequence.choose(logits[sequence]))
            logits = decoding.run({sequence: ids[-1:] for ids, sequence in zip(made, sequences)})
        check(made == expected, f"{made}, not {expected}")
        kept = logits[sequences[0]].copy()
        decoding.run({sequences[1]: [5]})
        check(logits[sequences[0]].tobytes() == kept.tobytes(), "logits stay after the next call")
        check(decoding.run({sequences[2]: [5]}, logits=None) == {sequences[2]: None}, "without logits")
        check(decoding.run({}) == {}, "nothing to run")
        # Logits that the program changes: a token that may not be chosen.
        most = int(kept.argmax())
        check(sequences[0].choose(kept) == most, "the most likely token")
        kept[most] = -np.inf
        check(sequences[0].choose(kept) == int(kept.argmax()) != most, "the next one")


def test_errors(generator):
    with generator.decoding() as decoding, generator.decoding() as other:
        sequence = decoding.add([1, 2])
        before = decoding.stats()["n_tokens"]
        for ids in ([], [10 ** 6], [-1], [1] * 10 ** 4):
            with fails(ree.InvalidError):
                sequence.append(ids)
        with fails(TypeError, "Tokenizer.encode"):
            sequence.append("12")
        with fails(OverflowError):
            sequence.append([2 ** 40])
        with fails(ree.InvalidError, "another ree.Decoding"):
            other.run({sequence: [1]})
        with fails(ValueError, "'last', 'all' or None"):
            sequence.append([1], logits="some")
        with fails(ree.InvalidError):
            sequence.truncate(3)
        check(sequence.ids == [1, 2] and decoding.stats()["n_tokens"] == before, "unchanged")
        logits = sequence.append([3])
        for wrong in (logits[:-1], logits.astype("f8"), np.stack([logits, logits])):
            with fails(ree.InvalidError, "float32"):
                sequence.choose(wrong)
        with fails(ree.InvalidError, "top_p"):
            sequence.choose(logits, top_p=2)
        with fails(ree.InvalidError):
            sequence.choose(np.full_like(logits, np.nan))
        with fails(TypeError):
            sequence.choose(logits, beam=3)
        with fails(TypeError, "cannot be pickled"):
            pickle.dumps(decoding)
    with fails(ree.Error, "the decoding is closed"):
        sequence.append([1])
    with generator.decoding(max_cache_bytes=1) as small:
        with fails(MemoryError):
            small.add([1, 2])


def test_lifetime():
    """Sequences, decodings and generators that are dropped in any order."""
    generator = ree.Generator(STORIES)
    decoding = generator.decoding()
    first, second = decoding.add([1, 2]), decoding.add([1])
    check(decoding.stats()["n_sequences"] == 2, "two sequences")
    del first
    gc.collect()
    check(decoding.stats()["n_sequences"] == 1, "a sequence that is dropped is removed")
    del generator, decoding
    gc.collect()
    check(second.append([2]).shape == (second.decoding.vocab_size,), "a sequence keeps all that it needs")
    second.cycle = second
    del second
    gc.collect()
    generator = ree.Generator(STORIES)
    sequence = generator.decoding().add([1, 2])
    generator.close()
    with fails(ree.Error, "closed"):
        sequence.append([1])


def test_interrupt(generator):
    with generator.decoding() as decoding:
        sequence = decoding.add([1])
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            for _ in range(2000):
                sequence.truncate(1)
                sequence.append([5] * 200)
            check(False, "Ctrl-C did not end the run")
        except KeyboardInterrupt:
            check(True, "")
        timer.join()
        sequence.truncate(1)
        check(sequence.append([5]).size == generator.vocab_size, "usable after Ctrl-C")


def test_export(generator):
    expected = generator.generate(PROMPT, max_new_tokens=10, ignore_eos=True)
    folder = pathlib.Path("stories")
    shutil.copytree(STORIES, folder)
    seen = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ree.export(folder, progress=lambda what, done, total: seen.append(what))
    check(not warned, f"{[str(w.message) for w in warned]}")
    made = ree.generate(folder / "model.onnx", PROMPT, max_new_tokens=10, ignore_eos=True)
    check(made.ids == expected.ids, "the exported file")
    check(ree.Model(folder / "model.onnx").weights_sha256 == ree.Model(folder).weights_sha256, "and its hashes")
    ree.export(folder, "copy.onnx", colocate_tensors=True, quantize_bits=8, activations="bfloat16")
    check(os.path.getsize("copy.onnx.data") > 100000, "with its weights")
    quantised = ree.Model("copy.onnx")
    check(quantised.graph_sha256 != ree.Model(folder).graph_sha256, "quantised")
    with fails(ree.InvalidError):
        ree.export(folder, "model.txt")
    with fails(ree.InvalidError):
        ree.export(folder, "x.onnx", quantize_bits=3)
    with fails(ValueError, "'float17'"):
        ree.export(folder, "x.onnx", activations="float17")
    with fails(ree.NotFoundError):
        ree.export("nothing")
    check(not os.path.exists("x.onnx"), "no file after a failure")


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    with ree.Generator(STORIES) as shared:
        for name, test in list(globals().items()):
            if name.startswith("test_") and name != "test_lifetime":
                test(shared)
    test_lifetime()
    os.chdir("/")
sys.exit(harness.finish())
