"""Rules for dropout and other random operators."""
import torch

from ree import onnx_builder as onnx
from ree.lowering import rule


def _philox(b, index, stream, seed, step):
    """Word 0 of Philox4x32-10 for the counter (index, 0, stream, step), as uint32. The key is the seed."""
    def u32(value):
        return b.constant(onnx.UINT32, value)

    def product(word, factor):
        wide = b.op("Mul", b.op("Cast", word, to=onnx.UINT64), b.constant(onnx.UINT64, factor))
        high = b.op("BitShift", wide, b.constant(onnx.UINT64, 32), direction="RIGHT")
        return b.op("Cast", high, to=onnx.UINT32), b.op("Mul", word, u32(factor))
    keys = [b.op("Gather", seed, b.constant(onnx.INT64, i), axis=0) for i in range(2)]
    words = [b.op("Cast", index, to=onnx.UINT32), u32(0), u32(stream), step]
    for _ in range(10):
        high0, low0 = product(words[0], 0xD2511F53)
        high1, low1 = product(words[2], 0xCD9E8D57)
        words = [b.op("BitwiseXor", b.op("BitwiseXor", high1, words[1]), keys[0]), low1,
                 b.op("BitwiseXor", b.op("BitwiseXor", high0, words[3]), keys[1]), low0]
        keys = [b.op("Add", key, u32(add)) for key, add in zip(keys, (0x9E3779B9, 0xBB67AE85))]
    return words[0]


def _uniform(low, shape):
    """Random numbers in [0, 1) of float32 (NUMERICS.md, "Random numbers of training")."""
    b = low.b
    seed, step, stream = low.random_inputs()
    n = low.product(shape) if len(shape) else low.sym(1)
    words = _philox(b, b.op("Range", low.sym(0), n, low.sym(1)), stream, seed, step)
    high = b.op("BitShift", words, b.constant(onnx.UINT32, 8), direction="RIGHT")
    return low.reshape(b.op("Mul", b.op("Cast", high, to=onnx.FLOAT), b.constant(onnx.FLOAT, 2.0 ** -24)), shape)


@rule("native_dropout.default")
def _dropout(low, x, p, train):
    if not train or p == 0:
        return x.name, low.full(True, torch.bool, x.shape)
    keep = low.b.op("GreaterOrEqual", _uniform(low, x.shape), low.b.constant(onnx.FLOAT, float(p)))
    scale = low.value(0.0 if p == 1 else 1.0 / (1.0 - p), x.dtype)
    kept = low.b.op("Where", keep, low.b.op("Mul", x.name, scale), low.value(0, x.dtype))
    return kept, keep


@rule("bernoulli.p")
def _bernoulli(low, x, p=0.5, generator=None):
    if generator is not None:
        low.fail("a generator of its own")
    drawn = low.b.op("Less", _uniform(low, x.shape), low.b.constant(onnx.FLOAT, float(p)))
    return low.cast(drawn, x.dtype, torch.bool)


@rule("rand.default", "rand_like.default")
def _rand(low, *_, **__):
    return low.cast(_uniform(low, low.fake.shape), low.fake.dtype, torch.float32)
