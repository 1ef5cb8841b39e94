// Decides whether a receipt is true: repeats the run as a prover does, with other code than the
// verifier's.
#ifndef REE_TESTS_FUZZ_VERIFY_JUDGE_H
#define REE_TESTS_FUZZ_VERIFY_JUDGE_H

#include "verify_world.h"

// Ends the process with a message if a receipt that was verified (or, with is_prefix, verified as a
// prefix) states anything else than an honest receipt of the same prompt and parameters:
//
// - Everything bound is compared through the body's digest. Members that a receipt may omit (tokens
//   and texts whose hashes are present, texts altogether, the hash of logits) are omitted from the
//   honest receipt too.
// - `eos` may list other tokens than the model has, if the answer is the same with either list.
// - `context_length` may be 0, which states nothing.
// - In version 1, parameters without effect may have any value; no receipt that uses this is
//   verified.
// - Unbound members may have any value.
void verify_judge(const struct ree_receipt *receipt, const struct verify_case *c,
                  const struct ree_request *request, const struct ree_prompt *prompt,
                  bool is_prefix);

#endif
