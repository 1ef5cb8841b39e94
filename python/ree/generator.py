"""Text generation: a causal language model continues texts, conversations or token ids."""
import json
import os
import queue
import threading
from typing import NamedTuple, Optional

from ree._ree import ffi, lib
from ree.device import Device, DeviceUser
from ree.errors import c_text, check
from ree.progress import Progress
from ree.tokenizer import Tokenizer


class Generation(NamedTuple):
    """An answer.

    text             text of the answer; "" without a tokenizer
    ids              token ids of the answer
    prompt_ids       token ids of the prompt
    finish           why it ended: "eos", "stop", "length" or "interrupted"
    tokens_sha256    hash of the ids of prompt and answer
    logits_sha256    hash of the logits; None if the generator was made without all_logits
    logprobs         None, or for each token of the answer its own log probability and a list of
                     (id, log probability) of the most likely tokens"""
    text: str
    ids: list
    prompt_ids: list
    finish: str
    tokens_sha256: str
    logits_sha256: Optional[str]
    logprobs: Optional[list]


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


_stray = {}  # by thread: what a signal raised outside of the functions below


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
    quantize_bits    checkpoints only: 4 or 8 bits per weight; 0: as they are
    prefill_chunk    largest number of a prompt's tokens in one run; 0: 512. Changes no bit
    max_batch        largest number of sequences in a batch; 0: 16. Changes no bit
    all_logits       compute, and hash, the logits of every token
    progress         progress(what, done, total) now and then, while the model is loaded and runs; False cancels

    The answer to a prompt does not depend on the device, on the other prompts of a call or on how they
    are batched."""

    def __init__(self, path, device="cpu", *, quantize_bits=0, quantize_block=0, prefill_chunk=0, max_batch=0,
                 all_logits=False, progress=None):
        self._owns_device = not isinstance(device, Device)
        self._progress = Progress(progress)
        model = ffi.new("struct ree_model_options *",
                        {"size": ffi.sizeof("struct ree_model_options"), "quantize_bits": quantize_bits,
                         "quantize_block": quantize_block})
        self._progress.fill(model.progress)
        session = ffi.new("struct ree_session_options *", {"size": ffi.sizeof("struct ree_session_options")})
        self._progress.fill(session.progress)
        options = ffi.new("struct ree_generator_options *",
                          {"size": ffi.sizeof("struct ree_generator_options"), "model": model, "session": session,
                           "prefill_chunk": prefill_chunk, "max_batch": max_batch, "all_logits": all_logits})
        self.device = Device(device) if self._owns_device else device
        c_path, err = c_text(os.fspath(path)), ffi.new("struct ree_error *")

        def create(handle, out):
            status = lib.ree_generator_create(c_path, handle, options, out, err)
            self._progress.raise_pending()
            check(status, err)
        self._create("generator", lib.ree_generator_destroy, create)
        info = lib.ree_generator_info(self._out[0])
        self.model_type = ffi.string(info.model_type).decode()
        self.context_length = info.context_length or None
        self.vocab_size = info.vocab_size or None
        folder = ffi.string(info.folder) if info.folder else b""
        try:
            self.tokenizer = Tokenizer(folder) if folder else None
        except LookupError:
            self.tokenizer = None

    def generate(self, prompts, *, on_text=None, **options):
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
        on_text(i, part)      called with each part of the text of answer i

        Ctrl-C ends the run with KeyboardInterrupt; the generator stays usable."""
        is_one = _is_prompt(prompts)
        prompts = [prompts] if is_one else list(prompts)
        answers = self._run(prompts, _Callbacks(len(prompts), on_text, options.get("logprobs", 0)), options)
        return answers[0] if is_one else answers

    def stream(self, prompt, **options):
        """Continues one prompt; returns a ree.Stream, which yields the parts of the text as they are
        made. Takes the options of generate. Leaving the loop early ends the run."""
        if not _is_prompt(prompt):
            raise TypeError("stream: one prompt is expected")
        self.device.refuse_callbacks()
        parts = queue.SimpleQueue()
        callbacks = _Callbacks(1, lambda i, text: parts.put(text), options.get("logprobs", 0))
        return Stream(parts, callbacks, lambda: self._run([prompt], callbacks, options)[0])

    def _run(self, prompts, callbacks, options):
        options = dict(options)
        prompts, keep = self._prompts(prompts, options.pop("chat_family", None))
        listed = ffi.new("struct ree_prompt **")
        n = lib.ree_prompts_list(prompts, listed)
        c_options, kept = _completion_options(callbacks, **options)
        tokenizer = self.tokenizer.handle if self.tokenizer else ffi.NULL
        out, err = ffi.new("struct ree_completion **"), ffi.new("struct ree_error *")
        self.device.begin()
        try:
            check(lib.ree_completion_create(self._open(), tokenizer, listed[0], n, c_options, out, err), err)
            status = lib.ree_completion_run(out[0], err)
            self._progress.raise_pending()
            raised = callbacks.raised or _stray.get(threading.get_ident())
            if raised is not None:
                raise raised
            check(status, err)
            return [_generation(out[0], i, callbacks) for i in range(n)]
        finally:
            _stray.pop(threading.get_ident(), None)
            lib.ree_completion_destroy(out[0])
            ffi.release(prompts)
            del keep, kept
            self.device.end()

    def _prompts(self, prompts, family):
        tokenizer = self.tokenizer.handle if self.tokenizer else ffi.NULL
        c_family = ffi.NULL if family is None else c_text(family)
        c_options = ffi.new("struct ree_prompts_options *", {"size": ffi.sizeof("struct ree_prompts_options"),
                                                             "tokenizer": tokenizer, "chat_family": c_family})
        out, err = ffi.new("struct ree_prompts **"), ffi.new("struct ree_error *")
        check(lib.ree_prompts_create(c_options, out, err), err)
        handle = ffi.gc(out[0], lib.ree_prompts_destroy)
        for prompt in prompts:
            if isinstance(prompt, str):
                data = prompt.encode("utf-8", "surrogatepass")
                check(lib.ree_prompts_add_text(handle, data, len(data), err), err)
            elif len(prompt) and isinstance(prompt[0], dict):
                data = json.dumps(list(prompt), ensure_ascii=False).encode()
                check(lib.ree_prompts_add_messages(handle, data, len(data), err), err)
            else:
                ids = ffi.new("int32_t[]", [int(i) for i in prompt])
                check(lib.ree_prompts_add_ids(handle, ids, len(prompt), err), err)
        return handle, c_options


class Stream:
    """An answer while it is made: iterating yields parts of its text. `result` is the ree.Generation,
    once the iteration has ended. A thread runs the model and does not wait for the parts to be taken."""

    def __init__(self, parts, callbacks, run):
        self._parts = parts
        self._callbacks = callbacks
        self._outcome = []  # the Generation or an exception
        self._is_done = False
        # The thread does not refer to this object: if the program drops it, __del__ ends the run.
        self._thread = threading.Thread(target=_fill, args=(parts, self._outcome, run), daemon=True, name="ree.Stream")
        self._thread.start()

    @property
    def result(self):
        """The ree.Generation; None while the run goes on, and if it failed."""
        return self._outcome[0] if self._outcome and isinstance(self._outcome[0], Generation) else None

    def __iter__(self):
        return self

    def __next__(self):
        part = None if self._is_done else self._parts.get()
        if part is not None:
            return part
        if not self._is_done:
            self._finish()
        raise StopIteration

    def _finish(self):
        """Waits for the thread; raises what the run raised, once."""
        self._thread.join()
        was_done, self._is_done = self._is_done, True
        if not was_done and isinstance(self._outcome[0], BaseException):
            raise self._outcome[0]

    def close(self):
        """Ends the run before its next token; `result` is then what was made so far. Raises what the run
        raised."""
        self._callbacks.is_cancelled = True
        self._finish()

    def __enter__(self):
        return self

    def __exit__(self, kind, *exception):
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


def _is_prompt(value):
    """Whether a value is one prompt and not a list of prompts."""
    if isinstance(value, str):
        return True
    if isinstance(value, dict):
        raise TypeError("a conversation is a list of messages, not one message")
    return len(value) > 0 and (isinstance(value[0], dict) or not hasattr(value[0], "__len__"))


def _completion_options(callbacks, *, max_new_tokens=0, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0,
                        repetition_penalty=1.0, seed=0, stop=(), ignore_eos=False, logprobs=0):
    """A struct ree_completion_options, and what it points to."""
    sampling = ffi.new("struct ree_sampling *", {"temperature": temperature, "top_k": top_k, "top_p": top_p,
                                                 "min_p": min_p, "repetition_penalty": repetition_penalty,
                                                 "seed": seed})
    texts = [c_text(text) for text in ([stop] if isinstance(stop, str) else stop)]
    stops = ffi.new("char *[]", texts) if texts else ffi.NULL
    options = ffi.new("struct ree_completion_options *",
                      {"size": ffi.sizeof("struct ree_completion_options"), "sampling": sampling,
                       "max_new_tokens": max_new_tokens, "n_stops": len(texts), "stops": stops,
                       "ignores_eos": ignore_eos, "n_logprobs": logprobs, "user": callbacks.handle,
                       "is_interrupted": ffi.addressof(lib, "ree_py_is_interrupted"),
                       "on_text": ffi.addressof(lib, "ree_py_on_text") if callbacks.on_text else ffi.NULL,
                       "on_token": ffi.addressof(lib, "ree_py_on_token") if logprobs else ffi.NULL})
    return options, (sampling, texts, stops)


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


def generate(model, prompts, device="cpu", **options):
    """Continues a prompt with a model, and releases the model: ree.Generator(model, device).generate."""
    with Generator(model, device) as generator:
        return generator.generate(prompts, **options)
