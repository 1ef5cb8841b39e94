// Whether the sides of a claim are those of receipts. A root that no receipt carries is nobody's: a
// verdict against it binds nobody.
#ifndef REE_AUDIT_BIND_H
#define REE_AUDIT_BIND_H

#include "audit/claim.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

// Whether a root is the receipt's; false for a private receipt without its salt.
bool ree_bind_root(const struct ree_receipt *receipt, const ree_digest root);
// Whether the receipt is what somebody published: hash, signature, `public_key` (in hexadecimal;
// NULL: not required), and no extension that it requires and nobody knows. REE_INVALID with what is
// wrong. `lie` receives what the receipt, which is whole, says against itself; "" if nothing.
#define REE_BIND_LIE 400
enum ree_status ree_bind_receipt(unsigned k, const struct ree_receipt *receipt,
                                 const char *public_key, char lie[REE_BIND_LIE],
                                 struct ree_error *err);
// The same for a receipt that has to answer this request (NULL: not required): `lie` also says in
// what it does not.
enum ree_status ree_bind_request(unsigned k, const struct ree_receipt *receipt,
                                 const char *public_key, const struct ree_request *request,
                                 char lie[REE_BIND_LIE], struct ree_error *err);
// The same, and whether side k (0: A) of the claim is that of the receipt: root, model, numerics,
// operation set and prefill chunk.
enum ree_status ree_bind_side(const struct ree_claim *claim, unsigned k,
                              const struct ree_receipt *receipt, const char *public_key,
                              const struct ree_request *request, char lie[REE_BIND_LIE],
                              struct ree_error *err);

#endif
