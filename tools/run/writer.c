#include "writer.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"

static void print(struct writer *w, const char *text, size_t n) {
    if (!w->prints) return;
    cli_progress_end();
    fwrite(text, 1, n, stdout);
    fflush(stdout);
}

bool writer_begin(struct writer *w, const struct ree_prompt *prompt) {
    struct ree_error err;
    ree_strbuf_init(&w->prompt);
    ree_strbuf_init(&w->text);
    if (!w->tokenizer) return true;
    if (ree_decoder_create(w->tokenizer, REE_SKIP_SPECIAL, &w->decoder, &err) != REE_OK) {
        cli_fail(&err);
        return false;
    }
    // The answer's first token may mean another text in the middle of one than at its beginning.
    for (size_t i = 0; i < prompt->n; i++) {
        const char *piece;
        size_t n;
        if (ree_decoder_push(w->decoder, prompt->ids[i], &piece, &n, &err) != REE_OK) {
            cli_fail(&err);
            return false;
        }
        ree_strbuf_append(&w->prompt, piece, n);
    }
    return !w->prompt.failed;
}

// Cuts the text at the first stop string that is complete. `from`: bytes looked at before.
static bool cut_at_stop(struct writer *w, size_t from) {
    size_t best = w->text.size;
    for (size_t i = 0; i < w->n_stops; i++) {
        size_t n = strlen(w->stops[i]), back = n < from + 1 ? from + 1 - n : 0;
        if (w->text.size < back + n) continue;
        const char *at = memmem(w->text.data + back, w->text.size - back, w->stops[i], n);
        if (at && (size_t)(at - w->text.data) < best) {
            best = (size_t)(at - w->text.data);
            w->stopped = true;
        }
    }
    if (!w->stopped) return false;
    w->text.size = best;
    w->text.data[best] = 0;
    return true;
}

// Bytes at the end that may be the beginning of a stop string.
static size_t held_back(const struct writer *w) {
    size_t most = 0;
    for (size_t i = 0; i < w->n_stops; i++) {
        size_t n = strlen(w->stops[i]);
        for (size_t k = n - 1 < w->text.size ? n - 1 : w->text.size; k > most; k--)
            if (memcmp(w->text.data + w->text.size - k, w->stops[i], k) == 0) most = k;
    }
    return most;
}

static void take(struct writer *w, const char *piece, size_t n, bool last) {
    size_t from = w->text.size;
    ree_strbuf_append(&w->text, piece, n);
    if (w->text.failed || w->text.size == 0) {
        w->failed = w->failed || w->text.failed;
        return;
    }
    bool stopped = cut_at_stop(w, from);
    size_t certain = w->text.size - (stopped || last ? 0 : held_back(w));
    if (certain <= w->printed) return;
    print(w, w->text.data + w->printed, certain - w->printed);
    w->printed = certain;
}

bool writer_push(struct writer *w, int32_t id) {
    struct ree_error err;
    const char *piece;
    size_t n;
    if (!w->tokenizer) {
        char number[16];
        n = (size_t)snprintf(number, sizeof number, "%s%d", w->text.size ? " " : "", id);
        take(w, number, n, true);
        return true;
    }
    if (ree_decoder_push(w->decoder, id, &piece, &n, &err) != REE_OK) {
        cli_fail(&err);
        w->failed = true;
        return false;
    }
    take(w, piece, n, false);
    return !w->stopped && !w->failed;
}

void writer_end(struct writer *w) {
    struct ree_error err;
    const char *piece;
    size_t n;
    if (!w->decoder || w->stopped) return;
    if (ree_decoder_flush(w->decoder, &piece, &n, &err) == REE_OK) take(w, piece, n, true);
}

void writer_finish(struct writer *w) {
    ree_decoder_destroy(w->decoder);
    ree_strbuf_finish(&w->prompt);
    ree_strbuf_finish(&w->text);
}
