#include "graph/partition/plan_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

const char *ree_partition_end(const struct ree_graph *graph, const struct ree_partition *partition,
                              size_t stage) {
    size_t end = partition->ends[stage];
    if (end == 0) return "";
    const struct ree_node *node = graph->nodes[partition->order[end - 1]];
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i]) return node->outputs[i]->name;
    return "";
}

// Writing

// Each item is added to its parent at once, so that a failure leaks nothing.
static bool add_number(cJSON *object, const char *key, uint64_t value) {
    return cJSON_AddNumberToObject(object, key, (double)value) != NULL;
}

static bool add_cut(cJSON *stage, const struct ree_cut *cut) {
    cJSON *item = cJSON_AddObjectToObject(stage, "cut");
    cJSON *values = item ? cJSON_AddArrayToObject(item, "values") : NULL;
    if (!values) return false;
    for (size_t i = 0; i < cut->n_values; i++)
        if (!cJSON_AddItemToArray(values, cJSON_CreateString(cut->values[i]->name))) return false;
    return add_number(item, "bytes_per_row", cut->nbytes) &&
           cJSON_AddStringToObject(item, "reason", cut->reason ? cut->reason : "");
}

static bool add_stage(cJSON *stages, const struct ree_plan_file *plan, size_t i, uint64_t total) {
    const struct ree_partition *p = plan->partition;
    const struct ree_stage_cost *cost = &p->costs[i];
    cJSON *stage = cJSON_CreateObject();
    if (!stage || !cJSON_AddItemToArray(stages, stage)) {
        cJSON_Delete(stage);
        return false;
    }
    bool is_last = i + 1 == p->n_stages;
    if (!is_last &&
        !cJSON_AddStringToObject(stage, "ends_with", ree_partition_end(plan->graph, p, i)))
        return false;
    if (plan->contents && !cJSON_AddStringToObject(stage, "contents", plan->contents[i]))
        return false;
    double share = total ? (double)cost->work / (double)total : 0;
    return add_number(stage, "nodes", cost->n_nodes) &&
           add_number(stage, "weight_bytes", cost->weight_bytes) &&
           add_number(stage, "work_bytes", cost->work_bytes) &&
           add_number(stage, "state_bytes_per_row", cost->kv_cache_bytes) &&
           add_number(stage, "flops_per_row", cost->flops) &&
           add_number(stage, "work", cost->work) &&
           cJSON_AddNumberToObject(stage, "share", share) &&
           (is_last || add_cut(stage, &p->cuts[i]));
}

static bool add_plan(cJSON *root, const struct ree_plan_file *plan) {
    const struct ree_partition *p = plan->partition;
    uint64_t total = 0;
    for (size_t i = 0; i < p->n_stages; i++)
        if (!ree_add_size(total, p->costs[i].work, &total)) total = UINT64_MAX;
    if (!cJSON_AddStringToObject(root, "schema", REE_PLAN_SCHEMA) ||
        !cJSON_AddStringToObject(root, "graph_sha256", plan->graph_sha256) ||
        !add_number(root, "n_partitions", p->n_stages) ||
        !add_number(root, "context", plan->context))
        return false;
    cJSON *stages = cJSON_AddArrayToObject(root, "stages");
    if (!stages) return false;
    for (size_t i = 0; i < p->n_stages; i++)
        if (!add_stage(stages, plan, i, total)) return false;
    return true;
}

enum ree_status ree_plan_file_print(const struct ree_plan_file *plan, struct ree_strbuf *out,
                                    struct ree_error *err) {
    cJSON *root = cJSON_CreateObject();
    char *text = root && add_plan(root, plan) ? cJSON_Print(root) : NULL;
    if (text) ree_strbuf_printf(out, "%s\n", text);
    bool done = text && !out->failed;
    cJSON_free(text);
    cJSON_Delete(root);
    return done ? REE_OK : ree_no_memory(err);
}

enum ree_status ree_plan_file_write(const char *path, const struct ree_plan_file *plan,
                                    struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_plan_file_print(plan, &text, err);
    if (status == REE_OK) status = ree_file_write(path, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}

// Reading

void ree_plan_ends_free(char **ends, size_t n) {
    for (size_t i = 0; ends && i < n; i++)
        ree_free(ends[i]);
    ree_free(ends);
}

static enum ree_status check_head(const cJSON *root, const char *graph_sha256,
                                  struct ree_error *err) {
    const char *schema = NULL, *hash = NULL;
    REE_TRY(ree_json_string(root, "schema", &schema, err));
    if (!schema)
        return ree_fail(err, REE_INVALID, "it is not a plan: it has no 'schema', expected '%s'",
                        REE_PLAN_SCHEMA);
    if (strcmp(schema, REE_PLAN_SCHEMA) != 0)
        return ree_fail(err, REE_UNSUPPORTED, "its schema is '%.64s', expected '%s'", schema,
                        REE_PLAN_SCHEMA);
    REE_TRY(ree_json_string(root, "graph_sha256", &hash, err));
    if (!hash)
        return ree_fail(err, REE_INVALID, "'graph_sha256', the hash of the graph, is missing");
    if (strcmp(hash, graph_sha256) != 0)
        return ree_fail(err, REE_INVALID,
                        "it is for another model: its graph has the SHA-256 %.64s, this model's "
                        "has %.64s",
                        hash, graph_sha256);
    return REE_OK;
}

static enum ree_status read_end(const cJSON *stage, size_t i, bool is_last, char **out,
                                struct ree_error *err) {
    const char *name = NULL;
    if (!cJSON_IsObject(stage)) return ree_fail(err, REE_INVALID, "stage %zu is not an object", i);
    if (ree_json_string(stage, "ends_with", &name, err) != REE_OK)
        return ree_fail_prefix(err, "stage %zu", i);
    if (is_last && name)
        return ree_fail(
            err, REE_INVALID,
            "stage %zu is the last and ends with the graph: it must not have 'ends_with'", i);
    if (is_last) return REE_OK;
    if (!name || !name[0])
        return ree_fail(
            err, REE_INVALID,
            "stage %zu: 'ends_with', the name of the value that its last node computes, is missing",
            i);
    *out = ree_strdup(name);
    return *out ? REE_OK : ree_no_memory(err);
}

static enum ree_status read_stages(const cJSON *root, char ***out_ends, size_t *out_n,
                                   struct ree_error *err) {
    const cJSON *stages = ree_json_find(root, "stages"), *stage;
    if (!cJSON_IsArray(stages) || !stages->child)
        return ree_fail(err, REE_INVALID, "'stages' is not a list with at least one stage");
    size_t n = 0;
    cJSON_ArrayForEach(stage, stages) n++;
    if (n > REE_MAX_STAGES)
        return ree_fail(err, REE_UNSUPPORTED, "it has %zu stages; at most %d are supported", n,
                        REE_MAX_STAGES);
    char **ends = ree_alloc_zeroed(n, sizeof *ends);
    if (!ends) return ree_no_memory(err);
    enum ree_status status = REE_OK;
    size_t i = 0;
    for (stage = stages->child; stage && status == REE_OK; stage = stage->next, i++)
        status = read_end(stage, i, i + 1 == n, &ends[i], err);
    if (status != REE_OK) {
        ree_plan_ends_free(ends, n);
        return status;
    }
    *out_ends = ends;
    *out_n = n - 1;
    return REE_OK;
}

enum ree_status ree_plan_parse(const void *text, size_t size, const char *graph_sha256,
                               char ***out_ends, size_t *out_n, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to prefix
    cJSON *root;
    *out_ends = NULL;
    *out_n = 0;
    if (size > REE_PLAN_MAX_BYTES)
        return ree_fail(err, REE_INVALID, "it has %zu bytes, too many for a plan", size);
    REE_TRY(ree_json_parse_object(text, size, &root, err));
    enum ree_status status = check_head(root, graph_sha256, err);
    if (status == REE_OK) status = read_stages(root, out_ends, out_n, err);
    cJSON_Delete(root);
    return status;
}

enum ree_status ree_plan_file_read(const char *path, const char *graph_sha256, char ***out_ends,
                                   size_t *out_n, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local;
    void *text;
    size_t size;
    *out_ends = NULL;
    *out_n = 0;
    REE_TRY(ree_file_read_small(path, REE_PLAN_MAX_BYTES, &text, &size, err));
    enum ree_status status = ree_plan_parse(text, size, graph_sha256, out_ends, out_n, err);
    ree_free(text);
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", path);
}
