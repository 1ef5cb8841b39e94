// What the files of verification share; for verify*.c only.
#ifndef REE_AUDIT_VERIFY_PARTS_H
#define REE_AUDIT_VERIFY_PARTS_H

#include "audit/verify.h"

// The parameters of a receipt of a text that are the model's and not the prover's: the tokens that
// end an answer, and the length of the context. Compares them with what the verifier's own copy says.
// A difference that has no effect on this answer is named and agrees: copies of one model do not all
// say these things.

// answer[n]: the answer's tokens.
enum ree_status ree_verify_ends(struct ree_verification *v, const struct ree_verify_text *what,
                                const int32_t *answer, size_t n, struct ree_error *err);
// n: tokens of prompt and answer.
void ree_verify_context(struct ree_verification *v, const struct ree_verify_text *what, size_t n);

// Whether the text that the prompt's tokens say, encoded, gives these tokens. Two prompts of one
// text can differ: in segmentation, in special tokens, in whether they begin with BOS. Special
// tokens are spelled out in the finding.
enum ree_status ree_verify_encoding(struct ree_verification *v,
                                    const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                    size_t n, struct ree_error *err);

#endif
