// Encodes the receipt of a training as canonical JSON.
#include <stdio.h>

#include "base/canonical_json.h"
#include "receipt/receipt_internal.h"
#include "train/training_receipt.h"

static bool add_text(cJSON *object, const char *name, const char *value) {
    return !value || cJSON_AddStringToObject(object, name, value);
}

static bool add_number(cJSON *object, const char *name, uint64_t value) {
    return cJSON_AddNumberToObject(object, name, (double)value);
}

static bool add_points(cJSON *body, const struct ree_training_receipt *r) {
    cJSON *points = cJSON_AddArrayToObject(body, "points");
    for (size_t i = 0; points && i < r->n_points; i++) {
        cJSON *point = cJSON_CreateObject();
        if (!ree_json_put(points, point) ||
            !add_text(point, "states_sha256", r->points[i].states_sha256) ||
            !add_text(point, "chain_sha256", r->points[i].chain_sha256))
            return false;
    }
    return points;
}

// Returns the body; NULL: out of memory.
static cJSON *body_of(const struct ree_training_receipt *r) {
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->seed);
    cJSON *body = cJSON_CreateObject();
    cJSON *model = cJSON_AddObjectToObject(body, "model");
    cJSON *data = cJSON_AddObjectToObject(body, "data");
    uint64_t first = r->points[0].step;
    bool ok = add_text(body, "numerics", r->numerics) &&
              add_text(body, "operation_set", r->operation_set) &&
              add_text(model, "graph_sha256", r->graph_sha256) &&
              add_text(model, "weights_sha256", r->weights_sha256) &&
              add_text(body, "roles_sha256", r->roles_sha256) &&
              add_text(data, "sha256", r->data_sha256) &&
              add_number(data, "n_samples", r->n_samples) &&
              add_text(data, "order", r->in_order ? "in order" : "shuffled") &&
              add_text(data, "seed", seed) && add_number(body, "batch_size", r->batch_size) &&
              add_number(body, "first_step", first) &&
              add_number(body, "n_steps", r->points[r->n_points - 1].step - first) &&
              add_number(body, "interval", r->interval) && add_points(body, r) &&
              (!r->trace_root[0] || add_text(body, "trace_root", r->trace_root));
    if (ok) return body;
    cJSON_Delete(body);
    return NULL;
}

enum ree_status ree_training_receipt_seal(struct ree_training_receipt *r, struct ree_error *err) {
    ree_digest digest;
    cJSON *body = body_of(r);
    if (!body) return ree_no_memory(err);
    enum ree_status status = ree_canonical_sha256(body, "ree-training-receipt/1", digest, err);
    cJSON_Delete(body);
    REE_TRY(status);
    ree_hex(digest, r->receipt_hash);
    return REE_OK;
}

static bool add_signature(cJSON *root, const struct ree_training_receipt *r) {
    if (!r->is_signed) return true;
    cJSON *signature = cJSON_AddObjectToObject(root, "signature");
    return add_text(signature, "algorithm", REE_SIGNATURE_ALGORITHM) &&
           add_text(signature, "public_key", r->public_key) &&
           add_text(signature, "signature", r->signature);
}

static bool add_unbound(cJSON *root, const struct ree_training_receipt *r) {
    if (!r->device && !r->ree_version && !r->created) return true;
    cJSON *unbound = cJSON_AddObjectToObject(root, "unbound");
    return add_text(unbound, "device", r->device) &&
           add_text(unbound, "ree_version", r->ree_version) &&
           add_text(unbound, "created", r->created);
}

enum ree_status ree_training_receipt_encode(const struct ree_training_receipt *r, char **out,
                                            size_t *out_nbytes, struct ree_error *err) {
    struct ree_strbuf text;
    *out = NULL;
    *out_nbytes = 0;
    ree_strbuf_init(&text);
    cJSON *root = cJSON_CreateObject();
    bool ok = add_text(root, "schema", "ree-training-receipt/1") &&
              ree_json_put_as(root, "body", body_of(r)) &&
              add_text(root, "receipt_hash", r->receipt_hash) && add_signature(root, r) &&
              add_unbound(root, r);
    enum ree_status status = ok ? ree_canonical_json(root, &text, err) : ree_no_memory(err);
    cJSON_Delete(root);
    ree_strbuf_append(&text, "\n", 1);
    size_t n = text.size;
    if (status == REE_OK) {
        *out = ree_strbuf_take(&text);
        *out_nbytes = n;
        if (!*out) status = ree_no_memory(err);
    }
    ree_strbuf_finish(&text);
    return status;
}
