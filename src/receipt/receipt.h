// A receipt states what was run, on which model, with which result, as one JSON object that anyone
// can check.
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
//         "trace": {"root", "n_steps", "prefill_chunk"},            if a trace was recorded
//         "private": {"salt_sha256"},              text only; hashes are blinded, see below
//         "request_sha256": hex,                   text only; the request that this run answers
//         "extensions": {NAME: anything}, "critical": [NAMES]      see below
//       },
//       "receipt_hash": hex,                       SHA-256("ree-receipt/2\0" | canonical body)
//       "signature": {"algorithm": "ed25519", "public_key": hex, "signature": hex},
//       "unbound": {"ree_version", "device", "created", "trace_file", "stats": {...}}
//                                                  for people only: not hashed, proves nothing
//     }
//
// The floats of "sampling" are binary32 values. Each is converted to a double, and written as the
// shortest decimal number that reads back as this double. output.tokens has only the new tokens.
// The tokens_sha256 of the prompt and of the output are each over their own tokens only ("tokens"
// in NUMERICS.md, "Hashes"). text_sha256 is SHA-256("ree-text/1\0" | UTF-8 bytes). The signature is
// over "ree-signature/1\0" | receipt_hash as 32 bytes. The file is this object as canonical JSON
// followed by a newline.
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
    // Owns the strings and arrays of a receipt that was decoded or made (make_receipt.h).
    struct ree_arena arena;
    uint32_t version; // version of the schema: 1 or 2
    enum ree_receipt_kind kind;
    const char *numerics, *operation_set;
    char graph_sha256[65], weights_sha256[65], tokenizer_sha256[65];
    // Fields of a receipt of a text
    struct ree_receipt_text prompt, output;
    struct ree_sampling sampling;
    uint64_t max_new_tokens;
    int64_t context_length;
    size_t n_stops, n_eos;
    const char *const *stops;
    const int32_t *eos;
    const char *finish_reason;
    char logits_sha256[65];
    // Fields of a receipt of a run with tensors
    size_t n_inputs, n_outputs;
    struct ree_receipt_tensor *inputs, *outputs;
    // Fields about the trace; valid if has_trace is set
    bool has_trace;
    char trace_root[65];
    uint64_t trace_steps;
    // prompt tokens per step, 1 to REE_MAX_PREFILL_CHUNK; 0 for a run with tensors
    uint32_t trace_chunk;
    // Fields of a private receipt. `salt` is valid if has_salt is set; it is not in the JSON
    // object.
    bool is_private;
    char salt_sha256[65];
    bool has_salt;
    unsigned char salt[REE_SALT_SIZE];
    char request_sha256[65];      // hash of the request that the run answers; "": none
    cJSON *extensions;            // the object "extensions"; owned; NULL: absent
    ree_digest extensions_digest; // of their canonical text, if the receipt was decoded
    size_t n_critical;            // number of critical extensions
    const char *const *critical;  // (n_critical): the names of critical extensions
    // Fields outside "body"
    char receipt_hash[65];
    bool is_signed;
    char public_key[65], signature[129];
    const char *device, *ree_version, *created; // strings in the object "unbound"; NULL: absent
    // String of "unbound": name of the trace file, in the same folder as the receipt; NULL: absent.
    const char *trace_file;
    cJSON *stats; // the object "stats" of "unbound"; owned; NULL: absent
    // Storage for what public functions return about the receipt. NULL unless ree_receipt_create
    // made the receipt (receipt_object.h).
    struct ree_receipt_object *object;
};

// Initialises an empty receipt: version 2, "RepOps/1", "reproducible", sampling as in ree_greedy.
void ree_receipt_init(struct ree_receipt *receipt);
// Releases the arena, the extensions and the stats, and makes the receipt empty.
void ree_receipt_finish(struct ree_receipt *receipt);

// Seals a receipt: computes the hashes of its tokens and texts, if they are present, and
// receipt_hash. Removes the signature. Must be called after any change, before signing or writing.
enum ree_status ree_receipt_seal(struct ree_receipt *receipt, struct ree_error *err);
// Makes a sealed receipt of a text private: removes tokens and texts, blinds the hashes with
// `salt`, and seals the receipt again. Fails with REE_INVALID if it is not sealed, is private
// already, or is a receipt of tensors.
enum ree_status ree_receipt_make_private(struct ree_receipt *receipt,
                                         const unsigned char salt[REE_SALT_SIZE],
                                         struct ree_error *err);
// Returns whether two decoded receipts have equal extensions and list the same as critical.
bool ree_receipt_same_extensions(const struct ree_receipt *a, const struct ree_receipt *b);
// Replaces a hash, in place, by its blinded form if the receipt has a salt; otherwise leaves it
// unchanged. The result is what the receipt states for this hash.
void ree_receipt_blind(const struct ree_receipt *receipt, char hex[65]);
// Writes the hash of a tokenizer that a receipt of this version states.
void ree_receipt_tokenizer_sha256(const struct ree_receipt *receipt,
                                  const struct ree_tokenizer *tokenizer, char hex[65]);
// Encodes the receipt as the contents of its file, *out_nbytes bytes at *out. Release *out with
// ree_free.
enum ree_status ree_receipt_encode(const struct ree_receipt *receipt, char **out,
                                   size_t *out_nbytes, struct ree_error *err);
// Writes the receipt, but not its salt, to a file that does not have the name `path` yet:
// ree_file_commit gives it this name, ree_file_abandon discards it. Fails with REE_INVALID and
// writes nothing if the receipt could not be read again: a field is missing or out of range, or the
// file would exceed 64 MiB.
enum ree_status ree_receipt_draft(const struct ree_receipt *receipt, const char *path,
                                  struct ree_file_draft **out, struct ree_error *err);

// Decodes a receipt and checks its structure: strict JSON (RFC 8259, in any layout), every field
// present with the right type and range, and no unknown field except within "unbound". Does not
// compare hashes; ree_receipt_check does. `where` names the file in messages. Release *out with
// ree_receipt_finish, also on failure.
enum ree_status ree_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_receipt *out, struct ree_error *err);
enum ree_status ree_receipt_read(const char *path, struct ree_receipt *out, struct ree_error *err);

// Returns the first critical extension that this version of ree does not know, or NULL if there is
// none.
const char *ree_receipt_unknown_extension(const struct ree_receipt *receipt);

// Checks a receipt by its own contents: hashes, counts, parameters and the signature. Returns the
// number of findings; *out_ok is true if all findings are ok. If memory is exhausted during a
// check, its finding is not ok and has `unknown` set: such a receipt must not be called wrong.
size_t ree_receipt_check(const struct ree_receipt *receipt,
                         struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS],
                         bool *out_ok);

#endif
