#include "verify_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/answer.h"
#include "generate/eos.h"
#include "receipt/receipt_internal.h"
#include "reseal.h"

#define SAMPLES REE_SOURCE_DIR "/tools/sample/"

static struct verify_world world;

static void need(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return;
    fprintf(stderr, "verify_world: %s\n", err->message);
    exit(1);
}

static void need_memory(const void *p) {
    if (p) return;
    fprintf(stderr, "verify_world: out of memory\n");
    exit(1);
}

struct answering {
    const struct prover_run *run;
    struct ree_answer *answer; // NULL if the run has no stop texts
    size_t n;
    bool given_up, is_cut;
};

static bool on_token(void *user, const struct ree_token *token) {
    struct answering *a = user;
    struct ree_error err;
    a->n++;
    if (a->answer && ree_answer_push(a->answer, token->id, &err) != REE_OK) a->given_up = true;
    if (a->run->most && a->n > a->run->most) a->given_up = true;
    if (a->given_up || (a->answer && a->answer->stopped)) return false;
    if (a->n == a->run->interrupt_after) a->is_cut = true;
    return !a->is_cut;
}

static bool is_eos(const struct prover_run *run, int32_t id) {
    for (size_t i = 0; i < run->n_eos; i++)
        if (run->eos[i] == id) return true;
    return false;
}

// Returns whether a token or a limit ends the answer at the place where it was cut.
static bool has_ended(const struct verify_world *w, const struct prover_run *run,
                      const struct ree_generation *g) {
    size_t context = (size_t)w->plain->info.context_length;
    return is_eos(run, g->ids[g->n - 1]) || (context && g->n >= context) ||
           g->n - g->n_prompt == run->max_new_tokens;
}

enum ree_status prover_make(const struct verify_world *w, const struct prover_run *run,
                            struct ree_receipt *out, bool *out_ended, struct ree_error *err) {
    struct answering answering = {.run = run};
    struct ree_answer answer;
    struct ree_generator *g = run->has_logits ? w->with_logits : w->plain;
    ree_receipt_init(out);
    *out_ended = true;
    if (run->n_stops)
        REE_TRY(ree_answer_begin(&answer, w->tokenizer, run->stops, run->n_stops, run->prompt->ids,
                                 run->prompt->n, REE_BOUNDARY_SETTLED, err));
    if (run->n_stops) answering.answer = &answer;
    struct ree_generate_options options = {.size = sizeof options,
                                           .sampling = run->sampling,
                                           .max_new_tokens = run->max_new_tokens,
                                           .eos = run->eos,
                                           .n_eos = run->n_eos,
                                           .on_token = on_token,
                                           .user = &answering};
    struct ree_generation made;
    struct ree_generate_stats stats = {.size = sizeof stats};
    enum ree_status status = ree_generate(g, run->prompt, 1, &options, &made, &stats, err);
    if (status == REE_OK && answering.given_up)
        status = ree_fail(err, REE_UNAVAILABLE, "the answer does not end where it should");
    if (status == REE_OK && answering.is_cut) {
        made.finish = REE_FINISH_INTERRUPTED;
        *out_ended = has_ended(w, run, &made);
    }
    struct ree_text_run text = {.model = &w->text_hashes,
                                .tokenizer = run->has_texts ? w->tokenizer : NULL,
                                .context_length = run->context_length,
                                .options = &options,
                                .stops = run->stops,
                                .n_stops = run->n_stops,
                                .generation = &made,
                                .salt = run->salt,
                                .request_sha256 = run->request_sha256,
                                .device = "any"};
    if (status == REE_OK) status = ree_receipt_make_text(&text, out, err);
    ree_generation_finish(&made);
    if (run->n_stops) ree_answer_finish(&answer);
    return status;
}

static void keep(size_t i, const char *name, uint8_t options, bool is_asked,
                 const struct ree_receipt *receipt) {
    struct honest *h = &world.honest[i];
    struct ree_error err;
    *h = (struct honest){.name = name, .options = options, .is_asked = is_asked};
    h->is_prefix = receipt->finish_reason && strcmp(receipt->finish_reason, "interrupted") == 0;
    need(ree_receipt_encode(receipt, &h->receipt, &h->n_receipt, &err), &err);
    need(ree_receipt_body_digest(receipt, h->body, &err), &err);
}

// Makes the request in its file format; *out is the decoded request.
static void make_request(struct ree_request *out) {
    struct ree_strbuf text;
    struct ree_error err;
    cJSON *json;
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text,
                      "{\"schema\":\"ree-request/1\",\"request_sha256\":\"\",\"body\":{\"nonce\":"
                      "\"%064d\",\"model\":{\"graph_sha256\":\"%s\",\"weights_sha256\":\"%s\"},"
                      "\"prompt\":{\"tokens\":[",
                      5, world.text_hashes.graph, world.text_hashes.weights);
    for (size_t i = 0; i < world.n_prompt; i++)
        ree_strbuf_printf(&text, "%s%d", i ? "," : "", world.prompt[i]);
    ree_strbuf_printf(&text, "]},\"sampling\":{\"temperature\":0.75,\"top_k\":20,\"top_p\":0.9375,"
                             "\"min_p\":0,\"repetition_penalty\":1,\"max_new_tokens\":5,\"stop\":["
                             "\"zzz\"]}}}");
    need(ree_json_parse_strict(text.data, text.size, &json, &err), &err);
    ree_strbuf_finish(&text);
    reseal_request(json);
    world.request = reseal_print(json, &world.n_request);
    cJSON_Delete(json);
    need_memory(world.request);
    need(ree_request_decode(world.request, world.n_request, "request", out, &err), &err);
}

static void make_texts(void) {
    static const char *const stops[] = {"zzz", "qq"};
    struct ree_prompt prompt = {world.prompt, world.n_prompt};
    struct ree_request request;
    int32_t *eos;
    size_t n_eos;
    if (!ree_eos_ids(&world.plain->info, world.tokenizer, &eos, &n_eos)) need_memory(NULL);
    const struct prover_run greedy = {.prompt = &prompt,
                                      .sampling = ree_greedy,
                                      .max_new_tokens = 6,
                                      .eos = eos,
                                      .n_eos = n_eos,
                                      .has_texts = true,
                                      .context_length = world.plain->info.context_length};
    struct prover_run drawn = greedy, bare = greedy, secret = greedy, asked = greedy, cut = greedy,
                      stopped = greedy, endless = greedy;
    drawn.sampling = (struct ree_sampling){.temperature = 0.875f,
                                           .top_k = 40,
                                           .top_p = 0.9375f,
                                           .min_p = 0.015625f,
                                           .repetition_penalty = 1.125f,
                                           .seed = 7};
    drawn.has_logits = true;
    drawn.stops = stops;
    drawn.n_stops = 2;
    bare.has_texts = false;
    secret = drawn;
    secret.salt = world.salt;
    make_request(&request);
    asked.sampling = request.sampling;
    asked.max_new_tokens = request.max_new_tokens;
    asked.stops = request.stops;
    asked.n_stops = request.n_stops;
    asked.request_sha256 = request.request_sha256;
    cut.interrupt_after = 4;
    static const char *const soon[] = {"e"};
    stopped.stops = soon;
    stopped.n_stops = 1;
    endless.n_eos = 0;
    const struct {
        const char *name;
        const struct prover_run *run;
        uint8_t options;
        uint32_t version;
    } rows[] = {
        {"greedy", &greedy, 0, 2},
        {"greedy_1", &greedy, 0, 1},
        {"drawn", &drawn, 0, 2},
        {"drawn_1", &drawn, CASE_STEPWISE, 1},
        {"bare", &bare, CASE_NO_TOKENIZER, 2},
        {"private", &secret, CASE_SALT | CASE_PROMPT, 2},
        {"asked", &asked, 0, 2},
        {"interrupted", &cut, 0, 2},
        {"stopped", &stopped, 0, 2},
        {"endless", &endless, CASE_IGNORE_EOS, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ree_receipt receipt;
        struct ree_error err;
        bool ended;
        need(prover_make(&world, rows[i].run, &receipt, &ended, &err), &err);
        receipt.version = rows[i].version;
        if (receipt.tokenizer_sha256[0])
            ree_receipt_tokenizer_sha256(&receipt, world.tokenizer, receipt.tokenizer_sha256);
        receipt.created = NULL; // so that seeds are the same at any time
        if (!receipt.is_private) need(ree_receipt_seal(&receipt, &err), &err);
        keep(i, rows[i].name, rows[i].options, rows[i].run == &asked, &receipt);
        ree_receipt_finish(&receipt);
    }
    ree_request_finish(&request);
    free(eos);
}

static void make_tensors(void) {
    struct ree_error err;
    struct ree_receipt receipt;
    struct ree_tensor output;
    need(ree_model_load(SAMPLES "digits.onnx", NULL, &world.digits, &err), &err);
    need(ree_model_hashes_make(world.digits, NULL, &world.tensor_hashes, &err), &err);
    need(ree_tensor_load(&world.image, SAMPLES "seven.npy", &err), &err);
    need(ree_tensor_load(&world.other_image, SAMPLES "two.npy", &err), &err);
    const char *name = ree_model_input(world.digits, 0)->name;
    world.image.name = strdup(name);
    world.other_image.name = strdup(name);
    need(ree_pipeline_create(world.digits, &world.device, 1, NULL, NULL, 0, REE_NO_INPUT,
                             &world.pipeline, &err),
         &err);
    if (ree_model_n_outputs(world.digits) != 1) need_memory(NULL);
    need(ree_pipeline_run(world.pipeline, &world.image, 1, &output, &err), &err);
    struct ree_tensors_run run = {.of = world.digits,
                                  .model = &world.tensor_hashes,
                                  .n_inputs = 1,
                                  .inputs = &world.image,
                                  .n_outputs = 1,
                                  .outputs = &output,
                                  .device = "any"};
    need(ree_receipt_make_tensors(&run, &receipt, &err), &err);
    receipt.created = NULL;
    keep(N_HONEST - 1, "tensors", 0, false, &receipt);
    ree_receipt_finish(&receipt);
    ree_tensor_finish(&output);
}

static void load_text(void) {
    struct ree_error err;
    struct ree_generator_options options = {.size = sizeof options};
    need(ree_generator_create(SAMPLES "stories", world.device, &options, &world.plain, &err), &err);
    options.all_logits = true;
    need(ree_generator_create(SAMPLES "stories", world.device, &options, &world.with_logits, &err),
         &err);
    need(ree_tokenizer_load(SAMPLES "stories", &world.tokenizer, &err), &err);
    need(ree_model_hashes_make(world.plain->model, NULL, &world.text_hashes, &err), &err);
    static const char once[] = "Once upon a time", other[] = "The dog";
    need(ree_tokenizer_encode(world.tokenizer, once, strlen(once), REE_ADD_SPECIAL, &world.prompt,
                              &world.n_prompt, &err),
         &err);
    need(ree_tokenizer_encode(world.tokenizer, other, strlen(other), REE_ADD_SPECIAL,
                              &world.other_prompt, &world.n_other_prompt, &err),
         &err);
}

const struct verify_world *verify_world(void) {
    if (world.device) return &world;
    struct ree_error err;
    const struct ree_device_options options = {
        .size = sizeof options, .n_threads = 1, .cache_dir = ""};
    need(ree_device_open("cpu", &options, &world.device, &err), &err);
    memset(world.salt, 0x5a, sizeof world.salt);
    load_text();
    make_texts();
    make_tensors();
    return &world;
}
