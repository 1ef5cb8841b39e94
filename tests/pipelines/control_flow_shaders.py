"""The shaders of control_flow.py and control_flow_runs.py: control flow and operations that depend on specialization
constants. Shaders of ree have no `do` loops and few switches today."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness

# C is 0, 1, 2 or 5; B is true if C is odd. n is unknown.
HEAD = """#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint C = 0;
layout(constant_id = 2) const bool B = false;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Data { uint words[]; };
layout(push_constant) uniform Push { Data data; };
#define a data.words
uint pick(uint i) { if (C == 1) return a[i]; for (uint k = 0; k < i; k++) if (B) return k; return 7; }
void main() {
    uint n = a[gl_GlobalInvocationID.x];
"""
BODIES = {
    "if": "if (C == 1) a[0] = n; else a[1] = n;",
    "nested": "if (C == 1) { if (n == 2) a[0] = 1; else if (B) a[1] = 2; } else if (C < 3) a[2] = 3;",
    "break": "for (uint i = 0; i < n; i++) { uint v; if (C == 1) { v = a[i] * 3; if (a[7] == 1) a[8] = 2; } else break;"
             " a[i + 1] = v; }",
    "continue": "for (uint i = 0; i < n; i++) { uint v; if (C == 1) { v = a[i] * 3; if (a[7] == 1) a[8] = 2; }"
                " else continue; a[i + 1] = v; }",
    "return": "for (uint i = 0; i < n; i++) { uint v; if (B) { v = a[i]; if (a[7] == 1) a[8] = 2; } else return;"
              " a[i + 1] = v; }",
    "never": "for (uint i = 0; C == 1 && i < n; i++) a[i] = i;",
    "forever": "while (true) { if (C == 1) break; n++; if (n > 5) break; a[n] = n; }",
    "do": "do { a[n] = n; n++; } while (C != 0 && n < 9);",
    "do_once": "do { if (n == 3) break; a[n] = 1; } while (false);",
    "do_constant": "do { a[n] = n; if (n++ == 4) continue; a[0]++; } while (C == 1);",
    "do_ends": "do { a[n] = n; if (n++ == 4) continue; if (n > 9) break; a[0]++; } while (C == 1);",
    "switch": "switch (C) { case 0: a[0] = n; break; case 1: a[1] = n; case 2: a[2] = n; if (n == 1) break; a[3] = n;"
              " break; default: a[4] = n; }",
    "switch_in_loop": "for (uint i = 0; i < n; i++) { switch (C) { case 1: continue; case 2: if (a[i] == 1) break;"
                      " a[i] = 2; break; default: a[i] = 3; } a[i + 1] = i; }",
    "switch_of_unknown": "switch (n) { case 0: if (C == 1) break; a[0] = 1; case 1: a[1] = C; break;"
                         " default: if (B) return; a[2] = 3; }",
    "calls": "a[0] = pick(n) + pick(C); if (C == 2) a[1] = pick(3);",
    "phis": "uint x = n, y = C; for (uint i = 0; i < C; i++) { x += y; if (B) y = x; } a[0] = x; a[1] = y;",
    "short_circuit": "if (C == 1 && a[1] == 2 || B && a[2] == 3) a[0] = n; a[1] = C == 2 ? n : a[4];",
    "arithmetic": "uint c = C; a[0] = c + 3; a[1] = c - 3; a[2] = c * 7; a[3] = 9 / (c + 1); a[4] = 9 % (c + 1);"
                  " a[5] = c >> 1; a[6] = c << 3; a[7] = c | 6; a[8] = c ^ 6; a[9] = c & 6; a[10] = ~c;"
                  " a[11] = uint(-int(c)); a[12] = B ? c : 9;",
    "comparisons": "uint c = C; int s = int(c) - 2; bool b = B, d = c < 2;"
                   " a[0] = d ? n : 7; a[1] = c <= 2 ? n : 7; a[2] = c > 2 ? n : 7; a[3] = c >= 2 ? n : 7;"
                   " a[4] = s < 0 ? n : 7; a[5] = s <= 0 ? n : 7; a[6] = s > 0 ? n : 7; a[7] = s >= 0 ? n : 7;"
                   " a[8] = c == 2 ? n : 7; a[9] = c != 2 ? n : 7; a[10] = b == d ? n : 7; a[11] = b != d ? n : 7;"
                   " a[12] = b && d ? n : 7; a[13] = b || d ? n : 7; a[14] = !b ? n : 7;",
    "shared_work": "barrier(); if (B) { a[0] = atomicAdd(a[1], C); } barrier();",
}
VALUES = (0, 1, 2, 5)  # of C
ENDLESS = {("do_constant", 1)}  # (shader, C) whose loop does not end


def add_tools(parser):
    for name in ("--glslc", "--spirv-opt", "--spirv-val"):
        parser.add_argument(name, required=True)


def modules(tools, folder):
    """Compiles the shaders and yields (title, path): each shader without and with shaders/optimize.py."""
    optimize = HERE.parent.parent / "shaders/optimize.py"
    for title, body in BODIES.items():
        source, plain, optimized = (folder / f"{title}.{end}" for end in ("comp", "spv", "opt.spv"))
        source.write_text(f"{HEAD}    {body}\n}}\n")
        harness.run(tools.glslc, "--target-env=vulkan1.2", "-O0", "-o", plain, source)
        harness.run(sys.executable, "-B", optimize, tools.spirv_opt, tools.spirv_val, plain, optimized)
        yield title, plain
        yield title, optimized
