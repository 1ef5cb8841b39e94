// A tiny test harness: count checks, print the failed ones, go on.
//
//     int main(void) {
//         CHECK(1 + 1 == 2);
//         CHECK_MSG(n == 3, "n is %d", n);
//         return test_finish();
//     }
//
// One program is one test for CTest. Exit codes: 0 all passed, 1 something failed, 77 skipped
// (register with SKIP_RETURN_CODE 77). With REE_TEST_STOP set, the first failure ends the program.
// All files of a program count together.
#ifndef REE_TESTS_TEST_H
#define REE_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define TEST_SKIPPED 77

// Threads of a test count, too. Weak: defined by each file of a program, and there once.
__attribute__((weak)) _Atomic long test_n_passed_, test_n_failed_;

// After this many printed failures the rest is only counted, so that a log stays readable.
#define TEST_MAX_PRINTED 100

#define CHECK(cond) CHECK_MSG(cond, "expected: %s", #cond)

// The message is only evaluated when the condition is false.
#define CHECK_MSG(cond, ...)                                                                       \
    ((cond) ? (void)test_n_passed_++                                                               \
            : (void)(test_fail_at_(__FILE__, __LINE__) &&                                          \
                     (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), test_stop_())))

// For a precondition without which going on makes no sense (an allocation, a fixture).
#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        bool test_met_ = (cond);                                                                   \
        CHECK_MSG(test_met_, "required: %s", #cond);                                               \
        if (!test_met_) exit(1);                                                                   \
    } while (0)

static inline bool test_fail_at_(const char *file, int line) {
    if (++test_n_failed_ > TEST_MAX_PRINTED) return false;
    fflush(stdout);
    fprintf(stderr, "%s:%d: FAILED: ", file, line);
    return true;
}

static inline int test_stop_(void) {
    if (getenv("REE_TEST_STOP")) exit(1);
    return 0;
}

// Prints the totals; the value main returns. A program that checked nothing has failed.
static inline int test_finish(void) {
    printf("%ld passed, %ld failed\n", test_n_passed_, test_n_failed_);
    return test_n_failed_ == 0 && test_n_passed_ > 0 ? 0 : 1;
}

// For what this machine lacks: `return test_skip("no Vulkan loader");` from main.
static inline int test_skip(const char *why) {
    printf("skipped: %s\n", why);
    return TEST_SKIPPED;
}

#endif
