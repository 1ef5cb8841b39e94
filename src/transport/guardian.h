// A small process beside each rank that ends mpirun where that hangs.
//
// Open MPI 4.1's mpirun waits for ever when a rank is killed in the few milliseconds in which it
// connects to it: it ends the other ranks, says so, and stays ("PMIX ERROR: UNREACHABLE"). None of
// the ranks is there any more to do something about it.
#ifndef REE_TRANSPORT_GUARDIAN_H
#define REE_TRANSPORT_GUARDIAN_H

#include <sys/types.h>

struct ree_guardian {
    int fd;    // -1: there is none
    pid_t pid; // this process' child
};

// Before anything of MPI, while the process has one thread. When the descriptor is closed, by this
// process' end above all, and mpirun is still there `seconds` later, it is ended. There is none
// where mpirun is not this process' parent, or for another reason, which is no failure.
struct ree_guardian ree_guardian_start(double seconds);

// What is written to the descriptor when all has ended well; then it ends.
#define REE_GUARDIAN_WELL "w"

#endif
