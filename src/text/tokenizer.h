// A tokenizer from the inside: what is loaded, and by which of the room's files.
#ifndef REE_TEXT_TOKENIZER_H
#define REE_TEXT_TOKENIZER_H

#include "text/lm.h"
#include "text/stage.h"

// A token that is found in the text before anything else is done with it.
struct ree_added_token {
    struct ree_str content;
    struct ree_str sought; // content, or its normalized form: also what is given to decoders
    int32_t id;
    uint32_t single_word;    // only where no word character is beside it
    uint32_t lstrip, rstrip; // takes the white space on that side
    uint32_t normalized;     // sought in the normalized text, by its normalized content
    uint32_t special;
};

struct ree_tokenizer {
    struct ree_arena arena; // of all strings
    struct ree_stage normalizer, pretokenizer, postprocessor, decoder;
    struct ree_lm lm;
    struct ree_added_token *added;
    size_t n_added, added_capacity;
    struct ree_vocab added_vocab;  // those of `added` that lm.vocab has not
    int32_t *added_by_id;          // [n_ids]: index into `added`, or -1
    uint32_t n_ids;                // 1 + the largest id of both vocabularies
    struct ree_trie exact, normal; // of `added`, by `normalized`; values are indexes
    int32_t bos;                   // -1: none
    int32_t eos_token;             // the one that the tokenizer's files name; -1: none
    int32_t *eos;                  // ascending
    size_t n_eos;
    const char *chat_template; // NULL: none
    const char *model_type;    // of config.json; NULL: none
    const char *chat_family;   // static; NULL: none known
    char sha256[65];
};

// Loading. The readers fill a zeroed tokenizer; ree_tokenizer_complete derives the rest. Messages
// do not name the file; ree_tokenizer_load puts its path in front.
enum ree_status ree_tokenizer_read_json(struct ree_tokenizer *tokenizer, const char *text,
                                        size_t nbytes, struct ree_error *err);
// vocab.json, merges.txt.
enum ree_status ree_tokenizer_read_gpt2(struct ree_tokenizer *tokenizer, const char *vocab_path,
                                        const char *merges_path, const char *folder,
                                        struct ree_error *err);
enum ree_status ree_tokenizer_read_tiktoken(struct ree_tokenizer *tokenizer, const char *path,
                                            const char *folder, struct ree_error *err);
enum ree_status ree_tokenizer_complete(struct ree_tokenizer *tokenizer, struct ree_error *err);
// From memory, a tokenizer.json alone: for tests.
enum ree_status ree_tokenizer_load_memory(const char *json, size_t nbytes,
                                          struct ree_tokenizer **out_tokenizer,
                                          struct ree_error *err);

// Members of `json` that describe an added token, but for its id (added.c).
enum ree_status ree_added_add(struct ree_tokenizer *tokenizer, const cJSON *json, int32_t id,
                              struct ree_error *err);
enum ree_status ree_added_add_special(struct ree_tokenizer *tokenizer, const char *content,
                                      int32_t id, struct ree_error *err);
enum ree_status ree_added_prepare(struct ree_tokenizer *tokenizer, struct ree_error *err);
const struct ree_added_token *ree_added_of_id(const struct ree_tokenizer *tokenizer, int32_t id);

// Cuts a text at added tokens: calls `on_part` with each part in order, which is either text
// (`added` is NULL) or a token. `origin`: how many bytes at its beginning come from where the whole
// text begins.
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

// The files beside (config.c): sets bos, eos, chat template; missing files are no error.
enum ree_status ree_tokenizer_read_config(struct ree_tokenizer *tokenizer, const char *folder,
                                          struct ree_error *err);
// A JSON file of a folder; *out_json is NULL when there is none.
enum ree_status ree_read_sibling(const char *folder, const char *name, cJSON **out_json,
                                 struct ree_error *err);
// The tokens of tokenizer_config.json's "added_tokens_decoder" and of added_tokens.json.
enum ree_status ree_tokenizer_read_added(struct ree_tokenizer *tokenizer, const char *folder,
                                         struct ree_error *err);

// Of "added_tokens_decoder" those whose ids no added token has yet: beside a tokenizer.json.
enum ree_status ree_tokenizer_read_more_added(struct ree_tokenizer *tokenizer, const char *folder,
                                              struct ree_error *err);

// Post-processing: *ids get what belongs round them.
enum ree_status ree_postprocess(const struct ree_stage *stage, struct ree_ids *ids,
                                struct ree_error *err);
// A post-processor that adds nothing to any text.
bool ree_postprocess_is_empty(const struct ree_stage *stage);
// Every id that a post-processor adds has to exist.
enum ree_status ree_postprocess_check(const struct ree_tokenizer *tokenizer,
                                      const struct ree_stage *stage, struct ree_error *err);

const struct ree_str *ree_tokenizer_piece(const struct ree_tokenizer *tokenizer, int32_t id);
int32_t ree_tokenizer_find(const struct ree_tokenizer *tokenizer, const char *data, size_t size);
enum ree_status ree_tokenizer_hash(struct ree_tokenizer *tokenizer, struct ree_error *err);

// The family of the tokenizer's chat template (chat_recognise.c); NULL: none that is known.
const char *ree_chat_recognise(const struct ree_tokenizer *tokenizer);
// The ChatML family that has this text where a conversation has no system message; NULL: none.
const char *ree_chat_family_of_preset(const char *text, size_t n);

#endif
