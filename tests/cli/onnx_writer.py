"""Writes small ONNX models. Uses only the standard library.

The wire format: a field is a varint tag (number << 3 | kind), then a varint (kind 0) or a length and
bytes (kind 2). Field numbers are those of onnx.proto.
"""

import struct

FLOAT, UINT8, INT64, STRING, BOOL, INT4 = 1, 2, 7, 8, 9, 22
SEQUENCE, OPTIONAL = 4, 9  # fields of TypeProto


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def port(name, dtype, shape, *within):
    """A ValueInfoProto. A string in `shape` is a symbol; None for `shape` leaves it undeclared.
    `within`: the types that contain the tensor, SEQUENCE or OPTIONAL, from the innermost to the
    outermost."""
    tensor = number(1, dtype)
    if shape is not None:
        dims = b"".join(chunk(1, chunk(2, d) if isinstance(d, str) else number(1, d)) for d in shape)
        tensor += chunk(2, dims)
    kind = chunk(1, tensor)
    for field in within:
        kind = chunk(field, chunk(1, kind))
    return chunk(1, name) + chunk(2, kind)


def sequence(tensors):
    """A SequenceProto of TensorProtos."""
    return chunk(1, "s") + number(2, 1) + b"".join(chunk(3, t) for t in tensors)


def optional(tensor=None, sequence=None):
    """An OptionalProto."""
    if tensor is not None:
        return number(2, 1) + chunk(3, tensor)
    return number(2, 3) + chunk(5, sequence) if sequence is not None else number(2, 0)


def strings(name, shape, values):
    dims = b"".join(number(1, d) for d in shape)
    return dims + number(2, STRING) + chunk(8, name) + b"".join(chunk(6, v) for v in values)


def attribute(name, value):
    """An AttributeProto: a number, a string, a list of one of them, or a GraphProto as bytes."""
    if isinstance(value, bytes):
        return chunk(1, name) + chunk(6, value) + number(20, 5)
    many = isinstance(value, list)
    kind = type(value[0] if many else value)
    field, number_of_type = {float: (2, 1), int: (3, 2), str: (4, 3)}[kind]
    if many:
        field, number_of_type = field + 5, number_of_type + 5
    body = b""
    for v in value if many else [value]:
        if kind is float:
            body += varint(field << 3 | 5) + struct.pack("<f", v)
        else:
            body += number(field, v) if kind is int else chunk(field, v)
    return chunk(1, name) + body + number(20, number_of_type)


def node(op_type, inputs, outputs, name="", domain="", attributes=()):
    fields = [chunk(1, i) for i in inputs] + [chunk(2, o) for o in outputs]
    fields += [chunk(5, attribute(k, v)) for k, v in dict(attributes).items()]
    return b"".join(fields) + chunk(3, name) + chunk(4, op_type) + chunk(7, domain)


def tensor(name, dtype, shape, raw):
    dims = b"".join(number(1, d) for d in shape)
    return dims + number(2, dtype) + chunk(8, name) + chunk(9, raw)


def floats(name, shape, values):
    return tensor(name, FLOAT, shape, struct.pack(f"<{len(values)}f", *values))


def graph(nodes, inputs, outputs, initializers=(), value_info=()):
    fields = b"".join(chunk(1, n) for n in nodes) + chunk(2, "test")
    fields += b"".join(chunk(5, t) for t in initializers)
    fields += b"".join(chunk(11, i) for i in inputs) + b"".join(chunk(12, o) for o in outputs)
    return fields + b"".join(chunk(13, v) for v in value_info)


def model(nodes, inputs, outputs, initializers=(), opset=17, metadata=(), value_info=()):
    body = graph(nodes, inputs, outputs, initializers, value_info)
    opsets = chunk(8, chunk(1, "") + number(2, opset))
    properties = b"".join(chunk(14, chunk(1, k) + chunk(2, v)) for k, v in metadata)
    return number(1, 8) + chunk(7, body) + opsets + properties
