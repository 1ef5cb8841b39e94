#include "writer.h"

#include <string.h>

#include "cli.h"

static void lack_memory(struct writer *w) {
    if (!w->failed) cli_error("out of memory");
    w->failed = true;
}

// Prints the part of the text's first `certain` bytes that is not printed yet. `more`: more text
// may follow.
static void print(struct writer *w, const struct ree_strbuf *text, size_t certain, bool more) {
    if (certain <= w->printed) return;
    if (!w->prints) {
        w->printed = certain;
        return;
    }
    const char *from = text->data + w->printed;
    size_t n = certain - w->printed;
    struct strbuf escaped;
    strbuf_init(&escaped);
    if (w->escapes) n = cli_append_escaped(&escaped, from, n, more);
    if (escaped.failed) lack_memory(w);
    // Lost output shows in the report's exit code. The generation continues, for the sake of its
    // receipt.
    if (!escaped.failed) cli_write(w->escapes ? escaped.data : from, w->escapes ? escaped.size : n);
    strbuf_finish(&escaped);
    w->printed += n;
}

static bool fail(struct writer *w, const struct ree_error *err) {
    cli_fail(err);
    w->failed = true;
    return false;
}

bool writer_begin(struct writer *w, const struct ree_prompt *prompt) {
    struct ree_error err;
    ree_strbuf_init(&w->ids);
    if (!w->tokenizer) return true;
    if (ree_answer_begin(&w->answer, w->tokenizer, w->stops, w->n_stops, prompt->ids, prompt->n,
                         REE_BOUNDARY_SETTLED, &err) == REE_OK)
        return true;
    return fail(w, &err);
}

bool writer_push(struct writer *w, int32_t id) {
    struct ree_error err;
    if (!w->tokenizer) {
        ree_strbuf_printf(&w->ids, "%s%d", w->ids.size ? " " : "", id);
        if (!w->ids.failed) print(w, &w->ids, w->ids.size, true);
        if (w->ids.failed) lack_memory(w);
        return !w->failed;
    }
    if (ree_answer_push(&w->answer, id, &err) != REE_OK) return fail(w, &err);
    const struct ree_answer *a = &w->answer;
    print(w, &a->text, a->text.size - (a->stopped ? 0 : ree_answer_held_back(a)), true);
    return !a->stopped;
}

void writer_end(struct writer *w) {
    struct ree_error err;
    if (!w->tokenizer || w->failed) return;
    if (ree_answer_end(&w->answer, &err) != REE_OK)
        fail(w, &err);
    else
        print(w, &w->answer.text, w->answer.text.size, false);
}

void writer_finish(struct writer *w) {
    ree_answer_finish(&w->answer);
    ree_strbuf_finish(&w->ids);
}

void writer_append(const struct writer *w, const struct ree_strbuf *text, struct strbuf *out) {
    if (w->escapes)
        cli_append_escaped(out, text->data, text->size, false);
    else
        strbuf_append(out, text->data, text->size);
}

const struct ree_strbuf *writer_prompt(const struct writer *w) {
    return &w->answer.prompt;
}

const struct ree_strbuf *writer_text(const struct writer *w) {
    return w->tokenizer ? &w->answer.text : &w->ids;
}
