#!/usr/bin/env python3
"""The Python package's annotations: mypy finds nothing in the package, accepts a program that uses it, and
finds each mistake in another.

    tests/python/annotated.py build/python
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

RIGHT = '''
import pathlib
from typing import Dict, List, Optional
import ree

session = ree.Session("model.onnx", device=ree.Device("cpu", n_threads=2))
names: List[str] = [port.name for port in session.inputs]
with session.record("run.trace") as recording:
    outputs = session.run({"x": [1.0]}, outputs=["y"])
root: Optional[str] = recording.root
receipt: ree.Receipt = session.receipt({"x": [1.0]}, outputs, trace=recording)
verdict: str = receipt.verify(pathlib.Path("model.onnx"), device="vulkan", inputs={"x": [1.0]}).verdict
with ree.Generator("stories") as generator:
    text: str = generator.generate("Once", temperature=0.5).text
    for part in generator.stream([{"role": "user", "content": "Hello"}]):
        text += part
    sequence = generator.decoding().add([1, 2])
    token: int = sequence.choose(sequence.append([3]), seed=1)
first: Optional[ree.comparison.First] = ree.compare("stories", "Once", ("cpu", "vulkan")).first
figures: Dict[str, int] = generator.decoding().stats()
hash_: str = ree.sha256(outputs)
'''
WRONG = ('ree.Device(3)', 'ree.Device("cpu", threads=2)', 'ree.Session("m", "cpu").run()',
         'ree.Session("m").outputs.names', 'x: int = ree.sha256({})', 'ree.Receipt(3)', 'ree.Trace("t").diff("u")',
         'ree.Tokenizer("t").decode("text")', 'x: str = ree.Tokenizer("t").encode("text")', 'ree.export()',
         'ree.Generator("g").stream("a").result.text', 'ree.compare("m", {}, ("cpu", 3))', 'ree.no_such_name')


def mypy(*arguments):
    """mypy's output: one line for each error."""
    done = subprocess.run([sys.executable, "-m", "mypy", "--python-version", "3.10", "--no-error-summary",
                           "--ignore-missing-imports", "--no-site-packages",  # PyTorch would take minutes
                           "--cache-dir", str(pathlib.Path(work) / "cache"), *arguments],
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": package}, check=False)
    if done.stderr:
        sys.exit(done.stderr)
    return done.stdout.splitlines()


package = str(pathlib.Path(sys.argv[1]).resolve())
if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True, check=False).returncode:
    harness.skip("mypy is not installed")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    found = mypy("-p", "ree")
    check(not [line for line in found if ": error:" in line], "\n".join(found))
    pathlib.Path("right.py").write_text(RIGHT)
    pathlib.Path("wrong.py").write_text("import ree\n" + "\n".join(WRONG) + "\n")
    found = [line for line in mypy("--strict", "right.py") if line.startswith("right.py")]
    check(not found, "\n".join(found))
    found = mypy("wrong.py")
    for i, line in enumerate(WRONG):
        check(any(error.startswith(f"wrong.py:{i + 2}: error:") for error in found), f"no error: {line}")
    os.chdir("/")
sys.exit(harness.finish())
