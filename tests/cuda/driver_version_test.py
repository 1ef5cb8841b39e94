"""Checks the oldest driver that ree claims to work with.

Usage: driver_version_test.py TYPEDEFS ROOT

TYPEDEFS is NVIDIA's cudaTypedefs.h, which names each function of the driver with the version that
introduced it (PFN_cuLaunchKernel_v4000). The newest function of src/device/cuda/driver.h decides
REE_CUDA_DRIVER_VERSION, and the documents must name that version.
"""

import pathlib
import re
import sys

DOCUMENTS = ["README.md", "third_party/README.md"]


def main():
    typedefs, root = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    header = (root / "src/device/cuda/driver.h").read_text()
    known = {}
    for name, version in re.findall(r"\bPFN_(cu\w+?)_v(\d+)\b", typedefs):
        known.setdefault(name, set()).add(int(version))
    symbols = re.findall(r"\bDRIVER\(\s*\\?\s*\w+,\s*(cu\w+)", header)
    n_failed, newest = 0, (0, "")
    for symbol in symbols:
        name, _, number = symbol.partition("_v")
        versions = sorted(known.get(name, ()))
        # The first version has no suffix, the second ends with _v2. If the header has fewer versions
        # than the suffix says, its last one counts.
        at = int(number or 1) - 1
        if not versions:
            print(f"FAILED: {symbol} is not in NVIDIA's header")
            n_failed += 1
            continue
        newest = max(newest, (versions[min(at, len(versions) - 1)], symbol))
    claimed = int(re.search(r"#define REE_CUDA_DRIVER_VERSION (\d+)", header).group(1))
    if newest[0] != claimed:
        print(f"FAILED: {newest[1]} requires {newest[0]}, but REE_CUDA_DRIVER_VERSION is {claimed}")
        n_failed += 1
    text = f"CUDA {claimed // 1000}.{claimed % 1000 // 10}"
    for document in DOCUMENTS:
        if text not in " ".join((root / document).read_text().split()):
            print(f"FAILED: {document} does not name the oldest driver, {text}")
            n_failed += 1
    print(f"{len(symbols)} functions, the newest is {newest[1]} of {newest[0]}, {n_failed} failed")
    return 1 if n_failed or len(symbols) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
