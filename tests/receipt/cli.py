#!/usr/bin/env python3
"""ree-run validate and keygen as programs: findings, messages and exit codes."""

import base64
import json
import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import check  # noqa: E402

ree_run = None
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # RFC 8032, 7.1


def run(*args, **options):
    return harness.call(ree_run, *args, **options)


def findings(*args, code):
    """Returns the names of the failed checks."""
    done = run("validate", *args, "--json")
    check(done.returncode == code, f"{args}: exit code {done.returncode}, expected {code}: {done.stderr}")
    if done.returncode == 2:
        return set()
    report = json.loads(done.stdout)
    check(report["valid"] == (code == 0), f"{args}: valid is {report['valid']}")
    text = run("validate", *args)
    check(text.returncode == code, f"{args}: the same exit code as text")
    check(text.stdout.splitlines()[-1] == ("not valid", "valid")[code == 0], f"{args}: {text.stdout}")
    wrong = [f for f in report["findings"] if not f["ok"]]
    for finding in wrong:
        check(any(line.startswith(finding["what"]) and "WRONG" in line for line in text.stdout.splitlines()), finding)
        check(len(finding["detail"]) > 10, f"{args}: {finding}")
    return {f["what"] for f in wrong}


def cannot(*args, message):
    done = run(*args)
    check(done.returncode == 2, f"{args}: exit code {done.returncode}, expected 2: {done.stderr}")
    check(done.stdout == "", f"{args}: nothing on standard output: {done.stdout}")
    check(done.stderr.startswith("ree-run: ") and message in done.stderr, f"{args}: '{message}' is not in: {done.stderr}")


def good_receipts(data):
    for receipt in sorted(data.glob("*.receipt.json")):
        check(findings(receipt, code=0) == set(), receipt.name)
        done = run("validate", receipt)
        signed = "-signed" in receipt.name
        check((f"signature       ok     by {PUBLIC_KEY}" in done.stdout) == signed, f"{receipt.name}: {done.stdout}")
        check(("signature       -      none" in done.stdout) != signed, f"{receipt.name}: {done.stdout}")
        for key in (data / "rfc8032.pem.pub", data / "rfc8032.pem", PUBLIC_KEY, PUBLIC_KEY.upper()):
            wrong = findings(receipt, "--public-key", key, code=0 if signed else 1)
            check(wrong == (set() if signed else {"public key"}), f"{receipt.name}, {key}: {wrong}")


def altered_receipts(data, folder):
    text = (data / "text-signed.receipt.json").read_text()
    file = folder / "altered.json"

    def altered(old, new, *what):
        check(text.count(old) == 1, f"'{old}' is there once")
        file.write_text(text.replace(old, new))
        wrong = findings(file, code=1)
        check(wrong == set(what), f"{old} -> {new}: {wrong}, expected {what}")

    altered("Once upon a time", "Once upon a tree", "receipt", "prompt text")
    altered("[1,9038,", "[1,9039,", "receipt", "prompt tokens")
    altered("727,471", "727,472", "receipt", "output tokens")
    altered(", there was", ", there is", "receipt", "output text")
    altered('"max_new_tokens":64', '"max_new_tokens":5', "receipt", "counts")
    altered('"context_length":2048', '"context_length":10', "receipt", "counts")
    altered('"eos":[2,', '"eos":[3,', "receipt", "counts")
    altered('"seed":"18446744073709551615"', '"seed":"18446744073709551614"', "receipt")
    altered("0.800000011920929", "0.75", "receipt")
    altered('"finish_reason":"eos"', '"finish_reason":"stop"', "receipt")
    altered('"logits_sha256":"2', '"logits_sha256":"3', "receipt")
    altered('"graph_sha256":"e', '"graph_sha256":"f', "receipt")
    altered('"weights_sha256":"9', '"weights_sha256":"8', "receipt")
    altered('"root":"e', '"root":"f', "receipt")
    altered('"operation_set":"reproducible"', '"operation_set":"default"', "receipt")
    altered('"receipt_hash":"20', '"receipt_hash":"21', "receipt", "signature")
    altered('"signature":"b8', '"signature":"b9', "signature")
    altered(f'"public_key":"{PUBLIC_KEY[:2]}', '"public_key":"d8', "signature")
    # Unbound members and the layout may change.
    file.write_text(text.replace("2026-01-02", "2027-01-02"))
    check(findings(file, code=0) == set(), "unbound")
    file.write_text(json.dumps(json.loads(text), indent=4))
    check(findings(file, code=0) == set(), "layout")
    # Without its signature a receipt is valid, unless --public-key requires one.
    unsigned = json.loads(text)
    del unsigned["signature"]
    file.write_text(json.dumps(unsigned))
    check(findings(file, code=0) == set(), "without a signature")
    check(findings(file, "--public-key", PUBLIC_KEY, code=1) == {"public key"}, "asked for, and none")


def malformed_files(data, folder):
    whole = (data / "text-signed.receipt.json").read_bytes()
    for content, message in (
        (b"", "not JSON"),
        (b"\n", "not JSON"),
        (b"{}", "receipt.schema is missing"),
        (b"[]", "receipt is not an object"),
        (b"null", "receipt is not an object"),
        (whole[:-100], "not JSON"),
        (whole + whole, "not JSON"),
        (whole.replace(b"Once", b"On\0e"), "zero byte"),
        (whole.replace(b"Once", b"On\xffe"), "not UTF-8"),
        (whole.replace(b"Once", b"On\\u0000e"), "u0000 in a string"),
        (whole.replace(b'"kind":"text"', b'"kind":"text","kind":"text"'), "'kind' occurs twice"),
        (whole.replace(b'"max_new_tokens":64', b'"max_new_tokens":64.0000000000000001'), "more than 17 digits"),
        (whole.replace(b'"max_new_tokens":64', b'"max_new_tokens":9007199254740993'), "last digits would be lost"),
        (whole.replace(b'"top_k":40', b'"top_k":40,"more":1'), "body.sampling.more is unknown"),
        (whole.replace(b'"top_k":40,', b""), "body.sampling.top_k is missing"),
        (whole.replace(b'"top_k":40', b'"top_k":040'), "number"),
        (whole.replace(b"ree-receipt/1", b"ree-receipt/9"), "'ree-receipt/9'"),
        (whole.replace(b'"n_tokens":6', b'"n_tokens":7'), "n_tokens is 7"),
        (whole.replace(b'"d75a', b'"D75A'), "signature.public_key"),
        (b"[" * 100000, "64 levels"),
        (b'{"schema":' + b"[" * 60 + b"]" * 60 + b"}", "schema is not a string"),
        (b'{"\\u001b[31m":1,"schema":"\\u001b[31m"}', "\\x1b[31m"),
        (b'{"schema":"ree-receipt/1",' + b",".join(b'"k%d":0' % i for i in range(50000)) + b"}", "body is missing"),
    ):
        file = folder / "malformed.json"
        file.write_bytes(content)
        cannot("validate", file, message=message)
        cannot("validate", file, message="malformed.json")
    cannot("validate", folder / "absent.json", message="absent.json: No such file")
    cannot("validate", folder, message="not a regular file")
    with open(folder / "sparse", "wb") as sparse:
        sparse.truncate(1 << 40)
    cannot("validate", folder / "sparse", message="expected at most 67108864")
    cannot("validate", data / "text.receipt.json", "--public-key", folder / "sparse", message="expected at most 1048576")
    os.mkfifo(folder / "pipe")
    cannot("validate", folder / "pipe", message="not a regular file")


def wrong_usage(data, folder):
    receipt = data / "text-signed.receipt.json"
    cannot("validate", message="no receipt given")
    cannot("validate", receipt, receipt, message="unexpected argument")
    cannot("validate", receipt, "--strict", message="unknown option '--strict'")
    cannot("validate", receipt, "--public-key", message="--public-key requires a value")
    cannot("validate", receipt, "--public-key", folder / "absent", message="absent: No such file")
    cannot("validate", receipt, "--public-key", receipt, message="does not contain an Ed25519 key")
    cannot("validate", receipt, "--public-key", PUBLIC_KEY[:-1], message="No such file")
    cannot("keygen", message="no file for the key given")
    cannot("keygen", folder / "a", folder / "b", message="unexpected argument")
    cannot("keygen", "--bits", message="unknown option")
    for command in ("validate", "keygen"):
        done = run("help", command)
        check(done.returncode == 0 and done.stdout.startswith(f"ree-run {command} "), done.stdout)
        check(done.stdout == run(command, "--help").stdout, f"{command} --help")
        check("exit status:" in done.stdout and max(map(len, done.stdout.splitlines())) <= 100, command)
    check("ree-run validate RECEIPT" in run("--help").stdout, "the overview has it")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([ree_run, "validate", receipt], stdout=full, stderr=subprocess.PIPE, text=True)
            check(done.returncode == 2 and "standard output" in done.stderr, "what was not told was not checked")


def keys(data, folder):
    key, public = folder / "key", folder / "key.pub"
    done = run("keygen", key)
    check(done.returncode == 0 and len(done.stdout) == 65, done.stderr)
    check(stat.S_IMODE(key.stat().st_mode) == 0o600, "the private key is for its owner")
    check("PRIVATE KEY" in key.read_text() and "PUBLIC KEY" in public.read_text(), "PEM files")
    check("PRIVATE" not in public.read_text() and "PRIVATE" not in done.stdout + done.stderr, "it stays private")
    before = key.read_bytes(), public.read_bytes()
    again = run("keygen", key)
    check(again.returncode == 1 and "key: it already exists" in again.stderr, again.stderr)
    check((key.read_bytes(), public.read_bytes()) == before, "nothing was written over")
    check(run("keygen", folder / "other").stdout != done.stdout, "another key each time")
    # A receipt of another key, with the key in each of its forms.
    receipt = data / "text-signed.receipt.json"
    for form in (key, public, done.stdout.strip()):
        check(findings(receipt, "--public-key", form, code=1) == {"public key"}, f"another key: {form}")
    (folder / "taken.pub").write_text("mine")
    again = run("keygen", folder / "taken")
    check(again.returncode == 1 and "taken.pub: " in again.stderr, again.stderr)
    check(not (folder / "taken").exists() and (folder / "taken.pub").read_text() == "mine", "taken.pub")
    again = run("keygen", folder / "none" / "key")
    check(again.returncode == 1 and "No such file" in again.stderr, again.stderr)
    files = sorted(path.name for path in folder.iterdir())

    # Too little space for the first file or for the second.
    for size in (50, 115):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        full = run("keygen", folder / "full", preexec_fn=limit)
        check(full.returncode == 1 and "cannot write it" in full.stderr, full.stderr)
    check(sorted(path.name for path in folder.iterdir()) == files, "nothing is left")


def openssl(data, folder):
    """Our keys and openssl's keys are interchangeable."""
    if not shutil.which("openssl"):
        print("openssl: not here, so its keys were not tried")
        return
    receipt = data / "text-signed.receipt.json"

    def program(*args):
        return subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True)

    run("keygen", folder / "ours")
    shown = program("pkey", "-in", folder / "ours", "-pubout")
    check(shown.stdout == (folder / "ours.pub").read_text(), "openssl reads the private key")
    program("genpkey", "-algorithm", "ed25519", "-out", folder / "theirs")
    check(findings(receipt, "--public-key", folder / "theirs", code=1) == {"public key"}, "their key is read")
    program("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:word", "-out", folder / "locked")
    cannot("validate", receipt, "--public-key", folder / "locked", message="keys with a password are not supported")
    program("genpkey", "-algorithm", "x25519", "-out", folder / "x25519")
    cannot("validate", receipt, "--public-key", folder / "x25519", message="does not contain an Ed25519 key")
    program("genpkey", "-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:1024", "-out", folder / "rsa")
    cannot("validate", receipt, "--public-key", folder / "rsa", message="does not contain an Ed25519 key")


def weak_keys(data, folder):
    """Public keys of small order, for which one signature holds for every message: none of their signatures counts."""
    p = 2 ** 255 - 19
    d = -121665 * pow(121666, -1, p) % p

    def x_of(y):  # a point's x; None: there is no such point
        square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        x = pow(square, (p + 3) // 8, p)
        if x * x % p != square:
            x = x * pow(2, (p - 1) // 4, p) % p
        return x if x * x % p == square else None

    def double(point):
        (x, y), k = point, d * point[0] ** 2 * point[1] ** 2 % p
        return 2 * x * y * pow(1 + k, -1, p) % p, (y * y + x * x) * pow(1 - k, -1, p) % p

    # Any point times the group's odd factor has small order.
    factor = 2 ** 252 + 27742317777372353535851937790883648493

    def add(a, b):
        k = d * a[0] * b[0] * a[1] * b[1] % p
        return ((a[0] * b[1] + a[1] * b[0]) * pow(1 + k, -1, p) % p, (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, p) % p)

    def times(n, point):
        made = (0, 1)
        while n:
            made = add(made, point) if n & 1 else made
            point, n = double(point), n >> 1
        return made

    small = {times(factor, (x_of(y), y)) for y in range(2, 60) if x_of(y) is not None}
    small |= {times(i, point) for point in list(small) for i in range(8)}
    check(len(small) == 8, f"{len(small)} points of small order")
    encodings = {y + alias for _, y in small for alias in (0, p) if y + alias < 2 ** 255}
    receipt = json.loads((data / "text-signed.receipt.json").read_text())
    good = receipt["signature"]["public_key"]
    for y in sorted(encodings):
        for sign in (0, 1 << 255):
            key = (y | sign).to_bytes(32, "little").hex()
            receipt["signature"].update(public_key=key, signature="01" + "00" * 63)
            (folder / "weak.json").write_text(json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")
            check(findings(folder / "weak.json", "--public-key", key, code=1) == {"signature"}, f"a signature by {key}")
    check(len(encodings) == 7 and good not in encodings, f"{len(encodings)} encodings")


def attestations(data, folder):
    """DSSE envelopes: our checks agree with other tools' checks, and a false statement fails."""
    model = HERE.parents[1] / "tools" / "sample" / "digits.onnx"
    image = model.parent / "seven.npy"
    receipt, path, other = folder / "r.json", folder / "r.dsse", folder / "other.json"
    for key in ("operator", "liar"):
        run("keygen", folder / key)
    for where in (receipt, other):
        done = run(model, "--input", image, "--receipt-path", where, "--sign", folder / "operator", "--dsse", path if
                   where == receipt else folder / "other.dsse")
        check(done.returncode == 0, f"--dsse: {done.stderr}")
    public = folder / "operator.pub"
    check(findings(receipt, "--dsse", path, "--public-key", public, code=0) == set(), "an attestation")
    check(findings(receipt, "--dsse", path, "--public-key", folder / "liar.pub", code=1) == {"public key", "attestation"},
          "of another key")
    receipt.write_text(receipt.read_text().replace("}\n", "} \n"))
    check(findings(receipt, "--dsse", path, code=1) == {"attestation"}, "of another file: one byte")
    receipt.write_text(receipt.read_text().replace("} \n", "}\n"))
    envelope = json.loads(path.read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    kind = "application/vnd.in-toto+json"

    def signed(payload, key="operator", keyid=None):
        body = json.dumps(payload).encode() if not isinstance(payload, bytes) else payload
        message, signature = folder / "message", folder / "signature"
        message.write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(body), body))
        subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", folder / key, "-rawin", "-in", message, "-out", signature],
                       check=True)
        return {"payloadType": kind, "payload": base64.b64encode(body).decode(),
                "signatures": [{"keyid": keyid or envelope["signatures"][0]["keyid"],
                                "sig": base64.b64encode(signature.read_bytes()).decode()}]}

    def refused(what, lie, says=""):
        bad = folder / "bad.dsse"
        bad.write_text(lie if isinstance(lie, str) else json.dumps(lie))
        check(findings(receipt, "--dsse", bad, "--public-key", public, code=1) == {"attestation"}, f"attestation: {what}")
        text = run("validate", receipt, "--dsse", bad, "--public-key", public).stdout
        check(says in text, f"attestation: {what}: '{says}' is not in: {text}")

    url_safe = folder / "url-safe.dsse"
    sig = base64.urlsafe_b64encode(base64.b64decode(envelope["signatures"][0]["sig"])).decode()
    url_safe.write_text(json.dumps(dict(envelope, signatures=[dict(envelope["signatures"][0], sig=sig)],
                                        payload=envelope["payload"].translate(str.maketrans("+/", "-_")))))
    check(findings(receipt, "--dsse", url_safe, "--public-key", public, code=0) == set(), "the URL-safe alphabet")
    refused("both alphabets", dict(envelope, payload="+" + envelope["payload"][1:-1] + "-"), "is not base64")
    refused("no signature", dict(envelope, signatures=[]))
    refused("an object of signatures", dict(envelope, signatures={"a": envelope["signatures"][0]}), "no list of signatures")
    refused("another type", dict(envelope, payloadType="text/plain"))
    refused("another payload", dict(envelope, payload=base64.b64encode(json.dumps(statement).encode() + b" ").decode()))
    refused("no base64", dict(envelope, payload=envelope["payload"][:-4] + "===="), "is not base64")
    refused("hyphens", dict(envelope, payload=envelope["payload"] + "----"))
    refused("spaces", dict(envelope, payload=envelope["payload"] + "\n\n\n\n"), "is not base64")
    refused("payload twice", path.read_text().replace("{", '{"payload":"",', 1))
    refused("17 signatures", dict(envelope, signatures=envelope["signatures"] * 17), "it has 17 signatures; the maximum is 16")
    refused("half of it", path.read_text()[:-20])
    cannot("validate", receipt, "--dsse", folder / "none.dsse", message="none.dsse: No such file")
    cannot_write = run(model, "--input", image, "--receipt-path", receipt, "--dsse", path)
    check(cannot_write.returncode == 2 and "--sign" in cannot_write.stderr, "--dsse without a key")
    if not shutil.which("openssl"):
        print("openssl: not here, so no attestation was forged")
        return
    good = folder / "good.dsse"
    good.write_text(json.dumps(signed(statement)))
    check(findings(receipt, "--dsse", good, "--public-key", public, code=0) == set(), "one that openssl signed")
    refused("signed by another, in the operator's name", signed(statement, "liar"))
    refused("two files", signed(dict(statement, subject=statement["subject"] * 2)))
    refused("no file", signed(dict(statement, subject=[])))
    refused("an object of files", signed(dict(statement, subject={"a": statement["subject"][0]})), "no list of subjects")
    refused("another file", signed(dict(statement, subject=[{"name": "r.json", "digest": {"sha256": "0" * 64}}])))
    refused("another predicate", signed(dict(statement, predicateType="https://slsa.dev/provenance/v1")))
    for kind_of in ("urn:ree:receipt:77", "urn:ree:receipt:1", "urn:ree:receipt:2-x", "urn:ree:receipt:"):
        refused("a receipt of another version", signed(dict(statement, predicateType=kind_of)))
    body = statement["predicate"]["body"]
    changed = dict(body, outputs=[dict(body["outputs"][0], sha256="0" * 64)])
    for name, lie in (("another body", dict(statement["predicate"], body=changed)), ("no body", {}),
                      ("more than it", dict(statement["predicate"], note=1))):
        refused(f"{name} in the predicate", signed(dict(statement, predicate=lie)))
    refused("no predicate", signed({k: v for k, v in statement.items() if k != "predicate"}))
    refused("no statement", signed(dict(statement, _type="https://in-toto.io/Statement/v0.1")))
    refused("a key twice", signed(json.dumps(statement)[:-1].encode() + b', "_type": "x"}'))
    refused("no JSON", signed(b"{"))
    try:
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
        from securesystemslib.dsse import Envelope
        from securesystemslib.signer import SSlibKey
    except ImportError:
        print("securesystemslib: not here, so in-toto's own check was not tried")
        return
    key = SSlibKey.from_crypto(load_pem_public_key(public.read_bytes())).to_dict()
    keyid = envelope["signatures"][0]["keyid"]
    check(Envelope.from_dict(envelope).verify([SSlibKey.from_dict(keyid, key)], 1), "in-toto's library agrees")


def main():
    global ree_run
    parser = harness.parser(__doc__)
    parser.add_argument("data", type=pathlib.Path)
    args = parser.parse_args()
    ree_run = args.ree_run
    good_receipts(args.data)
    for part in (altered_receipts, malformed_files, wrong_usage, keys, weak_keys, openssl, attestations):
        with tempfile.TemporaryDirectory() as folder:
            part(args.data, pathlib.Path(folder))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
