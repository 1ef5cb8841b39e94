#!/usr/bin/env python3
"""Functions of JAX, as ONNX models by jax2onnx: docs/examples/jax_training.py, and functions with their gradients. The
results are close to JAX's, and have the same bits on the CPU with each number of threads and instruction set and on
Vulkan.

    PYTHONPATH=build/python tests/python/jax_functions.py            # needs JAX and jax2onnx
    PYTHONPATH=build/python tests/python/jax_functions.py --write    # writes tests/data/training/jax.onnx

tests/python/training_steps.py runs the file without JAX. Other versions of JAX and jax2onnx may write other operators:
then another hash must be recorded there. The file has its versions as metadata.
"""
import hashlib
import importlib.metadata
import json
import pathlib
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in (HERE.parent / "harness", ROOT / "docs" / "examples"):
    sys.path.insert(0, str(folder))
import harness  # noqa: E402
from harness import check  # noqa: E402

try:
    import jax
    import jax.numpy as jnp
    import jax2onnx
    import numpy as np
    import onnx
except ImportError as e:
    harness.skip(f"JAX and jax2onnx are not installed ({e})")
import jax_training as example  # noqa: E402
import training_steps  # noqa: E402
import ree  # noqa: E402

STEP = HERE.parent / "data" / "training" / "jax.onnx"


def states():
    p = example.initial_parameters()
    zeros = jax.tree.map(jnp.zeros_like, p)
    return {"p": p, "m": zeros, "v": zeros, "steps": jnp.zeros((), jnp.float32)}


def write_step():
    example.export_step(example.step, states(), {"tokens": np.zeros((example.BATCH, example.LENGTH), np.int32)}, STEP)
    model = onnx.load(STEP)
    for item in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer):
        item.ClearField("doc_string")
        item.ClearField("metadata_props")  # places in the source of JAX
    for field in ("value_info", "metadata_props", "doc_string"):
        model.graph.ClearField(field)
    model.functions.clear()
    for name in ("jax", "jax2onnx"):
        model.metadata_props.add(key=name, value=importlib.metadata.version(name))
    onnx.save(model, STEP)


def gradient(function):
    """(x, ...) -> the gradient of the sum of sin(function(x, ...)) by x."""
    return jax.grad(lambda *xs: jnp.sum(jnp.sin(function(*xs))))


def softmax_of_products(q):
    past = jnp.tril(jnp.ones((5, 5), bool))
    weights = jax.nn.softmax(jnp.where(past, jnp.einsum("bqhd,bkhd->bhqk", q, q), -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, q)


def convolution(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def functions():
    """Names, functions and their arguments."""
    random = np.random.RandomState(0)

    def some(*shape):
        return random.randn(*shape).astype(np.float32)

    indices = random.randint(0, 16, (3, 5)).astype(np.int32)
    return [
        ("convolution", convolution, (some(4, 8, 8, 3), some(3, 3, 3, 8))),
        ("norm", example.norm, (some(4, 8, 16),)),
        ("gradient of norm", gradient(example.norm), (some(4, 8, 16),)),
        ("rows of a table", lambda table, i: table[i], (some(16, 8), indices)),
        ("gradient of rows", gradient(lambda table, i: table[i]), (some(16, 8), indices)),
        ("attention", softmax_of_products, (some(2, 5, 2, 8),)),
        ("gradient of attention", gradient(softmax_of_products), (some(2, 5, 2, 8),)),
        ("gradient of gelu", gradient(jax.nn.gelu), (some(4, 33),)),
        ("scan", lambda x: jax.lax.scan(lambda c, v: (jnp.tanh(c + v), c), x[0], x)[1], (some(6, 9),)),
        ("loop", lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c * 1.1 + i, x), (some(6, 9),)),
        ("condition", lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: x + 1, lambda x: x - 1, x), (some(6, 9),)),
        ("sort", lambda x: jnp.sort(x, 1), (some(6, 9),)),
    ]


def check_function(name, function, arguments, devices):
    model = jax2onnx.to_onnx(function, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arguments])
    wanted = np.asarray(function(*arguments), np.float64)
    found = set()
    for device in devices:
        session = ree.Session(model.SerializeToString(), device)
        made, = session.run({port.name: x for port, x in zip(session.inputs, arguments)}).values()
        found.add(ree.sha256({"made": made}))
    error = np.abs(np.asarray(made, np.float64) - wanted).max() / np.abs(wanted).max()
    # Both round to float32 after each operation; the longest sums have 27 terms.
    check(error < 2e-6, f"{name}: the error is {error}")
    check(len(found) == 1, f"{name}: {len(found)} hashes on {len(devices)} devices")
    return error


def check_training(devices, ree_run):
    """The example's training: JAX and ree have nearly the same losses; ree's states are equal on all
    devices, and `ree-run train` computes the same ones."""
    tokens, compiled, of_jax, losses = example.samples(), jax.jit(example.step), states(), []
    for i in range(example.N_STEPS):
        loss, of_jax = compiled(of_jax, tokens[i * example.BATCH:(i + 1) * example.BATCH])
        losses.append(float(loss))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        example.export_step(example.step, states(), {"tokens": tokens[:example.BATCH]}, folder / "step.onnx")
        np.savez(folder / "step.npz", tokens=tokens)
        found = set()
        for device in devices:
            session, of_ree = ree.Session(folder / "step.onnx", device), {}
            for i, loss in enumerate(losses):
                made = session.run({"tokens": tokens[i * example.BATCH:(i + 1) * example.BATCH], **of_ree})
                # Differences of rounding grow from step to step.
                check(abs(float(made["loss"]) - loss) < 1e-4, f"step {i}: loss {made['loss']}, with JAX {loss}")
                of_ree = {name.removesuffix(".next"): value for name, value in made.items() if name != "loss"}
            found.add(hashlib.sha256(b"".join(np.asarray(of_ree[key]).tobytes() for key in sorted(of_ree))).digest())
        check(len(found) == 1, f"{len(found)} hashes on {len(devices)} devices")
        check(losses[-1] < losses[0] / 3, f"losses {losses}")
        if ree_run:
            saved = folder / "states.safetensors"
            harness.run(ree_run, "train", folder / "step.onnx", "--data", folder / "step.npz", "--in-order", "--steps",
                        len(losses), "--checkpoint", saved)
            size, = struct.unpack("<Q", saved.read_bytes()[:8])
            header, data = json.loads(saved.read_bytes()[8:8 + size]), saved.read_bytes()[8 + size:]
            for name, value in of_ree.items():
                begin, end = header[name]["data_offsets"]
                check(data[begin:end] == np.asarray(value).tobytes(), f"ree-run has another state {name}")


def main():
    if sys.argv[1:] == ["--write"]:
        write_step()
        return
    devices = training_steps.devices()
    for name, function, arguments in functions():
        print(f"{name}: error {check_function(name, function, arguments, devices):.1e}")
    check_training(devices, sys.argv[2] if sys.argv[1:2] == ["--ree-run"] else None)
    sys.exit(harness.finish())


main()
