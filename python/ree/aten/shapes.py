"""Rules for views, joins and parts of tensors."""
import math

import torch

from ree import onnx_builder as onnx
from ree.lowering import rule


@rule("view.default", "reshape.default", "_unsafe_view.default", "_reshape_alias.default")
def _view(low, x, *_):
    return low.reshape(x.name, low.fake.shape)


@rule("view.dtype")
def _view_type(low, x, dtype):
    if dtype != x.dtype:
        low.fail("the bits of a tensor as another type")
    return x.name


@rule("permute.default")
def _permute(low, x, dims):
    return low.b.op("Transpose", x.name, perm=[x.axis(d) for d in dims]) if x.rank else x.name


@rule("t.default")
def _t(low, x):
    return low.b.op("Transpose", x.name, perm=[1, 0]) if x.rank == 2 else x.name


@rule("transpose.int")
def _transpose(low, x, a, b):
    perm = list(range(x.rank))
    a, b = x.axis(a), x.axis(b)
    perm[a], perm[b] = perm[b], perm[a]
    return low.b.op("Transpose", x.name, perm=perm)


@rule("expand.default")
def _expand(low, x, *_, **__):
    return low.b.op("Expand", x.name, low.ints(list(low.fake.shape)))


@rule("unsqueeze.default", "squeeze.dims", "squeeze.dim", "squeeze.default")
def _same_elements(low, x, *_):
    return low.reshape(x.name, low.fake.shape)


@rule("cat.default")
def _cat(low, tensors, dim=0):
    dtype = low.fake.dtype
    # PyTorch accepts empty vectors beside tensors of a higher rank.
    parts = [t for t in tensors if not (t.rank == 1 and t.shape[0] == 0 and len(low.fake.shape) > 1)]
    return low.b.op("Concat", *(low.cast(t, dtype) for t in parts), axis=parts[0].axis(dim))


@rule("slice.Tensor")
def _slice(low, x, dim=0, start=None, end=None, step=1):
    axis = x.axis(dim)
    return low.b.op("Slice", x.name, low.ints([0 if start is None else start]),
                    low.ints([2 ** 63 - 1 if end is None else end]), low.ints([axis]), low.ints([step]))


@rule("select.int")
def _select(low, x, dim, index):
    return low.b.op("Gather", x.name, low.value(index, torch.int64), axis=x.axis(dim))


@rule("split_with_sizes.default")
def _split(low, x, sizes, dim=0):
    made = low.b.op("Split", x.name, low.ints(list(sizes)), n=len(sizes), axis=x.axis(dim))
    return made if len(sizes) > 1 else [made]


@rule("flip.default")
def _flip(low, x, dims):
    axes = x.axes(dims) if dims else []
    n = len(axes)
    return low.b.op("Slice", x.name, low.ints([-1] * n), low.ints([-2 ** 63 + 1] * n), low.ints(axes),
                    low.ints([-1] * n)) if n else x.name


@rule("repeat.default")
def _repeat(low, x, repeats):
    shape = [1] * (len(repeats) - x.rank) + list(x.shape)
    return low.b.op("Tile", low.reshape(x.name, shape), low.ints(list(repeats)))


@rule("constant_pad_nd.default")
def _pad(low, x, pad, value=0):
    begins, ends = [0] * x.rank, [0] * x.rank
    for i in range(len(pad) // 2):
        begins[x.rank - 1 - i], ends[x.rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return low.b.op("Pad", x.name, low.ints(begins + ends), low.value(value, x.dtype), mode="constant")


@rule("triu.default", "tril.default")
def _triangle(low, x, diagonal=0):
    upper = "triu" in low.op_name
    return low.b.op("Trilu", x.name, low.value(diagonal, torch.int64), upper=int(upper))


@rule("diagonal.default")
def _diagonal(low, x, offset=0, dim1=0, dim2=1):
    a, b = x.axis(dim1), x.axis(dim2)
    rest = [d for d in range(x.rank) if d not in (a, b)]
    n, rows, columns = low.fake.shape[-1], x.shape[a], x.shape[b]
    if not all(isinstance(size, int) for size in (n, rows, columns)):
        low.fail("sizes that are not fixed")
    flat = low.reshape(low.b.op("Transpose", x.name, perm=rest + [a, b]), [x.shape[d] for d in rest] + [rows * columns])
    first = offset if offset >= 0 else -offset * columns
    return low.b.op("Gather", flat, low.ints([first + i * (columns + 1) for i in range(n)]), axis=len(rest))


def _storage_order(low, x):
    """The elements of a tensor as they lie in memory: a vector, and the order of its dimensions there. Fails if
    they overlap or have gaps."""
    strides = x.fake.stride()
    order = sorted(range(x.rank), key=lambda d: (-strides[d], d))
    expected = 1
    for d in reversed(order):
        if x.shape[d] != 1 and strides[d] != expected:
            low.fail("a tensor whose elements are not dense in memory")
        expected *= x.shape[d]
    turned = low.b.op("Transpose", x.name, perm=order) if x.rank and order != list(range(x.rank)) else x.name
    return low.reshape(turned, [expected]), order


def _strided_indices(low, size, stride, offset):
    if not all(isinstance(value, int) for value in [*size, *stride, offset or 0]):
        low.fail("sizes that are not fixed")
    index = [offset or 0]
    for n, step in zip(size, stride):
        index = [first + i * step for first in index for i in range(n)]
    return index


@rule("as_strided.default")
def _as_strided(low, x, size, stride, storage_offset=None):
    flat, _ = _storage_order(low, x)
    index = _strided_indices(low, size, stride, storage_offset)
    return low.b.op("Gather", flat, low.b.constant(onnx.INT64, index, size), axis=0)


@rule("as_strided_scatter.default")
def _as_strided_scatter(low, x, source, size, stride, storage_offset=None):
    flat, order = _storage_order(low, x)
    index = low.ints(_strided_indices(low, size, stride, storage_offset))
    made = low.b.op("ScatterElements", flat, index, low.reshape(source.name, [math.prod(size)]), axis=0)
    made = low.reshape(made, [x.shape[d] for d in order])
    back = sorted(range(x.rank), key=order.__getitem__)
    return low.b.op("Transpose", made, perm=back) if x.rank and order != list(range(x.rank)) else made
