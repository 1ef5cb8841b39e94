#!/usr/bin/env python3
"""The Python package: receipts, verification, traces, comparisons; also against files that ree-run made.

    PYTHONPATH=build/python tests/python/audit.py --ree-run build/ree-run
"""
import gc
import json
import os
import pathlib
import pickle
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402

try:
    import numpy as np
except ImportError:
    harness.skip("NumPy is not installed")
import ree  # noqa: E402

DIGITS, STORIES, PROMPT = SAMPLE / "digits.onnx", SAMPLE / "stories", "Once upon a time"
INPUTS = {"image": np.load(SAMPLE / "seven.npy")}
WRONG = {"image": INPUTS["image"] + np.float32(1)}


def differing(verification):
    return [c.name for c in verification.checks if c.outcome == "differs"]


def test_receipt_of_tensors():
    with ree.Session(DIGITS) as session:
        outputs = session.run(INPUTS)
        receipt = session.receipt(INPUTS, outputs)
        with fails(ree.InvalidError, "output 'probabilities' is missing"):
            session.receipt(INPUTS, {})
        with fails(ree.InvalidError):
            session.receipt({}, outputs)
        with fails(ree.InvalidError, "no input 'x'"):
            session.receipt({"x": INPUTS["image"]}, outputs)
        for wrong in (outputs["probabilities"].astype("f8"), outputs["probabilities"].astype("i4")):
            with fails(ree.InvalidError, "expected float32"):
                session.receipt(INPUTS, {"probabilities": wrong})
        untrue = session.receipt(INPUTS, {"probabilities": outputs["probabilities"] * 2})
    check(receipt.fields["body"]["kind"] == "tensors" and len(receipt.sha256) == 64, f"{receipt.fields}")
    check(receipt.fields["receipt_hash"] == receipt.sha256 and receipt.public_key is None, "its hash")
    check(all(finding.ok for finding in receipt.validate()), f"{receipt.validate()}")
    check(receipt.verify(DIGITS, inputs=INPUTS) == receipt.verify(str(DIGITS), ree.Device("cpu", n_threads=1),
                                                                  inputs=INPUTS), "on an open device")
    verified = receipt.verify(DIGITS, inputs=INPUTS)
    check(verified.ok and verified.verdict == "verified" and verified.n_runs == 1, f"{verified}")
    without = receipt.verify(DIGITS)
    check(not without.ok and without.verdict == "cannot be checked" and "image" in without.reason, f"{without}")
    check(differing(receipt.verify(DIGITS, inputs=WRONG)) == ["input image"], "other inputs")
    verified = untrue.verify(DIGITS, inputs=INPUTS)
    check(verified.verdict == "differs" and differing(verified) == ["output probabilities"], f"{verified}")
    check([d.what for d in ree.diff(receipt, untrue)] == ["output probabilities"], f"{ree.diff(receipt, untrue)}")
    check(receipt.diff(receipt) == [] == ree.diff(receipt, receipt), "no difference")
    other = receipt.verify(STORIES, inputs=INPUTS)
    check(other.verdict == "differs" and {"graph", "weights"} <= set(differing(other)), f"{other}")
    with fails(ree.NotFoundError, "nothing"):
        receipt.verify("nothing", inputs=INPUTS)
    with fails(TypeError, "cannot be pickled"):
        pickle.dumps(receipt)


def test_receipt_files():
    with ree.Session(DIGITS) as session:
        receipt = session.receipt(INPUTS, session.run(INPUTS))
    key = ree.create_key("operator.key")
    other = ree.create_key("other.key")
    with fails(OSError, "operator.key"):
        ree.create_key("operator.key")
    receipt.sign("operator.key")
    receipt.save("run.receipt")
    text = pathlib.Path("run.receipt").read_bytes()
    check(text.decode() == receipt.json + "\n", "the file is the canonical JSON")
    said = json.loads(harness.run(ree_run, "verify", "run.receipt", DIGITS, "--input",
                                  f"image={SAMPLE / 'seven.npy'}",
                                  "--public-key", key, "--json"))
    check(said["result"] == "verified", f"ree-run verifies it: {said}")
    for source in ("run.receipt", pathlib.Path("run.receipt"), text, bytearray(text)):
        loaded = ree.Receipt(source)
        check(loaded.json == receipt.json and loaded.public_key == key, "and back")
    for named in (key, key.upper(), "operator.key", "operator.key.pub"):
        check(all(finding.ok for finding in loaded.validate(public_key=named)), f"signed by {named}")
    check([f.what for f in loaded.validate(public_key=other) if not f.ok] == ["public key"], "another key")
    check(loaded.verify(DIGITS, inputs=INPUTS, public_key="operator.key").ok, "verified with its key")
    check(loaded.verify(DIGITS, inputs=INPUTS, public_key=other).verdict == "differs", "and not with another")
    # A receipt that was changed.
    fields = loaded.fields
    fields["body"]["outputs"][0]["sha256"] = "0" * 64
    forged = ree.Receipt(json.dumps(fields).encode())
    check([f.what for f in forged.validate() if not f.ok] == ["receipt"], f"{forged.validate()}")
    check(not forged.verify(DIGITS, inputs=INPUTS).ok, "a forged receipt")
    for damaged in (b"", b"{}", text[:-30], text.replace(b"tensors", b"nothing")):
        with fails(ree.InvalidError):
            ree.Receipt(damaged)
    with fails(ree.NotFoundError, "missing.receipt"):
        ree.Receipt("missing.receipt")
    with fails(ree.NotFoundError, "missing.key"):
        receipt.sign("missing.key")


def test_receipt_of_text():
    said = json.loads(harness.run(ree_run, STORIES, "--json", "--prompt-text", PROMPT, "--max-new-tokens", 12,
                                  "--receipt-path", "theirs.receipt", "--device", "cpu"))
    with ree.Generator(STORIES) as generator:
        answer = generator.generate(PROMPT, max_new_tokens=12, receipt=True)
        private = generator.generate(PROMPT, max_new_tokens=12, receipt="private").receipt
        check(generator.generate(PROMPT, max_new_tokens=12).receipt is None, "without")
        with fails(ree.InvalidError, "one prompt"):
            generator.generate([PROMPT, PROMPT], receipt=True)
        with fails(ValueError, "'private'"):
            generator.generate(PROMPT, receipt="yes")
        with generator.stream(PROMPT, max_new_tokens=12, receipt=True) as stream:
            list(stream)
        check(stream.result.receipt.sha256 == answer.receipt.sha256, "of a stream")
    check(answer.text == said["text"], "the same answer")
    theirs = ree.Receipt("theirs.receipt")
    check(ree.diff(answer.receipt, theirs) == [] and theirs.sha256 == answer.receipt.sha256, "ree-run's receipt")
    check(ree.diff("theirs.receipt", "theirs.receipt") == [], "diff of paths")
    for receipt in (answer.receipt, theirs):
        verified = receipt.verify(STORIES)
        check(verified.ok and verified.n_runs == 1 and verified.stepwise == "", f"in one pass: {verified}")
    check(receipt.verify(STORIES, stepwise=True).n_runs == 12, "step by step")
    with ree.Generator(STORIES, quantize_bits=8) as generator:
        receipt = generator.generate(PROMPT, max_new_tokens=4, receipt=True).receipt
    check(receipt.verify(STORIES).verdict == "differs" and receipt.verify(STORIES, quantize_bits=8).ok, "quantised")
    # A private receipt, with and without its salt.
    private.save("private.receipt")
    check(os.stat("private.receipt.salt").st_mode & 0o77 == 0, "the salt is secret")
    check(PROMPT not in private.json, "no text")
    loaded = ree.Receipt("private.receipt")
    check(loaded.verify(STORIES, prompt=PROMPT).ok, "verified with the salt that lies beside it")
    check(differing(loaded.verify(STORIES, prompt="Once upon a day")) != [], "another prompt")
    os.rename("private.receipt.salt", "salt")
    loaded = ree.Receipt("private.receipt")
    check(not loaded.verify(STORIES, prompt=PROMPT).ok, "without its salt")
    loaded.load_salt("salt")
    check(loaded.verify(STORIES, prompt=PROMPT).ok, "with its salt")
    with fails(ree.InvalidError):
        ree.Receipt(answer.receipt.json.encode()).load_salt("salt")


def test_traces():
    with ree.Session(DIGITS) as session:
        with session.record("run.trace", dump="prob", folder="values") as recording:
            outputs = session.run(INPUTS)
            session.run(WRONG)
            check(recording.root is None and not os.path.exists("run.trace"), "written at the end")
        check(recording.n_steps == 2 and recording.n_files == 2 and len(recording.root) == 64, f"{vars(recording)}")
        check(not recording.is_open, "it has ended")
        with fails(ree.Error, "closed"):
            recording.finish()
        with fails(ree.InvalidError):
            session.record("late.trace")
    value = np.load(next(pathlib.Path("values/step-00000").glob("*.npy")))
    check(value.tobytes() == outputs["probabilities"].tobytes(), "a dumped value")
    trace = ree.Trace("run.trace")
    said = json.loads(harness.run(ree_run, "trace", "run.trace", "--json"))
    check(trace.root == recording.root == said["root"] and trace.n_steps == 2, f"{said}")
    check(trace.graph_sha256 == ree.Model(DIGITS).graph_sha256 and trace.inputs == ["image"], "the model's")
    nodes = [trace.node(i) for i in range(trace.n_nodes)]
    check(nodes[0].op_type == "Conv" and nodes[0].inputs[0] == 0, f"{nodes[0]}")
    check(nodes[0].outputs == [1 + trace.n_constants] and nodes[-1].op_type == "Softmax", f"{nodes}")
    with fails(ree.NotFoundError):
        trace.node(trace.n_nodes)
    with ree.Session(DIGITS) as session, session.record("fault.trace", fault=f"{nodes[2].name}:1:3"):
        session.run(INPUTS)
        session.run(WRONG)
    found = ree.diff("run.trace", "fault.trace", report="page.html")
    check(not found.same and (found.kind, found.step, found.node) == ("node", 1, 2), f"{found}")
    check(found.name == nodes[2].name and found.op_type == nodes[2].op_type and found.inputs_agree, f"{found}")
    check(b"<html" in pathlib.Path("page.html").read_bytes()[:200], "a page")
    check(trace.diff(trace).same and trace.diff(trace).node is None, "the same")
    with ree.Session(DIGITS) as session, session.record("one.trace"):
        session.run(INPUTS)
    check(ree.diff("run.trace", "one.trace").kind == "length", "a shorter one")
    with ree.Session(DIGITS) as session, session.record("other.trace"):
        session.run(WRONG)
    found = ree.diff("one.trace", "other.trace")
    check((found.kind, found.input, found.name) == ("input", 0, "image"), f"{found}")
    damaged = bytearray(pathlib.Path("run.trace").read_bytes())
    damaged[-40] ^= 1
    pathlib.Path("damaged.trace").write_bytes(damaged)
    with fails(ree.InvalidError):
        ree.Trace("damaged.trace")
    with fails(ree.InvalidError, "cannot be compared"):
        with ree.Session(DIGITS) as session:
            ree.diff(trace, session.receipt(INPUTS, session.run(INPUTS)))
    # An exception ends a recording without a trace.
    with fails(ZeroDivisionError):
        with ree.Session(DIGITS) as session, session.record("no.trace"):
            session.run(INPUTS)
            1 / 0  # pylint: disable=pointless-statement
    check(not os.path.exists("no.trace"), "no trace after an exception")
    with ree.Session(DIGITS) as session:
        recording = session.record("late.trace")
        session.run(INPUTS)
    with fails(ree.Error, "is closed"):
        recording.finish()
    check(not os.path.exists("late.trace"), "the session was closed first")


def test_traced_receipts():
    with ree.Session(DIGITS) as session:
        with session.record("run.trace") as recording:
            outputs = session.run(INPUTS)
            with fails(ree.InvalidError, "has not ended"):
                session.receipt(INPUTS, outputs, trace=recording)
        receipt = session.receipt(INPUTS, outputs, trace=recording)
    check(receipt.fields["body"]["trace"]["root"] == recording.root, "states the root")
    check(receipt.verify(DIGITS, inputs=INPUTS).verdict == "verified in part", "the trace was not computed")
    check(receipt.verify(DIGITS, inputs=INPUTS, trace="again.trace").ok, "the trace was computed")
    check(ree.diff("run.trace", "again.trace").same, "the same trace")
    with ree.Generator(STORIES, exact_lengths=True) as generator:
        with generator.record("text.trace") as recording:
            answer = generator.generate(PROMPT, max_new_tokens=5, receipt=True)
        check(recording.n_steps == 5 and answer.receipt.fields["body"]["trace"]["root"] == recording.root, "its root")
        check(generator.generate(PROMPT, max_new_tokens=5, receipt=True).receipt.fields["body"].get("trace") is None,
              "the next answer is not recorded")
    check(answer.receipt.verify(STORIES, trace="again.trace").ok and ree.diff("text.trace", "again.trace").same,
          "verified with its trace")
    with ree.Generator(STORIES) as generator:
        with fails(ree.UnsupportedError):
            generator.record("mixed.trace")
    with ree.Generator(STORIES, exact_lengths=True) as generator:  # an answer that fails ends the recording
        with generator.record("failed.trace") as recording:
            with fails(ZeroDivisionError):
                generator.generate(PROMPT, on_text=lambda i, part: 1 // 0)
            answer = generator.generate(PROMPT, max_new_tokens=4, receipt=True)
            check("trace" not in answer.receipt.fields["body"] and not recording.is_open,
                  "not part of the next receipt")
        check(not os.path.exists("failed.trace"), "no trace of a failed answer")


def test_compare():
    devices = [listed.spec for listed in ree.devices() if "llvmpipe" in listed.name][:1] or ["cpu"]
    result = ree.compare(DIGITS, INPUTS, ("cpu", devices[0]))
    check(result.same and result.n_steps == 1 and result.n_differ == 0, f"{result.first}")
    check([node.op_type for node in result.nodes][:1] == ["Conv"], f"{result.nodes}")
    result = ree.compare(ree.Model(DIGITS), INPUTS, ("cpu", "cpu"), fault="3:0:20", report="page.html")
    first = result.first
    check((first.node, first.op_type, first.inputs_agree) == (3, "Conv", True), f"{first}")
    check(first.ulp.n_differ == 1 and first.ulp.max_ulp == 2 ** 20 and first.ulp.worst == 0, f"{first.ulp}")
    check(first.ulp.histogram == {(2 ** 20, 2 ** 21 - 1): 1} and first.shape == (1, 16, 14, 14), f"{first}")
    check(result.nodes[3].n_new == 1 and result.n_new == 1 and result.n_differ > 1, f"{result.n_differ}")
    check(b"<html" in pathlib.Path("page.html").read_bytes()[:200], "a page")
    result = ree.compare(STORIES, PROMPT, ("cpu", devices[0]), max_new_tokens=4)
    with ree.Generator(STORIES) as generator:
        check(result.same and result.ids == generator.generate(PROMPT, max_new_tokens=4).ids, f"{result.ids}")
    device = ree.Device("cpu")
    check(ree.compare(DIGITS, INPUTS, (device, device)).same, "one device, twice")
    device.close()
    with fails(ValueError, "two are expected"):
        ree.compare(DIGITS, INPUTS, ("cpu",))
    with fails(TypeError, "one prompt"):
        ree.compare(STORIES, [PROMPT, PROMPT], ("cpu", "cpu"))
    with fails(ree.InvalidError, "no input"):
        ree.compare(DIGITS, {"x": INPUTS["image"]}, ("cpu", "cpu"))
    with fails(ree.InvalidError):
        ree.compare(DIGITS, INPUTS, ("cpu", "cpu"), fault="3:9:20")


def test_lifetime():
    """Objects whose owners are dropped or closed first, in any order, and by the garbage collector."""
    session = ree.Session(DIGITS)
    recording = session.record("cycle.trace")
    recording.cycle = [recording, session]
    del recording, session
    gc.collect()
    session = ree.Session(DIGITS)
    recording = session.record("closed.trace")
    session.close()
    check(not recording.is_open and not os.path.exists("closed.trace"), "closed without a trace")
    # A callback looks at the receipt that another thread verifies, on one device.
    with ree.Device("cpu") as device:
        with ree.Session(DIGITS, device) as session:
            receipt = session.receipt(INPUTS, session.run(INPUTS))
        began, verdicts = threading.Event(), []

        def look(what, done, total):
            began.set()
            receipt.sha256  # pylint: disable=pointless-statement
        with ree.Session(DIGITS, device, progress=look) as session:
            thread = threading.Thread(target=lambda: [session.run(INPUTS) for _ in range(200)])
            thread.start()
            began.wait()
            verifier = threading.Thread(target=lambda: verdicts.append(receipt.verify(DIGITS, device, inputs=INPUTS).ok),
                                        daemon=True)
            verifier.start()
            verifier.join(60)
            thread.join(60)
            check(verdicts == [True], "no deadlock")
    refused = []

    def change(what, done, total):
        try:
            receipt.sign("operator.key")
        except ree.Error as e:
            refused.append(str(e))
    check(receipt.verify(DIGITS, inputs=INPUTS, progress=change).ok and refused and
          "the receipt is in use" in refused[0], f"a callback that changes the receipt: {refused}")
    # One receipt, several threads.
    with ree.Session(DIGITS) as session:
        receipt = session.receipt(INPUTS, session.run(INPUTS))
    seen = []
    threads = [threading.Thread(target=lambda: seen.extend((receipt.validate(), receipt.diff(receipt), receipt.json)
                                                           for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(len(seen) == 200 and all(one == seen[0] for one in seen), "a receipt in several threads")


ree_run = pathlib.Path(harness.parser(__doc__).parse_args().ree_run).resolve()
with tempfile.TemporaryDirectory() as work:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            (pathlib.Path(work) / name).mkdir()
            os.chdir(pathlib.Path(work) / name)
            test()
    os.chdir("/")
sys.exit(harness.finish())
