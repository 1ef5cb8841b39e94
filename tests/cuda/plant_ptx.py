"""Plants a fault in one kernel of a module: plant_ptx.py MODULE.ptx OUT KERNEL OLD NEW

Every match of the regular expression OLD in KERNEL is replaced by NEW. Fails if there is none.
"""

import pathlib
import re
import sys


def main():
    module, out, kernel, old, new = sys.argv[1:]
    text = pathlib.Path(module).read_text()
    begin = text.find(f".entry {kernel}(")
    if begin < 0:
        sys.exit(f"plant_ptx.py: {module} has no kernel {kernel}")
    end = text.find(".entry", begin + 1)
    end = len(text) if end < 0 else end
    changed, n = re.subn(old, new, text[begin:end])
    if n == 0:
        sys.exit(f"plant_ptx.py: {kernel} does not contain {old}")
    pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(out).write_text(text[:begin] + changed + text[end:])


if __name__ == "__main__":
    main()
