// Mutations of fuzz_verify's inputs that preserve their structure. A value of the receipt or the
// request is changed, removed, duplicated, or copied from another honest receipt. Then the members
// that follow from others are mostly made consistent again (reseal.h). Sometimes raw bytes are
// changed instead.
#include "reseal.h"
#include "verify_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify_mutator.h"
#include "splitmix.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static struct splitmix rng;

// Each draw is a statement of its own: compilers evaluate arguments in different orders, and seeds
// must be the same with each compiler.
static uint32_t below(uint32_t n) {
    return splitmix_below(&rng, n);
}

static bool one_in(uint32_t n) {
    return below(n) == 0;
}

// Values

static double any_number(double was) {
    static const double numbers[] = {
        0,  1,   2,          3,           4,           5,   6,
        7,  -1,  0.5,        0.9375,      1e6,         16,  63,
        64, 512, 4294967295, 4294967296., 1073741824., 1.5, 9007199254740991.};
    const uint32_t n = sizeof numbers / sizeof *numbers;
    switch (below(6)) {
    case 0: return was + 1;
    case 1: return was - 1;
    case 2: return below(640);
    case 3: return (double)(float)(was * (1 + below(100) / 64.0));
    case 4: return ldexp(1, (int)below(54)) - 1;
    default: return numbers[below(n)];
    }
}

static const char *any_word(void) {
    static const char *const words[] = {"",
                                        "text",
                                        "tensors",
                                        "ree-receipt/1",
                                        "ree-receipt/2",
                                        "ree-request/1",
                                        "RepOps/1",
                                        "reproducible",
                                        "deterministic",
                                        "default",
                                        "length",
                                        "eos",
                                        "stop",
                                        "interrupted",
                                        "ed25519",
                                        "image",
                                        "0",
                                        "7",
                                        "18446744073709551615",
                                        "e",
                                        " the",
                                        "\xef\xbf\xbd",
                                        "zzz"};
    return words[below(sizeof words / sizeof *words)];
}

// Members that an object may have or lack.
static const char *any_key(void) {
    static const char *const keys[] = {
        "tokens",           "text",           "text_sha256", "tokens_sha256",
        "n_tokens",         "logits_sha256",  "trace",       "private",
        "tokenizer_sha256", "request_sha256", "extensions",  "critical",
        "signature",        "unbound",        "stop",        "eos",
        "salt_sha256",      "context_length", "model",       "inputs",
        "outputs",          "name",           "seed",        "x"};
    return keys[below(sizeof keys / sizeof *keys)];
}

static cJSON *any_value(void) {
    switch (below(9)) {
    case 0: return cJSON_CreateNull();
    case 1: return cJSON_CreateBool(one_in(2));
    case 2: return cJSON_CreateArray();
    case 3: return cJSON_CreateObject();
    case 4: return cJSON_CreateString(any_word());
    case 5: {
        char hex[65];
        for (int i = 0; i < 64; i++)
            hex[i] = "0123456789abcdef"[below(16)];
        hex[64] = 0;
        return cJSON_CreateString(hex);
    }
    default: return cJSON_CreateNumber(any_number(below(20)));
    }
}

// Changes bytes of a text; the change may split a character.
static void change_text(char *out, size_t most, const char *was) {
    size_t n = strlen(was), at = n ? below((uint32_t)n + 1) : 0;
    static const char letters[] = "abez .,0159f\xc3\xa9\xef\xbf\xbd\"\\";
    char letter = letters[below(sizeof letters - 1)];
    switch (below(4)) {
    case 0: snprintf(out, most, "%.*s%c%s", (int)at, was, letter, was + at); break;
    case 1: snprintf(out, most, "%.*s%s", (int)at, was, at < n ? was + at + 1 : ""); break;
    case 2:
        snprintf(out, most, "%.*s%c%s", (int)at, was, letter, at < n ? was + at + 1 : "");
        break;
    default: snprintf(out, most, "%.*s", (int)at, was);
    }
}

static void change_string(cJSON *item) {
    char text[4096];
    const char *was = item->valuestring;
    size_t n = strlen(was);
    if (one_in(4) || n >= sizeof text) {
        cJSON_SetValuestring(item, any_word());
        return;
    }
    snprintf(text, sizeof text, "%s", was);
    if (n >= 64 && strspn(was, "0123456789abcdef") == n && !one_in(8)) {
        uint32_t at = below((uint32_t)n);
        text[at] = "0123456789abcdef"[below(16)];
    } else {
        change_text(text, sizeof text, was);
    }
    cJSON_SetValuestring(item, text);
}

static cJSON *child_at(cJSON *parent, uint32_t i) {
    cJSON *item = parent->child;
    while (item && i-- > 0)
        item = item->next;
    return item;
}

static uint32_t size_of(const cJSON *parent) {
    return (uint32_t)cJSON_GetArraySize(parent);
}

static void insert(cJSON *array, uint32_t at, cJSON *item) {
    if (!cJSON_InsertItemInArray(array, (int)at, item)) cJSON_Delete(item);
}

static void change_array(cJSON *array) {
    uint32_t n = size_of(array);
    cJSON *item = n ? child_at(array, below(n)) : NULL;
    switch (below(4)) {
    case 0:
        if (item) cJSON_Delete(cJSON_DetachItemViaPointer(array, item));
        break;
    case 1: {
        cJSON *added = item && !one_in(3) ? cJSON_Duplicate(item, true) : any_value();
        insert(array, below(n + 1), added);
        break;
    }
    case 2: // moves the last element
        if (n > 1) insert(array, below(n - 1), cJSON_DetachItemFromArray(array, (int)n - 1));
        break;
    default:
        while (item && item->next)
            cJSON_Delete(cJSON_DetachItemViaPointer(array, item->next));
    }
}

static void change_object(cJSON *object) {
    uint32_t n = size_of(object);
    const char *key;
    cJSON *item = n ? child_at(object, below(n)) : NULL;
    switch (below(5)) {
    case 0:
    case 1:
        if (item) cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
        break;
    case 2: // twice, under the same or another name
        if (!item) break;
        key = one_in(2) ? item->string : any_key();
        cJSON_AddItemToObject(object, key, cJSON_Duplicate(item, true));
        break;
    default: key = any_key(); cJSON_AddItemToObject(object, key, any_value());
    }
}

// Returns the item at the same path in another tree; NULL if there is none.
static cJSON *find_place(cJSON *root, char (*path)[64], size_t depth) {
    for (size_t i = 0; root && i < depth; i++)
        root = cJSON_IsObject(root) ? cJSON_GetObjectItemCaseSensitive(root, path[i])
                                    : child_at(root, (uint32_t)strtoul(path[i], NULL, 10));
    return root;
}

static void splice(cJSON *parent, cJSON *item, char (*path)[64], size_t depth) {
    const struct honest *h = &verify_world()->honest[below(N_HONEST)];
    cJSON *other = cJSON_ParseWithLength(h->receipt, h->n_receipt);
    cJSON *from = find_place(other, path, depth);
    if (from) {
        cJSON *copy = cJSON_Duplicate(from, true);
        char key[64];
        snprintf(key, sizeof key, "%s", path[depth - 1]);
        if (cJSON_IsObject(parent)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(parent, item));
            cJSON_AddItemToObject(parent, key, copy);
        } else if (!cJSON_ReplaceItemViaPointer(parent, item, copy)) {
            cJSON_Delete(copy);
        }
    }
    cJSON_Delete(other);
}

static void change_value(cJSON *parent, cJSON *item) {
    if (one_in(16)) {
        cJSON *value = any_value();
        if (cJSON_IsObject(parent) && value) {
            char key[64];
            snprintf(key, sizeof key, "%s", item->string);
            cJSON_Delete(cJSON_DetachItemViaPointer(parent, item));
            cJSON_AddItemToObject(parent, key, value);
        } else if (!cJSON_ReplaceItemViaPointer(parent, item, value)) {
            cJSON_Delete(value);
        }
    } else if (cJSON_IsNumber(item)) {
        cJSON_SetNumberValue(item, any_number(item->valuedouble));
    } else if (cJSON_IsString(item)) {
        change_string(item);
    } else if (cJSON_IsArray(item)) {
        change_array(item);
    } else if (cJSON_IsObject(item)) {
        change_object(item);
    }
}

// Makes one change somewhere below the root.
static void change(cJSON *root) {
    char path[16][64];
    size_t depth = 0;
    cJSON *parent = NULL, *item = root;
    while (depth < 16 && item->child) {
        if (depth && one_in(5)) break;
        uint32_t i = below(size_of(item));
        parent = item;
        item = child_at(item, i);
        if (cJSON_IsObject(parent))
            snprintf(path[depth++], sizeof path[0], "%s", item->string);
        else
            snprintf(path[depth++], sizeof path[0], "%u", i);
    }
    if (!parent) return;
    if (one_in(6))
        splice(parent, item, path, depth);
    else
        change_value(parent, item);
}

// Inputs

static void start_anew(const struct verify_world *w, struct verify_case *c) {
    const struct honest *h = &w->honest[below(N_HONEST)];
    *c = (struct verify_case){.options = h->options,
                              .request = (const uint8_t *)w->request,
                              .n_request = h->is_asked ? w->n_request : 0,
                              .receipt = (const uint8_t *)h->receipt,
                              .n_receipt = h->n_receipt};
}

// Makes both texts consistent again, except some members at random, and prints them.
static bool seal(cJSON *receipt, cJSON *request, struct verify_case *c, char **out_receipt,
                 char **out_request) {
    uint32_t what = RESEAL_HASH;
    if (request && !one_in(8)) reseal_request(request);
    if (request && !one_in(4)) reseal_link(receipt, request);
    if (!one_in(6)) what |= RESEAL_TOKENS;
    if (!one_in(6)) what |= RESEAL_TEXTS;
    if (!one_in(10)) reseal_receipt(receipt, what);
    *out_receipt = reseal_print(receipt, &c->n_receipt);
    if (request) *out_request = reseal_print(request, &c->n_request);
    c->receipt = (const uint8_t *)*out_receipt;
    c->request = (const uint8_t *)*out_request;
    return *out_receipt && (!request || *out_request);
}

// Changes one or both texts if they are JSON; otherwise returns false.
static bool change_case(struct verify_case *c, char **out_receipt, char **out_request) {
    cJSON *receipt = cJSON_ParseWithLength((const char *)c->receipt, c->n_receipt);
    cJSON *request =
        c->n_request ? cJSON_ParseWithLength((const char *)c->request, c->n_request) : NULL;
    bool ok = receipt && receipt->child && (request || !c->n_request);
    for (uint32_t n = 1 + (one_in(3) ? below(3) : 0); ok && n > 0; n--)
        change(request && request->child && one_in(3) ? request : receipt);
    ok = ok && seal(receipt, request, c, out_receipt, out_request);
    cJSON_Delete(receipt);
    cJSON_Delete(request);
    return ok;
}

// Returns item number *place below a value, in the order of the text. Of an array only the first
// element counts. Decrements *place for each item it passes.
static cJSON *find_numbered(cJSON *parent, uint32_t *place, cJSON **out_parent) {
    for (cJSON *item = parent->child; item; item = cJSON_IsArray(parent) ? NULL : item->next) {
        *out_parent = parent;
        if ((*place)-- == 0) return item;
        cJSON *found = find_numbered(item, place, out_parent);
        if (found) return found;
    }
    return NULL;
}

size_t verify_change_place(uint8_t *data, size_t size, size_t max_size, uint32_t place,
                           uint32_t seed) {
    struct verify_case c;
    char *receipt_text = NULL, *request_text = NULL;
    cJSON *parent = NULL, *request = NULL, *item = NULL;
    rng.state = seed;
    if (!verify_case_split(data, size, &c)) return 0;
    cJSON *receipt = cJSON_ParseWithLength((const char *)c.receipt, c.n_receipt);
    if (c.n_request) request = cJSON_ParseWithLength((const char *)c.request, c.n_request);
    if (receipt) item = find_numbered(receipt, &place, &parent);
    if (request && !item) item = find_numbered(request, &place, &parent);
    size_t n = 0;
    if (item) {
        change_value(parent, item);
        if (seal(receipt, request, &c, &receipt_text, &request_text))
            n = verify_case_join(&c, data, max_size);
    }
    free(receipt_text);
    free(request_text);
    cJSON_Delete(receipt);
    cJSON_Delete(request);
    return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    const struct verify_world *w = verify_world();
    struct verify_case c;
    char *receipt = NULL, *request = NULL;
    rng.state = seed;
    if (one_in(24)) return LLVMFuzzerMutate(data, size, max_size);
    if (!verify_case_split(data, size, &c) || one_in(16)) start_anew(w, &c);
    if (one_in(8)) c.options ^= (uint8_t)(1u << below(7));
    if (one_in(32)) { // removes the request, or adds the honest one
        c.request = (const uint8_t *)w->request;
        c.n_request = c.n_request ? 0 : w->n_request;
    }
    size_t n = 0;
    if (change_case(&c, &receipt, &request)) n = verify_case_join(&c, data, max_size);
    free(receipt);
    free(request);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
