// Attestations of receipts of any kind; dsse.c describes their form.
#ifndef REE_RECEIPT_DSSE_H
#define REE_RECEIPT_DSSE_H

#include "ree.h"

// The receipt that an attestation is about.
struct ree_attested {
    const char *path; // its file
    const char *type; // predicateType of the statement, such as "urn:ree:receipt:2"
    const char *text; // its JSON without its signature; not NUL-terminated
    size_t nbytes;    // length of text
};

// As ree_dsse_write.
enum ree_status ree_attestation_write(const struct ree_attested *receipt, const char *key_path,
                                      const char *path, struct ree_error *err);
// As ree_dsse_check.
enum ree_status ree_attestation_check(const char *path, const struct ree_attested *receipt,
                                      const char *public_key, char signer[65],
                                      struct ree_error *err);

#endif
