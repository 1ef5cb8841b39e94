"""Shared by the tests of trainings: small training steps, datasets, and what NUMERICS.md says about trainings,
computed by code of its own. Uses only the standard library.

    tests/train/steps.py FILE.npz [pictures|words]      writes the samples of tests/data/training/pictures.onnx
"""

import hashlib
import json
import pathlib
import struct
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
sys.path.insert(0, str(HERE.parent / "cli"))
import onnx_writer as onnx  # noqa: E402

DATA = HERE.parent / "data" / "training"
CODES = {"<f4": ("f", 1), "<i8": ("q", 7), "<f8": ("d", 11), "<u4": ("I", 12), "|b1": ("?", 9)}


class Tensor:
    """Elements of a type of CODES, row-major."""

    def __init__(self, descr, shape, values):
        self.descr, self.shape, self.values = descr, tuple(shape), list(values)

    def raw(self):
        return struct.pack(f"<{len(self.values)}{CODES[self.descr][0]}", *self.values)

    def npy(self):
        header = f"{{'descr': '{self.descr}', 'fortran_order': False, 'shape': {self.shape!r}, }}"
        header += " " * (-(10 + len(header) + 1) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1") + self.raw()

    def rows(self, indices):
        n = len(self.values) // self.shape[0]
        return Tensor(self.descr, (len(indices), *self.shape[1:]),
                      [v for i in indices for v in self.values[i * n:(i + 1) * n]])

    def digest(self):
        return tensor_digest(CODES[self.descr][1], self.shape, self.raw())


# Files

def npz(path, tensors, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, tensor in tensors.items():
            # As numpy.savez writes it: with the sizes of ZIP64 in the local header.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(tensor.npy())
    return path


def safetensors(path, tensors, metadata=None):
    header, data = {}, b""
    kinds = {"<f4": "F32", "<i8": "I64", "<f8": "F64", "<u4": "U32", "|b1": "BOOL"}
    for name, tensor in tensors.items():
        raw = tensor.raw()
        header[name] = {"dtype": kinds[tensor.descr], "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def read_safetensors(path):
    """Returns {name: (shape, bytes)} and the metadata."""
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    metadata = header.pop("__metadata__", {})
    return {name: (tuple(entry["shape"]), data[8 + n + entry["data_offsets"][0]:8 + n + entry["data_offsets"][1]])
            for name, entry in header.items()}, metadata


# NUMERICS.md, "Order of samples" and "Trainings"

def philox(counter, key):
    x, key = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(q >> 32) ^ x[1] ^ key[0], q & 0xFFFFFFFF, (p >> 32) ^ x[3] ^ key[1], p & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def order(n, seed, epoch):
    made = list(range(n))
    for i in range(n - 1, 0, -1):
        w = philox((i, epoch + 1, 0, 0), (seed & 0xFFFFFFFF, seed >> 32))
        j = (w[0] | w[1] << 32) * (i + 1) >> 64
        made[i], made[j] = made[j], made[i]
    return made


def batch_of(step, n, batch_size, seed, in_order=False):
    """The samples of a step, counted from 0."""
    per_epoch = n // batch_size
    epoch, k = divmod(step, per_epoch)
    samples = list(range(n)) if in_order else order(n, seed, epoch)
    return samples[k * batch_size:(k + 1) * batch_size]


def tensor_digest(dtype, shape, raw):
    return hashlib.sha256(b"ree-tensor/1\0" + struct.pack(f"<II{len(shape)}q", dtype, len(shape), *shape) + raw).digest()


def string(text):
    return struct.pack("<I", len(text.encode())) + text.encode()


def top(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else bytes(32)
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"ree-tree/1\0" + top(leaves[:half]) + top(leaves[half:])).digest()


def states_root(states):
    """`states`: {name: digest}, in the order of the model's inputs."""
    leaves = [hashlib.sha256(b"ree-state/1\0" + string(name) + digest).digest() for name, digest in states.items()]
    return hashlib.sha256(b"ree-root/1\0" + struct.pack("<Q", len(leaves)) + top(leaves)).digest()


def chain_begin(step, root):
    return hashlib.sha256(b"ree-training/1\0" + struct.pack("<Q", step) + root).digest()


def chain_add(chain, loss, root):
    return hashlib.sha256(b"ree-training-step/1\0" + chain + loss + root).digest()


def roles(data, loss, states, random):
    text = struct.pack("<I", len(data)) + b"".join(map(string, data)) + string(loss) + struct.pack("<I", len(states))
    text += b"".join(string(name) + string(after) for name, after in states) + struct.pack("<I", random)
    return hashlib.sha256(b"ree-training-roles/1\0" + text).hexdigest()


# A step of linear regression: y = x w, the mean of squared differences, plain gradient descent with momentum

BATCH, WIDTH = 2, 3
METADATA = {"version": 1, "data": ["x", "y"], "loss": "loss", "states": {"w": "w.next", "m": "m.next"},
            "parameters": ["w"], "random": False, "optimizer": "SGD", "torch": "0"}


def line_step(path, metadata=METADATA, nodes=(), inputs=(), outputs=None, initializers=None, w=(0.5, -0.25, 0.125), opset=17):
    """Writes the step; the other arguments change it for tests of refusals."""
    body = [onnx.node("MatMul", ["x", "w"], ["p"]), onnx.node("Sub", ["p", "y"], ["d"]),
            onnx.node("Mul", ["d", "d"], ["q"]), onnx.node("ReduceMean", ["q"], ["loss"], attributes={"keepdims": 0}),
            onnx.node("MatMul", ["d", "x"], ["g"]), onnx.node("Mul", ["m", "half"], ["kept"]),
            onnx.node("Add", ["kept", "g"], ["m.next"]), onnx.node("Mul", ["m.next", "rate"], ["s"]),
            onnx.node("Sub", ["w", "s"], ["w.next"])]
    states = [onnx.floats("w", [WIDTH], w), onnx.floats("m", [WIDTH], [0] * WIDTH)]
    constants = [onnx.floats("half", [], [0.5]), onnx.floats("rate", [], [0.0625])]
    ports = [onnx.port("x", onnx.FLOAT, [BATCH, WIDTH]), onnx.port("y", onnx.FLOAT, [BATCH]),
             onnx.port("w", onnx.FLOAT, [WIDTH]), onnx.port("m", onnx.FLOAT, [WIDTH])]
    made = outputs or [onnx.port("loss", onnx.FLOAT, []), onnx.port("w.next", onnx.FLOAT, [WIDTH]),
                       onnx.port("m.next", onnx.FLOAT, [WIDTH])]
    entry = [("ree.training", metadata if isinstance(metadata, str) else json.dumps(metadata))] if metadata is not None else []
    path.write_bytes(onnx.model([*body, *nodes], [*ports, *inputs], made,
                                [*(states if initializers is None else initializers), *constants], metadata=entry, opset=opset))
    return path


def line_data(n=7):
    """Samples of a line, the same everywhere."""
    x = [((i * 37 + 11) % 64 - 32) / 16 for i in range(n * WIDTH)]
    y = [x[3 * i] - 2 * x[3 * i + 1] + 0.5 * x[3 * i + 2] for i in range(n)]
    return {"x": Tensor("<f4", (n, WIDTH), x), "y": Tensor("<f4", (n,), y)}


# The two steps that ree.export_training wrote, with the batches of tests/python/training_steps.py as one dataset

def numbers(n, seed):
    made, state = [], seed
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2 ** 32
        made.append(state >> 16)
    return made


def pictures(n_steps):
    kinds = numbers(640, 1)
    image, kind = [], []
    for i in range(n_steps):
        chosen, noise = [k % 10 for k in numbers(8, 2 + i)], numbers(512, 1000 + i)
        kind += chosen
        image += [(kinds[k * 64 + e] + noise[b * 64 + e] / 2) / 65536 for b, k in enumerate(chosen) for e in range(64)]
    return {"image": Tensor("<f4", (8 * n_steps, 1, 8, 8), image), "kind": Tensor("<i8", (8 * n_steps,), kind)}


def words(n_steps):
    ids = []
    for i in range(n_steps):
        for first, step in zip(numbers(8, 2 + i), numbers(8, 1000 + i)):
            ids += [(first + (1 + step % 2) * k) % 32 for k in range(12)]
    return {"ids": Tensor("<i8", (8 * n_steps, 12), ids)}


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["pictures"], ["words"]):
        sys.exit(__doc__)
    npz(sys.argv[1], (words if sys.argv[2:] == ["words"] else pictures)(30))
