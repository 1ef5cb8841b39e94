"""What the tests in Python share: checks that are counted, calls of ree-run, the last line, skipping.

    HERE = pathlib.Path(__file__).resolve().parent
    sys.path.insert(0, str(HERE.parent / "harness"))
    import harness
    from harness import check
"""

import argparse
import os
import subprocess
import sys

passed, failed = 0, 0
_helpers = set()


def helper(function):
    """Of a function that checks for others: a failure in it is shown with the line that called it."""
    _helpers.add(function.__code__)
    return function


def check(ok, what):
    """Counts; prints what is wrong, and the line. Gives `ok` back. With REE_TEST_STOP set, the first failure ends the
    test."""
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        caller = sys._getframe(1)
        while caller.f_code in _helpers:
            caller = caller.f_back
        print(f"line {caller.f_lineno}: FAILED: {what}", flush=True)
        if "REE_TEST_STOP" in os.environ:
            sys.exit(1)
    return ok


def call(program, *arguments, **options):
    """Runs it and gives what it printed, as text."""
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, **options)


def parser(description=None):
    """Of the arguments that every test of ree-run has; others are added by the test."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--ree-run", required=True)
    return arguments


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)  # for ctest: SKIP_RETURN_CODE


def need_device(ree_run, kind):
    """Ends the test as skipped where there is no device of this kind ("vulkan")."""
    if f"{kind}:0" not in call(ree_run, "devices").stdout:
        skip(f"no {kind} device")


def finish():
    """Prints the last line; the exit code. A test that checked nothing has failed."""
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
