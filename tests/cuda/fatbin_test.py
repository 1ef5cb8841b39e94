"""Checks which forms of the kernels the build embeds.

Usage: fatbin_test.py NVCC FOLDER

FOLDER has the build's MODULE.fatbin files and kernels.c. All of them have the same machine code and
PTX, namely what kernels.c tells the program. There is PTX of compute_80 and of the newest
architecture of the build, and for each architecture that NVCC knows from sm_80 on a form that runs
on it: machine code of the same major and no higher minor capability (on Tegra, of the same one), or
PTX of an older one.
"""

import pathlib
import re
import struct
import subprocess
import sys

MAGIC = 0xBA55ED50
PTX, ELF = 1, 2
TEGRA = {72, 87, 88, 101, 110}


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


def runs_on(architecture, binaries, ptx):
    if any(p <= architecture for p in ptx) or architecture in binaries:
        return True
    return architecture not in TEGRA and any(b // 10 == architecture // 10 and b <= architecture for b in binaries)


def main():
    nvcc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
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
    known = subprocess.run([nvcc, "--list-gpu-code"], check=True, capture_output=True, text=True).stdout
    for architecture in sorted(int(n) for n in re.findall(r"\bsm_(\d+)\b", known)):
        if architecture >= 80:
            check(runs_on(architecture, binaries, ptx), f"nothing runs on sm_{architecture}")
    print(f"{len(images)} modules, machine code of {sorted(binaries)}, PTX of {sorted(ptx)}, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
