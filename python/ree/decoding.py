"""Generation by steps: the program decides which tokens of which sequences run next, and chooses tokens."""
from collections.abc import Iterable, Mapping
from typing import Any, Dict, List, Optional

from ree._ree import ffi, lib
from ree.annotations import Value
from ree.errors import InvalidError, check
from ree.prompts import ids_of, sampling
from ree.tensors import Inputs, array_of_floats
from ree.users import DeviceUser

_STATS = ("n_sequences", "vocab_size", "n_tokens", "n_runs", "page_positions", "page_bytes", "n_pages",
          "n_shared_pages", "cache_bytes", "pool_bytes", "n_copied_pages", "n_page_copies", "copies_forks")


class _Logits:
    """The port of logits."""
    name, kind, dtype = "logits", "tensor", "float32"


class Sequence:
    """Tokens whose kv cache stays on the device. Made by Decoding.add and by `fork`; its cache is released
    when nothing refers to it. `len` is the number of its tokens."""

    def __init__(self, decoding: "Decoding", number: int):
        self.decoding = decoding
        self.number = number

    @property
    def ids(self) -> List[int]:
        """The token ids: a list."""
        return self.decoding.call(self._ids)

    def _ids(self, handle, err):
        info = ffi.new("struct ree_sequence_info *", {"size": ffi.sizeof("struct ree_sequence_info")})
        check(lib.ree_decoding_sequence(handle, self.number, info, err), err)
        return ffi.unpack(info.ids, info.n) if info.n else []

    def append(self, ids: Iterable[int], *, logits: Optional[str] = "last") -> Any:
        """Runs the model over new tokens and appends them; returns the logits as Decoding.run does."""
        return self.decoding.run({self: ids}, logits=logits)[self]

    def choose(self, logits: Value, **how: float) -> int:
        """Chooses the token that follows: its id. Does not append it.

        logits    those after the last token, (vocab_size): as `append` returned them, or changed. A token
                  whose logit is -infinity is never chosen
        how       temperature, top_k, top_p, min_p, repetition_penalty, seed: as for Generator.generate"""
        given = Inputs(1)
        given.set(0, ffi.NULL, logits, _Logits)
        struct = given.structs[0]
        if struct.dtype != lib.REE_F32 or struct.nbytes != self.decoding.vocab_size * ffi.sizeof("float"):
            raise InvalidError(f"logits: {self.decoding.vocab_size} values of float32 are expected")
        c_sampling, chosen = sampling(**how), ffi.new("int32_t *")

        def choose(handle, err):
            check(lib.ree_decoding_choose(handle, self.number, ffi.cast("const float *", struct.data), c_sampling,
                                          chosen, err), err)
        self.decoding.call(choose)
        return int(chosen[0])

    def fork(self) -> "Sequence":
        """Returns a new sequence with the same tokens. They share the kv cache, so nothing is computed."""
        return self.decoding.new(lambda handle, out, err: lib.ree_decoding_fork(handle, self.number, out, err))

    def truncate(self, n: int) -> None:
        """Removes all but the first n tokens. Raises UnsupportedError if 0 < n < len and the model replaces
        its kv caches instead of appending to them: see Decoding."""
        self.decoding.call(lambda handle, err: check(lib.ree_decoding_truncate(handle, self.number, n, err), err))

    def __len__(self) -> int:
        return len(self.ids)

    def __bool__(self) -> bool:
        return True

    def __del__(self):
        # The cache is released by the next call, because the device may be running now.
        if hasattr(self, "number"):
            self.decoding.unused.append(self.number)

    def __repr__(self):
        return f"<ree.Sequence {self.number}>"

    def __reduce__(self):
        raise TypeError("a ree.Sequence can be neither copied nor pickled: use fork()")


class Decoding(DeviceUser):
    """Sequences that are decoded with one generator, step by step. Made by Generator.decoding.

        decoding = generator.decoding()
        sequence = decoding.add()
        logits = sequence.append(generator.tokenizer.encode("Once upon a time"))
        for _ in range(20):
            token = sequence.choose(logits, temperature=0.8, seed=7)
            logits = sequence.append([token])
        print(generator.tokenizer.decode(sequence.ids))

    The logits of a sequence depend only on its tokens: not on the other sequences of a call, on how its
    tokens are divided into calls, on forks or on truncated tokens. Generator.generate computes the same logits.
    (If the model is not proved to be causal, they may depend on how the tokens are divided into calls, and on
    truncated tokens that were in one call with tokens that are kept.)

    Some models replace their kv caches in each run instead of appending to them, for example with past values
    times 0.5. If such a model is also not proved to be causal, `truncate` keeps all tokens of a sequence or none.
    A failed `run` may have replaced the kv caches of its sequences. Running such a sequence raises
    UnsupportedError, until truncate(0) removes its tokens.

    Raises UnsupportedError if the model has no kv caches, or the generator is recorded."""

    def __init__(self, generator, max_cache_bytes=0):
        self.device = generator.device
        self._generator = generator  # its progress function must live as long as this
        self.unused = []  # numbers of sequences to which nothing refers
        options = ffi.new("struct ree_decoding_options *", {"size": ffi.sizeof("struct ree_decoding_options"),
                                                            "max_cache_bytes": max_cache_bytes})
        err = ffi.new("struct ree_error *")

        def create(handle, out):  # pylint: disable=unused-argument
            check(lib.ree_decoding_create(generator.open(), options, out, err), err)
        self._create("decoding", lib.ree_decoding_destroy, create, generator.shared)
        generator.children.add(self)

    def add(self, ids: Iterable[int] = ()) -> Sequence:
        """Returns a new ree.Sequence. ids: its first tokens, which run without their logits."""
        sequence = self.new(lib.ree_decoding_add)
        ids = ids_of(ids)
        if ids:
            sequence.append(ids, logits=None)
        return sequence

    def run(self, items: Mapping[Sequence, Iterable[int]], *, logits: Optional[str] = "last") -> Dict[Sequence, Any]:
        """Runs the model over new tokens of several sequences, together where possible, and appends them.
        After a failure all sequences have the tokens that they had before, and can go on with others, unless
        the model replaces its kv caches: see Decoding.

        items      a dict: ree.Sequence -> the ids of its new tokens, at least one
        logits     "last": those after the last token of each sequence, (vocab_size); "all": those after
                   each of the tokens, (n, vocab_size); None: none

        Returns a dict of arrays of float32; of None if there are no logits."""
        if logits not in ("last", "all", None):
            raise ValueError(f"logits: 'last', 'all' or None is expected, not {logits!r}")
        sequences = list(items)
        for sequence in sequences:
            if sequence.decoding is not self:
                raise InvalidError("a sequence belongs to another ree.Decoding")
        structs, kept = ffi.new("struct ree_decode[]", max(1, len(sequences))), []
        for struct, sequence in zip(structs, sequences):
            ids = ids_of(items[sequence])
            kept.append(ffi.new("int32_t[]", ids))
            struct.sequence, struct.ids, struct.n = sequence.number, kept[-1], len(ids)
            struct.n_logits = len(ids) if logits == "all" else logits is not None
            if logits == "all":
                kept.append(ffi.new("size_t[]", list(range(len(ids)))))
                struct.at = kept[-1]

        def run(handle, err):
            check(lib.ree_decoding_run(handle, structs, len(sequences), err), err)
            if logits is None:
                return {sequence: None for sequence in sequences}
            vocab_size = self._stats(handle, err).vocab_size
            shapes = [(struct.n_logits, vocab_size) if logits == "all" else (vocab_size,) for struct in structs]
            return {sequence: array_of_floats(struct.logits, shape)
                    for sequence, struct, shape in zip(sequences, structs, shapes)}
        return self.call(run)

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary; 0 before the first run if the model does not declare it."""
        return self.call(self._stats).vocab_size

    def stats(self) -> Dict[str, int]:
        """Figures of all sequences together, as a dict: the fields of struct ree_decoding_stats."""
        stats = self.call(self._stats)
        return {name: getattr(stats, name) for name in _STATS}

    @staticmethod
    def _stats(handle, err):
        stats = ffi.new("struct ree_decoding_stats *", {"size": ffi.sizeof("struct ree_decoding_stats")})
        check(lib.ree_decoding_stats(handle, stats, err), err)
        return stats

    def new(self, make):
        """Returns the ree.Sequence whose number make(handle, out, err) wrote to `out`."""
        out = ffi.new("ree_sequence_id *")
        self.call(lambda handle, err: check(make(handle, out, err), err))
        return Sequence(self, out[0])

    def call(self, function):
        """Returns function(handle, err), called while the device is held."""
        err = ffi.new("struct ree_error *")
        with self.device.lock:
            self.device.handle()
            handle = self.open()
            while self.unused:
                lib.ree_decoding_remove(handle, self.unused.pop(), err)
            try:
                return function(handle, err)
            finally:
                self._generator.progress.raise_pending()
