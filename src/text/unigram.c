// Unigram: among all ways to cut a piece into tokens, the one with the largest sum of scores (log
// probabilities). Kudo, "Subword Regularization", 2018, section 3.2. The order of additions and
// comparisons decides ties; it is that of Hugging Face's tokenizers.
#include "text/lm.h"
#include "base/memory.h"
#include "text/utf8.h"

#include <float.h>
#include <stdlib.h>

// An unknown character scores this much less than the worst piece.
#define UNKNOWN_PENALTY 10.0

// The best way to cut the text before a position into pieces: paths[i] for the first i bytes.
struct ree_lm_path {
    double score;
    size_t start; // start of the last piece; SIZE_MAX: unreachable
    int32_t id;
};

enum ree_status ree_unigram_prepare(struct ree_lm *lm, struct ree_error *err) {
    double least = DBL_MAX;
    for (uint32_t id = 0; id < lm->vocab.n; id++) {
        const struct ree_str *piece = ree_vocab_piece(&lm->vocab, (int32_t)id);
        if (piece && lm->scores[id] < least) least = lm->scores[id];
    }
    lm->unk_score = least - UNKNOWN_PENALTY;
    return ree_lm_make_trie(lm, err);
}

static void offer(struct ree_lm_path *path, double score, size_t start, int32_t id) {
    if (path->start != SIZE_MAX && !(score > path->score)) return;
    *path = (struct ree_lm_path){score, start, id};
}

static enum ree_status best_paths(const struct ree_lm *lm, const struct ree_lm_scratch *scratch,
                                  const char *piece, size_t n, struct ree_lm_path *paths,
                                  struct ree_error *err) {
    for (size_t i = 0; i <= n; i++)
        paths[i] = (struct ree_lm_path){0, SIZE_MAX, -1};
    for (size_t start = 0, step; start < n; start += step) {
        ree_utf8_get(piece + start, &step);
        double before = paths[start].score;
        bool single = false;
        uint32_t at = 0;
        for (size_t i = start; i < n; i++) {
            at = ree_trie_step(&lm->trie, at, (unsigned char)piece[i]);
            if (!at) break;
            int32_t id = ree_lm_found(lm, scratch, lm->trie.nodes[at].value);
            if (id < 0) continue;
            offer(&paths[i + 1], lm->scores[id] + before, start, id);
            if (i + 1 - start == step) single = true;
        }
        if (single) continue;
        if (lm->unk < 0)
            return ree_fail(err, REE_INVALID,
                            "the character at byte %zu of a piece is not in the vocabulary, which "
                            "has no token for unknown characters",
                            start);
        offer(&paths[start + step], lm->unk_score + before, start, lm->unk);
    }
    return REE_OK;
}

// Adds the tokens of a run of unknown characters: one token if the whole run is in the vocabulary,
// otherwise its bytes if byte_fallback is set and all of them are tokens, otherwise the unknown
// token.
static enum ree_status add_part(const struct ree_lm *lm, const struct ree_lm_scratch *scratch,
                                const char *part, size_t n, struct ree_ids *ids,
                                struct ree_error *err) {
    int32_t id = ree_lm_found(lm, scratch, ree_vocab_find(&lm->vocab, part, n));
    if (id >= 0) return ree_ids_add(ids, id, err);
    bool all = lm->byte_fallback;
    for (size_t i = 0; i < n && all; i++)
        all = lm->byte_ids[(unsigned char)part[i]] >= 0;
    if (!all) return ree_ids_add(ids, lm->unk, err);
    for (size_t i = 0; i < n; i++)
        REE_TRY(ree_ids_add(ids, lm->byte_ids[(unsigned char)part[i]], err));
    return REE_OK;
}

enum ree_status ree_unigram_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                   const char *piece, size_t n, struct ree_ids *ids,
                                   struct ree_error *err) {
    if (n + 1 > scratch->paths_capacity) {
        ree_free(scratch->paths);
        scratch->paths = ree_alloc_zeroed(n + 1, sizeof *scratch->paths);
        scratch->paths_capacity = scratch->paths ? n + 1 : 0;
        if (!scratch->paths) return ree_fail(err, REE_NO_MEMORY, "no memory for a piece");
    }
    struct ree_lm_path *paths = scratch->paths;
    REE_TRY(best_paths(lm, scratch, piece, n, paths, err));
    // Walk the path backwards and reverse its links: each position then points to the end of its
    // next piece.
    size_t end = n, next = SIZE_MAX;
    while (end > 0) {
        size_t start = paths[end].start;
        paths[end].start = next;
        next = end;
        end = start;
    }
    // Walk forwards; adjacent unknown characters form one run.
    for (size_t start = 0; next != SIZE_MAX;) {
        size_t last = next;
        bool unknown = paths[last].id == lm->unk;
        while (unknown && paths[last].start != SIZE_MAX && paths[paths[last].start].id == lm->unk)
            last = paths[last].start;
        if (unknown)
            REE_TRY(add_part(lm, scratch, piece + start, last - start, ids, err));
        else
            REE_TRY(ree_ids_add(ids, paths[last].id, err));
        start = last;
        next = paths[last].start;
    }
    return REE_OK;
}
