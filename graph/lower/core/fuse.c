// Fuses dispatches. A matmul reads a float16 or bfloat16 operand directly, instead of the copy that
// a map widened. A map absorbs the map that produces its input, or becomes the epilogue of the
// matmul or conv that produces its input. Steps and their order are unchanged, so the bits are too.
#include "graph/lower/core/lower.h"

#include <string.h>

#define NO_WRITER UINT32_MAX
#define MANY_WRITERS (UINT32_MAX - 1)

struct fuser {
    struct ree_lower *lower;
    const bool *keep;
    uint32_t *writer;  // by storage: the dispatch that writes it, NO_WRITER or MANY_WRITERS
    uint32_t *n_reads; // by storage: number of dispatches that read it
    bool *dead;        // by dispatch
};

// Returns whether operand i is written. In-out operands are also read.
static bool writes(const struct ree_dispatch *d, uint32_t i) {
    return i + d->n_outputs >= d->n_operands || (d->op == REE_REPOP_SCATTER && i == 0);
}

static bool reads(const struct ree_dispatch *d, uint32_t i) {
    return i + d->n_outputs < d->n_operands || (d->op == REE_REPOP_COPY && i == 1);
}

static bool reads_before(const struct ree_dispatch *d, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (reads(d, k) && d->operands[k].slot == d->operands[i].slot) return true;
    return false;
}

static bool reads_slot(const struct ree_dispatch *d, uint32_t slot) {
    for (uint32_t k = 0; k < d->n_operands; k++)
        if (reads(d, k) && d->operands[k].slot == slot) return true;
    return false;
}

static enum ree_status survey(struct fuser *f, struct ree_lower *lower, const bool *keep) {
    size_t n = lower->n_storages + 1;
    *f = (struct fuser){.lower = lower, .keep = keep};
    f->writer = ree_arena_alloc_array(lower->arena, n, sizeof *f->writer);
    f->n_reads = ree_arena_alloc_array(lower->arena, n, sizeof *f->n_reads);
    f->dead = ree_arena_alloc_array(lower->arena, lower->n_dispatches + 1, sizeof *f->dead);
    if (!f->writer || !f->n_reads || !f->dead) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++)
        f->writer[i] = NO_WRITER;
    for (uint32_t i = 0; i < lower->n_dispatches; i++) {
        const struct ree_dispatch *d = &lower->dispatches[i];
        for (uint32_t k = 0; k < d->n_operands; k++) {
            uint32_t slot = d->operands[k].slot;
            if (reads(d, k) && !reads_before(d, k)) f->n_reads[slot]++;
            if (writes(d, k)) f->writer[slot] = f->writer[slot] == NO_WRITER ? i : MANY_WRITERS;
        }
    }
    return REE_OK;
}

static void remove_dead(struct fuser *f) {
    size_t to = 0;
    for (size_t i = 0; i < f->lower->n_dispatches; i++)
        if (!f->dead[i]) f->lower->dispatches[to++] = f->lower->dispatches[i];
    f->lower->n_dispatches = to;
}

// Dimensions

// Finds the coarsest common refinement of a and b: each dim of a, and of b, is the product of
// consecutive elements of `out`. Returns false if there is none with at most REE_MAX_RANK dims.
static bool refine(uint32_t rank_a, const uint32_t *a, uint32_t rank_b, const uint32_t *b,
                   uint32_t *out_rank, uint32_t *out) {
    uint32_t reversed[REE_MAX_RANK], n = 0;
    uint32_t i = rank_a, j = rank_b, left_a = 1, left_b = 1;
    for (;;) {
        while (left_a == 1 && i > 0)
            left_a = a[--i];
        while (left_b == 1 && j > 0)
            left_b = b[--j];
        if (left_a == 1 && left_b == 1) break;
        uint32_t g = left_a < left_b ? left_a : left_b;
        if (g <= 1 || left_a % g || left_b % g || n == REE_MAX_RANK) return false;
        reversed[n++] = g;
        left_a /= g;
        left_b /= g;
    }
    for (uint32_t k = 0; k < n; k++)
        out[k] = reversed[n - 1 - k];
    *out_rank = n;
    return true;
}

// Rewrites the dims and strides of e for `dims`, a refinement of e->dims.
static void refine_expr(struct ree_expr *e, uint32_t rank, const uint32_t *dims) {
    struct ree_expr old = *e;
    uint32_t from = old.rank, left = 1;
    int32_t stride[REE_EXPR_MAX_OPERANDS] = {0};
    for (uint32_t i = rank; i-- > 0;) {
        while (left == 1 && from > 0) {
            left = old.dims[--from];
            for (uint32_t k = 0; k < e->n_operands; k++)
                stride[k] = old.operands[k].strides[from];
        }
        e->dims[i] = dims[i];
        for (uint32_t k = 0; k < e->n_operands; k++) {
            e->operands[k].strides[i] = stride[k];
            stride[k] *= (int32_t)dims[i];
        }
        left /= dims[i];
    }
    e->rank = rank;
}

// Returns whether operand k of e reads its tensor densely from the start, so that its element index
// equals the output's.
static bool is_whole(const struct ree_expr *e, uint32_t k) {
    const struct ree_expr_operand *o = &e->operands[k];
    if (o->kind != REE_EXPR_TENSOR || o->offset != 0) return false;
    int64_t stride = 1;
    for (uint32_t i = e->rank; i-- > 0;) {
        if (e->dims[i] == 1) continue;
        if (o->strides[i] != stride) return false;
        stride *= e->dims[i];
    }
    return true;
}

// Composition

// An expression and the storages of its tensor operands.
struct bound_expr {
    struct ree_expr expr;
    struct ree_operand tensors[REE_EXPR_MAX_OPERANDS]; // by operand; unused for iota
};

static void bind_expr(struct bound_expr *b, const struct ree_expr *expr,
                      const struct ree_operand *tensors) {
    b->expr = *expr;
    uint32_t n = 0;
    for (uint32_t i = 0; i < expr->n_operands; i++)
        if (expr->operands[i].kind == REE_EXPR_TENSOR) b->tensors[i] = tensors[n++];
}

// Adds an operand, or finds an identical one. Returns false if the limit is reached.
static bool add_operand(struct bound_expr *b, const struct ree_expr_operand *operand,
                        const struct ree_operand *tensor, uint32_t *out) {
    struct ree_expr *e = &b->expr;
    for (uint32_t i = 0; i < e->n_operands; i++)
        if (!memcmp(&e->operands[i], operand, sizeof *operand) &&
            (operand->kind == REE_EXPR_IOTA || b->tensors[i].slot == tensor->slot)) {
            *out = i;
            return true;
        }
    if (e->n_operands == REE_EXPR_MAX_OPERANDS) return false;
    e->operands[e->n_operands] = *operand;
    b->tensors[e->n_operands] = *tensor;
    *out = e->n_operands++;
    return true;
}

// Makes `out` from the consumer: its operand k is replaced by the producer's value. Both must have
// the same dims. With has_acc, the producer is an epilogue, whose value 0 is the accumulator.
// Returns false if the result would exceed a limit, or cannot be expressed.
static bool compose(const struct bound_expr *producer, bool has_acc,
                    const struct bound_expr *consumer, uint32_t k, struct bound_expr *out) {
    const struct ree_expr *p = &producer->expr, *c = &consumer->expr;
    uint32_t base = has_acc ? 1 : 0;
    if (p->n_instrs + c->n_instrs > REE_EXPR_MAX_INSTRS) return false;
    memset(out, 0, sizeof *out);
    out->expr = *c;
    out->expr.n_operands = out->expr.n_instrs = 0;
    memset(out->expr.operands, 0, sizeof out->expr.operands);
    memset(out->expr.instrs, 0, sizeof out->expr.instrs);

    uint32_t p_operand[REE_EXPR_MAX_OPERANDS], c_operand[REE_EXPR_MAX_OPERANDS];
    for (uint32_t i = 0; i < p->n_operands; i++)
        if (!add_operand(out, &p->operands[i], &producer->tensors[i], &p_operand[i])) return false;
    for (uint32_t i = 0; i < c->n_operands; i++)
        if (i != k && !add_operand(out, &c->operands[i], &consumer->tensors[i], &c_operand[i]))
            return false;
    uint32_t first_instr = base + out->expr.n_operands;

    for (uint32_t i = 0; i < p->n_instrs; i++) {
        struct ree_expr_instr *instr = &out->expr.instrs[out->expr.n_instrs++];
        *instr = p->instrs[i];
        for (uint32_t a = 0; a < ree_map_op_infos[instr->op].n_args; a++) {
            uint32_t v = instr->args[a];
            if (v < base) continue; // the accumulator
            instr->args[a] = v < base + p->n_operands ? base + p_operand[v - base]
                                                      : first_instr + (v - base - p->n_operands);
        }
    }
    uint32_t p_value = p->n_instrs ? first_instr + p->n_instrs - 1 : has_acc ? 0 : p_operand[0];
    for (uint32_t i = 0; i < c->n_instrs; i++) {
        struct ree_expr_instr *instr = &out->expr.instrs[out->expr.n_instrs++];
        *instr = c->instrs[i];
        for (uint32_t a = 0; a < ree_map_op_infos[instr->op].n_args; a++) {
            uint32_t v = instr->args[a];
            instr->args[a] = v == k              ? p_value
                             : v < c->n_operands ? base + c_operand[v]
                                                 : first_instr + p->n_instrs + (v - c->n_operands);
        }
    }
    // A consumer without instructions is a plain copy of value 0; after replacing the operand, the
    // result would be another value.
    return c->n_instrs > 0;
}

// Fusing

static bool is_product(const struct ree_dispatch *d) {
    return d->op == REE_REPOP_MATMUL || d->op == REE_REPOP_CONV;
}

static struct ree_expr *epilogue_of(struct ree_dispatch *d, bool *has) {
    if (d->op == REE_REPOP_MATMUL) {
        *has = d->params.matmul.has_epilogue;
        return &d->params.matmul.epilogue;
    }
    *has = d->params.conv.has_epilogue;
    return &d->params.conv.epilogue;
}

static void set_has_epilogue(struct ree_dispatch *d) {
    if (d->op == REE_REPOP_MATMUL)
        d->params.matmul.has_epilogue = 1;
    else
        d->params.conv.has_epilogue = 1;
}

// Returns the number of operands of a product. The operands of its epilogue follow them.
static uint32_t n_product_operands(const struct ree_dispatch *d) {
    return d->op == REE_REPOP_MATMUL ? ree_matmul_n_operands(&d->params.matmul)
                                     : ree_conv_n_operands(&d->params.conv);
}

// Returns the output type of a map, matmul or conv, which its epilogue determines if it has one.
static uint32_t output_dtype(const struct ree_dispatch *d) {
    if (d->op == REE_REPOP_MAP) return d->params.map.expr.out_dtype;
    if (d->op == REE_REPOP_MATMUL) {
        const struct ree_matmul_params *p = &d->params.matmul;
        return p->has_epilogue ? p->epilogue.out_dtype : p->dtype;
    }
    const struct ree_conv_params *p = &d->params.conv;
    return p->has_epilogue ? p->epilogue.out_dtype : (uint32_t)ree_conv_sum_dtype(p);
}

// Writes the output dims of a matmul or conv, as its epilogue sees them, and returns the rank.
static uint32_t output_dims(const struct ree_dispatch *d, uint32_t *dims) {
    if (d->op == REE_REPOP_MATMUL) {
        const struct ree_matmul_params *p = &d->params.matmul;
        memcpy(dims, p->batch_dims, p->batch_rank * sizeof *dims);
        dims[p->batch_rank] = p->m;
        dims[p->batch_rank + 1] = p->n;
        return p->batch_rank + 2;
    }
    const struct ree_conv_params *p = &d->params.conv;
    dims[0] = p->n;
    dims[1] = p->groups * p->m;
    memcpy(dims + 2, p->out, sizeof p->out);
    return 5;
}

// Writes b's tensors after the first n_fixed operands of d, followed by the output. Returns false
// if there are too many operands.
static bool set_operands(struct ree_dispatch *d, uint32_t n_fixed, const struct bound_expr *b,
                         struct ree_operand out) {
    uint32_t n = n_fixed;
    for (uint32_t i = 0; i < b->expr.n_operands; i++) {
        if (b->expr.operands[i].kind != REE_EXPR_TENSOR) continue;
        if (n + 1 >= REE_MAX_OPERANDS) return false;
        d->operands[n++] = b->tensors[i];
    }
    d->operands[n++] = out;
    d->n_operands = n;
    return true;
}

static bool fuse_map(const struct ree_dispatch *producer, struct ree_dispatch *consumer,
                     uint32_t k) {
    struct bound_expr p, c, fused;
    bind_expr(&p, &producer->params.map.expr, producer->operands);
    bind_expr(&c, &consumer->params.map.expr, consumer->operands);
    uint32_t rank, dims[REE_MAX_RANK];
    if (!refine(p.expr.rank, p.expr.dims, c.expr.rank, c.expr.dims, &rank, dims)) return false;
    if (rank == 0) { // a single element
        rank = 1;
        dims[0] = 1;
    }
    refine_expr(&p.expr, rank, dims);
    refine_expr(&c.expr, rank, dims);
    if (!compose(&p, false, &c, k, &fused)) return false;
    ree_expr_coalesce(&fused.expr);
    struct ree_dispatch d = *consumer;
    if (!set_operands(&d, 0, &fused, consumer->operands[consumer->n_operands - 1])) return false;
    d.params.map.expr = fused.expr;
    *consumer = d;
    return true;
}

static bool fuse_epilogue(const struct ree_dispatch *producer, struct ree_dispatch *consumer,
                          uint32_t k) {
    struct ree_dispatch d = *producer;
    if (d.op == REE_REPOP_MATMUL && d.params.matmul.dtype != REE_F32 &&
        d.params.matmul.dtype != REE_I32)
        return false;
    bool has;
    struct ree_expr *epilogue = epilogue_of(&d, &has);
    uint32_t out_dims[REE_MAX_RANK], out_rank = output_dims(producer, out_dims);
    struct bound_expr p = {0}, c, fused;
    if (has) {
        bind_expr(&p, epilogue, producer->operands + n_product_operands(producer));
    } else {
        p.expr.rank = out_rank;
        memcpy(p.expr.dims, out_dims, sizeof p.expr.dims);
    }
    bind_expr(&c, &consumer->params.map.expr, consumer->operands);

    // The consumer must have the product's own dims, except for sizes of 1.
    uint32_t rank, dims[REE_MAX_RANK], n = 0;
    if (!refine(out_rank, out_dims, c.expr.rank, c.expr.dims, &rank, dims)) return false;
    for (uint32_t i = 0; i < out_rank; i++) {
        if (out_dims[i] == 1) continue;
        if (n == rank || dims[n++] != out_dims[i]) return false;
    }
    if (n != rank) return false;
    refine_expr(&c.expr, rank, dims);
    // Spread the refined dims over the product's dims, with stride 0 for dimensions of size 1.
    struct ree_expr spread = c.expr;
    spread.rank = out_rank;
    for (uint32_t o = 0; o < spread.n_operands; o++)
        memset(spread.operands[o].strides, 0, sizeof spread.operands[o].strides);
    n = 0;
    for (uint32_t i = 0; i < out_rank; i++) {
        spread.dims[i] = out_dims[i];
        if (out_dims[i] == 1) continue;
        for (uint32_t o = 0; o < spread.n_operands; o++)
            spread.operands[o].strides[i] = c.expr.operands[o].strides[n];
        n++;
    }
    c.expr = spread;
    if (!compose(&p, true, &c, k, &fused)) return false;
    fused.expr.rank = out_rank;
    memset(fused.expr.dims, 0, sizeof fused.expr.dims);
    memcpy(fused.expr.dims, out_dims, out_rank * sizeof *out_dims);
    *epilogue = fused.expr;
    set_has_epilogue(&d);
    if (!set_operands(&d, n_product_operands(producer), &fused,
                      consumer->operands[consumer->n_operands - 1]))
        return false;
    d.node = consumer->node;
    *consumer = d;
    return true;
}

// Returns whether dispatch `from` may run at position `to`: nothing in between writes what it
// reads.
static bool can_move(const struct fuser *f, uint32_t from, uint32_t to) {
    const struct ree_dispatch *d = &f->lower->dispatches[from];
    for (uint32_t i = from + 1; i < to; i++) {
        if (f->dead[i]) continue;
        const struct ree_dispatch *between = &f->lower->dispatches[i];
        for (uint32_t k = 0; k < between->n_operands; k++) {
            if (!writes(between, k)) continue;
            for (uint32_t o = 0; o < d->n_operands; o++)
                if (d->operands[o].slot == between->operands[k].slot) return false;
        }
    }
    return true;
}

// Tries to merge one producer into the map at index i; returns true if it changed something.
static bool fuse_one(struct fuser *f, uint32_t i) {
    struct ree_dispatch *consumer = &f->lower->dispatches[i];
    const struct ree_expr *expr = &consumer->params.map.expr;
    uint32_t tensor = 0;
    for (uint32_t k = 0; k < expr->n_operands; k++) {
        if (expr->operands[k].kind != REE_EXPR_TENSOR) continue;
        uint32_t slot = consumer->operands[tensor++].slot;
        uint32_t w = f->writer[slot];
        if (w == NO_WRITER || w == MANY_WRITERS || f->keep[slot] || f->n_reads[slot] != 1) continue;
        const struct ree_dispatch *producer = &f->lower->dispatches[w];
        if (w >= i || f->dead[w] || !is_whole(expr, k) || !can_move(f, w, i)) continue;
        uint64_t size = ree_dtype_size((enum ree_dtype)expr->operands[k].dtype);
        if (f->lower->storages[slot]->nbytes != expr->n_elements * size) continue;
        // The same tensor with other strides would require the producer twice.
        bool twice = false;
        uint32_t t = 0;
        for (uint32_t o = 0; o < expr->n_operands; o++) {
            if (expr->operands[o].kind != REE_EXPR_TENSOR) continue;
            if (consumer->operands[t++].slot == slot && o != k) twice = true;
        }
        if (twice) continue;
        struct ree_dispatch before = *consumer;
        bool fused = false;
        if (producer->op == REE_REPOP_MAP)
            fused = output_dtype(producer) == expr->operands[k].dtype &&
                    fuse_map(producer, consumer, k);
        else if (is_product(producer))
            fused = output_dtype(producer) == expr->operands[k].dtype &&
                    fuse_epilogue(producer, consumer, k);
        if (!fused) continue;
        // Tensors that both dispatches read are now read once.
        for (uint32_t o = 0; o < before.n_operands; o++)
            if (reads(&before, o) && !reads_before(&before, o))
                f->n_reads[before.operands[o].slot]--;
        for (uint32_t o = 0; o < producer->n_operands; o++)
            if (reads(producer, o) && !reads_before(producer, o))
                f->n_reads[producer->operands[o].slot]--;
        for (uint32_t o = 0; o < consumer->n_operands; o++)
            if (reads(consumer, o) && !reads_before(consumer, o))
                f->n_reads[consumer->operands[o].slot]++;
        f->dead[w] = true;
        f->writer[slot] = NO_WRITER;
        return true;
    }
    return false;
}

// Returns whether the map only widens a float16 or bfloat16 tensor, element by element.
static bool is_widening(const struct ree_dispatch *d) {
    if (d->op != REE_REPOP_MAP) return false;
    const struct ree_expr *e = &d->params.map.expr;
    return e->out_dtype == REE_F32 && e->n_operands == 1 && e->n_instrs == 1 && is_whole(e, 0) &&
           (e->instrs[0].op == REE_MAP_bf16_to_f32 || e->instrs[0].op == REE_MAP_f16_to_f32);
}

// Returns whether operand k of a matmul is float16 or bfloat16, or was before a map widened it.
static bool is_narrow(const struct fuser *f, const struct ree_dispatch *d, uint32_t k) {
    uint32_t dtype = k == 0 ? d->params.matmul.a_dtype : d->params.matmul.b_dtype;
    uint32_t w = f->writer[d->operands[k].slot];
    if (dtype == REE_F16 || dtype == REE_BF16) return true;
    return w != NO_WRITER && w != MANY_WRITERS && is_widening(&f->lower->dispatches[w]);
}

// Lets a matmul read operand k, 0 or 1, as it was before a map widened it. The matmul then widens
// it, and a device may multiply two narrow operands faster. If the other operand is not narrow and
// the map has more readers, the map stays, because a device may widen an operand in each product
// again.
static void narrow_factor(struct fuser *f, uint32_t i, uint32_t k) {
    struct ree_dispatch *d = &f->lower->dispatches[i];
    struct ree_matmul_params *p = &d->params.matmul;
    uint32_t *dtype = k == 0 ? &p->a_dtype : &p->b_dtype;
    if (p->dtype != REE_F32 || *dtype != REE_F32 || (k == 1 && p->b_block)) return;
    uint32_t slot = d->operands[k].slot, w = f->writer[slot];
    if (w == NO_WRITER || w == MANY_WRITERS || w >= i) return;
    const struct ree_dispatch *map = &f->lower->dispatches[w];
    if (f->n_reads[slot] > 1 && !is_narrow(f, d, 1 - k)) return;
    if (!is_widening(map) || !can_move(f, w, i)) return;
    if (f->lower->storages[slot]->nbytes != map->params.map.expr.n_elements * sizeof(float)) return;
    *dtype = map->params.map.expr.operands[0].dtype;
    f->n_reads[map->operands[0].slot] += !reads_slot(d, map->operands[0].slot);
    d->operands[k] = map->operands[0];
    f->n_reads[slot] -= !reads_slot(d, slot);
    if (f->n_reads[slot] || f->keep[slot]) return;
    f->n_reads[map->operands[0].slot]--;
    f->dead[w] = true;
    f->writer[slot] = NO_WRITER;
}

enum ree_status ree_fuse_program(struct ree_lower *lower, const bool *keep) {
    struct fuser f;
    REE_TRY(survey(&f, lower, keep));
    for (uint32_t i = 0; i < lower->n_dispatches; i++)
        for (uint32_t k = 0; k < 2 && lower->dispatches[i].op == REE_REPOP_MATMUL; k++)
            narrow_factor(&f, i, k);
    for (uint32_t i = 0; i < lower->n_dispatches; i++)
        while (!f.dead[i] && lower->dispatches[i].op == REE_REPOP_MAP && fuse_one(&f, i)) {
        }
    remove_dead(&f);
    return REE_OK;
}

enum ree_status ree_prune_program(struct ree_lower *lower, const bool *keep) {
    struct fuser f;
    REE_TRY(survey(&f, lower, keep));
    bool *needed = ree_arena_alloc_array(lower->arena, lower->n_storages + 1, sizeof *needed);
    if (!needed) return ree_lower_no_memory(lower);
    memcpy(needed, keep, lower->n_storages * sizeof *needed);
    for (size_t i = lower->n_dispatches; i-- > 0;) {
        const struct ree_dispatch *d = &lower->dispatches[i];
        bool live = false;
        for (uint32_t k = 0; k < d->n_operands; k++)
            if (writes(d, k) && needed[d->operands[k].slot]) live = true;
        f.dead[i] = !live;
        for (uint32_t k = 0; live && k < d->n_operands; k++)
            needed[d->operands[k].slot] = true;
    }
    remove_dead(&f);
    return REE_OK;
}
