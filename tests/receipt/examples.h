// Example receipts of each kind and version, for the tests. Most have every member that their kind
// can have.
#ifndef REE_TESTS_RECEIPT_EXAMPLES_H
#define REE_TESTS_RECEIPT_EXAMPLES_H

#include "receipt/receipt.h"

// Each function initializes a receipt that is not sealed: its receipt_hash is empty. Release it
// with ree_receipt_finish. The first four functions make receipts of version 1.
void example_text(struct ree_receipt *out);    // a receipt with every member, stats included
void example_private(struct ree_receipt *out); // a receipt with hashes instead of tokens and texts
void example_ids(struct ree_receipt *out);     // a receipt without tokenizer and output tokens
void example_tensors(struct ree_receipt *out);
// These functions make receipts of version 2.
void example_text_2(struct ree_receipt *out); // a receipt with a request and extensions
void example_private_2(struct ree_receipt *out);
void example_tensors_2(struct ree_receipt *out);

struct example {
    const char *name;
    void (*make)(struct ree_receipt *out);
};
#define N_EXAMPLES 7
extern const struct example examples[N_EXAMPLES];

// Copies the signing key file `path` to a temporary file that only its owner can read, because ree
// refuses other keys and Git does not keep this mode. Returns the copy's path (static storage), or
// NULL if copying fails. The copy is removed when the program ends. Must be called at most once.
const char *example_key(const char *path);
// Makes the example, seals it, signs it with the key file `key_path`, and returns the receipt
// file's text. The caller must free it. NULL if a step fails. *out_n: length of the text in bytes.
char *example_file(const struct example *example, const char *key_path, size_t *out_n);
// Returns whether ree_receipt_check rejects the receipt and reports the check named `what` as
// failed.
bool example_is_wrong(const struct ree_receipt *receipt, const char *what);

// Writes the SHA-256 of `word` to `hex`, for members of a receipt that accept any hash.
void example_hash(const char *word, char hex[65]);

#endif
