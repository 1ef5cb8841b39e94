// Pre-tokenizers: cut a text into pieces, which the tokenizer's model (lm.h) encodes one by one.
#ifndef REE_TEXT_PRETOKENIZE_H
#define REE_TEXT_PRETOKENIZE_H

#include "text/stage.h"

struct ree_piece {
    const char *data; // in the caller's text or in ree_pieces.arena
    size_t size;      // in bytes; never 0
    // Number of bytes at the beginning of the piece that come from the first character of the whole
    // text.
    size_t origin;
};

struct ree_pieces {
    struct ree_piece *items;
    size_t n, capacity;
    struct ree_arena arena;      // owns the texts that stages made
    uint64_t n_left;             // bytes that stages may still make; further texts use it up
    struct ree_matcher *matcher; // borrowed
    struct ree_spans spans;      // memory for the result of a search
};

// Initialises `pieces` for the texts of one encoding. All their searches use `matcher`, and stages
// may make at most `n_left` bytes of new text for them in total.
void ree_pieces_init(struct ree_pieces *pieces, struct ree_matcher *matcher, uint64_t n_left);
void ree_pieces_finish(struct ree_pieces *pieces);

// Cuts a text, valid UTF-8 of n bytes, into `pieces`, replacing their earlier contents. `origin` is
// the number of bytes at the beginning of `text` that come from the first character of the whole
// text. Fails with REE_INVALID if stages make more than pieces->n_left bytes, and with
// REE_UNSUPPORTED if the searches exceed their limit.
enum ree_status ree_pretokenize(const struct ree_stage *stage, const char *text, size_t n,
                                size_t origin, struct ree_pieces *pieces, struct ree_error *err);

// If `wanted` and the last stage is ByteLevel, makes that stage leave the bytes unchanged and
// returns true: the model must convert them to GPT-2's alphabet (ree_lm.raw_bytes). Otherwise
// returns false.
bool ree_pretokenizer_defer_bytes(struct ree_stage *stage, bool wanted);

#endif
