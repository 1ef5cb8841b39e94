"""ree: runs models with the same bits on every device.

    import numpy, ree

    session = ree.Session("digits.onnx", device="cpu")
    outputs = session.run({"image": numpy.load("seven.npy")})
    print(ree.sha256(outputs))
"""
from ree._ree import ffi as _ffi, lib as _lib
from ree.comparison import Comparison, compare, diff
from ree.conversion import CompileOptions, convert
from ree.decoding import Decoding, Sequence
from ree.device import Device, DeviceListing, Fact, devices
from ree.device_tensor import DeviceTensor
from ree.errors import (Cancelled, DeviceError, Error, InternalError, InvalidError, IOFailure, NotFoundError,
                        OutOfMemoryError, UnavailableError, UnsupportedError)
from ree.explanation import DispatchCost, Explanation, GraphCost, explain
from ree.generator import Generation, Generator, Stream, generate
from ree.kernels import Kernel, last_kernels
from ree.model import Model, Port, export
from ree.receipt import Check, Finding, Receipt, ReceiptDifference, Verification, create_key
from ree.recording import Recording
from ree.session import Session
from ree.stages import Stage, last_traces
from ree.tensors import sha256
from ree.tokenizer import Tokenizer, chat_families
from ree.trace import Trace, TraceDiff
from ree.training import export_training
from ree.trainings import Training, TrainingPoint, TrainingReceipt, TrainingVerification

__version__ = _ffi.string(_lib.ree_version()).decode()
numerics = _ffi.string(_lib.ree_numerics_version()).decode()  # the version of the output bits

__all__ = ["Cancelled", "Check", "Comparison", "CompileOptions", "Decoding", "Device", "DeviceError", "DeviceListing",
           "DeviceTensor",
           "DispatchCost", "Error", "Explanation", "Fact", "Finding", "Generation", "Generator", "GraphCost",
           "IOFailure", "InternalError", "InvalidError", "Kernel",
           "Model", "NotFoundError", "OutOfMemoryError", "Port", "Receipt", "ReceiptDifference", "Recording",
           "Sequence", "Session", "Stage", "Stream", "Tokenizer", "Trace", "TraceDiff", "Training",
           "TrainingPoint", "TrainingReceipt", "TrainingVerification", "UnavailableError",
           "UnsupportedError", "Verification", "chat_families", "compare", "convert", "create_key", "devices", "diff",
           "explain", "export", "export_training", "generate", "last_kernels", "last_traces", "numerics", "sha256"]
