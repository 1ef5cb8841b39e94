# shellcheck shell=sh disable=SC2034,SC2154 # sourced by gpu-check.sh; shares its variables
# Runs steps, each with a log and a time limit, and records their results.

# now: prints the time in milliseconds, as all times here; of whole seconds if date has no %N.
now() {
    ns=$(date +%s%N)
    case $ns in *[!0-9]*) echo "$(date +%s)000" ;; *) echo "${ns%??????}" ;; esac
}

# seconds_since TIME: prints the seconds since then, rounded.
seconds_since() { echo $((($(now) - $1 + 500) / 1000)); }

# limited COMMAND...: runs it within the time that is left for the step; returns 124 if that is
# over. While it runs, its process is in $out/.pid, so that a signal can end it.
limited() {
    # A signal for the whole process group also reaches this shell, which must report the result.
    [ "$in_step" = no ] || trap 'touch "$out/.stop"' INT TERM
    left=$((deadline - $(now)))
    if [ $left -le 0 ] || [ -e "$out/.stop" ]; then return 124; fi
    if [ "$has_fractions" = yes ]; then
        left=$((left / 1000)).$(printf %03d $((left % 1000)))
    else
        left=$(((left + 999) / 1000))
    fi
    timeout -k "$grace" "$left" "$@" &
    pid=$!
    echo $pid >"$out/.pid"
    # A signal ends wait, but not the process.
    while :; do
        wait $pid
        rc=$?
        kill -0 $pid 2>/dev/null || break
    done
    rm -f "$out/.pid" # its number may soon be another process's
    # At the time limit, timeout -k may return 137, and busybox's timeout 143. Before it, something
    # else has killed the program: the kernel does if memory is exhausted.
    case $rc in 137 | 143) [ "$(now)" -lt "$deadline" ] || rc=124 ;; esac
    [ ! -e "$out/.stop" ] || rc=124
    return "$rc"
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

# finished STEP RESULT SECONDS NOTE: counts and records the result of a step. Facts do not count. In
# --ten-minutes, benchmarks are counted separately, because they do not decide.
finished() {
    case $ten_minutes$1 in
    yesfacts-*) ;;
    yesbench-*)
        case $2 in
        passed) n_measured=$((n_measured + 1)) ;;
        skipped) ;;
        *) n_unmeasured=$((n_unmeasured + 1)) ;;
        esac
        ;;
    *)
        case $2 in
        passed) n_passed=$((n_passed + 1)) ;;
        partial) n_partial=$((n_partial + 1)) ;;
        skipped) n_skipped=$((n_skipped + 1)) ;;
        *) n_failed=$((n_failed + 1)) ;;
        esac
        ;;
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

# What a log says if a device can no longer be used by the process, or by any process.
lost_words='CUDA_ERROR_(ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE'
lost_words="$lost_words|INVALID_PC|LAUNCH_FAILED|LAUNCH_TIMEOUT|HARDWARE_STACK_ERROR|ECC_UNCORRECTABLE"
lost_words="$lost_words|CONTEXT_IS_DESTROYED|DEVICE_UNAVAILABLE|EXTERNAL_DEVICE|UNKNOWN)"
lost_words="$lost_words|VK_ERROR_DEVICE_LOST|GPU is lost|fallen off the bus|[^a-z]Xid[^a-z]"

# is_lost STEP DEVICE: whether the device is lost for further processes too. A step has reported
# that it lost the device; that may be a fault of one kernel. So a fresh process opens the device,
# which runs a few kernels, and nvidia-smi must not report an error. (Its report of an Xid has no
# fixed form.)
is_lost() {
    deadline=$(($(now) + 30000))
    case $2 in
    cuda*)
        if command -v nvidia-smi >/dev/null &&
            limited nvidia-smi 2>&1 | tee -a "$out/$1.lost.log" | grep -qE "$lost_words"; then
            return 0
        fi
        ;;
    esac
    ! limited "$folder/bin/ree-run" devices "$2" >>"$out/$1.lost.log" 2>&1
}

# unreached STEP SECONDS NOTE: records a step for which there was no time. With --ten-minutes this is
# expected of a slow device: a comparison that found nothing wrong does not decide.
unreached() {
    case $ten_minutes$stopped:$1 in
    yes:bench-* | no* | yes?*:*) finished "$1" unfinished "$2" "${stopped:-$3}" ;;
    *) finished "$1" skipped "$2" "no time: $3" ;;
    esac
}

# step NAME MILLISECONDS COMMAND...: runs a step with a time limit; COMMAND is a function of these files.
# With --ten-minutes, `device` is the step's device. The exit code of COMMAND:
#
#     0      passed
#     75     partial: nothing was wrong in the part that there was time for
#     77     skipped
#     124    unfinished
#     other  failed; also 75, 77 and 124 if the log has FAILED
step() {
    name=$1 limit=$2
    shift 2
    wanted "$name" || return 0
    if [ "$ten_minutes" = no ]; then
        case $name in *vulkan*) device=vulkan:$vulkan ;; *) device=cuda ;; esac
    fi
    case $device in vulkan*) lacks=$no_vulkan ;; *) lacks=$no_cuda ;; esac
    if [ -n "$lacks" ]; then
        finished "$name" skipped 0 "$lacks"
        return 0
    fi
    case "$lost," in
    *",$device "*)
        why=${lost#*",$device "}
        finished "$name" unfinished 0 "the device is lost since ${why%%,*}"
        return 0
        ;;
    esac
    begin=$(now)
    if [ -n "$end" ] && [ $((end - begin)) -lt "$limit" ]; then limit=$((end - begin)); fi
    if [ -n "$stopped" ] || [ "$limit" -le 0 ]; then
        unreached "$name" 0 "none was left"
        return 0
    fi
    deadline=$((begin + limit)) log=$out/$name.log
    echo "$name" >"$out/.step"
    run_in_background "$@"
    case $rc in 75 | 77 | 124) ! grep -q FAILED "$log" || rc="1 after $rc" ;; esac
    note=$(note_of "$log" "$rc")
    case $rc in
    0) result=passed ;;
    75) result=partial ;;
    77) result=skipped note=${note#skipped: } ;;
    124) result=unfinished note="time limit of $((limit / 1000)).$((limit / 100 % 10)) s: $note" ;;
    stuck) result=unfinished note="its process does not end, not even after SIGKILL" ;;
    slow) result=unfinished note="the machine did not run its commands in time: $note" ;;
    *) result=FAILED note="${note:-no output}, exit code $rc" ;;
    esac
    if [ "$rc" = 124 ]; then
        unreached "$name" "$(seconds_since "$begin")" "$note"
    else
        finished "$name" $result "$(seconds_since "$begin")" "$note"
    fi
    case $rc in
    0 | 75 | 77 | slow) return 0 ;;
    stuck) lost="$lost,$device $name" ;;
    *)
        if grep -qE "$lost_words" "$log" && is_lost "$name" "$device"; then
            lost="$lost,$device $name"
            echo "  $device is lost: two processes in a row could not use it; it gets no further steps"
        fi
        ;;
    esac
}

# Finds the Vulkan driver of an NVIDIA GPU in folders that Vulkan's loader does not search, and
# selects only it. Without a name (--ten-minutes): all drivers of GPUs, not those that run on the
# processor.
find_vulkan_driver() {
    [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] || return 0
    drivers=""
    for icd in /etc/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json \
        /usr/share/vulkan/icd.d/*.json /usr/local/nvidia/share/vulkan/icd.d/*.json; do
        [ -f "$icd" ] || continue
        base=${icd##*/}
        case $vulkan:$base in
        nvidia:nvidia*) ;;
        :lvp_* | [!:]*) continue ;;
        esac
        # The same file in two folders is one driver.
        case :$drivers: in *"/$base:"*) ;; *) drivers=${drivers:+$drivers:}$icd ;; esac
    done
    [ -n "$drivers" ] || return 0
    VK_DRIVER_FILES=$drivers
    VK_ICD_FILENAMES=$drivers # the name that older loaders know
    export VK_DRIVER_FILES VK_ICD_FILENAMES
}

# Sets no_cuda and no_vulkan to the reason why a backend's steps cannot run; empty if they can.
find_devices() {
    seconds=120 no_cuda="" no_vulkan=""
    [ "$ten_minutes" = no ] || seconds=$((total / 20 + 1))
    deadline=$(($(now) + 1000 * seconds))
    if ! limited "$folder/bin/ree-run" devices >"$out/devices.log" 2>&1; then
        # One driver may hang; the other may not.
        for backend in cuda vulkan; do
            deadline=$(($(now) + 1000 * seconds))
            limited "$folder/bin/ree-run" devices $backend >>"$out/devices.log" 2>&1
        done
        grep -qE '^(cuda|vulkan)' "$out/devices.log" || return
    fi
    if ! grep -q '^cuda' "$out/devices.log"; then
        no_cuda=$(grep -m 1 '^CUDA: ' "$out/devices.log") || no_cuda="no CUDA device"
    fi
    if ! grep '^vulkan' "$out/devices.log" | grep -qiF "$vulkan"; then
        no_vulkan=$(grep -m 1 '^Vulkan: ' "$out/devices.log") ||
            no_vulkan="no Vulkan device named $vulkan"
    fi
}

# run_in_background COMMAND...: runs it in a shell with its output in $log and sets rc to its exit
# code, or to
#
#     stuck  a program that `limited` started does not end: the device may be lost
#     slow   the shell does not end, but no such program runs: another part of the machine is slow
#
# It waits in short intervals, so that signals are handled, and so that a process that hangs in the
# driver does not hold up the others.
run_in_background() {
    n_runs=$((n_runs + 1))
    result_file=$out/.rc-$$-$n_runs # of its own: a shell that was slow may still write its result
    rm -f "$out/.pid"
    (
        in_step=yes
        trap 'touch "$out/.stop"' INT TERM
        "$@"
        echo $? >"$result_file.new" && mv "$result_file.new" "$result_file"
    ) >"$log" 2>&1 &
    background=$!
    while [ ! -e "$result_file" ] && kill -0 $background 2>/dev/null; do
        sleep 0.1 2>/dev/null || sleep 1
        current=$(now)
        if [ "${current:-0}" -gt $((deadline + 1000 * grace + 20000)) ]; then
            rc=slow
            [ ! -e "$out/.pid" ] || rc=stuck
            kill -KILL $background 2>/dev/null
            return
        fi
    done
    # Without a file the shell died: by a signal, or by an error that ends a shell.
    wait $background
    rc=$?
    [ ! -e "$result_file" ] || rc=$(cat "$result_file")
    rm -f "$result_file"
    # This shell's own commands died by the signal too.
    [ -z "$stopped" ] || case $rc in 0 | 75 | 77) ;; *) grep -q FAILED "$log" || rc=124 ;; esac
}

# stop REASON: ends the step that is running; further steps are unfinished for this reason.
stop() {
    stopped=$1
    touch "$out/.stop"
    pid_of_step=$(cat "$out/.pid" 2>/dev/null)
    [ -z "$pid_of_step" ] || kill "$pid_of_step" 2>/dev/null
}

# write_result: writes result.json.
write_result() {
    cat >"$out/result.json.new" <<END
{
  "date": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "gpu": $(json_string "$gpu"),
  "driver": $(json_string "$driver"),
  "version": $(json_string "$version"),
  "quick": $([ "$quick" = yes ] && echo true || echo false),
  "ten_minutes": $([ "$ten_minutes" = yes ] && echo true || echo false),
  "passed": $n_passed,
  "partial": $n_partial,
  "failed": $n_failed,
  "skipped": $n_skipped,
  "benchmarks": $n_measured,
  "benchmarks_failed": $n_unmeasured,
  "seconds": $(seconds_since "$started"),
  "steps": [
$steps
  ]
}
END
    mv "$out/result.json.new" "$out/result.json"
}
