// Einsum: NUMERICS.md, "Einsum". Every label gets a number in the order of its first appearance in
// the equation; lists of labels are kept in that order. The operands are combined from left to
// right. Labels alone determine what is summed and when, with one exception: a dimension of size 1
// that meets a larger one counts as absent.
#include "graph/lower/ops/rules.h"

#include <ctype.h>
#include <string.h>

// Labels: letters, then the dimensions of the ellipsis, counted from the right.
#define N_LETTERS 52
#define N_LABELS (N_LETTERS + REE_MAX_RANK)
#define MAX_OPERANDS 64

// A tensor; labels[i] is the label of its dimension i.
struct term {
    struct ree_view *t;
    uint8_t labels[REE_MAX_RANK];
};

struct equation {
    struct ree_lower *lower;
    uint32_t n_terms;
    uint32_t lengths[MAX_OPERANDS];
    uint8_t labels[MAX_OPERANDS][REE_MAX_RANK]; // by operand and dimension
    uint32_t out_length;
    uint8_t out[REE_MAX_RANK];
    uint8_t order[N_LABELS]; // number of each label, from 1; 0: not seen
    uint8_t n_seen;
    uint32_t ellipsis_rank; // rank of the longest ellipsis
    int64_t sizes[N_LABELS];
};

static int letter_index(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return -1;
}

static char label_char(uint8_t label) {
    if (label >= N_LETTERS) return '.';
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

static enum ree_status malformed(struct equation *e, const char *text, const char *what) {
    return ree_lower_fail(e->lower, REE_INVALID, "equation '%s': %s", text, what);
}

static void see(struct equation *e, uint8_t label) {
    if (!e->order[label]) e->order[label] = ++e->n_seen;
}

// Reads one list of subscripts. "..." stands for n_ellipsis dimensions. Sets *at to the end of the
// list.
static enum ree_status read_term(struct equation *e, const char *text, const char **at,
                                 uint32_t n_ellipsis, uint8_t *labels, uint32_t *out_length) {
    uint32_t n = 0;
    bool ellipsis = false;
    const char *p = *at;
    while (*p && *p != ',' && *p != '-') {
        if (isspace((unsigned char)*p)) {
            p++;
        } else if (*p == '.') {
            if (p[1] != '.' || p[2] != '.') return malformed(e, text, "'.' outside '...'");
            if (ellipsis) return malformed(e, text, "two ellipses in a term");
            if (n + n_ellipsis > REE_MAX_RANK)
                return malformed(e, text, "a term of more than 8 dimensions");
            ellipsis = true;
            for (uint32_t i = 0; i < n_ellipsis; i++)
                labels[n++] = (uint8_t)(N_LETTERS + n_ellipsis - 1 - i);
            p += 3;
        } else {
            int letter = letter_index(*p++);
            if (letter < 0) return malformed(e, text, "a character that is not a letter");
            if (n == REE_MAX_RANK) return malformed(e, text, "a term of more than 8 dimensions");
            labels[n++] = (uint8_t)letter;
        }
    }
    *at = p;
    *out_length = n;
    return REE_OK;
}

// Counts the letters of a list and finds whether it has an ellipsis, without storing the list.
static void measure_term(const char *p, uint32_t *out_letters, bool *out_ellipsis) {
    *out_letters = 0;
    *out_ellipsis = false;
    for (; *p && *p != ',' && *p != '-'; p++) {
        if (letter_index(*p) >= 0) ++*out_letters;
        if (*p == '.') *out_ellipsis = true;
    }
}

// Sets the output of an equation without an arrow: the ellipsis, then the letters that appear once,
// upper case first.
static enum ree_status implicit_output(struct equation *e, const char *text) {
    uint32_t count[N_LETTERS] = {0};
    for (uint32_t k = 0; k < e->n_terms; k++)
        for (uint32_t i = 0; i < e->lengths[k]; i++)
            if (e->labels[k][i] < N_LETTERS) count[e->labels[k][i]]++;
    for (uint32_t i = 0; i < e->ellipsis_rank; i++)
        e->out[e->out_length++] = (uint8_t)(N_LETTERS + e->ellipsis_rank - 1 - i);
    for (uint8_t i = 0; i < N_LETTERS; i++) {
        if (count[i] != 1) continue;
        if (e->out_length == REE_MAX_RANK)
            return malformed(e, text, "an output of more than 8 dimensions");
        e->out[e->out_length++] = i;
    }
    return REE_OK;
}

static enum ree_status parse(struct equation *e, const char *text, struct ree_view *const *in) {
    const char *p = text;
    for (uint32_t k = 0; k < e->n_terms; k++) {
        uint32_t letters;
        bool ellipsis;
        measure_term(p, &letters, &ellipsis);
        uint32_t rank = in[k]->rank;
        if (ellipsis ? letters > rank : letters != rank)
            return ree_lower_fail(e->lower, REE_INVALID,
                                  "equation '%s': term %u has %u letters, input %u has rank %u",
                                  text, k, letters, k, rank);
        uint32_t n_ellipsis = ellipsis ? rank - letters : 0;
        if (n_ellipsis > e->ellipsis_rank) e->ellipsis_rank = n_ellipsis;
        REE_TRY(read_term(e, text, &p, n_ellipsis, e->labels[k], &e->lengths[k]));
        for (uint32_t i = 0; i < e->lengths[k]; i++)
            see(e, e->labels[k][i]);
        bool last = k + 1 == e->n_terms;
        if (*p == ',' && !last)
            p++;
        else if (*p == ',' || !last)
            return ree_lower_fail(e->lower, REE_INVALID,
                                  "equation '%s' does not have a term for each of %u inputs", text,
                                  e->n_terms);
    }
    if (!*p) return implicit_output(e, text);
    if (p[0] != '-' || p[1] != '>') return malformed(e, text, "'-' without '>'");
    p += 2;
    bool ellipsis;
    uint32_t letters;
    measure_term(p, &letters, &ellipsis);
    if (!ellipsis && e->ellipsis_rank)
        return malformed(e, text, "the output does not have the inputs' ellipsis");
    REE_TRY(read_term(e, text, &p, e->ellipsis_rank, e->out, &e->out_length));
    if (*p) return malformed(e, text, "unexpected characters after the output");
    for (uint32_t i = 0; i < e->out_length; i++) {
        if (!e->order[e->out[i]])
            return malformed(e, text, "a letter of the output is in no input");
        for (uint32_t j = 0; j < i; j++)
            if (e->out[i] == e->out[j])
                return malformed(e, text, "a letter occurs twice in the output");
    }
    return REE_OK;
}

// Finds the size of every label; a size of 1 matches any size.
static enum ree_status find_sizes(struct equation *e, struct ree_view *const *in) {
    for (uint32_t i = 0; i < N_LABELS; i++)
        e->sizes[i] = 1;
    for (uint32_t k = 0; k < e->n_terms; k++) {
        for (uint32_t i = 0; i < e->lengths[k]; i++) {
            int64_t *size = &e->sizes[e->labels[k][i]], dim = in[k]->dims[i];
            if (dim == 1 || dim == *size) continue;
            if (*size != 1)
                return ree_lower_fail(
                    e->lower, REE_INVALID,
                    "input %u has size %lld for '%c', which has size %lld in another input", k,
                    (long long)dim, label_char(e->labels[k][i]), (long long)*size);
            *size = dim;
        }
    }
    return REE_OK;
}

// Views operand k with each label once, sorted by number; repeated labels select the diagonal.
// Dimensions of size 1 are dropped if their label has a larger size: the operand is then repeated
// along the label.
static enum ree_status make_term(struct equation *e, uint32_t k, struct ree_view *t,
                                 struct term *out) {
    struct ree_view *view = ree_lower_view(e->lower, t);
    if (!view) return ree_lower_no_memory(e->lower);
    view->rank = 0;
    for (uint8_t number = 1; number <= e->n_seen; number++) {
        int64_t stride = 0;
        bool found = false;
        uint8_t label = 0;
        for (uint32_t i = 0; i < e->lengths[k]; i++) {
            if (e->order[e->labels[k][i]] != number) continue;
            label = e->labels[k][i];
            if (t->dims[i] == 1 && e->sizes[label] != 1) continue;
            found = true;
            stride += t->strides[i];
        }
        if (!found) continue;
        view->dims[view->rank] = e->sizes[label];
        view->strides[view->rank] = stride;
        out->labels[view->rank++] = label;
    }
    out->t = view;
    return REE_OK;
}

static bool has_label(const uint8_t *labels, uint32_t n, uint8_t label) {
    return n && memchr(labels, label, n) != NULL;
}

static bool term_has(const struct term *term, uint8_t label) {
    return has_label(term->labels, term->t->rank, label);
}

// Returns whether the output or an operand after k needs the label.
static bool needed_after(const struct equation *e, uint32_t k, uint8_t label) {
    if (has_label(e->out, e->out_length, label)) return true;
    for (uint32_t j = k + 1; j < e->n_terms; j++)
        if (has_label(e->labels[j], e->lengths[j], label)) return true;
    return false;
}

// Sums over the labels of `term` that are no longer needed: neither by `other` (may be NULL) nor
// after operand k.
static enum ree_status sum_own_labels(struct equation *e, struct term *term,
                                      const struct term *other, uint32_t k) {
    uint32_t mask = 0, rank = 0;
    uint8_t labels[REE_MAX_RANK] = {0};
    for (uint32_t i = 0; i < term->t->rank; i++) {
        uint8_t label = term->labels[i];
        if (needed_after(e, k, label) || (other && term_has(other, label)))
            labels[rank++] = label;
        else
            mask |= 1u << i;
    }
    if (!mask) return REE_OK;
    memcpy(term->labels, labels, sizeof labels);
    return ree_lower_reduce(e->lower, term->t, REE_REDUCE_SUM, mask, false, false, &term->t);
}

// Transposes the term to the order of `labels`; it must have all of them.
static enum ree_status permute(struct equation *e, const struct term *term, const uint8_t *labels,
                               struct ree_view **out) {
    uint32_t perm[REE_MAX_RANK] = {0};
    for (uint32_t i = 0; i < term->t->rank; i++)
        perm[i] = (uint32_t)((const uint8_t *)memchr(term->labels, labels[i], term->t->rank) -
                             term->labels);
    return ree_lower_transpose(e->lower, term->t, perm, out);
}

// The labels of two terms, by their role in the product: batch (in both, needed later), left (only
// in the first), right (only in the second), sum (in both, no longer needed).
struct roles {
    uint32_t n_batch, n_left, n_right, n_sum;
    uint8_t batch[REE_MAX_RANK], left[REE_MAX_RANK], right[REE_MAX_RANK], sum[REE_MAX_RANK];
};

static void find_roles(const struct equation *e, const struct term *a, const struct term *b,
                       uint32_t k, struct roles *r) {
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < a->t->rank; i++) {
        uint8_t label = a->labels[i];
        if (!term_has(b, label))
            r->left[r->n_left++] = label;
        else if (needed_after(e, k, label))
            r->batch[r->n_batch++] = label;
        else
            r->sum[r->n_sum++] = label;
    }
    for (uint32_t i = 0; i < b->t->rank; i++)
        if (!term_has(a, b->labels[i])) r->right[r->n_right++] = b->labels[i];
}

// Views the term as (batch..., rows, columns): the labels of each role are merged, in their order.
// Batch labels stay separate dimensions unless there are too many of them.
static enum ree_status as_matrix(struct equation *e, const struct term *term, const struct roles *r,
                                 const uint8_t *rows, uint32_t n_rows, const uint8_t *columns,
                                 uint32_t n_columns, struct ree_view **out) {
    uint8_t labels[REE_MAX_RANK] = {0};
    int64_t dims[REE_MAX_RANK];
    uint32_t n = 0, rank = 0;
    bool merge = r->n_batch > REE_MAX_RANK - 2;
    int64_t batch = 1, n_row = 1, n_column = 1;
    for (uint32_t i = 0; i < r->n_batch; i++) {
        labels[n++] = r->batch[i];
        batch *= e->sizes[r->batch[i]];
        if (!merge) dims[rank++] = e->sizes[r->batch[i]];
    }
    if (merge) dims[rank++] = batch;
    for (uint32_t i = 0; i < n_rows; i++) {
        labels[n++] = rows[i];
        n_row *= e->sizes[rows[i]];
    }
    for (uint32_t i = 0; i < n_columns; i++) {
        labels[n++] = columns[i];
        n_column *= e->sizes[columns[i]];
    }
    dims[rank++] = n_row;
    dims[rank++] = n_column;
    REE_TRY(permute(e, term, labels, out));
    return ree_lower_reshape(e->lower, *out, rank, dims, out);
}

// Computes the elementwise product over (batch..., left..., right...), for terms of which no label
// is summed.
static enum ree_status multiply(struct equation *e, const struct term *a, const struct term *b,
                                const struct term *shape, struct ree_view **out) {
    static const struct ree_typed_op product = {REE_MAP_mul_f32, REE_MAP_mul_i32, REE_MAP_mul_i32,
                                                REE_MAP_mul_i64, REE_MAP_mul_i64, REE_OP_NONE};
    const struct term *terms[2] = {a, b};
    struct ree_expr_builder builder;
    ree_expr_init(&builder, e->lower, shape->t->rank, shape->t->dims);
    int values[2];
    for (uint32_t k = 0; k < 2; k++) {
        struct ree_view *view = ree_lower_view(e->lower, terms[k]->t);
        if (!view) return ree_lower_no_memory(e->lower);
        view->rank = shape->t->rank;
        for (uint32_t i = 0; i < view->rank; i++) {
            const uint8_t *at = terms[k]->t->rank
                                    ? memchr(terms[k]->labels, shape->labels[i], terms[k]->t->rank)
                                    : NULL;
            view->dims[i] = shape->t->dims[i];
            view->strides[i] = at ? terms[k]->t->strides[at - terms[k]->labels] : 0;
        }
        values[k] = ree_expr_tensor(&builder, view);
    }
    enum ree_dtype dtype = a->t->dtype;
    int value = ree_expr_op2(&builder, ree_typed_op_of(&product, dtype), values[0], values[1]);
    return ree_lower_map(&builder, value, dtype, out);
}

// Replaces a by the product of a and b, summed over the labels that only these two have.
static enum ree_status contract(struct equation *e, struct term *a, struct term *b, uint32_t k) {
    REE_TRY(sum_own_labels(e, a, b, k));
    REE_TRY(sum_own_labels(e, b, a, k));
    struct roles r;
    find_roles(e, a, b, k, &r);
    uint32_t rank = r.n_batch + r.n_left + r.n_right;
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(e->lower, REE_UNSUPPORTED,
                              "an intermediate product of rank %u; at most %d is supported", rank,
                              REE_MAX_RANK);
    struct ree_view shape = {.dtype = a->t->dtype, .rank = rank};
    struct term result = {.t = &shape};
    memcpy(result.labels, r.batch, r.n_batch);
    memcpy(result.labels + r.n_batch, r.left, r.n_left);
    memcpy(result.labels + r.n_batch + r.n_left, r.right, r.n_right);
    for (uint32_t i = 0; i < rank; i++)
        shape.dims[i] = e->sizes[result.labels[i]];

    struct ree_view *product;
    if (r.n_sum == 0) {
        REE_TRY(multiply(e, a, b, &result, &product));
    } else {
        struct ree_view *ma, *mb;
        REE_TRY(as_matrix(e, a, &r, r.left, r.n_left, r.sum, r.n_sum, &ma));
        REE_TRY(as_matrix(e, b, &r, r.sum, r.n_sum, r.right, r.n_right, &mb));
        REE_TRY(ree_lower_matmul(e->lower, ma, mb, &product));
        REE_TRY(ree_lower_reshape(e->lower, product, rank, shape.dims, &product));
    }

    // Sort the labels by number again.
    struct term unsorted = result;
    unsorted.t = product;
    for (uint32_t i = 1; i < rank; i++) {
        uint8_t label = result.labels[i];
        uint32_t j = i;
        for (; j > 0 && e->order[result.labels[j - 1]] > e->order[label]; j--)
            result.labels[j] = result.labels[j - 1];
        result.labels[j] = label;
    }
    memcpy(a->labels, result.labels, sizeof a->labels);
    return permute(e, &unsorted, result.labels, &a->t);
}

enum ree_status ree_lower_op_einsum(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    uint32_t n = (uint32_t)lower->node->n_inputs;
    const char *text = ree_rule_string(lower, "equation", NULL);
    if (!text) return ree_lower_fail(lower, REE_INVALID, "attribute 'equation' is missing");
    if (lower->node->n_inputs > MAX_OPERANDS)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "more than %d inputs", MAX_OPERANDS);
    for (uint32_t k = 0; k < n; k++) {
        if (!in[k]) return ree_lower_fail(lower, REE_INVALID, "input %u is omitted", k);
        enum ree_dtype t = in[k]->dtype;
        if (t != REE_F32 && t != REE_F64 && t != REE_I32 && t != REE_U32 && t != REE_I64 &&
            t != REE_U64)
            return ree_rule_unsupported(lower, t);
        if (t != in[0]->dtype)
            return ree_lower_fail(lower, REE_INVALID, "input %u is %s, expected %s like input 0", k,
                                  ree_dtype_name(t), ree_dtype_name(in[0]->dtype));
    }
    struct equation e = {.lower = lower, .n_terms = n};
    REE_TRY(parse(&e, text, in));
    REE_TRY(find_sizes(&e, in));

    struct term acc;
    REE_TRY(make_term(&e, 0, in[0], &acc));
    for (uint32_t k = 1; k < n; k++) {
        struct term next;
        REE_TRY(make_term(&e, k, in[k], &next));
        REE_TRY(contract(&e, &acc, &next, k));
    }
    REE_TRY(sum_own_labels(&e, &acc, NULL, n - 1));
    // The remaining labels are the output's labels: some operand had each of them at its full size.
    return permute(&e, &acc, e.out, &out[0]);
}
