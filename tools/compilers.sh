#!/bin/sh
# Checks that every compiler gives the same bits at every level of optimization. Builds ree-run and the
# tests of the CPU's kernels with each compiler at each level, runs the tests, compares the results of
# ree-run with the recorded SHA-256 values, and prints a table: compilers by levels.
#
#     tools/compilers.sh                                    all installed compilers, all levels
#     tools/compilers.sh --compilers "gcc-12 clang-19"      only these compilers
#     tools/compilers.sh --levels "O2 lto"                  only these levels
#     tools/compilers.sh --models ../shared/models          also the recorded hashes of real models
#
#     --quick        run only the tests of attention, matmul and softmax. At the level lto this is
#                    always so, because lto compiles every program as a whole
#     --folder DIR   build folder (default: build/compilers)
#     --jobs N       number of parallel processes (default: one per processor)
#
# Levels:
#     O1, O2, O3   with -fno-strict-aliasing, as ree is always built
#     strict       -O3 -fstrict-aliasing: the compiler may rely on the types of accesses
#     lto          -O3 -flto: also across files, and with strict aliasing
#
# A build takes about two minutes on one core, its tests about one. FOLDER/COMPILER-LEVEL/*.log has the
# output of each step. A column of the table is "ok", or names what failed.
#
# Exit status
#     0  all tests passed, and all hashes are the recorded ones
#     1  a result differs, or a build failed
#     2  wrong usage
set -u
cd "$(dirname "$0")/.." || exit 1

fail_usage() {
    echo "compilers.sh: $* (try --help)" >&2
    exit 2
}

compilers="" levels="O1 O2 O3 strict lto" folder=build/compilers jobs=$(nproc) models="" quick=no
while [ $# -gt 0 ]; do
    case $1 in
    --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --quick)
        quick=yes
        shift
        ;;
    --compilers | --levels | --folder | --jobs | --models)
        [ $# -gt 1 ] || fail_usage "$1 needs a value"
        case $1 in
        --compilers) compilers=$2 ;;
        --levels) levels=$2 ;;
        --folder) folder=$2 ;;
        --jobs) jobs=$2 ;;
        --models) models=$2 ;;
        esac
        shift 2
        ;;
    *) fail_usage "unknown option '$1'" ;;
    esac
done
for level in $levels; do
    case $level in
    O1 | O2 | O3 | strict | lto) ;;
    *) fail_usage "unknown level '$level'" ;;
    esac
done

# Every gcc and clang in the path, each once even if it has several names.
find_compilers() {
    seen="" rest=$PATH:
    while [ -n "$rest" ]; do
        directory=${rest%%:*} rest=${rest#*:}
        # An empty entry is the current folder.
        directory=${directory:-.}
        for path in "$directory"/gcc "$directory"/gcc-[0-9]* "$directory"/clang "$directory"/clang-[0-9]*; do
            [ -x "$path" ] || continue
            case $(basename "$path") in gcc-ar* | gcc-nm* | gcc-ranlib* | *-config*) continue ;; esac
            real=$(readlink -f "$path")
            case $seen in *":$real:"*) continue ;; esac
            seen="$seen:$real:"
            basename "$path"
        done
    done
}
[ -n "$compilers" ] || compilers=$(find_compilers)
[ -n "$compilers" ] || fail_usage "no gcc and no clang in the path"

# Random cases of every RepOp against a naive reference, on every instruction set; the scalar functions.
few_tests="attention matmul softmax"
all_tests="$few_tests conv copy gather map norm pool products reduce resize scan scatter topk"
scalar_tests="soft soft64 convert formats integer"

# The archiver that can read the compiler's intermediate code.
archiver_of() {
    case $1 in
    *gcc*) echo "$(dirname "$(command -v "$1")")/$(basename "$1" | sed 's/gcc/gcc-ar/')" ;;
    *)
        major=$("$1" -dumpversion | sed 's/\..*//')
        # Without LLVM's archiver, that of binutils, which loads LLVM's plugin.
        command -v "llvm-ar-$major" || { [ -x "/usr/lib/llvm-$major/bin/llvm-ar" ] &&
            echo "/usr/lib/llvm-$major/bin/llvm-ar"; } || command -v ar
        ;;
    esac
}

configure() { # COMPILER LEVEL BUILD
    archiver=""
    case $2 in
    O1 | O2 | O3) flags="-$2" strict=OFF ;;
    strict) flags="-O3" strict=ON ;;
    lto)
        strict=ON flags="-O3 -flto"
        case $1 in *gcc*) flags="-O3 -flto=$jobs" ;; esac
        archiver=$(archiver_of "$1")
        ranlib=$(echo "$archiver" | sed 's/ar\(-[0-9]*\)\{0,1\}$/ranlib\1/')
        ;;
    esac
    launcher=$(command -v ccache >/dev/null && echo -DCMAKE_C_COMPILER_LAUNCHER=ccache)
    # Warnings do not change bits: they are counted, not treated as errors.
    # shellcheck disable=SC2086 # one word or none
    cmake -S . -B "$3" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$1" \
        -DCMAKE_C_FLAGS_RELEASE="$flags -DNDEBUG" -DREE_STRICT_ALIASING=$strict -DREE_CUDA=OFF \
        -DREE_WERROR=OFF $launcher \
        ${archiver:+"-DCMAKE_AR=$archiver" "-DCMAKE_RANLIB=$ranlib"} \
        ${archiver:+"-DCMAKE_C_COMPILER_AR=$archiver" "-DCMAKE_C_COMPILER_RANLIB=$ranlib"}
}

n_wrong=0
table="compiler                 level   build             tests        hashes"
# try COMPILER LEVEL: builds and tests, and adds a line to the table.
try() {
    build=$folder/$(basename "$1")-$2
    rm -rf "$build"
    mkdir -p "$build"
    tests=- hashes=-
    kernel_tests=$all_tests
    if [ $quick = yes ] || [ "$2" = lto ]; then kernel_tests=$few_tests; fi
    programs="ree-run device_cpu_attention_strict"
    for name in $kernel_tests; do programs="$programs device_cpu_$name"; done
    for name in $scalar_tests; do programs="$programs repops_${name}_test"; done
    # shellcheck disable=SC2086 # lists of words
    if configure "$1" "$2" "$build" >"$build/configure.log" 2>&1 &&
        ninja -C "$build" -j "$jobs" $programs >"$build/build.log" 2>&1; then
        n_warnings=$(grep -c 'warning:' "$build/build.log")
        built="ok, $n_warnings warnings"
        ctest --test-dir "$build" -j "$jobs" --timeout 1800 --no-tests=error --output-on-failure \
            -R "^(device/cpu_($(echo "$kernel_tests" | tr ' ' '|')|attention_strict)|repops/($(echo "$scalar_tests" | tr ' ' '|'))_test)$" \
            >"$build/tests.log" 2>&1
        tests=$(sed -n 's/^.*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 of \2/p' "$build/tests.log")
        case $tests in "0 of "*) tests="ok (${tests#0 of })" ;; *) tests="$tests wrong" n_wrong=$((n_wrong + 1)) ;; esac
        hashes="ok"
        python3 -B tests/models/real_models.py --ree-run "$build/ree-run" ${models:+--models "$models"} \
            >"$build/models.log" 2>&1 || hashes="models differ"
        python3 -B tests/generate/models.py --ree-run "$build/ree-run" --models "${models:-none}" \
            >"$build/generate.log" 2>&1 || hashes="$(echo "$hashes" | sed 's/^ok$//') texts differ"
        [ "$hashes" = ok ] || n_wrong=$((n_wrong + 1))
    else
        built="FAILED"
        n_wrong=$((n_wrong + 1))
    fi
    line=$(printf '%-24s %-7s %-17s %-12s %s' "$(basename "$1") $("$1" -dumpfullversion 2>/dev/null || "$1" -dumpversion)" "$2" "$built" "$tests" "$hashes")
    echo "$line"
    table="$table
$line"
}

for compiler in $compilers; do
    command -v "$compiler" >/dev/null || fail_usage "there is no compiler '$compiler'"
    for level in $levels; do try "$compiler" "$level"; done
done
printf '\n%s\n\n' "$table"
[ $n_wrong = 0 ] && echo "all builds give the same bits" || echo "$n_wrong steps differ or failed"
[ $n_wrong = 0 ]
