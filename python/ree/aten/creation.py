"""Rules for new tensors."""
import torch

from ree.lowering import Tensor, rule


@rule("full.default", "full_like.default", "new_full.default")
def _full(low, *args, **_):
    value = args[1] if not isinstance(args[0], Tensor) or len(args) == 2 else args[2]
    return low.full(value, low.fake.dtype, low.fake.shape)


@rule("scalar_tensor.default")
def _scalar(low, value, **_):
    return low.value(value, low.fake.dtype)


@rule("empty.memory_format", "empty_permuted.default", "empty_strided.default", "new_empty.default",
      "new_empty_strided.default", "empty_like.default", "zeros.default", "zeros_like.default", "new_zeros.default")
def _zeros(low, *_, **__):
    return low.full(0, low.fake.dtype, low.fake.shape)


@rule("ones.default", "ones_like.default", "new_ones.default")
def _ones(low, *_, **__):
    return low.full(1, low.fake.dtype, low.fake.shape)


@rule("arange.start_step", "arange.default", "arange.start")
def _arange(low, *args, **_):
    start, end, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    dtype = low.fake.dtype
    if not dtype.is_floating_point and any(isinstance(item, float) for item in (start, end, step)):
        low.fail("bounds that are not whole numbers, for a type of integers")
    wide = torch.int64 if not dtype.is_floating_point else torch.float32 if dtype.itemsize == 2 else dtype
    made = low.b.op("Range", *(low.value(item, wide) for item in (start, end, step)))
    return low.cast(made, dtype, wide)
