"""Checks which forms of the kernels the build embeds.

Usage: fatbin_test.py FOLDER

FOLDER has the build's MODULE.fatbin files and kernels.c. All of them have the same machine code and
PTX, namely what kernels.c tells the program. There is PTX of compute_80, which runs on every later
architecture, and of the newest architecture of the build.
"""

import pathlib
import re
import struct
import sys

MAGIC = 0xBA55ED50
PTX, ELF = 1, 2


def forms(path):
    """Returns the sets of architectures of the machine code and of the PTX of a fatbin."""
    data = path.read_bytes()
    magic, _, header, size = struct.unpack_from("<IHHQ", data)
    if magic != MAGIC or header + size > len(data):
        raise ValueError(f"{path.name} is not a fatbin")
    found, at, end = {PTX: set(), ELF: set()}, header, header + size
    while at < end:
        kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, at)
        (architecture,) = struct.unpack_from("<I", data, at + 28)
        found[kind].add(architecture)
        at += entry_header + entry_size
    return found[ELF], found[PTX]


def main():
    folder = pathlib.Path(sys.argv[1])
    n_failed = 0

    def check(condition, text):
        nonlocal n_failed
        if not condition:
            print(f"FAILED: {text}")
            n_failed += 1

    source = (folder / "kernels.c").read_text()
    told = [{int(n) for n in re.findall(r"\d+", numbers)} - {0}
            for numbers in re.search(r"binaries\[\] = \{(.*?)\}, ptx\[\] = \{(.*?)\};", source).groups()]
    images = sorted(folder.glob("*.fatbin"))
    check(images, f"no fatbin in {folder}")
    for image in images:
        found = list(forms(image))
        check(found == told, f"{image.name} has {found}, but kernels.c says {told}")
    binaries, ptx = told
    check(80 in ptx, f"no PTX of compute_80, only of {sorted(ptx)}")
    check(max(binaries) in ptx, f"no PTX of the newest architecture, {max(binaries)}")
    print(f"{len(images)} modules, machine code of {sorted(binaries)}, PTX of {sorted(ptx)}, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
