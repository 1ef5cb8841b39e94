// tests/test.h: a program that skips the rest after a failed check has failed.
#include "test.h"

int main(void) {
    const int before = test_skip("no check failed");
    test_n_failed_ = 1;
    const int after = test_skip("a check failed");
    test_n_failed_ = 0;
    CHECK(before == TEST_SKIPPED);
    CHECK(after == 1);
    return test_finish();
}
