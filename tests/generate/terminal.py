#!/usr/bin/env python3
"""Escape sequences in generated text. Control characters are escaped on a terminal, which would
execute them. A pipe and --raw-output get the unchanged bytes. Uses the sample model with a
tokenizer whose spaces are replaced by escape sequences."""

import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
HOSTILE = "\x1b]0;owned\x07\x9b31m\x7f\r\u00e9\t\n"
SHOWN = "\\x1b]0;owned\\x07\\u009b31m\\x7f\\x0d\u00e9\t\n"

ree_run = None


def on_terminal(*args):
    """Returns what the program writes to a terminal, which turns LF into CR LF."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([ree_run, *map(str, args)], stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=subprocess.PIPE)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the program closed its end
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    err = child.stderr.read()
    check(child.wait() == 0, f"{args}: {err}")
    return said.replace(b"\r\n", b"\n").decode()


def into_pipe(*args):
    done = subprocess.run([ree_run, *map(str, args)], capture_output=True)
    check(done.returncode == 0, f"{args}: {done.stderr}")
    return done.stdout.decode()


def controls(text):
    return [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]


def generated(folder):
    two = ["--prompt-text", "Once upon a", "--prompt-text", "The fox ran"]
    for prompts in (two[:2], two, [*two[:2], "--no-echo"]):
        args = [folder, *prompts, "--max-new-tokens", 8]
        piped = into_pipe(*args)
        check(piped.count(HOSTILE) > 4, f"the model says it: {piped!r}")
        shown = on_terminal(*args)
        check(not controls(shown), f"{prompts}: {controls(shown)}")
        check(shown.count(SHOWN) == piped.count(HOSTILE), f"{prompts}: {shown!r}")
        raw = on_terminal(*args, "--raw-output")
        check(raw.count(HOSTILE) == piped.count(HOSTILE), f"{prompts}: {raw!r}")
        check(into_pipe(*args, "--raw-output").count(HOSTILE) == piped.count(HOSTILE), "a pipe, and raw")


def in_json(folder):
    args = [folder, "--prompt-text", "Once upon a", "--max-new-tokens", 8, "--json"]
    shown, piped = on_terminal(*args), into_pipe(*args)
    check("\x9b" in piped and not controls(shown), f"JSON: {controls(shown)}")
    check(json.loads(shown)["text"] == json.loads(piped)["text"], "the same text")


def decoded(folder):
    ids = into_pipe("tokenize", folder, "--text", "a b c d", "--json", "--no-special")
    args = ["tokenize", folder, "--decode", " ".join(map(str, json.loads(ids)["ids"]))]
    check(into_pipe(*args).count(HOSTILE) == 3, "decoded")
    check(on_terminal(*args).count(SHOWN) == 3, "decoded for a terminal")
    check(on_terminal(*args, "--raw-output").count(HOSTILE) == 3, "decoded, raw")


def main():
    global ree_run
    args = harness.parser(__doc__).parse_args()
    ree_run = args.ree_run
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "model"
        shutil.copytree(SAMPLE, folder)
        path = folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        replace = {"type": "Replace", "pattern": {"String": " "}, "content": HOSTILE}
        tokenizer["decoder"] = {"type": "Sequence", "decoders": [tokenizer["decoder"], replace]}
        path.write_text(json.dumps(tokenizer))
        for part in (generated, in_json, decoded):
            part(folder)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
