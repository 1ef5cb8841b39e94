"""Recordings: traces of runs, and values that a run computed."""
import contextlib
import os
from typing import Optional

from ree._ree import ffi, lib
from ree.annotations import Path, ProgressFunction
from ree.errors import c_path, c_text, check
from ree.locks import refuse_threads
from ree.progress import Progress
from ree.users import DeviceUser


class Recording(DeviceUser):
    """Records the next runs of a session, one step each, or the next answer of a generator. Made by their
    method `record`; ends with the `with` block. The answer of a generator ends it too. An exception, and
    closing the session first, end it without a trace.

    trace            path of the trace file to write, which appears when the recording ends; None: none
    dump, folder     writes the values of nodes and inputs whose name, or whose output's name, matches the
                     POSIX extended regular expression `dump`, as .npy files in `folder`/step-STEP (five digits)
    private          only the owner can read these files
    fault            for tests: "NODE:STEP:BIT" flips one bit of a value, as a failing device would
    progress         progress(what, done, total) is called while the weights are hashed; False cancels

    When it has ended: root (the trace's root in hexadecimal; None: no trace), n_steps, prefill_chunk,
    n_files (values written), n_omitted and n_unfit (not written: too many, or a type that .npy lacks).

    A recorded run keeps the value of every node until its step ends, and is slower; its bits are the same."""

    def __init__(self, owner: DeviceUser, trace: Optional[Path] = None, *, dump: Optional[str] = None,
                 folder: Optional[Path] = None, private: bool = False, fault: Optional[str] = None,
                 progress: Optional[ProgressFunction] = None):
        self.device = owner.device
        self.trace = None if trace is None else os.fspath(trace)
        self.root: Optional[str] = None
        self.n_steps, self.prefill_chunk = 0, 0
        self.n_files, self.n_omitted, self.n_unfit = 0, 0, 0
        self._progress = Progress(progress)
        texts = [ffi.NULL if text is None else convert(text)
                 for text, convert in ((self.trace, c_path), (dump, c_text), (folder, c_path), (fault, c_text))]
        options = ffi.new("struct ree_record_options *",
                          {"size": ffi.sizeof("struct ree_record_options"), "trace": texts[0], "is_private": private,
                           "dump_names": texts[1], "dump_folder": texts[2], "fault": texts[3]})
        self._progress.fill(options.progress)
        self._err = ffi.new("struct ree_error *")
        start = getattr(lib, f"ree_record_{owner.kind}")
        refuse_threads("recording a run, which hashes the weights")

        def create(handle, out):  # pylint: disable=unused-argument
            status = start(owner.open(), options, out, self._err)
            self._progress.raise_pending()
            check(status, self._err)
        model = getattr(owner, "model", None)  # a session's, which is hashed
        with model.shared.lock if model else contextlib.nullcontext():
            self._create("recording", lib.ree_recording_destroy, create, owner.shared)
        owner.children.add(self)

    def finish(self) -> None:
        """Ends the recording: the trace appears under its name. Raises Error if it has ended."""
        with self.device.lock:
            self.device.handle()
            self.finish_within()

    def finish_within(self):
        """Like `finish`, within a call that uses the device."""
        recorded = ffi.new("struct ree_recorded *", {"size": ffi.sizeof("struct ree_recorded")})
        handle, self._out[0] = self.open(), ffi.NULL  # released also on failure
        status = lib.ree_recording_finish(handle, recorded, self._err)
        self._release()
        self._progress.raise_pending()
        check(status, self._err)
        self.root = ffi.string(recorded.root).decode() or None
        self.n_steps, self.prefill_chunk = recorded.n_steps, recorded.prefill_chunk
        self.n_files, self.n_omitted, self.n_unfit = recorded.n_files, recorded.n_omitted, recorded.n_unfit

    def drop(self) -> None:
        """Ends the recording without a trace, within a call that uses the device."""
        self._release()

    @property
    def is_open(self) -> bool:
        """Whether the recording has not ended."""
        return self._out is not None

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None and self.is_open:
            self.finish()
        self.close()
