#!/usr/bin/env python3
"""Mutation tests: do the tests notice wrong code? Changes the code of receipts, verification and
disputes, one place at a time, and runs its tests. A change that no test notices shows that a test
is missing, or has no effect.

    tools/mutants.py --n 300                      300 random changes
    tools/mutants.py --n 300 --files 'src/receipt/*.c'
    tools/mutants.py --only 17,905                these changes, with the output of the tests
    tools/mutants.py --n 300 --begin 120 --reuse  continues after the 120th, with the last build

All changes are built into one program and have numbers, so nothing is compiled for a single change:
the environment variable REE_MUTANT selects the active one. A first run of each test records the
changes that it reaches. A change is tried only with those tests, the fastest first, until one
fails. A test that takes more than four times its usual time plus 20 seconds has also noticed the
change, so the machine should be idle.

Changes: a comparison becomes another one, for example < becomes <=; && becomes ||; a condition is
negated; + becomes -; a number becomes the next one; a call is omitted; an error is not passed on
(REE_TRY); a failure is reported as success.

Needs tree-sitter and tree-sitter-c from PyPI. Builds in build/mutants, which takes some minutes.
The same seed chooses the same changes as long as the code is the same. Writes the table of changes
that no test noticed to build/mutants/survivors.txt. Exit codes: 0 all changes were noticed; 1 some
were not; 2 wrong usage."""
import argparse
import concurrent.futures
import fnmatch
import mmap
import os
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = ["src/receipt/*.c", "src/trace/*.c", "src/dispute/bind.c", "src/dispute/claim*.c",
         "src/dispute/decide.c", "src/dispute/dispute*.c", "src/dispute/hold.c", "src/dispute/message.c",
         "src/dispute/party.c", "src/dispute/referee*.c", "src/dispute/rules.c", "src/dispute/tree.c"]
# Test programs and scripts, by their CTest names.
TESTS = (r"^(receipt/|trace/|dispute/(liars|dispute|random|claim_fields|named|diff)$|train/(receipts|disputes|library)$|"
         r"(library/audit|public/receipts)$|base/(merkle|canonical_json)$)")
MAX = 1 << 16  # maximum number of changes

HEADER = """#ifndef REE_MUTANT_H
#define REE_MUTANT_H
#include <stdbool.h>
__attribute__((weak)) int ree_mutant_of_run = -1;
__attribute__((weak)) unsigned char *ree_mutants_reached;
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((weak, constructor)) void ree_mutant_begin(void) {
    if (ree_mutants_reached) return; // each file of the program calls this
    const char *n = getenv("REE_MUTANT"), *path = getenv("REE_MUTANTS_REACHED");
    if (n) ree_mutant_of_run = atoi(n);
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, %d, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) ree_mutants_reached = map;
    close(fd);
}
static inline bool ree_mutant(int n) {
    if (ree_mutants_reached) ree_mutants_reached[n] = 1;
    return n == ree_mutant_of_run;
}
#endif
""" % MAX

SWAPS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
         "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"]}


class Mutator:
    """Rewrites one file. Appends (number, path, line, description) of each change to `changes`."""

    def __init__(self, path, text, changes):
        self.path, self.text, self.changes = path, text, changes

    def source(self, node):
        return self.text[node.start_byte:node.end_byte].decode()

    def add(self, node, what):
        number = len(self.changes)
        self.changes.append((number, self.path, node.start_point[0] + 1, what))
        return number

    def within(self, node):
        """Returns the text of a node, with the changes inside it."""
        out, at = [], node.start_byte
        for child in node.children:
            out += [self.text[at:child.start_byte].decode(), self.rewrite(child)]
            at = child.end_byte
        return "".join(out) + self.text[at:node.end_byte].decode()

    def rewrite(self, node):
        kind = node.type
        if kind in ("preproc_include", "preproc_def", "preproc_function_def", "preproc_if", "preproc_ifdef",
                    "array_declarator", "field_declaration", "sizeof_expression", "enum_specifier",
                    "initializer_list", "offsetof_expression", "gnu_asm_expression", "string_literal", "char_literal"):
            return self.source(node)
        if kind == "declaration" and (node.parent.type == "translation_unit" or "static" in self.source(node).split()):
            return self.source(node)
        if kind == "for_statement" and self.text[:node.start_byte].decode().rstrip().rsplit("\n", 1)[-1].lstrip().startswith("#pragma omp"):
            # OpenMP requires a loop of this form: only its body changes.
            body = node.child_by_field_name("body")
            return self.text[node.start_byte:body.start_byte].decode() + self.rewrite(body)
        if kind == "case_statement":
            value = node.child_by_field_name("value")
            if value is not None:  # a constant
                head = self.text[node.start_byte:value.end_byte].decode()
                out, at = [head], value.end_byte
                for child in node.children:
                    if child.start_byte >= value.end_byte:
                        out += [self.text[at:child.start_byte].decode(), self.rewrite(child)]
                        at = child.end_byte
                return "".join(out) + self.text[at:node.end_byte].decode()
        if kind == "binary_expression":
            return self.binary(node)
        if kind == "number_literal":
            return self.number(node)
        if kind in ("if_statement", "while_statement", "conditional_expression"):
            return self.condition(node)
        if kind == "expression_statement":
            return self.statement(node)
        if kind == "return_statement" and "return ree_fail(" in self.source(node):
            inner = self.within(node)
            return "{ if (ree_mutant(%d)) return REE_OK; %s }" % (self.add(node, "a failure is reported as success"), inner)
        return self.within(node)

    def binary(self, node):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.source(node.child_by_field_name("operator"))
        a, b = self.source(left), self.source(right)
        text = f"(({self.rewrite(left)}) {operator} ({self.rewrite(right)}))"
        for other in SWAPS.get(operator, []):
            number = self.add(node, f"{short(a)} {operator} {short(b)}: {other}")
            text = f"(ree_mutant({number}) ? ({a}) {other} ({b}) : {text})"
        return text

    def number(self, node):
        text = self.source(node)
        if not text.isdigit():
            return text
        return f"({text} + ree_mutant({self.add(node, f'{text}: {int(text) + 1}')}))"

    def condition(self, node):
        condition = node.child_by_field_name("condition")
        inner = condition
        while inner.type == "parenthesized_expression":
            inner = inner.named_children[0]
        number = self.add(condition, f"({short(self.source(inner))}): its opposite")
        text = f"({self.rewrite(inner)})"
        text = f"(ree_mutant({number}) != !!{text})"
        out, at = [], node.start_byte
        for child in node.children:
            out += [self.text[at:child.start_byte].decode(), text if child == condition else self.rewrite(child)]
            at = child.end_byte
        return "".join(out) + self.text[at:node.end_byte].decode()

    def statement(self, node):
        call = node.named_children[0] if node.named_children else None
        text = self.within(node)
        if not self.source(node).endswith(";"):  # cJSON_ArrayForEach(item, array) before its block
            return text
        if call is None or call.type not in ("call_expression", "assignment_expression", "update_expression"):
            return text
        source = self.source(call)
        name = source.split("(")[0]
        if name == "REE_TRY":
            number = self.add(node, f"{short(source)}: its error is ignored")
            return "{ if (ree_mutant(%d)) (void)%s; else %s }" % (number, source[len("REE_TRY"):], text)
        if name.isupper() or name in ("free", "fclose", "memset") or name.endswith(("_finish", "_destroy", "_init", "_Delete", "_free")):
            return text  # macros; the sanitizers notice a missing release
        if call.type != "call_expression" and "++" in source or "--" in source:
            return text  # such a loop would not end
        return "{ if (!ree_mutant(%d)) { %s } }" % (self.add(node, f"{short(source)}: left out"), text)


def short(text):
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def rewrite_all(folder, patterns):
    import tree_sitter
    import tree_sitter_c
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
    changes = []
    for path in sorted(str(p.relative_to(folder)) for p in folder.glob("src/*/*.c")):
        if not any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            continue
        text = (folder / path).read_bytes()
        mutator = Mutator(path, text, changes)
        tree = parser.parse(text)
        out, at = ['#include "%s"\n#line 1 "%s"\n' % (folder / "mutant.h", path)], 0
        for node in tree.root_node.children:
            out += [text[at:node.start_byte].decode(),
                    mutator.rewrite(node) if node.type == "function_definition" else mutator.source(node)]
            at = node.end_byte
        (folder / path).write_text("".join(out) + text[at:].decode())
    if len(changes) > MAX:
        sys.exit(f"{len(changes)} changes; MAX is {MAX}")
    return changes


def build(options):
    folder = options.folder
    shutil.rmtree(folder / "source", ignore_errors=True)
    (folder / "source").mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder / "source"], input=archive, check=True)
    (folder / "source" / "mutant.h").write_text(HEADER)
    changes = rewrite_all(folder / "source", options.files)
    print(f"{len(changes)} changes are possible", flush=True)
    shared = options.shared or ROOT.parent / "shared"
    configure = ["cmake", "-S", folder / "source", "-B", folder / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DREE_WERROR=OFF", "-DREE_CUDA=OFF", f"-DREE_SHARED_DIR={shared}", *options.cmake]
    configure += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    with open(folder / "build.log", "w") as log:
        for command in (configure, ["ninja", "-C", folder / "build"]):
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode:
                sys.exit(f"does not build: {folder / 'build.log'}")
    return changes


def tests_of(folder):
    """Returns {name: command} of CTest's tests."""
    import json
    shown = subprocess.run(["ctest", "--test-dir", folder / "build", "-R", TESTS, "--show-only=json-v1"],
                           capture_output=True, text=True, check=True)
    return {t["name"]: t["command"] for t in json.loads(shown.stdout)["tests"] if "command" in t}


def run(command, folder, seconds, **changes):
    """Runs a test. Returns whether it passes, and its duration in seconds."""
    environment = {**os.environ, "VK_ICD_FILENAMES": "none", "OMP_WAIT_POLICY": "passive", "REE_TEST_SAMPLE": "1/10",
                   "REE_TEST_STOP": "1", "XDG_CACHE_HOME": str(folder / "cache"), **changes}
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        code = None
    if code is None or code < 0:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()
    return code == 0, time.monotonic() - start


def first_runs(folder, tests):
    """Returns [(seconds, name, command, changes reached)]."""
    out = []
    for name, command in tests.items():
        reached = folder / "reached"
        reached.write_bytes(bytes(MAX))
        passes, seconds = run(command, folder, 1200, REE_MUTANTS_REACHED=str(reached))
        if not passes:
            print(f"{name}: fails or is skipped without any change; not used")
            continue
        with open(reached, "r+b") as file, mmap.mmap(file.fileno(), 0) as found:
            out.append((seconds, name, command, {i for i in range(MAX) if found[i]}))
        print(f"{name}: {seconds:.1f} s, reaches {len(out[-1][3])} changes", flush=True)
    return sorted(out, key=lambda t: t[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=300, help="number of changes (default 300)")
    parser.add_argument("--only", default="", help="numbers of changes, instead of --n random ones")
    parser.add_argument("--begin", type=int, default=0, metavar="K", help="skip the first K of the random changes")
    parser.add_argument("--reuse", action="store_true", help="reuse the program and the first runs in --folder")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random changes (default 1)")
    parser.add_argument("--files", action="append", help="pattern of files; may be given several times")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--shared", type=pathlib.Path, help="folder of real models (beside the project's)")
    parser.add_argument("--cmake", action="append", default=[], metavar="ARG",
                        help="a further argument of CMake, such as --cmake=-DREE_SHADERS_FROM=DIR; may be given several times")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of parallel processes (default: one per processor)")
    parser.add_argument("--longest", type=float, default=1200, help="skip tests that take longer than this many seconds (default 1200)")
    options = parser.parse_args()
    # A shell starts background jobs with SIGINT ignored, and tests would inherit that; some
    # interrupt their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.files = options.files or FILES
    kept = options.folder / "first_runs.pickle"
    if options.reuse:
        changes, tests = pickle.loads(kept.read_bytes())
    else:
        changes = build(options)
        tests = first_runs(options.folder, tests_of(options.folder))
        kept.write_bytes(pickle.dumps((changes, tests)))
    tests = [t for t in tests if t[0] <= options.longest]
    reached = set().union(*(t[3] for t in tests))
    print(f"{len(reached)} of {len(changes)} changes are reached by a test")
    chosen = [int(n) for n in options.only.split(",") if n] or \
        random.Random(options.seed).sample(range(len(changes)), min(options.n, len(changes)))[options.begin:]
    survivors = []

    def try_one(number):
        for seconds, name, command, reaches in tests:
            if number in reaches:
                passes, _ = run(command, options.folder, 20 + 4 * seconds, REE_MUTANT=str(number))
                if not passes:
                    return number, name
        return number, None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for i, (number, name) in enumerate(pool.map(try_one, chosen), 1):
            _, path, line, what = changes[number]
            state = f"noticed by {name}" if name else "NOT NOTICED" if number in reached else "NOT REACHED"
            print(f"{i}/{len(chosen)} {number} {path}:{line}: {what}: {state}", flush=True)
            if not name:
                survivors.append(f"{number} {path}:{line}: {what}{'' if number in reached else ' (not reached)'}")
    (options.folder / "survivors.txt").write_text("".join(s + "\n" for s in survivors))
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} changes noticed; the others: "
          f"{options.folder / 'survivors.txt'}")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
