"""Rules for reading and writing at indices."""
import torch

from ree.lowering import Tensor, rule


@rule("embedding.default")
def _embedding(low, weight, ids, *_):
    return low.b.op("Gather", weight.name, ids.name, axis=0)


@rule("index_select.default")
def _index_select(low, x, dim, index):
    vector = low.reshape(x.name, [1]) if not x.rank else x.name
    made = low.b.op("Gather", vector, low.reshape(index.name, [-1]), axis=x.axis(dim))
    return low.reshape(made, low.fake.shape)


@rule("gather.default")
def _gather(low, x, dim, index, **_):
    ranked = x.name if x.rank else low.reshape(x.name, [1])
    at = low.cast(index, torch.int64)
    made = low.b.op("GatherElements", ranked, at if index.rank else low.reshape(at, [1]), axis=x.axis(dim))
    return made if index.rank else low.reshape(made, ())


@rule("scatter.src", "scatter.value", "scatter_add.default")
def _scatter(low, x, dim, index, source, **_):
    reduction = "add" if "add" in low.op_name else None
    if not x.rank or not index.rank:
        low.fail("a scalar")
    if not isinstance(source, Tensor):
        source = low.full(source, x.dtype, index.shape)
    elif list(source.shape) != list(index.shape):
        ends = list(index.shape)
        source = low.b.op("Slice", source.name, low.ints([0] * len(ends)), low.ints(ends),
                          low.ints(list(range(len(ends)))))
    else:
        source = source.name
    return low.b.op("ScatterElements", x.name, index.name, source, axis=x.axis(dim), reduction=reduction)


@rule("slice_scatter.default")
def _slice_scatter(low, x, source, dim=0, start=None, end=None, step=1):
    axis = x.axis(dim)
    n = x.shape[axis]
    if not all(isinstance(value, int) for value in (n, start or 0, end or 0)):
        low.fail("sizes that are not fixed")
    at = list(range(n))[slice(start, end, step)]
    return _scatter_rows(low, x, source.name, axis, low.ints(at), len(at))


@rule("select_scatter.default")
def _select_scatter(low, x, source, dim, index):
    axis = x.axis(dim)
    rows = low.b.op("Unsqueeze", source.name, low.ints([axis]))
    return _scatter_rows(low, x, rows, axis, low.ints([index]), 1)


def _scatter_rows(low, x, rows, axis, index, n):
    """x with its slices at `index` along an axis replaced."""
    if n == 0:
        return x.name
    shape = [n if d == axis else size for d, size in enumerate(x.shape)]
    column = low.reshape(index, [n if d == axis else 1 for d in range(x.rank)])
    return low.b.op("ScatterElements", x.name, low.b.op("Expand", column, low.ints(shape)), rows, axis=axis)


def _indexed(low, x, indices):
    """For x[indices]: the axes in an order in which the indexed ones come first, and the indices as one tensor
    (..., number of indexed axes)."""
    at = [d for d, index in enumerate(indices) if index is not None]
    if any(indices[d].dtype == torch.bool for d in at):
        low.fail("a mask as an index, whose result has no fixed size")
    order = at + [d for d in range(x.rank) if d not in at]
    shape = torch.broadcast_shapes(*(tuple(indices[d].shape) for d in at))
    parts = []
    for d in at:
        part = low.cast(indices[d], torch.int64)
        if tuple(indices[d].shape) != tuple(shape):
            part = low.b.op("Expand", part, low.ints(list(shape)))
        parts.append(low.b.op("Unsqueeze", part, low.ints([len(shape)])))
    joined = parts[0] if len(parts) == 1 else low.b.op("Concat", *parts, axis=len(shape))
    # The dimensions of the indices take the place of the indexed axes if those are neighbours.
    place = at[0] if at == list(range(at[0], at[-1] + 1)) else 0
    return order, joined, len(shape), place


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(low, x, indices):
    order, index, n, place = _indexed(low, x, indices)
    turned = low.b.op("Transpose", x.name, perm=order) if order != list(range(x.rank)) else x.name
    made = low.b.op("GatherND", turned, index)
    if place == 0:
        return made
    perm = list(range(n, n + place)) + list(range(n)) + list(range(n + place, len(low.fake.shape)))
    return low.b.op("Transpose", made, perm=perm)


@rule("index_put.default", "_unsafe_index_put.default")
def _index_put(low, x, indices, values, accumulate=False):
    order, index, n, place = _indexed(low, x, indices)
    turned = low.b.op("Transpose", x.name, perm=order) if order != list(range(x.rank)) else x.name
    rest = [x.shape[d] for d in order[len([i for i in indices if i is not None]):]]
    shape = torch.broadcast_shapes(*(tuple(i.shape) for i in indices if i is not None))
    # The values as x[indices] has them, then with the indices' dimensions first.
    there = rest[:place] + list(shape) + rest[place:]
    made = low.b.op("Expand", low.cast(values, x.dtype), low.ints(there))
    if place:
        perm = list(range(place, place + n)) + list(range(place)) + list(range(place + n, len(there)))
        made = low.b.op("Transpose", made, perm=perm)
    made = low.b.op("ScatterND", turned, index, made, reduction="add" if accumulate else None)
    back = sorted(range(x.rank), key=order.__getitem__)
    return low.b.op("Transpose", made, perm=back) if order != list(range(x.rank)) else made
