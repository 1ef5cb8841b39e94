// Decodes the tokens of a receipt: the texts of prompt and answer, and the token that ends the
// answer by the receipt's own parameters, with the rules of generation.
#ifndef REE_RECEIPT_READ_ANSWER_H
#define REE_RECEIPT_READ_ANSWER_H

#include "generate/answer.h"
#include "receipt/receipt.h"

struct ree_answer_question {
    const struct ree_receipt *receipt; // its eos, stop, max_new_tokens and version are used
    // NULL: texts are not decoded and stop texts are not found.
    const struct ree_tokenizer *tokenizer;
    const int32_t *ids; // prompt tokens, then answer tokens
    size_t n_prompt, n_answer;
    uint64_t context_length; // in tokens; 0: no limit
};

struct ree_answer_read {
    struct ree_answer answer; // the two texts; empty without a tokenizer
    // Answer tokens up to and including the first one that ends it; SIZE_MAX: none does.
    size_t n_until_end;
    const char *reason; // "eos", "stop" or "length": why that token ends it; NULL: none does
};

// Reads all tokens, including those after the end. Fails with REE_INVALID if the tokenizer does not
// have a token, and with REE_NO_MEMORY. Release with ree_answer_read_finish, also on failure.
enum ree_status ree_answer_read(const struct ree_answer_question *question,
                                struct ree_answer_read *out, struct ree_error *err);
void ree_answer_read_finish(struct ree_answer_read *read);

#endif
