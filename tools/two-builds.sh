#!/bin/sh
# Checks that two builds of the same sources are the same bytes. Builds ree-run, libree.so and libree.a
# twice: in folders of different names and depths, with different time zones, locales (C, C.UTF-8), modes of
# new files and numbers of jobs. Compares the files.
#
#     tools/two-builds.sh                 build the commit that is checked out
#     tools/two-builds.sh --folder DIR    build folder (default: build/two-builds)
#     tools/two-builds.sh --keep          keep both builds, to examine differences
#
# Takes about four minutes on two cores. DIR/*.log has the output of each build.
#
# Exit status
#     0  the same bytes
#     1  different bytes, or a build failed
#     2  wrong usage
set -u
cd "$(dirname "$0")/.." || exit 1

fail_usage() {
    echo "two-builds.sh: $* (try --help)" >&2
    exit 2
}

folder=build/two-builds keep=no
while [ $# -gt 0 ]; do
    case $1 in
    --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --keep)
        keep=yes
        shift
        ;;
    --folder)
        [ $# -gt 1 ] || fail_usage "$1 needs a value"
        folder=$2
        shift 2
        ;;
    *) fail_usage "unknown option '$1'" ;;
    esac
done
git rev-parse HEAD >/dev/null 2>&1 || {
    echo "two-builds.sh: this is not a git repository, and the script builds commits" >&2
    exit 1
}
rm -rf "$folder"
mkdir -p "$folder" || exit 1
folder=$(cd "$folder" && pwd)

# build NAME SOURCES JOBS: extracts the commit's files to SOURCES and builds in SOURCES/build.
build() {
    name=$1 sources=$2 jobs=$3
    echo "building $name in $sources"
    start=$(date +%s)
    if mkdir -p "$sources" && git archive HEAD | tar -x -C "$sources" && (
        # A compiler cache would give the second build the results of the first.
        export CCACHE_DISABLE=1
        cmake -S "$sources" -B "$sources/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=OFF \
            -DREE_CUDA=OFF && ninja -C "$sources/build" -j "$jobs" ree-run ree ree_shared
    ) >"$folder/$name.log" 2>&1; then
        echo "built ($(($(date +%s) - start)) s)"
    else
        tail -n 30 "$folder/$name.log"
        echo "$name does not build: $folder/$name.log" >&2
        exit 1
    fi
}

export TZ=UTC LC_ALL=C
umask 022
build first "$folder/a" "$(nproc)"
export TZ=Pacific/Auckland LC_ALL=C.UTF-8
umask 077
build second "$folder/another folder/far below" "$(($(nproc) + 1))"

differ=no
for file in ree-run libree.so libree.a; do
    first=$folder/a/build/$file second="$folder/another folder/far below/build/$file"
    if cmp "$first" "$second"; then
        echo "$file: the same, $(sha256sum <"$first" | cut -c1-64)"
    else
        differ=yes
    fi
done
[ $differ = no ] || exit 1
[ $keep = yes ] || rm -rf "$folder"
