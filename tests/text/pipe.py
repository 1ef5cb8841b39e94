"""The Python side of tokenizer_pipe."""

import array
import json
import pathlib
import struct
import subprocess
import tempfile

ADD_SPECIAL, PARSE_SPECIAL, SKIP_SPECIAL = 1, 2, 4


class Failure(Exception):
    pass


class Tokenizer:
    """A tokenizer of ree. `what` is a path, or the contents of a tokenizer.json as a dict; then
    `files` are the contents of files next to it, by name."""

    def __init__(self, program, what, **files):
        self.folder = None
        if isinstance(what, dict):
            self.folder = tempfile.TemporaryDirectory()
            root = pathlib.Path(self.folder.name)
            (root / "tokenizer.json").write_text(json.dumps(what), encoding="utf-8")
            for name, contents in files.items():
                (root / f"{name}.json").write_text(json.dumps(contents), encoding="utf-8")
            what = root
        self.process = subprocess.Popen([program, str(what)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        try:
            self.sha256, size, self.family = self._answer().decode().split()
        except Failure:
            self.close()
            raise
        self.vocab_size = int(size)

    def _read(self, n):
        data = self.process.stdout.read(n)
        if len(data) != n:
            raise RuntimeError("tokenizer_pipe ended: its message is above")
        return data

    def _answer(self):
        status, size = struct.unpack("=II", self._read(8))
        data = self._read(size)
        if status:
            raise Failure(data.decode("utf-8", "replace"))
        return data

    def _ask(self, what, flags, data):
        self.process.stdin.write(what + struct.pack("=II", flags, len(data)) + data)
        self.process.stdin.flush()
        return self._answer()

    def encode(self, text, flags=0):
        if isinstance(text, str):
            text = text.encode("utf-8")
        return array.array("i", self._ask(b"e", flags, text)).tolist()

    def decode(self, ids, flags=0):
        return self._ask(b"d", flags, array.array("i", ids).tobytes()).decode("utf-8")

    def chat(self, messages, reply=True, family=""):
        data = family.encode() + b"\0" + json.dumps(messages).encode()
        return self._ask(b"c", int(reply), data).decode("utf-8")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        code = self.process.wait()
        if self.folder:
            self.folder.cleanup()
        if code:
            raise RuntimeError(f"tokenizer_pipe: exit code {code}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
