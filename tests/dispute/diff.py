#!/usr/bin/env python3
"""ree-run diff of receipts: names every difference. If both receipts have their traces next to
them, it also names the first node that differs.
"""
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "receipt"))
import harness  # noqa: E402
from harness import check  # noqa: E402
from sealing import seal  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample"
PROMPT = "Once upon a time"

ree_run = ""


def run(*args):
    return harness.call(ree_run, *args)


def text(path, *args):
    done = run(SAMPLE / "stories", "--prompt-text", PROMPT, "--max-new-tokens", 6, "--receipt-path", path,
               "--json", *args)
    check(done.returncode == 0, f"{args}: {done.stderr}")
    return path


def diff(a, b, code, *args):
    done = run("diff", a, b, "--json", *args)
    check(done.returncode == code, f"{a.name} {b.name}: exit code {done.returncode}, expected {code}: {done.stderr}")
    return json.loads(done.stdout)


def names(result):
    return [entry["what"] for entry in result["receipts"]]


def alone(folder):
    one = text(folder / "one.json")
    again = text(folder / "again.json", "--threads", 1)
    check(names(diff(one, again, 0)) == [], "two runs of the same")
    done = run("diff", one, again)
    check("the receipts agree" in done.stdout, done.stdout)
    drawn = ["--temperature", 1e-6]  # low enough to choose the likeliest token in any case
    cold = text(folder / "cold.json", *drawn)
    for option, value, what in [("--seed", 3, "seed"), ("--top-k", 7, "top_k"), ("--top-p", 0.5, "top_p"),
                                ("--min-p", 0.25, "min_p"), ("--stop", "zzz", "stop")]:
        other = text(folder / f"{what}.json", *drawn, option, value)
        check(names(diff(cold, other, 1)) == [what], f"{what} alone differs")
    longer = text(folder / "longer.json", "--max-new-tokens", 8)
    result = diff(one, longer, 1)
    check(names(result) == ["max_new_tokens", "output tokens", "output text"], f"longer: {names(result)}")
    detail = [entry["detail"] for entry in result["receipts"] if entry["what"] == "output tokens"][0]
    check("the numbers of tokens are 6 and 8" in detail, detail)
    hot = text(folder / "hot.json", "--temperature", 5, "--seed", 11)
    result = diff(one, hot, 1)
    check({"temperature", "seed", "output tokens", "output text"} <= set(names(result)), f"hot: {names(result)}")
    detail = [entry["detail"] for entry in result["receipts"] if entry["what"] == "output tokens"][0]
    ids = [json.loads(path.read_text())["body"]["output"]["tokens"] for path in (one, hot)]
    at = next(i for i in range(6) if ids[0][i] != ids[1][i])
    check(detail.startswith(f"token {at} is {ids[0][at]} and {ids[1][at]};"), detail)
    private = text(folder / "private.json", "--private")
    check(names(diff(one, private, 0)) == [], "what is private says the same by its hashes, with its salt")
    check("output tokens" in names(diff(longer, private, 1)), "and another text differs")
    (folder / "private.json.salt").unlink()
    check(names(diff(one, private, 1)) == ["private"], "without the salt nothing can be said")
    digit = folder / "digit.json"
    check(run(SAMPLE / "digits.onnx", "--input", SAMPLE / "seven.npy", "--receipt-path", digit).returncode == 0, "digit")
    check({"kind", "graph", "weights"} <= set(names(diff(one, digit, 1))), "a text and tensors")
    five = folder / "five.json"
    check(run(SAMPLE / "digits.onnx", "--input", SAMPLE / "five.npy", "--receipt-path", five).returncode == 0, "five")
    result = names(diff(digit, five, 1))
    check(len(result) == 2 and result[0].startswith("input ") and result[1].startswith("output "), f"digits: {result}")


def with_traces(folder):
    a = text(folder / "a.json", "--trace", folder / "a.trace")
    b = text(folder / "b.json", "--trace", folder / "b.trace", "--inject-fault", "20:3:7")
    result = diff(a, b, 1)
    check(names(result) == ["trace"], f"a fault that changes no token: {names(result)}")
    check((result["trace"]["first"]["step"], result["trace"]["first"]["node"]) == (3, 20), "the node is named")
    done = run("diff", a, b)
    check(done.returncode == 1 and "trace differs" in done.stdout and "step 3: node 20" in done.stdout, done.stdout)
    page = folder / "page.html"
    check(run("diff", a, b, "--html", page).returncode == 1 and page.exists(), "a page")
    # A trace of another run under the file name that the receipt states.
    (folder / "b.trace").write_bytes((folder / "a.trace").read_bytes())
    done = run("diff", a, b)
    check(done.returncode == 2 and "is not the trace of this receipt" in done.stderr, done.stderr)
    (folder / "b.trace").unlink()
    done = run("diff", a, b)
    check(done.returncode == 2 and "b.trace" in done.stderr, done.stderr)
    # A trace name must not lead out of the receipt's folder.
    receipt = json.loads(b.read_text())
    receipt["unbound"]["trace_file"] = "../b.trace"
    b.write_text(json.dumps(receipt))
    done = run("diff", a, b)
    check(done.returncode == 1 and "step" not in done.stdout, f"{done.stdout}{done.stderr}")
    done = run("diff", a, folder / "a.trace")
    check(done.returncode == 2 and "give two receipts or two traces" in done.stderr, done.stderr)
    check(run("diff", a, folder / "none.json").returncode == 2, "a file that is not there")
    b.write_text("{")
    check(run("diff", a, b).returncode == 2, "half a receipt")


def forged(folder):
    """Names the bound field that differs, in a receipt that was changed and sealed again."""
    one, other = text(folder / "one.json", "--trace", folder / "one.trace"), folder / "other.json"
    receipt = json.loads(one.read_text())
    del receipt["unbound"]["trace_file"]
    one.write_text(json.dumps(receipt))

    def changed(what, change, *more):
        lie = json.loads(json.dumps(receipt))
        change(lie)
        other.write_text(json.dumps(seal(lie)))
        check(names(diff(one, other, 1)) == [what, *more], f"{what}: {names(diff(one, other, 1))}")

    changed("extensions", lambda r: r["body"].update(extensions={"refund": {"x": 1}}, critical=["refund"]))
    changed("extensions", lambda r: r["body"].update(extensions={"refund": {"x": 1}}))
    changed("schema's version", lambda r: r.update(schema="ree-receipt/1"), "tokenizer")
    changed("steps of the trace", lambda r: r["body"]["trace"].update(n_steps=77))
    changed("prefill chunk of the trace", lambda r: r["body"]["trace"].update(prefill_chunk=3))
    changed("request", lambda r: r["body"].update(request_sha256="0" * 64))
    # A trace next to the receipts whose name contains terminal control sequences.
    receipt["unbound"]["trace_file"] = "a\x1b[31m\x9b.trace"
    (folder / receipt["unbound"]["trace_file"]).write_bytes((folder / "one.trace").read_bytes())
    receipt["body"]["trace"]["root"] = "0" * 64
    for path in (one, other):
        path.write_text(json.dumps(seal(receipt)))
    done = run("diff", one, other)
    check(done.returncode == 2 and "\\x1b[31m" in done.stderr and "\x1b" not in done.stderr, done.stderr)


def main():
    global ree_run
    parser = harness.parser()
    ree_run = parser.parse_args().ree_run
    with tempfile.TemporaryDirectory() as name:
        alone(pathlib.Path(name))
        with_traces(pathlib.Path(name))
        forged(pathlib.Path(name))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
