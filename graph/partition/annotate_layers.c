// Finds layers. The canonical order is divided into blocks at the points where the results of a
// single node are all that is live; a residual stream has two such points per layer. A block is an
// attention block if it has an attention operator, reads caches, or multiplies two activations
// after a Softmax; a layer begins there. The blocks up to the next attention block are the layer's
// feed-forward part. After the last layer come the last norm and the head, whose results are not
// added to their input.
#include <string.h>

#include "graph/partition/annotate_internal.h"

struct block {
    uint32_t begin, end; // begin and one past the end, as positions
    bool attention, product, norm, lookup;
    bool residual; // several nodes read the value that enters the block
    int32_t layer;
    enum ree_node_role role; // role of the block's nodes, except norms
};

struct layers {
    struct ree_annotator *a;
    size_t n;
    struct block *blocks;
    bool *is_size;      // by position
    size_t first, last; // first and last attention block; n: there are none
    size_t tail;        // the first block after the last layer
};

// Marks nodes that compute sizes of activations. Their results do not count as live, wherever they
// are used.
static void find_sizes(struct layers *l) {
    const struct ree_annotator *a = l->a;
    for (uint32_t i = 0; i < a->partition->n_order; i++) {
        const struct ree_node *node = ree_annotator_node(a, i);
        bool reads_sizes = false, reads_else = false;
        for (size_t k = 0; k < node->n_inputs; k++) {
            const struct ree_value *v = node->inputs[k];
            if (!v || ree_annotator_constant(a, v)) continue;
            uint32_t position = v->graph == a->graph && v->producer
                                    ? a->position_of[v->producer->id]
                                    : REE_NO_POSITION;
            bool is_size = position != REE_NO_POSITION && l->is_size[position];
            reads_sizes = reads_sizes || is_size;
            reads_else = reads_else || !is_size;
        }
        l->is_size[i] = strcmp(node->op_type, "Shape") == 0 || strcmp(node->op_type, "Size") == 0 ||
                        (reads_sizes && !reads_else);
    }
}

struct readers {
    size_t n;
    uint32_t last; // last position that reads it; the node's own position: no reader
};

static struct readers find_readers(const struct layers *l, uint32_t position) {
    const struct ree_annotator *a = l->a;
    const struct ree_node *node = ree_annotator_node(a, position);
    struct readers found = {0, position};
    if (l->is_size[position]) return found;
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct ree_value *v = node->outputs[i];
        if (!v || v->graph != a->graph) continue;
        for (size_t k = a->reader_starts[v->id]; k < a->reader_starts[v->id + 1]; k++) {
            if (l->is_size[a->readers[k]]) continue;
            found.n++;
            if (a->readers[k] > found.last) found.last = a->readers[k];
        }
    }
    return found;
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

static bool multiplies_activations(const struct ree_annotator *a, const struct ree_node *node) {
    if (strcmp(node->op_type, "MatMul") != 0 || node->n_inputs != 2) return false;
    for (size_t i = 0; i < 2; i++)
        if (!node->inputs[i] || ree_annotator_constant(a, node->inputs[i])) return false;
    return true;
}

// Returns whether the node looks up rows of a constant table by integers.
static bool looks_up(const struct ree_annotator *a, const struct ree_node *node) {
    bool gathers = strcmp(node->op_type, "Gather") == 0;
    if (gathers && (node->n_inputs != 2 || !node->inputs[1])) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *table = node->inputs[i];
        if (!table || table->rank < 2 || !ree_annotator_constant(a, table)) continue;
        if (gathers && i == 0 && !ree_annotator_constant(a, node->inputs[1])) return true;
        // EmbedLayerNormalization and GatherBlockQuantized of com.microsoft.
        if (!gathers &&
            (strncmp(node->op_type, "Embed", 5) == 0 || strncmp(node->op_type, "Gather", 6) == 0))
            return true;
    }
    return false;
}

static void classify_block(const struct ree_annotator *a, struct block *block) {
    bool softmax = false;
    for (uint32_t i = block->begin; i < block->end; i++) {
        const struct ree_node *node = ree_annotator_node(a, i);
        softmax = softmax || strcmp(node->op_type, "Softmax") == 0;
        bool attends = is_attention_op(node) || reads_cache(a, node) ||
                       (softmax && multiplies_activations(a, node));
        block->attention = block->attention || attends;
        block->product = block->product || ree_annotator_product(a, node);
        block->norm = block->norm || a->is_norm[i];
        block->lookup = block->lookup || looks_up(a, node);
    }
}

static bool find_blocks(struct layers *l) {
    const struct ree_annotator *a = l->a;
    uint32_t n = (uint32_t)a->partition->n_order, begin = 0;
    l->blocks = ree_arena_alloc_array(&l->a->scratch, n + 1, sizeof *l->blocks);
    // By position: number of earlier nodes whose results are read here for the last time.
    uint32_t *ending = ree_arena_alloc_array(&l->a->scratch, n + 1, sizeof *ending);
    l->is_size = ree_arena_alloc_array(&l->a->scratch, n + 1, sizeof *l->is_size);
    if (!l->blocks || !ending || !l->is_size) return false;
    find_sizes(l);
    size_t live = 0, entering = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct readers readers = find_readers(l, i);
        live -= ending[i];
        if (readers.last > i) {
            live++;
            ending[readers.last]++;
        }
        // A block ends where the results of this node, and of no other, are live. If one other
        // node's results are live, this node is a dead end.
        if (i + 1 < n && !(live == 1 && readers.last > i)) continue;
        struct block *block = &l->blocks[l->n++];
        *block = (struct block){.begin = begin, .end = i + 1, .layer = REE_NO_LAYER};
        block->residual = entering > 1;
        classify_block(a, block);
        entering = readers.n;
        begin = i + 1;
    }
    return true;
}

// Layers

// Two consecutive attention blocks belong to one layer (self-attention, then attention to an
// encoder) if layers have separate feed-forward parts at all.
static void number_layers(struct layers *l) {
    bool has_feed_forward = false, seen = false;
    int32_t layer = REE_NO_LAYER;
    l->first = l->last = l->n;
    for (size_t i = 0; i < l->n; i++) {
        if (!l->blocks[i].attention) continue;
        if (l->first == l->n) l->first = i;
        l->last = i;
    }
    for (size_t i = l->first; i < l->last; i++)
        has_feed_forward = has_feed_forward || (!l->blocks[i].attention && l->blocks[i].product);
    for (size_t i = l->first; i < l->n; i++) {
        struct block *block = &l->blocks[i];
        if (block->attention && (layer < 0 || seen || !has_feed_forward)) {
            layer++;
            seen = false;
        }
        seen = seen || (!block->attention && block->product);
        block->layer = layer;
    }
    l->a->out->n_layers = layer + 1;
}

static void find_tail(struct layers *l) {
    l->tail = l->n;
    if (l->first == l->n) return;
    bool has_product = false, ends_in_norm = false;
    size_t tail = l->n;
    while (tail > l->last + 1) {
        const struct block *block = &l->blocks[tail - 1];
        if (block->product && block->residual) break;
        has_product = has_product || block->product;
        tail--;
    }
    // If norms come after the addition in each layer, the first norm of the tail belongs to the
    // last layer.
    for (size_t i = l->first + 1; i < l->last; i++)
        if (l->blocks[i].norm && !l->blocks[i].product && !l->blocks[i].attention)
            ends_in_norm = l->blocks[i + 1].attention || ends_in_norm;
    if (ends_in_norm && tail < l->n && l->blocks[tail].norm && !l->blocks[tail].product) tail++;
    l->tail = has_product || !ends_in_norm ? tail : l->n;
}

static void assign_roles(struct layers *l) {
    bool looked_up = false;
    for (size_t i = 0; i < l->first && l->first < l->n; i++)
        looked_up = looked_up || l->blocks[i].lookup;
    enum ree_node_role before = REE_NODE_ROLE_OTHER;
    for (size_t i = 0; i < l->n; i++) {
        struct block *block = &l->blocks[i];
        if (l->first == l->n)
            block->role = block->lookup ? REE_NODE_ROLE_EMBEDDING : REE_NODE_ROLE_OTHER;
        else if (i < l->first)
            block->role = looked_up ? REE_NODE_ROLE_EMBEDDING : REE_NODE_ROLE_OTHER;
        else if (i >= l->tail)
            block->role = REE_NODE_ROLE_HEAD;
        else if (block->attention)
            block->role = REE_NODE_ROLE_ATTENTION;
        else if (block->product)
            block->role = REE_NODE_ROLE_FEED_FORWARD;
        else
            block->role = before;
        if (i < l->first || i >= l->tail) block->layer = REE_NO_LAYER;
        before = block->role;
    }
}

// Finds a feed-forward part that is parallel to attention, so that both are added to the same
// input. Its nodes neither lead to the attention nor follow from it. Unlike a gate, it contains a
// product that follows another product.

static bool is_core(const struct ree_annotator *a, const struct ree_node *node) {
    return reads_cache(a, node) || is_attention_op(node) || multiplies_activations(a, node) ||
           strcmp(node->op_type, "Softmax") == 0;
}

enum { LEADS = 1, FOLLOWS = 2, BEHIND_PRODUCT = 4 };

struct flow {
    const struct ree_annotator *a;
    const struct block *block;
    unsigned char *flags;
    unsigned char gathered;
};

static void gather_flags(void *user, struct ree_value **use) {
    struct flow *flow = user;
    const struct ree_node *from = (*use)->graph == flow->a->graph ? (*use)->producer : NULL;
    uint32_t position = from ? flow->a->position_of[from->id] : REE_NO_POSITION;
    if (position >= flow->block->begin && position < flow->block->end)
        flow->gathered |= flow->flags[position];
}

static void pass_back(void *user, struct ree_value **use) {
    struct flow *flow = user;
    const struct ree_node *from = (*use)->graph == flow->a->graph ? (*use)->producer : NULL;
    uint32_t position = from ? flow->a->position_of[from->id] : REE_NO_POSITION;
    if (position >= flow->block->begin && position < flow->block->end)
        flow->flags[position] |= LEADS;
}

static void split_block(const struct ree_annotator *a, const struct block *block,
                        unsigned char *flags) {
    struct flow flow = {.a = a, .block = block, .flags = flags};
    bool beside = false;
    for (uint32_t i = block->begin; i < block->end; i++) {
        struct ree_node *node = a->graph->nodes[a->partition->order[i]];
        flow.gathered = 0;
        ree_node_visit_uses(node, gather_flags, &flow);
        flags[i] = flow.gathered & (FOLLOWS | BEHIND_PRODUCT);
        if (is_core(a, node)) flags[i] |= FOLLOWS;
        bool product = ree_annotator_product(a, node);
        beside = beside || (product && flags[i] == BEHIND_PRODUCT);
        if (product) flags[i] |= BEHIND_PRODUCT;
    }
    for (uint32_t i = block->end; beside && i-- > block->begin;) {
        struct ree_node *node = a->graph->nodes[a->partition->order[i]];
        if (is_core(a, node) || flags[i] & LEADS) ree_node_visit_uses(node, pass_back, &flow);
    }
    for (uint32_t i = block->begin; beside && i < block->end; i++)
        if (!(flags[i] & (LEADS | FOLLOWS)) && !a->is_norm[i])
            a->out->nodes[a->partition->order[i]].role = REE_NODE_ROLE_FEED_FORWARD;
}

// Annotates the node at `position`, in block i.
static void annotate_node(const struct layers *l, size_t i, uint32_t position) {
    const struct ree_annotator *a = l->a;
    const struct block *block = &l->blocks[i];
    struct ree_annotation *note = &a->out->nodes[a->partition->order[position]];
    bool has_layers = l->first < l->n;
    bool is_norm = has_layers && a->is_norm[position];
    *note = (struct ree_annotation){is_norm ? REE_NODE_ROLE_NORM : block->role, block->layer,
                                    note->phases};
    if (looks_up(a, ree_annotator_node(a, position)) && i < l->first)
        note->role = REE_NODE_ROLE_EMBEDDING;
    // The model's last norm, if it also adds the last layer's result. It belongs to no layer.
    if (is_norm && block->product && i + 1 == l->tail && l->tail < l->n &&
        position + 1 == block->end && !l->blocks[l->tail].norm)
        note->layer = REE_NO_LAYER;
}

bool ree_annotate_layers(struct ree_annotator *a) {
    struct layers l = {.a = a};
    unsigned char *flags = ree_arena_alloc(&a->scratch, a->partition->n_order + 1);
    if (!flags || !find_blocks(&l)) return false;
    number_layers(&l);
    find_tail(&l);
    assign_roles(&l);
    for (size_t i = 0; i < l.n; i++) {
        const struct block *block = &l.blocks[i];
        for (uint32_t j = block->begin; j < block->end; j++)
            annotate_node(&l, i, j);
        if (block->role == REE_NODE_ROLE_ATTENTION) split_block(a, block, flags);
    }
    return true;
}
