#!/usr/bin/env python3
"""ree-run plan as a program: tables, plan files, edited and invalid plan files, ONNX files with
stage hints."""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
import harness  # noqa: E402
from harness import check  # noqa: E402
import onnx_notes  # noqa: E402
import onnx_writer as onnx  # noqa: E402

ree_run = None
work = None
PYTHON = os.environ.get("REE_ORACLE_PYTHON", sys.executable)


def run(*args, command="plan"):
    return subprocess.run([ree_run, command, *map(str, args)], capture_output=True, text=True)


@harness.helper
def works(*args, command="plan"):
    done = run(*args, command=command)
    check(done.returncode == 0 and done.stderr == "", f"{args}: {done.stderr}")
    return done.stdout


@harness.helper
def fails(*args, messages, code=1):
    done = run(*args)
    check(done.returncode == code, f"exit code {done.returncode}, expected {code}: {done.stderr}")
    check(done.stderr.startswith("ree-run: "), done.stderr)
    check(done.stdout == "", done.stdout)
    for message in messages:
        check(message in done.stderr, f"'{message}' is not in: {done.stderr}")


def stages(text):
    """Returns (nodes, weights, state, flops, share, contents) for each line of the table."""
    found = re.findall(r"^ +(\d+) +(?:[a-z]\S* +)?(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+)%  (.*)$", text, re.M)
    check([int(f[0]) for f in found] == list(range(len(found))), text)
    return [(*map(int, f[1:5]), float(f[5]), f[6]) for f in found]


def chain(n, width=64, wishes=None):
    """A chain of n products. wishes: returns additional fields of node i."""
    shape = [width, width]
    nodes = []
    for i in range(n):
        node = onnx.node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"], f"n{i}")
        nodes.append(node + (wishes(i) if wishes else b""))
    return onnx.model(nodes, [onnx.port("v0", onnx.FLOAT, ["rows", width])],
                      [onnx.port(f"v{n}", onnx.FLOAT, ["rows", width])],
                      [onnx.floats("w", shape, [0.5] * (width * width))])


def write_models():
    (work / "chain.onnx").write_bytes(chain(8))
    works(SAMPLE / "stories", "-o", work / "stories.onnx", "--colocate-tensors", command="export")


def test_table():
    text = works(SAMPLE / "stories", "--n-partitions", 3)
    table = stages(text)
    check(len(table) == 3 and "stages    3, planned" in text, text)
    check("caches    8, counted for 1024 tokens" in text, text)
    check(abs(sum(s[4] for s in table) - 100) < 0.3, table)
    check(table[0][5].startswith("embedding, ") and table[2][5].endswith("norm, head"), table)
    check(len(re.findall(r"^cut \d\|\d  .*one live value", text, re.M)) == 2, text)
    check(sum(s[2] for s in table) == 2048, "8 caches of 64 floats for each token")
    whole = stages(works(SAMPLE / "stories", "--n-partitions", 1))
    check(whole[0][5] == "embedding, layers 0-3, norm, head" and whole[0][4] == 100.0, whole)
    check(sum(s[0] for s in table) == whole[0][0], "no node is lost")
    check(works(work / "stories.onnx", "--n-partitions", 3) == text, "exported, the same plan")
    check(works(SAMPLE / "stories", "--n-partitions", 3) == text, "again, the same plan")
    longer = works(SAMPLE / "stories", "--n-partitions", 3, "--context", 8192)
    check("counted for 8192 tokens" in longer, longer)
    digits = works(SAMPLE / "digits.onnx", "--n-partitions", 2)
    check("caches    none (not a language model)" in digits, digits)
    check("Conv 2, Relu 2, MaxPool 2" in digits, digits)
    check(len(stages(works(work / "chain.onnx", "--n-partitions", 8))) == 8, "each node a stage")


def test_devices():
    text = works(work / "chain.onnx", "--device", "cpu,vulkan:1", "--n-partitions", 3)
    check(re.findall(r"^ +\d  (cpu|vulkan:1) ", text, re.M) == ["cpu", "vulkan:1", "cpu"], text)
    text = works(work / "chain.onnx", "--device", "vulkan:GPU A, second,cpu")
    check(len(stages(text.replace("GPU A, second", "x"))) == 2 and "vulkan:GPU A, second " in text, text)
    text = works(work / "chain.onnx", "--device", "cpu,cpu,cpu,cpu")
    check(len(stages(text)) == 4, text)


def test_memory():
    total = stages(works(SAMPLE / "stories", "--n-partitions", 1))[0]
    caches = 512 * total[2]  # no text of the model is longer than 512 tokens
    least = (total[1] + caches) * 16 // 15 + 1
    check(len(stages(works(SAMPLE / "stories", "--max-device-memory", least))) == 1, "it fits")
    text = works(SAMPLE / "stories", "--max-device-memory", "1500K")
    check("counted for 512 tokens" in text, text)
    table = stages(text)
    check(len(table) > 1 and all(s[1] + caches <= 1440 * 1000 for s in table), text)
    fails(SAMPLE / "stories", "--n-partitions", len(table) - 1, "--max-device-memory", "1500K",
          messages=["1536000 bytes is too small", f"of {len(table) - 1} stages"])
    fails(SAMPLE / "stories", "--max-device-memory", "1K", messages=["1024 bytes is too small", " bytes are enough"])
    two = stages(works(SAMPLE / "stories", "--max-device-memory", "1500K", "--device", "cpu,cpu"))
    check(len(two) < len(table), "caches on two devices leave more to weights")
    more = stages(works(SAMPLE / "stories", "--max-device-memory", "2500K", "--micro-batches", 2))
    check(len(more) > len(stages(works(SAMPLE / "stories", "--max-device-memory", "2500K"))), "two sets of caches")
    check(len(stages(works(SAMPLE / "stories", "--processes", 3))) == 3, "a stage for each process")


def test_usage():
    for args, message in (
            (["--n-partitions", "2"], "no model given"),
            (["m", "--n-partitions", "0"], "--n-partitions"),
            (["m", "--plan", "p", "--n-partitions", "2"], "exclude each other"),
            (["m", "--max-device-memory", "5X"], "such as 600M or 2G, not '5X'"),
            (["m", "--max-device-memory", "99999999999G"], "not '99999999999G'"),
            (["m", "--max-device-memory", "0"], "not '0'"),
            (["m", "--device", ""], "--device requires"),
            (["m", "--device", "cpu,cpu", "--n-partitions", "1"], "2 devices, but --n-partitions 1 gives fewer stages"),
            (["m", "--wrong"], "--wrong")):
        fails(*args, messages=[message], code=2)
    fails(work / "none.onnx", "--n-partitions", 2, messages=["none.onnx"])
    fails(work / "chain.onnx", messages=["the nodes name no stages", "--n-partitions"])
    fails(work / "chain.onnx", "--n-partitions", 9, messages=["7 possible cuts", "for 8 stages"])
    text = works("--help")
    check("examples" in text and "--write OUT.onnx" in text, text)
    check(subprocess.run([ree_run, "help", "plan"], capture_output=True, text=True).stdout == text, "help plan")


def test_files():
    plan = work / "plan.json"
    text = works(work / "stories.onnx", "--n-partitions", 3, "-o", plan)
    data = json.loads(plan.read_text())
    check(works(work / "stories.onnx", "--n-partitions", 3, "--json") == plan.read_text(), "--json")
    check(data["schema"] == "ree-plan/1" and data["n_partitions"] == 3, data)
    check([s.get("contents") for s in data["stages"]] == [s[5] for s in stages(text)], data)
    check("ends_with" not in data["stages"][2] and "cut" not in data["stages"][2], data)
    for stage in data["stages"][:2]:
        check(stage["cut"]["values"] == [stage["ends_with"]], stage)
    again = works(work / "stories.onnx", "--plan", plan)
    check(stages(again) == stages(text) and "3, from the file" in again, again)
    check(stages(works(SAMPLE / "stories", "--plan", plan)) == stages(text), "the folder is the same model")

    # An edited plan with another end, reduced to the required members.
    bare = {"schema": data["schema"], "graph_sha256": data["graph_sha256"],
            "stages": [{"ends_with": "layers.0.attention_residual"}, {}]}
    plan.write_text(json.dumps(bare))
    table = stages(works(work / "stories.onnx", "--plan", plan))
    check([s[5] for s in table] == ["embedding, attention of layer 0",
                                    "feed-forward of layer 0, layers 1-3, norm, head"], table)

    def refused(change, *messages):
        edited = json.loads(json.dumps(bare))
        change(edited)
        plan.write_text(json.dumps(edited))
        fails(work / "stories.onnx", "--plan", plan, messages=["plan.json: ", *messages])

    def end(name):
        return lambda p: p["stages"][0].update(ends_with=name)

    refused(lambda p: p.update(graph_sha256="0" * 64), "for another model", "0" * 64, data["graph_sha256"])
    refused(lambda p: p.update(schema="ree-plan/9"), "its schema is 'ree-plan/9'")
    refused(end("nothing"), "'nothing', but the model has no such value")
    refused(end("input_ids"), "'input_ids', which no node computes: it is an input")
    refused(end("causal"), "'causal', which belongs to no stage")
    refused(end("layers.0.self_attn.q_proj\x1b[31m"), "q_proj\\x1b[31m")
    refused(end("logits"), "the stage after 'logits' is empty")
    refused(lambda p: p["stages"].insert(0, {"ends_with": "layers.1.mlp_residual"}), "' is empty: a plan must list values")
    for text, message in (("", "it is not JSON"), ("{", "it is not JSON"), ("[]", "not a JSON object"),
                          ("\0", "zero byte"), ("{}", "no 'schema'")):
        plan.write_text(text)
        fails(work / "stories.onnx", "--plan", plan, messages=["plan.json: ", message])
    fails(work / "stories.onnx", "--plan", work / "absent.json", messages=["absent.json"])
    fails(work / "stories.onnx", "--n-partitions", 2, "-o", work / "no" / "p.json", messages=["p.json"])


def test_damaged_files():
    plan = work / "damaged.json"
    works(work / "chain.onnx", "--n-partitions", 3, "-o", plan)
    good = plan.read_bytes()
    chance = random.Random(7)
    accepted = 0
    for _ in range(150):
        bad = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            kind = chance.randrange(3)
            at = chance.randrange(len(bad))
            if kind == 0:
                bad[at] = chance.randrange(256)
            elif kind == 1:
                del bad[at:at + chance.randint(1, 40)]
            else:
                source = chance.randrange(len(bad))
                bad[at:at] = bad[source:source + chance.randint(1, 40)]
        plan.write_bytes(bytes(bad))
        done = run(work / "chain.onnx", "--plan", plan)
        accepted += done.returncode == 0
        ok = done.returncode == 0 or (done.returncode == 1 and "damaged.json" in done.stderr)
        check(ok, f"{done.returncode} {done.stderr!r} {bytes(bad)!r}")
    check(0 < accepted < 150, f"{accepted} accepted")


def hashes(path):
    return works(path, "--hash", command="inspect").split("SHA-256")[1].split("operators")[0]


def is_valid(path):
    """Returns whether onnx.checker accepts the file. Without the onnx package, prints so and
    returns True."""
    # Debian's ONNX test data leaves a folder that can be imported as "onnx" but has no checker.
    code = ("import sys\ntry:\n    import onnx.checker\nexcept ImportError:\n    sys.exit(77)\n"
            "onnx.checker.check_model(sys.argv[1])")
    done = subprocess.run([PYTHON, "-c", code, str(path)], capture_output=True, text=True)
    if done.returncode == 77:
        print(f"{path.name}: not checked, {PYTHON} has no onnx")
        return True
    return done.returncode == 0


def test_write():
    before, after = work / "stories.onnx", work / "noted.onnx"
    text = works(before, "--n-partitions", 3, "--write", after)
    check(hashes(after) == hashes(before), "the same model")
    check(is_valid(after), "onnx.checker")
    # The nodes request the plan's stages.
    hinted = works(after)
    check(stages(hinted) == stages(text) and "named by the nodes" in hinted, hinted)
    check(stages(works(after, "--n-partitions", 2)) == stages(works(before, "--n-partitions", 2)),
          "a number of stages goes before what nodes ask for")
    nodes = onnx_notes.nodes(after)
    check(onnx_notes.configurations(after) == [("ree-pipeline", 3)], onnx_notes.configurations(after))
    named = {n["name"]: n for n in nodes}
    check(len(nodes) == len(onnx_notes.nodes(before)), "as many nodes")
    for node in nodes:
        notes = node["metadata"]
        control = notes["ree.role"] == "control"
        stage = notes.get("pipeline_stage")
        check(node["stages"] == ([] if control else [("ree-pipeline", int(stage))]), node)
        check(("pipeline_stage" in notes) != control, node)
    # A node that a pass removed is in the stage of its reader.
    for name, node in named.items():
        if name.endswith(".transpose"):
            reader = named[name[:-len(".transpose")]]["metadata"]
            check(node["metadata"]["pipeline_stage"] == reader["pipeline_stage"], name)
            check(node["metadata"]["ree.role"] == reader["ree.role"], name)
    # Writing again gives the same bytes. Writing over the file with another plan changes only its
    # metadata.
    first = after.read_bytes()
    works(after, "--n-partitions", 3, "--write", work / "noted2.onnx")
    check((work / "noted2.onnx").read_bytes() == first, "the same again")
    works(after, "--n-partitions", 2, "--write", after)
    check(hashes(after) == hashes(before) and len(stages(works(after))) == 2, "over itself")
    ids = ["--prompt-ids", "1,5,9", "--max-new-tokens", "4", "--no-echo"]
    answers = [works(m, *ids, command="generate").splitlines()[0] for m in (before, after)]
    check(answers[0] == answers[1], answers)
    # A model without caches and with its weights inside the file.
    works(SAMPLE / "digits.onnx", "--n-partitions", 2, "--write", work / "digits.onnx")
    check(hashes(work / "digits.onnx") == hashes(SAMPLE / "digits.onnx"), "digits")
    check(is_valid(work / "digits.onnx"), "onnx.checker")
    check({n["metadata"]["ree.phase"] for n in onnx_notes.nodes(work / "digits.onnx")} == {"prefill"},
          "no cache, no decoding")
    check(len(stages(works(work / "digits.onnx"))) == 2, "asked for")


def test_write_refused():
    (work / "elsewhere").mkdir()
    out = work / "elsewhere" / "m.onnx"
    fails(work / "stories.onnx", "--n-partitions", 2, "--write", out,
          messages=["elsewhere/m.onnx", "in the folder of", "stories.onnx"])
    check(not out.exists(), "nothing is written")
    fails(SAMPLE / "stories", "--n-partitions", 2, "--write", out, messages=["ree-run export"])
    fails(SAMPLE / "digits.onnx", "--n-partitions", 2, "--write", work / "elsewhere",
          messages=["not a regular file"])
    # A model without external data may be written to any folder.
    works(work / "chain.onnx", "--n-partitions", 2, "--write", out)
    check(len(stages(works(out))) == 2, "chain")


def wish(stage):
    return onnx.chunk(10, onnx.chunk(1, "c") + onnx.number(3, stage))


def note(text):
    return onnx.chunk(9, onnx.chunk(1, "pipeline_stage") + onnx.chunk(2, text))


def test_hints():
    def nodes_of(**options):
        (work / "hints.onnx").write_bytes(chain(8, **options))
        return [s[0] for s in stages(works(work / "hints.onnx"))]

    check(nodes_of(wishes=lambda i: wish(i // 3)) == [3, 3, 2], "device configurations")
    check(nodes_of(wishes=lambda i: note(str(i // 3))) == [3, 3, 2], "metadata")
    check(nodes_of(wishes=lambda i: wish(i // 4) + note("7")) == [4, 4], "configurations first")
    check(nodes_of(wishes=lambda i: wish(5) if i == 6 else wish(0) if i == 1 else b"") == [6, 2], "two nodes")
    (work / "hints.onnx").write_bytes(chain(8, wishes=lambda i: wish(i % 2)))
    fails(work / "hints.onnx", messages=["hints.onnx: ", "node 'n1' (MatMul) names stage 1",
                                         "node 'n2' (MatMul) names stage 0"])
    check(len(stages(works(work / "hints.onnx", "--n-partitions", 2))) == 2, "a number goes before")
    fails(work / "hints.onnx", "--device", "cpu,cpu", messages=["--n-partitions overrides them"])
    (work / "hints.onnx").write_bytes(chain(8, wishes=lambda i: wish(i // 3)))
    check([s[0] for s in stages(works(work / "hints.onnx", "--device", "cpu,cpu"))] == [3, 3, 2], "on two devices")
    fails(work / "hints.onnx", "--device", "cpu,cpu,cpu,cpu", messages=["there are 3 stages, fewer than the 4 devices"])
    fails(work / "hints.onnx", "--max-device-memory", "1K", messages=["nodes name", "stage 0 of 3", "17476 bytes"])
    (work / "hints.onnx").write_bytes(chain(8, wishes=lambda i: note("soon")))
    fails(work / "hints.onnx", messages=["node 'n0' (MatMul)", "'soon', expected a number"])


def test_branches():
    """A merged decoder: an If on a bool input, with a cache."""
    def branch(name, *nodes):
        graph = b"".join(onnx.chunk(1, n) for n in nodes) + onnx.chunk(2, name)
        return onnx.chunk(1, name) + onnx.chunk(6, graph + onnx.chunk(12, onnx.chunk(1, "out"))) + onnx.number(20, 5)

    choice = onnx.node("If", ["use_cache_branch"], ["present.0.key"], "merged")
    choice += onnx.chunk(5, branch("then_branch", onnx.node(
        "Concat", ["past_key_values.0.key", "k"], ["out"], attributes=[("axis", 2)])))
    choice += onnx.chunk(5, branch("else_branch", onnx.node("Identity", ["k"], ["out"])))
    size, cache = 64, ["batch", 1, "past", 64]
    nodes = [onnx.node("Gather", ["w", "input_ids"], ["x"]), onnx.node("MatMul", ["x", "w"], ["y"]),
             onnx.node("Unsqueeze", ["y", "axes"], ["k"]), choice,
             onnx.node("ReduceSum", ["present.0.key", "rows"], ["z"], attributes=[("keepdims", 0)]),
             onnx.node("Add", ["y", "z"], ["a"]), onnx.node("MatMul", ["a", "w"], ["logits"])]
    (work / "merged.onnx").write_bytes(onnx.model(
        nodes, [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"]),
                onnx.port("past_key_values.0.key", onnx.FLOAT, cache),
                onnx.port("use_cache_branch", onnx.BOOL, [1])],
        [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", size]),
         onnx.port("present.0.key", onnx.FLOAT, cache[:2] + ["total", 64])],
        [onnx.floats("w", [size, size], [0.5] * size * size),
         onnx.tensor("axes", onnx.INT64, [1], (1).to_bytes(8, "little")),
         onnx.tensor("rows", onnx.INT64, [1], (2).to_bytes(8, "little"))]))
    text = works(work / "merged.onnx", "--n-partitions", 1)
    check("phase     prefill: else_branch of node 'merged' (If)\n"
          "phase     decode: then_branch of node 'merged' (If)\n" in text, text)


def main():
    global ree_run, work
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    ree_run = parser.parse_args().ree_run
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_models()
        for test in (test_table, test_devices, test_memory, test_usage, test_files, test_damaged_files,
                     test_write, test_write_refused, test_hints, test_branches):
            test()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
