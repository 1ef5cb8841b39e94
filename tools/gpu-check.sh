#!/bin/sh
# Checks ree on a machine with a GPU that has nothing but the GPU's driver: no network, no compiler, no
# Python. One machine packs a folder; the machine with the GPU runs it:
#
#     tools/gpu-check.sh pack build/gpu-check         # on the build machine; then copy the folder
#     gpu-check/gpu-check.sh run gpu-check            # on the GPU's machine, from any directory
#
# tools/gpu-check.sh pack FOLDER [options]: builds build-gpu, collects what the check needs, runs every
# model on the CPU and records its SHA-256.
#
#     --architectures LIST  CUDA architectures to build for, such as "80;90" (default 90). Needs nvcc
#     --no-build            use the binaries of an existing build tree
#     --build TREE          the build tree (default build-gpu)
#     --archive             also write FOLDER.tar.xz, a tenth of the size, for the transfer
#     --quick               only the smallest models and ONNX's smallest folder of operator tests
#
# tools/gpu-check.sh run FOLDER [options]: runs the steps below, each with a log and a time limit. It
# continues after a failure and ends with a table. It exits with 0 only if a step passed and no step
# failed or was unfinished.
#
#     --out DIR         folder for logs and result.json (default gpu-check-result)
#     --only LIST       only these steps, by name or beginning of a name, such as "models,functions-cuda"
#     --quick           fewer cases: minutes instead of an hour
#     --time SECONDS    time for all steps together; steps beyond it are unfinished
#     --vulkan NAME     the Vulkan device (default nvidia)
#     --cases N         random cases of each RepOp on CUDA; on Vulkan a tenth (default 1000; quick 60)
#     --sample N/D      fraction of ONNX's operator tests (default 1/1; quick 1/10)
#     --bits N          2^N arguments of each function on CUDA, 2^(N-4) on Vulkan (default 32; quick 28)
#     --functions LIST  only these functions, such as "exp_f32,tan_f32"
#
# Steps, in this order, if there is a device; BACKEND is cuda and then vulkan:
#
#     devices-BACKEND   the device opens; its facts and the probe's verdicts about its arithmetic
#     models-BACKEND    every model has the SHA-256 that was recorded on the CPU
#     cases-BACKEND     random cases of every RepOp give the CPU's bytes
#     kernels-cuda      every kernel at least a few times: random cases leave some out
#     products-cuda     more matrix products and convolutions, for every choice of the encoder
#     shapes-cuda       shapes that are larger than those of the random cases
#     onnx-BACKEND      ONNX's operator tests: their expected results, and the CPU's bytes
#     sanitizer-TOOL    memcheck, racecheck, synccheck of the kernels, if compute-sanitizer is installed
#     bench-WHAT-BACKEND[-SET]  matmul, conv, map, rows, attention, in each operation set; the bits of
#                       deterministic and default are not those of RepOps
#     bench-model-BACKEND  whole runs of every model: times, weights per second, time of each RepOp
#     functions-BACKEND every elementary function on as many arguments as --bits sets
#
# NVIDIA's driver is loaded from the system's folders, and from /usr/local/nvidia, where containers have
# it. VK_DRIVER_FILES and LD_LIBRARY_PATH override this. REE_CUDA_DRIVER=FILE replaces CUDA's driver
# (tests/cuda).
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=tools/packages.sh
. "$here/packages.sh"

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
value() { [ $# -gt 1 ] || die "$1 requires a value (try --help)"; }
number() { case $2 in '' | *[!0-9]*) die "$1 requires a number, not '$2'" ;; esac; }
programs="device_cuda_matches_cpu device_cuda_kernels device_cuda_products device_cuda_shapes device_cuda_functions
device_vulkan_matches_cpu device_vulkan_functions"

# --- pack ---

# copy_libraries FOLDER PROGRAM...: copies the libraries that the programs are linked with. Excluded
# are the C library, which must be the system's, and Vulkan's loader, which the programs open at run
# time.
copy_libraries() {
    to=$1
    shift
    ldd "$@" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u |
        grep -Ev '^(libc|libm|libdl|libpthread|librt)\.so' |
        while read -r name path; do cp -L "$path" "$to/$name" || exit 1; done || return 1
    for path in /usr/lib/*/libvulkan.so.1 /usr/lib64/libvulkan.so.1 /usr/lib/libvulkan.so.1; do
        [ -e "$path" ] || continue
        cp -L "$path" "$to/libvulkan.so.1"
        return
    done
    echo "libvulkan.so.1 not found (Debian: libvulkan1): the GPU's machine needs its own for Vulkan"
}

# copy_cases: copies the folders of ONNX's operator tests.
copy_cases() {
    kinds="node simple pytorch-operator pytorch-converted"
    [ "$quick" = no ] || kinds=simple
    for kind in $kinds; do
        cases=/usr/share/libonnx-testdata/data/$kind
        [ -d "$cases" ] || continue
        mkdir -p "$folder/onnx/libonnx-testdata"
        cp -R "$cases" "$folder/onnx/libonnx-testdata/$kind" || return
    done
    if [ "$quick" = no ] && [ -f "$shared/onnx-node-tests.tar.xz" ]; then
        python3 -m tarfile -e "$shared/onnx-node-tests.tar.xz" "$folder/onnx" || return
    fi
    [ -n "$(find "$folder/onnx" -name model.onnx | head -n 1)" ] ||
        echo "operator tests of ONNX not found (Debian: libonnx-testdata)"
}

copy_models() {
    mkdir -p "$folder/sample" "$folder/models"
    cp tools/sample/digits.onnx tools/sample/*.npy "$folder/sample" || return
    for model in "$shared"/models/*/; do
        [ -n "$(find "$model" -name '*.onnx' 2>/dev/null)" ] || continue
        [ "$quick" = no ] || [ "$(basename "$model")" = mnist-8 ] || continue
        cp -R "$model" "$folder/models/" || return
    done
}

pack() {
    folder="" tree=build-gpu architectures=90 build=yes archive=no quick=no
    while [ $# -gt 0 ]; do
        case $1 in
        --architectures) value "$@"; architectures=$2; shift ;;
        --build) value "$@"; tree=$2; shift ;;
        --no-build) build=no ;;
        --archive) archive=yes ;;
        --quick) quick=yes ;;
        -*) die "pack: unknown option '$1' (try --help)" ;;
        *) [ -z "$folder" ] || die "pack: expected one folder, not '$folder' and '$1'"; folder=$1 ;;
        esac
        shift
    done
    [ -n "$folder" ] || die "pack: no folder given (try --help)"
    mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
    if [ -n "$(ls -A "$folder")" ]; then
        [ -f "$folder/gpu-check.sh" ] || die "$folder is neither empty nor a packed folder"
        rm -rf "${folder:?}"/*
    fi
    [ "$build" = yes ] || tree=$(cd "$tree" && pwd) || exit 1
    cd "$here/.." || exit 1
    shared=${REE_SHARED_DIR:-../shared}

    if [ "$build" = yes ]; then
        say "building $tree for CUDA architectures $architectures"
        nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
        command -v nvcc >/dev/null || [ -x "$nvcc" ] ||
            die "nvcc is neither on PATH nor at $nvcc: install the CUDA toolkit, or use" \
                "--no-build with a tree that has the kernels"
        cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=ON -DREE_CUDA=ON \
            "-DREE_CUDA_ARCHITECTURES=$architectures" || die "configuring failed"
        # shellcheck disable=SC2086 # a list of words
        ninja -C "$tree" ree-run onnx_cases $programs || die "the build failed"
    fi

    say "collecting files"
    mkdir -p "$folder/bin" "$folder/lib" "$folder/onnx"
    cp "$tree/ree-run" "$tree/tests/models/onnx_cases" "$folder/bin" || die "$tree is not built"
    for program in $programs; do
        if [ -x "$tree/tests/device/$program" ]; then
            cp "$tree/tests/device/$program" "$folder/bin" || exit 1
        else
            echo "$program: not built, omitted"
        fi
    done
    copy_libraries "$folder/lib" "$folder"/bin/* || die "copying libraries failed"
    copy_cases || die "copying ONNX's operator tests failed"
    copy_models || die "copying models failed"
    cp tests/models/onnx_exceptions.txt tools/gpu-check.sh tools/packages.sh "$folder" &&
        sed -n 's/^MAP_OP(\([a-z0-9]*_f32\), 1, W, W, .*/\1/p' src/repops/map_ops.def |
        sed -n '/^neg_f32/,/^sign_f32/p' >"$folder/functions.txt" || exit 1
    [ -s "$folder/functions.txt" ] || die "src/repops/map_ops.def: no functions found"
    # The copied files are read-only; the next pack must be able to remove them.
    chmod -R u+w "$folder"

    say "recording the models' results on the CPU"
    python3 -B tests/models/real_models.py --ree-run "$tree/ree-run" --record "$folder" ||
        die "the CPU's results are not the recorded ones"

    say "packed"
    echo "$(du -sh "$folder" | cut -f 1)  $folder" \
        "($(grep -c . "$folder/expected.txt") runs of models," \
        "$(find "$folder/onnx" -name model.onnx | wc -l) operator tests)"
    if [ "$archive" = yes ]; then
        # The kernels are in every program: a dictionary that spans several programs finds the copies.
        tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" |
            xz --lzma2=preset=1,dict=192MiB >"$folder.tar.xz" || die "the archive failed"
        du -h "$folder.tar.xz"
    fi
}

# --- run ---

now() { date +%s; }

# limited COMMAND...: runs it within the time that is left for the step; returns 124 if that is
# over.
limited() {
    left=$((deadline - $(now)))
    [ $left -gt 0 ] || return 124
    timeout -k 10 $left "$@"
    rc=$?
    [ $rc != 137 ] || return 124
    return $rc
}

program() {
    [ -x "$folder/bin/$1" ] || { echo "skipped: $1 was not packed"; return 77; }
    name=$1
    shift
    limited "$folder/bin/$name" "$@"
}

wanted() {
    [ -n "$only" ] || return 0
    rest=$only,
    while [ -n "$rest" ]; do
        pattern=${rest%%,*} rest=${rest#*,}
        # shellcheck disable=SC2254 # patterns may be patterns
        case $1 in $pattern | $pattern-*) return 0 ;; esac
    done
    return 1
}

json_string() {
    printf '"%s"' "$(printf %s "$1" | tr '\t' ' ' | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

# finished STEP RESULT SECONDS NOTE: counts and records the result of a step.
finished() {
    case $2 in
    passed) n_passed=$((n_passed + 1)) ;;
    skipped) n_skipped=$((n_skipped + 1)) ;;
    *) n_failed=$((n_failed + 1)) ;;
    esac
    row=$(printf '%-36s %-10s %6s s  %s' "$1" "$2" "$3" "$(printf %s "$4" | cut -c 1-200)")
    echo "$row"
    echo "$row" >>"$out/table.txt"
    [ -z "$steps" ] || steps="$steps,
"
    steps="$steps    {\"step\": $(json_string "$1"), \"result\": \"$2\", \"seconds\": $3,
     \"note\": $(json_string "$4")}"
}

# note_of: prints one line about a log: the first failure, the number of models measured, the
# fastest result of a benchmark, or the last line.
note_of() { # LOG EXIT-CODE
    line=""
    [ "$2" = 0 ] || line=$(grep -m 1 -E 'FAILED|PASSED  ' "$1")
    rate='\([0-9.][0-9.]*\) \([A-Za-z/]*\)'
    [ -n "$line" ] || line=$(grep -E '^[0-9]+ of [0-9]+ models measured$' "$1")
    [ -n "$line" ] || line=$(sed -n "s|^ *\(.*[^ ]\)  *$rate *(middle half.*|\2 \3: \1|p" "$1" |
        sort -rn | head -n 1)
    [ -n "$line" ] || line=$(grep -v '^[[:space:]]*$' "$1" | tail -n 1)
    printf %s "$line"
}

# step NAME SECONDS COMMAND...: runs a step with a time limit; COMMAND is a function of this script.
step() {
    name=$1 limit=$2
    shift 2
    wanted "$name" || return 0
    case $name in *vulkan*) lacks=$no_vulkan ;; *) lacks=$no_cuda ;; esac
    if [ -n "$lacks" ]; then
        finished "$name" skipped 0 "$lacks"
        return 0
    fi
    begin=$(now)
    if [ -n "$end" ] && [ $((end - begin)) -lt "$limit" ]; then limit=$((end - begin)); fi
    if [ "$limit" -le 0 ]; then
        finished "$name" unfinished 0 "no time was left for it"
        return 0
    fi
    deadline=$((begin + limit))
    ("$@") >"$out/$name.log" 2>&1
    rc=$?
    note=$(note_of "$out/$name.log" $rc)
    case $rc in
    0) result=passed ;;
    77) result=skipped note=${note#skipped: } ;;
    124) result=unfinished note="time limit of $limit s: $note" ;;
    *) result=FAILED note="${note:-no output}, exit code $rc" ;;
    esac
    finished "$name" $result $(($(now) - begin)) "$note"
}

# shellcheck disable=SC2317 # these are called through step
devices() { # SPEC
    program ree-run devices "$1" >"$out/facts.txt"
    rc=$?
    cat "$out/facts.txt"
    [ $rc = 0 ] || return $rc
    # The last line goes into the table: the number of primitives, and how many are native.
    verdicts=$(sed -n '/^  primitive /,/^  not used /p' "$out/facts.txt" | grep -v '^  not used ')
    [ -n "$verdicts" ] || { echo "FAILED: no verdicts about the arithmetic"; return 1; }
    n_native=$(printf '%s\n' "$verdicts" | grep -cE '^ .{10,} native \(')
    echo "$(head -n 1 "$out/facts.txt"); $n_native of" \
        "$(printf '%s\n' "$verdicts" | grep -c .) primitives native"
}

# shellcheck disable=SC2317
models() { # DEVICE
    n=0 n_same=0
    while IFS="$tab" read -r sha256 name args; do
        n=$((n + 1))
        # shellcheck disable=SC2086 # a list of words
        text=$(cd "$folder" && program ree-run $args --device "$1" 2>&1)
        rc=$?
        [ $rc != 124 ] || { echo "$n_same of $n models, stopped at $name"; return 124; }
        got=$(printf '%s\n' "$text" | sed -n 's/^sha256  //p')
        if [ "$got" = "$sha256" ]; then
            n_same=$((n_same + 1))
            echo "$sha256  $name"
        else
            echo "FAILED: $name: ${got:-$(printf '%s\n' "$text" | tail -n 1)}, expected $sha256"
        fi
    done <"$folder/expected.txt"
    echo "$n_same of $n runs of models have the CPU's SHA-256"
    [ "$n" -gt 0 ] && [ "$n_same" = "$n" ]
}

# shellcheck disable=SC2317
onnx() { # DEVICE
    set -- --exceptions "$folder/onnx_exceptions.txt" --device "$1" --compare-with cpu \
        --sample "$sample"
    for cases in "$folder"/onnx/libonnx-testdata/* \
        "$folder/onnx/onnx-backend-tests/onnx/backend/test/data/node"; do
        [ -d "$cases" ] && set -- "$@" "$cases"
    done
    [ $# -gt 8 ] || { echo "skipped: no operator tests of ONNX were packed"; return 77; }
    program onnx_cases "$@"
}

# shellcheck disable=SC2317
sanitizer() { # TOOL
    tool=$(command -v compute-sanitizer) || tool=/usr/local/cuda/bin/compute-sanitizer
    if [ -n "${REE_CUDA_DRIVER:-}" ]; then
        echo "skipped: REE_CUDA_DRIVER names another driver than CUDA's"
        return 77
    elif [ ! -x "$tool" ]; then
        echo "skipped: compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin"
        return 77
    fi
    limited "$tool" --tool "$1" --error-exitcode 3 \
        "$folder/bin/device_cuda_matches_cpu" "$sanitizer_cases"
}

# shellcheck disable=SC2317
bench() { # WHAT DEVICE SET
    program ree-run bench "$1" --device "$2" --operation-set "$3" --runs "$runs"
}

# Complete runs of every model, with the inputs whose results were recorded.
# shellcheck disable=SC2317
bench_models() { # DEVICE
    n=0 n_failed_here=0
    while IFS="$tab" read -r _ name args; do
        case " $args " in *" --no-"*) continue ;; esac
        n=$((n + 1))
        # bench calls the option --seed N that ree-run calls --random-inputs N.
        args=$(printf '%s\n' "$args" | sed 's/--random-inputs/--seed/')
        # shellcheck disable=SC2086 # a list of words
        (cd "$folder" && program ree-run bench model $args --device "$1" --runs "$runs")
        rc=$?
        [ $rc != 124 ] || { echo "$n models, stopped at $name"; return 124; }
        [ $rc = 0 ] || { n_failed_here=$((n_failed_here + 1)); echo "FAILED: $name"; }
    done <"$folder/expected.txt"
    echo "$((n - n_failed_here)) of $n models measured"
    [ "$n" -gt 0 ] && [ $n_failed_here = 0 ]
}

# Each function in a process of its own, so that the log shows which functions were reached before a
# limit.
# shellcheck disable=SC2317
functions_of() { # PROGRAM BITS
    n=0 n_right=0
    for function in $functions; do
        n=$((n + 1)) start=$(now)
        text=$(program "$1" $((1 << $2)) "$function" 2>&1)
        rc=$?
        case $rc in
        0)
            n_right=$((n_right + 1))
            echo "$function: $(printf '%s\n' "$text" | tail -n 1), $(($(now) - start)) s"
            ;;
        77)
            printf '%s\n' "$text"
            return 77
            ;;
        124)
            echo "$n_right functions right on 2^$2 arguments each, stopped in $function"
            return 124
            ;;
        *) echo "FAILED: $function: $(printf '%s\n' "$text" | head -n 3)" ;;
        esac
    done
    echo "$n_right of $n functions right on 2^$2 arguments each"
    [ "$n" -gt 0 ] && [ "$n_right" = "$n" ]
}

# Finds the Vulkan driver of an NVIDIA GPU in folders that Vulkan's loader does not search, and
# selects only it.
find_vulkan_driver() {
    [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && [ "$vulkan" = nvidia ] || return 0
    for icd in /etc/vulkan/icd.d/nvidia*.json /usr/share/vulkan/icd.d/nvidia*.json \
        /usr/local/nvidia/share/vulkan/icd.d/nvidia*.json; do
        [ -f "$icd" ] || continue
        VK_DRIVER_FILES=$icd
        export VK_DRIVER_FILES
        return
    done
}

# Sets no_cuda and no_vulkan to the reason why a backend's steps cannot run; empty if they can.
find_devices() {
    deadline=$(($(now) + 120))
    if ! limited "$folder/bin/ree-run" devices >"$out/devices.log" 2>&1; then
        cat "$out/devices.log"
        die "ree-run devices failed; perhaps the C library is older than the packing machine's"
    fi
    no_cuda="" no_vulkan=""
    if ! grep -q '^cuda' "$out/devices.log"; then
        no_cuda=$(grep -m 1 '^CUDA: ' "$out/devices.log") || no_cuda="no CUDA device"
    fi
    if ! grep '^vulkan' "$out/devices.log" | grep -qiF "$vulkan"; then
        no_vulkan=$(grep -m 1 '^Vulkan: ' "$out/devices.log") ||
            no_vulkan="no Vulkan device named $vulkan"
    fi
}

run() {
    folder="" out=gpu-check-result only="" quick=no total="" vulkan=nvidia
    cases="" sample="" bits="" functions=""
    while [ $# -gt 0 ]; do
        case $1 in
        --out) value "$@"; out=$2; shift ;;
        --only) value "$@"; only=$2; shift ;;
        --quick) quick=yes ;;
        --time) value "$@"; number "$@"; total=$2; shift ;;
        --vulkan) value "$@"; vulkan=$2; shift ;;
        --cases) value "$@"; number "$@"; cases=$2; shift ;;
        --sample) value "$@"; sample=$2; shift ;;
        --bits) value "$@"; number "$@"; bits=$2; shift ;;
        --functions) value "$@"; functions=$(printf %s "$2" | tr , ' '); shift ;;
        -*) die "run: unknown option '$1' (try --help)" ;;
        *) [ -z "$folder" ] || die "run: expected one folder, not '$folder' and '$1'"; folder=$1 ;;
        esac
        shift
    done
    [ -n "$folder" ] || die "run: no folder given (try --help)"
    [ -f "$folder/expected.txt" ] || die "run: $folder was not packed (try --help)"
    folder=$(cd "$folder" && pwd) && mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
    rm -f "$out"/*.log "$out/table.txt" "$out/result.json"
    if [ "$quick" = yes ]; then
        cases=${cases:-60} sample=${sample:-1/10} bits=${bits:-28} runs=5 sanitizer_cases=2
    else
        cases=${cases:-1000} sample=${sample:-1/1} bits=${bits:-32} runs=21 sanitizer_cases=8
    fi
    [ "$bits" -le 32 ] || die "--bits $bits: a function of 32 bits has only 2^32 arguments"
    [ -n "$functions" ] || functions=$(cat "$folder/functions.txt")
    if [ "$bits" -gt 4 ]; then vulkan_bits=$((bits - 4)); else vulkan_bits=0; fi
    tab=$(printf '\t') n_passed=0 n_failed=0 n_skipped=0 steps="" end=""
    started=$(now)
    [ -z "$total" ] || end=$((started + total))

    # The driver's libraries come before ours, which are only for systems that lack them.
    path=${LD_LIBRARY_PATH:-}
    for folder_of_driver in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda/lib64; do
        [ -d $folder_of_driver ] && path=$path:$folder_of_driver
    done
    LD_LIBRARY_PATH=${path#:}${path:+:}$folder/lib
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
    export LD_LIBRARY_PATH
    find_vulkan_driver
    find_devices
    gpu="" driver=""
    if facts=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null); then
        facts=$(printf '%s\n' "$facts" | head -n 1)
        gpu=${facts%, *} driver=${facts##*, }
    fi
    say "${gpu:-a machine without nvidia-smi}${driver:+, driver $driver}; logs in $out"

    # Cheap and informative steps first.
    step devices-cuda 120 devices cuda
    step devices-vulkan 120 devices "vulkan:$vulkan"
    step models-cuda 300 models cuda
    step models-vulkan 600 models "vulkan:$vulkan"
    step cases-cuda 600 program device_cuda_matches_cpu "$cases"
    step kernels-cuda 300 program device_cuda_kernels 3
    step products-cuda 600 program device_cuda_products "$cases"
    step shapes-cuda 300 program device_cuda_shapes
    step cases-vulkan 600 program device_vulkan_matches_cpu $(((cases + 9) / 10))
    step onnx-cuda 600 onnx cuda
    step onnx-vulkan 900 onnx "vulkan:$vulkan"
    for tool in memcheck synccheck racecheck; do
        step sanitizer-$tool 600 sanitizer $tool
    done
    for what in matmul conv map rows attention; do
        for set in reproducible deterministic default; do
            suffix=-$set
            [ $set != reproducible ] || suffix=""
            step bench-$what-cuda$suffix 120 bench $what cuda $set
            step bench-$what-vulkan$suffix 120 bench $what "vulkan:$vulkan" $set
        done
    done
    step bench-model-cuda 300 bench_models cuda
    step bench-model-vulkan 300 bench_models "vulkan:$vulkan"
    step functions-vulkan 1800 functions_of device_vulkan_functions "$vulkan_bits"
    step functions-cuda 5400 functions_of device_cuda_functions "$bits"

    seconds=$(($(now) - started))
    cat >"$out/result.json" <<END
{
  "date": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "gpu": $(json_string "$gpu"),
  "driver": $(json_string "$driver"),
  "version": $(json_string "$("$folder/bin/ree-run" --version 2>&1 | head -n 1)"),
  "quick": $([ "$quick" = yes ] && echo true || echo false),
  "passed": $n_passed,
  "failed": $n_failed,
  "skipped": $n_skipped,
  "seconds": $seconds,
  "steps": [
$steps
  ]
}
END
    say "result"
    [ ! -f "$out/table.txt" ] || cat "$out/table.txt"
    printf '\n%d passed, %d failed or unfinished, %d skipped, %d s\n' \
        $n_passed $n_failed $n_skipped $seconds
    [ $n_failed = 0 ] && [ $n_passed != 0 ]
}

case ${1:-} in
pack | run)
    for arg in "$@"; do [ "$arg" != --help ] || { usage; exit 0; }; done
    command=$1
    shift
    $command "$@"
    ;;
--help) usage ;;
*) usage >&2; exit 2 ;;
esac
