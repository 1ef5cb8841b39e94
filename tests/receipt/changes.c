// Every change in a receipt is noticed: changes of each member of the file, one at a time and in
// several ways, and changes of bytes.
#include "receipt/receipt_internal.h"

#include "examples.h"
#include "test.h"

#include <string.h>

static const char *key_path;

enum change { ANOTHER, NOTHING, GONE, RENAMED, N_CHANGES };

static cJSON *nth(cJSON *item, size_t *left, cJSON **parent, const char **part) {
    for (cJSON *child = item->child; child; child = child->next) {
        // The root's member that contains the item.
        if (!item->string && cJSON_IsObject(item) && *parent == NULL) *part = child->string;
        if ((*left)-- == 0) {
            *parent = item;
            return child;
        }
        cJSON *up = *parent;
        *parent = item;
        cJSON *found = nth(child, left, parent, part);
        if (found) return found;
        *parent = up;
    }
    return NULL;
}

static bool change(cJSON *parent, cJSON *item, enum change how) {
    if (how == NOTHING) return cJSON_ReplaceItemViaPointer(parent, item, cJSON_CreateNull());
    if (how == GONE) {
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, item));
        return true;
    }
    if (how == RENAMED) {
        if (!item->string || !item->string[0]) return false;
        item->string[0] ^= 1;
        return true;
    }
    if (cJSON_IsNumber(item)) {
        cJSON_SetNumberHelper(item, item->valuedouble == 0 ? 0.5 : item->valuedouble / 2);
    } else if (cJSON_IsString(item) && item->valuestring[0]) {
        // Keeps a hash a hash and a number a number.
        item->valuestring[0] = item->valuestring[0] == '1' ? '2' : '1';
    } else if (cJSON_IsString(item)) {
        return cJSON_ReplaceItemViaPointer(parent, item, cJSON_CreateString("x"));
    } else if (cJSON_IsArray(item)) {
        cJSON_AddItemToArray(item, item->child ? cJSON_Duplicate(item->child, true)
                                               : cJSON_CreateString("x"));
    } else {
        cJSON_AddNumberToObject(item, "more", 1);
    }
    return true;
}

static long n_refused, n_noticed;

static void check_changed(const char *text, const char *part, const char *original_hash) {
    struct ree_receipt receipt;
    struct ree_error err = {.message = ""};
    if (ree_receipt_decode(text, strlen(text), "changed", &receipt, &err) != REE_OK) {
        CHECK_MSG(err.status == REE_INVALID && strncmp(err.message, "changed: ", 9) == 0, "%s",
                  err.message);
        n_refused++;
    } else if (strcmp(part, "unbound") == 0) {
        bool ok;
        struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
        ree_receipt_check(&receipt, findings, &ok);
        CHECK_MSG(ok, "what is not bound may change: %s", text);
    } else if (strcmp(part, "signature") == 0) {
        CHECK_MSG(!receipt.is_signed || example_is_wrong(&receipt, "signature"), "signature: %s",
                  text);
        n_noticed++;
    } else {
        CHECK_MSG(example_is_wrong(&receipt, "receipt"), "receipt: %s", text);
        CHECK(strcmp(part, "receipt_hash") != 0 || example_is_wrong(&receipt, "signature"));
        n_noticed++;
    }
    // If the changed body is hashed again, the hash differs and the signature does not fit it.
    if (strcmp(part, "body") == 0 && err.message[0] == 0) {
        ree_digest digest;
        CHECK(ree_receipt_body_digest(&receipt, digest, NULL) == REE_OK);
        ree_hex(digest, receipt.receipt_hash);
        CHECK_MSG(strcmp(receipt.receipt_hash, original_hash) != 0, "the same hash: %s", text);
        CHECK(!example_is_wrong(&receipt, "receipt") && example_is_wrong(&receipt, "signature"));
    }
    ree_receipt_finish(&receipt);
}

static void check_changes(const struct example *example) {
    size_t n;
    char *text = example_file(example, key_path, &n);
    REQUIRE(text != NULL);
    struct ree_receipt receipt;
    REQUIRE(ree_receipt_decode(text, n, example->name, &receipt, NULL) == REE_OK);
    for (size_t i = 0, seen = 1; seen; i++) {
        seen = 0;
        for (int how = 0; how < N_CHANGES; how++) {
            cJSON *json = cJSON_Parse(text), *parent = NULL;
            const char *part = "";
            size_t left = i;
            cJSON *item = nth(json, &left, &parent, &part);
            char in[16];
            snprintf(in, sizeof in, "%s", item ? part : "");
            seen += item != NULL;
            if (item && change(parent, item, (enum change)how)) {
                char *changed = cJSON_PrintUnformatted(json);
                // Without the member "signature" the receipt is a valid unsigned receipt.
                check_changed(changed, in, receipt.receipt_hash);
                cJSON_free(changed);
            }
            cJSON_Delete(json);
        }
    }
    ree_receipt_finish(&receipt);
    free(text);
}

// Truncated files and files with an altered bit. A file that is still valid has the same body and
// signature.
static void check_bytes(const struct example *example) {
    size_t n;
    char *text = example_file(example, key_path, &n);
    REQUIRE(text != NULL);
    struct ree_receipt receipt, original;
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    ree_digest expected, digest;
    REQUIRE(ree_receipt_decode(text, n, example->name, &original, NULL) == REE_OK);
    REQUIRE(ree_receipt_body_digest(&original, expected, NULL) == REE_OK);
    for (size_t i = 0; i < n - 1; i++) {
        CHECK_MSG(ree_receipt_decode(text, i, "cut", &receipt, NULL) != REE_OK, "%zu bytes", i);
        ree_receipt_finish(&receipt);
    }
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            bool ok = false;
            text[i] ^= (char)(1 << bit);
            if (ree_receipt_decode(text, n, "altered", &receipt, NULL) == REE_OK) {
                ree_receipt_check(&receipt, findings, &ok);
                CHECK(ree_receipt_body_digest(&receipt, digest, NULL) == REE_OK);
                CHECK_MSG(!ok || (memcmp(digest, expected, 32) == 0 && receipt.is_signed &&
                                  strcmp(receipt.signature, original.signature) == 0),
                          "byte %zu, bit %d", i, bit);
            }
            ree_receipt_finish(&receipt);
            text[i] ^= (char)(1 << bit);
        }
    ree_receipt_finish(&original);
    free(text);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    key_path = example_key(argv[1]);
    REQUIRE(key_path);
    for (size_t i = 0; i < N_EXAMPLES; i++)
        check_changes(&examples[i]);
    printf("changes: %ld refused, %ld noticed\n", n_refused, n_noticed);
    CHECK(n_refused > 100 && n_noticed > 100);
    check_bytes(&examples[0]);
    return test_finish();
}
