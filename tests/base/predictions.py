"""tools/BENCHMARKS.md has the predictions that tools/predict/predict.py makes from the stored counts, and the counts
contain the whole model. If kernels changed since the counts were made, the output says so; that is no failure, because
making the counts takes nvcc and minutes. A count that is wrong by one fma is noticed.

Usage: predictions.py --source ROOT
"""

import argparse
import json
import os
import pathlib
import re
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
    text = (source / "tools/predict/counts.json").read_text()
    for section in (None, "layer", "once", "last"):
        record = json.loads(text)
        launches, planted = record["launches"], ""
        if section:
            # A launch of this section alone, with one fma more.
            indices = record["cases"][0][section]
            at = next(at for at, index in enumerate(indices)
                      if re.match(r"matvec|matmul_\d", launches[index]["kernel"]))
            launches.append(launches[indices[at]] | {"fma": launches[indices[at]]["fma"] + 1})
            indices[at] = len(launches) - 1
            planted = launches[-1]["kernel"]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(record, file)
            file.flush()
            done = predict(source, "--counts", file.name)
        named = planted and f"wrong number of fma: {planted}" in done.stderr
        if done.returncode != bool(planted) or bool(named) != bool(planted):
            print(f"FAILED: an fma planted in {section}: exit code {done.returncode}: {done.stderr}")
            n_failed += 1
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
