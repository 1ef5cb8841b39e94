// Reads receipts and canonical JSON from arbitrary bytes. A refused text must have a message. A
// text that has a canonical form keeps it. A receipt that decodes must encode to the same canonical
// text with the same hashes, whatever its layout was.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_receipt
//     build-fuzz/tests/fuzz/fuzz_receipt -dict=tests/fuzz/receipt.dict FOLDER tests/data/receipt
#include "receipt/receipt_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void must(bool ok) {
    if (!ok) abort();
}

static void must_say(enum ree_status status, const struct ree_error *err) {
    must(err->status == status && err->message[0] && status != REE_INTERNAL);
}

// Returns the canonical form, NUL-terminated; the caller must free it. NULL if refused.
static char *canonical(const void *bytes, size_t size, size_t *out_n) {
    cJSON *value;
    struct ree_strbuf out;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_json_parse_strict(bytes, size, &value, &err);
    ree_strbuf_init(&out);
    if (status == REE_OK) status = ree_canonical_json(value, &out, &err);
    cJSON_Delete(value);
    *out_n = out.size;
    if (status == REE_OK) return ree_strbuf_take(&out);
    must_say(status, &err);
    ree_strbuf_finish(&out);
    return NULL;
}

static bool try_canonical(const uint8_t *bytes, size_t size) {
    size_t n, n_again;
    char *text = canonical(bytes, size, &n);
    if (!text) return false;
    char *again = canonical(text, n, &n_again);
    must(again && n == n_again && memcmp(text, again, n) == 0);
    free(again);
    free(text);
    return true;
}

// Decodes, checks and encodes. Returns whether the receipt could be decoded; the caller must free
// *out.
static bool read_receipt(const void *bytes, size_t size, char **out, size_t *out_n,
                         ree_digest out_body, bool *out_ok) {
    struct ree_receipt receipt;
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    struct ree_error err = {.message = ""};
    *out = NULL;
    enum ree_status status = ree_receipt_decode(bytes, size, "fuzz", &receipt, &err);
    if (status == REE_OK) {
        bool all_ok = true;
        size_t n = ree_receipt_check(&receipt, findings, out_ok);
        must(n >= 1 && n <= REE_RECEIPT_MAX_FINDINGS);
        for (size_t i = 0; i < n; i++) {
            must(findings[i].what && findings[i].detail[0]);
            all_ok = all_ok && findings[i].ok;
        }
        must(all_ok == *out_ok);
        must(ree_receipt_body_digest(&receipt, out_body, &err) == REE_OK);
        must(ree_receipt_encode(&receipt, out, out_n, &err) == REE_OK);
    } else {
        must_say(status, &err);
    }
    ree_receipt_finish(&receipt);
    return status == REE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text, *again;
    size_t n, n_again;
    ree_digest body, body_again;
    bool ok, ok_again, is_json = try_canonical(bytes, size);
    if (!read_receipt(bytes, size, &text, &n, body, &ok)) return 0;
    must(is_json);
    must(read_receipt(text, n, &again, &n_again, body_again, &ok_again));
    must(n == n_again && memcmp(text, again, n) == 0);
    must(memcmp(body, body_again, sizeof body) == 0 && ok == ok_again);
    free(again);
    free(text);
    return 0;
}
