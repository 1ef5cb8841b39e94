#!/bin/sh
# Tests `tools/gpu-check.sh run --ten-minutes` on the emulator and, if it is installed, lavapipe, with
# tiny shapes and a planted nvidia-smi:
# - a dry run of the whole schedule keeps its time, and its archive has everything;
# - the exit code depends on results, not on benchmarks;
# - a lost device gets no further steps, but one that only a kernel's fault made unusable does;
# - a run that is interrupted leaves an archive;
# - every Vulkan device that is a GPU has its own steps, and ncu's table is summed up by kernel.
#
#     gpu_check_ten_minutes_test.sh SOURCE BUILD EMULATOR
set -u
source=$1 build=$2
export REE_CUDA_DRIVER="$3"
unset VK_DRIVER_FILES REE_TEST_SAMPLE
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/elsewhere" "$work/scratch" "$work/path"
cd "$work/elsewhere" || exit 1
# Without lavapipe the steps for Vulkan are skipped.
for icd in "${VK_ICD_FILENAMES:-}" /usr/share/vulkan/icd.d/lvp_icd*.json none; do
    if [ -f "$icd" ] || [ "$icd" = none ]; then break; fi
done
export VK_ICD_FILENAMES="$icd" PATH="$work/path:$PATH" XDG_CACHE_HOME="$work/cache"

fail() {
    cat "$work/log"
    echo "FAILED: $*"
    exit 1
}
says() { # FILE PATTERN
    grep -q "$2" "$work/$1" || { cat "$work/$1"; fail "$1 has no '$2'"; }
}
check() { # SECONDS OPTION...: runs the packed script
    seconds=$1
    shift
    "$work/packed/gpu-check.sh" run ../packed --out ../out --quick --ten-minutes \
        --time "$seconds" --vulkan llvmpipe --scratch ../scratch "$@" >"$work/log" 2>&1
}

cat >"$work/path/nvidia-smi" <<'END'
#!/bin/sh
case $* in
*name,driver_version*) echo "Planted GPU, 1.0" ;;
*"-l 1"*) echo $$ >WORK/watcher && echo "P0, 1980 MHz" && exec sleep 60 ;;
*) echo "Planted GPU, ECC errors: 0" ;;
esac
END
sed -i "s|WORK|$work|" "$work/path/nvidia-smi"
chmod +x "$work/path/nvidia-smi"
"$source/tools/gpu-check.sh" pack ../packed --no-build --build "$build" --quick >"$work/log" 2>&1 ||
    fail "packing"

# What no driver here reports: a list of several devices, and ncu's table.
cat >"$work/devices.log" <<'END'
cuda:0  Planted 100
  limit      memory                    79 GiB
vulkan:0  Planted 100
  device     name                      Planted 100
             type                      discrete GPU
  limit      shared memory             48 KiB
             memory                    79 GiB
vulkan:1  Planted Graphics
             type                      integrated GPU
             memory                    30 GiB
vulkan:2  llvmpipe
             type                      CPU
END
cat >"$work/ncu.csv" <<'END'
==PROF== Connected to process 1
"ID","Kernel Name","dram__throughput.x","gpu__time_duration.sum","sm__throughput.x"
"","","%","ns","%"
"0","ree_a","40.00","1,000.00","50.00"
"1","ree_b","10.00","2,000.00","20.00"
"2","ree_a","80.00","3,000.00","50.00"
END
# shellcheck disable=SC2034,SC2154 # the sourced files use and set them
(
    out=$work vulkan="" no_vulkan="" newline="
"
    for file in run random-model ten-minutes-steps ten-minutes; do
        # shellcheck source=/dev/null
        . "$source/tools/gpu-check/$file.sh"
    done
    find_vulkan_gpus
    for device in $vulkan_devices; do
        echo "$device: $(suffix "$device"), $(memory_kib "$device") KiB"
    done
    top_kernels "$work/ncu.csv" top-kernels.txt
) >"$work/log" 2>&1
says log "^vulkan:0: vulkan-0, 82837504 KiB"
says log "^vulkan:1: vulkan-1, 31457280 KiB"
! grep -q '^vulkan:2' "$work/log" || fail "llvmpipe is not a GPU"
says log "^slowest: *66.7 % *4000 ns *2 *SM  50.0 %.* DRAM  70.0 % *ree_a"

# The whole schedule. How many steps are finished depends on the machine; none may be wrong.
begin=$(date +%s)
# On a busy machine there may be no time for a whole comparison; the check then does not pass.
check 36 || says log "^results: 0 passed, .* 0 failed or unfinished"
[ $(($(date +%s) - begin)) -le 90 ] || fail "36 seconds became $(($(date +%s) - begin))"
! grep -E '^[a-z0-9-]+ +FAILED' "$work/log" || fail "a step failed"
! grep -E 'time limit of [2-9][0-9]' "$work/log" || fail "a step could take the others' time"
says log "^sanitizer-initcheck .* skipped .*REE_CUDA_DRIVER"
says log "^bench-matmul-cuda-deterministic .* \(skipped .*libcublas\|unfinished\)"
[ -z "$(ls "$work/scratch")" ] || fail "a random model was left behind"
mkdir "$work/archive"
tar -C "$work/archive" -xzf "$work/out.tar.gz" || fail "there is no archive"
says archive/out/facts-before.log "Planted GPU, ECC"
says archive/out/facts-after.log "^cuda:0  ree emulator"
says archive/out/clocks.csv "1980 MHz"
says archive/out/table.txt "^facts-after "
python3 - "$work/archive/out/result.json" <<'END' || fail "result.json is wrong"
import json, sys
result = json.load(open(sys.argv[1]))
names = [step["step"] for step in result["steps"]]
assert result["ten_minutes"] is True and result["gpu"] == "Planted GPU", result
assert names[0] == "facts-before" and names[-1] == "facts-after", names
# Benchmarks come first, and kinds alternate: neither waits for the end of the other.
kinds = [name.startswith("bench-") for name in names[1:-1]]
assert kinds[0] and sum(a != b for a, b in zip(kinds, kinds[1:])) >= 6, names
assert {"bench-llm-tiny-cuda", "bench-cold-cuda", "functions-cuda", "functions-vulkan"} < set(names), names
END

# Faults, planted by a program in place of ree-run.
mv "$work/packed/bin/ree-run" "$work/packed/bin/real"
cat >"$work/packed/bin/ree-run" <<'END'
#!/bin/sh
case ${PLANTED:-}:$* in
slow:bench*) exec sleep 300 ;;
failure:bench*) echo "ree-run: planted" && exit 1 ;;
kernel:bench* | device:*cuda*) echo "ree-run: CUDA: failed with CUDA_ERROR_ILLEGAL_ADDRESS" && exit 1 ;;
esac
exec "$(dirname "$0")/real" "$@"
END
chmod +x "$work/packed/bin/ree-run"
few="--only bench-ceilings-cuda,devices-cuda,models-cuda"

# shellcheck disable=SC2086 # a list of words
for planted in failure kernel; do
    PLANTED=$planted check 300 $few || fail "a benchmark's $planted fails the check"
    says log "^bench-ceilings-cuda .* FAILED "
    says log "^models-cuda .* passed "
    says log "^results: 2 passed, .* 0 failed or unfinished"
    says log "^benchmarks: 0 measured, 1 failed"
done

# shellcheck disable=SC2086
PLANTED=device check 300 $few && fail "a lost device passes"
says log "^bench-ceilings-cuda .* FAILED "
says log "^ *cuda is lost: two processes"
says log "^models-cuda .* unfinished .*lost since bench-ceilings-cuda"
says out/result.json '"step": "models-cuda", "result": "unfinished"'

sed -i '/seven/s/^..../beef/' "$work/packed/expected.txt"
# shellcheck disable=SC2086
check 300 $few
[ $? = 1 ] || fail "a wrong result passes"
says out/bench-ceilings-cuda.log "fma in registers"
says log "^bench-ceilings-cuda .* passed "
says log "^models-cuda .* FAILED .*digits.onnx seven: .*expected beef"

# A signal ends the step that runs, whether only the script or the whole process group gets it. What
# was found before it is in the archive.
for group in "" -; do
    begin=$(date +%s)
    rm "$work/out.tar.gz" "$work/log"
    PLANTED=slow setsid "$work/packed/gpu-check.sh" run ../packed --out ../out --quick --ten-minutes \
        --time 600 --only bench-ceilings-cuda,models-cuda --scratch ../scratch >"$work/log" 2>&1 &
    leader=$!
    until grep -qs '^facts-before' "$work/log"; do
        sleep 0.2
        [ $(($(date +%s) - begin)) -le 60 ] || fail "the check did not begin"
    done
    sleep 0.5
    begin=$(date +%s)
    kill -TERM "$group$leader"
    wait $leader && fail "an interrupted check passes"
    [ $(($(date +%s) - begin)) -le 40 ] || fail "the signal did not end the check"
    says log "^bench-ceilings-cuda .* unfinished .*interrupted"
    says log "^models-cuda .* unfinished .*interrupted"
    tar -tzf "$work/out.tar.gz" | grep -q facts-after.log || fail "no archive after a signal"
    [ -z "$(ls "$work/scratch")" ] || fail "a random model was left behind"
    ! kill -0 "$(cat "$work/watcher")" 2>/dev/null || fail "nvidia-smi still runs"
done
echo "1 passed, 0 failed"
