"""Training steps as ONNX files, which run without Python."""
import os
import pathlib
from typing import Any, Callable, Optional

from ree.annotations import Path
from ree.errors import InvalidError, UnsupportedError


def export_training(model: Any, loss: Optional[Callable[..., Any]], optimizer: Any, example: Any, path: Path, *,
                    max_norm: Optional[float] = None) -> None:
    """Writes a whole training step as an ONNX file: forward, backward, and the update of the optimizer.

        def loss(model, image, kind):
            return torch.nn.functional.cross_entropy(model(image), kind)

        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
        ree.export_training(model, loss, optimizer, (image, kind), "step.onnx")

    model        a torch.nn.Module; its mode decides about dropout and batch norms
    loss         a function of the model and a batch, which returns a scalar; None: the model itself returns it
    optimizer    a torch.optim.Optimizer over parameters of the model
    example      a batch: a tuple of tensors, or a dict by the names of the function's parameters. All batches have its
                 shapes and types
    path         of the file
    max_norm     clips the norm of all gradients (torch.nn.utils.clip_grad_norm_); None: no

    The inputs of the file are the batch, under the names of the function's parameters, and the states: what changes
    from step to step. States are the trained parameters under their names, buffers such as a batch norm's means, and
    what the optimizer keeps, such as "NAME.exp_avg". Each has its present value as default, and an output "NAME.next".
    The first output is "loss". The metadata entry "ree.training" names all of them (docs/TRAINING.md). If the model
    draws random numbers, the inputs "random.seed" and "random.step" are added.

    model and optimizer are not changed. Needs PyTorch 2.5 or later. Raises UnsupportedError if an operator has no
    rule, or if the optimizer does something else than PyTorch's operators."""
    try:
        import torch  # pylint: disable=import-outside-toplevel # only this needs it
    except ImportError as e:
        raise UnsupportedError("export_training needs PyTorch: pip install torch") from e
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 5):
        raise UnsupportedError(f"export_training needs PyTorch 2.5 or later; this is {torch.__version__}")
    if not isinstance(model, torch.nn.Module):
        raise InvalidError(f"a torch.nn.Module is expected, not {type(model).__name__}")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidError(f"a torch.optim.Optimizer is expected, not {type(optimizer).__name__}")
    from ree import training_step  # pylint: disable=import-outside-toplevel # imports PyTorch
    content = training_step.captured(model, loss, optimizer, example, max_norm)
    if len(content) >= 2 ** 31:
        raise UnsupportedError(f"the step has {len(content)} bytes; an ONNX file holds less than 2 GB")
    path = pathlib.Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with partial.open("xb") as file:  # a new file; not what a link points to
        try:
            file.write(content)
            file.close()
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
