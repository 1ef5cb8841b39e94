// An input of fuzz_verify: a receipt, an optional request, and options for what the verifier has.
//
//     byte 0      options
//     bytes 1, 2  length of the request, little-endian; 0: none
//     then        the request's JSON, and the receipt's JSON up to the end
#ifndef REE_TESTS_FUZZ_VERIFY_CASE_H
#define REE_TESTS_FUZZ_VERIFY_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CASE_PROMPT = 1,        // the verifier has the honest prompt
    CASE_SALT = 2,          // the verifier has the salt of private receipts
    CASE_STEPWISE = 4,      // the answer is verified token by token
    CASE_IGNORE_EOS = 8,    // answers that no token ends are accepted
    CASE_NO_TOKENIZER = 16, // the verifier has no tokenizer
    CASE_KEY = 32,          // the verifier requires a public key
    CASE_OTHER = 64,        // the verifier has another prompt or input than the honest one
};

struct verify_case {
    uint8_t options;
    const uint8_t *request; // NULL if there is none
    size_t n_request;
    const uint8_t *receipt;
    size_t n_receipt;
};

// Splits an input; the pointers refer to `bytes`. Returns false if the input is too short.
bool verify_case_split(const uint8_t *bytes, size_t size, struct verify_case *out);
// Writes the input to out. Returns its size in bytes; 0 if it is larger than `most` or the request
// is too long.
size_t verify_case_join(const struct verify_case *c, uint8_t *out, size_t most);

#endif
