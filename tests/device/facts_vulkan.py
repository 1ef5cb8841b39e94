"""Checks that `ree-run devices` reports the known facts of two Vulkan drivers that need no GPU.
It fails if the probe stops detecting one of their faults, or reports a fault that does not exist.
The facts were measured on Mesa 22.3.6 (llvmpipe) and on Chromium's SwiftShader. Another version of
Mesa may have fixed the faults, so other versions are skipped."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--ree-run", required=True)
args = parser.parse_args()

# Verdicts on the native form of primitives, and on functions that ree tests only to report them.
RIGHT, WRONG = "right", "wrong"
DRIVERS = {
    "llvmpipe": {
        "version": r"Mesa 22\.3\.",
        "limit": {"work group": "1024", "shared memory": "32 KiB", "storage buffer range": "128 MiB"},
        "feature": {"float64": "yes", "int64": "yes", "subnormals kept on request": "no"},
        # Products and sums round correctly and keep subnormals; fma rounds twice.
        "native": {"add": RIGHT, "mul": RIGHT, "div": RIGHT, "sqrt": RIGHT, "fma": WRONG, "compare": RIGHT,
                   "round": RIGHT},
        "form": {"add": "native", "mul": "native", "div": "native", "sqrt": "native", "fma": "float64"},
        "functions": {"exp": WRONG, "tanh": WRONG, "inversesqrt": WRONG,
                      "float(int(x))": WRONG},  # folded to trunc(x): -0 instead of +0
        "folds": "80000000, not 00000000",
    },
    "SwiftShader": {
        "version": "",
        "limit": {"work group": "256", "shared memory": "32 KiB", "storage buffer range": "1 GiB"},
        "feature": {"float64": "no", "int64": "no", "subnormals kept on request": "no"},
        # Subnormals are flushed, also by max and floor; in the normal range, where the float32 form uses
        # the native operation, sums, products, quotients and roots are right.
        "native": {"add": WRONG, "mul": WRONG, "div": WRONG, "sqrt": WRONG, "fma": WRONG, "min, max": WRONG,
                   "compare": WRONG, "round": WRONG},
        "form": {"add": "float32", "mul": "float32", "div": "float32", "sqrt": "float32", "fma": "float32"},
        "functions": {"exp": WRONG, "tanh": WRONG, "inversesqrt": WRONG, "float(int(x))": RIGHT},
        "flushes": ("add", "mul", "sqrt", "min, max", "round"),
    },
}


def is_subnormal(bits):
    return bits & 0x7F800000 == 0 and bits & 0x7FFFFF != 0


n_wrong = 0


def check(device, condition, message):
    global n_wrong
    if not condition:
        n_wrong += 1
        print(f"{device['name']}: {message}")


def check_device(device, known):
    facts = {(fact["kind"], fact["name"]): fact["value"] for fact in device["facts"]}
    for kind in ("limit", "feature"):
        for name, value in known[kind].items():
            check(device, facts[kind, name] == value, f"{name} is {facts[kind, name]}, known as {value}")
    for name, form in known["form"].items():
        value = facts["primitive", name]
        check(device, value.startswith(form + " ("), f"{name}: {value}, known to take {form}")
    for name, verdict in known["native"].items():
        value = facts["primitive", name]
        check(device, f"native is {verdict} in " in value, f"{name}: {value}, known as {verdict}")
    for name in known.get("flushes", ()):
        # The example has a subnormal argument, or the correct result is subnormal.
        value = facts["primitive", name]
        words = re.search(r"native is wrong in .*?e\.g\. (\w+) (\w+) \w+ gives (\w+), not (\w+)", value)
        a, b, _, right = (int(word, 16) for word in words.groups())
        check(device, any(map(is_subnormal, (a, b, right))), f"{name}: {value}: no subnormal number")
    for name, verdict in known["functions"].items():
        value = facts["not used", name]
        check(device, value.startswith(verdict), f"{name}: {value}, known as {verdict}")
        if verdict == WRONG:  # not only for a few cases: for at least a tenth of them
            n, of = map(int, re.match(r"wrong for (\d+) of (\d+)", value).groups())
            check(device, n * 10 >= of, f"{name}: {value}, known to be wrong for a tenth and more")
    if "folds" in known:
        value = facts["not used", "float(int(x))"]
        check(device, known["folds"] in value, f"float(int(x)): {value}")


listed = json.loads(subprocess.run([args.ree_run, "devices", "--json"], check=True, capture_output=True,
                                   text=True).stdout)
checked, others = [], []
for device in listed["devices"]:
    if not device["spec"].startswith("vulkan"):
        continue
    driver = next(fact["value"] for fact in device["facts"] if fact["name"] == "driver")
    known = next((known for name, known in DRIVERS.items()
                  if name in device["name"] and re.search(known["version"], driver)), None)
    if known:
        check_device(device, known)
        checked.append(device["name"])
    else:
        others.append(f"{device['name']} ({driver})")
if n_wrong:
    sys.exit(1)
if not checked:
    harness.skip(f"nothing is known of {', '.join(others) or 'no Vulkan device'}")
print(f"as known: {', '.join(checked)}")
