// Lowering: from ONNX nodes over concrete shapes to RepOps.
//
// A bind walks the graph's nodes in order with every input shape known. Each node has a rule: one
// function in this folder, found through the operator table in ops.def. The rule checks its inputs,
// derives the output's type and shape, and emits dispatches. Rules work on struct ree_view, a
// tensor view: a typed, strided view of a storage. Views cost nothing (Transpose, Slice, Reshape
// and Expand are views). A rule that requires dense memory calls ree_lower_dense.
//
// Host values. A storage whose contents are known on the host carries a pointer to them: constants,
// shapes, and small inputs that shape rules read. A dispatch runs at once on the host, by the CPU
// backend's kernels, if all its operands are host-known and its outputs are small. So shape
// subgraphs are evaluated, and constants folded, by the same RepOps that would have run on the
// device.
#ifndef REE_GRAPH_LOWER_CORE_LOWER_H
#define REE_GRAPH_LOWER_CORE_LOWER_H

#include "graph/ir/ir.h"
#include "repops/repop.h"

enum ree_storage_kind {
    REE_STORAGE_TEMP,    // intermediate, placed by the memory plan
    REE_STORAGE_CONST,   // graph value `value`, resident on the device
    REE_STORAGE_INPUT,   // graph input `value`
    REE_STORAGE_LITERAL, // host-known bytes made during the bind; uploaded if a dispatch reads it
    REE_STORAGE_KV_CACHE // kept on the device from run to run: see ree_lower_kv_cache
};

struct ree_storage {
    enum ree_storage_kind kind;
    uint32_t id; // index into ree_lower.storages
    uint64_t nbytes;
    const void *host; // contents if known on the host, else NULL
    // as `host`, writable: set only during the bind that fills the contents (concat, scatter)
    void *host_writable;
    bool device_written;                 // a dispatch of the program writes it
    const struct ree_value *value;       // CONST, INPUT: the graph value
    uint32_t input;                      // INPUT: index into the run inputs
    struct ree_lower_kv_cache *kv_cache; // KV_CACHE: its description
};

// A tensor that stays on the device between runs and grows along one axis, above all a kv cache.
// Its storage has capacity for `capacity` positions along that axis; the first dims[axis] are
// filled.
//
// A kv cache in pages: the device keeps a pool of pages of 2^page_bits positions, which several
// sequences share. Position j of a sequence is position j % 2^page_bits of page table[sequence, j
// >> page_bits]. The graph sees a dense copy of the sequences' pages, whose storage has this
// description too. Attention reads the pool instead of the copy if the device can; a copy that
// nothing reads is pruned.
struct ree_lower_kv_cache {
    uint32_t index; // index among the session's kv caches
    uint32_t rank, axis;
    int64_t dims[REE_MAX_RANK];
    int64_t capacity;
    bool is_extended; // this bind has added positions; allowed once per bind
    // this bind has written to positions that data selects, which may already have been filled
    bool is_scattered;
    // Only in pages, otherwise NULL. The pool: the cache's dims, except 1 sequence with stride 0,
    // and all positions of the pool. i32 [batch, pages]. i32 [batch, new positions]: positions in
    // the pool of the new positions.
    struct ree_view *pool, *table, *targets;
    uint32_t page_bits, batch_axis;
    bool is_appended; // the copy of the pages after this bind's append
};

struct ree_view {
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    int64_t strides[REE_MAX_RANK]; // in elements; 0 repeats; may be negative
    int64_t offset;                // in elements
    struct ree_storage *storage;
    // A sequence is a list that is known at bind time; an absent optional value is only a marker.
    // Neither has a storage. Rules receive them only under REE_NARROW_ANY. dtype is the items'
    // dtype.
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
    struct ree_frame *parent; // the enclosing activation; NULL: this is the outermost
    struct ree_view **values; // by value id; NULL: not made yet
};

// Limit on lowered subgraph nodes plus subgraph runs in one bind. A body is lowered anew for each
// iteration, so this limit stops an endless loop before memory is exhausted.
#define REE_LOWER_MAX_STEPS (UINT32_C(1) << 17)

struct ree_lower {
    struct ree_arena *arena; // lives as long as the bind
    struct ree_error *err;
    const struct ree_graph *graph;
    const struct ree_node *node; // the node being lowered
    // Inside a subgraph: the enclosing node of the outermost graph, to which the dispatches are
    // attributed. NULL: not inside a subgraph.
    const struct ree_node *outer_node;
    struct ree_frame *frame;      // activation that contains `node`
    uint32_t n_steps, step_limit; // step_limit 0: REE_LOWER_MAX_STEPS
    // Why the last node failed. contradicts: a value's declared type differs from its actual type.
    // wants_data: a shape or a decision depended on data that was not available.
    bool contradicts, wants_data;
    // The attribute of `node` that its rule read as another kind than it has, and that kind; NULL:
    // none.
    const struct ree_attr *misread;
    enum ree_attr_kind misread_as;
    // Bit i: output i stays float32 whatever the input types are. Set by rules under
    // REE_NARROW_WIDEN.
    uint32_t stays_wide;
    bool fuse;           // false: rules use only elementary steps, and views are materialised
    bool fold;           // false: floating-point constants are not folded
    uint64_t fold_limit; // bytes of output up to which host-known dispatches run on the host

    struct ree_strings *strings; // strings of this bind; NULL until the first one is interned

    struct ree_quantised_rows quantised_rows; // what the last rule that quantised rows has made

    // For kv caches whose batches are filled to different lengths: the position at which each new
    // row of a batch is written, i64 or i32 [batch, new rows]. The filled length then counts up to
    // the longest batch. NULL: all batches are filled alike.
    struct ree_view *cache_positions;
    // The device's limit: attention of up to this many queries per head reads pages. 0: none does.
    uint32_t paged_queries;

    size_t n_storages, storages_capacity;
    struct ree_storage **storages;
    // The program so far. Operand slots are storage ids, which the session resolves.
    size_t n_dispatches, dispatches_capacity;
    struct ree_dispatch *dispatches;

    // Runs a dispatch on host memory (the session passes ree_cpu_execute).
    enum ree_status (*host_execute)(const struct ree_dispatch *dispatch, void *const *operands,
                                    struct ree_error *err);
    // Makes a storage's contents host-known: reads a graph input, or runs the program so far and
    // downloads the result.
    enum ree_status (*read_storage)(struct ree_lower *lower, struct ree_storage *storage);
    void *user; // passed through for read_storage
};

// A rule lowers lower->node.
// - in[i] is NULL if the input is omitted. Trailing omitted inputs count: there are node->n_inputs
//   entries.
// - out has one entry for each output that the table row allows (node->n_outputs entries if the row
//   sets no limit), all NULL at entry. The rule may leave an entry NULL if the node does not have
//   that output or if node->outputs[i] is NULL.
typedef enum ree_status (*ree_lower_rule)(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out);

// Who converts float16 and bfloat16 inputs.
// - AS_IS: the rule.
// - WIDEN: the caller. It widens them to float32 and rounds the rule's float32 results to the type
//   of the first such input.
// - ANY: the rule, as AS_IS; the rule also accepts sequences and absent values.
enum ree_narrow { REE_NARROW_AS_IS, REE_NARROW_WIDEN, REE_NARROW_ANY };

// The operator table: one row per operator and opset range (graph/lower/ops/ops.def).
struct ree_op {
    const char *domain;
    const char *op_type;
    int64_t since, until; // opset range, inclusive
    uint32_t min_inputs, max_inputs, max_outputs;
    enum ree_narrow narrow;
    ree_lower_rule rule;
};
// Returns NULL if there is no row; *out_reason (out_reason may be NULL) is then a static text ("not
// implemented", "opset 24 is newer than the 23 this row covers").
const struct ree_op *ree_op_find(const char *domain, const char *op_type, int64_t opset,
                                 const char **out_reason);

// Errors. The caller of the rule prefixes the message with "node 'x' (Op): ".
#define ree_lower_fail(lower, status, ...) ree_fail((lower)->err, status, __VA_ARGS__)
static inline enum ree_status ree_lower_no_memory(struct ree_lower *lower) {
    return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
}

// Tensors.
// Makes a new uninitialised dense tensor. Checks rank, element count (< 2^31) and overflow.
enum ree_status ree_lower_new(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                              const int64_t *dims, struct ree_view **out);
// Makes a host-known tensor; copies `bytes`, which must be dense.
enum ree_status ree_lower_literal(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, const void *bytes, struct ree_view **out);
enum ree_status ree_lower_ints(struct ree_lower *lower, size_t n, const int64_t *values,
                               struct ree_view **out); // i64[n]
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
// Makes the tensor of a kv cache, with its filled part as the shape.
enum ree_status ree_lower_kv_cache(struct ree_lower *lower, enum ree_dtype dtype,
                                   const struct ree_lower_kv_cache *cache, struct ree_view **out);
// Makes a kv cache in pages: `cache` with its fields for pages, except `pool`, which has pool_len
// positions. *out is the copy of the pages.
enum ree_status ree_lower_paged_kv_cache(struct ree_lower *lower, enum ree_dtype dtype,
                                         const struct ree_lower_kv_cache *cache, int64_t pool_len,
                                         struct ree_view **out);
// The description of the kv cache in pages of which t is a copy, with the copy's strides; NULL: t
// is no such copy, or a part of one.
const struct ree_lower_kv_cache *ree_lower_pages_of(const struct ree_view *t);
// Writes t, the whole new contents of the kv cache, into its pages.
enum ree_status ree_lower_write_pages(struct ree_lower *lower,
                                      const struct ree_lower_kv_cache *cache, struct ree_view *t);
// Appends t to `past` along the axis. The caller has checked that the other dimensions are equal.
// If `past` is a kv cache with enough free capacity, t is written in place and the result is a view
// of the kv cache; else the result is a new tensor.
enum ree_status ree_lower_append(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                                 struct ree_view *t, struct ree_view **out);
// Extends `past` by n rows along the axis. The caller must write the contents of the new rows.
enum ree_status ree_lower_extend(struct ree_lower *lower, struct ree_view *past, uint32_t axis,
                                 int64_t n, struct ree_view **out);
// Returns whether `past` is a kv cache that can grow by n in this bind without being moved.
bool ree_lower_grows_in_place(const struct ree_view *past, uint32_t axis, int64_t n);
// Writes the rows of t into `target`, in place, at positions given per batch (dimension 0): `rows`
// is i64 or i32 [batch, t->dims[axis]] and holds the position of each row of t along the axis.
enum ree_status ree_lower_scatter_positions(struct ree_lower *lower, struct ree_view *target,
                                            uint32_t axis, struct ree_view *rows,
                                            struct ree_view *t);

// Host values. Returns the dense contents of t on the host. If they are not host-known, this reads
// them (and may run the program so far).
enum ree_status ree_lower_host(struct ree_lower *lower, struct ree_view *t, const void **out_bytes);
bool ree_lower_is_host(const struct ree_view *t);
// Reads an i32 or i64 tensor as int64 values, allocated in the arena. `what` names the tensor in
// messages ("shape").
enum ree_status ree_lower_host_ints(struct ree_lower *lower, struct ree_view *t, const char *what,
                                    const int64_t **out_values, size_t *out_n);
// Reads a float32 tensor of one element.
enum ree_status ree_lower_host_float(struct ree_lower *lower, struct ree_view *t, const char *what,
                                     float *out);

// Strings. Within a bind, an element of type REE_STRING is a 64-bit number: equal strings have
// equal numbers, and the empty string is 0. So operators that move data also move strings, and
// comparing numbers compares strings for equality. Only the host knows the text.
// Returns the number of the string s of n bytes; adds the string if it is new.
enum ree_status ree_lower_intern(struct ree_lower *lower, const char *s, size_t n, int64_t *out);
const char *ree_lower_text(const struct ree_lower *lower, int64_t string); // NULL: no such string
// Makes a host-known string tensor; copies the strings. NULL is the empty string.
enum ree_status ree_lower_strings(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                                  const char *const *strings, struct ree_view **out);
// Reads the elements of a string tensor as text on the host.
enum ree_status ree_lower_host_strings(struct ree_lower *lower, struct ree_view *t,
                                       const char *what, const char *const **out, size_t *out_n);

// Sequences and absent values. Makes a sequence of n items (copies the list), or an absent value.
// `dtype` is that of the items or of the missing value.
enum ree_status ree_lower_sequence(struct ree_lower *lower, enum ree_dtype dtype, size_t n,
                                   struct ree_view *const *items, struct ree_view **out);
enum ree_status ree_lower_absent(struct ree_lower *lower, enum ree_dtype dtype,
                                 struct ree_view **out);

// Views (no dispatch). All functions check their arguments and fail with a message.
// A copy of the view, for the caller to modify; NULL when memory is exhausted.
struct ree_view *ree_lower_view(struct ree_lower *lower, const struct ree_view *t);
// Makes a dense copy if the strides do not allow a view.
enum ree_status ree_lower_reshape(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                  const int64_t *dims, struct ree_view **out);
// Dimension i of the result is dimension perm[i] of t.
enum ree_status ree_lower_transpose(struct ree_lower *lower, struct ree_view *t,
                                    const uint32_t *perm, struct ree_view **out);
// Broadcasts to dims (ONNX multidirectional rules, right-aligned).
enum ree_status ree_lower_broadcast(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                    const int64_t *dims, struct ree_view **out);
// Computes the common shape of n tensors; fails with both shapes in the message.
enum ree_status ree_lower_broadcast_dims(struct ree_lower *lower, size_t n,
                                         struct ree_view *const *ts, uint32_t *out_rank,
                                         int64_t out_dims[REE_MAX_RANK]);
// Elements start, start + step, ..., start + step * (count - 1) along one axis. step may be
// negative; the caller must have brought `start` into range.
enum ree_status ree_lower_slice(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                int64_t start, int64_t step, int64_t count, struct ree_view **out);
// The same elements, dense in memory: t itself if it is dense, else a copy.
enum ree_status ree_lower_dense(struct ree_lower *lower, struct ree_view *t, struct ree_view **out);
// Copies src into `dst`, a view of a tensor made by ree_lower_new (concat, pad). Both must have the
// same dims and the same dtype size.
enum ree_status ree_lower_copy_into(struct ree_lower *lower, struct ree_view *src,
                                    struct ree_view *dst);
// Converts an axis in [-rank, rank) to [0, rank). Fails if it is out of range.
enum ree_status ree_lower_axis(struct ree_lower *lower, int64_t axis, uint32_t rank, uint32_t *out);

// Expressions. Build with init, operand, iota, const and op; finish with ree_lower_map. The builder
// keeps the first error, and ree_lower_map reports it. The builder functions return small integers,
// which name the values of the expression.
struct ree_expr_builder {
    struct ree_lower *lower;
    struct ree_expr expr;
    // in operand order; NULL for iota operands
    struct ree_view *tensors[REE_EXPR_MAX_OPERANDS];
    bool has_accumulator; // an epilogue: value 0 is the accumulator
    enum ree_status status;
    uint64_t instr_values[REE_EXPR_MAX_INSTRS];
};
// Starts an expression over dims.
void ree_expr_init(struct ree_expr_builder *b, struct ree_lower *lower, uint32_t rank,
                   const int64_t *dims);
// Adds t, broadcast to the builder's dims, as an operand. The same tensor view always gives the
// same operand.
int ree_expr_tensor(struct ree_expr_builder *b, struct ree_view *t);
// Adds an index pattern as an operand: offset + the sum of index[i] * strides[i].
int ree_expr_iota(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t offset,
                  const int64_t *strides);
int ree_expr_f32(struct ree_expr_builder *b, float value);
int ree_expr_f64(struct ree_expr_builder *b, double value);
int ree_expr_i32(struct ree_expr_builder *b, int32_t value);
int ree_expr_i64(struct ree_expr_builder *b, int64_t value);
// A float32 operation (or select_b32) with a float64 argument becomes the float64 operation, and
// the other arguments are widened. So rules are written once for both types.
int ree_expr_op1(struct ree_expr_builder *b, enum ree_map_op op, int a);
int ree_expr_op2(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_);
int ree_expr_op3(struct ree_expr_builder *b, enum ree_map_op op, int a, int b_, int c);
// Wraps a value of a narrow integer type into its range; returns values of other types unchanged.
int ree_expr_wrap(struct ree_expr_builder *b, enum ree_dtype dtype, int value);
// A constant for values of type dtype: a float32, a float64 or an integer.
int ree_expr_number(struct ree_expr_builder *b, enum ree_dtype dtype, int64_t value);
// x if `condition` (a 32-bit value, 0 or 1) is 1, else y. Both are of type dtype.
int ree_expr_select(struct ree_expr_builder *b, enum ree_dtype dtype, int condition, int x, int y);
// Emits `map` with value `result` of type dtype. REE_F32 here means float64 if the value is
// float64.
enum ree_status ree_lower_map(struct ree_expr_builder *b, int result, enum ree_dtype dtype,
                              struct ree_view **out);
// As ree_lower_map, but writes into a dense part of an existing tensor, which must have as many
// elements as the expression.
enum ree_status ree_lower_map_into(struct ree_expr_builder *b, int result, struct ree_view *dst);
// Type conversion as ONNX Cast defines it, as instructions on a value of type `from`; conversion to
// bool is x != 0. `mode` affects only float8 results; it is {0} if the operator has no such
// attribute.
struct ree_cast_mode {
    bool no_saturate;       // overflow becomes infinity or NaN instead of the largest number
    uint32_t e8m0_rounding; // REE_E8M0_UP, _DOWN or _NEAREST of scalar/narrow.h
};
int ree_expr_cast(struct ree_expr_builder *b, int value, enum ree_dtype from, enum ree_dtype to);
int ree_expr_cast_mode(struct ree_expr_builder *b, int value, enum ree_dtype from,
                       enum ree_dtype to, struct ree_cast_mode mode);
enum ree_status ree_lower_cast(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                               struct ree_view **out);
enum ree_status ree_lower_cast_mode(struct ree_lower *lower, struct ree_view *t, enum ree_dtype to,
                                    struct ree_cast_mode mode, struct ree_view **out);

// Drops dimensions of size 1. Merges neighbouring dimensions that every operand steps through
// evenly.
void ree_expr_coalesce(struct ree_expr *expr);

// RepOps, each on whole tensors. Inputs are made dense if the RepOp requires it.
//
// Reduces (sum, ...) over the axes in the bit mask; keepdims keeps them as dimensions of size 1.
// ree_reduce_params defines the output dtype.
enum ree_status ree_lower_reduce(struct ree_lower *lower, struct ree_view *t,
                                 enum ree_reduce_kind kind, uint32_t axes_mask, bool keepdims,
                                 bool select_last, struct ree_view **out);
// The dtype of a product's sum (repop.h, matmul): float32 for floats, int32 for 8-bit integers,
// else the operands' dtype. REE_DTYPE_NONE if the two dtypes cannot be multiplied.
enum ree_dtype ree_product_dtype(enum ree_dtype a, enum ree_dtype b);
// numpy.matmul for rank >= 2 on both sides; the rule handles 1-D operands. The result has the sum's
// dtype.
enum ree_status ree_lower_matmul(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                 struct ree_view **out);
// Appends a filled dispatch, or runs it at once on the host if everything it reads is host-known.
//
// The view's offset: some operands have an offset field in the parameters. They are passed from the
// start of their storage, and the rule must put the view's offset into the parameters. They are:
// copy src and dst, the inputs of map and attention, reduce x, matmul A and B, gather data,
// epilogue tensors. All other operands are passed from the view's own offset and must be dense
// (ree_lower_dense).
//
// The last n_outputs operands are written. copy's dst and scatter's data are always written.
enum ree_status ree_lower_emit(struct ree_lower *lower, enum ree_repop op,
                               const union ree_params *params, struct ree_view *const *operands,
                               uint32_t n_operands, uint32_t n_outputs);

// Lowers one node of lower->graph: finds its row, checks the number of inputs and outputs, calls
// the rule. values[value->id] are the tensor views made so far.
enum ree_status ree_lower_node(struct ree_lower *lower, const struct ree_node *node,
                               struct ree_view **values);
// Lowers a subgraph of lower->node once: in[graph->n_inputs] to out[graph->n_outputs]. The subgraph
// can read every value that the enclosing graphs have made so far.
enum ree_status ree_lower_graph(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out);
// As ree_lower_graph, but only derives types and shapes: adds nothing to the program and reads no
// value back.
enum ree_status ree_lower_trial(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out);

// Program passes over the dispatches so far. Neither changes a bit of the results. Storages with
// keep[storage id] set must stay materialised.
//
// Merges maps into the maps, products and convolutions before them.
enum ree_status ree_fuse_program(struct ree_lower *lower, const bool *keep);
// Drops dispatches whose results are never read.
enum ree_status ree_prune_program(struct ree_lower *lower, const bool *keep);

#endif
