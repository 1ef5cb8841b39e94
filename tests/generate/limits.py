#!/usr/bin/env python3
"""Language models that exceed the device memory limit (--max-device-memory): the hashes equal those
of the CPU without a limit, and the memory held stays below the limit.

Without --device, also the resident memory of the process, for weights of every type that the CPU
may repack.
"""

import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

STORIES = HERE.parents[1] / "tools" / "sample" / "stories"
MIB = 1 << 20

args = None


def run_json(*arguments):
    """Returns the output of a run, and the peak resident memory of its process in bytes."""
    command = [args.ree_run, *map(str, arguments), "--json", "--stats", "--logits-hash"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said = err.read().decode(errors="replace")
        check(process.returncode == 0, f"{' '.join(command)}: {process.returncode}: {said}")
        if process.returncode != 0:
            return {}, 0
        return json.loads(out.read()), usage.ru_maxrss * 1024


def hashes(result):
    return [(s["tokens_sha256"], s["logits_sha256"]) for s in result.get("sequences", [result])
            if "tokens_sha256" in s]


def peak(result):
    return result.get("stats", {}).get("peak_bytes", 0)


def check_device(device):
    """Limits below the sum of the sample model's weights and caches: binds and programs are made again
    for each run."""
    ways = [["--prompt-ids", "1,403,407", "--max-new-tokens", 5],
            ["--prompt-ids", "1,403,407", "--prompt-ids", "1,80,90,100", "--max-new-tokens", 3]]
    for way in ways:
        ask = [STORIES, *way, "--ignore-eos", "--threads", 1]
        whole, _ = run_json(*ask, "--device", "cpu")
        weights = whole["stats"]["weight_bytes"]
        for limit in (5 * weights // 4, weights):
            limited, _ = run_json(*ask, "--device", device, "--max-device-memory", limit)
            check(hashes(limited) == hashes(whole) and hashes(whole),
                  f"{device}, {limit} bytes, {way}: other tokens or logits")
            # Caches and results count too, so the weights were never all there at once.
            check(0 < peak(limited) <= limit, f"{device}, {limit} bytes: {peak(limited)} held")


def write_checkpoint(folder, layers, hidden, inner, vocabulary):
    """Writes random float16 weights, small enough for sums to stay finite."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": 8,
        "num_key_value_heads": 1, "head_dim": hidden // 8, "vocab_size": vocabulary,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1,
        "eos_token_id": 2, "torch_dtype": "float16"}))
    keys = hidden // 8
    tensors = [("embed_tokens", [vocabulary, hidden]), ("norm", [hidden])]
    for i in range(layers):
        tensors += [(f"layers.{i}.{name}", shape) for name, shape in (
            ("input_layernorm", [hidden]), ("post_attention_layernorm", [hidden]),
            ("self_attn.q_proj", [hidden, hidden]), ("self_attn.k_proj", [keys, hidden]),
            ("self_attn.v_proj", [keys, hidden]), ("self_attn.o_proj", [hidden, hidden]),
            ("mlp.gate_proj", [inner, hidden]), ("mlp.up_proj", [inner, hidden]),
            ("mlp.down_proj", [hidden, inner]))]
    entries, at = {}, 0
    tensors = [(f"model.{name}.weight", shape) for name, shape in tensors]
    tensors.append(("lm_head.weight", [vocabulary, hidden]))
    for name, shape in tensors:
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        entries[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 64)
    source = random.Random(1)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        while at:
            n = min(at, MIB)
            # Sign and mantissa are random; the exponent is that of 1/64.
            bits = int.from_bytes(source.randbytes(n), "little")
            bits &= int.from_bytes(b"\xff\x83" * (n // 2), "little")
            bits |= int.from_bytes(b"\x00\x24" * (n // 2), "little")
            f.write(bits.to_bytes(n, "little"))
            at -= n


def measures_memory():
    """Returns whether memory can be measured: a sanitizer's own memory would hide the model's."""
    return subprocess.run(["grep", "-q", "__asan_init", args.ree_run]).returncode != 0


def check_process(folder):
    """The whole process stays below the memory of a small model's run plus the limit."""
    ask = ["--prompt-ids", "1,4,7,9", "--max-new-tokens", 6, "--ignore-eos", "--threads", 1]
    _, overhead = run_json(STORIES, *ask)
    overhead += 4 * MIB
    # In another process: the peak memory of this process is inherited by the processes that it
    # starts.
    subprocess.run([sys.executable, "-B", __file__, "--ree-run", args.ree_run, "--write",
                    folder / "hf"], check=True)
    for name, how in (("float16", []), ("int8", ["--quantize", 8]), ("int4", ["--quantize", 4])):
        model = folder / "hf" / f"{name}.onnx"  # next to its configuration
        done = subprocess.run([args.ree_run, "export", folder / "hf", "-o", model,
                               "--colocate-tensors", *map(str, how)], capture_output=True,
                              text=True)
        check(done.returncode == 0, f"export to {name}: {done.stderr}")
        if done.returncode != 0:
            continue
        whole, most = run_json(model, *ask)
        weights = whole["stats"]["weight_bytes"]
        limit = weights // 4
        limited, rss = run_json(model, *ask, "--max-device-memory", limit)
        check(hashes(limited) == hashes(whole) and hashes(whole), f"{name}: other tokens or logits")
        check(0 < peak(limited) <= limit, f"{name}: {peak(limited)} bytes held, not {limit}")
        if not measures_memory():
            continue
        check(rss <= limit + overhead,
              f"{name}: the process had {rss / MIB:.1f} MiB, not {overhead / MIB:.1f} and "
              f"{limit / MIB:.1f} for a device")
        # With enough memory, weights are copied, and the copies are counted.
        ample, all_bytes = run_json(model, *ask, "--max-device-memory", 4 * weights)
        check(hashes(ample) == hashes(whole), f"{name}, with enough: other tokens or logits")
        check(all_bytes <= peak(ample) + overhead,
              f"{name}: the process had {all_bytes / MIB:.1f} MiB, and {peak(ample) / MIB:.1f} "
              "were counted")
        print(f"{name}: {weights / MIB:.1f} MiB of weights; {most / MIB:.1f} MiB without a limit, "
              f"{rss / MIB:.1f} with one of {limit / MIB:.1f}, {all_bytes / MIB:.1f} with enough; "
              f"{overhead / MIB:.1f} of a small model")


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--write", type=pathlib.Path, help="write a checkpoint of random weights")
    args = parser.parse_args()
    if args.write:
        write_checkpoint(args.write, 12, 512, 1408, 512)
        return 0
    if args.device != "cpu":
        harness.need_device(args.ree_run, args.device)
    check_device(args.device)
    if args.device == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            check_process(pathlib.Path(folder))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
