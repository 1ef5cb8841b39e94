// Receipts: what was run, on which model, with which result, as one JSON object that anyone can
// check.
//
//     {
//       "schema": "ree-receipt/2",
//       "body": {                                  the claims; all of it is hashed
//         "kind": "text" | "tensors",
//         "numerics": "RepOps/1",
//         "operation_set": "reproducible",
//         "model": {"graph_sha256", "weights_sha256"},
//         "tokenizer_sha256": hex,                 text only, if there is a tokenizer
//         "prompt": {"tokens_sha256", "n_tokens", "text_sha256",    text only; no text without a
//                    "tokens": [...], "text": "..."},               tokenizer; neither tokens nor
//                                                                   text with --private
//         "sampling": {"temperature", "top_k", "top_p", "min_p", "repetition_penalty",
//                      "seed": "decimal digits", "max_new_tokens", "stop": [texts],
//                      "eos": [ids], "context_length"},
//         "output": {"tokens_sha256", "n_tokens", "text_sha256", "finish_reason", "logits_sha256",
//                    "tokens": [...], "text": "..."},
//         "inputs": [{"name", "sha256"}],          tensors only, in the model's order
//         "outputs": [{"name", "sha256"}],
//         "trace": {"root", "n_steps", "prefill_chunk"},            if a trace was made
//         "private": {"salt_sha256"},              text only; hashes are blinded, see below
//         "request_sha256": hex,                   text only; the request that this run answers
//         "extensions": {NAME: anything}, "critical": [NAMES]      see below
//       },
//       "receipt_hash": hex,                       SHA-256("ree-receipt/2\0" | canonical body)
//       "signature": {"algorithm": "ed25519", "public_key": hex, "signature": hex},
//       "unbound": {"ree_version", "device", "created", "trace_file", "stats": {...}}
//                                                  only for people: not hashed, proves nothing
//     }
//
// The floats of "sampling" are binary32 values. Each is written as the shortest decimal number of
// the double that equals it. output.tokens has only the new tokens. The tokens_sha256 of the prompt
// and of the output are each over their own tokens only ("tokens" in NUMERICS.md, "Hashes").
// text_sha256 is SHA-256("ree-text/1\0" | UTF-8 bytes). The signature is over "ree-signature/1\0" |
// receipt_hash as 32 bytes. The file is this object as canonical JSON followed by a newline.
//
// Texts: the tokens of the prompt and then those of the output are passed to the tokenizer's
// decoder, which skips special tokens. The prompt's text is what the prompt's tokens produce
// without those of the output. The output's text is what the output's tokens add, up to the first
// stop text. output.tokens has all tokens that were generated, including those that completed a
// stop text. A NUL is written as U+FFFD. generate/answer.h, NUMERICS.md "Receipts".
//
// Stop texts: none is empty, there are at most REE_RECEIPT_MAX_STOPS, and their total length is at
// most REE_RECEIPT_MAX_STOP_BYTES. The limits exist because each token of an answer is searched for
// all of them.
//
// At temperature 0 the sampling parameters that have no effect must have the values that turn them
// off: top_k 0, top_p 1, min_p 0, seed "0".
//
// Private receipts have no tokens and no texts. Each hash of tokens, texts, logits and trace is
// blinded: SHA-256("ree-blind/1\0" | salt | hash). The salt is 32 random bytes in a separate file
// for the verifier. "salt_sha256" is SHA-256("ree-salt/1\0" | salt). Without the salt nobody can
// confirm a guess at the text.
//
// Extensions: a reader may ignore an extension that it does not know, unless "critical" names it.
// In that case the reader cannot verify the receipt.
//
// Differences of ree-receipt/1, which is still read:
//
// - it has no "private", "request_sha256", "extensions" or "critical";
// - the hashes of private receipts are not blinded;
// - parameters without effect may have any value;
// - bytes that the decoder holds back after the prompt's last token count as text of the output.
//
// receipt.schema.json in this folder is the machine-readable form of this description.
#ifndef REE_RECEIPT_RECEIPT_H
#define REE_RECEIPT_RECEIPT_H

#include "base/file.h"
#include "base/arena.h"
#include "base/canonical_json.h"
#include "ree/receipt.h"

struct ree_receipt {
    // Of a decoded receipt: owns the strings and arrays below.
    struct ree_arena arena;
    uint32_t version; // schema version: 1 or 2
    enum ree_receipt_kind kind;
    const char *numerics, *operation_set;
    char graph_sha256[65], weights_sha256[65], tokenizer_sha256[65];
    // Text
    struct ree_receipt_text prompt, output;
    struct ree_sampling sampling;
    uint64_t max_new_tokens;
    int64_t context_length;
    size_t n_stops, n_eos;
    const char *const *stops;
    const int32_t *eos;
    const char *finish_reason;
    char logits_sha256[65];
    // Tensors
    size_t n_inputs, n_outputs;
    struct ree_receipt_tensor *inputs, *outputs;
    // Trace
    bool has_trace;
    char trace_root[65];
    uint64_t trace_steps;
    uint32_t trace_chunk; // text: 1 to REE_MAX_PREFILL_CHUNK; tensors: 0
    // Privacy. The salt is not stored in the file.
    bool is_private;
    char salt_sha256[65];
    bool has_salt;
    unsigned char salt[REE_SALT_SIZE];
    // Requests and extensions
    char request_sha256[65]; // "": answers no request
    cJSON *extensions;       // an object, owned; NULL: none
    size_t n_critical;       // names of critical extensions
    const char *const *critical;
    // The rest of the file
    char receipt_hash[65];
    bool is_signed;
    char public_key[65], signature[129];
    const char *device, *ree_version, *created; // unbound; NULL: absent
    // Unbound: name of the trace file, in the same folder as the receipt; NULL: absent.
    const char *trace_file;
    cJSON *stats; // unbound; NULL: absent; owned
    // What the public functions return about it. NULL unless the receipt is on the heap
    // (receipt_object.c).
    struct ree_receipt_object *object;
};

void ree_receipt_init(struct ree_receipt *receipt);   // all empty, version 2, greedy, RepOps/1
void ree_receipt_finish(struct ree_receipt *receipt); // frees the arena, extensions and stats

// Computes the hashes of the tokens and texts that are present, and of the body. Removes a
// signature. Must be called before signing and writing, and after any change.
enum ree_status ree_receipt_seal(struct ree_receipt *receipt, struct ree_error *err);
// Makes a sealed text receipt private: removes tokens and texts, blinds the hashes with `salt`, and
// seals the receipt again.
enum ree_status ree_receipt_make_private(struct ree_receipt *receipt,
                                         const unsigned char salt[REE_SALT_SIZE],
                                         struct ree_error *err);
// True if both have the same extensions and mark the same ones as critical.
bool ree_receipt_same_extensions(const struct ree_receipt *a, const struct ree_receipt *b);
// Replaces a hash by the value that the receipt states for it: blinded if the receipt has a salt,
// otherwise unchanged.
void ree_receipt_blind(const struct ree_receipt *receipt, char hex[65]);
// Encodes the receipt as the text of its file. Release *out with ree_free.
enum ree_status ree_receipt_encode(const struct ree_receipt *receipt, char **out,
                                   size_t *out_nbytes, struct ree_error *err);
// Writes the receipt, without a salt, but does not publish the file yet: ree_file_commit gives it
// its name, ree_file_abandon discards it. Fails with REE_INVALID and writes nothing if the receipt
// could not be read again: a field is missing or out of range, or the file would exceed 64 MiB.
enum ree_status ree_receipt_draft(const struct ree_receipt *receipt, const char *path,
                                  struct ree_file_draft **out, struct ree_error *err);

// Decodes a receipt and checks its structure: strict JSON (RFC 8259, in any layout), every field
// present with the right type and range, and no unknown field except within "unbound". Does not
// compare hashes; ree_receipt_check does. `where` names the file in messages. Release with
// ree_receipt_finish, also on failure.
enum ree_status ree_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_receipt *out, struct ree_error *err);
enum ree_status ree_receipt_read(const char *path, struct ree_receipt *out, struct ree_error *err);

// Returns the first critical extension that this version of ree does not know, or NULL if there is
// none.
const char *ree_receipt_unknown_extension(const struct ree_receipt *receipt);

// Checks everything that the receipt's own contents allow: hashes, counts, parameters and the
// signature. Returns the number of findings; *out_ok is true if all are ok. Callers that judge a
// receipt by the findings must also check `unknown`.
size_t ree_receipt_check(const struct ree_receipt *receipt,
                         struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS],
                         bool *out_ok);

#endif
