// The tokenizer's hash: SHA-256 over a description that depends on what the tokenizer does and not
// on how its files are laid out. README.md says what it is made of.
#include "receipt/sha256.h"
#include "text/tokenizer.h"

#include <openssl/evp.h>
#include <stdlib.h>

static int by_rank(const void *a, const void *b) {
    const struct ree_merge *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static enum ree_status describe_merges(const struct ree_lm *lm, struct ree_strbuf *out,
                                       struct ree_error *err) {
    ree_strbuf_printf(out, "merges %u\n", lm->n_merges);
    if (lm->n_merges == 0) return REE_OK;
    struct ree_merge *merges = malloc(lm->n_merges * sizeof *merges);
    if (!merges) return ree_fail(err, REE_NO_MEMORY, "no memory for the tokenizer's hash");
    uint32_t n = 0;
    for (uint32_t i = 0; i <= lm->merge_mask; i++)
        if (lm->merges[i].id >= 0) merges[n++] = lm->merges[i];
    qsort(merges, n, sizeof *merges, by_rank);
    // Ranks count only against each other: how many different ones come before.
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && merges[i].rank != merges[i - 1].rank) rank++;
        unsigned char bytes[16];
        uint32_t words[4] = {(uint32_t)(merges[i].pair >> 32), (uint32_t)merges[i].pair,
                             (uint32_t)merges[i].id, rank};
        for (int k = 0; k < 16; k++)
            bytes[k] = (unsigned char)(words[k / 4] >> (8 * (k % 4)));
        ree_strbuf_append(out, (const char *)bytes, sizeof bytes);
    }
    free(merges);
    return REE_OK;
}

static void describe_vocab(const struct ree_lm *lm, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "vocab %u\n", lm->vocab.count);
    for (uint32_t id = 0; id < lm->vocab.n; id++) {
        if (!lm->vocab.pieces[id].data) continue;
        ree_strbuf_printf(out, "%u ", id);
        if (lm->scores) {
            uint64_t bits;
            memcpy(&bits, &lm->scores[id], sizeof bits);
            ree_strbuf_printf(out, "%016llx ", (unsigned long long)bits);
        }
        ree_describe_string(lm->vocab.pieces[id], out);
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

enum ree_status ree_tokenizer_hash(struct ree_tokenizer *tokenizer, struct ree_error *err) {
    static const char magic[] = "ree-tokenizer/1";
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_append(&text, magic, sizeof magic);
    const struct ree_stage *stages[] = {&tokenizer->normalizer, &tokenizer->pretokenizer,
                                        &tokenizer->postprocessor, &tokenizer->decoder};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        ree_stage_describe(stages[i], &text);
        ree_strbuf_append(&text, "\n", 1);
    }
    describe_options(&tokenizer->lm, &text);
    describe_vocab(&tokenizer->lm, &text);
    describe_added(tokenizer, &text);
    enum ree_status status = describe_merges(&tokenizer->lm, &text, err);
    unsigned char digest[REE_SHA256_SIZE];
    if (status == REE_OK &&
        (text.failed || EVP_Digest(text.data, text.size, digest, NULL, EVP_sha256(), NULL) != 1))
        status = ree_fail(err, REE_NO_MEMORY, "no memory for the tokenizer's hash");
    if (status == REE_OK) ree_hex(digest, tokenizer->sha256);
    ree_strbuf_finish(&text);
    return status;
}
