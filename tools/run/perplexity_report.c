#include "perplexity_report.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

static double rate(const struct perplexity_report *r, const struct ree_prediction *p) {
    return p->seconds > 0 ? (double)r->results->n_tokens / p->seconds : 0;
}

static uint64_t weight_bytes(const struct perplexity_side *side) {
    return ree_model_weight_bytes(ree_generator_model(side->generator));
}

static void append_side(const struct perplexity_report *r, const char *title,
                        const struct perplexity_side *side, const struct ree_prediction *p,
                        struct strbuf *out) {
    strbuf_printf(out, "%-8s", title);
    cli_append_name(out, side->path);
    if (side->quantize.bits)
        strbuf_printf(out, ", quantised to %u bits", (unsigned)side->quantize.bits);
    strbuf_printf(out,
                  "\n"
                  "  perplexity  %.6f +/- %.6f\n"
                  "  weights     %.2f MiB\n"
                  "  speed       %.2f tokens/s\n",
                  p->perplexity, p->perplexity_error, (double)weight_bytes(side) / 1048576,
                  rate(r, p));
}

static void append_comparison(const struct ree_perplexity *p, struct strbuf *out) {
    strbuf_printf(out,
                  "model compared with against\n"
                  "  ln(quotient of perplexities)  %.6f +/- %.6f\n"
                  "  divergence  %.6g +/- %.6g (mean), %.6g (maximum)\n"
                  "  quantiles   ",
                  p->log_ratio, p->log_ratio_error, p->divergence, p->divergence_error,
                  p->max_divergence);
    for (size_t k = 0; k < REE_DIVERGENCE_QUANTILES; k++)
        strbuf_printf(out, "%s%.6g (%g %%)", k ? ", " : "", p->divergence_quantiles[k].value,
                      p->divergence_quantiles[k].permille / 10.0);
    strbuf_printf(out, "\n  same most likely token  %.3f %% (%zu of %zu)\n",
                  100.0 * (double)p->n_same_top / (double)p->n_scored, p->n_same_top, p->n_scored);
}

void perplexity_report_text(const struct perplexity_report *r, struct strbuf *out) {
    const struct ree_perplexity *p = r->results;
    append_side(r, "model", r->model, &p->model, out);
    if (r->against) {
        append_side(r, "against", r->against, &p->against, out);
        append_comparison(p, out);
    }
    strbuf_printf(out, "\ntext    ");
    cli_append_name(out, r->text);
    strbuf_printf(out,
                  ", %zu tokens%s\n"
                  "scored  %zu tokens, in %zu window%s of %s%zu\n"
                  "scores  SHA-256 %s\n"
                  "device  %s\n",
                  r->n_tokens, r->has_bos ? " with BOS" : "", p->n_scored, p->n_windows,
                  p->n_windows == 1 ? "" : "s", r->scored == REE_SCORED_ALL ? "at most " : "",
                  p->context < r->n_tokens ? p->context : r->n_tokens, p->scores_sha256, r->device);
    if (r->operation_set != REE_REPRODUCIBLE)
        strbuf_printf(out, "operation set %s: other devices may give other bits\n",
                      ree_operation_set_name(r->operation_set));
}

static cJSON *side_json(const struct perplexity_report *r, const struct perplexity_side *side,
                        const struct ree_prediction *p, const char *why_not_causal) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "path", side->path);
    if (side->quantize.bits) {
        cJSON_AddNumberToObject(object, "quantize", (double)side->quantize.bits);
        cJSON_AddNumberToObject(object, "block",
                                side->quantize.block ? (double)side->quantize.block : 32);
    }
    // JSON has no infinity and no NaN; cJSON writes null.
    cJSON_AddNumberToObject(object, "perplexity", p->perplexity);
    cJSON_AddNumberToObject(object, "perplexity_error", p->perplexity_error);
    cJSON_AddNumberToObject(object, "nll", p->nll);
    cJSON_AddNumberToObject(object, "nll_error", p->nll_error);
    cJSON_AddNumberToObject(object, "weight_bytes", (double)weight_bytes(side));
    cJSON_AddNumberToObject(object, "seconds", p->seconds);
    cJSON_AddNumberToObject(object, "tokens_per_second", rate(r, p));
    if (*why_not_causal) cJSON_AddStringToObject(object, "why_not_causal", why_not_causal);
    return object;
}

static cJSON *comparison_json(const struct ree_perplexity *p) {
    cJSON *object = cJSON_CreateObject(), *quantiles;
    cJSON_AddNumberToObject(object, "log_ratio", p->log_ratio);
    cJSON_AddNumberToObject(object, "log_ratio_error", p->log_ratio_error);
    cJSON_AddNumberToObject(object, "divergence", p->divergence);
    cJSON_AddNumberToObject(object, "divergence_error", p->divergence_error);
    cJSON_AddNumberToObject(object, "max_divergence", p->max_divergence);
    quantiles = cJSON_AddObjectToObject(object, "divergence_quantiles");
    for (size_t k = 0; k < REE_DIVERGENCE_QUANTILES; k++) {
        char name[16];
        snprintf(name, sizeof name, "%g", p->divergence_quantiles[k].permille / 1000.0);
        cJSON_AddNumberToObject(quantiles, name, p->divergence_quantiles[k].value);
    }
    cJSON_AddNumberToObject(object, "same_top", (double)p->n_same_top);
    return object;
}

void perplexity_report_json(const struct perplexity_report *r, struct strbuf *out) {
    const struct ree_perplexity *p = r->results;
    cJSON *root = cJSON_CreateObject();
    json_put_as(root, "model", side_json(r, r->model, &p->model, p->why_not_causal));
    if (r->against) {
        json_put_as(root, "against",
                    side_json(r, r->against, &p->against, p->against_why_not_causal));
        json_put_as(root, "comparison", comparison_json(p));
    }
    cJSON_AddStringToObject(root, "text", r->text);
    cJSON_AddStringToObject(root, "tokenizer_sha256", r->tokenizer_sha256);
    cJSON_AddNumberToObject(root, "text_tokens", (double)r->n_tokens);
    cJSON_AddBoolToObject(root, "bos", r->has_bos);
    cJSON_AddStringToObject(root, "scored", r->scored == REE_SCORED_ALL ? "all" : "half");
    cJSON_AddNumberToObject(root, "context", (double)p->context);
    if (r->stride) cJSON_AddNumberToObject(root, "stride", (double)r->stride);
    cJSON_AddNumberToObject(root, "windows", (double)p->n_windows);
    cJSON_AddNumberToObject(root, "run_tokens", (double)p->n_tokens);
    cJSON_AddNumberToObject(root, "scored_tokens", (double)p->n_scored);
    cJSON_AddNumberToObject(root, "vocab_size", (double)p->vocab_size);
    cJSON_AddStringToObject(root, "scores_sha256", p->scores_sha256);
    cJSON_AddStringToObject(root, "device", r->device);
    cJSON_AddStringToObject(root, "operation_set", ree_operation_set_name(r->operation_set));
    cli_append_json(out, root, true);
}
