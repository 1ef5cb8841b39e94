"""Writes ONNX models: protobuf's wire format, without the package onnx (field numbers of onnx.proto)."""
import math
import struct

OPSET = 20
FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, BOOL, FLOAT16, DOUBLE, UINT32, UINT64, BFLOAT16 = \
    1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16
# struct's format of each type; of bfloat16, that of its bits.
_FORMATS = {FLOAT: "f", UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", INT32: "i", INT64: "q", BOOL: "?",
            FLOAT16: "e", DOUBLE: "d", UINT32: "I", UINT64: "Q"}


def _varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _chunk(field, value):
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _attribute(name, value):
    """An AttributeProto: a float, an int, a text, or a list of ints."""
    if isinstance(value, float):
        body = _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    elif isinstance(value, int):
        body = _number(3, value) + _number(20, 2)
    elif isinstance(value, str):
        body = _chunk(4, value) + _number(20, 3)
    else:
        body = b"".join(_number(8, int(item)) for item in value) + _number(20, 7)
    return _chunk(1, name) + body


def _packed(dtype, values):
    if dtype == BFLOAT16:
        bits = (_bits_of(value) for value in values)
        return struct.pack(f"<{len(values)}H", *(_rounded_half(b) for b in bits))
    if dtype in (FLOAT, FLOAT16):
        return b"".join(_packed_float(_FORMATS[dtype], value) for value in values)
    return struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *values)


def _packed_float(kind, value):
    """A float in a narrower type; out of range it becomes infinite."""
    try:
        return struct.pack(f"<{kind}", value)
    except OverflowError:
        return struct.pack(f"<{kind}", math.copysign(math.inf, value))


def _bits_of(value):
    return int.from_bytes(_packed_float("f", value), "little")


def _rounded_half(bits):
    """The bfloat16 nearest to a float32, ties to even."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


class Builder:
    """A graph under construction. Values are names; `op` adds a node."""

    def __init__(self, reserved=()):
        """reserved: names that are left for inputs and outputs."""
        self._nodes, self._initializers, self._inputs, self._outputs = [], [], [], []
        self._constants = {}  # (dtype, shape, bytes) -> name
        self._metadata = {}
        self._reserved = frozenset(reserved)
        self._n = 0

    def name(self, hint="v"):
        """A new name for a value."""
        while True:
            self._n += 1
            name = f"{hint}.{self._n}"
            if name not in self._reserved:
                return name

    def input(self, name, dtype, shape, default=None):
        """Adds an input; a str in `shape` is the symbol of a size that is not fixed. default: the bytes that it
        has if it is not given, or None. Returns its name, which is reserved or has no dot."""
        self._inputs.append(self._port(name, dtype, shape))
        if default is not None:
            self._add_initializer(name, dtype, shape, default)
        return name

    def output(self, value, dtype, shape, name=None):
        """Makes a value an output, under a reserved name or one of its own, which it returns."""
        out = name or self.name("out")
        self._nodes.append(self._node("Identity", [value], [out], {}))
        self._outputs.append(self._port(out, dtype, shape))
        return out

    def constant(self, dtype, values, shape=None):
        """A constant of Python's numbers; shape None: a scalar for a number, a vector for a list."""
        if not isinstance(values, (list, tuple)):
            values, shape = [values], () if shape is None else shape
        shape = (len(values),) if shape is None else tuple(shape)
        if len(values) == 1 and math.prod(shape) > 1:
            values = list(values) * math.prod(shape)
        return self.data(dtype, shape, _packed(dtype, values))

    def data(self, dtype, shape, content):
        """A constant of these bytes."""
        key = dtype, tuple(shape), content
        if key not in self._constants:
            name = self._constants[key] = self.name("c")
            self._add_initializer(name, dtype, shape, content)
        return self._constants[key]

    def _add_initializer(self, name, dtype, shape, content):
        dims = b"".join(_number(1, d) for d in shape)
        self._initializers.append(dims + _number(2, dtype) + _chunk(8, name) + _chunk(9, content))

    def metadata(self, key, value):
        """Adds an entry of metadata: two texts."""
        self._metadata[key] = value

    def op(self, op_type, *inputs, n=1, hint=None, **attributes):
        """Adds a node; an input may be None. Returns the name of its output, or a list of n names."""
        outputs = [self.name(hint or op_type.lower()) for _ in range(n)]
        self._nodes.append(self._node(op_type, ["" if value is None else value for value in inputs], outputs,
                                      attributes))
        return outputs[0] if n == 1 else outputs

    def model(self):
        """The bytes of the model."""
        graph = b"".join(_chunk(1, node) for node in self._nodes) + _chunk(2, "graph")
        graph += b"".join(_chunk(5, tensor) for tensor in self._initializers)
        graph += b"".join(_chunk(11, port) for port in self._inputs)
        graph += b"".join(_chunk(12, port) for port in self._outputs)
        notes = b"".join(_chunk(14, _chunk(1, key) + _chunk(2, text)) for key, text in self._metadata.items())
        opset = _chunk(8, _chunk(1, "") + _number(2, OPSET))
        return _number(1, 9) + _chunk(2, "ree") + _chunk(7, graph) + opset + notes

    @staticmethod
    def _node(op_type, inputs, outputs, attributes):
        return b"".join(_chunk(1, name) for name in inputs) + b"".join(_chunk(2, name) for name in outputs) + \
            _chunk(3, outputs[0]) + _chunk(4, op_type) + \
            b"".join(_chunk(5, _attribute(name, value)) for name, value in attributes.items() if value is not None)

    @staticmethod
    def _port(name, dtype, shape):
        dims = b"".join(_chunk(1, _chunk(2, d) if isinstance(d, str) else _number(1, d)) for d in shape)
        return _chunk(1, name) + _chunk(2, _chunk(1, _number(1, dtype) + _chunk(2, dims)))
