"""Progress of long calls, and Ctrl-C during them."""
import threading
from typing import Dict

from ree._ree import ffi, lib
from ree.errors import text_of

_stray: Dict[int, BaseException] = {}  # by thread: what a signal raised outside of Progress.call, as it began or ended


def _lost(kind, value, trace):  # pylint: disable=unused-argument
    _stray[threading.get_ident()] = value


@ffi.def_extern(error=False, onerror=_lost)
def ree_py_progress_call(handle, what, done, total):
    return ffi.from_handle(handle).call(what, done, total)


@ffi.def_extern(onerror=_lost)
def ree_py_on_stage(user, name, text):
    ffi.from_handle(user).call(name, text)


@ffi.def_extern(onerror=_lost)
def ree_py_on_kernel(user, kernel):
    ffi.from_handle(user).call_with_kernel(kernel)


class Progress:
    """Passes reports to a Python function, and keeps what it raises until the C call has returned.

    function(what, done, total) may return False to cancel the call; None and other values continue.
    Without a function, only exceptions of signal handlers count: Ctrl-C ends the call."""

    def __init__(self, function):
        if function is not None and not callable(function):
            raise TypeError(f"progress: a function or None is expected, not {type(function).__name__}")
        self._function = function
        self._raised = None
        self._handle = ffi.new_handle(self)
        self._user = ffi.new("struct ree_py_progress *", {"handle": self._handle})

    def fill(self, progress):
        """Makes a struct ree_progress report here. This object must live as long as its reports."""
        progress.report = ffi.addressof(lib, "ree_py_report")
        progress.user = self._user

    def call(self, what, done, total):
        try:
            if self._raised is not None:
                return False
            if self._function is None:
                return True
            return self._function(ffi.string(what).decode("utf-8", "replace"), done, total) is not False
        except BaseException as e:  # pylint: disable=broad-except # raised again by raise_pending
            self.fail(e)
            return False

    def fail(self, raised):
        """Cancels the call, which will raise this."""
        self._raised = self._raised or raised

    def raise_pending(self):
        """Raises what the function, or a signal handler, raised during the last call."""
        raised, self._raised = self._raised, None
        if _stray:
            raised = raised or _stray.pop(threading.get_ident(), None)
        if raised is not None:
            raise raised


class Listener:
    """Passes stages of a model to function(name, text): graphs after passes, lowered programs; and kernels to
    on_kernel(name, format, code). What a function raises cancels the call, and is raised by the `progress` of the
    call."""

    def __init__(self, function, progress, on_kernel=None):
        self._function = function
        self._on_kernel = on_kernel
        self._progress = progress
        self.handle = ffi.new_handle(self)
        self.c_function = ffi.addressof(lib, "ree_py_on_stage")
        self.c_on_kernel = ffi.addressof(lib, "ree_py_on_kernel")

    def call(self, name, text):
        try:
            self._function(text_of(name), text_of(text))
        except BaseException as e:  # pylint: disable=broad-except # raised again by raise_pending
            self._progress.fail(e)

    def call_with_kernel(self, kernel):
        try:
            code = bytes(ffi.buffer(kernel.code, kernel.nbytes)) if kernel.code else b""
            self._on_kernel(text_of(kernel.name), text_of(kernel.format), code)
        except BaseException as e:  # pylint: disable=broad-except # raised again by raise_pending
            self._progress.fail(e)
