"""Tokenizers: text to token ids and back, and chat prompts."""
import json
from collections.abc import Iterable, Mapping
from typing import List, Optional, Union

from ree._ree import ffi, lib
from ree.annotations import Path
from ree.errors import c_path, c_text, check
from ree.prompts import ids_of


class Tokenizer:
    """A tokenizer. path: tokenizer.json, vocab.json with merges.txt beside it, a tiktoken file, or a
    folder with one of them. Threads may share it.

    Raises NotFoundError if there is no such file, InvalidError if it is malformed, UnsupportedError if
    ree lacks something that it uses."""

    def __init__(self, path: Path):
        out, err = ffi.new("struct ree_tokenizer **"), ffi.new("struct ree_error *")
        check(lib.ree_tokenizer_load(c_path(path), out, err), err)
        self.handle = ffi.gc(out[0], lib.ree_tokenizer_destroy)
        self.vocab_size = lib.ree_tokenizer_vocab_size(self.handle)
        bos = lib.ree_tokenizer_bos(self.handle)
        self.bos = bos if bos >= 0 else None
        ids = ffi.new("int32_t **")
        n = lib.ree_tokenizer_eos(self.handle, ids)
        self.eos = ffi.unpack(ids[0], n) if n else []

    def encode(self, text: Union[str, bytes], *, add_special: bool = True, parse_special: bool = False) -> List[int]:
        """Returns the ids of a text.

        add_special      also the tokens that begin and end a text (BOS, ...), as the tokenizer says
        parse_special    special tokens written in the text become their ids"""
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"a text is expected, not a {type(text).__name__}")
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        flags = lib.REE_ADD_SPECIAL * bool(add_special) | lib.REE_PARSE_SPECIAL * bool(parse_special)
        ids, n, err = ffi.new("int32_t **"), ffi.new("size_t *"), ffi.new("struct ree_error *")
        try:
            check(lib.ree_tokenizer_encode(self.handle, data, len(data), flags, ids, n, err), err)
            return ffi.unpack(ids[0], n[0]) if n[0] else []
        finally:
            lib.ree_free(ids[0])

    def decode(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """Returns the text of ids. skip_special: special tokens have no text."""
        numbers = ids_of(ids)
        text, nbytes, err = ffi.new("char **"), ffi.new("size_t *"), ffi.new("struct ree_error *")
        flags = lib.REE_SKIP_SPECIAL * bool(skip_special)
        try:
            check(lib.ree_tokenizer_decode(self.handle, ffi.new("int32_t[]", numbers), len(numbers), flags, text,
                                           nbytes, err),
                  err)
            return ffi.unpack(text[0], nbytes[0]).decode() if nbytes[0] else ""
        finally:
            lib.ree_free(text[0])

    def chat_prompt(self, messages: Iterable[Mapping[str, str]], *, family: Optional[str] = None,
                    reply: bool = True) -> str:
        """Writes a conversation as the text that the model was trained on.

        messages    dicts with "role" ("system", "user", "assistant") and "content"
        family      one of ree.chat_families(); None: that of the tokenizer's chat template
        reply       the text ends where the assistant's answer begins

        The text has the special tokens at its beginning: encode it with add_special=False and
        parse_special=True."""
        data = json.dumps([dict(message) for message in messages], ensure_ascii=False).encode()
        text, nbytes, err = ffi.new("char **"), ffi.new("size_t *"), ffi.new("struct ree_error *")
        name = ffi.NULL if family is None else c_text(family)
        try:
            check(lib.ree_chat_prompt(self.handle, name, data, len(data), reply, text, nbytes, err), err)
            return ffi.unpack(text[0], nbytes[0]).decode() if nbytes[0] else ""
        finally:
            lib.ree_free(text[0])

    @property
    def chat_family(self) -> Optional[str]:
        """The family of the tokenizer's chat template; None if it has none or it is unknown."""
        name = lib.ree_tokenizer_chat_family(self.handle)
        return ffi.string(name).decode() if name else None

    @property
    def sha256(self) -> str:
        """The hash of everything that determines how it encodes and decodes."""
        text = ffi.new("char[65]")
        lib.ree_tokenizer_sha256(self.handle, text)
        return ffi.string(text).decode()

    def __reduce__(self):
        raise TypeError("a ree.Tokenizer cannot be pickled. Pass its path instead")


def chat_families() -> List[str]:
    """The names of the chat families that ree knows."""
    names = lib.ree_chat_families()
    found: List[str] = []
    while names[len(found)]:
        found.append(ffi.string(names[len(found)]).decode())
    return found
