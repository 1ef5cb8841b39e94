// The record of self-tests: which code passed on which driver. It is a file of the cache folder, so
// the next start does not repeat the tests. Keys are digests of everything that the result bits may
// depend on: driver, module, specialization, and the self-test itself.
#ifndef REE_DEVICE_SELFTEST_RECORD_H
#define REE_DEVICE_SELFTEST_RECORD_H

#include "base/sha256.h"

#include <stdbool.h>

enum ree_test_state {
    REE_TEST_UNKNOWN,
    REE_TEST_PASSED,
    REE_TEST_FAILED,
    REE_TEST_IMPOSSIBLE, // no twin reaches this code; never stored in a record
};

struct ree_test_entry {
    unsigned char key[REE_SHA256_SIZE];
    enum ree_test_state state; // PASSED or FAILED
    char *text;                // FAILED: what failed and how; PASSED: NULL
};

struct ree_test_record {
    char *path; // owned; NULL: no file is kept
    struct ree_test_entry *entries;
    size_t n, capacity;
    bool is_changed; // entries were added or replaced since the file was read
};

// Reads the file if it exists; ignores malformed lines. Takes ownership of `path`, which must come
// from malloc. NULL: no file is kept.
void ree_test_record_init(struct ree_test_record *record, char *path);
// Returns the entry with this key, valid until the next ree_test_record_add; NULL if there is none.
const struct ree_test_entry *ree_test_record_find(const struct ree_test_record *record,
                                                  const unsigned char key[REE_SHA256_SIZE]);
// Adds an entry; text may be NULL. Adds nothing if memory is exhausted. An entry FAILED replaces
// PASSED with the same key, so one failure outweighs any number of passes. Otherwise an existing
// entry stays.
void ree_test_record_add(struct ree_test_record *record, const unsigned char key[REE_SHA256_SIZE],
                         enum ree_test_state state, const char *text);
// Writes the file if entries were added or replaced, and frees the record. Before that, adds the
// entries that other processes have written meanwhile, like ree_test_record_add. Ignores write
// failures: the next start then repeats the tests.
void ree_test_record_finish(struct ree_test_record *record);

#endif
