"""Starts ree-run on several ranks, for tests."""

import atexit
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import check  # pylint: disable=unused-import # for users of this module


ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Containers often forbid the mechanism that MPI would use between processes of one machine.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMP_NUM_THREADS": "1",
    # The MPI library does not free all its memory at exit.
    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
}


def finish():
    sys.exit(harness.finish())


def try_mpirun():
    """Returns the reason why mpirun cannot start two processes on this machine; None if it can."""
    try:
        done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", "true"],
                              env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "mpirun -n 2 true does not end"
    return None if done.returncode == 0 else f"mpirun -n 2 true: {done.stderr.strip()[:300]}"


def make_session_folder():
    """Gives the test a TMPDIR in which Open MPI 4's folder for sessions exists and stays. Every mpirun makes
    that folder, without a lock, and removes it if it is empty. If one ends while the ranks of the next one
    start, they fail: "A call to mkdir was unable to create the desired directory"."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mpi"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sessions = folder / f"ompi.{os.uname().nodename}.{os.getuid()}"
    (sessions / "kept").mkdir(mode=0o700, parents=True)
    sessions.chmod(0o700)
    ENVIRONMENT["TMPDIR"] = str(folder)


def need_mpi(ree_run):
    """Skips the test if there is no MPI."""
    if not shutil.which("mpirun"):
        reason = "no mpirun (Debian: openmpi-bin)"
    elif not (pathlib.Path(ree_run).resolve().parent / "ree_mpi.so").exists():
        reason = "ree was built without MPI"
    else:
        # With the environment of a rank of another run, mpirun would not start.
        for name in [n for n in ENVIRONMENT if n.startswith(("OMPI_COMM_WORLD", "PMIX_"))]:
            del ENVIRONMENT[name]
        make_session_folder()
        reason = try_mpirun()
        if not reason:
            return
    harness.skip(reason)


def command(ree_run, *apps):
    """Returns the command line of mpirun. An app is (number of ranks, arguments of ree-run)."""
    words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(sum(n for n, _ in apps))]
    if len(apps) == 1:
        return [*words, str(ree_run), *map(str, apps[0][1])]
    # Each rank is a shell that becomes ree-run: the mpirun of Open MPI 5.0.7 (Debian 13) crashes if
    # several programs are passed to it.
    cases, first = [], 0
    for n, arguments in apps:
        ranks = "|".join(str(rank) for rank in range(first, first + n))
        cases.append(f"{ranks}) exec {shlex.join([str(ree_run), *map(str, arguments)])};;")
        first += n
    return [*words, "sh", "-c", f'case "$OMPI_COMM_WORLD_RANK" in {" ".join(cases)} esac']


def run(ree_run, *apps, timeout=600):
    return subprocess.run(command(ree_run, *apps), env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def children(pid):
    """Returns the process ids of the children of a process."""
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    return found


def ranks_of(mpirun):
    """Returns the process ids by rank."""
    found = {}
    for pid in children(mpirun):
        try:
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in variables:
            if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(variable.split(b"=")[1])] = pid
    return found
