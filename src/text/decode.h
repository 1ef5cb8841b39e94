// Decoders: from tokens to text, one token at a time.
#ifndef REE_TEXT_DECODE_H
#define REE_TEXT_DECODE_H

#include "text/stage.h"

// What a stage remembers between tokens.
struct ree_decoding {
    const struct ree_stage *stage;
    struct ree_strbuf token; // the token that is being received; or what of it is not decided yet
    struct ree_strbuf held;  // bytes or a token that later ones decide about
    size_t n_tokens;         // received so far
    bool begun;              // a part of the current token has been received
    uint32_t left;           // Strip: how many more to take off at the start
    uint32_t n_held;         // Strip: characters that are taken off if the token ends here
    bool settled;            // BPEDecoder: the token in `held` has been given
    uint64_t n_bytes;        // received so far
};

struct ree_decoding_chain {
    struct ree_decoding *stages;
    size_t n;
    struct ree_strbuf out;
    // Bytes of tokens, and of text that was made. Stages that replace can make a text twice as long,
    // each: REE_INVALID where one makes far more than tokens have.
    uint64_t n_in, n_out;
};

// The leaves of the decoder's tree in their order.
enum ree_status ree_decoding_init(struct ree_decoding_chain *chain, const struct ree_stage *decoder,
                                  struct ree_error *err);
void ree_decoding_finish(struct ree_decoding_chain *chain);
// Appends to chain->out what is certain once this token, valid UTF-8, is known.
enum ree_status ree_decoding_push(struct ree_decoding_chain *chain, const char *token, size_t n,
                                  struct ree_error *err);
// Appends what is held back as text in the middle: an incomplete character becomes U+FFFD, and
// nothing that only the end of a text loses is taken off. The next token is not a first one.
enum ree_status ree_decoding_settle(struct ree_decoding_chain *chain, struct ree_error *err);
// Appends the rest and makes the chain as new.
enum ree_status ree_decoding_flush(struct ree_decoding_chain *chain, struct ree_error *err);

#endif
