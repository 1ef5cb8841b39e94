"""Rules for operators that compute element by element."""
import math

import torch

from ree.lowering import RULES, TYPES, Tensor, rule


def _float_of(dtype):
    """The type in which a float function of this type is computed."""
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


_UNARY = {"neg": "Neg", "abs": "Abs", "relu": "Relu", "ceil": "Ceil", "floor": "Floor",
          "round": "Round"}
_FLOAT_UNARY = {"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin",
                "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
                "atanh": "Atanh", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "reciprocal": "Reciprocal"}


def _add_unary():
    for name, op in _UNARY.items():
        def lower(low, x, op=op):
            is_whole = op in ("Ceil", "Floor", "Round") and not x.dtype.is_floating_point
            return x.name if is_whole else low.b.op(op, x.name)
        rule(f"{name}.default")(lower)
    for name, op in _FLOAT_UNARY.items():
        def lower_float(low, x, op=op):
            return low.b.op(op, low.cast(x, low.fake.dtype))
        rule(f"{name}.default")(lower_float)


_add_unary()


@rule("sign.default", "sgn.default")
def _sign(low, x):
    """(x > 0) - (x < 0), which is 0 for a NaN."""
    dtype = low.fake.dtype
    if dtype == torch.bool:
        return x.name
    zero = low.value(0, dtype)
    return low.b.op("Sub", *(low.cast(low.b.op(op, x.name, zero), dtype, torch.bool) for op in ("Greater", "Less")))


@rule("rsqrt.default")
def _rsqrt(low, x):
    return low.b.op("Reciprocal", low.b.op("Sqrt", low.cast(x, low.fake.dtype)))


@rule("expm1.default")
def _expm1(low, x):
    """exp(x) - 1; near 0 by 2 t / (1 - t) with t = tanh(x / 2), where nothing cancels."""
    b, dtype = low.b, low.fake.dtype
    value, one = low.cast(x, dtype), low.value(1, dtype)
    t = b.op("Tanh", b.op("Mul", value, low.value(0.5, dtype)))
    near = b.op("Div", b.op("Add", t, t), b.op("Sub", one, t))
    is_near = b.op("Less", b.op("Abs", value), low.value(0.5, dtype))
    return b.op("Where", is_near, near, b.op("Sub", b.op("Exp", value), one))


@rule("log1p.default")
def _log1p(low, x):
    """log(1 + x); near 0 by 2 atanh(x / (2 + x)), where nothing cancels."""
    b, dtype = low.b, low.fake.dtype
    value = low.cast(x, dtype)
    half = b.op("Atanh", b.op("Div", value, b.op("Add", value, low.value(2, dtype))))
    is_near = b.op("Less", b.op("Abs", value), low.value(0.5, dtype))
    return b.op("Where", is_near, b.op("Add", half, half), b.op("Log", b.op("Add", value, low.value(1, dtype))))


@rule("log2.default", "log10.default")
def _log_of_base(low, x):
    base = 2 if "log2" in low.op_name else 10
    dtype = low.fake.dtype
    return low.b.op("Mul", low.b.op("Log", low.cast(x, dtype)), low.value(1 / math.log(base), dtype))


@rule("exp2.default")
def _exp2(low, x):
    dtype = low.fake.dtype
    return low.b.op("Pow", low.value(2, dtype), low.cast(x, dtype))


@rule("erfc.default")
def _erfc(low, x):
    dtype = low.fake.dtype
    return low.b.op("Sub", low.value(1, dtype), low.b.op("Erf", low.cast(x, dtype)))


@rule("trunc.default", "fix.default")
def _trunc(low, x):
    if not x.dtype.is_floating_point:
        return x.name
    return low.b.op("Mul", low.b.op("Sign", x.name), low.b.op("Floor", low.b.op("Abs", x.name)))


@rule("gelu.default")
def _gelu(low, x, approximate="none"):
    return low.b.op("Gelu", x.name, approximate=approximate)


@rule("logical_not.default")
def _logical_not(low, x):
    return low.b.op("Not", low.cast(x, torch.bool))


@rule("bitwise_not.default")
def _bitwise_not(low, x):
    return low.b.op("Not" if x.dtype == torch.bool else "BitwiseNot", x.name)


@rule("isnan.default")
def _isnan(low, x):
    return low.b.op("IsNaN", low.cast(x, _float_of(x.dtype)))


@rule("isinf.default")
def _isinf(low, x):
    return low.b.op("IsInf", low.cast(x, _float_of(x.dtype)))


def _scaled(low, y, alpha, dtype):
    y = low.value(y, dtype)
    return y if alpha == 1 else low.b.op("Mul", y, low.value(alpha, dtype))


@rule("add.Tensor", "add.Scalar")
def _add(low, x, y, alpha=1):
    dtype = low.fake.dtype
    if dtype == torch.bool:
        return low.b.op("Or", low.value(x, dtype), low.value(y, dtype)) if alpha else low.value(x, dtype)
    return low.b.op("Add", low.value(x, dtype), _scaled(low, y, alpha, dtype))


@rule("sub.Tensor", "sub.Scalar")
def _sub(low, x, y, alpha=1):
    dtype = low.fake.dtype
    return low.b.op("Sub", low.value(x, dtype), _scaled(low, y, alpha, dtype))


@rule("mul.Tensor", "mul.Scalar")
def _mul(low, x, y):
    dtype = low.fake.dtype
    if dtype == torch.bool:
        return low.b.op("And", low.value(x, dtype), low.value(y, dtype))
    return _by_number(low, "Mul", x, y)


@rule("div.Tensor", "div.Scalar")
def _div(low, x, y):
    return _by_number(low, "Div", x, y)


def _by_number(low, op, x, y):
    """A product or a quotient. A number beside 16-bit floats stays a float32, as in PyTorch: it may be larger
    than they can be."""
    dtype = low.fake.dtype
    is_number = not (isinstance(x, Tensor) and isinstance(y, Tensor))
    wide = torch.float32 if is_number and dtype in (torch.float16, torch.bfloat16) else dtype
    return low.cast(low.b.op(op, low.value(x, wide), low.value(y, wide)), dtype, wide)


@rule("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(low, x, y, rounding_mode=None):
    dtype = low.fake.dtype
    if dtype in (torch.float16, torch.bfloat16) and rounding_mode and not isinstance(y, Tensor):
        # A number stays float32.
        low.fake = low.fake.float()
        made = _div_mode(low, x, y, rounding_mode)
        low.fake = low.fake.to(dtype)
        return low.cast(made, dtype, torch.float32)
    x, y = low.value(x, dtype), low.value(y, dtype)
    quotient = low.b.op("Div", x, y)
    if rounding_mode is None:
        return quotient
    if dtype.is_floating_point:
        if rounding_mode == "floor":
            return _floor_of_quotient(low, x, y, quotient, dtype)
        return low.b.op("Mul", low.b.op("Sign", quotient), low.b.op("Floor", low.b.op("Abs", quotient)))
    if rounding_mode == "trunc":
        return quotient
    if not dtype.is_signed:
        return quotient
    b, zero = low.b, low.value(0, dtype)
    is_below = b.op("And", b.op("Not", b.op("Equal", b.op("Mod", x, y), zero)),
                    b.op("Xor", b.op("Less", x, zero), b.op("Less", y, zero)))
    return b.op("Sub", quotient, b.op("Cast", is_below, to=TYPES[dtype]))


def _floor_of_quotient(low, x, y, quotient, dtype):
    """By the remainder, as PyTorch: the quotient itself may be rounded up to a whole number."""
    b, zero, one = low.b, low.value(0, dtype), low.value(1, dtype)
    rest = b.op("Mod", x, y, fmod=1)
    whole = b.op("Div", b.op("Sub", x, rest), y)
    is_below = b.op("And", b.op("Not", b.op("Equal", rest, zero)),
                    b.op("Xor", b.op("Less", y, zero), b.op("Less", rest, zero)))
    whole = b.op("Where", is_below, b.op("Sub", whole, one), whole)
    floor = b.op("Floor", whole)
    is_above = b.op("Greater", b.op("Sub", whole, floor), low.value(0.5, dtype))
    floor = b.op("Where", is_above, b.op("Add", floor, one), floor)
    return b.op("Where", b.op("Equal", y, zero), quotient, floor)


@rule("floor_divide.default")
def _floor_divide(low, x, y):
    return _div_mode(low, x, y, "floor")


@rule("remainder.Tensor", "remainder.Scalar")
def _remainder(low, x, y):
    dtype = low.fake.dtype
    x, y = low.value(x, dtype), low.value(y, dtype)
    if not dtype.is_floating_point:
        return low.b.op("Mod", x, y)
    rest, zero = low.b.op("Mod", x, y, fmod=1), low.value(0, dtype)
    wrong = low.b.op("And", low.b.op("Not", low.b.op("Equal", rest, zero)),
                     low.b.op("Xor", low.b.op("Less", rest, zero), low.b.op("Less", y, zero)))
    return low.b.op("Where", wrong, low.b.op("Add", rest, y), rest)


@rule("fmod.Tensor", "fmod.Scalar")
def _fmod(low, x, y):
    dtype = low.fake.dtype
    return low.b.op("Mod", low.value(x, dtype), low.value(y, dtype), fmod=1)


@rule("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _pow(low, x, y):
    dtype = low.fake.dtype
    base = low.value(x, dtype)
    if y == 2:
        return low.b.op("Mul", base, base)
    if y == 1:
        return low.b.op("Identity", base)
    if y == 0.5 and dtype.is_floating_point:
        return low.b.op("Sqrt", base)
    if y == -0.5 and dtype.is_floating_point:
        return low.b.op("Reciprocal", low.b.op("Sqrt", base))
    if y == -1 and dtype.is_floating_point:
        return low.b.op("Reciprocal", base)
    return low.b.op("Pow", base, low.value(y, dtype))


@rule("prims.fma.default")
def _fma(low, x, y, z):
    """x * y + z, with two roundings: ONNX has no fused operator."""
    dtype = low.fake.dtype
    return low.b.op("Add", low.b.op("Mul", low.value(x, dtype), low.value(y, dtype)), low.value(z, dtype))


@rule("addcmul.default")
def _addcmul(low, x, y, z, value=1):
    dtype = low.fake.dtype
    product = low.b.op("Mul", low.value(y, dtype), low.value(z, dtype))
    product = product if value == 1 else low.b.op("Mul", product, low.value(value, dtype))
    return low.b.op("Add", low.value(x, dtype), product)


@rule("addcdiv.default")
def _addcdiv(low, x, y, z, value=1):
    dtype = low.fake.dtype
    above = low.value(y, dtype) if value == 1 else low.b.op("Mul", low.value(y, dtype), low.value(value, dtype))
    return low.b.op("Add", low.value(x, dtype), low.b.op("Div", above, low.value(z, dtype)))


@rule("lerp.Scalar", "lerp.Tensor")
def _lerp(low, x, y, weight):
    """From the nearer end, so that a weight of 1 gives y."""
    b, dtype = low.b, low.fake.dtype
    start, end, weight_value = low.value(x, dtype), low.value(y, dtype), low.value(weight, dtype)
    difference = b.op("Sub", end, start)
    near_start = b.op("Add", start, b.op("Mul", weight_value, difference))
    near_end = b.op("Sub", end, b.op("Mul", difference, b.op("Sub", low.value(1, dtype), weight_value)))
    if not isinstance(weight, Tensor):
        return near_start if abs(weight) < 0.5 else near_end
    return b.op("Where", b.op("Less", b.op("Abs", weight_value), low.value(0.5, dtype)), near_start, near_end)


@rule("maximum.default")
def _maximum(low, x, y):
    dtype = low.fake.dtype
    return low.b.op("Max", low.cast(x, dtype), low.cast(y, dtype))


@rule("minimum.default")
def _minimum(low, x, y):
    dtype = low.fake.dtype
    return low.b.op("Min", low.cast(x, dtype), low.cast(y, dtype))


@rule("clamp.default", "clamp.Tensor")
def _clamp(low, x, min=None, max=None):  # pylint: disable=redefined-builtin # ATen's names
    dtype = low.fake.dtype
    made = low.cast(x, dtype)
    for op, limit in (("Max", min), ("Min", max)):
        if isinstance(limit, int) and not dtype.is_floating_point and dtype != torch.bool:
            info = torch.iinfo(dtype)  # a limit outside of the type is its end
            limit = info.min if limit < info.min else info.max if limit > info.max else limit
        if limit is not None:
            made = low.b.op(op, made, low.value(limit, dtype))
    return made


@rule("clamp_min.default", "clamp_min.Tensor")
def _clamp_min(low, x, limit):
    return _clamp(low, x, min=limit)


@rule("clamp_max.default", "clamp_max.Tensor")
def _clamp_max(low, x, limit):
    return _clamp(low, x, max=limit)


def _common(x, y):
    """The type in which two operands are compared."""
    return torch.result_type(*(item.fake if isinstance(item, Tensor) else item for item in (x, y)))


def _add_comparisons():
    for name, op in (("eq", "Equal"), ("lt", "Less"), ("le", "LessOrEqual"), ("gt", "Greater"),
                     ("ge", "GreaterOrEqual"), ("ne", None)):
        def lower(low, x, y, op=op):
            dtype = _common(x, y)
            if dtype == torch.bool and op not in ("Equal", None):
                dtype = torch.uint8
            made = low.b.op(op or "Equal", low.value(x, dtype), low.value(y, dtype))
            return made if op else low.b.op("Not", made)
        rule(f"{name}.Tensor", f"{name}.Scalar")(lower)
    for name in ("and", "or", "xor"):
        def logical(low, x, y, op=name.capitalize()):
            return low.b.op(op, low.cast(x, torch.bool), low.cast(y, torch.bool))
        rule(f"logical_{name}.default")(logical)

        def bitwise(low, x, y, op=name.capitalize()):
            dtype = low.fake.dtype
            return low.b.op(op if dtype == torch.bool else f"Bitwise{op}", low.value(x, dtype), low.value(y, dtype))
        rule(f"bitwise_{name}.Tensor", f"bitwise_{name}.Scalar")(bitwise)


_add_comparisons()


@rule("where.self")
def _where(low, condition, x, y):
    dtype = low.fake.dtype
    return low.b.op("Where", low.cast(condition, torch.bool), low.value(x, dtype), low.value(y, dtype))


@rule("_to_copy.default", "to.dtype")
def _to_copy(low, x, *_, **__):
    return low.cast(x, low.fake.dtype)


@rule("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")
def _same(low, x, **_):  # pylint: disable=unused-argument
    return x.name


@rule("copy.default")
def _copy(low, x, source, *_):
    return low.b.op("Expand", low.cast(source, x.dtype), low.ints(list(x.shape)))


# Lists of tensors, as optimizers have them

_FOREACH = {"add": ("Scalar", "List", "ScalarList", "Tensor"), "sub": ("Scalar", "List", "ScalarList"),
            "mul": ("Scalar", "List", "ScalarList", "Tensor"), "div": ("Scalar", "List", "ScalarList", "Tensor"),
            "lerp": ("Scalar", "List", "ScalarList"), "addcmul": ("Scalar", "ScalarList"),
            "addcdiv": ("Scalar", "ScalarList"), "pow": ("Scalar", "List", "ScalarList", "ScalarAndTensor"),
            "maximum": ("List",), "minimum": ("List",), "clamp_min": ("Scalar", "List"),
            "clamp_max": ("Scalar", "List"), "neg": ("default",), "abs": ("default",), "sqrt": ("default",),
            "rsqrt": ("default",), "reciprocal": ("default",), "exp": ("default",), "log": ("default",),
            "sign": ("default",), "sigmoid": ("default",), "tanh": ("default",)}


def _add_foreach():
    for name, overloads in _FOREACH.items():
        base = next(RULES[full] for kind in ("Tensor", "default", "Scalar", "Tensor_Tensor")
                    if (full := f"{name}.{kind}") in RULES)
        for overload in overloads:
            def lower(low, *args, base=base, **kwargs):
                fakes, made = low.fake, []
                for i, fake in enumerate(fakes):
                    low.fake = fake
                    made.append(base(low, *(_part(arg, i) for arg in args),
                                     **{key: _part(arg, i) for key, arg in kwargs.items()}))
                return made
            rule(f"_foreach_{name}.{overload}")(lower)


def _part(arg, i):
    return arg[i] if isinstance(arg, (list, tuple)) else arg


_add_foreach()
