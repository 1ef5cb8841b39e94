// Facts about values, and the rules that derive them, for the proof in prove.h.
#ifndef REE_GRAPH_CAUSALITY_FACTS_H
#define REE_GRAPH_CAUSALITY_FACTS_H

#include "graph/causality/question.h"

enum ree_axis_kind {
    REE_AXIS_FIXED, // `size` elements in every run that succeeds
    REE_AXIS_NEW,   // the new tokens: element i is at position P + i
    REE_AXIS_ALL,   // all tokens: element j is at position j
    REE_AXIS_PAST,  // tokens before the new ones
    REE_AXIS_ROWS,  // selected tokens: element r is at that token's position
};

struct ree_axis {
    enum ree_axis_kind kind;
    int64_t size; // FIXED
};
#define REE_MAX_SIZE INT32_MAX // no tensor has more elements

// A number that depends linearly on the run's sizes: n + fresh * S + past * P.
struct ree_count {
    int64_t n, fresh, past;
};
#define REE_MAX_COUNTS 8
bool ree_count_is_number(struct ree_count count); // is the same in every run

// Elements at which a statement holds: those whose position along axis `key` is later than their
// position along axis `query`.
struct ree_order {
    bool holds;
    uint32_t key, query;
};

// What is true of a value in every run. Rules write facts. ree_fact_settle then drops whatever the
// field comments below do not allow, so that an error in a rule cannot lead to a proof.
struct ree_fact {
    const char *why_not; // why the value is not known to be causal; NULL: all below holds
    enum ree_dtype dtype;
    uint32_t rank;
    struct ree_axis axes[REE_MAX_RANK]; // sizes are 0 to REE_MAX_SIZE
    // Bit i: elements depend on the tokens up to their position along token axis i.
    uint32_t follows;
    bool may_be_nan;           // an element may be NaN instead of its value
    struct ree_order if_true;  // bool: false there, so if it is true, key <= query
    struct ree_order if_false; // bool: true there, so if it is false, key <= query
    struct ree_order masked;   // float: -inf there, or NaN if may_be_nan
    struct ree_order zeroed;   // float: +0, -0 or NaN there
    bool is_ramp;              // integer: an element is its position along axis `ramp` plus `shift`
    uint32_t ramp;
    int64_t shift;
    bool has_fill; // all elements equal `fill`
    double fill;
    // The elements, as functions of the sizes. Only for int32 and int64 of rank 0 or 1, or with one
    // element. If not all are plain numbers, the value differs between runs and `counts_only` is
    // set: only rules that accept counts may then read it.
    bool counts_only;
    size_t n_counts; // the number of elements; 0: their values are unknown
    struct ree_count counts[REE_MAX_COUNTS];
    bool is_rows;      // the ROWS input itself: token indices counted from position P
    ptrdiff_t past;    // of a cache's input: 1 + its index among the question's inputs; 0: none
    ptrdiff_t present; // of a cache's output: likewise
};

struct ree_prover {
    const struct ree_causality_question *question;
    struct ree_arena arena;
    struct ree_fact **facts; // by value id
    bool has_cache;
};

// One application of a rule. The rule fills `out`, which is zeroed, and returns NULL. If the rule
// does not apply, it returns the reason as a static text.
struct ree_derivation {
    struct ree_prover *prover;
    const struct ree_node *node;
    size_t n_in, n_out;
    const struct ree_fact *const *in; // NULL if omitted
    struct ree_fact *out;
};
typedef const char *(*ree_causality_rule)(struct ree_derivation *d);

struct ree_causality_row {
    const char *domain, *op_type;
    // Inputs, by bit, that may be counts_only. counts_as_data: their elements become elements of
    // the outputs, which must then have counts, too. counts_as_sizes: they give a size, a length or
    // a position.
    uint32_t counts_as_data, counts_as_sizes;
    ree_causality_rule rule;
    int arg; // for rules that serve several operators: kinds.h
};
const struct ree_causality_row *ree_causality_find(const struct ree_node *node); // NULL: no rule
int ree_causality_arg(const struct ree_derivation *d);

// facts.c

const struct ree_fact *ree_causality_in(const struct ree_derivation *d, size_t i); // NULL: omitted
bool ree_axis_is_fixed(const struct ree_axis *axis, int64_t size);
bool ree_axis_is_position(const struct ree_axis *axis);
// Returns whether the axis has an element for every position up to a query's own, with the position
// as its index. Sums over the axis are then the same in every run.
bool ree_axis_is_complete(const struct ree_derivation *d, const struct ree_axis *axis);
// The number of elements, if it is the same in every run and at most REE_MAX_COUNTS; else returns
// false.
bool ree_fact_elements(const struct ree_fact *f, size_t *out);
// Checks what a rule has written. Drops statements about the elements that the field comments do
// not allow. Sets why_not if a shape or `follows` is impossible.
void ree_fact_settle(struct ree_fact *f);
bool ree_fact_is_float(const struct ree_fact *f);
bool ree_fact_is_index(const struct ree_fact *f); // int32 or int64
bool ree_fact_is_plain(const struct ree_fact *f); // independent of tokens and positions: a constant
// Copies only the shape, the type, `follows` and may_be_nan of `f`.
void ree_fact_like(struct ree_fact *out, const struct ree_fact *f);
// Copies all of `f` with its axes renumbered: axis i becomes to[i], or is dropped if to[i] is -1.
// The caller must set out->axes and out->rank. Counts keep their order, so the caller must not
// reorder elements.
void ree_fact_move(struct ree_fact *out, const struct ree_fact *f, const int *to);
// Sets the common shape, `follows` and may_be_nan. shifts[i] is the number to add to an axis of
// in[i].
const char *ree_fact_broadcast(struct ree_fact *out, size_t n, const struct ree_fact *const *in,
                               uint32_t *shifts);
// Adds `shift` to both axes of the order.
struct ree_order ree_order_shift(struct ree_order o, uint32_t shift);
// Reads plain integers, such as a list of axes. Returns false if `f` is NULL or has none.
bool ree_fact_numbers(const struct ree_fact *f, size_t *out_n, int64_t out[REE_MAX_COUNTS]);
// The size of the axis as a count; n is -1 for REE_AXIS_ROWS, whose size is not a count.
struct ree_count ree_axis_count(const struct ree_axis *axis);
// Writes the axis that has this size in every run, such as the new tokens or all tokens, to *out;
// returns false if there is none.
bool ree_count_axis(const struct ree_derivation *d, struct ree_count count, struct ree_axis *out);
bool ree_axes_same(const struct ree_axis *a, const struct ree_axis *b);
// Converts an axis in [-rank, rank) to [0, rank); returns false if it is out of range.
bool ree_read_axis(int64_t axis, uint32_t rank, uint32_t *out);
// Reads a list from the attribute, or from input i if present. *out_n is 0 if it is absent.
const char *ree_read_numbers(const struct ree_derivation *d, const char *attribute, size_t i,
                             size_t *out_n, int64_t out[REE_MAX_COUNTS]);
// Derives the fact about a constant; sets why_not if the value is not a tensor with a shape.
void ree_fact_constant(struct ree_fact *out, const struct ree_value *value);

// Derives the fact about a cache: `past`, a cache's input, with `fresh` appended along `axis`, its
// axis of positions. The result must be the cache's output.
const char *ree_fact_append(struct ree_derivation *d, const struct ree_fact *past,
                            const struct ree_fact *fresh, size_t output, uint32_t axis);

#define RULE(name) const char *ree_causality_##name(struct ree_derivation *d)
// elementwise.c
RULE(unary);
RULE(arithmetic);
RULE(compare);
RULE(logic);
RULE(logic_not);
RULE(where);
RULE(cast);
RULE(power);
RULE(bias);
// products.c
RULE(matmul);
RULE(internal_matmul);
RULE(gemm);
RULE(matmul_nbits);
RULE(softmax);
RULE(reduce);
RULE(cumsum);
RULE(conv);
RULE(norm);
RULE(skip_norm);
// movement.c
RULE(identity);
RULE(constant_node);
RULE(shape);
RULE(constant_of_shape);
RULE(range);
RULE(reshape);
RULE(transpose);
RULE(squeeze);
RULE(unsqueeze);
RULE(expand);
RULE(concat);
RULE(split);
RULE(slice);
RULE(gather);
RULE(gather_block_quantized);
RULE(gather_nd);
RULE(trilu);
// attention.c
RULE(attention);
RULE(rotary);
RULE(ms_rotary);
RULE(group_query);
#undef RULE

#endif
