"""Checks the JIT-generated kernels for expressions (src/device/cuda/ptx.c) with NVIDIA's assembler.

Usage: jit_ptx_test.py PTXAS PROGRAM [N]

PROGRAM, device_cuda_jit, writes the modules of N random maps. ptxas must accept each of them,
each for the next architecture in turn, without a spill. ptx_test.py's rules must hold for each:
arithmetic is rounded once, operation by operation, and a kernel has the fmas of its expression only.
No store may be narrower than a register of 32 or 64 bits: ptxas converts a float in such a register to an integer.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import ptx_test

ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_120"]
FMAS = 5  # instructions per fma of the expression: four for four results, and one for a single result
BITS = {"h": 16, "r": 32, "d": 64}  # of registers, by the first letter of their names


def narrow_stores(text):
    """Returns the stores that write less than a register of 32 or 64 bits."""
    stores = re.findall(r"^(st\.global[\w.]*\.b(\d+) \[.*\], \{?%([hrd]).*)$", text, re.M)
    return [line for line, bits, letter in stores if letter != "h" and int(bits) < BITS[letter]]


def main():
    ptxas, program = sys.argv[1], sys.argv[2]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 120
    n_failed, most_registers, n_called, n_stores, n_with_fma = 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        numbers = subprocess.run([program, str(n), folder], check=True, stdout=subprocess.PIPE, text=True).stdout
        n_expected = [FMAS * int(number) for number in numbers.split()]
        for i in range(n):
            source = pathlib.Path(folder) / f"{i}.ptx"
            text = source.read_text()
            arch = ARCHITECTURES[i % len(ARCHITECTURES)]
            command = [ptxas, "-v", f"-arch={arch}", "-o", "/dev/null", str(source)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                print(f"FAILED: {i}, {arch}: {result.stderr.strip().splitlines()[0]}")
                n_failed += 1
                continue
            if re.search(r"[1-9]\d* bytes spill", result.stderr):
                print(f"FAILED: {i}, {arch}: spills")
                n_failed += 1
            registers = max(map(int, re.findall(r"Used (\d+) registers", result.stderr)))
            most_registers = max(most_registers, registers)
            n_called += ".func" in text
            kernel = text[text.index(".visible .entry") :]
            found, n_fma = ptx_test.faults(kernel, allow_fma=True)
            if n_fma != n_expected[i]:
                print(f"FAILED: {i}: {n_fma} fmas, expected {n_expected[i]}")
                n_failed += 1
            n_with_fma += n_fma > 0
            found.update(ptx_test.faults(text, allow_fma=True)[0])
            n_stores += text.count("st.global")
            for line in narrow_stores(kernel):
                print(f"FAILED: {i}: {line}")
                n_failed += 1
            for what, times in sorted(found.items()):
                print(f"FAILED: {i}: {times} x {what}")
                n_failed += 1
    print(f"{n} kernels, {n_called} with calls, {n_with_fma} with fmas, at most {most_registers} registers, "
          f"{n_failed} failed")
    # A test that checked nothing must fail.
    return 1 if n_failed or n_stores == 0 or n_with_fma == 0 or n_called == 0 or n_called == n else 0


if __name__ == "__main__":
    sys.exit(main())
