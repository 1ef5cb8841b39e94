"""The program that counts what kernels execute (launches.c) attributes statistics to dispatches, and products have as
many multiply-adds and sectors as tools/predict/count.py expects.

Usage: launches_test.py PREDICT_LAUNCHES ROOT

The environment names the emulator (REE_CUDA_DRIVER) and the modules (REE_EMULATOR_PTX).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


def run(program, model, file, *arguments):
    command = [program, model, "--prompt", "70", "--limits", "8,101376,102400", *arguments]
    done = subprocess.run(command, env=dict(os.environ, REE_EMULATOR_STATISTICS=file), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()], json.loads(pathlib.Path(file).read_text())


def main():
    program, root = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(root / "tools/predict"))
    import count
    n_products = n_sampled = n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/statistics.json"
        for blocks in (0, 2):
            dispatches, statistics = run(program, root / "tools/sample/stories", file, "--blocks", str(blocks))
            for dispatch in dispatches:
                for kernel, n_blocks, _, _ in dispatch["launches"]:
                    name = "ree_map_written" if kernel == "map_compiled" else kernel
                    counted = statistics.get(f"{dispatch['label']} {name}")
                    # Only products are sampled.
                    is_sampled = dispatch["op"] == "matmul" and 0 < blocks < n_blocks
                    expected = blocks if is_sampled else n_blocks
                    if not counted or counted["blocks"] != n_blocks or counted["blocks_run"] != expected:
                        print(f"FAILED: {dispatch['label']} {kernel}, {n_blocks} blocks: {counted and counted['blocks']}")
                        n_failed += 1
                        continue
                    n_sampled += is_sampled
                    if is_sampled or counted["launches"] != 1:
                        continue
                    launch = {"kernel": kernel.removeprefix("ree_"), "sectors": counted["global_sectors"],
                              "fma": counted["opcodes"].get("fma.rn.f32", 0)}
                    n_products += launch["kernel"].startswith(("matmul_3", "matmul_6", "matmul_1", "matvec"))
                    count.check_launch(launch, dispatch["dispatch"])
    print(f"{n_products} products, {n_sampled} sampled launches, {n_failed} failed")
    return int(n_failed > 0 or n_products == 0 or n_sampled == 0)


if __name__ == "__main__":
    sys.exit(main())
