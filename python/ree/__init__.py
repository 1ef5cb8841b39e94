"""ree: runs models with the same bits on every device.

    import numpy, ree

    session = ree.Session("digits.onnx", device="cpu")
    outputs = session.run({"image": numpy.load("seven.npy")})
    print(ree.sha256(outputs))
"""
from ree._ree import ffi as _ffi, lib as _lib
from ree.device import Device, DeviceListing, Fact, devices
from ree.errors import (Cancelled, DeviceError, Error, InternalError, InvalidError, IOFailure, NotFoundError,
                        OutOfMemoryError, UnavailableError, UnsupportedError)
from ree.generator import Generation, Generator, Stream, generate
from ree.model import Model, Port
from ree.session import Session
from ree.tensors import sha256
from ree.tokenizer import Tokenizer, chat_families

__version__ = _ffi.string(_lib.ree_version()).decode()
numerics = _ffi.string(_lib.ree_numerics_version()).decode()  # the version of the output bits

__all__ = ["Cancelled", "Device", "DeviceError", "DeviceListing", "Error", "Fact", "Generation", "Generator",
           "IOFailure", "InternalError", "InvalidError", "Model", "NotFoundError", "OutOfMemoryError", "Port",
           "Session", "Stream", "Tokenizer", "UnavailableError", "UnsupportedError", "chat_families", "devices",
           "generate", "numerics", "sha256"]
