// The tokenizer's hash: SHA-256 of a description of what the tokenizer does, which does not depend
// on the layout of its files. README.md defines the description.
#include "base/memory.h"
#include "base/sha256.h"
#include "text/tokenizer.h"

#include <stdlib.h>

static void put_u32(struct ree_strbuf *out, uint32_t value) {
    char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(value >> (8 * i));
    ree_strbuf_append(out, bytes, sizeof bytes);
}

static int by_pair(const void *a, const void *b) {
    const struct ree_merge *x = a, *y = b;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

// Sorts the merges by rank, then by pair. A counting sort: places[r + 1] first counts the merges of
// rank r, then places[r] is the index in `out` of the next one.
static void sort_merges(const struct ree_lm *lm, uint32_t *places, uint32_t n_ranks,
                        struct ree_merge *out) {
    for (uint32_t i = 0; i <= lm->merge_mask; i++)
        if (lm->merges[i].id >= 0) places[lm->merges[i].rank + 1]++;
    for (uint32_t r = 0; r < n_ranks; r++)
        places[r + 1] += places[r];
    for (uint32_t i = 0; i <= lm->merge_mask; i++)
        if (lm->merges[i].id >= 0) out[places[lm->merges[i].rank]++] = lm->merges[i];
    for (uint32_t i = 0, end; i < lm->n_merges; i = end) {
        for (end = i + 1; end < lm->n_merges && out[end].rank == out[i].rank;)
            end++;
        if (end - i > 1) qsort(out + i, end - i, sizeof *out, by_pair);
    }
}

static enum ree_status describe_merges(const struct ree_lm *lm, struct ree_strbuf *out,
                                       struct ree_error *err) {
    ree_strbuf_printf(out, "merges %u\n", lm->n_merges);
    if (lm->n_merges == 0) return REE_OK;
    uint32_t n_ranks = 0;
    for (uint32_t i = 0; i <= lm->merge_mask; i++)
        if (lm->merges[i].id >= 0 && lm->merges[i].rank >= n_ranks)
            n_ranks = lm->merges[i].rank + 1;
    struct ree_merge *merges = ree_alloc(lm->n_merges * sizeof *merges);
    uint32_t *places = ree_alloc_zeroed((size_t)n_ranks + 1, sizeof *places);
    if (!merges || !places) {
        ree_free(merges);
        ree_free(places);
        return ree_fail(err, REE_NO_MEMORY, "no memory for the tokenizer's hash");
    }
    sort_merges(lm, places, n_ranks, merges);
    // Only the order of ranks matters, so a rank is written as the number of different smaller
    // ranks.
    uint32_t rank = 0;
    for (uint32_t i = 0; i < lm->n_merges; i++) {
        if (i > 0 && merges[i].rank != merges[i - 1].rank) rank++;
        put_u32(out, (uint32_t)(merges[i].pair >> 32));
        put_u32(out, (uint32_t)merges[i].pair);
        put_u32(out, (uint32_t)merges[i].id);
        put_u32(out, rank);
    }
    ree_free(merges);
    ree_free(places);
    return REE_OK;
}

static void describe_vocab(const struct ree_lm *lm, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "vocab %u\n", lm->vocab.count);
    for (uint32_t id = 0; id < lm->vocab.n; id++) {
        const struct ree_str *piece = &lm->vocab.pieces[id];
        if (!piece->data) continue;
        put_u32(out, id);
        if (lm->scores) {
            uint64_t bits;
            memcpy(&bits, &lm->scores[id], sizeof bits);
            put_u32(out, (uint32_t)bits);
            put_u32(out, (uint32_t)(bits >> 32));
        }
        put_u32(out, (uint32_t)piece->size);
        ree_strbuf_append(out, piece->data, piece->size);
    }
}

static void describe_added(const struct ree_tokenizer *tokenizer, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "added %zu\n", tokenizer->n_added);
    for (uint32_t id = 0; id < tokenizer->n_ids; id++) {
        const struct ree_added_token *token = ree_added_of_id(tokenizer, (int32_t)id);
        if (!token) continue;
        ree_strbuf_printf(out, "%u %u%u%u%u%u ", id, token->single_word, token->lstrip,
                          token->rstrip, token->normalized, token->special);
        ree_describe_string(token->content, out);
    }
}

static void describe_options(const struct ree_lm *lm, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "model %d %u %u %u %u %d ", (int)lm->kind, lm->byte_fallback,
                      lm->fuse_unk, lm->ignore_merges, lm->max_chars, lm->unk);
    ree_describe_string(lm->prefix, out);
    ree_describe_string(lm->suffix, out);
}

static void describe_stages(const struct ree_tokenizer *tokenizer, bool with_items,
                            struct ree_strbuf *out) {
    const struct ree_stage *stages[] = {&tokenizer->normalizer, &tokenizer->pretokenizer,
                                        &tokenizer->postprocessor, &tokenizer->decoder};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        if (!ree_postprocess_is_empty(stages[i])) ree_stage_describe(stages[i], with_items, out);
        ree_strbuf_append(out, "\n", 1);
    }
}

// Hashes the description of the stages and then that of the rest.
static bool hash_parts(const char *tag, const struct ree_strbuf *stages,
                       const struct ree_strbuf *rest, char hex[65]) {
    struct ree_hasher *hasher = ree_hasher_try_create(tag);
    if (!hasher) return false;
    ree_hasher_update(hasher, stages->data, stages->size);
    ree_hasher_update(hasher, rest->data, rest->size);
    ree_hasher_finish(hasher, hex);
    return true;
}

// With a token for unknown characters that the vocabulary lacks, such a character is an error.
// Without such a token it is dropped.
static void describe_unknown(const struct ree_lm *lm, struct ree_strbuf *out) {
    if (lm->unk < 0 && lm->unk_token.data) ree_strbuf_printf(out, "unknown fails\n");
}

// The description of version 1 has templates without their items and lacks describe_unknown, so
// that different tokenizers may have one hash.
enum ree_status ree_tokenizer_hash(struct ree_tokenizer *tokenizer, struct ree_error *err) {
    struct ree_strbuf old, stages, rest;
    ree_strbuf_init(&old);
    ree_strbuf_init(&stages);
    ree_strbuf_init(&rest);
    describe_stages(tokenizer, false, &old);
    describe_stages(tokenizer, true, &stages);
    describe_unknown(&tokenizer->lm, &stages);
    describe_options(&tokenizer->lm, &rest);
    describe_vocab(&tokenizer->lm, &rest);
    describe_added(tokenizer, &rest);
    enum ree_status status = describe_merges(&tokenizer->lm, &rest, err);
    const bool failed = old.failed || stages.failed || rest.failed;
    if (status == REE_OK &&
        (failed || !hash_parts("ree-tokenizer/1", &old, &rest, tokenizer->sha256_version_1)))
        status = ree_fail(err, REE_NO_MEMORY, "no memory for the tokenizer's hash");
    if (status == REE_OK) memcpy(tokenizer->sha256, tokenizer->sha256_version_1, 65);
    const bool is_more = status == REE_OK &&
                         (old.size != stages.size || memcmp(old.data, stages.data, old.size) != 0);
    if (is_more && !hash_parts("ree-tokenizer/2", &stages, &rest, tokenizer->sha256))
        status = ree_fail(err, REE_NO_MEMORY, "no memory for the tokenizer's hash");
    ree_strbuf_finish(&old);
    ree_strbuf_finish(&stages);
    ree_strbuf_finish(&rest);
    return status;
}
