// Lowering: from ONNX nodes over concrete shapes to RepOps.
//
// A bind walks the graph's nodes in order with every input shape known. Each node's rule (one
// function in this folder, found through the operator table in ops.def) checks its inputs, derives
// the output's type and shape and emits dispatches. Rules work on struct ree_tval: a typed, strided
// view of a storage. Views cost nothing (Transpose, Slice, Reshape, Expand are views); a rule that
// needs dense memory asks ree_lower_dense.
//
// Host values. A storage whose contents are known on the host (constants, shapes, small inputs that
// shape rules read) carries a pointer to them. A dispatch whose operands are all host-known and
// whose outputs are small runs at once on the host, by the CPU backend's kernels: so shape
// subgraphs are evaluated, and constants folded, by the same RepOps that would have run on the
// device.
#ifndef REE_GRAPH_LOWER_LOWER_H
#define REE_GRAPH_LOWER_LOWER_H

#include "graph/ir.h"
#include "repops/repop.h"

enum ree_storage_kind {
    REE_STORAGE_TEMP,    // intermediate, placed by the memory plan
    REE_STORAGE_CONST,   // graph value `value`, resident on the device
    REE_STORAGE_INPUT,   // graph input `value`
    REE_STORAGE_LITERAL, // host-known bytes made during the bind; uploaded if a dispatch reads it
    REE_STORAGE_STATE    // stays on the device from run to run: see ree_lower_state
};

struct ree_storage {
    enum ree_storage_kind kind;
    uint32_t id; // index into ree_lower.storages
    uint64_t nbytes;
    const void *host; // contents if known on the host, else NULL
    void *
        host_writable; // the same, while the bind that makes them may still write (concat, scatter)
    bool device_written;           // a dispatch of the program writes it
    const struct ree_value *value; // CONST, INPUT
    uint32_t input;                // INPUT: which of the tensors that the run was given
    struct ree_lower_state *state; // STATE
};

// A tensor that stays on the device and grows along one axis, as a cache of keys does. There is
// room for `capacity` along that axis, of which the first dims[axis] are filled.
struct ree_lower_state {
    uint32_t index; // the session's number of it
    uint32_t rank, axis;
    int64_t dims[REE_MAX_RANK];
    int64_t capacity;
    bool is_extended;  // rows were added in this bind: once only
    bool is_scattered; // to places that data says, which may be rows that were filled
};

struct ree_tval {
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    int64_t strides[REE_MAX_RANK]; // elements; 0 repeats; may be negative
    int64_t offset;                // elements
    struct ree_storage *storage;
    // A sequence is a list that the bind knows, an absent optional value a mark; neither has a
    // storage. Rules see them only under REE_NARROW_ANY. dtype is that of the items.
    enum ree_kind kind;
    size_t n_items;
    struct ree_tval **items;
};

// The tensors of one activation of a graph: of the model, or of a subgraph while a node runs it.
struct ree_frame {
    const struct ree_graph *graph;
    struct ree_frame *parent; // the activation around this one; NULL: the outermost
    struct ree_tval **values; // by value id; NULL: not made yet
};

// Nodes of subgraphs, and runs of subgraphs, that are lowered in one bind. A body is lowered anew
// for each iteration, so this is what stops a loop that would not end, before memory does.
#define REE_LOWER_MAX_STEPS (UINT32_C(1) << 17)

struct ree_lower {
    struct ree_arena *arena; // lives as long as the bind
    struct ree_error *err;
    const struct ree_graph *graph;
    const struct ree_node *node; // the one being lowered
    // Within a subgraph: the node of the outermost graph around it, which answers for the
    // dispatches. NULL: none is around.
    const struct ree_node *outer_node;
    struct ree_frame *frame;      // of `node`
    uint32_t n_steps, step_limit; // REE_LOWER_MAX_STEPS where the limit is 0
    // Of the node that failed: a value was declared with another type than it has; a shape or a
    // decision hung on data that was not to be had.
    bool contradicts, wants_data;
    uint32_t stays_wide; // set by a rule under REE_NARROW_WIDEN: outputs (by bit) that are float32
                         // whatever the inputs are
    bool fuse;           // false: rules use only elementary steps, and views are materialised
    bool fold;           // false: floating-point constants are not folded
    uint64_t fold_limit; // bytes of output up to which host-known dispatches run on the host

    struct ree_strings *strings; // of this bind, made when the first is met

    // Of states whose batches are filled to different lengths: the row that each new row of a batch
    // goes to, i64 or i32 [batch, new rows]; what is filled then counts as reaching up to the
    // longest. NULL: all batches are filled alike.
    struct ree_tval *state_rows;

    size_t n_storages, storages_capacity;
    struct ree_storage **storages;
    // The program so far; operands' slots are storage ids, resolved by the session.
    size_t n_dispatches, dispatches_capacity;
    struct ree_dispatch *dispatches;

    // Runs a dispatch on host memory (the session passes ree_cpu_execute).
    enum ree_status (*host_execute)(const struct ree_dispatch *dispatch, void *const *operands,
                                    struct ree_error *err);
    // Makes a storage's contents host-known: reads a graph input, or runs the program so far and
    // downloads.
    enum ree_status (*read_storage)(struct ree_lower *lower, struct ree_storage *storage);
    void *user; // of read_storage
};

// A rule lowers lower->node. in[i] is NULL where omitted; n_in counts trailing omissions too (it is
// node->n_inputs). out has an entry for each output that the row has (node->n_outputs where the row
// sets no limit), all NULL; those that the node has not, or as node->outputs[i] NULL, may stay so.
typedef enum ree_status (*ree_lower_rule)(struct ree_lower *lower, struct ree_tval *const *in,
                                          struct ree_tval **out);

// Who deals with float16 and bfloat16 inputs: the rule, or the caller, who widens them to float32
// and rounds the rule's float32 results to the type of the first such input. ANY is AS_IS for rules
// that also take sequences and absent values.
enum ree_narrow { REE_NARROW_AS_IS, REE_NARROW_WIDEN, REE_NARROW_ANY };

// The operator table: one row per operator and opset range (graph/lower/ops.def).
struct ree_op {
    const char *domain;
    const char *op_type;
    int64_t since, until; // opset range, inclusive
    uint32_t min_inputs, max_inputs, max_outputs;
    enum ree_narrow narrow;
    ree_lower_rule rule;
};
// NULL when there is no row; *out_reason (may be NULL) is then a static text ("not implemented",
// "opset 24 is newer than the 23 this row covers").
const struct ree_op *ree_op_find(const char *domain, const char *op_type, int64_t opset,
                                 const char **out_reason);

// Errors. "node 'x' (Op): " is put in front by the caller of the rule.
#define ree_lower_fail(lower, status, ...) ree_fail((lower)->err, status, __VA_ARGS__)

// Tensors.
// New uninitialised dense tensor; checks rank, element count (< 2^31) and overflow.
enum ree_status ree_lower_new(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                              const int64_t *dims, struct ree_tval **out);
// A host-known tensor; `bytes` (dense) are copied.
enum ree_status ree_lower_literal(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, const void *bytes, struct ree_tval **out);
enum ree_status ree_lower_ints(struct ree_lower *lower, size_t n, const int64_t *values,
                               struct ree_tval **out); // i64[n]
// The tensor of a constant (kind CONST) or of a graph input bound to dims (kind INPUT).
enum ree_status ree_lower_value(struct ree_lower *lower, const struct ree_value *value,
                                enum ree_storage_kind kind, const int64_t *dims,
                                struct ree_tval **out);
bool ree_tval_is_dense(const struct ree_tval *t); // row-major without gaps, at any offset
int64_t ree_tval_count(const struct ree_tval *t); // elements
// "float32[1,8,28]" into a buffer of the caller; returns it.
const char *ree_tval_text(const struct ree_tval *t, char *out, size_t size);

// States (state.c).
enum ree_status ree_lower_state(struct ree_lower *lower, enum ree_dtype dtype,
                                const struct ree_lower_state *state, struct ree_tval **out);
// past with t behind it along the axis; equal otherwise, which the caller has checked. Where past
// is a state with room, t is written in place and the result is a view of it; else a new tensor.
enum ree_status ree_lower_append(struct ree_lower *lower, struct ree_tval *past, uint32_t axis,
                                 struct ree_tval *t, struct ree_tval **out);
// past with room for n more rows along the axis, whose contents are the caller's to write.
enum ree_status ree_lower_extend(struct ree_lower *lower, struct ree_tval *past, uint32_t axis,
                                 int64_t n, struct ree_tval **out);
// Whether `past` is a state that can grow by n in this bind without moving.
bool ree_lower_grows_in_place(const struct ree_tval *past, uint32_t axis, int64_t n);
// t into rows of `target`, from a row of its own for each batch (dimension 0): `rows` is i64 or i32
// [batch, t->dims[axis]]. Target is written in place.
enum ree_status ree_lower_scatter_rows(struct ree_lower *lower, struct ree_tval *target,
                                       uint32_t axis, struct ree_tval *rows, struct ree_tval *t);

// Host values. Dense contents of t on the host, making them known if need be (may run the program
// so far).
enum ree_status ree_lower_host(struct ree_lower *lower, struct ree_tval *t, const void **out_bytes);
bool ree_lower_is_host(const struct ree_tval *t);
// An i32 or i64 tensor as int64 values, allocated in the arena. `what` names it in messages
// ("shape").
enum ree_status ree_lower_host_ints(struct ree_lower *lower, struct ree_tval *t, const char *what,
                                    const int64_t **out_values, size_t *out_n);
enum ree_status ree_lower_host_float(struct ree_lower *lower, struct ree_tval *t, const char *what,
                                     float *out);

// Strings. Within a bind an element of REE_STRING is a number of 64 bits, the same for equal
// strings and 0 for the empty one: what moves data moves strings, and what compares numbers
// compares them. The text is known to the host alone.
enum ree_status ree_lower_intern(struct ree_lower *lower, const char *s, size_t n, int64_t *out);
const char *ree_lower_text(const struct ree_lower *lower, int64_t string); // NULL: no such string
enum ree_status ree_lower_strings(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                                  const char *const *strings, struct ree_tval **out);
// The elements of a string tensor as text, brought to the host.
enum ree_status ree_lower_host_strings(struct ree_lower *lower, struct ree_tval *t,
                                       const char *what, const char *const **out, size_t *out_n);

// Sequences and absent values.
enum ree_status ree_lower_sequence(struct ree_lower *lower, enum ree_dtype dtype, size_t n,
                                   struct ree_tval *const *items, struct ree_tval **out);
enum ree_status ree_lower_absent(struct ree_lower *lower, enum ree_dtype dtype,
                                 struct ree_tval **out);

// Views (no dispatch). All check their arguments and fail with a message.
struct ree_tval *ree_lower_view(struct ree_lower *lower,
                                const struct ree_tval *t); // a copy to modify; NULL: memory
enum ree_status
ree_lower_reshape(struct ree_lower *lower, struct ree_tval *t, uint32_t rank, const int64_t *dims,
                  struct ree_tval **out); // materialises when strides do not allow it
enum ree_status ree_lower_transpose(struct ree_lower *lower, struct ree_tval *t,
                                    const uint32_t *perm, struct ree_tval **out);
// Broadcasts to dims (ONNX multidirectional rules, right-aligned).
enum ree_status ree_lower_broadcast(struct ree_lower *lower, struct ree_tval *t, uint32_t rank,
                                    const int64_t *dims, struct ree_tval **out);
// The common shape of n tensors; fails with both shapes in the message.
enum ree_status ree_lower_broadcast_dims(struct ree_lower *lower, size_t n,
                                         struct ree_tval *const *ts, uint32_t *out_rank,
                                         int64_t out_dims[REE_MAX_RANK]);
// [start, start + step * (count-1)] along one axis; step may be negative; start already in range.
enum ree_status ree_lower_slice(struct ree_lower *lower, struct ree_tval *t, uint32_t axis,
                                int64_t start, int64_t step, int64_t count, struct ree_tval **out);
// Same elements, dense in memory: t itself when it is, else a copy.
enum ree_status ree_lower_dense(struct ree_lower *lower, struct ree_tval *t, struct ree_tval **out);
// Copies src over a view `dst` of a tensor made by ree_lower_new (concat, pad). Same dims and dtype
// size.
enum ree_status ree_lower_copy_into(struct ree_lower *lower, struct ree_tval *src,
                                    struct ree_tval *dst);
// axis in [-rank, rank) to [0, rank); fails naming `what`.
enum ree_status ree_lower_axis(struct ree_lower *lower, int64_t axis, uint32_t rank, uint32_t *out);

// Expressions. Build with init, operand, iota, const and op; finish with ree_lower_map. Errors
// stick in the builder and are reported by ree_lower_map. Values are small integers.
struct ree_expr_builder {
    struct ree_lower *lower;
    struct ree_expr expr;
    struct ree_tval
        *tensors[REE_EXPR_MAX_OPERANDS]; // in operand order (iota operands have none: NULL)
    bool has_accumulator;                // an epilogue: value 0 is the accumulator
    enum ree_status status;
    uint64_t instr_values[REE_EXPR_MAX_INSTRS];
};
void ree_expr_init(struct ree_expr_builder *b, struct ree_lower *lower, uint32_t rank,
                   const int64_t *dims);
// t broadcast to the builder's dims. The same tval twice gives the same operand.
int ree_expr_tensor(struct ree_expr_builder *b, struct ree_tval *t);
int ree_expr_iota(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t offset,
                  const int64_t *strides);
int ree_expr_f32(struct ree_expr_builder *b, float value);
int ree_expr_f64(struct ree_expr_builder *b, double value);
int ree_expr_i32(struct ree_expr_builder *b, int32_t value);
int ree_expr_i64(struct ree_expr_builder *b, int64_t value);
// A float32 operation (or select_b32) on a float64 argument is the float64 operation, with the
// other arguments widened: so rules are written once for both.
int ree_expr_op1(struct ree_expr_builder *b, enum ree_map_op op, int a);
int ree_expr_op2(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_);
int ree_expr_op3(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_, int c);
// Emits `map` with value `result` of type dtype; REE_F32 stands for float64 when the value is that.
enum ree_status ree_lower_map(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                              struct ree_tval **out);
// The same into a dense part of an existing tensor, of as many elements as the expression has.
enum ree_status ree_lower_map_into(struct ree_expr_builder *b, int result, struct ree_tval *dst);
// Conversion between types as ONNX Cast, as instructions on a value of type `from`; bool is x != 0.
// The mode concerns float8 results alone, and is {0} where ONNX has no attribute for it.
struct ree_cast_mode {
    bool no_saturate;       // infinity or NaN beyond the largest number, not that number
    uint32_t e8m0_rounding; // REE_E8M0_UP, _DOWN or _NEAREST of scalar/narrow.h
};
int ree_expr_cast(struct ree_expr_builder *b, int value, enum ree_dtype from, enum ree_dtype to);
int ree_expr_cast_mode(struct ree_expr_builder *b, int value, enum ree_dtype from,
                       enum ree_dtype to, struct ree_cast_mode mode);
enum ree_status ree_lower_cast(struct ree_lower *lower, struct ree_tval *t, enum ree_dtype to,
                               struct ree_tval **out);
enum ree_status ree_lower_cast_mode(struct ree_lower *lower, struct ree_tval *t, enum ree_dtype to,
                                    struct ree_cast_mode mode, struct ree_tval **out);

// Drops dimensions of size 1 and merges neighbours that every operand steps through evenly.
void ree_expr_coalesce(struct ree_expr *expr);

// RepOps, each on whole tensors. Inputs are made dense where the RepOp wants that.
// Sum, ... over the axes in the bit mask; keepdims keeps them as 1. Output dtype as
// ree_reduce_params says.
enum ree_status ree_lower_reduce(struct ree_lower *lower, struct ree_tval *t,
                                 enum ree_reduce_kind kind, uint32_t axes_mask, bool keepdims,
                                 bool select_last, struct ree_tval **out);
// The type of a product's sum (repop.h, matmul): float32 for floats, int32 for 8-bit integers, else
// the type itself; REE_DTYPE_NONE where the two do not multiply.
enum ree_dtype ree_product_dtype(enum ree_dtype a, enum ree_dtype b);
// numpy.matmul shapes for rank >= 2 on both sides (the 1-D forms are the rule's business). The
// result has the sum's type.
enum ree_status ree_lower_matmul(struct ree_lower *lower, struct ree_tval *a, struct ree_tval *b,
                                 struct ree_tval **out);
// Appends a filled dispatch, or runs it at once on the host when everything it reads is host-known.
// Operands whose parameters have an offset field (copy src and dst, what map and attention read,
// reduce x, matmul A and B, gather data, epilogue tensors) are handed over from the start of their
// storage: the rule puts the view's offset into the parameters. All others start at the view's own
// offset and must be dense (ree_lower_dense). The last n_outputs operands are written; copy's dst
// and scatter's data are so by definition.
enum ree_status ree_lower_emit(struct ree_lower *lower, enum ree_repop op,
                               const union ree_params *params, struct ree_tval *const *operands,
                               uint32_t n_operands, uint32_t n_outputs);

// Lowers one node of lower->graph: finds its row, checks arity, calls the rule. values[value->id]
// are the tvals so far.
enum ree_status ree_lower_node(struct ree_lower *lower, const struct ree_node *node,
                               struct ree_tval **values);
// Lowers a subgraph of lower->node once, over in[graph->n_inputs], to out[graph->n_outputs]. What
// the graphs around it have made so far is visible within.
enum ree_status ree_lower_graph(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_tval *const *in, struct ree_tval **out);
// The same for types and shapes alone: nothing is added to the program, and no value is read back.
enum ree_status ree_lower_trial(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_tval *const *in, struct ree_tval **out);

// Program passes over the dispatches so far; neither changes a bit. `keep[storage id]` must stay
// materialised.
// Merges maps into the maps, products and convolutions before them.
enum ree_status ree_fuse_program(struct ree_lower *lower, const bool *keep);
// Drops dispatches whose results nobody reads.
enum ree_status ree_prune_program(struct ree_lower *lower, const bool *keep);

#endif
