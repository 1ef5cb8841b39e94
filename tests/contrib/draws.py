"""Random nodes of the domain com.microsoft. A function for each operator chooses its shapes, its
attributes, and which optional inputs are present.

A draw is the description of one node: see Draw. Sizes are small and include 0 and 1. Numbers are
drawn in [-1, 1], for activations in a wider range, and rounded to the type of the draw, so that a
float16 or bfloat16 node and its float32 counterpart have the same inputs."""
import dataclasses

import numpy as np


@dataclasses.dataclass
class Draw:
    op: str
    inputs: list  # arrays, or None if an optional input is omitted
    outputs: list = dataclasses.field(default_factory=lambda: [True])  # True: requested
    attrs: dict = dataclasses.field(default_factory=dict)
    domain: str = "com.microsoft"
    dtype: str = "float32"  # type of the floats: float32, float16 or bfloat16
    # Where the expected outputs come from instead of this node in ONNX Runtime. substitute: another
    # Draw with the same outputs; reference: a function of the inputs, in float64.
    substitute: object = None
    reference: object = None
    # Removes what is undefined in an output: a function of (output number, array). Requested outputs
    # are numbered from 0.
    keep: object = None
    wide: tuple = ()  # numbers of the requested outputs that are float32 whatever dtype is


def round_to(values, dtype):
    """Returns float32 numbers that `dtype` represents exactly."""
    values = np.asarray(values, np.float32)
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        bits = values.view(np.uint32).astype(np.uint64)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return bits.astype(np.uint32).view(np.float32).reshape(values.shape)
    return values


class Rng:
    """Random choices for one node."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.dtype = self.pick(["float32"] * 5 + ["float16"] * 3 + ["bfloat16"] * 2)

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def size(self, most=7, empty=0.03):
        if self.chance(empty):
            return 0
        return 1 if self.chance(0.2) else int(self.rng.integers(2, most + 1))

    def int(self, low, high):
        """Returns an integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def real(self, *shape, low=-1, high=1):
        return round_to(self.rng.uniform(low, high, shape), self.dtype)

    def ints(self, low, high, *shape, dtype=np.int32):
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def maybe(self, make, p=0.5):
        return make() if self.chance(p) else None

    def float(self, low, high):
        return float(np.float32(self.rng.uniform(low, high)))


# Products


def fused_mat_mul(r, op="FusedMatMul"):
    rank_a, rank_b = r.int(1, 4), r.int(1, 4)
    # If the inner size is 0, ONNX Runtime returns uninitialized memory.
    m, n, k = r.size(), r.size(), r.pick([r.size(empty=0), r.size(empty=0), 300])
    attrs = {}
    trans_a, trans_b = r.chance(0.5), r.chance(0.5)
    if rank_b == 1:
        trans_a = False  # in this case ONNX Runtime mixes up the elements of A
    batched = op == "FusedMatMul" and r.chance(0.3)
    if batched:
        rank_a = rank_b = r.int(2, 4)
    batch = [r.size(3) for _ in range(2)]

    def side(rank, rows, columns, trans, batch_first):
        if rank == 1:
            return [k]
        dims = [columns, rows] if trans else [rows, columns]
        lead = batch[2 - (rank - 2):]
        if not batched:
            lead = [1 if r.chance(0.2) else d for d in lead]
        if batch_first:  # the second-to-last dimension moves to the front
            return [dims[0]] + lead + [dims[1]]
        return lead + dims

    batch_a = batched and r.chance(0.7)
    batch_b = batched and r.chance(0.7)
    a = r.real(*side(rank_a, m, k, trans_a, batch_a))
    b = r.real(*side(rank_b, k, n, trans_b, batch_b))
    if trans_a or r.chance(0.5):
        attrs["transA"] = int(trans_a)
    if trans_b or r.chance(0.5):
        attrs["transB"] = int(trans_b)
    if batch_a:
        attrs["transBatchA"] = 1
    if batch_b:
        attrs["transBatchB"] = 1
    if r.chance(0.6):
        attrs["alpha"] = r.float(-2, 2)
    return Draw(op, [a, b], attrs=attrs)


def transpose_mat_mul(r):
    return fused_mat_mul(r, "TransposeMatMul")


ACTIVATIONS = {
    "Relu": [], "Tanh": [], "Sigmoid": [], "Softplus": [], "Softsign": [], "LeakyRelu": ["alpha"],
    "Elu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "ThresholdedRelu": ["alpha"],
    "Celu": ["alpha"], "Selu": ["alpha", "gamma"],
}


def fused_gemm(r):
    # If the inner size is 0, ONNX Runtime ignores C.
    m, n, k = r.size(), r.size(), r.pick([r.size(empty=0), 300])
    trans_a, trans_b = r.chance(0.5), r.chance(0.5)
    name = r.pick(list(ACTIVATIONS))
    attrs = {"transA": int(trans_a), "transB": int(trans_b), "activation": name}
    for parameter in ACTIVATIONS[name]:
        attrs["activation_" + parameter] = r.float(0.1, 2)
    if r.chance(0.5):
        attrs["alpha"] = r.float(-2, 2)
    if r.chance(0.5):
        attrs["beta"] = r.float(-2, 2)
    c = r.maybe(lambda: r.real(*r.pick([[m, n], [n], [1, n], [m, 1], [1]])), 0.7)
    inputs = [r.real(*([k, m] if trans_a else [m, k])), r.real(*([n, k] if trans_b else [k, n]))]
    return Draw("FusedGemm", inputs + ([] if c is None else [c]), attrs=attrs)


def fused_conv(r):
    groups = r.pick([1, 1, 2, 3])
    c, m = r.int(1, 3), r.int(1, 3)
    rank = r.pick([1, 2, 2, 2, 3])
    kernel = [r.int(1, 3) for _ in range(rank)]
    dilations = [r.int(1, 2) for _ in range(rank)]
    pads = [r.int(0, 2) for _ in range(2 * rank)]
    strides = [r.int(1, 2) for _ in range(rank)]
    sizes = [max(1, (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[rank + i]) + r.int(0, 4)
             for i in range(rank)]
    batch = r.size(2)
    x = r.real(batch, groups * c, *sizes)
    w = r.real(groups * m, c, *kernel)
    out = [(sizes[i] + pads[i] + pads[rank + i] - (kernel[i] - 1) * dilations[i] - 1)
           // strides[i] + 1 for i in range(rank)]
    b = r.maybe(lambda: r.real(groups * m))
    z = r.maybe(lambda: r.real(batch, groups * m, *out), 0.4)
    attrs = {"group": groups, "kernel_shape": kernel, "pads": pads, "strides": strides,
             "dilations": dilations}
    if r.chance(0.9):
        name = r.pick(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
        attrs["activation"] = name
        if name == "LeakyRelu":
            attrs["activation_params"] = [r.float(0, 1)]
        elif name in ("Clip", "HardSigmoid"):
            attrs["activation_params"] = [r.float(-1, 0.3), r.float(0.4, 1)]
    inputs = [x, w, b, z]
    while inputs[-1] is None:
        inputs.pop()
    return Draw("FusedConv", inputs, attrs=attrs)


def nhwc_max_pool(r):
    kernel = [r.int(1, 3), r.int(1, 3)]
    attrs = {"kernel_shape": kernel}
    sizes = [kernel[0] * 2 + r.int(0, 4), kernel[1] * 2 + r.int(0, 4)]
    if r.chance(0.5):
        attrs["pads"] = [r.int(0, k - 1) for k in kernel * 2]
    if r.chance(0.7):
        attrs["strides"] = [r.int(1, 3), r.int(1, 3)]
    if r.chance(0.3):
        attrs["dilations"] = [r.int(1, 2), r.int(1, 2)]
    if r.chance(0.3):
        attrs["ceil_mode"] = 1
    low, high, dtype = r.pick([(-128, 127, np.int8), (0, 255, np.uint8)])
    r.dtype = "float32"
    return Draw("NhwcMaxPool", [r.ints(low, high, r.size(3), *sizes, r.size(5), dtype=dtype)],
                attrs=attrs)


# Activations


def shape(r, low=1, high=4, last=9):
    rank = r.int(low, high)
    dims = [r.size(4) for _ in range(rank)]
    if rank:
        dims[-1] = r.size(last)
    return dims


def gelu(r):
    return Draw("Gelu", [r.real(*shape(r, 0), low=-6, high=6)])


def quick_gelu(r):
    attrs = {"alpha": r.float(0.5, 3)} if r.chance(0.5) else {}
    return Draw("QuickGelu", [r.real(*shape(r, 0), low=-6, high=6)], attrs=attrs)


def bias_gelu(r):
    dims = shape(r)
    return Draw("BiasGelu", [r.real(*dims, low=-5, high=5), r.real(dims[-1])])


def fast_gelu(r):
    dims = shape(r)
    bias = [r.real(dims[-1])] if r.chance(0.6) else []
    return Draw("FastGelu", [r.real(*dims, low=-5, high=5)] + bias)


def bias_add(r):
    dims = [r.size(3), r.size(5), r.size(9)]
    return Draw("BiasAdd", [r.real(*dims), r.real(dims[2]), r.real(*dims)],
                reference=lambda x, bias, skip: [x + bias + skip])


def bias_split_gelu(r):
    dims = [r.size(3), r.size(5), 2 * r.size(9)]

    def reference(x, bias):
        left, right = np.split(x + bias, 2, axis=-1)
        return [left * right * 0.5 * (1 + erf(right / np.sqrt(2)))]
    return Draw("BiasSplitGelu", [r.real(*dims, low=-3, high=3), r.real(dims[2])],
                reference=reference)


def erf(x):
    import math
    return np.vectorize(math.erf, otypes=[np.float64])(x)


# Normalisation


def epsilon(r):
    return {"epsilon": r.pick([1e-5, 1e-6, 0.1])} if r.chance(0.7) else {}


def simplified_layer_normalization(r):
    dims = shape(r, 1, 4, r.pick([9, 9, 400]))
    axis = r.int(-len(dims), len(dims) - 1) if r.chance(0.3) else -1
    attrs = epsilon(r)
    if axis != -1 or r.chance(0.5):
        attrs["axis"] = axis
    if r.chance(0.3):
        attrs["stash_type"] = 1
    scale = r.real(*dims[axis:])
    draw = Draw("SimplifiedLayerNormalization", [r.real(*dims), scale], attrs=attrs, domain="")
    if r.chance(0.3):
        draw.outputs = [True, True]
        draw.wide = (1,)
    return draw


def skip_norm(r, op, optional):
    hidden = r.size(r.pick([9, 9, 400]))
    dims = [r.size(3), r.size(5), hidden]
    if r.chance(0.2):
        dims = dims[1:]
    skip = dims
    if len(dims) == 3 and r.chance(0.4):
        skip = r.pick([dims[1:], [1] + dims[1:]])
    inputs = [r.real(*dims), r.real(*skip), r.real(hidden)]
    for _ in range(optional):
        inputs.append(r.maybe(lambda: r.real(hidden), 0.6))
    while inputs[-1] is None:
        inputs.pop()
    outputs = [True, False, False, True] if r.chance(0.5) else [True]
    return Draw(op, inputs, outputs=outputs, attrs=epsilon(r))


def skip_layer_normalization(r):
    return skip_norm(r, "SkipLayerNormalization", 2)


def skip_simplified_layer_normalization(r):
    return skip_norm(r, "SkipSimplifiedLayerNormalization", 1)


def embed_layer_normalization(r):
    batch, length, hidden = r.size(3), r.size(6), r.size(9)
    words, positions, segments = r.int(1, 20), length + r.int(1, 5), r.int(1, 3)
    with_segments = r.chance(0.6)
    mask = r.maybe(lambda: r.ints(0, 1, batch, length))
    position_ids = r.maybe(
        lambda: r.ints(0, positions - 1, r.pick([batch, 1]), length), 0.4)
    inputs = [r.ints(0, words - 1, batch, length),
              r.ints(0, segments - 1, batch, length) if with_segments else None,
              r.real(words, hidden), r.real(positions, hidden),
              r.real(segments, hidden) if with_segments else None,
              r.real(hidden), r.real(hidden), mask, position_ids]
    while inputs[-1] is None:
        inputs.pop()
    return Draw("EmbedLayerNormalization", inputs, attrs=epsilon(r),
                outputs=[True, True, True] if r.chance(0.5) else [True, True])


def group_norm_reference(x, gamma, beta, groups, epsilon, silu, channels_last):
    if channels_last:
        x = np.moveaxis(x, -1, 1)
    n, c = x.shape[:2]
    if x.size == 0:
        return np.moveaxis(x, 1, -1) if channels_last else x
    g = x.reshape(n, groups, -1)
    mean = g.mean(-1, keepdims=True)
    var = ((g - mean) ** 2).mean(-1, keepdims=True)
    y = ((g - mean) / np.sqrt(var + epsilon)).reshape(x.shape)
    y = y * gamma.reshape(1, c, 1, 1) + beta.reshape(1, c, 1, 1)
    if silu:
        y = y / (1 + np.exp(-y))
    return np.moveaxis(y, 1, -1) if channels_last else y


def group_norm_case(r):
    groups = r.int(1, 3)
    channels = groups * r.int(1, 4)
    n, h, w = r.size(3), r.int(1, 5), r.int(1, 5)
    last = r.chance(0.6)
    attrs = {"groups": groups, "activation": r.int(0, 1)} | epsilon(r)
    if not last or r.chance(0.5):
        attrs["channels_last"] = int(last)
    dims = [n, h, w, channels] if last else [n, channels, h, w]
    return dims, channels, attrs, last


def group_norm(r):
    dims, channels, attrs, last = group_norm_case(r)

    def reference(x, gamma, beta):
        return [group_norm_reference(x, gamma, beta, attrs["groups"], attrs.get("epsilon", 1e-5),
                                     attrs["activation"], last)]
    return Draw("GroupNorm", [r.real(*dims), r.real(channels), r.real(channels)], attrs=attrs,
                reference=reference)


def skip_group_norm(r):
    dims, channels, attrs, last = group_norm_case(r)
    one = [dims[0], 1, 1, channels] if last else [dims[0], channels, 1, 1]
    skip = r.pick([dims, one, [dims[0], channels]])
    inputs = [r.real(*dims), r.real(channels), r.real(channels), r.real(*skip)]
    if r.chance(0.5):
        inputs.append(r.real(channels))

    def reference(x, gamma, beta, skip, bias=None):
        line = [1, 1, 1, channels] if last else [1, channels, 1, 1]
        s = x + (skip if skip.ndim == 4 else skip.reshape([dims[0]] + line[1:]))
        if bias is not None:
            s = s + bias.reshape(line)
        return [group_norm_reference(s, gamma, beta, attrs["groups"], attrs.get("epsilon", 1e-5),
                                     attrs["activation"], last), s]
    return Draw("SkipGroupNorm", inputs, attrs=attrs, reference=reference,
                outputs=[True, True] if r.chance(0.5) else [True])


def trilu(r):
    dims = shape(r, 2, 4, 7)
    inputs = [r.real(*dims)]
    if r.chance(0.5):
        inputs.append(np.array(r.int(-4, 4), np.int64))
    attrs = {"upper": r.int(0, 1)} if r.chance(0.7) else {}
    return Draw("Trilu", inputs, attrs=attrs)


def unique(r):
    r.dtype = "float32"  # the only type that ONNX Runtime supports
    values = r.ints(-3, 3, r.size(20), dtype=np.float32)
    return Draw("Unique", [values], outputs=[True, True, True])


def gather_block_quantized(r):
    bits, block = r.pick([2, 4, 4, 8]), r.pick([16, 32, 64])
    per_byte = 8 // bits
    rows, size = r.int(1, 7), r.pick([block, 2 * block, 3 * block, block + 4 * r.int(1, 3), 4 * r.int(1, 3)])
    lead = [r.int(1, 3)] if r.chance(0.3) else []  # axes between the rows and the numbers
    n_blocks = -(-size // block)
    packed = [rows, *lead, size // per_byte]
    indices = r.ints(-rows, rows - 1, *shape(r, 0, 3, 4), dtype=r.pick([np.int32, np.int64]))
    inputs = [r.ints(0, 255, *packed, dtype=np.uint8), indices, r.real(rows, *lead, n_blocks)]
    if r.chance(0.5):
        inputs.append(r.ints(0, 255, rows, *lead, -(-n_blocks // per_byte), dtype=np.uint8))
    attrs = {"bits": bits, "block_size": block, "quantize_axis": r.pick([-1, len(packed) - 1])}
    if r.chance(0.5):
        attrs["gather_axis"] = r.pick([0, -len(packed)])
    return Draw("GatherBlockQuantized", inputs, attrs=attrs)


OPERATORS = [
    fused_mat_mul, transpose_mat_mul, fused_gemm, fused_conv, nhwc_max_pool, gelu, quick_gelu,
    bias_gelu, fast_gelu, bias_add, bias_split_gelu, simplified_layer_normalization,
    skip_layer_normalization, skip_simplified_layer_normalization, embed_layer_normalization,
    group_norm, skip_group_norm, trilu, unique, gather_block_quantized,
]
