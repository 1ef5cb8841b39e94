// Lowering: from ONNX nodes over concrete shapes to RepOps.
//
// A bind walks the graph's nodes in order with every input shape known. Each node has a rule: one
// function in graph/lower/ops, found through the operator table in ops.def. The rule checks its
// inputs, derives the output's type and shape, and emits dispatches. Rules work on struct ree_view,
// a tensor view: a typed, strided view of a storage. A view needs no dispatch: Transpose, Slice,
// Reshape and Expand are views. A rule that requires dense memory calls ree_lower_dense.
//
// Host values. A storage whose contents are known on the host carries a pointer to them: constants,
// shapes, and small inputs that shape rules read. A dispatch runs at once on the host, by the CPU
// backend's kernels, if all its inputs are host-known and its outputs are small. So shape subgraphs
// are evaluated, and constants folded, by the same RepOps that would have run on the device.
#ifndef REE_GRAPH_LOWER_CORE_LOWER_H
#define REE_GRAPH_LOWER_CORE_LOWER_H

#include "graph/ir/ir.h"
#include "repops/repop.h"

enum ree_storage_kind {
    REE_STORAGE_TEMP,    // intermediate value, placed by the memory plan
    REE_STORAGE_CONST,   // constant `value` of the graph, resident on the device
    REE_STORAGE_INPUT,   // graph input `value`
    REE_STORAGE_LITERAL, // host-known bytes made during the bind; uploaded if a dispatch reads it
    REE_STORAGE_KV_CACHE, // kept on the device from run to run (struct ree_lower_kv_cache)
    REE_STORAGE_OUTPUT    // the caller's device tensor that receives a graph output
};

struct ree_storage {
    enum ree_storage_kind kind;
    uint32_t id; // index into ree_lower.storages
    uint64_t nbytes;
    const void *host; // contents, if known on the host; NULL: not known
    // The same memory as `host`, set only during the bind that fills it (concat, scatter); NULL:
    // not writable.
    void *host_writable;
    bool device_written;                 // a dispatch of the program or an earlier run writes it
    const struct ree_value *value;       // CONST, INPUT: the value of the graph
    uint32_t input;                      // INPUT: index into the run inputs
    uint32_t output;                     // OUTPUT: index of the graph output
    struct ree_lower_kv_cache *kv_cache; // KV_CACHE: its description
};

// A tensor that stays on the device between runs and grows along one axis, above all a kv cache.
// Its storage has room for `capacity` positions along `axis`; the first dims[axis] are filled.
//
// A kv cache in pages: the device keeps a pool of pages of 2^page_bits positions, which several
// sequences share. Position j of a sequence is position j % 2^page_bits of page table[sequence, j
// >> page_bits]. The graph sees a dense copy of the sequences' pages. The storage of this copy has
// this description too, with the copy's capacity. Attention reads the pool instead of the copy if
// the device can; a copy that nothing reads is pruned.
struct ree_lower_kv_cache {
    uint32_t index; // index among the session's kv caches
    uint32_t rank, axis, batch_axis;
    bool in_order; // as in struct ree_kv_cache_spec
    int64_t dims[REE_MAX_RANK];
    int64_t capacity;
    // The graph's values for the cache and for its next contents. `next` is NULL if another session
    // keeps the cache.
    const struct ree_value *value, *next;
    bool is_extended; // this bind has added positions, which it may do only once
    // This bind has written at positions that a tensor gives, so it may have overwritten filled
    // positions.
    bool is_scattered;
    // Only for a kv cache in pages, otherwise NULL.
    // - pool: all positions of the pool, with the dims of the cache except 1 sequence, whose stride
    //   is 0.
    // - table: int32 [batch, pages], the pages of each sequence.
    // - targets: int32 [batch, new positions], where in the pool each new position is stored.
    struct ree_view *pool, *table, *targets;
    uint32_t page_bits;
    bool is_appended; // the cache as it is after this bind has appended its new positions
};

struct ree_view {
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    int64_t strides[REE_MAX_RANK]; // in elements; 0 repeats an element; may be negative
    int64_t offset;                // in elements
    struct ree_storage *storage;
    // A sequence is a list that is known at bind time. An absent optional value is only a marker.
    // Neither has a storage; only rules under REE_NARROW_ANY receive them. Their dtype is that of
    // the items or of the missing value.
    enum ree_kind kind;
    size_t n_items;
    struct ree_view **items;
};

// Rows that were quantised in blocks. Several products often read the same rows.
struct ree_quantised_rows {
    const struct ree_view *rows; // the floats, by identity; NULL: none yet
    int64_t block;               // numbers in a block
    struct ree_view *numbers;    // int8 (rows, whole blocks * block)
    struct ree_view *scales;     // float32 (rows, blocks)
};

// The tensors of one activation of a graph: of the model's graph, or of a subgraph while a node
// runs it.
struct ree_frame {
    const struct ree_graph *graph;
    struct ree_frame *parent; // frame of the enclosing graph; NULL: none
    struct ree_view **values; // values[value->id]: tensor of a value; NULL: not made yet
};

// Maximum number of iterations of one Loop, Scan or SequenceMap, of time steps of one RNN, GRU,
// LSTM or LinearAttention, and of items of one SplitToSequence. Each is lowered separately, so this
// limit stops an endless loop before memory is exhausted. It counts neither other nodes nor the
// nodes of a body, so whether a model exceeds it depends on neither folding nor stages.
#define REE_LOWER_MAX_ITERATIONS (UINT32_C(1) << 17)
// Limits on all such nodes of one bind together, also on nested ones. A step is the run of a
// subgraph or a node in it. A time step takes several times the memory of a step.
#define REE_LOWER_MAX_STEPS (UINT32_C(1) << 20)
#define REE_LOWER_MAX_TIME_STEPS (UINT32_C(1) << 18)

struct ree_lower {
    struct ree_arena *arena; // lives as long as the bind
    struct ree_error *err;
    const struct ree_graph *graph;
    const struct ree_node *node; // the node being lowered
    // The node of the outermost graph that contains the current subgraph. Dispatches are attributed
    // to it. NULL: not inside a subgraph.
    const struct ree_node *outer_node;
    struct ree_frame *frame; // frame of the graph that contains `node`
    // Number of subgraph runs, and of nodes in them, lowered so far; its limit (0:
    // REE_LOWER_MAX_STEPS).
    uint32_t n_steps, step_limit;
    uint32_t n_time_steps; // time steps lowered so far, at most REE_LOWER_MAX_TIME_STEPS
    // Why the last node failed. contradicts: a value's declared type differs from its actual type.
    // wants_data: a shape or a decision depended on data that was not available.
    bool contradicts, wants_data;
    struct ree_trial *trial; // the innermost trial that runs (nodes.c); NULL: none
    bool ignores_declared; // declared types of values within a graph are not checked
    // The attribute of `node` whose kind is not the one that the rule read, and the kind that it
    // read. NULL: none.
    const struct ree_attr *misread;
    enum ree_attr_kind misread_as;
    // Bit i is set if output i stays float32, whatever the types of the inputs. Set by rules under
    // REE_NARROW_WIDEN.
    uint32_t stays_wide;
    bool fuse;           // false: rules use only elementary steps and materialise views
    bool fold;           // false: dispatches with floating-point results never run on the host
    uint64_t fold_limit; // maximum bytes of output of a dispatch that runs on the host

    struct ree_strings *strings; // strings of this bind; NULL until the first one is interned

    struct ree_quantised_rows quantised_rows; // the last rows that a rule quantised

    // For kv caches in which the sequences of a batch have different lengths: the position at which
    // each new row of a sequence is written, int64 or int32 [batch, new rows]. The filled length is
    // then that of the longest sequence. NULL: all sequences have the same length.
    struct ree_view *cache_positions;
    // Maximum number of queries per head with which the device's attention reads kv caches from
    // their pages. 0: it never does.
    uint32_t paged_queries;

    size_t n_storages, storages_capacity;
    struct ree_storage **storages;
    // The program so far. The slot of an operand is a storage id, which the session resolves.
    size_t n_dispatches, dispatches_capacity;
    struct ree_dispatch *dispatches;

    // Runs a dispatch on host memory; operands[i] is the address of operand i. The session passes
    // ree_cpu_execute.
    enum ree_status (*host_execute)(const struct ree_dispatch *dispatch, void *const *operands,
                                    struct ree_error *err);
    // Makes a storage's contents host-known: reads a graph input, or runs the program so far and
    // downloads the result.
    enum ree_status (*read_storage)(struct ree_lower *lower, struct ree_storage *storage);
    void *user; // private data of the function read_storage
};

// A rule lowers lower->node.
// - in[] has node->n_inputs entries; an entry is NULL if the input is omitted.
// - out[] has one entry for each output that the table row allows (node->n_outputs entries if the
//   row sets no limit), all NULL at entry. The rule may leave an entry NULL if the node does not
//   have that output or if node->outputs[i] is NULL.
typedef enum ree_status (*ree_lower_rule)(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out);

// Who converts float16 and bfloat16 inputs of a rule.
// - AS_IS: the rule.
// - WIDEN: the caller of the rule. It widens these inputs to float32, and rounds the rule's float32
//   results to the type of the first such input.
// - ANY: the rule. The rule also accepts sequences and absent values.
enum ree_narrow { REE_NARROW_AS_IS, REE_NARROW_WIDEN, REE_NARROW_ANY };

// A row of the operator table (graph/lower/ops/ops.def): an operator in a range of opsets.
struct ree_op {
    const char *domain;
    const char *op_type;
    int64_t since, until; // opset range, inclusive
    uint32_t min_inputs, max_inputs, max_outputs;
    enum ree_narrow narrow;
    ree_lower_rule rule;
};
// Returns the row of the operator for this opset. If there is none, returns NULL and sets
// *out_reason (out_reason may be NULL) to a static text, such as "not implemented" or "implemented
// for opsets 7 to 12 only".
const struct ree_op *ree_op_find(const char *domain, const char *op_type, int64_t opset,
                                 const char **out_reason);

// Fails with a message. The caller of the rule puts "node 'x' (Op): " before it.
#define ree_lower_fail(lower, status, ...) ree_fail((lower)->err, status, __VA_ARGS__)
static inline enum ree_status ree_lower_no_memory(struct ree_lower *lower) {
    return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
}

// Tensors.
//
// Makes a new dense tensor with uninitialised contents. Fails if the rank exceeds REE_MAX_RANK or
// if there are 2^31 elements or more.
enum ree_status ree_lower_new(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                              const int64_t *dims, struct ree_view **out);
// Makes a host-known dense tensor with a copy of `bytes` as its contents.
enum ree_status ree_lower_literal(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, const void *bytes, struct ree_view **out);
enum ree_status ree_lower_ints(struct ree_lower *lower, size_t n, const int64_t *values,
                               struct ree_view **out); // int64[n], host-known
// Makes the tensor of a constant (kind CONST) or of a graph input bound to dims (kind INPUT).
enum ree_status ree_lower_value(struct ree_lower *lower, const struct ree_value *value,
                                enum ree_storage_kind kind, const int64_t *dims,
                                struct ree_view **out);
bool ree_view_is_dense(const struct ree_view *t); // row-major without gaps, at any offset
int64_t ree_view_count(const struct ree_view *t); // elements
// Writes text such as "float32[1,8,28]" into the caller's buffer and returns the buffer.
const char *ree_view_text(const struct ree_view *t, char *out, size_t size);

// Kv caches (kv_cache.c).
//
// Makes the tensor of a kv cache. Its shape is that of the filled part, cache->dims.
enum ree_status ree_lower_kv_cache(struct ree_lower *lower, enum ree_dtype dtype,
                                   const struct ree_lower_kv_cache *cache, struct ree_view **out);
// Makes a kv cache in pages. `cache` must have its fields for pages, except `pool`, which this
// function makes with pool_len positions. *out is the dense copy of the pages.
enum ree_status ree_lower_paged_kv_cache(struct ree_lower *lower, enum ree_dtype dtype,
                                         const struct ree_lower_kv_cache *cache, int64_t pool_len,
                                         struct ree_view **out);
// Returns the description of the kv cache in pages if t is its dense copy or a part of that copy;
// otherwise NULL.
const struct ree_lower_kv_cache *ree_lower_pages_of(const struct ree_view *t);
// Writes t, the whole new contents of a kv cache in pages, into its pages.
enum ree_status ree_lower_write_pages(struct ree_lower *lower,
                                      const struct ree_lower_kv_cache *cache, struct ree_view *t);
// Appends t to `past` along the axis. The caller has checked that the other dimensions are equal.
// If `past` is a kv cache with enough free capacity, t is written in place, and the result is a
// view of the kv cache (for a kv cache in pages a new copy of the pages). Otherwise the result is a
// new tensor.
enum ree_status ree_lower_append(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                                 struct ree_view *t, struct ree_view **out);
// Extends `past` by n rows along the axis: in place if it is a kv cache without pages that has
// enough free capacity, else as a new tensor. The caller must write the new rows.
enum ree_status ree_lower_extend(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                                 int64_t n, struct ree_view **out);
// Returns whether `past` is a kv cache to which this bind can still append n positions in place. A
// kv cache in pages grows only by the node that makes its next contents.
bool ree_lower_grows_in_place(const struct ree_lower *lower, const struct ree_view *past,
                              uint32_t axis, int64_t n);
// Writes t into `target`, in place, at positions along the axis that are given for each sequence:
// `rows`, int64 or int32 [batch, t->dims[axis]], holds the position in `target` of each row of t.
enum ree_status ree_lower_scatter_positions(struct ree_lower *lower, struct ree_view *target,
                                            uint32_t batch_axis, uint32_t axis,
                                            struct ree_view *rows, struct ree_view *t);

// Host values.
//
// Returns the contents of t, dense, in host memory. If they are not host-known, reads them, for
// which it may run the program so far.
enum ree_status ree_lower_host(struct ree_lower *lower, struct ree_view *t, const void **out_bytes);
bool ree_lower_is_host(const struct ree_view *t);
// Reads an int32 or int64 tensor as int64 values, allocated in the arena. `what` names the tensor
// in messages, for example "shape".
enum ree_status ree_lower_host_ints(struct ree_lower *lower, struct ree_view *t, const char *what,
                                    const int64_t **out_values, size_t *out_n);
// Reads the element of a float32 tensor; fails with REE_INVALID if it does not have exactly one.
// `what` names the tensor in messages.
enum ree_status ree_lower_host_float(struct ree_lower *lower, struct ree_view *t, const char *what,
                                     float *out);

// Strings. Within a bind, an element of type REE_STRING is a 64-bit number: equal strings have
// equal numbers, and the empty string is 0. So operators that move data also move strings, and
// comparing numbers compares strings for equality. Only the host knows the text.
//
// Writes the number of the string s of n bytes to *out; adds the string if it is new.
enum ree_status ree_lower_intern(struct ree_lower *lower, const char *s, size_t n, int64_t *out);
// Returns the text of a string, given its number; NULL: no such string.
const char *ree_lower_text(const struct ree_lower *lower, int64_t string);
// Makes a host-known tensor of strings, which are copied. A NULL string counts as empty.
enum ree_status ree_lower_strings(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                                  const char *const *strings, struct ree_view **out);
// Reads the elements of a string tensor as text on the host. `what` names the tensor in messages.
enum ree_status ree_lower_host_strings(struct ree_lower *lower, struct ree_view *t,
                                       const char *what, const char *const **out, size_t *out_n);

// Sequences and absent values. ree_lower_sequence makes a sequence of n items (it copies the list);
// ree_lower_absent makes an absent value. `dtype` is the type of the items, or of the missing
// value.
enum ree_status ree_lower_sequence(struct ree_lower *lower, enum ree_dtype dtype, size_t n,
                                   struct ree_view *const *items, struct ree_view **out);
enum ree_status ree_lower_absent(struct ree_lower *lower, enum ree_dtype dtype,
                                 struct ree_view **out);

// Views. These functions need no dispatch unless their comment says that they copy.
//
// Returns a copy of the view (not of the data), for the caller to modify; NULL when memory is
// exhausted.
struct ree_view *ree_lower_view(struct ree_lower *lower, const struct ree_view *t);
// Views t with other dims and the same number of elements. Copies t if its strides do not allow
// that.
enum ree_status ree_lower_reshape(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                  const int64_t *dims, struct ree_view **out);
// Permutes dimensions: dimension i of the result is dimension perm[i] of t.
enum ree_status ree_lower_transpose(struct ree_lower *lower, struct ree_view *t,
                                    const uint32_t *perm, struct ree_view **out);
// Broadcasts t to dims, aligned at the right, by the rules of ONNX.
enum ree_status ree_lower_broadcast(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                    const int64_t *dims, struct ree_view **out);
// Computes the shape to which n tensors broadcast together. Fails, with both shapes in the message,
// if there is none.
enum ree_status ree_lower_broadcast_dims(struct ree_lower *lower, size_t n,
                                         struct ree_view *const *ts, uint32_t *out_rank,
                                         int64_t out_dims[REE_MAX_RANK]);
// Views the elements start, start + step, ..., start + step * (count - 1) along one axis. `step`
// may be negative. Fails with REE_INTERNAL if an element is out of range.
enum ree_status ree_lower_slice(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                int64_t start, int64_t step, int64_t count, struct ree_view **out);
// Returns the elements of t in dense memory that kernels accept: t itself if it is dense and starts
// at a multiple of 4 bytes, else a copy.
enum ree_status ree_lower_dense(struct ree_lower *lower, struct ree_view *t, struct ree_view **out);
// Copies src into `dst`, a view of a tensor made by ree_lower_new (for concat, pad). Fails with
// REE_INTERNAL unless both have the same dims and the same element size.
enum ree_status ree_lower_copy_into(struct ree_lower *lower, struct ree_view *src,
                                    struct ree_view *dst);
// Converts an axis in [-rank, rank) to [0, rank). Fails if it is out of range.
enum ree_status ree_lower_axis(struct ree_lower *lower, int64_t axis, uint32_t rank, uint32_t *out);

// Builds an expression: begin with ree_expr_init, add operands, constants and operations, and
// finish with ree_lower_map. The functions that add something return a small integer that names the
// value. The builder keeps the first failure, and ree_lower_map reports it.
struct ree_expr_builder {
    struct ree_lower *lower;
    struct ree_expr expr;
    // tensors[i] is the tensor of operand i; NULL for iota operands
    struct ree_view *tensors[REE_EXPR_MAX_OPERANDS];
    enum ree_status status;
};
// Starts an expression that is computed for each element of a tensor of shape dims.
void ree_expr_init(struct ree_expr_builder *b, struct ree_lower *lower, uint32_t rank,
                   const int64_t *dims);
// Adds t, broadcast to the shape of the expression, as an operand. Adding an equal view again
// returns the same value.
int ree_expr_tensor(struct ree_expr_builder *b, struct ree_view *t);
// Adds an operand whose value is a number: offset + sum over i of index[i] * strides[i], for the
// element with this index in the result.
int ree_expr_iota(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t offset,
                  const int64_t *strides);
int ree_expr_f32(struct ree_expr_builder *b, float value);
int ree_expr_f64(struct ree_expr_builder *b, double value);
int ree_expr_i32(struct ree_expr_builder *b, int32_t value);
int ree_expr_i64(struct ree_expr_builder *b, int64_t value);
// These functions add an operation on values a, b_ and c. If an argument is float64, a float32
// operation (or select_b32) becomes the float64 operation, and the other arguments are widened. So
// rules are written once for both types.
int ree_expr_op1(struct ree_expr_builder *b, enum ree_map_op op, int a);
int ree_expr_op2(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_);
int ree_expr_op3(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_, int c);
// Adds the wrapping of a value into the range of dtype, an integer type of 16 bits or less. For
// other types, returns the value itself.
int ree_expr_wrap(struct ree_expr_builder *b, enum ree_dtype dtype, int value);
// Adds a constant for values of type dtype: float32 or float64 for these types, otherwise an
// integer.
int ree_expr_number(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t value);
// Adds a selection: x if `condition` (a 32-bit value, 0 or 1) is 1, else y. x and y are of type
// dtype.
int ree_expr_select(struct ree_expr_builder *b, enum ree_dtype dtype, int condition, int x, int y);
// Emits a map that computes the value `result` into a new tensor of type dtype. If dtype is REE_F32
// and the value is a float64, the tensor is float64.
enum ree_status ree_lower_map(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                              struct ree_view **out);
// As ree_lower_map, but writes into `dst`, a dense part of an existing tensor, which must have as
// many elements as the expression.
enum ree_status ree_lower_map_into(struct ree_expr_builder *b, int result, struct ree_view *dst);
// How a conversion to a float8 type treats overflow and rounding. {0} if the operator has no
// attributes for it.
struct ree_cast_mode {
    bool no_saturate;       // overflow becomes infinity or NaN instead of the largest number
    uint32_t e8m0_rounding; // REE_E8M0_UP, _DOWN or _NEAREST of scalar/narrow.h
};
// These functions convert a value, or a tensor, to another type as ONNX Cast defines it. Conversion
// to bool is x != 0. The functions without `mode` use {0}.
int ree_expr_cast(struct ree_expr_builder *b, int value, enum ree_dtype from, enum ree_dtype to);
int ree_expr_cast_mode(struct ree_expr_builder *b, int value, enum ree_dtype from,
                       enum ree_dtype to, struct ree_cast_mode mode);
enum ree_status ree_lower_cast(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                               struct ree_view **out);
enum ree_status ree_lower_cast_mode(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                                    struct ree_cast_mode mode, struct ree_view **out);

// Drops dimensions of size 1 from an expression, and merges two neighbouring dimensions if, for
// every operand, the stride of the outer one is the stride of the inner one times its size.
void ree_expr_coalesce(struct ree_expr *expr);

// RepOps on whole tensors. Inputs are made dense if the RepOp requires it.
//
// Reduces t (sum, ...) over the axes in the bit mask; with keepdims they remain as dimensions of
// size 1. The result has the dtype of t; for ARGMAX and ARGMIN it is int64, and select_last selects
// the last of equal extremes.
enum ree_status ree_lower_reduce(struct ree_lower *lower, struct ree_view *t,
                                 enum ree_reduce_kind kind, uint32_t axes_mask, bool keepdims,
                                 bool select_last, struct ree_view **out);
// Returns the dtype of a product's sum (repop.h, matmul): int32 for two 8-bit integer types;
// float32 for float32, float16, bfloat16 and mixtures of these with 8-bit integers; else the common
// dtype. REE_DTYPE_NONE if the two dtypes cannot be multiplied.
enum ree_dtype ree_product_dtype(enum ree_dtype a, enum ree_dtype b);
// Multiplies as numpy.matmul does. Both operands must have rank 2 or more. The result has the dtype
// of the sum.
enum ree_status ree_lower_matmul(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                 struct ree_view **out);
// Appends a dispatch to the program, or runs it at once on the host if everything it reads is
// host-known and its outputs are small (lower->fold, lower->fold_limit). The last n_outputs
// operands are outputs. copy's dst and scatter's data are always written. A dispatch with an index
// out of range is appended: it fails when the program runs, if something reads its result.
//
// Some operands have an offset in the parameters: src and dst of copy, the inputs of map and
// attention, x of reduce, A and B of matmul, data of gather. They are passed from the start of
// their storage, and the rule must put the view's offset into the parameters. All other operands
// are passed from the view's own offset and must be dense (ree_lower_dense).
enum ree_status ree_lower_emit(struct ree_lower *lower, enum ree_repop op,
                               const union ree_params *params, struct ree_view *const *operands,
                               uint32_t n_operands, uint32_t n_outputs);

// Lowers one node of lower->graph: finds its row, checks the number of inputs and outputs, and
// calls the rule. values[value->id] are the tensor views made so far; the outputs of the node are
// added to them.
enum ree_status ree_lower_node(struct ree_lower *lower, const struct ree_node *node,
                               struct ree_view **values);
// Lowers a subgraph of lower->node once, from the inputs in[graph->n_inputs] to the outputs
// out[graph->n_outputs]. The subgraph can read every value that the enclosing graphs have made so
// far.
enum ree_status ree_lower_graph(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out);
// Counts the time steps that a rule is about to lower: n, `repeats` times. Fails with
// REE_UNSUPPORTED if they exceed a limit. Rules call this before they allocate memory for each
// step.
enum ree_status ree_lower_count_time_steps(struct ree_lower *lower, int64_t n, uint32_t repeats);
// *out: the tensor of the subgraph's output i if it is a value of an enclosing graph, which exists
// although the subgraph does not run; otherwise NULL.
enum ree_status ree_lower_outer_output(struct ree_lower *lower, const struct ree_graph *graph,
                                       size_t i, struct ree_view **out);
// As ree_lower_graph, but only to derive the types and shapes of the outputs: adds no dispatch to
// the program, and fails if it requires contents that it would have to compute. It may read what
// nodes before it computed: whether it succeeds must not depend on what the host happens to know.
enum ree_status ree_lower_trial(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out);

// Passes over the dispatches of the program so far. They do not change a bit of the results. A
// storage with keep[storage id] set keeps its contents; all others may be left unwritten.
//
// Merges maps into the maps, products and convolutions that produce their inputs, and lets products
// read narrow operands directly instead of widened copies.
enum ree_status ree_fuse_program(struct ree_lower *lower, const bool *keep);
// Drops dispatches whose results are neither read nor kept.
enum ree_status ree_prune_program(struct ree_lower *lower, const bool *keep);

#endif
