// The record of self-tests: which code passed on which driver, in a file of the cache folder, so
// that the next start does not test it again. Keys are digests over everything that the bits may
// depend on: driver, module, specialization, the self-test itself.
#ifndef REE_DEVICE_SELFTEST_RECORD_H
#define REE_DEVICE_SELFTEST_RECORD_H

#include "base/sha256.h"

#include <stdbool.h>

enum ree_test_state {
    REE_TEST_UNKNOWN,
    REE_TEST_PASSED,
    REE_TEST_FAILED,
    REE_TEST_IMPOSSIBLE, // no twin reaches this code; never in a record
};

struct ree_test_entry {
    unsigned char key[REE_SHA256_SIZE];
    enum ree_test_state state; // PASSED or FAILED
    char *text;                // FAILED: what failed and how; NULL otherwise
};

struct ree_test_record {
    char *path; // NULL: none is kept
    struct ree_test_entry *entries;
    size_t n, capacity;
    bool is_changed; // since the file was read
};

// Reads the file, if it is there; what is not of the right form is left out. Takes over `path`,
// which comes from malloc; NULL: nothing is kept.
void ree_test_record_init(struct ree_test_record *record, char *path);
// NULL: unknown.
const struct ree_test_entry *ree_test_record_find(const struct ree_test_record *record,
                                                  const unsigned char key[REE_SHA256_SIZE]);
// Adds an entry; text may be NULL. Without memory nothing is added. FAILED replaces PASSED of the
// same key, so that a failure is believed no matter who else passed; otherwise the old entry stays.
void ree_test_record_add(struct ree_test_record *record, const unsigned char key[REE_SHA256_SIZE],
                         enum ree_test_state state, const char *text);
// Writes the file if entries were added or replaced, merged by the same rule with those that other
// processes wrote meanwhile. That it cannot be written is no error: the next start tests again.
void ree_test_record_finish(struct ree_test_record *record);

#endif
