// Internal declarations for receipts (receipt.h), shared by the files of this folder.
#ifndef REE_RECEIPT_RECEIPT_INTERNAL_H
#define REE_RECEIPT_RECEIPT_INTERNAL_H

#include "receipt/receipt.h"
#include "receipt/receipt_fields.h"

// Names of the schemas "ree-receipt/1" and "ree-receipt/2", indexed by version - 1. The bytes
// that are hashed for receipt_hash begin with this name.
extern const char *const ree_receipt_schemas[2];
#define REE_SIGNATURE_ALGORITHM "ed25519"
#define REE_SIGNATURE_SIZE 64

// Largest integer that a receipt may contain: 2^53 - 1, so that readers that use doubles read it
// exactly.
#define REE_RECEIPT_MAX_NUMBER 9007199254740991

// Maximum size in bytes of the file of a receipt, a request or a checkpoint. It is enough for some
// millions of tokens; while a file is read, each token takes about 80 bytes of memory.
#define REE_RECEIPT_MAX_SIZE ((size_t)64 << 20)

// Names in the file: of receipt kinds, indexed by enum ree_receipt_kind; of finish reasons, indexed
// by enum ree_finish.
extern const char *const ree_receipt_kind_names[2];
extern const char *const ree_receipt_finish_names[4];

// Makes the JSON object "body" of a receipt. Release the result with cJSON_Delete. NULL: out of
// memory.
cJSON *ree_receipt_body(const struct ree_receipt *receipt);
enum ree_status ree_receipt_body_digest(const struct ree_receipt *receipt, ree_digest out,
                                        struct ree_error *err);

// Fails with REE_INVALID: says that a model which was loaded with no_fold gives traces whose roots
// nobody else gets.
enum ree_status ree_receipt_needs_folding(struct ree_error *err);
// Encode and decode the members of "body" that receipts and checkpoints share. The two functions
// whose names end in _model are for "numerics", "operation_set" and "model", the others for
// "sampling". The add functions return false if memory is exhausted. The get functions fail with
// REE_INVALID if a member is missing or malformed.
bool ree_receipt_add_model(cJSON *body, const struct ree_receipt *receipt);
bool ree_receipt_add_sampling(cJSON *body, const struct ree_receipt *receipt);
enum ree_status ree_receipt_get_model(const struct ree_fields *body, struct ree_receipt *out,
                                      struct ree_error *err);
enum ree_status ree_receipt_get_sampling(const struct ree_fields *body, struct ree_receipt *out,
                                         struct ree_error *err);

// Called before a file is written: fails with REE_INVALID if these values exceed the limits that
// apply when it is read. `kind` names the file in the message, for example "a receipt".
enum ree_status ree_receipt_check_limits(const char *kind, uint64_t max_new_tokens,
                                         const char *const *stops, size_t n_stops,
                                         struct ree_error *err);

// Decodes the stop texts of the member `key`: an array of at most REE_RECEIPT_MAX_STOPS non-empty
// strings, of at most REE_RECEIPT_MAX_STOP_BYTES bytes together.
enum ree_status ree_field_stops(const struct ree_fields *part, const char *key,
                                const char *const **out, size_t *out_n, struct ree_error *err);

// Returns whether the temperature is above 0, or the parameters without effect at temperature 0
// have the values that turn them off: top_k 0, top_p 1, min_p 0, seed 0.
bool ree_receipt_sampling_is_canonical(const struct ree_sampling *sampling);

void ree_receipt_text_sha256(const char *text, char hex[65]);

// Signs a message with Ed25519 (RFC 8032) and the private key in the PEM file `key_path`, as
// ree_key_create writes it. `public_key` receives the public key in hexadecimal.
enum ree_status ree_ed25519_sign(const char *key_path, const void *message, size_t nbytes,
                                 char public_key[65], unsigned char signature[REE_SIGNATURE_SIZE],
                                 struct ree_error *err);
// Returns whether `signature` is a valid Ed25519 signature of the message by `public_key`, which
// must be 64 lower-case hexadecimal digits. If memory is exhausted, returns false and sets
// *out_failed; the result then says nothing about the signature.
bool ree_ed25519_holds(const char *public_key, const void *message, size_t nbytes,
                       const unsigned char signature[REE_SIGNATURE_SIZE], bool *out_failed);

// Copies a public key, 64 hexadecimal digits in any case, to `key` in lower case. Fails with
// REE_INVALID if `hex` is anything else.
enum ree_status ree_key_parse(const char *hex, char key[65], struct ree_error *err);
// ree_hash_sign signs the hash of a receipt of any kind, ree_hash_signature_holds returns whether a
// signature of it is valid: NUMERICS.md, "Receipts". Hash, key and signature are hexadecimal. If
// memory is exhausted, ree_hash_signature_holds returns false and sets *out_failed. After a failure
// of ree_hash_sign, public_key and signature are unchanged.
enum ree_status ree_hash_sign(const char *receipt_hash, const char *key_path, char public_key[65],
                              char signature[129], struct ree_error *err);
bool ree_hash_signature_holds(const char *receipt_hash, const char *public_key,
                              const char *signature, bool *out_failed);
// Writes the present date and time, such as 2026-01-31T12:00:00Z; "" if they cannot be had.
void ree_receipt_date(char out[32]);
// Returns whether the receipt's signature is a valid signature of its receipt_hash by its
// public_key. If memory is exhausted, returns false and sets *out_failed.
bool ree_receipt_signature_holds(const struct ree_receipt *receipt, bool *out_failed);

// Findings of receipts of any kind. Hashes, keys and signatures are hexadecimal; public_key "": the
// receipt is not signed.
void ree_finding_compare(const char *what, const char *computed, const char *stated,
                         struct ree_receipt_finding *out);
void ree_finding_signature(const char *receipt_hash, const char *public_key, const char *signature,
                           struct ree_receipt_finding *out);
void ree_finding_key(const char *public_key, const char *required, struct ree_receipt_finding *out);
// `status` and `err`: result of checking the attestation
void ree_finding_attestation(enum ree_status status, const char *signer,
                             const struct ree_error *err, struct ree_receipt_finding *out);
// Sets *out_ok to whether all findings are ok. Fails with REE_IO if one is unknown. `path` names
// the receipt in the message; NULL: it has none.
enum ree_status ree_findings_conclude(const struct ree_receipt_finding *findings, size_t n,
                                      const char *path, bool *out_ok, struct ree_error *err);

#endif
