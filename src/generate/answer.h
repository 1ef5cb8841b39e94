// The text of a prompt and of the answer to it, token by token, and where a stop text ends it.
//
// The decoder leaves special tokens out. The prompt's text is what the prompt's tokens say by
// themselves: at the boundary the decoder gives what it holds back, and an incomplete character
// becomes U+FFFD. The answer's tokens are decoded as tokens in the middle of a text. The answer's
// text ends at the first stop text that is complete: of several that become complete with one
// token, the one that begins first. If no stop text ends it, the text that the decoder holds back at
// the end belongs to it.
#ifndef REE_GENERATE_ANSWER_H
#define REE_GENERATE_ANSWER_H

#include "base/strbuf.h"
#include "ree.h"

struct ree_answer {
    const char *const *stops; // not empty, each; owned by the caller
    size_t n_stops;
    struct ree_decoder *decoder;
    struct ree_strbuf prompt, text;
    bool stopped; // a stop text was found; the tokens that completed it are of the answer
    bool ended;
};

// Where the text of a prompt ends.
enum ree_text_boundary {
    REE_BOUNDARY_SETTLED, // as above
    REE_BOUNDARY_JOINED,  // as ree-receipt/1 has it: bytes held back belong to the answer
};

// Decodes the prompt. Release with ree_answer_finish, also on failure.
enum ree_status ree_answer_begin(struct ree_answer *answer, const struct ree_tokenizer *tokenizer,
                                 const char *const *stops, size_t n_stops, const int32_t *prompt,
                                 size_t n, enum ree_text_boundary boundary, struct ree_error *err);
// Takes a token; nothing more once `stopped` is set.
enum ree_status ree_answer_push(struct ree_answer *answer, int32_t id, struct ree_error *err);
// After the last token.
enum ree_status ree_answer_end(struct ree_answer *answer, struct ree_error *err);
void ree_answer_finish(struct ree_answer *answer);
// Bytes at the end of the text that may be the beginning of a stop text.
size_t ree_answer_held_back(const struct ree_answer *answer);

#endif
