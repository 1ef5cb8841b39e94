#!/usr/bin/env python3
"""Writes tests/data/training_files, the seeds of tests/fuzz/fuzz_training.c: files of trainings that are accepted.

    tests/train/make_seeds.py --ree-run build/ree-run FOLDER
"""
import json
import pathlib
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
import steps  # noqa: E402


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)

    def seed(kind, name, contents):
        (args.out / name).write_bytes(kind.encode() + contents)

    step = steps.DATA / "words.onnx"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        few = {name: tensor.rows(range(3)) for name, tensor in steps.line_data().items()}
        for kind, compression in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
            seed("n", f"{kind}.npz", steps.npz(folder / "x.npz", few, compression).read_bytes())
        seed("s", "line.safetensors", steps.safetensors(folder / "x.safetensors", few, {"a": "b"}).read_bytes())
        # As the target's own dataset: 16 rows of zeros.
        zeros = steps.npz(folder / "zeros.npz", {"ids": steps.Tensor("<i8", (16, 12), [0] * 192)})
        harness.run(args.ree_run, "keygen", folder / "key")
        for name, options in (("every", ["--steps", 3]), ("signed", ["--steps", 5, "--receipt-interval", 2, "--sign", folder / "key", "--in-order"])):
            harness.run(args.ree_run, "train", step, "--data", zeros, *options, "--receipt-path", folder / "r.json",
                        "--checkpoint", folder / "c.safetensors")
            seed("r", f"{name}.json", (folder / "r.json").read_bytes())
            if name == "every":
                seed("c", "checkpoint", (folder / "c.safetensors").read_bytes())
    text = step.read_bytes()
    at = text.rindex(b"ree.training") + len("ree.training")
    at = text.index(b"{", at)
    seed("m", "words.metadata", json.dumps(json.JSONDecoder().raw_decode(text[at:].decode("utf-8", "replace"))[0]).encode())


main()
