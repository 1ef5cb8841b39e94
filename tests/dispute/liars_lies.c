// The lies, and the forms of a receipt.
#include "liars.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

uint64_t some_step(const struct said *s) {
    return draw(s->trace.n_steps);
}

static uint64_t some_decode_step(const struct said *s) {
    uint64_t first = s->trace.n_steps - (s->receipt.output.n_tokens - 1);
    return first + draw(s->trace.n_steps - first);
}

static uint32_t some_input(enum ree_rule_kind kind) {
    for (;;) {
        uint32_t input = (uint32_t)draw(truth.rules.n);
        if (truth.rules.rules[input].kind == kind) return input;
    }
}

// Replaces a digest with another digest of the same trace, with zeros or with a random digest.
static void other_digest(const struct said *s, ree_digest out) {
    ree_digest was;
    memcpy(was, out, sizeof was);
    size_t n = s->trace.n_steps * s->trace.header.n_step_digests;
    if (draw(8) == 0)
        memset(out, 0, sizeof(ree_digest));
    else if (draw(2))
        memcpy(out, s->trace.digests[draw(n)], sizeof(ree_digest));
    if (memcmp(was, out, sizeof was) == 0) draw_digest(out);
}

// Gives random digests to some nodes after this value of the step and, with `later`, to values of
// later steps.
static void follow(struct said *s, uint64_t step, size_t place, bool later) {
    size_t n = s->trace.header.n_step_digests, n_inputs = s->trace.header.n_inputs;
    for (size_t i = place + 1 > n_inputs ? place + 1 : n_inputs; i < n; i++)
        if (draw(2)) draw_digest(step_of(s, step)[i]);
    for (uint64_t k = step + 1; later && k < s->trace.n_steps; k++)
        for (size_t i = 0; i < n; i++)
            if (draw(2)) draw_digest(step_of(s, k)[i]);
}

static void lie_input(struct said *s, enum ree_rule_kind kind, uint64_t step) {
    uint32_t input = some_input(kind);
    other_digest(s, step_of(s, step)[input]);
    if (draw(2)) follow(s, step, input, draw(2));
}

static void lie_mask(struct said *s) {
    lie_input(s, REE_RULE_MADE, some_step(s));
}

void lie_cache(struct said *s) {
    lie_input(s, REE_RULE_CACHE, 1 + draw(s->trace.n_steps - 1));
}

static void lie_first_cache(struct said *s) {
    lie_input(s, REE_RULE_CACHE, 0);
}

// The step before is changed to match: the node that makes the cache is the first that differs.
static void lie_cache_and_source(struct said *s) {
    uint64_t step = 1 + draw(s->trace.n_steps - 1);
    uint32_t input = some_input(REE_RULE_CACHE);
    int64_t place = ree_trace_digest_index(&s->trace.header, truth.rules.rules[input].value);
    draw_digest(step_of(s, step)[input]);
    memcpy(step_of(s, step - 1)[place], step_of(s, step)[input], sizeof(ree_digest));
}

// All caches of a step are taken from another step.
static void lie_old_caches(struct said *s) {
    uint64_t step = 2 + draw(s->trace.n_steps - 2), from = draw(step - 1);
    for (uint32_t i = 0; i < truth.rules.n; i++)
        if (truth.rules.rules[i].kind == REE_RULE_CACHE)
            memcpy(step_of(s, step)[i], step_of(s, from)[i], sizeof(ree_digest));
}

static void put_token(struct said *s, size_t place, bool in_trace, bool in_receipt) {
    struct ree_error err;
    struct ree_stated_run stated_run;
    int32_t was = s->output[place], token = (was + 1 + (int32_t)draw(200)) % 300;
    if (token == was) token++;
    s->output[place] = token;
    REQUIRE(ree_receipt_seal(&s->receipt, &err) == REE_OK);
    REQUIRE(ree_stated_run_make(&s->receipt, &truth.rules, NULL, &s->arena, &stated_run, &err) ==
            REE_OK);
    uint64_t step = ree_stated_run_step_of(&stated_run, stated_run.n_prompt + place);
    if (in_trace && step < s->trace.n_steps)
        REQUIRE(ree_stated_run_input(&stated_run, &truth.opened, &truth.rules, step,
                                     truth.rules.tokens, step_of(s, step)[truth.rules.tokens],
                                     &err) == REE_OK);
    if (!in_receipt) s->output[place] = was;
    if (in_trace && step < s->trace.n_steps && draw(2)) follow(s, step, 0, true);
}

static void lie_token_in_trace(struct said *s) {
    put_token(s, draw(s->receipt.output.n_tokens - 1), true, false);
}

static void lie_token_in_receipt(struct said *s) {
    put_token(s, draw(s->receipt.output.n_tokens), false, true);
}

static void lie_token_in_both(struct said *s) {
    put_token(s, draw(s->receipt.output.n_tokens), true, true);
}

static void lie_last_token(struct said *s) {
    put_token(s, s->receipt.output.n_tokens - 1, false, true);
}

// An earlier token of the receipt differs too, and the traces diverge later.
static void lie_two_tokens(struct said *s) {
    size_t n = s->receipt.output.n_tokens, first = draw(n - 3);
    put_token(s, first, false, true);
    put_token(s, first + 1 + draw(n - 2 - first), true, true);
}

// The logits are changed together with the token.
static void lie_token_and_logits(struct said *s) {
    size_t place = draw(s->receipt.output.n_tokens - 1);
    put_token(s, place, true, true);
    uint64_t step = s->trace.n_steps - (s->receipt.output.n_tokens - 1) + place;
    draw_digest(step_of(s, step - 1)[ree_trace_digest_index(&s->trace.header, truth.rules.logits)]);
}

static void lie_prompt_in_trace(struct said *s) {
    uint64_t step = draw(s->trace.n_steps - (s->receipt.output.n_tokens - 1));
    other_digest(s, step_of(s, step)[truth.rules.tokens]);
}

void lie_output(struct said *s) {
    const struct ree_trace_header *h = &s->trace.header;
    uint64_t step = some_step(s);
    size_t place = h->n_inputs + draw(h->n_step_digests - h->n_inputs);
    other_digest(s, step_of(s, step)[place]);
    if (draw(2)) follow(s, step, place, draw(2));
}

void lie_misread(struct said *s) {
    do
        s->misread_node = (uint32_t)draw(s->trace.header.n_nodes);
    while (!s->trace.header.nodes[s->misread_node].n_inputs);
    s->misreads = true;
    s->misread_step = some_step(s);
    draw_digest(s->misread);
}

static void lie_swapped_steps(struct said *s) {
    uint64_t a = some_decode_step(s), b = some_decode_step(s);
    if (a == b) a = a + 1 < s->trace.n_steps ? a + 1 : a - 1;
    for (uint32_t i = 0; i < s->trace.header.n_step_digests; i++) {
        ree_digest x;
        memcpy(x, step_of(s, a)[i], sizeof x);
        memcpy(step_of(s, a)[i], step_of(s, b)[i], sizeof x);
        memcpy(step_of(s, b)[i], x, sizeof x);
    }
}

static void lie_fewer_steps(struct said *s) {
    s->trace.n_steps -= 1 + draw(s->trace.n_steps - 1);
    if (draw(2)) s->receipt.trace_steps = s->trace.n_steps;
}

static void lie_more_steps(struct said *s) {
    uint64_t more = 1 + draw(s->trace.n_steps);
    memcpy(step_of(s, s->trace.n_steps), step_of(s, s->trace.n_steps - more),
           more * s->trace.header.n_step_digests * sizeof(ree_digest));
    s->trace.n_steps += more;
    if (draw(2)) s->receipt.trace_steps = s->trace.n_steps;
}

static void lie_number_of_steps(struct said *s) {
    s->receipt.trace_steps += 1 + draw(9);
}

// An answer that ends early, with trace and receipt changed consistently.
void lie_early_end(struct said *s) {
    uint64_t fewer = 1 + draw(s->receipt.output.n_tokens - 1);
    s->trace.n_steps -= fewer;
    s->receipt.trace_steps = s->trace.n_steps;
    s->receipt.output.n_tokens -= fewer;
}

// An answer that continues. The receipt still allows only the true number of tokens.
static void lie_late_end(struct said *s) {
    size_t n = s->receipt.output.n_tokens, more = 1 + draw(n - 1);
    size_t each = s->trace.header.n_step_digests * sizeof(ree_digest);
    memcpy(s->output + n, s->output, more * sizeof *s->output);
    memcpy(step_of(s, s->trace.n_steps), step_of(s, s->trace.n_steps - more), more * each);
    s->trace.n_steps += more;
    s->receipt.trace_steps = s->trace.n_steps;
    s->receipt.output.n_tokens += more;
}

void lie_header(struct said *s) {
    struct ree_trace_header *h = &s->trace.header;
    struct ree_trace_node *node = &h->nodes[draw(h->n_nodes)];
    switch (draw(12)) {
    case 0: node->op_type = ""; break;
    case 1: node->op_type = "Identity2"; break;
    case 2: node->domain = "com.example"; break;
    case 3: node->opset++; break;
    case 4: draw_digest(node->attributes); break;
    case 5: draw_digest(h->constants[draw(h->n_constants)].digest); break;
    case 6: h->graph_sha256[draw(64)] ^= 1; break;
    case 7: h->weights_sha256[draw(64)] ^= 1; break;
    case 8: h->numerics = "RepOps/2"; break;
    case 9: h->operation_set = "default"; break;
    case 10: h->prefill_chunk++; break;
    default: h->inputs[draw(h->n_inputs)].cache_axis++; break;
    }
}

// A trace with fewer nodes: its steps have fewer digests.
void lie_fewer_nodes(struct said *s) {
    struct ree_trace_header *h = &s->trace.header;
    uint32_t was = h->n_step_digests, less = h->nodes[h->n_nodes - 1].n_outputs;
    h->n_nodes--;
    for (uint64_t i = 1; i < s->trace.n_steps; i++)
        memmove(s->trace.digests + i * (was - less), s->trace.digests + i * was,
                (was - less) * sizeof(ree_digest));
}

const struct lie lies[] = {
    {"mask or position", lie_mask, 40},
    {"cache", lie_cache, 60},
    {"cache of the first step", lie_first_cache, 20},
    {"cache and its source", lie_cache_and_source, 12},
    {"caches of another step", lie_old_caches, 20},
    {"token in the trace", lie_token_in_trace, 30},
    {"token in the receipt", lie_token_in_receipt, 30},
    {"token in both", lie_token_in_both, 40},
    {"last token", lie_last_token, 10},
    {"two tokens", lie_two_tokens, 20},
    {"token and logits", lie_token_and_logits, 10},
    {"prompt in the trace", lie_prompt_in_trace, 15},
    {"output of a node", lie_output, 50},
    {"record of a node", lie_misread, 20},
    {"steps in another order", lie_swapped_steps, 20},
    {"fewer steps", lie_fewer_steps, 20},
    {"more steps", lie_more_steps, 20},
    {"number of steps", lie_number_of_steps, 5},
    {"early end", lie_early_end, 20},
    {"late end", lie_late_end, 10},
    {"header", lie_header, 48},
    {"fewer nodes", lie_fewer_nodes, 2},
};
const size_t n_lies = sizeof lies / sizeof *lies;

// Forms

static void put_eos(struct said *s, const int32_t *ids, size_t n) {
    int32_t *copy = ree_arena_alloc_array(&s->arena, n + 1, sizeof *copy);
    REQUIRE(copy);
    if (n) memcpy(copy, ids, n * sizeof *ids);
    s->receipt.eos = copy;
    s->receipt.n_eos = n;
}

static void form_eos_twice(struct said *s) {
    int32_t eos = truth.opened.source.eos[0];
    put_eos(s, (const int32_t[]){eos, eos}, 2);
}

static bool is_in_answer(const struct said *s, int32_t id) {
    for (size_t i = 0; i < s->receipt.output.n_tokens; i++)
        if (s->output[i] == id) return true;
    return false;
}

// The first one to three of: a token that the answer lacks, the model's eos token, another token
// that the answer lacks.
static void form_eos_foreign(struct said *s) {
    int32_t ids[3] = {0, truth.opened.source.eos[0], 0};
    for (int i = 0; i < 3; i += 2)
        do
            ids[i] = 2 + (int32_t)draw(600);
        while (is_in_answer(s, ids[i]));
    put_eos(s, ids, 1 + draw(3));
}

static void form_eos_none(struct said *s) {
    put_eos(s, NULL, 0);
}

// The receipt claims that the answer ends with its last token, which is not an eos token.
static void form_eos_last(struct said *s) {
    int32_t last = s->output[s->receipt.output.n_tokens - 1];
    put_eos(s, &last, 1);
    s->receipt.finish_reason = "eos";
}

static void form_context_unknown(struct said *s) {
    s->receipt.context_length = 0;
}

static void form_context_other(struct said *s) {
    s->receipt.context_length += 1 + (int64_t)draw(100);
}

// Parameters without effect, about which version 1 may state anything.
static void form_version_1(struct said *s) {
    s->receipt.version = 1;
    ree_receipt_tokenizer_sha256(&s->receipt, truth.tokenizer, s->receipt.tokenizer_sha256);
    s->receipt.sampling.top_k = (uint32_t)draw(9);
    s->receipt.sampling.seed = draw(9);
}

static void form_tokenizer_other(struct said *s) {
    memset(s->receipt.tokenizer_sha256, 'a', 64);
}

static void form_tokenizer_none(struct said *s) {
    struct ree_receipt_text *texts[] = {&s->receipt.prompt, &s->receipt.output};
    for (int i = 0; i < 2; i++) {
        texts[i]->text = NULL;
        texts[i]->text_sha256[0] = 0;
    }
    s->receipt.tokenizer_sha256[0] = 0;
}

static const char *const stops[] = {"zebra", "zebra", "\n\n\n\n"};

static void form_stops(struct said *s) {
    size_t first = draw(3);
    s->receipt.stops = stops + first;
    s->receipt.n_stops = 1 + draw(3 - first);
}

static void form_stops_undecodable(struct said *s) {
    form_tokenizer_none(s);
    form_stops(s);
}

static void form_limit(struct said *s) {
    s->receipt.max_new_tokens = 100 + draw(100);
}

static void form_finish(struct said *s) {
    s->receipt.finish_reason = draw(2) ? "stop" : "eos";
}

static void form_text(struct said *s) {
    s->receipt.output.text = " another";
    s->keeps_text = true;
}

const struct form forms[] = {
    {"eos twice", form_eos_twice, false},
    {"eos of others", form_eos_foreign, false},
    {"no eos", form_eos_none, false},
    {"the last token as eos", form_eos_last, true},
    {"context unknown", form_context_unknown, false},
    {"another context", form_context_other, true},
    {"version 1", form_version_1, false},
    {"another tokenizer", form_tokenizer_other, true},
    {"no tokenizer", form_tokenizer_none, false},
    {"stop texts", form_stops, false},
    {"stop texts and no tokenizer", form_stops_undecodable, true},
    {"another limit", form_limit, true},
    {"another reason of the end", form_finish, true},
    {"another text", form_text, true},
};
const size_t n_forms = sizeof forms / sizeof *forms;
