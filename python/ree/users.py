"""Objects of C that have users: which of them lives how long, and which thread uses it now."""
import os
import threading
import weakref
from typing import Any, TypeVar, Union

from ree._ree import ffi
from ree.device import Device
from ree.errors import Error

Self = TypeVar("Self", bound="DeviceUser")
_all_shared: "weakref.WeakSet[Shared]" = weakref.WeakSet()


def _free_all():
    """In a process that was forked: the threads that used the objects do not exist here."""
    for shared in list(_all_shared):
        shared.free()


os.register_at_fork(after_in_child=_free_all)


class Shared:
    """An object of C that others use. The last user that leaves releases it.

    what         the object, in messages: "the model"
    release()    releases it; called once

    Without locks where the garbage collector may call: it may do so in any line of any thread."""

    def __init__(self, what, release):
        self._what = what
        self._users = [release]  # then an entry for each user but the first; `pop` is atomic
        self.free()
        _all_shared.add(self)

    def free(self):
        """Makes the object one that no thread uses."""
        self._lock = threading.Lock()
        self._thread = None  # the thread that uses the object now

    def add(self):
        """Notes one more user."""
        self._users.append(None)

    def leave(self):
        """Ends a use; the last one releases the object."""
        release = self._users.pop()
        if release is not None:
            release()

    def __enter__(self):
        """Waits until no other thread uses the object. Raises Error if this thread uses it already: a
        callback cannot use the object that calls it."""
        thread = threading.get_ident()
        if self._thread == thread:
            raise Error(f"{self._what} is in use: the functions that a run calls cannot use it")
        self._lock.acquire()  # pylint: disable=consider-using-with
        self._thread = thread

    def __exit__(self, *exception):
        self._thread = None
        self._lock.release()


class DeviceUser:
    """Base class of sessions, generators and what is made from them: an object of C on a device, which is
    released once, and not while the device runs.

    Subclasses set the device, then call _create."""

    device: Device
    _owns_device = False  # opened the device, and closes it
    _out: Any = None  # points to the C object; None: closed

    def _use(self, device: Union[Device, str]) -> None:
        """Sets the device: an open one, or the spec of one to open."""
        self.device = device if isinstance(device, Device) else Device(device)
        self._owns_device = self.device is not device

    def _create(self, kind, destroy, create, parent=None):
        """Makes the C object: create(device, out) returns None or raises.

        kind              "session": its C type is struct ree_session
        destroy(object)   releases it; must not refer to `self`
        parent            the Shared of an object that must live longer than this one"""
        handle = self.device.begin()
        try:
            self.device.add_user()
            self.kind = kind
            self.children = weakref.WeakSet()  # objects that are closed with this one
            out = ffi.new(f"struct ree_{kind} **")

            def release():
                made, out[0] = out[0], ffi.NULL
                destroy(made)
                if parent is not None:
                    parent.leave()
            if parent is not None:
                parent.add()
            self.shared = Shared(f"the {kind}", release)
            self._out = out
            create(handle, out)
        finally:
            self.device.end()

    def open(self):
        """Returns the C object. Raises Error if it is closed."""
        if self._out is None:
            raise Error(f"the {self.kind} is closed")
        return self._out[0]

    def _release(self):
        out, self._out = self._out, None
        if out is not None:
            self.device.remove_user(self.shared.leave)

    def close(self) -> None:
        """Releases this object, what was made from it, and its device if it opened one. Raises Error within
        a function that the device calls."""
        self.device.refuse_callbacks()
        for child in list(self.children):
            child.close()
        self._release()
        if self._owns_device:
            self.device.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self):
        self._release()

    def __reduce__(self):
        raise TypeError(f"a ree.{type(self).__name__} cannot be pickled: it belongs to this process. "
                        "Pass the model's path instead")
