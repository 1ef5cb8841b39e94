// Encodes a claim. cJSON's add functions return NULL if memory is exhausted, and accept NULL.
#include "dispute/claim.h"
#include "base/status.h"
#include "base/canonical_json.h"

static bool add_hex(cJSON *object, const char *key, const ree_digest digest) {
    char hex[65];
    ree_hex(digest, hex);
    return cJSON_AddStringToObject(object, key, hex) != NULL;
}

static bool add_number(cJSON *object, const char *key, double x) {
    return cJSON_AddNumberToObject(object, key, x) != NULL;
}

static bool add_digests(cJSON *object, const char *key, uint32_t n, ree_digest *digests) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    bool ok = array != NULL;
    for (uint32_t i = 0; i < n && ok; i++) {
        char hex[65];
        ree_hex(digests[i], hex);
        ok = cJSON_AddItemToArray(array, cJSON_CreateString(hex));
    }
    return ok;
}

static bool add_proof(cJSON *object, const char *key, const struct ree_claim_proof *proof) {
    return add_digests(object, key, proof->n, proof->digests);
}

static bool add_header(cJSON *root, const struct ree_claim *c) {
    cJSON *o = cJSON_AddObjectToObject(root, "header");
    return o && (c->version == 1 || add_number(o, "trace", c->trace_version)) &&
           add_hex(o, "sha256", c->header) &&
           cJSON_AddStringToObject(o, "graph_sha256", c->graph_sha256) &&
           cJSON_AddStringToObject(o, "weights_sha256", c->weights_sha256) &&
           cJSON_AddStringToObject(o, "numerics", c->numerics) &&
           cJSON_AddStringToObject(o, "operation_set", c->operation_set) &&
           add_number(o, "prefill_chunk", c->prefill_chunk) &&
           add_number(o, "n_inputs", c->n_step_inputs) && add_number(o, "n_nodes", c->n_nodes);
}

static bool add_op(cJSON *root, const struct ree_claim *c) {
    cJSON *o = cJSON_AddObjectToObject(root, "op");
    const bool is_named = c->trace_version == REE_TRACE_NAMED; // otherwise no digest covers it
    return o && (!is_named || cJSON_AddStringToObject(o, "name", c->op.name)) &&
           cJSON_AddStringToObject(o, "domain", c->op.domain) &&
           cJSON_AddStringToObject(o, "op_type", c->op.op_type) &&
           add_number(o, "opset", (double)c->op.opset) &&
           add_hex(o, "attributes_sha256", c->op.attributes);
}

static bool add_step(cJSON *o, const struct ree_claim_opening *at) {
    return add_proof(o, "step_proof", &at->step_proof) &&
           add_hex(o, "inputs_root", at->inputs_root) && add_hex(o, "nodes_root", at->nodes_root);
}

static bool add_node(cJSON *o, const struct ree_claim_opening *at, uint32_t n_inputs,
                     uint32_t n_outputs) {
    return add_proof(o, "node_proof", &at->node_proof) &&
           add_digests(o, "inputs", n_inputs, at->inputs) &&
           add_digests(o, "outputs", n_outputs, at->outputs);
}

static bool add_side(cJSON *root, const char *key, const struct ree_claim *c, unsigned k) {
    const struct ree_claim_side *s = &c->sides[k];
    bool whole = c->kind == REE_CLAIM_OF_HEADER || c->kind == REE_CLAIM_OF_LENGTH;
    cJSON *o = cJSON_AddObjectToObject(root, key);
    bool ok =
        o && add_hex(o, "root", s->root) && add_number(o, "n_steps", (double)s->n_steps) &&
        (c->version == 1 || add_hex(o, "header_sha256", s->header)) &&
        (whole ? add_hex(o, "steps_top", s->steps_top) : add_hex(o, "steps_root", s->steps_root));
    if (ok && c->kind == REE_CLAIM_OF_NODE)
        ok = add_step(o, &s->at) && add_node(o, &s->at, c->n_inputs, c->n_outputs);
    if (ok && c->kind == REE_CLAIM_OF_INPUT)
        ok = add_step(o, &s->at) && add_hex(o, "input_sha256", s->input) &&
             add_proof(o, "input_proof", &s->input_proof);
    if (ok && c->has_before) {
        cJSON *before = cJSON_AddObjectToObject(o, "before");
        ok = before && add_step(before, &s->before) &&
             add_node(before, &s->before, c->before.n_inputs, c->before.n_outputs);
    }
    return ok;
}

static bool add_input(cJSON *array, const struct ree_claim *c, uint32_t i) {
    const struct ree_claim_input *in = &c->inputs[i];
    cJSON *o = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(array, o)) return false;
    if (in->source == REE_CLAIM_OMITTED) return cJSON_AddTrueToObject(o, "omitted") != NULL;
    static const char *const names[] = {"", "constant", "input", "node"};
    if (!add_number(o, names[in->source], in->index)) return false;
    if (in->source != REE_CLAIM_NODE && !add_hex(o, "sha256", in->digest)) return false;
    if (in->source == REE_CLAIM_CONSTANT) return true;
    // A node with many outputs, all of which are read, has a long record: it is stated once.
    if (in->source == REE_CLAIM_NODE && ree_claim_shares_record(c, i))
        return add_number(o, "output", in->output) && add_number(o, "record_of", in->record_of);
    if (in->source == REE_CLAIM_NODE &&
        !(add_number(o, "output", in->output) && add_hex(o, "op_sha256", in->op) &&
          add_digests(o, "inputs", in->n_inputs, in->inputs) &&
          add_digests(o, "outputs", in->n_outputs, in->outputs)))
        return false;
    return add_proof(o, "proof_a", &in->proofs[0]) && add_proof(o, "proof_b", &in->proofs[1]);
}

static bool add_before(cJSON *root, const struct ree_claim_before *before) {
    cJSON *o = cJSON_AddObjectToObject(root, "before");
    return o && add_number(o, "node", before->node) && add_number(o, "output", before->output) &&
           add_hex(o, "op_sha256", before->op);
}

// Adds the fields that a kind has in addition to the header and the sides.
static bool add_subject(cJSON *root, const struct ree_claim *c) {
    bool of_step = c->kind != REE_CLAIM_OF_HEADER && c->kind != REE_CLAIM_OF_LENGTH;
    bool ok = !of_step || add_number(root, "step", (double)c->step);
    if (ok && c->kind == REE_CLAIM_OF_INPUT) ok = add_number(root, "input", c->input);
    if (ok && c->has_before) ok = add_before(root, &c->before);
    if (!ok || c->kind != REE_CLAIM_OF_NODE) return ok;
    cJSON *inputs = add_number(root, "node", c->node) && add_op(root, c)
                        ? cJSON_AddArrayToObject(root, "inputs")
                        : NULL;
    ok = inputs != NULL;
    for (uint32_t i = 0; i < c->n_inputs && ok; i++)
        ok = add_input(inputs, c, i);
    return ok;
}

enum ree_status ree_claim_encode(const struct ree_claim *c, struct ree_strbuf *out,
                                 struct ree_error *err) {
    cJSON *root = cJSON_CreateObject();
    const char *schema = c->version == 1 ? REE_CLAIM_SCHEMA_1 : REE_CLAIM_SCHEMA;
    bool ok =
        cJSON_AddStringToObject(root, "schema", schema) &&
        (c->version == 1 || cJSON_AddStringToObject(root, "kind", ree_claim_kind_name(c->kind))) &&
        add_header(root, c) && add_subject(root, c) && add_side(root, "a", c, 0) &&
        add_side(root, "b", c, 1);
    enum ree_status status = ok ? ree_canonical_json(root, out, err) : ree_no_memory(err);
    cJSON_Delete(root);
    ree_strbuf_append(out, "\n", 1);
    if (status == REE_OK && out->failed) status = ree_no_memory(err);
    return status;
}
