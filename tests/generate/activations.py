#!/usr/bin/env python3
"""The sample model with activations of 16 bits: the logits have the recorded bits on every device, with
every instruction set, with 1 and 2 threads, and in chunks. On a processor with
AVX512-BF16 products of bfloat16 use its instruction, on others they do not. REE_TEST_SAMPLE: on Vulkan each type
runs only in one of the ways."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

SAMPLE = HERE.parent.parent / "tools/sample/stories"
TEXT = ("Once upon a time, there was a cheerful boy named Nils, who lived in the castle. He had heard of a "
        "round drum that nobody had ever seen. He looked everywhere,")
RECORDED = {
    "bfloat16": "165bcb51b035196d459bd9d1d8a45e53f27665730f79cd665304503ff42a565a",
    "float16": "a4c67c0541f37be5e8166607040fd4c842cbf003047179b9455d7e8eabb0ce7c",
}


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    if args.device != "cpu":
        harness.need_device(args.ree_run, args.device)

    def logits(dtype, *options):
        command = [args.ree_run, SAMPLE, "--prompt-text", TEXT, "--max-new-tokens", "6", "--activations", dtype,
                   "--logits-hash", "--json", "--device", args.device, *map(str, options)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode and "is not available here" in done.stderr:
            return None
        if not check(done.returncode == 0, f"{dtype}, {options}: {done.stderr}"):
            return ""
        return json.loads(done.stdout)["logits_sha256"]

    ways = [[], ["--prefill-chunk", 7]]
    if args.device == "cpu":
        ways += [["--threads", 1], ["--threads", 2], ["--no-fuse"]]
        ways += [["--cpu-isa", isa] for isa in ("portable", "neon", "avx2", "avx512")]
    of_dtype = dict.fromkeys(RECORDED, ways if args.device != "cuda" else ways[:1])
    if args.device == "vulkan" and os.environ.get("REE_TEST_SAMPLE"):
        of_dtype = {"bfloat16": ways[:1], "float16": ways[1:2]}
    for dtype, recorded in RECORDED.items():
        for options in of_dtype[dtype]:
            got = logits(dtype, *options)
            check(got in (recorded, None), f"{dtype}, {options}: {got} instead of {recorded}")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
