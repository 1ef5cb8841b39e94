// Internal interface of the verify*.c files.
#ifndef REE_RECEIPT_VERIFY_INTERNAL_H
#define REE_RECEIPT_VERIFY_INTERNAL_H

#include "receipt/verify.h"

// The parameters of a text receipt that belong to the model and not to the prover: the tokens that
// end an answer, and the context length. These functions compare them with what the verifier's own
// copy of the model states. Copies of one model do not all state them, so these cases are reported
// as not checked:
//
// - the copy states no end tokens;
// - the lists of end tokens differ, without effect on this answer;
// - the receipt or the copy states no context length.

// answer[n]: the answer's tokens.
enum ree_status ree_verify_ends(struct ree_verification *v, const struct ree_verify_text *what,
                                const int32_t *answer, size_t n, struct ree_error *err);
// n: number of tokens of prompt and answer.
void ree_verify_context(struct ree_verification *v, const struct ree_verify_text *what, size_t n);

// Checks that decoding the prompt's tokens and encoding the text gives the same tokens. Prompts
// with the same text can differ: in segmentation, in special tokens, or in a leading BOS token. The
// finding shows special tokens by name.
enum ree_status ree_verify_encoding(struct ree_verification *v,
                                    const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                    size_t n, struct ree_error *err);

#endif
