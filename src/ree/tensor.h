// Tensors in host memory: their types, files and hashes.
#ifndef REE_TENSOR_H
#define REE_TENSOR_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

// The values are those of ONNX's TensorProto.DataType.
enum ree_dtype {
    REE_DTYPE_NONE = 0,
    REE_F32 = 1,
    REE_U8 = 2,
    REE_I8 = 3,
    REE_U16 = 4,
    REE_I16 = 5,
    REE_I32 = 6,
    REE_I64 = 7,
    REE_STRING = 8,
    REE_BOOL = 9, // one byte, 0 or 1
    REE_F16 = 10,
    REE_F64 = 11,
    REE_U32 = 12,
    REE_U64 = 13,
    REE_BF16 = 16,
    REE_F8E4M3FN = 17, // the float8 types, one byte each
    REE_F8E4M3FNUZ = 18,
    REE_F8E5M2 = 19,
    REE_F8E5M2FNUZ = 20,
    REE_U4 = 21, // types below 8 bits take one byte per element: see ree_dtype_bits
    REE_I4 = 22,
    REE_F4E2M1 = 23, // 4 bits, in the low half of a byte
    REE_F8E8M0 = 24,
    REE_U2 = 25,
    REE_I2 = 26,
};

struct ree_port; // model.h

#define REE_MAX_RANK 8

REE_API const char *
ree_dtype_name(enum ree_dtype dtype); // "float32", "int64", "bool", ...; "?" if unknown
REE_API size_t ree_dtype_size(enum ree_dtype dtype); // bytes per element; 0 for unknown types
// Returns the bits per element in an ONNX file, which packs the types of 4 and 2 bits. In struct
// ree_tensor, and everywhere else in ree, each element of these types takes one byte: int4 and int2
// are sign-extended; uint4, uint2 and float4e2m1 are zero-extended. 0 for REE_STRING and unknown
// types.
REE_API uint32_t ree_dtype_bits(enum ree_dtype dtype);

// The kind of a model's value. Most values are tensors.
enum ree_kind {
    REE_TENSOR = 0,
    REE_SEQUENCE, // a list of tensors of one element type; their shapes may differ
    REE_ABSENT,   // an optional value that is not present
};

// A tensor in host memory: dense, row-major, little-endian. A scalar has rank 0. Elements of
// REE_STRING are `char *`: NUL-terminated UTF-8, each allocated by its own ree_alloc and owned by
// the tensor; NULL is an empty string.
//
// The same struct holds a sequence or an absent value. A sequence owns its items, which are tensors
// without names. For both kinds, rank is 0, data is NULL and dtype is the element type of the
// items.
struct ree_tensor {
    char *name; // owned, from ree_alloc; may be NULL
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    void *data;    // (dims[0] * ... * dims[rank-1]) elements; may be NULL if there are none
    size_t nbytes; // data size in bytes: elements * ree_dtype_size(dtype)
    enum ree_kind kind;
    size_t n_items;           // number of items of a sequence; otherwise 0
    struct ree_tensor *items; // (n_items) items of a sequence, each of kind REE_TENSOR
};

// Initialises *tensor: zeroed data of this type and shape, and a copy of `name`, which may be NULL.
// dims has `rank` entries. Release with ree_tensor_finish. Fails with REE_UNSUPPORTED if the rank
// is above REE_MAX_RANK or the type is unknown, and with REE_INVALID if a dimension is negative;
// *tensor is then zeroed.
REE_API enum ree_status ree_tensor_init(struct ree_tensor *tensor, const char *name,
                                        enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                                        struct ree_error *err);
// Moves *item to the end of a sequence: the sequence owns its contents, and *item is zeroed. On
// failure the contents are released. An empty sequence is a zeroed struct of kind REE_SEQUENCE.
REE_API enum ree_status ree_sequence_append(struct ree_tensor *sequence, struct ree_tensor *item,
                                            struct ree_error *err);
REE_API void
ree_tensor_finish(struct ree_tensor *tensor); // frees name, data, items; zeroes the struct

// Reads FILE.npy (NumPy format 1 to 3, C or Fortran order) or FILE.pb (an ONNX TensorProto).
// Initialises *tensor; release with ree_tensor_finish. tensor->name is NULL after a .npy file, and
// the name in the TensorProto after a .pb file. Fails with REE_UNSUPPORTED if the path ends neither
// with .npy nor with .pb; on failure *tensor is zeroed.
REE_API enum ree_status ree_tensor_load(struct ree_tensor *tensor, const char *path,
                                        struct ree_error *err);
// Like ree_tensor_load, for a value of the model input `port`. A .pb file holds a SequenceProto if
// the port is a sequence, and an OptionalProto if it is nullable.
REE_API enum ree_status ree_tensor_load_for(struct ree_tensor *tensor, const char *path,
                                            const struct ree_port *port, struct ree_error *err);
// Writes NumPy format 1.0. The file appears whole or not at all. Fails with REE_UNSUPPORTED if the
// value is not a tensor. Types that NumPy lacks are written as their bytes:
// - int4 and int2 as int8
// - uint4, uint2, float4e2m1 and the float8 types (their bits) as uint8
// - bfloat16 as raw data of two bytes
//
// ree_tensor_load reads raw data of two bytes as bfloat16. It reads the other types as int8 or
// uint8; ree_tensor_retype converts them back.
REE_API enum ree_status ree_tensor_save_npy(const struct ree_tensor *tensor, const char *path,
                                            struct ree_error *err);

// Changes the type of a tensor from a .npy file to `dtype`, in place, if ree_tensor_save_npy writes
// `dtype` as the tensor's present type (int4 as int8, float8e5m2 as uint8, ...). Otherwise does
// nothing. Fails with REE_INVALID if a byte is not a valid element of `dtype`.
REE_API enum ree_status ree_tensor_retype(struct ree_tensor *tensor, enum ree_dtype dtype,
                                          struct ree_error *err);

// SHA-256 of one tensor, or of n tensors in order, as 64 lower-case hexadecimal digits and a NUL.
// NUMERICS.md, "Hashes", defines the hashed bytes.
REE_API void ree_tensor_sha256(const struct ree_tensor *tensor, char hex[65]);
REE_API void ree_tensors_sha256(const struct ree_tensor *tensors, size_t n, char hex[65]);

#ifdef __cplusplus
}
#endif
#endif
