"""Shared by the Python tests: counted checks, calls of ree-run, the summary line, skipping.

    HERE = pathlib.Path(__file__).resolve().parent
    sys.path.insert(0, str(HERE.parent / "harness"))
    import harness
    from harness import check
"""

import argparse
import os
import shutil
import subprocess
import sys

passed, failed = 0, 0
_helpers = set()


def helper(function):
    """Decorates a function that contains checks: a failure is reported with the line that called the
    function."""
    _helpers.add(function.__code__)
    return function


def check(ok, what):
    """Counts a check. If `ok` is false, prints the line of the call and `what`; if `what` is a function,
    prints its result. Returns `ok`. If the environment variable REE_TEST_STOP is set, the first failure
    ends the test."""
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        caller = sys._getframe(1)
        while caller.f_code in _helpers:
            caller = caller.f_back
        print(f"line {caller.f_lineno}: FAILED: {what() if callable(what) else what}", flush=True)
        if "REE_TEST_STOP" in os.environ:
            sys.exit(1)
    return ok


class fails:
    """A context in which an exception of this kind must be raised, with these words in its message."""

    def __init__(self, kind, *words):
        self._kind, self._words = kind, words

    def __enter__(self):
        return self

    @helper
    def __exit__(self, raised, e, trace):
        check(raised is not None and issubclass(raised, self._kind), f"{self._kind.__name__} expected, raised: {e!r}")
        for word in self._words:
            check(word in str(e), f"'{word}' is not in: {e}")
        return raised is not None and issubclass(raised, Exception)


def call(program, *arguments, **options):
    """Runs the program and returns the completed process, with its output as text."""
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, **options)


def run(*command, code=0, env=None):
    """Runs a program, which must exit with `code`, and returns its standard output. `env` is added to
    the environment. If the program exits with another code, prints its output and ends the test."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def parser(description=None):
    """Returns a parser for the arguments of every test of ree-run; the test may add others."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--ree-run", required=True)
    return arguments


def use_oracle_python():
    """Runs the test again with the Python that REE_ORACLE_PYTHON names, if it exists: it has the packages
    of the oracles."""
    python = os.environ.pop("REE_ORACLE_PYTHON", None)  # not again in the new process
    if python and os.path.exists(python):
        os.execv(python, [python, "-B", *sys.argv])


def skip(reason):
    """Ends the test as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)  # CTest: SKIP_RETURN_CODE


def need_program(path, what):
    """Skips the test if the program (a path, or a name in PATH) does not exist. `what` names it."""
    if not shutil.which(path):
        skip(f"there is no {what}")


def need_device(ree_run, kind, **options):
    """Skips the test if there is no device of this kind ("vulkan"). If ree-run cannot list the devices,
    the test fails. `options` are passed to run()."""
    if f"{kind}:0" not in run(ree_run, "devices", **options):
        skip(f"no {kind} device")


def finish():
    """Prints the summary line and returns the exit code. A test without any check has failed."""
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
