#!/usr/bin/env python3
"""Checks which files include which.

Two rules:

1. Arrows: a file may include only files of the folders that tools/borders.txt allows for its own
   folder. A folder that is not listed follows the rules of the folder it is in.
2. No circles: two files must not include each other, directly or through others. A header and the
   source of the same name are one unit (a.h and a.c), and so is their internal header
   (a_internal.h).

    tools/borders.py              prints every violation and every circle
    tools/borders.py --graph      prints the arrows that exist, one per line: folder, folder, number
    tools/borders.py FOLDER       checks another tree

Exit status: 0 nothing was found, 1 something was, 2 the rules or the arguments are wrong.
"""
import argparse
import collections
import os
import re
import sys

TOPS = ("src", "graph", "cuda", "tools")
SUFFIXES = (".c", ".h", ".inc", ".def", ".cu")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)


def fail(message):
    print(f"borders.py: {message}", file=sys.stderr)
    sys.exit(2)


def read_rules(path):
    """Returns {folder: set of folders}; each line is "folder: folder folder"."""
    rules = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            name, colon, allowed = line.partition(":")
            if not colon or name in rules:
                fail(f"{path}:{number}: expected 'folder: folder ...', once for each folder")
            rules[name] = set(allowed.split())
    for name in rules:
        for other in rules[name]:
            if other not in rules:
                fail(f"{path}: '{name}' may include '{other}', which has no line of its own")
    return rules


def read_sources(root):
    """Returns {file: text} of all sources, by paths relative to root."""
    sources = {}
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(SUFFIXES):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        sources[os.path.relpath(path, root)] = file.read()
    return sources


def read_includes(sources):
    """Returns [(file, included file)], and the includes that name no file of the tree."""
    edges, unknown = [], set()
    for file, text in sorted(sources.items()):
        for name in INCLUDE.findall(text):
            here = os.path.normpath(os.path.join(os.path.dirname(file), name))
            for path in (here, "src/" + name, name):
                if path in sources:
                    edges.append((file, path))
                    break
            else:
                unknown.add(name)
    return edges, unknown


def place_of(path, rules):
    """The entry of the rules that a file belongs to: itself, or the nearest folder above it."""
    while path and path not in rules:
        path = os.path.dirname(path)
    return path


def find_violations(edges, rules):
    found = []
    for file, other in edges:
        here, there = place_of(file, rules), place_of(other, rules)
        if not here:
            fail(f"no rule for '{file}'")
        if here != there and there not in rules[here]:
            found.append(f"{file} includes {other}: {here} must not include {there or 'this'}")
    return found


def unit_of(path):
    stem, suffix = os.path.splitext(path)
    if suffix not in (".c", ".h", ".cu"):
        return path  # a table or a body that others include
    return stem[: -len("_internal")] if stem.endswith("_internal") else stem


def find_circles(edges):
    """Returns the strongly connected components of more than one unit (Tarjan, iterative)."""
    graph = collections.defaultdict(set)
    for file, other in edges:
        a, b = unit_of(file), unit_of(other)
        graph[b]
        if a != b:
            graph[a].add(b)
    index, low, on_stack, stack, circles = {}, {}, set(), [], []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            unit, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[unit] = min(low[unit], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == index[unit]:
                    circle = []
                    while not circle or circle[-1] != unit:
                        circle.append(stack.pop())
                        on_stack.discard(circle[-1])
                    if len(circle) > 1:
                        circles.append(sorted(circle))
    return circles


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?",
                        default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--graph", action="store_true")
    options = parser.parse_args()
    rules = read_rules(os.path.join(options.folder, "tools", "borders.txt"))
    edges, _ = read_includes(read_sources(options.folder))
    if not edges:
        fail(f"no sources in {options.folder}")
    if options.graph:
        count = collections.Counter(
            (place_of(a, rules), place_of(b, rules)) for a, b in edges)
        for (a, b), n in sorted(count.items()):
            if a != b:
                print(a, b, n)
        return 0
    violations, circles = find_violations(edges, rules), find_circles(edges)
    for line in violations:
        print(line)
    for circle in circles:
        print("circle: " + ", ".join(circle))
    print(f"{len(edges)} includes: {len(violations)} against the arrows, {len(circles)} circles")
    return 1 if violations or circles else 0


if __name__ == "__main__":
    sys.exit(main())
