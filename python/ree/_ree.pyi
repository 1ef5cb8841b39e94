# The extension module: everything of the public headers, whose types C's compiler checks.
from typing import Any

ffi: Any
lib: Any
