// Claims, field by field: a field that is missing, of another type or out of range is refused, and
// the error names it. Arguments: claim files.
#include <stdio.h>
#include <string.h>

#include "base/canonical_json.h"
#include "base/file.h"
#include "base/memory.h"
#include "dispute/claim.h"
#include "test.h"

#define MAX_KEY 32

static const char *file;
static const cJSON *root;
static size_t n_tried;

// Decodes the text of `root`. It must be refused with an error that names `key`.
static void refused(const char *key, const char *change) {
    struct ree_strbuf text;
    struct ree_error err = {0};
    struct ree_claim *claim = NULL;
    ree_strbuf_init(&text);
    REQUIRE(ree_canonical_json(root, &text, &err) == REE_OK);
    enum ree_status status = ree_claim_decode(text.data, text.size, &claim, &err);
    CHECK_MSG(status == REE_INVALID && !claim, "%s: %s: %s: status %d", file, key, change,
              (int)status);
    CHECK_MSG(strstr(err.message, key), "%s: %s: %s: %s", file, key, change, err.message);
    ree_claim_destroy(claim);
    ree_strbuf_finish(&text);
    n_tried++;
}

// Values that are wrong for a field that has the value `item`.
static size_t wrong_values(const cJSON *item, const char *key, const char *out[8]) {
    size_t n = 0;
    out[n++] = "null";
    out[n++] = "{}";
    if (!cJSON_IsArray(item)) out[n++] = "[]";
    if (!cJSON_IsString(item)) out[n++] = "\"x\"";
    if (!cJSON_IsNumber(item)) out[n++] = "1";
    if (cJSON_IsNumber(item)) {
        const bool is_long = strcmp(key, "step") == 0 || strcmp(key, "n_steps") == 0;
        out[n++] = "0.5";
        out[n++] = is_long ? "9007199254740994" : "4294967296"; // 2^53 + 2, 2^32
        if (strcmp(key, "opset") != 0) out[n++] = "-1";
    }
    if (cJSON_IsString(item) && strlen(item->valuestring) == 64) {
        out[n++] = "\"00\"";
        out[n++] = "\"g000000000000000000000000000000000000000000000000000000000000000\"";
    }
    return n;
}

static void try_values(cJSON *parent, const cJSON *was, const char *key) {
    const char *values[8];
    size_t n = wrong_values(was, key, values);
    for (size_t i = 0; i < n; i++) {
        cJSON *value = cJSON_Parse(values[i]);
        REQUIRE(value);
        // A list is one of digests here, and `was` its first element.
        if (cJSON_IsArray(parent))
            REQUIRE(cJSON_InsertItemInArray(parent, 0, value));
        else
            REQUIRE(cJSON_AddItemToObject(parent, key, value));
        refused(key, values[i]);
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, value));
    }
}

// Reports whether the object is of another kind without this field, so that others are missing.
static bool is_kind(const char *key) {
    static const char *const keys[] = {"before", "record_of", "constant", "input"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static void try_fields(cJSON *object);

static void try_list(cJSON *list, const char *key) {
    cJSON *item = list->child;
    if (!item) return;
    if (cJSON_IsObject(item)) {
        for (; item; item = item->next)
            try_fields(item);
        return;
    }
    REQUIRE((item = cJSON_DetachItemFromArray(list, 0)));
    try_values(list, item, key);
    REQUIRE(cJSON_InsertItemInArray(list, 0, item));
}

// Moves each field to the end of the object once. The canonical text sorts them.
static void try_fields(cJSON *object) {
    for (int i = cJSON_GetArraySize(object); i > 0; i--) {
        cJSON *item = object->child;
        char key[MAX_KEY];
        snprintf(key, sizeof key, "%s", item->string);
        if (cJSON_IsObject(item)) try_fields(item);
        if (cJSON_IsArray(item)) try_list(item, key);
        cJSON_DetachItemViaPointer(object, item);
        if (!is_kind(key)) refused(key, "missing");
        try_values(object, item, key);
        REQUIRE(cJSON_AddItemToObject(object, key, item));
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *bytes;
        size_t n;
        struct ree_error err;
        struct ree_claim *claim;
        file = argv[i];
        REQUIRE(ree_file_read(file, &bytes, &n, &err) == REE_OK);
        REQUIRE(ree_claim_decode(bytes, n, &claim, &err) == REE_OK);
        ree_claim_destroy(claim);
        cJSON *claim_json;
        REQUIRE(ree_json_parse_strict(bytes, n, &claim_json, &err) == REE_OK);
        root = claim_json;
        try_fields(claim_json);
        cJSON_Delete(claim_json);
        ree_free(bytes);
    }
    printf("%zu changed fields\n", n_tried);
    CHECK(n_tried > 2000);
    return test_finish();
}
