"""An independent implementation of a receipt's hashes, for tests that change a receipt and seal it
again."""
import hashlib
import struct

import vectors


def sha(tag, data):
    return hashlib.sha256(tag.encode() + b"\0" + data).hexdigest()


def floats(value):
    """Converts integers to float, as vectors.canonical requires."""
    if isinstance(value, dict):
        return {k: floats(v) for k, v in value.items()}
    if isinstance(value, list):
        return [float(v) if type(v) is int else floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def canonical(value):
    """Returns the canonical JSON text of a value; numbers may be of type int."""
    return vectors.canonical(floats(value))


# The hashes of the tokenizers of tools/sample/stories and of stories260K, and those that receipts of version 1 have.
OLDER = {"f1f814132555df4f970fc9c3e367543656c383dd8a46ed2f8d4ae50ab5df3703": "d35607b5a6f6614bf40747a6292db7c8121da10cc46b186ecbc69df0be76a130",
         "b54e9ac6e692800bb102189afc9cc292e2d5283b8eb92c0da1fbbc4187830e67": "865c0fbcc094333c241645df0b5fe468923bf2588b127e241ee95f1bead37888"}


def seal(receipt, keep=()):
    """Recomputes all hashes that follow from the receipt, except the paths in `keep`, and gives a receipt of version 1 the
    hash of its tokenizer that this version has. Returns the receipt."""
    body = receipt["body"]
    if receipt["schema"] == "ree-receipt/1" and body.get("tokenizer_sha256") in OLDER:
        body["tokenizer_sha256"] = OLDER[body["tokenizer_sha256"]]
    for name in ("prompt", "output"):
        text = body.get(name, {})
        if isinstance(text.get("tokens"), list) and f"{name}.tokens_sha256" not in keep:
            ids = [int(i) for i in text["tokens"]]
            try:
                text["tokens_sha256"] = sha("ree-tokens/1", struct.pack(f"<{len(ids)}i", *ids))
            except struct.error:
                pass  # not token ids
            if f"{name}.n_tokens" not in keep:
                text["n_tokens"] = len(ids)
        if isinstance(text.get("text"), str) and f"{name}.text_sha256" not in keep:
            text["text_sha256"] = sha("ree-text/1", text["text"].encode())
    receipt["receipt_hash"] = sha(receipt["schema"], canonical(body).encode())
    return receipt
