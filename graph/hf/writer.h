// Writes an ONNX model: nodes, initializers, ports (inputs and outputs of the graph) and metadata,
// one call each.
//
// A value is identified by its name. The writer keeps the first failure; after it, every call does
// nothing, so that callers need no check after each call. ree_writer_pack reports the failure.
// After a failure, the names that functions return are valid strings, but mean nothing.
#ifndef REE_GRAPH_HF_WRITER_H
#define REE_GRAPH_HF_WRITER_H

#include "base/arena.h"
#include "base/status.h"
#include "onnx.pb-c.h"

struct ree_writer_list {
    void **items;
    size_t n, capacity;
};

struct ree_writer {
    struct ree_arena arena;
    enum ree_status status; // the first failure, or REE_OK
    struct ree_error *err;  // never NULL
    struct ree_writer_list nodes, initializers, inputs, outputs, opsets, metadata;
    struct ree_writer_list attributes; // attributes of the node written last
};

void ree_writer_init(struct ree_writer *w, struct ree_error *err);
void ree_writer_finish(struct ree_writer *w);
// Writes the model to *out as the *out_size bytes of an ONNX file, or returns the first failure.
// The caller releases *out with ree_free.
enum ree_status ree_writer_pack(struct ree_writer *w, int64_t ir_version, unsigned char **out,
                                size_t *out_size);

bool ree_writer_ok(const struct ree_writer *w);
#define ree_writer_fail(w, code, ...)                                                              \
    (ree_writer_ok(w) ? (void)((w)->status = ree_fail((w)->err, code, __VA_ARGS__)) : (void)0)
// Returns a formatted name, allocated in the arena. Fails if it has more than 511 bytes.
__attribute__((format(printf, 2, 3))) const char *ree_writer_name(struct ree_writer *w,
                                                                  const char *format, ...);

void ree_writer_opset(struct ree_writer *w, const char *domain, int64_t version);
void ree_writer_metadata(struct ree_writer *w, const char *key, const char *value);
// A dimension of a port: `symbol` if it is named, else (symbol is NULL) a fixed size.
struct ree_writer_dim {
    const char *symbol;
    int64_t size;
};
void ree_writer_port(struct ree_writer *w, bool is_output, const char *name, enum ree_dtype dtype,
                     uint32_t rank, const struct ree_writer_dim *dims);

// Adds a node with the inputs in[], which end at the first NULL ("" omits an input). Returns the
// name of its only output, which is the name of the node.
const char *ree_writer_op(struct ree_writer *w, const char *name, const char *type,
                          const char *const *in);
#define ree_op1(w, name, type, a) ree_writer_op(w, name, type, (const char *const[]){a, NULL})
#define ree_op2(w, name, type, a, b) ree_writer_op(w, name, type, (const char *const[]){a, b, NULL})
#define ree_op3(w, name, type, a, b, c)                                                            \
    ree_writer_op(w, name, type, (const char *const[]){a, b, c, NULL})
// As ree_writer_op, but with the outputs out[], which end at the first NULL.
void ree_writer_node(struct ree_writer *w, const char *name, const char *type,
                     const char *const *in, const char *const *out);
// These functions set an attribute, or the domain, of the node written last.
void ree_writer_int(struct ree_writer *w, const char *name, int64_t value);
void ree_writer_ints(struct ree_writer *w, const char *name, size_t n, const int64_t *values);
void ree_writer_float(struct ree_writer *w, const char *name, float value);
void ree_writer_text(struct ree_writer *w, const char *name, const char *value);
void ree_writer_domain(struct ree_writer *w, const char *domain);
// Renames the first output of the node written last to `output`.
void ree_writer_rename(struct ree_writer *w, const char *output);

// Constants stored in the model itself; the functions return their names. Equal constants are
// written once, because the name contains the values (for float32, the bits). Only ree_writer_f32s
// takes a name, and writes the values of its first call.
const char *ree_writer_i64s(struct ree_writer *w, size_t n, const int64_t *values); // rank 1
const char *ree_writer_i64(struct ree_writer *w, int64_t value);                    // rank 0
const char *ree_writer_f32(struct ree_writer *w, float value);                      // rank 0
const char *ree_writer_f32s(struct ree_writer *w, const char *name, size_t n, const float *values);
// A constant stored in a file next to the model: `length` bytes at `offset` of the file `location`.
// Returns `name`. It is written once, however often it is requested.
const char *ree_writer_external(struct ree_writer *w, const char *name, enum ree_dtype dtype,
                                uint32_t rank, const int64_t *dims, const char *location,
                                uint64_t offset, uint64_t length);

#endif
