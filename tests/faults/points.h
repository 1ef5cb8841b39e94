// Fault points: calls of ree's own objects that allocate memory, or that read or write files. The
// linker redirects these calls to points.c (--wrap). Calls inside libc, libomp and other libraries
// are not points. Allocations by cJSON and PCRE2 are: these libraries use ree's malloc here.
#ifndef REE_TESTS_FAULTS_POINTS_H
#define REE_TESTS_FAULTS_POINTS_H

#include <stdbool.h>

enum fault_kind {
    FAULT_MEMORY, // malloc and related functions, mmap, opendir, thread creation
    FAULT_JSON,   // allocations by cJSON: most of all allocations, and all handled alike
    FAULT_WRITE,  // creating, writing, syncing, naming and closing files; standard output
    FAULT_READ,   // opening, reading and mapping files
    FAULT_SHORT,  // read returns fewer bytes than requested, which is not an error
};

struct fault_plan {
    enum fault_kind kind;
    long at;     // 1-based index of the point that fails; 0: none
    bool onward; // all later points fail too
    int error;   // errno for FAULT_WRITE and FAULT_READ
    bool shows;  // print the stack of the first point that fails
};

// From now on counts the points of `plan`'s kind into *counter and applies the plan. *counter must
// outlive the process's threads.
void fault_begin(const struct fault_plan *plan, long *counter);

#endif
