// Points at which something can fail: the calls of ree's own objects that allocate memory, or read
// or write files. The linker gives these calls to points.c (--wrap); what libc, libomp and the like
// call within themselves is not among them. What cJSON and PCRE2 allocate is: they are given ree's
// malloc.
#ifndef REE_TESTS_FAULTS_POINTS_H
#define REE_TESTS_FAULTS_POINTS_H

#include <stdbool.h>

enum fault_kind {
    FAULT_MEMORY, // malloc and its like, mmap, opendir, thread creation
    FAULT_JSON,   // what cJSON allocates: most of all allocations, and all treated alike
    FAULT_WRITE,  // making, writing, syncing, naming and closing files; standard output
    FAULT_READ,   // opening, reading and mapping files
    FAULT_SHORT,  // read gives fewer bytes than there are, which is no error
};

struct fault_plan {
    enum fault_kind kind;
    long at;     // 1-based number of the point that fails; 0: none
    bool onward; // all after it fail, too
    int error;   // errno of FAULT_WRITE and FAULT_READ
    bool shows;  // print the stack of the first point that fails
};

// Counts the points of `plan`'s kind into *counter, which has to outlive the process's threads,
// from now on.
void fault_begin(const struct fault_plan *plan, long *counter);

#endif
