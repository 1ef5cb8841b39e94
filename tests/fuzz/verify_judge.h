// Decides whether a receipt is true. Repeats the run as a prover does, so that the verdict does not
// rest on the verifier's code, which the fuzz target tests.
#ifndef REE_TESTS_FUZZ_VERIFY_JUDGE_H
#define REE_TESTS_FUZZ_VERIFY_JUDGE_H

#include "verify_world.h"

// Must be called for a receipt that the verifier called verified (or, with is_prefix, a verified
// prefix). Makes an honest receipt of the same prompt and parameters, and ends the process with a
// message if the two state different things:
//
// - All members of the receipts' bodies are compared, through the digest of the body. Members that
//   a receipt may omit (tokens and texts whose hashes are present, texts altogether, the hash of
//   logits) are omitted from the honest receipt if they are missing from the other.
// - `eos` may list other tokens than the model has, if the answer is the same with either list.
// - `context_length` may be 0, which states nothing.
// - Version 1 allows any value for a parameter without effect. The verifier does not call receipts
//   with unusual values verified, so such a receipt ends the process.
// - Members outside the body (`unbound`) may have any value.
//
// c: the verifier's options. request: NULL if there was none. prompt: the verifier's prompt; NULL
// if it had none.
void verify_judge(const struct ree_receipt *receipt, const struct verify_case *c,
                  const struct ree_request *request, const struct ree_prompt *prompt,
                  bool is_prefix);

#endif
