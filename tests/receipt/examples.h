// Example receipts of each kind for the tests, with every member that the kind can have.
#ifndef REE_TESTS_RECEIPT_EXAMPLES_H
#define REE_TESTS_RECEIPT_EXAMPLES_H

#include "receipt/receipt.h"

// Each function initializes a receipt that is not sealed and has nothing in its arena. Release it
// with ree_receipt_finish. The following functions make receipts of version 1.
void example_text(struct ree_receipt *out);    // has every member, stats included
void example_private(struct ree_receipt *out); // hashes instead of tokens and texts
void example_ids(struct ree_receipt *out);     // no tokenizer, no output tokens
void example_tensors(struct ree_receipt *out);
// The same in version 2.
void example_text_2(struct ree_receipt *out); // with a request and extensions
void example_private_2(struct ree_receipt *out);
void example_tensors_2(struct ree_receipt *out);

struct example {
    const char *name;
    void (*make)(struct ree_receipt *out);
};
#define N_EXAMPLES 7
extern const struct example examples[N_EXAMPLES];

// Copies a signing key to a temporary file that only its owner can read: signing keys must have
// this mode, and files of a repository do not. Returns the copy's path; NULL if copying fails. The
// copy is removed when the program ends. Call it at most once in a program.
const char *example_key(const char *path);
// Returns the receipt sealed, signed with the key and encoded; the caller must free it. NULL on
// error.
char *example_file(const struct example *example, const char *key_path, size_t *out_n);
// Returns whether the check of the receipt fails with this finding.
bool example_is_wrong(const struct ree_receipt *receipt, const char *what);

// Writes the SHA-256 of a word to hex, for members that accept any hash.
void example_hash(const char *word, char hex[65]);

#endif
