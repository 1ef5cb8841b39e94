// The public functions of tokenizers, and loading: finds the file, reads it and derives the rest.
#include "text/tokenizer.h"

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "text/decode.h"
#include "text/normalize.h"
#include "text/pretokenize.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct ree_tokenizer *create(void) {
    struct ree_tokenizer *tokenizer = ree_alloc_zeroed(1, sizeof *tokenizer);
    if (tokenizer) tokenizer->bos = tokenizer->eos_token = tokenizer->lm.unk = -1;
    return tokenizer;
}

void ree_tokenizer_destroy(struct ree_tokenizer *tokenizer) {
    if (!tokenizer) return;
    ree_stage_finish(&tokenizer->normalizer);
    ree_stage_finish(&tokenizer->pretokenizer);
    ree_stage_finish(&tokenizer->postprocessor);
    ree_stage_finish(&tokenizer->decoder);
    ree_lm_finish(&tokenizer->lm);
    ree_vocab_finish(&tokenizer->added_vocab);
    ree_trie_finish(&tokenizer->exact);
    ree_trie_finish(&tokenizer->normal);
    ree_free(tokenizer->added);
    ree_free(tokenizer->added_by_id);
    ree_free(tokenizer->eos);
    ree_free(tokenizer->own_eos);
    ree_arena_finish(&tokenizer->arena);
    ree_free(tokenizer);
}

enum ree_status ree_tokenizer_complete(struct ree_tokenizer *tokenizer, struct ree_error *err) {
    struct ree_lm *lm = &tokenizer->lm;
    bool plain = lm->kind == REE_LM_BPE && !lm->prefix.size && !lm->suffix.size;
    lm->raw_bytes = ree_pretokenizer_defer_bytes(&tokenizer->pretokenizer, plain);
    REE_TRY(ree_lm_prepare(lm, err));
    REE_TRY(ree_added_prepare(tokenizer, err));
    REE_TRY(ree_postprocess_check(tokenizer, &tokenizer->postprocessor, err));
    return ree_tokenizer_hash(tokenizer, err);
}

enum ree_status ree_tokenizer_load_memory(const char *json, size_t nbytes,
                                          struct ree_tokenizer **out_tokenizer,
                                          struct ree_error *err) {
    *out_tokenizer = NULL;
    struct ree_tokenizer *tokenizer = create();
    if (!tokenizer) return ree_fail(err, REE_NO_MEMORY, "no memory for a tokenizer");
    enum ree_status status = ree_tokenizer_read_json(tokenizer, json, nbytes, err);
    if (status == REE_OK) status = ree_tokenizer_complete(tokenizer, err);
    if (status == REE_OK)
        *out_tokenizer = tokenizer;
    else
        ree_tokenizer_destroy(tokenizer);
    return status;
}

// The files that a path names: the file itself, its kind according to its name, its folder, and
// merges.txt in that folder.
struct tokenizer_files {
    char *file, *folder, *merges;
    enum { JSON, GPT2, TIKTOKEN } kind;
};

static char *join(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = ree_alloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), size = strlen(end);
    return n >= size && strcmp(text + n - size, end) == 0;
}

static bool is_file(const char *path) {
    struct stat info;
    return path && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

// Sets files->file to the first of `names` that exists in the folder.
static enum ree_status find_in_folder(struct tokenizer_files *files, struct ree_error *err) {
    static const char *const names[] = {"tokenizer.json", "vocab.json", "tokenizer.tiktoken",
                                        "qwen.tiktoken", "tokenizer.model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        files->file = join(files->folder, names[i]);
        if (!files->file) return ree_fail(err, REE_NO_MEMORY, "no memory for a path");
        if (is_file(files->file)) return REE_OK;
        ree_free(files->file);
        files->file = NULL;
    }
    return ree_fail(
        err, REE_NOT_FOUND,
        "%s: this folder contains no tokenizer.json, vocab.json with merges.txt, or tiktoken file",
        files->folder);
}

static enum ree_status find(const char *path, struct tokenizer_files *files,
                            struct ree_error *err) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        files->folder = ree_strdup(path);
        if (files->folder) REE_TRY(find_in_folder(files, err));
    } else {
        const char *slash = strrchr(path, '/');
        files->folder = slash == path ? ree_strdup("/")
                        : slash       ? ree_strndup(path, (size_t)(slash - path))
                                      : ree_strdup(".");
        files->file = ree_strdup(path);
    }
    files->merges = files->folder ? join(files->folder, "merges.txt") : NULL;
    if (!files->file || !files->merges) return ree_fail(err, REE_NO_MEMORY, "no memory for a path");
    if (ends_with(files->file, ".tiktoken") || ends_with(files->file, ".model"))
        files->kind = TIKTOKEN;
    else if (ends_with(files->file, "vocab.json"))
        files->kind = GPT2;
    return REE_OK;
}

static enum ree_status read_json_file(struct ree_tokenizer *tokenizer, const char *path,
                                      struct ree_error *err) {
    void *bytes;
    size_t nbytes;
    REE_TRY(ree_file_read(path, &bytes, &nbytes, err));
    enum ree_status status = ree_tokenizer_read_json(tokenizer, bytes, nbytes, err);
    ree_free(bytes);
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", path);
}

static enum ree_status read_found(struct ree_tokenizer *tokenizer,
                                  const struct tokenizer_files *files, struct ree_error *err) {
    enum ree_status status;
    switch (files->kind) {
    case JSON:
        REE_TRY(read_json_file(tokenizer, files->file, err));
        return ree_tokenizer_read_more_added(tokenizer, files->folder, err);
    case GPT2:
        return ree_tokenizer_read_gpt2(tokenizer, files->file, files->merges, files->folder, err);
    default:
        status = ree_tokenizer_read_tiktoken(tokenizer, files->file, files->folder, err);
        return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", files->file);
    }
}

static enum ree_status load(const char *path, struct ree_tokenizer **out_tokenizer,
                            struct ree_error *err) {
    *out_tokenizer = NULL;
    struct tokenizer_files files = {.kind = JSON};
    struct ree_tokenizer *tokenizer = create();
    enum ree_status status = tokenizer ? find(path, &files, err)
                                       : ree_fail(err, REE_NO_MEMORY, "no memory for a tokenizer");
    if (status == REE_OK) status = read_found(tokenizer, &files, err);
    if (status == REE_OK) {
        status = ree_tokenizer_complete(tokenizer, err);
        if (status != REE_OK) ree_fail_prefix(err, "%s", files.file);
    }
    if (status == REE_OK) status = ree_tokenizer_read_config(tokenizer, files.folder, err);
    if (status == REE_OK) {
        tokenizer->chat_family = ree_chat_recognise(tokenizer);
        *out_tokenizer = tokenizer;
    } else {
        ree_tokenizer_destroy(tokenizer);
    }
    ree_free(files.file);
    ree_free(files.folder);
    ree_free(files.merges);
    return status;
}

enum ree_status ree_tokenizer_load(const char *path, struct ree_tokenizer **out_tokenizer,
                                   struct ree_error *err) {
    REE_FLOAT_ENV_API();
    // Missing optional files leave a message in `own`, although the call succeeds.
    struct ree_error own;
    enum ree_status status = load(path, out_tokenizer, &own);
    if (status != REE_OK && err) *err = own;
    return status;
}

const struct ree_str *ree_tokenizer_piece(const struct ree_tokenizer *tokenizer, int32_t id) {
    const struct ree_str *piece = ree_vocab_piece(&tokenizer->lm.vocab, id);
    return piece ? piece : ree_vocab_piece(&tokenizer->added_vocab, id);
}

int32_t ree_tokenizer_find(const struct ree_tokenizer *tokenizer, const char *data, size_t size) {
    int32_t id = ree_vocab_find(&tokenizer->added_vocab, data, size);
    return id >= 0 ? id : ree_vocab_find(&tokenizer->lm.vocab, data, size);
}

uint32_t ree_tokenizer_vocab_size(const struct ree_tokenizer *tokenizer) {
    return tokenizer->n_ids;
}

const char *ree_tokenizer_token(const struct ree_tokenizer *tokenizer, int32_t id) {
    const struct ree_str *piece = ree_tokenizer_piece(tokenizer, id);
    return piece ? piece->data : NULL;
}

int32_t ree_tokenizer_id(const struct ree_tokenizer *tokenizer, const char *token) {
    return ree_tokenizer_find(tokenizer, token, strlen(token));
}

bool ree_tokenizer_is_special(const struct ree_tokenizer *tokenizer, int32_t id) {
    const struct ree_added_token *token = ree_added_of_id(tokenizer, id);
    return token && token->special;
}

int32_t ree_tokenizer_bos(const struct ree_tokenizer *tokenizer) {
    return tokenizer->bos;
}

size_t ree_tokenizer_eos(const struct ree_tokenizer *tokenizer, const int32_t **out_ids) {
    *out_ids = tokenizer->eos;
    return tokenizer->n_eos;
}

void ree_tokenizer_sha256(const struct ree_tokenizer *tokenizer, char hex[65]) {
    memcpy(hex, tokenizer->sha256, 65);
}

void ree_tokenizer_sha256_version_1(const struct ree_tokenizer *tokenizer, char hex[65]) {
    memcpy(hex, tokenizer->sha256_version_1, 65);
}

const char *ree_tokenizer_chat_family(const struct ree_tokenizer *tokenizer) {
    return tokenizer->chat_family;
}
