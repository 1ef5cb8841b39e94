#!/usr/bin/env python3
"""The Python package: values in and out without copies, hashes as ree-run prints them, errors,
Ctrl-C, threads, fork, pickling.

    PYTHONPATH=build/python tests/python/session.py --ree-run build/ree-run
"""
import array
import gc
import hashlib
import os
import pathlib
import pickle
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "tools" / "sample"
for folder in ("harness", "cli"):
    sys.path.insert(0, str(HERE.parent / folder))
import harness  # noqa: E402
from harness import check, fails  # noqa: E402
import onnx_writer as onnx  # noqa: E402

try:
    import numpy as np
except ImportError:
    harness.skip("NumPy is not installed")
import ree  # noqa: E402
from ree import tensors  # noqa: E402

DIGITS, SEVEN = SAMPLE / "digits.onnx", SAMPLE / "seven.npy"


def identity(dtype, shape=("n", "m")):
    x, y = onnx.port("x", dtype, shape), onnx.port("y", dtype, shape)
    return onnx.model([onnx.node("Identity", ["x"], ["y"])], [x], [y], opset=21)


def address(struct):
    return int(tensors.ffi.cast("uintptr_t", struct.data))


def long_model(n):
    """A chain of n products of 512 x 512 matrices, one dispatch each."""
    x, y = onnx.port("x", onnx.FLOAT, [512, 512]), onnx.port(f"v{n}", onnx.FLOAT, [512, 512])
    nodes = [onnx.node("MatMul", [f"v{i}" if i else "x", "x"], [f"v{i + 1}"]) for i in range(n)]
    return onnx.model(nodes, [x], [y])


def test_types():
    random = np.random.default_rng(1)
    for name in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                 "uint64", "bool"):
        with ree.Session(identity(tensors.NUMBERS[name])) as session:
            for shape in ((300, 5), (3, 5), (3, 5), (0, 4), (1, 1)):
                x = random.integers(0, 2 if name == "bool" else 100, shape).astype(name)
                y = session.run({"x": x})["y"]
                check(y.dtype == x.dtype and y.shape == shape and y.tobytes() == x.tobytes(), f"{name} {shape}")
                check(not y.flags.owndata or y.nbytes <= 1024, f"{name}: the output was copied")
                check(y.flags.writeable, f"{name}: the output can be changed")
            x0 = random.integers(0, 2, (4, 6)).astype(name)
            forms = {"transposed": np.asfortranarray(x0), "strided": np.repeat(x0, 2, axis=1)[:, ::2],
                     "big-endian": x0.astype(x0.dtype.newbyteorder(">")),
                     "read-only": np.frombuffer(x0.tobytes(), name).reshape(4, 6),
                     "not aligned": np.frombuffer(b"x" + x0.tobytes(), name, 24, 1).reshape(4, 6)}
            for form, x in forms.items():
                y = session.run({"x": x})["y"]
                check(np.array_equal(x, y) and y.tobytes() == np.ascontiguousarray(x0).tobytes(), f"{name}, {form}")


def test_no_copies():
    port = ree.Session(identity(onnx.FLOAT)).inputs[0]
    x = np.arange(12, dtype="f4").reshape(3, 4)
    for form, value in (("NumPy", x), ("DLPack", OnlyDLPack(x)), ("buffer", memoryview(x))):
        inputs = tensors.Inputs(1)
        inputs.set(0, tensors.ffi.NULL, value, port)
        struct = inputs.structs[0]
        check(address(struct) == x.ctypes.data, f"{form}: the input was copied")
        check(struct.nbytes == x.nbytes and struct.rank == 2 and list(struct.dims[0:2]) == [3, 4], form)
    with ree.Session(identity(onnx.FLOAT)) as session:
        for value in (OnlyDLPack(x), memoryview(x), x.tolist()):
            check(session.run({"x": value})["y"].tobytes() == x.tobytes(), type(value).__name__)
    check(sys.getrefcount(x) < 10, "inputs stay referenced after the run")


def test_repeated():
    """Runs with inputs of the same types and shapes take a shorter way."""
    add = onnx.model([onnx.node("Sub", ["a", "b"], ["c"])], [onnx.port("a", onnx.FLOAT, ["n"]),
                                                              onnx.port("b", onnx.FLOAT, ["n"])],
                     [onnx.port("c", onnx.FLOAT, ["n"])])
    with ree.Session(add) as session:
        def right(a, b, what):
            check(session.run({"a": a, "b": b})["c"].tobytes() == (a.astype("f4") - b).tobytes(), what)
            check(session.run({"b": b, "a": a})["c"].tobytes() == (a.astype("f4") - b).tobytes(), f"{what}, turned")
        a, b = np.arange(40, dtype="f4"), np.ones(40, "f4")
        for what, x in (("first", a), ("again", a), ("other data", a * 2), ("shorter", a[:7]), ("strided", a[::2]),
                        ("reversed", a[::-1]), ("big-endian", a.astype(">f4")), ("a", a), ("empty", a[:0])):
            right(x, b[:len(x)], what)
        last = session._repeated.matching({"a": a[:1], "b": b[:1]})  # pylint: disable=protected-access
        check(last is None, "another shape")
        right(a, b, "again")
        structs, data = session._repeated.matching({"b": b, "a": a})  # pylint: disable=protected-access
        check([int(tensors.ffi.cast("uintptr_t", pointer)) for pointer in data] == [a.ctypes.data, b.ctypes.data] and
              structs[0].nbytes == a.nbytes, "without a copy")
        for what, inputs in (("float64", {"a": a.astype("f8"), "b": b}), ("missing", {"a": a}),
                             ("unknown", {"a": a, "x": b}), ("one too many", {"a": a, "b": b, "x": b}),
                             ("another length", {"a": a, "b": b[:3]})):
            with fails(ree.InvalidError):
                session.run(inputs)
            right(a, b, f"after {what}")
        stop, wrong = threading.Event(), []

        def work(n):
            while not stop.is_set():
                if session.run({"a": a[:n], "b": b[:n]})["c"].tobytes() != (a[:n] - b[:n]).tobytes():
                    wrong.append(n)
        threads = [threading.Thread(target=work, args=(n,)) for n in (3, 20, 40)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        check(not wrong, f"threads with other shapes: {len(wrong)} wrong")


def test_changing_inputs():
    """Mappings and arrays that change while a run reads them, and arrays given for a sequence."""
    add = onnx.model([onnx.node("Sub", ["a", "b"], ["c"])], [onnx.port("a", onnx.FLOAT, ["n"]),
                                                              onnx.port("b", onnx.FLOAT, ["n"])],
                     [onnx.port("c", onnx.FLOAT, ["n"])])
    large, small = np.arange(200000, dtype="f4"), np.ones(3, "f4")
    inputs = {"a": large, "b": large}

    def replace(what, done, total):
        inputs["a"], inputs["b"] = small, small
    with ree.Session(add, progress=replace) as session:
        for _ in range(3):
            n = len(inputs["a"])
            check(session.run(inputs)["c"].shape == (n,), f"{n} elements")
    with ree.Session(add) as session:
        stop = threading.Event()

        def swap():
            while not stop.is_set():
                inputs.update(a=small, b=small)
                inputs.update(x=1)
                inputs.update(a=large, b=large)
                inputs.pop("x", None)
        thread = threading.Thread(target=swap)
        thread.start()
        wrong = 0
        for _ in range(300):
            try:
                wrong += session.run(inputs)["c"].shape not in ((3,), (200000,))
            except (ree.InvalidError, RuntimeError):
                pass
        stop.set()
        thread.join()
        check(not wrong, f"{wrong} outputs of another shape")
    s = onnx.port("s", onnx.FLOAT, ["n"], onnx.SEQUENCE)
    with ree.Session(onnx.model([onnx.node("Identity", ["s"], ["t"])], [s],
                                [onnx.port("t", onnx.FLOAT, ["n"], onnx.SEQUENCE)])) as session:
        for i in range(4):
            made = session.run({"s": np.full((2, 3), i, "f4")})["t"]
            check([item.tolist() for item in made] == [[i] * 3] * 2, f"an array as a sequence, {i}: {made}")


def test_interrupted_often():
    """A session stays usable however often, and wherever, an exception of a signal comes."""
    def interrupt(*_):
        raise KeyboardInterrupt
    x, model = np.ones((4, 4), "f4"), identity(onnx.FLOAT)
    old = signal.signal(signal.SIGALRM, interrupt)
    n = 0
    with ree.Session(model) as session:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + (n % 50) * 1e-5)
                for _ in range(200):
                    session.run({"x": x})
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                n += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(session.run({"x": x})["y"].tobytes() == x.tobytes()))
        thread.start()
        thread.join(20)
        check(seen == [True], f"after {n} interrupts, another thread: {seen}")
    check(n > 10, f"only {n} interrupts")


def test_lists():
    for dtype, good, bad in (("float32", [1.5, 16777216], [16777217]), ("float16", [2048, 0.1], [2049]),
                             ("float32", [1e38, float("inf")], [1e300]), ("float16", [65504], [70000]),
                             ("int8", [-128, 127], [128]), ("uint8", [255], [-1]), ("bool", [0, 1, True], [2])):
        with ree.Session(identity(tensors.NUMBERS[dtype], ("n",))) as session:
            check(session.run({"x": good})["y"].tolist() == np.array(good, dtype).tolist(), f"{dtype} {good}")
            with fails(ree.InvalidError, "cannot represent"):
                session.run({"x": bad})


def test_one_model_two_devices():
    """Threads run sessions of one model, on two devices; the model is used by one of them at a time."""
    model, seven = ree.Model(DIGITS), np.load(SEVEN)
    sessions = [ree.Session(model), ree.Session(model)]
    expected, seen = ree.sha256(sessions[0].run({"image": seven})), []
    threads = [threading.Thread(target=lambda session=session: seen.extend(
        ree.sha256(session.run({"image": seven})) for _ in range(30))) for session in sessions]
    for thread in threads:
        thread.start()
    hashes = {model.weights_sha256 for _ in range(10)}
    for thread in threads:
        thread.join()
    check(len(seen) == 60 and set(seen) == {expected} and len(hashes) == 1, "the same outputs")
    raised = []

    def ask(what, done, total):
        try:
            model.graph_sha256  # pylint: disable=pointless-statement
        except ree.Error as e:
            raised.append(str(e))
    with ree.Session(model, progress=ask) as session:
        session.run({"image": seven})
    check(raised and "the model is in use" in raised[0], f"a callback that uses the model: {raised}")


class OnlyDLPack:
    """An array of a library that is not NumPy."""
    def __init__(self, value):
        self.value = value

    def __dlpack__(self):
        return self.value.__dlpack__()

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()


def test_other_values():
    text = np.array([["a", "größer"], ["", "x" * 300]])
    with ree.Session(identity(onnx.STRING)) as session:
        y = session.run({"x": text})["y"]
        check(y.tolist() == text.tolist(), f"strings: {y}")
        with fails(ree.InvalidError, "input 'x'", "NUL"):
            session.run({"x": np.array([["a\0b"]], dtype=object)})
        with fails(ree.InvalidError, "input 'x'", "int"):
            session.run({"x": np.array([[1]], dtype=object)})
    s = onnx.port("s", onnx.FLOAT, None, onnx.SEQUENCE)
    t = onnx.port("t", onnx.FLOAT, None, onnx.SEQUENCE)
    with ree.Session(onnx.model([onnx.node("Identity", ["s"], ["t"])], [s], [t])) as session:
        items = [np.ones((2, 3), "f4"), np.zeros(4, "f4")]
        out = session.run({"s": items})["t"]
        check(len(out) == 2 and all(np.array_equal(a, b) for a, b in zip(items, out)), "a sequence")
        check(session.run({"s": []})["t"] == [], "an empty sequence")
        check(session.inputs[0].kind == "sequence", "kind")
    o = onnx.port("o", onnx.FLOAT, [2], onnx.OPTIONAL)
    has = onnx.port("has", onnx.BOOL, [])
    with ree.Session(onnx.model([onnx.node("OptionalHasElement", ["o"], ["has"])], [o], [has], opset=18)) as session:
        check(session.inputs[0].nullable, "nullable")
        check(not session.run({"o": None})["has"] and session.run({"o": np.ones(2, "f4")})["has"], "absent values")
    with ree.Session(identity(onnx.FLOAT, [])) as session:
        y = session.run({"x": 2.5})["y"]
        check(y.shape == () and y == 2.5, "a number")


def test_hashes():
    x = np.load(SEVEN)
    wanted = re.search(r"^sha256  (\w{64})$", harness.run(ree_run, DIGITS, "--input", f"image={SEVEN}"), re.M)[1]
    for threads in (1, 2):
        with ree.Device("cpu", n_threads=threads) as device, ree.Session(DIGITS, device) as session:
            outputs = session.run({"image": x})
            check(ree.sha256(outputs) == wanted, f"{threads} threads: {ree.sha256(outputs)}, ree-run: {wanted}")
            check(int(outputs["probabilities"].argmax()) == 7, "the digit")
            check(list(session.run({"image": x}, ["probabilities"])) == ["probabilities"], "chosen outputs")
            stats = session.stats()
            check(stats["n_dispatches"] > 0 and stats["n_binds"] == 1 and stats["n_bind_hits"] == 1, f"{stats}")
            session.bind({"image": np.zeros((2, 1, 28, 28), "f4")})
            check(session.stats()["n_binds"] == 2, "bind")
    model = ree.Model(DIGITS.read_bytes())
    shown = harness.run(ree_run, "inspect", "--hash", DIGITS)
    check(model.graph_sha256 in shown and model.weights_sha256 in shown, "the model's hashes")
    with ree.Session(model) as session, ree.Session(model, fuse=False) as unfused:
        check(ree.sha256(session.run({"image": x})) == ree.sha256(unfused.run({"image": x})) == wanted, "one model")
    example = np.array([1, -0.0], "f4")  # NUMERICS.md, section 9
    check(ree.sha256({"y": example}) == "abb685a877a9aea244e7c070d013b2e76a65b0bc6e7d1bb623867ca2e0b25acb", "example")


def test_errors():
    x = np.load(SEVEN)
    with ree.Session(DIGITS) as session:
        for inputs, kind, *words in (({}, ree.InvalidError, "input 'image' is missing", "float32[batch,1,28,28]"),
                                     ({"image": x.astype("f8")}, ValueError, "float64", "expected float32"),
                                     ({"picture": x}, ree.InvalidError, "no input 'picture'", "image"),
                                     ({"image": x[..., :5]}, ree.InvalidError, "[1,1,28,5]"),
                                     ({"image": x.astype("c8")}, ree.UnsupportedError, "input 'image'", "complex64"),
                                     ({"image": np.zeros((1,) * 9, "f4")}, ree.UnsupportedError, "rank 9"),
                                     ({"image": [[1], [2, 3]]}, ree.InvalidError, "input 'image'"),
                                     ({"image": object()}, TypeError, "input 'image'", "object"),
                                     ({"image": memoryview(x.reshape(-1))[::2]}, ree.UnsupportedError,
                                      "not contiguous")):
            with fails(kind, *words):
                session.run(inputs)
        with fails(ree.InvalidError, "no output 'none'", "probabilities"):
            session.run({"image": x}, ["none"])
        check(session.run({"image": x}), "usable after errors")
    with fails(ree.Error, "closed"):
        session.run({"image": x})
    session.close()
    with fails(ree.NotFoundError, "nothing.onnx"):
        ree.Session("nothing.onnx")
    with fails(ree.InvalidError):
        ree.Model(b"not a model")
    with fails(ree.UnsupportedError, "NoSuchOperator"):
        ree.Model(onnx.model([onnx.node("NoSuchOperator", ["x"], ["y"])], [onnx.port("x", onnx.FLOAT, [1])],
                             [onnx.port("y", onnx.FLOAT, [1])]))
    with fails(ree.InvalidError, "tpu"):
        ree.Device("tpu")
    with fails(ree.InvalidError, "mmx"):
        ree.Device("cpu", cpu_isa="mmx")
    with fails(ValueError, "reproducible", "fast"):
        ree.Device("cpu", operation_set="fast")
    device = ree.Device("cpu")
    session = ree.Session(DIGITS, device)
    with fails(ree.Error, "open sessions"):
        device.close()
    session.close()
    device.close()
    with fails(ree.Error, "closed"):
        device.facts()
    check(any(listing.spec == "cpu" for listing in ree.devices()), "devices")


def test_interrupt():
    x = np.full((512, 512), 2.0 ** -10, "f4")
    reports = []
    with ree.Session(long_model(3000)) as session:
        began = time.monotonic()
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            session.run({"x": x})
            check(False, "Ctrl-C did not end the run")
        except KeyboardInterrupt:
            check(time.monotonic() - began < 10, "Ctrl-C ended the run late")
        timer.join()
    with ree.Session(long_model(200), progress=lambda *report: reports.append(report)) as session:
        check(session.run({"x": x}), "with a progress function")
        check(all(done <= total for _, done, total in reports), f"{reports}")
    with ree.Session(long_model(3000), progress=lambda what, done, total: what != "running") as session:
        with fails(ree.Cancelled):
            session.run({"x": x})
    for model in (long_model(3000), ree.Model(long_model(3000))):  # raised while it loads, while it runs
        with fails(KeyError, "key"):
            ree.Session(model, progress=lambda *report: {}["key"]).run({"x": x})
    with fails(TypeError, "progress"):
        ree.Session(DIGITS, progress=3)


def test_threads():
    x = np.load(SEVEN)
    with ree.Session(DIGITS) as session:
        wanted = ree.sha256(session.run({"image": x}))
        hashes = []
        workers = [threading.Thread(target=lambda: hashes.extend(ree.sha256(session.run({"image": x}))
                                                                 for _ in range(50))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        check(len(hashes) == 200 and set(hashes) == {wanted}, "one session, four threads")
    counted, running = [0], [True]

    def count():
        while running[0]:
            counted[0] += 1
            time.sleep(0.001)
    counter = threading.Thread(target=count)
    with ree.Session(long_model(300)) as session:
        counter.start()
        session.run({"x": np.zeros((512, 512), "f4")})
        seen, running[0] = counted[0], False
        counter.join()
    check(seen >= 5, f"other threads ran {seen} times while the device worked")


def test_fork():
    x = np.load(SEVEN)
    session = ree.Session(DIGITS)
    wanted = ree.sha256(session.run({"image": x}))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            session.run({"image": x})
        except ree.Error as e:
            code = 0 if "forked" in str(e) else 2
        try:
            session.close()
        finally:
            os._exit(code)
    check(os.waitpid(child, 0)[1] == 0, "a session in a forked process is refused")
    check(ree.sha256(session.run({"image": x})) == wanted, "after the fork")
    # A child that ends as usual, with the device and its threads open.
    code = """
import os, sys, numpy, ree
session = ree.Session(sys.argv[1])
session.run({"image": numpy.load(sys.argv[2])})
child = os.fork()
if child:
    sys.exit(os.waitpid(child, 0)[1] != 0)
"""
    done = subprocess.run([sys.executable, "-c", code, DIGITS, SEVEN], timeout=60, check=False)
    check(done.returncode == 0, "a forked process ends")
    # A child opens the CPU again, although the device was closed before the fork.
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        code = 1
        try:
            ree.Device("cpu")
        except ree.Error as e:
            with ree.Session(DIGITS, ree.Device("cpu", n_threads=1)) as own:
                code = 0 if "spawn" in str(e) and ree.sha256(own.run({"image": x})) == wanted else 2
        os._exit(code)
    check(os.waitpid(child, 0)[1] == 0, "the CPU in a forked process has one thread")
    for thing in (session, session.device, session.model):
        with fails(TypeError, "cannot be pickled"):
            pickle.dumps(thing)
    session.close()


def test_memory():
    """Outputs own their memory, also after the session is gone, and release it."""
    with ree.Session(identity(onnx.FLOAT)) as session:
        x = np.ones((512, 512), "f4")  # 1 MiB
        y = session.run({"x": x})["y"]

        def resident():
            with open("/proc/self/statm", encoding="ascii") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        before = resident()
        for _ in range(300):
            session.run({"x": x})
        gc.collect()
        check(resident() - before < 64 << 20, f"300 runs keep {(resident() - before) >> 20} MiB")
    del session
    gc.collect()
    check(np.array_equal(y, x), "an output outlives its session")


def test_without_numpy():
    code = """
import array, sys
sys.modules["numpy"] = None
import ree
x = array.array("f", [1, 2, 3, 4, 5, 6])
with ree.Session(open(sys.argv[1], "rb").read()) as session:
    y = session.run({"x": memoryview(x).cast("B").cast("f", (2, 3))})["y"]
    print(y.tolist(), y.format, y.shape)
    try:
        session.run({"x": [1.0]})
    except TypeError as e:
        print(e)
"""
    path = pathlib.Path(work) / "identity.onnx"
    path.write_bytes(identity(onnx.FLOAT))
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    check(lines and lines[0] == "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] f (2, 3)", f"{done}")
    check(len(lines) == 2 and "needs NumPy" in lines[1], f"{done}")
    with ree.Session(identity(onnx.FLOAT)) as session:
        y = session.run({"x": memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3))})["y"]
        check(y.tolist() == [[0, 1, 2], [3, 4, 5]], "a buffer")


def test_lifetime():
    """Devices, models and sessions in one garbage cycle; use and release within a callback."""
    code = """
import sys, numpy, ree
device = ree.Device("cpu")
session = ree.Session(sys.argv[1], device, progress=lambda *report: None)  # the function's globals make a cycle
session.run({"image": numpy.load(sys.argv[2])})
"""
    done = subprocess.run([sys.executable, "-c", code, DIGITS, SEVEN], timeout=60, check=False)
    check(done.returncode == 0, f"a program ends with its objects open: {done.returncode}")
    x = np.full((512, 512), 2.0 ** -10, "f4")
    for use in (lambda session: session.run({"x": x}), lambda session: session.close(),
                lambda session: session.device.close(), lambda session: session.stats()):
        said = []

        def report(what, done, total, use=use, said=said):
            try:
                if what == "running":
                    use(said[0])
            except ree.Error as e:
                said.append(str(e))
        with ree.Session(long_model(100), progress=report) as session:
            said.append(session)
            session.run({"x": x})
        check(len(said) > 1 and all("is running" in text for text in said[1:]), f"{said[1:]}")
    # A process that is forked while another thread runs.
    runs = threading.Event()
    session = ree.Session(long_model(100), progress=lambda what, done, total: what != "running" or runs.set() is None)
    worker = threading.Thread(target=session.run, args=({"x": x},))
    worker.start()
    check(runs.wait(60), "the run began")
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        code = 1
        try:
            session.run({"x": x})
        except ree.Error as e:
            code = 0 if "forked" in str(e) and repr(session) else 2
        os._exit(code)
    check(os.waitpid(child, 0)[1] == 0, "forked during a run")
    worker.join()
    session.close()


def test_sequences_have_hashes():
    """ree.sha256 of a sequence follows NUMERICS.md, section 9."""
    def tensor(a, number):
        return hashlib.sha256(b"ree-tensor/1\0" + struct.pack("<II", number, a.ndim)
                              + struct.pack(f"<{a.ndim}q", *a.shape) + a.tobytes()).digest()
    items = [np.array([1, 2], "i8"), np.array([[3]], "i8")]
    sequence = hashlib.sha256(b"ree-sequence/1\0" + struct.pack("<IQ", 7, 2)
                              + b"".join(tensor(a, 7) for a in items)).digest()
    wanted = hashlib.sha256(b"ree-tensors/1\0" + struct.pack("<I", 1) + b"t" + sequence).hexdigest()
    check(ree.sha256({"t": items}) == wanted, "a sequence")
    for value in ({"t": []}, {"t": None}):
        with fails(ValueError, "type"):
            ree.sha256(value)
    with ree.Session(identity(onnx.INT64)) as session:
        for value in ([[1.5, 2.0]], [["a", "b"]]):
            with fails(ree.InvalidError, "int64"):
                session.run({"x": value})
        check(session.run({"x": [[1, -2]]})["y"].tolist() == [[1, -2]], "a list")
    with ree.Session(identity(onnx.UINT8)) as session:
        with fails(ree.InvalidError, "uint8"):
            session.run({"x": [[-1, 300]]})


def test_device_tensors():
    """Values that stay on the device: the same outputs as of values of the host, states that go round, errors."""
    builder = [onnx.node("Mul", ["s", "x"], ["p"]), onnx.node("Tanh", ["p"], ["s.next"]), onnx.node("Neg", ["p"], ["y"])]
    model = onnx.model(builder, [onnx.port(name, onnx.FLOAT, [2, 3]) for name in ("s", "x")],
                       [onnx.port(name, onnx.FLOAT, [2, 3]) for name in ("s.next", "y")])
    values = {"s": np.arange(6, dtype=np.float32).reshape(2, 3), "x": np.full((2, 3), 1.5, np.float32)}
    with ree.Device("cpu") as device, ree.Session(model, device) as session:
        state, later = ree.DeviceTensor(values["s"], device), ree.DeviceTensor(values["s"], device)
        x = ree.DeviceTensor(values["x"], device)
        check((x.shape, x.dtype) == ((2, 3), "float32"), (x.shape, x.dtype))
        for _ in range(5):
            wanted = session.run(values)
            values["s"] = wanted["s.next"]
            made = session.run({"s": state, "x": x}, into={"s.next": later})
            check(list(made) == ["y"] and made["y"].tobytes() == wanted["y"].tobytes(), made)
            state, later = later, state
        check(state.read().tobytes() == values["s"].tobytes(), state.read())
        mixed = session.run({"s": state, "x": values["x"]}, outputs=["y"])
        check(list(mixed) == ["y"] and mixed["y"].tobytes() == session.run(values)["y"].tobytes(), mixed)
        state.write(np.zeros((2, 3), np.float32))
        check(not session.run({"s": state, "x": x})["y"].any(), "new contents")
        with fails(ree.InvalidError, "the value for a device tensor is float32[2,2], expected float32[2,3]"):
            state.write(np.zeros((2, 2), np.float32))
        with fails(ree.InvalidError, "the model has no output 'z'"):
            session.run({"s": state, "x": x}, into={"z": later})
        with fails(ree.InvalidError, "the device tensor of output 'y' has another use"):
            session.run({"s": state, "x": x}, into={"y": x})
        with fails(ree.InvalidError, "input 'x' is missing"):
            session.run({"s": state})
        with fails(TypeError, "a ree.DeviceTensor is expected for 'y', not ndarray"):
            session.run({"s": state, "x": x}, into={"y": values["x"]})
        with fails(TypeError, "cannot be pickled"):
            pickle.dumps(x)
        with ree.Device("cpu") as other, ree.DeviceTensor(values["x"], other) as elsewhere:
            with fails(ree.InvalidError, "the tensor of input 'x' is on another device"):
                session.run({"s": state, "x": elsewhere})
        with fails(ree.Error, "has open sessions or tensors"):
            device.close()
        for tensor in (state, later, x):
            tensor.close()
            tensor.close()
        with fails(ree.Error, "the device tensor is closed"):
            session.run({"s": state, "x": values["x"]})


def test_readme():
    """The examples of README.md and python/README.md print what they say."""
    root = HERE.parents[1]
    code = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], module_relative=False)[0])"
    done = subprocess.run([sys.executable, "-c", code, root / "README.md"], cwd=root, capture_output=True, text=True,
                          check=False)
    check(">>> import numpy, ree" in (root / "README.md").read_text() and done.returncode == 0, f"{done}")
    text = (root / "python" / "README.md").read_text()
    example = "\n".join(line[4:] for line in re.search(r"\n((?:    .*\n|\n)+)prints", text)[1].splitlines())
    done = subprocess.run([sys.executable, "-c", example], cwd=root, capture_output=True, text=True, check=False)
    wanted = re.search(r"^sha256  (\w{64})$", harness.run(ree_run, DIGITS, "--input", f"image={SEVEN}"), re.M)[1]
    check(done.stdout == f"7 {wanted}\n", f"{done}")
    example = "\n".join(line[4:] for line in re.search(r"## Text\n\n((?:    .*\n|\n)+)", text)[1].splitlines())
    done = subprocess.run([sys.executable, "-c", example], cwd=root, capture_output=True, text=True, check=False)
    check(done.returncode == 0 and ", there was a cheerful boy named Nils" in done.stdout, f"{done}")
    example = "\n".join(line[4:] for line in re.search(r"## Receipts and traces\n\n((?:    .*\n|\n)+)",
                                                       text)[1].splitlines())
    if not any(device.spec.startswith("vulkan") for device in ree.devices()):
        example = example.replace('"vulkan"', '"cpu"')
    given = f"""import numpy, ree
session, generator = ree.Session("model.onnx"), ree.Generator({str(SAMPLE / "stories")!r})
inputs = {{"image": numpy.load({str(SEVEN)!r})}}
ree.create_key("operator.key")
"""
    folder = pathlib.Path(work) / "readme"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(DIGITS.read_bytes())
    done = subprocess.run([sys.executable, "-c", given + example], cwd=folder, capture_output=True, text=True,
                          check=False)
    lines = done.stdout.splitlines()
    check(lines[:1] == ["verified"] and lines[1].startswith("TraceDiff(kind='same'") and lines[2] == "None",
          f"{done}")


ree_run = harness.parser(__doc__).parse_args().ree_run
with tempfile.TemporaryDirectory() as work:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
sys.exit(harness.finish())
