// The record of self-tests is stored in a file. The records of two processes are merged, and a test
// that failed once never counts as passed.
#include "device/selftest/record.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static char path[128];
static const unsigned char a[REE_SHA256_SIZE] = {1}, b[REE_SHA256_SIZE] = {2},
                           c[REE_SHA256_SIZE] = {3};

static struct ree_test_record open_record(void) {
    struct ree_test_record record;
    ree_test_record_init(&record, strdup(path));
    return record;
}

static bool passed(const struct ree_test_record *record, const unsigned char *key) {
    const struct ree_test_entry *entry = ree_test_record_find(record, key);
    return entry && entry->state == REE_TEST_PASSED && !entry->text;
}

static bool failed(const struct ree_test_record *record, const unsigned char *key,
                   const char *text) {
    const struct ree_test_entry *entry = ree_test_record_find(record, key);
    return entry && entry->state == REE_TEST_FAILED && entry->text &&
           strcmp(entry->text, text) == 0;
}

int main(void) {
    char folder[] = "selftest-record-XXXXXX";
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x.tests", folder);

    struct ree_test_record record = open_record();
    CHECK(record.n == 0);
    ree_test_record_finish(&record);
    CHECK(access(path, F_OK) != 0); // nothing was written to it

    // In memory.
    record = open_record();
    ree_test_record_add(&record, a, REE_TEST_PASSED, NULL);
    ree_test_record_add(&record, b, REE_TEST_FAILED, "first");
    CHECK(passed(&record, a) && failed(&record, b, "first") && !ree_test_record_find(&record, c));
    ree_test_record_add(&record, b, REE_TEST_PASSED, NULL);
    ree_test_record_add(&record, b, REE_TEST_FAILED, "second");
    CHECK(failed(&record, b, "first") && record.n == 2);
    ree_test_record_finish(&record);

    // A failure replaces the entry in the file, although the record has no new entry.
    record = open_record();
    CHECK(passed(&record, a) && failed(&record, b, "first"));
    ree_test_record_add(&record, a, REE_TEST_FAILED, "later");
    CHECK(failed(&record, a, "later") && record.n == 2);
    ree_test_record_finish(&record);
    record = open_record();
    CHECK(failed(&record, a, "later") && failed(&record, b, "first") && record.n == 2);
    ree_test_record_finish(&record);

    // Two processes write at the same time, in both orders: the later writer does not hide the
    // failure.
    for (int order = 0; order < 2; order++) {
        unlink(path);
        struct ree_test_record pass = open_record(), fail = open_record();
        ree_test_record_add(&pass, c, REE_TEST_PASSED, NULL);
        ree_test_record_add(&pass, a, REE_TEST_PASSED, NULL);
        ree_test_record_add(&fail, c, REE_TEST_FAILED, "here");
        ree_test_record_add(&fail, b, REE_TEST_PASSED, NULL);
        ree_test_record_finish(order ? &pass : &fail);
        ree_test_record_finish(order ? &fail : &pass);
        record = open_record();
        CHECK_MSG(failed(&record, c, "here"), "order %d", order);
        CHECK(passed(&record, a) && passed(&record, b) && record.n == 3);
        ree_test_record_finish(&record);
    }
    unlink(path);
    CHECK(rmdir(folder) == 0); // no temporary file is left
    return test_finish();
}
