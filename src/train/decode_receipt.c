// Decodes the receipt of a training. The file is untrusted. Whatever this file accepts,
// encode_receipt.c encodes again as the same canonical text.
#include <stdio.h>
#include <string.h>

#include "base/float_env.h"
#include "receipt/receipt_fields.h"
#include "receipt/receipt_internal.h"
#include "train/training.h"
#include "train/training_receipt.h"

static enum ree_status get_hash(const struct ree_fields *part, const char *key, char out[65],
                                struct ree_error *err) {
    return ree_field_hex(part, key, out, 65, err);
}

// Decodes first_step, n_steps, interval and the points.
static enum ree_status get_points(const struct ree_fields *body, struct ree_training_receipt *r,
                                  struct ree_error *err) {
    int64_t first = 0, n_steps = 0, interval = 0, most = (int64_t)REE_TRAINING_MAX_STEPS;
    const cJSON *item;
    char name[48];
    void *memory;
    REE_TRY(ree_field_whole(body, "first_step", 0, most, &first, err));
    REE_TRY(ree_field_whole(body, "n_steps", 1, most, &n_steps, err));
    REE_TRY(ree_field_whole(body, "interval", 1, most, &interval, err));
    if (first + n_steps > most)
        return ree_fail(err, REE_INVALID, "body.n_steps: a training has at most 2^32 - 1 steps");
    REE_TRY(ree_field_array(body, "points", sizeof *r->points, &item, &memory, &r->n_points, err));
    r->points = memory;
    int64_t n_points = 1 + n_steps / interval + (n_steps % interval != 0);
    if (n_points > REE_TRAINING_MAX_POINTS || (int64_t)r->n_points != n_points)
        return ree_fail(err, REE_INVALID,
                        "body.points has %zu points, but n_steps and interval give %lld",
                        r->n_points, (long long)n_points);
    r->interval = (uint64_t)interval;
    for (size_t i = 0; item; i++, item = item->next) {
        int64_t step = i + 1 < r->n_points ? (int64_t)i * interval : n_steps;
        snprintf(name, sizeof name, "body.points[%zu]", i);
        struct ree_fields point = {item, name, body->arena};
        r->points[i].step = (uint64_t)(first + step);
        REE_TRY(ree_fields_check(&point, "states_sha256 chain_sha256", "", err));
        REE_TRY(get_hash(&point, "states_sha256", r->points[i].states_sha256, err));
        REE_TRY(get_hash(&point, "chain_sha256", r->points[i].chain_sha256, err));
    }
    return REE_OK;
}

static enum ree_status get_body(const struct ree_fields *root, struct ree_training_receipt *r,
                                struct ree_error *err) {
    static const char *const orders[] = {"shuffled", "in order"};
    struct ree_fields body, data;
    struct ree_receipt model = {0};
    int64_t n_samples = 0, batch_size = 0;
    size_t order = 0;
    REE_TRY(ree_fields_open(root, "body", "body",
                            "numerics operation_set model roles_sha256 data batch_size first_step "
                            "n_steps interval points",
                            "trace_root", &body, err));
    REE_TRY(ree_receipt_get_model(&body, &model, err));
    r->numerics = model.numerics;
    r->operation_set = model.operation_set;
    memcpy(r->graph_sha256, model.graph_sha256, sizeof r->graph_sha256);
    memcpy(r->weights_sha256, model.weights_sha256, sizeof r->weights_sha256);
    REE_TRY(get_hash(&body, "roles_sha256", r->roles_sha256, err));
    REE_TRY(
        ree_fields_open(&body, "data", "body.data", "sha256 n_samples order seed", "", &data, err));
    REE_TRY(get_hash(&data, "sha256", r->data_sha256, err));
    REE_TRY(ree_field_whole(&data, "n_samples", 1, UINT32_MAX - 1, &n_samples, err));
    REE_TRY(ree_field_name(&data, "order", orders, 2, &order, err));
    REE_TRY(ree_field_digits(&data, "seed", &r->seed, err));
    REE_TRY(ree_field_whole(&body, "batch_size", 1, n_samples, &batch_size, err));
    r->n_samples = (uint64_t)n_samples;
    r->batch_size = (uint64_t)batch_size;
    r->in_order = order == 1;
    REE_TRY(get_hash(&body, "trace_root", r->trace_root, err));
    return get_points(&body, r, err);
}

static enum ree_status get_rest(const struct ree_fields *root, struct ree_training_receipt *r,
                                struct ree_error *err) {
    static const char *const algorithms[] = {REE_SIGNATURE_ALGORITHM};
    struct ree_fields part;
    size_t algorithm;
    if (ree_field(root, "signature")) {
        REE_TRY(ree_fields_open(root, "signature", "signature", "algorithm public_key signature",
                                "", &part, err));
        REE_TRY(ree_field_name(&part, "algorithm", algorithms, 1, &algorithm, err));
        REE_TRY(get_hash(&part, "public_key", r->public_key, err));
        REE_TRY(ree_field_hex(&part, "signature", r->signature, sizeof r->signature, err));
        r->is_signed = true;
    }
    if (!ree_field(root, "unbound")) return REE_OK;
    REE_TRY(
        ree_fields_open(root, "unbound", "unbound", "", "device ree_version created", &part, err));
    REE_TRY(ree_field_string(&part, "device", &r->device, err));
    REE_TRY(ree_field_string(&part, "ree_version", &r->ree_version, err));
    return ree_field_string(&part, "created", &r->created, err);
}

static enum ree_status decode(const cJSON *json, struct ree_training_receipt *r, char computed[65],
                              struct ree_error *err) {
    static const char *const schemas[] = {"ree-training-receipt/1"};
    struct ree_fields root = {json, "receipt", &r->arena};
    size_t schema;
    char stated[65] = "";
    REE_TRY(ree_canonical_check(json, err));
    const char *text = cJSON_GetStringValue(ree_json_find(json, "schema"));
    if (!text || strncmp(text, "ree-training-receipt/", 21) != 0)
        return ree_fail(err, REE_UNSUPPORTED, "it is not the receipt of a training");
    REE_TRY(ree_field_name(&root, "schema", schemas, 1, &schema, err));
    REE_TRY(ree_fields_check(&root, "schema body receipt_hash", "signature unbound", err));
    REE_TRY(get_hash(&root, "receipt_hash", stated, err));
    REE_TRY(get_body(&root, r, err));
    REE_TRY(get_rest(&root, r, err));
    REE_TRY(ree_training_receipt_seal(r, err));
    memcpy(computed, r->receipt_hash, sizeof r->receipt_hash);
    memcpy(r->receipt_hash, stated, sizeof r->receipt_hash);
    return REE_OK;
}

enum ree_status ree_training_receipt_decode(const void *bytes, size_t nbytes, const char *where,
                                            struct ree_training_receipt **out, char computed[65],
                                            struct ree_error *err) {
    cJSON *json = NULL;
    *out = NULL;
    REE_TRY(ree_training_receipt_new(out, err));
    enum ree_status status =
        nbytes > REE_RECEIPT_MAX_SIZE
            ? ree_fail(err, REE_INVALID, "it has %zu bytes; the maximum is %zu", nbytes,
                       REE_RECEIPT_MAX_SIZE)
            : ree_json_parse_strict(bytes, nbytes, &json, err);
    if (status == REE_OK) status = decode(json, *out, computed, err);
    cJSON_Delete(json);
    if (status == REE_OK) ree_training_receipt_describe(*out);
    if (status == REE_OK) return REE_OK;
    ree_training_receipt_destroy(*out);
    *out = NULL;
    return ree_fail_prefix(err, "%s", where);
}

enum ree_status ree_training_receipt_parse(const void *bytes, size_t nbytes, const char *where,
                                           struct ree_training_receipt **out,
                                           struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    char computed[65];
    *out = NULL;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(ree_training_receipt_decode(bytes, nbytes, where, out, computed, err));
    const enum ree_status status =
        strcmp((*out)->receipt_hash, computed) == 0
            ? REE_OK
            : ree_fail(err, REE_INVALID,
                       "%s: receipt_hash is %s, but the SHA-256 of the body is %s", where,
                       (*out)->receipt_hash, computed);
    if (status == REE_OK) return REE_OK;
    ree_training_receipt_destroy(*out);
    *out = NULL;
    return status;
}
