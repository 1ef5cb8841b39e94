// For programs that test libree through its public headers only: ends the program if a condition is
// false.
#ifndef REE_TESTS_LIBRARY_CHECK_H
#define REE_TESTS_LIBRARY_CHECK_H

#include <ree.h>

#include <stdio.h>
#include <stdlib.h>

static struct ree_error err; // of the call that CHECK contains

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, err.message);       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
