"""Checks that the PTX of every kernel rounds arithmetic once, operation by operation, as written.

Usage: ptx_test.py NVCC ROOT BUILT [MODULE...] -- FLAG...

Checks every floating-point instruction of cuda/*.cu. BUILT is the folder with the PTX that the build made
of them with the FLAGs; what it lacks is compiled:

  - nothing approximate (.approx, .full), flushed (.ftz) or saturated; no float atomics, no
    tensor-core instruction on floats, none of the hardware's mad, exp, log, sine or tanh;
  - additions, subtractions and multiplications carry .rn, which forbids ptxas to contract them;
  - a multiply-add exists only for an fma in the source: a second compilation, in which fma is a
    call of an unknown function, has none.

The checks are first tried on a kernel that violates them.

If ptxas is beside nvcc, the shared memory of each kernel's own arrays must be what
tests/cuda/emulator/static_shared.def lists. Without MODULEs, all listed kernels must exist.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

FLOAT = r"\.(?:f16x2|bf16x2|f16|bf16|f32|f64)"
INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)")

# Calls that replace fma. The compiler cannot contract anything into them.
NO_FMA = """
extern "C" __device__ float ree_seen_fmaf(float, float, float);
extern "C" __device__ double ree_seen_fma(double, double, double);
#include <math.h>
#define fmaf ree_seen_fmaf
#define fma ree_seen_fma
#define __fmaf_rn ree_seen_fmaf
#define __fma_rn ree_seen_fma
"""

WRONG = """
extern "C" __global__ void wrong(float *x, double *y) {
    x[0] = x[1] * x[2] + x[3];
    x[4] = __expf(x[5]);
    x[6] = __fdividef(x[7], x[8]);
    atomicAdd(&x[9], 1.0f);
    y[0] = y[1] * y[2] + y[3];
}
"""


def compile_ptx(nvcc, source, options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ptx"
        subprocess.run([nvcc, *map(str, options), "-arch=sm_80", "-ptx", "-o", str(out), str(source)], check=True)
        return out.read_text()


def faults(ptx, allow_fma):
    """Returns {what is wrong: how often}, and the number of fused multiply-adds of floats."""
    found, n_fma = {}, 0

    def note(what):
        found[what] = found.get(what, 0) + 1

    for line in ptx.splitlines():
        match = INSTRUCTION.match(line)
        if not match or line.lstrip().startswith((".", "//")):
            continue
        name = match.group(1)
        parts = name.split(".")
        if not re.search(FLOAT + r"(?:\.|$)", name):
            continue
        if {"approx", "full", "ftz", "sat"} & set(parts):
            note(name)
        elif parts[0] in ("mad", "ex2", "lg2", "sin", "cos", "tanh", "atom", "red", "mma", "wmma"):
            note(name)
        elif parts[0] in ("add", "sub", "mul", "div", "sqrt", "rcp") and "rn" not in parts:
            note(name + " without .rn")
        elif parts[0] == "fma":
            n_fma += 1
            if "rn" not in parts:
                note(name + " without .rn")
            elif not allow_fma:
                note(name + " where no fma is written")
    return found, n_fma


def static_shared(ptxas, ptx):
    """Returns {kernel: bytes of its own shared arrays}, as ptxas reports them."""
    if not re.search(r"^\s*\.shared\b", ptx, re.M):
        return dict.fromkeys(re.findall(r"\.entry ree_(\w+)", ptx), 0)  # no such array in the whole module
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "in.ptx"
        source.write_text(ptx)
        command = [str(ptxas), "-v", "-O0", "-arch=sm_80", "-o", str(source.with_suffix(".cubin")), str(source)]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found = {}
    for name, used in re.findall(r"entry function 'ree_(\w+)'[^\n]*\n(?:(?!entry function)[^U])*Used ([^\n]*)", report):
        smem = re.search(r"(\d+) bytes smem", used)
        found[name] = int(smem.group(1)) if smem else 0
    return found


def main():
    end = sys.argv.index("--")
    nvcc, root, built, flags = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[end + 1 :]
    listed = re.findall(r"^MODULE\((\w+)\)", (root / "src/device/cuda/kernels.def").read_text(), re.M)
    modules = sys.argv[4:end] or [*listed, "functions"]
    listed_shared = {name: int(n) for name, n in re.findall(
        r"^SHARED\((\w+), (\d+)\)", (root / "tests/cuda/emulator/static_shared.def").read_text(), re.M)}
    ptxas = pathlib.Path(nvcc).with_name("ptxas")
    n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        wrong = pathlib.Path(folder) / "wrong.cu"
        wrong.write_text(WRONG)
        contracting = [flag.replace("-fmad=false", "-fmad=true") for flag in flags]
        seen, _ = faults(compile_ptx(nvcc, wrong, contracting), allow_fma=False)
        for expected in ("fma.rn.f32 where", "fma.rn.f64 where", "ex2.approx", "div.approx", ".add.f32"):
            if not any(expected in what for what in seen):
                print(f"FAILED: the check does not see {expected}")
                n_failed += 1
        no_fma = pathlib.Path(folder) / "no_fma.h"
        no_fma.write_text(NO_FMA)
        unseen_shared = set(listed_shared)
        for module in modules:
            source = root / "cuda" / (module + ".cu")
            options = [*flags, "-rdc=true"] if module == "functions" else flags
            made = built / (module + ".ptx")
            ptx = made.read_text() if made.exists() else compile_ptx(nvcc, source, options)
            found, n_fma = faults(ptx, allow_fma=True)
            kernels = set(re.findall(r"\.entry ree_(\w+)", ptx))
            unseen_shared -= kernels
            if ptxas.exists() and kernels:
                shared = static_shared(ptxas, ptx)
                if set(shared) != kernels:
                    print(f"FAILED: {module}: ptxas reports other kernels: {sorted(set(shared) ^ kernels)}")
                    n_failed += 1
                for name, n in shared.items():
                    if n != listed_shared.get(name, 0):
                        print(f"FAILED: {name}: {n} bytes of shared arrays, static_shared.def has "
                              f"{listed_shared.get(name, 0)}")
                        n_failed += 1
            # -rdc: the unknown function is defined elsewhere.
            options = [*flags, "-rdc=true", "-include", no_fma]
            hidden, _ = faults(compile_ptx(nvcc, source, options), allow_fma=False)
            for what, n in sorted({**found, **hidden}.items()):
                print(f"FAILED: {module}: {n} x {what}")
                n_failed += 1
            print(f"{module}: {n_fma} fused multiply-adds, all of them written")
    if not sys.argv[4:end] and unseen_shared:
        print(f"FAILED: static_shared.def lists kernels that do not exist: {sorted(unseen_shared)}")
        n_failed += 1
    print(f"{len(modules)} modules, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
