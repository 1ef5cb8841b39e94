#!/usr/bin/env python3
"""Text generation with real models: recorded tokens and texts, and one SHA-256 for every way to run
a model.

The sample model is part of the project. stories260K, capp-gpt and genai-tiny are in ../shared and
are skipped if it is absent.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"

args = None


def run(*arguments):
    command = [args.ree_run, *map(str, arguments), "--json"]
    if args.device and "--device" not in arguments:
        command += ["--device", args.device]
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def sequences(result):
    return result.get("sequences", [result]) if result else []


def all_ids(sequence):
    return sequence["prompt_tokens"] + sequence["tokens"]


def ids(tokens):
    return ",".join(map(str, tokens))


# Ways to run that must not change the results; more of them on the CPU, where runs are cheap.
def ways():
    yield []
    if args.device:
        # CUDA's emulator needs a second for a chunk.
        yield ["--prefill-chunk", "16" if args.device == "cuda" else "3", "--no-fuse"]
        yield ["--device", "cpu"]
        return
    for chunk in ("1", "3", "64"):
        yield ["--prefill-chunk", chunk]
    for isa in ("avx512", "avx2", "neon", "portable"):
        if isa in available_isas():
            yield ["--cpu-isa", isa]
    yield ["--threads", "1"]
    yield ["--threads", "3", "--no-fuse"]
    yield ["--no-fold"]


def available_isas():
    done = subprocess.run([args.ree_run, "devices"], capture_output=True, text=True)
    line = next((li for li in done.stdout.splitlines() if "instruction sets" in li), "")
    return line.replace(",", " ").split()


def one_hash(models, prompts, n_new, *options):
    """All models give the same tokens and logits in all ways, with prompts alone and together. On a
    device, whose driver needs seconds to compile, only the last prompt runs alone, and only with
    the first model."""
    hashes = {}
    for model, way in itertools.product(models, ways()):
        if way and model is not models[0] and args.device:
            continue
        common = ["--max-new-tokens", n_new, "--ignore-eos", "--logits-hash", *options, *way]
        together = sequences(run(model, *(a for p in prompts for a in ("--prompt-ids", ids(p))), *common))
        check(len(together) == len(prompts), f"{model}: a sequence for each prompt")
        for prompt, sequence in zip(prompts, together):
            hashes.setdefault(ids(prompt), set()).add((sequence["tokens_sha256"], sequence["logits_sha256"]))
        if way or (args.device and model is not models[0]):
            continue
        for prompt in prompts[-1:] if args.device else prompts:
            for sequence in sequences(run(model, "--prompt-ids", ids(prompt), *common)):
                hashes[ids(prompt)].add((sequence["tokens_sha256"], sequence["logits_sha256"]))
    for prompt, found in hashes.items():
        check(len(found) == 1, f"{models[0]}, prompt {prompt}: {len(found)} different results")


def export(folder, model, opset):
    path = pathlib.Path(folder) / f"{model.name}-{opset}.onnx"
    done = subprocess.run([args.ree_run, "export", str(model), "-o", str(path), "--opset", str(opset),
                           "--colocate-tensors"], capture_output=True, text=True)
    check(done.returncode == 0, f"export of {model}: {done.stderr}")
    return path


def record():
    """Prints the sample model's output for recorded.json. Needed after the model changes."""
    recorded = {"greedy": [], "sampled": []}
    for prompt in ("Once upon a time", "One day, a shy girl named Mira", "The fox"):
        result = run(SAMPLE, "--prompt-text", prompt, "--max-new-tokens", 48, "--logits-hash")
        recorded["greedy"].append({"prompt": prompt, **{k: result[k] for k in ("tokens", "text", "logits_sha256")}})
    for options in (["--temperature", "0.8", "--seed", "1"], ["--temperature", "1.2", "--top-k", "20", "--seed", "2"],
                    ["--temperature", "1", "--top-p", "0.9", "--min-p", "0.05", "--repetition-penalty", "1.1"]):
        result = run(SAMPLE, "--prompt-text", "Long ago", "--max-new-tokens", 32, *options)
        recorded["sampled"].append({"prompt": "Long ago", "options": options, "tokens": result["tokens"]})
    (HERE / "recorded.json").write_text(json.dumps(recorded, indent=1) + "\n")


def few(n):
    """Returns a smaller number on devices: the tests' devices are emulated, and each run compiles
    its kernels."""
    return min(n, 1 if n <= 3 else 4 if args.device == "cuda" else 8) if args.device else n


def whole_text():
    """The run of tools/check-sample.sh: the sample's text to its end."""
    lines = (SAMPLE.parent / "recorded.txt").read_text().splitlines()
    recorded = {line.partition("  ")[2]: line.partition("  ")[0] for line in lines}
    result = run(SAMPLE, "--prompt-text", "Once upon a time", "--logits-hash")
    for what in ("tokens", "logits"):
        check(result and result[f"{what}_sha256"] == recorded[f"stories {what}"], f"sample: whole text, {what}")


def sample():
    recorded = json.loads((HERE / "recorded.json").read_text())
    for case in recorded["greedy"][:few(3)]:
        n = few(len(case["tokens"]))
        result = run(SAMPLE, "--prompt-text", case["prompt"], "--max-new-tokens", n, "--logits-hash")
        if not result:
            continue
        check(result["tokens"] == case["tokens"][:n], f"sample, '{case['prompt']}': {result['tokens']}")
        check(result["text"] and case["text"].startswith(result["text"]),
              f"sample, '{case['prompt']}': {result['text']!r}")
        if n == len(case["tokens"]):
            check(result["text"] == case["text"], f"sample, '{case['prompt']}': {result['text']!r}")
            check(result["logits_sha256"] == case["logits_sha256"], f"sample, '{case['prompt']}': logits")
    for case in recorded["sampled"][:few(3)]:
        n = few(len(case["tokens"]))
        result = run(SAMPLE, "--prompt-text", case["prompt"], "--max-new-tokens", n, *case["options"])
        check(result and result["tokens"] == case["tokens"][:n], f"sample, {case['options']}")
    with tempfile.TemporaryDirectory() as folder:
        models = [SAMPLE, export(folder, SAMPLE, 23)]
        if args.device != "cuda":
            models.append(export(folder, SAMPLE, 17))
        prompts = [[0], [0, 300, 301, 302, 303], list(range(200, 260)), [0, 5]]
        one_hash(models, prompts, few(24))
        if not args.device:
            one_hash(models[:1], prompts[:3], 6, "--temperature", "0.9", "--top-p", "0.95", "--seed", "3")


def stories(models):
    model = models / "stories260K"
    if not model.exists():
        print(f"{model} is not there: left out")
        return
    prompts = {"empty": "", "cat": "The cat sat on", "tim": "One day, Tim and Sue found a big"}
    tokens = {name: [int(li) for li in open(model / "golden" / f"greedy_{name}.tokens.txt")] for name in prompts}
    for name, prompt in list(prompts.items())[-few(3):]:
        text = (model / "golden" / f"greedy_{name}.txt").read_text()
        n = len(tokens[name])
        result = run(model, "--prompt-text", prompt, "--max-new-tokens", few(n), "--ignore-eos")
        if not result:
            continue
        told = (result["prompt"] + result["text"]).strip()
        both = min(len(told), len(text.strip()))
        check(all_ids(result)[:n] == tokens[name][:len(all_ids(result))], f"stories260K, {name}: tokens")
        check(both > 20 and told[:both] == text.strip()[:both], f"stories260K, {name}: {told!r}")
    with tempfile.TemporaryDirectory() as folder:
        # sample() runs exported forms on every device.
        forms = [model] if args.device else [model, export(folder, model, 23), export(folder, model, 17)]
        longest = tokens["tim"][:24 if args.device == "cuda" else 70]
        one_hash(forms, [tokens["cat"][:7], tokens["tim"][:13], [1], longest], few(48))


def capp_gpt(models):
    model = models / "capp-gpt" / "model.onnx"
    if not model.exists():
        print(f"{model} is not there: left out")
        return
    cases = json.loads((model.parent / "expected_fp64.json").read_text())["cases"]
    for case in cases[:few(3) if args.device else None]:
        result = run(model, "--prompt-ids", ids(case["prompt"]), "--max-new-tokens", 64)
        if result:
            check(all_ids(result) == case["tokens"], f"capp-gpt: {all_ids(result)}")
            check(result["finish_reason"] == "eos", "capp-gpt ends by itself")
    if not args.device:
        one_hash([model], [case["prompt"] for case in cases[:2]] + [cases[0]["tokens"][:9]], 8)


def genai(models):
    model = models / "genai-tiny" / "tiny-random-gpt2-fp32"
    if not model.exists():
        print(f"{model} is not there: left out")
        return
    expected = json.loads((model / "expected.json").read_text())["greedy"]
    prompts = expected["input_ids"]
    result = run(model, *(a for p in prompts for a in ("--prompt-ids", ids(p))), "--max-new-tokens",
                 expected["max_length"] - len(prompts[0]))
    check(len(sequences(result)) == len(expected["expected"]) == len(prompts), "genai-tiny: a sequence for each prompt")
    for sequence, want in zip(sequences(result), expected["expected"]):
        check(all_ids(sequence) == want, f"genai-tiny: {all_ids(sequence)}, expected {want}")
    other = models / "genai-tiny" / "tiny-qwen35-cuda"
    if not args.device:
        one_hash([model], prompts, 6)
        one_hash([other], [[5, 6, 7, 8], [9, 1, 9, 1]], 6)


def short(model):
    """A few tokens, for drivers that emulate every float operation: equal to the CPU's."""
    if not model.exists():
        print(f"{model} is not there: left out")
        return
    common = ["--prompt-ids", "1,300,5", "--max-new-tokens", 4, "--ignore-eos", "--logits-hash"]
    here, cpu = run(model, *common), run(model, *common, "--device", "cpu")
    for key in ("tokens", "tokens_sha256", "logits_sha256"):
        check(here and cpu and here[key] == cpu[key], f"{model}: {key} differ")


def main():
    global args
    parser = harness.parser(__doc__)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--device")
    parser.add_argument("--record", action="store_true", help="write recorded.json and end")
    args = parser.parse_args()
    if args.record:
        record()
        return 0
    if args.device:
        harness.need_device(args.ree_run, args.device)
    if args.device and "REE_TEST_SAMPLE" in os.environ:
        short(SAMPLE)
        short(args.models / "stories260K")
    else:
        sample()
        if args.device != "cuda":  # it is emulated
            whole_text()
        stories(args.models)
        capp_gpt(args.models)
        genai(args.models)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
