"""Arrays of Python as struct ree_tensor, and back.

Inputs are not copied if they lie in the host's memory, dense, row-major and little-endian: NumPy
arrays, PyTorch tensors, and everything that has DLPack (`__dlpack__`) or the buffer protocol. Outputs
own the memory that the library allocated for them; nothing is copied either."""
import ctypes
import functools
import importlib
import math
import sys
from typing import Any, Dict, Tuple

from ree._ree import ffi, lib
from ree.errors import InvalidError, UnsupportedError, c_text

DTYPES = {}  # enum ree_dtype -> name, "float32"
for _dtype in range(1, 27):
    _size = lib.ree_dtype_size(_dtype)
    if _size or _dtype == lib.REE_STRING:
        DTYPES[_dtype] = ffi.string(lib.ree_dtype_name(_dtype)).decode()
NUMBERS = {name: number for number, name in DTYPES.items()}

# Types that NumPy has itself; the others need ml_dtypes, or are bytes.
_NUMPY = {lib.REE_F32: "<f4", lib.REE_U8: "u1", lib.REE_I8: "i1", lib.REE_U16: "<u2", lib.REE_I16: "<i2",
          lib.REE_I32: "<i4", lib.REE_I64: "<i8", lib.REE_BOOL: "?", lib.REE_F16: "<f2", lib.REE_F64: "<f8",
          lib.REE_U32: "<u4", lib.REE_U64: "<u8"}
_FROM_NUMPY = {text: dtype for dtype, text in _NUMPY.items()}
_FROM_NUMPY.update({"|u1": lib.REE_U8, "|i1": lib.REE_I8, "|b1": lib.REE_BOOL})
# ree's name of a type -> the name of the same type in ml_dtypes.
_ML_DTYPES = {"bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
              "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
              "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2", "float4e2m1": "float4_e2m1fn"}
_FROM_ML_DTYPES = {theirs: NUMBERS[ours] for ours, theirs in _ML_DTYPES.items() if ours in NUMBERS}
# Types whose bits stand in for those of a type that NumPy lacks, or (of outputs) this PyTorch or memoryview.
_STAND_INS: Dict[int, Tuple[int, ...]] = {lib.REE_BF16: (lib.REE_U16,)}
for _dtype in DTYPES:
    if _dtype not in _NUMPY and lib.ree_dtype_size(_dtype) == 1:
        _STAND_INS[_dtype] = (lib.REE_U8, lib.REE_I8)
_OUTPUT_STAND_INS = {lib.REE_BF16: (lib.REE_I16,), lib.REE_F16: (lib.REE_U16,), lib.REE_U16: (lib.REE_I16,),
                     lib.REE_U32: (lib.REE_I32,), lib.REE_U64: (lib.REE_I64,)}
# Formats of memoryview, for outputs without NumPy.
_FORMATS = {lib.REE_F32: "f", lib.REE_U8: "B", lib.REE_I8: "b", lib.REE_U16: "H", lib.REE_I16: "h",
            lib.REE_I32: "i", lib.REE_I64: "q", lib.REE_BOOL: "?", lib.REE_F64: "d", lib.REE_U32: "I",
            lib.REE_U64: "Q"}
_FROM_FORMAT = {code: dtype for dtype, code in _FORMATS.items()}
_FROM_FORMAT.update({"e": lib.REE_F16, "l": lib.REE_I64, "L": lib.REE_U64})
# DLPack's types: (code, bits) of DLDataType.
_FROM_DLPACK = {(0, 8): lib.REE_I8, (0, 16): lib.REE_I16, (0, 32): lib.REE_I32, (0, 64): lib.REE_I64,
                (1, 8): lib.REE_U8, (1, 16): lib.REE_U16, (1, 32): lib.REE_U32, (1, 64): lib.REE_U64,
                (2, 16): lib.REE_F16, (2, 32): lib.REE_F32, (2, 64): lib.REE_F64, (4, 16): lib.REE_BF16,
                (6, 8): lib.REE_BOOL}
_HOST_DEVICES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost


def is_torch(value):
    """Whether a value is a tensor of PyTorch; does not import PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


_modules: Dict[str, Any] = {}  # imported on demand: name -> module; None: it is not installed


def _optional(name):
    """A module, imported when it is first used; None if it is not installed."""
    if name not in _modules:
        try:
            _modules[name] = importlib.import_module(name)
        except ImportError:
            _modules[name] = None
    return _modules[name]


def has_torch(value):
    """Whether a value for an input is a tensor of PyTorch, or a list with one."""
    return is_torch(value) or isinstance(value, (list, tuple)) and any(map(is_torch, value))


class Inputs:
    """Structs ree_tensor for one call, with all that they point to.

    what         what the values are, for messages
    exact        a value must have the type of its port
    has_torch    a value is a tensor of PyTorch, or a list with one
    plain        names of the values, while all are arrays of NumPy that were not copied; otherwise None"""

    def __init__(self, n, what="input", *, exact=False):
        self._what, self._exact = what, exact
        self.n = n
        self.has_torch = False
        self.plain = []
        self.structs = ffi.new("struct ree_tensor[]", n) if n else ffi.NULL
        self._kept = []
        self._port, self._item = None, None  # of the value that is being set

    def set(self, i, name, value, port):
        """Fills struct i with a value for `port` (model.Port). name: a char[] of C, or NULL."""
        struct = self.structs[i]
        struct.name = name
        self._kept.append(name)
        self._port, self._item = port, None
        self.has_torch = self.has_torch or has_torch(value)
        self._note_plain(value, port)
        if value is None:
            struct.kind = lib.REE_ABSENT
            struct.dtype = NUMBERS[port.dtype]
        elif port.kind == "sequence":
            struct.kind = lib.REE_SEQUENCE
            struct.dtype = NUMBERS[port.dtype]
            items = list(value)
            struct.n_items = len(items)
            struct.items = self._keep(ffi.new("struct ree_tensor[]", len(items))) if items else ffi.NULL
            for self._item, item in enumerate(items):
                self._tensor(struct.items[self._item], item)
        else:
            self._tensor(struct, value)

    def _note_plain(self, value, port):
        numpy = sys.modules.get("numpy")
        if self.plain is not None:
            if numpy is not None and type(value) is numpy.ndarray and port.kind == "tensor" and value.size and \
                    value.dtype.str in _FROM_NUMPY and value.flags.c_contiguous and value.flags.aligned:
                self.plain.append(port.name)
            else:
                self.plain = None

    def _typed(self, dtype):
        """The type of a value: that of its port, if the value has the type that stands in for it (numpy_dtype)."""
        wanted = NUMBERS.get(self._port.dtype)
        if dtype == wanted or wanted is None:
            return dtype
        if dtype in _STAND_INS.get(wanted, ()) or self._exact and dtype in _OUTPUT_STAND_INS.get(wanted, ()):
            return wanted
        if self._exact:
            raise InvalidError(f"{self._place()} is {DTYPES[dtype]}, expected {self._port.dtype}")
        return dtype

    def _place(self):
        """What the value is, for messages."""
        place = f"{self._what} '{self._port.name}'"
        return place if self._item is None else f"item {self._item} of {place}"

    def _keep(self, thing):
        self._kept.append(thing)
        return thing

    def _tensor(self, struct, value):
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            self._array(struct, value, numpy)
        elif is_torch(value):
            self._torch(struct, value)
        elif isinstance(value, (bool, int, float, str, list, tuple)) or hasattr(value, "__array_interface__") and \
                not hasattr(value, "__dlpack__"):
            numpy = _optional("numpy")
            if numpy is None:
                raise TypeError(f"{self._place()}: a list or a number needs NumPy, which is not installed")
            self._array(struct, self._listed(value, numpy), numpy)
        elif hasattr(value, "__dlpack__"):
            self._dlpack(struct, value)
        else:
            self._buffer(struct, value)

    def _listed(self, value, numpy):
        """An array of a list or a number, in the type of the model's input: floats are rounded, and other values
        must not change."""
        name = self._port.dtype
        try:
            array = numpy.asarray(value)
            if name == "string" or not isinstance(value, (bool, int, float, str, list, tuple)):
                return array
            with numpy.errstate(over="ignore"):
                wanted = array.astype(numpy_dtype(NUMBERS[name]))
            kind, wanted_kind = array.dtype.kind, wanted.dtype.kind
            if kind not in "biuf" or kind == "f" and wanted_kind in "iu" or \
                    kind in "iu" and (wanted_kind in "iub" and not numpy.array_equal(array, wanted) or
                                      wanted_kind == "f" and not _same_integers(array, wanted, numpy)) or \
                    kind == wanted_kind == "f" and (numpy.isinf(wanted) & ~numpy.isinf(array)).any():
                raise ValueError(f"{name} cannot represent its values")
            return wanted
        except (ValueError, TypeError, OverflowError) as e:
            raise InvalidError(f"{self._place()}: cannot be made an array of {name}: {e}") from e

    def _shape(self, struct, shape):
        if len(shape) > lib.REE_MAX_RANK:
            raise UnsupportedError(f"{self._place()}: rank {len(shape)}; at most {lib.REE_MAX_RANK} are supported")
        struct.rank = len(shape)
        for d, size in enumerate(shape):
            struct.dims[d] = size

    def _array(self, struct, array, numpy):
        dtype = _dtype_of_numpy(array.dtype)
        if dtype is None:
            if array.dtype.kind in "USO":
                self._strings(struct, array)
                return
            array = array.astype(array.dtype.newbyteorder("<"))
            dtype = _dtype_of_numpy(array.dtype)
            if dtype is None:
                raise UnsupportedError(f"{self._place()}: ree has no type for NumPy's {array.dtype}")
        self._shape(struct, array.shape)
        if not (array.flags.c_contiguous and array.flags.aligned):
            array = array.copy("C")
        struct.dtype = self._typed(dtype)
        struct.nbytes = array.nbytes
        if array.nbytes:
            if dtype not in _NUMPY:  # types of ml_dtypes do not allow buffers
                array = array.view(numpy.uint8 if array.itemsize == 1 else numpy.uint16)
            struct.data = self._keep(ffi.from_buffer(array))

    def _strings(self, struct, array):
        self._shape(struct, array.shape)
        struct.dtype = lib.REE_STRING
        texts = []
        for item in array.reshape(-1).tolist():
            text = item.encode() if isinstance(item, str) else item
            if not isinstance(text, bytes):
                raise InvalidError(f"{self._place()}: an element is a {type(item).__name__}, not a string")
            if b"\0" in text:
                raise InvalidError(f"{self._place()}: a string contains a NUL character")
            texts.append(self._keep(ffi.new("char[]", text)))
        struct.nbytes = len(texts) * ffi.sizeof("char *")
        if texts:
            struct.data = self._keep(ffi.new("char *[]", texts))

    def _torch(self, struct, tensor):
        torch = sys.modules["torch"]
        name = str(tensor.dtype).removeprefix("torch.")
        dtype = NUMBERS.get(name) or _FROM_ML_DTYPES.get(name)
        if dtype is None:
            raise UnsupportedError(f"{self._place()}: ree has no type for PyTorch's {tensor.dtype}")
        tensor = tensor.detach().to("cpu", memory_format=torch.contiguous_format).contiguous().resolve_neg()
        if tensor.data_ptr() % tensor.element_size():
            tensor = tensor.clone()
        self._shape(struct, tensor.shape)
        struct.dtype = self._typed(dtype)
        struct.nbytes = tensor.numel() * tensor.element_size()
        self._keep(tensor)
        if struct.nbytes:
            struct.data = ffi.cast("void *", tensor.data_ptr())

    def _dlpack(self, struct, value):
        """A tensor of any library on the host. The capsule stays unconsumed: its own destructor
        releases it."""
        if value.__dlpack_device__()[0] not in _HOST_DEVICES:
            raise UnsupportedError(f"{self._place()}: the tensor is not in the host's memory")
        capsule = self._keep(value.__dlpack__())
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        dtype = _FROM_DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        if dtype is None:
            raise UnsupportedError(f"{self._place()}: ree has no type for DLPack's type {tensor.code} of "
                                   f"{tensor.bits} bits")
        shape = [tensor.shape[d] for d in range(tensor.ndim)]
        self._shape(struct, shape)
        struct.dtype = self._typed(dtype)
        struct.nbytes = math.prod(shape) * tensor.bits // 8
        if struct.nbytes and tensor.strides and not _is_dense(shape, tensor.strides):
            raise UnsupportedError(f"{self._place()}: the tensor is not contiguous")
        address = (tensor.data or 0) + tensor.byte_offset
        if address % max(1, tensor.bits // 8):
            raise UnsupportedError(f"{self._place()}: the tensor's elements are not aligned to their size")
        if struct.nbytes:
            struct.data = ffi.cast("void *", address)

    def _buffer(self, struct, value):
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(f"{self._place()}: expected an array (NumPy, PyTorch, DLPack, buffer), "
                            f"not {type(value).__name__}") from None
        dtype = _FROM_FORMAT.get(view.format.lstrip("@<="))
        if dtype is None or lib.ree_dtype_size(dtype) != view.itemsize or not view.c_contiguous:
            raise UnsupportedError(f"{self._place()}: a buffer of format '{view.format}'"
                                   f"{'' if view.c_contiguous else ' that is not contiguous'}")
        self._shape(struct, view.shape)
        struct.dtype = self._typed(dtype)
        struct.nbytes = view.nbytes
        if view.nbytes:
            data = ffi.from_buffer(view)
            if int(ffi.cast("uintptr_t", data)) % view.itemsize:
                data = ffi.from_buffer(bytearray(view))
            struct.data = self._keep(data)


def _same_integers(integers, floats, numpy):
    """Whether floats have the values of integers."""
    if not numpy.isfinite(floats).all() or (numpy.abs(floats) >= 2.0 ** 63).any():
        return False
    return numpy.array_equal(floats.astype(integers.dtype), integers)


def _is_dense(shape, strides):
    expected = 1
    for d in reversed(range(len(shape))):
        if shape[d] != 1 and strides[d] != expected:
            return False
        expected *= shape[d]
    return True


class _DLTensor(ctypes.Structure):
    """DLPack's DLTensor, the first member of its managed tensor."""
    _fields_ = [("data", ctypes.c_uint64), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def array_of_floats(data, shape):
    """A copy of float32 values that the library owns, as an array of NumPy, or as a memoryview if NumPy is
    not installed. data: a const float *."""
    n = math.prod(shape)
    content = bytearray(ffi.buffer(data, n * ffi.sizeof("float")) if n else b"")
    numpy = _optional("numpy")
    if numpy is not None:
        return numpy.frombuffer(content, "<f4").reshape(shape)
    return memoryview(content).cast("f", shape) if n else memoryview(content).cast("f")


class RepeatedInputs:
    """Inputs of a session's last run, if all were arrays of NumPy. If the next run's differ from them only
    in their data, the structs are used again: filling them would be the larger part of the time of a run of
    a small model."""

    def __init__(self):
        self._last = None  # (structs, list of (name, dtype, shape))

    def remember(self, filled):
        """Keeps the structs of an Inputs. Their data need not stay."""
        self._last = None
        if not filled.plain:
            return
        structs = ffi.new("struct ree_tensor[]", filled.n)
        ffi.memmove(structs, filled.structs, ffi.sizeof(structs))
        # Types and shapes from the structs: the program may have changed the arrays since.
        kept = [(name, numpy_dtype(struct.dtype), tuple(ffi.unpack(struct.dims, struct.rank)) if struct.rank else ())
                for name, struct in zip(filled.plain, structs)]
        self._last = structs, _optional("numpy").ndarray, kept

    def matching(self, inputs):
        """Returns the kept structs and the data to set in them; None if more than the data differs."""
        if self._last is None:
            return None
        structs, array, kept = self._last
        if len(kept) != len(inputs):
            return None
        data = []
        for name, dtype, shape in kept:
            value = inputs.get(name)
            if type(value) is not array or value.dtype != dtype or value.shape != shape:
                return None
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            data.append(ffi.from_buffer(value))
        return structs, data


@functools.cache
def numpy_dtype(dtype):
    """NumPy's type for an enum ree_dtype. Types that NumPy lacks come from ml_dtypes if it is
    installed; otherwise their bytes are int8, uint8 or, for bfloat16, uint16."""
    numpy = _optional("numpy")
    if dtype in _NUMPY:
        return numpy.dtype(_NUMPY[dtype])
    name = DTYPES[dtype]
    own = getattr(_optional("ml_dtypes"), _ML_DTYPES[name], None)
    return numpy.dtype(own or ("<u2" if name == "bfloat16" else "i1" if name.startswith("int") else "u1"))


@functools.cache
def _dtype_of_numpy(dtype):
    """The enum ree_dtype of a type of NumPy; None if ree does not have it in this byte order."""
    return _FROM_NUMPY.get(dtype.str) or _FROM_ML_DTYPES.get(dtype.name)


_SMALL = 1024  # bytes: copying so few takes less time than keeping the library's memory alive


def output(struct, as_torch):
    """The value of a struct ree_tensor: takes its memory, or copies it if it is small. A tensor is an array
    of PyTorch or of NumPy, or a memoryview if NumPy is not installed; a sequence is a list; an absent value
    is None."""
    if struct.kind == lib.REE_ABSENT:
        return None
    if struct.kind == lib.REE_SEQUENCE:
        return [output(struct.items[i], as_torch) for i in range(struct.n_items)]
    shape = tuple(ffi.unpack(struct.dims, struct.rank)) if struct.rank else ()
    if struct.dtype == lib.REE_STRING:
        return _output_strings(struct, shape)
    numpy = _optional("numpy")
    if struct.nbytes <= _SMALL and numpy is not None and not as_torch:
        array = numpy.empty(shape, numpy_dtype(struct.dtype))
        if struct.nbytes:
            ffi.memmove(array, struct.data, struct.nbytes)
        return array
    data, struct.data = struct.data, ffi.NULL
    memory = ffi.gc(ffi.cast("char *", data), lib.ree_free, struct.nbytes)
    if as_torch:
        return _output_torch(struct, memory, shape)
    if numpy is not None:
        return numpy.ndarray(shape, numpy_dtype(struct.dtype), ffi.buffer(memory, struct.nbytes))
    code = _FORMATS.get(struct.dtype) or ("H" if lib.ree_dtype_size(struct.dtype) == 2 else "B")
    view = memoryview(ffi.buffer(memory, struct.nbytes) if struct.nbytes else b"").cast("B")
    return view.cast(code, shape) if math.prod(shape) else view.cast(code)


def _output_torch(struct, memory, shape):
    torch = sys.modules["torch"]
    name = DTYPES[struct.dtype]
    dtype = getattr(torch, _ML_DTYPES.get(name, name), None)
    if not isinstance(dtype, torch.dtype):  # this PyTorch lacks it: the bits in a type of the same size
        size = lib.ree_dtype_size(struct.dtype)
        dtype = {1: torch.int8 if name.startswith("int") else torch.uint8, 2: torch.int16, 4: torch.int32,
                 8: torch.int64}[size]
    if not struct.nbytes:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(ffi.buffer(memory, struct.nbytes), dtype=dtype).reshape(shape)


def _output_strings(struct, shape):
    texts = ffi.cast("char **", struct.data)
    values = [ffi.string(texts[i]).decode("utf-8", "replace") if texts[i] else "" for i in range(math.prod(shape))]
    numpy = _optional("numpy")
    if numpy is None:
        return values
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


class AnyPort:
    """A port that takes a value of any type."""

    def __init__(self, kind="tensor", dtype="float32"):
        self.name, self.kind, self.dtype = "value", kind, dtype


def _sequence_port(items):
    """The port of a sequence: its dtype is that of its items."""
    if not items:
        raise ValueError("sha256: an empty sequence does not say the type of its items, which its hash includes")
    probe = Inputs(1)
    probe.set(0, ffi.NULL, items[0], AnyPort())
    return AnyPort("sequence", DTYPES[probe.structs[0].dtype])


def sha256(values: Any) -> str:
    """The hash that `ree-run` prints for outputs (NUMERICS.md, "Hashes"). values: a dict of outputs, as
    Session.run returns it, whose names count; or a tensor or a list of tensors without names. Types that
    NumPy lacks need ml_dtypes, here and in the run; without NumPy the hash of float16 and of shapes with a 0
    is another one. Raises ValueError for an absent value and for an empty sequence: they do not say their
    type, which the hash includes."""
    if isinstance(values, dict):
        named = list(values.items())
    else:
        named = [(None, value) for value in (values if isinstance(values, (list, tuple)) else [values])]
    structs = Inputs(len(named))
    for i, (name, value) in enumerate(named):
        if value is None:
            raise ValueError("sha256: an absent value does not say its type, which its hash includes")
        is_sequence = isinstance(values, dict) and isinstance(value, (list, tuple))
        structs.set(i, ffi.NULL if name is None else c_text(name), value,
                    _sequence_port(value) if is_sequence else AnyPort())
    text = ffi.new("char[65]")
    lib.ree_tensors_sha256(structs.structs, len(named), text)
    return ffi.string(text).decode()
