// Checkpoints: texts whose generation is in progress, as one JSON object from which the run can be
// resumed.
//
//     {
//       "schema": "ree-checkpoint/1",
//       "body": {
//         "numerics", "operation_set", "model", "tokenizer_sha256", "sampling"   as in a receipt
//         "logits_hash": bool,                     true if logits are hashed
//         "sequences": [{
//           "prompt": [ids],
//           "tokens": [ids],                       tokens of the answer so far
//           "finish_reason": "length" | "eos" | "stop",     only if the sequence is done
//           "logits_sha256": hex,                  only if it is done and logits_hash is true
//           "caches": [hex]                        only if it is not done and has tokens: see below
//         }]
//       },
//       "checkpoint_sha256": hex                   SHA-256("ree-checkpoint/1\0" | canonical body)
//     }
//
// "caches" has a digest for each kv cache, over all tokens but the last; null if the digest was
// unknown. A resumed run computes the caches again and compares the digests. It also checks that
// the model chooses the tokens of every sequence, including those that are done.
//
// The file is this object as canonical JSON followed by a newline. Its hash shows that the file was
// corrupted by accident, but not that it was forged: anyone can compute the hash. NUMERICS.md,
// "Checkpoints".
#ifndef REE_RECEIPT_CHECKPOINT_H
#define REE_RECEIPT_CHECKPOINT_H

#include "receipt/receipt.h"

struct ree_text_checkpoint {
    // The requested run: numerics, operation set, hashes of model and tokenizer, sampling and
    // limits. All other fields of the receipt are empty. In a decoded checkpoint, the arena of
    // `run` owns everything.
    struct ree_receipt run;
    bool logits_hash;
    // Only the owner may read and write the file. Not stored in the file.
    bool is_secret;
    size_t n;
    const struct ree_snapshot *sequences;
};

// Writes the file whole or not at all (base/file.h); it is on disk when this returns.
enum ree_status ree_text_checkpoint_write(const struct ree_text_checkpoint *checkpoint,
                                          const char *path, struct ree_error *err);
// Reads a checkpoint and checks structure, types, ranges and the hash; it does not check what
// requires the model. Release with ree_text_checkpoint_finish, also on failure.
enum ree_status ree_text_checkpoint_load(const char *path, struct ree_text_checkpoint *out,
                                         struct ree_error *err);
enum ree_status ree_text_checkpoint_decode(const void *bytes, size_t nbytes, const char *where,
                                           struct ree_text_checkpoint *out, struct ree_error *err);
void ree_text_checkpoint_finish(struct ree_text_checkpoint *checkpoint);
// True if all sequences are done.
bool ree_text_checkpoint_is_done(const struct ree_text_checkpoint *checkpoint);

// Compares a checkpoint with the requested run, which must be the same to resume it. Calls
// on_difference with one line for each difference: "body.sampling.temperature is 0.8, expected
// 0.7". Of the sequences only the prompts are compared. *out_n receives the number of differences.
enum ree_status ree_text_checkpoint_compare(const struct ree_text_checkpoint *is,
                                            const struct ree_text_checkpoint *expected,
                                            void (*on_difference)(void *user, const char *line),
                                            void *user, size_t *out_n, struct ree_error *err);

#endif
