#!/usr/bin/env python3
"""Counts what the CUDA kernels execute in a language model, without a GPU, and writes the record
tools/predict/counts.json, from which tools/predict/predict.py predicts times.

    tools/predict/count.py --build build      makes the record again (nvcc; 10 minutes on 2 cores)
    tools/predict/count.py --check            names the sources that changed since it was made
    tools/predict/count.py --build build --only amd               replaces only the part about AMD's compiler,
    tools/predict/count.py --build build --only 'H100, 4 bits'    or only this GPU and these weights

How: a checkpoint of Llama 3.1 8B's shape with two layers is made in a temporary folder. The program
build/tests/predict/predict_launches runs a prompt of 512 tokens and one step on the CUDA emulator,
which interprets the PTX that nvcc made (tests/cuda/README.md). ree chooses kernels, tiles and blocks
as on the GPU, because it is told that GPU's limits. Of a matrix product only BLOCKS blocks are run;
their counts are multiplied. All blocks of a product do the same work, except for the epilogue.

PTX is not machine code. If nvdisasm is found (beside nvcc, in PATH, or by --nvdisasm), the counts
are those of machine code: ptxas compiles the same PTX with line information, and each machine
instruction is executed as often as the PTX line from which it comes. In a block of machine code the
median of its instructions decides, and lines that occur several times (unrolled) are divided by
their number. This is checked: the fma of the machine code must be those of the PTX. Kernels that are
generated at run time (map) have PTX counts only.

For Vulkan there is no interpreter. AMD's compiler (Mesa's RADV on null hardware, as in tests/pipelines) prints the
machine code of every pipeline; the record has the innermost loop of each product. The loop for one GPU is only a
proxy for that of another one.

The record has for each launch: blocks, threads, shared memory; instructions of warps by class;
sectors of 32 bytes in global memory; wavefronts of 128 bytes in shared memory; flops and bytes."""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import predict  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCKS = 8
PROMPT = 512
# What is counted: the device, the type of the checkpoint's weights, the bits to which ree quantises.
CASES = [("H100", "float32", 0), ("H100", "bfloat16", 0), ("H100", "bfloat16", 8), ("H100", "bfloat16", 4),
         ("RTX 4090", "bfloat16", 0), ("RTX 4090", "bfloat16", 4)]
SECTIONS = ("layer", "last", "once")  # of a run: a layer, the last layer, and what is outside of layers
MODEL = {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 2,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 8192,
         "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "model_type": "llama",
         "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}


def weights_of(case):
    return f"{case[2]} bits" if case[2] else case[1]


# The checkpoint

def write_checkpoint(folder, dtype):
    """Weights are random in the first MiB of each matrix and 0 after it: the file has holes, and counts do not depend
    on values."""
    hidden, inner = MODEL["hidden_size"], MODEL["intermediate_size"]
    kv = MODEL["num_key_value_heads"] * MODEL["head_dim"]
    shapes = {"model.embed_tokens.weight": [MODEL["vocab_size"], hidden], "model.norm.weight": [hidden],
              "lm_head.weight": [MODEL["vocab_size"], hidden]}
    for layer in range(MODEL["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name, shape in {"self_attn.q_proj": [hidden, hidden], "self_attn.k_proj": [kv, hidden],
                            "self_attn.v_proj": [kv, hidden], "self_attn.o_proj": [hidden, hidden],
                            "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden],
                            "mlp.down_proj": [hidden, inner], "input_layernorm": [hidden],
                            "post_attention_layernorm": [hidden]}.items():
            shapes[prefix + name + ".weight"] = shape
    size, name = {"float32": (4, "F32"), "bfloat16": (2, "BF16")}[dtype]
    header, offset = {}, 0
    for key, shape in shapes.items():
        n_bytes = size
        for dimension in shape:
            n_bytes *= dimension
        header[key] = {"dtype": name, "shape": shape, "data_offsets": [offset, offset + n_bytes]}
        offset += n_bytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = random.Random(1)
    block = b"".join(struct.pack("<f", generator.gauss(0, 0.02))[4 - size:] for _ in range((1 << 20) // size))
    (folder / "config.json").write_text(json.dumps({**MODEL, "torch_dtype": dtype}))
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        start = 8 + len(text)
        for entry in header.values():
            begin, end = entry["data_offsets"]
            file.seek(start + begin)
            file.write(block[:end - begin])
        file.truncate(start + offset)


# Machine code

# Machine instructions that come one by one from an instruction of PTX: they tell how often a block runs.
ANCHORS = {"FFMA", "LDGSTS", "LDS", "STS", "BAR", "LDGDEPBAR", "STG", "LDG", "FADD", "DFMA"}
ENDS = {"BRA", "EXIT", "RET", "BRX", "JMP"}


def read_machine_code(text):
    """Returns {kernel: blocks}; a block is a list of (opcode, PTX line, is predicated off)."""
    kernels, code, line = {}, None, 0
    for row in text.splitlines():
        if row.startswith(".text."):
            code, line = kernels.setdefault(row[6:row.index(":")], [[]]), 0
        elif row.startswith(".section"):
            code = None
        elif code is None:
            continue
        elif match := re.match(r'\s*//## File ".nv_debug_ptx_txt", line (\d+)', row):
            line = int(match[1])
        elif re.match(r"\.L_\w+:", row):
            code.append([])
        elif match := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", row):
            opcode = match[1].split(".")[0]
            code[-1].append((opcode, line))
            if opcode in ENDS:
                code.append([])
    return kernels


def count_machine_code(blocks, lines):
    """Returns instructions of warps by opcode, from those of PTX by line."""
    total = collections.Counter()
    for block in filter(None, blocks):
        anchors = collections.Counter(row for row in block if row[0] in ANCHORS)
        times = sorted(lines.get(str(line), 0) / n for (_, line), n in anchors.items()) or sorted(
            lines.get(str(line), 0) for _, line in block)
        for opcode, _ in block:
            total[opcode] += times[len(times) // 2]
    return total


class Compiler:
    """Registers and machine code of the kernels, by compute capability."""

    def __init__(self, nvcc, nvdisasm, ptx):
        self.ptxas = str(pathlib.Path(nvcc).parent / "ptxas")
        self.nvdisasm, self.ptx, self.modules = nvdisasm, ptx, {}
        self.module_of = {}
        for file in sorted(ptx.glob("*.ptx")):
            for kernel in re.findall(r"^\.visible \.entry (\w+)\(", file.read_text(), re.M):
                self.module_of[kernel] = file

    def module(self, kernel, capability):
        file = self.module_of[kernel]
        key = (file, capability)
        if key not in self.modules:
            with tempfile.TemporaryDirectory() as folder:
                cubin = f"{folder}/module.cubin"
                done = subprocess.run([self.ptxas, f"-arch=sm_{capability}", "-lineinfo", "-v", "-o", cubin, file],
                                      check=True, capture_output=True, text=True)
                sizes = {}  # registers of a thread, bytes of the kernel's own shared arrays
                for name, line in re.findall(r"entry function '(\w+)'.*?(Used \d+ registers.*?)\n", done.stderr, re.S):
                    shared = re.search(r"(\d+) bytes smem", line)
                    sizes[name] = int(line.split()[1]), int(shared[1]) if shared else 0
                code = {}
                if self.nvdisasm:
                    code = read_machine_code(subprocess.run([self.nvdisasm, "-c", "-gp", cubin], check=True,
                                                            capture_output=True, text=True).stdout)
                self.modules[key] = sizes, code
        return self.modules[key]


def counts_of(kernel, statistics, capability, compiler):
    """Returns (instructions by class, (registers, shared bytes), whether they are of machine code) of the blocks that
    were run."""
    if kernel not in compiler.module_of:
        return predict.classes_of_ptx(statistics["opcodes"]), (0, 0), False
    sizes, code = compiler.module(kernel, capability)
    if not code:
        return predict.classes_of_ptx(statistics["opcodes"]), sizes[kernel], False
    machine = count_machine_code(code[kernel], statistics["lines"])
    fma = statistics["opcodes"].get("fma.rn.f32", 0)
    if "div.rn.f32" not in statistics["opcodes"] and fma > 1000:  # a division has fma of its own
        assert abs(machine["FFMA"] - fma) <= 0.02 * fma, f"{kernel}: {machine['FFMA']} fma, PTX has {fma}"
    return predict.classes_of_machine_code(machine), sizes[kernel], True


# AMD

AMD_FAMILY = "gfx1100"
AMD_ICD = "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"


def innermost_loop(text):
    """Returns the opcodes of the smallest loop with multiply-adds, or [] if there is none."""
    opcodes, places, loops = [], {}, []
    for row in text.splitlines():
        if match := re.match(r"(BB\d+):", row):
            places[match[1]] = len(opcodes)
        elif match := re.match(r"\s+([a-z]\w+)(.*)", row):
            opcodes.append(match[1])
            target = re.search(r"BB\d+", match[2]) if match[1].startswith(("s_branch", "s_cbranch")) else None
            if target and places.get(target[0], len(opcodes)) < len(opcodes):
                loops.append(opcodes[places[target[0]]:])
    return min((loop for loop in loops if any("fma" in opcode for opcode in loop)), key=len, default=[])


def amd_loops(checkpoint, build, bits, weights):
    environment = dict(os.environ, RADV_DEBUG="shaders,nocache", RADV_FORCE_FAMILY=AMD_FAMILY,
                       MESA_SHADER_CACHE_DISABLE="1", VK_ICD_FILENAMES=AMD_ICD)
    command = [build / "tests/pipelines/pipelines", checkpoint, "--prompt", str(PROMPT), "--bits", str(bits)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"count.py: {done.stdout[-400:]}")
    code = [part.partition("disasm:\n")[2].partition("\nshader:")[0] for part in
            done.stderr.split("\nCompute Shader\n")[1:]]
    names = re.findall(r"^(\w+) .* words .* (\d+) registers.* (\d+) subgroups", done.stdout, re.M)
    assert len(code) == len(names), f"{len(code)} disassemblies, {len(names)} pipelines"
    out = []
    for text, (name, registers, subgroups) in zip(code, names):
        loop = innermost_loop(text)
        if not loop or not name.startswith("matmul"):
            continue
        vector = [opcode for opcode in loop if opcode.startswith("v_")]
        entry = {"weights": weights, "module": name, "registers": int(registers), "subgroups": int(subgroups),
                 "wave": 64 if "b64 exec" in text or "saveexec_b64" in text else 32,
                 "fma": sum("fma" in opcode for opcode in vector), "vector": len(vector),
                 "memory": sum(opcode.startswith(("global_", "buffer_", "flat_")) for opcode in loop),
                 "shared": sum(opcode.startswith("ds_") for opcode in loop),
                 "scalar": sum(opcode.startswith("s_") and not opcode.startswith("s_waitcnt") for opcode in loop),
                 "waits": sum(opcode.startswith("s_waitcnt") for opcode in loop)}
        if entry not in out:
            out.append(entry)
    return out


def count_amd(build):
    loops = []
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = pathlib.Path(folder)
        write_checkpoint(checkpoint, "bfloat16")
        for bits, weights in ((0, "bfloat16"), (4, "4 bits")):
            loops += amd_loops(checkpoint, build, bits, weights)
    return loops


# A case

def run_case(case, checkpoint, build, compiler):
    device_name, _, bits = case
    device = predict.DEVICES[device_name]
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/statistics.json"
        environment = dict(os.environ, REE_CUDA_DRIVER=str(build / "tests/cuda/libcuda-emulator.so"),
                           REE_EMULATOR_PTX=str(build / "tests/cuda/ptx"), REE_EMULATOR_STATISTICS=file)
        command = [build / "tests/predict/predict_launches", checkpoint, "--prompt", str(PROMPT), "--bits", str(bits),
                   "--blocks", str(BLOCKS), "--limits", ",".join(map(str, device["limits"]))]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        statistics = json.load(open(file))
    runs, names = {}, iter(("prompt", "step"))
    for line in done.stdout.splitlines():
        dispatch = json.loads(line)
        if dispatch["node"] == "growing a cache":
            continue
        program, number = dispatch["label"].split(".")
        if program not in runs:
            runs[program] = next(names), []
        node = re.sub(r"^node '(.*)' \(.*", r"\1", dispatch["node"])
        match = re.match(r"layers\.(\d)\.(.*)", node)
        section = ("layer", "last")[int(match[1])] if match else "once"
        if node == "selected_rows":  # of the last layer
            section = "last"
        for kernel, blocks, threads, shared in dispatch["launches"]:
            counted = statistics.get(f"{dispatch['label']} {kernel}")
            if kernel == "map_compiled":
                counted = statistics[f"{dispatch['label']} ree_map_written"]
            # A kernel may occur twice in a dispatch only if it is launched for both operands.
            classes, (registers, static), is_machine = counts_of(kernel, counted, device["capability"], compiler)
            scale = counted["blocks"] / counted["blocks_run"] / counted["launches"]
            launch = {
                "node": match[2] if match else node, "kernel": kernel.removeprefix("ree_"), "blocks": blocks,
                "threads": threads, "shared": shared + static, "registers": registers, "machine": is_machine,
                "ptx": round(counted["instructions"] * scale),
                "classes": {name: round(n * scale) for name, n in classes.items() if n},
                "fma": round(counted["opcodes"].get("fma.rn.f32", 0) * scale),
                "sectors": round(counted["global_sectors"] * scale),
                "wavefronts": round(counted["shared_wavefronts"] * scale), "flops": dispatch["flops"],
                "bytes": dispatch["bytes"] + dispatch["scratch"]}
            check_launch(launch, dispatch["dispatch"])
            runs[program][1].append((section, launch))
    return {name: launches for name, launches in runs.values()}


def check_launch(launch, text):
    """What is known without counting."""
    kernel, match = launch["kernel"], re.match(r"matmul .* m=(\d+) n=(\d+) k=(\d+)", text)
    if not match:
        return
    m, n, k = map(int, match.groups())
    if re.match(r"matmul_\d+x\d+$", kernel):
        rows, columns = map(int, kernel[7:].split("x"))
        padded = -(-m // rows) * rows * -(-n // columns) * columns * k
        assert launch["fma"] == padded // 32, f"{kernel}: {launch['fma']} fma, expected {padded // 32}"
    if kernel.startswith("matvec_columns_32"):
        assert launch["fma"] == -(-n // 32) * k, f"{kernel}: {launch['fma']} fma, expected {-(-n // 32) * k}"
    weights = n * k * {"32": 4, "16": 2, "8": 1, "4": 0.5}.get(kernel.split("_")[2], 0) / 32 if kernel.startswith(
        "matvec_columns") else 0
    if weights:  # each sector of the weights once; more are A (once per 32 columns), scales and outputs
        rest = launch["sectors"] - weights - -(-n // 32) * k / 8
        assert 0 <= rest <= 0.6 * weights, f"{kernel}: {launch['sectors']} sectors, of which the weights have {weights}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="a build folder with the targets predict_launches, "
                        "cuda-emulator and cuda-ptx")
    parser.add_argument("--check", action="store_true", help="only compare digests; exit code 1 if sources changed")
    parser.add_argument("--only", help="what to count again; the rest is kept, with the digests of its sources")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--nvdisasm", help="a program of the CUDA toolkit that prints machine code")
    parser.add_argument("--output", type=pathlib.Path, default=predict.COUNTS)
    arguments = parser.parse_args()
    if arguments.check:
        changed = predict.changed_sources(json.loads(predict.COUNTS.read_text()))
        print("\n".join(changed) if changed else "the counts are those of the sources")
        return 1 if changed else 0
    if not arguments.build:
        parser.error("--build is required")
    build = arguments.build.resolve()
    old = json.loads(arguments.output.read_text()) if arguments.only else None
    if arguments.only == "amd":
        old["amd"] = count_amd(build)
        arguments.output.write_text(predict.json_lines(old))
        return 0
    if not shutil.which(arguments.nvcc):
        sys.exit("count.py: nvcc was not found (--nvcc)")
    beside = pathlib.Path(arguments.nvcc).parent / "nvdisasm"
    nvdisasm = arguments.nvdisasm or (str(beside) if beside.exists() else shutil.which("nvdisasm"))
    if not nvdisasm:
        print("no nvdisasm: the counts are those of PTX")
    subprocess.run(["cmake", "--build", build, "--target", "predict_launches", "cuda-emulator", "cuda-ptx",
                    "pipelines"], check=True)
    compiler = Compiler(arguments.nvcc, nvdisasm, build / "tests/cuda/ptx")
    version = subprocess.run([arguments.nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    if old:
        keys = {f"{case['device']}, {case['weights']}" for case in old["cases"]}
        if arguments.only not in keys:
            sys.exit(f"count.py: --only requires one of: amd; {'; '.join(sorted(keys))}")
    found = {}  # by case and run: sections and launches
    for case in old["cases"] if old else []:
        found[case["device"], case["weights"], case["run"]] = [
            (section, old["launches"][index]) for section in SECTIONS for index in case[section]]
    for dtype in ("float32", "bfloat16"):
        todo = [case for case in CASES if case[1] == dtype
                and (not old or f"{case[0]}, {weights_of(case)}" == arguments.only)]
        if not todo:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(pathlib.Path(folder), dtype)
            for case in todo:
                print(case[0], weights_of(case), flush=True)
                for run, launches in run_case(case, pathlib.Path(folder), build, compiler).items():
                    found[case[0], weights_of(case), run] = launches
    launches, cases = [], []
    for (device, weights, run), rows in found.items():
        sections = {section: [] for section in SECTIONS}
        for section, launch in rows:
            if launch not in launches:
                launches.append(launch)
            sections[section].append(launches.index(launch))
        cases.append({"device": device, "weights": weights, "run": run, **sections})
    record = {"nvcc": re.findall(r"release .*", version)[0], "machine_code": bool(nvdisasm), "prompt": PROMPT,
              "model": MODEL, "sources": old["sources"] if old else predict.digests(), "amd_family": AMD_FAMILY,
              "amd": old["amd"] if old else count_amd(build), "cases": cases, "launches": launches}
    arguments.output.write_text(predict.json_lines(record))
    print(f"{arguments.output}: {len(launches)} launches, {arguments.output.stat().st_size >> 10} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
