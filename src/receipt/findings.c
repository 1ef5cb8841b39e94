// The findings that validating any kind of receipt gives.
#include "receipt/receipt_internal.h"

#include <stdio.h>
#include <string.h>

void ree_finding_compare(const char *what, const char *computed, const char *stated,
                         struct ree_receipt_finding *out) {
    *out = (struct ree_receipt_finding){.what = what, .ok = strcmp(computed, stated) == 0};
    if (out->ok)
        snprintf(out->detail, sizeof out->detail, "SHA-256 %s", computed);
    else
        snprintf(out->detail, sizeof out->detail, "SHA-256 is %s, but the receipt has %s", computed,
                 stated);
}

void ree_finding_signature(const char *receipt_hash, const char *public_key, const char *signature,
                           struct ree_receipt_finding *out) {
    *out = (struct ree_receipt_finding){.what = "signature"};
    out->ok = ree_hash_signature_holds(receipt_hash, public_key, signature, &out->unknown);
    snprintf(out->detail, sizeof out->detail, "%s %s",
             out->ok        ? "by"
             : out->unknown ? "out of memory: cannot check whether it is by"
                            : "it is not a signature of this receipt by",
             public_key);
}

void ree_finding_key(const char *public_key, const char *required,
                     struct ree_receipt_finding *out) {
    *out = (struct ree_receipt_finding){.what = "public key"};
    out->ok = public_key[0] && strcmp(public_key, required) == 0;
    if (out->ok)
        snprintf(out->detail, sizeof out->detail, "%s, as required", required);
    else if (public_key[0])
        snprintf(out->detail, sizeof out->detail, "it is %s, required is %s", public_key, required);
    else
        snprintf(out->detail, sizeof out->detail, "the receipt is not signed, required is %s",
                 required);
}

void ree_finding_attestation(enum ree_status status, const char *signer,
                             const struct ree_error *err, struct ree_receipt_finding *out) {
    *out = (struct ree_receipt_finding){.what = "attestation",
                                        .ok = status == REE_OK,
                                        .unknown = status != REE_OK && status != REE_INVALID &&
                                                   status != REE_UNSUPPORTED};
    if (out->ok)
        snprintf(out->detail, sizeof out->detail, "by %s", signer);
    else
        snprintf(out->detail, sizeof out->detail, "%.250s", err->message);
}

enum ree_status ree_findings_conclude(const struct ree_receipt_finding *findings, size_t n,
                                      const char *path, bool *out_ok, struct ree_error *err) {
    *out_ok = true;
    for (size_t i = 0; i < n; i++) {
        if (findings[i].unknown)
            return ree_fail(err, REE_IO, "%s%s%s: %s", path ? path : "", path ? ": " : "",
                            findings[i].what, findings[i].detail);
        *out_ok = *out_ok && findings[i].ok;
    }
    return REE_OK;
}
