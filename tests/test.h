// The whole test harness: count checks, print the ones that fail, exit 1 if any did.
//
//     int main(void) {
//         CHECK(1 + 1 == 2);
//         CHECK_MSG(n == 3, "n is %d", n);
//         return test_finish();
//     }
//
// A test that cannot run here (no device, no data) says why and returns test_skip("reason").
#ifndef REE_TESTS_TEST_H
#define REE_TESTS_TEST_H

#include <stdarg.h>
#include <stdio.h>

#define TEST_SKIPPED 77 // SKIP_RETURN_CODE of add_test

static unsigned long test_n_passed, test_n_failed;

// Failures beyond this many are counted and not printed.
#define TEST_MAX_PRINTED 50

__attribute__((format(printf, 5, 6), unused)) static void
test_check(int ok, const char *file, int line, const char *what, const char *format, ...) {
    if (ok) {
        test_n_passed++;
        return;
    }
    if (test_n_failed++ >= TEST_MAX_PRINTED) return;
    fflush(stdout);
    fprintf(stderr, "%s:%d: failed: %s", file, line, what);
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "%s%s\n", message[0] && message[0] != ' ' ? ": " : "", message);
}

// " " rather than "": an empty format is a warning.
#define CHECK(cond) test_check(!!(cond), __FILE__, __LINE__, #cond, " ")
#define CHECK_MSG(cond, ...) test_check(!!(cond), __FILE__, __LINE__, #cond, __VA_ARGS__)

__attribute__((unused)) static int test_finish(void) {
    printf("%lu passed, %lu failed\n", test_n_passed, test_n_failed);
    return test_n_failed || test_n_passed == 0; // a test that checked nothing has not passed
}

__attribute__((unused)) static int test_skip(const char *reason) {
    printf("skipped: %s\n", reason);
    return TEST_SKIPPED;
}

#endif
