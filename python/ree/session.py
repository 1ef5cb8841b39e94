"""Sessions: a session runs one model on one device."""
from ree._ree import ffi, lib
from ree.device import Device, DeviceUser
from ree.errors import InvalidError, check
from ree.model import Model
from ree.progress import Progress
from ree.tensors import Inputs, has_torch, output

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

    Threads may share a session; its runs take place one after the other. Python's lock is released
    while the device works. Ctrl-C ends a run with KeyboardInterrupt; the session stays usable."""

    def __init__(self, model, device="cpu", *, fuse=True, progress=None):
        self._owns_device = not isinstance(device, Device)
        self.model = model if isinstance(model, Model) else Model(model, progress=progress)
        self._progress = Progress(progress)
        self.device = Device(device) if self._owns_device else device
        options = ffi.new("struct ree_session_options *",
                          {"size": ffi.sizeof("struct ree_session_options"), "no_fuse": not fuse})
        self._progress.fill(options.progress)
        self._err = ffi.new("struct ree_error *")
        loaded = self.model

        def destroy(handle):
            lib.ree_session_destroy(handle)
            loaded.remove_user()

        def create(device_handle, out):
            loaded.add_user()
            check(lib.ree_session_create(loaded.handle, device_handle, options, out, self._err), self._err)
        self._create("session", destroy, create)
        # Made once, because a run of a small model takes only some microseconds; used under the lock.
        self._ports = {port.name: (port, ffi.new("char[]", port.name.encode())) for port in self.inputs}
        self._names = [port.name for port in self.outputs]
        self._results = ffi.new("struct ree_tensor[]", max(1, len(self._names)))

    @property
    def inputs(self):
        """The model's inputs: a list of ree.Port."""
        return self.model.inputs

    @property
    def outputs(self):
        """The model's outputs: a list of ree.Port."""
        return self.model.outputs

    def run(self, inputs, outputs=None):
        """Runs the model once; returns a dict of its outputs by name.

        inputs     a mapping from names to values: arrays of NumPy, PyTorch or another library with
                   DLPack or the buffer protocol, lists and numbers; a list of them for a sequence;
                   None for an absent value. They are read where they lie if they are dense and
                   row-major; otherwise copied
        outputs    the names wanted; None: all

        Outputs are PyTorch's tensors if an input is one, otherwise NumPy's arrays, or memoryviews if
        NumPy is not installed. Raises InvalidError if an input is missing or unknown, or has a wrong
        type or shape."""
        if outputs is not None:
            outputs = list(outputs)
            unknown = [name for name in outputs if name not in self._names]
            if unknown:
                raise InvalidError(f"the model has no output '{unknown[0]}'; its outputs are {', '.join(self._names)}")
        structs = self._inputs(inputs)
        as_torch = any(map(has_torch, inputs.values()))
        results = self._results
        self.device.begin()
        try:
            self._check(lib.ree_session_run(self._open(), structs.structs, len(inputs), results, self._err))
            return {name: output(results[i], as_torch) for i, name in enumerate(self._names)
                    if outputs is None or name in outputs}
        finally:
            for i in range(len(self._names)):
                lib.ree_tensor_finish(results + i)
            self.device.end()

    def bind(self, inputs):
        """Prepares for inputs of these shapes, so that the next run with them begins at once."""
        structs = self._inputs(inputs)
        self.device.begin()
        try:
            self._check(lib.ree_session_bind(self._open(), structs.structs, len(inputs), self._err))
        finally:
            self.device.end()

    def stats(self):
        """Figures of the last run, as a dict: the fields of struct ree_session_stats."""
        stats = ffi.new("struct ree_session_stats *", {"size": ffi.sizeof("struct ree_session_stats")})
        err = ffi.new("struct ree_error *")
        self.device.begin()
        try:
            check(lib.ree_session_stats(self._open(), stats, err), err)
        finally:
            self.device.end()
        return {name: getattr(stats, name) for name in _STATS}

    def _inputs(self, inputs):
        structs = Inputs(len(inputs))
        for i, (name, value) in enumerate(inputs.items()):
            if name not in self._ports:
                raise InvalidError(f"the model has no input '{name}'; its inputs are {', '.join(self._ports)}")
            port, c_name = self._ports[name]
            structs.set(i, c_name, value, port)
        return structs

    def _check(self, status):
        """Raises what the call with this status, or the progress function, reported."""
        self._progress.raise_pending()
        check(status, self._err)

    def __repr__(self):
        return f"<ree.Session on {self.device!r}>"
