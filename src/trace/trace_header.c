#include "trace/trace_header.h"

#include <string.h>

#include "base/canonical_json.h"

// Completing a header

static void hash_string(struct ree_hasher *hasher, const char *s) {
    uint32_t n = (uint32_t)strlen(s);
    ree_hasher_update(hasher, &n, sizeof n);
    ree_hasher_update(hasher, s, n);
}

void ree_trace_op_digest(const struct ree_trace_node *node, uint32_t version, ree_digest out) {
    const bool is_named = version == REE_TRACE_NAMED;
    struct ree_hasher *hasher = ree_hasher_create(is_named ? "ree-op/1" : "ree-op/2");
    if (is_named) hash_string(hasher, node->name);
    hash_string(hasher, node->domain);
    hash_string(hasher, node->op_type);
    ree_hasher_update(hasher, &node->opset, sizeof node->opset);
    ree_hasher_update(hasher, node->attributes, sizeof node->attributes);
    ree_hasher_digest(hasher, out);
}

static const char *schema_of(uint32_t version) {
    return version == REE_TRACE_NAMED ? "ree-trace/1" : "ree-trace/2";
}

static enum ree_status encode(const struct ree_trace_header *h, bool named, struct ree_strbuf *out,
                              struct ree_error *err);

static enum ree_status number_values(struct ree_trace_header *h, struct ree_error *err) {
    // Value numbers must fit in 31 bits, because node inputs are int32_t and -1 stands for omitted.
    uint64_t n = (uint64_t)h->n_inputs + h->n_constants, n_outputs = 0;
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        struct ree_trace_node *node = &h->nodes[i];
        if (n > INT32_MAX) break;
        for (uint32_t k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != REE_TRACE_OMITTED &&
                (node->inputs[k] < 0 || (uint64_t)node->inputs[k] >= n))
                return ree_fail(err, REE_INVALID,
                                "node %u ('%s') reads value %d, which no earlier node computes", i,
                                node->name, node->inputs[k]);
        node->first_output = (uint32_t)n;
        n += node->n_outputs;
        n_outputs += node->n_outputs;
    }
    if (n > INT32_MAX) return ree_fail(err, REE_UNSUPPORTED, "the model has 2^31 values or more");
    h->n_values = (uint32_t)n;
    h->n_step_digests = (uint32_t)(h->n_inputs + n_outputs);
    if (!h->n_step_digests)
        return ree_fail(err, REE_INVALID, "a model without inputs and nodes has no trace");
    return REE_OK;
}

enum ree_status ree_trace_header_complete(struct ree_trace_header *h, struct ree_arena *arena,
                                          struct ree_error *err) {
    REE_TRY(number_values(h, err));
    h->ops = ree_arena_alloc_array(arena, (size_t)h->n_nodes + 1, sizeof *h->ops);
    if (!h->ops) return ree_no_memory(err);
    for (uint32_t i = 0; i < h->n_nodes; i++)
        ree_trace_op_digest(&h->nodes[i], h->version, h->ops[i]);
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_trace_header_encode(h, &text, err);
    if (status == REE_OK && text.size > REE_TRACE_MAX_HEADER)
        status =
            ree_fail(err, REE_UNSUPPORTED, "the header has %zu bytes; at most %llu are supported",
                     text.size, (unsigned long long)REE_TRACE_MAX_HEADER);
    if (status == REE_OK && h->version != REE_TRACE_NAMED) {
        ree_strbuf_finish(&text);
        ree_strbuf_init(&text);
        status = encode(h, false, &text, err);
    }
    if (status == REE_OK) {
        struct ree_hasher *hasher = ree_hasher_create(NULL);
        ree_hasher_update(hasher, text.data, text.size);
        ree_hasher_digest(hasher, h->digest);
    }
    ree_strbuf_finish(&text);
    return status;
}

// Encoding. cJSON's add functions return NULL if memory is exhausted, and accept NULL. Each result
// is checked: a header that lost a member would decode to another header.
static bool add_hex(cJSON *object, const char *key, const ree_digest digest) {
    char hex[65];
    ree_hex(digest, hex);
    return cJSON_AddStringToObject(object, key, hex) != NULL;
}

static bool add_numbers(cJSON *object, const char *key, uint32_t n, const int32_t *numbers,
                        const bool *omitted) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    bool ok = array != NULL;
    for (uint32_t i = 0; i < n && ok; i++)
        ok = cJSON_AddItemToArray(array, cJSON_CreateNumber(numbers      ? numbers[i]
                                                            : omitted[i] ? 0
                                                                         : 1));
    return ok;
}

static bool add_inputs(cJSON *root, const struct ree_trace_header *h) {
    cJSON *array = cJSON_AddArrayToObject(root, "inputs");
    bool ok = array != NULL;
    for (uint32_t i = 0; i < h->n_inputs && ok; i++) {
        cJSON *item = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(array, item) &&
             cJSON_AddStringToObject(item, "name", h->inputs[i].name) &&
             (h->inputs[i].cache_axis < 0 ||
              cJSON_AddNumberToObject(item, "cache_axis", h->inputs[i].cache_axis));
    }
    return ok;
}

static bool add_constants(cJSON *root, const struct ree_trace_header *h, bool named) {
    cJSON *array = cJSON_AddArrayToObject(root, "constants");
    bool ok = array != NULL;
    for (uint32_t i = 0; i < h->n_constants && ok; i++) {
        cJSON *item = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(array, item) &&
             cJSON_AddStringToObject(item, "name", named ? h->constants[i].name : "") &&
             add_hex(item, "sha256", h->constants[i].digest);
    }
    return ok;
}

static bool add_nodes(cJSON *root, const struct ree_trace_header *h, bool named) {
    cJSON *array = cJSON_AddArrayToObject(root, "nodes");
    bool ok = array != NULL;
    for (uint32_t i = 0; i < h->n_nodes && ok; i++) {
        const struct ree_trace_node *node = &h->nodes[i];
        cJSON *item = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(array, item) &&
             cJSON_AddStringToObject(item, "name", named ? node->name : "") &&
             cJSON_AddStringToObject(item, "domain", node->domain) &&
             cJSON_AddStringToObject(item, "op_type", node->op_type) &&
             cJSON_AddNumberToObject(item, "opset", (double)node->opset) &&
             add_hex(item, "attributes_sha256", node->attributes) &&
             add_numbers(item, "inputs", node->n_inputs, node->inputs, NULL) &&
             add_numbers(item, "outputs", node->n_outputs, NULL, node->omitted);
    }
    return ok;
}

// `named`: with the names of nodes and constants
static enum ree_status encode(const struct ree_trace_header *h, bool named, struct ree_strbuf *out,
                              struct ree_error *err) {
    cJSON *root = cJSON_CreateObject();
    bool ok = cJSON_AddStringToObject(root, "schema", schema_of(h->version));
    cJSON *model = cJSON_AddObjectToObject(root, "model");
    ok = ok && cJSON_AddStringToObject(model, "graph_sha256", h->graph_sha256) &&
         cJSON_AddStringToObject(model, "weights_sha256", h->weights_sha256) &&
         cJSON_AddStringToObject(root, "numerics", h->numerics) &&
         cJSON_AddStringToObject(root, "operation_set", h->operation_set) &&
         cJSON_AddNumberToObject(root, "prefill_chunk", h->prefill_chunk) && add_inputs(root, h) &&
         add_constants(root, h, named) && add_nodes(root, h, named);
    enum ree_status status = ok ? ree_canonical_json(root, out, err) : ree_no_memory(err);
    if (status == REE_OK && out->failed) status = ree_no_memory(err);
    cJSON_Delete(root);
    return status;
}

enum ree_status ree_trace_header_encode(const struct ree_trace_header *h, struct ree_strbuf *out,
                                        struct ree_error *err) {
    return encode(h, true, out, err);
}

// Decoding

struct decoder {
    struct ree_arena *arena;
    struct ree_error *err;
};

static enum ree_status take_string(struct decoder *d, const cJSON *object, const char *key,
                                   const char **out) {
    const char *s = NULL;
    REE_TRY(ree_json_string(object, key, &s, d->err));
    if (!s) return ree_fail(d->err, REE_INVALID, "'%s' is missing", key);
    *out = ree_arena_strdup(d->arena, s);
    return *out ? REE_OK : ree_no_memory(d->err);
}

static enum ree_status take_digest(struct decoder *d, const cJSON *object, const char *key,
                                   ree_digest out) {
    const char *s = NULL;
    REE_TRY(ree_json_string(object, key, &s, d->err));
    if (!s || !ree_unhex(s, out))
        return ree_fail(d->err, REE_INVALID, "'%s' is not a SHA-256", key);
    return REE_OK;
}

static enum ree_status take_hex(struct decoder *d, const cJSON *object, const char *key,
                                char out[65]) {
    ree_digest digest;
    REE_TRY(take_digest(d, object, key, digest));
    ree_hex(digest, out);
    return REE_OK;
}

// Finds an array member and allocates memory for as many items as the array has.
static enum ree_status take_array(struct decoder *d, const cJSON *object, const char *key,
                                  size_t size, const cJSON **out, uint32_t *out_n,
                                  void *out_things) {
    *out = ree_json_find(object, key);
    if (!cJSON_IsArray(*out)) return ree_fail(d->err, REE_INVALID, "'%s' is not an array", key);
    *out_n = (uint32_t)cJSON_GetArraySize(*out);
    void *things = ree_arena_alloc_array(d->arena, (size_t)*out_n + 1, size);
    if (!things) return ree_no_memory(d->err);
    memcpy(out_things, &things, sizeof things);
    return REE_OK;
}

static enum ree_status is_object(struct decoder *d, const cJSON *item, const char *what) {
    return cJSON_IsObject(item) ? REE_OK
                                : ree_fail(d->err, REE_INVALID, "a %s is not an object", what);
}

static enum ree_status take_inputs(struct decoder *d, const cJSON *root,
                                   struct ree_trace_header *h) {
    const cJSON *array, *item;
    REE_TRY(take_array(d, root, "inputs", sizeof *h->inputs, &array, &h->n_inputs, &h->inputs));
    struct ree_trace_input *input = h->inputs;
    cJSON_ArrayForEach(item, array) {
        int64_t axis = -1;
        REE_TRY(is_object(d, item, "input"));
        REE_TRY(take_string(d, item, "name", &input->name));
        REE_TRY(ree_json_int(item, "cache_axis", 0, REE_MAX_RANK - 1, &axis, d->err));
        (input++)->cache_axis = (int32_t)axis;
    }
    return REE_OK;
}

static enum ree_status take_constants(struct decoder *d, const cJSON *root,
                                      struct ree_trace_header *h) {
    const cJSON *array, *item;
    REE_TRY(take_array(d, root, "constants", sizeof *h->constants, &array, &h->n_constants,
                       &h->constants));
    struct ree_trace_constant *constant = h->constants;
    cJSON_ArrayForEach(item, array) {
        REE_TRY(is_object(d, item, "constant"));
        REE_TRY(take_string(d, item, "name", &constant->name));
        REE_TRY(take_digest(d, item, "sha256", (constant++)->digest));
    }
    return REE_OK;
}

static enum ree_status take_node(struct decoder *d, const cJSON *item,
                                 struct ree_trace_node *node) {
    const cJSON *array, *number;
    int64_t value;
    REE_TRY(is_object(d, item, "node"));
    REE_TRY(take_string(d, item, "name", &node->name));
    REE_TRY(take_string(d, item, "domain", &node->domain));
    REE_TRY(take_string(d, item, "op_type", &node->op_type));
    REE_TRY(ree_json_need_int(item, "opset", INT32_MIN, INT32_MAX, &node->opset, d->err));
    REE_TRY(take_digest(d, item, "attributes_sha256", node->attributes));
    REE_TRY(take_array(d, item, "inputs", sizeof *node->inputs, &array, &node->n_inputs,
                       &node->inputs));
    int32_t *input = node->inputs;
    cJSON_ArrayForEach(number, array) {
        if (!ree_json_is_whole(number, REE_TRACE_OMITTED, INT32_MAX, &value))
            return ree_fail(d->err, REE_INVALID, "an input of node '%s' is not a value",
                            node->name);
        *input++ = (int32_t)value;
    }
    REE_TRY(take_array(d, item, "outputs", sizeof *node->omitted, &array, &node->n_outputs,
                       &node->omitted));
    bool *omitted = node->omitted;
    cJSON_ArrayForEach(number, array) {
        if (!ree_json_is_whole(number, 0, 1, &value))
            return ree_fail(d->err, REE_INVALID, "an output of node '%s' is neither 0 nor 1",
                            node->name);
        *omitted++ = value == 0;
    }
    return REE_OK;
}

static enum ree_status take_header(struct decoder *d, const cJSON *root,
                                   struct ree_trace_header *h) {
    const char *schema = NULL;
    int64_t chunk = 0;
    REE_TRY(ree_json_string(root, "schema", &schema, d->err));
    for (uint32_t version = REE_TRACE_NAMED; schema && version <= REE_TRACE_LATEST; version++)
        if (strcmp(schema, schema_of(version)) == 0) h->version = version;
    if (!h->version)
        return ree_fail(d->err, REE_INVALID, "'schema' is neither ree-trace/2 nor ree-trace/1");
    const cJSON *model = ree_json_find(root, "model"), *array, *item;
    if (!cJSON_IsObject(model)) return ree_fail(d->err, REE_INVALID, "'model' is not an object");
    REE_TRY(take_hex(d, model, "graph_sha256", h->graph_sha256));
    REE_TRY(take_hex(d, model, "weights_sha256", h->weights_sha256));
    REE_TRY(take_string(d, root, "numerics", &h->numerics));
    REE_TRY(take_string(d, root, "operation_set", &h->operation_set));
    REE_TRY(ree_json_need_int(root, "prefill_chunk", 0, UINT32_MAX, &chunk, d->err));
    h->prefill_chunk = (uint32_t)chunk;
    REE_TRY(take_inputs(d, root, h));
    REE_TRY(take_constants(d, root, h));
    REE_TRY(take_array(d, root, "nodes", sizeof *h->nodes, &array, &h->n_nodes, &h->nodes));
    struct ree_trace_node *node = h->nodes;
    cJSON_ArrayForEach(item, array) REE_TRY(take_node(d, item, node++));
    return ree_trace_header_complete(h, d->arena, d->err);
}

// Rejects any text that encoding would not reproduce exactly: unknown fields and other layouts
// would be lost.
static enum ree_status compare_text(struct decoder *d, const struct ree_trace_header *h,
                                    const void *text, size_t nbytes) {
    struct ree_strbuf own;
    ree_strbuf_init(&own);
    enum ree_status status = ree_trace_header_encode(h, &own, d->err);
    if (status == REE_OK && (own.size != nbytes || memcmp(own.data, text, nbytes) != 0))
        status =
            ree_fail(d->err, REE_INVALID, "it has unknown fields, or is not in canonical form");
    ree_strbuf_finish(&own);
    return status;
}

enum ree_status ree_trace_header_decode(const void *text, size_t nbytes, struct ree_arena *arena,
                                        struct ree_trace_header *out, struct ree_error *err) {
    struct decoder d = {arena, err};
    cJSON *root;
    memset(out, 0, sizeof *out);
    REE_TRY(ree_json_parse_strict(text, nbytes, &root, err));
    enum ree_status status =
        cJSON_IsObject(root) ? REE_OK : ree_fail(err, REE_INVALID, "it is not an object");
    if (status == REE_OK) status = take_header(&d, root, out);
    cJSON_Delete(root);
    if (status == REE_OK) status = compare_text(&d, out, text, nbytes);
    return status;
}
