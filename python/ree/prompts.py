"""Prompts, as texts, conversations or token ids, and how tokens are chosen."""
import json
import operator
from collections.abc import Mapping

from ree._ree import ffi, lib
from ree.errors import c_text, check


def is_prompt(value):
    """Whether a value is one prompt and not a list of prompts."""
    if isinstance(value, (str, bytes)):
        return True
    if isinstance(value, Mapping):
        raise TypeError("a conversation is a list of messages, not one message")
    return len(value) > 0 and (isinstance(value[0], Mapping) or not hasattr(value[0], "__len__") or
                               getattr(value[0], "ndim", None) == 0)


def ids_of(values):
    """Token ids, as a list of int. Raises TypeError if they are not whole numbers."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"token ids are expected, not the text {values!r}: Tokenizer.encode gives its ids")
    return [operator.index(value) for value in values]


class Prompts:
    """Prompts as token ids: `n` structs ree_prompt at `list`.

    tokenizer      a struct ree_tokenizer *, which encodes texts and conversations; NULL: there is none
    chat_family    how conversations are written; None: as the tokenizer says"""

    def __init__(self, prompts, tokenizer, chat_family=None):
        family = ffi.NULL if chat_family is None else c_text(chat_family)
        options = ffi.new("struct ree_prompts_options *", {"size": ffi.sizeof("struct ree_prompts_options"),
                                                           "tokenizer": tokenizer, "chat_family": family})
        out, err = ffi.new("struct ree_prompts **"), ffi.new("struct ree_error *")
        check(lib.ree_prompts_create(options, out, err), err)
        self._handle = ffi.gc(out[0], lib.ree_prompts_destroy)
        for prompt in prompts:
            check(self._add(prompt, err), err)
        listed = ffi.new("struct ree_prompt **")
        self.n = lib.ree_prompts_list(self._handle, listed)
        self.list = listed[0]

    def _add(self, prompt, err):
        if isinstance(prompt, (str, bytes)):
            data = prompt if isinstance(prompt, bytes) else prompt.encode("utf-8", "surrogatepass")
            return lib.ree_prompts_add_text(self._handle, data, len(data), err)
        if len(prompt) and isinstance(prompt[0], Mapping):
            data = json.dumps([dict(message) for message in prompt], ensure_ascii=False).encode()
            return lib.ree_prompts_add_messages(self._handle, data, len(data), err)
        ids = ids_of(prompt)
        return lib.ree_prompts_add_ids(self._handle, ffi.new("int32_t[]", ids), len(ids), err)


def sampling(*, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0, seed=0):
    """A struct ree_sampling. temperature 0: the most likely token; above: a draw that depends only on the
    seed, the position and the logits. NUMERICS.md, "Sampling", defines each parameter."""
    return ffi.new("struct ree_sampling *", {"temperature": temperature, "top_k": top_k, "top_p": top_p,
                                             "min_p": min_p, "repetition_penalty": repetition_penalty, "seed": seed})
