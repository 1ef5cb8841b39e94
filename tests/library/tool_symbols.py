"""ree-run uses libree as any other program does: every symbol of libree that its object files need
is declared in a public header."""
import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import run
from declared import declared, public_headers

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True)
parser.add_argument("objects", nargs="+")
args = parser.parse_args()
harness.need_program("nm", "nm")

defined, needed = set(), {}
for path in args.objects:
    for line in run("nm", path).splitlines():
        kind, name = line.split()[-2:]
        if kind in "TDBRVW":
            defined.add(name)
        elif kind == "U" and name.startswith("ree_"):
            needed.setdefault(name, os.path.basename(path))
functions, variables = declared(public_headers(os.path.join(args.source, "src")))
taken = {name for name in needed if name not in defined}
wrong = [f"{needed[name]} uses {name}, which no public header declares"
         for name in sorted(taken - set(functions) - set(variables))]
if len(taken) < 100:
    wrong.append(f"only {len(taken)} symbols were found")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(taken)} symbols of libree, all of them public")
