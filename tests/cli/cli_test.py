#!/usr/bin/env python3
"""ree-run as a program: output, exit codes and messages."""

import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
from harness import check  # noqa: E402
sys.path.insert(0, str(HERE.parent / "models"))
import npy  # noqa: E402
import onnx_writer as onnx  # noqa: E402

ree_run = None
work = None


def run(*args, env=None, **options):
    environment = dict(os.environ, **(env or {}))
    return subprocess.run([ree_run, *map(str, args)], capture_output=True, text=True,
                          env=environment, **options)


@harness.helper
def fails(args, *messages, code=1, env=None):
    """Checks that the command fails with this exit code, that standard error begins with the program's
    name and contains all of `messages`, and that standard output is empty."""
    done = run(*args, env=env)
    check(done.returncode == code, f"exit code {done.returncode}, expected {code}: {done.stderr}")
    check(done.stderr.startswith("ree-run: "), f"starts with the name: {done.stderr!r}")
    check(done.stdout == "", f"nothing on standard output: {done.stdout!r}")
    for message in messages:
        check(message in done.stderr, f"'{message}' is not in: {done.stderr}")


@harness.helper
def usage(args, *messages):
    fails(args, *messages, code=2)


def sha256_of(dtype, shape, data):
    """The digest of a tensor as NUMERICS.md, "Hashes", defines it."""
    head = b"ree-tensor/1\0" + struct.pack("<II", dtype, len(shape))
    return hashlib.sha256(head + b"".join(struct.pack("<q", d) for d in shape) + data).digest()


def sha256_of_all(tensors):
    """The digest of tensors (name, dtype, shape, data) in order."""
    h = hashlib.sha256(b"ree-tensors/1\0")
    for name, *tensor in tensors:
        h.update(struct.pack("<I", len(name.encode())) + name.encode() + sha256_of(*tensor))
    return h.hexdigest()


def write_models():
    """Writes models that are small enough to compute their results by hand."""
    x, y = onnx.port("x", onnx.FLOAT, ["n", 3]), onnx.port("y", onnx.FLOAT, ["n", 3])
    one = onnx.floats("one", [3], [1, 2, 3])
    add = onnx.node("Add", ["x", "one"], ["y"], "add")
    models = {
        "add": onnx.model([add], [x], [y], [one], metadata=[("labels", "red,green,blue")]),
        "two": onnx.model([onnx.node("Sub", ["a", "b"], ["c"])],
                          [onnx.port("a", onnx.FLOAT, [2]), onnx.port("b", onnx.FLOAT, ["m"])],
                          [onnx.port("c", onnx.FLOAT, [2])]),
        "names": onnx.model([onnx.node("Relu", ["x"], ["../../up"]), onnx.node("Neg", ["x"], ["a/b"]),
                             onnx.node("Abs", ["x"], ["a_b"]), onnx.node("Abs", ["x"], [".hidden"])],
                            [onnx.port("x", onnx.FLOAT, [2])],
                            [onnx.port(n, onnx.FLOAT, [2])
                             for n in ("../../up", "a/b", "a_b", ".hidden")]),
        "types": onnx.model([onnx.node("Identity", ["i"], ["j"]), onnx.node("Not", ["p"], ["q"])],
                            [onnx.port("i", onnx.INT64, ["n"]), onnx.port("p", onnx.BOOL, [])],
                            [onnx.port("j", onnx.INT64, ["n"]), onnx.port("q", onnx.BOOL, [])]),
        "unknown": onnx.model([onnx.node("Frobnicate", ["x"], ["y"], "odd"), ], [x], [y]),
        "escape": onnx.model([onnx.node("Frobnicate\x1b[31m", ["x"], ["y"])], [x], [y]),
        "shape": onnx.model([onnx.node("MatMul", ["x", "w"], ["y"], "mm")], [x],
                            [onnx.port("y", onnx.FLOAT, None)],
                            [onnx.floats("w", [2, 2], [1, 2, 3, 4])]),
        "open": onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.port("x", onnx.FLOAT, None)],
                           [onnx.port("y", onnx.FLOAT, None)]),
    }
    for name, data in models.items():
        (work / f"{name}.onnx").write_bytes(data)
    npy.save(work / "x.npy", "<f4", [2, 3], [10, 20, 30, -1, -2, -3])
    npy.save(work / "pair.npy", "<f4", [2], [-1.5, 2])
    npy.save(work / "ints.npy", "<i8", [2, 3], range(6))
    npy.save(work / "wide.npy", "<f4", [2, 4], range(8))


def test_text():
    done = run(work / "add.onnx", "--input", f"x={work}/x.npy")
    data = struct.pack("<6f", 11, 22, 33, 0, 0, 0)
    digest = sha256_of(1, [2, 3], data).hex()
    total = sha256_of_all([("y", 1, [2, 3], data)])
    check(done.returncode == 0, done.stderr)
    check(done.stderr == "", f"nothing on standard error when all is well: {done.stderr!r}")
    lines = done.stdout.splitlines()
    check(lines[0] == f"y  float32[2,3]  {digest}", lines)
    check(re.fullmatch(r"device  cpu \(.+, \d+ threads?\)", lines[1]), lines)
    check(lines[2:] == [f"sha256  {total}"], lines)
    again = run("run", work / "add.onnx", "--input", work / "x.npy", "--threads", "1")
    check(again.stdout.splitlines()[2] == lines[2], "the bare file name and 'run' do the same")

    done = run(work / "add.onnx", f"--input=x={work}/x.npy", "--top", "2")
    check("  row 0\n  1. blue  33\n  2. green  22\n  row 1\n  1. red  0\n" in done.stdout,
          done.stdout)
    done = run(work / "add.onnx", "--input", work / "x.npy", "--top=9", "--stats")
    check("  3. red  11\n" in done.stdout, "no more entries than there are")
    check(re.search(r"stats +\d+ dispatch", done.stdout), done.stdout)
    done = run(SAMPLE / "digits.onnx", "--input", SAMPLE / "seven.npy", "--show-input", "--top", "1")
    check("@@@" in done.stdout and "1. seven" in done.stdout, done.stdout)


def test_json():
    npy.save(work / "i.npy", "<i8", [4], [5, -6, 7, 1 << 40])
    npy.save(work / "p.npy", "|b1", [], [1])
    done = run(work / "types.onnx", "--input", f"p={work}/p.npy", "--input", f"i={work}/i.npy",
               "--json")
    check(done.returncode == 0, done.stderr)
    result = json.loads(done.stdout)
    i = struct.pack("<4q", 5, -6, 7, 1 << 40)
    check(set(result) == {"outputs", "sha256", "device"}, set(result))
    check(result["outputs"] == [
        {"name": "j", "type": "int64", "shape": [4], "sha256": sha256_of(7, [4], i).hex()},
        {"name": "q", "type": "bool", "shape": [], "sha256": sha256_of(9, [], b"\0").hex()},
    ], result["outputs"])
    check(result["sha256"] == sha256_of_all([("j", 7, [4], i), ("q", 9, [], b"\0")]), result)
    check(result["device"].startswith("cpu ("), result)
    done = run(work / "add.onnx", "--input", work / "x.npy", "--json", "--stats", "--top", "1")
    result = json.loads(done.stdout)
    check(result["outputs"][0]["top"] == [[{"index": 2, "label": "blue", "value": 33}],
                                          [{"index": 0, "label": "red", "value": 0}]], result)
    check(result["stats"]["n_dispatches"] >= 1, result)


def test_output_dir():
    out = work / "deep" / "er" / "out"
    done = run(work / "names.onnx", "--input", work / "pair.npy", "--output-dir", out)
    check(done.returncode == 0, done.stderr)
    files = sorted(p.name for p in out.iterdir())
    check(files == [".._.._up.npy".replace("..", "_.", 1), "_hidden.npy", "a_b.npy", "a_b_2.npy"],
          files)
    check(not (work / "deep" / "up.npy").exists() and not (work / "up.npy").exists(), "no escape")
    descr, shape, values = npy.load(out / "a_b.npy")
    check((descr, shape, list(values)) == ("<f4", (2,), [1.5, -2]), "Neg")
    check(list(npy.load(out / "a_b_2.npy")[2]) == [1.5, 2], "Abs")
    done = run(work / "names.onnx", "--input", work / "pair.npy", "--output-dir", out)
    check(done.returncode == 0, "again, over the old files")
    check(sorted(p.name for p in out.iterdir()) == files, "no temporary files are left")
    fails([work / "names.onnx", "--input", work / "pair.npy", "--output-dir", work / "x.npy"],
          "x.npy", "cannot create this folder")
    if os.geteuid() != 0:
        fails([work / "names.onnx", "--input", work / "pair.npy", "--output-dir", "/proc/none"],
              "/proc/none")


def test_inputs():
    model = work / "two.onnx"
    wants = ("the model's inputs are:\n  a  float32[2]\n  b  float32[m]",)
    fails([model], "input 'a' is missing", *wants)
    fails([model, "--input", f"a={work}/pair.npy"], "input 'b' is missing", *wants)
    fails([model, "--input", f"q={work}/pair.npy"], "the model has no input 'q'", *wants)
    fails([model, "--input", work / "pair.npy"], "NAME=FILE", *wants)
    fails([model, *2 * ["--input", f"a={work}/pair.npy"]], "'a' is given more than once", *wants)
    fails([work / "add.onnx", "--input", work / "ints.npy"], "'x'", "int64", "float32")
    fails([work / "add.onnx", "--input", work / "wide.npy"], "'x'", "[2,4]", "float32[n,3]")
    fails([work / "shape.onnx", "--input", work / "x.npy"], "mm", "MatMul", "3", "2")
    fails([work / "add.onnx", "--input", "x=/none/x.npy"], "/none/x.npy", "No such file")
    fails([work / "add.onnx", "--input", f"x={work}"], "expected a file ending in .npy")
    (work / "text.npy").write_text("not numbers")
    fails([work / "add.onnx", "--input", work / "text.npy"], "text.npy: not a .npy file")
    (work / "text.pb").write_text("\x7f")
    fails([work / "add.onnx", "--input", work / "text.pb"], "text.pb")
    (work / "x.pb").write_bytes(onnx.floats("whatever", [2, 3], [10, 20, 30, -1, -2, -3]))
    npy_run = run(work / "add.onnx", "--input", work / "x.npy", "--json")
    pb_run = run(work / "add.onnx", "--input", work / "x.pb", "--json")
    check(pb_run.returncode == 0 and pb_run.stdout == npy_run.stdout, pb_run.stderr)


def write_bytes_npy(path, descr, shape, data):
    """Writes a .npy file with any contents."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    return path


def strings_data(values):
    """Encodes strings as data for their digest (NUMERICS.md, "Hashes")."""
    coded = [v.encode() for v in values]
    return b"".join(struct.pack("<Q", len(v)) + v for v in coded)


def test_strings():
    model = work / "strings.onnx"
    model.write_bytes(onnx.model([onnx.node("Identity", ["s"], ["t"])],
                                 [onnx.port("s", onnx.STRING, ["n", 2])],
                                 [onnx.port("t", onnx.STRING, ["n", 2])]))
    # UTF-8 characters of one to four bytes, an empty string, trailing blanks.
    texts = ["a", "caf\u00e9 ", "", "\u20ac\u6f22", "\U0001f600", "\x7f"]
    total = sha256_of_all([("t", onnx.STRING, [3, 2], strings_data(texts))])
    for descr in ("<U5", ">U5", "<U17"):
        npy.save(work / "s.npy", descr, [3, 2], texts)
        done = run(model, "--input", work / "s.npy", "--output-dir", work / "strings")
        check(done.returncode == 0, done.stderr)
        check(done.stdout.endswith(f"sha256  {total}\n"), f"{descr}: {done}")
        check('  "caf\u00e9 "\n  ""\n' in done.stdout, done.stdout)
        check(npy.load(work / "strings" / "t.npy") == ("<U5", (3, 2), texts),
              npy.load(work / "strings" / "t.npy"))
    result = json.loads(run(model, "--input", work / "s.npy", "--json").stdout)
    check(result["outputs"][0]["strings"] == texts and result["sha256"] == total, result)
    (work / "s.pb").write_bytes(onnx.strings("s", [3, 2], texts))
    check(json.loads(run(model, "--input", work / "s.pb", "--json").stdout) == result, "from a .pb")
    npy.save(work / "none.npy", "<U1", [0, 2], [])
    done = run(model, "--input", work / "none.npy", "--output-dir", work / "strings")
    check(done.returncode == 0 and npy.load(work / "strings" / "t.npy")[1:] == ((0, 2), []), done)

    def refused(descr, shape, data, *messages):
        fails([model, "--input", write_bytes_npy(work / "bad.npy", descr, shape, data)], "bad.npy",
              *messages)

    refused("<U1", "(1, 2)", struct.pack("<2I", 65, 0xD800), "string 1", "code point 55296")
    refused("<U1", "(1, 2)", struct.pack("<2I", 65, 0x110000), "code point 1114112")
    refused(">U1", "(1, 2)", struct.pack("<2I", 65, 66), "is not a character")
    refused("<U2", "(1, 1)", struct.pack("<2I", 0, 65), "string 0 has the code point 0")
    refused("<U2", "(1, 2)", bytes(12), "require 16 bytes of elements, but the file has 12")
    refused("<U0", "(3, 1000000000)", b"", "more than 1048576 empty strings")
    refused("<U9999999", "(9223372036854775807, 2)", b"", "exceeds 64 bits")
    refused("<U-1", "(1, 2)", bytes(8), "the length of strings is not a number")
    refused("<U99999999", "(1, 2)", bytes(8), "elements of type '<U99999999' are not supported")
    refused("<U", "(1, 2)", bytes(8), "elements of type '<U' are not supported")
    refused("|S4", "(1, 2)", bytes(8), "elements of type '|S4' are not supported")
    refused("|O", "(1, 2)", bytes(8), "elements of type '|O' are not supported")
    (work / "bad.pb").write_bytes(onnx.strings("s", [3, 2], texts[:5]))
    fails([model, "--input", work / "bad.pb"], "bad.pb", "5", "6")
    fails([model, "--input", work / "x.npy"], "'s'", "float32", "string")
    fails([work / "add.onnx", "--input", work / "s.npy"], "'x'", "string", "float32")
    fails([model, "--random-inputs", "1"], "'s' has a type that --random-inputs cannot make")


def sha256_of_sequence(dtype, tensors):
    head = b"ree-sequence/1\0" + struct.pack("<IQ", dtype, len(tensors))
    return hashlib.sha256(head + b"".join(sha256_of(*t) for t in tensors)).hexdigest()


def test_sequences():
    model = work / "sequence.onnx"
    sequence = onnx.port("s", onnx.FLOAT, ["n"], onnx.SEQUENCE)
    model.write_bytes(onnx.model(
        [onnx.node("SequenceInsert", ["s", "x", "zero"], ["t"]),
         onnx.node("SequenceLength", ["s"], ["t_0"])],
        [sequence, onnx.port("x", onnx.FLOAT, ["m"])],
        [onnx.port("t", onnx.FLOAT, ["k"], onnx.SEQUENCE), onnx.port("t_0", onnx.INT64, [])],
        [onnx.tensor("zero", onnx.INT64, [], bytes(8))]))
    npy.save(work / "one.npy", "<f4", [1], [1])
    npy.save(work / "pair.npy", "<f4", [2], [-1.5, 2])
    x = ["--input", f"x={work}/pair.npy"]
    out = work / "sequence"
    done = run(model, *x, "--input", f"s={work}/one.npy", "--input", f"s={work}/pair.npy",
               "--output-dir", out)
    check(done.returncode == 0, done.stderr)
    items = [(1, [2], struct.pack("<2f", -1.5, 2)), (1, [1], struct.pack("<f", 1)),
             (1, [2], struct.pack("<2f", -1.5, 2))]
    check(f"t  sequence of 3  {sha256_of_sequence(1, items)}\n" in done.stdout, done.stdout)
    check(f"  item 1  float32[1]  {sha256_of(*items[1]).hex()}\n" in done.stdout, done.stdout)
    # An output does not overwrite an item's file of the same name.
    check(sorted(p.name for p in out.iterdir()) == ["t_0.npy", "t_0_2.npy", "t_1.npy", "t_2.npy"],
          sorted(p.name for p in out.iterdir()))
    check([list(npy.load(out / f"t_{i}.npy")[2]) for i in range(3)] == [[-1.5, 2], [1], [-1.5, 2]],
          "the items")
    check(list(npy.load(out / "t_0_2.npy")[2]) == [2], "the length")

    floats = [onnx.floats("", [1], [1]), onnx.floats("", [2], [-1.5, 2])]
    (work / "s.pb").write_bytes(onnx.sequence(floats))
    same = run(model, *x, "--input", f"s={work}/s.pb")
    check(same.stdout == done.stdout, same)
    result = json.loads(run(model, *x, "--input", f"s={work}/s.pb", "--json").stdout)["outputs"][0]
    check((result["kind"], result["type"], len(result["items"])) == ("sequence", "float32", 3)
          and result["items"][1]["shape"] == [1], result)
    (work / "empty.pb").write_bytes(onnx.sequence([]))
    done = run(model, *x, "--input", f"s={work}/empty.pb")
    check(done.returncode == 0 and "t  sequence of 1 " in done.stdout, done)

    def refused(data, *messages):
        (work / "bad.pb").write_bytes(data)
        fails([model, *x, "--input", f"s={work}/bad.pb"], *messages)

    mixed = onnx.sequence([floats[0], onnx.tensor("", onnx.INT64, [], bytes(8))])
    refused(mixed, "bad.pb", "item 1 has type int64, but item 0 has type float32")
    refused(onnx.sequence([onnx.tensor("", onnx.FLOAT, [2], bytes(7))]), "bad.pb", "item 0")
    refused(onnx.sequence([onnx.tensor("", 99, [], bytes(8))]), "bad.pb", "item 0", "unknown type")
    refused(onnx.number(2, 2) + onnx.chunk(3, floats[0]), "bad.pb", "sequence of elements other than")
    refused(onnx.sequence([onnx.tensor("", onnx.INT64, [1], bytes(8))]), "'s'", "int64", "float32")
    refused(onnx.sequence([onnx.floats("", [1, 2], [1, 2])]), "'s'", "float32[1,2]")
    whole = onnx.sequence(floats)
    for n in range(1, len(whole)):
        (work / "bad.pb").write_bytes(whole[:n])
        done = run(model, *x, "--input", f"s={work}/bad.pb")
        # A prefix that ends between two fields is valid.
        check(done.returncode in (0, 1) and (done.returncode == 0 or "bad.pb" in done.stderr),
              f"cut at {n}: {done}")
    fails([model, *x, "--input", f"s={work}/one.npy", "--input", f"s={work}/s.pb"],
          "'s' is given more than once")
    fails([model, *x, *2 * ["--input", f"s={work}/s.pb"]], "'s' is given more than once")
    fails([model, *x, "--input", f"s={work}/one.npy", "--input", f"s={work}/ints.npy"], "'s'",
          "int64", "float32")
    fails([model, *x, "--input", f"s={work}/none.npy"], "none.npy")
    fails([model, *x], "input 's' is missing", "s  ")
    fails([model, *x, "--random-inputs", "1"],
          "'s' is a sequence, which --random-inputs cannot make")
    fails([work / "add.onnx", "--input", work / "s.pb"], "s.pb")

    # A .npy file stores int4 as int8; this holds in sequences too.
    model.write_bytes(onnx.model([onnx.node("SequenceAt", ["s", "zero"], ["t"])],
                                 [onnx.port("s", onnx.INT4, ["n"], onnx.SEQUENCE)],
                                 [onnx.port("t", onnx.INT4, ["n"])],
                                 [onnx.tensor("zero", onnx.INT64, [], bytes(8))], opset=24))
    write_bytes_npy(work / "i4.npy", "|i1", "(2,)", b"\x07\xf8")
    done = run(model, "--input", f"s={work}/i4.npy")
    check(done.returncode == 0 and done.stdout.startswith(
        f"t  int4[2]  {sha256_of(onnx.INT4, [2], bytes([0x07, 0xf8])).hex()}\n"), done)
    write_bytes_npy(work / "i4.npy", "|i1", "(2,)", b"\x07\x08")
    fails([model, "--input", f"s={work}/i4.npy"], "element 1 is the byte 0x08, outside int4")


def test_optionals():
    model = work / "optional.onnx"
    model.write_bytes(onnx.model(
        [onnx.node("OptionalHasElement", ["o"], ["there"]), onnx.node("Identity", ["o"], ["same"])],
        [onnx.port("o", onnx.FLOAT, ["n"], onnx.OPTIONAL)],
        [onnx.port("there", onnx.BOOL, []), onnx.port("same", onnx.FLOAT, ["n"], onnx.OPTIONAL)],
        opset=18))
    absent = hashlib.sha256(b"ree-absent/1\0" + struct.pack("<I", 1)).hexdigest()
    (work / "absent.pb").write_bytes(onnx.optional())
    out = work / "optional"
    for given in ([], ["--input", f"o={work}/absent.pb"]):
        done = run(model, *given, "--output-dir", out)
        check(done.returncode == 0, done.stderr)
        check(f"there  bool[]  {sha256_of(9, [], bytes(1)).hex()}\n" in done.stdout, done.stdout)
        check(f"same  absent  {absent}\n" in done.stdout, done.stdout)
        check([p.name for p in out.iterdir()] == ["there.npy"], "no file of what is absent")
    result = json.loads(run(model, "--json").stdout)["outputs"][1]
    check(result == {"name": "same", "kind": "absent", "type": "float32", "sha256": absent}, result)

    pair = onnx.floats("", [2], [-1.5, 2])
    (work / "there.pb").write_bytes(onnx.optional(pair))
    digest = sha256_of(1, [2], struct.pack("<2f", -1.5, 2)).hex()
    for file in ("there.pb", "pair.npy"):
        done = run(model, "--input", f"o={work / file}")
        check(f"there  bool[]  {sha256_of(9, [], bytes([1])).hex()}\n" in done.stdout, done)
        check(f"same  float32[2]  {digest}\n" in done.stdout, done)

    def refused(data, *messages):
        (work / "bad.pb").write_bytes(data)
        fails([model, "--input", f"o={work}/bad.pb"], *messages)

    refused(onnx.optional(pair) + onnx.chunk(5, onnx.sequence([pair])), "bad.pb",
            "contains both a tensor and a sequence")
    refused(onnx.number(2, 4), "bad.pb", "optional value of a type other than")
    refused(onnx.optional(sequence=onnx.sequence([pair])), "'o'", "sequence")
    refused(onnx.optional(onnx.tensor("", onnx.INT64, [1], bytes(8))), "'o'", "int64", "float32")
    refused(onnx.optional(onnx.tensor("", onnx.FLOAT, [2], bytes(3))), "bad.pb")
    refused(b"\x1a\xff", "bad.pb")

    # A sequence that may be absent, and an absent value that the model requires.
    model.write_bytes(onnx.model(
        [onnx.node("OptionalGetElement", ["o"], ["s"]), onnx.node("SequenceLength", ["s"], ["n"])],
        [onnx.port("o", onnx.FLOAT, ["k"], onnx.SEQUENCE, onnx.OPTIONAL)],
        [onnx.port("n", onnx.INT64, [])], opset=18))
    (work / "there.pb").write_bytes(onnx.optional(sequence=onnx.sequence([pair, pair])))
    digest = sha256_of(7, [], struct.pack("<q", 2)).hex()
    for given in ([f"o={work}/there.pb"], [f"o={work}/pair.npy"] * 2):
        done = run(model, *[a for g in given for a in ("--input", g)])
        check(done.returncode == 0 and f"n  int64[]  {digest}\n" in done.stdout, done)
    fails([model], "OptionalGetElement", "the optional value is absent")


def random_floats(seed, name, n):
    """The floats of --random-inputs, as the comment in tools/run/inputs.c defines them."""
    mask = (1 << 64) - 1
    state = 0xcbf29ce484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001b3 & mask
    values = []
    for i in range(n):
        r = (seed + state + i * 0x9e3779b97f4a7c15) & mask
        r = (r ^ r >> 30) * 0xbf58476d1ce4e5b9 & mask
        r = (r ^ r >> 27) * 0x94d049bb133111eb & mask
        r ^= r >> 31
        values.append((r >> 40) / 2**23 - 1)
    return values


def test_random_inputs():
    first = run(work / "two.onnx", "--random-inputs", "1", "--dim", "m=2")
    check(first.returncode == 0, first.stderr)
    # The numbers are the same on every machine; packing rounds each exact difference once.
    pairs = zip(random_floats(1, "a", 2), random_floats(1, "b", 2))
    data = struct.pack("<2f", *(a - b for a, b in pairs))
    check(first.stdout.endswith(f"sha256  {sha256_of_all([('c', 1, [2], data)])}\n"), first.stdout)
    other = run(work / "two.onnx", "--random-inputs", "2", "--dim", "m=2")
    check(other.returncode == 0 and other.stdout != first.stdout, "another seed")
    default = run(work / "two.onnx", "--random-inputs", "1")
    check(default.returncode == 0 and default.stdout != first.stdout, "symbols are 1 otherwise")
    fails([work / "open.onnx", "--random-inputs", "1"], "'x' has no declared shape")
    usage([work / "two.onnx", "--random-inputs", "1", "--dim", "m"], "NAME=SIZE")
    usage([work / "two.onnx", "--random-inputs", "1", "--dim", "m=1099511627776"],
          "the size is too large", "2147483647")
    usage([work / "two.onnx", "--random-inputs", "-1"], "an integer from 0 to 18446744073709551615")


def test_models():
    fails(["/none/model.onnx"], "/none/model.onnx", "No such file")
    (work / "empty.onnx").write_bytes(b"")
    fails([work / "empty.onnx"], "empty.onnx")
    fails([work / "x.npy"], "x.npy")
    whole = (work / "add.onnx").read_bytes()
    for n in range(1, len(whole), 7):
        (work / "cut.onnx").write_bytes(whole[:n])
        done = run(work / "cut.onnx", "--input", work / "x.npy")
        check(done.returncode == 1 and "cut.onnx" in done.stderr, f"cut at {n}: {done}")
    fails([work], "ree-run: ")
    fails([work / "unknown.onnx", "--input", work / "x.npy"], "odd", "Frobnicate")
    fails([work / "unknown.onnx"], "Frobnicate")
    done = run(work / "escape.onnx")
    check("\x1b" not in done.stderr and "\\x1b" in done.stderr, repr(done.stderr))


def test_usage():
    done = run()
    check(done.returncode == 2 and "usage:" in done.stderr and not done.stdout, done)
    usage(["--frobnicate"], "unknown option '--frobnicate'", "help run")
    usage([work / "add.onnx", "--inptu", "x"], "unknown option '--inptu'")
    usage([work / "add.onnx", "--input"], "--input requires a value")
    usage([work / "add.onnx", "other"], "unexpected argument 'other'")
    usage([work / "add.onnx", "--threads", "none"], "--threads requires an integer")
    usage([work / "add.onnx", "--threads", "0"], "--threads requires an integer")
    usage([work / "add.onnx", "--top=x"], "--top")
    usage(["--json"], "no model given")
    usage(["inspect"], "no model given", "help inspect")
    usage(["inspect", work / "add.onnx", "--json", "--passes"], "exclude")
    usage(["devices", "--frobnicate"], "unknown option", "help devices")
    check(run("help", "nonsense").returncode == 2, "help for nothing")
    check(run(work / "add.onnx", "--input", work / "x.npy", "--json=1").returncode == 2, "flag=1")


def test_help():
    for args in (["--help"], ["help"], ["-h"]):
        done = run(*args)
        check(done.returncode == 0 and "usage: ree-run" in done.stdout and not done.stderr, done)
    for name in ("run", "inspect", "devices", "bench", "tokenize", "perplexity"):
        done, same = run("help", name), run(name, "--help")
        check(done.returncode == 0 and f"ree-run {'MODEL' if name == 'run' else name}" in done.stdout,
              f"{name}: {done}")
        check("example" in done.stdout, f"the manual page of {name} has examples")
        check(done.stdout == same.stdout, f"help {name} and {name} --help are the same")
        check(max(map(len, done.stdout.splitlines())) <= 100, f"{name}: lines fit a terminal")
    done = run("--version")
    check(re.fullmatch(r"ree-run \d+\.\d+\.\d+ \(RepOps/1\)\n", done.stdout), done)


def test_inspect():
    done = run("inspect", work / "add.onnx")
    check(done.returncode == 0 and "inputs\n  x  float32[n,3]\n" in done.stdout, done)
    check("every operator is supported" in done.stdout, done.stdout)
    done = run("inspect", work / "unknown.onnx")
    check(done.returncode == 0 and "Frobnicate  NOT SUPPORTED" in done.stdout, done)
    about = json.loads(run("inspect", work / "unknown.onnx", "--json").stdout)
    check(about["runnable"] is False and about["operators"][0]["supported"] is False, about)
    about = json.loads(run("inspect", work / "add.onnx", "--json").stdout)
    check(about["inputs"] == [{"name": "x", "type": "float32", "shape": ["n", 3],
                               "optional": False}], about)
    check(about["opsets"] == {"": 17} and about["ir_version"] == 8, about)
    check(about["weight_bytes"] == 12 and about["runnable"], about)
    check(json.loads(run("inspect", work / "open.onnx", "--json").stdout)["inputs"][0]["shape"]
          is None, "no shape")
    done = run("inspect", SAMPLE / "digits.onnx", "--passes")
    check(done.returncode == 0 and "== after " in done.stdout and "Conv(" in done.stdout, done)
    fails(["inspect", "/none.onnx"], "/none.onnx")
    check("\x1b" not in run("inspect", work / "escape.onnx").stdout, "no escape sequences")


def test_devices():
    done = run("devices")
    check(done.returncode == 0 and done.stdout.startswith("cpu  "), done)
    listing = json.loads(run("devices", "--json").stdout)
    check(listing["devices"][0]["spec"] == "cpu" and listing["numerics"] == "RepOps/1", listing)
    check(all(set(f) == {"kind", "name", "value"} for f in listing["devices"][0]["facts"]), listing)
    fails(["devices", "quantum"], "quantum")
    fails([work / "add.onnx", "--input", work / "x.npy", "--device", "quantum"], "quantum")
    fails([work / "add.onnx", "--input", work / "x.npy", "--cpu-isa", "mmx"], "mmx")

    # The loader finds no driver: a clear message, and the CPU remains usable.
    bare = {"VK_ICD_FILENAMES": "/none.json", "VK_DRIVER_FILES": "/none.json"}
    fails([work / "add.onnx", "--input", work / "x.npy", "--device", "vulkan"], "Vulkan",
          "without --device, the CPU runs the model", env=bare)
    done = run("devices", env=bare)
    check(done.returncode == 0 and done.stdout.startswith("cpu  "), done)
    check("Vulkan" in done.stdout, f"says why there is no Vulkan device: {done.stdout}")
    check("note" in json.loads(run("devices", "--json", env=bare).stdout), "likewise in JSON")


def test_tokenize():
    model = HERE.parent / "data" / "tokenizers" / "sentencepiece.json"
    done = run("tokenize", model, "--text", "hello world")
    check(done.returncode == 0 and done.stdout.split()[:6] == ["1", "<s>", "275", "▁hello", "280",
                                                              "▁world"], done)
    check(re.search(r"\n3 tokens, tokenizer [0-9a-f]{64}\n$", done.stdout), done.stdout)
    about = json.loads(run("tokenize", model, "--text", "</s>hello", "--json", "--no-special").stdout)
    check(about["ids"] == [259, 63, 50, 118, 65, 265, 272, 274], about)
    check(about["tokens"][1] == "<0x3C>" and len(about["tokenizer_sha256"]) == 64, about)
    about = json.loads(run("tokenize", model, "--text", "", "--json", "--no-special").stdout)
    check(about["ids"] == about["tokens"] == [], about)
    (work / "text").write_bytes(b"hello \xff world")
    for args in (["--file", work / "text"], ["--file=-"], []):
        with open(work / "text", "rb") as file:
            ids = json.loads(run("tokenize", model, *args, "--json", stdin=file).stdout)["ids"]
        check(ids == [1, 275, 259, 242, 194, 192, 280], ids)
    done = run("tokenize", model, "--decode", "1,275, 280")
    check(done.returncode == 0 and done.stdout == "<s> hello world", done)
    done = run("tokenize", model, "--decode", "[1, 275, 280]", "--no-special", "--json")
    check(json.loads(done.stdout)["text"] == "hello world", done)
    (work / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    done = run("tokenize", model, "--chat", work / "chat.json", "--family", "llama2", "--json")
    check(json.loads(done.stdout)["prompt"] == "<s>[INST] hello [/INST]", done)
    fails(["tokenize", model, "--chat", work / "chat.json"], "no chat template", "--raw-prompt")
    fails(["tokenize", model, "--chat", work / "chat.json", "--family", "none"], "'none'")
    fails(["tokenize", model, "--decode", "5 x"], "'x' is not a token id")
    fails(["tokenize", model, "--decode", "100000"], "no token 100000")
    (work / "tokenizer.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02")
    fails(["tokenize", work / "tokenizer.model"], "SentencePiece model", "tokenizer.json")
    (work / "tokenizer.model").write_bytes(b"YQ== 0\nYg== x\n")
    fails(["tokenize", work / "tokenizer.model"], "the pre-tokenizer is unknown")
    (work / "tokenizer.model").rename(work / "cl100k.tiktoken")
    fails(["tokenize", work / "cl100k.tiktoken"], "line 2 is not a token")
    (work / "cl100k.tiktoken").unlink()
    fails(["tokenize", "/none"], "/none")
    fails(["tokenize", work], "no tokenizer.json")
    usage(["tokenize", model, "--text", "a", "--file", "b"], "exclude each other", "help tokenize")
    usage(["tokenize"], "no tokenizer given")
def test_bench_model():
    """`bench model`: all counts must be present; times are not checked."""
    model = SAMPLE / "digits.onnx"
    done = run("bench", "model", model, "--runs", "3", "--threads", "1")
    check(done.returncode == 0 and done.stdout.startswith(f"{model} on cpu ("), done)
    for part in ("first run", "of which", "GFLOP/s", "measured one at a time", "matmul", "slowest", "node '"):
        check(part in done.stdout, f"'{part}' is not in {done.stdout}")
    done = run("bench", "model", model, "--runs", "2", "--json", "--input", SAMPLE / "seven.npy")
    about = json.loads(done.stdout)
    check([s["name"] for s in about["sets"]] == ["reproducible"], about)
    check(about["sets"][0]["seconds"] > 0 and about["sets"][0]["bind_seconds"] > 0, about)
    check(sum(r["number"] for r in about["repops"]) == about["dispatch_count"], about)
    check(len(about["dispatches"]) == about["dispatch_count"], about)
    times = [d["seconds"] for d in about["dispatches"]]
    check(times == sorted(times, reverse=True) and times[-1] >= 0, "the slowest first")
    check(about["flops"] == sum(d["flops"] for d in about["dispatches"]) > 0, about)
    check(about["weight_bytes"] > 100000, about)

    # 2 * m * n * k operations, and three matrices of 4-byte elements.
    product = work / "product.onnx"
    product.write_bytes(onnx.model(
        [onnx.node("MatMul", ["a", "b"], ["c"])],
        [onnx.port("a", onnx.FLOAT, ["m", 5]), onnx.port("b", onnx.FLOAT, [5, 7])],
        [onnx.port("c", onnx.FLOAT, ["m", 7])]))
    done = run("bench", "model", product, "--dim", "m=3", "--seed", "4", "--runs", "1", "--json")
    about = json.loads(done.stdout)
    check(about["flops"] == 2 * 3 * 5 * 7, about)
    check([(d["repop"], d["bytes"]) for d in about["dispatches"]]
          == [("matmul", 4 * (15 + 35 + 21))], about)

    # Where shapes depend on data, each run makes the program's second segment anew.
    parts = work / "parts.onnx"
    parts.write_bytes(onnx.model(
        [onnx.node("Abs", ["x"], ["a"], "ab"), onnx.node("NonZero", ["a"], ["i"], "nz"),
         onnx.node("Gather", ["x", "i"], ["g"], "ga"), onnx.node("Neg", ["g"], ["y"], "ng")],
        [onnx.port("x", onnx.FLOAT, [4096])], [onnx.port("y", onnx.FLOAT, None)]))
    about = json.loads(run("bench", "model", parts, "--runs", "3", "--json").stdout)
    check(any(d["node"] == "node 'ng' (Neg)" for d in about["dispatches"]), about)

    ceilings = run("bench", "ceilings", "--size", "4096", "--runs", "2", "--json")
    results = {r["name"]: r for r in json.loads(ceilings.stdout)["results"]}
    check([r["unit"] for r in results.values()] == ["GB/s"] * 3 + ["GFLOP/s"], results)
    # What one run computes: 31 fma for each element, and copies of 4 bytes that are read and written.
    for name, amount in (("fma in registers, lower bound", 2 * 31 * 4096),
                         ("copy on the device, read and written", 8 * 4096), ("host to device", 4 * 4096)):
        check(abs(1e9 * results[name]["rate"] * results[name]["seconds"] / amount - 1) < 1e-6, results)

    usage(["bench", "model"], "no model given")
    usage(["bench", "matmul", model], "does not accept")
    usage(["bench", "nothing"], "unknown benchmark 'nothing'")
    usage(["bench"], "which benchmark")
    fails(["bench", "model", "/none.onnx"], "/none.onnx")
    fails(["bench", "model", model, "--input", work / "x.npy"], "image")


def test_pipes():
    """A result that cannot be written is a failure."""
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([ree_run, work / "add.onnx", "--input", work / "x.npy"],
                                  stdout=full, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 1 and "standard output" in done.stderr, done)


def main():
    global ree_run, work
    parser = harness.parser()
    ree_run = os.path.abspath(parser.parse_args().ree_run)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_models()
        for name, test in sorted(globals().items()):
            if name.startswith("test_"):
                test()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
