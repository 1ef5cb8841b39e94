"""Rules for products of matrices, attention and convolutions."""
import math

import torch

from ree.lowering import repeated, rule


@rule("mm.default", "bmm.default")
def _mm(low, x, y, *_):
    return low.b.op("MatMul", x.name, y.name)


@rule("addmm.default", "baddbmm.default")
def _addmm(low, bias, x, y, beta=1, alpha=1):
    dtype = low.fake.dtype
    product = low.b.op("MatMul", x.name, y.name)
    if beta == 0:  # not even a NaN of the bias counts
        return product if alpha == 1 else low.b.op("Mul", product, low.value(alpha, dtype))
    if alpha == 0:
        low.fail("alpha 0")
    if alpha != 1:
        product = low.b.op("Mul", product, low.value(alpha, dtype))
    bias = bias.name if beta == 1 else low.b.op("Mul", bias.name, low.value(beta, dtype))
    return low.b.op("Add", product, bias)


def _scores(low, query, key, mask, is_causal, scale):
    """The scores of attention, before softmax, and the factor by which they were multiplied."""
    dtype = query.dtype
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    turned = low.b.op("Transpose", _for_each_head(low, key, query), perm=[0, 1, 3, 2])
    scores = low.b.op("Mul", low.b.op("MatMul", query.name, turned), low.value(scale, dtype))
    if is_causal:
        ones = low.full(True, torch.bool, [query.shape[-2], key.shape[-2]])
        seen = low.b.op("Trilu", ones, low.value(0, torch.int64), upper=0)
        scores = low.b.op("Where", seen, scores, low.value(-math.inf, dtype))
    if mask is not None and mask.dtype == torch.bool:
        scores = low.b.op("Where", mask.name, scores, low.value(-math.inf, dtype))
    elif mask is not None:
        scores = low.b.op("Add", scores, low.cast(mask, dtype))
    return scores, low.value(scale, dtype)


def _for_each_head(low, x, query):
    """Keys or values (batch, heads, ...), repeated for the heads of the query that share them."""
    batch, n, *rest = x.shape
    shared = query.shape[1] // n
    if shared == 1:
        return x.name
    repeated_heads = low.b.op("Expand", low.b.op("Unsqueeze", x.name, low.ints([2])),
                              low.ints([batch, n, shared, *rest]))
    return low.reshape(repeated_heads, [batch, n * shared, *rest])


def _of_shared_heads(low, name, x, query):
    """The gradient of keys or values x from those for each head of the query: a sum over the heads that share
    them."""
    batch, n, *rest = x.shape
    shared = query.shape[1] // n
    if shared == 1:
        return name
    return low.b.op("ReduceSum", low.reshape(name, [batch, n, shared, *rest]), low.ints([2]), keepdims=0)


@rule("_scaled_dot_product_flash_attention_for_cpu.default")
def _attention(low, query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        low.fail("dropout")
    scores, _ = _scores(low, query, key, attn_mask, is_causal, scale)
    sums = low.b.op("ReduceLogSumExp", scores, low.ints([3]), keepdims=1)
    weights = _or_zero(low, sums, low.b.op("Softmax", scores, axis=3), query.dtype)
    return (low.b.op("MatMul", weights, _for_each_head(low, value, query)),
            low.cast(low.reshape(sums, low.fake[1].shape), low.fake[1].dtype, query.dtype))


def _or_zero(low, sums, weights, dtype):
    """Weights of attention, 0 in a row in which every key is masked: its sum of exponentials is 0."""
    is_masked = low.b.op("Equal", sums, low.value(-math.inf, dtype))
    return low.b.op("Where", is_masked, low.value(0, dtype), weights)


@rule("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def _attention_backward(low, grad, query, key, value, out, sums, dropout_p, is_causal, *, attn_mask=None, scale=None):
    # pylint: disable=too-many-arguments # ATen's
    if dropout_p:
        low.fail("dropout")
    b, dtype = low.b, query.dtype
    scores, factor = _scores(low, query, key, attn_mask, is_causal, scale)
    column = b.op("Unsqueeze", low.cast(sums, dtype), low.ints([3]))
    weights = _or_zero(low, column, b.op("Exp", b.op("Sub", scores, column)), dtype)

    def turned(name):
        return b.op("Transpose", name, perm=[0, 1, 3, 2])
    of_weights = b.op("MatMul", grad.name, turned(_for_each_head(low, value, query)))
    common = b.op("ReduceSum", b.op("Mul", grad.name, out.name), low.ints([3]), keepdims=1)
    of_scores = b.op("Mul", b.op("Mul", weights, b.op("Sub", of_weights, common)), factor)
    of_key, of_value = b.op("MatMul", turned(of_scores), query.name), b.op("MatMul", turned(weights), grad.name)
    return (b.op("MatMul", of_scores, _for_each_head(low, key, query)),
            _of_shared_heads(low, of_key, key, query), _of_shared_heads(low, of_value, value, query))


@rule("convolution.default")
def _convolution(low, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    n = weight.rank - 2
    stride, padding, dilation = (repeated(v, n) for v in (stride, padding, dilation))
    how = {"strides": stride, "pads": padding * 2, "dilations": dilation, "group": groups}
    if transposed:
        how["output_padding"] = repeated(output_padding, n)
    return low.b.op("ConvTranspose" if transposed else "Conv", x.name, weight.name, bias.name if bias else None, **how)


@rule("convolution_backward.default")
def _convolution_backward(low, grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
                          groups, wanted):
    # pylint: disable=too-many-arguments,unused-argument # ATen's; the sizes of grad tell output_padding
    n = weight.rank - 2
    stride, padding, dilation = (repeated(v, n) for v in (stride, padding, dilation))
    if not all(isinstance(size, int) for size in [*grad.shape, *x.shape]):
        low.fail("sizes that are not fixed")
    how = {"strides": stride, "dilations": dilation, "group": groups}
    made = [None, None, None]
    if wanted[0] and transposed:
        value = low.b.op("Conv", grad.name, weight.name, None, pads=padding * 2, **how)
        made[0] = low.b.op("Slice", value, low.ints([0] * n), low.ints(list(x.shape[2:])),
                           low.ints(list(range(2, n + 2))))
    elif wanted[0]:
        extra = [x.shape[2 + d] - ((grad.shape[2 + d] - 1) * stride[d] - 2 * padding[d] +
                                   dilation[d] * (weight.shape[2 + d] - 1) + 1) for d in range(n)]
        # Of a stride the input may have rest elements that no output reads: they get zeros.
        made[0] = low.b.op("ConvTranspose", grad.name, weight.name, None, pads=padding * 2, output_padding=extra, **how)
    if wanted[1]:
        made[1] = _weight_gradient(low, *((x, grad) if transposed else (grad, x)), weight, stride, padding, dilation,
                                   groups)
    if wanted[2]:
        made[2] = low.b.op("ReduceSum", grad.name, low.ints([0] + list(range(2, n + 2))), keepdims=0)
    return made


def _weight_gradient(low, small, large, weight, stride, padding, dilation, groups):
    """The gradient of a convolution's weights: `large`, its input, convolved with `small`, the gradient of its
    output. The batch is summed over, so it takes the place of the channels."""
    n, batch = weight.rank - 2, large.shape[0]
    space = list(large.shape[2:])
    per_group = large.shape[1] // groups
    # (batch, groups, per_group, ...) -> (per_group, groups * batch, ...)
    turned = low.reshape(large.name, [batch, groups, per_group, *space])
    turned = low.b.op("Transpose", turned, perm=[2, 1, 0] + list(range(3, 3 + n)))
    turned = low.reshape(turned, [per_group, groups * batch, *space])
    kernel = low.b.op("Transpose", small.name, perm=[1, 0] + list(range(2, 2 + n)))
    made = low.b.op("Conv", turned, kernel, None, strides=dilation, dilations=stride, pads=padding * 2, group=groups)
    sizes = list(weight.shape[2:])
    made = low.b.op("Slice", made, low.ints([0] * n), low.ints(sizes), low.ints(list(range(2, 2 + n))))
    return low.b.op("Transpose", made, perm=[1, 0] + list(range(2, 2 + n)))
