#!/usr/bin/env python3
"""Compares the speed of text generation on the CPU with PyTorch (transformers), ONNX Runtime and
llama.cpp, in one run and by turns. Prints one table, in Markdown.

The model has the shape of Qwen2.5-0.5B and random weights. It is made once in FOLDER, in each
program's format (9 GB), with PyTorch and transformers. Prepare a Python with the peers once. This
compiles llama.cpp for this processor, which takes some minutes. If a peer is missing, the tool says
so and omits its column.

    python3 -m venv PEERS
    PEERS/bin/pip install torch transformers onnx onnxruntime gguf
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" \\
        PEERS/bin/pip install --no-binary llama-cpp-python llama-cpp-python
    PEERS/bin/python tools/compare_generation.py --folder FOLDER --json FILE

Measured in a new process each time:

  prompt  512 tokens in one call, after a prompt of 8 tokens that warms up the process. Only the
          logits of the last token are computed
  steps   24 greedy steps on a cache that begins with the prompt. A step computes the logits and
          finds the largest one

The peers run the same loop (compare/protocol.py). ree times itself, in two processes: one runs
the warm-up and the prompt, the other one the prompt, as its warm-up, and the steps. llama.cpp runs
through llama_decode, with batches of 512 tokens. llama-bench is not used: its steps begin with an
empty cache unless a second test fills it, it chooses random tokens without reading the logits, and
its warm-up is a whole prompt.

What the programs compute differs:

                        ree                     PyTorch    ONNX Runtime         llama.cpp
  float32               float32 (RepOps/1)      float32    float32              float32
  bfloat16              activations float32     bfloat16   not measured         operands of products
                                                                                rounded to bfloat16
  bfloat16-activations  activations bfloat16    the same measurements as in the row above
  8bit, 4bit            activations float32     no such    activations float32  activations rounded
                                                type       (--accuracy-level)   to 8 bits (Q8_0)
  8bit-int8, 4bit-int8  activations rounded     no such    the same measurements as in the row above
                        to 8 bits in products   type
  scale of 32 weights   float32                            float32              float16
  head of 8bit, 4bit    8 bits                             float32              8 bits (--gguf-head)
  kv cache              float32; bfloat16 with  as the     float32              float16
                        bfloat16 activations    weights

The head is the embedding table. ree quantises it to 8 bits, and so do the GGUF files, so that
llama.cpp reads about as many bytes as ree. ONNX Runtime's files have it unquantised, and it widens
the head to float32 when it loads the model. The table states the bytes of weights that each
program reads in a step, and their rate beside the rate of reading memory. Blocks and scales of ree
and llama.cpp have different sizes: 9 and 8.5 bits per weight for 8bit, 5 and 4.5 for 4bit.

Every file is read once before the rounds, so that it is in the page cache. Each round runs every
program once, every second round in reverse order. The machine should be idle, and variables such as
OMP_WAIT_POLICY unset.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "compare"))

import models  # noqa: E402
import sides  # noqa: E402
import table  # noqa: E402


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="folder of the models")
    parser.add_argument("--ree-run", default="build/ree-run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default: one per processor")
    parser.add_argument("--prompt", type=int, default=512, help="tokens (default 512)")
    parser.add_argument("--steps", type=int, default=24, help="tokens (default 24)")
    parser.add_argument("--types", nargs="+", choices=sides.TYPES, default=list(sides.TYPES))
    parser.add_argument("--sides", nargs="+", choices=sides.SIDES, default=sides.SIDES)
    parser.add_argument("--gguf-head", choices=["BF16", "Q8_0"], default="Q8_0",
                        help="type of the head in llama.cpp's quantised files (default Q8_0, as in ree)")
    parser.add_argument("--accuracy-level", type=int, choices=range(5), default=0,
                        help="of ONNX Runtime's quantised products: 0 (default), as ree exports them; 4: activations "
                             "rounded to 8 bits")
    parser.add_argument("--opset", type=int, choices=[17, 23], default=17,
                        help="of ONNX Runtime's models: 17 (default) or, for new versions, 23, which has operators "
                             "for attention and norms")
    parser.add_argument("--json", type=pathlib.Path, help="file for all measurements")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    args.sides = ["ree"] + [side for side in args.sides if side != "ree"]
    for side in args.sides[1:]:
        if names := sides.missing(side):
            print(f"{side} is not measured: this Python has no {', '.join(names)}")
    args.sides = [side for side in args.sides if not sides.missing(side)]

    found = sides.contestants(args)
    contestants = list(dict.fromkeys(found.values()))
    result = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
              "processor": processor(), "system": platform.platform(), "load_at_start": os.getloadavg(),
              "environment": {k: v for k, v in os.environ.items() if k.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))},
              "threads": args.threads, "prompt": args.prompt, "steps": args.steps,
              "types": {kind: {side: found[kind, side].name for side in args.sides if (kind, side) in found}
                        for kind in args.types},
              "bytes_per_step": {c.name: c.bytes_per_step for c in contestants},
              "reading_gb_per_s": [], "measurements": []}
    models.read(c.model for c in contestants)
    for i in range(args.rounds):
        result["reading_gb_per_s"].append(sides.reading(args))
        for c in contestants[::-1] if i % 2 else contestants:
            print(f"round {i + 1} of {args.rounds}: {c.name}", file=sys.stderr)
            result["measurements"].append({"round": i, "side": c.side, "contestant": c.name} | c.measure())
        if args.json:  # after each round: an interrupted run keeps the rounds before
            args.json.write_text(json.dumps(result, indent=1) + "\n")
    table.show(args, found, result["measurements"], result["reading_gb_per_s"], result["environment"])


if __name__ == "__main__":
    main()
