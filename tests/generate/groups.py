#!/usr/bin/env python3
"""Batching: the number of groups of sequences that run at the same time, and their sizes, change no
token, logit, log probability or end."""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import cli  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parents[1] / "tools" / "sample" / "stories"

args = None


def run(*arguments):
    done = subprocess.run([args.ree_run, *map(str, arguments), "--threads", "1", "--json"], capture_output=True,
                          text=True)
    check(done.returncode == 0, f"{arguments}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else {"sequences": [], "stats": {}}


def same(model, prompts, *options, parts=(["--n-partitions", 2], ["--device", "cpu,cpu"])):
    """Each prompt alone, and in groups of every number and size."""
    alone = []
    for prompt in prompts:
        whole = run(model, "--prompt-ids", ",".join(map(str, prompt)), *options)
        whole = {k: v for k, v in whole.items() if k not in ("stats", "device")}
        alone.append(whole)
    form = [model, *(a for p in prompts for a in ("--prompt-ids", ",".join(map(str, p)))), *options]
    new = sum(len(s.get("tokens", [])) for s in alone)
    runs = {}
    for sets in (1, 2, 3, 8):
        for batch in (1, 2, 16):
            whole = run(*form, "--micro-batches", sets, "--batch-size", batch)
            stats = whole["stats"]
            check(whole["sequences"] == alone, f"{model}: {sets} sets, at most {batch} together")
            check(stats.get("new_tokens") == new, f"{model}, {sets}, {batch}: {stats}")
            check(stats.get("prompt_tokens") == sum(map(len, prompts)), f"{model}, {sets}, {batch}: {stats}")
            runs[sets, batch] = stats.get("runs")
    check(len({r for (_, batch), r in runs.items() if batch == 1}) == 1, f"{model}: one at a time: {runs}")
    # With one group for each sequence they run one at a time; with fewer groups several run
    # together.
    check(runs[8, 16] == runs[1, 1] and runs[1, 16] < runs[1, 1], f"{model}: runs: {runs}")
    # The same in several stages, with steps of several groups in the pipeline at a time.
    for way in parts:
        whole = run(*form, "--micro-batches", 3, *way)
        check(whole["sequences"] == alone, f"{model}: 3 sets, {way}")
    return runs


def main():
    global args
    parser = harness.parser(__doc__)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    args = parser.parse_args()
    lengths = (1, 9, 4, 4, 30, 2, 9)
    prompts = [[(7 * i + 11 * k) % 600 for k in range(n)] for i, n in enumerate(lengths)]
    runs = same(SAMPLE, prompts, "--max-new-tokens", 12, "--ignore-eos", "--logits-hash")
    check(runs[2, 16] == 2 * runs[1, 16] and runs[3, 16] == 3 * runs[1, 16], f"near equal groups: {runs}")
    # Sampled answers that end at different times; log probabilities; prompts in chunks.
    ends = same(SAMPLE, prompts, "--max-new-tokens", 90, "--temperature", "1.3", "--seed", "4", "--logprobs", 2,
                "--prefill-chunk", 3)
    check(ends[1, 1] != ends[1, 16], f"{ends}")
    with tempfile.TemporaryDirectory() as folder:
        embedding, head = cli.tables(17, 6)
        small = [[(i + 3 * k) % 17 for k in range(n)] for i, n in enumerate((2, 2, 2, 1, 3, 2, 1))]
        for path in cli.write_models(pathlib.Path(folder), 17, embedding, head).values():
            same(path, small, "--max-new-tokens", 8, "--logits-hash", parts=())
    for name, limit in (("genai-tiny/tiny-random-gpt2-fp32", 500), ("capp-gpt/model.onnx", 50)):
        model = args.models / name
        if not model.exists():
            print(f"{model} is not there: left out")
            continue
        # Only sequences of equal length run together, so fewer of them do.
        some = [[1 + (5 * i + 3 * k) % limit for k in range(n)] for i, n in enumerate((3, 3, 5, 3, 3, 2, 5))]
        same(model, some, "--max-new-tokens", 6, "--logits-hash")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
