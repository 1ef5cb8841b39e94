// What the files of this room share about receipts; not for others.
#ifndef REE_RECEIPT_RECEIPT_PARTS_H
#define REE_RECEIPT_RECEIPT_PARTS_H

#include "receipt/receipt.h"
#include "receipt/receipt_fields.h"

// The schemas by their version - 1; they are also the tags of the receipts' hashes.
extern const char *const ree_receipt_schemas[2];
#define REE_SIGNATURE_ALGORITHM "ed25519"
#define REE_SIGNATURE_SIZE 64

// The number that receipts can hold: 2^53 - 1, so that readers with doubles see it as it is.
#define REE_RECEIPT_MAX_NUMBER 9007199254740991

// Of a file: some millions of tokens, each of which takes about 80 bytes while it is read.
#define REE_RECEIPT_MAX_SIZE ((size_t)64 << 20)

// In the order of the enum.
extern const char *const ree_receipt_kind_names[2];
extern const char *const ree_receipt_finish_names[4];

// What is promised, as JSON: the caller's. NULL: out of memory.
cJSON *ree_receipt_body(const struct ree_receipt *receipt);
enum ree_status ree_receipt_body_digest(const struct ree_receipt *receipt, ree_digest out,
                                        struct ree_error *err);

// Parts of a body that a checkpoint has, too: "numerics", "operation_set" and "model"; "sampling".
// Adding gives false when memory is exhausted; getting wants them to be there.
bool ree_receipt_add_model(cJSON *body, const struct ree_receipt *receipt);
bool ree_receipt_add_sampling(cJSON *body, const struct ree_receipt *receipt);
enum ree_status ree_receipt_get_model(const struct ree_fields *body, struct ree_receipt *out,
                                      struct ree_error *err);
enum ree_status ree_receipt_get_sampling(const struct ree_fields *body, struct ree_receipt *out,
                                         struct ree_error *err);

// Whether the parameters that the sampling does not use have the values that turn them off.
bool ree_receipt_sampling_is_canonical(const struct ree_sampling *sampling);

void ree_receipt_tokens_sha256(const int32_t *ids, size_t n, char hex[65]);
void ree_receipt_text_sha256(const char *text, char hex[65]);

// Ed25519 (RFC 8032) of any message. The key is a PEM file as ree_key_create writes it.
enum ree_status ree_ed25519_sign(const char *key_path, const void *message, size_t nbytes,
                                 char public_key[65], unsigned char signature[REE_SIGNATURE_SIZE],
                                 struct ree_error *err);
// public_key: 64 hexadecimal digits. False also if they are none. *out_failed: false for want of
// memory, which says nothing about the signature.
bool ree_ed25519_holds(const char *public_key, const void *message, size_t nbytes,
                       const unsigned char signature[REE_SIGNATURE_SIZE], bool *out_failed);

// Whether the signature is one of receipt_hash by public_key. *out_failed: as above.
bool ree_receipt_signature_holds(const struct ree_receipt *receipt, bool *out_failed);

#endif
