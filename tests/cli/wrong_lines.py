#!/usr/bin/env python3
"""Invalid command lines of all subcommands but plan and request. Each ends quickly with the right exit
code, names the error and what was expected on standard error, and prints no result."""

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
        (["--"], 2, "no model given"),
        (["nonsense"], 1, "nonsense: No such file"),
        (["help", "nonsense"], 2, "unknown subcommand 'nonsense'"),
        (["help", ""], 2, "unknown subcommand ''"),
        (["help", "run", "more"], 2, "unexpected argument 'more'"),
        (["--version", "more"], 2, "unexpected argument 'more'"),
        (["--help=3"], 2, "unknown option '--help=3'"),
        (["/dev/zero"], 1, "/dev/zero: it is not a regular file"),
        ([SAMPLE], 1, "not a checkpoint"),
    ]),
    (RUN, [
        (["--top"], 2, "--top requires a value"),
        (["--top="], 2, "--top requires an integer from 1 to 1000, not ''"),
        (["--top", "-1"], 2, "--top requires", "'-1'"),
        (["--top", "1e3"], 2, "--top requires", "'1e3'"),
        (["--top", HUGE], 2, "--top requires", HUGE),
        (["--json=1"], 2, "unknown option '--json=1'"),
        (["--threads", "0"], 2, "--threads requires an integer from 1 to 1024, not '0'"),
        (["--threads", "nan"], 2, "--threads requires", "'nan'"),
        (["--device", ""], 2, "--device requires a value"),
        (["--device", "gpu"], 1, "unknown device 'gpu'", "'cpu', 'cuda' or 'vulkan'"),
        (["--form", "fast"], 2, "--form requires native, float64, float32 or integer, not 'fast'"),
        (["--operation-set", "fast"], 2, "--operation-set requires reproducible", "'fast'"),
        (["--dim", "n"], 2, "--dim requires NAME=SIZE, not 'n'"),
        (["--dim", "batch=-1"], 2, "--dim requires NAME=SIZE, not 'batch=-1'"),
        (["--dim", "nosuch=3"], 1, "--dim 'nosuch=3'", "batch"),
        (["--random-inputs", HUGE], 2, "--random-inputs requires", HUGE),
        (["--input", ""], 2, "--input requires a value"),
        (["--input", "image="], 1, "image' is given more than once"),
        (["--output-dir", ""], 2, "--output-dir requires a value"),
        (["--output-dir", DIGITS], 1, "cannot create this folder"),
        (["--receipt-path", ""], 2, "--receipt-path requires a value"),
        (["--receipt-path", "/nonexistent/r"], 1, "/nonexistent/r: cannot write a receipt"),
        (["--receipt-path", SAMPLE], 1, "is a folder"),
        (["--trace", ""], 2, "--trace requires a value"),
        (["--trace", SAMPLE], 1, "not a regular file"),
        (["--dump-tensors", "[", "--dump-folder", "d"], 2, "'[' is not a regular expression"),
        (["--inject-fault", "1:2"], 2, "--inject-fault requires NODE:STEP:BIT", "'1:2'"),
        (["--n-partitions", "0"], 2, "--n-partitions requires", "'0'"),
        (["--plan", ""], 2, "--plan requires a value"),
        (["--max-device-memory", "-1"], 2, "--max-device-memory requires a size", "'-1'"),
        (["--max-device-memory", "nan"], 2, "--max-device-memory requires a size", "'nan'"),
        (["--quantize", "4"], 1, "digits.onnx", "not a folder with a Hugging Face checkpoint"),
        (["--quantize", "5"], 2, "--quantize requires 4 or 8, not '5'"),
        (["--block", "32"], 2, "--block requires --quantize"),
    ]),
    (TEXT, [
        (["--temperature", "nan"], 2, "--temperature requires a number from 0 to 1000000, not 'nan'"),
        (["--temperature", "-0.5"], 2, "--temperature requires", "'-0.5'"),
        (["--temperature", "1e99"], 2, "--temperature requires", "'1e99'"),
        (["--temperature", ""], 2, "--temperature requires", "''"),
        (["--temperature", "1x"], 2, "--temperature requires", "'1x'"),
        (["--top-p", "0"], 2, "--top-p requires a number above 0 and at most 1, not '0'"),
        (["--top-p", "1.5"], 2, "--top-p requires", "'1.5'"),
        (["--min-p", "inf"], 2, "--min-p requires a number from 0 to 1, not 'inf'"),
        (["--repetition-penalty", "0"], 2, "--repetition-penalty requires a number above 0", "'0'"),
        (["--top-k", "-1"], 2, "--top-k requires", "'-1'"),
        (["--seed", HUGE], 2, "--seed requires", HUGE),
        (["--logprobs", "101"], 2, "--logprobs requires an integer from 1 to 100"),
        (["--prefill-chunk", "0"], 2, "--prefill-chunk requires"),
        (["--batch-size", "0"], 2, "--batch-size requires"),
        (["--micro-batches", "257"], 2, "--micro-batches requires"),
        (["--stop", ""], 2, "--stop requires a text"),
        (["--tokenizer", ""], 2, "--tokenizer requires a value"),
        (["--tokenizer", DIGITS], 1, "digits.onnx"),
        (["--prompt-file", SAMPLE], 1, "not a regular file"),
        (["--prompt-ids", "99999999999"], 1, "token ids must be integers"),
        (["--checkpoint", ""], 2, "--checkpoint requires a value"),
        (["--checkpoint", "/nonexistent/c"], 1, "/nonexistent/c: cannot write a checkpoint"),
        (["--resume="], 2, "--resume requires a value"),
        (["--quantize", "4", "--block", "48"], 2, "--block requires 16, 32, 64, 128 or 256, not '48'"),
        (["--step-deadline", "0"], 2, "--step-deadline requires"),
    ]),
    (["export"], [
        ([""], 2, "argument is empty"),
        ([DIGITS], 1, "digits.onnx: it is a file, not a folder"),
        ([STORIES, "-o", ""], 2, "-o requires a value"),
        ([STORIES, "--opset", "20"], 2, "--opset requires 17 or 23, not '20'"),
        ([STORIES, "--quantize", "nan"], 2, "--quantize requires 4 or 8, not 'nan'"),
    ]),
    (["bench"], [
        (["matmul", "--size", "1x2"], 2, "--size requires MxNxK", "'1x2'"),
        (["matmul", "--size", "-1x2x3"], 2, "--size requires"),
        (["matmul", "--size", "99999999x99999999x99999999"], 2, "--size is too large"),
        (["matmul", "--runs", "0"], 2, "--runs requires"),
        (["ceilings", "--size", "2x2"], 2, "--size requires a number of elements"),
    ]),
    (["compare", STORIES, "--prompt-text", "Once"], [
        (["--html", ""], 2, "--html requires a value"),
        (["--inject-fault", "x", "--max-new-tokens", "1"], 2, "--inject-fault requires NODE:STEP:BIT", "'x'"),
        (["--prompt-ids", "1"], 2, "expected one prompt, not 2"),
        (["--max-new-tokens", "nan"], 2, "--max-new-tokens requires", "'nan'"),
    ]),
    (["inspect"], [([""], 2, "argument is empty"), ([SAMPLE], 1, "not a checkpoint")]),
    (["devices"], [([""], 2, "argument is empty"), (["cpu", "--threads", "many"], 2, "--threads requires", "'many'")]),
    (["tokenize"], [([STORIES, "--file", SAMPLE], 1, "not a regular file")]),
    (["perplexity", STORIES], [
        ([], 2, "no text given: use --text"),
        (["--text", ""], 2, "--text requires a value"),
        (["--text", SAMPLE], 1, "not a regular file"),
        (["--text", "x", "--against", ""], 2, "--against requires a value"),
        (["--text", "x", "--context", HUGE], 2, "--context requires", HUGE),
        (["--text", "x", "--against-quantize", "5"], 2, "--against-quantize requires 4 or 8, not '5'"),
        (["--text", "x", "--score", ""], 2, "--score requires a value"),
    ]),
    (["validate"], [([""], 2, "argument is empty"), ([SAMPLE], 2, "not a regular file")]),
    (["verify"], [([SAMPLE, STORIES], 2, "not a regular file"), (["r.json", STORIES, "--trace", ""], 2, "--trace requires"),
                  (["r.json", STORIES, "--quantize", "16"], 2, "--quantize requires 4 or 8, not '16'")]),
    (["keygen"], [([""], 2, "argument is empty"), (["/nonexistent/k"], 1, "/nonexistent/k")]),
    (["diff"], [(["PIPE", "PIPE"], 2, "not a regular file"), ([SAMPLE, SAMPLE], 2, "not a regular file")]),
    (["dispute"], [(["--a", "x", "--b", "y", "--claim", ""], 2, "--claim requires a value")]),
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
