"""Just enough of .npy for the tests, without NumPy."""

import array
import ast
import struct

# float16, which array does not know, is two bytes each: pack and unpack of struct have it.
CODES = {"<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B", "|b1": "B"}


def save(path, descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1"))
        if descr == "<f2":
            values = list(values)
            file.write(struct.pack(f"<{len(values)}e", *values))
        else:
            file.write(array.array(CODES[descr], values).tobytes())


def load(path):
    """(descr, shape, values) of a file of version 1."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", path
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode("latin-1"))
    assert not header["fortran_order"], path
    if header["descr"] == "<f2":
        halves = data[10 + length:]
        return "<f2", header["shape"], array.array("f", struct.unpack(f"<{len(halves) // 2}e", halves))
    values = array.array(CODES[header["descr"]])
    values.frombytes(data[10 + length:])
    return header["descr"], header["shape"], values
