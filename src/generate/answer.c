#include "generate/answer.h"

#include <string.h>

#include "base/status.h"

enum ree_status ree_answer_begin(struct ree_answer *a, const struct ree_tokenizer *tokenizer,
                                 const char *const *stops, size_t n_stops, const int32_t *prompt,
                                 size_t n, enum ree_text_boundary boundary, struct ree_error *err) {
    *a = (struct ree_answer){.stops = stops, .n_stops = n_stops};
    ree_strbuf_init(&a->prompt);
    ree_strbuf_init(&a->text);
    REE_TRY(ree_decoder_create(tokenizer, REE_SKIP_SPECIAL, &a->decoder, err));
    const char *decoded;
    size_t size;
    for (size_t i = 0; i < n; i++) {
        REE_TRY(ree_decoder_push(a->decoder, prompt[i], &decoded, &size, err));
        ree_strbuf_append(&a->prompt, decoded, size);
    }
    if (boundary == REE_BOUNDARY_SETTLED) {
        REE_TRY(ree_decoder_settle(a->decoder, &decoded, &size, err));
        ree_strbuf_append(&a->prompt, decoded, size);
    }
    return a->prompt.failed ? ree_no_memory(err) : REE_OK;
}

// Truncates the text at the first complete stop text. `from`: bytes that were already searched.
static void cut_at_stop(struct ree_answer *a, size_t from) {
    size_t best = a->text.size;
    for (size_t i = 0; i < a->n_stops; i++) {
        size_t n = strlen(a->stops[i]), back = n < from + 1 ? from + 1 - n : 0;
        if (a->text.size < back + n) continue;
        const char *at = memmem(a->text.data + back, a->text.size - back, a->stops[i], n);
        if (at && (size_t)(at - a->text.data) < best) {
            best = (size_t)(at - a->text.data);
            a->stopped = true;
        }
    }
    if (!a->stopped) return;
    a->text.size = best;
    a->text.data[best] = 0;
}

static enum ree_status take(struct ree_answer *a, const char *decoded, size_t n,
                            struct ree_error *err) {
    size_t from = a->text.size;
    ree_strbuf_append(&a->text, decoded, n);
    if (a->text.failed) return ree_no_memory(err);
    if (a->text.size) cut_at_stop(a, from);
    return REE_OK;
}

enum ree_status ree_answer_push(struct ree_answer *a, int32_t id, struct ree_error *err) {
    const char *decoded;
    size_t n;
    if (a->stopped) return REE_OK;
    REE_TRY(ree_decoder_push(a->decoder, id, &decoded, &n, err));
    return take(a, decoded, n, err);
}

enum ree_status ree_answer_end(struct ree_answer *a, struct ree_error *err) {
    const char *decoded;
    size_t n;
    if (a->stopped || a->ended) return REE_OK;
    a->ended = true;
    REE_TRY(ree_decoder_flush(a->decoder, &decoded, &n, err));
    return take(a, decoded, n, err);
}

size_t ree_answer_held_back(const struct ree_answer *a) {
    size_t most = 0;
    for (size_t i = 0; i < a->n_stops; i++) {
        size_t n = strlen(a->stops[i]);
        for (size_t k = n - 1 < a->text.size ? n - 1 : a->text.size; k > most; k--)
            if (memcmp(a->text.data + a->text.size - k, a->stops[i], k) == 0) most = k;
    }
    return most;
}

void ree_answer_finish(struct ree_answer *a) {
    ree_decoder_destroy(a->decoder);
    ree_strbuf_finish(&a->prompt);
    ree_strbuf_finish(&a->text);
    a->decoder = NULL;
}
