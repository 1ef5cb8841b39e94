// Receipts: a written receipt is read back unchanged; an invalid one is refused with a named
// reason.
#include "receipt/receipt_internal.h"

#include "examples.h"
#include "test.h"
#include "splitmix.h"

#include <string.h>
#include <unistd.h>

static const char *key_path;

// Checks that decoding and encoding `text` gives `expected`.
static void comes_back(const char *text, size_t n, const char *expected, const char *what) {
    struct ree_receipt receipt;
    struct ree_error err = {.message = ""};
    char *again = NULL;
    size_t n_again;
    enum ree_status status = ree_receipt_decode(text, n, what, &receipt, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status == REE_OK) {
        CHECK(ree_receipt_encode(&receipt, &again, &n_again, &err) == REE_OK);
        CHECK_MSG(again && strcmp(again, expected) == 0, "%s comes back as %s", what, again);
    }
    free(again);
    ree_receipt_finish(&receipt);
}

static void check_identity(const struct example *example) {
    size_t n;
    char *text = example_file(example, key_path, &n);
    REQUIRE(text != NULL);
    comes_back(text, n, text, example->name);
    // In any layout.
    cJSON *json = cJSON_Parse(text);
    char *printed = cJSON_Print(json);
    comes_back(printed, strlen(printed), text, example->name);
    cJSON_Delete(json);
    cJSON_free(printed);

    struct ree_receipt receipt;
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    bool ok = false;
    CHECK(ree_receipt_decode(text, n, example->name, &receipt, NULL) == REE_OK);
    size_t n_findings = ree_receipt_check(&receipt, findings, &ok);
    CHECK_MSG(ok, "%s is valid", example->name);
    for (size_t i = 0; i < n_findings; i++)
        CHECK_MSG(findings[i].ok, "%s: %s", findings[i].what, findings[i].detail);
    ree_receipt_finish(&receipt);
    free(text);
}

// Random receipts

static struct splitmix rng = {1};

static uint64_t draw(uint64_t below) {
    uint64_t x = splitmix_next(&rng);
    return below ? x % below : x;
}

static float draw_float(float max) {
    float value;
    do {
        uint32_t bits = (uint32_t)draw(0) & 0x7FFFFFFF;
        memcpy(&value, &bits, sizeof value);
    } while (!(value <= max && value > 0));
    return value;
}

static void draw_hash(char hex[65], bool may_lack) {
    char word[16];
    snprintf(word, sizeof word, "%u", (unsigned)draw(1000));
    example_hash(word, hex);
    if (may_lack && draw(3) == 0) hex[0] = 0;
}

static const char *draw_string(char *buffer, size_t size) {
    static const char *const pieces[] = {"a",    "\"",       "\\",           "\n",
                                         "\x01", "\xC3\xA9", "\xE2\x82\xAC", "\t",
                                         "/",    "{",        "\x7F",         "\xF0\x9F\x98\x82",
                                         " "};
    buffer[0] = 0;
    for (uint64_t n = draw(8); n && strlen(buffer) + 5 < size; n--)
        strcat(buffer, pieces[draw(sizeof pieces / sizeof *pieces)]);
    return buffer;
}

static struct {
    char text[2][64], stops[4][64], names[4][64];
    const char *stop_list[4];
    int32_t ids[2][32], eos[4];
    struct ree_receipt_tensor tensors[2][4];
} drawn;

static void draw_text(struct ree_receipt_text *out, int which, bool has_tokenizer) {
    out->n_tokens = draw(4) ? draw(32) : draw(REE_RECEIPT_MAX_NUMBER);
    for (size_t i = 0; i < 32; i++)
        drawn.ids[which][i] = (int32_t)draw(draw(2) ? 100 : 1ull << 31);
    draw_hash(out->tokens_sha256, false);
    if (out->n_tokens <= 32 && draw(2)) out->tokens = drawn.ids[which];
    if (has_tokenizer) draw_hash(out->text_sha256, true);
    if (has_tokenizer && draw(2)) out->text = draw_string(drawn.text[which], 64);
}

static void draw_receipt(struct ree_receipt *out) {
    ree_receipt_init(out);
    draw_hash(out->graph_sha256, false);
    draw_hash(out->weights_sha256, false);
    out->kind = draw(3) ? REE_RECEIPT_TEXT : REE_RECEIPT_TENSORS;
    out->has_trace = draw(2);
    if (out->has_trace) {
        draw_hash(out->trace_root, false);
        out->trace_steps = 1 + draw(draw(2) ? 100 : REE_RECEIPT_MAX_NUMBER);
        if (out->kind == REE_RECEIPT_TEXT)
            out->trace_chunk = 1 + (uint32_t)draw(REE_MAX_PREFILL_CHUNK);
    }
    if (out->kind == REE_RECEIPT_TENSORS) {
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < 4; i++) {
                drawn.tensors[k][i].name = draw_string(drawn.names[i], 64);
                draw_hash(drawn.tensors[k][i].sha256, false);
            }
        out->inputs = drawn.tensors[0];
        out->outputs = drawn.tensors[1];
        out->n_inputs = draw(5);
        out->n_outputs = draw(5);
        return;
    }
    static const char *const reasons[] = {"length", "eos", "stop", "interrupted"};
    draw_hash(out->tokenizer_sha256, true);
    draw_text(&out->prompt, 0, out->tokenizer_sha256[0]);
    draw_text(&out->output, 1, out->tokenizer_sha256[0]);
    draw_hash(out->logits_sha256, true);
    do
        out->sampling =
            (struct ree_sampling){draw(4) ? draw_float(1e6f) : 0, (uint32_t)draw(0), draw_float(1),
                                  draw(2) ? draw_float(1) : 0,    draw_float(1e6f),  draw(0)};
    while (ree_sampling_check(&out->sampling, NULL) != REE_OK); // a tiny temperature
    out->max_new_tokens = draw(REE_RECEIPT_MAX_NUMBER);
    out->context_length = (int64_t)draw(REE_RECEIPT_MAX_NUMBER);
    out->finish_reason = reasons[draw(4)];
    for (size_t i = 0; i < 4; i++) {
        do
            drawn.stop_list[i] = draw_string(drawn.stops[i], 64);
        while (!drawn.stop_list[i][0]); // no stop text is empty
        drawn.eos[i] = (int32_t)draw(1ull << 31);
    }
    out->stops = drawn.stop_list;
    out->n_stops = draw(5);
    out->eos = drawn.eos;
    out->n_eos = draw(5);
}

static void check_random(void) {
    for (int i = 0; i < 3000; i++) {
        struct ree_receipt receipt, read;
        struct ree_error err = {.message = ""};
        char *text = NULL;
        size_t n = 0;
        draw_receipt(&receipt);
        CHECK(ree_receipt_seal(&receipt, &err) == REE_OK);
        CHECK(ree_receipt_encode(&receipt, &text, &n, &err) == REE_OK);
        comes_back(text, n, text, "random");
        CHECK(ree_receipt_decode(text, n, "random", &read, NULL) == REE_OK);
        CHECK(memcmp(&receipt.sampling, &read.sampling, sizeof read.sampling) == 0);
        CHECK(receipt.max_new_tokens == read.max_new_tokens && receipt.n_eos == read.n_eos &&
              receipt.context_length == read.context_length);
        ree_receipt_finish(&read);
        free(text);
        ree_receipt_finish(&receipt);
    }
}

// Messages

static size_t which; // index of the example that is changed

static void refused(const char *from, const char *to, const char *why) {
    size_t n;
    char *text = example_file(&examples[which], key_path, &n);
    REQUIRE(text != NULL);
    char *at = strstr(text, from);
    REQUIRE(at != NULL);
    struct ree_strbuf changed;
    ree_strbuf_init(&changed);
    ree_strbuf_append(&changed, text, (size_t)(at - text));
    ree_strbuf_printf(&changed, "%s%s", to, at + strlen(from));
    struct ree_receipt receipt;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_receipt_decode(changed.data, changed.size, "r", &receipt, &err);
    CHECK_MSG(status == REE_INVALID && strstr(err.message, why), "%s: %s, expected '%s'", to,
              err.message, why);
    ree_receipt_finish(&receipt);
    ree_strbuf_finish(&changed);
    free(text);
}

static void check_messages(void) {
    refused("\"ree-receipt/1\"", "\"ree-receipt/3\"",
            "r: receipt.schema is 'ree-receipt/3', which");
    refused("\"ree-receipt/1\"", "null", "r: receipt.schema is not a string");
    refused("\"kind\":\"text\"", "\"kind\":\"image\"", "body.kind is 'image'");
    refused("\"kind\":\"text\",", "", "body.kind is missing");
    refused("\"kind\":\"text\"", "\"kind\":\"tensors\"", "body.inputs is missing");
    refused("RepOps/1", "RepOps/2", "body.numerics is 'RepOps/2'");
    refused("\"n_tokens\":6", "\"n_tokens\":5",
            "body.output.n_tokens is 5, but body.output.tokens has 6");
    refused("\"n_tokens\":6", "\"n_tokens\":-1", "body.output.n_tokens is not an integer from 0");
    refused("\"n_tokens\":6", "\"n_tokens\":9007199254740992",
            "is not an integer from 0 to 9007199254740991");
    refused("2147483647", "2147483648", "body.output.tokens[4] is not a token id");
    refused("[29892,", "[-29892,", "body.output.tokens[0] is not a token id");
    refused("\"eos\":[2,", "\"eos\":[2.5,", "body.sampling.eos[0] is not a token id");
    refused("\"18446744073709551615\"", "\"18446744073709551616\"",
            "body.sampling.seed is not a string");
    refused("\"18446744073709551615\"", "\"01\"", "body.sampling.seed");
    refused("\"18446744073709551615\"", "\"\"", "body.sampling.seed");
    refused("\"18446744073709551615\"", "\"-1\"", "body.sampling.seed");
    refused("\"18446744073709551615\"", "1", "body.sampling.seed");
    refused("0.800000011920929", "0.8",
            "body.sampling.temperature is not a binary32 number from 0");
    refused("0.800000011920929", "1e300", "body.sampling.temperature is not a binary32");
    refused("0.800000011920929", "-1", "body.sampling.temperature is not a binary32");
    refused("0.800000011920929", "1.0000000116860974e-7",
            "body.sampling: temperature is 1e-07, expected 0, or 0.000001 to 1000000");
    refused("0.949999988079071", "0", "body.sampling.top_p is not a binary32 number above 0 to 1");
    refused("0.949999988079071", "1.5", "body.sampling.top_p");
    refused("1.0000000116860974e-7", "1.5", "body.sampling.min_p is not a binary32 number");
    refused("1.100000023841858", "0", "body.sampling.repetition_penalty is not a binary32 number");
    refused("\"top_k\":40", "\"top_k\":-1", "body.sampling.top_k is not an integer");
    refused("\"max_new_tokens\":64", "\"max_new_tokens\":1.5", "body.sampling.max_new_tokens");
    refused("\"context_length\":2048", "\"context_length\":-1", "body.sampling.context_length");
    refused("\"stop\":[", "\"stop\":[1,", "body.sampling.stop is not an array of strings");
    refused("\"stop\":[", "\"stop\":[\"\",", "body.sampling.stop[0] is empty");
    refused("\"stop\":[", "\"stop\":{},\"x\":[", "body.sampling.x is unknown");
    refused("\"finish_reason\":\"eos\"", "\"finish_reason\":\"end\"",
            "body.output.finish_reason is 'end'");
    refused("\"n_steps\":7", "\"n_steps\":0", "body.trace.n_steps is not an integer from 1");
    refused("\"prefill_chunk\":512", "\"prefill_chunk\":4294967296", "body.trace.prefill_chunk");
    refused("\"graph_sha256\":\"e", "\"graph_sha256\":\"E",
            "body.model.graph_sha256 is not 64 hexadecimal");
    refused("\"tokenizer_sha256\"", "\"trace\"", "'trace' occurs twice");
    refused("Once upon", "Once\\u0000upon", "\\u0000");
    refused("Once upon", "Once\xFFupon", "not UTF-8");
    refused("Once upon", "Once\\ud800upon", "not JSON");
    refused("\"ed25519\"", "\"rsa\"", "signature.algorithm is 'rsa'");
    refused("\"receipt_hash\"", "\"hash\"", "receipt.receipt_hash is missing");
    refused("\"device\":\"", "\"device\":[],\"\":\"", "unbound.device is not a string");
    refused("\"seconds\":0.1", "\"seconds\":1e999", "not finite");
    refused("{\"body\"", "[{\"body\"", "not JSON");
    refused("\"kind\":\"text\"", "\"kind\":\"text\",\"critical\":[\"x\"]",
            "body.critical is unknown"); // version 1 does not have it
}

// Members that version 2 added.
static void check_messages_2(void) {
    const char *const kind = "\"kind\":\"text\"";
    which = 4; // text-2
    refused("\"critical\":[", "\"critical\":[],\"private\":[", "body.private is not an object");
    refused("\"activations\",\"template\"", "", "body.critical is empty");
    refused("\"activations\",\"template\"", "\"template\",\"activations\"",
            "body.critical is not in ascending order");
    refused("\"activations\",\"template\"", "\"template\",\"template\"",
            "body.critical is not in ascending order");
    refused("\"activations\",\"template\"", "\"grammar\"",
            "body.critical names 'grammar', which is not an extension");
    refused("\"extensions\":{", "\"extensions\":[],\"more\":{", "body.more is unknown");
    refused("\"request_sha256\":\"", "\"request_sha256\":\"x", "body.request_sha256 is not 64");
    refused(kind, "\"kind\":\"text\",\"private\":{}", "body.private.salt_sha256 is missing");
    refused(kind,
            "\"kind\":\"text\",\"private\":{\"salt_sha256\":\""
            "00000000000000000000000000000000"
            "00000000000000000000000000000000\"}",
            "body.prompt has tokens, but the receipt is private");
    which = 0;
}

// Only the right salt opens the hashes of a private receipt.
static void check_private(void) {
    unsigned char salt[REE_SALT_SIZE] = {0};
    struct ree_receipt open, closed;
    char hex[65];
    example_text(&open);
    open.version = 2;
    CHECK(ree_receipt_seal(&open, NULL) == REE_OK);
    example_private_2(&closed);
    closed.has_salt = false;
    snprintf(hex, sizeof hex, "%s", open.output.tokens_sha256);
    ree_receipt_blind(&closed, hex);
    CHECK(strcmp(hex, open.output.tokens_sha256) == 0);
    CHECK(!ree_receipt_set_salt(&closed, salt) && !closed.has_salt);
    for (size_t i = 0; i < sizeof salt; i++)
        salt[i] = (unsigned char)i;
    CHECK(ree_receipt_set_salt(&closed, salt));
    const char *const pairs[][2] = {{open.output.tokens_sha256, closed.output.tokens_sha256},
                                    {open.output.text_sha256, closed.output.text_sha256},
                                    {open.prompt.tokens_sha256, closed.prompt.tokens_sha256},
                                    {open.prompt.text_sha256, closed.prompt.text_sha256},
                                    {open.logits_sha256, closed.logits_sha256},
                                    {open.trace_root, closed.trace_root}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        snprintf(hex, sizeof hex, "%s", pairs[i][0]);
        CHECK_MSG(strcmp(hex, pairs[i][1]) != 0, "hash %zu is not blinded", i);
        ree_receipt_blind(&closed, hex);
        CHECK_MSG(strcmp(hex, pairs[i][1]) == 0, "hash %zu", i);
    }
    CHECK(ree_receipt_make_private(&closed, salt, NULL) == REE_INVALID); // it is already private
    ree_receipt_finish(&open);
    ree_receipt_finish(&closed);
}

// At temperature 0, parameters without effect must have their default values.
static void check_parameters(void) {
    for (int i = 0; i < 6; i++) {
        struct ree_receipt receipt;
        example_text_2(&receipt);
        receipt.sampling = (struct ree_sampling){.top_p = 1, .repetition_penalty = 1.5f};
        if (i == 1) receipt.sampling.seed = 1;
        if (i == 2) receipt.sampling.top_k = 1;
        if (i == 3) receipt.sampling.top_p = 0.5f;
        if (i == 4) receipt.sampling.min_p = 0.5f;
        if (i == 5) receipt.version = 1, receipt.sampling.seed = 1;
        CHECK(ree_receipt_seal(&receipt, NULL) == REE_OK);
        CHECK_MSG(example_is_wrong(&receipt, "parameters") == (i > 0 && i < 5), "case %d", i);
        ree_receipt_finish(&receipt);
    }
}

// Wrong uses of sealing and writing.
static void check_misuse(void) {
    struct ree_receipt receipt;
    struct ree_error err = {.message = ""};
    char *text;
    size_t n;
    example_text(&receipt);
    CHECK(ree_receipt_encode(&receipt, &text, &n, &err) == REE_INVALID && !text);
    CHECK(ree_receipt_sign(&receipt, key_path, &err) == REE_INVALID);
    receipt.prompt.text = "\xFF";
    CHECK(ree_receipt_seal(&receipt, &err) == REE_INVALID && strstr(err.message, "UTF-8"));
    receipt.prompt.text = "x";
    CHECK(ree_receipt_seal(&receipt, &err) == REE_OK);
    // A receipt that could not be read back is not written.
    receipt.finish_reason = NULL;
    CHECK(ree_receipt_seal(&receipt, &err) == REE_OK);
    char folder[] = "/tmp/ree_receipts.XXXXXX", path[64];
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/receipt.json", folder);
    CHECK(ree_receipt_write(&receipt, path, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "body.output.finish_reason is missing"), "%s", err.message);
    CHECK(rmdir(folder) == 0); // the folder is empty
    ree_receipt_finish(&receipt);
}

// Contradictory numbers are found even if all hashes are right.
static void check_counts(void) {
    struct ree_receipt receipt;
    for (int i = 0; i < 4; i++) {
        example_text(&receipt);
        if (i == 1) receipt.max_new_tokens = 5;
        if (i == 2) receipt.context_length = 10;
        if (i == 3) receipt.output.n_tokens = 5; // so the last token does not end the answer
        CHECK(ree_receipt_seal(&receipt, NULL) == REE_OK);
        CHECK_MSG(example_is_wrong(&receipt, "counts") == (i > 0), "case %d", i);
        CHECK(!example_is_wrong(&receipt, "receipt"));
        ree_receipt_finish(&receipt);
    }
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    key_path = example_key(argv[1]);
    REQUIRE(key_path);
    for (size_t i = 0; i < N_EXAMPLES; i++)
        check_identity(&examples[i]);
    check_random();
    check_messages();
    check_messages_2();
    check_private();
    check_parameters();
    check_misuse();
    check_counts();
    return test_finish();
}
