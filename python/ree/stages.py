"""Looking inside: what a model became on its way from what was captured to what runs."""
import sys
from typing import Any, List, NamedTuple

from ree.errors import NotFoundError


class Stage(NamedTuple):
    """A stage of compilation: a graph, or a program, as text with types and shapes. str(stage) is the text."""
    name: str
    text: str

    def __str__(self) -> str:
        return self.text


def last_traces(function: Any) -> List[Stage]:
    """What became of a model: a list of ree.Stage, from the graph that was captured to the program that runs and
    where its tensors lie. Programs are there once the model has run.

    function    what torch.compile(..., backend="ree") returned, or what ree.convert returned

    Raises NotFoundError if it has not been compiled: call it first."""
    if hasattr(function, "artifacts_dir"):
        found = [Stage(file.stem.split("-", 1)[1], file.read_text("utf-8")) for folder in ("passes", "programs")
                 for file in sorted((function.artifacts_dir / folder).iterdir())]
        return found
    compiler = sys.modules.get("ree.compiler")
    graphs = compiler.graphs_of(function) if compiler else []
    if not graphs:
        raise NotFoundError(f"{function!r} was not compiled with backend \"ree\", or has not been called yet")
    return [stage for graph in graphs for stage in graph.stages]
