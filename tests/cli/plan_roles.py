#!/usr/bin/env python3
"""`ree-run plan --write` finds the roles of nodes from the structure of real models, without their
names. The roles must agree with the nodes' names. Exits with 77 if the models are missing."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
import harness  # noqa: E402
from harness import check  # noqa: E402
import onnx_notes  # noqa: E402


def by_name(name):
    """Returns (role, layer) from a name as ree's export or PyTorch writes it; None if the name has
    no role."""
    found = re.match(r"layers\.(\d+)\.(\w+)", name) or re.match(r"/transformer/h\.(\d+)/(\w+)", name)
    if found:
        roles = {"self_attn": "attention", "attn": "attention", "attention_residual": "attention",
                 "mlp": "feed_forward", "mlp_residual": "feed_forward", "attention_norm": "norm",
                 "mlp_norm": "norm", "ln_1": "norm", "ln_2": "norm"}
        role = roles.get(found[2])
        return role and (role, found[1])
    for prefix, role in (("embed_tokens", "embedding"), ("norm", "norm"), ("lm_head", "head"),
                         ("/transformer/wte", "embedding"), ("/transformer/ln_f", "norm"),
                         ("/lm_head", "head")):
        if name.startswith(prefix):
            return role, None
    return None


def check_names(model, n_layers, n_least):
    """Checks every node whose name has a role; there must be at least `n_least` of them."""
    nodes = onnx_notes.nodes(model)
    n = 0
    for node in nodes:
        notes = node["metadata"]
        expected = by_name(node["name"])
        if not expected or notes.get("ree.role") in (None, "control"):
            continue
        n += 1
        got = notes["ree.role"], notes.get("ree.layer")
        check(got == expected, f"{model.name}: {node['name']} is {got}, expected {expected}")
        check(notes["ree.phase"] == "prefill,decode", notes)
    layers = {node["metadata"].get("ree.layer") for node in nodes} - {None}
    check(layers == {str(i) for i in range(n_layers)}, f"{model.name}: layers {layers}")
    check(n >= n_least, f"{model.name}: {n} names tell")


def check_values(model):
    """Only attention reads a cache; products read weights."""
    for node in onnx_notes.nodes(model):
        notes = node["metadata"]
        if "ree.role" not in notes:
            continue
        kinds = notes["ree.values"].split(",")
        check(len(kinds) == max(len(node["inputs"]), 1), f"{node['name']}: {kinds}")
        if "kv_cache" in kinds and node["op"] != "Shape":
            check(notes["ree.role"] == "attention", f"{node['name']}: {notes}")
        if node["op"] == "MatMul" and notes["ree.role"] in ("feed_forward", "head"):
            check(kinds == ["activation", "weight"], f"{node['name']}: {kinds}")
        check(all((k == "") == (i == "") for k, i in zip(kinds, node["inputs"])), notes)


def sequence(model):
    return [(n["op"], n["metadata"].get("ree.role"), n["metadata"].get("ree.layer"))
            for n in onnx_notes.nodes(model)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--sample", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    args = parser.parse_args()

    def run(*words):
        done = subprocess.run([args.ree_run, *map(str, words)], capture_output=True, text=True)
        check(done.returncode == 0, f"{words}: {done.stderr}")
        return done.stdout

    def written(work, path, n):
        out = work / f"{path.parent.name}.{n}.onnx"
        run("plan", path, "--n-partitions", n, "--write", out)
        return out

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if args.sample:
            for opset in (17, 23):
                model = work / f"sample{opset}.onnx"
                run("export", args.sample, "-o", model, "--colocate-tensors", "--opset", opset)
                out = written(work, model, 3)
                check_names(out, 4, 100)
                check_values(out)
        else:
            present = [name for name in ("stories260K", "capp-gpt", "genai-tiny")
                       if args.models and (args.models / name).is_dir()]
            if not present:
                print("skipped: no shared models")
                return 77
            if "stories260K" in present:
                for opset in (17, 23):
                    model = work / f"stories{opset}.onnx"
                    run("export", args.models / "stories260K", "-o", model, "--colocate-tensors",
                        "--opset", opset)
                    out = written(work, model, 4)
                    check_names(out, 5, 90)
                    check_values(out)
            if "capp-gpt" in present:
                model = work / "capp"
                shutil.copytree(args.models / "capp-gpt", model)
                model.chmod(0o700)
                out = written(work, model / "model.onnx", 3)
                check_names(out, 4, 300)
                check_values(out)
            if "genai-tiny" in present:
                tiny = args.models / "genai-tiny"
                out = written(work, tiny / "tiny-random-gpt2-fp32" / "past.onnx", 2)
                expected = [("EmbedLayerNormalization", "embedding", None)]
                for i in map(str, range(5)):
                    expected += [("Attention", "attention", i), ("MatMul", "attention", i),
                                 ("SkipLayerNormalization", "norm", i), ("MatMul", "feed_forward", i),
                                 ("FastGelu", "feed_forward", i), ("MatMul", "feed_forward", i),
                                 ("SkipLayerNormalization", "norm", i if i != "4" else None)]
                expected.append(("MatMul", "head", None))
                got = [node for node in sequence(out) if node[0] != "Cast"]
                check(got == expected, f"gpt2: {got}")
                check_values(out)
                out = written(work, tiny / "tiny-qwen35-cuda" / "decoder.onnx", 2)
                expected = [("Gather", "embedding", None), ("LayerNormalization", "norm", "0")]
                for i in "01":
                    expected += [("MatMul", "attention", i)] * 3
                    expected += [("GroupQueryAttention", "attention", i), ("MatMul", "attention", i),
                                 ("SkipLayerNormalization", "norm", i), ("MatMul", "feed_forward", i),
                                 ("Relu", "feed_forward", i), ("MatMul", "feed_forward", i),
                                 ("SkipLayerNormalization", "norm", i if i == "0" else None)]
                expected.append(("MatMul", "head", None))
                got = [node for node in sequence(out) if node[1] != "control"]
                check(got == expected, f"qwen: {got}")
                check_values(out)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
