// Receipts of trainings: their fields in memory, and the file, a JSON object in canonical form:
//
//     {"schema": "ree-training-receipt/1",
//      "body": {"numerics": "RepOps/1", "operation_set": ...,
//               "model": {"graph_sha256", "weights_sha256"}, "roles_sha256",
//               "data": {"sha256", "n_samples", "order": "shuffled" | "in order", "seed"},
//               "batch_size", "first_step", "n_steps", "interval",
//               "points": [{"states_sha256", "chain_sha256"}, ...],
//               "trace_root": optional},
//      "receipt_hash": SHA-256("ree-training-receipt/1\0" | canonical JSON of "body"),
//      "signature": as in receipt/receipt.h, optional,
//      "unbound": {"device", "ree_version", "created"}, optional}
//
// The points are after first_step, first_step + interval, ... steps, and after the last one. A
// point's step is not stated: it follows from these numbers.
#ifndef REE_TRAIN_TRAINING_RECEIPT_H
#define REE_TRAIN_TRAINING_RECEIPT_H

#include "base/arena.h"
#include "ree/train.h"

struct ree_training_receipt {
    struct ree_arena arena; // owns what the fields point to
    char receipt_hash[65];
    const char *numerics, *operation_set;
    char graph_sha256[65], weights_sha256[65], roles_sha256[65], data_sha256[65];
    uint64_t n_samples, batch_size, seed, interval;
    bool in_order;
    size_t n_points;
    struct ree_training_point *points; // (n_points)
    char trace_root[65];               // "": none
    bool is_signed;
    char public_key[65], signature[129];
    const char *device, *ree_version, *created; // NULL: absent
    struct ree_training_receipt_info info;      // filled by ree_training_receipt_describe
};

// Allocates an empty receipt.
enum ree_status ree_training_receipt_new(struct ree_training_receipt **out, struct ree_error *err);
// Fills `info` from the other fields.
void ree_training_receipt_describe(struct ree_training_receipt *receipt);
// Computes receipt_hash from the body.
enum ree_status ree_training_receipt_seal(struct ree_training_receipt *receipt,
                                          struct ree_error *err);
// Decodes a receipt and does not compare its hash: receipt_hash is the stated one, `computed`
// receives that of the body. `where` names it in messages. Release *out with
// ree_training_receipt_destroy. Fails with REE_UNSUPPORTED if it is no receipt of a training.
enum ree_status ree_training_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                            struct ree_training_receipt **out, char computed[65],
                                            struct ree_error *err);
// Makes the text of the file. Release *out with ree_free.
enum ree_status ree_training_receipt_encode(const struct ree_training_receipt *receipt, char **out,
                                            size_t *out_nbytes, struct ree_error *err);

#endif
