#include "dispute/bind.h"

#include <stdio.h>
#include <string.h>

#include "receipt/verify.h"
#include "base/status.h"

static const char who[] = "AB";

bool ree_bind_lacks_salt(const struct ree_receipt *r) {
    return r->version > 1 && r->is_private && !r->has_salt;
}

bool ree_bind_root(const struct ree_receipt *r, const ree_digest root) {
    char hex[65];
    if (!r->has_trace || ree_bind_lacks_salt(r)) return false;
    ree_hex(root, hex);
    ree_receipt_blind(r, hex);
    return strcmp(hex, r->trace_root) == 0;
}

// Fails if the receipt was altered, or is not signed with the expected key. Writes to `lie` how it
// contradicts itself.
static enum ree_status check_alone(unsigned k, const struct ree_receipt *r, const char *public_key,
                                   char lie[REE_BIND_LIE], struct ree_error *err) {
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    bool ok;
    size_t n = ree_receipt_check(r, findings, &ok);
    lie[0] = 0;
    for (size_t i = 0; !ok && i < n; i++) {
        const struct ree_receipt_finding *f = &findings[i];
        if (f->ok) continue;
        if (f->unknown)
            return ree_fail(err, REE_NO_MEMORY, "%c's receipt: %s: %s", who[k], f->what, f->detail);
        // If the hash or the signature fails, anyone may have altered the receipt, so nobody is
        // blamed.
        if (strcmp(f->what, "receipt") == 0 || strcmp(f->what, "signature") == 0)
            return ree_fail(err, REE_INVALID, "%c's receipt is altered: %s: %s", who[k], f->what,
                            f->detail);
        if (!lie[0])
            snprintf(lie, REE_BIND_LIE, "it contradicts itself: %s: %s", f->what, f->detail);
    }
    if (public_key && !r->is_signed)
        return ree_fail(err, REE_INVALID, "%c's receipt is not signed", who[k]);
    if (public_key && strcmp(r->public_key, public_key) != 0)
        return ree_fail(err, REE_INVALID, "%c's receipt is signed with another key: %s", who[k],
                        r->public_key);
    return REE_OK;
}

static enum ree_status check_extension(unsigned k, const struct ree_receipt *r,
                                       struct ree_error *err) {
    const char *unknown = ree_receipt_unknown_extension(r);
    if (!unknown) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED, "%c's receipt requires the extension '%.64s'", who[k],
                    unknown);
}

enum ree_status ree_bind_request(unsigned k, const struct ree_receipt *r, const char *public_key,
                                 const struct ree_request *request, char lie[REE_BIND_LIE],
                                 struct ree_error *err) {
    REE_TRY(check_alone(k, r, public_key, lie, err));
    if (!request) return check_extension(k, r, err);
    if (lie[0]) return REE_OK;
    struct ree_verification v;
    ree_verification_init(&v);
    ree_verify_request(&v, r, request);
    for (size_t i = 0; i < v.n && !lie[0]; i++)
        if (v.checks[i].outcome == REE_VERIFY_DIFFERS)
            snprintf(lie, REE_BIND_LIE, "it does not answer the request: %.300s",
                     v.checks[i].detail);
    enum ree_status status = v.failed ? ree_no_memory(err) : REE_OK;
    ree_verification_finish(&v);
    return status;
}

enum ree_status ree_bind_side(const struct ree_claim *c, unsigned k, const struct ree_receipt *r,
                              const char *public_key, const struct ree_request *request,
                              char lie[REE_BIND_LIE], struct ree_error *err) {
    REE_TRY(ree_bind_request(k, r, public_key, request, lie, err));
    if (!r->has_trace)
        return ree_fail(err, REE_INVALID, "%c's receipt has no trace, so it commits to no root",
                        who[k]);
    if (ree_bind_lacks_salt(r))
        return ree_fail(err, REE_INVALID,
                        "%c's receipt is private: its salt is required to check its root", who[k]);
    if (!ree_bind_root(r, c->sides[k].root))
        return ree_fail(err, REE_INVALID,
                        "the root of %c in the claim is not the root in its receipt", who[k]);
    if (strcmp(r->graph_sha256, c->graph_sha256) != 0 ||
        strcmp(r->weights_sha256, c->weights_sha256) != 0)
        return ree_fail(err, REE_INVALID, "%c's receipt is of another model", who[k]);
    if (strcmp(r->numerics, c->numerics) != 0 || strcmp(r->operation_set, c->operation_set) != 0 ||
        r->trace_chunk != c->prefill_chunk)
        return ree_fail(err, REE_INVALID,
                        "%c's receipt is of another run: numerics, operation set or prefill chunk",
                        who[k]);
    return REE_OK;
}
