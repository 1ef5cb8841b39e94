// The vectors of tests/data/receipt, made again and compared with the files. vectors.py checks the
// files with an independent implementation.
//
//     receipt_vectors FOLDER           compares
//     receipt_vectors --write FOLDER   writes them
//     receipt_vectors --numbers N      prints the bits of N numbers and their canonical JSON
#include "base/file.h"
#include "receipt/receipt.h"

#include "examples.h"
#include "test.h"
#include "splitmix.h"

#include <math.h>
#include <string.h>

static const char *folder;
static bool writes;

static void path_of(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s/%s", folder, name);
}

// Compares the text with the file, or writes it. Takes ownership of the text.
static void vector_file(const char *name, char *text, size_t n) {
    char path[4096];
    void *bytes = NULL;
    size_t n_bytes = 0;
    struct ree_error err = {.message = ""};
    path_of(path, sizeof path, name);
    REQUIRE(text != NULL);
    if (writes)
        CHECK_MSG(ree_file_write(path, text, n, &err) == REE_OK, "%s", err.message);
    else if (ree_file_read(path, &bytes, &n_bytes, &err) != REE_OK)
        CHECK_MSG(false, "%s", err.message);
    else
        CHECK_MSG(n == n_bytes && memcmp(text, bytes, n) == 0, "%s is another", path);
    free(bytes);
    free(text);
}

static void json_file(const char *name, cJSON *json) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    char *printed = cJSON_Print(json);
    ree_strbuf_printf(&text, "%s\n", printed);
    cJSON_free(printed);
    cJSON_Delete(json);
    size_t n = text.size;
    vector_file(name, ree_strbuf_take(&text), n);
}

static void add_hex(cJSON *object, const char *name, const ree_digest digest) {
    char hex[65];
    ree_hex(digest, hex);
    cJSON_AddStringToObject(object, name, hex);
}

static cJSON *append_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    return object;
}

// Texts and their canonical form.

static void make_canonical(void) {
    static const char *const texts[] = {
        " null ",
        "[ true , false , { } , [ ] ]",
        "{\"b\":1,\"a\":2,\"\":3,\"B\":4,\"ab\":5,\"10\":6,\"9\":7}",
        ("{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,"
         "\"\\u00f6\":7,\"\\ue000\":8,\"\\ud7ff\":9,\"\\ud800\\udc00\":10,\"\\uffff\":11}"),
        "\"\\u0001\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u001f \\\"\\\\\\/\\u007f\\u0080\"",
        "\"\\u2028\\u2029\\ufeff\\ufffe A\\u030a \\u00c5 \\ud83d\\ude02\"",
        "[1.0, 1e2, 0.10, -0, -0.0, 1E-7, 0.000001, 1e21, 123456789e12, 4.50, 2e-3, 5e-324]",
        "[9007199254740991, 9007199254740993, 0.1e1, 1e-400, 1.7976931348623157e308]",
        "{\"z\":{\"y\":{\"x\":[{\"b\":[],\"a\":{}}]}},\"a\":[[[[]]]]}",
        "{\"temperature\":0.800000011920929,\"seed\":\"18446744073709551615\"}",
    };
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cJSON *value, *object = append_object(array);
        struct ree_strbuf out;
        ree_digest digest;
        ree_strbuf_init(&out);
        REQUIRE(ree_json_parse(texts[i], strlen(texts[i]), &value, NULL) == REE_OK);
        REQUIRE(ree_canonical_json(value, &out, NULL) == REE_OK);
        REQUIRE(ree_canonical_sha256(value, "ree-test/1", digest, NULL) == REE_OK);
        cJSON_AddStringToObject(object, "text", texts[i]);
        cJSON_AddStringToObject(object, "canonical", out.data);
        add_hex(object, "sha256_with_tag_ree-test/1", digest);
        ree_strbuf_finish(&out);
        cJSON_Delete(value);
    }
    json_file("canonical.json", array);
}

// Numbers: powers of two and their neighbours, powers of ten, floats, whole numbers, any bits.

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double some_number(size_t i) {
    uint64_t state = i, random = splitmix_step(&state);
    uint64_t power = bits_of(ldexp(1, (int)(random % 2098) - 1074));
    float narrow;
    uint32_t low = (uint32_t)random;
    memcpy(&narrow, &low, sizeof narrow);
    double value = 0;
    switch (i % 6) {
    case 0: value = of_bits(power + i / 6 % 3 - (power > 1)); break;
    case 1:
        value =
            strtod((char[]){'1', 'e', (char)(random & 1 ? '-' : '+'), (char)('0' + random / 2 % 3),
                            (char)('0' + random / 8 % 10), (char)('0' + random / 128 % 10), 0},
                   NULL);
        break;
    case 2: value = (double)narrow; break;
    case 3: value = (double)(int64_t)random / (double)(1ull << (random % 64)); break;
    case 4: value = floor(ldexp((double)random, -(int)(random >> 58))); break;
    case 5: value = of_bits(random); break;
    }
    return isfinite(value) ? value : 0.5;
}

static void append_number(struct ree_strbuf *out, double value) {
    cJSON item = {.type = cJSON_Number, .valuedouble = value};
    ree_strbuf_printf(out, "%016llx ", (unsigned long long)bits_of(value));
    REQUIRE(ree_canonical_json(&item, out, NULL) == REE_OK);
    ree_strbuf_append(out, "\n", 1);
}

static void append_numbers(struct ree_strbuf *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        append_number(out, some_number(i));
}

static void make_numbers(void) {
    static const double chosen[] = {0,
                                    -0.0,
                                    1,
                                    -1,
                                    0x1p-44,
                                    0x1p-24,
                                    5e-324,
                                    2.2250738585072014e-308,
                                    1e21,
                                    1e20,
                                    1e-6,
                                    1e-7,
                                    0.1,
                                    1 / 3.0,
                                    2 / 3.0,
                                    1.7976931348623157e308,
                                    1e23,
                                    9.5e-3,
                                    123e4,
                                    0.8f,
                                    0x1p53,
                                    0x1p53 - 1,
                                    123456789012345680000.0,
                                    1.5e-10,
                                    4.9406564584124654e-322};
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        append_number(&out, chosen[i]);
    append_numbers(&out, 240);
    size_t n = out.size;
    vector_file("numbers.txt", ree_strbuf_take(&out), n);
}

static void make_trees(void) {
    enum { N = 20 };
    static const uint64_t places[][2] = {{1, 0}, {2, 1}, {3, 2}, {7, 0}, {7, 4}, {7, 6}, {20, 13}};
    ree_digest leaves[N], digest, proof[REE_MERKLE_MAX_PROOF];
    for (uint64_t i = 0; i < N; i++) {
        struct ree_hasher *hasher = ree_hasher_create("leaf");
        ree_hasher_update(hasher, &i, sizeof i);
        ree_hasher_digest(hasher, leaves[i]);
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "leaf i", "SHA-256(\"leaf\\0\" | u64 LE i)");
    cJSON *array = cJSON_AddArrayToObject(root, "trees");
    for (uint64_t n = 0; n <= N; n++) {
        cJSON *object = append_object(array);
        cJSON_AddNumberToObject(object, "n", (double)n);
        ree_merkle_top(leaves, n, digest);
        add_hex(object, "top", digest);
        ree_merkle_root(leaves, n, digest);
        add_hex(object, "root", digest);
    }
    array = cJSON_AddArrayToObject(root, "proofs");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        cJSON *object = append_object(array);
        cJSON_AddNumberToObject(object, "n", (double)places[i][0]);
        cJSON_AddNumberToObject(object, "index", (double)places[i][1]);
        cJSON *siblings = cJSON_AddArrayToObject(object, "proof");
        uint32_t length = ree_merkle_proof(leaves, places[i][0], places[i][1], proof);
        for (uint32_t k = 0; k < length; k++) {
            char hex[65];
            ree_hex(proof[k], hex);
            cJSON_AddItemToArray(siblings, cJSON_CreateString(hex));
        }
    }
    json_file("trees.json", root);
}

static void make_receipts(void) {
    char path[4096], name[64];
    path_of(path, sizeof path, "rfc8032.pem");
    const char *key = example_key(path);
    REQUIRE(key);
    for (size_t i = 0; i < 2 * N_EXAMPLES; i++) {
        struct ree_receipt receipt;
        struct ree_error err = {.message = ""};
        char *text;
        size_t n;
        bool is_signed = i >= N_EXAMPLES;
        snprintf(name, sizeof name, "%s%s.receipt.json", examples[i % N_EXAMPLES].name,
                 is_signed ? "-signed" : "");
        examples[i % N_EXAMPLES].make(&receipt);
        REQUIRE(ree_receipt_seal(&receipt, NULL) == REE_OK);
        if (is_signed)
            CHECK_MSG(ree_receipt_sign(&receipt, key, &err) == REE_OK, "%s", err.message);
        REQUIRE(ree_receipt_encode(&receipt, &text, &n, NULL) == REE_OK);
        vector_file(name, text, n);
        ree_receipt_finish(&receipt);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--numbers") == 0) {
        struct ree_strbuf out;
        ree_strbuf_init(&out);
        append_numbers(&out, (size_t)atol(argv[2]));
        fputs(out.data, stdout);
        ree_strbuf_finish(&out);
        return 0;
    }
    writes = argc == 3 && strcmp(argv[1], "--write") == 0;
    if (argc != 2 + writes) {
        fprintf(stderr, "usage: %s [--write] FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[1 + writes];
    make_canonical();
    make_numbers();
    make_trees();
    make_receipts();
    return test_finish();
}
