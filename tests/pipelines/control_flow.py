"""Specialized modules stay valid SPIR-V, whatever control flow depends on the constants: each shader below, compiled
without and with shaders/optimize.py, for several values of its constants. Shaders of ree have no `do` loops and few
switches today."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import check

parser = argparse.ArgumentParser(description=__doc__)
for name in ("--glslc", "--spirv-opt", "--spirv-val", "--program"):
    parser.add_argument(name, required=True)
args = parser.parse_args()

# C is 0, 1, 2 or 5; B is true if C is odd. n is unknown.
HEAD = """#version 460
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint C = 0;
layout(constant_id = 2) const bool B = false;
layout(set = 0, binding = 0) buffer Data { uint a[]; };
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
    "switch": "switch (C) { case 0: a[0] = n; break; case 1: a[1] = n; case 2: a[2] = n; if (n == 1) break; a[3] = n;"
              " break; default: a[4] = n; }",
    "switch_in_loop": "for (uint i = 0; i < n; i++) { switch (C) { case 1: continue; case 2: if (a[i] == 1) break;"
                      " a[i] = 2; break; default: a[i] = 3; } a[i + 1] = i; }",
    "switch_of_unknown": "switch (n) { case 0: if (C == 1) break; a[0] = 1; case 1: a[1] = C; break;"
                         " default: if (B) return; a[2] = 3; }",
    "calls": "a[0] = pick(n) + pick(C); if (C == 2) a[1] = pick(3);",
    "phis": "uint x = n, y = C; for (uint i = 0; i < C; i++) { x += y; if (B) y = x; } a[0] = x; a[1] = y;",
    "short_circuit": "if (C == 1 && a[1] == 2 || B && a[2] == 3) a[0] = n; a[1] = C == 2 ? n : a[4];",
    "shared_work": "barrier(); if (B) { a[0] = atomicAdd(a[1], C); } barrier();",
}


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for title, body in BODIES.items():
        source, plain, optimized, out = (folder / f"{title}.{end}" for end in ("comp", "spv", "opt.spv", "out.spv"))
        source.write_text(f"{HEAD}    {body}\n}}\n")
        done = run(args.glslc, "--target-env=vulkan1.2", "-O0", "-o", plain, source)
        check(done.returncode == 0, done.stderr)
        optimize = HERE.parent.parent / "shaders/optimize.py"
        done = run(sys.executable, "-B", optimize, args.spirv_opt, args.spirv_val, plain, optimized)
        check(done.returncode == 0, done.stderr)
        for module in (plain, optimized):
            for value in (0, 1, 2, 5):
                done = run(args.program, module, out, "0=64", f"1={value}", f"2={value % 2}")
                if not check(done.returncode == 0, f"{module.name}, C = {value}: {done.stdout}"):
                    continue
                done = run(args.spirv_val, "--target-env", "vulkan1.2", out)
                check(done.returncode == 0, f"{module.name}, C = {value}: {done.stdout}{done.stderr}")
sys.exit(harness.finish())
