// Makes a receipt or a request that was changed consistent in itself again: everything in it that
// follows from its other fields.
#ifndef REE_TESTS_FUZZ_RESEAL_H
#define REE_TESTS_FUZZ_RESEAL_H

#include "base/json.h"

enum {
    RESEAL_TOKENS = 1, // prompt's and output's tokens_sha256 and n_tokens
    RESEAL_TEXTS = 2,  // text_sha256
    RESEAL_HASH = 4,   // receipt_hash
};

// What is missing or of another type stays as it is.
void reseal_receipt(cJSON *receipt, uint32_t what);
void reseal_request(cJSON *request);
// Names the request in the receipt, and gives the receipt the seed that follows from it.
void reseal_link(cJSON *receipt, const cJSON *request);
// Canonical JSON, NUL-terminated, or any form where there is no canonical one; NULL: out of memory.
// Free.
char *reseal_print(const cJSON *value, size_t *out_n);

#endif
