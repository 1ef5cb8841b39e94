"""Programs that load libree with a floating-point environment of their own (float_env_host.c):
- built with -ffast-math, whose start-up code makes the processor flush subnormals;
- rounding down;
- with unmasked exceptions;
- in threads made before or after the library was loaded;
- with an OpenMP pool whose threads have this environment;
- with a driver that changes the environment while ree loads it (float_env_library.c).
Each must get the recorded SHA-256 of the sample models and keep its environment."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

parser = argparse.ArgumentParser()
for name in ("--libree", "--ree-run", "--source", "--cc", "--device"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
SAMPLES = os.path.join(args.source, "tools/sample")
LONG = "Once upon a time" + 50 * " there was a little girl"


def run(*command, env, code=0):
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if code is not None and done.returncode != code:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def compile_host(cc, out, *flags, source="float_env_host.c"):
    """Compiles the program and returns its path. If the build's compiler cannot compile it, the test
    fails; if another one cannot, returns None."""
    done = subprocess.run([cc, "-D_GNU_SOURCE", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", *flags,
                           "-I" + os.path.join(args.source, "src"),
                           os.path.join(args.source, "tests/library", source), "-o", out,
                           "-ldl", "-lpthread", "-lm"], capture_output=True, text=True)
    if done.returncode and cc == args.cc:
        sys.exit(f"{cc} {' '.join(flags)} {source}: exit code {done.returncode}\n{done.stderr}")
    if done.returncode:
        print(f"{cc} {' '.join(flags)}: {done.stderr.strip().splitlines()[-1]}")
    return out if done.returncode == 0 else None


def recorded():
    """Returns the output of a correct run."""
    values = {}
    with open(os.path.join(SAMPLES, "recorded.txt")) as file:
        for line in file:
            if not line.startswith("#"):
                value, model, of = line.split()
                values[model, of] = value
    digits = values["digits.onnx", "seven"]
    tokens, logits = values["stories", "tokens"], values["stories", "logits"]
    long = run(args.ree_run, os.path.join(SAMPLES, "stories"), "--prompt-text", LONG, "--max-new-tokens", "8",
               "--logits-hash", "--json", "--device", "cpu", env=env).stdout
    long_tokens, long_logits = (re.search(rf'"{name}_sha256":\s*"([0-9a-f]{{64}})"', long).group(1)
                                for name in ("tokens", "logits"))
    return (f"digits {digits}\ndigits-inside {digits}\nstories-tokens {tokens}\nstories-logits {logits}\n"
            f"digits-inside {digits}\nlong-tokens {long_tokens}\nlong-logits {long_logits}\n"
            f"parts-tokens {tokens}\nparts-logits {logits}\n")


with tempfile.TemporaryDirectory() as folder:
    # The cache folder is empty, so the first program runs the self-tests. KMP_INHERIT_FP_CONTROL: LLVM's
    # OpenMP library would copy the environment of the thread that opens a region to the region's
    # threads, and so hide what ree does to their environment.
    env = {**os.environ, "XDG_CACHE_HOME": folder, "KMP_INHERIT_FP_CONTROL": "0"}
    if args.device != "cpu":
        harness.need_device(args.ree_run, args.device, env=env)
        shutil.rmtree(os.path.join(folder, "ree"), ignore_errors=True)
    harness.need_program(args.cc, "C compiler")
    plain = compile_host(args.cc, os.path.join(folder, "plain"))
    pool = compile_host(args.cc, os.path.join(folder, "pool"), "-fopenmp")
    driver = compile_host(args.cc, os.path.join(folder, "driver.so"), "-shared", "-fPIC",
                          source="float_env_library.c")
    cases = [(plain, "both", "after")]
    if args.device == "cpu":
        cases += [(plain, "both", "main"), (plain, "down", "late"), (plain, "down", "main"), (plain, "traps", "main"),
                  (plain, "both", "before"), (plain, "traps", "late"), (plain, "usual", "main"), (pool, "both", "pool")]
    # One name per compiler, the build's first. They are told apart by --version, in which cc and gcc differ only
    # in the first word: with ccache, the paths of all compilers are links to one program.
    found = {}
    for cc in (args.cc, "gcc", "clang"):
        if shutil.which(cc):
            found.setdefault(run(cc, "--version", env=env).stdout.split(maxsplit=1)[1], cc)
    for i, cc in enumerate(found.values()):
        if args.device != "cpu" and i:
            break  # a driver needs half a minute to compile
        fast = compile_host(cc, os.path.join(folder, f"fast-{i}"), "-ffast-math")
        if fast and args.device == "cpu":
            cases.append((fast, "as-started", "main"))
        if fast:
            cases.append((fast, "as-started", "before"))
    expected = None
    wrong = 0
    for program, modes, thread in cases:
        changes = {"REE_CUDA_DRIVER": driver} if modes == "usual" else {}
        done = run(program, args.libree, SAMPLES, args.device, modes, thread, env={**env, **changes}, code=None)
        # ree-run runs after the program, because it would record the self-tests' results.
        expected = expected or recorded()
        right = done.returncode == 0 and done.stdout == expected
        wrong += not right
        print(f"{os.path.basename(program)} {modes} {thread}: {'right' if right else 'WRONG'}")
        if not right:
            print(f"exit code {done.returncode}\n{done.stdout}{done.stderr}", end="")
    if wrong:
        sys.exit(f"{wrong} of {len(cases)} programs; expected\n{expected}")
    print(f"{len(cases)} programs")
