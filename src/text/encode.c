// Encoding. The text is cut at added tokens, normalized, and cut again at the added tokens that are
// searched for in normalized text. The remaining parts are cut into pieces, and the model encodes
// each piece. Then post-processing adds the tokens before and after.
#include "text/normalize.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "text/pretokenize.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>

// Maximum bytes that the searches for added tokens may compare in a text of n bytes. Real tokens
// need 1 to 30 for each byte. 100 million take half a second.
#define STEPS_MAX(n) ((uint64_t)(n)*1000 + (1u << 27))

struct encoder {
    const struct ree_tokenizer *tokenizer;
    uint32_t flags;
    struct ree_normalizing normalizing; // its matcher is also that of `pieces`
    uint64_t n_steps_left;              // STEPS_MAX, and what is left of it
    struct ree_pieces pieces;
    struct ree_lm_scratch scratch;
    struct ree_ids ids;
};

// Handles a part of the normalized text, or an added token in it.
static enum ree_status encode_part(void *user, const char *text, size_t n, size_t origin,
                                   const struct ree_added_token *added, struct ree_error *err) {
    struct encoder *encoder = user;
    if (added) return ree_ids_add(&encoder->ids, added->id, err);
    const struct ree_tokenizer *tokenizer = encoder->tokenizer;
    struct ree_pieces *pieces = &encoder->pieces;
    REE_TRY(ree_pretokenize(&tokenizer->pretokenizer, text, n, origin, pieces, err));
    for (size_t i = 0; i < pieces->n; i++)
        REE_TRY(ree_lm_encode(&tokenizer->lm, &encoder->scratch, pieces->items[i].data,
                              pieces->items[i].size, &encoder->ids, err));
    return REE_OK;
}

// Handles a part of the original text, or an added token in it.
static enum ree_status encode_raw(void *user, const char *text, size_t n, size_t origin,
                                  const struct ree_added_token *added, struct ree_error *err) {
    struct encoder *encoder = user;
    if (added) return ree_ids_add(&encoder->ids, added->id, err);
    const struct ree_tokenizer *tokenizer = encoder->tokenizer;
    const struct ree_added_cut cut = {tokenizer,
                                      &tokenizer->normal,
                                      (encoder->flags & REE_PARSE_SPECIAL) != 0,
                                      &encoder->n_steps_left,
                                      encode_part,
                                      encoder};
    // If the text begins the whole text, its origin is its first character.
    if (origin) ree_utf8_get(text, &origin);
    if (!tokenizer->normalizer.kind) return ree_added_cut(&cut, text, n, origin, err);
    struct ree_strbuf normal;
    ree_strbuf_init(&normal);
    ree_strbuf_append(&normal, text, n);
    enum ree_status status =
        normal.failed
            ? ree_fail(err, REE_NO_MEMORY, "no memory for a text")
            : ree_normalize(&tokenizer->normalizer, &encoder->normalizing, &normal, &origin, err);
    if (status == REE_OK && normal.size)
        status = ree_added_cut(&cut, normal.data, normal.size, origin, err);
    ree_strbuf_finish(&normal);
    return status;
}

static enum ree_status encode(struct encoder *encoder, const char *text, size_t n,
                              struct ree_error *err) {
    const struct ree_tokenizer *tokenizer = encoder->tokenizer;
    const struct ree_added_cut cut = {tokenizer,
                                      &tokenizer->exact,
                                      (encoder->flags & REE_PARSE_SPECIAL) != 0,
                                      &encoder->n_steps_left,
                                      encode_raw,
                                      encoder};
    // These limits apply to the whole text. If each part between added tokens had limits of its
    // own, a text of many parts would have none.
    struct ree_normalizing *normalizing = &encoder->normalizing;
    REE_TRY(ree_matcher_create(&normalizing->matcher, err));
    ree_matcher_add_text(normalizing->matcher, n);
    normalizing->n_left = REE_GROWTH_MAX(n);
    encoder->n_steps_left = STEPS_MAX(n);
    ree_pieces_init(&encoder->pieces, normalizing->matcher, REE_GROWTH_MAX(n));
    REE_TRY(ree_lm_scratch_init(&encoder->scratch, &tokenizer->lm, n, err));
    encoder->scratch.finds_special = (encoder->flags & REE_PARSE_SPECIAL) != 0;
    REE_TRY(ree_ids_grow(&encoder->ids, err));
    if (n) REE_TRY(ree_added_cut(&cut, text, n, 1, err));
    if (encoder->flags & REE_ADD_SPECIAL)
        return ree_postprocess(&tokenizer->postprocessor, &encoder->ids, err);
    return REE_OK;
}

enum ree_status ree_tokenizer_encode(const struct ree_tokenizer *tokenizer, const char *text,
                                     size_t nbytes, uint32_t flags, int32_t **out_ids,
                                     size_t *out_n, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out_ids = NULL;
    *out_n = 0;
    struct encoder encoder = {.tokenizer = tokenizer, .flags = flags};
    struct ree_strbuf repaired;
    ree_strbuf_init(&repaired);
    if (ree_utf8_valid_prefix(text, nbytes) != nbytes) {
        ree_utf8_append_lossy(&repaired, text, nbytes);
        if (repaired.failed) {
            ree_strbuf_finish(&repaired);
            return ree_fail(err, REE_NO_MEMORY, "no memory for a text of %zu bytes", nbytes);
        }
        text = repaired.data;
        nbytes = repaired.size;
    }
    enum ree_status status = encode(&encoder, text, nbytes, err);
    if (status == REE_OK) {
        *out_ids = encoder.ids.items;
        *out_n = encoder.ids.n;
    } else {
        ree_free(encoder.ids.items);
    }
    ree_pieces_finish(&encoder.pieces);
    ree_lm_scratch_finish(&encoder.scratch);
    ree_matcher_destroy(encoder.normalizing.matcher);
    ree_strbuf_finish(&repaired);
    return status;
}
