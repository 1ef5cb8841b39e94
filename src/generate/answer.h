// Decodes the text of a prompt and of its answer token by token, and ends the answer at a stop
// text.
//
// Special tokens produce no text. The prompt's text depends only on the prompt's tokens: at its end
// the decoder returns the text held back, and an incomplete character becomes U+FFFD. The answer's
// tokens are decoded as the continuation of a text. The answer's text ends at the first complete
// stop text; if one token completes several, at the one that begins first. If no stop text ends it,
// it includes the text that the decoder holds back at the end.
#ifndef REE_GENERATE_ANSWER_H
#define REE_GENERATE_ANSWER_H

#include "base/strbuf.h"
#include "ree.h"

struct ree_answer {
    const char *const *stops; // stop texts, each non-empty; borrowed from the caller
    size_t n_stops;
    struct ree_decoder *decoder;
    struct ree_strbuf prompt, text;
    // A stop text was found. It is not part of `text`, but its tokens belong to the answer.
    bool stopped;
    bool ended;
};

// What happens at the end of a prompt to bytes that the decoder still holds back.
enum ree_text_boundary {
    // Bytes held back end the prompt's text; an incomplete character becomes U+FFFD.
    REE_BOUNDARY_SETTLED,
    REE_BOUNDARY_JOINED, // bytes held back begin the answer's text, as in ree-receipt/1
};

// Decodes the n tokens of the prompt and starts an empty answer. Release with ree_answer_finish,
// even on failure.
enum ree_status ree_answer_begin(struct ree_answer *answer, const struct ree_tokenizer *tokenizer,
                                 const char *const *stops, size_t n_stops, const int32_t *prompt,
                                 size_t n, enum ree_text_boundary boundary, struct ree_error *err);
// Adds the text of one more token to the answer; does nothing once `stopped` is set.
enum ree_status ree_answer_push(struct ree_answer *answer, int32_t id, struct ree_error *err);
// Ends the answer's text. Must be called after the answer's last token; does nothing once `stopped`
// is set.
enum ree_status ree_answer_end(struct ree_answer *answer, struct ree_error *err);
void ree_answer_finish(struct ree_answer *answer);
// Returns the number of bytes at the end of the text that may be the beginning of a stop text.
size_t ree_answer_held_back(const struct ree_answer *answer);

#endif
