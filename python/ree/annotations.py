"""Types of arguments and results, for annotations."""
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

Path = Union[str, "os.PathLike[str]"]
# progress(what, done, total); False cancels.
ProgressFunction = Callable[[str, int, int], Optional[bool]]
# function(name, text): a stage of the compiler, and the graph or program as text.
StageFunction = Callable[[str, str], object]
# function(name, format, code): a kernel that a dispatch launches.
KernelFunction = Callable[[str, str, bytes], object]
# A text, token ids, or a conversation: dicts with "role" and "content".
Prompt = Union[str, Sequence[int], Sequence[Mapping[str, str]]]
# A value for an input: an array of NumPy, PyTorch or another library with DLPack or the buffer protocol, a
# list or a number; a list of them for a sequence; None for an absent value. A value of an output: an array
# of NumPy, a tensor of PyTorch, a memoryview; a list of them; None.
Value = Any
Values = Mapping[str, Value]
# A struct or a pointer of C.
CData = Any
