// Binds the sides of a claim to receipts. A root that no receipt states belongs to nobody: a
// verdict against it has no consequence for anyone.
#ifndef REE_DISPUTE_BIND_H
#define REE_DISPUTE_BIND_H

#include "dispute/claim.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

// True if `root` is the receipt's trace root. False for a private receipt without its salt.
bool ree_bind_root(const struct ree_receipt *receipt, const ree_digest root);
// Checks that the receipt is what its author published: its hash, its signature and `public_key`
// (in hexadecimal; NULL: not required), and that this version of ree knows all critical extensions.
// Fails with REE_INVALID if the receipt was altered or has another key, and with REE_UNSUPPORTED
// for an unknown extension. `k` is the party in messages (0: A). `lie` receives the first
// contradiction within an unaltered receipt, or "" if there is none.
#define REE_BIND_LIE 400
enum ree_status ree_bind_receipt(unsigned k, const struct ree_receipt *receipt,
                                 const char *public_key, char lie[REE_BIND_LIE],
                                 struct ree_error *err);
// Like ree_bind_receipt. If `request` is not NULL, the receipt must also answer it; otherwise `lie`
// receives the difference.
enum ree_status ree_bind_request(unsigned k, const struct ree_receipt *receipt,
                                 const char *public_key, const struct ree_request *request,
                                 char lie[REE_BIND_LIE], struct ree_error *err);
// Like ree_bind_request, and also checks that side k (0: A) of the claim is the receipt's: root,
// model, numerics, operation set and prefill chunk.
enum ree_status ree_bind_side(const struct ree_claim *claim, unsigned k,
                              const struct ree_receipt *receipt, const char *public_key,
                              const struct ree_request *request, char lie[REE_BIND_LIE],
                              struct ree_error *err);

#endif
