// A program that uses only public headers does with receipts what ree-run does. Prints the hashes
// that receipts.py compares with ree-run's.
//
//     public_receipts STORIES DIGITS.onnx SEVEN.npy FOLDER
#include <ree.h>

#include <string.h>

#include "test.h"

static const char *folder;
static struct ree_device *device;
static struct ree_error err;

// A success also leaves the error as it was.
#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (struct ree_error){0};                                                               \
        CHECK_MSG((call) == REE_OK && err.status == REE_OK, "%s: %s", #call, err.message);         \
    } while (0)

static const char *path_of(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

struct streamed {
    char text[4096];
    size_t n, n_tokens;
};

static void on_text(void *user, size_t sequence, const char *text, size_t nbytes) {
    struct streamed *s = &((struct streamed *)user)[sequence];
    REQUIRE(s->n + nbytes < sizeof s->text);
    memcpy(s->text + s->n, text, nbytes);
    s->n += nbytes;
    s->text[s->n] = 0;
}

static bool on_token(void *user, const struct ree_token *token) {
    ((struct streamed *)user)[token->sequence].n_tokens++;
    return true;
}

static struct ree_generator *open_generator(const char *model) {
    struct ree_generator *generator = NULL;
    OK(ree_generator_create(model, device, NULL, &generator, &err));
    REQUIRE(generator);
    return generator;
}

// Verifies, and returns the verdict.
static enum ree_verify_verdict verdict_of(const struct ree_receipt *receipt, const char *model,
                                          const struct ree_verify_options *options,
                                          const struct ree_verify_inputs *inputs) {
    struct ree_verification *v = NULL;
    OK(ree_verify(receipt, model, device, NULL, options, inputs, &v, &err));
    if (!v) return REE_VERIFIED_NOT;
    enum ree_verify_verdict verdict = ree_verification_verdict(v);
    ree_verification_destroy(v);
    return verdict;
}

static bool is_valid(struct ree_receipt *receipt, const struct ree_validate_options *options) {
    const struct ree_receipt_finding *findings;
    size_t n;
    bool ok = false;
    OK(ree_receipt_validate(receipt, options, &findings, &n, &ok, &err));
    CHECK(n > 0);
    return ok;
}

// The options that receipts.py passes to ree-run.
static struct ree_completion_options sixteen(struct streamed *streamed) {
    return (struct ree_completion_options){.size = sizeof(struct ree_completion_options),
                                           .max_new_tokens = 16,
                                           .on_text = on_text,
                                           .on_token = on_token,
                                           .user = streamed};
}

static struct ree_completion *complete(struct ree_generator *g, const char *text) {
    struct ree_completion *c = NULL;
    struct ree_completion_options options = {.size = sizeof options, .max_new_tokens = 16};
    OK(ree_complete_text(g, text, strlen(text), &options, &c, &err));
    REQUIRE(c);
    return c;
}

static void test_text(const char *model) {
    struct ree_generator *g = open_generator(model);
    struct ree_completion *c = NULL;
    struct streamed streamed = {0};
    struct ree_completion_options options = sixteen(&streamed);
    OK(ree_complete_text(g, "Once upon a time", 16, &options, &c, &err));
    REQUIRE(c);
    const struct ree_generation *made = ree_completion_generation(c, 0);
    CHECK(made->n - made->n_prompt == 16 && streamed.n_tokens == 16);
    CHECK(made->finish == REE_FINISH_LENGTH);
    size_t n;
    const char *text = ree_completion_text(c, 0, &n);
    CHECK(n > 0 && n == streamed.n && memcmp(text, streamed.text, n) == 0);
    CHECK(strcmp(ree_completion_prompt_text(c, 0, NULL), "Once upon a time") == 0);
    printf("tokens %s\n", made->tokens_sha256);

    struct ree_receipt *receipt = NULL, *read = NULL, *forged = NULL;
    OK(ree_receipt_create_text(c, NULL, &receipt, &err));
    REQUIRE(receipt);
    OK(ree_receipt_write(receipt, path_of("text.json"), &err));
    OK(ree_receipt_load(path_of("text.json"), &read, &err));
    REQUIRE(read);
    const struct ree_receipt_info *info = ree_receipt_info(read);
    CHECK(info->version == 2 && info->kind == REE_RECEIPT_TEXT && !info->is_private);
    CHECK(strcmp(info->output->text, text) == 0 && info->output->n_tokens == 16);
    CHECK(info->max_new_tokens == 16 && info->sampling->temperature == 0);
    CHECK(strcmp(info->finish_reason, "length") == 0 && !info->public_key[0]);
    CHECK(strcmp(ree_receipt_json(receipt), ree_receipt_json(read)) == 0);
    printf("receipt %s\n", info->receipt_hash);
    CHECK(is_valid(read, NULL));
    CHECK(verdict_of(read, model, NULL, NULL) == REE_VERIFIED);
    struct ree_verify_options stepwise = {.size = sizeof stepwise, .stepwise = true};
    CHECK(verdict_of(read, model, &stepwise, NULL) == REE_VERIFIED);

    // A forged receipt: another answer, with hashes that are not those of its contents.
    char *copy = strdup(ree_receipt_json(read)), *at = strstr(copy, "Nils");
    REQUIRE(at);
    memcpy(at, "Lisa", 4);
    OK(ree_receipt_parse(copy, strlen(copy), "forged", &forged, &err));
    REQUIRE(forged);
    CHECK(!is_valid(forged, NULL));
    CHECK(verdict_of(forged, model, NULL, NULL) == REE_VERIFIED_FALSE);
    free(copy);
    ree_receipt_destroy(forged);
    ree_receipt_destroy(read);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(c);
    ree_generator_destroy(g);
}

// Replaces the receipt_hash in the JSON by the right one, which the finding of ree_receipt_validate
// states.
static void put_receipt_hash(char *json) {
    struct ree_receipt *wrong = NULL;
    const struct ree_receipt_finding *findings;
    size_t n;
    bool ok;
    OK(ree_receipt_parse(json, strlen(json), "altered", &wrong, &err));
    REQUIRE(wrong);
    OK(ree_receipt_validate(wrong, NULL, &findings, &n, &ok, &err));
    CHECK(n > 0 && strcmp(findings[0].what, "receipt") == 0 && !findings[0].ok);
    char hash[65] = "", *at = strstr(json, "\"receipt_hash\":\"");
    REQUIRE(at && sscanf(findings[0].detail, "SHA-256 is %64[0-9a-f],", hash) == 1);
    REQUIRE(strlen(hash) == 64);
    memcpy(at + strlen("\"receipt_hash\":\""), hash, 64);
    ree_receipt_destroy(wrong);
}

// A receipt whose hashes are all right, but with another seed than its run had.
static void test_false_run(const char *model) {
    struct ree_generator *g = open_generator(model);
    struct ree_sampling sampling = {
        .temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 3};
    struct ree_completion_options options = {
        .size = sizeof options, .sampling = &sampling, .max_new_tokens = 16};
    struct ree_completion *c = NULL;
    struct ree_receipt *receipt = NULL, *altered = NULL;
    OK(ree_complete_text(g, "The", 3, &options, &c, &err));
    OK(ree_receipt_create_text(c, NULL, &receipt, &err));
    REQUIRE(receipt);
    CHECK(verdict_of(receipt, model, NULL, NULL) == REE_VERIFIED);
    char *copy = strdup(ree_receipt_json(receipt)), *at = strstr(copy, "\"seed\":\"3\"");
    REQUIRE(at);
    at[8] = '4';
    put_receipt_hash(copy);
    OK(ree_receipt_parse(copy, strlen(copy), "altered", &altered, &err));
    REQUIRE(altered);
    CHECK(is_valid(altered, NULL));
    struct ree_verification *v = NULL;
    OK(ree_verify(altered, model, device, NULL, NULL, NULL, &v, &err));
    REQUIRE(v);
    CHECK(ree_verification_verdict(v) == REE_VERIFIED_FALSE);
    const struct ree_verify_check *checks;
    size_t n = ree_verification_checks(v, &checks), n_differ = 0;
    for (size_t i = 0; i < n; i++) {
        if (checks[i].outcome != REE_VERIFY_DIFFERS) continue;
        n_differ++;
        CHECK_MSG(strcmp(checks[i].name, "tokens") == 0, "%s: %s", checks[i].name,
                  checks[i].detail);
    }
    CHECK_MSG(n_differ == 1, "%zu of %zu checks differ", n_differ, n);
    ree_verification_destroy(v);
    free(copy);
    ree_receipt_destroy(altered);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(c);
    ree_generator_destroy(g);
}

static void test_private(const char *model) {
    struct ree_generator *g = open_generator(model);
    struct ree_completion *c = complete(g, "Once upon a time");
    struct ree_receipt_options options = {.size = sizeof options, .is_private = true};
    struct ree_receipt *receipt = NULL, *read = NULL;
    OK(ree_receipt_prepare(c, &options, &err));
    OK(ree_receipt_create_text(c, &options, &receipt, &err));
    REQUIRE(receipt);
    OK(ree_receipt_write(receipt, path_of("private.json"), &err));
    OK(ree_receipt_load(path_of("private.json"), &read, &err));
    REQUIRE(read);
    const struct ree_receipt_info *info = ree_receipt_info(read);
    CHECK(info->is_private && !info->has_salt && !info->output->tokens && !info->output->text);
    // Without the salt nothing can be checked.
    CHECK(verdict_of(read, model, NULL, NULL) == REE_VERIFIED_NOT);
    OK(ree_receipt_load_salt(read, NULL, &err));
    CHECK(ree_receipt_info(read)->has_salt);
    unsigned char wrong[REE_SALT_SIZE] = {1};
    CHECK(!ree_receipt_set_salt(receipt, wrong));
    CHECK(ree_receipt_info(receipt)->has_salt); // the right one
    // The prompt is the verifier's.
    const struct ree_generation *made = ree_completion_generation(c, 0);
    struct ree_prompt prompt = {made->ids, made->n_prompt};
    struct ree_verify_inputs inputs = {.size = sizeof inputs, .prompt = &prompt};
    CHECK(verdict_of(read, model, NULL, NULL) == REE_VERIFIED_NOT);
    CHECK(verdict_of(read, model, NULL, &inputs) == REE_VERIFIED);
    prompt.n--;
    CHECK(verdict_of(read, model, NULL, &inputs) == REE_VERIFIED_FALSE);
    ree_receipt_destroy(read);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(c);
    ree_generator_destroy(g);
}

static void test_signature(const char *model) {
    char key[65], other[65], signer[65];
    const char *path = path_of("signed.json"), *dsse = path_of("signed.dsse");
    OK(ree_key_create(path_of("key"), key, &err));
    OK(ree_key_create(path_of("other"), other, &err));
    CHECK(strlen(key) == 64 && strcmp(key, other) != 0);
    struct ree_generator *g = open_generator(model);
    struct ree_completion *c = complete(g, "Once");
    struct ree_receipt *receipt = NULL, *read = NULL;
    OK(ree_receipt_create_text(c, NULL, &receipt, &err));
    REQUIRE(receipt);
    OK(ree_receipt_sign(receipt, path_of("key"), &err));
    OK(ree_receipt_write(receipt, path, &err));
    OK(ree_dsse_write(receipt, path, path_of("key"), dsse, &err));
    OK(ree_receipt_load(path, &read, &err));
    REQUIRE(read);
    CHECK(strcmp(ree_receipt_info(read)->public_key, key) == 0);
    struct ree_validate_options by = {.size = sizeof by, .public_key = key, .attestation = dsse};
    CHECK(is_valid(read, &by));
    // The signature outlives a failed attempt to sign again.
    CHECK(ree_receipt_sign(read, path_of("missing"), NULL) != REE_OK);
    CHECK(is_valid(read, &by));
    by.public_key = other;
    CHECK(!is_valid(read, &by));
    OK(ree_dsse_check(dsse, path, "", signer, &err));
    CHECK(strcmp(signer, key) == 0);
    CHECK(ree_dsse_check(dsse, path, other, signer, NULL) == REE_INVALID);
    struct ree_verify_options options = {.size = sizeof options, .public_key = key};
    CHECK(verdict_of(read, model, &options, NULL) == REE_VERIFIED);
    options.public_key = other;
    CHECK(verdict_of(read, model, &options, NULL) == REE_VERIFIED_FALSE);
    // Not a key: no verdict.
    struct ree_verification *none;
    options.public_key = "operator.pub";
    CHECK(ree_verify(read, model, device, NULL, &options, NULL, &none, NULL) == REE_INVALID &&
          !none);
    // A missing attestation says nothing about the receipt.
    const struct ree_receipt_finding *findings;
    size_t n;
    bool ok;
    by = (struct ree_validate_options){.size = sizeof by, .attestation = path_of("missing")};
    CHECK(ree_receipt_validate(read, &by, &findings, &n, &ok, NULL) != REE_OK && !ok && n == 0);
    ree_receipt_destroy(read);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(c);
    ree_generator_destroy(g);
}

static struct ree_request *ask(const struct ree_generator *g, const struct ree_prompt *prompt) {
    struct ree_sampling sampling = {.temperature = 0.8F, .top_p = 1, .repetition_penalty = 1};
    struct ree_request_options options = {.size = sizeof options,
                                          .prompt = prompt,
                                          .sampling = &sampling,
                                          .max_new_tokens = 12,
                                          .model = ree_generator_model(g)};
    struct ree_request *request = NULL;
    OK(ree_request_create(&options, &request, &err));
    REQUIRE(request);
    return request;
}

// What a file cannot hold is refused before the run.
static void test_limits(const char *model) {
    struct ree_generator *g = open_generator(model);
    static const int32_t ids[] = {0, 41, 74}, negative[] = {0, -2};
    const struct ree_prompt prompt = {ids, 3}, wrong = {negative, 2};
    static char text[70001];
    memset(text, 'x', sizeof text - 1);
    const char *stops[] = {text};
    struct ree_tokenizer *tokenizer = NULL;
    OK(ree_tokenizer_load(model, &tokenizer, &err));
    for (int i = 0; i < 2; i++) {
        struct ree_completion_options options = {.size = sizeof options, .max_new_tokens = 4};
        struct ree_request_options asking = {.size = sizeof asking, .prompt = &prompt};
        if (i == 0) options.max_new_tokens = SIZE_MAX, asking.max_new_tokens = UINT64_MAX;
        if (i == 1) options.stops = asking.stops = stops, options.n_stops = asking.n_stops = 1;
        struct ree_completion *c = NULL;
        struct ree_checkpoint *saved = NULL;
        struct ree_request *request = NULL;
        struct ree_checkpoint_options saving = {.size = sizeof saving, .path = path_of("no.ckpt")};
        OK(ree_completion_create(g, tokenizer, &prompt, 1, &options, &c, &err));
        OK(ree_checkpoint_open(&saving, &saved, &err));
        CHECK(ree_checkpoint_attach(saved, c, NULL) == REE_INVALID);
        CHECK(ree_receipt_prepare(c, NULL, NULL) == REE_INVALID);
        CHECK(ree_request_create(&asking, &request, NULL) == REE_INVALID && !request);
        ree_completion_destroy(c);
        ree_checkpoint_destroy(saved);
    }
    struct ree_request *request = NULL;
    struct ree_request_options asking = {.size = sizeof asking, .prompt = &wrong};
    CHECK(ree_request_create(&asking, &request, NULL) == REE_INVALID && !request);
    const char *not_utf8[] = {"\xFF"};
    asking = (struct ree_request_options){
        .size = sizeof asking, .prompt = &prompt, .n_stops = 1, .stops = not_utf8};
    CHECK(ree_request_create(&asking, &request, NULL) == REE_INVALID && !request);
    // A trace has steps, and that of a text a prefill chunk.
    static const char root[] = "00000000000000000000000000000000000000000000000000000000000000ab";
    struct ree_receipt_trace trace = {.size = sizeof trace, .root = root, .prefill_chunk = 64};
    struct ree_receipt_options with = {.size = sizeof with, .trace = &trace};
    struct ree_completion *c = complete(g, "Once");
    CHECK(ree_receipt_prepare(c, &with, NULL) == REE_INVALID);
    trace.n_steps = 1;
    OK(ree_receipt_prepare(c, &with, &err));
    trace.prefill_chunk = 0;
    CHECK(ree_receipt_prepare(c, &with, NULL) == REE_INVALID);
    ree_completion_destroy(c);
    ree_tokenizer_destroy(tokenizer);
    ree_generator_destroy(g);
}

static size_t n_until_end;
static bool end_early(void *user, const struct ree_token *token) {
    on_token(user, token);
    return ((struct streamed *)user)[token->sequence].n_tokens < n_until_end;
}

static bool end_at_once(void *user, const struct ree_token *token) {
    on_token(user, token);
    return false;
}

// A tokenizer of which token `begun` is the first byte of a character; the others are words.
static struct ree_tokenizer *words_but_one(int64_t n, int32_t begun) {
    const char *path = path_of("words.json");
    struct ree_tokenizer *tokenizer = NULL;
    FILE *file = fopen(path, "w");
    REQUIRE(file);
    fprintf(file, "{\"added_tokens\": [], \"decoder\": {\"type\": \"ByteFallback\"},"
                  "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"<0xE2>\", \"vocab\": {");
    for (int64_t i = 0; i < n; i++)
        if (i == begun)
            fprintf(file, "%s\"<0xE2>\": %lld", i ? ", " : "", (long long)i);
        else
            fprintf(file, "%s\"w%lld\": %lld", i ? ", " : "", (long long)i, (long long)i);
    fprintf(file, "}}}");
    REQUIRE(fclose(file) == 0);
    OK(ree_tokenizer_load(path, &tokenizer, &err));
    return tokenizer;
}

// on_token ends an answer within a character. What stands for it then, U+FFFD, is a stop text, but
// no token completed it: the answer is interrupted.
static void test_ended_within(const char *model) {
    struct ree_generator *g = open_generator(model);
    const struct ree_prompt prompt = {(const int32_t[]){0, 41, 74}, 3};
    const char *stop = "\xEF\xBF\xBD";
    struct ree_tokenizer *tokenizer = NULL;
    int32_t first = -1;
    for (int i = 0; i < 2; i++) {
        struct streamed streamed = {0};
        struct ree_completion_options options = sixteen(&streamed);
        struct ree_completion *c = NULL;
        options.on_token = end_at_once;
        options.stops = &stop;
        options.n_stops = (size_t)i;
        OK(ree_completion_create(g, tokenizer, &prompt, 1, &options, &c, &err));
        OK(ree_completion_run(c, &err));
        const struct ree_generation *made = ree_completion_generation(c, 0);
        REQUIRE(made->n == 4);
        if (i == 0)
            tokenizer = words_but_one(ree_generator_info(g)->vocab_size, first = made->ids[3]);
        CHECK(made->ids[3] == first && made->finish == REE_FINISH_INTERRUPTED);
        CHECK(strcmp(ree_completion_text(c, 0, NULL), "") == 0);
        ree_completion_destroy(c);
    }
    ree_tokenizer_destroy(tokenizer);
    ree_generator_destroy(g);
}

// on_token ends the answer: its receipt states a prefix, and a checkpoint can be continued.
static void test_ended(const char *model) {
    struct ree_generator *g = open_generator(model);
    for (n_until_end = 6; n_until_end <= 16; n_until_end += 10) {
        struct streamed streamed = {0};
        struct ree_completion_options options = sixteen(&streamed);
        struct ree_completion *c = NULL;
        struct ree_receipt *receipt = NULL;
        options.on_token = end_early;
        OK(ree_complete_text(g, "Once upon a time", 16, &options, &c, &err));
        REQUIRE(c);
        const bool all = n_until_end == 16;
        CHECK(streamed.n_tokens == n_until_end);
        CHECK(ree_completion_generation(c, 0)->finish ==
              (all ? REE_FINISH_LENGTH : REE_FINISH_INTERRUPTED));
        OK(ree_receipt_create_text(c, NULL, &receipt, &err));
        CHECK(verdict_of(receipt, model, NULL, NULL) == (all ? REE_VERIFIED : REE_VERIFIED_PREFIX));
        ree_receipt_destroy(receipt);
        ree_completion_destroy(c);
    }
    struct ree_tokenizer *tokenizer = NULL;
    OK(ree_tokenizer_load(model, &tokenizer, &err));
    const struct ree_prompt prompts[2] = {{(const int32_t[]){0, 41, 74}, 3},
                                          {(const int32_t[]){0, 41}, 2}};
    struct ree_checkpoint_options saving = {.size = sizeof saving, .path = path_of("cut.ckpt")};
    char hashes[2][2][65];
    n_until_end = 5;
    for (int i = 0; i < 3; i++) { // whole, cut, continued
        struct streamed streamed[2] = {0};
        struct ree_completion_options options = sixteen(streamed);
        struct ree_completion *c = NULL;
        struct ree_checkpoint *saved = NULL;
        if (i == 1) options.on_token = end_early;
        if (i == 2) saving.resume = saving.path;
        OK(ree_completion_create(g, tokenizer, prompts, 2, &options, &c, &err));
        if (i > 0) OK(ree_checkpoint_open(&saving, &saved, &err));
        if (i > 0) OK(ree_checkpoint_attach(saved, c, &err));
        OK(ree_completion_run(c, &err));
        for (size_t k = 0; i != 1 && k < 2; k++)
            memcpy(hashes[i / 2][k], ree_completion_generation(c, k)->tokens_sha256, 65);
        CHECK(i != 1 || ree_completion_generation(c, 0)->finish == REE_FINISH_INTERRUPTED);
        ree_completion_destroy(c);
        ree_checkpoint_destroy(saved);
    }
    CHECK(memcmp(hashes[0], hashes[1], sizeof hashes[0]) == 0);
    ree_tokenizer_destroy(tokenizer);
    ree_generator_destroy(g);
}

static void test_request(const char *model) {
    struct ree_generator *g = open_generator(model);
    static const int32_t ids[] = {0, 41, 74};
    struct ree_prompt prompt = {ids, 3};
    struct ree_request *asked = ask(g, &prompt), *other = ask(g, &prompt), *read = NULL;
    OK(ree_request_write(asked, path_of("ask.json"), &err));
    OK(ree_request_load(path_of("ask.json"), &read, &err));
    REQUIRE(read);
    CHECK(strcmp(ree_request_info(read)->request_sha256, ree_request_info(asked)->request_sha256) ==
          0);
    CHECK(ree_request_info(read)->prompt.n == 3 && ree_request_info(read)->graph_sha256[0]);
    CHECK(ree_request_info(asked)->sampling->seed != ree_request_info(other)->sampling->seed);
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_completion *c = NULL;
    struct ree_receipt *receipt = NULL;
    OK(ree_tokenizer_load(model, &tokenizer, &err));
    struct ree_completion_options own = {.size = sizeof own, .max_new_tokens = 99};
    CHECK(ree_completion_create_requested(g, tokenizer, read, &own, &c, NULL) == REE_INVALID);
    OK(ree_completion_create_requested(g, tokenizer, read, NULL, &c, &err));
    REQUIRE(c);
    CHECK(ree_receipt_create_text(c, NULL, &receipt, NULL) == REE_INVALID); // it has not run
    OK(ree_completion_run(c, &err));
    CHECK(ree_completion_run(c, NULL) == REE_INVALID);
    OK(ree_receipt_create_text(c, NULL, &receipt, &err));
    REQUIRE(receipt);
    struct ree_verify_options options = {.size = sizeof options, .request = asked};
    CHECK(verdict_of(receipt, model, &options, NULL) == REE_VERIFIED);
    options.request = other;
    CHECK(verdict_of(receipt, model, &options, NULL) == REE_VERIFIED_FALSE);
    // Whose request it answers is not checked without the request.
    CHECK(verdict_of(receipt, model, NULL, NULL) == REE_VERIFIED_PARTLY);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(c);
    ree_tokenizer_destroy(tokenizer);
    ree_request_destroy(read);
    ree_request_destroy(other);
    ree_request_destroy(asked);
    ree_generator_destroy(g);
}

// Several prompts as one batch, stop texts, and a checkpoint from which the run continues.
static bool interrupted;
static bool after_six(void *user, const struct ree_token *token) {
    on_token(user, token);
    if (((struct streamed *)user)[0].n_tokens == 6) interrupted = true;
    return true;
}
static bool is_interrupted(void *user) {
    (void)user;
    return interrupted;
}

static void test_batch(const char *model) {
    struct ree_generator *g = open_generator(model);
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_prompts *prompts = NULL;
    OK(ree_tokenizer_load(model, &tokenizer, &err));
    struct ree_prompts_options encoding = {.size = sizeof encoding, .tokenizer = tokenizer};
    OK(ree_prompts_create(&encoding, &prompts, &err));
    REQUIRE(prompts);
    OK(ree_prompts_add_text(prompts, "Once upon a time", 16, &err));
    OK(ree_prompts_add_ids(prompts, (const int32_t[]){0, 41, 74}, 3, &err));
    CHECK(ree_prompts_add_ids(prompts, NULL, 0, NULL) == REE_INVALID);
    const struct ree_prompt *list;
    size_t n = ree_prompts_list(prompts, &list);
    CHECK(n == 2 && !ree_prompts_is_chat(prompts, 0));

    struct streamed whole[2] = {0}, first[2] = {0}, rest[2] = {0};
    const char *stops[] = {" boy"};
    struct ree_completion *c[3] = {NULL};
    struct ree_completion_options options = sixteen(whole);
    options.n_stops = 1;
    options.stops = stops;
    OK(ree_completion_create(g, tokenizer, list, n, &options, &c[0], &err));
    REQUIRE(c[0]);
    OK(ree_completion_run(c[0], &err));
    CHECK(ree_completion_generation(c[0], 0)->finish == REE_FINISH_STOP);
    CHECK(strcmp(whole[0].text, ", there was a cheerful") == 0);
    CHECK(ree_completion_generation(c[0], 1)->finish != REE_FINISH_INTERRUPTED);

    // Interrupted, then continued.
    struct ree_checkpoint *saved = NULL, *resumed = NULL;
    struct ree_checkpoint_options saving = {.size = sizeof saving, .path = path_of("run.ckpt")};
    OK(ree_checkpoint_open(&saving, &saved, &err));
    options.on_token = after_six;
    options.is_interrupted = is_interrupted;
    options.user = first;
    OK(ree_completion_create(g, tokenizer, list, n, &options, &c[1], &err));
    OK(ree_checkpoint_attach(saved, c[1], &err));
    OK(ree_completion_run(c[1], &err));
    OK(ree_checkpoint_close(saved, &err));
    CHECK(ree_completion_generation(c[1], 1)->finish == REE_FINISH_INTERRUPTED);
    CHECK(ree_checkpoint_open(&saving, &resumed, NULL) == REE_INVALID); // would be overwritten
    saving.resume = saving.path;
    OK(ree_checkpoint_open(&saving, &resumed, &err));
    REQUIRE(resumed);
    interrupted = false;
    options.on_token = on_token;
    options.is_interrupted = NULL;
    options.user = rest;
    OK(ree_completion_create(g, tokenizer, list, n, &options, &c[2], &err));
    OK(ree_checkpoint_attach(resumed, c[2], &err));
    OK(ree_completion_run(c[2], &err));
    for (size_t i = 0; i < n; i++) {
        CHECK(strcmp(ree_completion_generation(c[0], i)->tokens_sha256,
                     ree_completion_generation(c[2], i)->tokens_sha256) == 0);
        CHECK(strcmp(whole[i].text, rest[i].text) == 0);
        CHECK(whole[i].n_tokens == rest[i].n_tokens);
    }
    for (int i = 0; i < 3; i++)
        ree_completion_destroy(c[i]);
    ree_checkpoint_destroy(saved);
    ree_checkpoint_destroy(resumed);
    ree_prompts_destroy(prompts);
    ree_tokenizer_destroy(tokenizer);
    ree_generator_destroy(g);
}

static void test_tensors(const char *path, const char *image) {
    struct ree_model *model = NULL;
    struct ree_session *session = NULL;
    struct ree_tensor input = {0}, outputs[4] = {0};
    struct ree_receipt *receipt = NULL;
    OK(ree_model_load(path, NULL, &model, &err));
    OK(ree_session_create(model, device, NULL, &session, &err));
    OK(ree_tensor_load(&input, image, &err));
    input.name = strdup(ree_model_input(model, 0)->name);
    OK(ree_session_run(session, &input, 1, outputs, &err));
    OK(ree_receipt_create_tensors(model, &device, 1, &input, 1, outputs, NULL, &receipt, &err));
    REQUIRE(receipt);
    // Other inputs than the model's.
    struct ree_receipt *none = NULL;
    CHECK(ree_receipt_create_tensors(model, &device, 1, NULL, 0, outputs, NULL, &none, NULL) ==
          REE_INVALID);
    char *name = input.name;
    input.name = NULL;
    CHECK(ree_receipt_create_tensors(model, &device, 1, &input, 1, outputs, NULL, &none, NULL) ==
          REE_INVALID);
    input.name = name;
    const struct ree_receipt_info *info = ree_receipt_info(receipt);
    CHECK(info->kind == REE_RECEIPT_TENSORS && info->n_inputs == 1 && !info->prompt);
    printf("tensors %s\n", info->receipt_hash);
    OK(ree_receipt_write(receipt, path_of("tensors.json"), &err));
    struct ree_verify_inputs inputs = {.size = sizeof inputs, .tensors = &input, .n_tensors = 1};
    CHECK(verdict_of(receipt, path, NULL, &inputs) == REE_VERIFIED);
    CHECK(verdict_of(receipt, path, NULL, NULL) == REE_VERIFIED_NOT); // the input is missing
    ((float *)input.data)[0] += 1;
    CHECK(verdict_of(receipt, path, NULL, &inputs) == REE_VERIFIED_FALSE);
    // Steps: nothing is verified before the last one.
    struct ree_verification *v = NULL;
    OK(ree_verification_create(receipt, NULL, &v, &err));
    REQUIRE(v);
    CHECK(ree_verification_verdict(v) == REE_VERIFIED_NOT && !ree_verification_is_decided(v));
    CHECK(ree_verification_load(v, "none.onnx", device, NULL, NULL) != REE_OK);
    OK(ree_verification_load(v, path, device, NULL, &err));
    CHECK(ree_verification_verdict(v) == REE_VERIFIED_NOT && ree_verification_model(v));
    ((float *)input.data)[0] -= 1;
    OK(ree_verification_run(v, &inputs, &err));
    CHECK(ree_verification_verdict(v) == REE_VERIFIED && ree_verification_is_decided(v));
    ree_verification_destroy(v);
    for (size_t i = 0; i < ree_model_n_outputs(model); i++)
        ree_tensor_finish(&outputs[i]);
    ree_tensor_finish(&input);
    ree_receipt_destroy(receipt);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

// Sizes of option structs, operation sets, copied strings.
static void test_sizes(const char *model) {
    struct ree_prompts *prompts;
    struct ree_prompts_options none = {0};
    CHECK(ree_prompts_create(&none, &prompts, &err) == REE_INVALID && strstr(err.message, "size"));
    struct {
        struct ree_prompts_options known;
        uint64_t later;
    } larger = {.known = {.size = sizeof larger}};
    OK(ree_prompts_create(&larger.known, &prompts, &err));
    ree_prompts_destroy(prompts);
    larger.later = 1;
    CHECK(ree_prompts_create(&larger.known, &prompts, NULL) != REE_OK && !prompts);
    // Only the reproducible operation set can be verified.
    struct ree_device_options options = {.size = sizeof options,
                                         .operation_set = REE_DETERMINISTIC};
    struct ree_device *own = NULL;
    struct ree_receipt *receipt = NULL;
    struct ree_verification *v;
    OK(ree_device_open("cpu", &options, &own, &err));
    OK(ree_receipt_load(path_of("text.json"), &receipt, &err));
    CHECK(ree_device_operation_set(own) == REE_DETERMINISTIC);
    CHECK(ree_verify(receipt, model, own, NULL, NULL, NULL, &v, NULL) == REE_INVALID && !v);
    // A run on devices with different sets has no set.
    struct ree_generator *mixed;
    struct ree_generator_options two = {
        .size = sizeof two, .n_more_devices = 1, .more_devices = &own, .n_partitions = 2};
    CHECK(ree_generator_create(model, device, &two, &mixed, &err) == REE_INVALID && !mixed);
    CHECK(strstr(err.message, "different operation sets") != NULL);
    // The caller may change its strings after ree_verification_create.
    char tokenizer[512];
    snprintf(tokenizer, sizeof tokenizer, "%s", model);
    struct ree_verify_options copied = {.size = sizeof copied, .tokenizer = tokenizer};
    OK(ree_verification_create(receipt, &copied, &v, &err));
    memset(tokenizer, 'x', sizeof tokenizer - 1);
    OK(ree_verification_load(v, model, device, NULL, &err));
    OK(ree_verification_run(v, NULL, &err));
    CHECK(ree_verification_verdict(v) == REE_VERIFIED);
    ree_verification_destroy(v);
    ree_receipt_destroy(receipt);
    ree_device_destroy(own);
}

int main(int argc, char **argv) {
    REQUIRE(argc == 5);
    folder = argv[4];
    OK(ree_device_open("cpu", NULL, &device, &err));
    test_text(argv[1]);
    test_false_run(argv[1]);
    test_private(argv[1]);
    test_signature(argv[1]);
    test_limits(argv[1]);
    test_ended(argv[1]);
    test_ended_within(argv[1]);
    test_request(argv[1]);
    test_batch(argv[1]);
    test_tensors(argv[2], argv[3]);
    test_sizes(argv[1]);
    ree_device_destroy(device);
    return test_finish();
}
