#!/usr/bin/env python3
"""Manual pages and shell completions. They name all options of the help, and completions offer only
options that the commands accept. mandoc or man finds no errors in the manual pages. bash, zsh and fish
can read their completions; in bash they complete commands, options, and values that come from a list."""

import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import call, check  # noqa: E402


OPTION = r"(?<![\w-])--?[a-z][a-z-]*"
# Options that a command accepts because it shares a group of options, and that its help does not name.
WITHOUT_HELP = {"bench": {"--break-primitive"}, "devices": {"--device", "--operation-set"},
                "verify": {"--operation-set"}}


def run(*arguments):
    return call(options.ree_run, *arguments)


def complete(*words):
    """Returns what bash offers for the last of these words."""
    script = f"""
        . {shlex.quote(str(options.documents / "ree-run"))}
        COMP_WORDS=({shlex.join(words)})
        COMP_CWORD={len(words) - 1}
        _ree_run
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = call("bash", "--norc", "-c", script, cwd=empty)
    # Outside of a completion, compopt complains.
    check(not done.stderr or "compopt" in done.stderr, f"{words}: {done.stderr}")
    return done.stdout.split()


def options_in(lines, text):
    """Returns the options that the lines of this pattern name."""
    return {option for line in re.findall(lines, text, flags=re.M) for option in re.findall(OPTION, line)}


def test_options(names):
    """The manual page has all options of the help. All completions offer the same options, which are those
    of the help and WITHOUT_HELP, and the command accepts them."""
    fish = (options.documents / "ree-run.fish").read_text()
    zsh = (options.documents / "_ree-run").read_text()
    for name in names:
        text = run("help", name).stdout
        documented = options_in(r"^  -.*", text)
        page = (options.documents / f"ree-run-{name}.1").read_text().replace("\\-", "-")
        in_page = options_in(r"(?<=^\\fB)-.*", re.sub(r"\\f[IR]", "", page))
        check(documented == in_page, f"ree-run-{name}.1 and the help differ: {documented ^ in_page}")
        offered = set(complete("ree-run", name, "-"))
        expected = documented | {"--help"} | WITHOUT_HELP.get(name, set())
        check(offered == expected, f"{name}: completion and help differ: {offered ^ expected}")
        in_zsh = zsh[zsh.index(f"\n    {name}) arguments=("):]
        in_zsh = set(re.findall(r"'\*?(--?[a-z][a-z-]*)", in_zsh[:in_zsh.index("    ) ;;")]))
        check(in_zsh == offered, f"{name}: zsh and bash differ: {in_zsh ^ offered}")
        in_fish = re.findall(rf"__fish_seen_subcommand_from {name}' -(?:l|s) ([a-z-]+)", fish)
        check({option.lstrip("-") for option in offered} == {*in_fish, "help"},
              f"{name}: fish and bash differ: {offered} {in_fish}")
        # An option with a value takes the first of the two, and the second is unknown.
        for option in offered - {"--help"}:
            done = run(name, option, "--no-such", "--no-such")
            check(done.returncode == 2 and f"unknown option '{option}'" not in done.stderr,
                  f"{name} {option}: {done.returncode} {done.stderr}")


def test_values():
    for words, expected in ((["run", "m", "--form", ""], ["native", "float64", "float32", "integer"]),
                            (["m.onnx", "--form", "float"], ["float64", "float32"]),
                            (["compare", "m", "--operation-set", "=", "d"], ["deterministic", "default"]),
                            (["compare", "m", "--operation-set", "="],
                             ["reproducible", "deterministic", "default"]),
                            (["verify", "r", "m", "--device", "v"], ["vulkan"]),
                            (["export", "m", "--opset", ""], ["17", "23"]),
                            (["export", "m", "--block", "1"], ["16", "128"]),
                            (["bench", "ma"], ["matmul", "map"]),
                            (["dis"], ["dispute"]),
                            (["help", "re"], ["referee", "request"]),
                            (["m.onnx", "--prompt-text", "hi", "--temp"], ["--temperature"]),
                            (["m.onnx", "--temp"], []),
                            (["run", "m", "--threads", ""], []),
                            (["run", "m", "--output-dir", ""], ["folder"]),
                            (["run", "m", "--input", "f"], ["file.npy", "folder"])):
        found = complete("ree-run", *words)
        check(sorted(found) == sorted(expected), f"{words}: {found}, expected {expected}")
    # The message of a wrong value lists the same values.
    for words in (["run", "--form"], ["export", "--opset"], ["export", "--block"], ["run", "--operation-set"]):
        found = complete("ree-run", *words, "")
        message = run(*words, "nonsense").stderr
        listed = re.search(r"requires (.*), not", message).group(1)
        check(re.split(", | or ", listed) == found, f"{words}: {found}, but {message}")


def test_pages():
    pages = sorted(options.documents.glob("*.1"))
    if shutil.which("mandoc"):
        for line in call("mandoc", "-Tlint", "-W", "warning", *pages).stdout.splitlines():
            # A date would make every build different.
            check("missing date" in line, line)
    elif shutil.which("man") and shutil.which("groff"):
        for page in pages:
            done = call("man", "--warnings", "-l", "-Tutf8", "-Z", page, env={**os.environ, "LC_ALL": "C.UTF-8"})
            check(done.returncode == 0 and not done.stderr, f"{page.name}: {done.stderr}")
    else:
        print("not checked: neither mandoc nor man and groff are installed")


def test_other_shells():
    for shell, name in (("zsh", "_ree-run"), ("fish", "ree-run.fish")):
        if not shutil.which(shell):
            print(f"not checked: {shell} is not installed")
            continue
        done = call(shell, "-n", options.documents / name)
        check(done.returncode == 0 and not done.stderr, f"{shell}: {done.stderr}")


arguments = harness.parser(__doc__)
arguments.add_argument("--documents", type=pathlib.Path, required=True)
options = arguments.parse_args()
if not options.documents.is_dir():
    harness.skip("the build made no documents, because it is for another machine")
if not shutil.which("bash"):
    harness.skip("bash is not installed")
commands = re.findall(r"^\.BR ree\\-run\\-([a-z]+) \(1\)$", (options.documents / "ree-run.1").read_text(), flags=re.M)
check(len(commands) > 15, f"commands of ree-run.1: {commands}")
with tempfile.TemporaryDirectory() as empty:
    (pathlib.Path(empty) / "file.npy").touch()
    (pathlib.Path(empty) / "folder").mkdir()
    test_options(commands)
    test_values()
    test_pages()
    test_other_shells()
sys.exit(harness.finish())
