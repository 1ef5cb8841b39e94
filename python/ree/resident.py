"""Copies of PyTorch's tensors in the memory of a device, used again while the tensors do not change. Imports
PyTorch."""
import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from ree.device_tensor import DeviceTensor


class _Steps:
    """How many steps optimizers have made."""
    n = 0


def _count_step(*_):
    _Steps.n += 1


# Fused optimizers change parameters without counting it.
register_optimizer_step_post_hook(_count_step)


def _state(tensor):
    """What tells that a tensor has changed, or has become another one."""
    return (tensor._version, _Steps.n, tensor.data_ptr(),  # pylint: disable=protected-access
            tensor.dtype, tuple(tensor.shape), tensor.stride())


class Resident:
    """Copies of tensors on a device.

    n_copied, n_reused    how often a tensor was copied to the device, and how often its copy was used again

    A tensor counts as changed if PyTorch's counter of operations in place says so, after each step of an optimizer,
    and if it has other memory. Other changes (of `parameter.data` in place, of an array of NumPy that shares the
    memory) are not noticed."""

    def __init__(self, device):
        self._device = device
        self._copies = {}  # id of a tensor -> (weak reference to it, its _state, its DeviceTensor)
        self.n_copied = self.n_reused = 0
        device.on_close.append(self.release)

    def of(self, tensor):
        """The copy of a tensor, as a DeviceTensor."""
        reference, before, copy = self._copies.get(id(tensor), (None, None, None))
        known = reference is not None and reference() is tensor
        now = _state(tensor)
        if known and before == now:
            self.n_reused += 1
            return copy
        self.n_copied += 1
        plain = tensor.detach()
        if known and before[3:5] == now[3:5]:
            copy.write(plain)
        else:
            copy = DeviceTensor(plain, self._device)
        key = id(tensor)

        def forget(dead):
            if self._copies.get(key, (None,))[0] is dead:
                del self._copies[key]
        self._copies[key] = weakref.ref(tensor, forget), now, copy
        return copy

    def release(self):
        """Releases all copies."""
        copies, self._copies = self._copies, {}
        for _, _, copy in copies.values():
            copy.close()


def is_kept(tensor):
    """Whether a copy of this input is kept: it is a parameter, and PyTorch counts its changes."""
    return isinstance(tensor, torch.nn.Parameter) and not tensor.is_inference()
