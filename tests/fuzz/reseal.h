// Makes a changed receipt or request consistent again: recomputes the members that follow from
// others.
#ifndef REE_TESTS_FUZZ_RESEAL_H
#define REE_TESTS_FUZZ_RESEAL_H

#include "base/json.h"

enum {
    RESEAL_TOKENS = 1, // tokens_sha256 and n_tokens of prompt and output
    RESEAL_TEXTS = 2,  // text_sha256 of prompt and output
    RESEAL_HASH = 4,   // receipt_hash
};

// Both leave members that are missing or of another type unchanged.
void reseal_receipt(cJSON *receipt, uint32_t what);
void reseal_request(cJSON *request);
// Writes the request's hash to the receipt, and the seed that follows from it.
void reseal_link(cJSON *receipt, const cJSON *request);
// Returns canonical JSON, NUL-terminated, or another form if there is no canonical one. The caller
// must free it. NULL if memory ran out.
char *reseal_print(const cJSON *value, size_t *out_n);

#endif
