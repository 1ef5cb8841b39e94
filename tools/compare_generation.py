#!/usr/bin/env python3
"""Compares the speed of text generation on the CPU with PyTorch and transformers and, in float32,
with ONNX Runtime on the exported model, in one run and by turns.

The checkpoint has the shape of Qwen2.5-0.5B and random weights; it is made once. The output is the
medians of several rounds and their ratios, separately for prompts and single steps, and the weight
bytes read per second next to the machine's read bandwidth. Each prompt is measured after a prompt
of eight tokens that warms up the process; ree's first prompt is also measured without a warm-up.
ONNX Runtime computes the logits of all tokens of the prompt, because its model has no input that
selects rows; the others compute those of the last token. Needs torch and transformers from PyPI
(build/oracle of tools/test.sh has them), and onnxruntime for its part. Takes some minutes and 3 GB
of disk.

    build/oracle/bin/python tools/compare_generation.py --folder FOLDER [--rounds 5] [--threads 2]
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

SHAPE = dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
             num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768,
             tie_word_embeddings=True, rms_norm_eps=1e-6)


def make(folder):
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM
    if all((folder / name / "model.safetensors").exists() for name in ("float32", "bfloat16")):
        return
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**SHAPE))
    for name in ("float32", "bfloat16"):
        model.to(getattr(torch, name)).save_pretrained(folder / name)


def peer(model, threads, prompt, steps):
    """Runs transformers in a new process. Returns the seconds for the prompt and for the steps."""
    code = f"""
import json, sys, time, torch
from transformers import AutoModelForCausalLM
torch.set_num_threads({threads})
model = AutoModelForCausalLM.from_pretrained({str(model)!r}, dtype="auto").eval()
ids = torch.tensor([{prompt}])
with torch.inference_mode():
    model(ids[:, :8], use_cache=True, logits_to_keep=1)
    start = time.perf_counter()
    out = model(ids, use_cache=True, logits_to_keep=1)
    after = time.perf_counter()
    token = out.logits[:, -1:].argmax(-1)
    out = model(token, past_key_values=out.past_key_values, use_cache=True)
    first = time.perf_counter()
    for _ in range({steps}):
        token = out.logits[:, -1:].argmax(-1)
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
    print(json.dumps([after - start, time.perf_counter() - first]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def export(ree_run, folder):
    """Exports the model with operators of opset 17, which every ONNX Runtime has. Weights stay in
    their files."""
    path = folder / "opset17.onnx"
    subprocess.run([ree_run, "export", str(folder), "-o", str(path), "--opset", "17"], check=True,
                   capture_output=True)
    return path


def runtime(model, threads, prompt, steps):
    """As `peer`, with ONNX Runtime."""
    code = f"""
import json, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = {threads}
session = ort.InferenceSession({str(model)!r}, options, providers=["CPUExecutionProvider"])
past = [i for i in session.get_inputs() if i.name.startswith("past")]
outputs = [o.name for o in session.get_outputs()]
def run(ids, start, states):
    feed = {{"input_ids": np.array([ids], np.int64),
            "position_ids": np.arange(start, start + len(ids), dtype=np.int64)[None]}}
    values = [ort.OrtValue.ortvalue_from_numpy(np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32))
              for i in past] if states is None else states
    feed = {{name: ort.OrtValue.ortvalue_from_numpy(x) for name, x in feed.items()}}
    feed.update((i.name, x) for i, x in zip(past, values))
    out = session.run_with_ort_values(outputs, feed)  # caches are not copied between runs
    return int(out[0].numpy()[0, -1].argmax()), out[1:]
prompt = {prompt}
run(prompt[:8], 0, None)
start = time.perf_counter()
token, states = run(prompt, 0, None)
after = time.perf_counter()
token, states = run([token], len(prompt), states)
first = time.perf_counter()
for i in range({steps}):
    token, states = run([token], len(prompt) + 1 + i, states)
print(json.dumps([after - start, time.perf_counter() - first]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def has_runtime():
    try:
        import onnxruntime  # noqa: F401
        return True
    except ImportError:
        return False


def ree(ree_run, model, threads, prompt, steps):
    def stats(prompts, n_new):
        command = [ree_run, str(model), "--max-new-tokens", str(n_new), "--batch-size", "1",
                   "--ignore-eos", "--json", "--threads", str(threads)]
        for ids in prompts:
            command += ["--prompt-ids", ",".join(map(str, ids))]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["stats"] | {"wall": time.perf_counter() - start}

    whole = stats([prompt], steps + 1)
    # The clocks of the other programs start after eight tokens have touched all weights and started
    # the threads.
    warm = stats([prompt[:8], prompt], 1)["prompt_seconds"] - stats([prompt[:8]], 1)["prompt_seconds"]
    return [warm, whole["decode_seconds"], whole["prompt_seconds"],
            whole["wall"] - whole["prompt_seconds"] - whole["decode_seconds"]]


def reading(ree_run, threads):
    text = subprocess.run([ree_run, "bench", "matmul", "--size", "1x8192x16384", "--threads", str(threads)],
                          capture_output=True, text=True, check=True).stdout
    return float(re.search(r"x of reading memory \(([0-9.]+)\)", text).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--ree-run", default="build/ree-run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--types", nargs="+", default=["float32", "bfloat16"])
    args = parser.parse_args()
    make(args.folder)
    prompt = [(i * 7919) % 150000 for i in range(args.prompt)]
    limit = reading(args.ree_run, args.threads)
    print(f"{args.threads} threads, prompt of {args.prompt} tokens, {args.steps} steps, medians of {args.rounds} rounds")
    print(f"reading memory {limit:.1f} GB/s")
    for name in args.types:
        model = args.folder / name
        nbytes = (model / "model.safetensors").stat().st_size
        peers = {"PyTorch": lambda: peer(model, args.threads, prompt, args.steps)}
        if name == "float32" and has_runtime():
            exported = export(args.ree_run, model)
            peers["ONNX Runtime"] = lambda: runtime(exported, args.threads, prompt, args.steps)
        ours, theirs = [], {who: [] for who in peers}
        for _ in range(args.rounds):
            ours.append(ree(args.ree_run, model, args.threads, prompt, args.steps))
            for who, run in peers.items():
                theirs[who].append(run())
        mine = [statistics.median(column) for column in zip(*ours)]
        rate = nbytes * args.steps / mine[1] / 1e9
        print(f"{name}\n  prompt  {args.prompt / mine[0]:8.1f} tokens/s "
              f"({args.prompt / mine[2]:.1f} as the first of a process)\n"
              f"  steps   {args.steps / mine[1]:8.2f} tokens/s; {rate:.1f} GB/s of weights, "
              f"{rate / limit:.2f}x of reading memory\n"
              f"  beside that {mine[3]:.2f} s for starting, loading and ending")
        for who, times in theirs.items():
            other = [statistics.median(column) for column in zip(*times)]
            print(f"  prompt  {other[0] / mine[0]:.2f}x of {who} ({args.prompt / other[0]:.1f}), "
                  f"steps {other[1] / mine[1]:.2f}x ({args.steps / other[1]:.2f})")


if __name__ == "__main__":
    main()
