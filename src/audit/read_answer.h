// What the tokens of a receipt say: the texts of prompt and answer, and where the answer ends by
// the receipt's own parameters, as generation would end it.
#ifndef REE_AUDIT_READ_ANSWER_H
#define REE_AUDIT_READ_ANSWER_H

#include "generate/answer.h"
#include "receipt/receipt.h"

struct ree_answer_question {
    const struct ree_receipt *receipt;     // eos, stop, max_new_tokens, and the version
    const struct ree_tokenizer *tokenizer; // NULL: texts are not decoded, stop texts not found
    const int32_t *ids;                    // prompt, then answer
    size_t n_prompt, n_answer;
    uint64_t context_length; // tokens; 0: no limit
};

struct ree_answer_read {
    struct ree_answer answer; // its texts; empty without a tokenizer
    size_t n_until_end;       // tokens of the answer up to the first that ends it; SIZE_MAX: none
    const char *reason;       // "eos", "stop", "length", of that token; NULL: none
};

// Reads all tokens, those after the end too. Errors: REE_INVALID, ids that the tokenizer lacks;
// REE_NO_MEMORY. Release with ree_answer_read_finish, also on failure.
enum ree_status ree_answer_read(const struct ree_answer_question *question,
                                struct ree_answer_read *out, struct ree_error *err);
void ree_answer_read_finish(struct ree_answer_read *read);

#endif
