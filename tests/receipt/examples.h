// Receipts for the tests: they hold what each kind can hold.
#ifndef REE_TESTS_RECEIPT_EXAMPLES_H
#define REE_TESTS_RECEIPT_EXAMPLES_H

#include "receipt/receipt.h"

// Not sealed, and without anything in the arena; release with ree_receipt_finish.
void example_text(struct ree_receipt *out);    // all that there is, stats included
void example_private(struct ree_receipt *out); // hashes in the place of tokens and texts
void example_ids(struct ree_receipt *out);     // without a tokenizer, of an answer without tokens
void example_tensors(struct ree_receipt *out);
// The same of version 2; those above are of version 1.
void example_text_2(struct ree_receipt *out); // with a request and extensions
void example_private_2(struct ree_receipt *out);
void example_tensors_2(struct ree_receipt *out);

struct example {
    const char *name;
    void (*make)(struct ree_receipt *out);
};
#define N_EXAMPLES 7
extern const struct example examples[N_EXAMPLES];

// The path of a copy that only its owner can read, as keys to sign with have to be and as files of
// a repository are not. Removed when the program ends; one for a program. NULL: that failed.
const char *example_key(const char *path);
// Sealed, signed with the key and encoded; free. NULL: that failed.
char *example_file(const struct example *example, const char *key_path, size_t *out_n);
// Whether the check of a receipt fails, and with this finding.
bool example_is_wrong(const struct ree_receipt *receipt, const char *what);

// SHA-256 of a word, for where any hash will do.
void example_hash(const char *word, char hex[65]);

#endif
