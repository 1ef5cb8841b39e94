// Tokenizers without a tokenizer.json: GPT-2's pair vocab.json and merges.txt, and tiktoken's
// files. These files do not define how a text is cut; the other files in the folder or the file's
// name do.
#include "base/file.h"
#include "base/memory.h"
#include "text/bytes.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>

// How a family normalizes and cuts text, in the terms of tokenizer.json.
struct family {
    const char *name;
    const char *classes[3];    // values of "tokenizer_class" in tokenizer_config.json
    const char *file_names[3]; // parts of the name of a tiktoken file
    const char *normalizer, *pretokenizer;
    // Special tokens of a tiktoken file, used unless the folder's files list added tokens.
    struct {
        const char *text; // may contain one %d, which counts from `first`
        int32_t id;
        int n, first;
    } special[10];
};

#define BYTE_LEVEL(regex)                                                                          \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":" regex "}"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"        \
    "\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}," BYTE_LEVEL("false") "]}"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORDS_AND_NUMBERS(number)                                                                  \
    CONTRACTIONS "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}" number                        \
                 "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"                  \
                 "\\\\s+(?!\\\\S)|\\\\s+"
#define UPPER "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define LOWER "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define CASED_WORDS                                                                                \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" UPPER "*" LOWER "+" CONTRACTIONS "?|"                         \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" UPPER "+" LOWER "*" CONTRACTIONS "?|"                         \
    "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|"                 \
    "\\\\s+(?!\\\\S)|\\\\s+"

static const struct family families[] = {
    {"gpt2",
     {"GPT2Tokenizer", "GPT2TokenizerFast"},
     {"gpt2", "r50k"},
     NULL,
     BYTE_LEVEL("true"),
     {{"<|endoftext|>", 50256, 1, 0}}},
    {"qwen",
     {"Qwen2Tokenizer", "Qwen2TokenizerFast", "QWenTokenizer"},
     {"qwen"},
     "{\"type\":\"NFC\"}",
     SPLIT(WORDS_AND_NUMBERS("")),
     {{"<|endoftext|>", 151643, 1, 0},
      {"<|im_start|>", 151644, 1, 0},
      {"<|im_end|>", 151645, 1, 0},
      {"<|extra_%d|>", 151646, 205, 0}}},
    {"cl100k",
     {NULL},
     {"cl100k"},
     NULL,
     SPLIT(WORDS_AND_NUMBERS("{1,3}")),
     {{"<|endoftext|>", 100257, 1, 0},
      {"<|fim_prefix|>", 100258, 1, 0},
      {"<|fim_middle|>", 100259, 1, 0},
      {"<|fim_suffix|>", 100260, 1, 0},
      {"<|endofprompt|>", 100276, 1, 0}}},
    {"o200k",
     {NULL},
     {"o200k"},
     NULL,
     SPLIT(CASED_WORDS),
     {{"<|endoftext|>", 199999, 1, 0}, {"<|endofprompt|>", 200018, 1, 0}}},
    {"llama3",
     {NULL},
     {"llama-3", "llama3", "llama_3"},
     NULL,
     SPLIT(WORDS_AND_NUMBERS("{1,3}")),
     {{"<|begin_of_text|>", 128000, 1, 0},
      {"<|end_of_text|>", 128001, 1, 0},
      {"<|reserved_special_token_%d|>", 128002, 4, 0},
      {"<|start_header_id|>", 128006, 1, 0},
      {"<|end_header_id|>", 128007, 1, 0},
      {"<|reserved_special_token_%d|>", 128008, 1, 4},
      {"<|eot_id|>", 128009, 1, 0},
      {"<|reserved_special_token_%d|>", 128010, 246, 5}}},
};
#define N_FAMILIES (sizeof families / sizeof *families)

static enum ree_status parse_stage(struct ree_tokenizer *tokenizer,
                                   const struct ree_stage_family *family, const char *text,
                                   struct ree_stage *stage, struct ree_error *err) {
    if (!text) return REE_OK;
    cJSON *json;
    REE_TRY(ree_text_json_parse(text, strlen(text), &json, err));
    enum ree_status status = ree_stage_parse(family, &tokenizer->arena, json, stage, err);
    cJSON_Delete(json);
    return status;
}

static enum ree_status take_family(struct ree_tokenizer *tokenizer, const struct family *family,
                                   struct ree_error *err) {
    REE_TRY(
        parse_stage(tokenizer, &ree_normalizers, family->normalizer, &tokenizer->normalizer, err));
    REE_TRY(parse_stage(tokenizer, &ree_pretokenizers, family->pretokenizer,
                        &tokenizer->pretokenizer, err));
    return ree_stage_named(&ree_decoders, &tokenizer->arena, "ByteLevel", &tokenizer->decoder, err);
}

// Finds the family by the class in tokenizer_config.json. *out is NULL if the file does not exist
// or names no class. Fails with REE_UNSUPPORTED if it names an unknown class.
static enum ree_status find_class(const char *folder, const struct family **out,
                                  struct ree_error *err) {
    cJSON *json;
    *out = NULL;
    REE_TRY(ree_read_sibling(folder, "tokenizer_config.json", &json, err));
    const cJSON *class = ree_text_json_get(json, "tokenizer_class");
    const char *name = cJSON_IsString(class) ? class->valuestring : NULL;
    for (size_t i = 0; name && !*out && i < N_FAMILIES; i++)
        for (size_t k = 0; k < 3 && families[i].classes[k]; k++)
            if (strcmp(name, families[i].classes[k]) == 0) *out = &families[i];
    enum ree_status status = REE_OK;
    if (name && !*out)
        status = ree_fail(err, REE_UNSUPPORTED,
                          "the pre-tokenizer of a '%.80s' is unknown; convert it to tokenizer.json",
                          name);
    cJSON_Delete(json);
    return status;
}

// Reads the next line, without its end. Returns false at the end of the text.
static bool next_line(const char **text, const char *end, struct ree_str *line) {
    if (*text == end) return false;
    const char *newline = memchr(*text, '\n', (size_t)(end - *text));
    line->data = *text;
    line->size = (size_t)((newline ? newline : end) - *text);
    *text = newline ? newline + 1 : end;
    if (line->size && line->data[line->size - 1] == '\r') line->size--;
    return true;
}

static enum ree_status read_merges(struct ree_lm *lm, const char *text, size_t nbytes,
                                   struct ree_error *err) {
    const char *end = text + nbytes;
    struct ree_str line;
    struct ree_strbuf joined;
    ree_strbuf_init(&joined);
    enum ree_status status = REE_OK;
    uint32_t rank = 0;
    for (size_t number = 1; status == REE_OK && next_line(&text, end, &line); number++) {
        if (line.size == 0 || (number == 1 && line.data[0] == '#')) continue;
        const char *space = memchr(line.data, ' ', line.size);
        size_t left = space ? (size_t)(space - line.data) : 0;
        int32_t ids[3] = {-1, -1, -1};
        if (space) {
            joined.size = 0;
            ree_strbuf_append(&joined, line.data, left);
            ree_strbuf_append(&joined, space + 1, line.size - left - 1);
            if (joined.failed) {
                status = ree_fail(err, REE_NO_MEMORY, "no memory for a merge");
                break;
            }
            ids[0] = ree_vocab_find(&lm->vocab, line.data, left);
            ids[1] = ree_vocab_find(&lm->vocab, space + 1, line.size - left - 1);
            ids[2] = ree_vocab_find(&lm->vocab, joined.data, joined.size);
        }
        if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0)
            status = ree_fail(
                err, REE_INVALID,
                "line %zu is not a pair of tokens of the vocabulary whose concatenation is a token",
                number);
        else
            status = ree_bpe_add_merge(lm, ids[0], ids[1], ids[2], rank++, err);
    }
    ree_strbuf_finish(&joined);
    return status;
}

static enum ree_status read_vocab(struct ree_tokenizer *tokenizer, const char *text, size_t nbytes,
                                  struct ree_error *err) {
    cJSON *json;
    const cJSON *entry;
    REE_TRY(ree_text_json_parse(text, nbytes, &json, err));
    enum ree_status status = REE_OK;
    if (!cJSON_IsObject(json)) status = ree_fail(err, REE_INVALID, "not a JSON object");
    cJSON_ArrayForEach(entry, json) {
        struct ree_str piece;
        int32_t id;
        if (status == REE_OK) status = ree_text_json_id(entry, &id, err);
        if (status == REE_OK)
            status = ree_text_json_copy(&tokenizer->arena, entry->string, &piece, err);
        if (status == REE_OK) status = ree_vocab_add(&tokenizer->lm.vocab, piece, id, err);
        if (status != REE_OK) break;
    }
    cJSON_Delete(json);
    return status;
}

enum ree_status ree_tokenizer_read_gpt2(struct ree_tokenizer *tokenizer, const char *vocab_path,
                                        const char *merges_path, const char *folder,
                                        struct ree_error *err) {
    const struct family *family;
    void *bytes;
    size_t nbytes;
    REE_TRY(find_class(folder, &family, err));
    REE_TRY(take_family(tokenizer, family ? family : &families[0], err));
    tokenizer->lm.kind = REE_LM_BPE;
    REE_TRY(ree_file_read(vocab_path, &bytes, &nbytes, err));
    enum ree_status status = read_vocab(tokenizer, bytes, nbytes, err);
    ree_free(bytes);
    if (status != REE_OK) return ree_fail_prefix(err, "%s", vocab_path);
    REE_TRY(ree_file_read(merges_path, &bytes, &nbytes, err));
    status = read_merges(&tokenizer->lm, bytes, nbytes, err);
    ree_free(bytes);
    if (status != REE_OK) return ree_fail_prefix(err, "%s", merges_path);
    return ree_tokenizer_read_added(tokenizer, folder, err);
}

// tiktoken: each line has a token's bytes in base64 and its rank, which is its id.

static enum ree_status read_ranks(struct ree_tokenizer *tokenizer, const char *text, size_t nbytes,
                                  struct ree_error *err) {
    const char *end = text + nbytes;
    struct ree_str line, piece;
    struct ree_strbuf bytes, mapped;
    ree_strbuf_init(&bytes);
    ree_strbuf_init(&mapped);
    enum ree_status status = REE_OK;
    for (size_t number = 1; status == REE_OK && next_line(&text, end, &line); number++) {
        if (line.size == 0) continue;
        const char *space = memchr(line.data, ' ', line.size);
        char digits[12] = "", *rest = digits;
        size_t n = space ? (size_t)(line.data + line.size - space) - 1 : 0;
        if (n > 0 && n < sizeof digits) memcpy(digits, space + 1, n);
        long rank = digits[0] >= '0' && digits[0] <= '9' ? strtol(digits, &rest, 10) : -1;
        bytes.size = mapped.size = 0;
        if (rank < 0 || *rest || space == line.data ||
            !ree_base64_decode(&bytes, line.data, (size_t)(space - line.data)) || !bytes.size) {
            status = ree_fail(err, REE_INVALID, "line %zu is not a token in base64 and its rank",
                              number);
            break;
        }
        ree_bytes_append(&mapped, bytes.data, bytes.size);
        piece.size = mapped.size;
        piece.data =
            mapped.failed ? NULL : ree_arena_strndup(&tokenizer->arena, mapped.data, mapped.size);
        if (!piece.data)
            status = ree_fail(err, REE_NO_MEMORY, "no memory for the vocabulary");
        else
            status = ree_vocab_add(&tokenizer->lm.vocab, piece, rank, err);
        if (status != REE_OK) ree_fail_prefix(err, "line %zu", number);
    }
    ree_strbuf_finish(&bytes);
    ree_strbuf_finish(&mapped);
    return status;
}

// tiktoken merges an adjacent pair if its concatenation is a token, lowest rank first. So every way
// to cut a token in two is a merge with the token's rank.
static enum ree_status make_merges(struct ree_lm *lm, struct ree_error *err) {
    for (uint32_t id = 0; id < lm->vocab.n; id++) {
        const struct ree_str *piece = ree_vocab_piece(&lm->vocab, (int32_t)id);
        if (!piece) continue;
        // Limits the work for a malicious file: a line can be long, but no real token is.
        if (piece->size > 1024)
            return ree_fail(err, REE_UNSUPPORTED, "token %u has %zu bytes", id, piece->size);
        size_t step;
        for (size_t i = 0; i < piece->size; i += step) {
            ree_utf8_get(piece->data + i, &step);
            if (i == 0) continue;
            int32_t left = ree_vocab_find(&lm->vocab, piece->data, i);
            int32_t right =
                left < 0 ? -1 : ree_vocab_find(&lm->vocab, piece->data + i, piece->size - i);
            if (right >= 0) REE_TRY(ree_bpe_add_merge(lm, left, right, (int32_t)id, id, err));
        }
    }
    return REE_OK;
}

static enum ree_status add_special(struct ree_tokenizer *tokenizer, const struct family *family,
                                   struct ree_error *err) {
    for (size_t i = 0; i < sizeof family->special / sizeof *family->special; i++) {
        for (int k = 0; family->special[i].text && k < family->special[i].n; k++) {
            // These texts contain at most one %d.
            char text[80];
            const char *mark = strstr(family->special[i].text, "%d");
            int before = mark ? (int)(mark - family->special[i].text) : (int)sizeof text - 1;
            snprintf(text, sizeof text, "%.*s", before, family->special[i].text);
            if (mark)
                snprintf(text + before, sizeof text - (size_t)before, "%d%s",
                         family->special[i].first + k, mark + 2);
            REE_TRY(ree_added_add_special(tokenizer, text, family->special[i].id + k, err));
        }
    }
    return REE_OK;
}

static const struct family *find_name(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < N_FAMILIES; i++)
        for (size_t k = 0; k < 3 && families[i].file_names[k]; k++)
            if (strcasestr(name, families[i].file_names[k])) return &families[i];
    return NULL;
}

// Finds the family by the model, if neither the file's name nor the tokenizer's class determines
// it.
static enum ree_status find_model(const char *folder, const struct family **out,
                                  struct ree_error *err) {
    cJSON *json;
    *out = NULL;
    REE_TRY(ree_read_sibling(folder, "config.json", &json, err));
    const cJSON *type = ree_text_json_get(json, "model_type"),
                *size = ree_text_json_get(json, "vocab_size");
    const char *name = cJSON_IsString(type) ? type->valuestring : "";
    if (strncmp(name, "qwen", 4) == 0) *out = &families[1];
    // The third generation of Llama uses tiktoken's format.
    if (strcmp(name, "llama") == 0 && cJSON_IsNumber(size) && size->valuedouble >= 128256)
        *out = &families[4];
    cJSON_Delete(json);
    return REE_OK;
}

// Finds the family: by the file's name, the tokenizer's class or the model.
static enum ree_status find_family(const char *path, const char *folder, const struct family **out,
                                   struct ree_error *err) {
    struct ree_error ignored;
    *out = find_name(path);
    if (!*out) find_class(folder, out, &ignored);
    if (!*out) REE_TRY(find_model(folder, out, err));
    if (*out) return REE_OK;
    return ree_fail(
        err, REE_UNSUPPORTED,
        "the pre-tokenizer is unknown: the file's name contains none of gpt2, r50k, cl100k, o200k, "
        "qwen, llama3, and no tokenizer_config.json or config.json in its folder names one");
}

static enum ree_status read_tiktoken(struct ree_tokenizer *tokenizer, const char *path,
                                     const char *folder, const char *text, size_t nbytes,
                                     struct ree_error *err) {
    const struct family *family;
    // Both formats use the name tokenizer.model. A SentencePiece model is a protobuf, which begins
    // with the tag of its pieces, the byte 0x0A.
    if (nbytes > 0 && text[0] == '\n')
        return ree_fail(err, REE_UNSUPPORTED,
                        "SentencePiece models are not supported; convert it to tokenizer.json");
    REE_TRY(find_family(path, folder, &family, err));
    REE_TRY(take_family(tokenizer, family, err));
    tokenizer->lm.kind = REE_LM_BPE;
    tokenizer->lm.ignore_merges = true; // a piece that is a token is not cut further
    REE_TRY(read_ranks(tokenizer, text, nbytes, err));
    REE_TRY(make_merges(&tokenizer->lm, err));
    REE_TRY(ree_tokenizer_read_added(tokenizer, folder, err));
    return tokenizer->n_added ? REE_OK : add_special(tokenizer, family, err);
}

enum ree_status ree_tokenizer_read_tiktoken(struct ree_tokenizer *tokenizer, const char *path,
                                            const char *folder, struct ree_error *err) {
    void *bytes;
    size_t nbytes;
    REE_TRY(ree_file_read(path, &bytes, &nbytes, err));
    enum ree_status status = read_tiktoken(tokenizer, path, folder, bytes, nbytes, err);
    ree_free(bytes);
    return status;
}
