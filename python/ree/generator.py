"""Text generation: a causal language model continues texts, conversations or token ids."""
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union, overload

from ree._ree import ffi, lib
from ree.annotations import Path, ProgressFunction, Prompt
from ree.decoding import Decoding
from ree.device import Device
from ree.errors import Error, c_path, c_text, check
from ree.locks import refuse_threads, starts_threads
from ree.model import model_options
from ree.progress import Progress
from ree.prompts import Prompts, is_prompt, sampling
from ree.receipt import Receipt, of_completion, receipt_options
from ree.recording import Recording
from ree.tokenizer import Tokenizer
from ree.users import DeviceUser


class Generation(NamedTuple):
    """An answer.

    text             text of the answer; "" without a tokenizer
    ids              token ids of the answer
    prompt_ids       token ids of the prompt
    finish           why it ended: "eos", "stop", "length" or "interrupted"
    tokens_sha256    hash of the ids of prompt and answer
    logits_sha256    hash of the logits; None if the generator was made without all_logits
    logprobs         None, or for each token of the answer its own log probability and a list of
                     (id, log probability) of the most likely tokens
    receipt          the ree.Receipt if one was asked for; None"""
    text: str
    ids: List[int]
    prompt_ids: List[int]
    finish: str
    tokens_sha256: str
    logits_sha256: Optional[str]
    logprobs: Optional[List[Tuple[float, List[Tuple[int, float]]]]]
    receipt: Optional[Receipt] = None


class _Callbacks:
    """What a completion calls while it runs. Keeps what the functions raise until it has ended."""

    def __init__(self, n_prompts, on_text, n_logprobs):
        self.on_text = on_text
        self.n_logprobs = n_logprobs
        self.logprobs = [[] for _ in range(n_prompts)]
        self.is_cancelled = False
        self.raised = None
        self.handle = ffi.new_handle(self)

    def text(self, sequence, text):
        if self.on_text and not self.is_cancelled:
            self.on_text(sequence, text)

    def token(self, token):
        top = [(token.top[k].id, token.top[k].logprob) for k in range(self.n_logprobs)]
        self.logprobs[token.sequence].append((token.logprob, top))

    def fail(self, raised):
        self.raised = self.raised or raised
        self.is_cancelled = True


_stray: Dict[int, BaseException] = {}  # by thread: what a signal raised outside of the functions below


def _lost(kind, value, trace):  # pylint: disable=unused-argument
    _stray[threading.get_ident()] = value


@ffi.def_extern(onerror=_lost)
def ree_py_on_text(user, sequence, text, nbytes):
    callbacks = ffi.from_handle(user)
    try:
        callbacks.text(sequence, ffi.unpack(text, nbytes).decode() if nbytes else "")
    except BaseException as e:  # pylint: disable=broad-except # raised again after the run
        callbacks.fail(e)


@ffi.def_extern(error=False, onerror=_lost)
def ree_py_on_token(user, token):
    callbacks = ffi.from_handle(user)
    try:
        callbacks.token(token)
    except BaseException as e:  # pylint: disable=broad-except
        callbacks.fail(e)
    return not callbacks.is_cancelled


@ffi.def_extern(error=True, onerror=_lost)
def ree_py_is_interrupted(user):
    return threading.get_ident() in _stray or ffi.from_handle(user).is_cancelled


class Generator(DeviceUser):
    """A language model on a device.

        generator = ree.Generator("tools/sample/stories")
        print(generator.generate("Once upon a time").text)
        for part in generator.stream("Once upon a time", temperature=0.8, seed=7):
            print(part, end="", flush=True)

    path             an ONNX file, a folder with one, or a folder with a Hugging Face checkpoint
    device           a ree.Device, or the spec of one that this generator opens and closes
    quantize_bits, quantize_block, quantize_table, activations    as for ree.Model
    prefill_chunk    largest number of a prompt's tokens in one run; 0: 512. Changes no bit
    max_batch        largest number of sequences in a batch; 0: 16. Changes no bit
    all_logits       compute, and hash, the logits of every token
    exact_lengths    needed to `record`, and for ree.compare: kv caches are exactly as long as their contents;
                     slower
    progress         progress(what, done, total) now and then, while the model is loaded and runs; False cancels

    The answer to a prompt does not depend on the device, on the other prompts of a call or on how they
    are batched."""

    def __init__(self, path: Path, device: Union[Device, str] = "cpu", *, quantize_bits: int = 0,
                 quantize_block: int = 0, quantize_table: Union[int, str] = 0, activations: Optional[str] = None,
                 prefill_chunk: int = 0, max_batch: int = 0, all_logits: bool = False, exact_lengths: bool = False,
                 progress: Optional[ProgressFunction] = None):
        self.progress = Progress(progress)
        model = model_options(self.progress, quantize_bits=quantize_bits, quantize_block=quantize_block,
                              quantize_table=quantize_table, activations=activations)
        session = ffi.new("struct ree_session_options *", {"size": ffi.sizeof("struct ree_session_options")})
        self.progress.fill(session.progress)
        options = ffi.new("struct ree_generator_options *",
                          {"size": ffi.sizeof("struct ree_generator_options"), "model": model, "session": session,
                           "prefill_chunk": prefill_chunk, "max_batch": max_batch, "all_logits": all_logits,
                           "exact_lengths": exact_lengths})
        starts_threads()  # to quantise, for example
        self._use(device)
        self._recording: Optional[Recording] = None
        path_text, err = c_path(path), ffi.new("struct ree_error *")

        def create(handle, out):
            status = lib.ree_generator_create(path_text, handle, options, out, err)
            self.progress.raise_pending()
            check(status, err)
        self._create("generator", lib.ree_generator_destroy, create)
        info = lib.ree_generator_info(self.open())
        self.model_type = ffi.string(info.model_type).decode()
        self.context_length = info.context_length or None
        self.vocab_size = info.vocab_size or None
        folder = os.fsdecode(ffi.string(info.folder)) if info.folder else ""
        try:
            self.tokenizer = Tokenizer(folder) if folder else None
        except LookupError:
            self.tokenizer = None

    @overload
    def generate(self, prompts: Union[str, Sequence[int], Sequence[Mapping[str, str]]],
                 **options: Any) -> Generation: ...

    @overload
    def generate(self, prompts: Union[List[str], List[List[int]], List[List[Dict[str, str]]]],
                 **options: Any) -> List[Generation]: ...

    @overload
    def generate(self, prompts: Any, **options: Any) -> Any: ...

    def generate(self, prompts: Any, *, on_text: Optional[Callable[[int, str], object]] = None,
                 **options: Any) -> Any:
        """Continues a prompt, or each of a list of prompts in batches; returns a ree.Generation, or a
        list of them.

        A prompt is a text, a list of token ids, or a conversation: a list of dicts with "role" and
        "content".

        max_new_tokens        largest number of tokens of an answer; 0: until the context is full
        temperature           0: the most likely token; above: draws, which depend only on the seed
        top_k, top_p, min_p, repetition_penalty, seed    NUMERICS.md, "Sampling", defines each
        stop                  texts that end an answer, and do not belong to it
        ignore_eos            continue after tokens that end a text
        logprobs              how many of the most likely tokens to report for each token
        chat_family           how conversations are written; None: as the tokenizer says
        receipt               True: make a receipt of the answer to one prompt, which reads all weights to
                              hash them; "private": with salted hashes in place of tokens and texts
        on_text(i, part)      called with each part of the text of answer i

        Ctrl-C ends the run with KeyboardInterrupt; the generator stays usable."""
        is_one = is_prompt(prompts)
        prompts = [prompts] if is_one else list(prompts)
        answers = self._run(prompts, _Callbacks(len(prompts), on_text, options.get("logprobs", 0)), options)
        return answers[0] if is_one else answers

    def stream(self, prompt: Prompt, **options: Any) -> "Stream":
        """Continues one prompt; returns a ree.Stream, which yields the parts of the text as they are
        made. Takes the options of generate. Leaving the loop early ends the run."""
        if not is_prompt(prompt):
            raise TypeError("stream: one prompt is expected")
        if "on_text" in options:
            raise TypeError("stream: its parts are what on_text receives")
        self.device.lock  # pylint: disable=pointless-statement # raises within a function that the device calls
        parts: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()
        callbacks = _Callbacks(1, lambda i, text: parts.put(text), options.get("logprobs", 0))
        return Stream(parts, callbacks, lambda: self._run([prompt], callbacks, options)[0])

    def decoding(self, *, max_cache_bytes: int = 0) -> Decoding:
        """Returns a ree.Decoding: sequences whose tokens the program runs and chooses step by step.

        max_cache_bytes    memory limit of all kv caches; 0: the device's memory"""
        return Decoding(self, max_cache_bytes)

    def record(self, trace: Optional[Path] = None, **options: Any) -> Recording:
        """Begins to record the next answer: returns a ree.Recording, whose arguments these are. Call it
        before the first run. The generator must have been made with exact_lengths.

            with generator.record("run.trace") as recording:
                answer = generator.generate(prompt, receipt=True)      # the receipt names the trace"""
        self._recording = recording = Recording(self, trace, **options)
        return recording

    def _run(self, prompts, callbacks, options):
        options = dict(options)
        receipt = options.pop("receipt", False)
        prompts = Prompts(prompts, self._tokenizer(), options.pop("chat_family", None))
        c_options, kept = _completion_options(callbacks, **options)
        out, err = ffi.new("struct ree_completion **"), ffi.new("struct ree_error *")
        if receipt:
            refuse_threads("a receipt, which hashes the weights")
        with self.device.lock:
            self.device.handle()
            recording, self._recording = self._recording, None
            try:
                check(lib.ree_completion_create(self.open(), self._tokenizer(), prompts.list, prompts.n, c_options, out,
                                                err), err)
                if receipt:
                    self._prepare_receipt(out[0], receipt, err)
                status = lib.ree_completion_run(out[0], err)
                self.progress.raise_pending()
                raised = callbacks.raised or _stray.get(threading.get_ident())
                if raised is not None:
                    raise raised
                check(status, err)
                if recording is not None and recording.is_open:
                    recording.finish_within()
                    recording, finished = None, recording
                else:
                    finished = None
                made = [_generation(out[0], i, callbacks) for i in range(prompts.n)]
                if receipt:
                    made[0] = made[0]._replace(receipt=self._receipt(out[0], receipt, finished))
                return made
            finally:
                _stray.pop(threading.get_ident(), None)
                lib.ree_completion_destroy(out[0])
                if recording is not None and recording.is_open:  # a run that failed cannot be recorded again
                    recording.drop()
                del prompts, kept
                self.device.release_later()

    def _prepare_receipt(self, completion, receipt, err):
        """Checks before the run that a receipt of it can be made, so that no work is lost."""
        if receipt not in (True, "private"):
            raise ValueError(f"receipt: True or 'private' is expected, not {receipt!r}")
        options, kept = receipt_options(receipt == "private", None, self.progress)
        status = lib.ree_receipt_prepare(completion, options, err)
        del kept
        self.progress.raise_pending()
        check(status, err)

    def _receipt(self, completion, receipt, recording):
        trace = recording if recording is not None and recording.root else None
        return of_completion(completion, receipt == "private", trace)

    def _tokenizer(self):
        return self.tokenizer.handle if self.tokenizer else ffi.NULL


class Stream:
    """An answer while it is made: iterating yields parts of its text. `result` is the ree.Generation,
    once the iteration has ended. A thread runs the model and does not wait for the parts to be taken."""

    def __init__(self, parts, callbacks, run):
        self._parts = parts
        self._callbacks = callbacks
        self._outcome = []  # the Generation or an exception
        self._is_done = False
        self._process = os.getpid()
        # The thread does not refer to this object: if the program drops it, __del__ ends the run.
        self._thread = threading.Thread(target=_fill, args=(parts, self._outcome, run), daemon=True, name="ree.Stream")
        self._thread.start()

    @property
    def result(self) -> Optional[Generation]:
        """The ree.Generation; None while the run goes on, and if it failed."""
        return self._outcome[0] if self._outcome and isinstance(self._outcome[0], Generation) else None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._process != os.getpid():
            raise Error("the stream was made before this process was forked")
        part = None if self._is_done else self._parts.get()
        if part is not None:
            return part
        self._parts.put(None)  # for other threads that take parts
        if not self._is_done:
            self._finish()
        raise StopIteration

    def _finish(self):
        """Waits for the thread; raises what the run raised, once."""
        self._thread.join()
        was_done, self._is_done = self._is_done, True
        if not was_done and isinstance(self._outcome[0], BaseException):
            raise self._outcome[0]

    def close(self) -> None:
        """Ends the run before its next token; `result` is then what was made so far. Raises what the run
        raised."""
        self._callbacks.is_cancelled = True
        self._finish()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: Optional[type], *exception: object) -> None:
        try:
            self.close()
        except BaseException:  # pylint: disable=broad-except # the loop's own exception goes first
            if kind is None:
                raise

    def __del__(self):
        if hasattr(self, "_callbacks"):
            self._callbacks.is_cancelled = True


def _fill(parts, outcome, run):
    """The thread of a Stream: runs the model; None is the last of the parts."""
    try:
        outcome.append(run())
    except BaseException as e:  # pylint: disable=broad-except # raised again by Stream.__next__
        outcome.append(e)
    parts.put(None)


def _completion_options(callbacks, *, max_new_tokens=0, stop=(), ignore_eos=False, logprobs=0, **how):
    """A struct ree_completion_options, and what it points to. how: arguments of `sampling`."""
    c_sampling = sampling(**how)
    texts = [c_text(text) for text in ([stop] if isinstance(stop, str) else stop)]
    stops = ffi.new("char *[]", texts) if texts else ffi.NULL
    options = ffi.new("struct ree_completion_options *",
                      {"size": ffi.sizeof("struct ree_completion_options"), "sampling": c_sampling,
                       "max_new_tokens": max_new_tokens, "n_stops": len(texts), "stops": stops,
                       "ignores_eos": ignore_eos, "n_logprobs": logprobs, "user": callbacks.handle,
                       "is_interrupted": ffi.addressof(lib, "ree_py_is_interrupted"),
                       "on_text": ffi.addressof(lib, "ree_py_on_text") if callbacks.on_text else ffi.NULL,
                       "on_token": ffi.addressof(lib, "ree_py_on_token") if logprobs else ffi.NULL})
    return options, (c_sampling, texts, stops)


def _generation(completion, i, callbacks):
    made = lib.ree_completion_generation(completion, i)
    nbytes = ffi.new("size_t *")
    text = lib.ree_completion_text(completion, i, nbytes)
    ids = ffi.unpack(made.ids, made.n)
    logits = ffi.string(made.logits_sha256).decode()
    return Generation(ffi.unpack(text, nbytes[0]).decode() if nbytes[0] else "", ids[made.n_prompt:],
                      ids[:made.n_prompt], ffi.string(lib.ree_finish_name(made.finish)).decode(),
                      ffi.string(made.tokens_sha256).decode(), logits or None,
                      callbacks.logprobs[i] if callbacks.n_logprobs else None)


@overload
def generate(model: Path, prompts: Union[str, Sequence[int], Sequence[Mapping[str, str]]],
             device: Union[Device, str] = "cpu", **options: Any) -> Generation: ...


@overload
def generate(model: Path, prompts: Union[List[str], List[List[int]], List[List[Dict[str, str]]]],
             device: Union[Device, str] = "cpu", **options: Any) -> List[Generation]: ...


@overload
def generate(model: Path, prompts: Any, device: Union[Device, str] = "cpu", **options: Any) -> Any: ...


def generate(model: Path, prompts: Any, device: Union[Device, str] = "cpu", **options: Any) -> Any:
    """Continues a prompt with a model, and releases the model: ree.Generator(model, device).generate."""
    with Generator(model, device) as generator:
        return generator.generate(prompts, **options)
