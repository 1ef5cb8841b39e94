#!/usr/bin/env python3
"""Who is named in a dispute: nobody because of a file that anyone may have made, and everyone who withholds or
contradicts what decides. Small files cannot make a dispute or a comparison take long.

    tests/dispute/named.py --ree-run build/ree-run
"""
import copy
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
for name in ("harness", "receipt", "cli", "train"):
    sys.path.insert(0, str(HERE.parent / name))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
import steps  # noqa: E402
from harness import check  # noqa: E402
from sealing import canonical, seal, sha  # noqa: E402

STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
OLD = HERE.parent / "data" / "version_0_1_0"


def run(*arguments):
    return harness.run(args.ree_run, *arguments)


def reads(path):
    return json.loads(path.read_text())


def write(path, value):
    path.write_text(canonical(value) + "\n")
    return path


def resealed(path, to, change):
    """A receipt of a text or of tensors, changed and sealed again, without its signature."""
    receipt = reads(path)
    receipt.pop("signature", None)
    change(receipt["body"])
    return write(to, seal(receipt))


def dispute(a, b, *options, code, says):
    """a, b: the files of a trace and a receipt."""
    done = harness.call(args.ree_run, "dispute", "--a", a[0], "--b", b[0], "--a-receipt", a[1], "--b-receipt", b[1],
                        "--claim", folder / "claim.json", *options)
    check(done.returncode == code, lambda: f"{a}, {b}: exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}")
    check(says in done.stdout + done.stderr, lambda: f"'{says}' is not in: {done.stdout}{done.stderr}")


# Trainings

def trainings():
    step, data = steps.line_step(folder / "line.onnx"), steps.npz(folder / "line.npz", steps.line_data())
    key = folder / "key"
    run("keygen", key)
    trace, receipt = folder / "train.trace", folder / "train.json"
    run("train", step, "--data", data, "--seed", 1, "--steps", 4, "--trace", trace, "--receipt-path", receipt, "--sign", key)
    options = ["--model", step, "--data", data, "--a-public-key", f"{key}.pub", "--b-public-key", f"{key}.pub"]
    dispute((trace, receipt), (trace, receipt), *options, code=0, says="the same")

    # A stranger's receipt names nobody, whatever it says.
    def forged(signed, **changes):
        made = reads(receipt)
        made["body"].update(changes)
        made["receipt_hash"] = sha("ree-training-receipt/1", canonical(made["body"]).encode())
        if not signed:
            made.pop("signature")
        return write(folder / "forged.json", made)
    for changes in ({"operation_set": "default"}, {"numerics": "RepOps/1"}):
        dispute((trace, forged(False, **changes)), (trace, receipt), *options, code=2, says="A's receipt is not signed")
        dispute((OLD / "tensors.trace", forged(False, **changes)), (trace, receipt), *options, code=2, says="not signed")
    dispute((trace, receipt), (trace, forged(True, operation_set="default")), *options, code=2, says="B's receipt is altered")
    # A true receipt is not false because of a trace that is not its own.
    dispute((OLD / "tensors.trace", receipt), (trace, receipt), *options, code=3, says="its root is not the root in its receipt")


# Texts

def text(label, *options):
    made = folder / f"{label}.trace", folder / f"{label}.json"
    run("generate", STORIES, *options, "--trace", made[0], "--receipt-path", made[1])
    return made


def texts():
    asked, endless = folder / "asked.request", folder / "endless.request"
    for n, request in ((6, asked), (0, endless)):
        run("request", STORIES, "--prompt-text", "Once upon", "--max-new-tokens", n, "--output", request)
    a, private = text("a", "--request", asked), text("private", "--request", asked, "--private")
    salt = ["--b-salt", f"{private[1]}.salt"]
    model = ["--model", STORIES]
    dispute(a, private, *model, *salt, "--request", asked, code=2, says="B withholds the tokens")

    # A trace of the first version is named only if it is the receipt's.
    dispute((OLD / "text.trace", a[1]), a, *model, code=3, says="A contradicts its root: its root is not the root in its receipt")

    # A salt is withheld, with a request or without.
    bare = shutil.copy(private[1], folder / "bare.json")
    for options in ([], ["--request", asked]):
        dispute(a, (private[0], bare), *model, *options, code=3, says="B contradicts its root: it withholds the salt")
    other = resealed(bare, folder / "other.json", lambda body: body.update(request_sha256="11" * 32))
    dispute(a, (private[0], other), *model, "--request", asked, code=3, says="B's receipt is false: it does not answer the request")

    # Other prompts are another run, and nobody withholds anything.
    ids = "0,440,68,70,332,81,272", "0,276,453,275,261,289,258"
    first, second = (text(f"ids{i}", "--prompt-ids", ids[i], "--max-new-tokens", 3) for i in range(2))
    hidden = text("hidden", "--prompt-ids", ids[1], "--max-new-tokens", 3, "--private")

    def unlisted(body):
        for part in ("prompt", "output"):
            body[part].pop("tokens")
            body[part].pop("text")
    bare = [resealed(party[1], folder / f"bare{i}.json", unlisted) for i, party in enumerate((first, second))]
    hides = ["--b-salt", f"{hidden[1]}.salt"]
    for x, y, options in ((first, second, []), (first, (second[0], bare[1]), []), ((first[0], bare[0]), second, []),
                          ((first[0], bare[0]), (second[0], bare[1]), []), (first, hidden, hides), ((first[0], bare[0]), hidden, hides)):
        dispute(x, y, *model, *options, code=2, says="different runs: prompt differs")
    for x in (second, (second[0], bare[1])):
        dispute(x, hidden, *model, *hides, code=2, says="B withholds the tokens")

    # More tokens than a receipt may leave out: their number still decides.
    a, private = text("endless", "--request", endless), text("endless.private", "--request", endless, "--private")
    for n in (1 << 20, (1 << 20) + 1, 1 << 40):
        def change(body, n=n):
            body["output"]["n_tokens"], body["sampling"]["context_length"] = n, 0
        many = resealed(private[1], folder / "many.json", change)
        dispute(a, (private[0], many), *model, "--b-salt", f"{private[1]}.salt", "--request", endless, code=1,
                says=f"B is wrong: the tokens of its receipt require {n} steps")

    # An answer without tokens over a trace that has its steps.
    def emptied(body):
        body["output"].update(tokens=[], text="", finish_reason="interrupted")
    a = text("asked", "--request", asked)
    dispute(a, (a[0], resealed(a[1], folder / "empty.json", emptied)), *model, "--request", asked, code=1,
            says="B is wrong: the tokens of its receipt require at most 1 steps")


# Small files

def measured(*arguments):
    """Runs the program; returns its output, exit code, seconds of the processor and megabytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = harness.call(args.ree_run, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(model, label, *options):
    made = folder / f"{label}.trace", folder / f"{label}.json"
    run(model, "--random-inputs", 1, "--trace", made[0], "--receipt-path", made[1], *options)
    return made


def small_files():
    n = 1500
    names = [f"y{i}" for i in range(n)]
    model = folder / "many.onnx"
    nodes = [onnx.node("Split", ["x"], names, attributes={"axis": 0, "num_outputs": n}), onnx.node("Max", names, ["z"])]
    ports = [onnx.port(name, onnx.FLOAT, [1]) for name in ["z", *names]]
    model.write_bytes(onnx.model(nodes, [onnx.port("x", onnx.FLOAT, [n])], ports, opset=18))
    a, b = recorded(model, "many"), recorded(model, "wrong", "--inject-fault", "1:0:0")
    # Before, the record of Split was asked for and stated once for each of its outputs.
    for x, code, says in ((a, 0, "the same"), (b, 1, "node 1 (Max) is the first that differs")):
        done, _ = measured("dispute", "--a", a[0], "--b", x[0], "--a-receipt", a[1], "--b-receipt", x[1], "--model", model,
                           "--claim", folder / "claim.json", "--json")
        check(done.returncode == code, f"exit code {done.returncode}: {done.stderr}")
        found = json.loads(done.stdout)
        check(found["bytes"] < 1000 * n and found["messages"] < 100, f"{says}: {found['messages']} messages, {found['bytes']} bytes")
    claim = reads(folder / "claim.json")
    check([i for i, source in enumerate(claim["inputs"]) if "record_of" not in source] == [0], "one record of Split")
    values = folder / "values"
    run(model, "--random-inputs", 1, "--dump-tensors", ".*", "--dump-folder", values)

    def judged(path, code, says):
        done = harness.call(args.ree_run, "referee", path, model, "--inputs", values, "--a-receipt", a[1], "--b-receipt", b[1])
        check(done.returncode == code and says in done.stdout + done.stderr, f"{says}: {done.returncode}: {done.stdout}{done.stderr}")
    judged(folder / "claim.json", 0, "A is right")
    for what, change, says in (
            ("a later record", lambda c: c["inputs"][5].update(record_of=6), "record_of is not an earlier input"),
            ("its own record", lambda c: c["inputs"][5].update(record_of=5), "record_of is not an earlier input"),
            ("a record that is shared itself", lambda c: c["inputs"][5].update(record_of=4), "record_of is not an earlier input"),
            ("another node", lambda c: c["inputs"][5].update(node=1), "record_of is not an earlier input"),
            ("no such output", lambda c: c["inputs"][5].update(output=n), "output is not an output of its node"),
            ("another output", lambda c: c["inputs"][5].update(output=6), "does not come from where the model says")):
        changed = copy.deepcopy(claim)
        change(changed)
        judged(write(folder / f"{what}.json", changed), 2, says)

    # Equal extensions of receipts, compared in n log n.
    body = reads(a[1])
    few = []
    for size in (2000, 40000):
        body["body"]["extensions"] = {f"{i:x}": 0 for i in range(size)}
        path = write(folder / f"extended{size}.json", seal(body))
        done, seconds = measured("diff", path, shutil.copy(path, folder / "copy.json"))
        check(done.returncode == 0, done.stderr)
        few.append(seconds)
    check(few[1] < 100 * few[0] + 3, f"a comparison of 40,000 extensions takes {few[1]:.1f} s, of 2,000 {few[0]:.2f} s")

    # The referee loads a value once that a node reads several times.
    model, reads_of = folder / "again.onnx", 400
    model.write_bytes(onnx.model([onnx.node("Neg", ["x"], ["y"]), onnx.node("Max", ["y"] * reads_of, ["z"])],
                                 [onnx.port("x", onnx.FLOAT, [500000])], [onnx.port("z", onnx.FLOAT, [500000])]))
    a, b = recorded(model, "again"), recorded(model, "again wrong", "--inject-fault", "1:0:0")
    done, _ = measured("dispute", "--a", a[0], "--b", b[0], "--a-receipt", a[1], "--b-receipt", b[1], "--model", model,
                       "--claim", folder / "claim.json")
    check(done.returncode == 1, done.stderr)
    values = folder / "values of again"
    run(model, "--random-inputs", 1, "--dump-tensors", ".*", "--dump-folder", values)
    limited = [args.ree_run, "referee", folder / "claim.json", model, "--inputs", values, "--a-receipt", a[1], "--b-receipt", b[1]]
    done = subprocess.run(["/usr/bin/env", "python3", "-c", MEASURE, *map(str, limited)], capture_output=True, text=True)
    check(done.returncode == 0 and "A is right" in done.stdout, done.stdout + done.stderr)
    if done.stderr:
        megabytes = int(done.stderr.split()[-1]) // 1024
        check(megabytes < 400, f"the referee needs {megabytes} MB; one copy of the value has 2")


def functions(*made):
    """The end of a ModelProto that defines functions of `a` with the output `b`: each a name and its nodes."""
    imports = [onnx.chunk(1, "") + onnx.number(2, 17), onnx.chunk(1, "my") + onnx.number(2, 1)]
    end = onnx.chunk(8, imports[1])
    for name, nodes in made:
        end += onnx.chunk(25, onnx.chunk(1, name) + onnx.chunk(4, "a") + onnx.chunk(5, "b") + b"".join(onnx.chunk(7, n) for n in nodes)
                          + b"".join(onnx.chunk(9, i) for i in imports) + onnx.chunk(10, "my"))
    return end


def names_b(model, fault, says):
    """A runs the model; B flips one bit (--inject-fault). The referee names B."""
    a, b = recorded(model, "honest"), recorded(model, "liar", "--inject-fault", fault)
    dispute(a, b, "--model", model, code=1, says=says)
    values = folder / "values of an honest run"
    shutil.rmtree(values, ignore_errors=True)
    run(model, "--random-inputs", 1, "--dump-tensors", ".*", "--dump-folder", values)
    done = harness.call(args.ree_run, "referee", folder / "claim.json", model, "--inputs", values, "--a-receipt", a[1], "--b-receipt", b[1])
    check(done.returncode == 0 and "A is right" in done.stdout, done.stdout + done.stderr)


def equal_names():
    """A node reads two values of one name: the file's own, and one within a function, which ree names."""
    model = folder / "equal.onnx"
    model.write_bytes(onnx.model([onnx.node("Abs", ["x"], ["t@1"]), onnx.node("F", ["t@1"], ["y"], domain="my")],
                                 [onnx.port("x", onnx.FLOAT, [4])], [onnx.port("y", onnx.FLOAT, [4])])
                      + functions(("F", [onnx.node("Neg", ["a"], ["t"]), onnx.node("Sub", ["a", "t"], ["b"])])))
    names_b(model, "2:0:3", "node 2 (Sub) is the first that differs")


def narrow_types():
    """A node reads 4-bit integers, which are saved as int8, and no shape or type of a value is known before the run."""
    model = folder / "narrow.onnx"
    for hints in [], [onnx.port("q", 0, None, onnx.SEQUENCE)]:
        model.write_bytes(onnx.model(
            [onnx.node("Reshape", ["x", "shape"], ["g"]), onnx.node("QuantizeLinear", ["g", "scale", "zero"], ["q"]),
             onnx.node("DequantizeLinear", ["q", "scale", "zero"], ["y"])],
            [onnx.port("x", onnx.FLOAT, ["n"])], [onnx.port("y", onnx.FLOAT, None)],
            [onnx.tensor("shape", onnx.INT64, [2], (1).to_bytes(8, "little") * 2), onnx.floats("scale", [], [0.125]),
             onnx.tensor("zero", onnx.INT4, [], b"\0")], opset=21, value_info=hints))
        names_b(model, "2:0:3", "node 2 (DequantizeLinear) is the first that differs")


def ends_of_the_tokenizer():
    """A tokenizer's file names an eos token, 5. A referee whose copy has no tokenizer, or another one, does not name the
    party that ended there. Nobody is wrong who ran without a tokenizer."""
    def copy_of_the_model(name, has_tokenizer, eos, letters="abcdefgh", context=64):
        made = folder / name
        made.mkdir()
        (made / "model.onnx").write_bytes(onnx.model(
            [onnx.node("Gather", ["next", "input_ids"], ["logits"])], [onnx.port("input_ids", onnx.INT64, ["b", "s"])],
            [onnx.port("logits", onnx.FLOAT, ["b", "s", 8])],
            [onnx.floats("next", [8, 8], [float(j == (i + 1) % 8) for i in range(8) for j in range(8)])]))
        (made / "config.json").write_text(json.dumps({"eos_token_id": 7, "max_position_embeddings": context}))
        if has_tokenizer:
            (made / "tokenizer.json").write_text(json.dumps(
                {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
                 "decoder": None, "model": {"type": "WordLevel", "vocab": {c: i for i, c in enumerate(letters)}, "unk_token": letters[0]}}))
        if eos:
            (made / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos}))
        return made
    whole, without, bare = (copy_of_the_model(*copy) for copy in (("whole", True, "f"), ("without", True, None), ("bare", False, None)))

    def party(label, model, *options):
        made = folder / f"{label}.trace", folder / f"{label}.json"
        run(model, "--prompt-ids", "1,2", "--max-new-tokens", 20, "--trace", made[0], "--receipt-path", made[1], *options)
        return made
    parties = party("honest ends", whole), party("no ends", without)
    dispute(*parties, "--model", whole, code=1, says="B is wrong: its receipt has other eos tokens than the model")
    receipts = ["--a-receipt", parties[0][1], "--b-receipt", parties[1][1]]
    done = harness.call(args.ree_run, "referee", folder / "claim.json", whole, *receipts)
    check(done.returncode == 0 and "A is right" in done.stdout, done.stdout + done.stderr)
    done = harness.call(args.ree_run, "referee", folder / "claim.json", bare, *receipts)
    check(done.returncode == 2 and "is right" not in done.stdout, done.stdout + done.stderr)
    dispute(party("no tokenizer", bare), parties[0], "--model", whole, code=1, says="of different runs: tokenizer differs")
    # Both receipts state a tokenizer that is not beside the model. Only A's answer ends where that one says.
    foreign = copy_of_the_model("foreign", True, "F", letters="ABCDEFGH")
    ended, lying = party("foreign ends", without, "--tokenizer", foreign), party("no foreign ends", without)

    def claim_the_other(body):
        body["tokenizer_sha256"] = reads(ended[1])["body"]["tokenizer_sha256"]
    dispute(ended, (lying[0], resealed(lying[1], folder / "claimed.json", claim_the_other)), "--model", without, code=1,
            says="does not have the receipts' tokenizer")
    # Receipts that state no context, of prompts that fill the model's: no run can have made them.
    parties = [party(f"long prompt {i}", bare, *fault) for i, fault in enumerate(([], ["--inject-fault", "0:0:30"]))]
    parties = [(made[0], resealed(made[1], folder / f"no context {i}.json", lambda body: body["sampling"].update(context_length=0)))
               for i, made in enumerate(parties)]
    dispute(*parties, "--model", bare, code=1, says="node 0 (Gather) is the first that differs")
    small = copy_of_the_model("small", False, None, context=2)
    done = harness.call(args.ree_run, "referee", folder / "claim.json", small, "--a-receipt", parties[0][1], "--b-receipt", parties[1][1])
    check(done.returncode == 1 and done.stdout.count("wrong: its prompt leaves no position for an answer") == 2, done.stdout + done.stderr)


def long_chain():
    """A file of 3 KB with 100,000 nodes between the selected rows and the logits: linear time, not minutes."""
    nested = [("F0", [onnx.node("Tanh", [f"v{i}" if i else "a"], [f"v{i + 1}" if i < 9 else "b"]) for i in range(10)])]
    for depth, width in enumerate((10, 10, 10, 10)):
        nested.append((f"F{depth + 1}", [onnx.node(f"F{depth}", [f"v{i}" if i else "a"], [f"v{i + 1}" if i < width - 1 else "b"],
                                                   domain="my") for i in range(width)]))
    model = folder / "chain.onnx"
    model.write_bytes(onnx.model(
        [onnx.node("Gather", ["table", "input_ids"], ["h"]), onnx.node("F4", ["h"], ["z"], domain="my"),
         onnx.node("MatMul", ["z", "table"], ["logits"])],
        [onnx.port("input_ids", onnx.INT64, ["batch", "sequence"])], [onnx.port("logits", onnx.FLOAT, ["batch", "sequence", 4])],
        [onnx.floats("table", [4, 4], [float(i % 5 == 0) for i in range(16)])]) + functions(*nested))
    check(model.stat().st_size < 4096, f"{model.stat().st_size} bytes")
    try:
        done = harness.call(args.ree_run, model, "--prompt-ids", "1,2", "--max-new-tokens", 1, "--ignore-eos", timeout=40)
        check(done.returncode == 0, done.stderr)
    except subprocess.TimeoutExpired:
        check(False, "a chain of 100,000 nodes takes more than 40 s")


# Prints the largest resident size of the command, in kilobytes.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""


def not_replaced():
    """verify --trace writes no file over one that it reads."""
    made = recorded(folder / "again.onnx", "kept")
    before = made[1].read_bytes()
    done = harness.call(args.ree_run, "verify", made[1], folder / "again.onnx", "--random-inputs", 1, "--trace", made[1])
    check(done.returncode == 2 and "is not replaced" in done.stderr, f"{done.returncode}: {done.stderr}")
    check(made[1].read_bytes() == before, "the receipt is as before")


parser = harness.parser(__doc__)
args = parser.parse_args()
with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    trainings()
    texts()
    small_files()
    equal_names()
    narrow_types()
    ends_of_the_tokenizer()
    long_chain()
    not_replaced()
sys.exit(harness.finish())
