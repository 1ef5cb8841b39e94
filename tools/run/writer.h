// The text of generated sequences as it comes: printing what is certain.
#ifndef REE_TOOLS_RUN_WRITER_H
#define REE_TOOLS_RUN_WRITER_H

#include "generate/answer.h"

struct writer {
    const struct ree_tokenizer *tokenizer; // NULL: ids are printed in place of text
    const char *const *stops;
    size_t n_stops;
    bool prints;              // as it comes: of a single sequence
    struct ree_answer answer; // with a tokenizer
    struct ree_strbuf ids;    // without one
    bool escapes;             // for a terminal (cli_append_escaped)
    size_t printed;           // bytes of the text
    bool failed;
};

// Takes the prompt in. false: out of memory, or ids that the tokenizer lacks (printed).
bool writer_begin(struct writer *w, const struct ree_prompt *prompt);
// Takes a token; false when a stop string was completed.
bool writer_push(struct writer *w, int32_t id);
void writer_end(struct writer *w); // what was held back
void writer_finish(struct writer *w);
// Appends the prompt or the answer as it is printed.
void writer_append(const struct writer *w, const struct ree_strbuf *text, struct ree_strbuf *out);
// They may have NULs.
const struct ree_strbuf *writer_prompt(const struct writer *w); // as the tokenizer spells it
const struct ree_strbuf *
writer_text(const struct writer *w); // of the answer, without a stop string

#endif
