#!/usr/bin/env python3
"""Trains a small language model that is written in JAX. The training step (forward, backward, update) becomes an ONNX
file, which ree trains with the same bits on every device.

    pip install . jax jax2onnx                        # ree, as python/README.md says
    python3 docs/examples/jax_training.py step.onnx
    ree-run train step.onnx --data step.npz --in-order --steps 60

The program writes step.onnx and step.npz (samples), trains with JAX and with ree, and prints the losses of both.
"""
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax2onnx import to_onnx

import ree

N_TOKENS, LENGTH, WIDTH, BATCH, N_STEPS = 32, 12, 16, 8, 60


def initial_parameters():
    keys = iter(jax.random.split(jax.random.key(1), 8))

    def matrix(*shape):
        return jax.random.normal(next(keys), shape) / np.sqrt(WIDTH)

    return {"tokens": matrix(N_TOKENS, WIDTH), "positions": matrix(LENGTH, WIDTH), "queries": matrix(WIDTH, WIDTH),
            "keys": matrix(WIDTH, WIDTH), "values": matrix(WIDTH, WIDTH), "up": matrix(WIDTH, 4 * WIDTH),
            "down": matrix(4 * WIDTH, WIDTH) / 2}


def norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def logits_of(p, tokens):
    """Logits of the next token: float32[batch, LENGTH, N_TOKENS]."""
    x = p["tokens"][tokens] + p["positions"]
    y = norm(x)
    scores = (y @ p["queries"]) @ (y @ p["keys"]).swapaxes(1, 2) / np.float32(np.sqrt(WIDTH))
    past = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    x = x + jax.nn.softmax(jnp.where(past, scores, -1e9)) @ (y @ p["values"])
    x = x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]
    return norm(x) @ p["tokens"].T


def loss_of(p, tokens):
    log_p = jax.nn.log_softmax(logits_of(p, tokens)[:, :-1])
    return -jnp.mean(jnp.sum(log_p * jax.nn.one_hot(tokens[:, 1:], N_TOKENS), -1))


def step(states, tokens):
    """A step of Adam. Returns the loss and the next states."""
    loss, gradients = jax.value_and_grad(loss_of)(states["p"], tokens)
    n = states["steps"] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, states["m"], gradients)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, states["v"], gradients)

    def updated(p, m, v):
        return p - 0.01 * (m / (1 - 0.9 ** n)) / (jnp.sqrt(v / (1 - 0.99 ** n)) + 1e-8)

    return loss, {"p": jax.tree.map(updated, states["p"], m, v), "m": m, "v": v, "steps": n}


def export_step(function, states, batch, path):
    """Writes function(states, *batch.values()), which returns a loss and the next states, as a training step for
    `ree-run train`. states: a tree of arrays. batch: arrays by name. docs/TRAINING.md describes the file."""
    leaves, tree = jax.tree.flatten(states)
    names = ["/".join(str(key.key) for key in path) for path, _ in jax.tree_util.tree_leaves_with_path(states)]

    def flat(*values):
        loss, new = function(jax.tree.unflatten(tree, values[len(batch):]), *values[:len(batch)])
        return (loss, *jax.tree.leaves(new))

    model = to_onnx(flat, [jax.ShapeDtypeStruct(np.shape(value), value.dtype) for value in (*batch.values(), *leaves)],
                    input_names=[*batch, *names], output_names=["loss", *(f"{name}.next" for name in names)])
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(value), name)
                                   for name, value in zip(names, leaves))
    onnx.helper.set_model_props(model, {"ree.training": json.dumps(
        {"version": 1, "data": list(batch), "loss": "loss", "states": {name: f"{name}.next" for name in names},
         "parameters": [name for name in names if name.startswith("p/")], "random": False})})
    onnx.save(model, path)


def samples():
    """Rows of tokens. Each row counts by 1 or by 2, which the model has to infer from its first tokens."""
    random = np.random.RandomState(0)
    first, by = random.randint(0, N_TOKENS, (N_STEPS * BATCH, 1)), random.randint(1, 3, (N_STEPS * BATCH, 1))
    return ((first + by * np.arange(LENGTH)) % N_TOKENS).astype(np.int32)


def main():
    path = pathlib.Path(sys.argv[1])
    p = initial_parameters()
    zeros = jax.tree.map(jnp.zeros_like, p)
    states = {"p": p, "m": zeros, "v": zeros, "steps": jnp.zeros((), jnp.float32)}
    tokens = samples()
    export_step(step, states, {"tokens": tokens[:BATCH]}, path)
    np.savez(path.with_suffix(".npz"), tokens=tokens)

    session, of_ree, compiled = ree.Session(path), {}, jax.jit(step)
    for i in range(N_STEPS):
        batch = tokens[i * BATCH:(i + 1) * BATCH]
        loss, states = compiled(states, batch)
        made = session.run({"tokens": batch, **of_ree})
        of_ree = {name.removesuffix(".next"): value for name, value in made.items() if name != "loss"}
        if i % 10 == 0 or i == N_STEPS - 1:
            print(f"step {i + 1}: loss {float(loss):.6f} with JAX, {float(made['loss']):.6f} with ree")
    print("sha256 of all states", ree.sha256(of_ree))


if __name__ == "__main__":
    main()
