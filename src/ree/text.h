// Text: tokenizers, which convert text to token ids and back, and chat templates.
#ifndef REE_TEXT_H
#define REE_TEXT_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tokenizer converts text to token ids and back. It is immutable after loading, so several
// threads may encode and decode with it at the same time.
struct ree_tokenizer;

// Loads a tokenizer. `path` is one of
// - a tokenizer.json
// - a GPT-2 vocab.json with merges.txt in the same folder
// - a tiktoken file: *.tiktoken or *.model
// - a folder; the first of these files that exists in it is read: tokenizer.json, vocab.json,
//   tokenizer.tiktoken, qwen.tiktoken, tokenizer.model
//
// If they exist in the same folder, tokenizer_config.json, special_tokens_map.json,
// generation_config.json and config.json are read too: for the bos and eos ids and the chat
// template, and, unless the file is a tokenizer.json, for added tokens and the kind of tokenizer.
// Eos ids in generation_config.json replace those in config.json.
// Fails with REE_NOT_FOUND if there is no such file, REE_INVALID if a file is malformed, and
// REE_UNSUPPORTED if ree lacks something that the tokenizer uses or the tokenizer exceeds a limit:
// src/text/README.md in ree's source lists them.
REE_API enum ree_status ree_tokenizer_load(const char *path, struct ree_tokenizer **out_tokenizer,
                                           struct ree_error *err);
REE_API void ree_tokenizer_destroy(struct ree_tokenizer *tokenizer);

REE_API uint32_t ree_tokenizer_vocab_size(const struct ree_tokenizer *tokenizer); // largest id + 1
// Returns the token as the vocabulary writes it ("\u0120the", "<0x0A>"), NUL-terminated and
// borrowed from the tokenizer; NULL if there is no such id. Use a decoder to get the text that a
// token represents.
REE_API const char *ree_tokenizer_token(const struct ree_tokenizer *tokenizer, int32_t id);
// Returns the id of a token as the vocabulary writes it; -1 if there is no such token.
REE_API int32_t ree_tokenizer_id(const struct ree_tokenizer *tokenizer, const char *token);
REE_API bool ree_tokenizer_is_special(const struct ree_tokenizer *tokenizer, int32_t id);
// Returns the id of the token that begins a text (BOS); -1 if the tokenizer declares none.
REE_API int32_t ree_tokenizer_bos(const struct ree_tokenizer *tokenizer);
// Returns the number of ids that end a text, which may be 0; *out_ids lists them in ascending
// order. The array belongs to the tokenizer.
REE_API size_t ree_tokenizer_eos(const struct ree_tokenizer *tokenizer, const int32_t **out_ids);
// Returns the SHA-256 of everything that determines how the tokenizer encodes and decodes,
// independent of the layout of the files it was loaded from; 64 hexadecimal digits and a NUL.
// src/text/README.md in ree's source defines the hashed bytes.
REE_API void ree_tokenizer_sha256(const struct ree_tokenizer *tokenizer, char hex[65]);
// The hash that ree 0.1.0 computed, which receipts of version 1 have. It leaves out the tokens that
// a template (TemplateProcessing) adds to a text.
REE_API void ree_tokenizer_sha256_version_1(const struct ree_tokenizer *tokenizer, char hex[65]);

enum {
    REE_ADD_SPECIAL = 1, // encode: add the tokens of the post-processor (BOS, ...)
    // encode: special tokens written in the text become their ids; without the flag they are
    // ordinary text. Added tokens that are not special are always recognised. Exception, as in
    // Hugging Face's tokenizers: without the flag, the merges of BPE may still make a special token
    // that is a piece of the vocabulary.
    REE_PARSE_SPECIAL = 2,
    REE_SKIP_SPECIAL = 4, // decode: special tokens produce no text
};

// Encodes `nbytes` bytes of text. `text` need not be NUL-terminated and may contain NULs. In
// invalid UTF-8, each stray byte and each maximal part of an incomplete character becomes U+FFFD.
// Release *out_ids with ree_free; it is not NULL even if there are no ids.
// Fails with
// - REE_INVALID if the tokenizer cannot encode the text: for example, it has no token for unknown
//   words, or its pre-tokenizer makes more than 64 bytes from each byte, plus a mebibyte
// - REE_UNSUPPORTED if the text takes the tokenizer's regular expressions or the search for its
//   added tokens too many steps, or if its normalizer adds more than 64 bytes for each byte of the
//   text, plus a mebibyte
REE_API enum ree_status ree_tokenizer_encode(const struct ree_tokenizer *tokenizer,
                                             const char *text, size_t nbytes, uint32_t flags,
                                             int32_t **out_ids, size_t *out_n,
                                             struct ree_error *err);
// Decodes n ids. *out_text is valid UTF-8 followed by a NUL; *out_nbytes does not count the NUL.
// Release *out_text with ree_free. Fails with
// - REE_INVALID if the tokenizer does not have one of the ids, or if its decoder makes more than 64
//   bytes of text from each byte of the tokens, plus a mebibyte
// - REE_UNSUPPORTED if the tokens take the decoder's regular expressions too many steps
REE_API enum ree_status ree_tokenizer_decode(const struct ree_tokenizer *tokenizer,
                                             const int32_t *ids, size_t n, uint32_t flags,
                                             char **out_text, size_t *out_nbytes,
                                             struct ree_error *err);

// A decoder converts ids to text one token at a time. The tokenizer must outlive it.
struct ree_decoder;

REE_API enum ree_status ree_decoder_create(const struct ree_tokenizer *tokenizer, uint32_t flags,
                                           struct ree_decoder **out_decoder, struct ree_error *err);
REE_API void ree_decoder_destroy(struct ree_decoder *decoder);
// Adds a token and returns the text that later tokens cannot change any more: usually the text of
// the token, "" in the middle of a character, never part of a character. The concatenation of all
// returned texts, including that of ree_decoder_flush, equals the result of ree_tokenizer_decode.
// The text is NUL-terminated, belongs to the decoder and is valid until the next call with this
// decoder. Fails like ree_tokenizer_decode; the limits hold for all tokens of the decoder together.
REE_API enum ree_status ree_decoder_push(struct ree_decoder *decoder, int32_t id,
                                         const char **out_text, size_t *out_nbytes,
                                         struct ree_error *err);
// Returns the text that the decoder held back because later tokens could still change it. An
// incomplete character becomes U+FFFD. The next token continues the text; it is not decoded as the
// first token of a text. Call this function between a prompt and its answer, so that no byte of the
// prompt becomes text of the answer.
REE_API enum ree_status ree_decoder_settle(struct ree_decoder *decoder, const char **out_text,
                                           size_t *out_nbytes, struct ree_error *err);
// Returns the remaining text and resets the decoder to its initial state.
REE_API enum ree_status ree_decoder_flush(struct ree_decoder *decoder, const char **out_text,
                                          size_t *out_nbytes, struct ree_error *err);

// Chat: writes a conversation as the text format that a model was trained on. `family` is one of
// ree_chat_families; NULL: that of the tokenizer's chat template. `messages` is a JSON array of
// objects {"role": "system" | "user" | "assistant", "content": "..."}, `nbytes` long. With `reply`
// the text ends where the assistant's answer begins. The text includes the tokens that the family
// puts at the beginning, so encode it with REE_PARSE_SPECIAL and without REE_ADD_SPECIAL. Release
// *out_text with ree_free. Fails with
// - REE_NOT_FOUND if there is no such family
// - REE_UNSUPPORTED if `family` is NULL and the tokenizer has no chat template of a known family,
//   or if the family has no system message or ree does not support a member of a message
// - REE_INVALID if the messages are malformed or not in an order that the family allows
REE_API enum ree_status ree_chat_prompt(const struct ree_tokenizer *tokenizer, const char *family,
                                        const char *messages, size_t nbytes, bool reply,
                                        char **out_text, size_t *out_nbytes, struct ree_error *err);
// Returns the family of the tokenizer's chat template; NULL if it has none or the template is
// unknown.
REE_API const char *ree_tokenizer_chat_family(const struct ree_tokenizer *tokenizer);
// Returns the names of all chat families: a static array that ends with NULL.
REE_API const char *const *ree_chat_families(void);
// Writes one line of less than 200 bytes to `out`, which has `size` bytes: the libraries whose
// Unicode tables affect tokenization, with their versions.
REE_API void ree_text_tables(char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
