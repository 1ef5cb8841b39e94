// A tokenizer's internals: the loaded data, and the functions that the files of this folder share.
#ifndef REE_TEXT_TOKENIZER_H
#define REE_TEXT_TOKENIZER_H

#include "text/lm.h"
#include "text/stage.h"

// A token that is searched for in a text before the text is cut into pieces, for example
// <|endoftext|>.
struct ree_added_token {
    struct ree_str content;
    // The text to search for, and to pass to decoders: the content, normalized if `normalized` is
    // set.
    struct ree_str sought;
    int32_t id;
    uint32_t single_word;    // matches only if no word character is adjacent
    uint32_t lstrip, rstrip; // flags: also consumes the white space before it; after it
    uint32_t normalized;     // flag: searched for in the normalized text
    uint32_t special;
};

struct ree_tokenizer {
    struct ree_arena arena; // owns the strings of the fields below
    struct ree_stage normalizer, pretokenizer, postprocessor, decoder;
    struct ree_lm lm;
    struct ree_added_token *added;
    size_t n_added, added_capacity;
    struct ree_vocab added_vocab; // the added tokens that lm.vocab does not have
    int32_t *added_by_id;         // [n_ids]: index into `added`, or -1
    uint32_t n_ids;               // 1 + the largest id of both vocabularies
    // Tries of the texts to search for; their values are indexes into `added`. `exact` has the
    // tokens searched for in the original text, `normal` those searched for in normalized text.
    struct ree_trie exact, normal;
    int32_t bos;       // id of the token that begins a text; -1: none
    int32_t eos_token; // id of the end token that the tokenizer's own files name; -1: none
    int32_t *eos;      // [n_eos]: ids of all tokens that end a text, ascending
    size_t n_eos;
    int32_t *own_eos; // [n_own_eos]: the ids in `eos` that tokenizer files name
    size_t n_own_eos;
    const char *chat_template; // Jinja text; NULL: none
    const char *model_type;    // member "model_type" of config.json; NULL: none
    const char *chat_family;   // name of the template's family, static; NULL: not recognised
    char sha256[65];
    char sha256_version_1[65]; // as ree 0.1.0 computed it: without the items of templates
};

// Loading: a function ree_tokenizer_read_... fills a new tokenizer from files of one format, then
// ree_tokenizer_complete computes the fields that are derived. Error messages do not name the file;
// ree_tokenizer_load prefixes its path. ree_tokenizer_read_json reads the text of a tokenizer.json.
enum ree_status ree_tokenizer_read_json(struct ree_tokenizer *tokenizer, const char *text,
                                        size_t nbytes, struct ree_error *err);
// Reads the files vocab.json and merges.txt, and added tokens from other files in `folder`.
enum ree_status ree_tokenizer_read_gpt2(struct ree_tokenizer *tokenizer, const char *vocab_path,
                                        const char *merges_path, const char *folder,
                                        struct ree_error *err);
enum ree_status ree_tokenizer_read_tiktoken(struct ree_tokenizer *tokenizer, const char *path,
                                            const char *folder, struct ree_error *err);
enum ree_status ree_tokenizer_complete(struct ree_tokenizer *tokenizer, struct ree_error *err);
// For tests: makes a tokenizer from the text of a tokenizer.json, without any file.
enum ree_status ree_tokenizer_load_memory(const char *json, size_t nbytes,
                                          struct ree_tokenizer **out_tokenizer,
                                          struct ree_error *err);

// added.c: ree_added_add adds the token that `json`, an element of "added_tokens", describes;
// ree_added_add_special adds a special token with this text. ree_added_prepare checks the added
// tokens and computes added_vocab, added_by_id, n_ids and the tries. ree_added_of_id returns NULL
// if no added token has the id.
enum ree_status ree_added_add(struct ree_tokenizer *tokenizer, const cJSON *json, int32_t id,
                              struct ree_error *err);
enum ree_status ree_added_add_special(struct ree_tokenizer *tokenizer, const char *content,
                                      int32_t id, struct ree_error *err);
enum ree_status ree_added_prepare(struct ree_tokenizer *tokenizer, struct ree_error *err);
const struct ree_added_token *ree_added_of_id(const struct ree_tokenizer *tokenizer, int32_t id);

// Cuts a text at the added tokens in `trie`. Calls `on_part` in order with each part of the text
// between tokens (`added` is NULL) and with each token (`text` is NULL, n is 0). `origin` is the
// number of bytes at the beginning of a text that come from the first character of the whole text.
// Fails with REE_UNSUPPORTED if the search takes too many steps, or with the status of `on_part`.
struct ree_added_cut {
    const struct ree_tokenizer *tokenizer;
    const struct ree_trie *trie; // added tokens to cut at: tokenizer->exact or tokenizer->normal
    bool parse_special;
    uint64_t *n_steps_left; // bytes that searches may still compare; further texts use it up
    enum ree_status (*on_part)(void *user, const char *text, size_t n, size_t origin,
                               const struct ree_added_token *added, struct ree_error *err);
    void *user;
};
enum ree_status ree_added_cut(const struct ree_added_cut *cut, const char *text, size_t n,
                              size_t origin, struct ree_error *err);

// config.c: reads tokenizer_config.json, generation_config.json and similar files of the folder,
// and sets bos, eos, model_type and chat_template. A missing file is not an error.
enum ree_status ree_tokenizer_read_config(struct ree_tokenizer *tokenizer, const char *folder,
                                          struct ree_error *err);
// As ree_tokenizer_eos, but without the ids in the model's files, config.json and
// generation_config.json.
size_t ree_tokenizer_own_eos(const struct ree_tokenizer *tokenizer, const int32_t **out_ids);
// Reads the JSON object in the file `name` of the folder; the caller releases it with cJSON_Delete.
// *out_json is NULL if the file does not exist.
enum ree_status ree_read_sibling(const char *folder, const char *name, cJSON **out_json,
                                 struct ree_error *err);
// Adds the added tokens of the folder: those in "added_tokens_decoder" of tokenizer_config.json or,
// if it has no such member, those in added_tokens.json.
enum ree_status ree_tokenizer_read_added(struct ree_tokenizer *tokenizer, const char *folder,
                                         struct ree_error *err);

// For a folder with a tokenizer.json: adds the tokens in "added_tokens_decoder" of
// tokenizer_config.json whose ids are not yet ids of added tokens.
enum ree_status ree_tokenizer_read_more_added(struct ree_tokenizer *tokenizer, const char *folder,
                                              struct ree_error *err);

// Post-processing: adds to *ids the tokens that the post-processor `stage` puts before and after
// every text, for example [CLS] and [SEP].
enum ree_status ree_postprocess(const struct ree_stage *stage, struct ree_ids *ids,
                                struct ree_error *err);
// True if the post-processor adds nothing to any text.
bool ree_postprocess_is_empty(const struct ree_stage *stage);
// Fails with REE_INVALID if the post-processor adds an id that the tokenizer does not have.
enum ree_status ree_postprocess_check(const struct ree_tokenizer *tokenizer,
                                      const struct ree_stage *stage, struct ree_error *err);

const struct ree_str *ree_tokenizer_piece(const struct ree_tokenizer *tokenizer, int32_t id);
int32_t ree_tokenizer_find(const struct ree_tokenizer *tokenizer, const char *data, size_t size);
enum ree_status ree_tokenizer_hash(struct ree_tokenizer *tokenizer, struct ree_error *err);

// Returns the name of the family that the tokenizer's chat template belongs to (chat_recognise.c),
// or NULL if it is unknown.
const char *ree_chat_recognise(const struct ree_tokenizer *tokenizer);
// Returns the name of the ChatML family whose default system message is this text of n bytes, or
// NULL if there is none.
const char *ree_chat_family_of_preset(const char *text, size_t n);

#endif
