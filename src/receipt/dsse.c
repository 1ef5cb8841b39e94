// Attestations of receipts in a form that other tools understand: an in-toto statement (Statement
// v1) in a DSSE envelope, signed with Ed25519.
//
//     {"payloadType": "application/vnd.in-toto+json",
//      "payload": base64 of the statement,
//      "signatures": [{"keyid": the public key in hexadecimal, "sig": base64}]}
//
//     statement: {"_type": "https://in-toto.io/Statement/v1",
//                 "subject": [{"name": file name, "digest": {"sha256": of the receipt's file}}],
//                 "predicateType": "urn:ree:receipt:2" or "urn:ree:training-receipt:1",
//                 "predicate": the receipt, without its own signature}
//
// The signature is over "DSSEv1" SP length SP type SP length SP payload (PAE in DSSE's
// specification). It proves who signed, not that the receipt is true.
#include "receipt/dsse.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "receipt/receipt.h"
#include "receipt/receipt_internal.h"

#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define MAX_SIGNATURES 16 // of an envelope that is checked
#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"

// Encodes as base64 (RFC 4648, section 4). Release the result with ree_free. NULL: out of memory.
static char *encode(const void *bytes, size_t n) {
    char *text = n < INT32_MAX / 2 ? ree_alloc(4 * ((n + 2) / 3) + 1) : NULL;
    if (text) EVP_EncodeBlock((unsigned char *)text, bytes, (int)n);
    return text;
}

// Decodes base64, in the standard or the URL-safe alphabet: DSSE allows both. Release the result
// with ree_free. NULL: the text is not base64 or, if *out_failed is set, memory is exhausted.
static unsigned char *decode(const char *text, size_t *out_n, bool *out_failed) {
    size_t n = strlen(text), padding = 0;
    *out_failed = false;
    if (n % 4 != 0 || n >= INT32_MAX) return NULL;
    char *digits = ree_alloc(n + 1);
    unsigned char *bytes = ree_alloc(n / 4 * 3 + 1);
    *out_failed = !digits || !bytes;
    if (!*out_failed) {
        memcpy(digits, text, n + 1);
        const bool is_url_safe = !strpbrk(text, "+/");
        for (char *c = digits; is_url_safe && *c; c++)
            *c = (char)(*c == '-' ? '+' : *c == '_' ? '/' : *c);
        while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
            padding++;
    }
    // EVP_DecodeBlock would trim white space and '-', and accept '=' anywhere.
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (*out_failed || strspn(digits, all) != n - padding ||
        EVP_DecodeBlock(bytes, (const unsigned char *)digits, (int)n) != (int)(n / 4 * 3)) {
        ree_free(bytes);
        bytes = NULL;
    }
    ree_free(digits);
    *out_n = n / 4 * 3 - padding;
    return bytes;
}

// Appends the bytes that are signed (PAE).
static void append_pae(struct ree_strbuf *out, const void *payload, size_t n) {
    ree_strbuf_printf(out, "DSSEv1 %zu %s %zu ", strlen(PAYLOAD_TYPE), PAYLOAD_TYPE, n);
    ree_strbuf_append(out, payload, n);
}

static enum ree_status hash_file(const char *path, char hex[65], struct ree_error *err) {
    void *bytes;
    size_t n;
    REE_TRY(ree_file_read_small(path, REE_RECEIPT_MAX_SIZE, &bytes, &n, err));
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    ree_hasher_update(hasher, bytes, n);
    ree_hasher_finish(hasher, hex);
    ree_free(bytes);
    return REE_OK;
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool add_item(cJSON *object, const char *name, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

// Parses the receipt's text. NULL: out of memory.
static cJSON *predicate_of(const struct ree_attested *receipt) {
    cJSON *json = NULL;
    (void)ree_json_parse_strict(receipt->text, receipt->nbytes, &json, NULL);
    return json;
}

static enum ree_status make_statement(const struct ree_attested *receipt, struct ree_strbuf *out,
                                      struct ree_error *err) {
    char hex[65];
    REE_TRY(hash_file(receipt->path, hex, err));
    cJSON *root = cJSON_CreateObject(), *subject = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(root, "subject");
    cJSON *digest = cJSON_AddObjectToObject(subject, "digest");
    bool ok = cJSON_AddStringToObject(subject, "name", file_name(receipt->path)) &&
              cJSON_AddStringToObject(digest, "sha256", hex);
    if (!list || !subject || !cJSON_AddItemToArray(list, subject)) {
        cJSON_Delete(subject);
        ok = false;
    }
    ok = ok && cJSON_AddStringToObject(root, "_type", STATEMENT_TYPE) &&
         cJSON_AddStringToObject(root, "predicateType", receipt->type) &&
         add_item(root, "predicate", predicate_of(receipt));
    enum ree_status status = ok ? ree_canonical_json(root, out, err) : ree_no_memory(err);
    cJSON_Delete(root);
    return status == REE_OK && out->failed ? ree_no_memory(err) : status;
}

static enum ree_status make_envelope(const struct ree_strbuf *statement, const char *key_path,
                                     struct ree_strbuf *out, struct ree_error *err) {
    unsigned char signature[REE_SIGNATURE_SIZE];
    char public_key[65];
    struct ree_strbuf pae;
    ree_strbuf_init(&pae);
    append_pae(&pae, statement->data, statement->size);
    enum ree_status status =
        pae.failed ? ree_no_memory(err)
                   : ree_ed25519_sign(key_path, pae.data, pae.size, public_key, signature, err);
    ree_strbuf_finish(&pae);
    if (status != REE_OK) return status;
    char *payload = encode(statement->data, statement->size);
    char *sig = encode(signature, sizeof signature);
    cJSON *root = cJSON_CreateObject(), *entry = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(root, "signatures");
    bool ok = payload && sig && cJSON_AddStringToObject(root, "payloadType", PAYLOAD_TYPE) &&
              cJSON_AddStringToObject(root, "payload", payload) &&
              cJSON_AddStringToObject(entry, "keyid", public_key) &&
              cJSON_AddStringToObject(entry, "sig", sig);
    if (!list || !entry || !cJSON_AddItemToArray(list, entry)) {
        cJSON_Delete(entry);
        ok = false;
    }
    status = ok ? ree_canonical_json(root, out, err) : ree_no_memory(err);
    ree_strbuf_append(out, "\n", 1);
    cJSON_Delete(root);
    ree_free(payload);
    ree_free(sig);
    return status == REE_OK && out->failed ? ree_no_memory(err) : status;
}

enum ree_status ree_attestation_write(const struct ree_attested *receipt, const char *key_path,
                                      const char *path, struct ree_error *err) {
    struct ree_strbuf statement, envelope;
    ree_strbuf_init(&statement);
    ree_strbuf_init(&envelope);
    enum ree_status status = make_statement(receipt, &statement, err);
    if (status == REE_OK) status = make_envelope(&statement, key_path, &envelope, err);
    if (status == REE_OK) status = ree_file_write(path, envelope.data, envelope.size, err);
    ree_strbuf_finish(&statement);
    ree_strbuf_finish(&envelope);
    return status;
}

// Checking an envelope

static const char *string_of(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text ? text : "";
}

// Parses strict JSON. Rejects duplicate keys because other readers may use the other member.
static enum ree_status parse(const char *text, size_t n, cJSON **out, struct ree_error *err) {
    REE_TRY(ree_json_parse_strict(text, n, out, err));
    enum ree_status status = ree_canonical_check(*out, err);
    if (status == REE_OK) return REE_OK;
    cJSON_Delete(*out);
    *out = NULL;
    return status;
}

// Other tools read the receipt's contents from the statement and never see the file, so the
// predicate must equal the file's contents.
static enum ree_status check_predicate(const cJSON *statement, const struct ree_attested *receipt,
                                       struct ree_error *err) {
    struct ree_strbuf here, there;
    ree_strbuf_init(&here);
    ree_strbuf_init(&there);
    const cJSON *stated = cJSON_GetObjectItemCaseSensitive(statement, "predicate");
    cJSON *predicate = predicate_of(receipt);
    enum ree_status status = predicate ? REE_OK : ree_no_memory(err);
    if (status == REE_OK && strcmp(string_of(statement, "predicateType"), receipt->type) != 0)
        status = ree_fail(err, REE_INVALID, "its predicateType is '%.64s', expected '%s'",
                          string_of(statement, "predicateType"), receipt->type);
    if (status == REE_OK && !stated)
        status = ree_fail(err, REE_INVALID, "its statement has no predicate");
    if (status == REE_OK) status = ree_canonical_json(predicate, &here, err);
    if (status == REE_OK) status = ree_canonical_json(stated, &there, err);
    if (status == REE_OK &&
        (here.size != there.size || memcmp(here.data, there.data, here.size) != 0))
        status =
            ree_fail(err, REE_INVALID, "its predicate is not the content of %s", receipt->path);
    cJSON_Delete(predicate);
    ree_strbuf_finish(&here);
    ree_strbuf_finish(&there);
    return status;
}

static enum ree_status check_statement(const char *text, size_t n,
                                       const struct ree_attested *receipt, struct ree_error *err) {
    cJSON *json;
    char hex[65];
    REE_TRY(hash_file(receipt->path, hex, err));
    REE_TRY(parse(text, n, &json, err));
    const cJSON *subjects = cJSON_GetObjectItemCaseSensitive(json, "subject");
    const char *stated = string_of(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(subjects, 0), "digest"), "sha256");
    enum ree_status status = REE_OK;
    if (strcmp(string_of(json, "_type"), STATEMENT_TYPE) != 0)
        status = ree_fail(err, REE_INVALID, "its payload is not an in-toto statement (v1)");
    else if (strncmp(string_of(json, "predicateType"), "urn:ree:", 8) != 0)
        status = ree_fail(err, REE_INVALID, "its statement is not about a receipt of ree");
    else if (!cJSON_IsArray(subjects))
        status = ree_fail(err, REE_INVALID, "its statement has no list of subjects");
    else if (cJSON_GetArraySize(subjects) != 1)
        status = ree_fail(err, REE_INVALID, "its statement is about %d files, expected one",
                          cJSON_GetArraySize(subjects));
    else if (strcmp(stated, hex) != 0)
        status =
            ree_fail(err, REE_INVALID, "it is about another file: %s has SHA-256 %s, not %.64s",
                     receipt->path, hex, stated);
    else
        status = check_predicate(json, receipt, err);
    cJSON_Delete(json);
    return status;
}

static enum ree_status check_signature(const cJSON *envelope, const unsigned char *payload,
                                       size_t n, const char *public_key, char signer[65],
                                       struct ree_error *err) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(envelope, "signatures"), *entry;
    struct ree_strbuf pae;
    if (!cJSON_IsArray(list)) return ree_fail(err, REE_INVALID, "it has no list of signatures");
    // Each signature is checked over the whole payload.
    if (cJSON_GetArraySize(list) > MAX_SIGNATURES)
        return ree_fail(err, REE_INVALID, "it has %d signatures; the maximum is %d",
                        cJSON_GetArraySize(list), MAX_SIGNATURES);
    bool holds = false, failed = false;
    ree_strbuf_init(&pae);
    append_pae(&pae, payload, n);
    cJSON_ArrayForEach(entry, list) {
        const char *key = public_key[0] ? public_key : string_of(entry, "keyid");
        size_t n_signature = 0;
        bool no_bytes, no_answer = false;
        unsigned char *signature = decode(string_of(entry, "sig"), &n_signature, &no_bytes);
        if (!holds && signature && n_signature == REE_SIGNATURE_SIZE && !pae.failed &&
            ree_ed25519_holds(key, pae.data, pae.size, signature, &no_answer)) {
            holds = true;
            snprintf(signer, 65, "%s", key);
        }
        failed = failed || no_bytes || no_answer;
        ree_free(signature);
    }
    failed = failed || pae.failed;
    ree_strbuf_finish(&pae);
    if (holds) return REE_OK;
    if (failed) return ree_no_memory(err);
    return ree_fail(err, REE_INVALID, "none of its signatures is a valid signature by %s",
                    public_key[0] ? public_key : "the key that it names");
}

static enum ree_status check_envelope(const cJSON *envelope, const struct ree_attested *receipt,
                                      const char *public_key, char signer[65],
                                      struct ree_error *err) {
    size_t n = 0;
    if (strcmp(string_of(envelope, "payloadType"), PAYLOAD_TYPE) != 0)
        return ree_fail(err, REE_INVALID, "it is not a DSSE envelope of an in-toto statement");
    bool failed;
    unsigned char *payload = decode(string_of(envelope, "payload"), &n, &failed);
    if (failed) return ree_no_memory(err);
    if (!payload) return ree_fail(err, REE_INVALID, "its payload is not base64");
    enum ree_status status = check_signature(envelope, payload, n, public_key, signer, err);
    if (status == REE_OK) status = check_statement((const char *)payload, n, receipt, err);
    ree_free(payload);
    return status;
}

enum ree_status ree_attestation_check(const char *path, const struct ree_attested *receipt,
                                      const char *public_key, char signer[65],
                                      struct ree_error *err) {
    void *bytes;
    size_t n;
    cJSON *json = NULL;
    signer[0] = 0;
    REE_TRY(ree_file_read_small(path, 2 * REE_RECEIPT_MAX_SIZE, &bytes, &n, err));
    enum ree_status status = parse(bytes, n, &json, err);
    if (status == REE_OK) status = check_envelope(json, receipt, public_key, signer, err);
    cJSON_Delete(json);
    ree_free(bytes);
    return status == REE_OK ? status : ree_fail_prefix(err, "%s", path);
}

// Receipts of completions and of tensors

// Fills *out, whose text the caller releases with ree_free, and `type`, to which it points.
static enum ree_status attested_of(const struct ree_receipt *receipt, const char *path,
                                   char type[32], struct ree_attested *out, char **out_text,
                                   struct ree_error *err) {
    struct ree_receipt plain = *receipt;
    plain.is_signed = false;
    snprintf(type, 32, "urn:ree:receipt:%u", receipt->version);
    *out = (struct ree_attested){.path = path, .type = type};
    REE_TRY(ree_receipt_encode(&plain, out_text, &out->nbytes, err));
    out->text = *out_text;
    return REE_OK;
}

enum ree_status ree_dsse_write(const struct ree_receipt *receipt, const char *receipt_path,
                               const char *key_path, const char *path, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_attested attested;
    char type[32], *text = NULL;
    enum ree_status status = attested_of(receipt, receipt_path, type, &attested, &text, err);
    if (status == REE_OK) status = ree_attestation_write(&attested, key_path, path, err);
    ree_free(text);
    return status;
}

enum ree_status ree_dsse_check(const char *path, const char *receipt_path, const char *public_key,
                               char signer[65], struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_receipt receipt;
    struct ree_attested attested;
    char type[32], *text = NULL;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    signer[0] = 0;
    enum ree_status status = ree_receipt_read(receipt_path, &receipt, err);
    if (status == REE_OK) status = attested_of(&receipt, receipt_path, type, &attested, &text, err);
    if (status == REE_OK) status = ree_attestation_check(path, &attested, public_key, signer, err);
    ree_free(text);
    ree_receipt_finish(&receipt);
    return status;
}
