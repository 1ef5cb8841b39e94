"""Sessions: a session runs one model on one device."""
from collections.abc import Iterable, Mapping
from typing import Any, Dict, List, Optional, Union

from ree._ree import ffi, lib
from ree.annotations import KernelFunction, Path, ProgressFunction, StageFunction, Value, Values
from ree.device import Device
from ree.device_tensor import DeviceTensor
from ree.errors import InvalidError, check
from ree.model import Model, Port
from ree.progress import Listener, Progress
from ree.receipt import Receipt, of_tensors
from ree.recording import Recording
from ree.tensors import Inputs, RepeatedInputs, output
from ree.users import DeviceUser

_STATS = ("weight_bytes", "arena_bytes", "n_dispatches", "n_segments", "n_binds", "n_bind_hits", "bind_seconds",
          "run_seconds", "peak_bytes")


class Session(DeviceUser):
    """A model on a device.

        session = ree.Session("model.onnx", device="vulkan")
        y = session.run({"x": x})["y"]

    model      as for ree.Model, or a ree.Model
    device     a ree.Device, or the spec of one that this session opens and closes
    fuse       False: each arithmetic step is a dispatch of its own; the bits are the same
    progress   progress(what, done, total) is called now and then; False cancels the run
    on_program on_program(what, text) receives what will run, whenever inputs have new shapes: "lowered", the
               dispatches in order, and "memory plan", where their intermediate tensors lie
    on_kernel  on_kernel(name, format, code) then receives each kernel of these dispatches, as struct ree_kernel of
               ree/device.h describes it; code is bytes

    Threads may share a session; its runs take place one after the other. Python's lock is released
    while the device works. Ctrl-C ends a run with KeyboardInterrupt; the session stays usable."""

    def __init__(self, model: Any, device: Union[Device, str] = "cpu", *, fuse: bool = True,
                 progress: Optional[ProgressFunction] = None, on_program: Optional[StageFunction] = None,
                 on_kernel: Optional[KernelFunction] = None):
        self.model = model if isinstance(model, Model) else Model(model, progress=progress)
        self.progress = Progress(progress)
        self._use(device)
        options = ffi.new("struct ree_session_options *",
                          {"size": ffi.sizeof("struct ree_session_options"), "no_fuse": not fuse})
        self.progress.fill(options.progress)
        self._listener = Listener(on_program, self.progress, on_kernel)
        options.user = self._listener.handle
        if on_program is not None:
            options.on_program = self._listener.c_function
        if on_kernel is not None:
            options.on_kernel = self._listener.c_on_kernel
        self._err = ffi.new("struct ree_error *")

        def create(handle, out):
            check(lib.ree_session_create(self.model.handle, handle, options, out, self._err), self._err)
        with self.model.shared.lock:
            self._create("session", lib.ree_session_destroy, create, self.model.shared)
        # Made once, because a run of a small model takes only some microseconds; used under the lock.
        self._ports = {port.name: (port, ffi.new("char[]", port.name.encode())) for port in self.model.inputs}
        self._names = [port.name for port in self.model.outputs]
        self._repeated = RepeatedInputs()
        self._results = ffi.new("struct ree_tensor[]", max(1, len(self._names)))

    @property
    def inputs(self) -> List[Port]:
        """The model's inputs: a list of ree.Port."""
        return list(self.model.inputs)

    @property
    def outputs(self) -> List[Port]:
        """The model's outputs: a list of ree.Port."""
        return list(self.model.outputs)

    def run(self, inputs: Values, outputs: Optional[Iterable[str]] = None, *,
            into: Optional[Mapping[str, DeviceTensor]] = None) -> Dict[str, Value]:
        """Runs the model once; returns a dict of its outputs by name.

        inputs     a mapping from names to values: arrays of NumPy, PyTorch or another library with
                   DLPack or the buffer protocol, lists and numbers; a list of them for a sequence;
                   None for an absent value; a ree.DeviceTensor. They are read where they lie if they are
                   dense and row-major; otherwise copied
        outputs    the names wanted; None: all
        into       a ree.DeviceTensor for each output that stays on the device, by name; these outputs are not
                   in the dict. Each has the output's type and shape, and no other use in this run. After a
                   failure their contents are undefined

        Outputs are PyTorch's tensors if an input is one, otherwise NumPy's arrays, or memoryviews if
        NumPy is not installed. Raises InvalidError if an input is missing or unknown, or has a wrong
        type or shape."""
        if outputs is not None:
            if isinstance(outputs, str):
                raise TypeError("outputs: a list of names is expected, not one name")
            outputs = list(outputs)
            unknown = [name for name in outputs if name not in self._names]
            if unknown:
                raise InvalidError(f"the model has no output '{unknown[0]}'; its outputs are {', '.join(self._names)}")
        repeated: Any = None if into else self._repeated.matching(inputs)
        results = self._results
        if repeated is None:
            on_device = {name: value for name, value in inputs.items() if isinstance(value, DeviceTensor)}
            if on_device or into:
                return self._run_on_device(inputs, outputs, on_device, dict(into or {}))
        filled = None if repeated else self.inputs_of(inputs)
        as_torch = filled is not None and filled.has_torch
        device_lock = self.device.lock  # first, for its message
        with self.model.shared.lock, device_lock:  # in this order everywhere
            self.device.handle()
            try:
                if filled is None:
                    structs, data = repeated
                    n = len(data)
                    for i, pointer in enumerate(data):
                        structs[i].data = pointer
                else:
                    structs, n = filled.structs, filled.n
                self._check(lib.ree_session_run(self.open(), structs, n, results, self._err))
                if filled is not None:
                    self._repeated.remember(filled)
                return {name: output(results[i], as_torch) for i, name in enumerate(self._names)
                        if outputs is None or name in outputs}
            finally:
                for i in range(len(self._names)):
                    lib.ree_tensor_finish(results + i)
                self.device.release_later()

    def _run_on_device(self, inputs, outputs, on_device, into):
        for name, tensor in into.items():
            if not isinstance(tensor, DeviceTensor):
                raise TypeError(f"into: a ree.DeviceTensor is expected for '{name}', not {type(tensor).__name__}")
        as_torch = any(tensor.as_torch for tensor in on_device.values())
        filled = self.inputs_of({name: value for name, value in inputs.items() if name not in on_device})
        lists = []
        with self.model.shared.lock, self.device.lock:
            self.device.handle()
            for named in (on_device, into):
                structs = ffi.new("struct ree_named_device_tensor[]", len(named))
                names = [ffi.new("char[]", name.encode()) for name in named]
                for struct, name, tensor in zip(structs, names, named.values()):
                    struct.name, struct.tensor = name, tensor.open()
                lists.append((structs, names))
            results = ffi.new("struct ree_tensor[]", max(1, len(self._names)))
            try:
                self._check(lib.ree_session_run_on_device(
                    self.open(), filled.structs, filled.n, lists[0][0], len(on_device), lists[1][0], len(into),
                    results, self._err))
                return {name: output(results[i], as_torch or filled.has_torch) for i, name in enumerate(self._names)
                        if name not in into and (outputs is None or name in outputs)}
            finally:
                for i in range(len(self._names)):
                    lib.ree_tensor_finish(results + i)
                self.device.release_later()

    def bind(self, inputs: Values) -> None:
        """Prepares for inputs of these shapes, so that the next run with them begins at once."""
        filled = self.inputs_of(inputs)
        with self.model.shared.lock, self.device.lock:
            self.device.handle()
            self._check(lib.ree_session_bind(self.open(), filled.structs, filled.n, self._err))

    def record(self, trace: Optional[Path] = None, **options: Any) -> Recording:
        """Begins to record the next runs: returns a ree.Recording, whose arguments these are. Call it
        before the first run.

            with session.record("run.trace") as recording:
                outputs = session.run(inputs)
            print(recording.root)"""
        return Recording(self, trace, **options)

    def receipt(self, inputs: Values, outputs: Values, *, trace: Optional[Recording] = None,
                progress: Optional[ProgressFunction] = None) -> Receipt:
        """Makes the ree.Receipt of one run: that these inputs gave these outputs. Reads all weights, to
        hash them.

        inputs, outputs    what was passed to `run`, and all that it returned
        trace              the ree.Recording of the run; None: it was not recorded"""
        structs = self.inputs_of(inputs)
        missing = [name for name in self._names if name not in outputs]
        if missing:
            raise InvalidError(f"the output '{missing[0]}' is missing: a receipt states all outputs of a run")
        results = Inputs(len(self._names), "output", exact=True)
        for i, port in enumerate(self.outputs):
            results.set(i, ffi.new("char[]", port.name.encode()), outputs[port.name], port)
        with self.model.shared.lock, self.device.lock:
            handle = self.device.handle()
            self.open()
            return of_tensors(self.model.handle, handle, structs, results, trace, progress)

    def stats(self) -> Dict[str, Any]:
        """Figures of the last run, as a dict: the fields of struct ree_session_stats."""
        stats = ffi.new("struct ree_session_stats *", {"size": ffi.sizeof("struct ree_session_stats")})
        err = ffi.new("struct ree_error *")
        with self.device.lock:
            self.device.handle()
            check(lib.ree_session_stats(self.open(), stats, err), err)
        return {name: getattr(stats, name) for name in _STATS}

    def inputs_of(self, inputs):
        """The values for a run, as Inputs."""
        items = list(inputs.items())  # once: another thread may change the mapping
        structs = Inputs(len(items))
        for i, (name, value) in enumerate(items):
            if name not in self._ports:
                raise InvalidError(f"the model has no input '{name}'; its inputs are {', '.join(self._ports)}")
            port, c_name = self._ports[name]
            structs.set(i, c_name, value, port)
        return structs

    def _check(self, status):
        """Raises what the call with this status, or the progress function, reported."""
        self.progress.raise_pending()
        check(status, self._err)

    def __repr__(self):
        return f"<ree.Session on {self.device!r}>"
