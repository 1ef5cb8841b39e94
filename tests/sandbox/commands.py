#!/usr/bin/env python3
"""Every command of ree-run on the sample models with the sandbox: the same results as without it,
and nothing that a command needs is refused."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SAMPLE = ROOT / "tools" / "sample"
for folder in ("harness", "cli"):
    sys.path.insert(0, str(HERE.parent / folder))
import harness  # noqa: E402
from harness import check  # noqa: E402
import onnx_writer as onnx  # noqa: E402

ree_run = None
device = None
STORIES, DIGITS, SEVEN = SAMPLE / "stories", SAMPLE / "digits.onnx", SAMPLE / "seven.npy"
TEXT = ["--prompt-text", "Once upon a time", "--max-new-tokens", "6"]


def run(*args, env=None, cwd=None):
    return subprocess.run([ree_run, *map(str, args)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})), cwd=cwd)


@harness.helper
def works(*args, code=0, **options):
    done = run(*args, **options)
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stderr}")
    for word in ("Permission denied", "not permitted", "sandbox:"):
        check(word not in done.stderr, f"{args}: {done.stderr}")
    return done.stdout


def on(*args):
    """Returns the arguments and the device of the test."""
    return [*args, "--device", device]


def line_of(text, start):
    return next((line for line in text.splitlines() if line.startswith(start)), None)


def test_line():
    text = works(*on(DIGITS, "--input", SEVEN, "--stats"))
    line = line_of(text, "sandbox: ")
    check(line and ("landlock" in line or "seccomp" in line or "none (" in line), f"a line: {text}")
    off = works(*on(DIGITS, "--input", SEVEN, "--stats", "--no-sandbox"))
    check(line_of(off, "sandbox: ") == "sandbox: none (--no-sandbox)", off)
    check(line_of(off, "sha256") == line_of(text, "sha256"), "the same bits")
    report = json.loads(works(*on(DIGITS, "--input", SEVEN, "--stats", "--json")))
    check("sandbox: " + report["stats"]["sandbox"] == line, "in JSON")
    report = json.loads(works(*on("generate", STORIES, *TEXT, "--stats", "--json")))
    check("sandbox: " + report["stats"]["sandbox"] == line, "of a generation")
    check(line_of(works(*on(STORIES, *TEXT, "--stats")), "sandbox: ") == line, "as text")


def test_outputs():
    """Output to new folders, nested folders, the current folder, absolute paths."""
    works(*on(DIGITS, "--input", f"image={SEVEN}", "--output-dir", "new/nested"), cwd=work)
    check((work / "new" / "nested" / "probabilities.npy").is_file(), "in a new folder")
    works(*on(DIGITS, "--input", SEVEN, "--output-dir", "."), cwd=work)
    check((work / "probabilities.npy").is_file(), "in the current folder")
    works(*on(DIGITS, "--input", SEVEN, "--output-dir", work / "new" / "nested"))  # replaced
    check("the model has no input" in run(*on(DIGITS, "--input", f"x={SEVEN}", "--output-dir", "left/over"),
                                      cwd=work).stderr, "a failure")
    check(not (work / "left").exists(), "a folder that nothing came into is removed")
    works(*on(DIGITS, "--input", SEVEN, "--trace", "digits.trace", "--receipt-path", "digits.json",
              "--dump-tensors", ".*", "--dump-folder", "d"), cwd=work)
    check(list((work / "d").rglob("*.npy")), "tensors in a folder whose name is one letter")
    works("verify", "digits.json", DIGITS, "--input", SEVEN, "--device", device, cwd=work, code=3)
    works("trace", "digits.trace", cwd=work)
    target, link = work / "target.json", work / "link.json"
    target.write_text("{}")
    link.symlink_to(target)
    works(*on(DIGITS, "--input", SEVEN, "--receipt-path", "link.json"), cwd=work)
    check(json.loads(link.read_text()).get("receipt_hash"), "where a link was")


def test_receipts():
    works("keygen", "key", cwd=work)
    works(*on(STORIES, *TEXT, "--receipt-path", "r.json", "--trace", "r.trace", "--sign", "key",
              "--dsse", "r.dsse"), cwd=work)
    works("validate", "r.json", "--public-key", "key.pub", "--dsse", "r.dsse", cwd=work)
    works("verify", "r.json", STORIES, "--public-key", "key.pub", "--trace", "again.trace",
          "--device", device, cwd=work)
    works("diff", "r.trace", "again.trace", "--html", "diff.html", cwd=work)
    works(*on(STORIES, *TEXT, "--receipt-path", "p.json", "--private", "--trace", "p.trace"), cwd=work)
    check((work / "p.json.salt").is_file(), "a salt")
    # With the salt next to the receipt.
    text = works("verify", "p.json", STORIES, *TEXT[:2], "--device", device, cwd=work, code=3)
    check("prompt: agrees" in text, text)
    works("request", STORIES, *TEXT, "--output", "ask.json", cwd=work)
    works(*on(STORIES, "--request", "ask.json", "--receipt-path", "answer.json"), cwd=work)
    works("verify", "answer.json", STORIES, "--request", "ask.json", "--device", device, cwd=work)


def test_disputes():
    for name, *more in (("a",), ("b", "--inject-fault", "12:1:3")):
        works(*on(STORIES, *TEXT, "--trace", f"{name}.trace", "--receipt-path", f"{name}.json",
                  "--dump-tensors", ".*", "--dump-folder", f"{name}-dump", *more), cwd=work)
    sides = ["--a-receipt", "a.json", "--b-receipt", "b.json"]
    works("diff", "a.json", "b.json", cwd=work, code=1)  # and the traces next to them
    check("step" in run("diff", "a.json", "b.json", cwd=work).stdout, "both traces are found")
    works("dispute", "--a", "a.trace", "--b", "b.trace", "--claim", "claim.json", "--transcript",
          "talk.jsonl", "--model", STORIES, *sides, cwd=work, code=1)
    check("A       right" in works("referee", "claim.json", STORIES, "--inputs", "a-dump", *sides, cwd=work),
          "the referee")
    works("compare", STORIES, *TEXT, "--device", "cpu", "--device", device, "--html", "page.html", cwd=work)


def test_generation():
    (work / "prompts.txt").write_text("Once\nThere was\n")
    works(*on(STORIES, "--prompt-file", "prompts.txt", "--max-new-tokens", "4"), cwd=work)
    (work / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    works(*on(STORIES, "--messages", "chat.json", "--chat-family", "chatml", "--raw-prompt",
              "--max-new-tokens", "4"), cwd=work)
    more = [STORIES, "--prompt-text", "Once", "--ignore-eos", "--tokenizer", STORIES / "tokenizer.json"]
    works(*on(*more, "--max-new-tokens", "20", "--checkpoint", "c.ck", "--checkpoint-every", "2"), cwd=work)
    (work / "c.ck").rename(work / "d.ck")
    works(*on(*more, "--max-new-tokens", "20", "--resume", "d.ck"), cwd=work)
    works(*on(*more, "--max-new-tokens", "20", "--resume", "d.ck", "--checkpoint", "e.ck"), cwd=work)
    works(*on(STORIES, *TEXT, "--n-partitions", "2", "--max-device-memory", "100M"))


def test_others():
    for args in (["inspect", DIGITS], ["inspect", STORIES, "--hash"], ["inspect", DIGITS, "--passes"],
                 ["plan", STORIES, "--n-partitions", "2", "-o", "plan.json"],
                 on(STORIES, *TEXT, "--plan", "plan.json"),
                 ["export", STORIES, "-o", "stories.onnx", "--colocate-tensors"],
                 ["plan", "stories.onnx", "--n-partitions", "2", "--write", "planned.onnx"],
                 on("stories.onnx", "--prompt-ids", "1,2,3", "--max-new-tokens", "2"),
                 ["tokenize", STORIES, "--text", "Once"], ["tokenize", STORIES, "--file", "prompts.txt"],
                 on("perplexity", STORIES, "--text", "prompts.txt", "--against", "stories.onnx", "--context", "8"),
                 ["devices"], ["devices", device],
                 on("bench", "map", "--size", "1000", "--runs", "1"),
                 on("bench", "model", DIGITS, "--runs", "1")):
        works(*args, cwd=work)


def test_models():
    """External data, links, the layout of a Hugging Face cache, the home folder."""
    home = work / "home"
    home.mkdir()
    (home / "parts").mkdir()
    (home / "parts" / "w.bin").write_bytes(struct.pack("<3f", 1, 2, 3))
    (home / ".hidden").write_bytes(struct.pack("<3f", 1, 2, 3))
    x, y = onnx.port("x", onnx.FLOAT, [3]), onnx.port("y", onnx.FLOAT, [3])

    def external(location):
        entries = b"".join(onnx.chunk(13, onnx.chunk(1, key) + onnx.chunk(2, value))
                           for key, value in ((b"location", location.encode()), (b"length", b"12")))
        weights = onnx.number(1, 3) + onnx.number(2, onnx.FLOAT) + onnx.chunk(8, b"w") + entries \
            + onnx.number(14, 1)
        return onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [x], [y], [weights])

    (home / "model.onnx").write_bytes(external("parts/w.bin"))
    args = on("--random-inputs", "1")
    plain = line_of(works(home / "model.onnx", *args), "sha256")
    check(plain, "external data")
    check(line_of(works("model.onnx", *args, cwd=home), "sha256") == plain, "in the current folder")
    # In the home folder hidden files cannot be opened, and the message says so.
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(work / "cache")}
    check(line_of(works(home / "model.onnx", *args, env=environment), "sha256") == plain, "at home")
    (home / "spy.onnx").write_bytes(external(".hidden"))
    has_landlock = "sandbox: landlock" in works(DIGITS, "--input", SEVEN, "--stats")
    for folder in (None, work):
        done = run(home / "spy.onnx", *args, env=environment, cwd=folder)
        if has_landlock:
            check(done.returncode == 1 and "--no-sandbox" in done.stderr, f"a hidden file: {done}")
        else:
            check(done.returncode == 0, f"a hidden file, on a kernel without landlock: {done}")
    check(run(home / "spy.onnx", *args, "--no-sandbox", env=environment).returncode == 0, "without")
    # Links: to a file, with its data next to the link; to a folder.
    (work / "links").mkdir()
    (work / "links" / "parts").mkdir()
    (work / "links" / "parts" / "w.bin").write_bytes(struct.pack("<3f", 1, 2, 3))
    (work / "links" / "m.onnx").symlink_to(home / "model.onnx")
    check(line_of(works(work / "links" / "m.onnx", *args), "sha256") == plain, "a link to a file")
    (work / "links" / "stories").symlink_to(STORIES)
    works(*on(work / "links" / "stories", *TEXT))
    # A Hugging Face cache: links to blobs.
    hub = work / "models--a--b"
    (hub / "blobs").mkdir(parents=True)
    (hub / "snapshots" / "1").mkdir(parents=True)
    for number, file in enumerate(sorted(STORIES.iterdir())):
        if file.is_file():
            (hub / "blobs" / f"{number:064x}").write_bytes(file.read_bytes())
            (hub / "snapshots" / "1" / file.name).symlink_to(f"../../blobs/{number:064x}")
    works(*on(hub / "snapshots" / "1", *TEXT))
    # Links from a model's folder to its files in another folder.
    (work / "apart").mkdir()
    for file in STORIES.iterdir():
        if file.is_file() and file.name != "tokenizer.json":
            (work / "apart" / file.name).write_bytes(file.read_bytes())
    (work / "apart" / "tokenizer.json").symlink_to(STORIES / "tokenizer.json")
    works(*on(work / "apart", *TEXT))


def stored(folder):
    """Returns the modification times of the files below a folder, by path."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_cache():
    """A second run reads the results of self-tests that the first one stored, as without the sandbox."""
    seen = []
    for k, more in enumerate(([], ["--no-sandbox"])):
        cache = work / f"cache{k}" / "below"
        environment = {"XDG_CACHE_HOME": str(cache)}
        works(*on(DIGITS, "--input", SEVEN, *more), env=environment)
        first = stored(cache / "ree")
        check(first, "results of self-tests")
        check((cache / "ree").stat().st_mode & 0o777 == 0o700, "for the user only")
        works(*on(DIGITS, "--input", SEVEN, *more), env=environment)
        check(stored(cache / "ree") == first, f"{more}: a second run stores nothing: {first}, {stored(cache / 'ree')}")
        # The driver's cache too.
        seen.append((set(first), any(path.name.startswith("mesa") for path in cache.iterdir())))
    check(seen[0] == seen[1], f"the same files with and without the sandbox: {seen}")
    environment = {"XDG_CACHE_HOME": str(work / "untouched")}
    works("tokenize", STORIES, "--text", "Once", env=environment)
    check(not (work / "untouched").exists(), "no folder where no device runs")


def main():
    global ree_run, device, work
    arguments = harness.parser(__doc__)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--all", action="store_true", help="run all tests, also on a device other than the CPU")
    options = arguments.parse_args()
    ree_run, device = options.ree_run, options.device
    if device != "cpu":
        harness.need_device(ree_run, device)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        tests = (test_line, test_outputs, test_receipts, test_disputes, test_generation, test_others,
                 test_models, test_cache)
        # A driver that runs on the CPU needs minutes to compile for all of them.
        for test in tests if device == "cpu" or options.all else (test_line, test_cache):
            test()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
