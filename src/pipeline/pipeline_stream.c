// Runs models that are larger than the memory of their devices. The model has as many stages as
// that requires, and a stage's weights are on the device only while the stage runs. Meanwhile a
// thread reads ahead the file pages of the next stage. The pages of a stage that has run are
// released.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/ir/mapping.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "pipeline/pipeline_internal.h"

// Pages

// Adds the weight's pages to the stage's ranges if they are mapped from a file.
static void add_range(struct ree_pipeline_stage *stage, const struct ree_mapping *mappings,
                      const struct ree_value *value, bool is_table) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)value->data;
    for (const struct ree_mapping *m = mappings; m; m = m->next) {
        uintptr_t first = (uintptr_t)m->data;
        if (!m->is_file || at < first || at - first >= m->size) continue;
        struct ree_page_range *range = &stage->ranges[stage->n_ranges++];
        range->data = (void *)(at / page * page);
        range->size = at + value->nbytes - at / page * page;
        range->is_table = is_table;
        return;
    }
}

static void add_ranges(struct ree_pipeline_stage *stage, const struct ree_graph *graph,
                       const struct ree_mapping *mappings, const bool *read) {
    for (size_t i = 0; i < graph->n_values; i++)
        if (graph->values[i]->data && graph->values[i]->nbytes)
            add_range(stage, mappings, graph->values[i], read && !read[i]);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_attrs; k++)
            if (graph->nodes[i]->attrs[k].graph)
                add_ranges(stage, graph->nodes[i]->attrs[k].graph, mappings, NULL);
}

static void note_read(void *user, struct ree_value **use) {
    const struct ree_graph *graph = (*use)->graph;
    bool *read = user;
    if (graph && !graph->parent) read[(*use)->id] = true;
}

static enum ree_status find_ranges(struct ree_pipeline_stage *stage, const struct ree_graph *whole,
                                   struct ree_error *err) {
    const struct ree_graph *graph = stage->model->graph;
    bool *read =
        ree_alloc_zeroed(graph->n_values + 1, sizeof *read); // per value: a run may read all of it
    stage->ranges = ree_alloc_zeroed((size_t)stage->model->n_values + 1, sizeof *stage->ranges);
    if (!stage->ranges || !read) {
        ree_free(read);
        return ree_no_memory(err);
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        // Gather and GatherBlockQuantized read some rows of their tables.
        if (strcmp(node->op_type, "Gather") != 0 &&
            strcmp(node->op_type, "GatherBlockQuantized") != 0)
            ree_node_visit_uses(node, note_read, read);
    }
    add_ranges(stage, graph, whole->mappings, read);
    ree_free(read);
    return REE_OK;
}

// Gives advice about the stage's pages to the system. They are clean pages of a mapped file, so
// after a release they are read again on the next access.
static void advise(const struct ree_pipeline_stage *stage, int advice) {
    for (size_t i = 0; i < stage->n_ranges; i++)
        if (advice != MADV_WILLNEED || !stage->ranges[i].is_table)
            (void)madvise(stage->ranges[i].data, stage->ranges[i].size, advice);
}

static void *read_ahead(void *user) {
    struct ree_pipeline *p = user;
    REE_FLOAT_ENV_WORKER();
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        if (p->ahead == REE_NO_INDEX) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        const struct ree_pipeline_stage *stage = &p->stages[p->ahead];
        p->ahead = REE_NO_INDEX;
        pthread_mutex_unlock(&p->lock);
        advise(stage, MADV_WILLNEED);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

enum ree_status ree_pipeline_stream(struct ree_pipeline *p, struct ree_error *err) {
    for (size_t i = 0; i < p->n_workers; i++)
        p->workers[i].memory.limit = p->max_memory ? p->max_memory : UINT64_MAX;
    for (size_t i = 0; i < p->n_stages; i++)
        if (p->stages[i].session)
            p->stages[i].session->memory = &p->workers[p->stages[i].device].memory;
    if (!p->max_memory || !p->divided || p->n_stages == 1) return REE_OK; // all weights stay loaded
    for (size_t i = 0; i < p->n_stages; i++)
        if (p->stages[i].session) REE_TRY(find_ranges(&p->stages[i], p->model->graph, err));
    // Copies of weights would have to be made again for each run of a stage. For a single token
    // that takes longer than reading the weights in place.
    for (size_t i = 0; i < p->n_workers; i++)
        p->workers[i].memory.no_copies = true;
    p->ahead = REE_NO_INDEX;
    if (pthread_create(&p->reader, NULL, read_ahead, p) != 0)
        return ree_fail(err, REE_NO_MEMORY, "cannot start the thread that reads ahead");
    p->streams = true;
    return REE_OK;
}

enum ree_status ree_pipeline_load(struct ree_pipeline *p, size_t number, struct ree_error *err) {
    if (!p->streams) return REE_OK;
    size_t next = p->first + (number - p->first + 1) % p->n_local;
    pthread_mutex_lock(&p->lock);
    p->ahead = next;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return ree_session_load(p->stages[number].session, err);
}

void ree_pipeline_unload(struct ree_pipeline *p, size_t number) {
    if (!p->streams) return;
    ree_session_unload(p->stages[number].session);
    advise(&p->stages[number], MADV_DONTNEED);
}
