"""Reads the nodes' metadata in the main graph of an ONNX file. Uses only the standard library."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields (number, value) for each field of a message; a value is a number or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            n, at = varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            value, at = data[at:at + n], at + n
        yield tag >> 3, value


def text(data, number, default=""):
    return next((v.decode() for n, v in fields(data) if n == number), default)


def nodes(path):
    """Returns a dictionary for each node: name, op, inputs, metadata, and stages, which has a pair
    (configuration, stage) for each device configuration."""
    with open(path, "rb") as file:
        graph = next(v for n, v in fields(file.read()) if n == 7)
    found = []
    for number, node in fields(graph):
        if number != 1:
            continue
        metadata = {text(v, 1): text(v, 2) for n, v in fields(node) if n == 9}
        devices = [dict(fields(v)) for n, v in fields(node) if n == 10]
        found.append({"name": text(node, 3), "op": text(node, 4), "metadata": metadata,
                      "inputs": [v.decode() for n, v in fields(node) if n == 1],
                      "stages": [(d[1].decode(), d.get(3)) for d in devices]})
    return found


def configurations(path):
    """Returns (name, number of devices) for each device configuration of the model."""
    with open(path, "rb") as file:
        found = [dict(fields(v)) for n, v in fields(file.read()) if n == 26]
    return [(c[1].decode(), c.get(2)) for c in found]
