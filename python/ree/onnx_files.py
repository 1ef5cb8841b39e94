"""Which other files an ONNX file refers to. Reads protobuf's wire format, without the package onnx."""
import mmap
import pathlib

# For each message, its fields that lead to external data: number -> message (onnx.proto).
_FIELDS = {"model": {7: "graph", 25: "function"}, "graph": {1: "node", 5: "tensor", 15: "sparse"},
           "function": {7: "node"}, "node": {5: "attribute"},
           "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
           "sparse": {1: "tensor", 2: "tensor"}, "tensor": {13: "entry"}}


def external_files(path):
    """The locations of external data in an ONNX file, as it spells them. Locations outside of the file's
    folder are left out, and so is everything after the place where the file is malformed: loading the
    model reports both."""
    with open(path, "rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            return []
        with content:
            found = {}
            try:
                _visit(content, 0, len(content), "model", found, 0)
            except (IndexError, UnicodeDecodeError):
                pass
    paths = map(pathlib.PurePath, found)
    return [str(path) for path in paths if not path.is_absolute() and ".." not in path.parts]


def _visit(content, at, end, kind, found, depth):
    fields, entry = _FIELDS.get(kind, {}), {}
    while at < end:
        tag, at = _varint(content, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == 2:
            size, at = _varint(content, at, end)
            if size > end - at:
                raise IndexError
            if kind == "entry":
                entry[number] = content[at:at + min(size, 4096)]
            elif number in fields and depth < 100:
                _visit(content, at, at + size, fields[number], found, depth + 1)
            at += size
        elif wire == 0:
            _, at = _varint(content, at, end)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise IndexError
    if entry.get(1) == b"location":
        found[entry[2].decode()] = None


def _varint(content, at, end):
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise IndexError
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise IndexError
