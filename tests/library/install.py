"""Installs into a temporary folder and uses libree from there like a program outside the source
tree. Every function that the public headers declare is in the archive and in the shared library, which exports
nothing else. tools/sample/digits.c, built with the flags of pkg-config, gives ree-run's SHA-256.
The folder can be moved."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

from declared import declared, program, public_headers

parser = argparse.ArgumentParser()
for name in ("--cmake", "--build", "--source", "--cc"):
    parser.add_argument(name, required=True)
args = parser.parse_args()


def run(*command, env=None, code=0):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != code:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def check(condition, message):
    if not condition:
        sys.exit(message)


pkg_config = shutil.which("pkg-config") or shutil.which("pkgconf")
if not pkg_config:
    harness.skip("there is no pkg-config")
if not os.access(args.cc.split()[0], os.X_OK) and not shutil.which(args.cc):
    harness.skip("there is no C compiler")

with tempfile.TemporaryDirectory() as folder:
    # Installed in one folder, used in another.
    first, prefix = os.path.join(folder, "first"), os.path.join(folder, "prefix")
    run(args.cmake, "--install", args.build, "--prefix", first)
    os.rename(first, prefix)
    found = [os.path.join(at, name) for at, _, names in os.walk(prefix) for name in names]
    pc = [path for path in found if path.endswith("/pkgconfig/ree.pc")]
    check(len(pc) == 1, f"no ree.pc among {found}")
    lib = os.path.dirname(os.path.dirname(pc[0]))
    for path in ("bin/ree-run", "include/ree.h", "share/man/man1/ree-run.1", "share/man/man1/ree-run-verify.1",
                 "share/bash-completion/completions/ree-run", "share/zsh/site-functions/_ree-run",
                 "share/fish/vendor_completions.d/ree-run.fish"):
        check(os.path.join(prefix, path) in found, f"{path} is not among {found}")

    env = {"PKG_CONFIG_PATH": os.path.dirname(pc[0])}
    flags = run(pkg_config, "--cflags", "--libs", "ree", env=env).stdout.split()
    private = run(pkg_config, "--cflags", "--libs", "--static", "ree", env=env).stdout.split()
    check("-lree" in flags and "-lcrypto" not in flags and "-lcrypto" in private, f"{flags} {private}")
    # A program links the libraries that libree.a calls. It does not link what a system library was
    # linked with, because that package may be missing.
    other = os.path.join(folder, "libcrypto.pc")
    with open(other, "w") as file:
        file.write("Name: libcrypto\nDescription: of another system\nVersion: 99\n"
                   "Libs: -lcrypto\nLibs.private: -lnot-installed\n")
    elsewhere = {"PKG_CONFIG_PATH": f"{folder}:{os.path.dirname(pc[0])}"}
    said = run(pkg_config, "--libs", "--static", "ree", env=elsewhere).stdout.split()
    check("-lcrypto" in said and "-lnot-installed" not in said, f"{said}")
    links = {
        "shared": flags + [f"-Wl,-rpath,{lib}"],
        "static": [os.path.join(lib, "libree.a") if flag == "-lree" else flag for flag in private],
    }

    # The public headers need no other header of the project.
    header = public_headers(os.path.join(prefix, "include"))
    for include in re.findall(r"#include\s+(\S+)", header):
        name = include.strip('"').removeprefix("ree/")
        check(include in ("<stdbool.h>", "<stddef.h>", "<stdint.h>") or
              os.path.join(prefix, "include/ree", name) in found, f"a public header includes {include}")
    functions, variables = declared(header)
    check(len(functions) > 50 and variables == ["ree_greedy"],
          f"{len(functions)} functions in the public headers, variables {variables}")
    source = os.path.join(folder, "declared.c")
    with open(source, "w") as file:
        file.write(program(functions, variables))
    sample = os.path.join(args.source, "tools/sample")
    inputs = [os.path.join(sample, "digits.onnx"), os.path.join(sample, "seven.npy")]
    for kind, link in links.items():
        out = os.path.join(folder, kind)
        run(args.cc, "-Wall", "-Werror", source, *link, "-o", out)
        run(out)
        run(args.cc, "-Wall", "-Wextra", "-Werror", os.path.join(sample, "digits.c"), *link, "-o", out)
        ours = run(out, *inputs).stdout.strip()
        theirs = run(os.path.join(prefix, "bin/ree-run"), inputs[0], "--input", inputs[1]).stdout
        theirs = re.search(r"^sha256\s+([0-9a-f]{64})$", theirs, flags=re.M).group(1)
        check(ours == theirs, f"{kind}: {ours}, ree-run {theirs}")
        missing = run(out, os.path.join(sample, "none.onnx"), inputs[1], code=1).stderr
        check("none.onnx" in missing, missing)

    nm = shutil.which("nm")
    if nm:
        symbols = run(nm, "-D", "--defined-only", os.path.join(lib, "libree.so")).stdout.split("\n")
        # The compiler's symbols for critical sections cannot be hidden.
        exported = sorted({line.split()[2] for line in symbols if line} -
                          {line.split()[2] for line in symbols if ".gomp_critical_user_" in line})
        check(exported == sorted(functions + variables),
              f"exported or declared alone: {set(exported) ^ set(functions + variables)}")

    # The MPI module is searched for in the installation folder.
    module = os.path.join(lib, "ree/ree_mpi.so")
    if os.path.exists(module):
        os.remove(module)
    message = run(os.path.join(prefix, "bin/ree-run"), os.path.join(sample, "stories"), "--prompt-text", "The",
                  env={"OMPI_COMM_WORLD_SIZE": "2"}, code=1).stderr
    sought = re.search(r"no (\S+ree_mpi\.so) \(", message)
    check(sought and os.path.normpath(sought.group(1)) == os.path.realpath(lib) + "/ree/ree_mpi.so", message)
    print(f"{len(functions)} functions; shared and static: {ours}")
