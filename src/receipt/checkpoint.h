// A checkpoint stores the state of a run that generates texts, as one JSON object, so that a later
// run can resume it.
//
//     {
//       "schema": "ree-checkpoint/1",
//       "body": {
//         "numerics", "operation_set", "model", "tokenizer_sha256", "sampling"   as in a receipt
//         "logits_hash": bool,                     true if the run hashes its logits
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
// "caches" has a digest of each kv cache, over the positions of all tokens except the last one;
// null if the digest is unknown. A resumed run computes the kv caches again and compares the
// digests. It also checks that the model chooses the stored tokens of every sequence, including
// sequences that are done.
//
// The file is this object as canonical JSON followed by a newline. checkpoint_sha256 reveals
// accidental corruption, but not forgery, because anyone can compute it. NUMERICS.md,
// "Checkpoints".
#ifndef REE_RECEIPT_CHECKPOINT_H
#define REE_RECEIPT_CHECKPOINT_H

#include "receipt/receipt.h"

struct ree_text_checkpoint {
    // Describes the run: numerics, operation set, hashes of model and tokenizer, sampling and
    // limits. All other fields of the receipt are empty. In a decoded checkpoint, the arena of
    // `run` owns all memory of the checkpoint.
    struct ree_receipt run;
    bool logits_hash; // the run hashes its logits
    // Write the file so that only its owner can read and write it. This flag is not in the file.
    bool is_secret;
    size_t n;                             // number of sequences
    const struct ree_snapshot *sequences; // (n)
};

// Writes a checkpoint to the file `path`, whole or not at all (base/file.h). When this returns, the
// contents are on disk. Fails with REE_INVALID if the file would exceed 64 MiB.
enum ree_status ree_text_checkpoint_write(const struct ree_text_checkpoint *checkpoint,
                                          const char *path, struct ree_error *err);
// Reads a checkpoint and checks its structure, types, ranges and hash. Does not check the tokens
// and hashes that only the model can confirm. Release *out with ree_text_checkpoint_finish, also on
// failure.
enum ree_status ree_text_checkpoint_load(const char *path, struct ree_text_checkpoint *out,
                                         struct ree_error *err);
enum ree_status ree_text_checkpoint_decode(const void *bytes, size_t nbytes, const char *where,
                                           struct ree_text_checkpoint *out, struct ree_error *err);
void ree_text_checkpoint_finish(struct ree_text_checkpoint *checkpoint);
// Returns whether all sequences of the checkpoint are done.
bool ree_text_checkpoint_is_done(const struct ree_text_checkpoint *checkpoint);

// Compares the run of the checkpoint `is` with the requested run, `expected`; only a checkpoint
// without differences can be resumed. Calls on_difference with one line for each difference, such
// as "body.sampling.temperature is 0.8, expected 0.7". Compares the prompts of the sequences, but
// not their answers. *out_n receives the number of differences.
enum ree_status ree_text_checkpoint_compare(const struct ree_text_checkpoint *is,
                                            const struct ree_text_checkpoint *expected,
                                            void (*on_difference)(void *user, const char *line),
                                            void *user, size_t *out_n, struct ree_error *err);

#endif
