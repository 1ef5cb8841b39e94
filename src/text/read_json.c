// Reads tokenizer.json, the format of Hugging Face's tokenizers.
#include "text/tokenizer.h"

#include <stdlib.h>
#include "base/memory.h"

// Reads a vocabulary that is an object: piece to id.
static enum ree_status read_vocab(struct ree_tokenizer *tokenizer, const cJSON *vocab,
                                  struct ree_error *err) {
    const cJSON *entry;
    if (!cJSON_IsObject(vocab)) return ree_fail(err, REE_INVALID, "'vocab' is not an object");
    cJSON_ArrayForEach(entry, vocab) {
        struct ree_str piece;
        int32_t id;
        enum ree_status status = ree_text_json_id(entry, &id, err);
        if (status != REE_OK) return ree_fail_prefix(err, "vocab, token '%.80s'", entry->string);
        REE_TRY(ree_text_json_copy(&tokenizer->arena, entry->string, &piece, err));
        status = ree_vocab_add(&tokenizer->lm.vocab, piece, id, err);
        if (status != REE_OK) return ree_fail_prefix(err, "vocab");
    }
    return REE_OK;
}

// Reads a vocabulary that is an array of pieces and scores, in the order of ids.
static enum ree_status read_scored_vocab(struct ree_tokenizer *tokenizer, const cJSON *vocab,
                                         struct ree_error *err) {
    int n = cJSON_IsArray(vocab) ? cJSON_GetArraySize(vocab) : 0;
    if (n < 1 || (uint32_t)n > REE_VOCAB_MAX)
        return ree_fail(err, REE_INVALID, "'vocab' is not an array of 1 to %u", REE_VOCAB_MAX);
    tokenizer->lm.scores = ree_alloc_zeroed((size_t)n, sizeof *tokenizer->lm.scores);
    if (!tokenizer->lm.scores) return ree_fail(err, REE_NO_MEMORY, "no memory for the vocabulary");
    const cJSON *entry;
    int32_t id = 0;
    cJSON_ArrayForEach(entry, vocab) {
        const cJSON *text = cJSON_IsArray(entry) ? entry->child : NULL;
        const cJSON *score = text ? text->next : NULL;
        struct ree_str piece;
        if (!cJSON_IsString(text) || !cJSON_IsNumber(score) || score->next)
            return ree_fail(err, REE_INVALID, "vocab[%d] is not a piece and its score", id);
        REE_TRY(ree_text_json_copy(&tokenizer->arena, text->valuestring, &piece, err));
        enum ree_status status = ree_vocab_add(&tokenizer->lm.vocab, piece, id, err);
        if (status != REE_OK) return ree_fail_prefix(err, "vocab[%d]", id);
        tokenizer->lm.scores[id++] = score->valuedouble;
    }
    return REE_OK;
}

// Finds the ids of a merge: left side, right side, their concatenation. Returns false unless all
// three are in the vocabulary. In the concatenation, the right side loses the prefix that marks the
// inside of words.
static bool find_merge(const struct ree_lm *lm, const char *left, size_t n_left, const char *right,
                       size_t n_right, struct ree_strbuf *text, int32_t ids[3]) {
    ids[0] = ree_vocab_find(&lm->vocab, left, n_left);
    ids[1] = ree_vocab_find(&lm->vocab, right, n_right);
    if (ids[0] < 0 || ids[1] < 0 || n_right < lm->prefix.size) return false;
    text->size = 0;
    ree_strbuf_append(text, left, n_left);
    ree_strbuf_append(text, right + lm->prefix.size, n_right - lm->prefix.size);
    ids[2] = text->failed ? -1 : ree_vocab_find(&lm->vocab, text->data, text->size);
    return ids[2] >= 0;
}

#define MERGE_MAX 4096
#define SPACES_MAX 256

// Reads "left right", n bytes. If there are several spaces, exactly one of them must separate two
// tokens whose concatenation is a token.
static bool find_joined(const struct ree_lm *lm, const char *joined, size_t n,
                        struct ree_strbuf *text, int32_t ids[3]) {
    size_t n_found = 0, n_spaces = 0;
    // Limits the work for an invalid file: each space is tried.
    if (n > MERGE_MAX) return false;
    for (size_t left = 0; left < n; left++) {
        if (joined[left] != ' ') continue;
        if (++n_spaces > SPACES_MAX) return false;
        int32_t these[3];
        if (!find_merge(lm, joined, left, joined + left + 1, n - left - 1, text, these)) continue;
        memcpy(ids, these, sizeof these);
        n_found++;
    }
    return n_found == 1;
}

static enum ree_status read_merge(struct ree_lm *lm, const cJSON *merge, uint32_t rank,
                                  struct ree_strbuf *text, struct ree_error *err) {
    int32_t ids[3] = {-1, -1, -1};
    bool found;
    if (cJSON_IsString(merge)) {
        size_t n = ree_text_json_restore(merge->valuestring);
        found = find_joined(lm, merge->valuestring, n, text, ids);
        if (!found && text->failed) return ree_fail(err, REE_NO_MEMORY, "no memory for the merges");
        if (!found)
            return ree_fail(err, REE_INVALID,
                            "merges[%u] '%.80s' is not a pair of tokens, separated by a space, "
                            "whose concatenation is a token",
                            rank, merge->valuestring);
    } else {
        const cJSON *left = cJSON_IsArray(merge) ? merge->child : NULL;
        const cJSON *right = left ? left->next : NULL;
        if (!cJSON_IsString(left) || !cJSON_IsString(right) || right->next)
            return ree_fail(err, REE_INVALID,
                            "merges[%u] is neither a string nor a pair of strings", rank);
        size_t n_left = ree_text_json_restore(left->valuestring);
        size_t n_right = ree_text_json_restore(right->valuestring);
        found = find_merge(lm, left->valuestring, n_left, right->valuestring, n_right, text, ids);
        if (!found && text->failed) return ree_fail(err, REE_NO_MEMORY, "no memory for the merges");
        if (!found)
            return ree_fail(err, REE_INVALID,
                            "merges[%u] '%.80s' and '%.80s' are not a pair of tokens whose "
                            "concatenation is a token",
                            rank, left->valuestring, right->valuestring);
    }
    return ree_bpe_add_merge(lm, ids[0], ids[1], ids[2], rank, err);
}

static enum ree_status read_bpe(struct ree_tokenizer *tokenizer, const cJSON *json,
                                struct ree_error *err) {
    struct ree_lm *lm = &tokenizer->lm;
    struct ree_arena *arena = &tokenizer->arena;
    const cJSON *dropout = ree_text_json_get(json, "dropout"), *vocab, *merges, *merge;
    if (dropout && !(cJSON_IsNumber(dropout) && dropout->valuedouble == 0))
        return ree_fail(err, REE_UNSUPPORTED,
                        "'dropout' makes tokenization random; set it to null");
    REE_TRY(ree_text_json_string(arena, json, "unk_token", NULL, &lm->unk_token, err));
    REE_TRY(ree_text_json_string(arena, json, "continuing_subword_prefix", "", &lm->prefix, err));
    REE_TRY(ree_text_json_string(arena, json, "end_of_word_suffix", "", &lm->suffix, err));
    REE_TRY(ree_text_json_bool(json, "fuse_unk", false, &lm->fuse_unk, err));
    REE_TRY(ree_text_json_bool(json, "byte_fallback", false, &lm->byte_fallback, err));
    REE_TRY(ree_text_json_bool(json, "ignore_merges", false, &lm->ignore_merges, err));
    REE_TRY(ree_text_json_want(json, "vocab", &vocab, err));
    REE_TRY(ree_text_json_want(json, "merges", &merges, err));
    REE_TRY(read_vocab(tokenizer, vocab, err));
    if (!cJSON_IsArray(merges)) return ree_fail(err, REE_INVALID, "'merges' is not an array");
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = REE_OK;
    uint32_t rank = 0;
    cJSON_ArrayForEach(merge, merges) {
        status = read_merge(lm, merge, rank++, &text, err);
        if (status != REE_OK) break;
    }
    ree_strbuf_finish(&text);
    return status;
}

static enum ree_status read_unigram(struct ree_tokenizer *tokenizer, const cJSON *json,
                                    struct ree_error *err) {
    struct ree_lm *lm = &tokenizer->lm;
    const cJSON *vocab, *unk = ree_text_json_get(json, "unk_id");
    REE_TRY(ree_text_json_bool(json, "byte_fallback", false, &lm->byte_fallback, err));
    REE_TRY(ree_text_json_want(json, "vocab", &vocab, err));
    REE_TRY(read_scored_vocab(tokenizer, vocab, err));
    lm->unk = -1;
    if (!unk) return REE_OK;
    enum ree_status status = ree_text_json_id(unk, &lm->unk, err);
    if (status != REE_OK) return ree_fail_prefix(err, "unk_id");
    if (!ree_vocab_piece(&lm->vocab, lm->unk))
        return ree_fail(err, REE_INVALID, "unk_id is %d, but no token has this id", lm->unk);
    return REE_OK;
}

static enum ree_status read_words(struct ree_tokenizer *tokenizer, const cJSON *json,
                                  struct ree_error *err) {
    struct ree_lm *lm = &tokenizer->lm;
    const cJSON *vocab;
    bool pieces = lm->kind == REE_LM_WORDPIECE;
    REE_TRY(ree_text_json_string(&tokenizer->arena, json, "unk_token", pieces ? "[UNK]" : "<unk>",
                                 &lm->unk_token, err));
    if (pieces) {
        REE_TRY(ree_text_json_string(&tokenizer->arena, json, "continuing_subword_prefix", "##",
                                     &lm->prefix, err));
        REE_TRY(ree_text_json_u32(json, "max_input_chars_per_word", 100, &lm->max_chars, err));
    }
    REE_TRY(ree_text_json_want(json, "vocab", &vocab, err));
    return read_vocab(tokenizer, vocab, err);
}

// Older files do not name the model's type; its members determine it.
static const char *model_type(const cJSON *json) {
    const cJSON *type = ree_text_json_get(json, "type");
    if (type) return cJSON_IsString(type) ? type->valuestring : "";
    if (ree_text_json_get(json, "merges")) return "BPE";
    if (cJSON_IsArray(ree_text_json_get(json, "vocab"))) return "Unigram";
    return ree_text_json_get(json, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

static enum ree_status read_model(struct ree_tokenizer *tokenizer, const cJSON *json,
                                  struct ree_error *err) {
    static const char *const types[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    if (!cJSON_IsObject(json)) return ree_fail(err, REE_INVALID, "not an object");
    const char *type = model_type(json);
    size_t kind = 0;
    while (kind < 4 && strcmp(type, types[kind]) != 0)
        kind++;
    if (kind == 4) return ree_fail(err, REE_UNSUPPORTED, "model '%.80s' is not supported", type);
    tokenizer->lm.kind = (enum ree_lm_kind)kind;
    switch (tokenizer->lm.kind) {
    case REE_LM_BPE: return read_bpe(tokenizer, json, err);
    case REE_LM_UNIGRAM: return read_unigram(tokenizer, json, err);
    default: return read_words(tokenizer, json, err);
    }
}

static enum ree_status read_added(struct ree_tokenizer *tokenizer, const cJSON *tokens,
                                  struct ree_error *err) {
    if (!tokens) return REE_OK;
    const cJSON *token;
    int i = 0;
    if (!cJSON_IsArray(tokens)) return ree_fail(err, REE_INVALID, "'added_tokens' is not an array");
    cJSON_ArrayForEach(token, tokens) {
        const cJSON *number;
        int32_t id;
        enum ree_status status = ree_text_json_want(token, "id", &number, err);
        if (status == REE_OK) status = ree_text_json_id(number, &id, err);
        if (status == REE_OK) status = ree_added_add(tokenizer, token, id, err);
        if (status != REE_OK) return ree_fail_prefix(err, "added_tokens[%d]", i);
        i++;
    }
    return REE_OK;
}

static enum ree_status read(struct ree_tokenizer *tokenizer, const cJSON *json,
                            struct ree_error *err) {
    struct ree_arena *arena = &tokenizer->arena;
    const cJSON *model;
    if (!cJSON_IsObject(json)) return ree_fail(err, REE_INVALID, "not a JSON object");
    REE_TRY(ree_text_json_want(json, "model", &model, err));
    REE_TRY(ree_stage_parse(&ree_normalizers, arena, ree_text_json_get(json, "normalizer"),
                            &tokenizer->normalizer, err));
    REE_TRY(ree_stage_parse(&ree_pretokenizers, arena, ree_text_json_get(json, "pre_tokenizer"),
                            &tokenizer->pretokenizer, err));
    REE_TRY(ree_stage_parse(&ree_postprocessors, arena, ree_text_json_get(json, "post_processor"),
                            &tokenizer->postprocessor, err));
    REE_TRY(ree_stage_parse(&ree_decoders, arena, ree_text_json_get(json, "decoder"),
                            &tokenizer->decoder, err));
    enum ree_status status = read_model(tokenizer, model, err);
    if (status != REE_OK) return ree_fail_prefix(err, "model");
    return read_added(tokenizer, ree_text_json_get(json, "added_tokens"), err);
}

enum ree_status ree_tokenizer_read_json(struct ree_tokenizer *tokenizer, const char *text,
                                        size_t nbytes, struct ree_error *err) {
    cJSON *json;
    REE_TRY(ree_text_json_parse(text, nbytes, &json, err));
    enum ree_status status = read(tokenizer, json, err);
    cJSON_Delete(json);
    return status;
}
