"""Locks of objects of C that one thread may use at a time, and the process's forks."""
import os
import threading
import weakref

from ree.errors import Error

_locks: "weakref.WeakSet[UseLock]" = weakref.WeakSet()
_threads_started = False  # OpenMP has started threads in this process
_threads_lost = False  # this process was forked from one where it had


def _free_all():
    """In a process that was forked: the threads that used the objects do not exist here."""
    global _threads_lost  # pylint: disable=global-statement
    _threads_lost = _threads_lost or _threads_started
    for lock in list(_locks):
        lock.free()


os.register_at_fork(after_in_child=_free_all)


def starts_threads():
    """Notes that the library may now start OpenMP's threads."""
    global _threads_started  # pylint: disable=global-statement
    _threads_started = True


def refuse_threads(what):
    """Raises Error if OpenMP's threads do not work here, which `what` needs. Otherwise notes that they start."""
    if _threads_lost:
        raise Error(f"{what}: this process was forked from one that had started OpenMP's threads, and they do not work "
                    "after that: start processes with multiprocessing's method 'spawn'")
    starts_threads()


class UseLock:
    """Lets one thread at a time use an object, named `what` in messages:

        with use.lock:
            ...

    A signal's exception cannot leave the lock held, because `with` takes a lock of C without Python code."""

    def __init__(self, what):
        self.what = what
        self.free()
        _locks.add(self)

    def free(self):
        """Makes the object one that no thread uses."""
        self._lock = threading.RLock()

    @property
    def lock(self):
        """The lock. Raises Error if this thread holds it: a callback cannot use the object that calls it."""
        if self._lock._is_owned():  # pylint: disable=no-member
            raise Error(f"{self.what} is in use: the functions that a run calls cannot use it")
        return self._lock
