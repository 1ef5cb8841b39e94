// Decoders: convert tokens to text, one token at a time.
#ifndef REE_TEXT_DECODE_H
#define REE_TEXT_DECODE_H

#include "text/stage.h"

// What one stage of a decoder keeps from token to token.
struct ree_decoder_stage {
    const struct ree_stage *stage;
    // Received bytes of the current token that the stage has not passed on yet.
    struct ree_strbuf token;
    // ByteLevel, ByteFallback: bytes that the next tokens may complete to a character.
    // BPEDecoder, CTC: the previous token.
    struct ree_strbuf held;
    size_t n_tokens;  // tokens of the current text received so far
    bool begun;       // a part of the current token was received, but not its end
    uint32_t left;    // Strip: characters still to be removed at the start of the token
    uint32_t n_held;  // Strip: characters held back, to be removed if the token ends now
    bool settled;     // BPEDecoder: the token in `held` was already passed on
    uint64_t n_bytes; // bytes received since ree_decoding_init
    // Replace of a string: the first n_matched bytes of the pattern were received and are held
    // back.
    size_t n_matched;
    size_t *borders; // Replace of a string: see decode.c; NULL for other stages
};

struct ree_decoding_chain {
    struct ree_decoder_stage *stages;
    size_t n;
    struct ree_strbuf out;
    struct ree_matcher *matcher; // for the searches of all stages and tokens
    // n_in: bytes of the received tokens, plus 1 per token. n_out: bytes of the produced text. Each
    // Replace stage can multiply the length of a text, so decoding fails with REE_INVALID if a
    // stage produces more than 64 * n_in + 1 MiB.
    uint64_t n_in, n_out;
};

// Initialises a chain with the decoder's stages in order, without its Sequences. `decoder` must
// outlive the chain. If it has no kind, the chain joins tokens with spaces.
enum ree_status ree_decoding_init(struct ree_decoding_chain *chain, const struct ree_stage *decoder,
                                  struct ree_error *err);
void ree_decoding_finish(struct ree_decoding_chain *chain);
// Decodes a token, which must be valid UTF-8. Appends to chain->out the text that later tokens
// cannot change.
enum ree_status ree_decoding_push(struct ree_decoding_chain *chain, const char *token, size_t n,
                                  struct ree_error *err);
// Appends to chain->out the text that the stages hold back, as if more text followed: an incomplete
// character becomes U+FFFD, and characters that are removed only at the end of a text stay. The
// next token does not count as the first one of a text.
enum ree_status ree_decoding_settle(struct ree_decoding_chain *chain, struct ree_error *err);
// Appends to chain->out the text that the stages hold back, as the end of a text. The next token
// begins a new text.
enum ree_status ree_decoding_flush(struct ree_decoding_chain *chain, struct ree_error *err);

#endif
