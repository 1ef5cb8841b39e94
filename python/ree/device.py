"""Devices: the CPU, Vulkan devices and CUDA devices."""
import os
import threading
import weakref
from typing import NamedTuple

from ree._ree import ffi, lib
from ree.errors import Error, check

_SETS = {ffi.string(lib.ree_operation_set_name(n)).decode(): n
         for n in (lib.REE_REPRODUCIBLE, lib.REE_DETERMINISTIC, lib.REE_DEFAULT)}
_listing = threading.Lock()
_open_devices = weakref.WeakSet()


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


def devices():
    """Lists the devices that can be opened."""
    with _listing:
        n = 16
        while True:
            found = ffi.new("struct ree_device_listing[]", n)
            total = lib.ree_device_list(found, n, ffi.NULL)
            if total <= n:
                break
            n = total
        return [DeviceListing(ffi.string(found[i].spec).decode(), ffi.string(found[i].name).decode("utf-8", "replace"))
                for i in range(total)]


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

    def __init__(self, spec="cpu", *, operation_set="reproducible", n_threads=0, cpu_isa=None, validation=False,
                 cache_dir=None):
        self._handle = None
        if operation_set not in _SETS:
            raise ValueError(f"operation_set: one of {', '.join(_SETS)} is expected, not {operation_set!r}")
        isa = ffi.NULL if cpu_isa is None else ffi.new("char[]", cpu_isa.encode())
        cache = ffi.NULL if cache_dir is None else ffi.new("char[]", os.fsencode(cache_dir))
        options = ffi.new("struct ree_device_options *",
                          {"size": ffi.sizeof("struct ree_device_options"), "operation_set": _SETS[operation_set],
                           "n_threads": n_threads, "cpu_isa": isa, "validation": validation, "cache_dir": cache})
        out = ffi.new("struct ree_device **")
        err = ffi.new("struct ree_error *")
        check(lib.ree_device_open(spec.encode(), options, out, err), err)
        self._handle = ffi.gc(out[0], lib.ree_device_destroy)
        self._process = os.getpid()
        self.lock = threading.RLock()
        self.n_users = 0
        self.spec = spec
        self.operation_set = operation_set
        _open_devices.add(self)

    @property
    def handle(self):
        """The C object. Raises Error if the device is closed or was opened by a process that forked."""
        if self._handle is None:
            raise Error(f"device '{self.spec}' is closed")
        if self._process != os.getpid():
            raise Error(f"device '{self.spec}' was opened before this process was forked, and its threads "
                        "and its driver do not exist here; open devices in the new process")
        return self._handle

    @property
    def name(self):
        """The device's name, such as "cpu (avx512, 2 threads)"."""
        return ffi.string(lib.ree_device_name(self.handle)).decode("utf-8", "replace")

    def facts(self):
        """What ree knows about the device: limits, verdicts of the probe, results of self-tests. Grows
        while the device is used."""
        with self.lock:
            found = ffi.new("struct ree_device_fact **")
            n = lib.ree_device_facts(self.handle, found)
            return [Fact(*(ffi.string(text).decode("utf-8", "replace") if text else ""
                           for text in (found[0][i].kind, found[0][i].name, found[0][i].value))) for i in range(n)]

    def forget(self):
        """Never releases the C object."""
        if self._handle is not None:
            ffi.gc(self._handle, None)

    def close(self):
        """Releases the device. Raises Error while a session uses it."""
        with self.lock:
            if self.n_users:
                raise Error(f"device '{self.spec}' has open sessions: close them first")
            if self._handle is not None and self._process == os.getpid():
                ffi.release(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<ree.Device '{self.spec}'{' (closed)' if self._handle is None else ': ' + self.name}>"

    def __reduce__(self):
        raise TypeError("a ree.Device cannot be pickled: it belongs to this process. Pass its spec instead")
