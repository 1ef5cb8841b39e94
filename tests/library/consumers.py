"""Builds programs in C and C++ against an installation that was moved: with CMake's find_package and
with pkg-config, with the shared library and with the archive. Each gives ree-run's SHA-256. Every
public header compiles alone, as C17 and as C++17, without warnings."""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import check, run
from declared import public_headers

parser = argparse.ArgumentParser()
for name in ("--cmake", "--build", "--source", "--cc"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
SAMPLES = os.path.join(args.source, "tools/sample")
INPUTS = [os.path.join(SAMPLES, "digits.onnx"), os.path.join(SAMPLES, "seven.npy")]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

CPP = r"""
#include <ree.h>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

struct Destroy {
    void operator()(ree_model *model) const { ree_model_destroy(model); }
    void operator()(ree_device *device) const { ree_device_destroy(device); }
    void operator()(ree_session *session) const { ree_session_destroy(session); }
};

static bool report(void *user, const char *, uint64_t, uint64_t) {
    ++*static_cast<int *>(user);
    return true;
}

int main(int argc, char **argv) {
    ree_error err;
    ree_model *model = nullptr;
    ree_device *device = nullptr;
    ree_session *session = nullptr;
    ree_tensor input, output;
    int n_reports = 0;
    ree_model_options options = {};
    options.size = sizeof options;
    options.progress = {report, &n_reports};
    if (argc != 3 || ree_model_load(argv[1], &options, &model, &err)) return 1;
    std::unique_ptr<ree_model, Destroy> own_model(model);
    if (ree_device_open("cpu", nullptr, &device, &err)) return 1;
    std::unique_ptr<ree_device, Destroy> own_device(device);
    if (ree_session_create(model, device, nullptr, &session, &err)) return 1;
    std::unique_ptr<ree_session, Destroy> own_session(session);
    if (ree_tensor_load(&input, argv[2], &err)) return 1;
    input.name = strdup(ree_model_input(model, 0)->name);
    if (ree_session_run(session, &input, 1, &output, &err)) return 1;
    char hex[65];
    ree_tensors_sha256(&output, 1, hex);
    std::printf("%s\n", hex);
    ree_tensor_finish(&input);
    ree_tensor_finish(&output);
    return n_reports > 0 && REE_VERSION >= 100 ? 0 : 1;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C {languages})
find_package(ree {version} REQUIRED)
foreach(source {sources})
  get_filename_component(name ${{source}} NAME_WE)
  foreach(library ree ree_static)
    add_executable(${{name}}_${{library}} ${{source}})
    target_link_libraries(${{name}}_${{library}} PRIVATE ree::${{library}})
  endforeach()
endforeach()
"""


def cxx_of(cc):
    """Returns the C++ compiler that belongs to the C compiler, or None."""
    folder, name = os.path.split(cc)
    for a, b in (("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")):
        found = shutil.which(os.path.join(folder, name.replace(a, b))) if a in name else None
        if found:
            return found
    return shutil.which("c++")


harness.need_program(args.cc.split()[0], "C compiler")
cxx = cxx_of(args.cc)
if not cxx:
    print("no C++ compiler: only the programs in C are built")
with tempfile.TemporaryDirectory() as folder:
    # Installed in one folder, used in another.
    first, prefix = os.path.join(folder, "first"), os.path.join(folder, "a prefix")
    run(args.cmake, "--install", args.build, "--prefix", first)
    os.rename(first, prefix)
    include = os.path.join(prefix, "include")
    said = run(os.path.join(prefix, "bin/ree-run"), INPUTS[0], "--input", INPUTS[1])
    expected = re.search(r"^sha256\s+([0-9a-f]{64})$", said, flags=re.M).group(1)

    headers = ["ree.h", *sorted(f"ree/{name}" for name in os.listdir(os.path.join(include, "ree")))]
    check(len(headers) > 8, f"{headers}")
    for header in headers:
        for compiler, standard, suffix in ((args.cc, "c17", "c"), (cxx, "c++17", "cc")):
            if not compiler:
                continue
            source = os.path.join(folder, "header." + suffix)
            with open(source, "w") as file:
                file.write(f'#include "{header}"\nint header;\n')
            run(compiler, "-std=" + standard, *WARNINGS, "-I" + include, "-c", source, "-o", os.devnull)

    cpp = os.path.join(folder, "digits_cpp.cc")
    with open(cpp, "w") as file:
        file.write(CPP)
    sources = [os.path.join(SAMPLES, "digits.c")] + ([cpp] if cxx else [])
    version = re.search(r"VERSION_MAJOR (\d+).*?VERSION_MINOR (\d+)", public_headers(include), flags=re.S)
    consumer, build = os.path.join(folder, "consumer"), os.path.join(folder, "consumer-build")
    os.mkdir(consumer)

    def configure(wanted, program=run):
        with open(os.path.join(consumer, "CMakeLists.txt"), "w") as file:
            file.write(CMAKE.format(languages="CXX" if cxx else "", version=wanted,
                                    sources=" ".join(f'"{source}"' for source in sources)))
        shutil.rmtree(build, ignore_errors=True)
        compilers = [f"-DCMAKE_C_COMPILER={args.cc}"] + ([f"-DCMAKE_CXX_COMPILER={cxx}"] if cxx else [])
        return program(args.cmake, "-G", "Ninja", "-S", consumer, "-B", build,
                       f"-DCMAKE_PREFIX_PATH={prefix}", *compilers)

    major, minor = int(version.group(1)), int(version.group(2))
    for newer in (f"{major}.{minor + 1}", f"{major + 1}.0"):
        refused = configure(newer, harness.call)
        check(refused.returncode == 1, f"version {newer}: exit code {refused.returncode}")
        check("ree-config.cmake, version:" in refused.stderr, refused.stderr)
    configure(f"{major}.{minor}")
    run(args.cmake, "--build", build)
    n = 0
    for name in ("digits", "digits_cpp")[:len(sources)]:
        for library in ("ree", "ree_static"):
            program = os.path.join(build, f"{name}_{library}")
            ours = run(program, *INPUTS).strip()
            check(ours == expected, f"find_package, {name}, {library}: {ours}, ree-run {expected}")
            needed = run("readelf", "-d", program) if shutil.which("readelf") else None
            check(needed is None or ("libree.so" in needed) == (library == "ree"), f"{needed}")
            n += 1

    pkg_config = shutil.which("pkg-config") or shutil.which("pkgconf")
    lib = os.path.dirname(os.path.dirname(next(
        os.path.join(at, "ree.pc") for at, _, names in os.walk(prefix) if "ree.pc" in names)))
    for kind in ("--shared", "--static") if pkg_config else ():
        # pkg-config writes a space in a path as "\ ".
        env = {"PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig")}
        said = run(pkg_config, "--cflags", "--libs", *(["--static"] if kind == "--static" else []), "ree", env=env)
        flags = [flag.replace("\0", " ") for flag in said.replace("\\ ", "\0").split()]
        if kind == "--static":
            flags = [os.path.join(lib, "libree.a") if flag == "-lree" else flag for flag in flags]
        for source in sources:
            compiler = args.cc if source.endswith(".c") else cxx
            out = os.path.join(folder, "program")
            run(compiler, *WARNINGS, *(["-std=c++17"] if source == cpp else []), source, *flags,
                f"-Wl,-rpath,{lib}", "-o", out)
            ours = run(out, *INPUTS).strip()
            check(ours == expected, f"pkg-config {kind}, {source}: {ours}, ree-run {expected}")
            n += 1
    print(f"{len(headers)} headers alone; {n} programs: {expected}")
sys.exit(harness.finish())
