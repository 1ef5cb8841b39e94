"""tools/BENCHMARKS.md has the predictions that tools/predict/predict.py makes from the stored counts, and the counts
contain the whole model. If kernels changed since the counts were made, the output says so; that is no failure, because
making the counts takes nvcc and minutes. A count that is wrong by one fma is noticed.

Usage: predictions.py --source ROOT
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def predict(source, *arguments):
    command = [sys.executable, "-B", source / "tools/predict/predict.py", *arguments]
    # The checks must not depend on the assert statement.
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONOPTIMIZE": "1"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    source = parser.parse_args().source
    done = predict(source, "--check")
    print(done.stdout, done.stderr, end="")
    n_failed = int(done.returncode != 0)
    record = json.loads((source / "tools/predict/counts.json").read_text())
    launch = next(launch for launch in record["launches"] if launch["kernel"].startswith("matvec"))
    for planted in (0, 1):
        launch["fma"] += planted
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(record, file)
            file.flush()
            done = predict(source, "--counts", file.name)
        named = f"wrong number of fma: {launch['kernel']}" in done.stderr
        if done.returncode != planted or named != bool(planted):
            print(f"FAILED: {planted} planted fma: exit code {done.returncode}: {done.stderr}")
            n_failed += 1
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
