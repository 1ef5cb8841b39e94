// Prints the text of generated sequences while it is generated, as soon as it is final.
#ifndef REE_TOOLS_RUN_WRITER_H
#define REE_TOOLS_RUN_WRITER_H

#include "generate/answer.h"
#include "strbuf.h"

struct writer {
    const struct ree_tokenizer *tokenizer; // NULL: prints ids instead of text
    const char *const *stops;
    size_t n_stops;
    bool prints;              // print during generation; only for a single sequence
    struct ree_answer answer; // used with a tokenizer
    struct ree_strbuf ids;    // used without a tokenizer
    bool escapes;             // escape control characters for a terminal (cli_append_escaped)
    size_t printed;           // bytes of the text already printed
    bool failed;
};

// Starts with the prompt. false: out of memory, or an id unknown to the tokenizer (printed).
bool writer_begin(struct writer *w, const struct ree_prompt *prompt);
// Adds a token. false: it completed a stop string, or a failure (w->failed).
bool writer_push(struct writer *w, int32_t id);
// Prints the text that was held back.
void writer_end(struct writer *w);
void writer_finish(struct writer *w);
// Appends `text` (the prompt or the answer) in the form in which it is printed.
void writer_append(const struct writer *w, const struct ree_strbuf *text, struct strbuf *out);
// The returned strings may contain NULs.
const struct ree_strbuf *writer_prompt(const struct writer *w); // as the tokenizer decodes it
const struct ree_strbuf *writer_text(const struct writer *w);   // the answer, without a stop string

#endif
