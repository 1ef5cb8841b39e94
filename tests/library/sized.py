"""A program that was built with older headers runs with the present library. The older headers are
the present ones without the last fields of every struct that begins with `size_t size`, so they stay
older whatever is added. Both builds of sized_host.c must give the SHA-256 values of ree-run. Also:
sizes that the library refuses."""
import argparse
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import run

parser = argparse.ArgumentParser()
for name in ("--libree", "--ree-run", "--source", "--cc"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
SAMPLES = os.path.join(args.source, "tools/sample")
# Fields that sized_host.c uses: no older header lacks them.
USED = {"size", "n_threads", "no_fold", "no_fuse", "n_dispatches", "run_seconds", "model", "session",
        "prefill_chunk", "all_logits", "sampling", "max_new_tokens", "eos", "n_eos", "prompt_tokens",
        "new_tokens", "colocate_tensors"}


def cut_struct(match, n):
    """Removes the last n fields of a struct, except those that the program uses."""
    head, body, tail = match.groups()
    plain = re.sub(r"//[^\n]*", "", body)
    fields = [field.strip() for field in plain.split(";") if field.strip()]
    for _ in range(n):
        names = set(re.findall(r"\w+", fields[-1]))
        if names & USED or len(fields) == 1:
            break
        fields.pop()
    return head + "".join(f"    {field};\n" for field in fields) + tail


def make_older(folder, n):
    """Writes headers whose sized structs lack up to n fields. Returns the names of these structs."""
    names = []
    os.makedirs(os.path.join(folder, "ree"))
    for name in ["ree.h", *(f"ree/{x}" for x in os.listdir(os.path.join(args.source, "src/ree")))]:
        with open(os.path.join(args.source, "src", name)) as file:
            text = file.read()
        sized = re.compile(r"(struct (?:\w+) \{\n)(    size_t size; +// sizeof.*?)(\};)", re.S)
        names += re.findall(r"struct (\w+) \{\n    size_t size; +// sizeof", text)
        with open(os.path.join(folder, name), "w") as file:
            file.write(sized.sub(lambda match: cut_struct(match, n), text))
    return names


def build(include, out, *flags):
    run(args.cc, *flags, "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I" + include,
        os.path.join(HERE, "sized_host.c"), args.libree,
        "-Wl,-rpath," + os.path.dirname(os.path.abspath(args.libree)), "-o", out)
    return out


def parts(text):
    lines = dict(line.split() for line in text.splitlines())
    sizes = {name: int(value) for name, value in lines.items() if name.startswith("ree_")}
    return sizes, {name: value for name, value in lines.items() if name not in sizes}


harness.need_program(args.cc.split()[0], "C compiler")
with tempfile.TemporaryDirectory() as folder:
    present = build(os.path.join(args.source, "src"), os.path.join(folder, "present"))
    sizes, values = parts(run(present, SAMPLES))
    stories = run(args.ree_run, os.path.join(SAMPLES, "stories"), "--prompt-text", "Once upon a time",
                  "--max-new-tokens", "16", "--prefill-chunk", "3", "--logits-hash", "--json")
    digits = run(args.ree_run, os.path.join(SAMPLES, "digits.onnx"), "--input", os.path.join(SAMPLES, "seven.npy"))
    weights = run(args.ree_run, "inspect", os.path.join(SAMPLES, "stories"), "--hash")
    expected = {
        "digits": re.search(r"^sha256\s+([0-9a-f]{64})$", digits, re.M).group(1),
        "tokens": re.search(r'"tokens_sha256":\s*"([0-9a-f]{64})"', stories).group(1),
        "logits": re.search(r'"logits_sha256":\s*"([0-9a-f]{64})"', stories).group(1),
        "exported": re.search(r"weights\D*\s([0-9a-f]{64})", weights).group(1),
    }
    if values != expected:
        sys.exit(f"the present program gives {values}, ree-run {expected}")
    print(run(present, SAMPLES, "wrong"), end="")
    for n in (1, 2, 3):
        include = os.path.join(folder, f"older-{n}")
        names = make_older(include, n)
        if not set(sizes) <= set(names) or len(sizes) < 8:
            sys.exit(f"structs with a size: {names}, in the program: {sorted(sizes)}")
        older, older_values = parts(run(build(include, os.path.join(folder, f"program-{n}"), "-DOLDER"), SAMPLES))
        same = [name for name in sizes if older[name] >= sizes[name]]
        # These structs keep their size: the program uses their last field, or padding replaced the fields.
        if same and n == 3:
            sys.exit(f"the older header has structs of the same size: {same}")
        if older_values != expected:
            sys.exit(f"without {n} fields: {older_values}, expected {expected}")
        print(f"without up to {n} fields: {older}: the same SHA-256 values")
