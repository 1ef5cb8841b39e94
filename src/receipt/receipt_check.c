// Compares the statements of a receipt with what follows from its own contents. Runs no model.
#include "receipt/receipt_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct report {
    struct ree_receipt_finding *findings;
    size_t n;
    bool ok;
};

__attribute__((format(printf, 4, 5))) static void add(struct report *report, const char *what,
                                                      bool ok, const char *format, ...) {
    struct ree_receipt_finding *finding = &report->findings[report->n++];
    finding->what = what;
    finding->ok = ok;
    finding->unknown = false;
    va_list args;
    va_start(args, format);
    vsnprintf(finding->detail, sizeof finding->detail, format, args);
    va_end(args);
    report->ok = report->ok && ok;
}

static void compare(struct report *report, const char *what, const char *computed,
                    const char *stated) {
    struct ree_receipt_finding *finding = &report->findings[report->n++];
    ree_finding_compare(what, computed, stated, finding);
    report->ok = report->ok && finding->ok;
}

static void check_body(struct report *report, const struct ree_receipt *receipt) {
    struct ree_error err;
    ree_digest digest;
    char hex[65];
    if (ree_receipt_body_digest(receipt, digest, &err) != REE_OK) {
        add(report, "receipt", false, "%s", err.message);
        report->findings[report->n - 1].unknown = err.status == REE_NO_MEMORY;
        return;
    }
    ree_hex(digest, hex);
    compare(report, "receipt", hex, receipt->receipt_hash);
}

static void check_text(struct report *report, const struct ree_receipt_text *text,
                       const char *what_tokens, const char *what_text) {
    char hex[65];
    if (text->tokens) {
        ree_tokens_sha256(text->tokens, text->n_tokens, hex);
        compare(report, what_tokens, hex, text->tokens_sha256);
    }
    if (text->text) {
        ree_receipt_text_sha256(text->text, hex);
        compare(report, what_text, hex, text->text_sha256);
    }
}

static bool is_eos(const struct ree_receipt *receipt, int32_t id) {
    for (size_t i = 0; i < receipt->n_eos; i++)
        if (receipt->eos[i] == id) return true;
    return false;
}

// Checks for numbers that no run can produce together.
static void check_counts(struct report *report, const struct ree_receipt *r) {
    uint64_t prompt = r->prompt.n_tokens, output = r->output.n_tokens;
    uint64_t context = (uint64_t)r->context_length;
    if (r->max_new_tokens && output > r->max_new_tokens)
        add(report, "counts", false, "%llu output tokens, but the maximum is %llu",
            (unsigned long long)output, (unsigned long long)r->max_new_tokens);
    else if (context && prompt >= context)
        add(report, "counts", false,
            "%llu prompt tokens leave no position for an answer in a context of %llu",
            (unsigned long long)prompt, (unsigned long long)context);
    else if (context && output > context - prompt)
        add(report, "counts", false,
            "%llu prompt and %llu output tokens do not fit into a context of %llu",
            (unsigned long long)prompt, (unsigned long long)output, (unsigned long long)context);
    else if (r->finish_reason && strcmp(r->finish_reason, "eos") == 0 &&
             (output == 0 || (r->output.tokens && !is_eos(r, r->output.tokens[output - 1]))))
        add(report, "counts", false,
            "the output ended with \"eos\", but its last token is not an eos token");
    else
        add(report, "counts", true, "%llu prompt tokens, %llu output tokens",
            (unsigned long long)prompt, (unsigned long long)output);
}

static void check_parameters(struct report *report, const struct ree_receipt *receipt) {
    if (receipt->version == 1) return; // version 1 allows any values of parameters without effect
    bool ok = ree_receipt_sampling_is_canonical(&receipt->sampling);
    add(report, "parameters", ok, "%s",
        ok ? "parameters without effect have their neutral values"
           : "temperature is 0, so top_k, min_p and seed must be 0 and top_p 1, because they have "
             "no effect");
}

size_t ree_receipt_check(const struct ree_receipt *receipt,
                         struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS],
                         bool *out_ok) {
    struct report report = {.findings = findings, .ok = true};
    check_body(&report, receipt);
    if (receipt->kind == REE_RECEIPT_TEXT) {
        check_text(&report, &receipt->prompt, "prompt tokens", "prompt text");
        check_text(&report, &receipt->output, "output tokens", "output text");
        check_counts(&report, receipt);
        check_parameters(&report, receipt);
    }
    if (receipt->is_signed) {
        struct ree_receipt_finding *finding = &findings[report.n++];
        ree_finding_signature(receipt->receipt_hash, receipt->public_key, receipt->signature,
                              finding);
        report.ok = report.ok && finding->ok;
    }
    *out_ok = report.ok;
    return report.n;
}
