#include "base/npy.h"
#include "test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Files as NumPy itself writes them, byte for byte (numpy.lib.format.write_array). SPACES is the
// padding of the header.
#define SPACES_10 "          "
#define SPACES_50 SPACES_10 SPACES_10 SPACES_10 SPACES_10 SPACES_10

static const char numpy_f4[] =
    "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" SPACES_50
    "        \n\000\000\300\077\000\000\000\300\000\000@@\000\000\200@\000\000\240@\000\000\310@";
static const char numpy_fortran[] =
    "\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }" SPACES_50
    "         \n\000\000\000\000\003\000\000\000\001\000\000\000\004\000\000\000\002\000\000\000"
    "\005\000\000\000";
static const char numpy_big_endian_v2[] =
    "\223NUMPY\002\000t\000\000\000{'descr': '>i8', 'fortran_order': False, 'shape': (3,), "
    "}" SPACES_50 "        \n\000\000\000\000\000\000\000\001\377\377\377\377\377\377\377\376"
    "\000\000\000\000\000\000\001,";
static const char numpy_bool_v3[] =
    "\223NUMPY\003\000t\000\000\000{'descr': '|b1', 'fortran_order': False, 'shape': (), "
    "}" SPACES_50 SPACES_10 "\n\001";
static const char numpy_empty[] =
    "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3), }" SPACES_50
    "        \n";

static void expect(const void *bytes, size_t nbytes, enum ree_dtype dtype, uint32_t rank,
                   const int64_t *dims, const void *data, size_t size) {
    struct ree_tensor t;
    struct ree_error err = {0};
    bool ok = ree_npy_decode(&t, bytes, nbytes, "x.npy", &err) == REE_OK;
    CHECK_MSG(ok, "%s", err.message);
    if (!ok) return;
    CHECK(t.dtype == dtype && t.rank == rank && t.nbytes == size);
    CHECK(rank == 0 || memcmp(t.dims, dims, rank * sizeof *dims) == 0);
    CHECK(size == 0 || memcmp(t.data, data, size) == 0);
    ree_tensor_finish(&t);
}

static void test_files_of_numpy(void) {
    static const float f4[] = {1.5f, -2, 3, 4, 5, 6.25f};
    static const int32_t i4[] = {0, 1, 2, 3, 4, 5};
    static const int64_t i8[] = {1, -2, 300}, dims[] = {2, 3};
    expect(numpy_f4, sizeof numpy_f4 - 1, REE_F32, 2, dims, f4, sizeof f4);
    expect(numpy_fortran, sizeof numpy_fortran - 1, REE_I32, 2, dims, i4, sizeof i4);
    expect(numpy_big_endian_v2, sizeof numpy_big_endian_v2 - 1, REE_I64, 1, (int64_t[]){3}, i8,
           sizeof i8);
    expect(numpy_bool_v3, sizeof numpy_bool_v3 - 1, REE_BOOL, 0, NULL, "\1", 1);
    expect(numpy_empty, sizeof numpy_empty - 1, REE_U8, 2, (int64_t[]){0, 3}, NULL, 0);
}

// Makes a version 1 file with this dictionary and `n` bytes of elements. The caller must free it.
static unsigned char *make_file(const char *dictionary, const void *elements, size_t n,
                                size_t *out_size) {
    size_t length = strlen(dictionary);
    unsigned char *file = malloc(10 + length + n + 1);
    REQUIRE(file);
    memcpy(file, "\223NUMPY\1\0", 8);
    file[8] = (unsigned char)(length & 255);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + 10, dictionary, length);
    if (n) memcpy(file + 10 + length, elements, n);
    *out_size = 10 + length + n;
    return file;
}

static void test_types(void) {
    static const struct {
        const char *descr;
        enum ree_dtype dtype;
    } cases[] = {
        {"<f4", REE_F32},  {"|u1", REE_U8},  {"|i1", REE_I8},  {"<i4", REE_I32}, {"<i8", REE_I64},
        {"|b1", REE_BOOL}, {"<f8", REE_F64}, {"<f2", REE_F16}, {"<u2", REE_U16}, {"<i2", REE_I16},
        {"<u4", REE_U32},  {"<u8", REE_U64}, {">f4", REE_F32}, {">f8", REE_F64}, {">f2", REE_F16},
        {">u4", REE_U32},  {"=f4", REE_F32},
    };
    static const unsigned char little[] = {1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dictionary[128];
        snprintf(dictionary, sizeof dictionary,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", cases[i].descr);
        size_t elem_size = ree_dtype_size(cases[i].dtype), size;
        unsigned char elements[16];
        for (size_t j = 0; j < 2 * elem_size; j++) {
            size_t in = j % elem_size, at = j - in;
            elements[j] = little[cases[i].descr[0] == '>' ? at + elem_size - 1 - in : j];
        }
        unsigned char *file = make_file(dictionary, elements, 2 * elem_size, &size);
        expect(file, size, cases[i].dtype, 1, (int64_t[]){2}, little, 2 * elem_size);
        free(file);
    }
}

// Column-major of rank 3: element (i, j, k) is at i + 2 (j + 3 k).
static void test_fortran_rank_3(void) {
    unsigned char stored[24], dense[24];
    for (unsigned i = 0; i < 2; i++)
        for (unsigned j = 0; j < 3; j++)
            for (unsigned k = 0; k < 4; k++) {
                stored[i + 2 * (j + 3 * k)] = (unsigned char)(100 * i + 10 * j + k);
                dense[(i * 3 + j) * 4 + k] = (unsigned char)(100 * i + 10 * j + k);
            }
    size_t size;
    unsigned char *file =
        make_file("{'shape': (2, 3, 4), \"fortran_order\": True, 'descr': \"|u1\"}", stored,
                  sizeof stored, &size);
    expect(file, size, REE_U8, 3, (int64_t[]){2, 3, 4}, dense, sizeof dense);
    free(file);
}

static void refuse(const void *bytes, size_t nbytes, const char *message) {
    struct ree_tensor t;
    struct ree_error err = {0};
    // A copy of the exact size, so that AddressSanitizer reports a read past the end.
    unsigned char *copy = malloc(nbytes ? nbytes : 1);
    REQUIRE(copy);
    memcpy(copy, bytes, nbytes);
    enum ree_status status = ree_npy_decode(&t, copy, nbytes, "bad.npy", &err);
    free(copy);
    CHECK_MSG(status != REE_OK, "accepted; expected: %s", message);
    CHECK_MSG(strncmp(err.message, "bad.npy: ", 9) == 0, "%s", err.message);
    CHECK_MSG(strstr(err.message, message), "'%s' lacks '%s'", err.message, message);
    CHECK(!t.data && !t.name);
}

static void refuse_header(const char *dictionary, const char *message) {
    static const unsigned char elements[64];
    size_t size;
    unsigned char *file = make_file(dictionary, elements, sizeof elements, &size);
    refuse(file, size, message);
    free(file);
}

static void test_bad_headers(void) {
#define WITH_SHAPE(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"
#define WITH_DESCR(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (16,), }"
    refuse_header("", "not a dictionary");
    refuse_header("[]", "not a dictionary");
    refuse_header("{}", "must all be present");
    refuse_header("{'descr': '<f4', 'shape': (16,)}", "must all be present");
    refuse_header("{'descr': '<f4', 'descr': '<f4'}", "twice");
    refuse_header("{'descr': '<f4' 'shape': (16,)}", "expected ',' or '}'");
    refuse_header("{'weights': 1}", "a key other than");
    refuse_header("{'descr'", "expected 'key': value");
    refuse_header("{'descr': '<f4", "'descr' must be a string");
    refuse_header("{'descr': '<f4', 'fortran_order': 1, 'shape': (16,)}", "True or False");
    refuse_header(WITH_DESCR("'<f4'") "x", "unexpected characters after");
    refuse_header(WITH_DESCR("[('x', '<f4')]"), "structured types");
    refuse_header(WITH_DESCR("'<c8'"), "type '<c8'");
    refuse_header(WITH_DESCR("'|O'"), "type '|O'");
    refuse_header(WITH_DESCR("'<U1x'"), "the length of strings is not a number");
    refuse_header(WITH_DESCR("'<U16'"), "require 1024 bytes");
    refuse_header(WITH_DESCR("'|f4'"), "type '|f4'");
    refuse_header(WITH_DESCR("'<M8[s]'"), "not supported");
    refuse_header(WITH_SHAPE("16"), "must be a tuple");
    refuse_header(WITH_SHAPE("(16)"), "not a proper tuple");
    refuse_header(WITH_SHAPE("(-16,)"), "non-negative");
    refuse_header(WITH_SHAPE("(16.0,)"), "not a proper tuple");
    refuse_header(WITH_SHAPE("(4 4)"), "not a proper tuple");
    refuse_header(WITH_SHAPE("(4, 4"), "non-negative");
    refuse_header(WITH_SHAPE("(,)"), "non-negative");
    refuse_header(WITH_SHAPE("(9223372036854775808,)"), "64 bits");
    refuse_header(WITH_SHAPE("(9223372036854775807, 2)"), "64 bits");
    refuse_header(WITH_SHAPE("(4611686018427387904,)"), "64 bits");
    refuse_header(WITH_SHAPE("(1099511627776,)"), "require 4398046511104 bytes");
    refuse_header(WITH_SHAPE("(1, 1, 1, 1, 1, 1, 1, 1, 16)"), "more than 8");
    refuse_header(WITH_SHAPE("(15,)"), "require 60 bytes of elements, but the file has 64");
    refuse_header(WITH_SHAPE("(17,)"), "require 68 bytes of elements, but the file has 64");
}

// Every proper prefix of a valid file is refused, and no changed byte leads to a read out of
// bounds.
static void test_mutations(void) {
    for (size_t n = 0; n + 1 < sizeof numpy_f4; n++)
        refuse(numpy_f4, n,
               n < 10    ? "not a .npy file"
               : n < 128 ? "truncated"
                         : "require 24 bytes");
    refuse("PK\3\4 this is an .npz", 20, "not a .npy file");
    refuse("\223NUMPY\4\0v\0{", 11, "version 4");
    refuse("\223NUMPY\2\0v\0\0", 11, "truncated");
    refuse("\223NUMPY\2\0\377\377\377\377{}", 14, "truncated");

    unsigned char file[sizeof numpy_f4 - 1];
    unsigned long n_accepted = 0;
    for (size_t at = 0; at < 128; at++)
        for (int value = 0; value < 256; value++) {
            memcpy(file, numpy_f4, sizeof file);
            file[at] = (unsigned char)value;
            struct ree_tensor t;
            if (ree_npy_decode(&t, file, sizeof file, "x.npy", NULL) != REE_OK) continue;
            n_accepted++;
            CHECK(t.nbytes == 24);
            ree_tensor_finish(&t);
        }
    // Accepted: the 128 unchanged files, and some with another padding, byte order or type.
    CHECK_MSG(n_accepted >= 128 && n_accepted < 1000, "%lu accepted", n_accepted);
}

static void test_write(void) {
    char folder[] = "/tmp/ree-npy-XXXXXX", path[64], missing[64];
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.npy", folder);
    snprintf(missing, sizeof missing, "%s/none/t.npy", folder);

    static const struct {
        enum ree_dtype dtype;
        uint32_t rank;
        int64_t dims[4];
    } cases[] = {
        {REE_F32, 2, {2, 3}},   {REE_I64, 0, {0}},  {REE_BOOL, 1, {5}},
        {REE_U8, 3, {2, 0, 2}}, {REE_BF16, 1, {4}}, {REE_F64, 4, {1, 2, 3, 4}},
        {REE_F16, 1, {1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_tensor a, b;
        struct ree_error err = {0};
        REQUIRE(ree_tensor_init(&a, "a", cases[i].dtype, cases[i].rank, cases[i].dims, NULL) == 0);
        for (size_t j = 0; j < a.nbytes; j++)
            ((unsigned char *)a.data)[j] =
                (unsigned char)(a.dtype == REE_BOOL ? j & 1 : j * 37 + 1);
        CHECK(ree_tensor_save_npy(&a, path, &err) == REE_OK);
        CHECK_MSG(ree_npy_load(&b, path, &err) == REE_OK, "%s", err.message);
        CHECK(b.dtype == a.dtype && b.rank == a.rank && b.nbytes == a.nbytes);
        CHECK(memcmp(b.dims, a.dims, sizeof a.dims) == 0);
        CHECK(a.nbytes == 0 || memcmp(b.data, a.data, a.nbytes) == 0);
        void *bytes;
        size_t nbytes;
        CHECK(ree_npy_encode(&a, &bytes, &nbytes, &err) == REE_OK);
        CHECK((nbytes - a.nbytes) % 64 == 0);
        free(bytes);
        ree_tensor_finish(&a);
        ree_tensor_finish(&b);
    }

    // Our writer gives the same bytes as NumPy for the first of NumPy's files.
    struct ree_tensor t;
    REQUIRE(ree_npy_decode(&t, numpy_f4, sizeof numpy_f4 - 1, "x", NULL) == REE_OK);
    void *bytes;
    size_t nbytes;
    REQUIRE(ree_npy_encode(&t, &bytes, &nbytes, NULL) == REE_OK);
    CHECK(nbytes == sizeof numpy_f4 - 1 && memcmp(bytes, numpy_f4, nbytes) == 0);
    free(bytes);

    // A failed write leaves no file.
    struct ree_error err = {0};
    CHECK(ree_tensor_save_npy(&t, missing, &err) == REE_NOT_FOUND);
    CHECK(strstr(err.message, missing) != NULL);
    struct ree_tensor none;
    CHECK(ree_npy_load(&none, missing, &err) == REE_NOT_FOUND);
    CHECK(ree_npy_load(&none, folder, &err) == REE_IO && strstr(err.message, "not a regular file"));
    unlink(path);
    CHECK(rmdir(folder) == 0); // fails if a temporary file was left
    ree_tensor_finish(&t);
}

int main(void) {
    test_files_of_numpy();
    test_types();
    test_fortran_rank_3();
    test_bad_headers();
    test_mutations();
    test_write();
    return test_finish();
}
