"""Copies of PyTorch's tensors in the memory of a device, used again while the tensors do not change. Imports PyTorch."""
import weakref

import torch

from ree.device_tensor import DeviceTensor


class Resident:
    """Copies of tensors on a device.

    n_copied, n_reused    how often a tensor was copied to the device, and how often its copy was used again

    A tensor has changed if PyTorch's counter of operations in place says so. Changes behind the counter
    (`parameter.data`, an array of NumPy that shares the memory) are not noticed."""

    def __init__(self, device):
        self._device = device
        self._copies = {}  # id of a tensor -> (weak reference to it, its counter, its DeviceTensor)
        self.n_copied = self.n_reused = 0

    def of(self, tensor):
        """The copy of a tensor, as a DeviceTensor."""
        reference, counter, copy = self._copies.get(id(tensor), (None, None, None))
        now = tensor._version  # pylint: disable=protected-access
        if reference is not None and reference() is tensor and counter == now:
            self.n_reused += 1
            return copy
        self.n_copied += 1
        plain = tensor.detach()
        if reference is not None and reference() is tensor and copy.shape == tuple(tensor.shape):
            copy.write(plain)
        else:
            copy = DeviceTensor(plain, self._device)
        key = id(tensor)

        def forget(dead):
            if self._copies.get(key, (None,))[0] is dead:
                del self._copies[key]
        self._copies[key] = weakref.ref(tensor, forget), now, copy
        return copy


def is_kept(tensor):
    """Whether a copy of this input is kept: it is a parameter, and PyTorch counts its changes."""
    return isinstance(tensor, torch.nn.Parameter) and not tensor.is_inference()
