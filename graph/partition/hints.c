#include "graph/partition/hints.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/partition/plan_file.h"

#define NO_STAGE (-1)

static const char *property_of(const struct ree_node_notes *notes) {
    for (size_t i = 0; i < notes->n_metadata; i++)
        if (strcmp(notes->metadata[i].key, REE_STAGE_PROPERTY) == 0)
            return notes->metadata[i].value;
    return NULL;
}

static bool parse_stage(const char *text, int32_t *out) {
    size_t n = strlen(text);
    if (n == 0 || n > 9 || strspn(text, "0123456789") != n) return false;
    *out = (int32_t)strtol(text, NULL, 10);
    return true;
}

// *out is NO_STAGE if the node requests no stage.
static enum ree_status stage_of(const struct ree_node *node, int32_t *out, struct ree_error *err) {
    const struct ree_node_notes *notes = node->notes;
    char label[256];
    *out = NO_STAGE;
    if (!notes) return REE_OK;
    const char *text = property_of(notes);
    if (notes->has_stage)
        *out = notes->stage;
    else if (text && !parse_stage(text, out))
        return ree_fail(err, REE_INVALID,
                        "%s: its metadata has the pipeline_stage '%.32s', expected a number",
                        ree_node_label(node, label, sizeof label), text);
    if ((notes->has_stage || text) && (*out < 0 || *out >= REE_MAX_STAGES))
        return ree_fail(err, REE_INVALID, "%s: names stage %d, expected 0 to %d",
                        ree_node_label(node, label, sizeof label), (int)*out, REE_MAX_STAGES - 1);
    return REE_OK;
}

static enum ree_status not_in_order(const struct ree_node *before, int32_t stage_before,
                                    const struct ree_node *node, int32_t stage,
                                    struct ree_error *err) {
    char a[256], b[256];
    return ree_fail(err, REE_INVALID,
                    "%s names stage %d, %s names stage %d, but the first comes before the second "
                    "in the order in which graphs are cut: such stages are not supported",
                    ree_node_label(before, a, sizeof a), (int)stage_before,
                    ree_node_label(node, b, sizeof b), (int)stage);
}

static const char *name_of(const struct ree_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i]) return node->outputs[i]->name;
    return "";
}

static enum ree_status add_end(const struct ree_node *node, char **ends, size_t *n,
                               struct ree_error *err) {
    ends[*n] = ree_strdup(name_of(node));
    if (!ends[*n]) return ree_no_memory(err);
    ++*n;
    return REE_OK;
}

static enum ree_status find_ends(const struct ree_graph *graph, const struct ree_partition *whole,
                                 bool *out_found, char **ends, size_t *n, struct ree_error *err) {
    const struct ree_node *last = NULL; // last node that requested a stage
    int32_t current = NO_STAGE;
    for (size_t i = 0; i < whole->n_order; i++) {
        const struct ree_node *node = graph->nodes[whole->order[i]];
        int32_t stage;
        REE_TRY(stage_of(node, &stage, err));
        if (stage == NO_STAGE) continue;
        if (stage < current) return not_in_order(last, current, node, stage, err);
        // Stages only increase, so there are at most REE_MAX_STAGES.
        if (last && stage > current)
            REE_TRY(add_end(graph->nodes[whole->order[i - 1]], ends, n, err));
        current = stage;
        last = node;
    }
    *out_found = last != NULL;
    return REE_OK;
}

enum ree_status ree_partition_hints(const struct ree_graph *graph,
                                    const struct ree_partition_options *options, bool *out_found,
                                    char ***out_ends, size_t *out_n, struct ree_error *err) {
    *out_found = false;
    *out_ends = NULL;
    *out_n = 0;
    bool any = false;
    for (size_t i = 0; i < graph->n_nodes && !any; i++)
        any = graph->nodes[i]->notes != NULL;
    if (!any) return REE_OK;
    // One stage: only the canonical order is needed.
    struct ree_partition_options one = {
        .n_stages = 1, .n_kv_caches = options->n_kv_caches, .kv_caches = options->kv_caches};
    struct ree_partition whole;
    REE_TRY(ree_partition_plan(graph, &one, &whole, err));
    char **ends = ree_alloc_zeroed(REE_MAX_STAGES, sizeof *ends);
    size_t n = 0;
    enum ree_status status =
        ends ? find_ends(graph, &whole, out_found, ends, &n, err) : ree_no_memory(err);
    ree_partition_finish(&whole);
    if (status != REE_OK || !*out_found) {
        ree_plan_ends_free(ends, n);
        return status;
    }
    *out_ends = ends;
    *out_n = n;
    return REE_OK;
}
