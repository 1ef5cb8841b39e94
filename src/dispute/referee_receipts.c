// Judges text receipts against the tokenizer and the parameters of the model, without running it:
// what ends an answer, and the texts of its tokens (dispute/referee_internal.h).
#include <stdlib.h>
#include <string.h>

#include "receipt/make_receipt.h"
#include "receipt/read_answer.h"
#include "dispute/referee_internal.h"
#include "base/memory.h"
#include "base/status.h"
#include "generate/eos.h"
#include "generate/id_set.h"

// The eos tokens and the stop texts of a receipt are sets: order and repetition have no meaning.
// The lists can be as long as the file allows, so they are sorted once.

static enum ree_status compare_eos(const struct ree_receipt *x, const struct ree_receipt *y,
                                   bool *same, struct ree_error *err) {
    struct ree_id_set a = {0}, b = {0};
    enum ree_status status = ree_id_set_make(x->eos, x->n_eos, &a, err);
    if (status == REE_OK) status = ree_id_set_make(y->eos, y->n_eos, &b, err);
    if (status == REE_OK) *same = ree_id_set_is_same(&a, &b);
    ree_id_set_finish(&a);
    ree_id_set_finish(&b);
    return status;
}

static int compare_strings(const void *a, const void *b) {
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

// Makes a sorted list of distinct texts, which are borrowed. Release *out with ree_free.
static enum ree_status make_strings(const char *const *texts, size_t n, const char ***out,
                                    size_t *out_n, struct ree_error *err) {
    const char **set = *out = ree_alloc_zeroed(n + 1, sizeof *set);
    *out_n = 0;
    if (!set) return ree_no_memory(err);
    if (n) memcpy(set, texts, n * sizeof *set);
    qsort(set, n, sizeof *set, compare_strings);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(set[i], set[*out_n - 1]) != 0) set[(*out_n)++] = set[i];
    return REE_OK;
}

static enum ree_status compare_stops(const struct ree_receipt *x, const struct ree_receipt *y,
                                     bool *same, struct ree_error *err) {
    const char **a = NULL, **b = NULL;
    size_t n_a, n_b;
    enum ree_status status = make_strings(x->stops, x->n_stops, &a, &n_a, err);
    if (status == REE_OK) status = make_strings(y->stops, y->n_stops, &b, &n_b, err);
    if (status == REE_OK) *same = n_a == n_b;
    for (size_t i = 0; status == REE_OK && *same && i < n_a; i++)
        *same = strcmp(a[i], b[i]) == 0;
    ree_free(a);
    ree_free(b);
    return status;
}

// What the model's folder has in addition to the model.
struct beside {
    struct ree_tokenizer *tokenizer; // NULL: none
    struct ree_id_set eos;           // of the model and this tokenizer
    struct ree_id_set own_eos;       // of the model alone
    int64_t context_length;          // 0: not known
};

static void finish_beside(struct beside *b) {
    ree_tokenizer_destroy(b->tokenizer);
    ree_id_set_finish(&b->eos);
    ree_id_set_finish(&b->own_eos);
}

static enum ree_status load_beside(const struct ree_opened *m, struct beside *out,
                                   struct ree_error *err) {
    struct ree_generator_info info = {.n_eos = m->source.n_eos, .eos = m->source.eos};
    memset(out, 0, sizeof *out);
    out->context_length = m->source.context_length;
    enum ree_status status = ree_tokenizer_load(m->source.folder, &out->tokenizer, err);
    if (status != REE_OK) out->tokenizer = NULL;
    if (status != REE_OK && status != REE_NOT_FOUND) return status;
    int32_t *ids;
    size_t n;
    REE_TRY(ree_id_set_make(info.eos, info.n_eos, &out->own_eos, err));
    if (!ree_eos_ids(&info, out->tokenizer, &ids, &n)) return ree_no_memory(err);
    status = ree_id_set_make(ids, n, &out->eos, err);
    ree_free(ids);
    return status;
}

// One receipt

struct judged {
    const struct ree_hearing *hearing;
    const struct beside *beside;
    unsigned k;
    const struct ree_stated_run *stated_run;
    const struct ree_receipt *receipt, *other;
    struct ree_id_set eos;
    bool is_eos_agreed; // both receipts have the same set of eos tokens
    bool decodes;       // the available tokenizer is the receipt's
    size_t n_ends;      // answer tokens up to and including the first that ends it; SIZE_MAX: none
    const char *reason;
    bool is_prompt_too_long; // no position of the context is left for an answer
    // [0]: prompt, [1]: answer. The receipt's hash is not the hash of the text that the tokens
    // give.
    bool is_other_text[2];
    struct ree_ruling *out;
};

static bool has_tokenizer(const struct ree_receipt *r, const struct beside *b) {
    char hex[65];
    if (!b->tokenizer) return false;
    ree_receipt_tokenizer_sha256(r, b->tokenizer, hex);
    return strcmp(r->tokenizer_sha256, hex) == 0;
}

// The tokenizer and the context length must be the model's. What both receipts state is not
// disputed: the referee's copy of the model may differ or state less.
static void judge_parameters(struct judged *j) {
    const struct ree_receipt *r = j->receipt, *other = j->other;
    const struct beside *b = j->beside;
    j->decodes = has_tokenizer(r, b);
    if (b->tokenizer && r->tokenizer_sha256[0] && !j->decodes && has_tokenizer(other, b))
        ree_ruling_wrong(
            j->out, j->k,
            "its receipt does not have the model's tokenizer, but the other receipt has");
    if (!r->tokenizer_sha256[0] && r->n_stops)
        ree_ruling_wrong(j->out, j->k,
                         "its receipt has stop texts, but no tokenizer to find them with");
    if (b->context_length && r->context_length && r->context_length != b->context_length &&
        r->context_length != other->context_length)
        ree_ruling_wrong(j->out, j->k,
                         "its receipt states a context of %lld tokens, but the model's is %lld",
                         (long long)r->context_length, (long long)b->context_length);
}

// A list of eos tokens that differs from the model's but has no effect on this answer is not a lie,
// as in verify_parameters.c. Both parties may have run with --ignore-eos, but no request allows
// that.
static void judge_eos(struct judged *j) {
    const struct ree_stated_run *t = j->stated_run;
    const struct beside *b = j->beside;
    bool has_own_tokenizer = j->receipt->tokenizer_sha256[0] != '\0', matters = false;
    bool is_agreed = j->is_eos_agreed && (j->eos.n || !j->hearing->is_requested);
    // Another tokenizer's tokens ended no answer of this receipt.
    const struct ree_id_set *known = has_own_tokenizer && !j->decodes ? &b->own_eos : &b->eos;
    for (size_t i = 0; i < t->n_output && !matters; i++) {
        int32_t id = t->ids[t->n_prompt + i];
        matters = ree_id_set_has(&j->eos, id) != ree_id_set_has(known, id);
    }
    if (is_agreed || known->n == 0 || !matters) return;
    // A run without a tokenizer has the model's own, as in verify_parameters.c.
    if (!has_own_tokenizer && ree_id_set_is_same(&j->eos, &b->own_eos)) return;
    // The receipt's tokenizer, which is not at hand, can name more eos tokens than the model.
    if (has_own_tokenizer && !j->decodes && ree_id_set_contains(&j->eos, known)) {
        j->out->is_end_unknown[j->k] = true;
        return;
    }
    ree_ruling_wrong(
        j->out, j->k, "%s",
        j->eos.n
            ? "its receipt has other eos tokens than the model, and its answer contains one of them"
            : "its receipt states that no token ends a text, but its answer contains an eos token "
              "of the model");
}

static enum ree_status compare_text(const struct judged *j, const struct ree_strbuf *decoded,
                                    const struct ree_receipt_text *stated, bool *is_other,
                                    struct ree_error *err) {
    struct ree_arena arena;
    char hex[65];
    ree_arena_init(&arena);
    const char *text = ree_receipt_encode_text(&arena, decoded);
    if (text) {
        struct ree_hasher *h = ree_hasher_create("ree-text/1");
        ree_hasher_update(h, text, strlen(text));
        ree_hasher_finish(h, hex);
        ree_receipt_blind(j->receipt, hex);
        *is_other = strcmp(hex, stated->text_sha256) != 0;
    }
    ree_arena_finish(&arena);
    return text ? REE_OK : ree_no_memory(err);
}

// Finds where the answer ends, and compares the texts of prompt and answer with the receipt's
// hashes.
static enum ree_status read_answer(struct judged *j, struct ree_error *err) {
    const struct ree_receipt *r = j->receipt;
    int64_t context = r->context_length ? r->context_length : j->beside->context_length;
    struct ree_answer_question question = {.receipt = r,
                                           .tokenizer = j->decodes ? j->beside->tokenizer : NULL,
                                           .ids = j->stated_run->ids,
                                           .n_prompt = j->stated_run->n_prompt,
                                           .n_answer = j->stated_run->n_output,
                                           .context_length = (uint64_t)context};
    struct ree_answer_read read;
    j->is_prompt_too_long = context && j->stated_run->n_prompt >= (size_t)context;
    enum ree_status status = ree_answer_read(&question, &read, err);
    bool is_stated = r->version == 1 || !r->is_private || r->has_salt;
    j->n_ends = read.n_until_end;
    j->reason = read.reason;
    if (j->decodes && is_stated && status == REE_OK)
        status = compare_text(j, &read.answer.prompt, &r->prompt, &j->is_other_text[0], err);
    if (j->decodes && is_stated && status == REE_OK && read.is_whole)
        status = compare_text(j, &read.answer.text, &r->output, &j->is_other_text[1], err);
    ree_answer_read_finish(&read);
    if (status != REE_INVALID) return status;
    // The tokenizer does not have one of the ids.
    ree_ruling_wrong(j->out, j->k, "its tokens: %.150s", err->message);
    return REE_OK;
}

// Compares how the answer ends with what the receipt states. Without the tokenizer, stop texts
// cannot be found, so the answer may end before its last token; then is_end_unknown is set.
static void judge_end(struct judged *j) {
    static const char interrupted[] = "interrupted";
    const char *stated = j->receipt->finish_reason;
    size_t n = j->stated_run->n_output;
    bool is_unknown = !j->decodes && j->receipt->n_stops;
    if (j->is_prompt_too_long)
        ree_ruling_wrong(j->out, j->k,
                         "its prompt leaves no position for an answer in the context");
    else if (j->n_ends < n)
        ree_ruling_wrong(j->out, j->k, "its answer continues after token %zu, which ends it",
                         j->stated_run->n_prompt + j->n_ends - 1);
    else if (is_unknown)
        j->out->is_end_unknown[j->k] = true;
    else if (!j->reason && strcmp(stated, interrupted) != 0)
        ree_ruling_wrong(j->out, j->k,
                         "its answer ends after %zu tokens, but nothing ends it there", n);
    else if (j->reason && strcmp(stated, j->reason) != 0)
        ree_ruling_wrong(j->out, j->k, "its answer ends by \"%s\", but its receipt states \"%s\"",
                         j->reason, stated);
}

static enum ree_status judge_receipt(const struct ree_hearing *hearing, const struct beside *beside,
                                     unsigned k, struct ree_ruling *out, struct ree_error *err) {
    const struct ree_stated_run *t = &hearing->stated_runs[k];
    struct judged j = {.hearing = hearing,
                       .beside = beside,
                       .k = k,
                       .stated_run = t,
                       .receipt = t->receipt,
                       .other = hearing->stated_runs[!k].receipt,
                       .out = out};
    judge_parameters(&j);
    if (!t->ids) return REE_OK;
    REE_TRY(compare_eos(j.receipt, j.other, &j.is_eos_agreed, err));
    enum ree_status status = ree_id_set_make(j.receipt->eos, j.receipt->n_eos, &j.eos, err);
    if (status == REE_OK) {
        judge_eos(&j);
        status = read_answer(&j, err);
    }
    ree_id_set_finish(&j.eos);
    REE_TRY(status);
    judge_end(&j);
    if (j.is_other_text[0] || j.is_other_text[1])
        ree_ruling_wrong(out, k, "the text of its %s is not the text of the tokens of its receipt",
                         j.is_other_text[0] ? "prompt" : "answer");
    return REE_OK;
}

enum ree_status ree_referee_receipts(const struct ree_hearing *hearing, struct ree_ruling *out,
                                     struct ree_error *err) {
    struct beside beside = {0};
    for (unsigned k = 0; k < 2; k++)
        if (!hearing->stated_runs[k].receipt ||
            hearing->stated_runs[k].receipt->kind != REE_RECEIPT_TEXT)
            return REE_OK;
    enum ree_status status = load_beside(hearing->model, &beside, err);
    for (unsigned k = 0; k < 2 && status == REE_OK; k++)
        status = judge_receipt(hearing, &beside, k, out, err);
    finish_beside(&beside);
    return status;
}

// Two receipts

// Returns whether the hashes of both receipts can be compared: none is blinded, or both are blinded
// with the same salt.
static bool share_salt(const struct ree_receipt *x, const struct ree_receipt *y) {
    return x->is_private == y->is_private &&
           (!x->is_private || strcmp(x->salt_sha256, y->salt_sha256) == 0);
}

static bool same_outputs(const struct ree_receipt *x, const struct ree_receipt *y) {
    if (x->n_outputs != y->n_outputs) return false;
    for (size_t i = 0; i < x->n_outputs; i++)
        if (strcmp(x->outputs[i].name, y->outputs[i].name) != 0 ||
            strcmp(x->outputs[i].sha256, y->outputs[i].sha256) != 0)
            return false;
    return true;
}

enum ree_status ree_referee_differences(const struct ree_receipt *x, const struct ree_receipt *y,
                                        const char *out[REE_REFEREE_MAX_DIFFERENCES], size_t *out_n,
                                        struct ree_error *err) {
    bool eos, stops;
    *out_n = 0;
    REE_TRY(compare_eos(x, y, &eos, err));
    REE_TRY(compare_stops(x, y, &stops, err));
    bool is_text = x->kind == REE_RECEIPT_TEXT && y->kind == REE_RECEIPT_TEXT;
    bool is_stated = share_salt(x, y);
    const struct {
        const char *what;
        bool same;
    } parts[REE_REFEREE_MAX_DIFFERENCES] = {
        {"kind", x->kind == y->kind},
        {"outputs", is_text || same_outputs(x, y)},
        {"tokenizer", !is_text || strcmp(x->tokenizer_sha256, y->tokenizer_sha256) == 0},
        {"max_new_tokens", x->max_new_tokens == y->max_new_tokens},
        {"stop", stops},
        {"eos", eos},
        {"context_length", x->context_length == y->context_length},
        {"finish_reason", !is_text || strcmp(x->finish_reason, y->finish_reason) == 0},
        {"text of the prompt",
         !is_stated || strcmp(x->prompt.text_sha256, y->prompt.text_sha256) == 0},
        {"tokens of the answer",
         !is_stated || strcmp(x->output.tokens_sha256, y->output.tokens_sha256) == 0},
        {"text of the answer",
         !is_stated || strcmp(x->output.text_sha256, y->output.text_sha256) == 0},
        {"logits", !is_stated || strcmp(x->logits_sha256, y->logits_sha256) == 0},
        {"request", strcmp(x->request_sha256, y->request_sha256) == 0},
        {"version of the schema", x->version == y->version},
        {"number of steps", x->trace_steps == y->trace_steps},
        {"extensions", ree_receipt_same_extensions(x, y)},
    };
    for (size_t i = 0; i < REE_REFEREE_MAX_DIFFERENCES; i++)
        if (parts[i].what && !parts[i].same) out[(*out_n)++] = parts[i].what;
    // Differences that the list above does not have. Hashes of receipts that do not share a salt
    // always differ, so they are not compared.
    if (*out_n == 0 && is_stated && strcmp(x->receipt_hash, y->receipt_hash) != 0)
        out[(*out_n)++] = "hash of the receipt";
    return REE_OK;
}
