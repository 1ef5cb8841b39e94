"""Objects of C that have users: which of them lives how long, and which thread uses it now."""
import weakref
from typing import Any, TypeVar, Union

from ree._ree import ffi
from ree.device import Device
from ree.errors import Error
from ree.locks import UseLock

Self = TypeVar("Self", bound="DeviceUser")


class Shared(UseLock):
    """An object of C that others use. The last user that leaves releases it.

    what         the object, in messages: "the model"
    release()    releases it; called once

    Without locks where the garbage collector may call: it may do so in any line of any thread."""

    def __init__(self, what, release):
        super().__init__(what)
        self._users = [release]  # then an entry for each user but the first; `pop` is atomic

    def add(self):
        """Notes one more user."""
        self._users.append(None)

    def leave(self):
        """Ends a use; the last one releases the object."""
        release = self._users.pop()
        if release is not None:
            release()


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
        out = ffi.new(f"struct ree_{kind} **")

        def release():
            made, out[0] = out[0], ffi.NULL
            destroy(made)
            if parent is not None:
                parent.leave()
        with self.device.lock:
            handle = self.device.handle()
            self.device.add_user()
            self.kind = kind
            self.children: "weakref.WeakSet[DeviceUser]" = weakref.WeakSet()  # closed with this one
            if parent is not None:
                parent.add()
            self.shared = Shared(f"the {kind}", release)
            self._out = out
            create(handle, out)

    def open(self):
        """Returns the C object. Raises Error if it is closed."""
        if self._out is None:
            raise Error(f"the {self.kind.replace('_', ' ')} is closed")
        return self._out[0]

    def _release(self):
        out, self._out = self._out, None
        if out is not None:
            self.device.remove_user(self.shared.leave)

    def close(self) -> None:
        """Releases this object, what was made from it, and its device if it opened one. Raises Error within
        a function that the device calls."""
        self.device.lock  # pylint: disable=pointless-statement # raises within a function that the device calls
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
