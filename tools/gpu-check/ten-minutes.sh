# shellcheck shell=sh disable=SC2034,SC2154 # sourced by gpu-check.sh; shares its variables
# The schedule of --ten-minutes: which steps, in which order, with which share of the time.

# Sets vulkan_devices to the Vulkan devices that are GPUs, or to those whose name has --vulkan's
# value, and no_vulkan to the reason if there are none.
find_vulkan_gpus() {
    vulkan_devices=$(awk -v part="$(printf %s "$vulkan" | tr '[:upper:]' '[:lower:]')" '
        /^[a-z]/ { spec = /^vulkan[: ]/ ? $1 : ""; if (spec && part && index(tolower($0), part)) print spec }
        !part && spec && / type  *.*GPU/ { print spec; spec = "" }' "$out/devices.log")
    [ -z "$vulkan_devices" ] || { no_vulkan=""; return; }
    no_vulkan=${no_vulkan:-no Vulkan device ${vulkan:+named }${vulkan:-is a GPU}}
    vulkan_devices=vulkan
}

# suffix DEVICE: prints how names of its steps end: cuda, vulkan or, of several, vulkan-1.
suffix() {
    case $vulkan_devices in
    *"$newline"*) printf %s "$1" | tr : - ;;
    *) printf %s "${1%%:*}" ;;
    esac
}

# plan SHARE NAME DEVICE COMMAND...: with counting=yes, adds the share to the sum of its kind;
# otherwise runs the step. Its limit is its part of the time that is left, as its share is part of
# the shares that are left: no step can take another one's time, and time that a step does not use
# is for all that follow.
plan() {
    share=$1 name=$2 device=$3
    shift 3
    wanted "$name" || return 0
    lacks=$no_cuda
    [ "$device" = cuda ] || lacks=$no_vulkan
    [ -z "$lacks" ] || share=0
    case $name in
    bench-*) kind=bench ;;
    *) kind=check ;;
    esac
    if [ "$counting" = yes ]; then
        if [ $kind = bench ]; then
            bench_shares=$((bench_shares + share))
        else
            check_shares=$((check_shares + share))
        fi
        return
    fi
    if [ "$share" = 0 ]; then
        part=0
    elif [ $kind = bench ]; then
        part=$((share * bench_percent * 1000 / bench_shares))
    else
        part=$((share * (100 - bench_percent) * 1000 / check_shares))
    fi
    left=$((end - $(now)))
    [ $left -gt 0 ] || left=0
    [ "$parts_left" -gt 0 ] || parts_left=1
    limit=$((left * part / parts_left))
    parts_left=$((parts_left - part))
    step "$name" $limit "$@"
}

# slice: saves the results so far, in case the machine goes away.
slice() { [ "$counting" = yes ] || [ -n "$stopped" ] || save; }

save() {
    write_result
    # Neither the archive nor a random model, if they are in $out.
    tar -C "$(dirname "$out")" --exclude '*.tar.gz*' --exclude 'ree-gpu-check-*' \
        -cf - "$(basename "$out")" 2>/dev/null | gzip >"$archive.new" && mv "$archive.new" "$archive"
}

# The shares are seconds of 600 if there is CUDA and one Vulkan device; the usage text lists them.
# shellcheck disable=SC2086 # lists of words
schedule() {
    devices=$vulkan_devices
    [ -n "$no_cuda" ] || devices="cuda $devices"
    first=${devices%%[ "$newline"]*} first_vulkan=${vulkan_devices%%"$newline"*}
    for d in $devices; do
        plan 10 "bench-ceilings-$(suffix "$d")" "$d" bench_sizes "$d" reproducible ceilings $elements
    done
    for d in $devices; do plan 25 "bench-cold-$(suffix "$d")" "$d" cold $shape "$d"; done
    plan 45 "bench-llm-$shape-$(suffix "$first")" "$first" llm $shape "$first"
    slice
    for d in $devices; do plan 4 "devices-$(suffix "$d")" "$d" devices "$d"; done
    for d in $devices; do plan 35 "models-$(suffix "$d")" "$d" models "$d"; done
    for d in $devices; do plan 15 "logits-$shape-$(suffix "$d")" "$d" logits $shape "$d"; done
    slice
    if [ $shape != tiny ]; then plan 80 "bench-llm-8b-$(suffix "$first")" "$first" llm 8b "$first"; fi
    for d in $devices; do
        plan 20 "bench-matmul-$(suffix "$d")" "$d" bench_sizes "$d" reproducible matmul $matmul_sizes
    done
    slice
    plan 40 cases-cuda cuda growing "$cuda_cases" each_repop program device_cuda_matches_cpu
    plan 40 cases-vulkan "$first_vulkan" growing "$vulkan_cases" each_repop \
        program device_vulkan_matches_cpu
    slice
    for d in $devices; do
        [ "$d" = "$first" ] || plan 25 "bench-llm-$shape-$(suffix "$d")" "$d" llm $shape "$d"
        for what in attention rows map conv; do
            eval "sizes=\$${what}_sizes"
            plan 4 "bench-$what-$(suffix "$d")" "$d" bench_sizes "$d" reproducible $what $sizes
        done
    done
    for set in deterministic default; do plan 4 bench-matmul-cuda-$set cuda cublas $set; done
    slice
    plan 12 kernels-cuda cuda program device_cuda_kernels 1
    for tool in memcheck racecheck initcheck; do
        plan 14 sanitizer-$tool cuda each_repop sanitizer $tool
    done
    slice
    plan 23 bench-ncu-cuda cuda profile_kernels $shape
    slice
    for d in $devices; do plan 8 "onnx-$(suffix "$d")" "$d" growing "$samples" onnx_of "$d"; done
    plan 4 functions-cuda cuda growing "$n_arguments" program device_cuda_functions
    plan 4 functions-vulkan "$first_vulkan" growing "$n_arguments" program device_vulkan_functions
}

# Tiny shapes are for a dry run: they show nothing but that the steps work.
ten_minutes_sizes() {
    shape=1b prompt_length=512 n_texts=9 n_new_tokens=9 batch_size=16 n_batch_tokens=33 runs=11
    elements=67108864 map_sizes=8388608 rows_sizes=4096x4096
    matmul_sizes="1x4096x4096 1024x1024x1024 4096x4096x4096 1x14336x4096 8192x4096x4096"
    attention_sizes="32x8x128x1024 32x8x128x8192" conv_sizes="1x64x56x56 16x256x28x28"
    cuda_cases="4 20 100 400 1000" vulkan_cases="1 4 16 64" sanitizer_cases=1
    n_arguments="4096 65536 1048576 16777216" samples="1/40 1/8 1/1"
    [ "$quick" = yes ] || return 0
    shape=tiny prompt_length=16 n_texts=3 n_new_tokens=5 batch_size=2 n_batch_tokens=5 runs=2
    elements=4096 map_sizes=4096 rows_sizes=16x64
    matmul_sizes="16x16x16 32x8x8" attention_sizes=2x1x16x64 conv_sizes=1x4x8x8
    cuda_cases="1 2" vulkan_cases=1 n_arguments="16 256" samples=1/40
}

# facts_step WHEN: its log is part of the archive. It has at most a twentieth of the time.
facts_step() {
    name=facts-$1 begin=$(now)
    deadline=$((begin + 1000 * total / 20 + 1000)) log=$out/$name.log
    run_in_background facts "$1"
    finished "$name" passed "$(seconds_since "$begin")" "$(grep -c . "$log") lines"
}

ten_minutes() {
    trap '' HUP # the end of a remote terminal does not end the check
    unsaved=yes
    ten_minutes_sizes
    # The rest is for the facts at the end and for the archive.
    end=$((started + 980 * total - 2000))
    watch_clocks >"$out/clocks.csv" 2>&1 &
    watcher=$!
    facts_step before
    find_vulkan_gpus
    bench_percent=55 bench_shares=0 check_shares=0 counting=yes
    schedule
    counting=no parts_left=0
    [ $bench_shares = 0 ] || parts_left=$((bench_percent * 1000))
    [ $check_shares = 0 ] || parts_left=$((parts_left + (100 - bench_percent) * 1000))
    schedule
    save # a second signal, or a hanging driver, may prevent the rest
    rm -f "$out/.stop"
    facts_step after
    kill $watcher 2>/dev/null
    watcher=""
    save
    unsaved=no
    say "result"
    cat "$out/table.txt"
    printf '\nresults: %d passed, %d right as far as time went, %d failed or unfinished, %d skipped\n' \
        "$n_passed" "$n_partial" "$n_failed" "$n_skipped"
    printf 'benchmarks: %d measured, %d failed or unfinished; %d s; %s\n' \
        "$n_measured" "$n_unmeasured" "$(seconds_since "$started")" "$archive"
    [ "$n_failed" = 0 ] && [ $((n_passed + n_partial)) != 0 ]
}
