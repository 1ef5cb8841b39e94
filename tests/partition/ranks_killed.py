#!/usr/bin/env python3
"""A rank that is killed or stopped at any moment ends the run: an error in time, and no process stays."""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

import mpi
from mpi import check

DEADLINE = 3
N_MOMENTS = 20
# For mpirun to notice, to end the others (it gives them some seconds), and for a machine that is busy.
SLACK = 15


def ranks_of(mpirun):
    """Process ids by rank."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            variables = (entry / "environ").read_bytes().split(b"\0") if parent == mpirun else []
        except (OSError, ValueError, IndexError):
            continue
        for variable in variables:
            if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(variable.split(b"=")[1])] = int(entry.name)
    return found


def exists(pid):
    try:
        return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


TEXT = ("--prompt-text", "Once upon a time", "--max-new-tokens", 0, "--ignore-eos", "--logits-hash", "--json")


def resume(args, checkpoint, expected, what):
    """What is left goes on, on one process."""
    done = subprocess.run([args.ree_run, args.model, *map(str, TEXT), "--checkpoint", checkpoint, "--resume"],
                          env=mpi.ENVIRONMENT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if not check(done.returncode == 0, f"{what}: resuming: {done.stderr}"):
        return
    got = json.loads(done.stdout)
    for name in ("tokens_sha256", "logits_sha256"):
        check(got[name] == expected[name], f"{what}: {name} after resuming")


def strike(args, n, rank, which, moment, output, expected, folder):
    """Whether the run was still under way at that moment."""
    checkpoint = pathlib.Path(folder) / "checkpoint.json"
    checkpoint.unlink(missing_ok=True)
    arguments = (args.model, *TEXT, "--step-deadline", DEADLINE, "--checkpoint", checkpoint, "--checkpoint-every", 8)
    start = time.monotonic()
    process = subprocess.Popen(mpi.command(args.ree_run, (n, arguments)), env=mpi.ENVIRONMENT, stdout=output,
                               stderr=output, stdin=subprocess.DEVNULL)
    try:
        pids = {}
        while len(pids) < n and process.poll() is None:
            pids = ranks_of(process.pid)
            time.sleep(0.005)
        time.sleep(max(0, moment - (time.monotonic() - start)))
        if process.poll() is not None or len(pids) < n:
            return False
        os.kill(pids[rank], which)
        struck = time.monotonic()
        try:
            code = process.wait(DEADLINE + SLACK)
        except subprocess.TimeoutExpired:
            code = None
        seconds = time.monotonic() - struck
        what = f"{which.name} of rank {rank} of {n} after {moment:.2f} s"
        if code == 0:  # it had done its work
            return False
        if code is None:
            listing = subprocess.run(["ps", "-eo", "pid,ppid,stat,wchan:20,args"], capture_output=True, text=True)
            print("\n".join(line[:120] for line in listing.stdout.splitlines() if "ree-run" in line))
            print(pathlib.Path(output.name).read_text(errors="replace"), flush=True)
        check(code is not None, f"{what}: no end within {DEADLINE + SLACK} s")
        time.sleep(0.2)
        stray = [pid for pid in pids.values() if exists(pid)]
        check(not stray, f"{what}: {len(stray)} processes stay")
        text = pathlib.Path(output.name).read_text(errors="replace")
        if which == signal.SIGSTOP and code is not None:
            named = f"rank {rank} has sent nothing for {DEADLINE} s" in text or "does not take part" in text
            check(named, f"{what}: it is named: {text}")
        kept = checkpoint.exists()
        print(f"{what}: exit code {code} after {seconds:.1f} s; {'goes on' if kept else 'nothing kept'}", flush=True)
        if kept:
            resume(args, checkpoint, expected, what)
        return True
    finally:
        for pid in pids.values():
            if exists(pid):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    parser.add_argument("--model", required=True, type=pathlib.Path)
    args = parser.parse_args()
    mpi.need_mpi(args.ree_run)
    draw = random.Random(7)
    start = time.monotonic()
    whole = mpi.run(args.ree_run, (2, (args.model, *TEXT)))
    if not check(whole.returncode == 0, f"undisturbed: {whole.stderr}"):
        mpi.finish()
    expected = json.loads(whole.stdout)
    most = time.monotonic() - start
    done = tries = 0
    while done < N_MOMENTS and tries < 3 * N_MOMENTS:
        tries += 1
        n = draw.choice((2, 3))
        with tempfile.NamedTemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
            done += strike(args, n, draw.randrange(n), (signal.SIGKILL, signal.SIGSTOP)[done % 2],
                           draw.uniform(0.02, 0.9 * most), output, expected, folder)
    check(done == N_MOMENTS, f"{done} of {N_MOMENTS} moments were in time")
    mpi.finish()


main()
