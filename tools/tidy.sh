#!/bin/sh
# Runs clang-tidy over the C sources in src, graph and tools, with the checks of .clang-tidy. Any finding
# is a failure.
#
#     tools/tidy.sh [FOLDER]     FOLDER: a build folder with compile_commands.json (default: build)
#
#     --tidy PROGRAM     the clang-tidy to use (default: the newest in the path)
#     --changed          only files that differ from the branch main
#
# clang must find its own omp.h (Debian: libomp-dev of the same version).
#
# Exit status
#     0   no findings
#     1   findings, or a file could not be read
#     2   wrong usage
#     77  clang-tidy is not installed
set -u
cd "$(dirname "$0")/.." || exit 1

fail_usage() {
    echo "tidy.sh: $* (try --help)" >&2
    exit 2
}

tidy="" folder=build changed=no
while [ $# -gt 0 ]; do
    case $1 in
    --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --tidy)
        [ $# -gt 1 ] || fail_usage "$1 requires a value"
        tidy=$2
        shift
        ;;
    --changed) changed=yes ;;
    -*) fail_usage "unknown option '$1'" ;;
    *) folder=$1 ;;
    esac
    shift
done
for version in 21 20 19 18 17 16 15 14; do
    [ -n "$tidy" ] || ! command -v clang-tidy-$version >/dev/null || tidy=clang-tidy-$version
done
tidy=${tidy:-clang-tidy}
if ! command -v "$tidy" >/dev/null; then
    echo "skipped: $tidy is not installed"
    exit 77
fi
[ -s "$folder/compile_commands.json" ] || fail_usage "$folder has no compile_commands.json; run cmake first"

list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
# Files that this build compiles: no NEON on x86, and nothing that cmake generated.
sed -n 's|^ *"file": "\(.*\)",\{0,1\}$|\1|p' "$folder/compile_commands.json" |
    grep -E "^$PWD/(src|graph|tools)/.*\.c\$" | sort -u >"$list"
if [ $changed = yes ]; then
    git diff --name-only --diff-filter=d main -- '*.c' | sed "s|^|$PWD/|" | sort >"$list.changed"
    comm -12 "$list" "$list.changed" >"$list.both"
    mv "$list.both" "$list"
    rm -f "$list.changed"
    [ -s "$list" ] || { echo "no changed sources"; exit 0; }
fi
n=$(grep -c . "$list")
[ "$n" != 0 ] || fail_usage "$folder compiles no source of this tree"
# xargs fails if any process does.
xargs -P "$(nproc)" -n 8 "$tidy" -p "$folder" --quiet <"$list" 2>/dev/null || exit 1
echo "$n files, no findings"
