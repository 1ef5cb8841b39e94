// Binds each side of a claim to a party's receipt. A root that no receipt states belongs to nobody,
// so a verdict against it has no consequence for anyone.
#ifndef REE_DISPUTE_BIND_H
#define REE_DISPUTE_BIND_H

#include "dispute/claim.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

// Returns whether `root` is the trace root that the receipt states. False if the receipt has no
// trace, or is private and its salt is missing.
bool ree_bind_root(const struct ree_receipt *receipt, const ree_digest root);
#define REE_BIND_LIE 400
// Checks that the receipt is what its author published: its hash, its signature and its key, which
// must be public_key (in hexadecimal; NULL: any key or none), and that this version of ree knows
// all critical extensions. Fails with REE_INVALID if the receipt was altered or has another key,
// and with REE_UNSUPPORTED for an unknown extension. k: the party in messages (0: A, 1: B). `lie`
// receives the first contradiction within an unaltered receipt, or "" if there is none.
enum ree_status ree_bind_receipt(unsigned k, const struct ree_receipt *receipt,
                                 const char *public_key, char lie[REE_BIND_LIE],
                                 struct ree_error *err);
// Like ree_bind_receipt, and if `request` is not NULL, also checks that the receipt answers it: if
// not, `lie` receives the difference. This fails with REE_INVALID for a private receipt without its
// salt.
enum ree_status ree_bind_request(unsigned k, const struct ree_receipt *receipt,
                                 const char *public_key, const struct ree_request *request,
                                 char lie[REE_BIND_LIE], struct ree_error *err);
// Like ree_bind_request, and also checks that side k (0: A, 1: B) of the claim has the receipt's
// root, model, numerics, operation set and prefill chunk. Fails with REE_INVALID if not.
enum ree_status ree_bind_side(const struct ree_claim *claim, unsigned k,
                              const struct ree_receipt *receipt, const char *public_key,
                              const struct ree_request *request, char lie[REE_BIND_LIE],
                              struct ree_error *err);

#endif
