"""No cast turns a pointer to one type into a pointer to another that may not alias it.

C forbids an access through such a pointer, and compilers reorder forbidden accesses. The front end
of GCC finds these casts (-Wstrict-aliasing=1), also if a cast to void * precedes them, in macros,
and in code that is never inlined. Bytes, the types of base/any.h, and signed and unsigned forms of
one type may alias. GCC misses a pointer that is stored in a variable of type void * in between; the
builds with TypeSanitizer find it (tools/sanitize.sh). Code for other processors is not checked,
because it is not compiled.

A build by GCC with REE_STRICT_ALIASING, as tools/test.sh makes it with sanitizers, stops at such a cast
in C. This test checks that none of its C files lacks the warning. In other builds it parses the files in
C++ once more with their own flags; nothing is optimized or written.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

# "path:text of the line" -> reason why the cast is right. An entry without a matching cast fails.
ALLOWED = {}

WARNING = re.compile(r"^(.*?):(\d+):\d+: warning: .*\[-Wstrict-aliasing\S*\]$")

BAD = """
#include <stdint.h>
uint32_t direct(float *x) { return *(uint32_t *)x; }
const uint32_t *behind_void(const float *x) { return (const uint32_t *)(const void *)x; }
struct a { int i; } *of_struct(struct b { float f; } *b) { return (struct a *)b; }
"""
GOOD = """
#include <stdint.h>
typedef uint32_t any __attribute__((may_alias));
uint32_t any_of(float *x) { return *(any *)x; }
unsigned char bytes(float *x) { return *(unsigned char *)x; }
int32_t other_sign(uint32_t *x) { return *(int32_t *)x; }
"""


def parse(arguments, folder):
    """Returns the lines with casts as {(path, line)}, and GCC's other messages if it failed."""
    command = arguments + ["-Wno-error", "-fsyntax-only", "-fstrict-aliasing", "-Wstrict-aliasing=1"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                         env=dict(os.environ, LC_ALL="C"))
    if run.returncode != 0:
        return set(), run.stderr
    matches = map(WARNING.match, run.stderr.splitlines())
    return {(os.path.realpath(os.path.join(folder, m[1])), int(m[2])) for m in matches if m}, ""


def commands_of(build, suffixes):
    """Returns {source: (arguments without output, folder)}. A source that is compiled twice is
    parsed once."""
    with open(os.path.join(build, "compile_commands.json")) as file:
        entries = json.load(file)
    commands = {}
    for entry in entries:
        # Generated files are checked through their generators, and tables of bytes have no casts.
        if os.path.realpath(entry["file"]).startswith(build + os.sep):
            continue
        if entry["file"].endswith(suffixes):
            words = shlex.split(entry["command"])
            at = words.index("-o")
            words = words[:at] + words[at + 2:]
            if os.path.basename(words[0]) == "ccache":
                del words[0]
            unwanted = ("-c", "-MD", "-MMD")
            with_value = ("-MT", "-MF")
            kept = [w for i, w in enumerate(words) if w not in unwanted + with_value
                    and (i == 0 or words[i - 1] not in with_value)]
            commands.setdefault(entry["file"], (kept, entry["directory"]))
    return commands


def count(compiler, source):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "source.c")
        with open(path, "w") as file:
            file.write(source)
        found, error = parse([compiler, path], folder)
        if error:
            sys.exit(f"{compiler} cannot parse the check's own example:\n{error}")
        return len(found)


def missing_warnings(commands):
    """The exit code for a build whose C files should all be compiled with the warning."""
    if len(commands) < 500:  # a build with its tests has about 900
        print(f"the build has only {len(commands)} files")
        return 1
    wanted = {"-Werror", "-fstrict-aliasing", "-Wstrict-aliasing=1"}
    without = [path for path, (arguments, _) in commands.items() if not wanted <= set(arguments)]
    for path in without:
        print(f"{path}: compiled without {', '.join(sorted(wanted - set(commands[path][0])))}")
    print(f"{len(commands)} files, {len(without)} without the warning")
    return 1 if without else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="a build folder with compile_commands.json")
    parser.add_argument("--source", required=True, help="casts in files below this folder count")
    parser.add_argument("--compiler", required=True, help="the C compiler of the build")
    parser.add_argument("--strict", action="store_true", help="the build has REE_STRICT_ALIASING")
    parser.add_argument("--compiler-id", required=True, help="CMake's name for it")
    options = parser.parse_args()
    if options.compiler_id != "GNU":
        print(f"skipped: only GCC knows this warning, and the build is by {options.compiler_id}")
        return 77
    bad, good = count(options.compiler, BAD), count(options.compiler, GOOD)
    if (bad, good) != (3, 0):
        print(f"the compiler finds {bad} of 3 wrong casts and complains about {good} right ones")
        return 1

    source, build = os.path.realpath(options.source), os.path.realpath(options.build)
    if options.strict:
        return missing_warnings({path: command for path, command in commands_of(build, (".c",)).items()
                                 if os.path.realpath(path).startswith(source + os.sep)})
    commands = commands_of(build, (".cc", ".cu"))
    if not commands:
        print("skipped: the build has no C++ compiler, and so no files in C++")
        return 77
    found, failed = set(), False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (casts, error) in zip(commands, pool.map(lambda c: parse(*c), commands.values())):
            found |= casts
            if error:
                print(f"{path}: cannot be parsed:\n{error}")
                failed = True

    unused = set(ALLOWED)
    for path, line in sorted(found):
        if not path.startswith(source + os.sep) or path.startswith(build + os.sep):
            continue
        with open(path) as file:
            text = file.read().splitlines()[line - 1].strip()
        name = os.path.relpath(path, source)
        if f"{name}:{text}" in ALLOWED:
            unused.discard(f"{name}:{text}")
            continue
        print(f"{name}:{line}: casts a pointer to a type that may not alias: {text}")
        failed = True
    for entry in sorted(unused):
        print(f"no longer there, take it from ALLOWED: {entry}")
        failed = True
    if failed:
        print("Convert a value by memcpy, ree_bits or ree_float; access elements by the types of base/any.h; "
              "get from a field to its struct by REE_CONTAINER_OF.")
        return 1
    print(f"{len(commands)} files, no such cast" + (f" but {len(ALLOWED)} allowed" if ALLOWED else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
