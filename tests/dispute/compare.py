#!/usr/bin/env python3
"""`compare`: two devices with equal results are reported as equal. A bit flipped on one side is
found at its position, with its distance in ulp. HTML pages are well formed, load nothing and escape
names."""

import html.parser
import json
import pathlib
import re
import struct
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"
DIGITS = HERE.parents[1] / "tools" / "sample" / "digits.onnx"
PROMPT = ["--prompt-text", "Once upon a time"]
HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m"

ree_run, device = None, None


def run(*args):
    return harness.call(ree_run, *args)


def compare(*args, code):
    done = run("compare", *args, "--json")
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout else {}


def sides():
    return ["--device", "cpu", "--device", device]


class Page(html.parser.HTMLParser):
    """Checks that every element is closed, by itself or by an end tag. Records the elements for
    other checks."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.note(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}>")

    def handle_data(self, data):
        self.text.append(data)

    def note(self, tag, attrs):
        self.seen.add(tag)
        for key, value in attrs:
            check(key not in ("src", "href", "srcset") and not key.startswith("on"), f"{tag} {key}={value}")


def page(path):
    text = path.read_text("utf-8")
    check("http" not in text and "url(" not in text and "@import" not in text, "nothing is loaded")
    root = xml.fromstring(text.removeprefix("<!DOCTYPE html>"))  # fails if not well formed
    parser = Page()
    parser.feed(text)
    parser.close()
    check(not parser.open, f"not closed: {parser.open}")
    check(not parser.seen & {"script", "link", "img", "iframe", "object", "foreignObject"}, f"{parser.seen}")
    for svg in root.iter("svg"):
        width, height = map(float, svg.get("viewBox").split()[2:])
        for line in svg.iter("polyline"):
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                check(0 <= x <= width and 0 <= y <= height, f"{point} is outside")
        for rect in svg.iter("rect"):
            check(0 <= float(rect.get("x", 0)) + float(rect.get("width")) <= width + 1, "a rectangle is outside")
    return root, "".join(parser.text)


def same(folder):
    found = compare(SAMPLE, *PROMPT, "--max-new-tokens", 3, *sides(), code=0)
    check(found["result"] == "same" and found["n_steps"] == 3 and len(found["tokens"]) == 3, f"{found}"[:300])
    found = compare(DIGITS, "--random-inputs", 1, *sides(), code=0)
    check(found["result"] == "same" and found["n_steps"] == 1, f"{found}"[:300])
    if device == "cpu":
        found = compare(SAMPLE, *PROMPT, "--cpu-isa", "portable", "--prefill-chunk", 4, "--threads", 1, "--threads", 2,
                        code=0)
        made = run(SAMPLE, *PROMPT, "--max-new-tokens", 16, "--json")
        check(found["tokens"] == json.loads(made.stdout)["tokens"][-len(found["tokens"]):], "the tokens of a run")
    written = folder / "same.html"
    done = run("compare", DIGITS, "--random-inputs", 1, "--html", written)
    check(done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr)
    _, text = page(written)
    check("The same bytes" in text, text)


def suspects(first):
    """A product with an epilogue may use every primitive, so all primitives without a native form
    are named."""
    if device == "cpu" or first["op_type"] != "MatMul":
        return
    listed = run("devices").stdout.split(f"{device}:0")[1].split("not used")[0]
    forms = re.findall(r"^ +(?:primitive  )?(\w[\w, ]*?)  +(native|float64|float32|integer) \(", listed, re.M)
    wanted = {name for name, form in forms if form != "native"}
    found = {s["primitive"] for s in first["suspects"] if s["side"] == "B"}
    check(len(forms) > 5 and found == wanted, f"suspects {found}, expected {wanted}")


def fault(folder):
    """One flipped bit of one node in step 2 on the second device."""
    about = compare(SAMPLE, *PROMPT, "--max-new-tokens", 1, code=0)["nodes"]
    faults = ((17, "MatMul"), (31, "Attention"), (0, "RMSNormalization"), (22, "Add"))
    for bit, op_type in faults if device == "cpu" else faults[:2]:  # drivers need seconds for each
        node = [n["node"] for n in about if n["op_type"] == op_type][-2]  # so that nodes follow it
        element, offset = 5, bit
        found = compare(SAMPLE, *PROMPT, "--max-new-tokens", 4, *sides(), "--inject-fault",
                        f"{node}:2:{32 * element + offset}", code=1)
        first = found["first"]
        check((first["node"], first["step"], first["op_type"]) == (node, 2, op_type), f"{first}")
        check(first["inputs_agree"] and first["differing"] == 1, f"{first}")
        worst = first["worst"]
        check(worst["index"][-1] == element and sum(worst["index"]) == element, f"{worst}")
        a, b = (struct.unpack("<I", struct.pack("<f", worst[k]))[0] for k in "ab")
        check(a ^ b == 1 << bit, f"{worst}: {a:08x} {b:08x}")
        distance = (a & 0x7FFFFFFF) + (b & 0x7FFFFFFF) if bit == 31 else abs(a - b)
        check(worst["ulp"] == distance, f"{worst}, expected {distance} ulp")
        buckets = first["ulp_histogram"]
        check(len(buckets) == 1 and buckets[0]["from"] <= distance <= buckets[0]["to"], f"{buckets}")
        check(first["other_sign"] == (bit == 31), f"{first}")
        suspects(first)
        drift = {n["node"]: n for n in found["nodes"]}
        check(all(n["runs_new"] == 0 for n in found["nodes"] if n["node"] < node), "before")
        check(drift[node]["runs_new"] == 1 and found["nodes_new"] == 1, f"{drift[node]}, {found['nodes_new']} new")
        behind = [n for n in found["nodes"] if n["node"] > node and n["runs_differ"]]
        check(behind and all(n["runs_new"] == 0 for n in behind), "what lies behind only carries it on")
        check(all(n["elements"] > 0 and n["max_rel"] != 0 for n in behind), "with its size")


def pages(folder):
    written = folder / "fault.html"
    done = run("compare", SAMPLE, *PROMPT, "--max-new-tokens", 4, *sides(), "--inject-fault", "50:1:20", "--html", written)
    check(done.returncode == 1 and "node 50" in done.stdout and "worst at" in done.stdout, done.stdout + done.stderr)
    root, text = page(written)
    check("First difference: step 1, node 50" in text, text[:500])
    lines = list(root.iter("polyline"))
    check(lines and all(len(line.get("points").split()) > 4 for line in lines), f"{len(lines)} lines")
    check(len(list(root.iter("tr"))) > 10, "a table")


def traces(folder):
    a, b, written = folder / "a.trace", folder / "b.trace", folder / "diff.html"
    run(SAMPLE, *PROMPT, "--max-new-tokens", 4, "--trace", a)
    run(SAMPLE, *PROMPT, "--max-new-tokens", 4, "--trace", b, "--inject-fault", "50:1:20")
    done = run("diff", a, b, "--html", written)
    check(done.returncode == 1, done.stderr)
    root, text = page(written)
    new = [rect for rect in root.iter("rect") if rect.get("class") == "new" and rect.get("x")]
    check(len(new) == 1 and new[0].find("title").text.startswith("50 "), f"{len(new)} new nodes")
    check("step 1, node 50" in text, text[:300])
    check(run("diff", a, a, "--html", written).returncode == 0, "the same")
    _, text = page(written)
    check("The same" in text, text[:300])
    run(SAMPLE, "--prompt-text", "The", "--max-new-tokens", 2, "--prefill-chunk", 1, "--trace", b)
    check(run("diff", a, b, "--html", written).returncode == 2, "not to be compared")
    _, text = page(written)
    check("cannot be compared" in text, text[:300])


def hostile(folder):
    """A model whose names contain markup."""
    model, written = folder / "model.onnx", folder / "hostile.html"
    model.write_bytes(onnx.model([onnx.node("Sin", ["x"], ["y" + HOSTILE], name=HOSTILE),
                                  onnx.node("Cos", ["y" + HOSTILE], ["z"], name="\xe9\u20ac" + HOSTILE)],
                                 [onnx.port("x", 1, [4])], [onnx.port("z", 1, [4])]))
    args = [model, "--random-inputs", 1]
    done = run("compare", *args, *sides(), "--inject-fault", "0:0:20", "--html", written)
    check(done.returncode == 1 and "\x1b" not in done.stdout, done.stdout + done.stderr)
    _, text = page(written)
    check("<script>alert(1)</script>&\"'\ufffd[31m" in text, text)
    check("\xe9\u20ac" in text, text)
    for name, fault_args in (("a", []), ("b", ["--inject-fault", "0:0:20"])):
        done = run(*args, "--trace", folder / name, *fault_args)
        check(done.returncode == 0, done.stderr)
    written = folder / "diff.html"
    done = run("diff", folder / "a", folder / "b", "--html", written)
    check(done.returncode == 1, f"{done.returncode}: {done.stderr}")
    _, text = page(written)
    check("<script>" in text, text)


def wrong(folder):
    for args, message in ((["--device", "cpu"], "no model"), ([DIGITS], "the model's inputs are"),
                          ([DIGITS, "--device", "cpu", "--device", "cpu", "--device", "cpu"], "at most twice"),
                          ([SAMPLE, *PROMPT, "--random-inputs", 1], "exclude"),
                          ([SAMPLE, *PROMPT, "--prompt-ids", "1"], "one prompt"),
                          ([SAMPLE, *PROMPT, "--inject-fault", "500:0:0"], "into node 500"),
                          ([SAMPLE, "--prompt-ids", "999999"], "vocabulary"),
                          ([SAMPLE, *PROMPT, "--max-new-tokens", 1, "--inject-fault", "50:1:0"], "step 1 does not exist"),
                          ([folder / "none.onnx", "--random-inputs", 1], "none.onnx"),
                          ([DIGITS, "--random-inputs", 1, "--html", folder / "no" / "x.html"], "x.html")):
        done = run("compare", *args)
        check(done.returncode == 2, f"{args}: exit code {done.returncode}")
        check(message in done.stderr, f"{args}: '{message}' is not in: {done.stderr}")


def main():
    global ree_run, device
    parser = harness.parser()
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    ree_run, device = args.ree_run, args.device
    if device != "cpu":
        harness.need_device(args.ree_run, device)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        parts = (same, fault, pages, traces, hostile, wrong) if device == "cpu" else (same, fault, hostile)
        for part in parts:
            part(folder)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
