"""ree-run uses libree as any other program does: every symbol of libree that its object files need
is declared in a public header. LEFTOVERS lists the exceptions."""
import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness
from harness import run
from declared import declared, public_headers

# main sets the floating-point environment of ree-run itself. An entry that no object file needs is an
# error, so the list stays up to date.
LEFTOVERS = {"ree_float_env_set"}

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
internal = taken - set(functions) - set(variables)
wrong = [f"{needed[name]} uses {name}, which no public header declares"
         for name in sorted(internal - LEFTOVERS)]
wrong += [f"{name} is listed as a leftover, but is not needed" for name in sorted(LEFTOVERS - internal)]
if len(taken) < 100:
    wrong.append(f"only {len(taken)} symbols were found")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(taken)} symbols of libree, {len(internal)} of them without a public header")
