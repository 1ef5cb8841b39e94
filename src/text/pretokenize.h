// Pre-tokenizers: text to pieces, which the model takes one by one.
#ifndef REE_TEXT_PRETOKENIZE_H
#define REE_TEXT_PRETOKENIZE_H

#include "text/stage.h"

struct ree_piece {
    const char *data; // in the text or in the arena
    size_t size;      // not 0
    size_t origin;    // bytes at its beginning that come from where the whole text begins
};

struct ree_pieces {
    struct ree_piece *items;
    size_t n, capacity;
    struct ree_arena arena;        // of texts that stages have made
    struct ree_matcher **matchers; // of the stages that have regexes, in their order
    size_t n_matchers;
    struct ree_spans spans; // scratch
};

// Buffers and matchers for a pre-tokenizer, to be used for many texts.
enum ree_status ree_pieces_init(struct ree_pieces *pieces, const struct ree_stage *stage,
                                struct ree_error *err);
void ree_pieces_finish(struct ree_pieces *pieces);

// Cuts valid UTF-8 into `pieces`, whose former contents go. `origin`: of the text, as of a
// piece.
enum ree_status ree_pretokenize(const struct ree_stage *stage, const char *text, size_t n,
                                size_t origin, struct ree_pieces *pieces, struct ree_error *err);

// Where the last stage is ByteLevel and `wanted`, it leaves bytes as they are and true is
// returned: the model then spells them in GPT-2's alphabet itself.
bool ree_pretokenizer_defer_bytes(struct ree_stage *stage, bool wanted);

#endif
