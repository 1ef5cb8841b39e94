#include "examples.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static const int32_t prompt_ids[] = {1, 9038, 2501, 263, 931};
static const int32_t output_ids[] = {29892, 727, 471, 0, 2147483647, 2};
static const int32_t eos[] = {2, 32000};
static const char *const stops[] = {"\n\n", "\"end\"", "\xE2\x80\xA8"};

const struct example examples[N_EXAMPLES] = {
    {"text", example_text},
    {"private", example_private},
    {"ids", example_ids},
    {"tensors", example_tensors},
    {"text-2", example_text_2},
    {"private-2", example_private_2},
    {"tensors-2", example_tensors_2},
};

void example_hash(const char *word, char hex[65]) {
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    ree_hasher_update(hasher, word, strlen(word));
    ree_hasher_finish(hasher, hex);
}

static void model(struct ree_receipt *out) {
    ree_receipt_init(out);
    out->version = 1;
    example_hash("graph", out->graph_sha256);
    example_hash("weights", out->weights_sha256);
}

void example_text(struct ree_receipt *out) {
    model(out);
    out->kind = REE_RECEIPT_TEXT;
    example_hash("tokenizer", out->tokenizer_sha256);
    out->prompt =
        (struct ree_receipt_text){.n_tokens = 5, .tokens = prompt_ids, .text = "Once upon a time"};
    out->output = (struct ree_receipt_text){
        .n_tokens = 6,
        .tokens = output_ids,
        .text = ", there was \"A\\\t\x01\x7F \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x82\n"};
    out->sampling = (struct ree_sampling){.temperature = 0.8f,
                                          .top_k = 40,
                                          .top_p = 0.95f,
                                          .min_p = 1e-7f,
                                          .repetition_penalty = 1.1f,
                                          .seed = UINT64_MAX};
    out->max_new_tokens = 64;
    out->context_length = 2048;
    out->stops = stops;
    out->n_stops = 3;
    out->eos = eos;
    out->n_eos = 2;
    out->finish_reason = "eos";
    example_hash("logits", out->logits_sha256);
    out->has_trace = true;
    example_hash("trace", out->trace_root);
    out->trace_steps = 7;
    out->trace_chunk = 512;
    out->device = "cpu: \xE2\x80\x9Csome\xE2\x80\x9D processor";
    out->ree_version = "0.1.0";
    out->created = "2026-01-02T03:04:05Z";
    out->stats = cJSON_CreateObject();
    cJSON_AddNumberToObject(out->stats, "seconds", 0.1);
    cJSON_AddNumberToObject(out->stats, "bytes", 1e21);
}

void example_private(struct ree_receipt *out) {
    example_text(out);
    // Keep the hashes that sealing computes from the tokens and texts.
    ree_receipt_seal(out, NULL);
    out->prompt.tokens = out->output.tokens = NULL;
    out->prompt.text = out->output.text = NULL;
    out->has_trace = false;
    out->receipt_hash[0] = 0;
}

void example_ids(struct ree_receipt *out) {
    model(out);
    out->prompt = (struct ree_receipt_text){.n_tokens = 5, .tokens = prompt_ids};
    out->output = (struct ree_receipt_text){.n_tokens = 0, .tokens = output_ids};
    out->finish_reason = "interrupted";
}

void example_tensors(struct ree_receipt *out) {
    static struct ree_receipt_tensor inputs[3] = {{.name = "image"}, {.name = "z"}, {.name = ""}};
    static struct ree_receipt_tensor outputs[1] = {{.name = "\xF0\x9F\x98\x80/y:0"}};
    model(out);
    out->kind = REE_RECEIPT_TENSORS;
    out->inputs = inputs;
    out->n_inputs = 3;
    out->outputs = outputs;
    out->n_outputs = 1;
    for (size_t i = 0; i < 3; i++)
        example_hash(inputs[i].name, inputs[i].sha256);
    example_hash(outputs[0].name, outputs[0].sha256);
    out->has_trace = true;
    example_hash("trace", out->trace_root);
    out->trace_steps = 1;
}

void example_text_2(struct ree_receipt *out) {
    static const char *const critical[] = {"activations", "template"};
    example_text(out);
    out->version = 2;
    example_hash("request", out->request_sha256);
    out->extensions = cJSON_CreateObject();
    cJSON_AddStringToObject(out->extensions, "template", "x");
    cJSON_AddNumberToObject(out->extensions, "note", 1.5);
    cJSON_AddItemToObject(out->extensions, "activations", cJSON_CreateArray());
    out->critical = critical;
    out->n_critical = 2;
}

void example_private_2(struct ree_receipt *out) {
    unsigned char salt[REE_SALT_SIZE];
    for (size_t i = 0; i < sizeof salt; i++)
        salt[i] = (unsigned char)i;
    example_text(out);
    out->version = 2;
    ree_receipt_seal(out, NULL);
    ree_receipt_make_private(out, salt, NULL);
    out->receipt_hash[0] = 0;
}

void example_tensors_2(struct ree_receipt *out) {
    example_tensors(out);
    out->version = 2;
}

static char key_copy[] = "/tmp/ree-key-XXXXXX";

static void remove_key(void) {
    unlink(key_copy);
}

const char *example_key(const char *path) {
    void *bytes;
    size_t n;
    if (ree_file_read(path, &bytes, &n, NULL) != REE_OK) return NULL;
    int fd = mkstemp(key_copy); // mode 0600
    bool ok = fd >= 0 && write(fd, bytes, n) == (ssize_t)n;
    if (fd >= 0) {
        close(fd);
        atexit(remove_key);
    }
    free(bytes);
    return ok ? key_copy : NULL;
}

char *example_file(const struct example *example, const char *key_path, size_t *out_n) {
    struct ree_receipt receipt;
    char *text = NULL;
    example->make(&receipt);
    if (ree_receipt_seal(&receipt, NULL) == REE_OK &&
        ree_receipt_sign(&receipt, key_path, NULL) == REE_OK)
        ree_receipt_encode(&receipt, &text, out_n, NULL);
    ree_receipt_finish(&receipt);
    return text;
}

bool example_is_wrong(const struct ree_receipt *receipt, const char *what) {
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    bool ok;
    size_t n = ree_receipt_check(receipt, findings, &ok);
    for (size_t i = 0; i < n; i++)
        if (strcmp(findings[i].what, what) == 0 && !findings[i].ok) return !ok;
    return false;
}
