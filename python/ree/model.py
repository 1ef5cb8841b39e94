"""Models: loading, inputs and outputs, hashes."""
import os
import threading
from typing import NamedTuple, Optional

from ree._ree import ffi, lib
from ree.errors import c_text, check
from ree.progress import Progress
from ree.tensors import DTYPES

_KINDS = {lib.REE_TENSOR: "tensor", lib.REE_SEQUENCE: "sequence", lib.REE_ABSENT: "absent"}


class Port(NamedTuple):
    """An input or output of a model.

    shape      sizes of the dimensions: an int, the symbol of a size that is not fixed ("batch"), or
               None if it has no symbol. None in place of the tuple: the model does not say the rank
    optional   a run may omit the input, because it has a default value
    nullable   the value may be None
    kind       "tensor" or "sequence"; of a sequence, dtype and shape describe the items"""
    name: str
    dtype: str
    shape: Optional[tuple]
    optional: bool
    nullable: bool
    kind: str


def _port(port):
    shape = None
    if port.has_shape:
        shape = tuple(port.dims[d] if port.dims[d] >= 0 else
                      ffi.string(port.symbols[d]).decode() if port.symbols[d] else None for d in range(port.rank))
    return Port(ffi.string(port.name).decode(), DTYPES.get(port.dtype, "?"), shape, port.optional, port.nullable,
                _KINDS[port.kind])


class Model:
    """A loaded model. source: an ONNX file, a folder with a Hugging Face checkpoint, or the bytes of
    an ONNX file (an object with SerializeToString, as onnx.ModelProto, too).

    quantize_bits    checkpoints only: 4 or 8 bits per weight; 0: as they are
    progress         progress(what, done, total) is called now and then; False cancels

    Raises NotFoundError or IOFailure if a file is missing or cannot be read, InvalidError if it is
    malformed, UnsupportedError if the model has an operator or a type that ree lacks."""

    def __init__(self, source, *, fold=True, quantize_bits=0, quantize_block=0, progress=None):
        self._progress = progress = Progress(progress)
        options = ffi.new("struct ree_model_options *",
                          {"size": ffi.sizeof("struct ree_model_options"), "no_fold": not fold,
                           "quantize_bits": quantize_bits, "quantize_block": quantize_block})
        progress.fill(options.progress)
        self._out = out = ffi.new("struct ree_model **")
        self._lock = threading.Lock()
        self._n_users = 1  # this object, and each session
        err = ffi.new("struct ree_error *")
        if hasattr(source, "SerializeToString"):
            source = source.SerializeToString()
        if isinstance(source, (bytes, bytearray, memoryview)):
            with ffi.from_buffer(source) as content:
                status = lib.ree_model_load_memory(content, len(content), options, out, err)
        else:
            status = lib.ree_model_load(c_text(os.fspath(source)), options, out, err)
        progress.raise_pending()
        check(status, err)
        self.handle = out[0]
        self.inputs = [_port(lib.ree_model_input(self.handle, i)) for i in range(lib.ree_model_n_inputs(self.handle))]
        self.outputs = [_port(lib.ree_model_output(self.handle, i))
                        for i in range(lib.ree_model_n_outputs(self.handle))]

    def add_user(self):
        """Notes a session that uses the model."""
        with self._lock:
            self._n_users += 1

    def remove_user(self):
        """Ends such a use; the last one releases the model. Must not wait: the garbage collector calls it,
        perhaps after this model's __del__."""
        with self._lock:
            self._n_users -= 1
            if self._n_users:
                return
            handle, self._out[0] = self._out[0], ffi.NULL
        lib.ree_model_destroy(handle)

    def __del__(self):
        if hasattr(self, "_n_users"):
            self.remove_user()

    @property
    def graph_sha256(self):
        """Hash of the graph: half of the model's identity (NUMERICS.md, "Hashes")."""
        text, err = ffi.new("char[65]"), ffi.new("struct ree_error *")
        check(lib.ree_model_graph_sha256(self.handle, text, err), err)
        return ffi.string(text).decode()

    @property
    def weights_sha256(self):
        """Hash of the weights, the other half. Reads all weights."""
        text, err = ffi.new("char[65]"), ffi.new("struct ree_error *")
        progress = Progress(None)
        reports = ffi.new("struct ree_progress *")
        progress.fill(reports)
        status = lib.ree_model_weights_sha256(self.handle, reports, text, err)
        progress.raise_pending()
        check(status, err)
        return ffi.string(text).decode()

    def metadata(self, key):
        """The value of a key of the model's metadata; None if there is no such key."""
        text = lib.ree_model_metadata(self.handle, c_text(key))
        return ffi.string(text).decode("utf-8", "replace") if text else None

    def __reduce__(self):
        raise TypeError("a ree.Model cannot be pickled. Pass its path instead")
