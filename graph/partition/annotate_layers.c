// Layers. The canonical order falls into pieces where the results of one node are all that is alive
// (what a residual stream does twice a layer). A piece that reads caches, or mixes rows, is one of
// attention; a layer begins there. What follows up to the next is its feed-forward part; behind the
// last one come the last norm and the head, where nothing is added back to what enters.
#include <string.h>

#include "graph/partition/annotate_parts.h"

struct piece {
    uint32_t begin, end; // places
    bool attention, product, norm, lookup;
    bool residual; // what enters is read by more than one node
    int32_t layer;
    enum ree_node_role role; // of its nodes that are no norm
};

struct layers {
    struct ree_annotator *a;
    size_t n;
    struct piece *pieces;
    size_t first, last; // pieces of attention; n: there are none
    size_t tail;        // the first piece behind the last layer
};

static uint32_t last_reader(const struct ree_annotator *a, const struct ree_node *node) {
    uint32_t last = a->place_of[node->id];
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct ree_value *v = node->outputs[i];
        if (!v || v->graph != a->graph) continue;
        size_t end = a->reader_starts[v->id + 1];
        if (end > a->reader_starts[v->id] && a->readers[end - 1] > last) last = a->readers[end - 1];
    }
    return last;
}

static size_t count_readers(const struct ree_annotator *a, const struct ree_node *node) {
    size_t n = 0;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && node->outputs[i]->graph == a->graph)
            n +=
                a->reader_starts[node->outputs[i]->id + 1] - a->reader_starts[node->outputs[i]->id];
    return n;
}

static bool is_attention_op(const struct ree_node *node) {
    return strstr(node->op_type, "Attention") != NULL;
}

static bool reads_cache(const struct ree_annotator *a, const struct ree_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && node->inputs[i]->graph == a->graph &&
            a->out->values[node->inputs[i]->id] == REE_VALUE_KV_CACHE)
            return true;
    return false;
}

static bool mixes_rows(const struct ree_annotator *a, const struct ree_node *node) {
    if (strcmp(node->op_type, "MatMul") != 0 || node->n_inputs != 2) return false;
    for (size_t i = 0; i < 2; i++)
        if (!node->inputs[i] || ree_annotator_constant(a, node->inputs[i])) return false;
    return true;
}

// A row of a constant table for each of some whole numbers.
static bool looks_up(const struct ree_annotator *a, const struct ree_node *node) {
    if (node->n_inputs < 2 || !node->inputs[0] || !node->inputs[1]) return false;
    bool gathers = strcmp(node->op_type, "Gather") == 0;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *table = node->inputs[i];
        if (!table || table->rank < 2 || !ree_annotator_constant(a, table)) continue;
        if (gathers && i == 0 && !ree_annotator_constant(a, node->inputs[1])) return true;
        // com.microsoft's EmbedLayerNormalization and GatherBlockQuantized.
        if (!gathers &&
            (strncmp(node->op_type, "Embed", 5) == 0 || strncmp(node->op_type, "Gather", 6) == 0))
            return true;
    }
    return false;
}

static void look_into(const struct ree_annotator *a, struct piece *piece) {
    bool softmax = false;
    for (uint32_t i = piece->begin; i < piece->end; i++) {
        const struct ree_node *node = ree_annotator_node(a, i);
        softmax = softmax || strcmp(node->op_type, "Softmax") == 0;
        bool attends =
            is_attention_op(node) || reads_cache(a, node) || (softmax && mixes_rows(a, node));
        piece->attention = piece->attention || attends;
        piece->product = piece->product || ree_annotator_product(a, node);
        piece->norm = piece->norm || a->is_norm[i];
        piece->lookup = piece->lookup || looks_up(a, node);
    }
}

static bool find_pieces(struct layers *l) {
    const struct ree_annotator *a = l->a;
    uint32_t n = (uint32_t)a->partition->n_order, begin = 0;
    l->pieces = ree_arena_alloc_array(&l->a->scratch, n + 1, sizeof *l->pieces);
    // Per place: how many earlier nodes' results are read there for the last time.
    uint32_t *ending = ree_arena_alloc_array(&l->a->scratch, n + 1, sizeof *ending);
    if (!l->pieces || !ending) return false;
    size_t live = 0, entering = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct ree_node *node = ree_annotator_node(a, i);
        uint32_t last = last_reader(a, node);
        live -= ending[i];
        if (last > i) {
            live++;
            ending[last]++;
        }
        // Where one result is alive it is this node's; another's would make it a dead end.
        if (i + 1 < n && !(live == 1 && last > i)) continue;
        struct piece *piece = &l->pieces[l->n++];
        *piece = (struct piece){.begin = begin, .end = i + 1, .layer = REE_NO_LAYER};
        piece->residual = entering > 1;
        look_into(a, piece);
        entering = count_readers(a, node);
        begin = i + 1;
    }
    return true;
}

// Layers

// Two pieces of attention in a row are one layer's (on itself, on an encoder) if layers have
// feed-forward parts of their own at all.
static void number_layers(struct layers *l) {
    bool has_parts = false, seen = false;
    int32_t layer = REE_NO_LAYER;
    l->first = l->last = l->n;
    for (size_t i = 0; i < l->n; i++) {
        if (!l->pieces[i].attention) continue;
        if (l->first == l->n) l->first = i;
        l->last = i;
    }
    for (size_t i = l->first; i < l->last; i++)
        has_parts = has_parts || (!l->pieces[i].attention && l->pieces[i].product);
    for (size_t i = l->first; i < l->n; i++) {
        struct piece *piece = &l->pieces[i];
        if (piece->attention && (layer < 0 || seen || !has_parts)) {
            layer++;
            seen = false;
        }
        seen = seen || (!piece->attention && piece->product);
        piece->layer = layer;
    }
    l->a->out->n_layers = layer + 1;
}

static void find_tail(struct layers *l) {
    l->tail = l->n;
    if (l->first == l->n) return;
    bool has_product = false, ends_in_norm = false;
    size_t tail = l->n;
    while (tail > l->last + 1) {
        const struct piece *piece = &l->pieces[tail - 1];
        if (piece->product && piece->residual) break;
        has_product = has_product || piece->product;
        tail--;
    }
    // Layers whose norms follow what they add: the first norm is the last layer's.
    for (size_t i = l->first + 1; i < l->last; i++)
        if (l->pieces[i].norm && !l->pieces[i].product && !l->pieces[i].attention)
            ends_in_norm = l->pieces[i + 1].attention || ends_in_norm;
    if (ends_in_norm && tail < l->n && l->pieces[tail].norm && !l->pieces[tail].product) tail++;
    l->tail = has_product || !ends_in_norm ? tail : l->n;
}

static void give_roles(struct layers *l) {
    bool looked_up = false;
    for (size_t i = 0; i < l->first && l->first < l->n; i++)
        looked_up = looked_up || l->pieces[i].lookup;
    enum ree_node_role before = REE_NODE_OTHER;
    for (size_t i = 0; i < l->n; i++) {
        struct piece *piece = &l->pieces[i];
        if (l->first == l->n)
            piece->role = piece->lookup ? REE_NODE_EMBEDDING : REE_NODE_OTHER;
        else if (i < l->first)
            piece->role = looked_up ? REE_NODE_EMBEDDING : REE_NODE_OTHER;
        else if (i >= l->tail)
            piece->role = REE_NODE_HEAD;
        else if (piece->attention)
            piece->role = REE_NODE_ATTENTION;
        else if (piece->product)
            piece->role = REE_NODE_FEED_FORWARD;
        else
            piece->role = before;
        if (i < l->first || i >= l->tail) piece->layer = REE_NO_LAYER;
        before = piece->role;
    }
}

// A feed-forward part beside the attention (both added to what enters) neither leads to it nor
// follows from it, and has a product behind a product, which a gate has not.

static bool is_core(const struct ree_annotator *a, const struct ree_node *node) {
    return reads_cache(a, node) || is_attention_op(node) || mixes_rows(a, node) ||
           strcmp(node->op_type, "Softmax") == 0;
}

enum { LEADS = 1, FOLLOWS = 2, BEHIND_PRODUCT = 4 };

struct flow {
    const struct ree_annotator *a;
    const struct piece *piece;
    unsigned char *flags;
    unsigned char gathered;
};

static void gather_flags(void *user, struct ree_value **use) {
    struct flow *flow = user;
    const struct ree_node *from = (*use)->graph == flow->a->graph ? (*use)->producer : NULL;
    uint32_t place = from ? flow->a->place_of[from->id] : REE_NO_PLACE;
    if (place >= flow->piece->begin && place < flow->piece->end)
        flow->gathered |= flow->flags[place];
}

static void pass_back(void *user, struct ree_value **use) {
    struct flow *flow = user;
    const struct ree_node *from = (*use)->graph == flow->a->graph ? (*use)->producer : NULL;
    uint32_t place = from ? flow->a->place_of[from->id] : REE_NO_PLACE;
    if (place >= flow->piece->begin && place < flow->piece->end) flow->flags[place] |= LEADS;
}

static void split_piece(const struct ree_annotator *a, const struct piece *piece,
                        unsigned char *flags) {
    struct flow flow = {.a = a, .piece = piece, .flags = flags};
    bool beside = false;
    for (uint32_t i = piece->begin; i < piece->end; i++) {
        struct ree_node *node = a->graph->nodes[a->partition->order[i]];
        flow.gathered = 0;
        ree_node_visit_uses(node, gather_flags, &flow);
        flags[i] = flow.gathered & (FOLLOWS | BEHIND_PRODUCT);
        if (is_core(a, node)) flags[i] |= FOLLOWS;
        bool product = ree_annotator_product(a, node);
        beside = beside || (product && flags[i] == BEHIND_PRODUCT);
        if (product) flags[i] |= BEHIND_PRODUCT;
    }
    for (uint32_t i = piece->end; beside && i-- > piece->begin;) {
        struct ree_node *node = a->graph->nodes[a->partition->order[i]];
        if (is_core(a, node) || flags[i] & LEADS) ree_node_visit_uses(node, pass_back, &flow);
    }
    for (uint32_t i = piece->begin; beside && i < piece->end; i++)
        if (!(flags[i] & (LEADS | FOLLOWS)) && !a->is_norm[i])
            a->out->nodes[a->partition->order[i]].role = REE_NODE_FEED_FORWARD;
}

bool ree_annotate_layers(struct ree_annotator *a) {
    struct layers l = {.a = a};
    unsigned char *flags = ree_arena_alloc(&a->scratch, a->partition->n_order + 1);
    if (!flags || !find_pieces(&l)) return false;
    number_layers(&l);
    find_tail(&l);
    give_roles(&l);
    for (size_t i = 0; i < l.n; i++) {
        const struct piece *piece = &l.pieces[i];
        for (uint32_t j = piece->begin; j < piece->end; j++) {
            struct ree_annotation *note = &a->out->nodes[a->partition->order[j]];
            note->role = a->is_norm[j] && l.first < l.n ? REE_NODE_NORM : piece->role;
            note->layer = piece->layer;
        }
        if (piece->role == REE_NODE_ATTENTION) split_piece(a, piece, flags);
    }
    return true;
}
