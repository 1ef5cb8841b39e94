#include "claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "graph/causality/prove.h"
#include "repops/scalar/convert.h"
#include "session/observe.h"

// Facts

static void keep_fact(void *user, const struct ree_value *value, const struct ree_fact *fact) {
    struct claims *c = user;
    if (value->id >= c->n_facts) return;
    c->facts[value->id] = *fact;
    if (fact->why_not) c->facts[value->id].why_not = "not proved"; // its text is freed soon
}

bool claims_ask(struct claims *c, struct ree_causality_question *question, char *out_reason,
                size_t size) {
    *c = (struct claims){.graph = question->graph, .n_facts = question->graph->n_values};
    c->facts = calloc(c->n_facts + 1, sizeof *c->facts);
    for (size_t i = 0; c->facts && i < c->n_facts; i++)
        c->facts[i].why_not = "nothing is derived";
    question->on_fact = c->facts ? keep_fact : NULL;
    question->user = c;
    return ree_causality_prove(question, out_reason, size, NULL) == REE_OK && !out_reason[0];
}

// Values of a run

void record_finish(struct record *r) {
    for (size_t i = 0; i < r->n_values && r->values; i++)
        ree_tensor_finish(&r->values[i]);
    free(r->values);
    free(r->is_seen);
    *r = (struct record){0};
}

static enum ree_status keep_tensor(struct claims *c, const struct ree_value *value,
                                   const struct ree_tensor *t, struct ree_error *err) {
    struct record *r = &c->run;
    if (value->id >= r->n_values || t->kind != REE_TENSOR || t->dtype == REE_STRING) return REE_OK;
    struct ree_tensor *to = &r->values[value->id];
    ree_tensor_finish(to);
    if (!t->data && t->nbytes) return REE_OK; // only a type and a shape
    enum ree_status status = ree_tensor_init(to, NULL, t->dtype, t->rank, t->dims, err);
    if (status != REE_OK) return status;
    if (t->nbytes) memcpy(to->data, t->data, t->nbytes);
    r->is_seen[value->id] = true;
    return REE_OK;
}

static enum ree_status on_value(void *user, const struct ree_observed *observed,
                                struct ree_error *err) {
    struct claims *c = user;
    if (observed->kv_cache >= 0 || observed->node >= c->graph->n_nodes) return REE_OK;
    const struct ree_node *node = c->graph->nodes[observed->node];
    const struct ree_value *value =
        observed->output < node->n_outputs ? node->outputs[observed->output] : NULL;
    return value ? keep_tensor(c, value, observed->tensor, err) : REE_OK;
}

bool claims_watch(struct claims *c, struct ree_session *session) {
    struct ree_error err;
    struct ree_observer observer = {.on_value = on_value, .user = c};
    return ree_session_observe(session, &observer, &err) == REE_OK;
}

void claims_next(struct claims *c, int64_t past, int64_t fresh, const int32_t *ids) {
    record_finish(&c->run);
    c->run = (struct record){.past = past, .fresh = fresh, .n_values = c->n_facts};
    c->run.values = calloc(c->n_facts + 1, sizeof *c->run.values);
    c->run.is_seen = calloc(c->n_facts + 1, sizeof *c->run.is_seen);
    if (!c->run.values || !c->run.is_seen) abort();
    memcpy(c->run.ids, ids, (size_t)(past + fresh) * sizeof *ids);
}

struct record claims_take(struct claims *c) {
    struct record taken = c->run;
    c->run = (struct record){0};
    return taken;
}

void claims_finish(struct claims *c) {
    record_finish(&c->run);
    free(c->facts);
    *c = (struct claims){0};
}

// Comparison of facts with values

static double element(const struct ree_tensor *t, size_t i) {
    uint32_t bits;
    float x;
    switch (t->dtype) {
    case REE_F32: return (double)((const float *)t->data)[i];
    case REE_I64: return (double)((const int64_t *)t->data)[i];
    case REE_I32: return ((const int32_t *)t->data)[i];
    case REE_BOOL: return ((const uint8_t *)t->data)[i];
    case REE_F16: bits = ree_soft_f16_to_f32(((const uint16_t *)t->data)[i]); break;
    case REE_BF16: bits = (uint32_t)((const uint16_t *)t->data)[i] << 16; break;
    default: return 0;
    }
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static bool has_elements(const struct ree_tensor *t) {
    return t->dtype == REE_F32 || t->dtype == REE_I64 || t->dtype == REE_I32 ||
           t->dtype == REE_BOOL || t->dtype == REE_F16 || t->dtype == REE_BF16;
}

static size_t count_of(const struct ree_tensor *t) {
    size_t size = ree_dtype_size(t->dtype);
    return size ? t->nbytes / size : 0;
}

static int64_t size_of(const struct ree_axis *axis, const struct record *r) {
    switch (axis->kind) {
    case REE_AXIS_FIXED: return axis->size;
    case REE_AXIS_NEW: return r->fresh;
    case REE_AXIS_ALL: return r->past + r->fresh;
    case REE_AXIS_PAST: return r->past;
    case REE_AXIS_ROWS: break;
    }
    return -1;
}

// Returns the position of element i of an axis; -1 if the axis has no positions.
static int64_t position(const struct ree_axis *axis, const struct record *r, int64_t i) {
    if (axis->kind == REE_AXIS_FIXED || axis->kind == REE_AXIS_ROWS) return -1;
    return axis->kind == REE_AXIS_NEW ? r->past + i : i;
}

static void next_index(const struct ree_tensor *t, int64_t *index) {
    for (uint32_t i = t->rank; i-- > 0;) {
        if (++index[i] < t->dims[i]) return;
        index[i] = 0;
    }
}

static bool is_later(const struct ree_fact *f, const struct record *r, const int64_t *index,
                     struct ree_order o) {
    return o.holds && position(&f->axes[o.key], r, index[o.key]) >
                          position(&f->axes[o.query], r, index[o.query]);
}

// Returns what the fact states wrongly about element i; NULL if nothing.
static const char *contradict(const struct ree_fact *f, const struct record *r,
                              const struct ree_tensor *t, size_t i, const int64_t *index) {
    double x = element(t, i);
    if (f->n_counts) {
        struct ree_count c = f->counts[i];
        int64_t n = c.n + c.fresh * r->fresh + c.past * r->past;
        int64_t is =
            t->dtype == REE_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
        if (n != is) return "a count";
    }
    if (f->has_fill && x != f->fill && !(isnan(x) && isnan(f->fill))) return "the fill";
    if (f->is_ramp && x != (double)(position(&f->axes[f->ramp], r, index[f->ramp]) + f->shift))
        return "the ramp";
    bool nan = isnan(x) && f->may_be_nan;
    if (is_later(f, r, index, f->if_true) && x != 0) return "if_true";
    if (is_later(f, r, index, f->if_false) && x == 0) return "if_false";
    if (is_later(f, r, index, f->masked) && x != -INFINITY && !nan) return "masked";
    if (is_later(f, r, index, f->zeroed) && x != 0 && !isnan(x)) return "zeroed";
    return NULL;
}

static const char *contradict_value(const struct ree_fact *f, const struct record *r,
                                    const struct ree_tensor *t) {
    if (t->dtype != f->dtype) return "the type";
    if (t->rank != f->rank) return "the rank";
    for (uint32_t i = 0; i < t->rank; i++)
        if (size_of(&f->axes[i], r) != t->dims[i] && f->axes[i].kind != REE_AXIS_ROWS)
            return "a size";
    size_t n = count_of(t);
    if (f->n_counts && f->n_counts != n) return "the number of counts";
    int64_t index[REE_MAX_RANK] = {0};
    for (size_t i = 0; i < n && has_elements(t); i++, next_index(t, index)) {
        const char *what = contradict(f, r, t, i, index);
        if (what) return what;
    }
    return NULL;
}

static bool fail(const struct claims *c, size_t value, const char *what, const char *label) {
    const struct ree_value *v = c->graph->values[value];
    const struct ree_fact *f = &c->facts[value];
    const struct ree_tensor *t = &c->run.values[value];
    fprintf(stderr,
            "%s: '%s', the output of %s: %s is not what the proof says. Run: %lld + %lld "
            "tokens, dimensions",
            label, v->name, v->producer ? v->producer->op_type : "nothing", what,
            (long long)c->run.past, (long long)c->run.fresh);
    for (uint32_t i = 0; i < t->rank; i++)
        fprintf(stderr, " %lld", (long long)t->dims[i]);
    fprintf(stderr, "; fact:");
    for (uint32_t i = 0; i < f->rank; i++)
        fprintf(stderr, " %s%lld",
                (const char *const[]){"", "new", "all", "past", "rows"}[f->axes[i].kind],
                (long long)f->axes[i].size);
    fprintf(stderr, ", follows %#x, %zu counts\n", f->follows, f->n_counts);
    return false;
}

bool claims_check(struct claims *c, const char *label) {
    bool ok = true;
    for (size_t i = 0; i < c->n_facts && ok; i++) {
        if (c->facts[i].why_not || !c->run.is_seen[i]) continue;
        const char *what = contradict_value(&c->facts[i], &c->run, &c->run.values[i]);
        if (what) ok = fail(c, i, what, label);
        c->n_checked++;
    }
    return ok;
}

// Comparison of two runs

// Returns the number of positions before the first token that differs.
static int64_t common(const struct record *a, const struct record *b) {
    int64_t n = a->past + a->fresh, m = b->past + b->fresh, i = 0;
    while (i < n && i < m && a->ids[i] == b->ids[i])
        i++;
    return i;
}

// Returns the index of the element of the other run that must be equal; -1 if there is none.
static int64_t other_element(const struct ree_fact *f, const struct record *a,
                             const struct record *b, const struct ree_tensor *t,
                             const struct ree_tensor *other, const int64_t *index, int64_t same) {
    int64_t at = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t k = index[i], p = position(&f->axes[i], a, k);
        if (f->axes[i].kind == REE_AXIS_ROWS) return -1;
        if (p >= 0) {
            if (f->follows >> i & 1 && p >= same) return -1;
            k = f->axes[i].kind == REE_AXIS_NEW ? p - b->past : p;
        }
        if (k < 0 || k >= other->dims[i]) return -1;
        at = at * other->dims[i] + k;
    }
    return at;
}

static bool is_nan(const struct ree_tensor *t, size_t i) {
    return has_elements(t) && isnan(element(t, i));
}

static bool differs(const struct ree_fact *f, const struct record *a, const struct record *b,
                    size_t value, int64_t same) {
    const struct ree_tensor *t = &a->values[value], *other = &b->values[value];
    size_t size = ree_dtype_size(t->dtype), n = count_of(t);
    int64_t index[REE_MAX_RANK] = {0};
    if (t->rank != other->rank || t->dtype != other->dtype || f->rank != t->rank) return true;
    for (size_t i = 0; i < n; i++, next_index(t, index)) {
        int64_t k = other_element(f, a, b, t, other, index, same);
        if (k < 0 || (f->may_be_nan && (is_nan(t, i) || is_nan(other, (size_t)k)))) continue;
        if (memcmp((const char *)t->data + i * size, (const char *)other->data + (size_t)k * size,
                   size) != 0)
            return true;
    }
    return false;
}

bool claims_compare(struct claims *c, const struct record *other, const char *label) {
    int64_t same = common(&c->run, other);
    bool ok = true;
    for (size_t i = 0; i < c->n_facts && i < other->n_values && ok; i++) {
        const struct ree_fact *f = &c->facts[i];
        // Numbers that only depend on sizes differ between runs.
        if (f->why_not || f->counts_only || !c->run.is_seen[i] || !other->is_seen[i]) continue;
        if (differs(f, &c->run, other, i, same))
            ok = fail(c, i, "an element that follows equal tokens", label);
    }
    return ok;
}
