#!/usr/bin/env python3
"""Exports small checkpoints of every architecture and compares ree with transformers and ONNX
Runtime, if they are installed (REE_ORACLE_PYTHON names a Python that has them; by default the
current one).

For each checkpoint, in both forms of the graph:
- ree runs a prompt in pieces and 64 greedy tokens. transformers, which gets the same tokens at once
  in float32, has logits within 2e-5 max|logit| + 1e-6 and the same best token everywhere. Both sum
  up to some hundred float32 terms in different orders through three layers; a wrong operator, mask
  or angle is off by thousands of times that.
- onnx.checker accepts the model, and ONNX Runtime has the same logits within that tolerance, for
  prefill and with the cache.
- These give the same bytes: the forms of the graph, the folder itself, a prompt in other pieces,
  and a longer sequence in the same batch. So does a token in the middle of the sequence,
  whatever the cache contains after it (hf_decode).
Quantised weights are only compared with ONNX Runtime and with the same formula in NumPy.

With --activations bfloat16 or float16, ree and transformers compute in that type, with roundings in
different places. Their distance from the same weights in float32 is therefore compared: that of ree
(root mean square over all logits) is at most 1.25 times that of transformers. Both round some hundred
values of a token independently, so the ratio varies with the weights; 0.78 to 1.03 was measured.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

harness.use_oracle_python()

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy as np
    import onnx
    import onnxruntime
    import torch
    import transformers

    import checkpoints
except ImportError as error:
    harness.skip(error)

STEPS = 64
PROMPTS = {"llama": 300, "gemma3_text": 270}  # more than one chunk of a sum over keys
ACTIVATIONS = ["llama", "llama-biases", "qwen2", "qwen3", "gpt2", "phi3-window-partial", "olmo2", "smollm3",
               "gemma3_text"]
QUANTISED = [("llama", 4, 32), ("llama", 8, 16), ("gpt2", 4, 16), ("qwen2", 8, 32)]


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(c) for c in command)}: {done.stderr.strip()}")
    return done.stdout


def decode(args, model, work, pieces, steps, *prompts):
    """Returns tokens and logits (batch, positions, vocabulary)."""
    path = work / "logits.f32"
    prompts = [",".join(map(str, p)) for p in prompts]
    text = run([args.decode, model, path, pieces, steps, *prompts])
    tokens = np.array([[int(t) for t in line.split(",")] for line in text.split()])
    return tokens, np.fromfile(path, np.float32).reshape(*tokens.shape, -1)


def compare(what, got, want):
    worst = np.abs(got - want).max() / (2e-5 * np.abs(want).max() + 1e-6)
    if not worst <= 1:
        raise RuntimeError(f"{what}: {worst:.3g} times the tolerance")
    return worst


def onnx_runtime(path, tokens, pieces):
    """The same with ONNX Runtime, its present caches fed back."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    cache = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)
             for i in session.get_inputs()[2:]}
    names, logits, at = [o.name for o in session.get_outputs()], [], 0
    for end in [*pieces, len(tokens)]:
        ids = np.array([tokens[at:end]], np.int64)
        places = np.arange(at, end, dtype=np.int64)[None]
        out = session.run(None, {"input_ids": ids, "position_ids": places, **cache})
        cache = {n.replace("present", "past_key_values"): v for n, v in zip(names[1:], out[1:])}
        logits.append(out[0])
        at = end
    return np.concatenate(logits, 1)


def check_case(args, name, work):
    folder = work / "checkpoint"
    model = checkpoints.make(name, folder, 1)
    rng = np.random.default_rng(5)
    vocabulary = checkpoints.SIZES["vocab_size"]
    prompt = rng.integers(4, vocabulary, PROMPTS.get(name, 40)).tolist()
    other = rng.integers(4, vocabulary, len(prompt) + 6).tolist()
    run([args.ree_run, "export", folder])
    run([args.ree_run, "export", folder, "--opset", "17", "-o", folder / "steps.onnx"])
    tokens, logits = decode(args, folder / "model.onnx", work, "4,1", STEPS, prompt)
    # Gemma 3's attention takes the configuration's softcap as an argument that transformers never
    # passes.
    softcap = getattr(model.config, "attn_logit_softcapping", None)
    with torch.no_grad():
        want = model(input_ids=torch.tensor(tokens),
                     **(dict(softcap=softcap) if softcap else {})).logits.numpy()
    worst = compare("transformers", logits, want)
    best = want[0].argmax(-1)
    if not np.array_equal(best, logits[0].argmax(-1)):
        raise RuntimeError("the best tokens differ from those of transformers")
    if not np.array_equal(best[len(prompt) - 1:-1], tokens[0, len(prompt):]):
        raise RuntimeError("greedy tokens differ from those of transformers")
    if len(set(best)) < 10:
        raise RuntimeError("the best tokens are too few to show anything")
    for form in ("model.onnx", "steps.onnx"):
        onnx.checker.check_model(str(folder / form), full_check=True)
        compare(f"ONNX Runtime, {form}", logits, onnx_runtime(folder / form, tokens[0], [9, 10, 30]))
    for what, model_path in (("opset 17", folder / "steps.onnx"), ("the folder", folder)):
        if decode(args, model_path, work, "", 0, tokens[0])[1].tobytes() != logits.tobytes():
            raise RuntimeError(f"{what}: other bytes")
    _, batch = decode(args, folder, work, "3", 0, prompt, other)
    if batch[0, :len(prompt)].tobytes() != logits[0, :len(prompt)].tobytes():
        raise RuntimeError("in a batch: other bytes")
    print(f"{name}: {len(set(best))} different tokens, "
          f"transformers at {100 * worst:.2g} % of the tolerance")


def quantised(weight, bits, block):
    """The formula of graph/hf/quantize.h for a matrix (out, in): returns q and scales."""
    rows, columns = weight.shape
    padded = np.zeros((rows, -(-columns // block) * block), np.float32)
    padded[:, :columns] = weight
    blocks = padded.reshape(rows, -1, block)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
    zero = np.float32(2 ** (bits - 1))
    scale = (largest / -zero).astype(np.float32)
    q = np.clip(np.rint(blocks / scale) + zero, 0, 2 ** bits - 1).astype(np.uint8)
    q.reshape(rows, -1)[:, columns:] = zero
    return q, scale[..., 0]


def check_quantised(args, name, bits, block, work):
    folder = work / "checkpoint"
    model = checkpoints.make(name, folder, 1)
    path = work / "quantised.onnx"
    options = ["--quantize", bits, "--block", block]
    run([args.ree_run, "export", folder, *options, "--colocate-tensors", "-o", path])
    run([args.ree_run, "export", folder, *options, "--opset", "17"])
    onnx.checker.check_model(str(path))
    values = {t.name: onnx.numpy_helper.to_array(t, str(work))
              for t in onnx.load(path, load_external_data=False).graph.initializer
              if t.name.endswith((".int4", ".int8", ".scales"))}
    n = 0
    for full, packed in values.items():
        tensor, _, kind = full.rpartition(".int")
        if kind not in ("4", "8"):
            continue
        # The embedding table of gpt2 and qwen2 is the head. It has 8 bits, and rows.
        is_table = packed.ndim == 2
        if kind != str(8 if is_table else bits):
            raise RuntimeError(f"{tensor} has {kind} bits")
        weight = model.get_parameter(tensor).detach().numpy()
        transposed = name.startswith("gpt2") and not is_table
        q, scales = quantised(weight.T if transposed else weight, int(kind), block)
        if kind == "4":
            q = q[..., ::2] | q[..., 1::2] << 4
        if is_table:
            q = q.reshape(len(q), -1)
        if not (np.array_equal(packed, q) and np.array_equal(values[f"{tensor}.scales"], scales)):
            raise RuntimeError(f"{tensor} is quantised otherwise")
        n += 1
    if n != {"llama": 22, "gpt2": 13, "qwen2": 22}[name]:
        raise RuntimeError(f"{n} matrices are quantised")
    tokens, logits = decode(args, path, work, "4", 20, [5, 6, 7, 8, 9])
    worst = compare("ONNX Runtime", logits, onnx_runtime(path, tokens[0], [9, 10]))
    beside = decode(args, folder / "model.onnx", work, "", 0, tokens[0])[1]
    if beside.tobytes() != logits.tobytes():
        raise RuntimeError("opset 17, pointing to its weights: other bytes")
    print(f"{name}, {bits} bits in blocks of {block}: ONNX Runtime at {100 * worst:.2g} % of the "
          "tolerance")


def check_activations(args, name, dtype, work):
    folder, exact = work / "checkpoint", checkpoints.make(name, work / "float32", 1)
    with torch.no_grad():
        exact.to(getattr(torch, dtype)).save_pretrained(folder)
        narrow = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
        exact = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    options = ["--activations", dtype]
    run([args.ree_run, "export", folder, *options])
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    element = getattr(onnx.TensorProto, dtype.upper())
    if {i.type.tensor_type.elem_type for i in graph.input[2:]} != {element}:
        raise RuntimeError("the caches have another type")
    rng = np.random.default_rng(6)
    prompt = rng.integers(4, checkpoints.SIZES["vocab_size"], 60).tolist()
    other = rng.integers(4, checkpoints.SIZES["vocab_size"], 70).tolist()
    tokens, logits = decode(args, folder / "model.onnx", work, "4,1", 30, prompt)
    with torch.no_grad():
        ids = torch.tensor(tokens)
        want, theirs = exact(input_ids=ids).logits.numpy(), narrow(input_ids=ids).logits.float().numpy()

    def distance(x):
        return float(np.sqrt(np.mean((x.astype(np.float64) - want) ** 2)))

    ratio = distance(logits) / distance(theirs)
    if not 0 < ratio <= 1.25:
        raise RuntimeError(f"{ratio:.3g} times as far from float32 as transformers")
    if decode(args, folder / "model.onnx", work, "", 0, tokens[0])[1].tobytes() != logits.tobytes():
        raise RuntimeError("in one piece: other bytes")
    _, batch = decode(args, folder / "model.onnx", work, "3", 0, prompt, other)
    if batch[0, :len(prompt)].tobytes() != logits[0, :len(prompt)].tobytes():
        raise RuntimeError("in a batch: other bytes")
    print(f"{name}, activations {dtype}: {ratio:.2f} times as far from float32 as transformers")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--decode", required=True)
    parser.add_argument("--only", help="run only cases whose names contain this text")
    args = parser.parse_args()
    torch.set_num_threads(2)
    passed, failed = 0, 0
    cases = [(check_case, name) for name in checkpoints.CASES]
    cases += [(check_quantised, *case) for case in QUANTISED]
    cases += [(check_activations, name, dtype) for name in ACTIVATIONS for dtype in ("bfloat16", "float16")]
    for check, name, *rest in cases:
        if args.only and args.only not in " ".join([name, *map(str, rest)]):
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                check(args, name, *rest, pathlib.Path(work))
                passed += 1
            except Exception as error:
                failed += 1
                print(f"FAILED: {name}{rest or ''}: {type(error).__name__}: {error}")
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
