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


class Busy(Exception):
    """Another thread holds the lock."""


class Guarded:
    """A lock that a signal's exception cannot leave held:

        with guarded.guard:
            ...

    CPython raises such an exception at the beginning of a Python function and after a call of a C function, not when
    a Python function returns. So the guard enters by a Python function, which releases the lock if the exception
    comes after the call that takes it, and exits by the lock's C function. `with` of the lock itself would not do:
    from Python 3.14 on, the exception may come between the call that takes it and the block."""

    def __init__(self):
        lock = threading.RLock()
        self.is_mine = lock._is_owned  # whether this thread holds it; pylint: disable=no-member
        self.guard = self._made_guard(lock, True)
        # The same, but raises Busy if another thread holds the lock. For threads that do not hold it.
        self.guard_if_free = self._made_guard(lock, False)

    def _made_guard(self, lock, waits):
        def enter(_):
            try:
                if not lock.acquire(waits):
                    raise Busy
            except BaseException:
                if self.is_mine():
                    lock.release()
                raise
        # `with` looks its functions up in the class.
        return type("Guard", (), {"__slots__": (), "__enter__": enter, "__exit__": staticmethod(lock.__exit__)})()


class UseLock:
    """Lets one thread at a time use an object, named `what` in messages:

        with use.lock:
            ...

    A signal's exception cannot leave the lock held."""

    def __init__(self, what):
        self.what = what
        self.free()
        _locks.add(self)

    def free(self):
        """Makes the object one that no thread uses."""
        self._lock = Guarded()

    @property
    def lock(self):
        """The lock. Raises Error if this thread holds it: a callback cannot use the object that calls it."""
        if self._lock.is_mine():
            raise Error(f"{self.what} is in use: the functions that a run calls cannot use it")
        return self._lock.guard
