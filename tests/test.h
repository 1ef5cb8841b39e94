// A small test harness. It counts checks, prints the failed ones and continues.
//
//     int main(void) {
//         CHECK(1 + 1 == 2);
//         CHECK_MSG(n == 3, "n is %d", n);
//         return test_finish();
//     }
//
// Each test program is one CTest test. Exit codes: 0 all checks passed, 1 a check failed, 77
// skipped (register the test with SKIP_RETURN_CODE 77). If the environment variable REE_TEST_STOP
// is set, the first failure ends the program. All source files of a program share the counters.
#ifndef REE_TESTS_TEST_H
#define REE_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define TEST_SKIPPED 77

// 1 in a build with AddressSanitizer, where everything takes many times as long; otherwise 0.
#if defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) // clang's way to say it
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

// Numbers of passed and of failed checks. Atomic, because several threads may check. Weak, because
// each source file of a program defines them, and the linker keeps one copy.
__attribute__((weak)) _Atomic long test_n_passed_, test_n_failed_;

// Failures beyond this number are counted but not printed, so that a log stays readable.
#define TEST_MAX_PRINTED 100

#define CHECK(cond) CHECK_MSG(cond, "expected: %s", #cond)

// Checks a condition. The other arguments are printf's; they are evaluated and printed only if the
// condition is false.
#define CHECK_MSG(cond, ...)                                                                       \
    ((cond) ? (void)test_n_passed_++                                                               \
            : (void)(test_fail_at_(__FILE__, __LINE__) &&                                          \
                     (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), test_stop_())))

// Checks a condition without which the test cannot continue (an allocation, a fixture). Exits with
// 1 if it is false.
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

// Prints the totals. Returns the exit code for main; a program without any check has failed.
static inline int test_finish(void) {
    printf("%ld passed, %ld failed\n", test_n_passed_, test_n_failed_);
    return test_n_failed_ == 0 && test_n_passed_ > 0 ? 0 : 1;
}

// For a test that this machine cannot run. In main: `return test_skip("no Vulkan loader");`.
// Returns the exit code for main: 77, or 1 if a check failed before, for example on another device.
static inline int test_skip(const char *why) {
    printf("skipped: %s\n", why);
    return test_n_failed_ ? test_finish() : TEST_SKIPPED;
}

#endif
