"""Files that ree 0.1.0 wrote (tests/data/version_0_1_0) must get the verdicts that format 1 has: receipts, traces,
a claim, a plan and a checkpoint of the sample models.

    text.json      signed by operator.pub, with a hash of the logits and the root of text.trace
    fault.json     the same run with a bit flipped in step 1, node 30; fault.trace
    private.json   hashes in place of prompt and answer
    sampled.json   temperature 0.9, top-k 20, a repetition penalty, a stop text
    tensors.json   digits.onnx with five.npy; tensors.trace
    claim.json     of text.trace and fault.trace
    plan.json      two stages
    checkpoint.json  3 of 12 tokens at temperature 0.8, from a run that was killed
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
import sealing
from harness import call, check, helper

args = harness.parser(__doc__).parse_args()
source = HERE.parent.parent
data = source / "tests/data/version_0_1_0"
sample = source / "tools/sample"
stories, digits, five, nine = (sample / name for name in ("stories", "digits.onnx", "five.npy", "nine.npy"))


@helper
def expect(code, lines, *arguments):
    """Runs ree-run, which must exit with `code` and print each of the lines (regular expressions). Returns its
    standard output."""
    done = call(args.ree_run, *arguments)
    check(done.returncode == code, lambda: f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    for line in lines:
        found = re.search(f"^{line}$", done.stdout, re.MULTILINE)
        check(found, lambda: f"{arguments}: no line '{line}'\n{done.stdout}")
    return done.stdout


def receipts(folder):
    text, fault = data / "text.json", data / "fault.json"
    trace = folder / "mine.trace"
    expect(3, ["trace: not checked.*", "logits: agrees", "verified in part .*"], "verify", text, stories)
    expect(0, ["trace: agrees", "verified .*"], "verify", text, stories, "--trace", trace)
    check(trace.read_bytes() == (data / "text.trace").read_bytes(), "verify writes another trace than 0.1.0")
    expect(1, ["logits: differs.*", "differs .*"], "verify", fault, stories)
    # Another version may optimise a graph differently, so other roots prove nothing; the logits do.
    expect(1, ["trace: not checked: the roots differ.*ree 0.1.0.*", "differs .*"], "verify", fault, stories,
           "--trace", folder / "other.trace")
    expect(0, ["signature +ok .*", "public key +ok .*", "valid"],
           "validate", text, "--public-key", data / "operator.pub")

    expect(2, [], "verify", data / "private.json", stories)
    prompt = ["--prompt-text", "Once upon a time"]
    expect(0, ["verified .*"], "verify", data / "private.json", stories, *prompt)
    expect(1, ["differs.*"], "verify", data / "private.json", stories, "--prompt-text", "Once upon the time")
    expect(0, ["finish: agrees", "verified .*"], "verify", data / "sampled.json", stories)

    tensors = data / "tensors.json"
    expect(3, ["verified in part .*"], "verify", tensors, digits, "--input", five)
    expect(0, ["trace: agrees", "verified .*"], "verify", tensors, digits, "--input", five,
           "--trace", folder / "t.trace")
    check((folder / "t.trace").read_bytes() == (data / "tensors.trace").read_bytes(), "another trace of digits.onnx")
    expect(1, ["differs.*"], "verify", tensors, digits, "--input", nine)

    receipt = json.loads(text.read_text())
    forged = folder / "forged.json"
    receipt["body"]["output"]["text"] += "!"
    forged.write_text(json.dumps(receipt))
    expect(1, ["not valid"], "validate", forged)


def disputes(folder):
    text, fault = data / "text.trace", data / "fault.trace"
    root = json.loads((data / "text.json").read_text())["body"]["trace"]["root"]
    expect(0, [f"root +{root}", "steps +3"], "trace", text)
    node = "step 1: node 30 'layers.0.mlp.gated' .Mul. "
    expect(1, ["logits differs.*", f"{node}differs"], "diff", data / "text.json", data / "fault.json")
    expect(1, [f"{node}is the first that differs"], "dispute", "--a", text, "--b", fault, "--claim", folder / "c.json")
    dumped = folder / "dumped"
    expect(0, [], stories, "--prompt-text", "Once", "--max-new-tokens", 3, "--dump-tensors", "^layers.0.mlp",
           "--dump-folder", dumped)
    # 0.1.0's claims do not state the headers, and bind nobody without receipts.
    expect(3, ["A +right", "B +wrong: output 0", "A is right"],
           "referee", data / "claim.json", stories, "--inputs", dumped)
    expect(0, ["A is right"], "referee", folder / "c.json", stories, "--inputs", dumped,
           "--a-receipt", data / "text.json", "--b-receipt", data / "fault.json")


def new_receipt_of_an_old_trace(folder):
    """Nobody leaves a dispute by recording a trace in the old format: only receipts of version 1 may have one."""
    receipt = json.loads((data / "fault.json").read_text())
    receipt["schema"] = "ree-receipt/2"
    del receipt["signature"]
    new = folder / "new.json"
    new.write_text(json.dumps(sealing.seal(receipt)))
    expect(0, ["valid"], "validate", new)
    wrong = "receipt is false: its trace has version 1 of the format"
    for mine, other, side in ((data / "text.json", new, "B"), (new, data / "text.json", "A")):
        traces = [data / ("fault.trace" if path == new else "text.trace") for path in (mine, other)]
        done = call(args.ree_run, "dispute", "--a", traces[0], "--b", traces[1], "--claim", folder / "never.json",
                    "--model", stories, "--a-receipt", mine, "--b-receipt", other, "--json")
        check(done.returncode == 3 and f"{side}'s {wrong}" in done.stdout + done.stderr and not (folder / "never.json").exists(), f"{done}")


def runs(folder):
    whole = json.loads(expect(0, [], stories, "--prompt-text", "Once", "--max-new-tokens", 3, "--json"))
    stages = json.loads(expect(0, [], stories, "--prompt-text", "Once", "--max-new-tokens", 3, "--json",
                               "--plan", data / "plan.json"))
    stated = json.loads((data / "text.json").read_text())["body"]["output"]["tokens"]
    check(whole["tokens"] == stages["tokens"] == stated, "other tokens with the plan")

    # ree-run replaces the checkpoint that it resumes from.
    checkpoint = folder / "checkpoint.json"
    shutil.copy(data / "checkpoint.json", checkpoint)
    options = ["--prompt-text", "Once upon a time", "--max-new-tokens", 12, "--temperature", 0.8, "--seed", 3, "--json"]
    whole = json.loads(expect(0, [], stories, *options))
    resumed = json.loads(expect(0, [], stories, *options, "--resume", checkpoint))
    check(resumed["stats"]["new_tokens"] == 9, "the run does not continue after 3 tokens")
    check(resumed["tokens"] == whole["tokens"], "other tokens from the checkpoint")
    recorded = "18cf2dbfffe46b21b2c44e341730d6f84a727b74d880ef395d867dbfcb78d03e"  # of 0.1.0
    check(resumed["tokens_sha256"] == recorded, "other tokens than 0.1.0")


with tempfile.TemporaryDirectory() as name:
    for part in (receipts, disputes, new_receipt_of_an_old_trace, runs):
        part(pathlib.Path(name))
sys.exit(harness.finish())
