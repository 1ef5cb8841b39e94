// Receipts: what was run, on what, with which result, as one JSON object that anyone can check.
//
//     {
//       "schema": "ree-receipt/1",
//       "body": {                                  what is promised; all of it is bound
//         "kind": "text" | "tensors",
//         "numerics": "RepOps/1",
//         "operation_set": "reproducible",
//         "model": {"graph_sha256", "weights_sha256"},
//         "tokenizer_sha256": hex,                 text alone, where there is one
//         "prompt": {"tokens_sha256", "n_tokens", "text_sha256",    text alone; without a tokenizer
//                    "tokens": [...], "text": "..."},               no text; with --private no
//                                                                   tokens and no text
//         "sampling": {"temperature", "top_k", "top_p", "min_p", "repetition_penalty",
//                      "seed": "decimal digits", "max_new_tokens", "stop": [texts],
//                      "eos": [ids], "context_length"},
//         "output": {"tokens_sha256", "n_tokens", "text_sha256", "finish_reason", "logits_sha256",
//                    "tokens": [...], "text": "..."},
//         "inputs": [{"name", "sha256"}],          tensors alone, in the model's order
//         "outputs": [{"name", "sha256"}],
//         "trace": {"root", "n_steps", "prefill_chunk"}             where a trace was made
//       },
//       "receipt_hash": hex,                       SHA-256("ree-receipt/1\0" | canonical body)
//       "signature": {"algorithm": "ed25519", "public_key": hex, "signature": hex},
//       "unbound": {"ree_version", "device", "created", "trace_file", "stats": {...}}   for people;
//       proves nothing
//     }
//
// Floats of sampling are binary32, written as the shortest decimal number of the double that equals
// them. output.tokens are the new tokens alone, and output.tokens_sha256 is over them; so is the
// hash of the prompt over its own ("tokens" in NUMERICS.md, "Hashes"). text_sha256 is
// SHA-256("ree-text/1\0" | UTF-8 bytes). The signature is over "ree-signature/1\0" | receipt_hash
// as 32 bytes. The file is this object as canonical JSON with a newline at the end.
//
// The text of the prompt and of the output: the tokens of both, one after the other, through the
// tokenizer's decoder, special tokens left out. What is certain after the prompt's last token is
// the prompt's; what comes later is the output's, up to the first of the stop texts. output.tokens
// are all that were made, those included that completed a stop text. A NUL is written as U+FFFD.
// generate/answer.h, NUMERICS.md "Receipts".
//
// receipt.schema.json beside this file is the same for programs.
#ifndef REE_RECEIPT_RECEIPT_H
#define REE_RECEIPT_RECEIPT_H

#include "base/arena.h"
#include "receipt/canonical.h"

enum ree_receipt_kind { REE_RECEIPT_TEXT, REE_RECEIPT_TENSORS };

struct ree_receipt_tensor {
    const char *name;
    char sha256[65];
};

// A text of tokens. Where a hash is known and the thing is not: NULL with the hash set. A hash that
// is "" is absent.
struct ree_receipt_text {
    char tokens_sha256[65], text_sha256[65];
    size_t n_tokens;
    const int32_t *tokens; // NULL: private
    const char *text;      // UTF-8 without a NUL inside; NULL: private, or no tokenizer
};

struct ree_receipt {
    struct ree_arena arena; // of a receipt that was read: holds the strings and arrays below
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
    uint32_t trace_chunk;
    // The rest of the file
    char receipt_hash[65];
    bool is_signed;
    char public_key[65], signature[129];
    const char *device, *ree_version, *created; // unbound; NULL: absent
    const char *trace_file;                     // unbound: its name, beside the receipt; NULL
    cJSON *stats;                               // unbound; NULL: absent; owned
};

void ree_receipt_init(struct ree_receipt *receipt);   // all empty, greedy, RepOps/1
void ree_receipt_finish(struct ree_receipt *receipt); // frees the arena and stats

// Hashes tokens and texts where they are given, and the body; drops a signature. To be called
// before signing and writing, and after any change.
enum ree_status ree_receipt_seal(struct ree_receipt *receipt, struct ree_error *err);
// Signs the sealed receipt with an Ed25519 key, a PEM file as ree_key_create writes it.
enum ree_status ree_receipt_sign(struct ree_receipt *receipt, const char *key_path,
                                 struct ree_error *err);
// The file's text. *out is released with free.
enum ree_status ree_receipt_encode(const struct ree_receipt *receipt, char **out,
                                   size_t *out_nbytes, struct ree_error *err);
// Whole or not at all (base/file.h). REE_INVALID, and nothing is written, for a receipt that could
// not be read again: fields missing, out of range, more than 64 MiB.
enum ree_status ree_receipt_write(const struct ree_receipt *receipt, const char *path,
                                  struct ree_error *err);

// Reads and checks the structure: every field of the right type and range, none unknown but within
// "unbound", none missing, JSON as RFC 8259 has it. Any layout will do. Hashes are not compared:
// ree_receipt_check does that. `where` names the file
// in messages. Release with ree_receipt_finish, also on failure.
enum ree_status ree_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_receipt *out, struct ree_error *err);
enum ree_status ree_receipt_load(const char *path, struct ree_receipt *out, struct ree_error *err);

// One finding about a receipt, for a person: "SHA-256 is ..., the receipt says ...".
struct ree_receipt_finding {
    const char *what; // "receipt", "prompt tokens", "prompt text", "output tokens", "output text",
                      // "signature", "counts"
    bool ok;
    char detail[256];
};
#define REE_RECEIPT_MAX_FINDINGS 16
// Compares all hashes that the receipt itself allows to be computed, and the signature. Returns how
// many findings there are; *out_ok: all are.
size_t ree_receipt_check(const struct ree_receipt *receipt,
                         struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS],
                         bool *out_ok);

// Writes a new private key (PEM, PKCS #8, mode 0600) to `path`, which must not exist, and its
// public half to `path`.pub (PEM). `public_key` receives the latter's 32 bytes in hexadecimal.
enum ree_status ree_key_create(const char *path, char public_key[65], struct ree_error *err);
// The public key of a PEM file, private or public.
enum ree_status ree_key_public(const char *path, char public_key[65], struct ree_error *err);

#endif
