// The format of fuzz_verify's inputs. An input consists of a receipt, an optional request, and
// flags that say what the verifier has and how it verifies.
//
//     byte 0      options: CASE_PROMPT, ...
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
    CASE_STEPWISE = 4,      // the verifier generates the answer again, token by token
    CASE_IGNORE_EOS = 8,    // the verifier expects that eos tokens do not end an answer
    CASE_NO_TOKENIZER = 16, // the verifier has no tokenizer
    CASE_KEY = 32,          // the verifier requires a public key
    CASE_OTHER = 64,        // the verifier has a prompt or input that differs from the honest one
};

struct verify_case {
    uint8_t options;
    const uint8_t *request; // NULL if there is none
    size_t n_request;
    const uint8_t *receipt;
    size_t n_receipt;
};

// Splits an input of `size` bytes. The pointers in *out refer to `bytes`. Returns false if the
// input is shorter than its header or its request.
bool verify_case_split(const uint8_t *bytes, size_t size, struct verify_case *out);
// Writes the case as an input to `out`, which must have capacity for `most` bytes. Returns the
// input's size in bytes; 0 if it exceeds `most` or the request is longer than 65535 bytes.
size_t verify_case_join(const struct verify_case *c, uint8_t *out, size_t most);

#endif
