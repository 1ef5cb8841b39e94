// A tokenizer's internals: the loaded data, and the functions that the files of this folder share.
#ifndef REE_TEXT_TOKENIZER_H
#define REE_TEXT_TOKENIZER_H

#include "text/lm.h"
#include "text/stage.h"

// A token that is searched for in the text before all other processing.
struct ree_added_token {
    struct ree_str content;
    // The content, or its normalized form. It is searched for, and passed to decoders.
    struct ree_str sought;
    int32_t id;
    uint32_t single_word;    // matches only if no word character is adjacent
    uint32_t lstrip, rstrip; // also consumes the white space on that side
    uint32_t normalized;     // searched for in the normalized text, by its normalized content
    uint32_t special;
};

struct ree_tokenizer {
    struct ree_arena arena; // owns all strings
    struct ree_stage normalizer, pretokenizer, postprocessor, decoder;
    struct ree_lm lm;
    struct ree_added_token *added;
    size_t n_added, added_capacity;
    struct ree_vocab added_vocab;  // the added tokens that lm.vocab does not have
    int32_t *added_by_id;          // [n_ids]: index into `added`, or -1
    uint32_t n_ids;                // 1 + the largest id of both vocabularies
    struct ree_trie exact, normal; // of `added`, by their flag `normalized`; values are indexes
    int32_t bos;                   // -1: none
    int32_t eos_token;             // the one that the tokenizer's own files name; -1: none
    int32_t *eos;                  // ascending
    size_t n_eos;
    const char *chat_template; // NULL: none
    const char *model_type;    // of config.json; NULL: none
    const char *chat_family;   // static string; NULL: not recognised
    char sha256[65];
};

// Loading. The readers fill a zeroed tokenizer, and ree_tokenizer_complete derives the rest. Their
// messages do not name the file; ree_tokenizer_load prefixes its path.
enum ree_status ree_tokenizer_read_json(struct ree_tokenizer *tokenizer, const char *text,
                                        size_t nbytes, struct ree_error *err);
// Reads vocab.json and merges.txt.
enum ree_status ree_tokenizer_read_gpt2(struct ree_tokenizer *tokenizer, const char *vocab_path,
                                        const char *merges_path, const char *folder,
                                        struct ree_error *err);
enum ree_status ree_tokenizer_read_tiktoken(struct ree_tokenizer *tokenizer, const char *path,
                                            const char *folder, struct ree_error *err);
enum ree_status ree_tokenizer_complete(struct ree_tokenizer *tokenizer, struct ree_error *err);
// Loads from memory, from a tokenizer.json only; for tests.
enum ree_status ree_tokenizer_load_memory(const char *json, size_t nbytes,
                                          struct ree_tokenizer **out_tokenizer,
                                          struct ree_error *err);

// Adds the token that `json` describes; the id is passed separately (added.c).
enum ree_status ree_added_add(struct ree_tokenizer *tokenizer, const cJSON *json, int32_t id,
                              struct ree_error *err);
enum ree_status ree_added_add_special(struct ree_tokenizer *tokenizer, const char *content,
                                      int32_t id, struct ree_error *err);
enum ree_status ree_added_prepare(struct ree_tokenizer *tokenizer, struct ree_error *err);
const struct ree_added_token *ree_added_of_id(const struct ree_tokenizer *tokenizer, int32_t id);

// Cuts a text at added tokens. Calls `on_part` with each text (`added` is NULL) and each token, in
// order. `origin`: number of bytes at the beginning of the text that come from the beginning of the
// whole text.
struct ree_added_cut {
    const struct ree_tokenizer *tokenizer;
    const struct ree_trie *trie; // exact or normal
    bool parse_special;
    enum ree_status (*on_part)(void *user, const char *text, size_t n, size_t origin,
                               const struct ree_added_token *added, struct ree_error *err);
    void *user;
};
enum ree_status ree_added_cut(const struct ree_added_cut *cut, const char *text, size_t n,
                              size_t origin, struct ree_error *err);

// Reads the other files of the folder (config.c) and sets bos, eos and the chat template. Missing
// files are not an error.
enum ree_status ree_tokenizer_read_config(struct ree_tokenizer *tokenizer, const char *folder,
                                          struct ree_error *err);
// Reads a JSON file of a folder. *out_json is NULL if the file does not exist.
enum ree_status ree_read_sibling(const char *folder, const char *name, cJSON **out_json,
                                 struct ree_error *err);
// Adds the tokens of tokenizer_config.json's "added_tokens_decoder" or, without that, of
// added_tokens.json.
enum ree_status ree_tokenizer_read_added(struct ree_tokenizer *tokenizer, const char *folder,
                                         struct ree_error *err);

// For a folder with a tokenizer.json: adds the tokens of "added_tokens_decoder" whose ids no added
// token has yet.
enum ree_status ree_tokenizer_read_more_added(struct ree_tokenizer *tokenizer, const char *folder,
                                              struct ree_error *err);

// Post-processing: adds the tokens that belong before and after *ids.
enum ree_status ree_postprocess(const struct ree_stage *stage, struct ree_ids *ids,
                                struct ree_error *err);
// True if the post-processor adds nothing to any text.
bool ree_postprocess_is_empty(const struct ree_stage *stage);
// Checks that every id that a post-processor adds exists.
enum ree_status ree_postprocess_check(const struct ree_tokenizer *tokenizer,
                                      const struct ree_stage *stage, struct ree_error *err);

const struct ree_str *ree_tokenizer_piece(const struct ree_tokenizer *tokenizer, int32_t id);
int32_t ree_tokenizer_find(const struct ree_tokenizer *tokenizer, const char *data, size_t size);
enum ree_status ree_tokenizer_hash(struct ree_tokenizer *tokenizer, struct ree_error *err);

// Recognises the family of the tokenizer's chat template (chat_recognise.c). NULL: unknown.
const char *ree_chat_recognise(const struct ree_tokenizer *tokenizer);
// Returns the ChatML family whose default system message is this text. NULL: none.
const char *ree_chat_family_of_preset(const char *text, size_t n);

#endif
