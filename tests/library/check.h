// The macro CHECK, for test programs that use only libree's public headers. It ends the program
// with a message if a condition is false.
#ifndef REE_TESTS_LIBRARY_CHECK_H
#define REE_TESTS_LIBRARY_CHECK_H

#include <ree.h>

#include <stdio.h>
#include <stdlib.h>

// A call of libree inside CHECK(...) must pass &err, so that the message can contain its error.
static struct ree_error err;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, err.message);       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
