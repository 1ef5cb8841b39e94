#!/bin/sh
# Tests parts of tools/gpu-check.sh without programs of ree:
# - run removes only files of an earlier run from --out, and refuses a folder with other files;
# - the archive is written into the folder if it cannot be next to it, and if the output's reader ends;
# - the result of a step whose shell dies, that fails before it is skipped, or that has no time;
# - a random model is written to the next place if one refuses, and stops when the time is over;
# - models of runs that were killed are removed.
#
#     gpu_check_parts_test.sh SOURCE
set -u
source=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
    cat "$work/log"
    echo "FAILED: $*"
    exit 1
}
says() { # FILE PATTERN
    grep -q "$2" "$work/$1" || { cat "$work/$1"; fail "$1 has no '$2'"; }
}

# --- the folder for the results ---

mkdir -p packed/bin home/.ssh home/.profile.d
cat >packed/bin/ree-run <<'PROGRAM'
#!/bin/sh
echo "cuda:0  Planted 100"
PROGRAM
chmod +x packed/bin/ree-run
echo exp_f32 | tee packed/functions.txt >packed/expected.txt
run() { # OPTION...
    "$source/tools/gpu-check.sh" run packed --only none --quick "$@" >"$work/log" 2>&1
}
for file in .ssh/key .profile.d/path notes.txt mail.log data.csv models-cuda.log; do echo mine >home/$file; done
for foreign in none table.txt result.json; do
    [ $foreign = none ] || echo mine >home/$foreign
    find home | sort >before
    run --out home
    says log "home is neither empty nor"
    find home | sort | cmp - before || fail "a file of a folder with other files was removed or added"
done
grep -L '^mine$' -r home | grep . && fail "a file of a folder with other files was changed"
echo mine >new.tar.gz
run --ten-minutes --out new --time 10
says log "new.tar.gz exists"
rm new.tar.gz
run --ten-minutes --out new --time 010
says log "requires a decimal number"
run --ten-minutes --out new --time 10
[ -f new/result.json ] && [ -f new.tar.gz ] || fail "no results"
mkdir new/.ssh
echo mine | tee new/.ssh/key new/notes.txt >new/mail.log
sed -i 1d new/table.txt
echo "models-cuda                          passed          1 s  " >>new/table.txt
echo stale >new/models-cuda.log
run --out new --time 10
[ -f new/.ssh/key ] && [ -f new/notes.txt ] && [ -f new/mail.log ] || fail "a file of the user was removed"
[ ! -e new/models-cuda.log ] && [ ! -e new/clocks.csv ] && [ ! -e new.tar.gz ] ||
    fail "files of an earlier run are left"

# The archive is in the folder if it cannot be next to it. A reader that ends is like a signal.
mkdir locked.tar.gz.new
run --ten-minutes --out locked --time 10
tar -tzf locked/locked.tar.gz >list 2>&1
says list "^locked/result.json"
! grep 'tar.gz' list || fail "the archive contains itself"
"$source/tools/gpu-check.sh" run packed --only none --quick --ten-minutes --out pipe --time 10 2>log |
    head -n 1 >list
tar -tzf pipe.tar.gz >list 2>&1
says list "^pipe/result.json"
# --- steps and models, in this shell ---

# shellcheck disable=SC2034 # the sourced files use these variables
{
    out=$work/out folder=$work/packed elsewhere=/proc/self scratch=/proc/self quick=yes
    ten_minutes=yes only="" end="" stopped="" lost="" no_cuda="" no_vulkan="" device=cuda steps=""
    has_fractions=yes in_step=no grace=2 n_runs=0
    n_passed=0 n_partial=0 n_failed=0 n_skipped=0 n_measured=0 n_unmeasured=0
}
mkdir "$out"
for file in run random-model ten-minutes; do
    # shellcheck source=/dev/null
    . "$source/tools/gpu-check/$file.sh"
done
# result NAME SECONDS COMMAND RESULT: the step must have this result.
result() {
    step "$1" $(($2 * 1000)) "$3" >log 2>&1
    says log "^$1 .* $4"
}

# shellcheck disable=SC2317 # called by step
{
    skipped_late() { echo "file.c:1: FAILED: first device"; echo "skipped: second device"; return 77; }
    dies() { sh -c 'kill -KILL $PPID'; sleep 9; }
    slow() { sleep 2; }
    hangs() { echo 1 >"$out/.pid"; sleep 2; } # as limited does for a program that does not end
    short() { limited sleep 9; }
    short_after_failure() { echo "file.c:1: FAILED: a"; limited sleep 9; }
}
result skipped 9 skipped_late 'FAILED .*first device'
begin=$(now)
result dies 60 dies 'FAILED .*exit code 137'
[ "$(seconds_since "$begin")" -le 5 ] || fail "the death of a step's shell was not noticed"
result short 1 short 'skipped .*no time: time limit of 1.0 s'
result none 0 short 'skipped .*no time'
result short-after 1 short_after_failure 'FAILED .*FAILED: a'
[ "$n_failed" = 3 ] || fail "$n_failed failed"
result bench-short 1 short 'unfinished .*time limit'
stopped=interrupted
result late 0 short 'unfinished .*interrupted'
stopped="" grace=-20 # a step is given up 20 s + grace after its limit: at once
result slow 1 slow 'unfinished .*did not run its commands in time'
[ -z "$lost" ] || fail "a slow machine became a lost device: $lost"
result hangs 1 hangs 'unfinished .*not even after SIGKILL'
[ "$lost" = ",cuda hangs" ] || fail "a program that hangs did not become a lost device: $lost"

head -c 512 /dev/zero >packed/random.bf16
: >"$out/devices.log"
free_kib() { echo 1000000; } # also of /proc, which refuses
deadline=$(($(now) + 60000))
random_model tiny cuda >log 2>&1 || fail "no model"
says log "^no random model in /proc/self: .*mkdir"
[ "$model" = "$out/ree-gpu-check-$$/tiny" ] && [ -f "$model/model.safetensors" ] || fail "$model is no model"
[ "$(wc -c <"$model/model.safetensors")" = $((8 + $(wc -c <"$model/header") + model_bytes)) ] ||
    fail "the model has a wrong size"
ten_minutes=yes total=1 archive=$work/out.tar.gz gpu="" driver="" version="" started=$begin
save
tar -tzf out.tar.gz >log
says log out/result.json
! grep ree-gpu-check- log || fail "the archive contains a model"
remove_models
[ -z "$(ls -d "$out"/ree-gpu-check-* 2>/dev/null)" ] || fail "the model was not removed"
# The file's size is limited, as by a quota.
(
    trap '' XFSZ
    ulimit -f 8
    random_model tiny cuda
) >log 2>&1
[ $? = 77 ] || fail "a model that cannot be written is not a reason to skip"
says log "^skipped: no random model in $out: .*"
deadline=0
random_model tiny cuda >log 2>&1
[ $? = 124 ] || fail "writing a model ignores the time limit"
[ -z "$(find "$out" -name 'weights*')" ] || fail "a part of a model was left behind"
shape_of 8b
[ $other_bytes = $((2 * 4096 * (2 * 128256 + 1))) ] || fail "8b has $other_bytes bytes outside the layers"

true &
old=$!
wait $old
mkdir -p "$out/ree-gpu-check-$old" "$out/ree-gpu-check-$$" "$out/ree-gpu-check-mine"
remove_old_models
[ ! -e "$out/ree-gpu-check-$old" ] || fail "the model of a run that was killed is left"
[ -d "$out/ree-gpu-check-$$" ] && [ -d "$out/ree-gpu-check-mine" ] || fail "a folder in use was removed"
echo "1 passed, 0 failed"
