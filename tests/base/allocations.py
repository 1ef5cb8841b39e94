"""Checks the sources of libree: they allocate through base/memory.h only. Memory that the C library
allocates (getline, realpath) is released by free, in the lines listed here."""
import argparse
import glob
import os
import re
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True)
args = parser.parse_args()
# memory.c implements base/memory.h. The MPI module is a separate library, which gets ree_realloc as a pointer.
WITHOUT = ("src/base/memory.c", "src/transport/mpi/")
LIBC = {("src/device/selftest/identity.c", "free(line);"), ("src/device/selftest/identity.c", "free(path);"),
        ("graph/ir/mapping.c", "free(path); // allocated by libc")}
CALL = re.compile(r"(?<![\w.>])(?:malloc|calloc|realloc|reallocarray|strdup|strndup|v?asprintf|aligned_alloc|"
                  r"posix_memalign|memalign|free)\s*\(")

wrong, found, n = [], set(), 0
for folder in ("src", "graph"):
    for path in sorted(glob.glob(os.path.join(args.source, folder, "**/*.[ch]"), recursive=True)):
        name = os.path.relpath(path, args.source)
        if name.startswith(WITHOUT):
            continue
        with open(path) as file:
            for i, line in enumerate(file, 1):
                n += len(re.findall(r"\bree_(?:alloc|realloc|free)\w*\(", line))
                if not CALL.search(re.sub(r'"(?:\\.|[^"\\])*"', '""', line.split("//")[0])):
                    continue
                if (name, line.strip()) in LIBC:
                    found.add((name, line.strip()))
                else:
                    wrong.append(f"{name}:{i}: {line.strip()}")
wrong += [f"{name}: '{line}' was not found" for name, line in sorted(LIBC - found)]
if n < 500:
    wrong.append(f"only {n} calls of base/memory.h were found")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{n} calls of base/memory.h")
