// Checkpoints: texts that are being generated, as far as they have come, as one JSON object from
// which the run can go on.
//
//     {
//       "schema": "ree-checkpoint/1",
//       "body": {
//         "numerics", "operation_set", "model", "tokenizer_sha256", "sampling"   as in a receipt
//         "logits_hash": bool,                     whether logits are hashed
//         "sequences": [{
//           "prompt": [ids], "tokens": [ids],      of the answer so far
//           "finish_reason": "length" | "eos" | "stop",     of one that is done
//           "logits_sha256": hex,                  of one that is done, with logits_hash
//           "caches": [hex]                        of one that is not, with tokens: of each cache,
//         }]                                       over all tokens but the last; null where it was
//                                                  not known
//       },
//       "checkpoint_sha256": hex                   SHA-256("ree-checkpoint/1\0" | canonical body)
//     }
//
// The file is this object as canonical JSON with a newline at the end. Its hash tells damage, not
// forgery: anyone can make one. What goes on from it is computed anew and compared, but for
// sequences that are done. NUMERICS.md, "Checkpoints".
#ifndef REE_RECEIPT_CHECKPOINT_H
#define REE_RECEIPT_CHECKPOINT_H

#include "receipt/receipt.h"

struct ree_text_checkpoint {
    // What was asked for: numerics, operation set, hashes of model and tokenizer, sampling and what
    // stands beside it. The rest of a receipt is empty. Of a file that was read, its arena has all.
    struct ree_receipt run;
    bool logits_hash;
    bool is_secret; // the file is for its owner only; not in the file
    size_t n;
    const struct ree_snapshot *sequences;
};

// Whole or not at all (base/file.h), on the disk when this returns.
enum ree_status ree_text_checkpoint_write(const struct ree_text_checkpoint *checkpoint,
                                          const char *path, struct ree_error *err);
// Reads and checks all but what only the model can tell: structure, types, ranges, the hash.
// Release with ree_text_checkpoint_finish, also on failure.
enum ree_status ree_text_checkpoint_load(const char *path, struct ree_text_checkpoint *out,
                                         struct ree_error *err);
enum ree_status ree_text_checkpoint_decode(const void *bytes, size_t nbytes, const char *where,
                                           struct ree_text_checkpoint *out, struct ree_error *err);
void ree_text_checkpoint_finish(struct ree_text_checkpoint *checkpoint);
// Whether all its sequences are done.
bool ree_text_checkpoint_is_done(const struct ree_text_checkpoint *checkpoint);

// What keeps one run from going on with the checkpoint of another, a line for each difference:
// "body.sampling.temperature is 0.8, expected 0.7". Of sequences, the prompts alone are compared.
// *out_n is how many there are.
enum ree_status ree_text_checkpoint_compare(const struct ree_text_checkpoint *is,
                                            const struct ree_text_checkpoint *expected,
                                            void (*on_difference)(void *user, const char *line),
                                            void *user, size_t *out_n, struct ree_error *err);

#endif
