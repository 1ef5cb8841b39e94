// What a fuzz target tells the replay (replay.c) about an input.
#ifndef REE_TESTS_FUZZ_REPLAY_H
#define REE_TESTS_FUZZ_REPLAY_H

#include <stdbool.h>

// Whether the target accepted the last input, that is: the input passed every check that a valid
// input passes. The replay sets it to false before each input. Weak: a target need not define it.
extern bool fuzz_accepted __attribute__((weak));

#endif
