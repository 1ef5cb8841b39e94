// Pre-tokenizers: cut text into pieces, which the model encodes one by one.
#ifndef REE_TEXT_PRETOKENIZE_H
#define REE_TEXT_PRETOKENIZE_H

#include "text/stage.h"

struct ree_piece {
    const char *data; // in the text or in the arena
    size_t size;      // in bytes; never 0
    size_t origin;    // bytes at its beginning that come from the beginning of the whole text
};

struct ree_pieces {
    struct ree_piece *items;
    size_t n, capacity;
    struct ree_arena arena;        // owns the texts that stages made
    struct ree_matcher **matchers; // of the stages with a regex, in their order
    size_t n_matchers;
    struct ree_spans spans; // reused for each search
};

// Creates buffers and matchers for a pre-tokenizer; they can be used for many texts.
enum ree_status ree_pieces_init(struct ree_pieces *pieces, const struct ree_stage *stage,
                                struct ree_error *err);
void ree_pieces_finish(struct ree_pieces *pieces);

// Cuts valid UTF-8 into `pieces`, replacing its contents. `origin` is that of the text, as in
// struct ree_piece.
enum ree_status ree_pretokenize(const struct ree_stage *stage, const char *text, size_t n,
                                size_t origin, struct ree_pieces *pieces, struct ree_error *err);

// If the last stage is ByteLevel and `wanted`, makes that stage leave bytes unchanged and returns
// true. The model must then convert them to GPT-2's alphabet itself.
bool ree_pretokenizer_defer_bytes(struct ree_stage *stage, bool wanted);

#endif
