"""Looking inside: the kernels that a model's dispatches launch."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ree._ree import __file__ as extension
from ree.errors import NotFoundError

# The endings of files' names, by format.
_ENDINGS = {"SPIR-V": ".spv", "PTX": ".ptx", "fatbin": ".fatbin"}


class Kernel(NamedTuple):
    """Code that dispatches run on a device.

    name      of the shader, of CUDA's kernel, or of the function of libree.so
    format    "SPIR-V", "PTX", "fatbin" (NVIDIA's container of a module), or "": the code is in libree.so
    code      bytes; b"" for the last format

    str(kernel) is the text."""
    name: str
    format: str
    code: bytes

    @property
    def text(self) -> str:
        """The code as text: PTX as it is, SPIR-V by spirv-dis, a fatbin by cuobjdump, and the machine code of a function
        by objdump. A function calls others, which it does not contain. Raises NotFoundError if the program that
        prints it is not installed, or if libree.so was stripped of its symbols."""
        if self.format == "PTX":
            return self.code.decode("utf-8", "replace")
        if self.format == "SPIR-V":
            return _printed("spirv-dis", "spirv-tools", lambda path: [path], self.code)
        if self.format == "fatbin":
            return _printed("cuobjdump", "nvidia-cuda-toolkit", lambda path: ["--dump-ptx", path], self.code)
        library = next(pathlib.Path(extension).parent.glob("libree.so*"), None) or _mapped_library()
        text = _printed("objdump", "binutils",
                        lambda _: ["--disassemble=" + self.name, "--no-show-raw-insn", str(library)])
        if f"<{self.name}>:" not in text:
            raise NotFoundError(f"{library} has no symbol '{self.name}': it was stripped, or this is another library's code")
        return text

    def __str__(self) -> str:
        return self.text


def _mapped_library():
    """Path of the libree.so that this process uses."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "/libree.so" in line:
            return pathlib.Path(line[line.index("/"):])
    raise NotFoundError("libree.so is not among the files that this process uses")


def _printed(program: str, package: str, arguments: Callable[[str], List[str]], code: Optional[bytes] = None) -> str:
    """What a program prints about a file with this code."""
    found = shutil.which(program)
    if not found:
        raise NotFoundError(f"{program} is not installed (in Debian's package {package})")
    with tempfile.TemporaryDirectory(prefix="ree-") as folder:
        path = os.path.join(folder, "code")
        if code is not None:
            pathlib.Path(path).write_bytes(code)
        done = subprocess.run([found, *arguments(path)], capture_output=True, check=False)
    if done.returncode:
        raise NotFoundError(f"{program} failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout.decode("utf-8", "replace")


class Kernels:
    """Collects the kernels of a session: its `add` is a session's on_kernel.

    folder    writes each kernel that has code of its own to a file: 001-matmul.spv, ...; None: no files"""

    def __init__(self, folder: Optional[pathlib.Path] = None):
        self._found: Dict[Kernel, None] = {}  # in the order of their first use
        self._folder = folder

    def add(self, name: str, form: str, code: bytes) -> None:
        """Notes a kernel, once."""
        kernel = Kernel(name, form, code)
        if kernel in self._found:
            return
        self._found[kernel] = None
        if self._folder is not None and code:
            (self._folder / f"{len(self._found):03}-{name}{_ENDINGS.get(form, '')}").write_bytes(code)

    def __iter__(self):
        return iter(list(self._found))


def last_kernels(function: Any) -> List[Kernel]:
    """The kernels that a model's dispatches launch: a list of ree.Kernel, each once, in the order of their first use.

    function    what torch.compile(..., backend="ree") returned, or what ree.convert returned, after a call

    Raises NotFoundError if it has not run."""
    compiler = sys.modules.get("ree.compiler")
    if hasattr(function, "artifacts_dir"):
        sources = [function.kernels]
    else:
        sources = [graph.kernels for graph in compiler.graphs_of(function)] if compiler else []
    found = list(dict.fromkeys(kernel for kernels in sources for kernel in kernels))
    if not found:
        raise NotFoundError(f"{function!r} was not compiled with backend \"ree\" or converted, or has not been called yet")
    return found
