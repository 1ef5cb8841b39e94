// Receipts of runs.
//
// The text of a prompt and of an answer are as generate/answer.h says, with U+FFFD for each NUL:
// the tokens of the answer are all that were made, also those that completed a stop text, and its
// text ends before that stop text. Without a tokenizer there are no texts. A private receipt has
// blinded hashes in place of tokens and texts (receipt/receipt.h).
#ifndef REE_AUDIT_MAKE_RECEIPT_H
#define REE_AUDIT_MAKE_RECEIPT_H

#include "receipt/receipt.h"

// A text as it stands in a receipt, in the arena; NULL: out of memory.
char *ree_receipt_spell(struct ree_arena *arena, const struct ree_strbuf *text);

struct ree_model_hashes {
    char graph[65], weights[65];
};
// Both hashes of the model; reads all weights.
enum ree_status ree_model_hashes_make(const struct ree_model *model,
                                      void (*on_progress)(void *user, const char *what,
                                                          uint64_t done, uint64_t total),
                                      void *user, struct ree_model_hashes *out,
                                      struct ree_error *err);

// A trace that was made in the same run (receipt/trace.h).
struct ree_traced {
    ree_digest root;
    uint64_t n_steps;
    uint32_t prefill_chunk;
    const char *file; // its name without folders; NULL: not said
};

// Everything is the caller's and only read; strings and arrays but stops, eos and device are
// copied, and those have to outlive the receipt.
struct ree_text_run {
    const struct ree_model_hashes *model;
    const struct ree_tokenizer *tokenizer; // NULL: none
    enum ree_operation_set operation_set;
    int64_t context_length; // 0: not known
    const struct ree_generate_options *options;
    const char *const *stops;
    size_t n_stops;
    const struct ree_generation *generation;
    const unsigned char *salt; // REE_SALT_SIZE random bytes: makes a private receipt; NULL: not
    const char *request_sha256;             // of the request that this answers; NULL: none
    const struct ree_traced *trace;         // NULL: none
    const char *device;                     // NULL: not said
    const struct ree_generate_stats *stats; // NULL: not said
};

// Sealed. Release with ree_receipt_finish, also on failure. REE_INVALID where something cannot
// stand in a receipt, such as a stop text that is not UTF-8.
enum ree_status ree_receipt_make_text(const struct ree_text_run *run, struct ree_receipt *out,
                                      struct ree_error *err);
// Whether a receipt could be made of a run with these parameters, before it: `generation` may be
// NULL, as may `model`.
enum ree_status ree_receipt_try_text(const struct ree_text_run *run, struct ree_error *err);

struct ree_tensors_run {
    const struct ree_model *of; // for the order of its inputs
    const struct ree_model_hashes *model;
    enum ree_operation_set operation_set;
    size_t n_inputs; // in any order; NaNs are hashed as they are given
    const struct ree_tensor *inputs;
    size_t n_outputs; // in the model's order
    const struct ree_tensor *outputs;
    const struct ree_traced *trace; // NULL: none
    const char *device;             // NULL: not said
};

enum ree_status ree_receipt_make_tensors(const struct ree_tensors_run *run, struct ree_receipt *out,
                                         struct ree_error *err);

#endif
