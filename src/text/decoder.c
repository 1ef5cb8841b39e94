// The public functions that convert ids to text.
#include "text/decode.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "text/tokenizer.h"

#include <stdlib.h>

struct ree_decoder {
    const struct ree_tokenizer *tokenizer;
    uint32_t flags;
    struct ree_decoding_chain chain;
};

enum ree_status ree_decoder_create(const struct ree_tokenizer *tokenizer, uint32_t flags,
                                   struct ree_decoder **out_decoder, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out_decoder = NULL;
    struct ree_decoder *decoder = ree_alloc_zeroed(1, sizeof *decoder);
    if (!decoder) return ree_fail(err, REE_NO_MEMORY, "no memory for a decoder");
    decoder->tokenizer = tokenizer;
    decoder->flags = flags;
    enum ree_status status = ree_decoding_init(&decoder->chain, &tokenizer->decoder, err);
    if (status == REE_OK)
        *out_decoder = decoder;
    else
        ree_free(decoder);
    return status;
}

void ree_decoder_destroy(struct ree_decoder *decoder) {
    if (!decoder) return;
    ree_decoding_finish(&decoder->chain);
    ree_free(decoder);
}

static enum ree_status push(struct ree_decoder *decoder, int32_t id, struct ree_error *err) {
    const struct ree_str *piece = ree_tokenizer_piece(decoder->tokenizer, id);
    if (!piece) return ree_fail(err, REE_INVALID, "the tokenizer has no token %d", id);
    if (decoder->flags & REE_SKIP_SPECIAL && ree_tokenizer_is_special(decoder->tokenizer, id))
        return REE_OK;
    const struct ree_added_token *added = ree_added_of_id(decoder->tokenizer, id);
    // A token that is searched for in normalized text decodes to its normalized content.
    if (added) piece = &added->sought;
    return ree_decoding_push(&decoder->chain, piece->data, piece->size, err);
}

// Returns the text that the call appended to the chain's output.
static enum ree_status give(struct ree_decoder *decoder, enum ree_status status,
                            const char **out_text, size_t *out_nbytes) {
    struct ree_strbuf *out = &decoder->chain.out;
    bool some = status == REE_OK && out->size;
    *out_text = status != REE_OK ? NULL : some ? out->data : "";
    *out_nbytes = some ? out->size : 0;
    return status;
}

enum ree_status ree_decoder_push(struct ree_decoder *decoder, int32_t id, const char **out_text,
                                 size_t *out_nbytes, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    decoder->chain.out.size = 0;
    return give(decoder, push(decoder, id, err), out_text, out_nbytes);
}

enum ree_status ree_decoder_settle(struct ree_decoder *decoder, const char **out_text,
                                   size_t *out_nbytes, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    decoder->chain.out.size = 0;
    return give(decoder, ree_decoding_settle(&decoder->chain, err), out_text, out_nbytes);
}

enum ree_status ree_decoder_flush(struct ree_decoder *decoder, const char **out_text,
                                  size_t *out_nbytes, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    decoder->chain.out.size = 0;
    return give(decoder, ree_decoding_flush(&decoder->chain, err), out_text, out_nbytes);
}

enum ree_status ree_tokenizer_decode(const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                     size_t n, uint32_t flags, char **out_text, size_t *out_nbytes,
                                     struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoder *decoder;
    *out_text = NULL;
    *out_nbytes = 0;
    REE_TRY(ree_decoder_create(tokenizer, flags, &decoder, err));
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < n && status == REE_OK; i++)
        status = push(decoder, ids[i], err);
    if (status == REE_OK) status = ree_decoding_flush(&decoder->chain, err);
    if (status == REE_OK) {
        *out_nbytes = decoder->chain.out.size;
        *out_text = ree_strbuf_take(&decoder->chain.out);
        if (!*out_text) status = ree_fail(err, REE_NO_MEMORY, "no memory for text");
    }
    ree_decoder_destroy(decoder);
    return status;
}
