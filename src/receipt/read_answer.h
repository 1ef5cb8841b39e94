// Derives from the tokens of a receipt what a run with its parameters would have reported: the
// texts of prompt and answer, the token that ends the answer, and the reason.
#ifndef REE_RECEIPT_READ_ANSWER_H
#define REE_RECEIPT_READ_ANSWER_H

#include "generate/answer.h"
#include "receipt/receipt.h"

struct ree_answer_question {
    const struct ree_receipt *receipt; // only its eos, stops, max_new_tokens and version are used
    // NULL: texts are not decoded and stop texts are not found.
    const struct ree_tokenizer *tokenizer;
    const int32_t *ids; // (n_prompt + n_answer): prompt tokens, then answer tokens
    size_t n_prompt, n_answer;
    uint64_t context_length; // context length of the model in tokens; 0: no limit
};

struct ree_answer_read {
    struct ree_answer answer; // texts of prompt and answer; empty without a tokenizer
    bool is_whole; // the text of the answer is that of all tokens: none comes after the end
    // Number of answer tokens up to and including the first one that ends the answer; SIZE_MAX: no
    // token ends it.
    size_t n_until_end;
    const char *reason; // why the answer ends: "eos", "stop" or "length"; NULL: no token ends it
};

// Reads the tokens up to the one that ends the answer. Fails with REE_INVALID if one of them is not
// in the tokenizer's vocabulary, or with REE_NO_MEMORY. Release *out with
// ree_answer_read_finish, also on failure.
enum ree_status ree_answer_read(const struct ree_answer_question *question,
                                struct ree_answer_read *out, struct ree_error *err);
void ree_answer_read_finish(struct ree_answer_read *read);

#endif
