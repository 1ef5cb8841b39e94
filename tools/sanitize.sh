#!/bin/sh
# Runs checks of the C code that need a certain clang or take long. On demand, in addition to the sanitizers
# of tools/test.sh.
#
#     tools/sanitize.sh memory     MemorySanitizer: values that are used before they are set. Tests of the
#                                  CPU's portable kernels and of RepOps; a model's run
#     tools/sanitize.sh thread     ThreadSanitizer: data races. Tests of the CPU's kernels, of pipelines,
#                                  transport, ranks and the cache of self-tests; runs of models with several
#                                  threads, groups, partitions and devices
#     tools/sanitize.sh type       TypeSanitizer (clang 20 or later): accesses through a type that the
#                                  object does not have. The same programs as memory. clang 21
#                                  reports much that is right (docs/CHECKS.md)
#     tools/sanitize.sh analyze    clang's static analyzer over src, graph and tools
#
#     tools/sanitize.sh --check BUILD    only checks that the build folder BUILD has the programs of these runs
#
#     --compiler CLANG   the clang to use (default: the newest in the path)
#     --folder DIR       build folder (default: build/sanitize)
#     --jobs N           number of parallel processes (default: one per processor)
#
# The libraries are not instrumented: OpenMP, protobuf-c, cJSON, OpenSSL, PCRE2. So in a model's run, heap
# memory counts as initialized. "memory" and "type" exclude kernels for particular instruction sets, because intrinsics
# may access memory through any type.
#
# ThreadSanitizer learns about OpenMP's synchronization from archer (libarcher.so, part of LLVM's OpenMP).
# As archer's authors advise, accesses by libraries are excluded; otherwise OpenMP's own memory would be
# reported. Nothing else is suppressed. The programs include tests that fork.
#
# Exit status
#     0   nothing was found
#     1   something was found, or a test failed
#     2   wrong usage
#     77  no suitable clang is installed
set -u
cd "$(dirname "$0")/.." || exit 1

fail_usage() {
    echo "sanitize.sh: $* (try --help)" >&2
    exit 2
}

mode="" check="" compiler="" folder=build/sanitize jobs=$(nproc)
while [ $# -gt 0 ]; do
    case $1 in
    --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --compiler | --folder | --jobs | --check)
        [ $# -gt 1 ] || fail_usage "$1 needs a value"
        case $1 in
        --compiler) compiler=$2 ;;
        --folder) folder=$2 ;;
        --jobs) jobs=$2 ;;
        --check) check=$2 ;;
        esac
        shift 2
        ;;
    memory | thread | type | analyze)
        [ -z "$mode" ] || fail_usage "one check at a time"
        mode=$1
        shift
        ;;
    *) fail_usage "unknown argument '$1'" ;;
    esac
done
[ -n "$mode$check" ] || fail_usage "say which check: memory, thread, type or analyze"

kernel_tests="attention conv copy gather map matmul norm pool products reduce resize scan scatter softmax topk"
# The tests that "thread" runs, and the programs that "memory" and "type" run.
thread_programs() {
    echo device_cache_folder base_sha256_memory transport_frames transport_local transport_watchdog \
        partition_codec partition_weights partition_ranks_local generate_decoding generate_cancel
    for name in $kernel_tests device float_env affinity selftest team wrap; do echo "device_cpu_$name"; done
    for name in observe pipeline random_graphs kv_cache truncated; do echo "session_$name"; done
}
value_programs() {
    echo ree-run
    for name in $kernel_tests; do echo "device_cpu_$name"; done
    for name in soft soft64 convert formats integer; do echo "repops_${name}_test"; done
}

if [ -n "$check" ]; then
    targets=$(ninja -C "$check" -t targets all) || exit 1
    absent=""
    for name in $(thread_programs) $(value_programs); do
        printf '%s\n' "$targets" | grep -q "^$name: " || absent="$absent $name"
    done
    [ -z "$absent" ] || { echo "$check has no target$absent"; exit 1; }
    exit 0
fi

if [ -z "$compiler" ]; then
    for version in 24 23 22 21 20 19 18 17 16 15 14; do
        if command -v "clang-$version" >/dev/null; then
            compiler=clang-$version
            break
        fi
    done
    [ -n "$compiler" ] || compiler=clang
fi
if ! command -v "$compiler" >/dev/null; then
    echo "skipped: $compiler not found"
    exit 77
fi
if [ "$mode" != analyze ] && ! echo 'int main(void) { return 0; }' |
    "$compiler" -fsanitize="$mode" -x c - -o /dev/null 2>/dev/null; then
    echo "skipped: $compiler has no -fsanitize=$mode, or no run-time library for it"
    exit 77
fi

build=$folder/$mode
mkdir -p "$build"
launcher=$(command -v ccache >/dev/null && echo -DCMAKE_C_COMPILER_LAUNCHER=ccache)

configure() {
    # shellcheck disable=SC2086 # a list of words
    cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DREE_CUDA=OFF -DREE_WERROR=OFF $launcher "$@"
}

# type_reports PROGRAM: copies a program's output. Of TypeSanitizer's reports it prints one for each
# place in the code, with its source lines. It omits these false reports of clang 21:
# - one type that is reached in two ways: a member of a structure within another, or of a copied
#   structure;
# - an array of pointers within a constant structure, for whose members it has no types;
# - structures with the same name in different files.
type_reports() { # PROGRAM
    # The program's output is on standard input.
    python3 -B -c '
import re, subprocess, sys
places, report, n_false = {}, None, 0
same_name = {"ree_device_buffer", "ree_device_program", "options", "job"}
for line in sys.stdin:
    if "ERROR: TypeSanitizer" in line:
        pc = re.search(r"pc (0x[0-9a-f]+)", line)[1]
        report = None if pc in places else pc
        places.setdefault(pc, [])
    elif report and len(places[report]) < 2:
        if re.match(r"(READ|WRITE) of|    #0 ", line): places[report].append(line.strip())
    elif not re.match(r"(READ|WRITE) of size \d+ at |    #\d+ |==\d+==WARNING: |$", line):
        sys.stdout.write(line)
for description, frame in (p for p in places.values() if len(p) == 2):
    parts = re.search(r"with type (.*?)(?: \(in (\w+) at offset \d+\))? accesses (?:part of )?an existing object of type "
                      r"(.*?)(?: \(in (\w+) at offset \d+\))?(?: that starts.*)?$", description)
    if parts:
        is_table = parts[1] == "any pointer" and re.match(r"ree_(tiles|integer_tiles|cpu_\w+_kernels)$", parts[3])
        if parts[1] == parts[3] or is_table or {parts[2], parts[4]} & same_name:
            n_false += 1
            continue
    offset = hex(int(re.search(r"\+(0x[0-9a-f]+)\)", frame)[1], 16))
    where = subprocess.run(["addr2line", "-f", "-i", "-s", "-e", sys.argv[1], offset], capture_output=True, text=True)
    print(re.sub(r"at 0x[0-9a-f]+ ", "", description), "|", " < ".join(where.stdout.split("\n")[:6]))
print(f"{n_false} places are known to be right")
' "$1"
}

# Prints the path of archer, the library that reports OpenMP's barriers to ThreadSanitizer; nothing
# if there is none. It must be the compiler's own, because its OpenMP must match.
archer() {
    root=$("$compiler" -print-resource-dir)/../../..
    for path in "$root/lib/libarcher.so" "$root"/lib/*/libarcher.so; do
        [ ! -f "$path" ] || (cd "$(dirname "$path")" && echo "$PWD/libarcher.so")
    done | head -n 1
}

# thread_run NAME COMMAND...: runs the command, writes its output to a log and counts its reports.
# Sets status.
thread_run() {
    name=$1
    shift
    OMP_TOOL_LIBRARIES=$archer OMP_WAIT_POLICY=passive VK_ICD_FILENAMES=none XDG_CACHE_HOME=$build/cache \
        TSAN_OPTIONS="ignore_noninstrumented_modules=1${symbolizer:+ external_symbolizer_path=$symbolizer}" \
        "$@" >"$build/$name.log" 2>&1
    code=$?
    n=$(grep -c 'WARNING: ThreadSanitizer' "$build/$name.log")
    n_runs=$((n_runs + 1)) n_reports=$((n_reports + n))
    if [ "$code" != 0 ] || [ "$n" != 0 ]; then
        echo "$name: exit code $code, $n reports, $build/$name.log"
        status=1
    else
        echo "$name: nothing found"
    fi
}

threads() {
    archer=$(archer)
    if [ -z "$archer" ]; then
        echo "skipped: $compiler has no libarcher.so, which is in the package of its OpenMP"
        return 77
    fi
    symbolizer=$(command -v llvm-symbolizer)
    build=$(cd "$build" && pwd)
    configure -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O1 -g -DNDEBUG" -DREE_SANITIZE=thread \
        >"$build/configure.log" 2>&1 || {
        tail -n 20 "$build/configure.log"
        return 1
    }
    programs=$(thread_programs)
    # shellcheck disable=SC2086 # a list of words
    TSAN_OPTIONS=ignore_noninstrumented_modules=1 ninja -C "$build" -j "$jobs" ree-run $programs \
        >"$build/build.log" 2>&1 || {
        tail -n 20 "$build/build.log"
        return 1
    }
    status=0 n_runs=0 n_reports=0
    stories=$PWD/tools/sample/stories
    for name in $programs; do
        case $name in
        partition_ranks_local) set -- "$stories" ;;
        generate_decoding) set -- cpu 2 "$stories" 60 ;;
        *) set -- ;;
        esac
        REE_TEST_SAMPLE=1/10 thread_run "$name" "$(find "$build" -name "$name" -type f | head -n 1)" "$@"
    done
    ree=$build/ree-run
    many="--prompt-text Once --prompt-text The --prompt-text One --prompt-text A --max-new-tokens 6"
    thread_run run_text "$ree" "$stories" --prompt-text "Once upon a time" --max-new-tokens 10 --threads 4 \
        --receipt-path "$build/r.json"
    thread_run run_verify "$ree" verify "$build/r.json" "$stories" --threads 4
    thread_run run_trace "$ree" "$stories" --prompt-text Once --max-new-tokens 4 --threads 4 \
        --trace "$build/t.trace"
    # shellcheck disable=SC2086 # a list of words
    thread_run run_groups "$ree" "$stories" $many --threads 2 --n-partitions 3 --batch-size 2 --micro-batches 2
    # shellcheck disable=SC2086
    thread_run run_devices "$ree" "$stories" $many --device cpu,cpu --threads 2 --n-partitions 4 \
        --batch-size 1 --micro-batches 3
    # shellcheck disable=SC2086
    thread_run run_memory "$ree" "$stories" $many --threads 2 --max-device-memory 3M --n-partitions 4
    thread_run run_digits "$ree" tools/sample/digits.onnx --input image=tools/sample/seven.npy --threads 4
    echo "$n_runs programs, $n_reports reports"
    return $status
}

sanitize() {
    programs=$(value_programs)
    # Little optimization, so that undefined behaviour reaches the sanitizer.
    configure -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O1 -g -DNDEBUG" -DREE_SANITIZE="$mode" \
        -DREE_STRICT_ALIASING=ON -DREE_CC_AVX2=OFF -DREE_CC_AVX512=OFF -DREE_CC_AVX512VNNI=OFF \
        -DREE_CC_AVX512BF16=OFF -DREE_CC_AMXINT8=OFF \
        -DREE_CC_AVXVNNI=OFF >"$build/configure.log" 2>&1 || {
        tail -n 20 "$build/configure.log"
        return 1
    }
    # shellcheck disable=SC2086 # a list of words
    ninja -C "$build" -j "$jobs" $programs >"$build/build.log" 2>&1 || {
        tail -n 20 "$build/build.log"
        return 1
    }
    status=0
    # TypeSanitizer reports and continues. A report that is not known to be false is a failure here.
    for name in $programs; do
        program=$(find "$build" -name "$name" -type f | head -n 1)
        case $name in
        # Uninstrumented libraries set memory that they allocate themselves.
        ree-run) set -- env MSAN_OPTIONS=poison_in_malloc=0 "$program" tools/sample/digits.onnx \
            --input image=tools/sample/seven.npy --threads 1 ;;
        *) set -- "$program" ;;
        esac
        {
            "$@" 2>&1
            echo $? >"$build/$name.code"
        } | if [ "$mode" = type ]; then type_reports "$program"; else cat; fi >"$build/$name.log"
        code=$(cat "$build/$name.code")
        n=$(grep -c 'with type\|WARNING: MemorySanitizer' "$build/$name.log")
        if [ "$code" != 0 ] || [ "$n" != 0 ]; then
            echo "$name: exit code $code, $n reports, $build/$name.log"
            status=1
        else
            echo "$name: nothing found"
        fi
    done
    return $status
}

analyze() {
    configure -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=OFF >"$build/configure.log" 2>&1 || {
        tail -n 20 "$build/configure.log"
        return 1
    }
    # Generated headers must exist, or the analysis of a file ends at its first lines.
    # (cuda/kernels.cmake has written kernels.h by now, with and without nvcc.)
    headers=$(ninja -C "$build" -t targets all | sed -n 's/^\([^/].*\.h\): CUSTOM_COMMAND$/\1/p')
    if [ -z "$headers" ]; then
        echo "ninja lists no generated headers"
        return 1
    fi
    # shellcheck disable=SC2086 # a list of words
    ninja -C "$build" -j "$jobs" $headers >"$build/build.log" 2>&1 || {
        tail -n 20 "$build/build.log"
        return 1
    }
    python3 -B - "$build" "$jobs" <<'EOF'
import concurrent.futures, json, os, re, shlex, subprocess, sys
build, jobs = sys.argv[1], int(sys.argv[2])
commands = {}
for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
    path = os.path.relpath(entry["file"])
    if path.startswith(("src/", "graph/", "tools/")):
        words = [w for w in shlex.split(entry["command"]) if os.path.basename(w) != "ccache"]
        at = words.index("-o")
        commands[path] = words[:at] + words[at + 2:] + ["--analyze", "--analyzer-output", "text", "-Wno-unused"]
def run(path):
    return path, subprocess.run(commands[path], cwd=build, capture_output=True, text=True)
# False reports of the analyzer, with the reason; (n, reason) covers n reports in the file, a reason alone
# covers one. Counted with clang 19.1. Versions of clang differ: fewer reports than an entry covers are
# printed, but are no failure.
known = {
    "src/receipt/checkpoint_compare.c: Access to field 'child' results in a dereference of a null pointer":
        "both are objects: their caller and cJSON_IsObject, whose body is not seen, have checked it",
    "src/device/cpu/attention_steps.c: Division by zero":
        "by the number of queries of a unit, which attention.c begins at 1",
    "src/device/cpu/conv_layout.c: Division by zero":
        "by the phases of the last axis, which has taps if they are folded, so find_phases has found one",
    "src/device/cpu/conv_layout.c: Assigned value is garbage or undefined":
        "plane 0 is set before the others are copies of it: the first term of a word is below n_terms",
    "src/device/cpu/expr.c: The right operand of '-' is a garbage value due to array index out of bounds":
        "load_source's coord[last]: plan_source makes the rank at least 1",
    "src/device/cpu/matmul_int8.c: The left operand of '|' is a garbage value":
        (2, "pack_row's dense: memcpy or the loop sets `length` bytes, memset the others of the run"),
    "src/device/cpu/reduce.c: The left operand of '+' is a garbage value due to array index out of bounds":
        (2, "ree_cpu_reduce_rows: all callers have at least 1 row"),
    "src/device/cpu/reduce.c: Assigned value is garbage or undefined":
        (2, "lane 0, which idle lanes repeat: sum_chunks and sum_outputs run with at least 1 chunk or row"),
    "src/device/cpu/reduce.c: Division by zero":
        "by n_outer: ree_cpu_reduce has returned if it is 0, and calls between do not change parameters",
    "src/device/cpu/softmax.c: Branch condition evaluates to a garbage value":
        "lift_empty has set all of empty: zero_empty and the number of rows do not change between",
    "src/device/cuda/ptx.c: 8th function call argument is an uninitialized value":
        "narrow's r: write_result sets w->width elements, and nothing between changes the width",
    "graph/causality/movement.c: Access to field 'dtype' results in a dereference of a null pointer":
        "prove.c has checked that the first min_inputs inputs, here 3, are present",
    "src/device/selftest/twin_index.c: Assigned value is garbage or undefined":
        "shrink_scatter's to: its loops set dims up to rank, and a dispatch has no more vector and step dims",
    "src/repops/check.c: The left operand of '==' is a garbage value":
        "check_product's dims: every caller gives as many as n",
    "src/repops/check.c: The left operand of '+' is a garbage value":
        "check_map's n_tensors: check_expr sets it whenever it returns REE_OK, which ree_fail never is",
    "src/repops/scalar/trig.h: Assigned value is garbage or undefined":
        "a word beyond the table of 2/pi: the argument is finite, and ree-prove has walked all that are",
    "src/repops/scalar/wide.h: Division by zero":
        "ree_reciprocal's d has bit 63 set, so its upper half is not 0",
    "src/text/hash.c: The left operand of '==' is a garbage value":
        "sort_merges fills n_merges elements: so many places of the table are in use",
    "src/text/hash.c: The left operand of '>>' is a garbage value":
        "sort_merges fills n_merges elements: so many places of the table are in use",
    "tools/run/bench.c: Null pointer passed to 1st parameter expecting 'nonnull'":
        "parse has called cli_usage, which sets failed, where no benchmark is named",
    "src/bench/attention.c: Division by zero":
        "the sizes of heads in the list are not 0, and neither is that of a type",
    "src/bench/narrow.c: Division by zero":
        (2, "weights of the list that have bits have a block, too"),
    "tools/run/diff.c: Null pointer passed to 1st parameter expecting 'nonnull'":
        "cli_usage sets failed where there are not two paths",
    "tools/run/generate.c: Dereference of null pointer":
        "job->generator: open_generator has set it, or prepare has returned its exit code",
    "tools/run/generate.c: Array access (via field 'logprobs') results in a null pointer dereference":
        "counts become more than 0 only in keep_logprobs, which runs if both lists could be allocated",
    "tools/run/inputs.c: Null pointer passed to 1st parameter expecting 'nonnull'":
        "tensors are counted in n_tensors once they have names",
    "tools/run/prompts.c: Null pointer passed to 1st parameter expecting 'nonnull'":
        "ree_file_read sets bytes whenever it returns REE_OK, which ree_fail never is",
    "src/device/vulkan/program.c: Null pointer passed to 1st parameter expecting 'nonnull'":
        "copies the ranges of a dispatch's operands to a list that holds them: at least 1, its result",
    "src/device/cuda/encode_expr.c: Assigned value is garbage or undefined":
        "place[0], of an expression without instructions: it has an operand then, or is refused",
    "src/device/cuda/ptx.c: 7th function call argument is an uninitialized value":
        "r[e]: both loops end at the writer's width, which nothing changes between",
    "graph/lower/core/expr.c: 2nd function call argument is an uninitialized value":
        "args[1], of select_b32 with one argument: ree_expr_op1 gets operations of one argument",
    "graph/lower/ops/recurrent/run.c: 4th function call argument is an uninitialized value":
        "times[0], of a step of no directions: take_steps gives a step 1 or all",
    "graph/lower/ops/spatial/sample.c: Assigned value is garbage or undefined":
        "weights are set and combined if a sampler has several taps; no sampler has 0",
    "graph/partition/result.c: Access to field 'name' results in a dereference of a null pointer":
        "a cut has as many values as n_live and n_sizes count, and first_values takes the former",
    "src/dispute/tree.c: Null pointer passed to 2nd parameter expecting 'nonnull'":
        (2, "ree_tree_init adds the root, and open_node the halves of each node on the way to the one sought"),
    "src/text/chat.c: Array access (via field 'data') results in a null pointer dereference":
        "last is set where first is: both are found by the same search",
    "src/text/config.c: Access to field 'valuestring' results in a dereference of a null pointer (loaded from variable "
    "'template')": "cJSON_IsString, whose body is not seen, is false of NULL",
    "src/text/config.c: Access to field 'valuestring' results in a dereference of a null pointer (loaded from variable "
    "'type')": "cJSON_IsString, whose body is not seen, is false of NULL",
    "src/text/read_json.c: Access to field 'next' results in a dereference of a null pointer (loaded from variable "
    "'score')": "cJSON_IsNumber, whose body is not seen, is false of NULL",
    "src/text/read_json.c: Access to field 'next' results in a dereference of a null pointer (loaded from variable "
    "'right')": "cJSON_IsString, whose body is not seen, is false of NULL",
    "graph/onnx/external.c: The 1st argument to 'fstat' is < 0 but should be >= 0":
        "ree_onnx_open_beneath returns REE_OK only with an open file",
    "src/device/cpu/cpu_device.c: Dereference of null pointer":
        "a program without steps has n_steps 0: ree_alloc_zeroed, whose body is not seen, clears it",
    "src/device/selftest/hard_values.c: 1st function call argument is an uninitialized value":
        "a block's r and x are set up to n, where all loops end; n is at least 1",
    "src/device/selftest/hard_values.c: 3rd function call argument is an uninitialized value":
        (7, "a block's r and x are set up to n, where all loops end; n is at least 1"),
    "src/device/selftest/hard_values.c: Assigned value is garbage or undefined":
        "a block's r and x are set up to n, where all loops end; n is at least 1",
    "src/dispute/claim_decode.c: The left operand of '!=' is a garbage value":
        (2, "take_digests sets it whenever it returns REE_OK, which ree_fields_wrong never does"),
    "src/dispute/claim_decode.c: Assigned value is garbage or undefined":
        (2, "take_digests sets it whenever it returns REE_OK, which ree_fields_wrong never does"),
    "graph/onnx/external.c: Access to field 'size' results in a dereference of a null pointer (loaded from "
    "variable 'mapping')": (2, "map_location sets it whenever it returns REE_OK, which ree_fail never is"),
}
findings, broken = set(), set()
with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    for path, done in pool.map(run, sorted(commands)):
        for line in done.stderr.splitlines():
            if re.search(r": (warning|(fatal )?error): ", line):
                findings.add(line.replace(os.getcwd() + "/", ""))
        if done.returncode != 0:
            broken.add(path)
            print(f"{path}: not analyzed: exit code {done.returncode}", flush=True)
            if ": error: " not in done.stderr and "fatal error: " not in done.stderr:
                print("\n".join(done.stderr.splitlines()[-5:]), flush=True)
reports, n_wrong = {}, 0
for line in sorted(findings):
    parts = re.match(r"([^:]*):\d+:\d+: warning: (.*?)(?: \[[^\]]*\])?$", line)
    reports.setdefault(f"{parts[1]}: {parts[2]}" if parts else line, []).append(line)
def covered(entry):
    return known[entry][0] if isinstance(known.get(entry), tuple) else int(entry in known)
for entry, lines in sorted(reports.items()):
    if len(lines) > covered(entry):
        print("\n".join(lines))
        n_wrong += len(lines) - covered(entry)
        if entry in known:
            print(f"of these {len(lines)} reports, {covered(entry)} are known to be false")
for entry in sorted(known):
    n = len(reports.get(entry, []))
    if n < covered(entry):
        print(f"{n} of {covered(entry)} reported by this clang: {entry}")
print(f"{len(commands) - len(broken)} of {len(commands)} files, {n_wrong} findings, "
      f"{len(findings) - n_wrong} known to be false")
sys.exit(1 if n_wrong or broken or not commands else 0)
EOF
}

case $mode in
analyze) analyze ;;
thread) threads ;;
*) sanitize ;;
esac
