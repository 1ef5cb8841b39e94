// Decoders: convert tokens to text, one token at a time.
#ifndef REE_TEXT_DECODE_H
#define REE_TEXT_DECODE_H

#include "text/stage.h"

// State of a stage between tokens.
struct ree_decoder_stage {
    const struct ree_stage *stage;
    // The part of the current token that is not decided yet.
    struct ree_strbuf token;
    // Bytes, or a token, whose output depends on later tokens.
    struct ree_strbuf held;
    size_t n_tokens;  // tokens received so far
    bool begun;       // part of the current token was received
    uint32_t left;    // Strip: characters still to be removed at the start
    uint32_t n_held;  // Strip: characters that are removed if the token ends here
    bool settled;     // BPEDecoder: the token in `held` was already passed on
    uint64_t n_bytes; // bytes received so far
};

struct ree_decoding_chain {
    struct ree_decoder_stage *stages;
    size_t n;
    struct ree_strbuf out;
    // Bytes of tokens received, and of text produced. Each Replace stage can multiply the length of
    // a text; decoding fails with REE_INVALID if a stage produces far more than the tokens have.
    uint64_t n_in, n_out;
};

// Initialises a chain of the decoder's leaf stages, in order. `decoder` must outlive the chain.
enum ree_status ree_decoding_init(struct ree_decoding_chain *chain, const struct ree_stage *decoder,
                                  struct ree_error *err);
void ree_decoding_finish(struct ree_decoding_chain *chain);
// Decodes a token, which must be valid UTF-8. Appends to chain->out the text that later tokens
// cannot change.
enum ree_status ree_decoding_push(struct ree_decoding_chain *chain, const char *token, size_t n,
                                  struct ree_error *err);
// Appends the text that is held back as if more text followed: an incomplete character becomes
// U+FFFD, and characters that are removed only at the end of a text stay. The next token does not
// count as the first one.
enum ree_status ree_decoding_settle(struct ree_decoding_chain *chain, struct ree_error *err);
// Appends the remaining text as the end of a text and resets the chain.
enum ree_status ree_decoding_flush(struct ree_decoding_chain *chain, struct ree_error *err);

#endif
