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
        return [floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def canonical(value):
    """Returns the canonical JSON text of a value; numbers may be of type int."""
    return vectors.canonical(floats(value))


def seal(receipt, keep=()):
    """Recomputes all hashes that follow from the receipt, except the paths in `keep`. Returns the
    receipt."""
    body = receipt["body"]
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
