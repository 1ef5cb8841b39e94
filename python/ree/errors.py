"""Exceptions of ree. The library writes their messages, which name the file, the node and the tensor."""
import os

from ree._ree import ffi, lib


class Error(Exception):
    """Base class of ree's exceptions."""


class InvalidError(Error, ValueError):
    """A model, file, tensor or argument is malformed or inconsistent."""


class UnsupportedError(Error, NotImplementedError):
    """Well formed, but not supported by ree: an operator, an opset, a type, a rank."""


class NotFoundError(Error, LookupError):
    """The named file, device, input or other object does not exist."""


class IOFailure(Error, OSError):
    """Reading or writing failed."""


class OutOfMemoryError(Error, MemoryError):
    """Memory of the host or of the device is exhausted."""


class UnavailableError(Error):
    """No driver, or no device of that kind on this machine."""


class DeviceError(Error):
    """The device failed while running."""


class InternalError(Error):
    """An error in ree itself."""


class Cancelled(Error):
    """A progress function returned False."""


_CLASSES = {
    lib.REE_INVALID: InvalidError,
    lib.REE_UNSUPPORTED: UnsupportedError,
    lib.REE_NOT_FOUND: NotFoundError,
    lib.REE_IO: IOFailure,
    lib.REE_NO_MEMORY: OutOfMemoryError,
    lib.REE_UNAVAILABLE: UnavailableError,
    lib.REE_DEVICE: DeviceError,
    lib.REE_INTERNAL: InternalError,
    lib.REE_CANCELLED: Cancelled,
}


def check(status, err):
    """Raises the exception of a failed call. `err` is a struct ree_error."""
    if status != lib.REE_OK:
        raise _CLASSES.get(status, InternalError)(text_of(err.message))


def c_text(text):
    """A text as a char[] of C, in UTF-8. Raises ValueError if it contains a NUL, where C would end it."""
    data = text if isinstance(text, bytes) else text.encode()
    if b"\0" in data:
        raise ValueError(f"{text!r} contains a NUL character")
    return ffi.new("char[]", data)


def c_path(path):
    """A path as a char[] of C, in the file system's encoding. Raises ValueError if it contains a NUL."""
    return c_text(os.fsencode(path))


def text_of(text):
    """The text of a const char *; "" if it is NULL."""
    return ffi.string(text).decode("utf-8", "replace") if text else ""
