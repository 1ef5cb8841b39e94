"""shaders/include/fast.glsl has the same constants as fast.inc, fast.h and exceptions.h of src/repops/scalar."""
import argparse
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness
from harness import check

HEX_FLOAT = re.compile(r"-?0x[0-9a-f.]+p[+-]?\d+")


def doubles_of(text):
    return [float.fromhex(number) for number in HEX_FLOAT.findall(text)]


def between(text, begin, end):
    at = text.index(begin)
    return text[at : text.index(end, at)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    args = parser.parse_args()
    scalar = args.source / "src/repops/scalar"
    glsl = (args.source / "shaders/include/fast.glsl").read_text()
    inc, fast = (scalar / "fast.inc").read_text(), (scalar / "fast.h").read_text()
    words = re.findall(r"REE_DOUBLE\(0x([0-9A-F]{8})u, 0x([0-9A-F]{8})u\)", glsl)
    found = [struct.unpack(">d", bytes.fromhex(high + low))[0] for high, low in words]
    constant = {name: float.fromhex(value) for name, value in re.findall(r"#define REE_FAST_(\w+) (\S+)", inc)}
    shift = float.fromhex("0x1.8p52")
    near = doubles_of(between(fast, "double near =", ";"))
    expected = [constant["LOG2E"], shift, shift, constant["LN2_HIGH"], constant["LN2_LOW"],
                *doubles_of(between(inc, "ree_fast_poly_exp", "return")), 0.25 - near[0]]
    check(len(near) == 1 and shift in doubles_of(fast), "fast.h has changed")
    check(len(expected) == 17 and found == expected, f"fast.glsl has {found}, fast.inc and fast.h {expected}")
    for name in ("exp", "tanh", "sigmoid"):
        at = (scalar / "exceptions.h").read_text().partition(f"ree_except_{name}(")[2].partition("return r;")[0]
        exceptions = re.findall(r"REE_EXCEPT\(x, (0x\w+), (0x\w+), r\)", at)
        body = between(glsl, f"uint ree_fast_{name}_f32(", "\n}")
        in_glsl = re.findall(r"if \(x == (0x\w+)\) return (0x\w+);", body)
        check(in_glsl == exceptions, f"{name}: fast.glsl has the exceptions {in_glsl}, exceptions.h {exceptions}")
        bounds = [re.findall(r", (\d+\.0)(?:lf)?\)", text)
                  for text in (between(fast, f"uint32_t ree_fast_{name}_f32(", "\n}"), body)]
        check(len(bounds[0]) == 1 and bounds[0] == bounds[1], f"{name}: the arguments are limited to {bounds}")
    return harness.finish()


sys.exit(main())
