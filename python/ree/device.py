"""Devices: the CPU, Vulkan devices and CUDA devices."""
import os
import weakref
from collections.abc import Callable
from typing import List, NamedTuple, Optional

from ree._ree import ffi, lib
from ree.annotations import Path
from ree.errors import Error, c_path, c_text, check, text_of
from ree.locks import Busy, Guarded, UseLock, refuse_threads

_SETS = {ffi.string(lib.ree_operation_set_name(n)).decode(): n
         for n in (lib.REE_REPRODUCIBLE, lib.REE_DETERMINISTIC, lib.REE_DEFAULT)}
_listing = UseLock("the list of devices")
_open_devices: "weakref.WeakSet[Device]" = weakref.WeakSet()


def _forget_devices():
    """In a process that was forked: leaves the devices of the old one alone. To release them could wait
    for threads that do not exist here."""
    for device in list(_open_devices):
        device.forget()


os.register_at_fork(after_in_child=_forget_devices)


class DeviceListing(NamedTuple):
    """A device that can be opened: ree.Device(spec)."""
    spec: str
    name: str


class Fact(NamedTuple):
    """A fact about a device, for people to read, such as ("primitive", "fma", "float64")."""
    kind: str
    name: str
    value: str


def devices() -> List[DeviceListing]:
    """Lists the devices that can be opened."""
    with _listing.lock:
        n = 16
        while True:
            found = ffi.new("struct ree_device_listing[]", n)
            total = lib.ree_device_list(found, n, ffi.NULL)
            if total <= n:
                break
            n = total
        return [DeviceListing(text_of(found[i].spec), text_of(found[i].name)) for i in range(total)]


class Device:
    """An open device. Sessions of one device run one at a time, whatever thread calls them.

    spec             "cpu", "cuda", "vulkan", "vulkan:1" (an index), "vulkan:llvmpipe" (part of a name)
    operation_set    "reproducible": the bits that RepOps define, equal on every device;
                     "deterministic": equal in every run on this device; "default": no promise
    n_threads        threads of the CPU; 0: one per core
    cpu_isa          "avx512", "avx2", "neon" or "portable"; None: the best available
    cache_dir        folder for compiled pipelines and results of self-tests; None: that of the
                     user, "": none

    Raises UnavailableError if there is no such driver or device, NotFoundError if there is no device
    of that index or name, InvalidError if an argument is malformed."""

    def __init__(self, spec: str = "cpu", *, operation_set: str = "reproducible", n_threads: int = 0,
                 cpu_isa: Optional[str] = None, validation: bool = False, cache_dir: Optional[Path] = None):
        if operation_set not in _SETS:
            raise ValueError(f"operation_set: one of {', '.join(_SETS)} is expected, not {operation_set!r}")
        if spec == "cpu" and n_threads != 1:
            refuse_threads("device 'cpu' with several threads (n_threads=1 works)")
        isa = ffi.NULL if cpu_isa is None else c_text(cpu_isa)
        cache = ffi.NULL if cache_dir is None else c_path(cache_dir)
        options = ffi.new("struct ree_device_options *",
                          {"size": ffi.sizeof("struct ree_device_options"), "operation_set": _SETS[operation_set],
                           "n_threads": n_threads, "cpu_isa": isa, "validation": validation, "cache_dir": cache})
        self.spec = spec
        self.operation_set = operation_set
        self._out = ffi.new("struct ree_device **")  # the C object; NULL: closed
        self._is_foreign = False  # opened by the process from which this one was forked
        self._lock = Guarded()
        self._later: List[Callable[[], None]] = []  # what could not be released while the device was used
        self._n_users = 0
        self._is_unused = False  # nothing refers to it but its users
        self.on_close: List[Callable[[], None]] = []  # called before it is closed: releases what is kept on it
        err = ffi.new("struct ree_error *")
        _open_devices.add(self)
        check(lib.ree_device_open(c_text(spec), options, self._out, err), err)
        self.name = text_of(lib.ree_device_name(self._out[0]))

    @property
    def lock(self):
        """The lock of the thread that uses the device, for one call:

            with device.lock:
                handle = device.handle()
                ...

        Raises Error if this thread holds it: a callback cannot use the device that calls it. A signal's
        exception cannot leave the lock held."""
        if self._lock.is_mine():
            raise Error(f"device '{self.spec}' is running: the functions that it calls cannot use it")
        return self._lock.guard

    def handle(self):
        """The C object, while the caller holds the lock. Raises Error if the device is closed, or was opened
        by a process that forked."""
        if self._is_foreign:
            raise Error(f"device '{self.spec}' was opened before this process was forked, and its threads and its "
                        "driver do not exist here")
        if not self._out[0]:
            raise Error(f"device '{self.spec}' is closed")
        self.release_later()
        return self._out[0]

    def release_later(self):
        """Releases what had to wait until the device is not used, while the caller holds the lock."""
        while self._later:
            self._later.pop()()

    def add_user(self):
        """Notes an object of C that uses the device, while the caller holds the lock."""
        self._n_users += 1

    def remove_user(self, destroy):
        """Calls destroy(), which releases such an object, when the device is not used; at once if
        possible. Python's garbage collector may call this at any time, in any thread, and after this
        device's __del__."""
        if self._is_foreign:
            return

        def remove():
            destroy()
            self._n_users -= 1
            if self._is_unused and not self._n_users:
                self._destroy()
        self._later.append(remove)
        if not self._lock.is_mine():
            try:
                with self._lock.guard_if_free:
                    self.release_later()
            except Busy:
                pass  # the thread that uses the device will call release_later

    def facts(self) -> List[Fact]:
        """What ree knows about the device: limits, verdicts of the probe, results of self-tests. Grows
        while the device is used."""
        with self.lock:
            found = ffi.new("struct ree_device_fact **")
            n = lib.ree_device_facts(self.handle(), found)
            return [Fact(*map(text_of, (found[0][i].kind, found[0][i].name, found[0][i].value))) for i in range(n)]

    def forget(self):
        """Never uses or releases the C object: it belongs to the process from which this one was forked."""
        self._is_foreign = True
        self._lock = Guarded()

    def _destroy(self):
        handle, self._out[0] = self._out[0], ffi.NULL
        lib.ree_device_destroy(handle)

    def close(self) -> None:
        """Releases the device. Raises Error while a session uses it."""
        if self._is_foreign or not self._out[0]:
            return
        for release in list(self.on_close):
            release()
        with self.lock:
            self.handle()
            if self._n_users:
                raise Error(f"device '{self.spec}' has open sessions or tensors: close them first")
            self._destroy()

    def __del__(self):
        # In a garbage cycle this may come before the __del__ of sessions: the last one destroys the device.
        if not getattr(self, "_is_foreign", True):
            self._is_unused = True
            self._n_users += 1
            self.remove_user(lambda: None)

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self):
        return f"<ree.Device '{self.spec}'{': ' + self.name if self._out[0] else ' (closed)'}>"

    def __reduce__(self):
        raise TypeError("a ree.Device cannot be pickled: it belongs to this process. Pass its spec instead")
