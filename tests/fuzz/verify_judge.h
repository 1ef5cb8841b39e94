// Whether what a receipt says is true, found by making the run anew as a prover makes it: by other
// code than that which verifies.
#ifndef REE_TESTS_FUZZ_VERIFY_JUDGE_H
#define REE_TESTS_FUZZ_VERIFY_JUDGE_H

#include "verify_world.h"

// Ends the process with a message where a receipt that was called verified (or, with is_prefix, a
// verified prefix) says anything else than an honest receipt of the same prompt and parameters:
//
// - Everything bound is compared, by way of the body's digest. Fields that a receipt may leave out
//   (tokens and texts whose hashes are there, texts altogether, the hash of logits) are left out of
//   the honest one, too.
// - `eos` may list other tokens than the model has, if the answer is the same with either list.
// - `context_length` may be 0, which says nothing.
// - In version 1 parameters without effect may say anything; no such receipt is called verified.
// - What is not bound may say anything.
void verify_judge(const struct ree_receipt *receipt, const struct verify_case *c,
                  const struct ree_request *request, const struct ree_prompt *prompt,
                  bool is_prefix);

#endif
