#!/usr/bin/env python3
"""Training steps in tests/data/training train without PyTorch and JAX: the losses fall, and all states have the
recorded SHA-256 on the CPU with each number of threads and instruction set and on Vulkan. ree.export_training wrote
pictures.onnx and words.onnx (make_training_steps.py), and jax2onnx jax.onnx (jax_functions.py).

    PYTHONPATH=build/python tests/python/training_steps.py
"""
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

try:
    import numpy as np
except ImportError:
    harness.skip("NumPy is not installed")
import ree  # noqa: E402

N_STEPS = 30
# Of a step's losses and the states after the last step.
RECORDED = {"pictures": "45a5512a98d2f39bd6e9c12cf6768721bc4bb861a87295c2b656b31f49998a3e",
            "words": "8bdc9815ba031a1945aab7fb0dd1304141151b165fd24d04aceb3dd5ba246fc0",
            "jax": "8eab26d470d7859119779b96022d4163cabfe063628961f1069af74b3128aaaf"}


def numbers(n, seed):
    """Whole numbers in 0 … 2^16 - 1, the same everywhere (a linear congruential generator)."""
    made, state = np.empty(n, np.uint32), seed
    for i in range(n):
        state = (state * 1664525 + 1013904223) % 2 ** 32
        made[i] = state >> 16
    return made


def pictures(i):
    """Noisy pictures of ten kinds."""
    kinds = numbers(10 * 64, 1).reshape(10, 1, 8, 8) / np.float32(2 ** 16)
    kind = numbers(8, 2 + i).astype(np.int64) % 10
    noise = numbers(8 * 64, 1000 + i).reshape(8, 1, 8, 8) / np.float32(2 ** 16)
    return {"image": (kinds[kind] + noise * np.float32(0.5)).astype(np.float32), "kind": kind,
            "random.seed": np.array([7, 0], np.uint32), "random.step": np.array(i, np.uint32)}


def words(i):
    """Rows in which each number follows from the one before it."""
    first, step = numbers(8, 2 + i).astype(np.int64), 1 + numbers(8, 1000 + i).astype(np.int64) % 2
    return {"ids": (first[:, None] + step[:, None] * np.arange(12)) % 32}


def words_of_jax(i):
    return {"tokens": words(i)["ids"].astype(np.int32)}


def trained(name, batches, device):
    """The losses and the digest after all steps."""
    session = ree.Session(HERE.parent / "data" / "training" / f"{name}.onnx", device)
    states, losses = {}, []
    for batch in batches:
        made = session.run({**batch, **states})
        losses.append(float(made["loss"]))
        states = {key.removesuffix(".next"): value for key, value in made.items() if key != "loss"}
    h = hashlib.sha256(np.array(losses, np.float32).tobytes())
    for key in sorted(states):
        h.update(key.encode() + np.asarray(states[key]).tobytes())
    return losses, h.hexdigest()


def devices():
    found = [ree.Device("cpu", n_threads=1), ree.Device("cpu", n_threads=2)]
    for isa in ("avx512", "avx2", "portable"):
        try:
            found.append(ree.Device("cpu", cpu_isa=isa))
        except ree.Error:
            pass  # this processor has no such instructions
    return found + [ree.Device(listed.spec) for listed in ree.devices() if listed.spec.startswith("vulkan")][:1]


def main():
    opened = devices()
    for name, make in (("pictures", pictures), ("words", words), ("jax", words_of_jax)):
        batches = [make(i) for i in range(N_STEPS)]
        for device in opened:
            losses, digest = trained(name, batches, device)
            check(losses[-1] < 0.7 * losses[0], f"{name}: losses {losses}")
            check(digest == RECORDED[name], f"{name} on {device.name}: SHA-256 {digest}, recorded {RECORDED[name]}")


if __name__ == "__main__":
    main()
    sys.exit(harness.finish())
