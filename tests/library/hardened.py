"""The programs have the protections that CMakeLists.txt requests from compiler and linker:
position-independent code, data read-only after start-up, no executable stack, checks of the stack
and of the sizes that libc's functions write, indirect branches only to marked places. They contain
no path of the build machine, because two builds would differ in it."""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
for option in ("--ree-run", "--libree", "--archive", "--build", "--source", "--build-type"):
    parser.add_argument(option, required=True)
args = parser.parse_args()
if not shutil.which("readelf"):
    harness.skip("there is no readelf")
failures = []


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def check(path, condition, what):
    if not condition:
        failures.append(f"{os.path.basename(path)}: {what}")


for path in (args.ree_run, args.libree):
    header, segments = readelf(path, "-h"), readelf(path, "-l")
    dynamic, symbols = readelf(path, "-d"), readelf(path, "--dyn-syms")
    stack = re.search(r"GNU_STACK.*\s([RWE ]{3})\s+0x", segments)
    check(path, re.search(r"Type:\s+DYN", header), "is loaded at a fixed address (no -pie)")
    check(path, "GNU_RELRO" in segments, "has relocations that stay writable (no -z relro)")
    check(path, re.search(r"\bNOW\b", dynamic), "binds functions when they are first called (no -z now)")
    check(path, stack and "E" not in stack.group(1), "has an executable stack")
    check(path, not re.search(r"LOAD.*\sRWE\s", segments), "has a segment both writable and executable")
    # clang's OpenMP library is in its own folder.
    searched = [f for line in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic) for f in line.split(":")]
    check(path, all(f.startswith(("/usr/lib/", "$ORIGIN")) for f in searched), f"searches libraries in {searched}")
    check(path, "__stack_chk_fail" in symbols, "does not check its stack (-fstack-protector-strong)")
    if args.build_type != "Debug":  # glibc's checked functions need an optimizing compiler
        check(path, re.search(r"__(snprintf|vsnprintf|memcpy)_chk", symbols),
              "does not check sizes in libc's functions (_FORTIFY_SOURCE)")

# The linker omits a program's mark if the C library's start files lack it, as those of Debian 12
# do. So the members of the archive are checked.
if platform.machine() in ("x86_64", "aarch64"):
    mark = "IBT" if platform.machine() == "x86_64" else "BTI"
    notes = re.split(r"^File: ", readelf(args.archive, "-n"), flags=re.M)[1:]
    without = [note.splitlines()[0] for note in notes if mark not in note]
    check(args.archive, len(notes) > 100, f"has {len(notes)} members, expected some hundreds")
    check(args.archive, not without, f"without {mark}: {' '.join(without[:5])}")

folders = {os.path.realpath(folder).encode() for folder in (args.build, args.source)}
for path in (args.ree_run, args.libree, args.archive):
    with open(path, "rb") as file:
        contents = file.read()
    for folder in folders:
        at = contents.find(folder)
        check(path, at < 0, f"names a folder of this machine: {contents[at:at + 120].split(bytes(1))[0]!r}")

for failure in failures:
    print(failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
