// The public functions of ree/plan.h.
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/partition/plan_file.h"
#include "plan/model_plan.h"

struct ree_plan {
    struct ree_model_plan plan;
    struct ree_arena arena; // for the fields below
    const char **contents;  // per stage: description of what the stage contains
    size_t n_branches;
    struct ree_plan_branch *branches;
};

// Finds the branches of merged decoders that do not run in both phases, prefill and decode. `out`
// NULL: only counts them.
static enum ree_status find_branches(struct ree_plan *p, struct ree_plan_branch *out,
                                     struct ree_error *err) {
    const struct ree_graph *graph = p->plan.model->graph;
    p->n_branches = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i];
        for (size_t k = 0; k < node->n_attrs; k++) {
            const struct ree_attr *branch = &node->attrs[k];
            if (!branch->graph) continue;
            uint32_t phases = ree_branch_phases(graph, node, branch);
            if (phases == (REE_PHASE_PREFILL | REE_PHASE_DECODE)) continue;
            size_t at = p->n_branches++;
            if (!out) continue;
            char label[320];
            out[at].phases = ree_phases_name(phases);
            out[at].branch = branch->name;
            out[at].node = ree_arena_strdup(&p->arena, ree_node_label(node, label, sizeof label));
            if (!out[at].node) return ree_no_memory(err);
        }
    }
    return REE_OK;
}

static enum ree_status describe(struct ree_plan *p, struct ree_error *err) {
    struct ree_model_plan *plan = &p->plan;
    size_t n = plan->partition.n_stages;
    p->contents = ree_arena_alloc_array(&p->arena, n, sizeof *p->contents);
    if (!p->contents) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct ree_strbuf text;
        ree_strbuf_init(&text);
        ree_stage_contents(plan->model->graph, &plan->annotations, &plan->partition, i, &text);
        char *contents = ree_strbuf_take(&text);
        p->contents[i] = contents ? ree_arena_strdup(&p->arena, contents) : NULL;
        ree_free(contents);
        if (!p->contents[i]) return ree_no_memory(err);
    }
    if (!plan->options.n_kv_caches) return REE_OK;
    REE_TRY(find_branches(p, NULL, err));
    p->branches = ree_arena_alloc_array(&p->arena, p->n_branches + 1, sizeof *p->branches);
    return p->branches ? find_branches(p, p->branches, err) : ree_no_memory(err);
}

enum ree_status ree_plan_create(const char *model, const struct ree_plan_options *requested,
                                struct ree_plan **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_plan_options options;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = NULL;
    REE_TRY(ree_options_read(&options, sizeof options, requested, "ree_plan_options", err));
    if (options.plan_path && options.n_partitions)
        return ree_fail(err, REE_INVALID, "plan_path and n_partitions exclude each other");
    if (options.n_partitions > REE_MAX_STAGES)
        return ree_fail(err, REE_INVALID, "n_partitions is %u; the maximum is %d",
                        options.n_partitions, REE_MAX_STAGES);
    struct ree_plan *p = ree_alloc_zeroed(1, sizeof *p);
    if (!p) return ree_no_memory(err);
    ree_arena_init(&p->arena);
    enum ree_status status = ree_model_plan_make(model, &options, &p->plan, err);
    if (status == REE_OK) status = describe(p, err);
    if (status == REE_OK)
        *out = p;
    else
        ree_plan_destroy(p);
    return status;
}

void ree_plan_destroy(struct ree_plan *p) {
    REE_FLOAT_ENV_API();
    if (!p) return;
    ree_model_plan_finish(&p->plan);
    ree_arena_finish(&p->arena);
    ree_free(p);
}

enum ree_status ree_plan_info(const struct ree_plan *p, struct ree_plan_info *out,
                              struct ree_error *err) {
    const struct ree_plan_info info = {.graph_sha256 = p->plan.graph_sha256,
                                       .origin = p->plan.origin,
                                       .n_stages = p->plan.partition.n_stages,
                                       .is_language_model = p->plan.is_language_model,
                                       .n_kv_caches = p->plan.options.n_kv_caches,
                                       .context = p->plan.partition.context,
                                       .n_branches = p->n_branches};
    return ree_stats_write(out, &info, sizeof info, "ree_plan_info", err);
}

enum ree_status ree_plan_stage(const struct ree_plan *p, size_t stage, struct ree_plan_stage *out,
                               struct ree_error *err) {
    const struct ree_partition *partition = &p->plan.partition;
    if (stage >= partition->n_stages)
        return ree_fail(err, REE_NOT_FOUND, "stage %zu does not exist; the plan has %zu", stage,
                        partition->n_stages);
    const struct ree_stage_cost *cost = &partition->costs[stage];
    struct ree_plan_stage info = {.n_nodes = cost->n_nodes,
                                  .weight_bytes = cost->weight_bytes,
                                  .kv_cache_bytes = cost->kv_cache_bytes,
                                  .flops = cost->flops,
                                  .work = cost->work,
                                  .contents = p->contents[stage]};
    if (stage + 1 < partition->n_stages) {
        const struct ree_cut *cut = &partition->cuts[stage];
        info.ends_with = ree_partition_end(p->plan.model->graph, partition, stage);
        info.cut_reason = cut->reason;
        info.n_cut_values = cut->n_values;
        info.cut_bytes = cut->nbytes;
    }
    return ree_stats_write(out, &info, sizeof info, "ree_plan_stage", err);
}

enum ree_status ree_plan_branch(const struct ree_plan *p, size_t branch,
                                struct ree_plan_branch *out, struct ree_error *err) {
    if (branch >= p->n_branches)
        return ree_fail(err, REE_NOT_FOUND, "branch %zu does not exist; the model has %zu", branch,
                        p->n_branches);
    return ree_stats_write(out, &p->branches[branch], sizeof *p->branches, "ree_plan_branch", err);
}

// Results

static struct ree_plan_file file_of(const struct ree_plan *p) {
    return (struct ree_plan_file){.graph = p->plan.model->graph,
                                  .partition = &p->plan.partition,
                                  .graph_sha256 = p->plan.graph_sha256,
                                  .context = p->plan.partition.context,
                                  .contents = p->contents};
}

enum ree_status ree_plan_json(const struct ree_plan *p, char **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct ree_plan_file file = file_of(p);
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    *out = NULL;
    enum ree_status status = ree_plan_file_print(&file, &text, err);
    if (status == REE_OK)
        *out = ree_strbuf_take(&text);
    else
        ree_strbuf_finish(&text);
    return status == REE_OK && !*out ? ree_no_memory(err) : status;
}

enum ree_status ree_plan_save(const struct ree_plan *p, const char *path, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct ree_plan_file file = file_of(p);
    return ree_plan_file_write(path, &file, err);
}

enum ree_status ree_plan_write_model(const struct ree_plan *p, const char *path,
                                     struct ree_error *err) {
    REE_FLOAT_ENV_API();
    return ree_model_plan_write(&p->plan, path, err);
}
