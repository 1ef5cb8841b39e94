"""tools/borders.py: the source tree has no include against the arrows and no circle, and planted ones
are found."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(folder):
    done = subprocess.run([sys.executable, "-B", str(ROOT / "tools/borders.py"), str(folder)],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def plant(folder, changes, rules=None):
    """Copies the sources, appends `changes` ({file: text}), and runs the script on the copy."""
    tree = pathlib.Path(folder) / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for top in ("src", "graph", "cuda", "tools"):
        shutil.copytree(ROOT / top, tree / top, ignore=shutil.ignore_patterns("*.onnx", "stories"))
    if rules:
        with open(tree / "tools/borders.txt", "a", encoding="utf-8") as file:
            file.write(rules)
    for name, text in changes.items():
        os.makedirs((tree / name).parent, exist_ok=True)
        with open(tree / name, "a", encoding="utf-8") as file:
            file.write(text)
    return run(tree)


def main():
    check = harness.check
    code, output = run(ROOT)
    check(code == 0 and "0 against the arrows, 0 circles" in output, output)
    with tempfile.TemporaryDirectory() as folder:
        code, output = plant(folder, {"src/base/file.c": '#include "session/model.h"\n'})
        check(code == 1 and "src/base/file.c includes src/session/model.h" in output
              and "1 against the arrows" in output, f"against an arrow: {output}")
        code, output = plant(folder, {"cuda/kernel.h": '#  include "device/cuda/encode.h"\n'})
        check(code == 1 and "cuda/kernel.h includes src/device/cuda/encode.h" in output,
              f"kernels and the host: {output}")
        # Two headers that include each other.
        code, output = plant(folder, {"src/base/arena.h": '#include "base/strbuf.h"\n',
                                      "src/base/strbuf.h": '#include "base/arena.h"\n'})
        check(code == 1 and "circle: src/base/arena, src/base/strbuf" in output,
              f"a circle of headers: {output}")
        # A source that needs the header of a module that needs the source's own header.
        code, output = plant(folder, {"src/base/one.h": "", "src/base/two.h": "",
                                      "src/base/one.c": '#include "base/two.h"\n',
                                      "src/base/two.c": '#include "base/one.h"\n'})
        check(code == 1 and "circle: src/base/one, src/base/two" in output,
              f"a circle of modules: {output}")
        # An internal header belongs to the module of its name.
        code, output = plant(folder, {"src/base/one.h": "",
                                      "src/base/one_internal.h": '#include "base/one.h"\n',
                                      "src/base/one.c": '#include "base/one_internal.h"\n'})
        check(code == 0, f"an internal header: {output}")
        code, output = plant(folder, {"src/new/file.c": '#include "base/file.h"\n'})
        check(code == 2 and "no rule for 'src/new/file.c'" in output, f"a new folder: {output}")
        code, output = plant(folder, {}, rules="src/new: src/nowhere\n")
        check(code == 2 and "src/nowhere" in output, f"a rule for nothing: {output}")
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
