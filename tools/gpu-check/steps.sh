# shellcheck shell=sh disable=SC2034,SC2154,SC2317 # sourced by gpu-check.sh; shares its variables
# The steps: functions that run.sh calls, with the exit codes that it defines.

devices() { # SPEC
    text=$(program ree-run devices "$1")
    rc=$?
    printf '%s\n' "$text"
    [ $rc = 0 ] || return $rc
    # The last line goes into the table: the number of primitives, and how many are native.
    verdicts=$(printf '%s\n' "$text" | sed -n '/^  primitive /,/^  not used /p' |
        grep -v '^  not used ')
    [ -n "$verdicts" ] || { echo "FAILED: no verdicts about the arithmetic"; return 1; }
    n_native=$(printf '%s\n' "$verdicts" | grep -cE '^ .{10,} native \(')
    echo "$(printf '%s\n' "$text" | head -n 1); $n_native of" \
        "$(printf '%s\n' "$verdicts" | grep -c .) primitives native"
}

# out_of_time RIGHT WRONG: the exit code of a step that compared some results before its time was
# over. With --ten-minutes this is expected.
out_of_time() {
    if [ "$ten_minutes" = yes ] && [ "$1" -gt 0 ] && [ "$2" = 0 ] && [ ! -e "$out/.stop" ]; then
        return 75
    fi
    return 124
}

models() { # DEVICE
    n=0 n_same=0
    while IFS="$tab" read -r sha256 name args; do
        n=$((n + 1))
        # shellcheck disable=SC2086 # a list of words
        text=$(cd "$folder" && program ree-run $args --device "$1" 2>&1)
        rc=$?
        if [ $rc = 124 ]; then
            echo "$n_same of $n models, stopped at $name"
            out_of_time $n_same $((n - 1 - n_same))
            return
        fi
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

sanitizer() { # TOOL [REPOP]
    tool=$(command -v compute-sanitizer) || tool=/usr/local/cuda/bin/compute-sanitizer
    if [ -n "${REE_CUDA_DRIVER:-}" ]; then
        echo "skipped: REE_CUDA_DRIVER names another driver than CUDA's"
        return 77
    elif [ ! -x "$tool" ]; then
        echo "skipped: compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin"
        return 77
    fi
    limited "$tool" --tool "$1" --error-exitcode 3 \
        "$folder/bin/device_cuda_matches_cpu" "$sanitizer_cases" ${2:+"$2"}
}

bench() { # WHAT DEVICE SET
    program ree-run bench "$1" --device "$2" --operation-set "$3" --runs "$runs"
}

# Complete runs of every model, with the inputs whose results were recorded.
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
functions_of() { # PROGRAM BITS
    n=0 n_right=0
    for function in $functions; do
        n=$((n + 1)) start=$(now)
        text=$(program "$1" $((1 << $2)) "$function" 2>&1)
        rc=$?
        case $rc in
        0)
            n_right=$((n_right + 1))
            echo "$function: $(printf '%s\n' "$text" | tail -n 1), $(seconds_since "$start") s"
            ;;
        77)
            printf '%s\n' "$text"
            return 77
            ;;
        124)
            echo "$n_right functions right on 2^$2 arguments each, stopped in $function"
            out_of_time $n_right $((n - 1 - n_right))
            return
            ;;
        *) echo "FAILED: $function: $(printf '%s\n' "$text" | head -n 3)" ;;
        esac
    done
    echo "$n_right of $n functions right on 2^$2 arguments each"
    [ "$n" -gt 0 ] && [ "$n_right" = "$n" ]
}

# The whole check, with cheap and informative steps first.
all_steps() {
    step devices-cuda 120000 devices cuda
    step devices-vulkan 120000 devices "vulkan:$vulkan"
    step models-cuda 300000 models cuda
    step models-vulkan 600000 models "vulkan:$vulkan"
    step cases-cuda 600000 program device_cuda_matches_cpu "$cases"
    step kernels-cuda 300000 program device_cuda_kernels 3
    step products-cuda 600000 program device_cuda_products "$cases"
    step shapes-cuda 300000 program device_cuda_shapes
    step cases-vulkan 600000 program device_vulkan_matches_cpu $(((cases + 9) / 10))
    step onnx-cuda 600000 onnx cuda
    step onnx-vulkan 900000 onnx "vulkan:$vulkan"
    for tool in memcheck synccheck racecheck; do
        step sanitizer-$tool 600000 sanitizer $tool
    done
    for what in matmul conv map rows attention; do
        for set in reproducible deterministic default; do
            suffix=-$set
            [ $set != reproducible ] || suffix=""
            step bench-$what-cuda$suffix 120000 bench $what cuda $set
            step bench-$what-vulkan$suffix 120000 bench $what "vulkan:$vulkan" $set
        done
    done
    step bench-model-cuda 300000 bench_models cuda
    step bench-model-vulkan 300000 bench_models "vulkan:$vulkan"
    step functions-vulkan 1800000 functions_of device_vulkan_functions "$vulkan_bits"
    step functions-cuda 5400000 functions_of device_cuda_functions "$bits"

    write_result
    say "result"
    [ ! -f "$out/table.txt" ] || cat "$out/table.txt"
    printf '\n%d passed, %d failed or unfinished, %d skipped, %d s\n' \
        "$n_passed" "$n_failed" "$n_skipped" "$(seconds_since "$started")"
    [ "$n_failed" = 0 ] && [ "$n_passed" != 0 ]
}
