// Internal declarations of verification (verify.h), shared by the verify*.c files.
#ifndef REE_RECEIPT_VERIFY_INTERNAL_H
#define REE_RECEIPT_VERIFY_INTERNAL_H

#include "receipt/verify.h"

// ree_verify_ends and ree_verify_context compare two parameters of a text receipt that belong to
// the model and not to the prover, the eos tokens and the context length, with what the verifier's
// own copy of the model states. Not every copy of a model states them, so these cases are reported
// as not checked:
//
// - the copy states no eos tokens;
// - the lists of eos tokens differ, but no token of this answer is in only one of them;
// - the receipt or the copy states no context length.

// Adds the check of the eos tokens. `answer` has the n tokens of the answer.
enum ree_status ree_verify_ends(struct ree_verification *v, const struct ree_verify_text *what,
                                const int32_t *answer, size_t n, struct ree_error *err);
// Adds the check of the context length. `n` is the number of tokens of prompt and answer together.
void ree_verify_context(struct ree_verification *v, const struct ree_verify_text *what,
                        size_t n_prompt, size_t n_answer);

// Adds a check if the receipt's trace has a chunk of the prompt that the model must not have
// (ree_chunk_needs_causality): "differs", or "not checked" for ree-receipt/1, which allowed any
// chunk, and for a model that was loaded without folding.
void ree_verify_chunk(struct ree_verification *v, const struct ree_verify_text *what,
                      size_t n_prompt);

// Adds the check "prompt encoding": decodes the prompt's n tokens `ids`, encodes the resulting
// text, and compares the tokens. They can differ, because several prompts have the same text: they
// differ in segmentation, in special tokens or in a leading BOS token. A difference counts as not
// checked, and so does a text that the receipt states with another end, because its answer follows
// it. The check's detail shows special tokens by name. Fails with REE_INVALID if the tokenizer does
// not have one of the tokens.
enum ree_status ree_verify_encoding(struct ree_verification *v,
                                    const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                    size_t n, struct ree_error *err);

#endif
