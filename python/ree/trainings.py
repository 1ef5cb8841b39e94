"""Trainings: a training step that ree.export_training wrote, repeated with samples, and receipts of trainings."""
from collections.abc import Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Union

from ree._ree import ffi, lib
from ree.annotations import Path, ProgressFunction, Value, Values
from ree.device import Device
from ree.errors import c_path, c_text, check, text_of
from ree.locks import refuse_threads
from ree.model import Model
from ree.progress import Progress
from ree.receipt import OUTCOMES, VERIFIED, Check, Finding, ReceiptOwner, public_key_of
from ree.tensors import AnyPort, Inputs, output
from ree.users import DeviceUser

Samples = Union[Path, Values]


class _Dataset:
    """A struct ree_dataset. data: the path of a .npz or .safetensors file, or arrays by name."""

    def __init__(self, data: Samples):
        out, err = ffi.new("struct ree_dataset **"), ffi.new("struct ree_error *")
        if isinstance(data, Mapping):
            filled = Inputs(len(data), "samples")
            for i, (name, value) in enumerate(data.items()):
                filled.set(i, ffi.new("char[]", name.encode()), value, AnyPort())
            status = lib.ree_dataset_create(filled.structs, filled.n, out, err)
        else:
            status = lib.ree_dataset_load(c_path(data), out, err)
        check(status, err)
        self.handle = ffi.gc(out[0], lib.ree_dataset_destroy)


class Training(DeviceUser):
    """A training of a step on a device.

        with ree.Training("step.onnx", {"image": images, "kind": kinds}, device="vulkan", seed=1) as training:
            losses = [training.step() for _ in range(100)]
            training.save("trained.safetensors")

    step        the training step: as for ree.Model, or a ree.Model
    data        the samples: the path of a .npz or .safetensors file, or a mapping from names to arrays, which are
                copied. The first dimension of each counts samples
    device      a ree.Device, or the spec of one that this training opens and closes
    seed        of the order of samples and of random operators
    in_order    take the samples in their order, in every epoch
    fuse        False: each arithmetic step is a dispatch of its own; the bits are the same
    resume      path of a checkpoint from which the training continues
    progress    progress(what, done, total) is called now and then; False cancels

    The bits depend on the step, the samples, the seed and the number of steps, and not on the device. `ree-run train`
    gives the same ones, and reads and writes the same checkpoints and receipts."""

    def __init__(self, step: Any, data: Samples, device: Union[Device, str] = "cpu", *, seed: int = 0,
                 in_order: bool = False, fuse: bool = True, resume: Optional[Path] = None,
                 progress: Optional[ProgressFunction] = None):
        if not 0 <= seed < 2 ** 64:
            raise ValueError(f"the seed is {seed}; 0 to 2^64 - 1 is expected")
        self.model = step if isinstance(step, Model) else Model(step, progress=progress)
        self._data = _Dataset(data)  # must live longer than the training
        self._progress = Progress(progress)
        self._use(device)
        options = ffi.new("struct ree_training_options *", {"size": ffi.sizeof("struct ree_training_options"),
                                                            "seed": seed, "in_order": in_order, "no_fuse": not fuse})
        self._progress.fill(options.progress)
        self._err = ffi.new("struct ree_error *")
        refuse_threads("training")

        def create(handle, out):
            self._check(lib.ree_training_create(self.model.handle, handle, self._data.handle, options, out, self._err))
            if resume is not None:
                self._check(lib.ree_training_load(out[0], c_path(resume), self._err))
        with self.model.shared.lock:
            self._create("training", lib.ree_training_destroy, create, self.model.shared)

    def _check(self, status):
        self._progress.raise_pending()
        check(status, self._err)

    def _call(self, function, *arguments):
        """Calls a function of C with the training, while nobody else uses it; returns what it returns."""
        device_lock = self.device.lock  # first, for its message
        with self.model.shared.lock, device_lock:
            self.device.handle()
            return function(self.open(), *arguments)

    def step(self) -> float:
        """Makes one step and returns its loss. After an exception the states are those before the step."""
        loss = ffi.new("double *")
        self._check(self._call(lib.ree_training_step, loss, self._err))
        return loss[0]

    @property
    def n_steps(self) -> int:
        """Number of steps made so far, those before a checkpoint included."""
        return self._call(lib.ree_training_info).n_steps

    @property
    def batch_size(self) -> int:
        """Samples per step."""
        return self._call(lib.ree_training_info).batch_size

    @property
    def steps_per_epoch(self) -> int:
        """Steps after which all samples were used once, but those that fill no batch."""
        return self._call(lib.ree_training_info).steps_per_epoch

    @property
    def states(self) -> Dict[str, Value]:
        """The parameters and what the optimizer keeps, by name: copies, as Session.run returns outputs."""
        def copies(handle):
            found, n = ffi.new("struct ree_tensor **"), ffi.new("size_t *")
            self._check(lib.ree_training_states(handle, found, n, self._err))
            return {text_of(found[0][i].name): _copy(found[0][i]) for i in range(n[0])}
        return self._call(copies)

    @property
    def sha256(self) -> str:
        """Hash of all states (NUMERICS.md, "Trainings")."""
        text = ffi.new("char[65]")
        self._check(self._call(lib.ree_training_sha256, text, self._err))
        return ffi.string(text).decode()

    def save(self, path: Path) -> None:
        """Writes a checkpoint: a safetensors file, which appears whole or not at all."""
        self._check(self._call(lib.ree_training_save, c_path(path), self._err))

    def load(self, path: Path) -> None:
        """Continues from a checkpoint. Raises InvalidError, and changes nothing, if it belongs to another training."""
        self._check(self._call(lib.ree_training_load, c_path(path), self._err))

    def record(self, interval: int = 100) -> None:
        """Begins to record a receipt: it covers the steps from now on.

        interval    steps between two points at which a verifier can start, from a checkpoint"""
        self._check(self._call(lib.ree_training_record, interval, self._err))

    def receipt(self) -> "TrainingReceipt":
        """The receipt of the steps since `record`. The training may go on."""
        out = ffi.new("struct ree_training_receipt **")
        self._check(self._call(lib.ree_training_receipt_create, ffi.NULL, out, self._err))
        return TrainingReceipt._made(out)  # pylint: disable=protected-access


def _copy(struct):
    """The value of a borrowed struct ree_tensor."""
    own = ffi.new("struct ree_tensor *", struct)
    data = ffi.NULL
    if struct.nbytes:
        data = lib.ree_alloc(struct.nbytes)
        if not data:
            raise MemoryError
        ffi.memmove(data, struct.data, struct.nbytes)
    own.data = data
    try:
        return output(own, False)
    finally:
        lib.ree_free(own.data)  # NULL if the value has taken it


class TrainingPoint(NamedTuple):
    """A state of a training, as a receipt has it: after `step` steps, with a hash of all states, and a hash over all
    losses and states up to here."""
    step: int
    states_sha256: str
    chain_sha256: str


class TrainingVerification(NamedTuple):
    """The result of TrainingReceipt.verify.

    verdict    "verified"; "verified in part": nothing differs, but some steps were not repeated, or the receipt's
               trace was not computed; "differs"
    checks     list of ree.Check
    first      number of the first step that was repeated
    n_steps    how many were repeated
    seconds    time that they took"""
    verdict: str
    checks: List[Check]
    first: int
    n_steps: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the verdict is "verified"."""
        return self.verdict == VERIFIED


class TrainingReceipt(ReceiptOwner):
    """A receipt of a training. source: the path of its file, or its bytes.

        receipt = ree.TrainingReceipt("training.json")
        print(receipt.verify("step.onnx", "samples.npz", device="vulkan").verdict)

    Raises InvalidError if it is not one, or if its hash is not that of its contents."""

    _destroy = lib.ree_training_receipt_destroy

    def __init__(self, source: Union[Path, bytes, bytearray, memoryview]):
        out, err = ffi.new("struct ree_training_receipt **"), ffi.new("struct ree_error *")
        if isinstance(source, (bytes, bytearray, memoryview)):
            content = bytes(source)
            status = lib.ree_training_receipt_parse(content, len(content), b"receipt", out, err)
        else:
            status = lib.ree_training_receipt_load(c_path(source), out, err)
        self._take(out)
        check(status, err)

    @property
    def fields(self) -> Dict[str, Any]:
        """What the receipt states, as a dict: hashes of step, samples and roles, seed, order, interval; and what it
        claims without a proof: device, ree_version, created. None: it does not state it."""
        with self._use.lock:
            info = lib.ree_training_receipt_info(self._handle)
            found: Dict[str, Any] = {}
            for name in ("receipt_hash", "numerics", "operation_set", "graph_sha256", "weights_sha256", "roles_sha256",
                         "data_sha256", "trace_root", "public_key", "device", "ree_version", "created"):
                text = getattr(info, name)
                found[name] = text_of(text) or None if text else None
            for name in ("n_samples", "batch_size", "seed", "in_order", "interval"):
                found[name] = getattr(info, name)
            return found

    @property
    def points(self) -> List[TrainingPoint]:
        """The states that it has hashes of: list of ree.TrainingPoint."""
        with self._use.lock:
            info = lib.ree_training_receipt_info(self._handle)
            return [TrainingPoint(point.step, text_of(point.states_sha256), text_of(point.chain_sha256))
                    for point in (info.points[i] for i in range(info.n_points))]

    @property
    def sha256(self) -> str:
        """The receipt's hash, which covers everything that it promises."""
        return self.fields["receipt_hash"]

    def sign(self, key_path: Path) -> None:
        """Signs the receipt with a private key, a file of ree.create_key. Replaces an older signature."""
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_training_receipt_sign(self._handle, c_path(key_path), err), err)

    def save(self, path: Path) -> None:
        """Writes the receipt, whole or not at all."""
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_training_receipt_write(self._handle, c_path(path), err), err)

    @staticmethod
    def validate(path: Path, *, public_key: Optional[Path] = None) -> List[Finding]:
        """Checks the receipt in a file by its own contents: hash and signature. Returns a list of ree.Finding. Repeats
        no step, so it does not show that the training gave these states.

        public_key    the key with which it must be signed: 64 hexadecimal digits, or a file"""
        key = ffi.NULL if public_key is None else c_text(public_key_of(public_key))
        options = ffi.new("struct ree_validate_options *", {"size": ffi.sizeof("struct ree_validate_options"),
                                                            "public_key": key})
        out, err = ffi.new("const struct ree_training_validation **"), ffi.new("struct ree_error *")
        check(lib.ree_training_receipt_validate(c_path(path), options, out, err), err)
        try:
            return [Finding(text_of(finding.what), finding.ok, text_of(finding.detail))
                    for finding in (out[0].findings[i] for i in range(out[0].n_findings))]
        finally:
            lib.ree_training_validation_destroy(out[0])

    def verify(self, step: Any, data: Samples, device: Union[Device, str] = "cpu", *, checkpoint: Optional[Path] = None,
               n_steps: int = 0, public_key: Optional[Path] = None, trace: Optional[Path] = None,
               progress: Optional[ProgressFunction] = None) -> TrainingVerification:
        """Checks whether the receipt is true: repeats the steps with your own copies of the step and the samples.
        Returns a ree.TrainingVerification.

        step, data    as for ree.Training
        device        a ree.Device, or the spec of one that is opened for this
        checkpoint    start from this file; the receipt must have its states as a point
        n_steps       repeat at most so many, up to one of the receipt's points; 0: all
        public_key    the key with which it must be signed: 64 hexadecimal digits, or a file
        trace         compute the trace again, compare it, and write it to this path

        An exception says nothing about the receipt: it is about the step, the samples, the device or the arguments."""
        reports = Progress(progress)
        texts = [ffi.NULL if path is None else c_path(path) for path in (checkpoint, trace)]
        key = ffi.NULL if public_key is None else c_text(public_key_of(public_key))
        options = ffi.new("struct ree_training_verify_options *",
                          {"size": ffi.sizeof("struct ree_training_verify_options"), "public_key": key,
                           "checkpoint": texts[0], "n_steps": n_steps, "trace": texts[1]})
        reports.fill(options.progress)
        model, dataset = step if isinstance(step, Model) else Model(step, progress=progress), _Dataset(data)
        out, err = ffi.new("struct ree_training_verification **"), ffi.new("struct ree_error *")
        refuse_threads("verification")
        opened = device if isinstance(device, Device) else Device(device)
        try:
            with model.shared.lock, opened.lock, self._use.lock:
                status = lib.ree_training_verify(self._handle, model.handle, opened.handle(), dataset.handle, options, out,
                                                 err)
                try:
                    reports.raise_pending()
                    check(status, err)
                    return _result(out[0])
                finally:
                    lib.ree_training_verification_destroy(out[0])
        finally:
            if opened is not device:
                opened.close()

    def __repr__(self):
        return f"<ree.TrainingReceipt {self.sha256}>"

    def __reduce__(self):
        raise TypeError("a ree.TrainingReceipt cannot be pickled. Save it, and pass the path")


def _result(verification):
    found, first, seconds = ffi.new("struct ree_verify_check **"), ffi.new("uint64_t *"), ffi.new("double *")
    n = lib.ree_training_verification_checks(verification, found)
    checks = [Check(text_of(one.name), OUTCOMES[one.outcome], text_of(one.detail))
              for one in (found[0][i] for i in range(n))]
    n_steps = lib.ree_training_verification_steps(verification, first, seconds)
    verdict = lib.ree_verify_verdict_name(lib.ree_training_verification_verdict(verification))
    return TrainingVerification(text_of(verdict), checks, first[0], n_steps, seconds[0])
