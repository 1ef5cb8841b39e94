"""Tests the CPU's device with its NEON kernels, with and without dot products of bytes, under qemu.
The device and its tests are compiled for 64-bit ARM. The tests compare random cases with the scalar
definitions, and the results are compared with those of this machine."""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
for name in ("--source", "--folder", "--cc", "--qemu", "--host-hash"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
# The longest first, with their arguments: fewer random cases than on a real processor.
TESTS = {"conv": ("4",), "matmul": ("4",), "products": ("4",), "device": (), "float_env": ()}
FLAGS = """-std=gnu17 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -D_GNU_SOURCE
    -DREE_CPU_HAVE_NEON -DREE_CPU_HAVE_NEONDOT -I. -Isrc -Itests -Itests/device -Wall -Wextra
    -Werror -Wno-format-truncation""".split()


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def sources(pattern, *without):
    found = [os.path.relpath(path, args.source) for path in glob.glob(os.path.join(args.source, pattern))]
    return sorted(path for path in found if not any(word in path for word in without))


# Stand-ins for libraries that the tests reach and that are not available for ARM. JSON is omitted,
# SHA-256 is tests/neon/sha256.c. MPFR is replaced by functions that only have to be the same in a
# definition and in a kernel, so the self-test's group with MPFR's results is left out.
def stand_ins():
    with open(os.path.join(args.source, "src/repops/elementary64.h")) as file:
        functions = re.findall(r"^double (ree_exact_\w+)\((.*?)\);", file.read(), flags=re.M)
    path = os.path.join(args.folder, "stand_ins.c")
    with open(path, "w") as file:
        file.write('#include "repops/elementary64.h"\nconst void *ree_elementary64_library(void) { return 0; }\n')
        for name, parameters in functions:
            file.write(f"double {name}({parameters}) {{ return {'x + y' if 'y' in parameters else 'x'}; }}\n")
    return path


def without_mpfr():
    """Returns a folder of headers to search first."""
    name = "device/cpu/selftest_recorded.inc"
    with open(os.path.join(args.source, "src", name)) as file:
        text, n = re.subn(r"^GROUP\(map_mpfr, .*\n", "", file.read(), flags=re.M)
    if n != 1:
        sys.exit(f"{name} has {n} groups map_mpfr")
    headers = os.path.join(args.folder, "headers")
    os.makedirs(os.path.dirname(os.path.join(headers, name)), exist_ok=True)
    with open(os.path.join(headers, name), "w") as file:
        file.write(text)
    return headers


def compile_one(source):
    out = os.path.join(args.folder, source.strip("/").replace("/", "_") + ".o")
    flags = ["-march=armv8.2-a+dotprod"] if source.endswith("_neondot.c") else []
    run(args.cc, f"-I{headers}", *FLAGS, *flags, "-c", source, "-o", out, cwd=args.source)
    return out


os.makedirs(args.folder, exist_ok=True)
headers = without_mpfr()
shared = (sources("src/device/cpu/*.c", "avx", "amx") + ["src/device/facts.c", "src/device/program_info.c"] +
          ["src/device/cache_folder.c"] +
          sources("src/repops/*.c", "elementary64") + sources("src/base/*.c", "json", "sha256") + ["tests/neon/sha256.c"] +
          sources("src/device/selftest/*.c") +
          sources("tests/device/cases_*.c") + sources("tests/device/reference_*.c") +
          sources("tests/device/run_*.c") + [stand_ins()])
programs = {name: f"tests/device/cpu_{name}.c" for name in TESTS}
programs["hash"] = "tests/neon/hash.c"
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    objects = list(pool.map(compile_one, shared + list(programs.values())))
mains = dict(zip(programs, objects[len(shared):]))


def try_one(name):
    program = os.path.join(args.folder, name)
    run(args.cc, "-static", "-fopenmp", mains[name], *objects[:len(shared)], "-lm", "-o", program)
    start = time.monotonic()
    done = run(args.qemu, program, *TESTS.get(name, ()))
    return name, done, time.monotonic() - start


results = {}
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for name, done, seconds in pool.map(try_one, mains):
        results[name] = done
        if name != "hash":
            print(f"{name} ({seconds:.0f} s):", done.stdout.strip().replace("\n", "; "), flush=True)
theirs, ours = results["hash"], run(args.host_hash)
if theirs.stderr.strip() != "neon with dot products":
    sys.exit(f"ran on {theirs.stderr}")
if theirs.stdout != ours.stdout:
    sys.exit(f"neon:\n{theirs.stdout}\n{ours.stderr.strip()}:\n{ours.stdout}")
print(f"the same as {ours.stderr.strip()}:\n{ours.stdout}")
