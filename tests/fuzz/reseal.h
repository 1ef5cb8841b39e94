// Makes a changed receipt or request consistent again: recomputes the hashes, counts and seed that
// follow from its other members.
#ifndef REE_TESTS_FUZZ_RESEAL_H
#define REE_TESTS_FUZZ_RESEAL_H

#include "base/json.h"

enum {
    RESEAL_TOKENS = 1, // tokens_sha256 and n_tokens of prompt and output
    RESEAL_TEXTS = 2,  // text_sha256 of prompt and output
    RESEAL_HASH = 4,   // receipt_hash
};

// Recompute a receipt's members that `what` selects (flags RESEAL_TOKENS, ...), or a request's
// hash. A member stays as it is if what it follows from is missing or has a wrong type. No members
// are added.
void reseal_receipt(cJSON *receipt, uint32_t what);
void reseal_request(cJSON *request);
// Makes the receipt refer to the request: sets its request_sha256 to the request's hash, and its
// sampling seed to the one that follows from this hash. Members that are missing are not added.
void reseal_link(cJSON *receipt, const cJSON *request);
// Returns the value as canonical JSON, or as cJSON prints it if it has no canonical form. The text
// is NUL-terminated; *out_n is its length without the NUL. The caller must free it. NULL: out of
// memory.
char *reseal_print(const cJSON *value, size_t *out_n);

#endif
