#!/usr/bin/env python3
"""An independent check of the vectors of tests/data/receipt: Merkle trees, canonical JSON and
receipts from NUMERICS.md, RFC 8785 and RFC 8032, without any of ree's code. Signatures need the
cryptography package or the openssl program; without both they are not checked. The schema is not
checked without the jsonschema package."""

import argparse
import base64
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from decimal import Decimal

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402


def sha256(*parts):
    return hashlib.sha256(b"".join(p if isinstance(p, bytes) else p.encode() + b"\0" for p in parts)).digest()


# Canonical JSON


def number(value):
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    _, digits, exponent = Decimal(repr(abs(value))).as_tuple()  # repr gives the shortest digits
    text = "".join(map(str, digits))
    n = len(text) + exponent
    text = text.rstrip("0")
    k = len(text)
    if k <= n <= 21:
        text += "0" * (n - k)
    elif 0 < n <= 21:
        text = text[:n] + "." + text[n:]
    elif -6 < n <= 0:
        text = "0." + "0" * -n + text
    else:
        text = text[0] + ("." + text[1:] if k > 1 else "") + f"e{n - 1:+d}"
    return ("-" if value < 0 else "") + text


def canonical(value):
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(canonical(key) + ":" + canonical(value[key]) for key in keys) + "}"


def parse(text):
    return json.loads(text, parse_int=float)


# Trees


def top(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else bytes(32)
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256("ree-tree/1", top(leaves[:k]), top(leaves[k:]))


def root(leaves):
    return sha256("ree-root/1", struct.pack("<Q", len(leaves)), top(leaves))


def climb(n, index, leaf, proof):
    """Returns the top of the tree that a proof leads to."""
    if n == 1:
        return leaf if not proof else None
    k = 1 << (n - 1).bit_length() - 1
    if index < k:
        return sha256("ree-tree/1", climb(k, index, leaf, proof[:-1]), proof[-1])
    return sha256("ree-tree/1", proof[-1], climb(n - k, index - k, leaf, proof[:-1]))


# Signatures


def verify(public_key, signature, message):
    """Returns whether the signature is valid; None if this machine has no program to verify it."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return verify_by_program(public_key, signature, message)
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
        return True
    except InvalidSignature:
        return False


def verify_by_program(public_key, signature, message):
    if not shutil.which("openssl"):
        return None
    der = bytes.fromhex("302a300506032b6570032100") + public_key  # RFC 8410
    with tempfile.TemporaryDirectory() as folder:
        key, sig, msg = (pathlib.Path(folder, name) for name in ("key", "signature", "message"))
        key.write_text(f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(der).decode()}\n-----END PUBLIC KEY-----\n")
        sig.write_bytes(signature)
        msg.write_bytes(message)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", msg, "-sigfile", sig]
        return subprocess.run(command, capture_output=True).returncode == 0


# The files


def check_canonical(folder):
    for vector in json.loads((folder / "canonical.json").read_text()):
        text = canonical(parse(vector["text"]))
        check(text == vector["canonical"], f"canonical {vector['text']}: {text}")
        digest = sha256("ree-test/1", text.encode()).hex()
        check(digest == vector["sha256_with_tag_ree-test/1"], f"hash of {vector['text']}")


def check_numbers(lines, what):
    for line in lines:
        bits, text = line.split()
        value = struct.unpack(">d", bytes.fromhex(bits))[0]
        check(number(value) == text, f"{what}: {bits} is {text}, expected {number(value)}")
    check(len(lines) > 100, f"{what}: there are some")


def check_trees(folder):
    vectors = json.loads((folder / "trees.json").read_text())
    leaves = [sha256("leaf", struct.pack("<Q", i)) for i in range(64)]
    for tree in vectors["trees"]:
        n = tree["n"]
        check(tree["top"] == top(leaves[:n]).hex() and tree["root"] == root(leaves[:n]).hex(), f"tree of {n}")
    for proof in vectors["proofs"]:
        n, index = proof["n"], proof["index"]
        found = climb(n, index, leaves[index], [bytes.fromhex(p) for p in proof["proof"]])
        check(found == top(leaves[:n]), f"proof of leaf {index} of {n}")


def check_part(part, what):
    if "tokens" in part:
        ids = [int(i) for i in part["tokens"]]
        digest = sha256("ree-tokens/1", struct.pack(f"<{len(ids)}i", *ids)).hex()
        check(digest == part["tokens_sha256"] and len(ids) == part["n_tokens"], f"{what}: tokens")
    if "text" in part:
        check(sha256("ree-text/1", part["text"].encode()).hex() == part["text_sha256"], f"{what}: text")


def check_receipt(path):
    text = path.read_bytes().decode()
    receipt = parse(text)
    check(text == canonical(receipt) + "\n", f"{path.name}: is canonical")
    digest = sha256(receipt["schema"], canonical(receipt["body"]).encode())
    check(digest.hex() == receipt["receipt_hash"], f"{path.name}: receipt_hash")
    for name in ("prompt", "output"):
        check_part(receipt["body"].get(name, {}), f"{path.name}: {name}")
    if "signature" not in receipt:
        check("-signed" not in path.name, f"{path.name}: is signed")
        return
    key, signature = (bytes.fromhex(receipt["signature"][name]) for name in ("public_key", "signature"))
    ok = verify(key, signature, b"ree-signature/1\0" + digest)
    check(ok is not False, f"{path.name}: signature")
    check(not verify(key, signature, b"ree-signature/1\0" + digest[:-1] + b"?"), f"{path.name}: another message")
    if ok is None:
        print("signatures: not checked (neither cryptography nor openssl)")


def check_private(folder):
    """The blinded hashes of the private example are the blinded hashes of the open example."""
    salt = bytes(range(32))
    closed = parse((folder / "private-2.receipt.json").read_text())["body"]
    open_one = parse((folder / "text-2.receipt.json").read_text())["body"]
    check(closed["private"]["salt_sha256"] == sha256("ree-salt/1", salt).hex(), "private-2: salt")
    for path in (["prompt", "tokens_sha256"], ["prompt", "text_sha256"], ["output", "tokens_sha256"],
                 ["output", "text_sha256"], ["output", "logits_sha256"], ["trace", "root"]):
        digest = bytes.fromhex(walk(open_one, path))
        check(walk(closed, path) == sha256("ree-blind/1", salt + digest).hex(), f"private-2: {path}")


def wrong_receipts(receipt):
    """Yields copies of a receipt, each invalid by one change."""
    for path in (["body"], ["body", "model"], ["body", "sampling"], ["signature"], [], ["body", "trace"]):
        for key in list(walk(receipt, path)):
            if path + [key] in (["signature"], ["unbound"], ["body", "tokenizer_sha256"], ["body", "trace"],
                                ["body", "request_sha256"], ["body", "critical"]):
                continue  # optional members
            if path + [key] == ["body", "extensions"]:
                continue  # a schema cannot state that `critical` names existing members
            copy = json.loads(json.dumps(receipt))
            del walk(copy, path)[key]
            yield f"without {path} {key}", copy
        copy = json.loads(json.dumps(receipt))
        walk(copy, path)["more"] = 1
        yield f"with more in {path}", copy
    for path, value in (
        (["body", "sampling", "seed"], 7),
        (["body", "sampling", "seed"], "07"),
        (["body", "sampling", "top_p"], 0),
        (["body", "sampling", "eos"], [-1]),
        (["body", "model", "graph_sha256"], "A" * 64),
        (["body", "output", "finish_reason"], "end"),
        (["body", "output", "n_tokens"], 0.5),
        (["body", "kind"], "tensors"),
        (["body", "trace"], None),
        (["schema"], "ree-receipt/3"),
        (["receipt_hash"], "0" * 63),
        (["signature", "signature"], "0" * 64),
        (["unbound", "device"], 1),
    ):
        copy = json.loads(json.dumps(receipt))
        walk(copy, path[:-1])[path[-1]] = value
        yield f"{path} is {value!r}", copy
    copy = json.loads(json.dumps(receipt))
    del copy["body"]["tokenizer_sha256"]
    yield "text without a tokenizer", copy
    for key, value in (("private", {}), ("private", {"salt_sha256": "0" * 64}), ("request_sha256", "0"),
                       ("extensions", {}), ("critical", [])):
        copy = json.loads(json.dumps(receipt))
        copy["body"][key] = value
        yield f"{key} is {value!r}", copy


def walk(value, path):
    for key in path:
        value = value[key]
    return value


def check_schema(path, receipts, ree_run):
    """The schema accepts the receipts and refuses each wrong one; with --ree-run, ree-run refuses the
    wrong ones too."""
    validator = None
    try:
        import jsonschema
    except ImportError:
        print("schema: not checked (no jsonschema package)")
    else:
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
    for receipt in receipts if validator else []:
        check(validator.is_valid(json.loads(receipt.read_text())), f"schema: {receipt.name}")
    for name in ("text-signed", "text-2-signed"):
        whole = json.loads((receipts[0].parent / f"{name}.receipt.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "receipt.json")
            for what, receipt in wrong_receipts(whole):
                if validator:
                    check(not validator.is_valid(receipt), f"schema: {name} {what}")
                file.write_text(json.dumps(receipt))
                if ree_run:
                    code = subprocess.run([ree_run, "validate", file], capture_output=True).returncode
                    check(code == 2, f"ree-run validate: {name} {what}: exit code {code}")


def check_numerics(path, folder):
    """The worked examples in NUMERICS.md equal the results of these functions."""
    text = re.sub(r"\s+", " ", path.read_text())
    leaves = [sha256("leaf", struct.pack("<Q", i)) for i in range(3)]
    receipt = parse((folder / "ids.receipt.json").read_text())
    private = parse((folder / "private-2.receipt.json").read_text())
    for what, value in {
        "tokens": sha256("ree-tokens/1", struct.pack("<5i", 1, 9038, 2501, 263, 931)).hex(),
        "text": sha256("ree-text/1", b"Once upon a time").hex(),
        "leaf": leaves[0].hex(),
        "root": root(leaves).hex(),
        "top": top(leaves).hex(),
        "canonical": canonical({"b": [1e21, 0.000001, "\u20ac\n"], "a": {}}),
        "canonical hash": sha256("ree-receipt/2", canonical({"b": [1e21, 0.000001, "\u20ac\n"], "a": {}}).encode()).hex(),
        "receipt": receipt["receipt_hash"],
        "private receipt": private["receipt_hash"],
        "salt": private["body"]["private"]["salt_sha256"],
    }.items():
        check(value in text, f"NUMERICS.md: {what} {value}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--schema", type=pathlib.Path)
    parser.add_argument("--numerics", type=pathlib.Path)
    parser.add_argument("--ree-run")
    parser.add_argument("--program", help="receipt_vectors, for more numbers")
    args = parser.parse_args()
    receipts = sorted(args.folder.glob("*.receipt.json"))
    check(len(receipts) >= 8, "there are receipts")
    check_canonical(args.folder)
    check_numbers((args.folder / "numbers.txt").read_text().splitlines(), "numbers.txt")
    if args.program:
        done = subprocess.run([args.program, "--numbers", "30000"], capture_output=True, text=True, check=True)
        check_numbers(done.stdout.splitlines(), args.program)
    check_trees(args.folder)
    for receipt in receipts:
        check_receipt(receipt)
    check_private(args.folder)
    if args.schema:
        check_schema(args.schema, receipts, args.ree_run)
    if args.numerics:
        check_numerics(args.numerics, args.folder)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
