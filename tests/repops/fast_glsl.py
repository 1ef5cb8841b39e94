"""fast.glsl and fast_trig.glsl of shaders/include say the same as their C forms in src/repops/scalar.

fast.glsl: the same constants as fast.inc, fast.h and exceptions.h. fast_trig.glsl: the same constants as fast_trig.inc,
and the same operations on doubles and exceptions as fast_trig.h; how signs and NaN are put together is left to
device/vulkan_functions.
"""
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


def double_of_words(high, low):
    return struct.unpack(">d", bytes.fromhex(high + low))[0]


def statements(text):
    """Returns the text in one form for both languages: without comments, types and qualifiers; numbers as decimals."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"REE_DOUBLE\(0x([0-9A-F]{8})u,\s*0x([0-9A-F]{8})u\)",
                  lambda m: repr(double_of_words(m[1], m[2])), text)
    text = re.sub(HEX_FLOAT, lambda m: repr(float.fromhex(m[0])), text)
    text = text.replace("1.0lf", "1.0").replace("angle.r =", "r =")
    text = re.sub(r"\b(precise|double|bool|const)\b", "", text)
    return re.sub(r"\s+", "", text)


def assigned(text, name):
    """Returns the expressions that are assigned to a variable, in order."""
    return re.findall(r"(?<![\w.])%s=([^;]*?)(?=;|,\w+=)" % name, text)


def check_trig(scalar, glsl):
    c = (scalar / "fast_trig.h").read_text()
    inc = (scalar / "fast_trig.inc").read_text()
    macro = r"#define (REE_FAST_\w+) (.*)"
    constants = {name: statements(value) for name, value in re.findall(macro, inc)}
    check(len(constants) == 9 and constants == {name: statements(value) for name, value in re.findall(macro, glsl)},
          "fast_trig.glsl and fast_trig.inc define different constants")
    both = [statements(text) for text in (between(c, "ree_fast_reduce_angle(double", "\n}"),
                                          between(glsl, "ree_fast_reduce_angle(const", "\n}"))]
    names = ["by_2", "by_1", *(f"c{i}" for i in range(6)), *(f"p{i}" for i in range(5)),
             "fours", "rest", "shifted", "quadrant", "fraction", "r"]
    for name in names:
        found = [assigned(text, name) for text in both]
        check(len(found[0]) == 1 and found[0] == found[1], f"the reduction of angles: {name} is assigned {found}")
    for name in ("sin", "cos"):
        found = [statements(between(text, f"ree_fast_poly_{name}({argument} t)", "\n}")).replace("+-", "-")
                 for text, argument in ((inc, "double"), (glsl, "const double"))]
        for variable in ("t2", "even", "odd"):
            both = [assigned(text, variable) for text in found]
            check(len(both[0]) == 1 and both[0] == both[1], f"the polynomial of {name}: {variable} is assigned {both}")
        check("returneven+t*odd" in found[0] and "p=even+t*odd;returnp" in found[1],
              f"the polynomial of {name}: another last step")
        found = [statements(between(text, f"double ree_fast_{name}_double(", "\n}")) for text in (c, glsl)]
        step = {"sin": "r-r*(t*ree_fast_poly_sin(t))", "cos": "1.0-t*ree_fast_poly_cos(t)"}[name]
        check(all("t=r*r;" in text for text in found), f"{name}: t is not r * r")
        check(f"return{step};" in found[0] and f"y={step};returny;" in found[1], f"{name}: other steps than {step}")
    for name in ("sin", "cos", "tan"):
        bodies = [between(text, f" ree_fast_{name}_f32(", "\n}") for text in (c, glsl)]
        exceptions = [re.findall(pattern, body) for pattern, body in
                      zip((r"REE_EXCEPT\(a, (0x\w+), (0x\w+), r\)", r"a == (0x\w+) \? (0x\w+) : r"), bodies)]
        check(exceptions[0] == exceptions[1], f"{name}: the exceptions are {exceptions}")
        words = [re.findall(r"0x\w+", body) for body in bodies]
        check(words[0] == words[1], f"{name}: the words are {words}")
    quotients = [statements(between(text, " ree_fast_tan_f32(", "\n}")) for text in (c, glsl)]
    check(all("(odd?c:s)/(odd?-s:c)" in text for text in quotients), "tan: another quotient")
    signs = [re.sub(r"(\d)u\b", r"\1", statements(between(text, " ree_fast_sin_of_sum(", "\n}"))) for text in (c, glsl)]
    check("sign=(quadrant&2)<<62;" in signs[0] and "^((quadrant&2)<<30);" in signs[1] and
          all("y=(quadrant&1)!=0?c:s;" in text and "quadrant=angle.quadrant+n;" in text for text in signs),
          "sin: the quadrant is used in another way")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    args = parser.parse_args()
    scalar = args.source / "src/repops/scalar"
    shaders = args.source / "shaders/include"
    glsl = (shaders / "fast.glsl").read_text()
    inc, fast = (scalar / "fast.inc").read_text(), (scalar / "fast.h").read_text()
    words = re.findall(r"REE_DOUBLE\(0x([0-9A-F]{8})u, 0x([0-9A-F]{8})u\)", glsl)
    found = [double_of_words(high, low) for high, low in words]
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
    check_trig(scalar, (shaders / "fast_trig.glsl").read_text())
    return harness.finish()


sys.exit(main())
