#!/bin/sh
# Measures which branches the tests take, mainly in code that reads untrusted files. Builds with clang's
# coverage, runs the suite on the CPU, and prints lines, functions and branches by folder, and the files
# with the lowest branch coverage.
#
#     tools/coverage.sh                             all tests that need no GPU
#     tools/coverage.sh --tests 'receipt/|dispute/'   only tests whose name matches
#
#     --compiler NAME  clang, or a version such as clang-19 (default: the newest that is installed)
#     --folder DIR     build folder (default: build/coverage); DIR/html shows each line
#     --jobs N         number of parallel processes (default: one per processor)
#     --full           all of ONNX's operator tests instead of a tenth
#
# Takes about half an hour on two cores. The counters are a mapping of the profile file from the start, so
# they also count in processes that a signal ends, and in ree-run's sandbox, which opens no file for writing.
#
# Exit status
#     0  the table was written
#     1  the build or a test failed
#     2  wrong usage
set -u
cd "$(dirname "$0")/.." || exit 1

fail_usage() {
    echo "coverage.sh: $* (try --help)" >&2
    exit 2
}

compiler="" folder=build/coverage jobs=$(nproc) tests=. sample=1/10
while [ $# -gt 0 ]; do
    case $1 in
    --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --full)
        sample=""
        shift
        ;;
    --compiler | --folder | --jobs | --tests)
        [ $# -gt 1 ] || fail_usage "$1 needs a value"
        case $1 in
        --compiler) compiler=$2 ;;
        --folder) folder=$2 ;;
        --jobs) jobs=$2 ;;
        --tests) tests=$2 ;;
        esac
        shift 2
        ;;
    *) fail_usage "unknown option '$1'" ;;
    esac
done
if [ -z "$compiler" ]; then
    for compiler in clang-22 clang-21 clang-20 clang-19 clang clang-14; do
        command -v "$compiler" >/dev/null && break
    done
fi
command -v "$compiler" >/dev/null || fail_usage "there is no $compiler"
version=$("$compiler" -dumpversion | cut -d. -f1)
for tool in llvm-profdata llvm-cov; do
    command -v "$tool-$version" >/dev/null || {
        echo "coverage.sh: $tool-$version not found (Debian's package llvm-$version)" >&2
        exit 1
    }
done

mkdir -p "$folder/profiles" || exit 1
folder=$(cd "$folder" && pwd)
rm -rf "$folder/profiles" "$folder/html" && mkdir "$folder/profiles"
if ! { cmake -S . -B "$folder/tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_CXX_COMPILER="clang++${compiler#clang}" -DREE_CUDA=OFF \
    -DCMAKE_C_FLAGS="-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation" \
    -DCMAKE_EXE_LINKER_FLAGS="-fprofile-instr-generate" -DCMAKE_SHARED_LINKER_FLAGS="-fprofile-instr-generate" &&
    ninja -C "$folder/tree" -j "$jobs"; } >"$folder/build.log" 2>&1; then
    tail -n 30 "$folder/build.log"
    exit 1
fi
# Processes append to a few profile files; no two processes write to the same file at a time.
code=0
# These tests compare standard error, to which the profiler of a dlopened library writes.
noisy='library/install|generate/checkpoints_cuda'
[ -z "$sample" ] || export REE_TEST_SAMPLE="$sample"
LLVM_PROFILE_FILE="$folder/profiles/%4m%c.profraw" VK_ICD_FILENAMES=none OMP_WAIT_POLICY=passive \
    ctest --test-dir "$folder/tree" -j "$jobs" --timeout 3600 --output-on-failure \
    -R "$tests" -LE '^(vulkan|oracle)$' -E "^(cuda/gpu_check.*|base/strict_aliasing|$noisy)\$" \
    >"$folder/tests.log" 2>&1 || code=1
tail -n 20 "$folder/tests.log"

"llvm-profdata-$version" merge -sparse "$folder"/profiles/*.profraw -o "$folder/all.profdata" || exit 1
set --
for program in "$folder/tree/ree-run" $(find "$folder/tree/tests" -type f -perm -u+x ! -name '*.py' ! -name '*.sh'); do
    [ "$(head -c 4 "$program" | tail -c 3)" != ELF ] || set -- "$@" -object "$program"
done
# The build records names relative to the tree's root (-ffile-prefix-map), and clang 19 puts the build folder
# before them.
not_ours='(^|/)(tests|third_party)/|\.pb-c\.[ch]$'
"llvm-cov-$version" export -summary-only -instr-profile "$folder/all.profdata" "$@" \
    -ignore-filename-regex "$not_ours" >"$folder/summary.json" 2>>"$folder/build.log" || exit 1
"llvm-cov-$version" show -format html -output-dir "$folder/html" -instr-profile "$folder/all.profdata" "$@" \
    -show-branches count -ignore-filename-regex "$not_ours" -compilation-dir "$PWD" \
    -path-equivalence "${folder#"$PWD/"}/tree,$PWD" >/dev/null 2>>"$folder/build.log"
python3 - "$folder/summary.json" "$PWD" <<'END'
import collections
import json
import os
import sys
FOLDERS = ("graph", "src/trace", "src/receipt", "src/dispute", "src/text", "src/generate", "src/session",
           "src/pipeline", "src/plan", "src/transport", "src/ranks", "src/base", "tools/run")
total = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
files = []
for entry in json.load(open(sys.argv[1]))["data"][0]["files"]:
    name = os.path.relpath(entry["filename"].rsplit("/tree/", 1)[-1], sys.argv[2])
    folder = next((f for f in FOLDERS if name.startswith(f + "/")), None)
    if not folder or not name.endswith(".c"):
        continue
    for kind in ("functions", "lines", "branches"):
        of = entry["summary"][kind]
        total[folder][kind][0] += of["covered"]
        total[folder][kind][1] += of["count"]
    of = entry["summary"]["branches"]
    files.append((of["covered"] / of["count"] if of["count"] else 1, of["count"] - of["covered"], name))


def share(covered, count):
    return f"{100 * covered / count:.1f} % of {count}" if count else "none"


print("\n| folder | functions | lines | branches |\n|---|---|---|---|")
for folder in FOLDERS:
    if folder in total:
        print(f"| {folder} | " + " | ".join(share(*total[folder][k]) for k in ("functions", "lines", "branches")) + " |")
print("\nleast covered, of those with 20 branches that no test takes, or more:")
for part, missed, name in [f for f in sorted(files) if f[1] >= 20][:15]:
    print(f"  {100 * part:5.1f} %  {missed:4} missed  {name}")
END
exit $code
