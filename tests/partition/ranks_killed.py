#!/usr/bin/env python3
"""If a rank is killed or stopped at any moment, the run ends with an error, and no process is left.

Without options: a few moments of each kind, chosen by the progress of the run, not by the clock.
--random: many random moments. --early: many moments in the first half second, in which MPI
starts."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import mpi  # noqa: E402
from mpi import check  # noqa: E402

DEADLINE = 6
N_RANDOM = 20
N_EARLY = 102
EARLY = 0.5
# mpirun gives the other ranks some seconds to end, and the machine may be busy. This limit of the
# test says nothing about how fast a run must end.
PATIENCE = 240


def state(pid):
    """The letter of the process's state in /proc: T if it is stopped, Z if it ended. Z, too, if there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def exists(pid):
    return state(pid) != "Z"


def stop(pids):
    """Stops the processes. Returns False if one of them had already ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    while not all(state(pid) in "TZ" for pid in pids):
        time.sleep(0.01)
    return all(state(pid) == "T" for pid in pids)


TEXT = ("--prompt-text", "Once upon a time", "--max-new-tokens", 0, "--ignore-eos", "--logits-hash", "--json")


def resume(args, checkpoint, expected, what):
    """Resumes from the remaining checkpoint in one process and compares the result."""
    done = subprocess.run([args.ree_run, args.model, *map(str, TEXT), "--checkpoint", checkpoint, "--resume"],
                          env=mpi.ENVIRONMENT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if not check(done.returncode == 0, f"{what}: resuming: {done.stderr}"):
        return
    got = json.loads(done.stdout)
    for name in ("tokens_sha256", "logits_sha256"):
        check(got[name] == expected[name], f"{what}: {name} after resuming")


class Run:
    """A run under mpirun that the test disturbs."""

    def __init__(self, args, n, folder, *more):
        self.args, self.n = args, n
        self.checkpoint = folder / "checkpoint.json"
        self.checkpoint.unlink(missing_ok=True)
        arguments = (args.model, *TEXT, "--step-deadline", DEADLINE, "--checkpoint", self.checkpoint,
                     "--checkpoint-every", 1, *more)
        self.path = folder / "output"
        self.output = open(self.path, "wb")
        self.process = subprocess.Popen(mpi.command(args.ree_run, (n, arguments)), env=mpi.ENVIRONMENT,
                                        stdout=self.output, stderr=self.output, stdin=subprocess.DEVNULL)
        self.pids = {}

    def text(self):
        return self.path.read_text(errors="replace")

    def wait_until(self, condition):
        """Waits for the condition. Returns whether it became true before the run ended."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if condition():
                return self.process.poll() is None
            if self.process.poll() is not None:
                return False
            time.sleep(0.001)
        return False

    def has_rank(self, rank):
        self.pids.update(mpi.ranks_of(self.process.pid))
        return rank in self.pids

    def has_all(self):
        self.pids.update(mpi.ranks_of(self.process.pid))
        return len(self.pids) == self.n

    def wait(self):
        """Waits for the run. Returns its exit code; None if it does not end."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None

    def stray(self):
        """Returns the ranks that still exist after mpirun's end. A killed process may take a moment
        to end."""
        end = time.monotonic() + PATIENCE
        while any(map(exists, self.pids.values())) and time.monotonic() < end:
            time.sleep(0.1)
        return [pid for pid in self.pids.values() if exists(pid)]

    def finish(self):
        for pid in self.pids.values():
            if exists(pid):
                os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.output.close()


def judge(run, rank, which, what, expected):
    """Returns whether the run was disturbed; it may have ended before."""
    start = time.monotonic()
    code = run.wait()
    seconds = time.monotonic() - start
    if code == 0:
        return False
    run.pids.update(mpi.ranks_of(run.process.pid))
    stray = run.stray()
    text = run.text()
    if code is None or stray:
        listing = subprocess.run(["ps", "-eo", "pid,ppid,stat,wchan:20,args"], capture_output=True, text=True)
        print("\n".join(line[:120] for line in listing.stdout.splitlines() if "ree-" in line or "mpirun" in line))
        print(text, flush=True)
    check(code is not None, f"{what}: no end within {PATIENCE} s")
    check(not stray, f"{what}: {len(stray)} processes stay")
    if which == signal.SIGSTOP and code is not None:
        named = f"rank {rank} has sent nothing for {DEADLINE} s" in text or "does not participate" in text
        check(named, f"{what}: it is named: {text}")
    kept = run.checkpoint.exists()
    by = "; by its watchdog" if "does not end by itself" in text else ""
    print(f"{what}: exit code {code} after {seconds:.1f} s; {'goes on' if kept else 'nothing kept'}{by}", flush=True)
    if kept and expected:
        resume(run.args, run.checkpoint, expected, what)
    return True


def strike(args, n, rank, which, moment, expected, folder):
    """Disturbs a run. `moment`: seconds after the rank has started, or "generating". Returns
    whether the run was still active at that moment."""
    run = Run(args, n, folder)
    try:
        if not run.wait_until(run.has_all if moment == "generating" else lambda: run.has_rank(rank)):
            return False
        if moment == "generating":
            if not run.wait_until(run.checkpoint.exists):
                return False
        else:
            time.sleep(moment)
        if run.process.poll() is not None:
            return False
        os.kill(run.pids[rank], which)
        when = moment if moment == "generating" else f"after {moment:.3f} s"
        return judge(run, rank, which, f"{which.name} of rank {rank} of {n} {when}", expected)
    finally:
        run.finish()


def until_struck(tries, *arguments):
    """Repeats until a run was disturbed: a run may end before that."""
    for _ in range(tries):
        if strike(*arguments):
            return
    check(False, f"a run was disturbed in {tries} tries: {arguments}")


def few(args, expected, folder):
    for n, rank, which, moment in ((2, 0, signal.SIGKILL, "generating"), (3, 2, signal.SIGKILL, "generating"),
                                   (2, 1, signal.SIGSTOP, "generating"), (2, 0, signal.SIGKILL, 0),
                                   (2, 1, signal.SIGKILL, 0.03), (3, 1, signal.SIGSTOP, 0.01)):
        until_struck(10, args, n, rank, which, moment, expected, folder)


def all_stopped(args, expected, folder):
    """If all ranks are stopped together for longer than the deadline, as by Ctrl-Z, they continue
    afterwards."""
    for _ in range(10):
        run = Run(args, 2, folder)
        try:
            if not run.wait_until(run.has_all) or not run.wait_until(run.checkpoint.exists):
                continue
            if not stop(run.pids.values()):
                continue
            time.sleep(1.5 * DEADLINE)
            for pid in run.pids.values():
                os.kill(pid, signal.SIGCONT)
            code = run.wait()
            if check(code == 0, f"after a stop of all: exit code {code}: {run.text()}"):
                got = json.loads(next(line for line in run.text().splitlines() if line.startswith("{")))
                check(got["logits_sha256"] == expected["logits_sha256"], "after a stop of all: the same logits")
            return
        finally:
            run.finish()
    check(False, "all ranks were stopped in 10 tries")
    check(False, "a run was stopped in 10 tries")


def at_random(args, expected, folder, most):
    draw = random.Random(7)
    done = tries = 0
    while done < N_RANDOM and tries < 5 * N_RANDOM:
        tries += 1
        n = draw.choice((2, 3))
        done += strike(args, n, draw.randrange(n), (signal.SIGKILL, signal.SIGSTOP)[done % 2],
                       draw.uniform(0, 0.9 * most), expected, folder)
    check(done == N_RANDOM, f"{done} of {N_RANDOM} moments were in time")


def early(args, folder):
    done = 0
    for i in range(N_EARLY):
        n = 2 + i % 2
        # In every sixth run the rank is stopped, not killed. Most moments are while MPI starts.
        which = signal.SIGSTOP if i % 6 == 5 else signal.SIGKILL
        done += strike(args, n, i % n, which, EARLY * (i / N_EARLY) ** 2, None, folder)
    # A run without a disturbance may end before the later moments; 95 were in time on a busy machine.
    check(done >= N_EARLY // 2, f"{done} of {N_EARLY} moments were in time")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--model", required=True, type=pathlib.Path)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--early", action="store_true")
    args = parser.parse_args()
    mpi.need_mpi(args.ree_run)
    start = time.monotonic()
    whole = mpi.run(args.ree_run, (2, (args.model, *TEXT)))
    if not check(whole.returncode == 0, f"undisturbed: {whole.stderr}"):
        mpi.finish()
    expected = json.loads(whole.stdout)
    most = time.monotonic() - start
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if args.random:
            at_random(args, expected, folder, most)
        elif args.early:
            early(args, folder)
        else:
            few(args, expected, folder)
            all_stopped(args, expected, folder)
    mpi.finish()


main()
