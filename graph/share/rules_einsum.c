// The rule of Einsum. Samples can be followed along a letter that each operand has at most once. If
// the output has the letter, each sample is computed by itself. If not, two operands that both have
// it are multiplied and summed over all samples: a product of matrices, several if other letters of
// both are in the output.
#include "graph/share/rule.h"

#include <ctype.h>

#define REPEATS "a letter occurs twice in one of its terms"

struct letters {
    uint32_t n;
    char at[REE_MAX_RANK]; // by axis
};

// Reads a list of letters up to `end`. Returns false if it has something else, or too much.
static bool read_letters(const char **text, char end, struct letters *out) {
    const char *p = *text;
    *out = (struct letters){0};
    for (; *p && *p != end; p++) {
        if (isspace((unsigned char)*p)) continue;
        if (!isalpha((unsigned char)*p) || out->n == REE_MAX_RANK) return false;
        out->at[out->n++] = *p;
    }
    *text = p;
    return *p == end;
}

static bool has_letter(const struct letters *letters, char letter, uint32_t *out_axis) {
    for (uint32_t i = 0; i < letters->n; i++)
        if (letters->at[i] == letter) {
            *out_axis = i;
            return true;
        }
    return false;
}

static bool repeats(const struct letters *letters) {
    for (uint32_t i = 0; i < letters->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (letters->at[i] == letters->at[k]) return true;
    return false;
}

// Reads the terms [n_inputs] and the output of the equation.
static const char *read_equation(const struct ree_division *x, struct letters *terms,
                                 struct letters *out) {
    const char *text = ree_node_string(x->node, "equation", "");
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        bool is_last = i + 1 == x->node->n_inputs;
        if (!read_letters(&text, is_last ? '-' : ',', &terms[i]))
            return "its equation has an ellipsis, or no '->'";
        text++;
        if (!ree_rule_input(x, i) || terms[i].n != ree_rule_input(x, i)->rank) return REE_NO_SHAPES;
        if (repeats(&terms[i])) return REPEATS;
    }
    if (*text++ != '>' || !read_letters(&text, '\0', out) || out->n != ree_rule_output(x, 0)->rank)
        return "its equation has an ellipsis, or no '->'";
    return repeats(out) ? REPEATS : NULL;
}

// Appends axis `axis` of both operands, and its size. Returns false if the sizes differ.
static bool add_common(const struct ree_division *x, const uint32_t axis[2], uint32_t n[2],
                       int64_t *size) {
    for (size_t i = 0; i < 2; i++)
        x->sum->order[i][n[i]++] = axis[i];
    *size = ree_rule_input(x, 0)->dims[axis[0]];
    return *size == ree_rule_input(x, 1)->dims[axis[1]];
}

// The sum over `letter`. NUMERICS.md, "Einsum", says what is a term: letters that both operands
// have and the output has not, in the order of their first appearance.
static const char *product_of_terms(struct ree_division *x, const struct letters *terms,
                                    const struct letters *out, char letter) {
    const char *const repeated = "it repeats an operand along a letter";
    struct ree_sum_node *sum = x->sum;
    uint32_t axis[2], at, n[2] = {0, 0};
    int64_t size, n_terms = 1;
    char made[REE_MAX_RANK];
    if (x->node->n_inputs != 2) return "it sums over samples, and has not two operands";
    for (size_t i = 0; i < 2; i++)
        if (ree_rule_input(x, i)->dtype != REE_F32)
            return "ree cannot sum this type over several ranks";
    sum->groups = sum->m = sum->n = 1;
    for (uint32_t i = 0; i < terms[0].n; i++) {
        axis[0] = i;
        bool is_common = has_letter(&terms[1], terms[0].at[i], &axis[1]);
        if (has_letter(out, terms[0].at[i], &at)) continue;
        if (!is_common) return "it sums over a letter of one operand";
        if (!n[0] && terms[0].at[i] != letter)
            return "its terms are not in the order of the samples";
        if (!add_common(x, axis, n, &size)) return repeated;
        n_terms *= size;
    }
    for (uint32_t i = 0; i < terms[0].n; i++) { // groups
        axis[0] = i;
        if (!has_letter(&terms[1], terms[0].at[i], &axis[1]) ||
            !has_letter(out, terms[0].at[i], &at))
            continue;
        made[sum->result_rank] = terms[0].at[i];
        if (!add_common(x, axis, n, &size)) return repeated;
        sum->result_dims[sum->result_rank++] = size;
        sum->groups *= size;
    }
    for (size_t k = 0; k < 2; k++) // letters of one operand
        for (uint32_t i = 0; i < terms[k].n; i++) {
            if (has_letter(&terms[1 - k], terms[k].at[i], &at)) continue;
            if (!has_letter(out, terms[k].at[i], &at))
                return "it sums over a letter of one operand";
            if (sum->result_rank == REE_MAX_RANK) return REE_NO_SHAPES;
            made[sum->result_rank] = terms[k].at[i];
            size = ree_rule_input(x, k)->dims[i];
            sum->result_dims[sum->result_rank++] = size;
            *(k ? &sum->n : &sum->m) *= size;
            sum->order[k][n[k]++] = i;
        }
    for (uint32_t i = 0; i < out->n; i++)
        for (uint32_t k = 0; k < sum->result_rank; k++)
            if (made[k] == out->at[i]) sum->result_order[i] = k;
    if (sum->result_rank != out->n) return REE_NO_SHAPES;
    x->role = REE_NODE_SUM;
    sum->kind = REE_SUM_OF_PRODUCTS;
    sum->n_per_sample = (uint64_t)(n_terms / x->d->options->batch);
    return ree_rule_check_operands(x);
}

const char *ree_share_einsum(struct ree_division *x) {
    struct letters *terms =
        ree_arena_alloc_array(&x->d->arena, x->node->n_inputs + 1, sizeof *terms);
    struct letters out;
    char letter = 0;
    int64_t per = 0;
    uint32_t at;
    if (!terms) return REE_NO_SHAPES;
    const char *why = read_equation(x, terms, &out);
    if (why) return why;
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = ree_rule_samples(x, i);
        if (!s.is_divided) continue;
        if (letter && (terms[i].at[s.axis] != letter || s.per != per)) return REE_NOT_ALIGNED;
        letter = terms[i].at[s.axis];
        per = s.per;
    }
    // An operand of which the letter has size 1 is repeated.
    for (size_t i = 0; i < x->node->n_inputs; i++)
        if (has_letter(&terms[i], letter, &at) &&
            ree_axis_fits(x->d, ree_rule_input(x, i), at, per))
            x->own->needs[i] = ree_divided_along(at, per);
    if (!has_letter(&out, letter, &at)) return product_of_terms(x, terms, &out, letter);
    if (!ree_axis_fits(x->d, ree_rule_output(x, 0), at, per)) return REE_NOT_ALIGNED;
    x->outputs[0] = ree_divided_along(at, per);
    return NULL;
}
