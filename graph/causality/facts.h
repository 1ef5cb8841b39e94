// Facts about values, and the rules that derive them from node to node, for the proof in prove.h. A
// run computes S new tokens, after P past tokens.
#ifndef REE_GRAPH_CAUSALITY_FACTS_H
#define REE_GRAPH_CAUSALITY_FACTS_H

#include "graph/causality/question.h"

enum ree_axis_kind {
    REE_AXIS_FIXED, // `size` elements in every run that succeeds
    REE_AXIS_NEW,   // the S new tokens: element i is at position P + i
    REE_AXIS_ALL,   // all P + S tokens: element j is at position j
    REE_AXIS_PAST,  // the P past tokens: element j is at position j
    // the tokens that a run selects: element r is at the position of selected token r
    REE_AXIS_ROWS,
};

struct ree_axis {
    enum ree_axis_kind kind;
    int64_t size; // number of elements; only for REE_AXIS_FIXED
};
#define REE_MAX_SIZE INT32_MAX // no tensor has more elements

// A number that depends linearly on the sizes of a run: n + fresh * S + past * P, with S new tokens
// and P past tokens.
struct ree_count {
    int64_t n, fresh, past;
};
#define REE_MAX_COUNTS 8
bool ree_count_is_number(struct ree_count count); // whether the count is the same in every run

// A statement about the elements whose position along axis `key` is later than their position along
// axis `query`. The field of this type says what holds for these elements. `holds` is false if
// nothing is known about them.
struct ree_order {
    bool holds;
    uint32_t key, query;
};

// What is true of a value in every run. Rules write facts. ree_fact_settle then drops statements
// that contradict the field comments below, so that an error in a rule cannot lead to a proof.
struct ree_fact {
    const char *why_not; // why the value is not known to be causal; NULL: all fields below hold
    enum ree_dtype dtype;
    uint32_t rank;
    struct ree_axis axes[REE_MAX_RANK]; // sizes are 0 to REE_MAX_SIZE
    // Bit i: an element depends on tokens up to its position along token axis i, and on no later
    // ones.
    uint32_t follows;
    // an element may be NaN instead of the value that its tokens determine
    bool may_be_nan;
    // Bool values: an element can be true only if its position on axis `key` is at or before its
    // position on axis `query`.
    struct ree_order if_true;
    // Bool values: an element can be false only if its position on axis `key` is at or before its
    // position on axis `query`.
    struct ree_order if_false;
    // Float values: elements with a later position on axis `key` than on axis `query` are -inf, or
    // NaN if may_be_nan is set.
    struct ree_order masked;
    // Float values: elements with a later position on axis `key` than on axis `query` are +0, -0 or
    // NaN.
    struct ree_order zeroed;
    bool is_ramp; // integer: an element is its position along axis `ramp` plus `shift`
    uint32_t ramp;
    int64_t shift;
    bool has_fill; // all elements equal `fill`
    double fill;
    // The elements, as functions of S and P. Known only for int32 and int64 of rank 0 or 1, or with
    // one element. If an element depends on S or P, the value differs between runs and
    // `counts_only` is set: only rules that accept counts may then read it.
    bool counts_only;
    size_t n_counts; // number of `counts`, one for each element; 0: the elements are unknown
    struct ree_count counts[REE_MAX_COUNTS];
    // The value is the input REE_CAUSALITY_ROWS: indices of new tokens, counted from position P.
    bool is_rows;
    // The value is the input of a cache: 1 + the index of that input in question->inputs. 0: it is
    // not.
    ptrdiff_t past;
    // The value is the next contents of a cache: 1 + the index of that cache's input. 0: it is not.
    ptrdiff_t present;
};

struct ree_prover {
    const struct ree_causality_question *question;
    struct ree_arena arena;
    struct ree_fact **facts; // facts[value->id]; NULL: nothing is known about the value
    const char *why_not; // of the first node that is not proved; NULL: none so far
    bool lacks_memory;   // an allocation outside of the arena failed
    bool has_cache;
};

// One application of a rule. The rule fills `out`, which is zeroed, and returns NULL. If the rule
// does not apply, it returns the reason as a static text.
struct ree_derivation {
    struct ree_prover *prover;
    const struct ree_node *node;
    size_t n_in, n_out;
    const struct ree_fact *const *in; // in[i]: fact about input i; NULL if omitted
    struct ree_fact *out;
};
typedef const char *(*ree_causality_rule)(struct ree_derivation *d);

struct ree_causality_row {
    const char *domain, *op_type;
    // Bit i is set if input i may be a value with counts_only set.
    // - counts_as_data: the elements of the input become elements of the outputs, so the outputs
    //   must have counts, too.
    // - counts_as_sizes: the elements of the input are sizes, lengths or positions.
    uint32_t counts_as_data, counts_as_sizes;
    ree_causality_rule rule;
    // selects the operator if a rule serves several: an enumerator of kinds.h
    int arg;
    // The attributes that the rule takes into account, or that do not decide which elements the
    // operator reads; separated by spaces. A node with another attribute is not proved, because
    // lowering may read it.
    const char *attributes;
};
const struct ree_causality_row *ree_causality_find(const struct ree_node *node); // NULL: no rule
int ree_causality_arg(const struct ree_derivation *d);

// facts.c

const struct ree_fact *ree_causality_in(const struct ree_derivation *d, size_t i); // NULL: omitted
bool ree_axis_is_fixed(const struct ree_axis *axis, int64_t size);
bool ree_axis_is_position(const struct ree_axis *axis);
// Returns whether the axis has an element for every position from 0 to a query's own, and the
// element's index is its position. Sums over such an axis are the same in every run.
bool ree_axis_is_complete(const struct ree_derivation *d, const struct ree_axis *axis);
// Writes the number of elements to *out. Returns false if it differs between runs or exceeds
// REE_MAX_COUNTS.
bool ree_fact_elements(const struct ree_fact *f, size_t *out);
// Checks a fact that a rule has written. Drops statements about elements that contradict the
// comments of struct ree_fact. Sets why_not if a shape or `follows` is impossible.
void ree_fact_settle(struct ree_fact *f);
bool ree_fact_is_float(const struct ree_fact *f);
bool ree_fact_is_index(const struct ree_fact *f); // int32 or int64
// whether the value is independent of tokens and positions
bool ree_fact_is_plain(const struct ree_fact *f);
// Copies from `f` only the dtype, the shape, `follows` and may_be_nan.
void ree_fact_like(struct ree_fact *out, const struct ree_fact *f);
// Copies all of `f` with renumbered axes: axis i becomes axis to[i]; if to[i] is -1, the statements
// about axis i are dropped. The caller must set out->axes and out->rank before the call. Counts
// keep their order, so the caller must not reorder elements.
void ree_fact_move(struct ree_fact *out, const struct ree_fact *f, const int *to);
// Describes the result of an elementwise operator on n values, which are broadcast to one shape:
// sets out->axes, out->rank, out->follows and out->may_be_nan. shifts[i] receives the number to add
// to an axis of in[i] to get the axis of `out`. Returns NULL, or why the shapes do not match.
const char *ree_fact_broadcast(struct ree_fact *out, size_t n, const struct ree_fact *const *in,
                               uint32_t *shifts);
// Returns `o` with `shift` added to the axis numbers o.key and o.query.
struct ree_order ree_order_shift(struct ree_order o, uint32_t shift);
// Reads elements that are the same in every run, such as a list of axes. Returns false if `f` is
// NULL or the elements are not known.
bool ree_fact_numbers(const struct ree_fact *f, size_t *out_n, int64_t out[REE_MAX_COUNTS]);
// Returns the size of the axis; with n = -1 for REE_AXIS_ROWS, whose size does not depend on S and
// P.
struct ree_count ree_axis_count(const struct ree_axis *axis);
// Finds the kind of axis that has the size `count` in every run: a fixed size, the new tokens or
// all tokens. Returns false if there is none.
bool ree_count_axis(const struct ree_derivation *d, struct ree_count count, struct ree_axis *out);
bool ree_axes_same(const struct ree_axis *a, const struct ree_axis *b);
// Converts an axis in [-rank, rank) to [0, rank); returns false if it is out of range.
bool ree_read_axis(int64_t axis, uint32_t rank, uint32_t *out);
// Reads a list of integers from input i if it is present, else from the attribute. *out_n is 0 if
// there is neither. Returns NULL, or why the list cannot be read.
const char *ree_read_numbers(const struct ree_derivation *d, const char *attribute, size_t i,
                             size_t *out_n, int64_t out[REE_MAX_COUNTS]);
// Derives the fact about a constant. Sets why_not if the constant is not a tensor with a shape.
void ree_fact_constant(struct ree_fact *out, const struct ree_value *value);

// Derives the fact about output number `output`: `past`, the input of a cache, with `fresh`, the
// new tokens' rows, appended along `axis`. This output must be the next contents of the cache, and
// `axis` its axis of positions. Returns NULL, or why the conditions do not hold.
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
