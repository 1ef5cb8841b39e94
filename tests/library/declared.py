"""Finds the names of the functions and variables that the public headers declare."""
import glob
import os
import re


def public_headers(folder):
    """Returns the texts of ree.h and ree/*.h below a folder, as one text."""
    paths = [os.path.join(folder, "ree.h"), *sorted(glob.glob(os.path.join(folder, "ree/*.h")))]
    texts = []
    for path in paths:
        with open(path) as file:
            texts.append(file.read())
    return "\n".join(texts)


# Headers that ree.h does not include.
APART = ("bench", "ranks", "testing")


def declared(header):
    """Returns the sorted (functions, variables) of a header's text."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"^\s*#[^\n]*", "", text, flags=re.M)
    text = text.replace('extern "C" {', "").replace("REE_API", "")
    text = re.sub(r"REE_DEPRECATED\([^)]*\)", "", text)
    while True:  # remove struct and enum bodies, innermost first: they may contain (*f)
        shorter = re.sub(r"\{[^{}]*\}", "", text)
        if shorter == text:
            break
        text = shorter
    functions, variables = set(), set()
    for statement in text.split(";"):
        function = re.search(r"\b(ree_\w+)\s*\(", statement)
        if function:
            functions.add(function.group(1))
        elif re.search(r"\bextern\b", statement):
            variables.add(re.search(r"(ree_\w+)\s*$", statement).group(1))
    return sorted(functions), sorted(variables)


def program(functions, variables):
    """Returns a C program that uses the address of each name, and fails to link if one is
    missing."""
    entries = [f"    (const void *)(uintptr_t){name}," for name in functions]
    entries += [f"    &{name}," for name in variables]
    return "\n".join([
        "#include <ree.h>", *[f"#include <ree/{name}.h>" for name in APART], "static const void *addresses(int i) {", "    const void *all[] = {",
        *entries, "    };", "    return all[i];", "}", "int main(int argc, char **argv) {",
        "    (void)argv;", f"    for (int i = 0; i < {len(entries)}; i++)",
        "        if (!addresses(i * argc)) return 1;", "    return 0;", "}", ""])
