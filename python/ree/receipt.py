"""Receipts: statements of what was run, on which model, with which result, that others can check."""
import contextlib
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Union

from ree._ree import ffi, lib
from ree.annotations import Path, ProgressFunction, Prompt, Values
from ree.device import Device
from ree.errors import InvalidError, c_path, c_text, check, text_of
from ree.locks import UseLock, refuse_threads
from ree.model import model_options, ports
from ree.progress import Progress
from ree.prompts import Prompts
from ree.tensors import Inputs


class Finding(NamedTuple):
    """What Receipt.validate found about one part of a receipt."""
    what: str
    ok: bool
    detail: str


class Check(NamedTuple):
    """A check of Receipt.verify. outcome: "agrees", "differs" or "not checked"; detail: what differs, or
    why it was not checked."""
    name: str
    outcome: str
    detail: str


class Verification(NamedTuple):
    """The result of Receipt.verify.

    verdict     "verified": everything that the receipt promises was compared with something that the
                receipt does not decide; "verified prefix of an answer"; "verified in part": nothing
                differs, but not everything was compared; "differs"; "cannot be checked"
    reason      why the receipt cannot be checked; "": it can
    stepwise    why tokens were checked one by one and not in one pass; "": they were checked in one
    n_runs      how often the model ran"""
    verdict: str
    checks: List[Check]
    reason: str
    stepwise: str
    n_runs: int

    @property
    def ok(self) -> bool:
        """Whether the verdict is "verified"."""
        return self.verdict == VERIFIED


class ReceiptDifference(NamedTuple):
    """A difference between two receipts: what differs, and what each states."""
    what: str
    detail: str


VERIFIED = ffi.string(lib.ree_verify_verdict_name(lib.REE_VERIFIED)).decode()
OUTCOMES = {lib.REE_VERIFY_AGREES: "agrees", lib.REE_VERIFY_DIFFERS: "differs",
             lib.REE_VERIFY_NOT_CHECKED: "not checked"}


class ReceiptOwner:
    """Base class of receipts: owns an object of C."""

    _destroy: Any  # the function of C that releases it

    def _take(self, out):
        self._handle = ffi.gc(out[0], self._destroy)
        self._use = UseLock("the receipt")

    @classmethod
    def _made(cls, out):
        """The receipt that the library wrote to `out`."""
        receipt = cls.__new__(cls)
        receipt._take(out)
        return receipt


class Receipt(ReceiptOwner):
    """A receipt. source: the path of a receipt's file, or its bytes.

        receipt = session.receipt(inputs, outputs)           # or generator.generate(..., receipt=True)
        receipt.sign("operator.key")
        receipt.save("run.receipt")

        receipt = ree.Receipt("run.receipt")                 # somebody else, on another machine
        print(receipt.verify("model.onnx", device="vulkan", inputs=inputs).verdict)

    Raises InvalidError if the file is not a receipt. Its hashes are not compared: `validate` does that, and
    `verify`."""

    _destroy = lib.ree_receipt_destroy

    def __init__(self, source: Union[Path, bytes, bytearray, memoryview]):
        out, err = ffi.new("struct ree_receipt **"), ffi.new("struct ree_error *")
        content = bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else None
        if content is not None:
            status = lib.ree_receipt_parse(content, len(content), b"receipt", out, err)
        else:
            status = lib.ree_receipt_load(c_path(source), out, err)
        self._take(out)
        check(status, err)
        if content is None:
            check(lib.ree_receipt_load_salt(self._handle, ffi.NULL, err), err)

    @property
    def json(self) -> str:
        """The receipt as canonical JSON: the text of its file."""
        with self._use.lock:
            text = lib.ree_receipt_json(self._handle)
            if not text:
                raise MemoryError
            return ffi.string(text).decode()

    @property
    def fields(self) -> Dict[str, Any]:
        """The receipt's fields: a dict of dicts, lists, texts and numbers, as in its file."""
        return json.loads(self.json)

    @property
    def sha256(self) -> str:
        """The receipt's hash, which covers everything that it promises."""
        with self._use.lock:
            return ffi.string(lib.ree_receipt_info(self._handle).receipt_hash).decode()

    @property
    def public_key(self) -> Optional[str]:
        """The public key of the signature, 64 hexadecimal digits; None: it is not signed."""
        with self._use.lock:
            return ffi.string(lib.ree_receipt_info(self._handle).public_key).decode() or None

    def sign(self, key_path: Path) -> None:
        """Signs the receipt with a private key, a file of ree.create_key. Replaces an older signature."""
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_receipt_sign(self._handle, c_path(key_path), err), err)

    def save(self, path: Path) -> None:
        """Writes the receipt, whole or not at all. The salt of a private receipt goes to PATH.salt, which
        only its owner can read."""
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_receipt_write(self._handle, c_path(path), err), err)

    def load_salt(self, path: Path) -> None:
        """Reads the salt of a private receipt, without which it cannot be verified. A file RECEIPT.salt
        beside the receipt is read without this."""
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_receipt_load_salt(self._handle, c_path(path), err), err)

    def validate(self, *, public_key: Optional[Path] = None) -> List[Finding]:
        """Checks the receipt by its own contents: hashes, counts, parameters, signature. Returns a list of
        ree.Finding. Runs nothing, so it does not show that the run gave this result.

        public_key    the key with which it must be signed: 64 hexadecimal digits, or a file"""
        key = ffi.NULL if public_key is None else c_text(public_key_of(public_key))
        options = ffi.new("struct ree_validate_options *", {"size": ffi.sizeof("struct ree_validate_options"),
                                                            "public_key": key})
        found, n, ok = ffi.new("struct ree_receipt_finding **"), ffi.new("size_t *"), ffi.new("bool *")
        err = ffi.new("struct ree_error *")
        with self._use.lock:
            check(lib.ree_receipt_validate(self._handle, options, found, n, ok, err), err)
            return [Finding(text_of(finding.what), finding.ok, text_of(finding.detail))
                    for finding in (found[0][i] for i in range(n[0]))]

    def verify(self, model: Path, device: Union[Device, str] = "cpu", *, inputs: Optional[Values] = None,
               prompt: Optional[Prompt] = None, tokenizer: Optional[Path] = None, public_key: Optional[Path] = None,
               stepwise: bool = False, trace: Optional[Path] = None, ignore_eos: bool = False,
               quantize_bits: int = 0, quantize_block: int = 0, quantize_table: Union[int, str] = 0,
               activations: Optional[str] = None, chat_family: Optional[str] = None,
               progress: Optional[ProgressFunction] = None) -> Verification:
        """Checks whether the receipt is true: compares everything that it states with your own copy of the
        model, and with a new run of it. Returns a ree.Verification.

        model         the path of your copy, in any format: an ONNX file or a checkpoint's folder
        device        a ree.Device, or the spec of one that is opened for this
        inputs        a receipt of tensors: the inputs of the run, as for Session.run
        prompt        a receipt of a text: the prompt, if you know it, for example that of a private receipt;
                      None: the receipt's own
        tokenizer     path of a tokenizer; None: that in the model's folder
        public_key    the key with which it must be signed: 64 hexadecimal digits, or a file
        stepwise      generate the answer token by token even if one pass is proved to be enough
        trace         compute the trace again, step by step, compare it, and write it to this path
        ignore_eos    accept an answer that was generated with ignore_eos
        quantize_bits, quantize_block, quantize_table, activations
                      how a checkpoint was loaded for the run, as for ree.Model

        An exception says nothing about the receipt: it is about the model, the device or the arguments."""
        weights = {"quantize_bits": quantize_bits, "quantize_block": quantize_block, "quantize_table": quantize_table,
                   "activations": activations}
        job = _Job(self._handle, tokenizer, public_key, stepwise, trace, ignore_eos, weights, progress)
        refuse_threads("verification")
        opened = device if isinstance(device, Device) else Device(device)
        try:
            with opened.lock, self._use.lock:
                return job.run(opened.handle(), model, inputs, prompt, chat_family)
        finally:
            if opened is not device:
                opened.close()

    def diff(self, other: "Receipt") -> List[ReceiptDifference]:
        """What two receipts state differently: a list of ree.ReceiptDifference. Devices, dates and file
        names do not count."""
        found, n = ffi.new("struct ree_receipt_difference[]", 16), 16
        with contextlib.ExitStack() as stack:
            for receipt in sorted({self, other}, key=id):
                stack.enter_context(receipt._use.lock)
            total = lib.ree_receipt_diff(self._handle, other._handle, found, n)
            if total > n:
                found = ffi.new("struct ree_receipt_difference[]", total)
                lib.ree_receipt_diff(self._handle, other._handle, found, total)
        return [ReceiptDifference(text_of(found[i].what), text_of(found[i].detail)) for i in range(total)]

    def __repr__(self):
        return f"<ree.Receipt {self.sha256}>"

    def __reduce__(self):
        raise TypeError("a ree.Receipt cannot be pickled. Pass json.encode() instead, and make a ree.Receipt of it")



class _Job:
    """A verification, and what must live as long as it."""

    def __init__(self, receipt, tokenizer, public_key, stepwise, trace, ignore_eos, weights, progress):
        self._receipt = receipt
        self._progress = Progress(progress)
        texts = [ffi.NULL if path is None else c_path(path) for path in (tokenizer, trace)]
        key = ffi.NULL if public_key is None else c_text(public_key_of(public_key))
        self._options = ffi.new("struct ree_verify_options *",
                                {"size": ffi.sizeof("struct ree_verify_options"), "tokenizer": texts[0],
                                 "public_key": key, "stepwise": stepwise, "ignores_eos": ignore_eos,
                                 "trace": trace is not None, "trace_path": texts[1]})
        self._progress.fill(self._options.progress)
        session = ffi.new("struct ree_session_options *", {"size": ffi.sizeof("struct ree_session_options")})
        model = model_options(self._progress, **weights)
        self._progress.fill(session.progress)
        self._how = ffi.new("struct ree_generator_options *",
                            {"size": ffi.sizeof("struct ree_generator_options"), "model": model, "session": session})
        self._kept = (texts, key, session, model)
        self._out = ffi.new("struct ree_verification **")
        self._err = ffi.new("struct ree_error *")

    def run(self, handle, path, inputs, prompt, chat_family):
        """Verifies on a struct ree_device *, whose lock the caller holds."""
        try:
            self._check(lib.ree_verification_create(self._receipt, self._options, self._out, self._err))
            self._check(lib.ree_verification_load(self._out[0], c_path(path), handle, self._how, self._err))
            if not lib.ree_verification_is_decided(self._out[0]):
                given = ffi.new("struct ree_verify_inputs *", {"size": ffi.sizeof("struct ree_verify_inputs")})
                kept = self._fill(given, inputs, prompt, chat_family)  # what `given` points to
                self._check(lib.ree_verification_run(self._out[0], given, self._err))
                del kept
            return self._result()
        finally:
            lib.ree_verification_destroy(self._out[0])

    def _fill(self, given, inputs, prompt, chat_family):
        """Sets what the receipt does not contain; returns what it points to."""
        kept: List[Any] = []
        if prompt is not None:
            tokenizer = lib.ree_verification_tokenizer(self._out[0])
            kept.append(Prompts([prompt], tokenizer, chat_family))
            given.prompt = kept[-1].list
        if inputs is not None:
            by_name = {port.name: port for port in ports(lib.ree_verification_model(self._out[0]))[0]}
            inputs = list(inputs.items())
            kept.append(Inputs(len(inputs)))
            for i, (name, value) in enumerate(inputs):
                if name not in by_name:
                    raise InvalidError(f"the model has no input '{name}'; its inputs are {', '.join(by_name)}")
                kept[-1].set(i, ffi.new("char[]", name.encode()), value, by_name[name])
            given.tensors, given.n_tensors = kept[-1].structs, len(inputs)
        return kept

    def _check(self, status):
        self._progress.raise_pending()
        check(status, self._err)

    def _result(self):
        found = ffi.new("struct ree_verify_check **")
        made = self._out[0]
        n = lib.ree_verification_checks(made, found)
        checks = [Check(text_of(one.name), OUTCOMES[one.outcome], text_of(one.detail))
                  for one in (found[0][i] for i in range(n))]
        return Verification(text_of(lib.ree_verify_verdict_name(lib.ree_verification_verdict(made))), checks,
                            text_of(lib.ree_verification_reason(made)), text_of(lib.ree_verification_stepwise(made)),
                            lib.ree_verification_runs(made, ffi.NULL))


def receipt_options(private, trace, progress):
    """A struct ree_receipt_options, and what it points to. trace: a finished Recording, or None."""
    options = ffi.new("struct ree_receipt_options *", {"size": ffi.sizeof("struct ree_receipt_options"),
                                                       "is_private": private})
    progress.fill(options.progress)
    if trace is None:
        return options, None
    if not trace.root:
        raise InvalidError("the recording has no trace, or has not ended")
    root, file = c_text(trace.root), c_text(os.path.basename(trace.trace))
    c_trace = ffi.new("struct ree_receipt_trace *",
                      {"size": ffi.sizeof("struct ree_receipt_trace"), "root": root, "n_steps": trace.n_steps,
                       "prefill_chunk": trace.prefill_chunk, "file": file})
    options.trace = c_trace
    return options, (root, file, c_trace)


def of_tensors(model, device, inputs, outputs, trace, progress):
    """The Receipt of a run. inputs, outputs: Inputs."""
    refuse_threads("a receipt, which hashes the weights")
    progress = Progress(progress)
    options, kept = receipt_options(False, trace, progress)
    out, err = ffi.new("struct ree_receipt **"), ffi.new("struct ree_error *")
    devices = ffi.new("struct ree_device *[]", [device])
    status = lib.ree_receipt_create_tensors(model, devices, 1, inputs.structs, inputs.n, outputs.structs, options, out,
                                            err)
    del kept
    return _of_call(status, out, err, progress)


def of_completion(completion, private, trace):
    """The Receipt of a struct ree_completion that has run."""
    progress = Progress(None)
    options, kept = receipt_options(private, trace, progress)
    out, err = ffi.new("struct ree_receipt **"), ffi.new("struct ree_error *")
    status = lib.ree_receipt_create_text(completion, options, out, err)
    del kept
    return _of_call(status, out, err, progress)


def _of_call(status, out, err, progress):
    receipt = Receipt._made(out)  # pylint: disable=protected-access # also if a signal has ended the call
    progress.raise_pending()
    check(status, err)
    return receipt


def create_key(path: Path) -> str:
    """Writes a new private key (Ed25519) to PATH, which only its owner can read, and the public key to
    PATH.pub. Returns the public key in hexadecimal. Raises IOFailure if one of the files exists."""
    key, err = ffi.new("char[65]"), ffi.new("struct ree_error *")
    check(lib.ree_key_create(c_path(path), key, err), err)
    return ffi.string(key).decode()


def public_key_of(path_or_hex: Path) -> str:
    """The public key in a file of create_key, or the key itself, in hexadecimal."""
    key, err = ffi.new("char[65]"), ffi.new("struct ree_error *")
    check(lib.ree_key_named(c_path(path_or_hex), key, err), err)
    return ffi.string(key).decode()
