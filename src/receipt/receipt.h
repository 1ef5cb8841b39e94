// Receipts: what was run, on what, with which result, as one JSON object that anyone can check.
//
//     {
//       "schema": "ree-receipt/2",
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
//         "trace": {"root", "n_steps", "prefill_chunk"},            where a trace was made
//         "private": {"salt_sha256"},              text; hashes are blinded, see below
//         "request_sha256": hex,                   text; the request that this run answers
//         "extensions": {NAME: anything}, "critical": [NAMES]      see below
//       },
//       "receipt_hash": hex,                       SHA-256("ree-receipt/2\0" | canonical body)
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
// tokenizer's decoder, special tokens left out. The prompt's text is what the prompt's tokens say
// by themselves, the output's what its tokens add, up to the first of the stop texts. output.tokens
// are all that were made, those included that completed a stop text. A NUL is written as U+FFFD.
// generate/answer.h, NUMERICS.md "Receipts".
//
// Stop texts are not empty, at most REE_RECEIPT_MAX_STOPS, of at most REE_RECEIPT_MAX_STOP_BYTES
// together: each token of an answer is searched for all of them.
//
// Parameters of sampling that have no effect at temperature 0 have the values that turn them off:
// top_k 0, top_p 1, min_p 0, seed "0".
//
// Private: tokens and texts are left out, and each hash of them, of the logits and of the trace is
// blinded: SHA-256("ree-blind/1\0" | salt | hash). The salt, 32 random bytes, is in a file of its
// own for the verifier, and "salt_sha256" is SHA-256("ree-salt/1\0" | salt). Without the salt a
// guess at the text cannot be confirmed.
//
// Extensions: whoever reads a receipt may skip an extension that it does not know, but not one that
// "critical" names: then it cannot verify the receipt.
//
// ree-receipt/1 is still read. It has none of the last five fields; its hashes of private receipts
// are not blinded; parameters without effect may have any value; and bytes that the decoder holds
// back after the prompt's last token count as text of the output.
//
// receipt.schema.json beside this file is the same for programs.
#ifndef REE_RECEIPT_RECEIPT_H
#define REE_RECEIPT_RECEIPT_H

#include "base/file.h"
#include "base/arena.h"
#include "receipt/canonical.h"

enum ree_receipt_kind { REE_RECEIPT_TEXT, REE_RECEIPT_TENSORS };

#define REE_SALT_SIZE 32
#define REE_RECEIPT_MAX_STOPS 1024
#define REE_RECEIPT_MAX_STOP_BYTES 65536

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

// Tokens of a prompt in one step of a trace, at most.
#define REE_MAX_PREFILL_CHUNK (1 << 20)

struct ree_receipt {
    struct ree_arena arena; // of a receipt that was read: holds the strings and arrays below
    uint32_t version;       // of the schema: 1 or 2
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
    uint32_t trace_chunk; // of a text: 1 to REE_MAX_PREFILL_CHUNK; of tensors: 0
    // Private; the salt is not in the file
    bool is_private;
    char salt_sha256[65];
    bool has_salt;
    unsigned char salt[REE_SALT_SIZE];
    // Requests and extensions
    char request_sha256[65]; // "": of no request
    cJSON *extensions;       // an object, owned; NULL: none
    size_t n_critical;       // names of extensions
    const char *const *critical;
    // The rest of the file
    char receipt_hash[65];
    bool is_signed;
    char public_key[65], signature[129];
    const char *device, *ree_version, *created; // unbound; NULL: absent
    const char *trace_file;                     // unbound: its name, beside the receipt; NULL
    cJSON *stats;                               // unbound; NULL: absent; owned
};

void ree_receipt_init(struct ree_receipt *receipt);   // all empty, version 2, greedy, RepOps/1
void ree_receipt_finish(struct ree_receipt *receipt); // frees the arena, extensions and stats

// Hashes tokens and texts where they are given, and the body; drops a signature. To be called
// before signing and writing, and after any change.
enum ree_status ree_receipt_seal(struct ree_receipt *receipt, struct ree_error *err);
// Makes a sealed receipt of a text private: drops tokens and texts, blinds the hashes with this
// salt, and seals it again.
enum ree_status ree_receipt_make_private(struct ree_receipt *receipt,
                                         const unsigned char salt[REE_SALT_SIZE],
                                         struct ree_error *err);
// The same extensions, and the same of them critical.
bool ree_receipt_same_extensions(const struct ree_receipt *a, const struct ree_receipt *b);
// Gives the receipt its salt; false if it is not the salt of this receipt.
bool ree_receipt_set_salt(struct ree_receipt *receipt, const unsigned char salt[REE_SALT_SIZE]);
// Replaces a hash by what the receipt has for it: blinded if the receipt is private, else as it is.
void ree_receipt_blind(const struct ree_receipt *receipt, char hex[65]);
// Signs the sealed receipt with an Ed25519 key, a PEM file as ree_key_create writes it. REE_INVALID
// for a key that others than its owner can read or write.
enum ree_status ree_receipt_sign(struct ree_receipt *receipt, const char *key_path,
                                 struct ree_error *err);
// The file's text. *out is released with free.
enum ree_status ree_receipt_encode(const struct ree_receipt *receipt, char **out,
                                   size_t *out_nbytes, struct ree_error *err);
// Whole or not at all (base/file.h). REE_INVALID, and nothing is written, for a receipt that could
// not be read again: fields missing, out of range, more than 64 MiB.
enum ree_status ree_receipt_write(const struct ree_receipt *receipt, const char *path,
                                  struct ree_error *err);
// The same up to the name: ree_file_commit puts the receipt in its place, ree_file_abandon does
// not.
enum ree_status ree_receipt_draft(const struct ree_receipt *receipt, const char *path,
                                  struct ree_file_draft **out, struct ree_error *err);

// Reads and checks the structure: every field of the right type and range, none unknown but within
// "unbound", none missing, JSON as RFC 8259 has it. Any layout will do. Hashes are not compared:
// ree_receipt_check does that. `where` names the file
// in messages. Release with ree_receipt_finish, also on failure.
enum ree_status ree_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_receipt *out, struct ree_error *err);
enum ree_status ree_receipt_load(const char *path, struct ree_receipt *out, struct ree_error *err);

// The first critical extension that this ree does not know; NULL if it knows all of them.
const char *ree_receipt_unknown_extension(const struct ree_receipt *receipt);

// One finding about a receipt, for a person: "SHA-256 is ..., the receipt says ...".
struct ree_receipt_finding {
    const char *what; // "receipt", "prompt tokens", "prompt text", "output tokens", "output text",
                      // "salt", "parameters", "signature", "counts"
    bool ok;
    bool unknown; // not ok, for want of memory: it says nothing about the receipt
    char detail[256];
};
#define REE_RECEIPT_MAX_FINDINGS 16
// Compares all hashes that the receipt itself allows to be computed, and the signature. Returns how
// many findings there are; *out_ok: all are ok. Whoever judges by them must look at `unknown`, too.
size_t ree_receipt_check(const struct ree_receipt *receipt,
                         struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS],
                         bool *out_ok);

// Writes a new private key (PEM, PKCS #8, mode 0600) to `path`, which must not exist, and its
// public half to `path`.pub (PEM). `public_key` receives the latter's 32 bytes in hexadecimal.
enum ree_status ree_key_create(const char *path, char public_key[65], struct ree_error *err);
// Whether ree_receipt_sign can sign with the file, without signing.
enum ree_status ree_key_check(const char *path, struct ree_error *err);
// The public key of a PEM file, private or public.
enum ree_status ree_key_public(const char *path, char public_key[65], struct ree_error *err);

#endif
