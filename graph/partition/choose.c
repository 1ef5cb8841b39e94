#include "graph/partition/choose.h"

#include "graph/partition/hints.h"
#include "graph/partition/plan_file.h"

// The arguments of ree_partition_choose. Error messages name the plan's source: the plan file, or
// the stages that the nodes request.
struct chooser {
    const struct ree_graph *graph;
    struct ree_partition_options options;
    const struct ree_partition_request *request;
    size_t least; // minimum number of stages
    struct ree_partition *out;
    struct ree_error *err;
};

static enum ree_status take(struct chooser *c, const char *const *ends, size_t n) {
    c->options.n_stages = n + 1;
    REE_TRY(ree_partition_from_cuts(c->graph, &c->options, ends, c->out, c->err));
    if (!c->request->devices.max_memory) return REE_OK;
    enum ree_status status = ree_partition_check_fit(c->out, &c->request->devices, c->err);
    if (status != REE_OK) ree_partition_finish(c->out);
    return status;
}

static enum ree_status take_file(struct chooser *c) {
    const struct ree_partition_request *r = c->request;
    char **ends;
    size_t n;
    REE_TRY(ree_plan_file_read(r->plan_path, r->graph_sha256, &ends, &n, c->err));
    enum ree_status status =
        r->n_stages && r->n_stages != n + 1
            ? ree_fail(c->err, REE_INVALID, "has %zu stages, but %zu are requested", n + 1,
                       r->n_stages)
            : take(c, (const char *const *)ends, n);
    ree_plan_ends_free(ends, n);
    if (status != REE_OK) ree_fail_prefix(c->err, "%s", r->plan_path);
    return status;
}

static enum ree_status take_hints(struct chooser *c, bool *out_found) {
    char **ends;
    size_t n;
    REE_TRY(ree_partition_hints(c->graph, &c->options, out_found, &ends, &n, c->err));
    if (!*out_found) return REE_OK;
    enum ree_status status =
        n + 1 < c->least ? ree_fail(c->err, REE_INVALID,
                                    "there are %zu stages, fewer than the %zu devices or processes",
                                    n + 1, c->least)
                         : take(c, (const char *const *)ends, n);
    ree_plan_ends_free(ends, n);
    return status;
}

enum ree_status ree_partition_choose(const struct ree_graph *graph,
                                     const struct ree_partition_options *options,
                                     const struct ree_partition_request *request,
                                     struct ree_partition *out, enum ree_plan_origin *out_origin,
                                     struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to prefix
    const struct ree_partition_devices *d = &request->devices;
    struct chooser c = {
        .graph = graph, .options = *options, .request = request, .out = out, .err = err};
    *out = (struct ree_partition){.n_stages = 0};
    c.options.weight_limits = NULL;
    if (!c.options.context) c.options.context = REE_PARTITION_CONTEXT;
    // Caches that never get longer than context_length need no more capacity.
    if (d->max_memory && request->context_length > 0 &&
        (uint64_t)request->context_length < c.options.context) {
        uint64_t context = (uint64_t)request->context_length;
        c.options.context =
            context +
            (REE_PARTITION_POSITIONS - context % REE_PARTITION_POSITIONS) % REE_PARTITION_POSITIONS;
    }
    c.least = d->n_devices > d->n_ranks ? d->n_devices : d->n_ranks;
    if (c.least == 0) c.least = 1;
    *out_origin = REE_PLAN_REQUESTED;
    if (request->plan_path) return take_file(&c);
    if (request->ends && !request->n_stages)
        return ree_fail(err, REE_INVALID, "ends of stages are given without the number of stages");
    if (request->ends) return take(&c, request->ends, request->n_stages - 1);
    if (!request->n_stages) {
        bool found;
        *out_origin = REE_PLAN_HINTED;
        enum ree_status status = take_hints(&c, &found);
        if (status != REE_OK)
            return ree_fail_prefix(
                err, "the stages that its nodes name (--n-partitions overrides them)");
        if (found) return REE_OK;
    }
    *out_origin = REE_PLAN_FOUND;
    c.options.n_stages = request->n_stages;
    if (d->max_memory) return ree_partition_fit(graph, &c.options, d, c.least, out, err);
    if (!request->n_stages) c.options.n_stages = c.least;
    return ree_partition_plan(graph, &c.options, out, err);
}
