"""What ree.h declares: the names of its functions and variables."""
import re


def declared(header):
    """(functions, variables) of a header's text, sorted."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"^\s*#[^\n]*", "", text, flags=re.M)
    text = text.replace('extern "C" {', "")
    while True:  # bodies of structs and enums, the innermost first: function pointers are in there
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
    """A C program that needs the address of each, and fails where one is missing."""
    entries = [f"    (const void *)(uintptr_t){name}," for name in functions]
    entries += [f"    &{name}," for name in variables]
    return "\n".join([
        "#include <ree.h>", "static const void *addresses(int i) {", "    const void *all[] = {",
        *entries, "    };", "    return all[i];", "}", "int main(int argc, char **argv) {",
        "    (void)argv;", f"    for (int i = 0; i < {len(entries)}; i++)",
        "        if (!addresses(i * argc)) return 1;", "    return 0;", "}", ""])
