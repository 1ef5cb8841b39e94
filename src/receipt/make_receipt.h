// Makes the receipt of a run: of a generated text, or of a run with tensors as inputs and outputs.
//
// generate/answer.h defines the texts of prompt and answer; a NUL is stored as U+FFFD. The
// tokens of the answer are all that were generated, including those that completed a stop text; the
// text of the answer ends before that stop text. Without a tokenizer there are no texts. A private
// receipt has blinded hashes instead of tokens and texts (receipt/receipt.h).
#ifndef REE_RECEIPT_MAKE_RECEIPT_H
#define REE_RECEIPT_MAKE_RECEIPT_H

#include "receipt/receipt.h"
#include "session/identity.h"

// Copies a text into the arena and replaces each NUL by U+FFFD, as receipts store texts. Returns
// the copy; NULL: out of memory.
char *ree_receipt_encode_text(struct ree_arena *arena, const struct ree_strbuf *text);

// The trace that was recorded during the run of a receipt (trace/trace.h).
struct ree_traced {
    ree_digest root;        // the root of the trace's hash tree
    uint64_t n_steps;       // number of steps in the trace
    uint32_t prefill_chunk; // prompt tokens per step; 0 for a run with tensors
    const char *file;       // name of the trace file without folders; NULL: not stated
};

// A run that generated a text. All pointers are borrowed for the call; the receipt gets copies.
struct ree_text_run {
    const struct ree_model_hashes *model;
    const struct ree_tokenizer *tokenizer; // NULL: none; the receipt then has no texts
    enum ree_operation_set operation_set;
    int64_t context_length; // context length of the model in tokens; 0: unknown
    const struct ree_generate_options *options;
    const char *const *stops;
    size_t n_stops;
    const struct ree_generation *generation; // the tokens of prompt and answer
    // REE_SALT_SIZE random bytes that make the receipt private; NULL: the receipt is not private.
    const unsigned char *salt;
    const char *request_sha256;             // hash of the request that the run answers; NULL: none
    const struct ree_traced *trace;         // NULL: no trace was recorded
    const char *device;                     // name of the device; NULL: not stated
    const struct ree_generate_stats *stats; // statistics of the run; NULL: not stated
};

// Makes and seals the receipt of a text. Release *out with ree_receipt_finish, also on failure.
// Fails with REE_INVALID if a receipt cannot store a value, for example a stop text that is not
// UTF-8, and with REE_UNSUPPORTED if a callback changed the logits.
enum ree_status ree_receipt_make_text(const struct ree_text_run *run, struct ree_receipt *out,
                                      struct ree_error *err);
// Called before a run: checks that a receipt of a run with these parameters can be made, and fails
// as ree_receipt_make_text would. `generation` and `model` are not used and may be NULL.
enum ree_status ree_receipt_try_text(const struct ree_text_run *run, struct ree_error *err);

struct ree_tensors_run {
    const struct ree_model *of; // the model that ran; the receipt lists inputs in its order
    const struct ree_model_hashes *model;
    enum ree_operation_set operation_set;
    size_t n_inputs;
    const struct ree_tensor *inputs; // (n_inputs), in any order; NaNs are hashed unchanged
    size_t n_outputs;
    const struct ree_tensor *outputs; // (n_outputs), in the model's order
    const struct ree_traced *trace;   // NULL: no trace was recorded
    const char *device;               // name of the device; NULL: not stated
};

enum ree_status ree_receipt_make_tensors(const struct ree_tensors_run *run, struct ree_receipt *out,
                                         struct ree_error *err);

#endif
