#!/usr/bin/env python3
"""torch.compile(backend="ree"): every rule for an ATen operator against eager PyTorch, forward and backward;
options, dynamic shapes, random numbers, optimizer steps.

    PYTHONPATH=build/python tests/python/compile.py      # needs PyTorch 2.5 or later; some minutes
"""
import gc
import pathlib
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402

try:
    import torch
    from torch.utils import _pytree as pytree
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
        harness.skip("PyTorch 2.5 or later is needed")
except ImportError:
    harness.skip("PyTorch is not installed")
import ree  # noqa: E402
from ree import compiler, lowering  # noqa: E402

F = torch.nn.functional
used = set()  # rules that a graph used


def compiled(function, **options):
    return torch.compile(function, backend=compiler.backend, fullgraph=True, **options)


def tensors_of(made):
    return [leaf for leaf in pytree.tree_flatten(made)[0] if isinstance(leaf, torch.Tensor)]


@harness.helper
def close(a, b, what, tolerance=2e-5):
    """Equal types and shapes; floats within a tolerance relative to the largest element, because PyTorch sums
    in another order."""
    if not check(a.dtype == b.dtype and a.shape == b.shape, f"{what}: {a.dtype} {tuple(a.shape)}, eager {b.dtype} "
                 f"{tuple(b.shape)}"):
        return
    if not b.dtype.is_floating_point:
        check(torch.equal(a, b), f"{what}: {a}, eager {b}")
        return
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(b.dtype, tolerance)
    a, b = a.double(), b.double()
    scale = b[b.isfinite()].abs().max() if b.isfinite().any() else 1
    check(torch.allclose(a, b, rtol=tolerance, atol=float(tolerance * scale), equal_nan=True),
          lambda: f"{what}: {a.reshape(-1)[:8].tolist()}, eager {b.reshape(-1)[:8].tolist()}, differs by "
                  f"{float((a - b).abs().max()):.2e} of {float(scale):.2e}")


def leaf(*shape, dtype=torch.float32, positive=False):
    x = torch.randn(shape, dtype=torch.float64)
    return (x.abs() + 0.1 if positive else x).to(dtype)


def tried(name, function, *args, gradients=True):
    """Compares a function with eager PyTorch, and its gradients with regard to all float arguments."""
    torch._dynamo.reset()
    try:
        sides = []
        for run in (function, compiled(function)):
            given = [arg.clone().requires_grad_(gradients and arg.is_floating_point())
                     if isinstance(arg, torch.Tensor) else arg for arg in args]
            made = tensors_of(run(*given))
            loss = [(m * torch.linspace(0.5, 1.5, m.numel(), dtype=m.dtype).reshape(m.shape)).sum()
                    for m in made if m.requires_grad]
            if loss:
                sum(loss).backward()
            sides.append((made, [g.grad for g in given if isinstance(g, torch.Tensor) and g.requires_grad]))
    except Exception as e:  # pylint: disable=broad-except # one operator must not end the test
        check(False, f"{name}: {type(e).__name__}: {str(e)[:300]}")
        return
    (eager, eager_gradients), (ours, our_gradients) = sides
    check(len(eager) == len(ours), f"{name}: {len(ours)} results")
    for i, (a, b) in enumerate(zip(ours, eager)):
        close(a.detach(), b.detach(), f"{name}, result {i}")
    for a, b in zip(our_gradients, eager_gradients):
        if check((a is None) == (b is None), f"{name}: a gradient is missing") and b is not None:
            close(a, b, f"gradient of {name}", 1e-4)


def test_elements():
    x, y = leaf(4, 5), leaf(4, 5)
    for name in ("neg", "abs", "relu", "sign", "ceil", "floor", "round", "exp", "sin", "cos", "tan", "atan", "sinh",
                 "cosh",
                 "asinh", "tanh", "sigmoid", "erf", "expm1", "isnan", "isinf", "frac", "trunc", "erfc", "logical_not"):
        tried(name, getattr(torch, name), x)
    for name in ("log", "sqrt", "rsqrt", "reciprocal", "log1p", "log2", "log10", "acosh"):
        tried(name, getattr(torch, name), x.abs() + 1.1)
    for name in ("asin", "acos", "atanh"):
        tried(name, getattr(torch, name), x.tanh() * 0.9)
    for name in ("gelu", "silu", "elu", "leaky_relu", "softplus", "hardswish", "hardsigmoid", "hardtanh", "mish",
                 "logsigmoid", "selu", "celu", "relu6", "tanhshrink", "softsign"):
        tried(name, getattr(F, name), x)
    tried("gelu tanh", lambda a: F.gelu(a, approximate="tanh"), x)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "atan2"):
        if name != "atan2":
            tried(name, getattr(torch, name), x, y)
    tried("scalars", lambda a: (a + 2, 3 - a, a * 0.5, a / 3, 2 / a, a ** 2, a ** 3, 2 ** a, a.abs() ** 0.5,
                                a ** -1), x)
    tried("alpha", lambda a, b: (torch.add(a, b, alpha=2), torch.sub(a, b, alpha=0.5)), x, y)
    tried("pow", lambda a, b: a.abs() ** b, x, y)
    tried("broadcast", lambda a, b: a + b[:, :1] * b[0], x, y)
    tried("types", lambda a, b: (a + b, a * b, b / 2, a > b, b == 1, b + 0.5), x, torch.randint(-3, 4, (4, 5)))
    tried("division", lambda a, b: (torch.div(a, b, rounding_mode="floor"), torch.div(a, b, rounding_mode="trunc"),
                                    a // b,
                                    a % b, torch.fmod(a, b)), x * 5, y, gradients=False)
    i, j = torch.randint(-9, 10, (40,)), torch.cat([torch.randint(-9, 0, (20,)), torch.randint(1, 10, (20,))])
    tried("integers", lambda a, b: (a + b, a - b, a * b, a // b, a % b, torch.div(a, b, rounding_mode="trunc"),
                                    a & b, a | b,
                                    a ^ b, ~a, -a, a.abs(), torch.maximum(a, b), a / b, a == b, a < b), i, j)
    tried("booleans", lambda a, b: (a & b, a | b, a ^ b, ~a, a == b, a.logical_and(b), a + b, a * b, a.any(),
                                    a.all(1)),
          x > 0, y > 0)
    tried("comparisons", lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a != b, a < 0, a != 0.5), x, y)
    tried("where", lambda a, b: (torch.where(a > 0, a, b), torch.where(b > 0, a, 0.0), a.masked_fill(b > 0, -1)), x,
          y)
    tried("clamp", lambda a, b: (a.clamp(-0.5, 0.5), a.clamp(min=0), a.clamp(max=0), torch.clamp(a, b, b + 1)), x, y)
    tried("lerp", lambda a, b: (torch.lerp(a, b, 0.3), torch.lerp(a, b, 0.8), torch.lerp(a, b, b.sigmoid()),
                                torch.addcmul(a, a, b, value=2), torch.addcdiv(a, a, b.abs() + 1)),
          x, y)
    tried("casts", lambda a: (a.half(), a.double(), a.bfloat16(), a.int(), a.long(), a.bool(),
                              (a * 10).to(torch.int8)), x)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        tried(f"{dtype}", lambda a, b: torch.tanh(a * b + 1) / (b.abs() + 1) @ a.t(), x.to(dtype), y.to(dtype))
    inf = torch.tensor([1.0, -1.0, 0.0, float("inf"), -float("inf"), float("nan"), 1e38, 1e-45])
    tried("special values", lambda a: (a * 1e30, a.clamp(min=0), torch.relu(a), a.isnan(), a.abs(), a > 0, a.sign(),
                                       a.nan_to_num(1.0, 2.0, 3.0), a * 3.5e38), inf, gradients=False)


def test_edges():
    """Infinities, zeros, empty tensors and lists, scalars, numbers outside of a type."""
    inf = float("inf")

    def edge(name, function, *args):
        tried(name, function, *args, gradients=False)
    edge("floor", lambda a: torch.div(a, 0.1, rounding_mode="floor"), torch.tensor([1., 0.3, -1., 0.7, 5.]))
    edge("floor of infinities", lambda a: (torch.div(a, -1., rounding_mode="floor"),
                                           torch.div(a, inf, rounding_mode="floor")),
         torch.tensor([inf, 3., -2.5, -1.]))
    for dtype in (torch.int8, torch.int32, torch.int64):
        least = torch.iinfo(dtype).min
        edge("floor of whole numbers", lambda a: (a // 3, a // -3, a // 7, torch.div(a, 3, rounding_mode="trunc")),
             torch.tensor([least, least + 1, -7, -1, 0, 5, torch.iinfo(dtype).max], dtype=dtype))
    edge("floor in float16", lambda a: (a // 0.1, torch.div(a, 0.1, rounding_mode="trunc")),
         torch.tensor([-5.5, 7.5, 2.0]).half())
    edge("pow", lambda a: (a ** -0.5, a ** 0.5), torch.tensor([-0., -inf, 4.]))
    edge("var", lambda a: (torch.var(a, 0, correction=5), torch.var(a, 0, correction=1)), torch.tensor([1., 2., 4.]))
    edge("var of nothing", lambda a: torch.var(a, 0), torch.zeros(0, 3))
    edge("empty lists", lambda a: (torch.flip(a, ()), torch.any(a > 0, [])), leaf(3, 2))
    edge("any of uint8", lambda a: (torch.any(a), torch.all(a)), torch.tensor([1, 2], dtype=torch.uint8))
    edge("float16", lambda a: (a * 100000., a + 1e5), torch.tensor([.001, 1.]).half())
    for dtype in (torch.int8, torch.uint8, torch.int16):
        edge(f"{dtype}", lambda a: (a + 200, a * 300, a - 129, a - 1, a < 200, a == 300, a > -200,
                                    a.clamp(-200, 100), a.clamp(max=70000)), torch.tensor([0, 1, 100], dtype=dtype))
    edge("scalars", lambda a, i: (*a.max(0), *a.min(0, keepdim=True), a.argmax(0, keepdim=True), a.argmin(keepdim=True),
                                  a.argmax(), a.gather(0, i), a.index_select(0, i), a.cumsum(0), a.softmax(0)),
         torch.tensor(2.5), torch.tensor(0))
    edge("argmax", lambda a: (a.argmax(keepdim=True), a.argmin(1, keepdim=True)), leaf(3, 4))
    edge("select by a scalar", lambda a, i: torch.index_select(a, 0, i), leaf(3, 2), torch.tensor(1))
    torch._dynamo.reset()
    with fails(Exception, "whole numbers"):
        compiled(lambda a: torch.arange(0, 5.5, dtype=torch.int64) + a)(torch.tensor(1))


def test_shapes():
    x = leaf(2, 3, 4)
    tried("views", lambda a: (a.view(6, 4), a.reshape(-1), a.permute(2, 0, 1), a.transpose(0, 2), a.unsqueeze(1),
                              a[:, :1].squeeze(1), a.flatten(1), a.unflatten(2, (2, 2)), a[:1].expand(5, 3, 4)), x)
    tried("slices", lambda a: (a[:, 1:], a[..., ::2], a[0], a[:, -1], a[:, 1:2, 1:-1], a[..., None, 0], a[-3:]), x)
    tried("cat", lambda a: (torch.cat([a, a * 2], 1), torch.stack([a, a + 1], -1), a.chunk(2, 2), a.split([1, 2], 1),
                            torch.hstack([a, a]), a.repeat(2, 1, 3), a.tile(2), a.repeat_interleave(2, 1)), x)
    tried("flip", lambda a: (a.flip(1), a.flip(0, 2), a.roll(1, 2), a.roll((1, 2), (0, 1)), a.rot90(1, (1, 2))), x)
    tried("pad", lambda a: (F.pad(a, (1, 2)), F.pad(a, (1, 0, 2, 1), value=3), F.pad(a, (-1, 1)),
                            F.pad(a, (1, 1), mode="reflect"), F.pad(a.detach(), (1, 1), mode="replicate")), x)
    tried("triangles", lambda a: (a.triu(), a.tril(-1), a.triu(1), torch.diagonal(a, 1, 1, 2), a.tril(9)), x)
    tried("strides", lambda a: (a.as_strided((3, 2), (1, 4)), a.t().as_strided((2, 2), (1, 2), 1),
                                a.unfold(1, 2, 1)), leaf(3, 4))
    tried("new tensors", lambda a: (a.new_zeros(2), torch.ones_like(a), a.new_full((2, 2), 3), torch.arange(5),
                                    torch.arange(1, 2, 0.25), torch.full_like(a, 2), torch.eye(3), torch.zeros(2, 3),
                                    torch.linspace(0, 1, 5), torch.tensor([1, 2]) + a[0, 0, 0].long()), x)
    tried("writes", lambda a, b: _written(a.clone(), b), x, leaf(2, 4))


def _written(a, b):
    a[:, 1] = b
    a[0, :, 1:3] = 5
    a[1, ::2] += 1
    a[..., 0].mul_(2)
    return a


def test_reductions():
    x = leaf(3, 4, 5)
    tried("sums", lambda a: (a.sum(), a.sum(1), a.sum((0, 2), keepdim=True), a.mean(), a.mean(-1),
                             a.detach().prod(1), a.amax(1),
                             a.amin((0, 1)), a.std(), a.var(1), torch.var_mean(a, 2, correction=0), a.norm(),
                             a.norm(dim=1), a.logsumexp(1), a.cumsum(1), a.long().sum()), x)
    tried("max", lambda a: (a.max(1), a.min(2, keepdim=True), a.max(), a.topk(2, 1), a.sort(1)[0]), x)
    tried("arg", lambda a: (a.argmax(), a.argmax(1), a.argmin(2, True), a.any(1), (a > -9).all()), x, gradients=False)
    tried("softmax", lambda a: (a.softmax(1), F.log_softmax(a, -1), a.softmax(0)), x)
    tried("half softmax", lambda a: F.softmax(a, -1, dtype=torch.float32), x.half())
    tried("nothing", lambda a: (a.sum(1), a.sum(), a + 1, a.view(0)), torch.ones(2, 0))
    tried("a scalar", lambda a: (a.sum(), a.softmax(0), a.max(), a.expand(3), a.cumsum(0), a.view(1)), leaf())


def test_indices():
    x, i = leaf(5, 4, 3), torch.tensor([[4, 0], [2, 2]])
    tried("index", lambda a, i: (a[i], a[:, i % 4], a[i, i % 4], a[:, :, i % 3], a[i[0], :, i[1] % 3], a[-1, i % 4],
                                 a[i - 5],
                                 a[:, None, i[:, 0] % 4]), x, i)
    tried("writes at indices", lambda a, i: (_put(a, i), _add_at(a, i)), x, i)
    tried("gather", lambda a, i: (a[:, :, 0].gather(0, i), a.index_select(1, i[0] % 4),
                                  a[:2, 0].take_along_dim(i % 3, 1)), x, i)
    tried("scatter", lambda a, i: (a.scatter(0, i[:, :, None], a[:2, :2, :1]), a.scatter(1, i[:, :, None] % 4, 3.0),
                                   a.scatter_add(0, i[:, :, None].expand(2, 2, 3), a[1:3, 1:3]),
                                   a.index_add(0, i[0], a[:2])), x, i)
    torch._dynamo.reset()
    with fails(RuntimeError):
        compiled(lambda i: F.one_hot(i, 3))(i)
    tried("embedding", lambda w, i: (F.embedding(i, w), F.embedding(i, w, padding_idx=2), F.one_hot(i, 5)),
          leaf(5, 7), i)


def _put(a, i):
    a = a.clone()
    a[i[0]] = 1
    a[:, i[0] % 4] = a[:, :2] * 2
    return a


def _add_at(a, i):
    return a.index_put((i, i % 4), a[:2, :2], accumulate=True)


def test_products():
    x, y = leaf(6, 8), leaf(8, 5)
    tried("mm", lambda a, b: (a @ b, a.mv(b[:, 0]),
                              a[0].dot(b[:, 0]), torch.outer(a[0], b[0]), torch.einsum("ij,jk->ki", a, b)), x, y)
    tried("addmm", lambda a, b, c: (torch.addmm(c, a, b), torch.addmm(c, a, b, beta=0.5, alpha=2),
                                    F.linear(a, b.t(), c)),
          x, y, leaf(5))
    tried("bmm", lambda a, b: (torch.bmm(a, b), a @ b[0], torch.baddbmm(a @ b, a, b),
                               torch.einsum("bij,bjk->bik", a, b)),
          leaf(3, 6, 8), leaf(3, 8, 5))
    for causal in (False, True):
        tried(f"attention {causal}", lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c),
              leaf(2, 3, 6, 8), leaf(2, 3, 6, 8), leaf(2, 3, 6, 8))
    tried("a bias that does not count", lambda a, b, c: torch.addmm(c, a, b, beta=0), x, y, torch.full((5,), torch.nan),
          gradients=False)
    for causal in (False, True):
        tried("attention with shared heads", lambda q, k, v, c=causal: F.scaled_dot_product_attention(
            q, k, v, is_causal=c, enable_gqa=True), leaf(2, 6, 5, 8), leaf(2, 2, 5, 8), leaf(2, 2, 5, 8))
    empty = torch.ones(6, 7, dtype=torch.bool)
    empty[2] = False
    for mask in (torch.rand(6, 7) > 0.3, leaf(2, 1, 6, 7), empty):
        tried("attention with a mask", lambda q, k, v, m=mask: F.scaled_dot_product_attention(q, k, v, m, scale=0.3),
              leaf(2, 3, 6, 8), leaf(2, 3, 7, 8), leaf(2, 3, 7, 8))


def test_convolutions():
    for n, size in ((1, (11,)), (2, (9, 10)), (3, (5, 6, 4))):
        conv, back = (getattr(F, f"conv{n}d"), getattr(F, f"conv_transpose{n}d"))
        for stride, padding, dilation, groups in ((1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 1, 4),
                                                  (2, 0, 1, 4)):
            how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
            tried(f"conv{n}d {how}", lambda x, w, b, f=conv, h=how: f(x, w, b, **h), leaf(2, 4, *size),
                  leaf(8, 4 // groups, *[3] * n) if n < 3 or dilation == 1 else leaf(8, 4 // groups, *[2] * n), leaf(8))
            tried(f"conv_transpose{n}d {how}", lambda x, w, b, f=back, h=how: f(x, w, b, **h), leaf(2, 4, *size),
                  leaf(4, 8 // groups, *[3] * n), leaf(8))
    tried("output_padding", lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), leaf(1, 3, 4, 5),
          leaf(3, 2, 3, 3))
    tried("without a batch", lambda x, w: F.conv2d(x, w), leaf(3, 6, 6), leaf(2, 3, 3, 3))


def test_pooling():
    x = leaf(2, 3, 9, 8)
    for how in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
                {"kernel_size": (2, 3), "stride": 1},
                {"kernel_size": 3, "ceil_mode": True}):
        tried(f"max_pool2d {how}", lambda a, h=how: F.max_pool2d(a, **h), x)
        tried(f"avg_pool2d {how}", lambda a, h=how: F.avg_pool2d(a, **h), x)
        tried(f"avg_pool2d {how}", lambda a, h=how: F.avg_pool2d(a, count_include_pad=False, **h), x)
    for pad in (True, False):  # the last windows reach over the padding
        for kernel, stride, padding in ((3, 2, 1), ((2, 3), (3, 2), 1), (2, 2, 0), (5, 3, 2)):
            tried(f"avg_pool2d {kernel}", lambda a, k=kernel, s=stride, p=padding, c=pad:
                  F.avg_pool2d(a, k, s, p, ceil_mode=True, count_include_pad=c), x)
    tried("avg_pool3d", lambda a: (F.avg_pool3d(a, 2), F.avg_pool3d(a, 3, 2, 1, ceil_mode=True)), x)
    tried("max_pool2d with indices", lambda a: F.max_pool2d(a, 3, 2, return_indices=True), x)
    tried("max_pool without a batch", lambda a: (F.max_pool2d(a[0], 2), F.avg_pool2d(a[0], 2),
                                                 F.max_pool1d(a[0], 2)), x)
    tried("adaptive", lambda a: (F.adaptive_avg_pool2d(a, 1), F.adaptive_avg_pool2d(a, (3, 4)),
                                 F.adaptive_avg_pool1d(a[0], 2)), x)
    tried("upsample", lambda a: (F.interpolate(a, scale_factor=2), F.interpolate(a, size=(5, 13)),
                                 F.interpolate(a, scale_factor=2, mode="bilinear"),
                                 F.interpolate(a, size=(7, 11), mode="bilinear", align_corners=True)), x)


def test_norms_and_losses():
    x, w, b = leaf(4, 6, 5), leaf(6), leaf(6)
    tried("layer_norm", lambda a, w, b: (F.layer_norm(a.transpose(1, 2), (6,), w, b), F.layer_norm(a, (6, 5))), x,
          w, b)
    tried("group_norm", lambda a, w, b: F.group_norm(a, 3, w, b), x, w, b)
    tried("rms_norm", lambda a, w: F.rms_norm(a.transpose(1, 2), (6,), w), x, w)
    tried("instance_norm", F.instance_norm, x)
    tried("batch_norm", lambda a, w, b, m, v: F.batch_norm(a, m.detach(), v.detach().abs() + 1, w, b), x, w, b,
          leaf(6), leaf(6))
    y, target = leaf(8, 5), torch.randint(0, 5, (8,))
    target[3] = -100
    tried("cross_entropy", lambda a, t: (F.cross_entropy(a, t),
                                         F.cross_entropy(a, t, reduction="sum", label_smoothing=0.1),
                                         F.nll_loss(a, t), F.cross_entropy(a, t, reduction="none")), y, target)
    tried("losses", lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b), F.smooth_l1_loss(a, b), F.huber_loss(a, b),
                                  F.binary_cross_entropy_with_logits(a, b.sigmoid()), F.kl_div(a, b.softmax(1)),
                                  F.binary_cross_entropy(a.sigmoid(),
                                                         b.sigmoid()), F.cosine_similarity(a, b)), y, leaf(8, 5))


def test_dynamic_shapes():
    function = compiled(lambda a, b: ((a @ b).relu().view(a.shape[0], -1, 2).sum(1), a[1:].mean(0), a.shape[0] * 2),
                        dynamic=True)
    eager = lambda a, b: ((a @ b).relu().view(a.shape[0], -1, 2).sum(1), a[1:].mean(0), a.shape[0] * 2)  # noqa: E731
    torch._dynamo.reset()
    n_compiled = 0

    def counted(graph, inputs, **options):
        nonlocal n_compiled
        n_compiled += 1
        return compiler.backend(graph, inputs, **options)
    function = torch.compile(eager, backend=counted, fullgraph=True, dynamic=True)
    for n, m in ((3, 4), (7, 10), (4, 6), (9, 8)):
        a, b = leaf(n, 5), leaf(5, m)
        for ours, theirs in zip(function(a, b), eager(a, b)):
            if isinstance(theirs, int):
                check(ours == theirs, f"a size: {ours}")
            else:
                close(ours, theirs, f"{n} x {m}")
    check(n_compiled == 1, f"compiled {n_compiled} times")


def test_modules_and_options():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x = leaf(5, 8)
    expected = model(x)
    by_name = torch.compile(model, backend="ree", fullgraph=True, options={"device": "cpu"})
    close(by_name(x), expected, "the backend by its name")
    close(compiled(model, options={"device": ree.Device("cpu", n_threads=1)})(x), expected, "an open device")
    with fails(Exception, "unknown option 'devise'"):
        compiled(model, options={"devise": "cpu"})(x)
    with fails(Exception, "no_such"):
        compiled(model, options={"device": "no_such"})(x)

    def strange(a):
        return torch.linalg.svdvals(a).sum() + torch.special.i0(a * 2).sum() + (a * 2).sum()
    torch._dynamo.reset()
    with fails(Exception, "_linalg_svd.default", "i0.default", "not supported"):
        compiled(strange)(x)
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        made = compiled(strange, options={"fallback": True})(x)
    close(made, strange(x), "with fallback")
    check(any("i0.default" in str(w.message) for w in warned), f"it warns: {[str(w.message)[:90] for w in warned]}")
    torch._dynamo.reset()
    with torch.no_grad():
        close(compiled(model)(x), expected, "without gradients")


def test_last_traces():
    """docs/PYTHON.md shows what last_traces returns for this model."""
    torch._dynamo.reset()
    function = compiled(torch.nn.Linear(2, 2))
    with fails(ree.NotFoundError, "has not been called yet"):
        ree.last_traces(function)
    with torch.no_grad():
        function(torch.ones(3, 2))
    stages = ree.last_traces(function)
    check([stage.name for stage in stages][:2] == ["inference: captured", "inference: read"], f"{stages}")
    check(stages[-1].name == "inference: memory plan" and "aten.addmm" in str(stages[0]), f"{stages}")
    shown = (HERE.parents[1] / "docs" / "PYTHON.md").read_text().splitlines()
    for stage in stages:
        if stage.name.endswith((": shapes", ": lowered")):
            for line in str(stage).splitlines():
                check(not line or f"    {line}" in shown, f"not in docs/PYTHON.md: {line}")
    torch._dynamo.reset()
    x = leaf(3, 2).requires_grad_()
    function(x).sum().backward()
    names = [stage.name for stage in ree.last_traces(function)]
    check("forward: lowered" in names and "backward: lowered" in names, f"{names}")


def test_explain():
    torch._dynamo.reset()
    function, x = compiled(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))), leaf(5, 8)
    made = ree.explain(function, x, runs=1)
    check([graph.name for graph in made.graphs] == ["forward"] and made.graphs[0].dispatches, f"{made.graphs}")
    torch._dynamo.reset()
    loss = compiled(lambda a: (torch.nn.functional.linear(a, weight).relu() ** 2).sum())
    weight = leaf(3, 8).requires_grad_()
    made = ree.explain(loss, x, runs=1)
    check([graph.name for graph in made.graphs] == ["forward", "backward"], f"{[graph.name for graph in made.graphs]}")
    check(all(cost.seconds >= 0 for graph in made.graphs for cost in graph.dispatches), f"{made}")
    check("<svg" in made.html and "matmul" in str(made), str(made))


def test_random():
    x = torch.ones(50, 40)
    torch._dynamo.reset()
    function = compiled(lambda a: (F.dropout(a, 0.25), F.dropout(a, 0.5),
                                   a))
    compiler.manual_seed(7)
    first = [function(x)[0] for _ in range(2)]
    check(not torch.equal(*first), "each call draws others")
    compiler.manual_seed(7)
    check(torch.equal(function(x)[0], first[0]), "the same seed, the same numbers")
    compiler.manual_seed(2 ** 63 + 7)
    check(not torch.equal(function(x)[0], first[0]), "another seed")
    a, b, _ = function(x)
    check(set(a.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}, f"{a.unique()}")
    check(abs(float((a == 0).float().mean()) - 0.25) < 0.04 and abs(float((b == 0).float().mean()) - 0.5) < 0.05,
          "how many")
    # Word 0 of Philox4x32-10, and its key and counter, against the definition in NUMERICS.md.
    compiler.manual_seed(0x123456789ABCDEF)
    function(x)
    drawn = function(x)[1]
    for i in (0, 1, 1999):
        word = philox((i, 0, 1, 1), (0x89ABCDEF, 0x01234567))
        check((float(drawn.reshape(-1)[i]) != 0) == ((word >> 8) * 2.0 ** -24 >= 0.5), f"element {i}")
    with fails(ValueError, "2^64"):
        compiler.manual_seed(-1)
    y = torch.ones(30, 20, requires_grad=True)
    made = compiled(lambda a: F.dropout(a, 0.5))(y)
    made.sum().backward()
    check(torch.equal(y.grad, made.detach()), "the gradient has the same mask")


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def test_optimizers():
    for name, make in (("SGD", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01)),
                       ("Adam", lambda p: torch.optim.Adam(p, 0.01)), ("AdamW", lambda p: torch.optim.AdamW(p, 0.01)),
                       ("AdamW foreach", lambda p: torch.optim.AdamW(p, 0.01, foreach=True))):
        torch._dynamo.reset()
        sides = []
        for run in (lambda step: step, lambda step: torch.compile(step, backend=compiler.backend)):
            torch.manual_seed(5)
            model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
            optimizer = make(model.parameters())
            step = run(optimizer.step)
            for _ in range(5):
                optimizer.zero_grad()
                model(torch.ones(3, 8)).pow(2).sum().backward()
                step()
            sides.append([p.detach().clone() for p in model.parameters()])
        for a, b in zip(*sides):
            close(b, a, name, 1e-4)


def test_resident():
    """Parameters that stay on the device: the same bits as without, and copied only after they have changed."""
    def trained(device, **options):
        torch.manual_seed(3)
        compiler.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 3))
        x = torch.randn(9, 6)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        run = compiled(model, options={"device": device, **options})
        step = torch.compile(optimizer.step, backend=compiler.backend, options={"device": device, **options})
        for _ in range(4):
            run(x).square().mean().backward()
            step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            outputs = [run(x) for _ in range(3)]
            model[0].weight.mul_(2)
            outputs.append(run(x))
        return [*model.state_dict().values(), *outputs]
    try:
        device = ree.Device("vulkan")
    except ree.UnavailableError:
        device = ree.Device("cpu")
    plain = trained(device)
    resident = compiler.resident_of(device)
    check(resident.n_copied == 0, "nothing is kept without the option")
    kept = trained(device, resident=True)
    check(all(torch.equal(a, b) for a, b in zip(plain, kept)), "the same bits")
    # 6 parameters. Each is copied for the first step, after each step for the next pass, and one more after mul_.
    check((resident.n_copied, resident.n_reused > 30) == (6 * 5 + 1, True), (resident.n_copied, resident.n_reused))
    torch._dynamo.reset()
    gc.collect()
    check(not resident._copies, "the model is gone, and its copies too")  # pylint: disable=protected-access
    # Changes that PyTorch does not count: those of fused optimizers, and of types.
    options = {"device": device, "resident": True}
    x = torch.ones(1, 2)
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        torch._dynamo.reset()
        layer = torch.nn.Linear(2, 2)
        run, optimizer = compiled(layer, options=options), make(layer.parameters(), lr=0.5, fused=True)
        run(x).sum().backward()
        optimizer.step()
        check(torch.equal(run(x), compiled(layer)(x)), f"a fused {make.__name__}")
    layer = torch.nn.Linear(2, 2)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float32):
        torch._dynamo.reset()
        layer.to(dtype)
        with torch.no_grad():
            layer.weight.mul_(1.5)
            made = compiled(layer, options=options)(x.to(dtype))
            check(torch.equal(made, compiled(layer)(x.to(dtype))), f"changed to {dtype}")

    class OnlyParameters(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.v, self.w = (torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16) * i) for i in (2, 3))

        def forward(self):
            return self.v * self.w
    check(compiled(OnlyParameters(), options=options)().tolist() == [6, 6, 6], "no other inputs")
    with torch.inference_mode():
        inside = torch.nn.Linear(2, 2)
        x = torch.ones(1, 2)
        check(torch.equal(compiled(inside, options={"device": device, "resident": True})(x),
                          compiled(inside, options={"device": device})(x)), "tensors without a counter")


def note(rules):
    """Notes which rules the graphs use."""
    for name, function in list(rules.items()):
        def noted(low, *args, _name=name, _function=function, **kwargs):
            used.add(_name)
            return _function(low, *args, **kwargs)
        rules[name] = noted


note(lowering.RULES)
torch.manual_seed(1)
wanted = sys.argv[1:]
for name, test in list(globals().items()):
    if name.startswith("test_") and (not wanted or name in wanted):
        test()
unused = sorted(set(lowering.RULES) - used)
print(f"{len(used)} rules were used; not used: {', '.join(unused)}")
sys.exit(harness.finish())
