"""A minimal reader and writer of .npy for the tests, without NumPy."""

import array
import ast
import struct

# float16, which `array` does not support, is stored as two bytes; `struct` packs and unpacks it.
CODES = {"<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B", "|b1": "B"}


def save(path, descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1"))
        if descr == "<f2":
            values = list(values)
            file.write(struct.pack(f"<{len(values)}e", *values))
        elif descr[1] == "U":
            codec = "utf-32-le" if descr[0] == "<" else "utf-32-be"
            for value in values:
                file.write(value.encode(codec).ljust(4 * int(descr[2:]), b"\0"))
        else:
            file.write(array.array(CODES[descr], values).tobytes())


def load(path):
    """Returns (descr, shape, values) of a file of format version 1."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", path
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode("latin-1"))
    assert not header["fortran_order"], path
    if header["descr"] == "<f2":
        halves = data[10 + length:]
        return "<f2", header["shape"], array.array("f", struct.unpack(f"<{len(halves) // 2}e", halves))
    if header["descr"].startswith("<U"):
        text, size = data[10 + length:].decode("utf-32-le"), int(header["descr"][2:])
        return header["descr"], header["shape"], [text[i:i + size].rstrip("\0")
                                                  for i in range(0, len(text), size)]
    values = array.array(CODES[header["descr"]])
    values.frombytes(data[10 + length:])
    return header["descr"], header["shape"], values
