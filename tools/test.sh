#!/bin/sh
# Runs all tests. Installs what they need, builds with gcc, with clang and with sanitizers, and runs the
# suite on the CPU and on Vulkan drivers that need no GPU: lavapipe, Mesa 25's lavapipe, SwiftShader.
#
#     tools/test.sh            everything (about 70 minutes on 2 cores)
#     tools/test.sh --quick    gcc, CPU and lavapipe, without slow tests and oracles, a tenth of ONNX's
#                              operator tests (about 4 minutes on 2 cores, and the build)
#
# Options of tools/test.sh --quick, which tools/matrix.sh uses:
#
#     --slow           also the slow tests and the oracles
#     --compiler NAME  build with gcc, clang (see below), or a version such as clang-14 or gcc-11
#     --driver NAME    run only the tests of Vulkan, on this driver: lavapipe, lavapipe:WIDTH (a few
#                      tests, with vectors of 128, 256 or 512 bits), swiftshader, or swiftshader:few
#                      (the same few tests)
#
# clang means this system's own, or clang 19 if that is newer and the system has it.
#
# The script selects tests by their labels (tests/functions.cmake), and drivers by VK_ICD_FILENAMES:
# tests with the label "vulkan" run once for each driver. The sanitizer build runs few of them, on
# lavapipe, because they would check the driver's code; on the release build all of them run with the
# validation layer.
#
# The last line is "N passed, N failed", followed by ", N skipped" if something was skipped.
#
# Exit status
#     0   all tests passed
#     1   something failed
#     77  the build succeeded, but the driver of --driver is not available on this system; no test ran
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tools/packages.sh
. tools/packages.sh

quick=no slow=no compiler=gcc driver=""
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --slow) slow=yes ;;
    --compiler | --driver)
        [ $# -gt 1 ] || die "$1 requires a value (try --help)"
        [ "$1" = --driver ] || compiler=$2
        [ "$1" = --compiler ] || driver=$2
        shift
        ;;
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown option '$1' (try --help)" ;;
    esac
    shift
done
case $compiler in
gcc | clang | gcc-[0-9]* | clang-[0-9]*) ;;
*) die "--compiler requires gcc, clang or a version such as clang-14, not '$compiler'" ;;
esac
case $driver in
"" | lavapipe | lavapipe:128 | lavapipe:256 | lavapipe:512 | swiftshader | swiftshader:few) ;;
*) die "--driver requires lavapipe, lavapipe:128, lavapipe:256, lavapipe:512, swiftshader or swiftshader:few, not '$driver'" ;;
esac
[ $quick = yes ] || [ "$compiler$driver$slow" = gccno ] || die "--compiler, --driver and --slow require --quick"

n_passed=0 n_failed=0 n_skipped=0 failures="" driver_is_absent=no

fail() { # TEXT for the summary
    n_failed=$((n_failed + 1))
    failures="$failures
  $1"
}

# step NAME COMMAND...: prints one line on success; on failure the output, and a note for the
# summary.
step() {
    name=$1
    shift
    log=build/logs/$(echo "$name" | tr -c 'a-z0-9\n' _).log
    mkdir -p build/logs
    start=$(date +%s)
    if "$@" >"$log" 2>&1; then
        n_passed=$((n_passed + 1))
        echo "$name: passed ($(($(date +%s) - start)) s)"
    else
        fail "$name"
        cat "$log"
        echo "$name: FAILED"
        return 1
    fi
}

# Several tests with several threads each share the processors. By default GCC's OpenMP threads wait
# in busy loops and keep processors from the other tests: tests of many small kernels take ten times
# as long.
export OMP_WAIT_POLICY=passive

# The builds share the shaders, which take a minute (shaders/optimize.py).
export REE_SHADER_CACHE="$PWD/build/shader-cache"

# suite NAME BUILD [ctest options]: runs ctest and adds its counts, read from its JUnit file, to
# ours.
suite() {
    name=$1 build=$2
    shift 2
    say "$name"
    report=$PWD/$build/junit.xml
    rm -f "$report"
    ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(nproc)" --timeout 1800 \
        --output-junit "$report" "$@"
    rc=$?
    if [ ! -s "$report" ]; then
        fail "$name: ctest did not finish"
        return
    fi
    total=$(sed -n 's/^.*tests="\([0-9]*\)".*$/\1/p;/tests="/q' "$report")
    failed=$(sed -n 's/^.*failures="\([0-9]*\)".*$/\1/p;/failures="/q' "$report")
    skipped=$(sed -n 's/^.*skipped="\([0-9]*\)".*$/\1/p;/skipped="/q' "$report")
    disabled=$(sed -n 's/^.*disabled="\([0-9]*\)".*$/\1/p;/disabled="/q' "$report")
    skipped=$((skipped + ${disabled:-0}))
    n_passed=$((n_passed + total - failed - skipped))
    n_failed=$((n_failed + failed))
    n_skipped=$((n_skipped + skipped))
    if [ "$failed" != 0 ]; then
        failures="$failures
  $name: $failed of $total tests"
    elif [ $rc != 0 ]; then
        # No test was selected, or a test's program is missing: the report counts it as skipped.
        fail "$name: ctest's exit code is $rc, but no test failed"
    fi
}

skip() {
    n_skipped=$((n_skipped + 1))
    echo "skipped: $*"
}

# Skips the tests of a driver. If --driver names it, no tests remain.
skip_driver() {
    skip "$*"
    [ -z "$driver" ] || driver_is_absent=yes
}

summary() {
    [ -z "$failures" ] || printf '\nfailed:%s\n' "$failures"
    line="$n_passed passed, $n_failed failed"
    [ $n_skipped = 0 ] || line="$line, $n_skipped skipped"
    printf '\n%s\n' "$line"
    if [ $n_failed = 0 ] && [ $driver_is_absent = yes ]; then
        echo "not run: $driver is not available on this system" >&2
        exit 77
    fi
    [ $n_failed = 0 ] && [ $n_passed != 0 ]
    exit $?
}

# shellcheck disable=SC2317 # called through step
configure_tree() { # FOLDER [cmake options]
    tree=$1
    shift
    # If the compiler changes, cmake would drop the options of an existing tree.
    was=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$tree/CMakeCache.txt" 2>/dev/null)
    for option in "$@"; do
        case $option in -DCMAKE_C_COMPILER=*)
            [ "${was##*/}" = "${option#*=}" ] ||
                rm -rf "$tree/CMakeCache.txt" "$tree/CMakeFiles" ;;
        esac
    done
    # Options of an earlier run must not stay.
    cmake -S . -B "$tree" -G Ninja -DREE_SHADERS_FROM= -DREE_EMULATOR_FROM= -DREE_PLANTED_FAULTS=ON \
        -DREE_SHARED_DIR:PATH="$shared" "$@"
}

# shellcheck disable=SC2317
build_tree() { # FOLDER [cmake options]
    configure_tree "$@" && ninja -C "$1"
}

major_version() { candidate_version "$1" | sed -n 's/^\(.*:\)\{0,1\}\([0-9]*\).*/\2/p'; }

# choose_clang: sets clang and clang_packages.
choose_clang() {
    [ -n "$(candidate_version clang)" ] || refresh_lists
    clang=clang clang_packages="clang libomp-dev libclang-rt-dev"
    own=$(major_version clang)
    # Code that newer compilers generate must be tested on older releases too.
    if [ "${own:-0}" -lt 19 ] && [ -n "$(candidate_version clang-19)" ]; then
        clang=clang-19 clang_packages="clang-19 libomp-19-dev libclang-rt-19-dev"
    fi
}

# SwiftShader is part of Debian's Chromium; only two files of that package are needed.
swiftshader=$PWD/build/swiftshader/vk_swiftshader_icd.json
fetch_swiftshader() { # fails with 77 if this system has no such package
    [ -s "$swiftshader" ] && [ -s build/swiftshader/libvk_swiftshader.so ] && return 0
    [ -n "$(candidate_version chromium-common)" ] || refresh_lists
    # Ubuntu's Chromium is a snap.
    [ -n "$(candidate_version chromium-common)" ] || return 77
    rm -rf build/swiftshader
    mkdir -p build/swiftshader
    # Downloads as the user into our folder: nothing of Chromium is installed.
    (cd build/swiftshader && apt-get download -q chromium-common &&
        dpkg-deb --fsys-tarfile chromium-common_*.deb |
        tar -x --strip-components=4 --wildcards '*/libvk_swiftshader.so' '*/vk_swiftshader_icd.json'
        rm -f chromium-common_*.deb)
    [ -s "$swiftshader" ] && [ -s build/swiftshader/libvk_swiftshader.so ]
}

# Debian 12 has Mesa 22.3; most other systems have 25 or newer. The backports for Debian 12 have
# 25.0; only one library of it is needed, and its dependencies are installed with the package of
# 22.3.
lavapipe_25=$PWD/build/lavapipe-25/lvp_icd.json
fetch_lavapipe_25() {
    [ -s "$lavapipe_25" ] && return 0
    rm -rf build/lavapipe-25
    mkdir -p build/lavapipe-25
    (cd build/lavapipe-25 && download_from bookworm-backports mesa-vulkan-drivers &&
        dpkg-deb --fsys-tarfile mesa-vulkan-drivers_*.deb |
        tar -x --strip-components=4 --wildcards '*/libvulkan_lvp.so' '*/lvp_icd*.json' &&
        rm -f mesa-vulkan-drivers_*.deb && ! ldd libvulkan_lvp.so | grep 'not found' &&
        # A path with a slash is relative to this file.
        sed 's|"library_path": ".*"|"library_path": "./libvulkan_lvp.so"|' icd.d/lvp_icd*.json \
            >lvp_icd.json.new && rm -r icd.d && mv lvp_icd.json.new lvp_icd.json)
    [ -s "$lavapipe_25" ]
}

# refusal_of ICD [WIDTH]: prints ree's message if it refuses the driver because of a defect; otherwise fails
refusal_of() {
    env ${2:+LP_NATIVE_VECTOR_WIDTH="$2"} VK_ICD_FILENAMES="$1" "$tree_of_suite/ree-run" devices vulkan 2>&1 |
        grep 'crashed in the probe\|generates wrong instructions'
}

mesa_of() { # ICD: prints "25" for Mesa 25.0.7; nothing if the driver does not load
    VK_ICD_FILENAMES=$1 build/ree-run devices vulkan 2>/dev/null |
        sed -n 's/^ *driver  *llvmpipe, Mesa \([0-9]*\).*/\1/p'
}

# shellcheck disable=SC2317 # called through step
loads() { # ICD: every test of Vulkan would be skipped if this failed
    VK_ICD_FILENAMES=$1 "$tree_of_suite/ree-run" devices vulkan
}

# shellcheck disable=SC2317 # called through step
is_mesa_25() { # ICD
    VK_ICD_FILENAMES=$1 build/ree-run devices vulkan
    mesa_version=$(mesa_of "$1")
    [ "${mesa_version:-0}" -ge 25 ]
}

# The tests that show most about how a driver compiles our shaders in little time: random cases of
# every RepOp, the probe, chains of elementwise operations, whole models and a text.
few_tests='^driver_few$'

# For a second driver: every test of the device layer, ONNX's operators, whole models, a text and
# its verification. Tests of host code (traces, partitions, checkpoints, control flow) run only on
# the first driver.
driver_tests='^driver$'

# on_lavapipe NAME ICD WIDTH TESTS...: runs these tests (options of ctest) with vectors of WIDTH
# bits.
on_lavapipe() {
    name=$1 icd=$2 width=$3
    shift 3
    if refusal=$(refusal_of "$icd" "$width"); then
        # ree says so and runs on the CPU (device/vulkan_devices); no test of Vulkan can run.
        skip_driver "$name, vectors of $width bits: $refusal"
        return
    fi
    LP_NATIVE_VECTOR_WIDTH=$width REE_TEST_SAMPLE=1/10 VK_ICD_FILENAMES=$icd \
        suite "$name, vectors of $width bits" "$tree_of_suite" "$@"
}

on_swiftshader() { # SAMPLE LABEL NOT
    fetch_swiftshader
    fetched=$?
    [ $fetched = 0 ] || [ $fetched = 77 ] || { fetch_swiftshader; fetched=$?; } # once more
    if [ $fetched = 0 ]; then
        # It emulates every float operation and needs seconds to compile a kernel: only a sample of
        # ONNX's operator tests, chosen by name, runs.
        REE_TEST_SAMPLE=$1 VK_ICD_FILENAMES=$swiftshader suite "SwiftShader" "$tree_of_suite" \
            -L "$2" -LE "^($3)\$"
    elif [ $fetched = 77 ]; then
        skip_driver "this system has no chromium-common of Debian, which has SwiftShader"
    else
        fail "SwiftShader could not be fetched from chromium-common"
    fi
}

say "packages"
choose_clang
compiler_packages=""
if [ $quick = no ]; then
    compiler_packages="$clang_packages python3-venv"
    [ -z "$(candidate_version "clang-tidy${clang#clang}")" ] ||
        compiler_packages="$compiler_packages clang-tidy${clang#clang}"
    # for the kernels of 64-bit ARM
    [ "$(dpkg --print-architecture)" != amd64 ] || [ -z "$(candidate_version gcc-aarch64-linux-gnu)" ] ||
        compiler_packages="$compiler_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
else
    case $compiler in
    clang) compiler_packages=$clang_packages ;;
    clang-*) clang=$compiler version=${compiler#clang-}
        compiler_packages="clang-$version libomp-$version-dev libclang-rt-$version-dev" ;;
    gcc-*) compiler_packages="$compiler g++-${compiler#gcc-}" ;;
    esac
fi
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $vulkan_packages $mpi_packages g++ vulkan-validationlayers libonnx-testdata \
    libopenblas0-pthread mypy python3-cffi python3-dev python3-numpy $compiler_packages ||
    die "cannot test without these packages"
echo "all packages are installed"

shared=${REE_SHARED_DIR:-../shared}
case $shared in /*) ;; *) shared=$PWD/$shared ;; esac
export REE_SHARED_DIR="$shared"
lavapipe=$(find /usr/share/vulkan/icd.d -name 'lvp_icd*.json' 2>/dev/null | head -n 1)

tree_of_suite=build built_by=""
if [ "$compiler" = gcc ]; then
    say "building (gcc, release)"
    # One CUDA architecture if there is nvcc: the kernels run on the emulator here. Debian's Python has
    # the packages that were installed above. tools/quickstart.sh turns CUDA off in this tree.
    step "gcc build" build_tree build -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=ON -DREE_CUDA=ON \
        -DREE_PYTHON=ON -DREE_PYTHON_EXECUTABLE=/usr/bin/python3 -DREE_CUDA_ARCHITECTURES=80 || summary
else
    [ "$compiler" != clang ] || compiler=$clang
    say "building ($compiler, release)"
    case $compiler in
    gcc*) cxx=g++${compiler#gcc} tree_of_suite=build-$compiler ;;
    *) cxx=clang++${compiler#clang} tree_of_suite=build-clang ;;
    esac
    built_by=", built by $compiler"
    step "$compiler build" build_tree "$tree_of_suite" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$cxx" -DREE_CUDA=OFF || summary
fi
if [ -f "$shared/onnx-node-tests.tar.xz" ] && [ ! -d build/onnx-node-tests ]; then
    mkdir -p build/onnx-node-tests
    python3 -m tarfile -e "$shared/onnx-node-tests.tar.xz" build/onnx-node-tests || exit 1
fi

# ONNX Runtime, tokenizers and Jinja are oracles; if one is missing, the comparisons with it are
# skipped.
if [ $quick = no ] && [ ! -x build/oracle/bin/python ]; then
    python3 -m venv build/oracle
    for packages in "onnxruntime onnx" "tokenizers jinja2"; do
        # shellcheck disable=SC2086 # a list of words
        timeout 300 build/oracle/bin/pip install -q $packages ||
            echo "cannot be installed on this system: $packages"
    done
fi
# transformers with PyTorch is an oracle too. It needs some gigabytes: installed once, separately,
# and not in continuous integration.
if [ $quick = no ] && [ "${CI:-}" != true ] && [ -x build/oracle/bin/python ] &&
    ! build/oracle/bin/python -c 'import torch, transformers' 2>/dev/null; then
    timeout 900 build/oracle/bin/pip install -q torch transformers ||
        echo "transformers cannot be installed on this system"
fi
[ -x build/oracle/bin/python ] && export REE_ORACLE_PYTHON="$PWD/build/oracle/bin/python"

# A process that is killed between two calls, or under a file size limit, leaves an empty file of
# LLVM's OpenMP library, named by its process id. That library (14) dies of SIGBUS if a later
# process has the same id.
forget_dead_openmp() {
    find /dev/shm -maxdepth 1 -name '__KMP_REGISTERED_LIB_*' -size 0 -delete 2>/dev/null
}

[ $quick = no ] || export REE_TEST_SAMPLE=1/10
forget_dead_openmp
case $driver in
lavapipe:*)
    if [ -z "$lavapipe" ]; then
        skip_driver "lavapipe is not installed"
    else
        on_lavapipe "lavapipe$built_by" "$lavapipe" "${driver#*:}" -L "$few_tests"
    fi ;;
swiftshader) on_swiftshader 1/10 "$driver_tests" validation ;;
swiftshader:few) on_swiftshader 1/10 "$few_tests" validation ;;
*)
    set --
    what="CPU and lavapipe"
    [ -z "$driver" ] || { what=lavapipe; set -- -L '^vulkan$'; }
    without='^$' # no label: all tests
    [ $quick$slow != yesno ] || without='^(slow|oracle)$'
    refusal="not installed"
    if [ -n "$lavapipe" ] && ! refusal=$(refusal_of "$lavapipe"); then
        step "lavapipe loads" loads "$lavapipe"
        VK_ICD_FILENAMES=$lavapipe suite "$what$built_by" "$tree_of_suite" "$@" -LE "$without"
    else
        skip_driver "lavapipe: $refusal"
        [ -n "$driver" ] || VK_ICD_FILENAMES=none suite "CPU$built_by" "$tree_of_suite" -LE "$without"
    fi ;;
esac
[ $quick = no ] || summary

# Drivers of other releases, and vector widths of other machines, are other compilers of our
# shaders.
newest_lavapipe=$lavapipe
mesa=$(mesa_of "$lavapipe")
if [ -n "$lavapipe" ] && [ "${mesa:-0}" -lt 25 ]; then
    say "Mesa 25's lavapipe"
    if ! grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
        skip "Mesa 25 is fetched for Debian 12 only"
    elif ! fetch_lavapipe_25 && ! fetch_lavapipe_25; then # tried twice
        fail "Mesa 25's lavapipe could not be fetched from Debian's backports"
    elif step "Mesa 25's lavapipe loads" is_mesa_25 "$lavapipe_25"; then
        newest_lavapipe=$lavapipe_25 mesa=25
        on_lavapipe "lavapipe of Mesa 25" "$lavapipe_25" 256 -L "$driver_tests" -LE '^validation$'
    fi
fi
if [ -n "$newest_lavapipe" ]; then
    for width in 128 512; do
        on_lavapipe "lavapipe of Mesa ${mesa:-?}" "$newest_lavapipe" $width -L "$few_tests"
    done
fi
# Fault injection into drivers was tested above; tools/matrix.sh tests it on SwiftShader.
on_swiftshader 1/30 "$driver_tests" 'validation|planted'

# Other trees take the shaders and CUDA's emulator from the first one. Planted faults were found with the
# first compiler.
again="-DREE_SHADERS_FROM:STRING=build/src/device/vulkan/shaders -DREE_EMULATOR_FROM:STRING=build/tests/cuda
    -DREE_PLANTED_FAULTS=OFF"

say "building ($clang)"
forget_dead_openmp
# shellcheck disable=SC2086 # a list of words
if step "clang build" build_tree build-clang -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$clang" \
    -DCMAKE_CXX_COMPILER="clang++${clang#clang}" -DREE_CUDA=OFF $again; then
    # The checks of .clang-tidy: half a minute.
    if command -v "clang-tidy${clang#clang}" >/dev/null; then
        step "clang-tidy" tools/tidy.sh --tidy "clang-tidy${clang#clang}" build-clang
    else
        skip "this system has no clang-tidy${clang#clang}"
    fi
    # Another compiler may change bits: kernels, operators and models run again. Code that only
    # counts, compares and refuses was tested with the first compiler, and is tested with sanitizers
    # below.
    VK_ICD_FILENAMES=none suite "CPU, built by $clang" build-clang -LE '^(vulkan|oracle|one_compiler)$'
fi

# Sanitizers double the optimizer's work, and bits do not depend on optimization: -O1 compiles in
# half the time. With REE_STRICT_ALIASING, GCC also stops at casts between pointers that may not alias.
few_optimizations="-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"

say "building (AddressSanitizer, UndefinedBehaviorSanitizer)"
# shellcheck disable=SC2086 # a list of words
if step "sanitizer build" build_tree build-asan -DCMAKE_BUILD_TYPE=RelWithDebInfo "$few_optimizations" \
    -DREE_SANITIZE=ON -DREE_STRICT_ALIASING=ON -DREE_CUDA=OFF $again
then
    # Under a memory limit AddressSanitizer cannot allocate its own stacks: sandbox/budgets runs in
    # gcc's tree.
    ASAN_OPTIONS=allocator_may_return_null=1 VK_ICD_FILENAMES=none \
        suite "CPU, with sanitizers" build-asan -LE '^(vulkan|oracle|no_sanitizer)$'
    # Opening devices, programs of every RepOp, the cache of pipelines. LeakSanitizer would report
    # the driver's own leaks.
    if [ -n "$lavapipe" ]; then
        ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 VK_ICD_FILENAMES=$lavapipe REE_TEST_SAMPLE=1/10 \
            suite "lavapipe, with sanitizers" build-asan -L '^sanitized$'
    fi
fi

say "building (fuzzers)"
# shellcheck disable=SC2317 # called through step
build_fuzzers() {
    # shellcheck disable=SC2086 # a list of words
    configure_tree build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo "$few_optimizations" -DCMAKE_C_COMPILER="$clang" \
        -DREE_SANITIZE=ON -DREE_FUZZ=ON -DREE_CUDA=OFF $again &&
        ninja -C build-fuzz fuzz_onnx fuzz_value fuzz_checkpoint fuzz_seeds fuzz_tokenizer fuzz_source \
            fuzz_receipt fuzz_claim fuzz_message fuzz_trace fuzz_training fuzz_run fuzz_verify
}

# fuzz TARGET SEEDS... [options]: runs fuzz_TARGET for 20 seconds in one process. Sizes from hostile
# models may exhaust memory, which is an ordinary error. What a failure prints leaves out the lines
# of progress, which begin with #: there are thousands, and CI keeps only the end of its output.
# shellcheck disable=SC2317
fuzz() {
    target=$1
    shift
    fuzz_log=build/logs/fuzz_$target.log
    mkdir -p "build-fuzz/corpus-$target" &&
        ASAN_OPTIONS=allocator_may_return_null=1 OMP_WAIT_POLICY=passive \
            "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time=20 -artifact_prefix=build-fuzz/ \
            "build-fuzz/corpus-$target" "$@" >"$fuzz_log" 2>&1 && return
    echo "fuzz_$target failed; the end of $fuzz_log:"
    grep -v '^#' "$fuzz_log" | tail -n 60
    return 1
}

# both COMMAND1 -- COMMAND2: runs both at the same time; both must succeed. Their words must not
# contain spaces.
# shellcheck disable=SC2317
both() {
    first=""
    while [ "$1" != -- ]; do
        first="$first $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # a list of words
    $first &
    pid=$!
    "$@"
    second=$?
    wait "$pid" && [ "$second" = 0 ]
}

if step "fuzzer build" build_fuzzers; then
    say "fuzzing (20 seconds each, two at the same time)"
    data=tests/data seeds=build-fuzz/tests/fuzz
    runs="$seeds/runs $data/runs -timeout=20 -max_len=8192"
    step "fuzzing readers of models and checkpoints" both fuzz onnx $seeds/seeds -- \
        fuzz checkpoint $seeds/checkpoints -max_len=8192
    step "fuzzing readers of values and tokenizers" both fuzz value $seeds/values -- \
        fuzz tokenizer $data/tokenizers -timeout=20 -dict=tests/fuzz/tokenizer.dict
    step "fuzzing readers of receipts and of models' folders" both \
        fuzz receipt $data/receipt -timeout=20 -dict=tests/fuzz/receipt.dict -- fuzz source $data/folders
    step "fuzzing readers of traces and claims" both \
        fuzz trace $data/trace $data/trace_refused -timeout=20 -- \
        fuzz claim $data/claim -timeout=20 -max_len=65536 -dict=tests/fuzz/receipt.dict
    step "fuzzing readers of messages between ranks and of files of trainings" both \
        fuzz message $data/messages -timeout=20 -- fuzz training $data/training_files -timeout=20
    # shellcheck disable=SC2086 # a list of words
    step "fuzzing verification and runs of models" both \
        fuzz verify $seeds/receipts $data/verify -timeout=60 -max_len=16384 -- fuzz run $runs
fi
summary
