#!/usr/bin/env python3
"""ree.explain: the costs of each dispatch of a model, as numbers, text and a page. docs/PYTHON.md shows the text for the
sample model; the operators must be those, whatever the times are."""
import pathlib
import re
import sys
import tempfile
import xml.dom.minidom

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import numpy  # noqa: E402
import ree  # noqa: E402
from harness import check, fails  # noqa: E402

DIGITS, SEVEN = ROOT / "tools" / "sample" / "digits.onnx", numpy.load(ROOT / "tools" / "sample" / "seven.npy")


def main():
    session = ree.Session(DIGITS, ree.Device("cpu", n_threads=1))
    inputs = {session.inputs[0].name: SEVEN}
    made = ree.explain(session, inputs, runs=1)
    check(made.flop_rate > 1e8 and made.byte_rate > 1e8, f"limits: {made.flop_rate}, {made.byte_rate}")
    check(len(made.graphs) == 1, f"{made.graphs}")
    graph = made.graphs[0]
    check(graph.seconds > 0 and graph.device == session.device.name, f"{graph}")
    times = [cost.seconds for cost in graph.dispatches]
    check(times == sorted(times, reverse=True) and min(times) >= 0, f"{times}")
    product = [cost for cost in graph.dispatches if "fc2" in cost.node]
    check(len(product) == 1 and product[0].flops > 0 and product[0].nbytes > 0, f"{product}")
    for cost in graph.dispatches:
        best = max(cost.flops / cost.seconds / made.flop_rate, cost.nbytes / cost.seconds / made.byte_rate) if cost.seconds else 0
        check(abs(cost.limit - best) <= 1e-9 * max(best, 1), f"{cost}")
    lines = str(made).splitlines()
    found = {tuple(re.split(r"  +", line)[:2]) for line in lines if "node '" in line}
    shown = {tuple(re.split(r"  +", line.strip())[:2]) for line in (ROOT / "docs" / "PYTHON.md").read_text().splitlines()
             if re.match(r"    \w+ +node '", line)}
    check(found == shown, f"docs/PYTHON.md shows {sorted(shown)}, this is {sorted(found)}")
    check(re.fullmatch(rf"the model: .* a run on .*; {graph.n_nodes} nodes are {len(graph.dispatches)} dispatches, which take .*", lines[0]),
          lines[0])
    page = xml.dom.minidom.parseString(re.search(r"<svg.*?</svg>", made.html)[0])
    bars = page.getElementsByTagName("rect")
    check(len(bars) == len(graph.dispatches), f"{len(bars)} bars")
    width = sum(float(bar.getAttribute("width")) for bar in bars)
    check(890 < width < 910, f"the bars are {width} wide")
    with tempfile.TemporaryDirectory() as folder:
        made.save(pathlib.Path(folder) / "costs.html")
        check((pathlib.Path(folder) / "costs.html").read_text("utf-8") == made.html, "the page in a file")
    check(made._repr_html_() == made.html, "notebooks")
    by_path = ree.explain(str(DIGITS), inputs, device="cpu", runs=1)
    check({cost.node for cost in by_path.graphs[0].dispatches} == {cost.node for cost in graph.dispatches}, "by path")
    check(ree.sha256(session.run(inputs)) == ree.sha256(ree.Session(DIGITS).run(inputs)), "the session still works")
    with fails(ree.InvalidError, "runs is 0"):
        ree.explain(session, inputs, runs=0)
    with fails(ree.InvalidError, "one mapping from names to values"):
        ree.explain(session)
    with fails(ree.InvalidError, "no input 'other'"):
        ree.explain(session, {"other": SEVEN}, runs=1)
    with fails(ree.NotFoundError, "was not compiled with backend"):
        ree.explain(len, [1])
    sys.exit(harness.finish())


main()
