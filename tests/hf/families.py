#!/usr/bin/env python3
"""Every family of checkpoints that ree converts. The graph that ree makes of it must be proved
causal, so that a text is verified in one pass and sequences of different lengths run together; also
with activations of 16 bits, which must stay near float32. Uses a small checkpoint of each family with
random weights; its tensors are those that ree asks for."""

import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

COMMON = {"hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 12,
          "num_hidden_layers": 2, "vocab_size": 40, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "hidden_act": "silu",
          "tie_word_embeddings": False}
GEMMA = {"sliding_window": 8, "sliding_window_pattern": 2, "query_pre_attn_scalar": 4,
         "hidden_activation": "gelu_pytorch_tanh", "rope_local_base_freq": 1e4}
FAMILIES = {
    "llama": COMMON, "mistral": COMMON | {"sliding_window": 8}, "qwen2": COMMON, "qwen3": COMMON,
    "phi3": COMMON | {"sliding_window": 8, "pad_token_id": 0}, "olmo2": COMMON, "smollm3": COMMON,
    "gemma3_text": COMMON | GEMMA, "gemma3": {"text_config": COMMON | GEMMA},
    "gpt2": {"n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 64, "n_inner": None, "vocab_size": 40,
             "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
}


def write(folder, config, shapes):
    header, data = {}, b""
    for name, shape in shapes.items():
        draw, n = random.Random(name), 1
        for size in shape:
            n *= size
        values = struct.pack(f"<{n}f", *(draw.uniform(-0.5, 0.5) for _ in range(n)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def checkpoint(run, folder, family):
    """Adds the tensors that ree's messages name as missing, with the shapes in the messages, until
    it runs."""
    shapes, config = {}, {"model_type": family, **FAMILIES[family]}
    for _ in range(60):
        write(folder, config, shapes or {"x": [1]})
        done = run(folder, "--prompt-ids", "1,2,3", "--max-new-tokens", 1)
        missing = re.search(r"'([\w.]+)'.*?(\[[\d, ]+\])", done.stderr)
        if done.returncode == 0 or not missing or missing[1] in shapes:
            return done
        shapes[missing[1]] = json.loads(missing[2])
    return done


def check_activations(run, family, folder, receipt):
    """Logits are near those of float32, a receipt names the variant by its graph, and every instruction
    set that runs here has the same bits."""
    prompt = ["--prompt-ids", "1,2,3,9,8,7,6,5,4", "--max-new-tokens", 8, "--ignore-eos"]

    def logprobs(*options):
        done = run(folder, *prompt, "--logprobs", 40, "--json", *options)
        if not check(done.returncode == 0, f"{family}, {options}: {done.stderr}"):
            return {}
        first = json.loads(done.stdout)["logprobs"][0]
        return {choice["id"]: choice["logprob"] for choice in first["top"]}

    exact = logprobs()
    for dtype, most in (("bfloat16", 0.1), ("float16", 0.02)):
        # 8 and 11 bits of precision, in a few dozen roundings: a wrong scale is off by more than 1.
        got = logprobs("--activations", dtype)
        far = max((abs(got.get(i, 99) - exact[i]) for i in exact), default=99)
        check(0 < far < most, f"{family}, {dtype}: a log probability differs by {far} from float32")
        command = [folder, *prompt, "--activations", dtype, "--logits-hash", "--json", "--cpu-isa"]
        hashes = set()
        for isa in ("portable", "avx2", "avx512", "neon"):
            done = run(*command, isa)
            if isa != "portable" and f"instruction set '{isa}' is not available here" in done.stderr:
                continue
            if check(done.returncode == 0, f"{family}, {dtype}, {isa}: {done.stderr}"):
                hashes.add(json.loads(done.stdout)["logits_sha256"])
        check(len(hashes) == 1, f"{family}, {dtype}: instruction sets differ: {hashes}")
        done = run(folder, *prompt, "--activations", dtype, "--receipt-path", receipt)
        check(done.returncode == 0, f"{family}, {dtype}: {done.stderr}")
        done = run("verify", receipt, folder, "--activations", dtype, "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["runs"] == 1,
              f"{family}, {dtype}: in one pass: {done.stdout}")
        found = run("verify", receipt, folder)
        check(found.returncode == 0 and f"activations: agrees: {dtype}" in found.stdout,
              f"{family}, {dtype}: the type was not found: {found.stdout}{found.stderr}")
        other = run("verify", receipt, folder, "--activations", "float32")
        check(other.returncode == 1 and "graph: differs" in other.stdout,
              f"{family}, {dtype}: verified with float32: {other.stdout}")


def main():
    args = harness.parser(__doc__).parse_args()

    def run(*command):
        return subprocess.run([args.ree_run, *map(str, command)], capture_output=True, text=True)

    with tempfile.TemporaryDirectory() as name:
        write(pathlib.Path(name), {"model_type": "none"}, {"x": [1]})
        done = run(name, "--prompt-ids", "1", "--max-new-tokens", 1)
        _, _, supported = done.stderr.partition("supported are: ")
        check(set(supported.strip().split(", ")) == set(FAMILIES), f"the test runs other families: {done.stderr}")
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as name:
            folder, receipt = pathlib.Path(name), pathlib.Path(name) / "r.json"
            done = checkpoint(run, folder, family)
            if not check(done.returncode == 0, f"{family}: {done.stderr}"):
                continue
            prompts = ["--prompt-ids", "1,2,3", "--prompt-ids", "4,5,6,7,8,9,10", "--max-new-tokens", 12, "--ignore-eos", "--json"]
            done = run(folder, *prompts, "--stats")
            check(done.returncode == 0, f"{family}: {done.stderr}")
            runs = json.loads(done.stdout)["stats"]["runs"] if done.returncode == 0 else 0
            check(12 <= runs < 18, f"{family}: two prompts of different lengths, 12 tokens of each: {runs} runs")
            done = run(folder, "--prompt-ids", "1,2,3", "--max-new-tokens", 30, "--ignore-eos", "--receipt-path", receipt)
            check(done.returncode == 0, f"{family}: {done.stderr}")
            done = run("verify", receipt, folder, "--ignore-eos", "--json")
            check(done.returncode == 0 and json.loads(done.stdout)["runs"] == 1, f"{family}: in one pass: {done.stdout}")
            check_activations(run, family, folder, receipt)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
