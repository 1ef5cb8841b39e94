// Facts about values, and the rules that derive them: parts of the proof in prove.h.
#ifndef REE_GRAPH_CAUSALITY_FACTS_H
#define REE_GRAPH_CAUSALITY_FACTS_H

#include "graph/causality/prove.h"

enum ree_axis_kind {
    REE_AXIS_FIXED, // `size` elements in every run that has no error
    REE_AXIS_NEW,   // the new tokens: element i stands at position P + i
    REE_AXIS_ALL,   // all tokens: element j stands at position j
    REE_AXIS_PAST,  // tokens before the new ones
    REE_AXIS_ROWS,  // chosen tokens: element r stands at that token's position
};

struct ree_axis {
    enum ree_axis_kind kind;
    int64_t size; // FIXED
};
#define REE_MAX_SIZE INT32_MAX // no run has a larger tensor

// A number made of sizes: n + fresh * S + past * P.
struct ree_count {
    int64_t n, fresh, past;
};
#define REE_MAX_COUNTS 8
bool ree_count_is_number(struct ree_count count); // the same in every run

// Says where a statement holds: at elements whose position along axis `key` is later than their
// position along axis `query`.
struct ree_order {
    bool holds;
    uint32_t key, query;
};

// What a value is in every run. Rules write facts, and ree_fact_settle holds each one to what the
// comments of its fields say, so that a rule's error cannot make a proof of it.
struct ree_fact {
    const char *why_not; // the value is not known to be causal; NULL: all below holds
    enum ree_dtype dtype;
    uint32_t rank;
    struct ree_axis axes[REE_MAX_RANK]; // sizes are 0 to REE_MAX_SIZE
    // Axes of tokens, by bit, on whose positions' tokens (and earlier ones) it depends.
    uint32_t follows;
    bool may_be_nan;           // elements may be NaN in place of what they are
    struct ree_order if_true;  // bool: false there, so where it is true, key <= query
    struct ree_order if_false; // bool: true there, so where it is false, key <= query
    struct ree_order masked;   // float: -inf there, or NaN if may_be_nan
    struct ree_order zeroed;   // float: +0, -0 or NaN there
    bool is_ramp;              // integer: an element is its position along `ramp` plus `shift`
    uint32_t ramp;
    int64_t shift;
    bool has_fill; // all elements are this number
    double fill;
    // int32 and int64 of rank 0 or 1, or of one element: the elements, made of sizes. Unless all
    // are plain numbers, the value differs between runs, and `counts_only` is set: only rules that
    // take counts may read it.
    bool counts_only;
    size_t n_counts; // the number of elements; 0: their values are not known
    struct ree_count counts[REE_MAX_COUNTS];
    bool is_rows;      // the ROWS input itself: numbers that count from P
    ptrdiff_t past;    // a cache's input: 1 + its number among the question's inputs; 0: none
    ptrdiff_t present; // a cache's output, likewise
};

struct ree_prover {
    const struct ree_causality_question *question;
    struct ree_arena arena;
    struct ree_fact **facts; // by value id
    bool has_cache;
};

// One application of a rule. Rules fill `out`, which is zeroed, and return NULL, or the reason why
// not, a static text.
struct ree_derivation {
    struct ree_prover *prover;
    const struct ree_node *node;
    size_t n_in, n_out;
    const struct ree_fact *const *in; // NULL where omitted
    struct ree_fact *out;
};
typedef const char *(*ree_causality_rule)(struct ree_derivation *d);

struct ree_causality_row {
    const char *domain, *op_type;
    // Inputs, by bit, that may be counts_only: those whose elements become elements of the outputs,
    // which then must have counts, too, and those that say a size, a length or a position.
    uint32_t counts_as_data, counts_as_sizes;
    ree_causality_rule rule;
    int arg; // of rules that serve several operators
};
const struct ree_causality_row *ree_causality_find(const struct ree_node *node); // NULL: no rule
int ree_causality_arg(const struct ree_derivation *d);

// facts.c

const struct ree_fact *ree_causality_in(const struct ree_derivation *d, size_t i); // NULL: omitted
bool ree_axis_is_fixed(const struct ree_axis *axis, int64_t size);
bool ree_axis_is_position(const struct ree_axis *axis);
// Every position up to a query's own is among the axis's elements, and the element's number is its
// position: sums over them are the same in every run.
bool ree_axis_is_complete(const struct ree_derivation *d, const struct ree_axis *axis);
// The elements in every run, at most REE_MAX_COUNTS. False: they are more, or differ between runs.
bool ree_fact_elements(const struct ree_fact *f, size_t *out);
// Checks what a rule has said. Drops what is said of the elements where the fields' comments do not
// allow it; sets why_not where a shape, or what the value follows, cannot be.
void ree_fact_settle(struct ree_fact *f);
bool ree_fact_is_float(const struct ree_fact *f);
bool ree_fact_is_index(const struct ree_fact *f); // int32 or int64
bool ree_fact_is_plain(const struct ree_fact *f); // no tokens, no positions: a constant
// Shape and type of `f`, with what it follows and may_be_nan, and nothing else.
void ree_fact_like(struct ree_fact *out, const struct ree_fact *f);
// The whole of `f` with its axes moved: axis i becomes to[i], or is dropped where that is -1.
// out->axes and out->rank are the caller's to set. Counts are kept in their order, so that the
// caller must not exchange elements.
void ree_fact_move(struct ree_fact *out, const struct ree_fact *f, const int *to);
// The common shape, what it follows, may_be_nan; *shift[i] is what is added to an axis of in[i].
const char *ree_fact_broadcast(struct ree_fact *out, size_t n, const struct ree_fact *const *in,
                               uint32_t *shifts);
struct ree_order ree_order_shift(struct ree_order o, uint32_t shift);
// Plain integers: an axis list, a permutation's size, ...
bool ree_fact_numbers(const struct ree_fact *f, size_t *out_n, int64_t out[REE_MAX_COUNTS]);
struct ree_count ree_axis_count(const struct ree_axis *axis);
// False: no axis has this size in every run.
bool ree_count_axis(const struct ree_derivation *d, struct ree_count count, struct ree_axis *out);
bool ree_axes_same(const struct ree_axis *a, const struct ree_axis *b);
bool ree_read_axis(int64_t axis, uint32_t rank, uint32_t *out);
// Of a list that is an attribute or input i. *out_n = 0: absent.
const char *ree_read_numbers(const struct ree_derivation *d, const char *attribute, size_t i,
                             size_t *out_n, int64_t out[REE_MAX_COUNTS]);
void ree_fact_constant(struct ree_fact *out, const struct ree_value *value);

// The cache whose past is `past` gets `fresh` behind it: the fact about the whole, which has to be
// the cache's output. axis: of positions.
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
RULE(gather_nd);
RULE(trilu);
// attention.c
RULE(attention);
RULE(rotary);
RULE(ms_rotary);
RULE(group_query);
#undef RULE

#endif
