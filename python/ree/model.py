"""Models: loading, inputs and outputs, hashes."""
import warnings
from typing import Any, NamedTuple, Optional, Tuple, Union

from ree._ree import ffi, lib
from ree.annotations import Path, ProgressFunction, StageFunction
from ree.errors import InvalidError, c_path, c_text, check, text_of
from ree.locks import refuse_threads, starts_threads
from ree.progress import Listener, Progress
from ree.tensors import DTYPES, NUMBERS
from ree.users import Shared

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


def ports(handle):
    """The inputs and the outputs of a struct ree_model."""
    return ([_port(lib.ree_model_input(handle, i)) for i in range(lib.ree_model_n_inputs(handle))],
            [_port(lib.ree_model_output(handle, i)) for i in range(lib.ree_model_n_outputs(handle))])


def _port(port):
    shape = None
    if port.has_shape:
        shape = tuple(port.dims[d] if port.dims[d] >= 0 else
                      ffi.string(port.symbols[d]).decode() if port.symbols[d] else None for d in range(port.rank))
    return Port(ffi.string(port.name).decode(), DTYPES.get(port.dtype, "?"), shape, port.optional, port.nullable,
                _KINDS[port.kind])


def model_options(progress, *, fold=True, quantize_bits=0, quantize_block=0, quantize_table=0, activations=None):
    """A struct ree_model_options. progress: a Progress, which must live as long as the struct."""
    options = ffi.new("struct ree_model_options *",
                      {"size": ffi.sizeof("struct ree_model_options"), "no_fold": not fold,
                       "quantize_bits": quantize_bits, "quantize_block": quantize_block,
                       "quantize_table": _table_bits(quantize_table), "activations": _type_of(activations)})
    progress.fill(options.progress)
    return options


def _table_bits(bits):
    return lib.REE_QUANTIZE_KEEP if bits == "keep" else bits


def _type_of(activations):
    if activations is not None and activations not in NUMBERS:
        raise ValueError(f"activations: a type such as 'float16' is expected, not {activations!r}")
    return NUMBERS[activations] if activations else 0


class Model:
    """A loaded model. source: an ONNX file, a folder with a Hugging Face checkpoint, or the bytes of
    an ONNX file (an object with SerializeToString, as onnx.ModelProto, too).

    fold                              compute constant parts of the graph once, while loading
    quantize_bits, quantize_block, quantize_table, activations
                                      checkpoints only: as for ree.export
    progress                          progress(what, done, total) is called now and then; False cancels
    on_pass                           on_pass(name, text) receives the graph after each pass of the compiler

    Raises NotFoundError or IOFailure if a file is missing or cannot be read, InvalidError if it is
    malformed, UnsupportedError if the model has an operator or a type that ree lacks."""

    def __init__(self, source: Any, *, fold: bool = True, quantize_bits: int = 0, quantize_block: int = 0,
                 quantize_table: Union[int, str] = 0, activations: Optional[str] = None,
                 progress: Optional[ProgressFunction] = None, on_pass: Optional[StageFunction] = None):
        self._progress = reports = Progress(progress)
        options = model_options(reports, fold=fold, quantize_bits=quantize_bits, quantize_block=quantize_block,
                                quantize_table=quantize_table, activations=activations)
        listener = None if on_pass is None else Listener(on_pass, reports)
        if listener:
            options.on_pass, options.user = listener.c_function, listener.handle
        out, err = ffi.new("struct ree_model **"), ffi.new("struct ree_error *")
        # Its users: this object, sessions.
        self.shared = Shared("the model", lambda: lib.ree_model_destroy(out[0]))
        starts_threads()  # to quantise, for example
        if hasattr(source, "SerializeToString"):
            source = source.SerializeToString()
        if isinstance(source, (bytes, bytearray, memoryview)):
            if quantize_bits or quantize_block or quantize_table or activations:
                raise InvalidError("quantisation and types of activations are for checkpoints, not for ONNX files")
            with ffi.from_buffer(source) as content:
                status = lib.ree_model_load_memory(content, len(content), options, out, err)
        else:
            status = lib.ree_model_load(c_path(source), options, out, err)
        reports.raise_pending()
        check(status, err)
        self.handle = out[0]
        inputs, outputs = ports(self.handle)
        self.inputs: Tuple[Port, ...] = tuple(inputs)
        self.outputs: Tuple[Port, ...] = tuple(outputs)

    def __del__(self):
        if hasattr(self, "shared"):
            self.shared.leave()

    @property
    def graph_sha256(self) -> str:
        """Hash of the graph: half of the model's identity (NUMERICS.md, "Hashes")."""
        text, err = ffi.new("char[65]"), ffi.new("struct ree_error *")
        with self.shared.lock:
            check(lib.ree_model_graph_sha256(self.handle, text, err), err)
        return ffi.string(text).decode()

    @property
    def weights_sha256(self) -> str:
        """Hash of the weights, the other half. Reads all weights."""
        refuse_threads("hashing weights")
        text, err = ffi.new("char[65]"), ffi.new("struct ree_error *")
        progress = Progress(None)
        reports = ffi.new("struct ree_progress *")
        progress.fill(reports)
        with self.shared.lock:
            status = lib.ree_model_weights_sha256(self.handle, reports, text, err)
        progress.raise_pending()
        check(status, err)
        return ffi.string(text).decode()

    def metadata(self, key: str) -> Optional[str]:
        """The value of a key of the model's metadata; None if there is no such key."""
        text = lib.ree_model_metadata(self.handle, c_text(key))
        return text_of(text) if text else None

    def __reduce__(self):
        raise TypeError("a ree.Model cannot be pickled. Pass its path instead")


@ffi.def_extern()
def ree_py_on_note(user, text):
    ffi.from_handle(user).append(text_of(text))


def export(folder: Path, path: Optional[Path] = None, *, opset: int = 0, colocate_tensors: bool = False,
           quantize_bits: int = 0, quantize_block: int = 0, quantize_table: Union[int, str] = 0,
           activations: Optional[str] = None, progress: Optional[ProgressFunction] = None) -> None:
    """Writes the language model in a Hugging Face checkpoint's folder as an ONNX file.

    path                the file, which ends in .onnx; None: model.onnx in the folder
    opset               23 (or 0): ONNX's operators for attention and norms; 17: their steps
    colocate_tensors    copy all weights to PATH.data; otherwise the file refers to the safetensors files,
                        and must be in their folder
    quantize_bits       4 or 8 bits per weight of matrices; 0: as they are
    quantize_block      weights that share a scale: a power of two from 16 to 256; 0: 32
    quantize_table      4 or 8 bits per weight of an embedding table that is also the output head; 0: 8;
                        "keep": as it is
    activations         type of the values between the layers: "float32", "float16", "bfloat16", or "int8"
                        with quantize_bits; None: float32

    The bits and hashes of the file are those of the folder, loaded with these options. Files appear whole
    or not at all. What is odd about the folder becomes a warning."""
    refuse_threads("export")
    notes: list[str] = []
    handle, reports = ffi.new_handle(notes), Progress(progress)
    options = ffi.new("struct ree_export_options *",
                      {"size": ffi.sizeof("struct ree_export_options"), "opset": opset,
                       "colocate_tensors": colocate_tensors, "quantize_bits": quantize_bits,
                       "quantize_block": quantize_block, "quantize_table": _table_bits(quantize_table),
                       "activations": _type_of(activations),
                       "on_note": ffi.addressof(lib, "ree_py_on_note"), "user": handle})
    reports.fill(options.progress)
    out = ffi.NULL if path is None else c_path(path)
    err = ffi.new("struct ree_error *")
    status = lib.ree_export(c_path(folder), out, options, err)
    reports.raise_pending()
    check(status, err)
    for note in notes:
        warnings.warn(note, stacklevel=2)
