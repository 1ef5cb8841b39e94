// Internal interface of the files in this folder about receipts.
#ifndef REE_RECEIPT_RECEIPT_INTERNAL_H
#define REE_RECEIPT_RECEIPT_INTERNAL_H

#include "receipt/receipt.h"
#include "receipt/receipt_fields.h"

// Indexed by version - 1. These names are also the tags of the receipt hashes.
extern const char *const ree_receipt_schemas[2];
#define REE_SIGNATURE_ALGORITHM "ed25519"
#define REE_SIGNATURE_SIZE 64

// Largest integer in a receipt: 2^53 - 1, so that readers that use doubles get it exactly.
#define REE_RECEIPT_MAX_NUMBER 9007199254740991

// Maximum size of a file in bytes. Enough for some millions of tokens, each of which takes about 80
// bytes of memory while it is read.
#define REE_RECEIPT_MAX_SIZE ((size_t)64 << 20)

// Indexed by enum ree_receipt_kind and enum ree_finish.
extern const char *const ree_receipt_kind_names[2];
extern const char *const ree_receipt_finish_names[4];

// The receipt's "body" as JSON. The caller owns the result. NULL: out of memory.
cJSON *ree_receipt_body(const struct ree_receipt *receipt);
enum ree_status ree_receipt_body_digest(const struct ree_receipt *receipt, ree_digest out,
                                        struct ree_error *err);

// Parts of a body that receipts and checkpoints share: "numerics", "operation_set" and "model", and
// "sampling". The add functions return false if memory is exhausted. The get functions require the
// members to exist.
bool ree_receipt_add_model(cJSON *body, const struct ree_receipt *receipt);
bool ree_receipt_add_sampling(cJSON *body, const struct ree_receipt *receipt);
enum ree_status ree_receipt_get_model(const struct ree_fields *body, struct ree_receipt *out,
                                      struct ree_error *err);
enum ree_status ree_receipt_get_sampling(const struct ree_fields *body, struct ree_receipt *out,
                                         struct ree_error *err);

// Fails with REE_INVALID if a file of this kind ("a receipt") cannot hold these values, so that
// none is written that cannot be read again.
enum ree_status ree_receipt_check_limits(const char *kind, uint64_t max_new_tokens,
                                         const char *const *stops, size_t n_stops,
                                         struct ree_error *err);

// Stop texts: an array of non-empty strings within REE_RECEIPT_MAX_STOPS and
// REE_RECEIPT_MAX_STOP_BYTES.
enum ree_status ree_field_stops(const struct ree_fields *part, const char *key,
                                const char *const **out, size_t *out_n, struct ree_error *err);

// True if the temperature is above 0, or all parameters without effect have the values that turn
// them off.
bool ree_receipt_sampling_is_canonical(const struct ree_sampling *sampling);

void ree_receipt_text_sha256(const char *text, char hex[65]);

// Signs any message with Ed25519 (RFC 8032). The key is a PEM file as ree_key_create writes it.
enum ree_status ree_ed25519_sign(const char *key_path, const void *message, size_t nbytes,
                                 char public_key[65], unsigned char signature[REE_SIGNATURE_SIZE],
                                 struct ree_error *err);
// Verifies a signature. `public_key` must be 64 lower-case hexadecimal digits, otherwise the result
// is false. *out_failed: the result is false because memory was exhausted, which says nothing about
// the signature.
bool ree_ed25519_holds(const char *public_key, const void *message, size_t nbytes,
                       const unsigned char signature[REE_SIGNATURE_SIZE], bool *out_failed);

// Copies a public key, 64 hexadecimal digits of any case, as lower-case digits.
enum ree_status ree_key_parse(const char *hex, char key[65], struct ree_error *err);
// Verifies that the signature is one of receipt_hash by public_key. *out_failed: as above.
bool ree_receipt_signature_holds(const struct ree_receipt *receipt, bool *out_failed);

#endif
