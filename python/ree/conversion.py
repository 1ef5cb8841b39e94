"""Models as modules of PyTorch that run on ree: ree.convert."""
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from ree._ree import ffi, lib
from ree.annotations import Path
from ree.device import Device
from ree.errors import InvalidError, NotFoundError, UnsupportedError, c_path, check, text_of
from ree.kernels import Kernels
from ree.model import Model
from ree.onnx_files import external_files
from ree.session import Session


@dataclasses.dataclass(frozen=True)
class CompileOptions:
    """How ree.convert converts a model.

    artifacts_dir            folder for what is made on the way: the model, the graph after each pass, and
                             whenever inputs have new shapes, what runs, where its tensors lie, and the kernels
                             (SPIR-V, PTX). None: a temporary folder, which is removed with the module unless the environment
                             variable REE_DEBUG is set
    colocate_tensors         copy the model and its weights into the folder; otherwise it has links to them (hard
                             links if possible)
    requires_reproducibility the bits that RepOps define, equal on every device; False: the device's own
                             fastest operations, whose bits nobody promises
    device                   a ree.Device, or the spec of one
    numerics                 the version of the bits that is required, such as "RepOps/1"; None: any
    opset                    opset of the ONNX file into which a torch.nn.Module is exported; None: the
                             exporter's own"""
    artifacts_dir: Optional[Path] = None
    colocate_tensors: bool = False
    requires_reproducibility: bool = True
    device: Union[Device, str] = "cpu"
    numerics: Optional[str] = None
    opset: Optional[int] = None


def convert(model: Any, options: CompileOptions = CompileOptions(), *, args: Sequence[Any] = (),
            kwargs: Optional[Mapping[str, Any]] = None, dynamic_shapes: Any = None) -> Any:
    """Converts a model to a torch.nn.Module that runs on ree: ree.converted.ConvertedModule.

    model             a path, the bytes of an ONNX file, an onnx.ModelProto, or a torch.nn.Module, which is
                      exported to ONNX in eval mode
    args, kwargs      example inputs with which a torch.nn.Module is exported; later inputs must have the same
                      structure
    dynamic_shapes    which sizes of the example are not fixed, as for torch.export.export

    The module takes the inputs of an ONNX model in their order, or by name, and returns its output, or a
    tuple of them. A converted torch.nn.Module takes and returns what the original does. It computes no
    gradients.

    Raises UnsupportedError if the model has something that ree lacks, or cannot be exported."""
    torch = _torch()
    from ree import converted  # pylint: disable=import-outside-toplevel # imports PyTorch
    numerics = ffi.string(lib.ree_numerics_version()).decode()
    if options.numerics not in (None, numerics):
        raise UnsupportedError(f"numerics {options.numerics!r} is required; this version of ree has {numerics}")
    if kwargs and not isinstance(model, torch.nn.Module) or args and not isinstance(model, torch.nn.Module):
        raise InvalidError("args and kwargs are example inputs for exporting a torch.nn.Module")
    artifacts = Artifacts(options)
    structure = None
    if isinstance(model, torch.nn.Module):
        structure = converted.export(model, tuple(args), dict(kwargs or {}), dynamic_shapes, options.opset,
                                     artifacts.path / "model.onnx")
        source: Any = artifacts.path / "model.onnx"
    else:
        source = model.SerializeToString() if hasattr(model, "SerializeToString") else model
        source = source if isinstance(source, (bytes, bytearray, memoryview)) else pathlib.Path(source)
    loaded = Model(source, on_pass=artifacts.add_pass)
    if structure is None:  # after loading, which refuses weights that lie outside of the model's folder
        artifacts.add_model(source, options.colocate_tensors)
    if isinstance(source, os.PathLike):
        artifacts.add_plan(source)
    device = options.device
    if not isinstance(device, Device):
        device = Device(device, operation_set="reproducible" if options.requires_reproducibility else "default")
    elif options.requires_reproducibility and device.operation_set != "reproducible":
        raise InvalidError(f"the device was opened with operation_set={device.operation_set!r}, but "
                           "requires_reproducibility is set")
    session = Session(loaded, device, on_program=artifacts.add_program,
                      on_kernel=artifacts.kernels.add)
    artifacts.add_options(options, loaded, device)
    return converted.ConvertedModule(session, artifacts, structure)


def _torch():
    try:
        import torch  # pylint: disable=import-outside-toplevel # only convert needs it
    except ImportError as e:
        raise NotFoundError("ree.convert needs PyTorch, which is not installed") from e
    return torch


# Names in the folder that a file of weights cannot take.
_OWN_NAMES = ("model.onnx", "model", "passes", "programs", "kernels", "plan.json", "options.json")


class Artifacts:
    """The folder of a converted model: model.onnx, passes/, programs/, kernels/, plan.json, options.json."""

    def __init__(self, options):
        folder = options.artifacts_dir
        self.is_temporary = folder is None
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="ree-") if folder is None else folder).absolute()
        if self.is_temporary and not os.environ.get("REE_DEBUG"):
            self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._n_passes, self._n_programs = 0, 0
        self.kernels = Kernels(self.path / "kernels")  # on the CPU kernels are functions of the library: no files
        for name in ("passes", "programs", "kernels"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
            for file in (self.path / name).glob("[0-9][0-9]*-*"):
                file.unlink()  # of an earlier conversion

    def add_model(self, model, colocate):
        """Copies or links a model that was loaded: its bytes, or its path."""
        if isinstance(model, (bytes, bytearray, memoryview)):
            _replace(self.path / "model.onnx", lambda path: path.write_bytes(model))
        elif model.is_dir():
            for file in sorted(file for file in model.iterdir() if file.is_file()):
                self._add_file(file, self.path / "model" / file.name, colocate)
        else:
            self._add_file(model, self.path / "model.onnx", colocate)
            for name in external_files(model):
                if pathlib.PurePath(name).parts[0] not in _OWN_NAMES:
                    self._add_file(model.parent / name, self.path / name, colocate)

    def _add_file(self, source, target, colocate):
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.absolute() != target:
            _replace(target, lambda path: shutil.copyfile(source, path) if colocate else _link(source, path))

    def add_pass(self, name, text):
        """Writes the graph after a pass of the compiler."""
        (self.path / "passes" / f"{self._n_passes:02}-{name}.txt").write_text(text, "utf-8")
        self._n_passes += 1

    def add_program(self, what, text):
        """Writes what will run for inputs of new shapes."""
        self._n_programs += what == "lowered"
        (self.path / "programs" / f"{self._n_programs:03}-{what.replace(' ', '-').replace(',', '')}.txt").write_text(
            text, "utf-8")

    def add_plan(self, source):
        """Writes the plan of the model's stages: where `ree-run plan` divides it."""
        options = ffi.new("struct ree_plan_options *", {"size": ffi.sizeof("struct ree_plan_options"),
                                                        "n_partitions": 1})
        out, err, json_text = ffi.new("struct ree_plan **"), ffi.new("struct ree_error *"), ffi.new("char **")
        try:
            check(lib.ree_plan_create(c_path(source), options, out, err), err)
            check(lib.ree_plan_json(out[0], json_text, err), err)
            _replace(self.path / "plan.json", lambda path: path.write_text(text_of(json_text[0]) + "\n", "utf-8"))
        finally:
            lib.ree_free(json_text[0])
            lib.ree_plan_destroy(out[0])

    def add_options(self, options, model, device):
        """Writes the options, and what was converted, with which version, for which device."""
        described = {"ree": ffi.string(lib.ree_version()).decode(),
                     "numerics": ffi.string(lib.ree_numerics_version()).decode(), "graph_sha256": model.graph_sha256,
                     "device": device.name, "operation_set": device.operation_set,
                     "requires_reproducibility": options.requires_reproducibility,
                     "colocate_tensors": options.colocate_tensors,
                     "python": sys.version.split()[0], "torch": sys.modules["torch"].__version__}
        _replace(self.path / "options.json", lambda path: path.write_text(json.dumps(described, indent=4) + "\n"))


def _link(source, path):
    """A hard link, with which the folder can be loaded like the original; on another file system, a symbolic
    one, which the loader follows for the model but not for its weights."""
    try:
        os.link(source.resolve(), path)
    except OSError:
        path.symlink_to(source.resolve())


def _replace(path, write):
    """Writes a file under another name, then gives it its name, so that no link is followed and nobody sees
    a part of it."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    write(temporary)
    os.replace(temporary, path)
    temporary.unlink(missing_ok=True)  # it stays if both are links to one file
