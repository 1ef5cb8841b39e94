#!/usr/bin/env python3
"""Predicts how fast ree's kernels are on GPUs, from counts. Prints the section "GPUs: what the
kernels should reach" of tools/BENCHMARKS.md.

    tools/predict/predict.py                  the section; the test base/predictions compares it
    tools/predict/predict.py --write          replaces it in tools/BENCHMARKS.md
    tools/predict/predict.py --devices        rates of the devices, and the documents that state them
    tools/predict/predict.py --launches H100 bfloat16 prompt
                                              every launch of a run: its counts, and the time for each limit

There are three kinds of facts, and the output names them:

  counted     instructions, sectors, wavefronts: tools/predict/counts.json, made by tools/predict/count.py
  documented  rates of a device: DEVICES in this file
  assumed     ASSUMED in this file

A launch takes as long as its slowest limit, on the multiprocessor that has the most blocks; all limits overlap. A
prediction is not a bound: the section says for each assumption whether the GPU may be slower or faster. If the sources
of the kernels changed since the counts were made, a note on standard error names them: the counts must be made again
(tools/predict/count.py --help)."""
import argparse
import collections
import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTS = pathlib.Path(__file__).resolve().parent / "counts.json"

BENCHMARKS = ROOT / "tools/BENCHMARKS.md"
HEADING = "## GPUs: what the kernels should reach"

ASSUMED = {
    "dram": (0.9, "of the documented bandwidth of memory is reached"),
    "latency": (2, "clocks between two instructions of one warp, which holds if they do not depend on each other"),
    "launch": (1.5e-6, "seconds from the end of a launch to the start of the next one in a graph"),
    "library": (0.9, "of the fma rate is what a library such as cuBLAS reaches in float32"),
}

# Devices. rates: instructions of warps per clock and multiprocessor, by limit. threads, blocks, registers, shared: what
# a multiprocessor holds. limits: for the program that counts (multiprocessors, bytes of shared memory of a block, of a
# multiprocessor).
GUIDE = "CUDA C++ Programming Guide, throughput of arithmetic instructions"
DEVICES = {
    "H100": {
        "name": "H100 SXM", "capability": 90, "units": 132, "clock": 1.98e9, "dram": 3.35e12, "l2": 5.5e12,
        "threads": 2048, "blocks": 32, "registers": 65536, "shared": 228 << 10, "limits": (132, 227 << 10, 228 << 10),
        "rates": {"issue": 4, "fma": 4, "imad": 2, "alu": 2, "fp64": 2, "xu": 0.5, "lsu": 1, "shared": 1},
        "documents": {
            "units, clock, dram": "NVIDIA H100 data sheet: 132 multiprocessors, 67 TFLOP/s in float32, 3.35 TB/s",
            "issue, lsu, shared": "NVIDIA H100 whitepaper: 4 schedulers, 32 load/store units, 128 bytes per clock",
            "fma, imad, alu, fp64, xu": GUIDE + ", compute capability 9.0",
            "l2": "no document of NVIDIA; about what Chips and Cheese measured: Nvidia's H100 (July 2023)"}},
    "RTX 4090": {
        "name": "RTX 4090", "capability": 89, "units": 128, "clock": 2.52e9, "dram": 1.008e12, "l2": 5.0e12,
        "threads": 1536, "blocks": 24, "registers": 65536, "shared": 100 << 10, "limits": (128, 99 << 10, 100 << 10),
        "rates": {"issue": 4, "fma": 4, "imad": 2, "alu": 2, "fp64": 1 / 16, "xu": 0.5, "lsu": 0.5, "shared": 1},
        "documents": {
            "units, clock, dram": "NVIDIA Ada whitepaper: 128 multiprocessors, 2.52 GHz, 1008 GB/s",
            "issue, lsu, shared": "NVIDIA Ada whitepaper: 4 schedulers, 16 load/store units, 128 bytes per clock",
            "fma, imad, alu, fp64, xu": GUIDE + ", compute capability 8.9",
            "l2": "no document of NVIDIA; about what Chips and Cheese measured: RTX 4090 (November 2022)"}},
}
# Devices for Vulkan. lines: cache lines per clock and SIMD; memory: bytes.
VULKAN_DEVICES = {
    "RX 7900 XTX": {
        "simds": 192, "clock": 2.5e9, "dram": 0.96e12, "cache": 3.5e12, "memory": 24e9,
        # Clocks of a SIMD for an instruction of 64 threads: fma are issued in pairs.
        "clocks": {"fma": 1, "vector": 2, "scalar": 1}, "lines": 0.5,
        "documents": {
            "simds, clock, dram, cache, memory": "AMD's product page: 96 compute units of 2 SIMDs, 2.5 GHz, "
                                                 "61.4 TFLOP/s, 960 GB/s, Infinity Cache 3.5 TB/s, 24 GB",
            "clocks, lines": "AMD RDNA whitepaper and RDNA 3 ISA guide: SIMDs of 32 lanes, dual issue of fma, one line "
                             "of 128 bytes per clock from the first cache of a compute unit"}},
    "Arc A770": {
        "simds": 512, "clock": 2.1e9, "dram": 0.56e12, "cache": None, "memory": 16e9,
        "clocks": {"fma": 8, "vector": 8, "scalar": 1}, "lines": None,
        "documents": {"simds, clock, dram, memory, clocks": "Intel's product page: 32 Xe cores of 16 vector engines "
                                                            "of 8 float32 lanes, 2.1 GHz, 560 GB/s, 16 GB"}},
}

# Classes of machine instructions; all others are "alu" (integers, logic, comparisons, selections, moves).
CLASSES = {
    "fma": "FFMA FADD FMUL FFMA32I FADD32I FMUL32I HADD2 HMUL2 HFMA2".split(),
    "imad": ["IMAD", "IDP", "IDP4A"],
    "fp64": "DADD DMUL DFMA DSETP DMNMX".split(),
    "xu": "MUFU I2F I2FP F2I F2F I2I FRND POPC FLO BREV".split(),
    "lds": "LDS LDSM STS ATOMS".split(),
    "copy": ["LDGSTS"],  # from global to shared memory
    "ldg": "LD LDG LDL ST STG STL ATOM ATOMG RED SHFL".split(),
    "mma": ["IMMA", "HMMA"],
    "control": "BRA EXIT RET BRX BRXU JMP CALL BSSY BSYNC BREAK BMOV WARPSYNC NOP BAR DEPBAR LDGDEPBAR MEMBAR ERRBAR "
               "CCTL YIELD BPT VOTE LDC ULDC S2R S2UR CS2R R2UR".split(),
}
CLASS_OF = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes}


def classes_of_machine_code(opcodes):
    classes = collections.Counter()
    for opcode, n in opcodes.items():
        # The uniform datapath has units of its own, one for a warp: only their issue counts.
        classes[CLASS_OF.get(opcode, "control" if opcode.startswith("U") else "alu")] += n
    return classes


def classes_of_ptx(opcodes):
    """For kernels whose machine code is not known. Parameters are operands of machine instructions."""
    classes = collections.Counter()
    for opcode, n in opcodes.items():
        name, kind = opcode.split(".")[0], opcode.split(".")[-1]
        if opcode.startswith("ld.param") or name in ("cvta", "ret"):
            continue
        if name in ("bra", "call", "bar", "barrier", "exit", "vote") or "commit" in opcode or "wait" in opcode:
            classes["control"] += n
        elif name in ("ld", "st", "atom", "red", "shfl", "cp", "ldmatrix"):
            classes["copy" if name == "cp" else "lds" if "shared" in opcode else "ldg"] += n
        elif name in ("rcp", "sqrt", "rsqrt", "cvt") or (name == "div" and kind == "f32"):
            classes["xu"] += n
        elif kind == "f64":
            classes["fp64"] += n
        elif kind == "f32" and name in ("fma", "add", "sub", "mul"):
            classes["fma"] += n
        elif name in ("mad", "mul"):
            classes["imad"] += n
        else:
            classes["alu"] += n
    return classes


# The record

def sources():
    """The files that decide the counts."""
    return sorted([*ROOT.glob("cuda/*.cu"), *ROOT.glob("cuda/*.h"), *ROOT.glob("src/device/cuda/encode*.c"),
                   ROOT / "src/device/cuda/tiles.c", *ROOT.glob("src/device/cuda/ptx*.c"),
                   *ROOT.glob("src/repops/scalar/*.h"), *ROOT.glob("shaders/matmul*.comp"),
                   ROOT / "shaders/include/tile.glsl"])


def digests():
    """Of the text without comments and white space."""
    def digest(file):
        text = re.sub(r"//[^\n]*|\s+", "", file.read_text())
        return hashlib.sha256(text.encode()).hexdigest()[:16]
    return {str(file.relative_to(ROOT)): digest(file) for file in sources()}


def changed_sources(record):
    now = digests()
    return sorted(name for name in {*now, *record["sources"]} if now.get(name) != record["sources"].get(name))


def terms_of(launch):
    """Useful multiply-adds of the launch, by warps. Attention: those that are computed."""
    return launch["fma"] if launch["kernel"].startswith("attention") else launch["flops"] / 64


def check_record(record):
    """What is known without counting: a product has one fma for each term, and the launches are those of the model."""
    layer, last = (n / divisor for n, divisor in zip(model_weights(record), (N_LAYERS, 1)))
    for case in record["cases"]:
        flops = {}
        for name in ("layer", "once", "last"):
            rows = [record["launches"][index] for index in case[name]]
            rows = [row for row in rows if row["kernel"].startswith("matvec") or row["kernel"].startswith("matmul_") and
                    row["kernel"][7].isdigit()]
            for row in rows:
                # Converting a weight of 4 or 8 bits takes an fma too.
                times = row["fma"] / terms_of(row)
                if times != 1 and not (re.search("_[48]_1$", row["kernel"]) and 2 <= times < 2.2):
                    sys.exit(f"predict.py: wrong number of fma: {row['kernel']} has {times} for each term: {row}")
            flops[name] = sum(row["flops"] for row in rows)
        tokens = record["prompt"] if case["run"] == "prompt" else 1
        # In a prompt, parts of the last layer run only for the last token.
        lasts = flops["last"] == flops["layer"] if tokens == 1 else 0 < flops["last"] <= flops["layer"]
        if flops["layer"] != 2 * layer * tokens or flops["once"] != 2 * last or not lasts:
            sys.exit(f"predict.py: the launches of the {case['run']} are not those of the model: {flops}")


def json_lines(record):
    """The record as JSON with one line for each launch and case."""
    rows = []
    for key, value in record.items():
        if isinstance(value, list):
            text = ",\n".join("  " + json.dumps(entry, separators=(",", ":")) for entry in value)
            rows.append(f'"{key}": [\n{text}\n]')
        else:
            rows.append(f'"{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(rows) + "\n}\n"



# Times

N_LAYERS = 32
LIMITS = {"issue": "issue", "fma": "fma", "imad": "integers", "alu": "integers", "fp64": "float64", "xu": "conversions",
          "lsu": "load/store", "shared": "shared memory", "l2": "L2", "dram": "memory", "latency": "latency"}


def resident_blocks(device, launch):
    """Blocks that a multiprocessor holds at once."""
    threads = launch["threads"]
    n = min(device["blocks"], device["threads"] // threads, device["shared"] // (launch["shared"] + 1024))
    if launch["registers"]:
        n = min(n, device["registers"] // (-(-launch["registers"] // 8) * 8 * threads))
    return max(n, 1)


def limits_of(device, launch):
    """Returns the seconds that each limit alone would take."""
    blocks, clock = launch["blocks"], device["clock"]
    busiest = -(-blocks // device["units"]) / blocks  # share of the multiprocessor with the most blocks
    classes = launch["classes"]
    n = sum(classes.values())
    amounts = {"issue": n, "fma": classes.get("fma", 0) + classes.get("imad", 0), "imad": classes.get("imad", 0),
               "alu": classes.get("alu", 0), "fp64": classes.get("fp64", 0), "xu": classes.get("xu", 0),
               "lsu": sum(classes.get(name, 0) for name in ("lds", "copy", "ldg")), "shared": launch["wavefronts"]}
    seconds = {name: amount * busiest / device["rates"][name] / clock for name, amount in amounts.items()}
    bytes_moved = launch["sectors"] * 32
    seconds["l2"] = bytes_moved / device["l2"]
    seconds["dram"] = min(bytes_moved, launch["bytes"]) / device["dram"] / ASSUMED["dram"][0]
    rounds = -(-blocks // (device["units"] * resident_blocks(device, launch)))
    seconds["latency"] = rounds * n / (blocks * launch["threads"] / 32) * ASSUMED["latency"][0] / clock
    return seconds


def time_of(device, launch):
    """Returns (seconds without the launch itself, the limit)."""
    seconds = limits_of(device, launch)
    limit = max(seconds, key=seconds.get)
    return seconds[limit], limit


def find_case(record, device, weights, run):
    for case in record["cases"]:
        if (case["device"], case["weights"], case["run"]) == (device, weights, run):
            return case
    sys.exit(f"predict.py: no counts for {device}, {weights}, {run}; there are "
             + "; ".join(f"{case['device']}, {case['weights']}, {case['run']}" for case in record["cases"]))


def launches_of(record, case):
    """Yields (launch, how often the model runs it)."""
    for section, times in (("once", 1), ("layer", N_LAYERS - 1), ("last", 1)):
        for index in case[section]:
            yield record["launches"][index], times


def run_times(record, case):
    """Returns (seconds of the run, seconds by limit, seconds by kernel, number of launches)."""
    device = DEVICES[case["device"]]
    by_limit, by_kernel, n_launches = collections.Counter(), collections.Counter(), 0
    for launch, times in launches_of(record, case):
        seconds, limit = time_of(device, launch)
        by_limit[LIMITS[limit]] += seconds * times
        by_kernel[launch["kernel"]] += (seconds + ASSUMED["launch"][0]) * times
        n_launches += times
    by_limit["launches"] = n_launches * ASSUMED["launch"][0]
    return sum(by_limit.values()), by_limit, by_kernel, n_launches


def model_weights(record):
    """Returns the weights of the 32 layers' matrices, and those of the last matrix."""
    model = record["model"]
    hidden, inner = model["hidden_size"], model["intermediate_size"]
    kv = model["num_key_value_heads"] * model["head_dim"]
    return N_LAYERS * hidden * (2 * hidden + 2 * kv + 3 * inner), hidden * model["vocab_size"]


BYTES = {"float32": 4, "bfloat16": 2, "8 bits": 1.125, "4 bits": 0.625}  # of a weight; blocks of 32 with float32 scales


# The section

def share(part, whole):
    return f"{100 * part / whole:.0f} %"


def table(head, align, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(align) + "|"]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def main_limits(by_limit, seconds):
    return ", ".join(f"{name} {share(part, seconds)}" for name, part in by_limit.most_common(2))


def model_rows(record):
    rows = []
    layers, last = model_weights(record)
    for case in record["cases"]:
        device, weights = DEVICES[case["device"]], case["weights"]
        seconds, by_limit, _, n_launches = run_times(record, case)
        if case["run"] == "prompt":
            peak = layers * record["prompt"] / (device["units"] * 32 * device["rates"]["fma"] * device["clock"])
            rows.append([device["name"], weights, "prompt", f"{1e3 * seconds:.0f} ms",
                         f"{record['prompt'] / seconds:.0f}", f"{peak / seconds:.2f} of the fma rate",
                         main_limits(by_limit, seconds)])
        else:
            reading = (layers + last) * BYTES[weights] / device["dram"]
            rows.append([device["name"], weights, "step", f"{1e3 * seconds:.2f} ms", f"{1 / seconds:.0f}",
                         f"{reading / seconds:.2f} of reading the weights", main_limits(by_limit, seconds)])
    return table(["GPU", "weights", "run", "time", "tokens/s, predicted", "rate", "limits, shares of the time"],
                 ["---", "---", "---", "---:", "---:", "---", "---"], rows)


def per_fma(launch, *names):
    return sum(launch["classes"].get(name, 0) for name in names) / terms_of(launch)


def product_rates(launch, device):
    """Returns the share of the fma rate that issue and shared memory allow."""
    fma_clocks = terms_of(launch) / device["rates"]["fma"]
    return (fma_clocks / (sum(launch["classes"].values()) / device["rates"]["issue"]),
            fma_clocks / (launch["wavefronts"] / device["rates"]["shared"]))


def product_launches(record):
    """The kernels of products with many rows, on the H100; of each the launch with the most work."""
    best = {}
    for case in record["cases"]:
        if case["device"] != "H100" or case["run"] != "prompt":
            continue
        for launch, _ in launches_of(record, case):
            kernel = launch["kernel"]
            if (kernel[7:].replace("x", "").isdigit() or kernel.startswith("attention_tile")) and (
                    kernel not in best or best[kernel]["fma"] < terms_of(launch)):
                best[kernel] = launch
    return [best[kernel] for kernel in sorted(best)]


def product_rows(record):
    device, rows = DEVICES["H100"], []
    for launch in product_launches(record):
        issue, shared = product_rates(launch, device)
        warps = resident_blocks(device, launch) * launch["threads"] // 32
        rows.append([f"`{launch['kernel']}`", launch["registers"], warps,
                     f"{sum(launch['classes'].values()) / terms_of(launch):.2f}", f"{per_fma(launch, 'lds'):.2f}",
                     f"{per_fma(launch, 'copy', 'ldg'):.2f}", f"{per_fma(launch, 'imad', 'alu'):.2f}",
                     f"{per_fma(launch, 'control'):.2f}", f"{issue:.2f}", f"{shared:.2f}",
                     f"{min(issue, shared, 1) / ASSUMED['library'][0]:.2f}"])
    return table(["kernel", "registers", "warps of a multiprocessor", "instructions per fma", "shared memory",
                  "global memory, copies", "integers", "control", "fma rate that issue allows", "shared memory allows",
                  f"of a library, if it reaches {ASSUMED['library'][0]}"], ["---"] + ["---:"] * 10, rows)


def row_launch(record, device, weights):
    case = find_case(record, device, weights, "step")
    return max((launch for launch, _ in launches_of(record, case) if launch["kernel"].startswith("matvec")
                and launch["node"] == "mlp.up_proj"), key=lambda launch: terms_of(launch))


def row_rows(record):
    rows = []
    for weights in ("float32", "bfloat16", "8 bits", "4 bits"):
        launch = row_launch(record, "H100", weights)
        cells = []
        for device in DEVICES.values():
            seconds, limit = time_of(device, launch)
            reading = terms_of(launch) * 32 * BYTES[weights] / device["dram"]
            cells += [f"{weights_budget(device, weights):.0f}", f"{reading / seconds:.2f}, {LIMITS[limit]}"]
        rows.append([f"`{launch['kernel']}`", f"{sum(launch['classes'].values()) / terms_of(launch):.1f}",
                     f"{per_fma(launch, 'imad', 'alu'):.1f}", f"{per_fma(launch, 'lds', 'copy', 'ldg'):.1f}",
                     f"{per_fma(launch, 'control'):.1f}", *cells])
    return table(["kernel", "instructions per weight", "integers", "load/store", "control", "H100: memory allows",
                  "reached, limit", "4090: memory allows", "reached, limit"], ["---"] + ["---:"] * 8, rows)


def weights_budget(device, weights):
    """Returns how many instructions for each weight fit into the time of reading it."""
    return device["units"] * device["rates"]["issue"] * 32 * device["clock"] / (device["dram"] / BYTES[weights])


def kernel_rows(record):
    rows = []
    for run in ("prompt", "step"):
        case = find_case(record, "H100", "bfloat16", run)
        seconds, _, by_kernel, _ = run_times(record, case)
        times, limits = collections.Counter(), {}
        for launch, n in launches_of(record, case):
            times[launch["kernel"]] += n
            spent, limit = time_of(DEVICES["H100"], launch)
            limits.setdefault(launch["kernel"], collections.Counter())[LIMITS[limit]] += spent * n
        for kernel, part in by_kernel.most_common(7):
            rows.append([run, f"`{kernel}`", times[kernel], f"{1e6 * part / times[kernel]:.1f} µs",
                         share(part, seconds), limits[kernel].most_common(1)[0][0]])
    return table(["run", "kernel", "launches", "each", "share of the time", "limit"],
                 ["---", "---", "---:", "---:", "---:", "---"], rows)


def vulkan_rows(record):
    layers, last = model_weights(record)
    rows = []
    for name, device in VULKAN_DEVICES.items():
        for weights in ("bfloat16", "4 bits"):
            if (layers + 2 * last) * BYTES[weights] > device["memory"]:
                continue
            for run, module in (("prompt", "matmul_n_native"), ("step", "matmul_narrow_native")):
                loop = max((loop for loop in record["amd"] if loop["weights"] == weights and loop["module"] == module),
                           key=lambda loop: loop["vector"])
                clocks = device["clocks"]
                limits = {"vector": loop["fma"] * clocks["fma"] + (loop["vector"] - loop["fma"]) * clocks["vector"],
                          "scalar": loop["scalar"] * clocks["scalar"]}
                if name == "Arc A770":  # no scalar unit: both are issued by the vector engine
                    limits = {"vector": sum(limits.values())}
                n_fma = layers * record["prompt"] if run == "prompt" else layers + last
                rate = {limit: n_fma / (device["simds"] * device["clock"] * loop["fma"] * 64 / clock)
                        for limit, clock in limits.items()}
                if run == "prompt":
                    if device["cache"]:  # 4 bytes of B for 8 multiply-adds
                        rate["cache"] = n_fma * 0.5 / device["cache"]
                else:
                    rate["memory"] = n_fma * BYTES[weights] / device["dram"] / ASSUMED["dram"][0]
                    if device["lines"]:  # every thread reads its own lines, all but A's
                        lines = (loop["memory"] - 1) / loop["fma"]
                        rate["cache lines"] = n_fma * lines / (device["simds"] * device["lines"] * device["clock"])
                limit = max(rate, key=rate.get)
                tokens = record["prompt"] if run == "prompt" else 1
                rows.append([name, weights, run, f"{loop['vector'] / loop['fma']:.1f}",
                             f"{loop['scalar'] / loop['fma']:.1f}", f"{loop['memory'] / loop['fma']:.2f}",
                             f"{tokens / rate[limit]:.0f}", limit])
    return table(["GPU", "weights", "run", "vector per fma", "scalar", "loads", "tokens/s, predicted", "limit"],
                 ["---", "---", "---", "---:", "---:", "---:", "---:", "---"], rows)


SECTION = """\
{heading}; **predicted**

`tools/predict/predict.py` prints this section; the test `base/predictions` compares it. It has three kinds of facts:

- counted (`tools/predict/count.py`, nvcc {nvcc}): instructions of warps, sectors of 32 bytes, wavefronts of shared
  memory. The emulator ran the kernels of a prompt of {prompt} tokens and of the next step, with the tiles and blocks
  that ree chooses for the GPU. Counts are of {code}; for kernels that are generated at run time
  (map) they are PTX;
- documented: rates and clocks of the GPUs (`predict.py --devices` names the documents);
- assumed: {dram} of the bandwidth of memory is reached; each operand of a launch comes from memory once;
  {latency} clocks between two instructions of a warp, as if none waited; {launch:.1f} µs for each launch of
  a graph; the bandwidth of the L2 cache.

A launch takes as long as its slowest limit. These rates are predictions, not bounds; each assumption errs in one
direction or in both:

| assumption | a GPU may be |
|---|---|
| all limits of a launch overlap | slower |
| the clock is the highest one | slower |
| no instruction waits longer than {latency} clocks | slower |
| each operand of a launch comes from memory once | slower |
| wavefronts of shared memory are counted for each quarter of a warp; hardware may merge equal addresses | faster |
| {dram} of the bandwidth of memory is reached | slower or faster |
| a launch costs {launch:.1f} µs; the bandwidth of the L2 cache | slower or faster |
| Vulkan: branches of a loop that are rarely taken are counted | faster |
| Vulkan: nothing but the products takes time | slower |

`tools/gpu-check.sh` measures. "An H100" above has what one card did; it was slower.

### A language model of 8 billion weights

Llama 3.1's shape: {layers:.2f} billion weights in {n_layers} layers, {last:.2f} in the last matrix. "Of the fma rate":
multiply-adds of the layers' matrices in the time of the whole run, of the float32 peak.

{model_table}

### Products with many rows (H100)

Narrow weights are first converted to float32 in memory (`matmul_widen`). The columns from "shared memory" to "control"
are instructions per fma. The last column compares with a library that reaches {library} of the fma rate at the same
clock. If it reaches less, ree's share is larger: cuBLAS reached 23.3 TFLOP/s on an RTX A6000, whose data sheet says
38.7, at an unknown clock (Abhik Sarkar, CUDA Matrix Multiplication Optimization).

{product_table}

### One row times a matrix (14336 × 4096)

"Memory allows": instructions per weight at which memory and issue limit a kernel equally. "Reached": of the documented
bandwidth, counting weights and scales.

{row_table}

### Where the time goes (H100, bfloat16)

{kernel_table}

### Vulkan

Counted: the innermost loop of the products as AMD's compiler makes it for {family} (Mesa's RADV on null hardware), with
branches that are rarely taken. For the Arc A770 these instructions are only a proxy. Nothing but the products is
included. "Cache": a matrix is read again for every 8 rows. "Cache lines": the threads of a subgroup read different
lines of the weights.

{vulkan_table}
"""


def section(record):
    layers, last = model_weights(record)
    values = {
        "heading": HEADING, "nvcc": record["nvcc"].split(",")[0].removeprefix("release "), "prompt": record["prompt"],
        "code": "machine code" if record["machine_code"] else "PTX", "dram": share(ASSUMED["dram"][0], 1),
        "latency": ASSUMED["latency"][0], "launch": 1e6 * ASSUMED["launch"][0], "library": ASSUMED["library"][0],
        "layers": layers / 1e9, "last": last / 1e9, "n_layers": N_LAYERS, "family": record["amd_family"].upper()}
    tables = {"model_table": model_rows, "product_table": product_rows, "row_table": row_rows,
              "kernel_table": kernel_rows, "vulkan_table": vulkan_rows}
    return SECTION.format(**values, **{name: "\n".join(rows(record)) for name, rows in tables.items()})


def current_section():
    text = BENCHMARKS.read_text()
    start = text.index("\n" + HEADING) + 1
    end = text.find("\n## ", start)
    return text[:start], text[start:] if end < 0 else text[start:end + 1], "" if end < 0 else text[end + 1:]


def print_launches(record, device, weights, run):
    case = find_case(record, device, weights, run)
    for name, times in (("once", 1), ("layer", N_LAYERS - 1), ("last", 1)):
        for index in case[name]:
            launch = record["launches"][index]
            seconds = limits_of(DEVICES[device], launch)
            n = sum(launch["classes"].values())
            code = "machine code" if launch["machine"] else "PTX"
            print(f"{times:2} x {launch['node']}: {launch['kernel']}, {launch['blocks']} blocks of "
                  f"{launch['threads']}, {n} instructions ({code}), {launch['sectors']} sectors")
            print(f"     {launch['flops']:.0f} flops, {launch['bytes']:.0f} bytes; " + ", ".join(
                f"{name} {amount}" for name, amount in sorted(launch["classes"].items(), key=lambda item: -item[1])))
            print("     " + ", ".join(f"{limit} {1e6 * value:.2f}" for limit, value in
                                      sorted(seconds.items(), key=lambda item: -item[1])) + " µs")


def print_devices():
    for devices in (DEVICES, VULKAN_DEVICES):
        for name, device in devices.items():
            print(name)
            for key, value in device.items():
                if key != "documents":
                    print(f"    {key}: {value}")
            for key, value in device["documents"].items():
                print(f"    {key}: {value}")
    for name, (value, text) in ASSUMED.items():
        print(f"assumed {name}: {value} {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=pathlib.Path, default=COUNTS, help="another record of counts")
    parser.add_argument("--write", action="store_true", help="replace the section in tools/BENCHMARKS.md")
    parser.add_argument("--check", action="store_true", help="exit code 1 if tools/BENCHMARKS.md has another section")
    parser.add_argument("--devices", action="store_true", help="print the table of devices")
    parser.add_argument("--launches", nargs=3, metavar=("DEVICE", "WEIGHTS", "RUN"), help="print the launches of a run")
    arguments = parser.parse_args()
    if arguments.devices:
        print_devices()
        return 0
    record = json.loads(arguments.counts.read_text())
    check_record(record)
    changed = changed_sources(record)
    if changed:
        print(f"note: the counts are of other sources; {len(changed)} changed: {', '.join(changed[:8])}",
              file=sys.stderr)
    if arguments.launches:
        print_launches(record, *arguments.launches)
        return 0
    text = section(record)
    if arguments.write or arguments.check:
        before, current, after = current_section()
        if arguments.check and current != text + ("\n" if after else ""):
            print("tools/BENCHMARKS.md differs from what the stored counts give: tools/predict/predict.py --write",
                  file=sys.stderr)
            return 1
        if arguments.write:
            BENCHMARKS.write_text(before + text + ("\n" if after else "") + after)
        return 0
    print(text, end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `predict.py --launches ... | head`
        sys.stderr.close()
