// Binds each side of a claim to a party's receipt. A root that no receipt states belongs to nobody,
// so a verdict against it has no consequence for anyone.
#ifndef REE_DISPUTE_BIND_H
#define REE_DISPUTE_BIND_H

#include "dispute/claim.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

// Returns whether the receipt is private and its salt is missing: its hashes cannot be compared.
bool ree_bind_lacks_salt(const struct ree_receipt *receipt);
// Returns whether `root` is the trace root that the receipt states. False if the receipt has no
// trace, or is private and its salt is missing.
bool ree_bind_root(const struct ree_receipt *receipt, const ree_digest root);
#define REE_BIND_LIE 400
// Checks that the receipt is what its author published (its hash, its signature and its key, which
// must be public_key, in hexadecimal; NULL: any key or none), and that it answers the request. k:
// the party in messages (0: A, 1: B). `lie` receives the first contradiction within an unaltered
// receipt, or why it does not answer the request; "" if there is none. Without the salt of a
// private receipt, the prompt itself is not compared. Fails with REE_INVALID if the receipt was
// altered or has another key. `request` may be NULL; then an extension that this version of ree
// does not know is REE_UNSUPPORTED.
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
