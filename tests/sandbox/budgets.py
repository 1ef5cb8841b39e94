#!/usr/bin/env python3
"""--max-memory and --timeout: a command that exceeds a budget ends with a message that names the
budget, and with an exit code that cannot be mistaken for a result. It leaves no file."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
for folder in ("harness", "cli"):
    sys.path.insert(0, str(HERE.parent / folder))
import harness  # noqa: E402
from harness import check  # noqa: E402
import onnx_writer as onnx  # noqa: E402

ree_run = None
STORIES, DIGITS, SEVEN = SAMPLE / "stories", SAMPLE / "digits.onnx", SAMPLE / "seven.npy"


def run(*args, env=None, **options):
    return subprocess.run([ree_run, *map(str, args)], capture_output=True, text=True, cwd=work,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})), **options)


@harness.helper
def ends(args, code, *messages, **options):
    done = run(*args, **options)
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stderr}")
    for message in messages:
        check(message in done.stderr, f"{args}: '{message}' is not in: {done.stderr}")
    return done


def npy(path, descr, values, form):
    head = repr({"descr": descr, "fortran_order": False, "shape": (len(values),)}).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                     + struct.pack(f"<{len(values)}{form}", *values))


def test_options():
    for args, message in ((["--max-memory", "4X"], "requires a size such as 512M or 4G, not '4X'"),
                          (["--max-memory", ""], "requires a size"), (["--max-memory"], "requires a value"),
                          (["--timeout", "0"], "requires an integer from 1"),
                          (["--timeout=soon"], "requires an integer")):
        ends([DIGITS, *args], 2, message)
    done = run(DIGITS, "--input", SEVEN, "--max-memory", "1G", "--timeout=600")
    check(done.returncode == 0 and done.stdout, "enough of both")
    for command in ("run", "generate", "inspect", "export", "plan", "devices", "bench", "tokenize", "perplexity",
                    "validate", "verify", "keygen", "request", "compare", "diff", "dispute", "referee", "trace"):
        text = run("help", command).stdout
        status = 2 if command in ("validate", "verify", "compare", "diff", "dispute", "referee") else 124
        for words in ("--max-memory SIZE", f"exit status {status}\n", "--no-sandbox"):
            check(words in text, f"help {command}: {words}")


def test_memory():
    ends(["inspect", DIGITS, "--max-memory", "100K"], 1, "memory", "--max-memory is 100K")
    ends([DIGITS, "--input", SEVEN, "--max-memory", "100K"], 1, "memory", "--max-memory is 100K")
    ends([STORIES, "--prompt-text", "Once", "--max-memory", "1M"], 1, "memory", "--max-memory is 1M")
    # Memory may run out in the library or in a library that it uses.
    for size in ("2M", "4M", "6M", "8M"):
        ends([STORIES, "--prompt-text", "Once", "--max-memory", size], 1, f"--max-memory is {size}")
    # For a planned buffer the message contains its size.
    x, s = onnx.port("x", onnx.FLOAT, [1]), onnx.port("s", onnx.INT64, [2])
    z = onnx.port("z", onnx.FLOAT, ["a", "b"])
    (work / "big.onnx").write_bytes(onnx.model([onnx.node("Expand", ["x", "s"], ["z"])], [x, s], [z]))
    npy(work / "x.npy", "<f4", [1.0], "f")
    npy(work / "s.npy", "<i8", [40000, 40000], "q")
    began = time.monotonic()
    ends(["big.onnx", "--input", "x=x.npy", "--input", "s=s.npy", "--max-memory", "1G"], 1,
         "6400000000 bytes", "--max-memory is 1G")
    check(time.monotonic() - began < 60, "compared, not tried")
    # No verdict is printed.
    run(STORIES, "--prompt-text", "Once", "--max-new-tokens", "4", "--receipt-path", "r.json")
    check(run("verify", "r.json", STORIES).returncode == 0, "a true receipt")
    for size in ("100K", "1M", "2M", "4M", "6M", "8M"):
        done = ends(["verify", "r.json", STORIES, "--max-memory", size], 2, f"--max-memory is {size}")
        check("verified" not in done.stdout and "differs" not in done.stdout, done.stdout)
    # Weights mapped from a file next to the model do not count.
    entries = b"".join(onnx.chunk(13, onnx.chunk(1, key) + onnx.chunk(2, value))
                       for key, value in ((b"location", b"w.bin"), (b"length", b"16777216")))
    weights = onnx.number(1, 4 << 20) + onnx.number(2, onnx.FLOAT) + onnx.chunk(8, b"w") + entries \
        + onnx.number(14, 1)
    (work / "w.bin").write_bytes(bytes(16 << 20))
    y = onnx.port("y", onnx.FLOAT, [4 << 20])
    (work / "wide.onnx").write_bytes(onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [x], [y], [weights]))
    done = run("inspect", "wide.onnx", "--max-memory", "8M")
    check(done.returncode == 0 and "16777216 bytes" in done.stdout, f"mapped weights: {done.stderr}")


def test_tokenizer():
    """A regular expression that needs much memory: too little of it is no difference."""
    (work / "words").mkdir()
    table = struct.pack("<64f", *(float(j == (i + 1) % 8) for i in range(8) for j in range(8)))
    (work / "words" / "model.onnx").write_bytes(onnx.model(
        [onnx.node("Gather", ["e", "input_ids"], ["logits"])], [onnx.port("input_ids", onnx.INT64, ["b", "s"])],
        [onnx.port("logits", onnx.FLOAT, ["b", "s", 8])], [onnx.tensor("e", onnx.FLOAT, [8, 8], table)]))
    words = {word: i for i, word in enumerate(["ab" * 1000, "c", "d", "e", "f", "g", "h", "z"])}
    decoders = [{"type": "Fuse"}, {"type": "Replace", "pattern": {"Regex": "(?:a|b)*c"}, "content": "Z"}]
    (work / "words" / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
         "decoder": {"type": "Sequence", "decoders": decoders}, "model": {"type": "WordLevel", "vocab": words, "unk_token": "z"}}))
    ids = ",".join(["0"] * 100 + ["1"])
    done = run("words", "--prompt-ids", ids, "--max-new-tokens", "5", "--receipt-path", "words.json")
    check(done.returncode == 0, done.stderr)
    done = run("verify", "words.json", "words", "--prompt-ids", ids)
    check(done.returncode == 0, f"a true receipt: {done.stdout}{done.stderr}")
    codes = []
    for size in range(10, 90, 10):
        done = run("verify", "words.json", "words", "--prompt-ids", ids, "--max-memory", f"{size}M", "--threads", "1")
        codes.append(done.returncode)
        check("differs" not in done.stdout, f"{size}M: {done.stdout}")
    check(set(codes) <= {0, 2} and codes[0] == 2, f"{codes}")


def write_chain(name, n, size):
    """Writes a model of n matrix products in a row."""
    x, y = onnx.port("x", onnx.FLOAT, [size, size]), onnx.port(f"y{n}", onnx.FLOAT, [size, size])
    (work / name).write_bytes(onnx.model([onnx.node("MatMul", [f"y{i}" if i else "x", "x"], [f"y{i + 1}"])
                                          for i in range(n)], [x], [y]))


def left():
    return sorted(path.name for path in (work / "left").iterdir())


def test_timeout():
    (work / "left").mkdir()
    write_chain("endless.onnx", 1000, 2048)
    (work / "prompts.txt").write_text("Once\n" * 400)
    outputs = ["--receipt-path", "left/r.json", "--trace", "left/t.trace"]
    endless = ["endless.onnx", "--random-inputs", "1", "--threads", "1"]
    texts = [STORIES, "--prompt-file", "prompts.txt", "--ignore-eos", "--max-new-tokens", "400", "--threads", "1",
             "--cpu-isa", "portable", "--temperature", "1"]
    for args in ([*endless, *outputs, "--output-dir", "left/new"], texts,
                 ["bench", "model", *endless[:1]]):
        began = time.monotonic()
        done = ends([*args, "--timeout", "1"], 124, "ree-run: --timeout: not finished after 1 s\n")
        check(time.monotonic() - began < 10, "in time")
        check(done.stderr.count("\n") == 1, f"one line: {done.stderr!r}")
        check(left() == [], f"nothing is left: {left()}")
    # A checkpoint is a complete file that a run can resume from.
    ends([*texts, "--checkpoint", "left/c.ck", "--checkpoint-every", "1", "--timeout", "1"], 124, "--timeout")
    check(left() in (["c.ck"], []), f"the checkpoint alone: {left()}")
    if left():  # a machine under load may not have written one
        done = run(STORIES, "--prompt-text", "Once", "--resume", "left/c.ck")
        check("left/c.ck: is the checkpoint of another run" in done.stderr, f"it is one, of another run: {done.stderr}")
    # Without a verdict the exit code is 2, "cannot be checked". The receipt is true; making it was
    # faster.
    write_chain("long.onnx", 10, 1024)
    inputs = ["--random-inputs", "1"]
    done = run("long.onnx", *inputs, "--receipt-path", "long.json")
    check(done.returncode == 0, f"a receipt: {done.stderr}")
    slowly = ["--threads", "1", "--cpu-isa", "portable", "--no-fuse"]
    for args in (["verify", "long.json", "long.onnx", *inputs, *slowly],
                 ["compare", *endless, "--device", "cpu", "--device", "cpu"]):
        done = ends([*args, "--timeout", "1"], 2, "--timeout: not finished after 1 s")
        check(done.stdout == "", f"no verdict: {done.stdout!r}")
    # A driver that hangs.
    driver = run("devices")
    if "vulkan:0" in driver.stdout:
        began = time.monotonic()
        ends([DIGITS, "--input", SEVEN, "--device", "vulkan", "--break-primitive", "driver hang", "--timeout", "1"],
             124, "--timeout: not finished after 1 s", env={"XDG_CACHE_HOME": str(work / "never met")})
        check(time.monotonic() - began < 10, "in time")
        # The processor's self-tests run while the driver is tried, and their record may stay.
        cache = work / "never met"
        kept = {str(path.relative_to(cache)) for path in cache.rglob("*")}
        check(kept in (set(), {"ree", "ree/cpu.tests"}), f"nothing else is left in the cache: {kept}")
        check(kept or not cache.exists(), "no empty folder of a cache is left")


def main():
    global ree_run, work
    ree_run = harness.parser(__doc__).parse_args().ree_run
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        test_options()
        test_memory()
        test_tokenizer()
        test_timeout()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
