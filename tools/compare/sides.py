"""Who takes part: ree and its peers, and the model that each of them runs for a type."""
import dataclasses
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import time

import models
from protocol import WARM_UP, prompt_ids

HERE = pathlib.Path(__file__).parent
SIDES = ["ree", "PyTorch", "ONNX Runtime", "llama.cpp"]
MODULES = {"PyTorch": ["torch", "transformers"], "ONNX Runtime": ["onnxruntime", "onnx"],
           "llama.cpp": ["llama_cpp", "gguf", "safetensors", "torch"]}
TYPES = {
    "float32": "float32",
    "bfloat16": "bfloat16 weights; ree: float32 activations",
    "bfloat16-activations": "bfloat16 weights; ree: bfloat16 activations",
    "8bit": "8 bits in blocks of 32; ree: float32 activations",
    "8bit-int8": "8 bits in blocks of 32; ree: int8 activations",
    "4bit": "4 bits in blocks of 32; ree: float32 activations",
    "4bit-int8": "4 bits in blocks of 32; ree: int8 activations",
}


@dataclasses.dataclass(eq=False)
class Contestant:
    """One program with one model. Several types may share it."""
    name: str  # side, model and options
    side: str
    model: pathlib.Path
    bytes_per_step: int
    measure: callable  # returns the object of protocol.py


def missing(side):
    """The modules that the peer needs and Python does not find."""
    return [name for name in MODULES.get(side, []) if not importlib.util.find_spec(name)]


def _output(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}\n{done.stderr[-2000:]}")
    return done.stdout


def _peer(args, side, script, model, nbytes):
    command = [sys.executable, HERE / script, model, args.threads, args.prompt, args.steps]
    name = f"{side}: {model.relative_to(args.folder)}"
    return Contestant(name, side, model, nbytes, lambda: json.loads(_output(command).splitlines()[-1]))


def _ree(args, model, nbytes, options=()):
    def run(prompts, n_new):
        command = [args.ree_run, model, *options, "--threads", args.threads, "--max-new-tokens", n_new,
                   "--batch-size", 1, "--ignore-eos", "--json"]
        for ids in prompts:
            command += ["--prompt-ids", ",".join(map(str, ids))]
        return json.loads(_output(command))

    def measure():
        ids = prompt_ids(args.prompt)
        start = time.perf_counter()
        whole = run([ids], args.steps + 1)
        seconds = time.perf_counter() - start
        # The first token of a call is that of its first prompt, here the warm-up's.
        warm = run([ids[:WARM_UP], ids], 1)["stats"]
        stats = whole["stats"]
        return {"prompt_seconds": warm["prompt_seconds"] - warm["first_token_seconds"],
                "steps_seconds": stats["decode_seconds"], "tokens": whole["tokens"],
                "version": _output([args.ree_run, "--version"]).strip() + ", " + whole["device"],
                "first_prompt_seconds": stats["prompt_seconds"],
                "other_seconds": seconds - stats["prompt_seconds"] - stats["decode_seconds"]}
    name = " ".join([f"ree: {model.relative_to(args.folder)}", *options])
    return Contestant(name, "ree", model, nbytes, measure)


def _make(args, kind, side):
    """The contestant of a type and a side; None: the side has no such type."""
    folder, nbytes = args.folder, models.bytes_per_step
    bits = int(kind[0]) if kind[1:].startswith("bit") else None
    weights = kind.removesuffix("-int8")
    dtype = "float32" if kind == "float32" else "bfloat16"
    width = 32 if dtype == "float32" else 16
    options = ["--quantize", str(bits)] if bits else []
    if side == "ree":
        # A quantised weight has a share of its block's float32 scale.
        matrix = bits + 1 if bits else width
        if bits:
            if kind != weights:
                options += ["--activations", "int8"]
            options += ["--quantize-table", "8"]
            model = models.exported(args.ree_run, folder, dtype, f"{kind}-table8", options)
            return _ree(args, model, nbytes(matrix, 9, width))
        activations = ["--activations", "bfloat16"] if kind == "bfloat16-activations" else []
        return _ree(args, models.checkpoint(folder, dtype), nbytes(width, width, width), activations)
    if side == "PyTorch":
        if bits:
            return None
        return _peer(args, side, "run_pytorch.py", models.checkpoint(folder, dtype), nbytes(width, width, width))
    if side == "ONNX Runtime":
        if dtype == "bfloat16" and not bits:
            return None
        level = args.accuracy_level if bits else 0
        options += ["--opset", str(args.opset)]
        if bits:
            options += ["--quantize-table", "keep"]
        model = models.for_onnxruntime(args.ree_run, folder, dtype, f"{weights}-opset{args.opset}", options, level)
        # ONNX Runtime widens the bfloat16 weights once, when it loads the model.
        return _peer(args, side, "run_onnxruntime.py", model, nbytes(bits + 1 if bits else 32, 32, 32))
    matrix = {"float32": "F32", "8bit": "Q8_0", "4bit": "Q4_0"}.get(weights, "BF16")
    head = args.gguf_head if bits else matrix
    model = models.gguf_file(folder, dtype, matrix, head)
    return _peer(args, side, "run_llama.py", model, nbytes(models.GGML_BITS[matrix], models.GGML_BITS[head], 32))


def contestants(args):
    """{(type, side): Contestant} for the requested types and the sides that are installed."""
    found, by_name = {}, {}
    for kind in args.types:
        for side in args.sides:
            entry = _make(args, kind, side)
            if entry:
                found[kind, side] = by_name.setdefault(entry.name, entry)
    return found


def reading(args):
    """Rate of reading memory, in GB/s."""
    text = _output([args.ree_run, "bench", "matmul", "--size", "1x8192x16384", "--runs", 7,
                    "--threads", args.threads])
    return float(re.search(r"x of reading memory \(([0-9.]+)\)", text).group(1))
