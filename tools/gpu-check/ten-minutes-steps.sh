# shellcheck shell=sh disable=SC2034,SC2154,SC2317 # sourced by gpu-check.sh; shares its variables
# The steps that only --ten-minutes has. steps.sh says which exit codes they have.

# --- facts ---

# facts WHEN: the state of the machine and its GPUs.
facts() {
    echo "$1: $(date -u +%Y-%m-%dT%H:%M:%SZ), $(uname -srm)"
    sed -n 's/^model name[[:space:]]*: /processor: /p' /proc/cpuinfo | sort | uniq -c
    grep -E '^(MemTotal|MemAvailable)' /proc/meminfo
    if command -v nvidia-smi >/dev/null; then
        limited nvidia-smi
        limited nvidia-smi -q
    fi
    cat /proc/driver/nvidia/version 2>/dev/null
    facts_of_amd
    xids=$(dmesg 2>/dev/null | grep -E 'NVRM: Xid|amdgpu.*(reset|timeout)|GPU HANG')
    [ -z "$xids" ] || printf 'kernel log:\n%s\n' "$xids"
    limited "$folder/bin/ree-run" devices
}

# What amdgpu reports in sysfs: memory in bytes, clocks in Hz, power in microwatts, temperatures in
# thousandths of a degree.
facts_of_amd() {
    for card in /sys/class/drm/card*/device; do
        [ -f "$card/mem_info_vram_total" ] || continue
        echo "amdgpu $card"
        for file in "$card"/device "$card"/mem_info_vram_* "$card"/mem_info_gtt_* \
            "$card"/gpu_busy_percent "$card"/pp_dpm_sclk "$card"/pp_dpm_mclk \
            "$card"/current_link_* "$card"/ras/*err_count "$card"/hwmon/hwmon*/freq*_input \
            "$card"/hwmon/hwmon*/temp*_input "$card"/hwmon/hwmon*/power1_*; do
            [ -r "$file" ] && sed "s|^|  ${file#"$card"/} |" "$file" 2>/dev/null
        done
    done
}

# Writes clocks, temperature and power once in a second, until it is killed. Rates of a GPU that was
# too hot or had no power mean little.
watch_clocks() {
    if command -v nvidia-smi >/dev/null; then
        query=timestamp,index,pstate,clocks.sm,clocks.mem,temperature.gpu,power.draw,memory.used
        more=clocks_throttle_reasons.active # not every driver knows this name
        ! nvidia-smi --query-gpu=$more --format=csv >/dev/null 2>&1 || query=$query,$more
        exec nvidia-smi -l 1 --format=csv --query-gpu=$query
    fi
    while ls /sys/class/drm/card*/device/mem_info_vram_total >/dev/null 2>&1; do
        date +%H:%M:%S
        facts_of_amd | grep -E '^amdgpu|busy|vram_used|_input|power1_average|[*]$'
        sleep 1
    done
}

# --- benchmarks ---

# bench_sizes DEVICE SET WHAT SIZE...: one process for each size, so that a time limit costs only
# the sizes that are not reached.
bench_sizes() {
    n=0 of=$(($# - 3)) spec=$1 set=$2 what=$3
    shift 3
    for size in "$@"; do
        program ree-run bench "$what" --device "$spec" --operation-set "$set" --runs "$runs" \
            --size "$size"
        rc=$?
        [ $rc != 124 ] || echo "$n of $of sizes, stopped at $size"
        [ $rc = 0 ] || return $rc
        n=$((n + 1))
    done
}

# cublas SET: products by the vendor's library.
cublas() {
    if ! message=$(program ree-run devices cuda --operation-set "$1" 2>&1); then
        case $message in *libcublas*)
            echo "skipped: ${message#*CUDA: }"
            return 77
            ;;
        esac
    fi
    # shellcheck disable=SC2086 # a list of words
    bench_sizes cuda "$1" matmul $matmul_sizes
}

# start WHAT DEVICE: opens the device, then generates two tokens. Prints the times of both, and adds
# them to the summary.
start() {
    before=$(now)
    program ree-run devices "$2" >/dev/null || return
    opened=$(($(now) - before))
    before=$(now)
    text=$(program ree-run "$model" --prompt-ids 1,2,3,4,5,6,7,8 --max-new-tokens 2 --ignore-eos \
        --device "$2" 2>&1)
    rc=$?
    whole=$(($(now) - before))
    printf '%s\n%s\n' "$1: device opened in $opened ms; process with two tokens: $whole ms" "$text"
    [ $rc = 0 ] || return $rc
    first=$(printf '%s\n' "$text" | sed -n 's/^first token after \([0-9.]* s\);.*/\1/p')
    printf '%s' "$1: opened in $opened ms, first token after $first; " >>"$caches/summary"
}

# cold SHAPE DEVICE: the first start on a machine, in which ree and the driver compile everything; a
# start in which ree's cache has the results of its self-tests; one that fills the driver's caches;
# and one with all caches.
cold() {
    random_model "$1" "$2" || return
    caches=$(mktemp -d) || return 1
    export XDG_CACHE_HOME="$caches" CUDA_CACHE_PATH="$caches/cuda" \
        __GL_SHADER_DISK_CACHE_PATH="$caches" MESA_SHADER_CACHE_DIR="$caches/mesa"
    (
        export CUDA_CACHE_DISABLE=1 __GL_SHADER_DISK_CACHE=0 MESA_SHADER_CACHE_DISABLE=true \
            MESA_GLSL_CACHE_DISABLE=true AMD_SHADER_DISK_CACHE_ENABLE=0
        start cold "$2" && start "ree's cache" "$2"
    ) && start "driver's caches empty" "$2" && start warm "$2"
    rc=$?
    echo
    [ ! -f "$caches/summary" ] || sed 's/; $//' "$caches/summary"
    rm -rf "$caches"
    return $rc
}

# token_ids N SEED: prints N token ids.
token_ids() {
    awk -v n="$1" -v seed="$2" -v vocab="$vocab" \
        'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", (i * 7919 + seed * 104729) % vocab }'
}

# generate DEVICE BATCH PROMPTS LENGTH NEW: generates texts; prints what ree-run reports.
generate() {
    spec=$1 batch=$2 n_prompts=$3 length=$4 n_new=$5
    set --
    while [ "$n_prompts" -gt 0 ]; do
        set -- "$@" --prompt-ids "$(token_ids "$length" "$n_prompts")"
        n_prompts=$((n_prompts - 1))
    done
    program ree-run "$model" "$@" --max-new-tokens "$n_new" --ignore-eos --no-echo --stats \
        --batch-size "$batch" --device "$spec" 2>&1
}

# seconds_of TEXT WHAT: prints number of tokens and seconds of the line "prompt" or "answer".
seconds_of() {
    printf '%s\n' "$1" | sed -n "s/^$2  *\([0-9]*\) tokens  *\([0-9.]*\) s .*/\1 \2/p"
}

# llm SHAPE DEVICE: prefill, decoding of one text, and of a batch. The first prompt and the first step
# of a process also pay for binding and for uploading the weights; the difference of two processes
# does not. Only the first process on a machine tests and compiles the kernels, so it is not measured.
llm() {
    before=$(now)
    random_model "$1" "$2" || return
    echo "$1: $model_layers, $model_bytes bytes of weights in $model, after $(($(now) - before)) ms"
    printf '\nfirst process, not measured\n'
    first=$(generate "$2" 1 1 "$prompt_length" 2)
    rc=$?
    printf '%s\n' "$first" | without_texts
    [ $rc = 0 ] || return $rc
    printf '\none prompt\n'
    one=$(generate "$2" 1 1 "$prompt_length" 2)
    rc=$?
    printf '%s\n' "$one" | without_texts
    [ $rc = 0 ] || return $rc
    printf '\n%s prompts, one after the other\n' "$n_texts"
    several=$(generate "$2" 1 "$n_texts" "$prompt_length" "$n_new_tokens")
    rc=$?
    printf '%s\n' "$several" | without_texts
    [ $rc = 0 ] || return $rc
    rates=$(echo "$(seconds_of "$one" prompt) $(seconds_of "$several" prompt)" \
        "$(seconds_of "$one" answer) $(seconds_of "$several" answer)" |
        awk -v layers="$model_layers" -v bytes="$step_bytes" '
            NF == 8 && $4 > $2 && $8 > $6 {
                decode = ($7 - $5) / ($8 - $6)
                printf "prefill %.1f tokens/s, decode %.2f tokens/s (%.1f GB/s of weights); %s\n",
                    ($3 - $1) / ($4 - $2), decode, 1e-9 * bytes * decode, layers
            }')
    printf '\n%s\n' "${rates:=too fast to measure}"
    printf '\n%s prompts at once\n' "$batch_size"
    all=$(generate "$2" "$batch_size" "$batch_size" 32 "$n_batch_tokens")
    rc=$?
    printf '%s\n\n' "$all" | without_texts
    [ $rc = 0 ] || return $rc
    echo "$(seconds_of "$one" answer) $(seconds_of "$all" answer)" |
        awk -v n="$batch_size" -v rates="$rates" '{
            if ($4 > $2) printf "batch of %d: %.2f tokens/s; ", n, ($3 - n * $1) / ($4 - $2)
            print rates }'
}

# Omits the tokens; keeps their SHA-256.
without_texts() { grep -E '^[a-z]' | cut -c 1-200; }

# profile_kernels SHAPE: the kernels that take most of the time of a step, and of a prompt.
profile_kernels() {
    for tool in "$(command -v ncu)" /usr/local/cuda/bin/ncu /opt/nvidia/nsight-compute/*/ncu; do
        [ ! -x "$tool" ] || break
    done
    if [ -n "${REE_CUDA_DRIVER:-}" ]; then
        echo "skipped: REE_CUDA_DRIVER names another driver than CUDA's"
        return 77
    elif [ ! -x "$tool" ]; then
        echo "skipped: ncu is neither on PATH nor in /usr/local/cuda or /opt/nvidia"
        return 77
    fi
    random_model "$1" cuda || return
    profile 1 "$out/ncu-step.csv" top-kernels-step.txt || return
    profile "$prompt_length" "$out/ncu.csv" top-kernels.txt
    rc=$?
    [ $rc != 124 ] || rc=0 # the step's table is there
    return $rc
}

# profile LENGTH FILE SUMMARY: profiles the first launches of a prompt of so many tokens and of some
# steps, and writes ncu's table to FILE and its sums by kernel to $out/SUMMARY. A prompt of one token
# is a step. Returns 124 if the time was over before ncu wrote anything.
profile() {
    of_peak=avg.pct_of_peak_sustained_elapsed
    metrics=gpu__time_duration.sum,sm__throughput.$of_peak,dram__throughput.$of_peak
    metrics=$metrics,gpu__compute_memory_throughput.$of_peak
    # Without --clock-control none, ncu lowers the clocks, also for other programs.
    limited "$tool" --csv --page raw --print-units base --kernel-name-base function \
        --clock-control none --metrics $metrics --launch-count 350 "$folder/bin/ree-run" "$model" \
        --no-sandbox --prompt-ids "$(token_ids "$1" 1)" --max-new-tokens 8 \
        --ignore-eos --device cuda >"$2" 2>&1
    rc=$?
    if grep -q ERR_NVGPUCTRPERM "$2"; then
        echo "skipped: this user may not read the GPU's counters (ERR_NVGPUCTRPERM)"
        return 77
    fi
    echo "the first 350 launches, with a prompt of $1 tokens"
    if [ $rc = 124 ] && ! grep -q '^"ID"' "$2"; then return 124; fi
    top_kernels "$2" "$3" || { tail -n 5 "$2"; return 1; }
    [ $rc = 0 ] || [ $rc = 124 ] || return $rc
}

# top_kernels FILE SUMMARY: sums up the rows of ncu's table by kernel; the slowest first.
top_kernels() {
    sed -n '/^"ID"/,$p' "$1" | sed 's/^"//; s/"$//; s/","/	/g' | awk -F '	' '
        NR == 1 {
            for (i = 1; i <= NF; i++) {
                if ($i == "Kernel Name") name = i
                if ($i ~ /^gpu__time_duration/) time = i
                if ($i ~ /^sm__throughput/) sm = i
                if ($i ~ /^gpu__compute_memory/) memory = i
                if ($i ~ /^dram__throughput/) dram = i
            }
            next
        }
        NR == 2 { unit = $time; next }
        name && NF >= name {
            gsub(",", "", $time)
            n[$name]++; t[$name] += $time; all += $time
            s[$name] += $time * $sm; m[$name] += $time * $memory; d[$name] += $time * $dram
        }
        END {
            if (!all) exit 1
            for (k in n)
                printf "%5.1f %% %12.0f %s %6d  SM %5.1f %%  memory %5.1f %%  DRAM %5.1f %%  %s\n",
                    100 * t[k] / all, t[k], unit, n[k], s[k] / t[k], m[k] / t[k], d[k] / t[k], k
        }' >"$out/$2" || return
    sort -rn "$out/$2" | head -n 20
    sort -rn "$out/$2" | head -n 1 | sed 's/^/slowest: /'
}

# --- correctness ---

# growing SIZES COMMAND...: runs the command with each size, as long as there is time. A larger size
# contains the smaller ones' cases.
growing() {
    sizes=$1 reached=""
    shift
    for size in $sizes; do
        "$@" "$size"
        rc=$?
        case $rc in
        0) reached=$size ;;
        75 | 124)
            # A test prints failures at once.
            ! grep -q FAILED "$log" || return 1
            [ -n "$reached" ] || return $rc
            echo "right for $reached, not enough time for $size"
            out_of_time 1 0
            return
            ;;
        *) return $rc ;;
        esac
    done
}

# How the lines of compute-sanitizer about an error begin.
sanitizer_words='Invalid|Error|Uninitialized|Program hit'

# each_repop COMMAND...: runs the command for the RepOps one by one, with the RepOp's name as its last
# argument.
each_repop() {
    n_repops=0
    while read -r repop; do
        "$@" "$repop" </dev/null
        rc=$?
        if [ $rc = 124 ]; then
            echo "$n_repops RepOps right, stopped in $repop"
            ! grep -qE "FAILED|^=+ ($sanitizer_words)" "$log" || return 1
            out_of_time $n_repops 0
            return
        fi
        [ $rc = 0 ] || return $rc
        n_repops=$((n_repops + 1))
    done <"$folder/repops.txt"
    echo "$n_repops RepOps right"
}

# logits SHAPE DEVICE: a model of this shape gives the CPU's bytes: the SHA-256 of the logits of all
# tokens.
logits() {
    random_model "$1" "$2" || return
    if [ ! -s "$out/$1.logits.txt" ]; then
        logits_on cpu >"$out/$1.logits.new"
        rc=$?
        [ $rc = 0 ] || { cat "$out/$1.logits.new"; return $rc; }
        mv "$out/$1.logits.new" "$out/$1.logits.txt"
    fi
    expected=$(cat "$out/$1.logits.txt")
    got=$(logits_on "$2")
    rc=$?
    printf 'cpu:\n%s\n%s:\n%s\n' "$expected" "$2" "$got"
    [ $rc = 0 ] || return $rc
    [ "$got" = "$expected" ] || { echo "FAILED: the logits are not the CPU's"; return 1; }
    echo "the CPU's logits; $model_layers"
}

# logits_on DEVICE: prints the SHA-256 of the tokens and of their logits.
logits_on() {
    text=$(program ree-run "$model" --prompt-ids "$(token_ids 8 1)" --max-new-tokens 3 \
        --ignore-eos --logits-hash --device "$1" 2>&1)
    rc=$?
    if [ $rc = 0 ]; then
        printf '%s\n' "$text" | grep -E '^(tokens|logits) '
    else
        printf '%s\n' "$text"
        return $rc
    fi
}

onnx_of() { sample=$2; onnx "$1"; }
