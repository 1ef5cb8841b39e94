// Describes the contents of a stage briefly, such as "embedding, layers 0-3, attention of layer 4".
#include <stdlib.h>
#include <string.h>

#include "graph/partition/annotate.h"
#include "base/memory.h"

// The number of roles that are counted: all before REE_NODE_ROLE_CONTROL, which is the last.
#define N_ROLES REE_NODE_ROLE_CONTROL

struct count {
    size_t all[N_ROLES], here[N_ROLES]; // nodes in the graph, and in the stage
};

struct listing {
    struct ree_strbuf *out;
    bool begun;
};

static const char *comma(struct listing *list) {
    const char *text = list->begun ? ", " : "";
    list->begun = true;
    return text;
}

static bool is_whole(const struct count *c) {
    return memcmp(c->all, c->here, sizeof c->all) == 0;
}

static bool is_absent(const struct count *c) {
    for (size_t i = 0; i < N_ROLES; i++)
        if (c->here[i]) return false;
    return true;
}

// Names the part of a layer that the stage contains. It does not matter which stage contains the
// layer's norms.
static void append_part(struct listing *list, const struct count *c, int32_t layer) {
    static const enum ree_node_role parts[] = {REE_NODE_ROLE_ATTENTION, REE_NODE_ROLE_FEED_FORWARD};
    static const char *const names[] = {"attention", "feed-forward"};
    for (size_t i = 0; i < 2; i++) {
        const size_t this = parts[i], other = parts[1 - i];
        if (c->here[this] && c->here[this] == c->all[this] && !c->here[other]) {
            ree_strbuf_printf(list->out, "%s%s of layer %d", comma(list), names[i], (int)layer);
            return;
        }
    }
    ree_strbuf_printf(list->out, "%spart of layer %d", comma(list), (int)layer);
}

static void append_layers(struct listing *list, const struct count *counts, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (is_absent(&counts[i])) continue;
        if (!is_whole(&counts[i])) {
            append_part(list, &counts[i], i);
            continue;
        }
        int32_t first = i;
        while (i + 1 < n && is_whole(&counts[i + 1]))
            i++;
        if (i == first)
            ree_strbuf_printf(list->out, "%slayer %d", comma(list), (int)first);
        else
            ree_strbuf_printf(list->out, "%slayers %d-%d", comma(list), (int)first, (int)i);
    }
}

struct op {
    const char *name;
    size_t n, first;
};

static int by_number(const void *a, const void *b) {
    const struct op *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

#define N_OPS 64  // maximum number of operator types that are counted
#define N_SHOWN 3 // number of operator types that are named

static void append_operators(struct listing *list, const struct ree_graph *graph,
                             const uint32_t *order, size_t n) {
    struct op ops[N_OPS];
    size_t n_ops = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = graph->nodes[order[i]]->op_type;
        size_t k = 0;
        while (k < n_ops && strcmp(ops[k].name, name) != 0)
            k++;
        if (k == N_OPS) continue;
        if (k == n_ops) ops[n_ops++] = (struct op){name, 0, i};
        ops[k].n++;
    }
    qsort(ops, n_ops, sizeof *ops, by_number);
    for (size_t i = 0; i < n_ops && i < N_SHOWN; i++)
        ree_strbuf_printf(list->out, "%s%s %zu", comma(list), ops[i].name, ops[i].n);
    if (n_ops > N_SHOWN) ree_strbuf_printf(list->out, ", ...");
}

void ree_stage_contents(const struct ree_graph *graph, const struct ree_annotations *annotations,
                        const struct ree_partition *partition, size_t stage,
                        struct ree_strbuf *out) {
    size_t n_layers = (size_t)annotations->n_layers;
    size_t begin = stage ? partition->ends[stage - 1] : 0, end = partition->ends[stage];
    struct count *counts =
        ree_alloc_zeroed(n_layers + 1, sizeof *counts); // last entry: nodes in no layer
    if (!counts) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < partition->n_order; i++) {
        const struct ree_annotation *note = &annotations->nodes[partition->order[i]];
        struct count *c = &counts[note->layer < 0 ? n_layers : (size_t)note->layer];
        if (note->role >= N_ROLES) continue;
        c->all[note->role]++;
        c->here[note->role] += i >= begin && i < end;
    }
    const struct count *rest = &counts[n_layers];
    struct listing list = {.out = out};
    if (rest->here[REE_NODE_ROLE_EMBEDDING])
        ree_strbuf_printf(out, "%s%sembedding", comma(&list),
                          rest->here[REE_NODE_ROLE_EMBEDDING] < rest->all[REE_NODE_ROLE_EMBEDDING]
                              ? "part of the "
                              : "");
    append_layers(&list, counts, (int32_t)n_layers);
    if (rest->here[REE_NODE_ROLE_NORM]) ree_strbuf_printf(out, "%snorm", comma(&list));
    if (rest->here[REE_NODE_ROLE_HEAD])
        ree_strbuf_printf(
            out, "%s%shead", comma(&list),
            rest->here[REE_NODE_ROLE_HEAD] < rest->all[REE_NODE_ROLE_HEAD] ? "part of the " : "");
    if (rest->here[REE_NODE_ROLE_OTHER] && n_layers)
        ree_strbuf_printf(out, "%s%zu other nodes", comma(&list), rest->here[REE_NODE_ROLE_OTHER]);
    if (rest->here[REE_NODE_ROLE_OTHER] && !n_layers)
        append_operators(&list, graph, partition->order + begin, end - begin);
    ree_free(counts);
}
