// Makes receipts of runs.
//
// The texts of prompt and answer are those of generate/answer.h, with U+FFFD for each NUL. The
// tokens of the answer are all that were generated, including those that completed a stop text; the
// text of the answer ends before that stop text. Without a tokenizer there are no texts. A private
// receipt has blinded hashes instead of tokens and texts (receipt/receipt.h).
#ifndef REE_RECEIPT_MAKE_RECEIPT_H
#define REE_RECEIPT_MAKE_RECEIPT_H

#include "receipt/receipt.h"
#include "session/identity.h"

// Copies a text into the arena as receipts store it, with U+FFFD for each NUL. NULL: out of memory.
char *ree_receipt_encode_text(struct ree_arena *arena, const struct ree_strbuf *text);

// A trace that was recorded in the same run (trace/trace.h).
struct ree_traced {
    ree_digest root;
    uint64_t n_steps;
    uint32_t prefill_chunk;
    const char *file; // file name without folders; NULL: not stated
};

// All pointers are borrowed for the call; strings and arrays are copied.
struct ree_text_run {
    const struct ree_model_hashes *model;
    const struct ree_tokenizer *tokenizer; // NULL: none
    enum ree_operation_set operation_set;
    int64_t context_length; // 0: not known
    const struct ree_generate_options *options;
    const char *const *stops;
    size_t n_stops;
    const struct ree_generation *generation;
    // REE_SALT_SIZE random bytes that make the receipt private; NULL: not private.
    const unsigned char *salt;
    const char *request_sha256;             // the request that this run answers; NULL: none
    const struct ree_traced *trace;         // NULL: none
    const char *device;                     // NULL: not stated
    const struct ree_generate_stats *stats; // NULL: not stated
};

// Makes and seals a receipt. Release with ree_receipt_finish, also on failure. Fails with
// REE_INVALID if a receipt cannot hold something, for example a stop text that is not UTF-8.
enum ree_status ree_receipt_make_text(const struct ree_text_run *run, struct ree_receipt *out,
                                      struct ree_error *err);
// Checks before a run that a receipt of a run with these parameters can be made. `generation` and
// `model` may be NULL.
enum ree_status ree_receipt_try_text(const struct ree_text_run *run, struct ree_error *err);

struct ree_tensors_run {
    const struct ree_model *of; // defines the order of the inputs
    const struct ree_model_hashes *model;
    enum ree_operation_set operation_set;
    size_t n_inputs; // in any order; NaNs are hashed unchanged
    const struct ree_tensor *inputs;
    size_t n_outputs; // in the model's order
    const struct ree_tensor *outputs;
    const struct ree_traced *trace; // NULL: none
    const char *device;             // NULL: not stated
};

enum ree_status ree_receipt_make_tensors(const struct ree_tensors_run *run, struct ree_receipt *out,
                                         struct ree_error *err);

#endif
