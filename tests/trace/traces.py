#!/usr/bin/env python3
"""Traces: the root is the same for every device and every way to run a model, and an independent
implementation agrees with it. Tracing changes no result.

The sample models are part of the project. mnist-8 and stories260K are in ../shared and are skipped
if it is absent. With --device, the traces of the CPU are compared with those of that device.
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import trace_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
import onnx_writer as onnx  # noqa: E402
from harness import check  # noqa: E402

SAMPLES = HERE.parents[1] / "tools" / "sample"

args = None


def call(*arguments, limit=None):
    command = [args.ree_run, *map(str, arguments)]
    if limit is not None:
        command = ["bash", "-c", f'ulimit -f {limit}; trap "" XFSZ; exec "$@"', "bash", *command]
    return subprocess.run(command, capture_output=True, text=True)


def run(*arguments):
    done = call(*arguments, "--json")
    check(done.returncode == 0, f"{' '.join(map(str, arguments))}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def refused(code, message, *arguments):
    done = call(*arguments)
    check(done.returncode == code and message in done.stderr,
          f"{' '.join(map(str, arguments))}: {done.returncode}, {done.stderr}")


def models():
    """Yields (name, arguments of a run, whether the run generates text)."""
    yield "stories", [SAMPLES / "stories", "--prompt-text", "Once upon a time", "--max-new-tokens", 8], True
    yield "digits", [SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy"], False
    shared = pathlib.Path(args.models)
    if (shared / "mnist-8").is_dir() and not args.device:
        data = shared / "mnist-8" / "test_data_set_0" / "input_0.pb"
        yield "mnist-8", [shared / "mnist-8" / "model.onnx", "--input", data], False
    if (shared / "stories260K").is_dir():
        yield "stories260K", [shared / "stories260K", "--prompt-text", "One day", "--max-new-tokens", 6,
                              "--prefill-chunk", 2], True


def isas():
    done = subprocess.run([args.ree_run, "devices"], capture_output=True, text=True)
    check(done.returncode == 0, f"ree-run devices: {done.returncode} {done.stderr}")
    line = next((li for li in done.stdout.splitlines() if "instruction sets" in li), "")
    found = [isa for isa in ("avx512", "avx2", "neon", "portable") if isa in line.replace(",", " ").split()]
    check("portable" in found, f"the instruction sets that 'ree-run devices' prints: {done.stdout}")
    return found


def ways(name):
    if args.device:  # drivers need seconds for each
        yield ["--device", args.device]
        if name in ("digits", "stories"):
            yield ["--device", args.device, "--no-fuse"]
        return
    yield []  # the same way again
    yield ["--threads", "1"]
    yield ["--threads", "2", "--no-fuse"]
    for isa in isas():
        yield ["--cpu-isa", isa]


def results(output):
    """What a run computed, without information about how it ran."""
    keys = ("tokens", "text", "tokens_sha256", "logits_sha256", "outputs", "sha256")
    return {k: output[k] for k in keys if k in output}


def one_root(folder, name, command, is_text):
    first, other = folder / "first.trace", folder / "other.trace"
    hashes = ["--logits-hash"] if is_text else []
    output = run(*command, *hashes, "--trace", first)
    if not check("trace" in output, f"{name}: a trace is reported"):
        return
    plain = run(*command, *hashes)
    check(results(plain) == results(output), f"{name}: the results change with --trace")
    trace = trace_file.Trace(first)  # the independent implementation agrees
    check(trace.root.hex() == output["trace"]["root"], f"{name}: root")
    check(trace.n_steps == output["trace"]["n_steps"], f"{name}: steps")
    told = run("trace", first)
    check(told.get("root") == trace.root.hex() and told.get("n_steps") == trace.n_steps and
          len(told.get("nodes", [])) == len(trace.header["nodes"]), f"{name}: 'ree-run trace'")
    identity = run("inspect", command[0], "--hash")
    check(identity.get("graph_sha256") == trace.header["model"]["graph_sha256"], f"{name}: graph's SHA-256")
    check(identity.get("weights_sha256") == trace.header["model"]["weights_sha256"], f"{name}: weights' SHA-256")
    if "outputs" in output:
        last = {o["sha256"] for o in output["outputs"]}
        digests = {d.hex() for i in range(len(trace.header["nodes"])) for d in trace.outputs(0, i)}
        check(last <= digests, f"{name}: the outputs are among the values")
    for way in ways(name):
        got = run(*command, *hashes, *way, "--trace", other)
        check(got.get("trace") == output["trace"], f"{name} {way}: {got.get('trace')}")
        check(results(got) == results(output), f"{name} {way}: other results")
        done = call("diff", first, other)
        check(done.returncode == 0 and "the same" in done.stdout, f"{name} {way}: {done.stdout}")
        check(other.exists() and first.read_bytes() == other.read_bytes(), f"{name} {way}: the files differ")


def dumped(folder, name, command, is_text):
    """The files of --dump-tensors have the digests in the trace; a cache has a chained digest."""
    files, trace_path = folder / f"dump-{name}", folder / "dumped.trace"
    run(*command, "--trace", trace_path, "--dump-tensors", "", "--dump-folder", files, "--format", "npy",
        *(["--device", args.device] if args.device else []))
    trace = trace_file.Trace(trace_path)
    axes = [i.get("cache_axis") for i in trace.header["inputs"]]
    rows, n, given = {}, 0, 0
    for step in range(trace.n_steps):
        for path in sorted((files / f"step-{step:05}").glob("*.npy")):
            dtype, dims, data, size = trace_file.npy(path)
            if path.name.startswith("input-"):
                number = int(path.name[6:11])
                check(axes[number] is not None or trace_file.tensor(dtype, dims, data) == trace.steps[step][number],
                      f"{name}: {path.name} in step {step}")
                given += axes[number] is None
                continue
            node, output = int(path.name[:5]), int(path.stem.rsplit("-", 1)[1])
            digest = trace.outputs(step, node)[output]
            n += 1
            if trace_file.tensor(dtype, dims, data) == digest and (node, output) not in rows:
                continue
            # A cache: its digest continues the chain of the step before with the new positions.
            axis = next((a for a in axes if a is not None), None)
            if not check(axis is not None and len(dims) == 4, f"{name}: {path.name} in step {step}"):
                continue
            if (node, output) not in rows:
                rows[node, output] = trace_file.Rows(dtype, dims, axis)
            rows[node, output].add(dims, data, size)
            check(rows[node, output].digest == digest, f"{name}: cache {path.name} in step {step}")
    wanted = trace.n_steps * sum(sum(node["outputs"]) for node in trace.header["nodes"])
    check(n == wanted, f"{name}: {n} values were dumped, of {wanted}")
    check(given == trace.n_steps * axes.count(None), f"{name}: {given} inputs were dumped")
    check(len(rows) == sum(a is not None for a in axes), f"{name}: {len(rows)} caches were found")
    if is_text:
        check(trace.n_steps > 1, f"{name}: steps")


def compared(folder):
    command = [SAMPLES / "stories", "--prompt-text", "Once upon a time", "--max-new-tokens"]
    a, b = folder / "a.trace", folder / "b.trace"
    run(*command, 4, "--trace", a)
    for options, code, words in (
        ([6], 1, "the first 4 steps are equal, but the runs have 4 and 6 steps"),
        ([4, "--prefill-chunk", 4], 2, "the prompts were divided differently (--prefill-chunk)"),
    ):
        run(*command, *options, "--trace", b)
        done = call("diff", a, b)
        check(done.returncode == code and words in done.stdout, f"diff {options}: {done.returncode} {done.stdout}")
    run(SAMPLES / "stories", "--prompt-text", "The fox", "--max-new-tokens", 4, "--trace", b)
    done = call("diff", a, b)
    check(done.returncode == 1 and "step 0: input 'input_ids' differs: the runs had different inputs"
          in done.stdout, f"diff of prompts: {done.returncode} {done.stdout}")
    run(SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy", "--trace", b)
    done = call("diff", a, b, "--json")
    found = json.loads(done.stdout)
    check(done.returncode == 2 and found["result"] == "other_run" and
          {"graph", "weights", "nodes"} <= set(found["header"]), f"diff of models: {done.stdout}")
    run(*command, 4, "--trace", b, "--inject-fault", "layers.1.mlp.gated:2:5")
    done = call("diff", a, b, "--json", "--all")
    found = json.loads(done.stdout)
    first, every = found.get("first", {}), found.get("all", [])
    check(done.returncode == 1 and first.get("name") == "layers.1.mlp.gated" and first.get("step") == 2 and
          first.get("inputs_agree") and found.get("new_after") == 0, f"diff of a fault: {done.stdout[:400]}")
    check(len(every) == found.get("nodes_after", 0) + 1 and every[0]["name"] == first["name"] and
          [e["inputs_agree"] for e in every].count(True) == 1, "diff --all")
    done = call("diff", a, b, "--all")
    check(done.returncode == 1 and "step 2: node" in done.stdout and done.stdout.count("  new  ") == 1,
          f"diff --all: {done.stdout[:300]}")


def receipt(folder):
    """A receipt of a traced run binds the trace."""
    a, path = folder / "r.trace", folder / "r.json"
    output = run(SAMPLES / "stories", "--prompt-text", "Once", "--max-new-tokens", 3, "--trace", a,
                 "--receipt-path", path)
    body = json.loads(path.read_text())["body"]
    check(body.get("trace") == {"root": output["trace"]["root"], "n_steps": 3, "prefill_chunk": 64},
          f"receipt: {body.get('trace')}")
    output = run(SAMPLES / "digits.onnx", "--input", SAMPLES / "seven.npy", "--trace", a, "--receipt-path", path)
    body = json.loads(path.read_text())["body"]
    check(body.get("trace", {}).get("root") == output["trace"]["root"], f"receipt: {body.get('trace')}")


def refusals(folder):
    stories = [SAMPLES / "stories", "--prompt-text", "Once", "--max-new-tokens", 2]
    t = folder / "x.trace"
    refused(2, "--trace, --dump-tensors and --inject-fault require one prompt, not 2", *stories, "--prompt-text", "The", "--trace", t)
    refused(1, "cannot create it", *stories, "--trace", folder / "absent" / "x.trace")
    refused(1, "not a regular file", *stories, "--trace", folder)
    refused(2, "--dump-tensors requires --dump-folder", *stories, "--dump-tensors", "x")
    refused(2, "--dump-folder requires --dump-tensors", *stories, "--dump-folder", folder)
    refused(2, "--format requires npy, not 'csv'", *stories, "--dump-tensors", "x", "--dump-folder", folder,
            "--format", "csv")
    refused(2, "is not a regular expression", *stories, "--dump-tensors", "(", "--dump-folder", folder)
    refused(1, "no node, output or input has a name that matches 'nothing'", *stories, "--dump-tensors", "nothing",
            "--dump-folder", folder / "d")
    for text in ("", "3", "3:4", ":1:2", "a:b:c", "3:1:-2", "3:1:2:x"):
        refused(2, "--inject-fault requires NODE:STEP:BIT", *stories, "--inject-fault", text)
    refused(1, "cannot inject a fault into node 9999", *stories, "--inject-fault", "9999:0:0")
    refused(1, "no node is named 'nobody'", *stories, "--inject-fault", "nobody:0:0")
    refused(1, "has no output 7", *stories, "--inject-fault", "3:0:0:7")
    refused(1, "step 5 does not exist; the run had 2, counted from 0", *stories, "--inject-fault", "3:5:0", "--trace", t)
    check(not t.exists(), "a trace of a refused run")
    refused(2, "expected two traces or two receipts", "diff", t)
    refused(2, "x.trace: No such file", "diff", t, t)
    refused(1, "this is not a trace", "trace", SAMPLES / "digits.onnx")
    run(*stories, "--trace", t)
    raw = t.read_bytes()
    # Truncated at evenly spaced lengths: a clear error and no output.
    cut = folder / "cut.trace"
    for n in range(0, len(raw), 64 * max(1, len(raw) // 64 // 40)):
        cut.write_bytes(raw[:n])
        done = call("trace", cut)
        check(done.returncode == 1 and "cut.trace: " in done.stderr and not done.stdout, f"cut at {n}: {done.stderr}")


def interrupted(folder):
    command = [SAMPLES / "stories", "--prompt-text", "Once", "--max-new-tokens", 200, "--ignore-eos"]
    t = folder / "i.trace"
    # File size limits in KiB: within the header and within the steps. Not 0: an OpenMP library may
    # need to write one page.
    for limit in (4, 8, 64):
        done = call(*command, "--trace", t, limit=limit)
        check(done.returncode == 1 and "i.trace: cannot write it" in done.stderr, f"limit {limit}: {done.stderr}")
        check(not list(folder.glob("i.trace*")), f"limit {limit}: something is left")
    for wait in (0.05, 0.3, 0.8):
        process = subprocess.Popen([args.ree_run, *map(str, command), "--trace", str(t)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if t.exists():  # it finished before the signal
            trace_file.Trace(t)
            t.unlink()
        check(not list(folder.glob("i.trace*")), f"killed after {wait} s: something is left")


def names_as_paths(folder):
    """Names of nodes and inputs, which the author of a model chooses, do not become paths of dumped files."""
    base = folder / "paths"
    base.mkdir()
    x, y = onnx.port("../../x/é:", 1, [2]), onnx.port("y", 1, [2])
    path = base / "paths.onnx"
    path.write_bytes(onnx.model([onnx.node("Neg", ["../../x/é:"], ["y"], "../../../a/b.c~")], [x], [y]))
    run(path, "--random-inputs", 1, "--dump-tensors", ".", "--dump-folder", base / "files")
    made = sorted(str(p.relative_to(base)) for p in base.rglob("*.npy"))
    check(made == [f"files/step-00000/{name}.npy" for name in ("00000-.._.._.._a_b.c_-0", "input-00000-.._.._x____")],
          f"{made}")


def names_with_colons(folder):
    """--inject-fault takes the name of a node that ends with a colon and a number."""
    port = [onnx.port(name, 1, [2]) for name in "xyz"]

    def save(first, second):
        path = folder / "names.onnx"
        nodes = [onnx.node("Neg", ["x"], ["y"], first), onnx.node("Abs", ["y"], ["z"], second)]
        path.write_bytes(onnx.model(nodes, [port[0]], [port[1], port[2]]))
        return [path, "--random-inputs", 1]

    whole, damaged = folder / "names-whole.trace", folder / "names-damaged.trace"
    for first, second, fault in (("a:5", "b", "a:5:0:3"), ("a:5", "b", "a:5:0:3:0"), ("a", "b", "a:0:3:0"),
                                 ("a", "b:0", "a:0:3:0")):
        command = save(first, second)
        run(*command, "--trace", whole)
        run(*command, "--trace", damaged, "--inject-fault", fault)
        diff = json.loads(call("diff", whole, damaged, "--json").stdout)
        check((diff["first"]["node"], diff["first"]["step"]) == (0, 0), f"{fault}: {diff}")
    refused(1, "'a' and 'a:0' are nodes, so 'a:0:3:0' has two meanings", *save("a", "a:0"), "--inject-fault", "a:0:3:0")
    refused(1, "no node is named 'c'", *save("a", "b"), "--inject-fault", "c:0:3:0")


def main():
    global args
    parser = harness.parser()
    parser.add_argument("--models", default="")
    parser.add_argument("--device")
    args = parser.parse_args()
    if args.device:
        harness.need_device(args.ree_run, args.device)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in models():
            one_root(folder, *model)
        for model in models():
            if not args.device or model[0] == "digits":
                dumped(folder, *model)
        if not args.device:
            compared(folder)
            receipt(folder)
            refusals(folder)
            names_with_colons(folder)
            names_as_paths(folder)
            interrupted(folder)
    return harness.finish()


sys.exit(main())
