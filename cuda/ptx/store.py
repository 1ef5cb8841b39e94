"""Stores the kernels of cuda/ as PTX, and reads what is stored. README.md beside this file says why.

Usage:
    store.py --write [--nvcc NVCC]         compiles every module and stores its PTX (a few minutes)
    store.py --check [--nvcc NVCC FOLDER...]
                                           fails if the sources are not those of the stored PTX. If NVCC has the
                                           release that made it, MODULE.ptx in the FOLDERs must be what is stored
    store.py --extract FOLDER              writes every MODULE.ptx to FOLDER

The stored text is nvcc's, except for what plain() changes.
"""

import argparse
import hashlib
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORD = HERE / "record.json"
COMMAND = f"python3 {HERE.relative_to(ROOT)}/store.py --write"

# The PTX ISA that the stored text declares, and the first CUDA driver that compiles it (11070: 11.7). A driver compiles
# no text that declares a newer ISA than its own, and nvcc declares that of its own release, whatever the text contains.
# So the text declares the oldest one that has all it contains; ptxas refuses a text that contains more.
PTX_VERSION, DRIVER = "7.7", 11070

# Every GPU from the architecture on can use the text: 8.0 is the oldest with asynchronous copies and the mma of bytes.
# JIT-generated kernels call the functions, also on 7.5 (cuda/kernels.cmake).
KERNELS = ["-arch=compute_80", "-ptx"]
FUNCTIONS = ["-arch=compute_75", "-rdc=true", "-ptx"]


def fail(message):
    sys.exit(f"store.py: {message}")


def sha256(data):
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


# What the PTX is made from

def kernels():
    """Returns {module: its kernels} of kernels.def, and no kernels for functions.cu."""
    found = {}
    text = (ROOT / "src/device/cuda/kernels.def").read_text()
    for kind, name in re.findall(r"^(MODULE|KERNEL)\((\w+)\)", text, re.M):
        if kind == "MODULE":
            found[name] = module = []
        else:
            module.append(f"ree_{name}")
    return {**found, "functions": []}


def flags(module):
    """Returns the flags that kernels.cmake gives nvcc, with paths relative to the root of the tree."""
    text = (ROOT / "cuda/kernels.cmake").read_text()
    found = re.search(r"^set\(cuda_flags ([^)]*)\)", text, re.M)
    if not found:
        fail("cuda/kernels.cmake: set(cuda_flags ...) was not found")
    words = found[1].replace("${PROJECT_SOURCE_DIR}", ".").replace("${cuda_dir}", "./cuda").split()
    return [*words, *(FUNCTIONS if module == "functions" else KERNELS)]


# A comment, or a literal in which nothing is a comment.
COMMENT = re.compile(r"""(//[^\n]*|/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def digest(file):
    """Returns the digest of a source without comments, blank lines and repeated blanks: they change no PTX."""
    text = COMMENT.sub(lambda match: " " if match[1] else match[0], file.read_text())
    # The version of ree is in a header that all kernels include.
    text = re.sub(r"^#define REE_VERSION_\w+ \d+ *$", "", text, flags=re.M)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return sha256("\n".join(line for line in lines if line))


# The text

def plain(text):
    """Returns nvcc's PTX in the form that is stored.

    - It declares PTX_VERSION.
    - used_bytes_mask is a comment. It needs PTX 8.3 and only tells the compiler which bytes of a load are used. The
      tests' interpreter reads it in the comment too.
    - Names that are local to the file have zeros in place of numbers that nvcc makes from the file's path.
    """
    text = re.sub(r"^\.version \d+\.\d+$", f".version {PTX_VERSION}", text, count=1, flags=re.M)
    text = re.sub(r'^([ \t]*)(\.pragma "used_bytes_mask \w+";)$', r"\1// \2", text, flags=re.M)
    text = re.sub(r"_INTERNAL_[0-9a-f]{8}_(\w+?_cu)_[0-9a-f]{8}", r"_INTERNAL_00000000_\1_00000000", text)
    return re.sub(r"__nv_static_(\d+)__[0-9a-f]{8}_(\w+?_cu)_[0-9a-f]{8}", r"__nv_static_\1__00000000_\2_00000000", text)


def stored(module):
    """Returns the text of a module."""
    file = HERE / f"{module}.ptx.xz"
    try:
        return lzma.decompress(file.read_bytes()).decode()
    except (OSError, ValueError, lzma.LZMAError) as error:
        fail(f"{file.relative_to(ROOT)} cannot be read: {error}")


def store(module, text):
    # Another version of xz may compress differently: an unchanged text stays as it is.
    file = HERE / f"{module}.ptx.xz"
    if not file.exists() or stored(module) != text:
        file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


# Compiling

def release(nvcc):
    """Returns the exact release of nvcc, such as 13.0.88."""
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"release [\d.]+, V([\d.]+)", text)
    return found[1] if found else fail(f"{nvcc} --version prints no release")


def compile_module(nvcc, ptxas, module, folder):
    """Returns the text of a module and the sources, relative to the root of the tree."""
    ptx, depends = folder / f"{module}.ptx", folder / f"{module}.d"
    command = [nvcc, *flags(module), "-MD", "-MF", depends, "-MT", "ptx", "-o", ptx, f"cuda/{module}.cu"]
    subprocess.run(command, cwd=ROOT, check=True)
    text = plain(ptx.read_text())
    # Nothing of this machine: no paths and no lines of source files.
    for line in text.splitlines():
        if re.search(r"^\s*\.(file|loc)\b|(^|[^/])/[\w.]", line):
            fail(f"{module}.ptx contains a path: {line.strip()}")
    ptx.write_text(text)
    architecture = re.search(r"compute_(\d+)", " ".join(flags(module)))[1]
    subprocess.run([ptxas, f"-arch=sm_{architecture}", "-c", "-O0", "-o", folder / "cubin", ptx], check=True)
    words = depends.read_text().replace("\\\n", " ").partition(":")[2].split()
    paths = (os.path.relpath(ROOT / word, ROOT) for word in words)
    return text, sorted({path for path in paths if not path.startswith("..")})


def write(nvcc):
    nvcc = shutil.which(nvcc) or fail(f"{nvcc} was not found (--nvcc)")
    ptxas = shutil.which(pathlib.Path(nvcc).with_name("ptxas")) or fail("ptxas was not found beside nvcc")
    modules, users = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for module in kernels():
            print(f"{module}: compiling", flush=True)
            text, used = compile_module(nvcc, ptxas, module, pathlib.Path(folder))
            store(module, text)
            modules[module] = sha256(text)
            for path in used:
                users.setdefault(path, []).append(module)
    for file in HERE.glob("*.ptx.xz"):
        if file.name.removesuffix(".ptx.xz") not in modules:
            file.unlink()
    record = {
        "nvcc": release(nvcc), "ptx": PTX_VERSION, "driver": DRIVER,
        "flags": {module: " ".join(flags(module)) for module in ("kernels", "functions")},
        # Digests of the texts.
        "modules": modules,
        # Digests of the sources, and the modules that they are in.
        "sources": {path: " ".join([digest(ROOT / path), *users[path]]) for path in sorted(users)}}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(modules)} modules, {sum(file.stat().st_size for file in HERE.glob('*.ptx.xz')) / 1e3:.0f} kB")


# Reading

def stale_sources(record):
    """Returns one line for each source that is not what the PTX was made from."""
    lines = []
    for path, recorded in record["sources"].items():
        file, (known, *users) = ROOT / path, recorded.split()
        if not file.exists():
            lines.append(f"{path} was removed since the PTX of {', '.join(users)} was stored")
        elif digest(file) != known:
            lines.append(f"{path} changed since the PTX of {', '.join(users)} was stored")
    lines += [f"module {name} has no PTX" for name in kernels() if name not in record["modules"]]
    if any(recorded != " ".join(flags(module)) for module, recorded in record["flags"].items()):
        lines.append("the flags of nvcc changed since the PTX was stored")
    if (record["ptx"], record["driver"]) != (PTX_VERSION, DRIVER):
        lines.append("the version of the PTX changed since it was stored")
    return lines


def broken_texts(record):
    """Returns one line for each stored text that is not the recorded one."""
    lines = []
    for name, names in kernels().items():
        if name not in record["modules"]:
            continue
        text = stored(name)
        if sha256(text) != record["modules"][name]:
            lines.append(f"{name}.ptx.xz is not what record.json says")
        if f"\n.version {record['ptx']}\n" not in text:
            lines.append(f"{name}.ptx.xz does not declare PTX {record['ptx']}")
        lines += [f"{name}.ptx.xz has no kernel {kernel}" for kernel in names if f".entry {kernel}(" not in text]
    known = {f"{name}.ptx.xz" for name in record["modules"]}
    return lines + [f"{file.name} is not in record.json" for file in HERE.glob("*.ptx.xz") if file.name not in known]


def different_texts(record, folders):
    """Returns one line for each module that nvcc compiles to another text."""
    lines = []
    for name in record["modules"]:
        files = [folder / f"{name}.ptx" for folder in folders if (folder / f"{name}.ptx").exists()]
        if not files:
            lines.append(f"the build has no {name}.ptx")
        elif plain(files[0].read_text()) != stored(name):
            lines.append(f"nvcc makes another PTX of {name} than the stored one")
    return lines


def check(nvcc, folders):
    record = json.loads(RECORD.read_text())
    lines = stale_sources(record) + broken_texts(record)
    compared = "not compared with nvcc's"
    if nvcc and folders:
        found = release(nvcc)
        if found == record["nvcc"]:
            lines += different_texts(record, folders)
            compared = f"compared with nvcc {found}"
        else:
            compared = f"made by nvcc {record['nvcc']}, not compared with nvcc {found}"
    for line in lines:
        print(f"FAILED: {line}")
    if lines:
        print(f"Run '{COMMAND}', which needs nvcc, and commit cuda/ptx (cuda/ptx/README.md).")
    print(f"{len(record['modules'])} modules, {len(record['sources'])} sources, {compared}, {len(lines)} failed")
    return 1 if lines else 0


def extract(folder):
    record = json.loads(RECORD.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    for name, known in record["modules"].items():
        text = stored(name)
        if sha256(text) != known:
            fail(f"{name}.ptx.xz is not what record.json says")
        (folder / f"{name}.ptx").write_text(text)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    mode.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    mode.add_argument("--extract", type=pathlib.Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--nvcc", help="nvcc of the CUDA toolkit")
    parser.add_argument("folders", nargs="*", type=pathlib.Path, metavar="FOLDER", help="folders with the build's PTX")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    elif arguments.check:
        return check(arguments.nvcc, arguments.folders)
    else:
        extract(arguments.extract)
    return 0


if __name__ == "__main__":
    sys.exit(main())
