"""An independent implementation of traces, from the description in src/trace/trace.h: reads a
trace and recomputes every digest up to the root. Uses only the standard library.
"""

import ast
import hashlib
import json
import math
import struct

F32, U8, I8, I32, I64, BOOL, F16, BF16 = 1, 2, 3, 6, 7, 9, 10, 16
DTYPES = {"<f4": (F32, 4), "|u1": (U8, 1), "|i1": (I8, 1), "<i4": (I32, 4), "<i8": (I64, 8), "|b1": (BOOL, 1),
          "<f2": (F16, 2), "<V2": (BF16, 2), "|V2": (BF16, 2)}


def sha(tag, *parts):
    return hashlib.sha256((tag.encode() + b"\0" if tag else b"") + b"".join(parts)).digest()


def u32(x):
    return struct.pack("<I", x)


def u64(x):
    return struct.pack("<Q", x)


def i64(x):
    return struct.pack("<q", x)


def string(s):
    return u32(len(s.encode())) + s.encode()


def top(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else bytes(32)
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha("ree-tree/1", top(leaves[:half]), top(leaves[half:]))


def root(leaves):
    return sha("ree-root/1", u64(len(leaves)), top(leaves))


def tensor(dtype, dims, data):
    return sha("ree-tensor/1", u32(dtype), u32(len(dims)), *map(i64, dims), data)


def npy(path):
    """Returns (dtype, dims, bytes, size of an element). The bytes can be hashed as they are, because a
    run makes only one NaN pattern."""
    raw = path.read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    n = struct.unpack("<H", raw[8:10])[0]
    header = ast.literal_eval(raw[10:10 + n].decode("latin-1"))
    assert not header["fortran_order"]
    return DTYPES[header["descr"]][0], list(header["shape"]), raw[10 + n:], DTYPES[header["descr"]][1]


class Rows:
    """The chained digest of a cache."""

    def __init__(self, dtype, dims, axis):
        dims = [0 if i == axis else d for i, d in enumerate(dims)]
        self.axis, self.n = axis, 0
        self.digest = sha("ree-rows/1", u32(dtype), u32(len(dims)), u32(axis), *map(i64, dims))

    def add(self, dims, data, size):
        outer = math.prod(dims[:self.axis])
        inner = math.prod(dims[self.axis + 1:]) * size
        n = dims[self.axis]
        for row in range(n):
            parts = (data[(o * n + row) * inner:(o * n + row + 1) * inner] for o in range(outer))
            self.digest = sha("ree-row/1", self.digest, *parts)
        self.n += n


def header_digest(header):
    """The digest of a header. Since version 2 it does not depend on the names of nodes and constants."""
    if header["schema"] != "ree-trace/1":
        header = {**header, **{part: [{**one, "name": ""} for one in header[part]] for part in ("nodes", "constants")}}
    return sha("", json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


def op_digest(header, node):
    named, fields = header["schema"] == "ree-trace/1", [string(node[key]) for key in ("name", "domain", "op_type")]
    return sha("ree-op/1" if named else "ree-op/2", *fields[not named:], i64(node["opset"]), bytes.fromhex(node["attributes_sha256"]))


class Trace:
    """A trace, checked as a whole. Raises AssertionError if the file is not a valid trace."""

    def __init__(self, path):
        raw = path.read_bytes()
        size = struct.unpack("<Q", raw[12:20])[0]
        text = raw[20:20 + size]
        self.header = h = json.loads(text)
        assert h["schema"] in ("ree-trace/1", "ree-trace/2") and raw.startswith(h["schema"].encode() + b"\n")
        canonical = json.dumps(h, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert canonical.encode() == text
        assert raw[-44:-40] == b"end\n"
        self.n_steps, self.root = struct.unpack("<Q", raw[-40:-32])[0], raw[-32:]
        per_step = len(h["inputs"]) + sum(len(n["outputs"]) for n in h["nodes"])
        body = raw[20 + size:-44]
        assert len(body) == self.n_steps * per_step * 32
        digests = [body[i:i + 32] for i in range(0, len(body), 32)]
        self.steps = [digests[s * per_step:(s + 1) * per_step] for s in range(self.n_steps)]
        self.constants = [bytes.fromhex(c["sha256"]) for c in h["constants"]]
        at = len(h["inputs"])
        self.first = []  # index of each node's output 0
        for node in h["nodes"]:
            self.first.append(at)
            at += len(node["outputs"])
        leaves = [self.leaf(s) for s in range(self.n_steps)]
        assert sha(h["schema"], header_digest(h), root(leaves)) == self.root

    def value(self, step, number):
        n_inputs, n_constants = len(self.header["inputs"]), len(self.constants)
        if number < 0:
            return bytes(32)
        if number < n_inputs:
            return self.steps[step][number]
        number -= n_inputs
        return self.constants[number] if number < n_constants else self.steps[step][number - n_constants + n_inputs]

    def outputs(self, step, node):
        first = self.first[node]
        return self.steps[step][first:first + len(self.header["nodes"][node]["outputs"])]

    def leaf(self, step):
        nodes = []
        for i, node in enumerate(self.header["nodes"]):
            op = op_digest(self.header, node)
            inputs = [self.value(step, v) for v in node["inputs"]]
            outputs = self.outputs(step, i)
            for there, digest in zip(node["outputs"], outputs):
                assert there or digest == bytes(32)
            nodes.append(sha("ree-node/1", op, u32(len(inputs)), *inputs, u32(len(outputs)), *outputs))
        inputs = self.steps[step][:len(self.header["inputs"])]
        return sha("ree-step/1", u64(step), root(inputs), root(nodes))
