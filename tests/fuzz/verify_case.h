// An input of fuzz_verify: a receipt, a request or none, and what the verifier has at hand.
//
//     byte 0      options
//     bytes 1, 2  length of the request, little-endian; 0: none
//     the request's JSON, then the receipt's, which has no length of its own
#ifndef REE_TESTS_FUZZ_VERIFY_CASE_H
#define REE_TESTS_FUZZ_VERIFY_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CASE_PROMPT = 1,        // the honest prompt is given
    CASE_SALT = 2,          // the salt of private receipts is given
    CASE_STEPWISE = 4,      // the answer is made anew
    CASE_IGNORE_EOS = 8,    // answers that no token ends are accepted
    CASE_NO_TOKENIZER = 16, // none is at hand
    CASE_KEY = 32,          // a public key is asked for
    CASE_OTHER = 64,        // another prompt, another input than the honest one is given
};

struct verify_case {
    uint8_t options;
    const uint8_t *request; // NULL: none
    size_t n_request;
    const uint8_t *receipt;
    size_t n_receipt;
};

// False: too short.
bool verify_case_split(const uint8_t *bytes, size_t size, struct verify_case *out);
// Returns the size; 0: it would be more than `most`, or the request is too long.
size_t verify_case_join(const struct verify_case *c, uint8_t *out, size_t most);

#endif
