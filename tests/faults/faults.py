#!/usr/bin/env python3
"""Runs ree-run with one failing call: each of ree's own allocations in turn, or each call that
writes or reads a file. README.md in this folder states the requirements and how to run all points.

A run that reports success must have printed and written the same as a run without a fault. A run
that reports failure must give the reason, with an exit code that means only that (`verify` must not
report "differs"). It must leave only complete files, old or new, and no others. No run may leak,
crash or hang."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path[:0] = [str(HERE.parent / "train"), str(HERE.parent / "receipt")]
import harness  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402
from sealing import canonical, seal  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample"
DIGITS, SEVEN, STORIES = SAMPLE / "digits.onnx", SAMPLE / "seven.npy", SAMPLE / "stories"
PROMPT = "Once upon a time"
# Number of points of a scenario with --sample or REE_TEST_SAMPLE; other kinds and modes: 3.
SAMPLED_POINTS = {("memory", "one"): 8}
MAX_JSON_POINTS = 400  # the thousands of points of one parse are alike
MAX_SHOWN = 8  # failures of a scenario that are printed in full
SANITIZER_EXIT = 99

WHY = {
    "memory": r"memory|Cannot allocate|Resource temporarily unavailable",
    "json": r"memory",
    "write": r"Input/output error",
    "write-full": r"No space left on device",
    "read": r"Input/output error",
    "short": r"^$",  # a short read is no failure and needs no reason
}


class Scenario:
    """A command line of ree-run. `files`: the files it writes, relative to its folder. `fails`:
    exit codes that mean that the command could not be executed."""

    def __init__(self, name, *arguments, files=(), fails=(1,), kinds=("memory", "json", "read", "short"), cold=False,
                 threads=True, replaces=True, same_output=True, together=()):
        self.name, self.files, self.fails, self.cold = name, set(files), fails, cold
        self.kinds = set(kinds) | ({"write", "write-full"} if files else set())
        self.replaces = replaces  # the files in `files` exist before the run
        self.same_output = same_output  # standard output is the same in every run
        self.together = together  # files that must all be old or all be new
        # Without the sandbox: with it, the message for a file that cannot be opened names the
        # sandbox. tests/sandbox tests that.
        self.arguments = [*map(str, arguments), *(["--threads", "1"] if threads else []), "--no-sandbox"]


def scenarios(inputs):
    """Returns the scenarios, in the order of the table in docs/FAULTS.md."""
    short = ["--max-new-tokens", "4"]
    text = [STORIES, "--prompt-text", PROMPT, *short]
    private = inputs / "private.json"

    def against(name, trace=None):
        return ["--a", inputs / "a.trace", "--b", inputs / f"{trace or name}.trace", "--model", STORIES,
                "--a-receipt", inputs / "a.json", "--b-receipt", inputs / f"{name}.json"]

    parties = against("b")
    return [
        Scenario("run", DIGITS, "--input", SEVEN),
        Scenario("run, self-tests", DIGITS, "--input", SEVEN, cold=True, kinds=("memory", "json", "read", "short", "write", "write-full")),
        Scenario("run, files", DIGITS, "--input", SEVEN, "--top", "3", "--json", "--output-dir", "out", "--receipt-path", "r.json",
                 "--sign", inputs / "key", "--dsse", "r.dsse", "--trace", "t",
                 files=["out/probabilities.npy", "r.json", "r.dsse", "t"]),
        Scenario("run, dumps", DIGITS, "--input", SEVEN, "--dump-tensors", "relu|image", "--dump-folder", "d",
                 files=["d/*"]),
        Scenario("run, partitions", DIGITS, "--input", SEVEN, "--n-partitions", "3"),
        Scenario("generate", *text, "--stop", "ZZZ", "--logits-hash"),
        Scenario("generate, private", *text, "--stop", "xyz", "--trace", "t", "--receipt-path", "r.json", "--private",
                 files=["t", "r.json", "r.json.salt"], together=["r.json", "r.json.salt"]),
        Scenario("generate, batch", *text, "--prompt-text", "The", "--temperature", "0.8", "--top-p", "0.9", "--seed", "3",
                 "--json", "--checkpoint", "c", "--checkpoint-every", "2", files=["c"], replaces=False),
        Scenario("generate, resume", *text, "--checkpoint", inputs / "checkpoint", "--resume", "--receipt-path", "r.json",
                 files=["r.json"]),
        Scenario("generate, exported", inputs / "q8.onnx", "--prompt-text", PROMPT, *short, "--tokenizer", STORIES),
        Scenario("generate, quantised", *text, "--quantize", "8", "--n-partitions", "2"),
        Scenario("verify", "verify", inputs / "a.json", STORIES, fails=(2,)),
        Scenario("verify, sampled", "verify", inputs / "sampled.json", STORIES, fails=(2,)),
        Scenario("verify, private", "verify", private, STORIES, "--prompt-text", PROMPT, fails=(2,)),
        Scenario("verify, trace", "verify", inputs / "a.json", STORIES, "--trace", "t", files=["t"], fails=(2,)),
        Scenario("verify, run", "verify", inputs / "digits.json", DIGITS, "--input", SEVEN, "--json", fails=(2,)),
        Scenario("verify, request", "verify", inputs / "asked.json", STORIES, "--request", inputs / "request.json", fails=(2,)),
        Scenario("validate", "validate", inputs / "digits.json", fails=(2,), threads=False),
        Scenario("diff", "diff", inputs / "a.trace", inputs / "b.trace", "--html", "d.html", files=["d.html"], fails=(2,),
                 threads=False),
        Scenario("diff, receipts", "diff", inputs / "a.json", inputs / "b.json", "--json", fails=(2,), threads=False),
        Scenario("trace", "trace", inputs / "a.trace", threads=False),
        Scenario("dispute", "dispute", *parties, "--claim", "claim.json", "--transcript", "talk", files=["claim.json", "talk"],
                 fails=(2,), threads=False),
        Scenario("dispute, a token", "dispute", *against("drawn"), "--claim", "claim.json", files=["claim.json"], fails=(2,),
                 threads=False),
        Scenario("dispute, receipts", "dispute", *against("false", "a"), "--claim", "claim.json", "--json", files=["claim.json"],
                 fails=(2,), threads=False),
        Scenario("referee", "referee", inputs / "claim.json", STORIES, "--a-receipt", inputs / "a.json",
                 "--b-receipt", inputs / "b.json", "--inputs", inputs / "dump", fails=(2,), threads=False),
        Scenario("referee, a token", "referee", inputs / "token.json", STORIES, "--a-receipt", inputs / "a.json",
                 "--b-receipt", inputs / "drawn.json", "--inputs", inputs / "dump", fails=(2,), threads=False),
        Scenario("compare", "compare", STORIES, "--prompt-text", "A", "--max-new-tokens", "2", "--html", "c.html",
                 "--inject-fault", "20:0:22", files=["c.html"], fails=(2,)),
        Scenario("export", "export", STORIES, "-o", "m.onnx", "--quantize", "4", "--colocate-tensors", files=["m.onnx", "m.onnx.data"], threads=False),
        Scenario("inspect", "inspect", STORIES, "--json", "--hash", threads=False),
        Scenario("inspect, passes", "inspect", DIGITS, "--passes", threads=False),
        Scenario("plan", "plan", STORIES, "--n-partitions", "2", "-o", "plan.json", files=["plan.json"], threads=False),
        Scenario("perplexity", "perplexity", inputs / "q8.onnx", "--against", STORIES, "--against-quantize", "4",
                 "--text", inputs / "text.txt", "--json"),
        Scenario("train", "train", inputs / "line.onnx", "--data", inputs / "line.npz", "--steps", "1", "--checkpoint", "c.safetensors",
                 "--losses", "l.csv", "--curve", "l.svg", "--receipt-path", "r.json", "--sign", inputs / "key", "--trace", "t",
                 files=["c.safetensors", "l.csv", "l.svg", "r.json", "t"]),
        Scenario("train, resume", "train", inputs / "line.onnx", "--data", inputs / "line.safetensors", "--epochs", "1", "--json",
                 "--resume", inputs / "two.safetensors", "--checkpoint", "c.safetensors", files=["c.safetensors"]),
        Scenario("verify, training", "verify", inputs / "trained.json", inputs / "line.onnx", "--data", inputs / "line.npz", fails=(2,)),
        Scenario("verify, from a checkpoint", "verify", inputs / "trained.json", inputs / "line.onnx", "--data", inputs / "line.npz",
                 "--resume", inputs / "two.safetensors", "--json", fails=(2,)),
        Scenario("dispute, trainings", "dispute", "--a", inputs / "trained.trace", "--b", inputs / "other.trace", "--model",
                 inputs / "line.onnx", "--a-receipt", inputs / "trained.json", "--b-receipt", inputs / "other.json", "--data",
                 inputs / "line.npz", "--claim", "claim.json", files=["claim.json"], fails=(2,), threads=False),
        Scenario("tokenize", "tokenize", STORIES, "--text", PROMPT, "--json", threads=False),
        Scenario("tokenize, byte level", "tokenize", HERE.parent / "data/tokenizers/byte_level.json", "--text", "it's 12 o'clock",
                 threads=False),
        Scenario("tokenize, unigram", "tokenize", HERE.parent / "data/tokenizers/unigram.json", "--text", PROMPT, threads=False),
        Scenario("tokenize, chat", "tokenize", STORIES, "--chat", inputs / "chat.json", "--family", "chatml", threads=False),
        Scenario("request", "request", STORIES, "--prompt-text", PROMPT, "--output", "q.json", files=["q.json"], threads=False),
        Scenario("keygen", "keygen", "k", files=["k", "k.pub"], same_output=False, threads=False, replaces=False),
    ]


def change(path, how):
    """Changes the body of a receipt and seals it again."""
    receipt = json.loads(path.read_text())
    how(receipt["body"])
    path.write_text(canonical(seal(receipt)))


def prepare(ree_run, inputs):
    """Makes the files that the scenarios read."""
    def run(*arguments, codes=(0,)):
        done = harness.call(ree_run, *arguments)
        if done.returncode not in codes:
            sys.exit(f"ree-run {' '.join(map(str, arguments))}: exit code {done.returncode}: {done.stderr}")

    def text(name, *more):
        run(STORIES, "--prompt-text", PROMPT, "--max-new-tokens", "4", "--threads", "1",
            "--receipt-path", inputs / f"{name}.json", *more)

    run("keygen", inputs / "key")
    run(DIGITS, "--input", SEVEN, "--receipt-path", inputs / "digits.json", "--sign", inputs / "key")
    text("a", "--trace", inputs / "a.trace", "--dump-tensors", ".*", "--dump-folder", inputs / "dump")
    text("b", "--trace", inputs / "b.trace", "--inject-fault", "30:1:22")
    text("drawn", "--trace", inputs / "drawn.trace", "--temperature", "20", "--seed", "5")
    # Two false receipts. One states temperature 0, but its tokens were drawn. The other states a false text of a's answer.
    change(inputs / "drawn.json", lambda body: body.update(sampling=json.loads((inputs / "a.json").read_text())["body"]["sampling"]))
    shutil.copy(inputs / "a.json", inputs / "false.json")
    change(inputs / "false.json", lambda body: body["output"].update(text="another answer"))
    text("sampled", "--temperature", "0.8", "--seed", "5")
    text("private", "--private")
    text("kept", "--checkpoint", inputs / "checkpoint")
    run("request", STORIES, "--prompt-text", PROMPT, "--max-new-tokens", "4", "--output", inputs / "request.json")
    run(STORIES, "--request", inputs / "request.json", "--receipt-path", inputs / "asked.json")
    run("export", STORIES, "-o", inputs / "q8.onnx", "--quantize", "8", "--colocate-tensors")
    (inputs / "text.txt").write_text(f"{PROMPT}, a fox lived in the castle.")
    for name, claim in (("b", "claim.json"), ("drawn", "token.json")):
        run("dispute", "--a", inputs / "a.trace", "--b", inputs / f"{name}.trace", "--model", STORIES, "--a-receipt",
            inputs / "a.json", "--b-receipt", inputs / f"{name}.json", "--claim", inputs / claim, codes=(1, 3))
    tensors = steps.line_data()
    line, data = steps.line_step(inputs / "line.onnx"), steps.npz(inputs / "line.npz", tensors)
    steps.safetensors(inputs / "line.safetensors", tensors)
    run("train", line, "--data", data, "--steps", "2", "--checkpoint", inputs / "two.safetensors")
    run("train", line, "--data", data, "--steps", "3", "--trace", inputs / "trained.trace", "--receipt-path", inputs / "trained.json")
    run("train", line, "--data", data, "--steps", "3", "--trace", inputs / "other.trace", "--receipt-path", inputs / "other.json",
        "--inject-fault", "5:1:22")
    (inputs / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')


# Two equal runs may differ in times, dates and sizes of memory.

def without_times(value):
    if isinstance(value, dict):
        skipped = re.compile(r"second|_s$|^unbound$|^stats$|date|per_second|bytes|speed|memory")
        return {k: without_times(v) for k, v in value.items() if not skipped.search(k)}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def normal(data, folder):
    data = data.replace(str(folder).encode(), b"FOLDER")
    data = re.sub(rb"(?<=KEY-----\n)[^-]*", b"...", data)  # each run makes a new key
    try:
        return json.dumps(without_times(json.loads(data)), sort_keys=True)
    except ValueError:
        pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(data).hexdigest()
    # If there was no memory for the proof of causality, the text is verified token by token.
    text = re.sub(r"\nran token by token: causality is not proved: out of memory\n", "", text)
    text = re.sub(r"[0-9]+ runs? of the model", "RUNS", text)
    return re.sub(r"[-+0-9.e]+ *(s|ms|tokens/s|MB|KB|GB|bytes)\b", "TIME", re.sub(r" {2,}", "  ", text))


def is_earlier_checkpoint(contents):
    """Returns whether the contents are a complete checkpoint: the checkpoints of a run replace each
    other."""
    try:
        checkpoint = json.loads(contents)
        body = json.dumps(checkpoint["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return checkpoint["checkpoint_sha256"] == hashlib.sha256(b"ree-checkpoint/1\0" + body.encode()).hexdigest()
    except (ValueError, KeyError, TypeError):
        return False


class Sweep:
    """Runs the points of one scenario, kind and mode."""

    is_warm = False  # the cache of the self-tests contains this program's entries

    def __init__(self, options, scenario, kind, mode, folder):
        self.options, self.scenario, self.kind, self.mode, self.folder = options, scenario, kind, mode, folder
        self.counts = {"points": 0, "run": 0, "failed": 0, "same": 0, "wrong": 0}

    def sweep(self, mode, first, step, last):
        """Runs points; yields (point, number of points passed, status) for each."""
        environment = dict(os.environ)
        if self.scenario.cold:
            environment["REE_FAULTS_COLD"] = "1"
        command = [self.options.sweep, self.folder, self.kind, mode, first, step, last, "--", *self.scenario.arguments]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stdout:
                yield tuple(map(int, line.split()))
        check(process.returncode == 0, f"{self.scenario.name}: sweep: exit code {process.returncode}")

    def outcome(self, point):
        """Returns standard output, standard error, and the contents of the existing files by
        name."""
        own, out = self.folder / str(point), self.folder / f"{point}.out"
        files = {str(p.relative_to(own)): normal(p.read_bytes(), own) for p in own.rglob("*") if not p.is_dir()}
        stdout, stderr = (out / "stdout").read_bytes(), (out / "stderr").read_text(errors="replace")
        return normal(stdout, own), stderr, files

    def wrong(self, status, outcome, clean):
        """Returns a description of what is wrong with the run; None if nothing is."""
        stdout, stderr, files = outcome
        clean_status, clean_stdout, _, clean_files = clean
        if status == SANITIZER_EXIT:
            return "a sanitizer's report"
        if status < 0:
            return f"signal {-status}"
        for name, contents in files.items():
            if name not in clean_files:
                return f"the file {name} is left"
            if contents not in (clean_files[name], "old") and not is_earlier_checkpoint(contents):
                return f"the file {name} is neither the old nor the new one"
        # In mode "onward" every later call fails too, so changes cannot be undone.
        if self.mode != "onward" and len({files.get(name) == clean_files[name] for name in self.scenario.together}) > 1:
            return f"some of {self.scenario.together} are new, and others old"
        if status == clean_status:
            missing = [n for n in clean_files if files.get(n) != clean_files[n]]
            if missing:
                return f"success, and the file {missing[0]} is not the one that was to be written"
            return None if stdout == clean_stdout or not self.scenario.same_output else "success, and another output"
        # Before the command line is parsed, the exit code for a failed command is not known.
        is_early = status == 2 and self.kind == "memory" and stderr.strip() == "ree-run: out of memory"
        if status not in self.scenario.fails and not is_early:
            return f"exit code {status}"
        if not re.search(WHY[self.kind], stderr):
            return "the message does not say why"
        if self.kind.startswith("write") and not re.search(r"\S: .*: |standard output", stderr):
            return "the message does not say which file"
        return None

    def remove(self, point):
        shutil.rmtree(self.folder / str(point))
        shutil.rmtree(self.folder / f"{point}.out")

    def show(self, point):
        """Prints the stack of the call that fails, if the program has a sanitizer to print it."""
        self.remove(point)
        list(self.sweep("show", point, 1, point))
        print((self.folder / f"{point}.out" / "stderr").read_text(errors="replace")[:6000], flush=True)

    def clean(self):
        """Runs without a fault. Returns exit code, standard output, error and files; None if the
        run failed."""
        for _ in range(1 if Sweep.is_warm else 2):
            if (self.folder / "0").exists():
                self.remove(0)
            (_, self.counts["points"], status), = self.sweep("one", 0, 1, 0)
        Sweep.is_warm = True
        outcome = self.outcome(0)
        self.remove(0)
        if check(status >= 0 and status not in (SANITIZER_EXIT, *self.scenario.fails),
                 f"{self.scenario.name}: nothing fails, and exit code {status}, {self.counts['points']} points: "
                 f"{outcome[1][:3000]}"):
            return status, *outcome
        return None

    def run(self):
        before = self.folder / "before"  # old files, which a failure must leave
        before.mkdir()
        for name in self.scenario.files:
            if "/" not in name and self.scenario.replaces:
                (before / name).write_text("old")
        clean, points = self.clean(), self.counts["points"]
        if not clean or not points:
            return
        most = points if self.kind != "json" else MAX_JSON_POINTS
        if self.options.sampled:
            most = SAMPLED_POINTS.get((self.kind, self.mode), 3)
        step = max(1, points // most)
        first = 1 + int(hashlib.sha256(self.scenario.name.encode()).hexdigest(), 16) % step
        last = -1
        if self.options.points:
            (first, last), step = map(int, self.options.points.split("-")), 1
        shown = 0
        for point, n, status in self.sweep(self.mode, first, step, last):
            if n < point:  # the point was not reached
                self.remove(point)
                continue
            outcome = self.outcome(point)
            why = self.wrong(status, outcome, clean)
            self.counts["run"] += 1
            self.counts["wrong" if why else "same" if status == clean[0] else "failed"] += 1
            check(not why, f"{self.scenario.name}: {self.kind} {self.mode} {point} of {points}: {why}")
            if why and shown < self.options.shown:
                shown += 1
                print(outcome[1][:4000], flush=True)
                self.show(point)
            self.remove(point)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--sweep", required=True, help="the program faults_sweep")
    parser.add_argument("--kind", choices=["memory", "write", "read"], action="append")
    parser.add_argument("--only", default="", help="scenarios whose names match this regular expression")
    parser.add_argument("--sample", action="store_true", help="only a few points of each scenario, as with REE_TEST_SAMPLE")
    parser.add_argument("--points", help="FIRST-LAST: these points only")
    parser.add_argument("--table", help="write the table of counts to this file")
    parser.add_argument("--shown", type=int, default=MAX_SHOWN, help="number of failures of a scenario that are printed in full")
    options = parser.parse_args()
    options.sampled = options.sample or os.environ.get("REE_TEST_SAMPLE", "1/1") != "1/1"
    os.environ["ASAN_OPTIONS"] = f"exitcode={SANITIZER_EXIT}:allocator_may_return_null=1"
    modes = {"memory": [("memory", "one"), ("memory", "onward"), ("json", "one")],
             "write": [("write", "one"), ("write", "onward"), ("write-full", "one")],
             "read": [("read", "one"), ("short", "one")]}
    chosen = [m for k in options.kind or modes for m in modes[k]]
    rows, n_run = [], dict.fromkeys(chosen, 0)
    with tempfile.TemporaryDirectory(dir=".", prefix="faults-") as scratch:
        scratch = pathlib.Path(scratch).resolve()
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        inputs = scratch / "inputs"
        inputs.mkdir()
        prepare(options.ree_run, inputs)
        for scenario in scenarios(inputs):
            for kind, mode in chosen:
                if kind not in scenario.kinds or not re.search(options.only, scenario.name):
                    continue
                folder = scratch / "points"
                folder.mkdir()
                sweep, begin = Sweep(options, scenario, kind, mode, folder), time.monotonic()
                sweep.run()
                shutil.rmtree(folder)
                c = sweep.counts
                n_run[kind, mode] += c["run"]
                if not c["points"]:
                    continue
                rows.append((scenario.name, kind, mode, *c.values()))
                print(f"{scenario.name}: {kind} {mode}: {c['points']} points, {c['run']} run: {c['failed']} failed with "
                      f"a reason, {c['same']} the same result, {c['wrong']} wrong; {time.monotonic() - begin:.0f} s",
                      flush=True)
    if not options.only and not options.points:
        for (kind, mode), n in n_run.items():
            check(n > 0, f"{kind} {mode}: no point was run")
    if options.table:
        with open(options.table, "w") as file:
            file.write("| command | what fails | which | points | run | failed with a reason | the same result | wrong |\n")
            file.write("|---|---|---|---|---|---|---|---|\n")
            file.writelines("| " + " | ".join(map(str, row)) + " |\n" for row in rows)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
