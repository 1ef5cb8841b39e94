// Fault points: calls of ree's own objects that allocate memory, or that read or write files. The
// linker redirects these calls to points.c (--wrap). Calls inside libc, libomp and other libraries
// are not points. Allocations by cJSON and PCRE2 are: these libraries use ree's malloc here.
#ifndef REE_TESTS_FAULTS_POINTS_H
#define REE_TESTS_FAULTS_POINTS_H

#include <stdbool.h>

enum fault_kind {
    FAULT_MEMORY, // malloc and related functions, mmap, opendir, fopen, thread creation
    FAULT_JSON,   // allocations by cJSON: separate, because there are many, all handled alike
    FAULT_WRITE,  // creating, writing, syncing, naming and closing files; standard output
    FAULT_READ,   // opening, reading and mapping files
    FAULT_SHORT,  // read returns fewer bytes than requested, which is not an error
};

struct fault_plan {
    enum fault_kind kind;
    long at;     // 1-based index, among the points of `kind`, of the one that fails; 0: none
    bool onward; // all later points of `kind` fail too
    int error;   // errno of a failing point, for FAULT_WRITE and FAULT_READ
    bool shows;  // print the stack of the first point that fails (only with a sanitizer)
};

// Copies the plan and applies it from now on. *counter must be set by the caller; each point of
// plan->kind that is reached increments it. It must stay valid until the process's threads end.
void fault_begin(const struct fault_plan *plan, long *counter);

#endif
