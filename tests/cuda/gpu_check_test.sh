#!/bin/sh
# Tests tools/gpu-check.sh on the emulator: it packs a self-contained folder, reports what it found,
# passes, and fails if a result differs from the recorded one.
#
#     gpu_check_test.sh SOURCE BUILD EMULATOR
set -u
source=$1 build=$2
export REE_CUDA_DRIVER="$3" VK_ICD_FILENAMES=none
unset VK_DRIVER_FILES REE_TEST_SAMPLE
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/elsewhere"
cd "$work/elsewhere" || exit 1

fail() {
    cat "$work/log"
    echo "FAILED: $*"
    exit 1
}
says() { # FILE PATTERN
    grep -q "$2" "$work/$1" || { cat "$work/$1"; fail "$1 has no '$2'"; }
}
check() { # runs the packed script in the packed folder
    "$work/packed/gpu-check.sh" run ../packed --out ../out --quick "$@" >"$work/log" 2>&1
}

"$source/tools/gpu-check.sh" pack ../packed --no-build --build "$build" --quick >"$work/log" 2>&1 ||
    fail "packing"
for file in bin/ree-run bin/device_cuda_functions lib/libprotobuf-c.so.1; do
    [ -s "$work/packed/$file" ] || fail "the folder lacks $file"
done

# Steps that pass; one for Vulkan and one for the sanitizer are skipped, with reasons.
check --cases 1 --sample 1/5 --bits 8 \
    --only devices,models,cases,products,onnx,sanitizer-memcheck,bench-model,functions ||
    fail "the check does not pass"
for step in devices models cases products bench-model functions; do
    says log "^$step-cuda .* passed "
done
says log "^onnx-cuda .* \(passed .* 0 failed,\|skipped .* no operator tests\)"
says log "^models-vulkan .* skipped .*Vulkan: "
says log "^sanitizer-memcheck .* skipped .*REE_CUDA_DRIVER"
says log "^models-cuda .* \([45]\) of \1 runs"
says log "^functions-cuda .* 28 of 28 functions right on 2^8"
says log "^bench-model-cuda .* [45] of [45] models measured"
says out/bench-model-cuda.log "measured one at a time, .* in total"
says log "[67] passed, 0 failed"
python3 - "$work/out/result.json" <<'END' || fail "result.json is wrong"
import json, sys
result = json.load(open(sys.argv[1]))
steps = {step["step"]: step for step in result["steps"]}
assert result["failed"] == 0 and result["passed"] >= 6 and result["quick"] is True, result
assert steps["models-cuda"]["result"] == "passed", steps
assert steps["models-vulkan"]["result"] == "skipped" and steps["models-vulkan"]["note"], steps
END

# A check that runs out of time is not a success.
check --only shapes --time 0 && fail "an unfinished check passes"
says log "^shapes-cuda .* unfinished "

# A check of nothing is not a success.
check --only no_such_step && fail "a check of nothing passes"

# A SHA-256 that differs from the recorded one fails only that step, and the report names the model.
sed -i '/seven/s/^..../beef/' "$work/packed/expected.txt"
check --only devices,models && fail "a wrong SHA-256 passes"
says log "^devices-cuda .* passed .* 16 of 16 primitives native"
says log "^models-cuda .* FAILED .*digits.onnx seven: .*expected beef"
says out/result.json '"step": "models-cuda", "result": "FAILED"'
says out/models-cuda.log "^[34] of [45] runs"
echo "1 passed, 0 failed"
