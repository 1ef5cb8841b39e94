// Checks the receipt of a training by its own contents, and writes attestations of it.
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "receipt/dsse.h"
#include "receipt/receipt_internal.h"
#include "train/training_receipt.h"

struct validation {
    struct ree_training_validation shown; // first, so that the two have the same address
    struct ree_training_receipt *receipt;
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
};

// Fills *out, whose text the caller releases with ree_free.
static enum ree_status attested_of(const struct ree_training_receipt *receipt, const char *path,
                                   struct ree_attested *out, char **out_text,
                                   struct ree_error *err) {
    struct ree_training_receipt plain = *receipt;
    plain.is_signed = false;
    *out = (struct ree_attested){.path = path, .type = "urn:ree:training-receipt:1"};
    REE_TRY(ree_training_receipt_encode(&plain, out_text, &out->nbytes, err));
    out->text = *out_text;
    return REE_OK;
}

enum ree_status ree_training_dsse_write(const struct ree_training_receipt *receipt,
                                        const char *receipt_path, const char *key_path,
                                        const char *path, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_attested attested;
    char *text = NULL;
    enum ree_status status = attested_of(receipt, receipt_path, &attested, &text, err);
    if (status == REE_OK) status = ree_attestation_write(&attested, key_path, path, err);
    ree_free(text);
    return status;
}

static void check_attestation(const struct ree_training_receipt *receipt, const char *path,
                              const char *attestation, const char *key,
                              struct ree_receipt_finding *out) {
    struct ree_attested attested;
    struct ree_error err;
    char signer[65], *text = NULL;
    enum ree_status status = attested_of(receipt, path, &attested, &text, &err);
    if (status == REE_OK) status = ree_attestation_check(attestation, &attested, key, signer, &err);
    ree_free(text);
    ree_finding_attestation(status, signer, &err, out);
}

static enum ree_status validate(struct validation *v, const char *path,
                                const struct ree_validate_options *options, const char *key,
                                struct ree_error *err) {
    void *bytes;
    size_t nbytes, n = 0;
    char computed[65];
    REE_TRY(ree_file_read_small(path, REE_RECEIPT_MAX_SIZE, &bytes, &nbytes, err));
    const enum ree_status status =
        ree_training_receipt_decode(bytes, nbytes, path, &v->receipt, computed, err);
    ree_free(bytes);
    REE_TRY(status);
    const struct ree_training_receipt *r = v->receipt;
    ree_finding_compare("receipt", computed, r->receipt_hash, &v->findings[n++]);
    if (r->is_signed)
        ree_finding_signature(r->receipt_hash, r->public_key, r->signature, &v->findings[n++]);
    if (options->public_key && (!options->attestation || r->is_signed))
        ree_finding_key(r->public_key, key, &v->findings[n++]);
    if (options->attestation)
        check_attestation(r, path, options->attestation, key, &v->findings[n++]);
    v->shown = (struct ree_training_validation){
        .receipt = ree_training_receipt_info(r), .findings = v->findings, .n_findings = n};
    return ree_findings_conclude(v->findings, n, path, &v->shown.ok, err);
}

enum ree_status ree_training_receipt_validate(const char *path,
                                              const struct ree_validate_options *options,
                                              const struct ree_training_validation **out,
                                              struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_validate_options o;
    char key[65] = "";
    *out = NULL;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_validate_options", err));
    if (o.public_key) REE_TRY(ree_key_parse(o.public_key, key, err));
    struct validation *v = ree_alloc_zeroed(1, sizeof *v);
    if (!v) return ree_no_memory(err);
    const enum ree_status status = validate(v, path, &o, key, err);
    if (status == REE_OK)
        *out = &v->shown;
    else
        ree_training_validation_destroy(&v->shown);
    return status;
}

void ree_training_validation_destroy(const struct ree_training_validation *shown) {
    REE_FLOAT_ENV_API();
    struct validation *v = (void *)(uintptr_t)shown;
    if (!v) return;
    ree_training_receipt_destroy(v->receipt);
    ree_free(v);
}
