"""Rules for pooling, forward and backward."""
import math

from ree.lowering import TYPES, repeated, rule


@rule("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def _max_pool(low, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    n = 3 if "3d" in low.op_name else 2
    kernel = repeated(kernel, n)
    batched = x.rank == n + 2
    value = x.name if batched else low.b.op("Unsqueeze", x.name, low.ints([0]))
    y, index = low.b.op("MaxPool", value, n=2, kernel_shape=kernel, strides=repeated(stride, n) if stride else kernel,
                        pads=repeated(padding, n) * 2, dilations=repeated(dilation, n), ceil_mode=int(ceil_mode))
    plane = low.product(x.shape[-n:])
    index = low.b.op("Mod", index, plane)  # ONNX counts over the whole tensor
    return [low.reshape(part, fake.shape) for part, fake in zip((y, index), low.fake)]


@rule("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def _max_pool_backward(low, grad, x, *args):
    index = args[-1]
    n = 3 if "3d" in low.op_name else 2
    lead = list(x.shape[:-n])
    planes, inner, outer = math.prod(lead), math.prod(x.shape[-n:]), math.prod(grad.shape[-n:])
    zeros = low.full(0, x.dtype, [planes, inner])
    made = low.b.op("ScatterElements", zeros, low.reshape(index.name, [planes, outer]),
                    low.reshape(grad.name, [planes, outer]), axis=1, reduction="add")
    return low.reshape(made, x.shape)


@rule("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(low, x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
    n = int(low.op_name.split("avg_pool")[1][0])
    if divisor_override is not None:
        low.fail("divisor_override")
    kernel = repeated(kernel, n)
    value = x.name if x.rank == n + 2 else low.b.op("Unsqueeze", x.name, low.ints([0]))
    made = low.b.op("AveragePool", value, kernel_shape=kernel, strides=repeated(stride, n) if stride else kernel,
                    pads=repeated(padding, n) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad))
    return low.reshape(made, low.fake.shape)


@rule("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def _avg_pool_backward(low, grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    # pylint: disable=too-many-arguments,unused-argument # ATen's; the sizes of grad tell ceil_mode
    n = 3 if "3d" in low.op_name else 2
    kernel, padding = repeated(kernel, n), repeated(padding, n)
    stride = repeated(stride, n) if stride else kernel
    if divisor_override is not None:
        low.fail("divisor_override")
    sizes, outer, lead = list(x.shape[-n:]), list(grad.shape[-n:]), list(x.shape[:-n])
    if not all(isinstance(size, int) for size in [*sizes, *outer, *lead]):
        low.fail("sizes that are not fixed")
    divisors = [1]  # for each output: how many elements its window has
    for size, m, k, s, p in zip(sizes, outer, kernel, stride, padding):
        first, last = (-p, size + p) if count_include_pad else (0, size)
        counts = [min(i * s - p + k, last) - max(i * s - p, first) for i in range(m)]
        divisors = [a * b for a in divisors for b in counts]
    if len(set(divisors)) == 1:
        divisor = low.value(divisors[0], x.dtype)
    else:
        divisor = low.b.constant(TYPES[x.dtype], divisors, (1, 1, *outer))
    value = low.b.op("Div", low.reshape(grad.name, [math.prod(lead), 1, *outer]), divisor)
    extra = [size + 2 * p - ((m - 1) * s + k) for size, m, k, s, p in zip(sizes, outer, kernel, stride, padding)]
    ones = low.full(1, x.dtype, [1, 1, *kernel])
    made = low.b.op("ConvTranspose", value, ones, None, strides=stride, pads=padding * 2,
                    output_padding=[max(rest, 0) for rest in extra])
    if min(extra) < 0:  # ceil_mode: the last windows reach over the padding
        made = low.b.op("Slice", made, low.ints([0] * n), low.ints(sizes), low.ints(list(range(2, 2 + n))))
    return low.reshape(made, x.shape)


@rule("_adaptive_avg_pool2d_backward.default")
def _adaptive_pool_backward(low, grad, x):
    """The pool is a product with a matrix of weights from each side; so is its gradient."""
    made = grad.name
    for axis in (-2, -1):
        n, outer = x.shape[axis], grad.shape[axis]
        if not isinstance(n, int) or not isinstance(outer, int):
            low.fail("sizes that are not fixed")
        weights = [[0.0] * n for _ in range(outer)]
        for i in range(outer):
            begin, end = i * n // outer, -(-(i + 1) * n // outer)
            for j in range(begin, end):
                weights[i][j] = 1 / (end - begin)
        rows = [w for row in weights for w in row]
        if axis == -1:
            made = low.b.op("MatMul", made, low.b.constant(TYPES[x.dtype], rows, (outer, n)))
        else:
            columns = [row[j] for j in range(n) for row in weights]
            made = low.b.op("MatMul", low.b.constant(TYPES[x.dtype], columns, (n, outer)), made)
    return made
