// Shared by the files that build the parts' graphs.
#ifndef REE_GRAPH_SHARE_BUILDER_H
#define REE_GRAPH_SHARE_BUILDER_H

#include "graph/share/divide.h"

#define REE_BUILDER_PREFIX "ree.share." // of the names of new values

enum ree_form { REE_FORM_ALL, REE_FORM_OWN, REE_N_FORMS };

// A value of the step, in one of its forms, and where the parts have it.
struct ree_placed {
    struct ree_value *here; // its copy in the graph of part `here_part` - 1
    uint32_t here_part;     // 0: none
    struct ree_value *made; // in the graph of the part that computes it
    uint32_t made_part;
    size_t slot; // 1 + its slot; 0: none
};

struct ree_share_builder {
    struct ree_divide *d;
    struct ree_share *share;
    struct ree_placed *placed[REE_N_FORMS]; // by value id
    struct ree_share_part *part;            // with the graph that is being built
    uint32_t part_index;
    uint32_t n_names; // numbers the new values
    struct ree_error *err;
};

// Starts a graph with the step's opsets.
enum ree_status ree_builder_begin(struct ree_share_builder *b, struct ree_share_part *part);
// Adds a node of ONNX's own domain with one output. NULL if memory is exhausted.
struct ree_value *ree_builder_add(struct ree_share_builder *b, const char *op_type,
                                  struct ree_value *const *inputs, size_t n_inputs);
// Adds an attribute to the node that makes `value`.
bool ree_builder_int(struct ree_share_builder *b, struct ree_value *value, const char *name,
                     int64_t i);
bool ree_builder_ints(struct ree_share_builder *b, struct ree_value *value, const char *name,
                      const int64_t *ints, size_t n);
// Adds a constant int64 list. NULL if memory is exhausted.
struct ree_value *ree_builder_list(struct ree_share_builder *b, const int64_t *list, size_t n);
// Adds a constant, which is copied. NULL if memory is exhausted.
struct ree_value *ree_builder_constant(struct ree_share_builder *b, enum ree_dtype dtype,
                                       uint32_t rank, const int64_t *dims, const void *data,
                                       size_t nbytes);
// Adds a copy of a node whose inputs and outputs are given.
enum ree_status ree_builder_copy(struct ree_share_builder *b, const struct ree_node *node,
                                 struct ree_value *const *inputs, struct ree_value *const *outputs);
// Adds a value. `name` NULL: a new name.
struct ree_value *ree_builder_value(struct ree_share_builder *b, const char *name);
// Adds an input of the present graph that reads a slot.
enum ree_status ree_builder_read_slot(struct ree_share_builder *b, size_t slot,
                                      enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                                      struct ree_value **out);
// Makes a value of the present graph an output that goes to a slot, a new one unless *slot is set
// (1 + its index).
enum ree_status ree_builder_write_slot(struct ree_share_builder *b, struct ree_share_part *part,
                                       struct ree_value *value, size_t *slot);

// Adds an input of this name to the present graph; a dimension of -1 is open.
enum ree_status ree_builder_input(struct ree_share_builder *b, const char *name,
                                  enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                                  struct ree_value **out);

// chunks.c: makes share->products and share->rows.
enum ree_status ree_builder_chunks(struct ree_share_builder *b);
// sums.c: what a part computes for a sum, and what follows it in the next part.
enum ree_status ree_builder_terms(struct ree_share_builder *b, const struct ree_node *node);
enum ree_status ree_builder_result(struct ree_share_builder *b, const struct ree_node *node,
                                   const struct ree_share_sum *sum);
// builder.c: finds a value in the present graph, in the form in which a node reads it. Adds it if
// it is a constant, an input, or comes from an earlier part.
enum ree_status ree_builder_find(struct ree_share_builder *b, const struct ree_value *value,
                                 struct ree_samples form, struct ree_value **out);
// builder.c: adds the own samples of common outputs of a node, where nodes read them.
enum ree_status ree_builder_select(struct ree_share_builder *b, const struct ree_node *node);
// Notes that `value` of the present graph is the step's value `of`.
void ree_builder_place(struct ree_share_builder *b, const struct ree_value *of, enum ree_form form,
                       struct ree_value *value);

#endif
