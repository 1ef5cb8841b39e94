#!/bin/sh
# Checks whether this machine computes the right bits. Runs the two sample models on its devices and
# compares the hashes with the recorded ones (tools/sample/recorded.txt): a language model continues
# a text, a classifier reads an image.
#
#     tools/check-sample.sh                    the CPU, and all devices that `ree-run devices` lists
#     tools/check-sample.sh vulkan:0           only this device
#     tools/check-sample.sh --ree-run FILE     with this program (default: build/ree-run)
#
# If a device cannot be opened, fails or crashes, the script reports it and tries the next one. The
# output ends with one line for each device: right, WRONG or failed.
#
# Exit status
#     0  right on all devices
#     1  a hash is wrong
#     2  wrong usage, no result, or the CPU failed
#     3  right on all devices that ran, including the CPU if it was requested; but another device
#        failed, or listing the devices failed
set -u
cd "$(dirname "$0")/.." || exit 2
# shellcheck source=tools/packages.sh
. tools/packages.sh

ree_run=build/ree-run devices=""
while [ $# -gt 0 ]; do
    case $1 in
    --ree-run)
        [ $# -gt 1 ] || { echo "$1 requires a value (try --help)" >&2; exit 2; }
        ree_run=$2
        shift
        ;;
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "unknown option '$1' (try --help)" >&2; exit 2 ;;
    *) devices="$devices $1" ;;
    esac
    shift
done
[ -x "$ree_run" ] || { echo "$ree_run does not exist: build it with tools/quickstart.sh" >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
prompt="Once upon a time"
# Time limit in seconds. Some drivers need a minute; one that needs this long hangs.
limit=1200

# explain STATUS FILE: sets error to a reason from the program's output in FILE; empty if STATUS is
# 0.
explain() {
    error=""
    case $1 in
    0) ;;
    124) error="no end after $limit s" ;;
    *)
        error=$(grep -v '^[[:space:]]*$' "$2" | tail -n 1)
        # Above 128: the shell's status for a program that a signal ended.
        [ "$1" -le 128 ] || error="ended by signal $(($1 - 128))${error:+: $error}"
        error=${error:-exit status $1}
        ;;
    esac
}

list_error=""
if [ -z "$devices" ]; then
    timeout --foreground -k 10 $limit "$ree_run" devices >"$work/list" 2>&1
    explain $? "$work/list"
    devices=$(sed -n 's/^\(cpu\|vulkan:[0-9]*\|cuda:[0-9]*\)  .*/\1/p' "$work/list")
    notes=$(grep -E '^(Vulkan|CUDA): ' "$work/list")
    if [ -z "$devices" ] && [ -z "$error" ]; then error="no device in the list"; fi
    if [ -n "$error" ]; then
        # A driver that ends the program during its probe leaves no list or an incomplete one.
        for device in cpu vulkan cuda; do
            case " $(echo "$devices" | tr '\n' ' ')" in
            *" $device "* | *" $device:"*) ;;
            *) devices="$devices $device" ;;
            esac
        done
        list_error=$error
        cat "$work/list" >&2
        echo "\`$ree_run devices\` FAILED, so devices may be missing: $list_error"
    fi
else
    notes=""
fi

recorded() { # NAME
    sed -n "s/^\([0-9a-f]*\)  $1\$/\1/p" tools/sample/recorded.txt
}

# try COMMAND...: prints the command and its output and keeps the output in $work/out. Sets error;
# empty on success.
try() {
    shown="\$"
    for word in "$@"; do case $word in *" "*) shown="$shown \"$word\"" ;; *) shown="$shown $word" ;; esac; done
    echo "$shown"
    {
        timeout --foreground -k 10 $limit "$@" 2>"$work/errors"
        echo $? >"$work/status"
    } | tee "$work/out"
    cat "$work/errors" >&2
    explain "$(cat "$work/status")" "$work/errors"
}

# compare NAME HASH: adds NAME to `wrong` if HASH is not the recorded one.
compare() {
    [ "$2" = "$(recorded "$1")" ] && return
    wrong="$wrong${wrong:+, }$1"
    echo "WRONG: $1 has the SHA-256 ${2:-(none)}, recorded is $(recorded "$1")"
}

# check DEVICE: runs the sample models on the device and sets verdict.
check() {
    wrong=""
    try "$ree_run" tools/sample/stories --prompt-text "$prompt" --logits-hash --device "$1"
    if [ -z "$error" ]; then
        compare "stories tokens" "$(sed -n 's/^tokens .*SHA-256 //p' "$work/out")"
        compare "stories logits" "$(sed -n 's/^logits .*SHA-256 //p' "$work/out")"
    fi
    text_error=$error
    echo
    try "$ree_run" tools/sample/digits.onnx --input image=tools/sample/seven.npy --top 3 --device "$1"
    [ -n "$error" ] || compare "digits.onnx seven" "$(sed -n 's/^sha256  //p' "$work/out")"
    error=${text_error:-$error}
    if [ -n "$wrong" ]; then
        verdict="WRONG: $wrong"
    elif [ -n "$error" ]; then
        verdict="failed: $error"
    else
        verdict=right
    fi
}

n_right=0 n_wrong=0 n_failed=0 cpu_failed=no
for device in $devices; do
    say "the sample models on $device"
    check "$device"
    printf '%-10s %s\n' "$device" "$verdict" >>"$work/verdicts"
    case $verdict in
    right) n_right=$((n_right + 1)) ;;
    WRONG*) n_wrong=$((n_wrong + 1)) wrong_device=$device ;;
    *)
        n_failed=$((n_failed + 1))
        [ "$device" != cpu ] || cpu_failed=yes
        ;;
    esac
done

say "the hashes of the sample models, compared with the recorded ones"
cat "$work/verdicts"
[ -z "$list_error" ] || printf '%-10s failed: %s\n' devices "$list_error"
[ -z "$notes" ] || printf '%s\n' "$notes"
if [ $n_wrong != 0 ]; then
    echo "A device that is WRONG must not be used. Please report it, with the output of:"
    echo "    $ree_run devices $wrong_device"
    echo "    $ree_run compare tools/sample/stories --prompt-text \"$prompt\" --device cpu --device $wrong_device"
    exit 1
fi
if [ $n_right = 0 ] || [ $cpu_failed = yes ]; then exit 2; fi
if [ $n_failed != 0 ] || [ -n "$list_error" ]; then
    [ $n_failed = 0 ] ||
        echo "You do not need a device that failed: the others give the same results."
    exit 3
fi
