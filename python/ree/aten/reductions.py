"""Rules for sums, maxima, softmax and sorting."""
import torch

from ree import onnx_builder as onnx
from ree.lowering import rule


@rule("sum.dim_IntList", "sum.default", "mean.dim", "mean.default", "prod.default", "prod.dim_int", "amax.default",
      "amin.default", "max.default", "min.default")
def _reduce(low, x, dims=None, keepdim=False, dtype=None):  # pylint: disable=unused-argument # dtype: the result's
    name = low.op_name.split(".")[0]
    op = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin",
          "max": "ReduceMax", "min": "ReduceMin"}[name]
    axes = x.axes(dims)
    value = low.cast(x, low.fake.dtype)
    return low.b.op(op, value, low.ints(axes), keepdims=int(keepdim)) if axes else value


@rule("var.correction", "var_mean.correction")
def _var(low, x, dims=None, correction=1, keepdim=False):
    """The mean of squared differences from the mean, in two passes."""
    both = isinstance(low.fake, (tuple, list))
    dtype = low.fake[0].dtype if both else low.fake.dtype
    axes, value = x.axes(dims), low.cast(x, dtype)
    mean = low.b.op("ReduceMean", value, low.ints(axes), keepdims=1)
    difference = low.b.op("Sub", value, mean)
    total = low.b.op("ReduceSum", low.b.op("Mul", difference, difference), low.ints(axes), keepdims=int(keepdim))
    n = low.cast(low.product([x.shape[d] for d in axes]) if axes else low.sym(1), dtype, torch.int64)
    divisor = low.b.op("Sub", n, low.value(1 if correction is None else correction, dtype))
    made = low.b.op("Div", total, low.b.op("Max", divisor, low.value(0, dtype)))
    if not both:
        return made
    return made, mean if keepdim else low.reshape(mean, low.fake[1].shape)


@rule("_foreach_norm.Scalar")
def _foreach_norm(low, tensors, order=2, dtype=None):
    if dtype is not None:
        low.fail("a type for the sum")
    made = []
    for tensor in tensors:
        if order == float("inf"):
            made.append(low.b.op("ReduceMax", low.b.op("Abs", tensor.name), low.ints(tensor.axes(None)), keepdims=0))
        elif order in (1, 2):
            made.append(low.b.op(f"ReduceL{int(order)}", tensor.name, low.ints(tensor.axes(None)), keepdims=0))
        else:
            low.fail(f"the norm of order {order}")
    return made


@rule("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _any(low, x, dims=None, keepdim=False):
    op = "ReduceMax" if "any" in low.op_name else "ReduceMin"
    axes, value = [] if dims == [] else x.axes(dims), low.cast(x, torch.bool)
    made = low.b.op(op, value, low.ints(axes), keepdims=int(keepdim)) if axes else value
    return low.cast(made, low.fake.dtype, torch.bool)


@rule("max.dim", "min.dim")
def _max_dim(low, x, dim, keepdim=False):
    kind = "Max" if "max" in low.op_name else "Min"
    if not x.rank:
        return x.name, low.value(0, torch.int64)
    axis = x.axis(dim)
    return (low.b.op(f"Reduce{kind}", x.name, low.ints([axis]), keepdims=int(keepdim)),
            low.b.op(f"Arg{kind}", x.name, axis=axis, keepdims=int(keepdim)))


@rule("argmax.default", "argmin.default")
def _argmax(low, x, dim=None, keepdim=False):
    op = "ArgMax" if "max" in low.op_name else "ArgMin"
    if not x.rank:
        return low.value(0, torch.int64)
    if dim is None:
        made = low.b.op(op, low.reshape(x.name, [-1]), axis=0, keepdims=0)
        return low.reshape(made, low.fake.shape)
    return low.b.op(op, x.name, axis=x.axis(dim), keepdims=int(keepdim))


@rule("cumsum.default")
def _cumsum(low, x, dim, dtype=None):  # pylint: disable=unused-argument # dtype: the result's
    value = low.cast(x, low.fake.dtype)
    return low.b.op("CumSum", value, low.b.constant(onnx.INT64, x.axis(dim))) if x.rank else value


@rule("topk.default")
def _topk(low, x, k, dim=-1, largest=True, sorted=True):  # pylint: disable=redefined-builtin
    return low.b.op("TopK", x.name, low.ints([k]), n=2, axis=x.axis(dim), largest=int(largest), sorted=int(sorted))


@rule("sort.default", "sort.stable")
def _sort(low, x, dim=-1, descending=False, stable=None):  # pylint: disable=unused-argument # always stable
    if not x.rank:
        return x.name, low.value(0, torch.int64)
    return low.b.op("TopK", x.name, low.ints([x.shape[x.axis(dim)]]), n=2, axis=x.axis(dim), largest=int(descending))


@rule("_softmax.default", "_log_softmax.default")
def _softmax(low, x, dim, half_to_float):
    op = "LogSoftmax" if "log" in low.op_name else "Softmax"
    value = low.cast(x, torch.float32) if half_to_float else x.name
    return low.b.op(op, value, axis=x.axis(dim)) if x.rank else low.value(0 if "Log" in op else 1, low.fake.dtype)
