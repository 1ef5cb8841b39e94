"""The PTX stored in cuda/ptx is that of the sources.

Usage: ptx_stored_test.py ROOT [--nvcc NVCC FOLDER...]

cuda/ptx/store.py --check compares digests and, with nvcc, the PTX that the build made (the modules in the FOLDERs). It
must also find every fault that is planted in a copy of what it reads.
"""

import json
import lzma
import pathlib
import shutil
import subprocess
import sys
import tempfile

ADVICE = "Run 'python3 cuda/ptx/store.py --write'"


def check(root, arguments=()):
    command = [sys.executable, "-B", str(root / "cuda/ptx/store.py"), "--check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def copy_tree(root, copy):
    record = json.loads((root / "cuda/ptx/record.json").read_text())
    for path in [*record["sources"], "cuda/kernels.cmake", "src/device/cuda/kernels.def"]:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, copy / path)
    shutil.copytree(root / "cuda/ptx", copy / "cuda/ptx")


def replaced(old, new):
    def replace(file):
        text = file.read_text()
        if old not in text:
            sys.exit(f"{file} does not contain {old!r}")
        file.write_text(text.replace(old, new, 1))
    return replace


def flip_text(file):
    """Stores another text, correctly compressed."""
    file.write_bytes(lzma.compress(lzma.decompress(file.read_bytes()).replace(b"add.rn.f32", b"add.rz.f32", 1)))


def truncate(file):
    file.write_bytes(file.read_bytes()[:-100])


# (file, change, what the check must say; None: nothing, because the PTX stays the same)
CHANGES = [
    ("cuda/softmax.cu", replaced("#include", "// softmax: a comment // of \"two\" lines\n\n#include"), None),
    ("src/ree/core.h", replaced("#define REE_VERSION_PATCH ", "#define REE_VERSION_PATCH 1"), None),
    ("cuda/softmax.cu", replaced("__syncthreads();", ""),
     "cuda/softmax.cu changed since the PTX of softmax was stored"),
    ("cuda/rows.h", replaced("#include", "#define REE_NEW 1\n#include"),
     "cuda/rows.h changed since the PTX of softmax, norm, attention was stored"),
    ("src/repops/scalar/exp.h", pathlib.Path.unlink, "src/repops/scalar/exp.h was removed since"),
    ("cuda/kernels.cmake", replaced("-fmad=false ", "-fmad=true "), "the flags of nvcc changed"),
    ("src/device/cuda/kernels.def", replaced("KERNEL(map_any)", "KERNEL(map_any)\nKERNEL(map_new)"),
     "map.ptx.xz has no kernel ree_map_new"),
    ("src/device/cuda/kernels.def", replaced("MODULE(map)", "MODULE(fresh)\nMODULE(map)"),
     "module fresh has no PTX"),
    ("cuda/ptx/store.py", replaced('PTX_VERSION, DRIVER = "7.7", 11070', 'PTX_VERSION, DRIVER = "8.3", 12030'),
     "the version of the PTX changed"),
    ("cuda/ptx/norm.ptx.xz", flip_text, "norm.ptx.xz is not what record.json says"),
    ("cuda/ptx/norm.ptx.xz", truncate, "cuda/ptx/norm.ptx.xz cannot be read"),
    ("cuda/ptx/norm.ptx.xz", pathlib.Path.unlink, "cuda/ptx/norm.ptx.xz cannot be read"),
    ("cuda/ptx/norm.ptx.xz", lambda file: shutil.copy(file, file.with_name("old.ptx.xz")),
     "old.ptx.xz is not in record.json"),
]


def main():
    root, arguments = pathlib.Path(sys.argv[1]), sys.argv[2:]
    code, output = check(root, arguments)
    print(output, end="")
    if code:
        return 1  # faults of a stale tree are not those that are planted below
    n_failed = 0
    for path, change, expected in CHANGES:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            copy_tree(root, copy)
            change(copy / path)
            code, output = check(copy)
        lines = output.splitlines()
        if expected is None:
            passed = code == 0
        else:
            # One finding, and then what to do. A text that cannot be read ends the check instead.
            ends = "cannot be read" in expected
            passed = code == 1 and sum(expected in line for line in lines) == 1
            passed = passed and sum(line.startswith("FAILED") for line in lines) == (0 if ends else 1)
            passed = passed and (ADVICE in output) != ends
        if not passed:
            print(f"FAILED: {path}: expected {expected or 'no finding'}, not:\n{output}")
            n_failed += 1
    if arguments:
        # A build whose nvcc makes another text.
        with tempfile.TemporaryDirectory() as folder:
            built = pathlib.Path(folder)
            text = (pathlib.Path(arguments[2]) / "norm.ptx").read_text()
            (built / "norm.ptx").write_text(text.replace("add.rn.f32", "sub.rn.f32", 1))
            code, output = check(root, [*arguments[:2], str(built), *arguments[2:]])
        if "not compared" not in output and (code != 1 or "another PTX of norm than the stored" not in output):
            print(f"FAILED: another PTX of norm was not found:\n{output}")
            n_failed += 1
    print(f"{len(CHANGES)} changes, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
