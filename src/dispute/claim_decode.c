// Decodes a claim: checks types and ranges. compare_text finds unknown fields and other layouts: it
// encodes the result again and compares the texts.
#include <string.h>

#include "dispute/claim.h"
#include "base/canonical_json.h"
#include "receipt/receipt_fields.h"

#define MAX_WHOLE ((int64_t)1 << 53)

static enum ree_status take_digest(const struct ree_fields *part, const char *key, ree_digest out,
                                   struct ree_error *err) {
    const cJSON *item = ree_field(part, key);
    if (!cJSON_IsString(item) || !ree_unhex(item->valuestring, out))
        return ree_fields_wrong(part, key, "a SHA-256", err);
    return REE_OK;
}

static enum ree_status take_hex(const struct ree_fields *part, const char *key, char out[65],
                                struct ree_error *err) {
    ree_digest digest;
    REE_TRY(take_digest(part, key, digest, err));
    ree_hex(digest, out);
    return REE_OK;
}

static enum ree_status take_u32(const struct ree_fields *part, const char *key, uint32_t *out,
                                struct ree_error *err) {
    int64_t value = -1;
    REE_TRY(ree_field_whole(part, key, 0, UINT32_MAX, &value, err));
    if (value < 0) return ree_fields_wrong(part, key, "a number", err);
    *out = (uint32_t)value;
    return REE_OK;
}

static enum ree_status take_u64(const struct ree_fields *part, const char *key, uint64_t *out,
                                struct ree_error *err) {
    int64_t value = -1;
    REE_TRY(ree_field_whole(part, key, 0, MAX_WHOLE, &value, err));
    if (value < 0) return ree_fields_wrong(part, key, "a number", err);
    *out = (uint64_t)value;
    return REE_OK;
}

static enum ree_status take_digests(const struct ree_fields *part, const char *key, uint32_t *out_n,
                                    ree_digest **out, struct ree_error *err) {
    const cJSON *array = ree_field(part, key), *item;
    if (!cJSON_IsArray(array)) return ree_fields_wrong(part, key, "an array", err);
    uint32_t n = (uint32_t)cJSON_GetArraySize(array), i = 0;
    *out = ree_arena_alloc_array(part->arena, (size_t)n + 1, sizeof **out);
    if (!*out) return ree_no_memory(err);
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsString(item) || !ree_unhex(item->valuestring, (*out)[i++]))
            return ree_fields_wrong(part, key, "a list of SHA-256", err);
    }
    *out_n = n;
    return REE_OK;
}

static enum ree_status take_proof(const struct ree_fields *part, const char *key,
                                  struct ree_claim_proof *out, struct ree_error *err) {
    REE_TRY(take_digests(part, key, &out->n, &out->digests, err));
    if (out->n > REE_MERKLE_MAX_PROOF)
        return ree_fail(err, REE_INVALID, "%s.%s has %u digests, more than a tree can have levels",
                        part->name, key, out->n);
    return REE_OK;
}

static enum ree_status take_header(const struct ree_fields *root, struct ree_claim *c,
                                   struct ree_error *err) {
    struct ree_fields part;
    REE_TRY(ree_fields_open(root, "header", "header",
                            "sha256 graph_sha256 weights_sha256 numerics operation_set "
                            "prefill_chunk n_inputs n_nodes",
                            c->version > 1 ? "trace" : "", &part, err));
    int64_t version = REE_TRACE_NAMED;
    if (c->version > 1 && !ree_field(&part, "trace"))
        return ree_fields_wrong(&part, "trace", "the version of the traces", err);
    REE_TRY(ree_field_whole(&part, "trace", REE_TRACE_NAMED, REE_TRACE_LATEST, &version, err));
    c->trace_version = (uint32_t)version;
    REE_TRY(take_digest(&part, "sha256", c->header, err));
    REE_TRY(take_hex(&part, "graph_sha256", c->graph_sha256, err));
    REE_TRY(take_hex(&part, "weights_sha256", c->weights_sha256, err));
    REE_TRY(ree_field_string(&part, "numerics", &c->numerics, err));
    REE_TRY(ree_field_string(&part, "operation_set", &c->operation_set, err));
    REE_TRY(take_u32(&part, "prefill_chunk", &c->prefill_chunk, err));
    REE_TRY(take_u32(&part, "n_inputs", &c->n_step_inputs, err));
    return take_u32(&part, "n_nodes", &c->n_nodes, err);
}

static enum ree_status take_op(const struct ree_fields *root, struct ree_claim *c,
                               struct ree_error *err) {
    struct ree_fields part;
    const bool is_named = c->trace_version == REE_TRACE_NAMED;
    REE_TRY(ree_fields_open(root, "op", "op",
                            is_named ? "name domain op_type opset attributes_sha256"
                                     : "domain op_type opset attributes_sha256",
                            "", &part, err));
    c->op.name = "";
    if (is_named) REE_TRY(ree_field_string(&part, "name", &c->op.name, err));
    REE_TRY(ree_field_string(&part, "domain", &c->op.domain, err));
    REE_TRY(ree_field_string(&part, "op_type", &c->op.op_type, err));
    REE_TRY(ree_field_whole(&part, "opset", INT32_MIN, INT32_MAX, &c->op.opset, err));
    return take_digest(&part, "attributes_sha256", c->op.attributes, err);
}

static enum ree_status take_step(const struct ree_fields *part, struct ree_claim_opening *out,
                                 struct ree_error *err) {
    REE_TRY(take_proof(part, "step_proof", &out->step_proof, err));
    REE_TRY(take_digest(part, "inputs_root", out->inputs_root, err));
    return take_digest(part, "nodes_root", out->nodes_root, err);
}

// Reads a party's record of a node. Both parties' records must have the same lengths. If
// `is_first`, the lengths are not known yet and are taken from this record.
static enum ree_status take_node(const struct ree_fields *part, bool is_first,
                                 struct ree_claim_opening *out, uint32_t *n_inputs,
                                 uint32_t *n_outputs, struct ree_error *err) {
    uint32_t inputs, outputs;
    REE_TRY(take_proof(part, "node_proof", &out->node_proof, err));
    REE_TRY(take_digests(part, "inputs", &inputs, &out->inputs, err));
    REE_TRY(take_digests(part, "outputs", &outputs, &out->outputs, err));
    if (!is_first && (inputs != *n_inputs || outputs != *n_outputs))
        return ree_fail(err, REE_INVALID, "the parties' records are of different lengths");
    *n_inputs = inputs;
    *n_outputs = outputs;
    return REE_OK;
}

static enum ree_status take_side_before(const struct ree_fields *side, struct ree_claim *c,
                                        unsigned k, struct ree_error *err) {
    struct ree_fields part;
    REE_TRY(ree_fields_open(side, "before", "before",
                            "step_proof inputs_root nodes_root node_proof inputs outputs", "",
                            &part, err));
    REE_TRY(take_step(&part, &c->sides[k].before, err));
    return take_node(&part, k == 0, &c->sides[k].before, &c->before.n_inputs, &c->before.n_outputs,
                     err);
}

// Reads the fields that a side has in this kind of claim. compare_text finds surplus fields.
static enum ree_status take_side(const struct ree_fields *root, struct ree_claim *c, unsigned k,
                                 struct ree_error *err) {
    struct ree_claim_side *s = &c->sides[k];
    struct ree_fields part;
    bool whole = c->kind == REE_CLAIM_OF_HEADER || c->kind == REE_CLAIM_OF_LENGTH;
    bool at = c->kind == REE_CLAIM_OF_NODE || c->kind == REE_CLAIM_OF_INPUT;
    REE_TRY(ree_fields_open(root, k ? "b" : "a", k ? "b" : "a", "root n_steps",
                            "header_sha256 steps_top steps_root step_proof inputs_root nodes_root "
                            "node_proof inputs outputs input_sha256 input_proof before",
                            &part, err));
    REE_TRY(take_digest(&part, "root", s->root, err));
    REE_TRY(take_u64(&part, "n_steps", &s->n_steps, err));
    memcpy(s->header, c->header, sizeof s->header);
    if (c->version > 1) REE_TRY(take_digest(&part, "header_sha256", s->header, err));
    if (whole) {
        REE_TRY(take_digest(&part, "steps_top", s->steps_top, err));
        ree_merkle_root_of_top(s->n_steps, s->steps_top, s->steps_root);
    } else {
        REE_TRY(take_digest(&part, "steps_root", s->steps_root, err));
    }
    if (at) REE_TRY(take_step(&part, &s->at, err));
    if (c->kind == REE_CLAIM_OF_NODE)
        REE_TRY(take_node(&part, k == 0, &s->at, &c->n_inputs, &c->n_outputs, err));
    if (c->kind == REE_CLAIM_OF_INPUT) {
        REE_TRY(take_digest(&part, "input_sha256", s->input, err));
        REE_TRY(take_proof(&part, "input_proof", &s->input_proof, err));
    }
    return c->has_before ? take_side_before(&part, c, k, err) : REE_OK;
}

static enum ree_status take_proofs(const struct ree_fields *part, struct ree_claim_input *in,
                                   struct ree_error *err) {
    REE_TRY(take_proof(part, "proof_a", &in->proofs[0], err));
    return take_proof(part, "proof_b", &in->proofs[1], err);
}

// Takes the record of a node from an earlier input.
static enum ree_status share_record(const struct ree_fields *part, const struct ree_claim *c,
                                    uint32_t i, struct ree_claim_input *in, struct ree_error *err) {
    REE_TRY(ree_fields_check(part, "node output record_of", "", err));
    REE_TRY(take_u32(part, "record_of", &in->record_of, err));
    const struct ree_claim_input *first = in->record_of < i ? &c->inputs[in->record_of] : NULL;
    if (c->version == 1 || !first || first->source != REE_CLAIM_NODE ||
        first->record_of != in->record_of || first->index != in->index)
        return ree_fail(err, REE_INVALID, "%s.record_of is not an earlier input of the same node",
                        part->name);
    memcpy(in->op, first->op, sizeof in->op);
    in->n_inputs = first->n_inputs;
    in->n_outputs = first->n_outputs;
    in->inputs = first->inputs;
    in->outputs = first->outputs;
    memcpy(in->proofs, first->proofs, sizeof in->proofs);
    return REE_OK;
}

static enum ree_status take_record(const struct ree_fields *part, uint32_t i,
                                   struct ree_claim_input *in, struct ree_error *err) {
    in->record_of = i;
    REE_TRY(
        ree_fields_check(part, "node output op_sha256 inputs outputs proof_a proof_b", "", err));
    REE_TRY(take_digest(part, "op_sha256", in->op, err));
    REE_TRY(take_digests(part, "inputs", &in->n_inputs, &in->inputs, err));
    REE_TRY(take_digests(part, "outputs", &in->n_outputs, &in->outputs, err));
    return take_proofs(part, in, err);
}

static enum ree_status take_input(struct ree_fields part, struct ree_claim *c, uint32_t i,
                                  struct ree_error *err) {
    struct ree_claim_input *in = &c->inputs[i];
    if (ree_field(&part, "omitted")) {
        in->source = REE_CLAIM_OMITTED;
        return ree_fields_check(&part, "omitted", "", err);
    }
    if (ree_field(&part, "constant")) {
        in->source = REE_CLAIM_CONSTANT;
        REE_TRY(ree_fields_check(&part, "constant sha256", "", err));
        REE_TRY(take_u32(&part, "constant", &in->index, err));
        return take_digest(&part, "sha256", in->digest, err);
    }
    if (ree_field(&part, "input")) {
        in->source = REE_CLAIM_INPUT;
        REE_TRY(ree_fields_check(&part, "input sha256 proof_a proof_b", "", err));
        REE_TRY(take_u32(&part, "input", &in->index, err));
        REE_TRY(take_digest(&part, "sha256", in->digest, err));
        return take_proofs(&part, in, err);
    }
    in->source = REE_CLAIM_NODE;
    REE_TRY(take_u32(&part, "node", &in->index, err));
    REE_TRY(take_u32(&part, "output", &in->output, err));
    REE_TRY(ree_field(&part, "record_of") ? share_record(&part, c, i, in, err)
                                          : take_record(&part, i, in, err));
    if (in->output >= in->n_outputs)
        return ree_fail(err, REE_INVALID, "%s.output is not an output of its node", part.name);
    memcpy(in->digest, in->outputs[in->output], sizeof in->digest);
    return REE_OK;
}

static enum ree_status take_inputs(const struct ree_fields *root, struct ree_claim *c,
                                   struct ree_error *err) {
    const cJSON *array = ree_field(root, "inputs"), *item;
    if (!cJSON_IsArray(array) || (uint32_t)cJSON_GetArraySize(array) != c->n_inputs)
        return ree_fields_wrong(root, "inputs", "a list of the length of the parties' records",
                                err);
    c->inputs = ree_arena_alloc_array(&c->arena, (size_t)c->n_inputs + 1, sizeof *c->inputs);
    if (!c->inputs) return ree_no_memory(err);
    uint32_t i = 0;
    cJSON_ArrayForEach(item, array) {
        struct ree_fields part = {item, "inputs[]", &c->arena};
        if (!cJSON_IsObject(item)) return ree_fail(err, REE_INVALID, "inputs[] is not an object");
        REE_TRY(take_input(part, c, i++, err));
    }
    return REE_OK;
}

static enum ree_status take_before(const struct ree_fields *root, struct ree_claim *c,
                                   struct ree_error *err) {
    struct ree_fields part;
    REE_TRY(ree_fields_open(root, "before", "before", "node output op_sha256", "", &part, err));
    REE_TRY(take_u32(&part, "node", &c->before.node, err));
    REE_TRY(take_u32(&part, "output", &c->before.output, err));
    return take_digest(&part, "op_sha256", c->before.op, err);
}

static enum ree_status take_kind(const struct ree_fields *root, struct ree_claim *c,
                                 struct ree_error *err) {
    const char *schema = NULL, *kind = NULL;
    REE_TRY(ree_field_string(root, "schema", &schema, err));
    if (strcmp(schema, REE_CLAIM_SCHEMA_1) == 0) {
        c->version = 1;
        c->kind = REE_CLAIM_OF_NODE;
        return REE_OK;
    }
    if (strcmp(schema, REE_CLAIM_SCHEMA) != 0)
        return ree_fields_wrong(root, "schema", REE_CLAIM_SCHEMA " or " REE_CLAIM_SCHEMA_1, err);
    REE_TRY(ree_field_string(root, "kind", &kind, err));
    for (unsigned k = REE_CLAIM_OF_NODE; kind && k <= REE_CLAIM_OF_LENGTH; k++)
        if (strcmp(kind, ree_claim_kind_name((enum ree_claim_kind)k)) == 0) {
            c->kind = (enum ree_claim_kind)k;
            return REE_OK;
        }
    return ree_fields_wrong(root, "kind", "node, input, token, header or length", err);
}

static enum ree_status take_claim(const cJSON *json, struct ree_claim *c, struct ree_error *err) {
    struct ree_fields root = {json, "claim", &c->arena};
    REE_TRY(
        ree_fields_check(&root, "schema header a b", "kind step input before node op inputs", err));
    REE_TRY(take_kind(&root, c, err));
    REE_TRY(take_header(&root, c, err));
    if (c->kind != REE_CLAIM_OF_HEADER && c->kind != REE_CLAIM_OF_LENGTH)
        REE_TRY(take_u64(&root, "step", &c->step, err));
    if (c->kind == REE_CLAIM_OF_INPUT) REE_TRY(take_u32(&root, "input", &c->input, err));
    c->has_before = c->kind == REE_CLAIM_OF_TOKEN ||
                    (c->kind == REE_CLAIM_OF_INPUT && ree_field(&root, "before"));
    if (c->has_before) REE_TRY(take_before(&root, c, err));
    if (c->kind == REE_CLAIM_OF_NODE) {
        REE_TRY(take_u32(&root, "node", &c->node, err));
        REE_TRY(take_op(&root, c, err));
    }
    REE_TRY(take_side(&root, c, 0, err));
    REE_TRY(take_side(&root, c, 1, err));
    return c->kind == REE_CLAIM_OF_NODE ? take_inputs(&root, c, err) : REE_OK;
}

static enum ree_status compare_text(const struct ree_claim *c, const void *text, size_t nbytes,
                                    struct ree_error *err) {
    struct ree_strbuf own;
    ree_strbuf_init(&own);
    enum ree_status status = ree_claim_encode(c, &own, err);
    if (status == REE_OK && (own.size != nbytes || memcmp(own.data, text, nbytes) != 0))
        status = ree_fail(err, REE_INVALID, "the claim is not in canonical form");
    ree_strbuf_finish(&own);
    return status;
}

enum ree_status ree_claim_decode(const void *text, size_t nbytes, struct ree_claim **out,
                                 struct ree_error *err) {
    *out = NULL;
    cJSON *json;
    struct ree_claim *c = ree_claim_create();
    if (!c) return ree_no_memory(err);
    enum ree_status status = ree_json_parse_strict(text, nbytes, &json, err);
    if (status == REE_OK) {
        status = take_claim(json, c, err);
        cJSON_Delete(json);
    }
    if (status == REE_OK) status = compare_text(c, text, nbytes, err);
    if (status != REE_OK) {
        ree_claim_destroy(c);
        return status;
    }
    *out = c;
    return REE_OK;
}
