#include "receipt/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/name_index.h"
#include "receipt/make_receipt.h"
#include "session/model.h"
#include "trace/model_header.h"

void ree_verification_init(struct ree_verification *v) {
    *v = (struct ree_verification){0};
}

void ree_verification_finish(struct ree_verification *v) {
    for (size_t i = 0; i < v->n; i++)
        ree_free((char *)(uintptr_t)v->checks[i].detail);
    ree_free(v->checks);
    ree_verification_init(v);
}

enum ree_verify_verdict ree_verification_verdict(const struct ree_verification *v) {
    if (v->differs) return REE_VERIFIED_FALSE;
    if (v->failed || v->is_pending || v->cannot[0]) return REE_VERIFIED_NOT;
    if (v->is_partial) return REE_VERIFIED_PARTLY;
    return v->is_prefix ? REE_VERIFIED_PREFIX : REE_VERIFIED;
}

const char *ree_verify_verdict_name(enum ree_verify_verdict verdict) {
    static const char *const names[] = {"verified", "verified prefix of an answer",
                                        "verified in part", "differs", "cannot be checked"};
    return names[verdict];
}

// Removes an incomplete UTF-8 character from the end of a string that may have been cut at the size
// of a buffer.
static void trim(char *s) {
    size_t n = strlen(s), back = 0;
    while (back < n && back < 4 && ((unsigned char)s[n - 1 - back] & 0xc0) == 0x80)
        back++;
    if (back == n || back == 4) return;
    unsigned char lead = (unsigned char)s[n - 1 - back];
    size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (wanted > back) s[n - 1 - back] = 0;
}

void ree_verify_add(struct ree_verification *v, const char *name, enum ree_verify_outcome outcome,
                    const char *format, ...) {
    v->differs = v->differs || outcome == REE_VERIFY_DIFFERS;
    v->is_partial = v->is_partial || outcome == REE_VERIFY_NOT_CHECKED;
    if (v->n == v->capacity) {
        size_t capacity = v->capacity ? 2 * v->capacity : 16;
        struct ree_verify_check *grown = ree_realloc(v->checks, capacity * sizeof *grown);
        if (!grown) {
            v->failed = true;
            return;
        }
        v->checks = grown;
        v->capacity = capacity;
    }
    struct ree_verify_check *check = &v->checks[v->n];
    va_list args;
    va_start(args, format);
    char *detail;
    int length = ree_vasprintf(&detail, format, args);
    va_end(args);
    if (length < 0) {
        v->failed = true;
        return;
    }
    v->n++;
    check->outcome = outcome;
    snprintf(check->name, sizeof check->name, "%s", name);
    trim(check->name);
    trim(detail);
    check->detail = detail;
}

bool ree_verify_hash(struct ree_verification *v, const char *name, const char *here,
                     const char *stated) {
    bool same = strcmp(here, stated) == 0;
    if (same)
        ree_verify_add(v, name, REE_VERIFY_AGREES, "%s", "");
    else
        ree_verify_add(v, name, REE_VERIFY_DIFFERS, "SHA-256 is %s, but the receipt has %s", here,
                       stated);
    return same;
}

bool ree_verify_blinded(struct ree_verification *v, const struct ree_receipt *receipt,
                        const char *name, const char *here, const char *stated) {
    char hex[65];
    snprintf(hex, sizeof hex, "%s", here);
    ree_receipt_blind(receipt, hex);
    return ree_verify_hash(v, name, hex, stated);
}

// Adds a check with the outcome "not checked" if ree-receipt/1 leaves the values of parameters
// open. ree-receipt/2 fixes these values.
static void note_version_1(struct ree_verification *v, const struct ree_receipt *r) {
    if (r->version != 1 || r->kind != REE_RECEIPT_TEXT) return;
    if (r->sampling.temperature == 0 &&
        (r->sampling.top_k || r->sampling.top_p != 1 || r->sampling.min_p != 0 || r->sampling.seed))
        ree_verify_add(v, "parameters", REE_VERIFY_NOT_CHECKED,
                       "at temperature 0, top_k, top_p, min_p and seed have no effect, and "
                       "ree-receipt/1 lets them have any value");
}

// This version of ree knows no extension. An extension that is not critical may be ignored, but
// counts as not checked.
static void note_extensions(struct ree_verification *v, const struct ree_receipt *r) {
    for (const cJSON *item = r->extensions ? r->extensions->child : NULL; item; item = item->next)
        ree_verify_add(v, "extension", REE_VERIFY_NOT_CHECKED,
                       "'%.128s' is unknown to this version of ree", item->string);
}

void ree_verify_receipt(struct ree_verification *v, const struct ree_receipt *receipt) {
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    bool ok;
    size_t n = ree_receipt_check(receipt, findings, &ok);
    for (size_t i = 0; i < n; i++) {
        const struct ree_receipt_finding *f = &findings[i];
        v->failed = v->failed || f->unknown;
        ree_verify_add(v, f->what,
                       f->ok        ? REE_VERIFY_AGREES
                       : f->unknown ? REE_VERIFY_NOT_CHECKED
                                    : REE_VERIFY_DIFFERS,
                       "%s", f->ok ? "" : f->detail);
    }
    note_version_1(v, receipt);
    note_extensions(v, receipt);
    const char *unknown = ree_receipt_unknown_extension(receipt);
    if (unknown)
        snprintf(
            v->cannot, sizeof v->cannot,
            "this receipt requires the extension '%.128s', which this version of ree does not know",
            unknown);
    else if (receipt->is_private && !receipt->has_salt)
        snprintf(v->cannot, sizeof v->cannot,
                 "this receipt is private: its salt is required (--salt), which the prover keeps "
                 "next to it");
    else if (strcmp(receipt->numerics, ree_numerics_version()) != 0)
        snprintf(v->cannot, sizeof v->cannot,
                 "this receipt has the numerics version %s, but this ree has %s", receipt->numerics,
                 ree_numerics_version());
    else if (strcmp(receipt->operation_set, ree_operation_set_name(REE_REPRODUCIBLE)) != 0)
        snprintf(v->cannot, sizeof v->cannot,
                 "this receipt has the operation set '%s', whose bits may differ on other devices; "
                 "only 'reproducible' can be verified",
                 receipt->operation_set);
}

void ree_verify_key(struct ree_verification *v, const struct ree_receipt *receipt,
                    const char *public_key) {
    bool same = receipt->is_signed && strcmp(receipt->public_key, public_key) == 0;
    ree_verify_add(v, "public key", same ? REE_VERIFY_AGREES : REE_VERIFY_DIFFERS, "%s%s",
                   same                 ? ""
                   : receipt->is_signed ? "the receipt is signed with "
                                        : "the receipt is not signed",
                   same || !receipt->is_signed ? "" : receipt->public_key);
}

enum ree_status ree_verify_model(struct ree_verification *v, const struct ree_receipt *receipt,
                                 const struct ree_model *model, const struct ree_progress *progress,
                                 struct ree_error *err) {
    struct ree_model_hashes hashes;
    REE_TRY(ree_model_hashes_make(model, progress, &hashes, err));
    bool is_old = receipt->version == 1 && strcmp(hashes.graph, hashes.graph_version_1) != 0;
    ree_verify_hash(v, "graph", is_old ? hashes.graph_version_1 : hashes.graph,
                    receipt->graph_sha256);
    if (is_old)
        ree_verify_add(v, "default values", REE_VERIFY_NOT_CHECKED,
                       "a receipt of version 1 does not say which inputs have them");
    ree_verify_hash(v, "weights", hashes.weights, receipt->weights_sha256);
    return REE_OK;
}

// A trace has a digest for each node of the optimised graph, and two versions of ree may optimise a
// graph differently. The receipt's hash does not cover the version that the receipt states. So the
// version may turn "differs" into "not checked", but must never lead to "verified".
static bool is_of_other_version(const struct ree_receipt *receipt) {
    return receipt->ree_version && strcmp(receipt->ree_version, ree_version()) != 0;
}

void ree_verify_trace(struct ree_verification *v, const struct ree_receipt *receipt,
                      const ree_digest root, uint64_t n_steps) {
    char hex[65], blinded[65];
    ree_hex(root, hex);
    memcpy(blinded, hex, sizeof blinded);
    ree_receipt_blind(receipt, blinded);
    if (n_steps != receipt->trace_steps)
        ree_verify_add(v, "trace", REE_VERIFY_DIFFERS,
                       "the run has %llu steps, but the receipt has %llu",
                       (unsigned long long)n_steps, (unsigned long long)receipt->trace_steps);
    else if (strcmp(blinded, receipt->trace_root) != 0 && is_of_other_version(receipt))
        ree_verify_add(
            v, "trace", REE_VERIFY_NOT_CHECKED,
            "the roots differ. The receipt states that ree %.32s made it, which may optimise the "
            "graph differently from this ree, %s: verify it with that version",
            receipt->ree_version, ree_version());
    else
        ree_verify_blinded(v, receipt, "trace", hex, receipt->trace_root);
}

// Tensors

static const char *name_of_tensor(const void *tensors, size_t i) {
    const char *name = ((const struct ree_tensor *)tensors)[i].name;
    return name ? name : "";
}

// Receipts of version 1 hash the NaNs of inputs as they are.
static void hash_input(const struct ree_receipt *r, const struct ree_tensor *input, char hex[65]) {
    ree_digest digest;
    if (r->version == 1) {
        ree_tensor_sha256(input, hex);
        return;
    }
    ree_trace_tensor_digest(input, digest);
    ree_hex(digest, hex);
}

static enum ree_status check_inputs(struct ree_verification *v,
                                    const struct ree_verify_tensors *what, struct ree_error *err) {
    const struct ree_receipt *r = what->receipt;
    char name[64], hex[65];
    struct ree_name_index index;
    // Per tensor in what->inputs: whether the receipt names it.
    bool *known = ree_alloc_zeroed(what->n_inputs + 1, sizeof *known);
    if (!known || !ree_name_index_init(&index, what->n_inputs, name_of_tensor, what->inputs)) {
        ree_free(known);
        return ree_no_memory(err);
    }
    // The receipt's next input must have at least this index among the model's inputs.
    size_t next = 0;
    for (size_t i = 0; i < r->n_inputs; i++) {
        size_t k = ree_name_index_find(&index, r->inputs[i].name);
        size_t place = ree_name_index_find(&what->model->input_names, r->inputs[i].name);
        snprintf(name, sizeof name, "input %s", r->inputs[i].name);
        if (place != REE_NO_NAME && place < next) {
            ree_verify_add(v, name, REE_VERIFY_DIFFERS,
                           "the receipt names it twice, or not in the model's order");
            continue;
        }
        if (place == REE_NO_NAME) {
            ree_verify_add(v, name, REE_VERIFY_DIFFERS, "the model has no such input");
            continue;
        }
        next = place + 1;
        if (k != REE_NO_NAME) {
            known[k] = true;
            hash_input(r, &what->inputs[k], hex);
            ree_verify_hash(v, name, hex, r->inputs[i].sha256);
            continue;
        }
        if (v->cannot[0]) continue;
        snprintf(v->cannot, sizeof v->cannot,
                 "the receipt has only the hash of input '%.128s': pass its tensor with --input",
                 r->inputs[i].name);
    }
    for (size_t i = 0; i < what->n_inputs; i++) {
        snprintf(name, sizeof name, "input %s", what->inputs[i].name);
        if (!known[i])
            ree_verify_add(v, name, REE_VERIFY_DIFFERS,
                           "the receipt's run did not have this input");
    }
    ree_name_index_finish(&index);
    ree_free(known);
    return REE_OK;
}

static void check_outputs(struct ree_verification *v, const struct ree_verify_tensors *what,
                          const struct ree_tensor *outputs) {
    const struct ree_receipt *r = what->receipt;
    size_t n = ree_model_n_outputs(what->model);
    char name[64], hex[65];
    if (n != r->n_outputs)
        ree_verify_add(v, "outputs", REE_VERIFY_DIFFERS,
                       "the model has %zu, but the receipt has %zu", n, r->n_outputs);
    for (size_t i = 0; i < n && i < r->n_outputs; i++) {
        const char *own = outputs[i].name ? outputs[i].name : "";
        snprintf(name, sizeof name, "output %s", own);
        ree_tensor_sha256(&outputs[i], hex);
        if (strcmp(own, r->outputs[i].name) == 0)
            ree_verify_hash(v, name, hex, r->outputs[i].sha256);
        else
            ree_verify_add(v, name, REE_VERIFY_DIFFERS, "the receipt names output %zu '%.128s'", i,
                           r->outputs[i].name);
    }
}

enum ree_status ree_verify_tensors(struct ree_verification *v,
                                   const struct ree_verify_tensors *what, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local;
    if (what->receipt->has_trace && !what->traced)
        ree_verify_add(v, "trace", REE_VERIFY_NOT_CHECKED, "checked only with --trace");
    REE_TRY(check_inputs(v, what, err));
    if (v->cannot[0]) return REE_OK;
    if (v->differs) {
        ree_verify_add(v, "outputs", REE_VERIFY_NOT_CHECKED,
                       "the inputs, the graph or the weights already differ");
        return REE_OK;
    }
    size_t n = ree_model_n_outputs(what->model);
    struct ree_tensor *outputs = ree_alloc_zeroed(n + 1, sizeof *outputs);
    if (!outputs) return ree_no_memory(err);
    double start = ree_clock();
    enum ree_status status =
        ree_pipeline_run(what->pipeline, what->inputs, what->n_inputs, outputs, err);
    v->run_seconds += ree_clock() - start;
    v->n_runs++;
    if (status == REE_OK) check_outputs(v, what, outputs);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        ree_tensor_finish(&outputs[i]);
    ree_free(outputs);
    return status;
}
