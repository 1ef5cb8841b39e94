#include "base/npy.h"

#include "base/dtype.h"
#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

// Type codes, which follow the byte order in 'descr', and their element types.
static const struct {
    const char *code;
    enum ree_dtype dtype;
} codes[] = {
    {"f4", REE_F32}, {"f8", REE_F64}, {"f2", REE_F16},  {"b1", REE_BOOL}, {"i1", REE_I8},
    {"i2", REE_I16}, {"i4", REE_I32}, {"i8", REE_I64},  {"u1", REE_U8},   {"u2", REE_U16},
    {"u4", REE_U32}, {"u8", REE_U64}, {"V2", REE_BF16},
};

// Returns the type of the elements in the file: a type of 8 bits for the types of at most 8 bits
// that NumPy lacks.
static enum ree_dtype carrier(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_I4:
    case REE_I2: return REE_I8;
    case REE_U4:
    case REE_U2:
    case REE_F4E2M1:
    case REE_F8E4M3FN:
    case REE_F8E4M3FNUZ:
    case REE_F8E5M2:
    case REE_F8E5M2FNUZ:
    case REE_F8E8M0: return REE_U8;
    default: return dtype;
    }
}

#define MAX_EMPTY_STRINGS (1 << 20)

struct header {
    enum ree_dtype dtype;
    bool big_endian, fortran_order;
    size_t length; // length of each string, in code points
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
};

// Parser of the header's dictionary literal. Accepts strings, True, False and tuples of integers,
// which is all that NumPy writes for types that are not structured.
struct parser {
    const char *at, *end;
    const char *where;
    struct ree_error *err;
};

static enum ree_status parse_fail(const struct parser *p, const char *what) {
    return ree_fail(p->err, REE_INVALID, "%s: .npy header: %s", p->where, what);
}

static void skip_blanks(struct parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t'))
        p->at++;
}

static bool accept(struct parser *p, char c) {
    skip_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool accept_word(struct parser *p, const char *word) {
    skip_blanks(p);
    size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

// 'text' or "text", without escapes.
static bool parse_string(struct parser *p, const char **out, size_t *out_n) {
    char quote = accept(p, '\'') ? '\'' : '"';
    if (quote == '"' && !accept(p, '"')) return false;
    const char *start = p->at;
    while (p->at < p->end && *p->at != quote && *p->at != '\\')
        p->at++;
    if (p->at == p->end || *p->at != quote) return false;
    *out = start;
    *out_n = (size_t)(p->at++ - start);
    return true;
}

static enum ree_status parse_descr(struct parser *p, struct header *h) {
    const char *s;
    size_t n;
    if (!parse_string(p, &s, &n))
        return parse_fail(p, "'descr' must be a string (structured types are not supported)");
    if (n == 3 && strchr("<>|=", s[0])) {
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
            if (memcmp(s + 1, codes[i].code, 2) != 0) continue;
            h->dtype = codes[i].dtype;
            h->big_endian = s[0] == '>';
            // "|" means that byte order does not apply; raw bytes have none.
            if (s[0] == '|' && ree_dtype_size(h->dtype) > 1 && h->dtype != REE_BF16) break;
            return REE_OK;
        }
    }
    if (n >= 3 && n <= 9 && strchr("<>", s[0]) && s[1] == 'U') {
        h->dtype = REE_STRING;
        h->big_endian = s[0] == '>';
        h->length = 0;
        for (size_t i = 2; i < n; i++) {
            if (s[i] < '0' || s[i] > '9')
                return parse_fail(p, "the length of strings is not a number");
            h->length = 10 * h->length + (size_t)(s[i] - '0');
        }
        return REE_OK;
    }
    char what[64];
    snprintf(what, sizeof what, "elements of type '%.*s' are not supported", n > 16 ? 16 : (int)n,
             s);
    return parse_fail(p, what);
}

static enum ree_status parse_shape(struct parser *p, struct header *h) {
    if (!accept(p, '(')) return parse_fail(p, "'shape' must be a tuple");
    h->rank = 0;
    while (!accept(p, ')')) {
        if (h->rank == REE_MAX_RANK) return parse_fail(p, "'shape' has more than 8 dimensions");
        skip_blanks(p);
        if (p->at == p->end || *p->at < '0' || *p->at > '9')
            return parse_fail(p, "a dimension in 'shape' is not a non-negative integer");
        int64_t dim = 0;
        for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
            if (__builtin_mul_overflow(dim, (int64_t)10, &dim) ||
                __builtin_add_overflow(dim, (int64_t)(*p->at - '0'), &dim))
                return parse_fail(p, "a dimension in 'shape' does not fit in 64 bits");
        h->dims[h->rank++] = dim;
        if (accept(p, ',')) continue;
        // "(3)" is a number, not a tuple; "(3,)" and "(2, 3)" are tuples.
        if (h->rank == 1 || !accept(p, ')')) return parse_fail(p, "'shape' is not a proper tuple");
        return REE_OK;
    }
    return REE_OK;
}

static enum ree_status parse_header(struct parser *p, struct header *h) {
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    if (!accept(p, '{')) return parse_fail(p, "not a dictionary");
    while (!accept(p, '}')) {
        const char *key;
        size_t n;
        unsigned which = 0;
        if (!parse_string(p, &key, &n) || !accept(p, ':'))
            return parse_fail(p, "expected 'key': value");
        if (n == 5 && memcmp(key, "descr", n) == 0) {
            which = DESCR;
            REE_TRY(parse_descr(p, h));
        } else if (n == 13 && memcmp(key, "fortran_order", n) == 0) {
            which = ORDER;
            h->fortran_order = accept_word(p, "True");
            if (!h->fortran_order && !accept_word(p, "False"))
                return parse_fail(p, "'fortran_order' must be True or False");
        } else if (n == 5 && memcmp(key, "shape", n) == 0) {
            which = SHAPE;
            REE_TRY(parse_shape(p, h));
        } else {
            return parse_fail(p, "a key other than 'descr', 'fortran_order' and 'shape'");
        }
        if (seen & which) return parse_fail(p, "a key occurs twice");
        seen |= which;
        if (accept(p, ',')) continue;
        if (!accept(p, '}')) return parse_fail(p, "expected ',' or '}'");
        break;
    }
    skip_blanks(p);
    if (p->at != p->end) return parse_fail(p, "unexpected characters after the dictionary");
    if (seen != (DESCR | ORDER | SHAPE))
        return parse_fail(p, "'descr', 'fortran_order' and 'shape' must all be present");
    return REE_OK;
}

static void swap_bytes(unsigned char *data, size_t nbytes, size_t elem_size) {
    for (size_t at = 0; at < nbytes; at += elem_size)
        for (size_t i = 0; i < elem_size / 2; i++) {
            unsigned char t = data[at + i];
            data[at + i] = data[at + elem_size - 1 - i];
            data[at + elem_size - 1 - i] = t;
        }
}

// Copies column-major src to row-major dst: walks dst in order and updates the offset in src as the
// coordinates advance.
static void copy_fortran(unsigned char *dst, const unsigned char *src, const struct header *h,
                         size_t elem_size, size_t n_elements) {
    size_t strides[REE_MAX_RANK], index[REE_MAX_RANK] = {0}, offset = 0;
    size_t stride = elem_size;
    for (uint32_t i = 0; i < h->rank; i++) {
        strides[i] = stride;
        stride *= (size_t)h->dims[i];
    }
    for (size_t n = 0; n < n_elements; n++) {
        memcpy(dst + n * elem_size, src + offset, elem_size);
        for (uint32_t i = h->rank; i-- > 0;) {
            offset += strides[i];
            if (++index[i] < (size_t)h->dims[i]) break;
            offset -= strides[i] * index[i];
            index[i] = 0;
        }
    }
}

// *out_start receives the offset of the elements.
static enum ree_status read_header(const unsigned char *b, size_t nbytes, const char *where,
                                   struct header *h, size_t *out_start, struct ree_error *err) {
    if (nbytes < 10 || memcmp(b, magic, sizeof magic) != 0)
        return ree_fail(err, REE_INVALID, "%s: not a .npy file (it does not start with \\x93NUMPY)",
                        where);
    unsigned major = b[6];
    if (major < 1 || major > 3)
        return ree_fail(err, REE_UNSUPPORTED, "%s: .npy format version %u, expected 1, 2 or 3",
                        where, major);
    size_t start = major == 1 ? 10 : 12, length = b[8] | (size_t)b[9] << 8;
    if (major > 1 && nbytes >= 12) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (nbytes < start || length > nbytes - start)
        return ree_fail(err, REE_INVALID, "%s: the .npy header is truncated", where);
    *out_start = start + length;
    struct parser p = {(const char *)b + start, (const char *)b + start + length, where, err};
    return parse_header(&p, h);
}

bool ree_npy_has_strings(const void *bytes, size_t nbytes) {
    struct header h = {0};
    struct ree_error unused;
    size_t start;
    return read_header(bytes, nbytes, "", &h, &start, &unused) == REE_OK && h.dtype == REE_STRING;
}

enum ree_status ree_npy_decode(struct ree_tensor *tensor, const void *bytes, size_t nbytes,
                               const char *where, struct ree_error *err) {
    memset(tensor, 0, sizeof *tensor);
    const unsigned char *b = bytes;
    struct header h = {0};
    size_t start;
    REE_TRY(read_header(b, nbytes, where, &h, &start, err));
    // Check against the file's length before allocating: a forged header must not cause a large
    // allocation.
    bool text = h.dtype == REE_STRING;
    size_t elem_size = text ? 4 * h.length : ree_dtype_size(h.dtype), have = nbytes - start;
    int64_t count;
    uint64_t want;
    if (!ree_count_elements(h.rank, h.dims, &count) ||
        !ree_mul_size((uint64_t)count, elem_size, &want))
        return ree_fail(err, REE_INVALID, "%s: the product of the dimensions exceeds 64 bits",
                        where);
    if (want != have)
        return ree_fail(err, REE_INVALID,
                        "%s: shape and type require %llu bytes of elements, but the file has %zu",
                        where, (unsigned long long)want, have);

    if (text && h.fortran_order && h.rank > 1)
        return ree_fail(err, REE_UNSUPPORTED, "%s: strings in Fortran order are not supported",
                        where);
    // Strings of length 0 take no bytes in the file, but each takes a pointer in memory.
    if (text && !elem_size && count > MAX_EMPTY_STRINGS)
        return ree_fail(err, REE_UNSUPPORTED, "%s: has more than %d empty strings", where,
                        MAX_EMPTY_STRINGS);
    REE_TRY(ree_tensor_init(tensor, NULL, h.dtype, h.rank, h.dims, err));
    const unsigned char *elements = b + start;
    if (text) {
        enum ree_status status = ree_npy_read_strings(tensor->data, (size_t)count, h.length,
                                                      elements, h.big_endian, where, err);
        if (status != REE_OK) ree_tensor_finish(tensor);
        return status;
    }
    if (h.fortran_order && h.rank > 1)
        copy_fortran(tensor->data, elements, &h, elem_size, (size_t)count);
    else
        memcpy(tensor->data, elements, have);
    if (h.big_endian) swap_bytes(tensor->data, tensor->nbytes, elem_size);
    if (h.dtype == REE_BOOL) {
        const unsigned char *data = tensor->data;
        for (size_t i = 0; i < tensor->nbytes; i++)
            if (data[i] > 1) {
                unsigned value = data[i];
                ree_tensor_finish(tensor);
                return ree_fail(err, REE_INVALID, "%s: a bool element is %u, expected 0 or 1",
                                where, value);
            }
    }
    return REE_OK;
}

enum ree_status ree_tensor_retype(struct ree_tensor *tensor, enum ree_dtype dtype,
                                  struct ree_error *err) {
    if (dtype == tensor->dtype || carrier(dtype) != tensor->dtype) return REE_OK;
    const unsigned char *data = tensor->data;
    for (size_t i = 0; i < tensor->nbytes; i++)
        if (!ree_dtype_byte_is_valid(dtype, data[i]))
            return ree_fail(err, REE_INVALID,
                            "tensor '%s': element %zu is the byte 0x%02x, outside %s",
                            tensor->name ? tensor->name : "", i, data[i], ree_dtype_name(dtype));
    tensor->dtype = dtype;
    return REE_OK;
}

enum ree_status ree_npy_load(struct ree_tensor *tensor, const char *path, struct ree_error *err) {
    memset(tensor, 0, sizeof *tensor);
    void *bytes;
    size_t nbytes;
    REE_TRY(ree_file_read(path, &bytes, &nbytes, err));
    enum ree_status status = ree_npy_decode(tensor, bytes, nbytes, path, err);
    ree_free(bytes);
    return status;
}

enum ree_status ree_npy_encode(const struct ree_tensor *tensor, void **out_bytes,
                               size_t *out_nbytes, struct ree_error *err) {
    *out_bytes = NULL;
    *out_nbytes = 0;
    char code_of_strings[32];
    const char *code = NULL;
    void *text_elements = NULL;
    const void *elements = tensor->data;
    size_t nbytes = tensor->nbytes, text_length;
    if (tensor->kind != REE_TENSOR)
        return ree_fail(err, REE_UNSUPPORTED,
                        "'%s' is not a tensor; a .npy file contains one tensor",
                        tensor->name ? tensor->name : "");
    if (tensor->dtype == REE_STRING) {
        REE_TRY(ree_npy_write_strings(tensor, &text_elements, &nbytes, &text_length, err));
        elements = text_elements;
        snprintf(code_of_strings, sizeof code_of_strings, "U%zu", text_length);
        code = code_of_strings;
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes && !code; i++)
        if (codes[i].dtype == carrier(tensor->dtype)) code = codes[i].code;
    if (!code)
        return ree_fail(err, REE_UNSUPPORTED, "tensor '%s': a .npy file cannot represent %s",
                        tensor->name ? tensor->name : "", ree_dtype_name(tensor->dtype));

    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_append(&text, (const char *)magic, sizeof magic);
    ree_strbuf_append(&text, "\1\0\0\0", 4); // version 1.0; the length is filled in below
    ree_strbuf_printf(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                      ree_dtype_size(tensor->dtype) == 1 ? '|' : '<', code);
    for (uint32_t i = 0; i < tensor->rank; i++)
        ree_strbuf_printf(&text, "%s%lld%s", i ? " " : "", (long long)tensor->dims[i],
                          i + 1 < tensor->rank || tensor->rank == 1 ? "," : "");
    ree_strbuf_printf(&text, "), }");
    // Pad with spaces and a newline, so that the elements start at a multiple of 64 bytes.
    while (text.size % 64 != 63 && !text.failed)
        ree_strbuf_append(&text, " ", 1);
    ree_strbuf_append(&text, "\n", 1);

    size_t header = text.size;
    unsigned char *bytes = text.failed ? NULL : ree_alloc(header + nbytes);
    if (!bytes) {
        ree_strbuf_finish(&text);
        ree_free(text_elements);
        return ree_fail(err, REE_NO_MEMORY, "out of memory for %zu bytes", nbytes);
    }
    memcpy(bytes, text.data, header);
    bytes[8] = (unsigned char)((header - 10) & 0xff);
    bytes[9] = (unsigned char)((header - 10) >> 8);
    if (nbytes) memcpy(bytes + header, elements, nbytes);
    ree_strbuf_finish(&text);
    ree_free(text_elements);
    *out_bytes = bytes;
    *out_nbytes = header + nbytes;
    return REE_OK;
}

enum ree_status ree_tensor_save_npy(const struct ree_tensor *tensor, const char *path,
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    void *bytes;
    size_t nbytes;
    REE_TRY(ree_npy_encode(tensor, &bytes, &nbytes, err));
    enum ree_status status = ree_file_write(path, bytes, nbytes, err);
    ree_free(bytes);
    return status;
}
