"""tools/BENCHMARKS.md has the predictions that tools/predict/predict.py makes from the stored counts, and the counts
contain the whole model. If kernels changed since the counts were made, the output says so; that is no failure, because
making the counts takes nvcc and minutes.

Usage: predictions.py --source ROOT
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def predict(source, *arguments):
    command = [sys.executable, "-B", source / "tools/predict/predict.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    source = parser.parse_args().source
    done = predict(source, "--check")
    print(done.stdout, done.stderr, end="")
    n_failed = int(done.returncode != 0)
    # A count that is wrong by one fma must be noticed.
    record = json.loads((source / "tools/predict/counts.json").read_text())
    launch = next(launch for launch in record["launches"] if launch["kernel"].startswith("matvec"))
    launch["fma"] += 1
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(record, file)
        file.flush()
        if predict(source, "--counts", file.name).returncode == 0:
            print("FAILED: a wrong number of fma was accepted")
            n_failed += 1
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
