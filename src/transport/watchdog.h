// The watchdog: a small process for each rank that ends mpirun if it hangs.
//
// Open MPI 4.1's mpirun can hang forever if a rank is killed during the few milliseconds in which
// it connects to mpirun: mpirun ends the other ranks, prints "PMIX ERROR: UNREACHABLE", and stays.
// By then no rank is left that could react.
#ifndef REE_TRANSPORT_WATCHDOG_H
#define REE_TRANSPORT_WATCHDOG_H

#include <sys/types.h>

struct ree_watchdog {
    int fd;    // write end of a pipe; the watchdog waits until it is closed; -1: no watchdog
    pid_t pid; // process id of the watchdog, a child of this process
};

// Starts the watchdog of this process. Call it before using MPI, while the process has one thread.
// If mpirun still runs `seconds` after `fd` was closed (normally because this process has ended),
// the watchdog ends mpirun. Returns fd -1 if mpirun is not the parent of this process or the
// watchdog cannot start; this is not an error.
struct ree_watchdog ree_watchdog_start(double seconds);

// The byte to write to ree_watchdog.fd after a successful run: the watchdog then ends without
// action.
#define REE_WATCHDOG_DONE "w"

#endif
