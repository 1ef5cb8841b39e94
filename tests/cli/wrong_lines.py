#!/usr/bin/env python3
"""Invalid command lines of every subcommand. Each ends quickly with the right exit code, names the
error and what was expected on standard error, and prints no result."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample"
DIGITS, STORIES = SAMPLE / "digits.onnx", SAMPLE / "stories"
HUGE = "18446744073709551616"

# By command: valid arguments, then a list of (additional arguments, exit code, parts of the
# message).
RUN, TEXT = [DIGITS, "--input", SAMPLE / "seven.npy"], [STORIES, "--prompt-text", "Once", "--max-new-tokens", "2"]
LINES = [
    ([], [
        ([], 2, "usage: ree-run MODEL"),
        ([""], 2, "argument is empty"),
        (["--"], 2, "no model is named"),
        (["nonsense"], 1, "nonsense: No such file"),
        (["help", "nonsense"], 2, "no subcommand 'nonsense'"),
        (["help", ""], 2, "no subcommand ''"),
        (["help", "run", "more"], 2, "unexpected argument 'more'"),
        (["--version", "more"], 2, "unexpected argument 'more'"),
        (["--help=3"], 2, "unknown option '--help=3'"),
        (["/dev/zero"], 1, "/dev/zero: it is not a regular file"),
        ([SAMPLE], 1, "neither a model nor a checkpoint"),
    ]),
    (RUN, [
        (["--top"], 2, "--top wants a value"),
        (["--top="], 2, "--top wants a whole number from 1 to 1000, not ''"),
        (["--top", "-1"], 2, "--top wants", "'-1'"),
        (["--top", "1e3"], 2, "--top wants", "'1e3'"),
        (["--top", HUGE], 2, "--top wants", HUGE),
        (["--json=1"], 2, "unknown option '--json=1'"),
        (["--threads", "0"], 2, "--threads wants a whole number from 1 to 1024, not '0'"),
        (["--threads", "nan"], 2, "--threads wants", "'nan'"),
        (["--device", ""], 2, "--device wants a value"),
        (["--device", "gpu"], 1, "unknown device 'gpu'", "'cpu', 'cuda' or 'vulkan'"),
        (["--form", "fast"], 2, "--form is native, float64, float32 or integer, not 'fast'"),
        (["--operation-set", "fast"], 2, "--operation-set is reproducible", "'fast'"),
        (["--dim", "n"], 2, "--dim wants NAME=SIZE, not 'n'"),
        (["--dim", "batch=-1"], 2, "--dim wants NAME=SIZE, not 'batch=-1'"),
        (["--dim", "nosuch=3"], 1, "--dim 'nosuch=3'", "batch"),
        (["--random-inputs", HUGE], 2, "--random-inputs wants", HUGE),
        (["--input", ""], 2, "--input wants a value"),
        (["--input", "image="], 1, "image' is given twice"),
        (["--output-dir", ""], 2, "--output-dir wants a value"),
        (["--output-dir", DIGITS], 1, "cannot make this folder"),
        (["--receipt-path", ""], 2, "--receipt-path wants a value"),
        (["--receipt-path", "/nonexistent/r"], 1, "/nonexistent/r: cannot write a receipt"),
        (["--receipt-path", SAMPLE], 1, "is a folder"),
        (["--trace", ""], 2, "--trace wants a value"),
        (["--trace", SAMPLE], 1, "not a regular file"),
        (["--dump-tensors", "[", "--dump-folder", "d"], 2, "'[' is no regular expression"),
        (["--inject-fault", "1:2"], 2, "--inject-fault wants NODE:STEP:BIT", "'1:2'"),
        (["--n-partitions", "0"], 2, "--n-partitions wants", "'0'"),
        (["--plan", ""], 2, "--plan wants a value"),
        (["--max-device-memory", "-1"], 2, "--max-device-memory wants a size", "'-1'"),
        (["--max-device-memory", "nan"], 2, "--max-device-memory wants a size", "'nan'"),
        (["--quantize", "4"], 1, "digits.onnx", "no folder with a Hugging Face checkpoint"),
        (["--quantize", "5"], 2, "--quantize wants 4 or 8, not '5'"),
        (["--block", "32"], 2, "--block is of --quantize"),
    ]),
    (TEXT, [
        (["--temperature", "nan"], 2, "--temperature wants a number from 0 to 1000000, not 'nan'"),
        (["--temperature", "-0.5"], 2, "--temperature wants", "'-0.5'"),
        (["--temperature", "1e99"], 2, "--temperature wants", "'1e99'"),
        (["--temperature", ""], 2, "--temperature wants", "''"),
        (["--temperature", "1x"], 2, "--temperature wants", "'1x'"),
        (["--top-p", "0"], 2, "--top-p wants a number above 0 and at most 1, not '0'"),
        (["--top-p", "1.5"], 2, "--top-p wants", "'1.5'"),
        (["--min-p", "inf"], 2, "--min-p wants a number from 0 to 1, not 'inf'"),
        (["--repetition-penalty", "0"], 2, "--repetition-penalty wants a number above 0", "'0'"),
        (["--top-k", "-1"], 2, "--top-k wants", "'-1'"),
        (["--seed", HUGE], 2, "--seed wants", HUGE),
        (["--logprobs", "101"], 2, "--logprobs wants a whole number from 1 to 100"),
        (["--prefill-chunk", "0"], 2, "--prefill-chunk wants"),
        (["--batch-size", "0"], 2, "--batch-size wants"),
        (["--micro-batches", "257"], 2, "--micro-batches wants"),
        (["--stop", ""], 2, "--stop wants a text"),
        (["--tokenizer", ""], 2, "--tokenizer wants a value"),
        (["--tokenizer", DIGITS], 1, "digits.onnx"),
        (["--prompt-file", SAMPLE], 1, "not a regular file"),
        (["--prompt-ids", "99999999999"], 1, "token ids are whole numbers"),
        (["--checkpoint", ""], 2, "--checkpoint wants a value"),
        (["--checkpoint", "/nonexistent/c"], 1, "/nonexistent/c: cannot write a checkpoint"),
        (["--resume="], 2, "--resume wants a value"),
        (["--quantize", "4", "--block", "48"], 2, "--block wants 16, 32, 64, 128 or 256, not '48'"),
        (["--step-deadline", "0"], 2, "--step-deadline wants"),
    ]),
    (["export"], [
        ([""], 2, "argument is empty"),
        ([DIGITS], 1, "digits.onnx: it is a file, not a folder"),
        ([STORIES, "-o", ""], 2, "-o wants a value"),
        ([STORIES, "--opset", "20"], 2, "--opset wants 17 or 23, not '20'"),
        ([STORIES, "--quantize", "nan"], 2, "--quantize wants 4 or 8, not 'nan'"),
    ]),
    (["bench"], [
        (["matmul", "--size", "1x2"], 2, "--size wants MxNxK", "'1x2'"),
        (["matmul", "--size", "-1x2x3"], 2, "--size wants"),
        (["matmul", "--size", "99999999x99999999x99999999"], 2, "--size is too large"),
        (["matmul", "--runs", "0"], 2, "--runs wants"),
    ]),
    (["compare", STORIES, "--prompt-text", "Once"], [
        (["--html", ""], 2, "--html wants a value"),
        (["--inject-fault", "x", "--max-new-tokens", "1"], 2, "--inject-fault wants NODE:STEP:BIT", "'x'"),
        (["--prompt-ids", "1"], 2, "one prompt is compared, and 2 are given"),
        (["--max-new-tokens", "nan"], 2, "--max-new-tokens wants", "'nan'"),
    ]),
    (["inspect"], [([""], 2, "argument is empty"), ([SAMPLE], 1, "neither a model nor a checkpoint")]),
    (["devices"], [([""], 2, "argument is empty"), (["cpu", "--threads", "many"], 2, "--threads wants", "'many'")]),
    (["tokenize"], [([STORIES, "--file", SAMPLE], 1, "not a regular file")]),
    (["validate"], [([""], 2, "argument is empty"), ([SAMPLE], 2, "not a regular file")]),
    (["verify"], [([SAMPLE, STORIES], 2, "not a regular file"), (["r.json", STORIES, "--trace", ""], 2, "--trace wants"),
                  (["r.json", STORIES, "--quantize", "16"], 2, "--quantize wants 4 or 8, not '16'")]),
    (["keygen"], [([""], 2, "argument is empty"), (["/nonexistent/k"], 1, "/nonexistent/k")]),
    (["diff"], [(["PIPE", "PIPE"], 2, "not a regular file"), ([SAMPLE, SAMPLE], 2, "not a regular file")]),
    (["dispute"], [(["--a", "x", "--b", "y", "--claim", ""], 2, "--claim wants a value")]),
    (["referee"], [(["PIPE", STORIES, "--inputs", SAMPLE], 2, "not a regular file")]),
    (["trace"], [([""], 2, "argument is empty"), ([SAMPLE], 1, "not a regular file")]),
]


def main():
    ree_run = harness.parser(__doc__).parse_args().ree_run
    with tempfile.TemporaryDirectory() as folder:
        pipe = pathlib.Path(folder) / "pipe"
        os.mkfifo(pipe)  # has no writer; a command that waits for it is killed below
        for begin, ends in LINES:
            for end, code, *messages in ends:
                line = [str(pipe if word == "PIPE" else word) for word in begin + end]
                try:
                    done = subprocess.run([ree_run, *line], capture_output=True, text=True, timeout=60, cwd=folder,
                                          stdin=subprocess.DEVNULL)
                except subprocess.TimeoutExpired:
                    check(False, f"{line}: no end")
                    continue
                check(done.returncode == code, f"{line}: exit code {done.returncode}, expected {code}: {done.stderr}")
                check(done.stderr.startswith("ree-run: "), f"{line}: {done.stderr!r}")
                check(done.stdout == "", f"{line}: printed {done.stdout!r}")
                for message in messages:
                    check(message in done.stderr, f"{line}: '{message}' is not in {done.stderr!r}")
        left = sorted(os.listdir(folder))
        check(left == ["pipe"], f"nothing is left behind: {left}")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
