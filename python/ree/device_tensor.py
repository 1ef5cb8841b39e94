"""Tensors in the memory of a device."""
from typing import Any, Optional, Tuple, Union

from ree._ree import ffi, lib
from ree.annotations import Value
from ree.device import Device
from ree.errors import check
from ree.tensors import DTYPES, AnyPort, Inputs, output
from ree.users import DeviceUser


class DeviceTensor(DeviceUser):
    """A tensor in the memory of a device, where it stays from run to run.

        weights = ree.DeviceTensor(array, session.device)
        session.run({"x": x, "w": weights})

        session.run({"x": x, "state": state}, into={"state.next": later})  # `later` receives an output
        state, later = later, state

    value     its type, shape and contents, as for an input of Session.run
    device    the ree.Device of the sessions that use it, or the spec of one to open

    shape    tuple of the sizes
    dtype    name of the type, such as "float32"

    A run neither copies it nor changes it, unless it receives an output."""

    def __init__(self, value: Any, device: Union[Device, str]):
        self._use(device)
        self._err = ffi.new("struct ree_error *")
        filled = self._struct(value)
        struct = filled.structs[0]
        self.shape: Tuple[int, ...] = tuple(ffi.unpack(struct.dims, struct.rank)) if struct.rank else ()
        self.dtype: str = DTYPES[struct.dtype]
        self.as_torch = filled.has_torch  # made from a tensor of PyTorch

        def create(handle, out):
            check(lib.ree_device_tensor_create(handle, filled.structs, out, self._err), self._err)
        self._create("device_tensor", lib.ree_device_tensor_destroy, create)

    def _struct(self, value, dtype: Optional[str] = None):
        filled = Inputs(1, "value")
        filled.set(0, ffi.NULL, value, AnyPort(dtype=dtype) if dtype else AnyPort())
        return filled

    def write(self, value: Value) -> None:
        """Replaces the contents. Raises InvalidError if type or shape is another one."""
        filled = self._struct(value, self.dtype)
        with self.device.lock:
            self.device.handle()
            check(lib.ree_device_tensor_write(self.open(), filled.structs, self._err), self._err)

    def read(self) -> Value:
        """Copies the contents to the host: a tensor of PyTorch if it was made from one, otherwise as Session.run
        returns outputs."""
        made = ffi.new("struct ree_tensor *")
        with self.device.lock:
            self.device.handle()
            check(lib.ree_device_tensor_read(self.open(), made, self._err), self._err)
        try:
            return output(made[0], self.as_torch)
        finally:
            lib.ree_tensor_finish(made)

    def __repr__(self):
        return f"<ree.DeviceTensor {self.dtype}{list(self.shape)} on {self.device!r}>"
