#include "verify_report.h"

#include <cjson/cJSON.h>

#include "json.h"

int verify_exit_code(enum ree_verify_verdict verdict) {
    static const int codes[] = {0, CLI_PARTLY, CLI_PARTLY, CLI_DIFFERS, CLI_CANNOT};
    return codes[verdict];
}

static const char *outcome_name(enum ree_verify_outcome outcome) {
    static const char *const names[] = {"agrees", "differs", "not checked"};
    return names[outcome];
}

void verify_print_checks(const struct ree_verify_check *checks, size_t n, struct strbuf *out) {
    for (size_t i = 0; i < n; i++) {
        cli_append_name(out, checks[i].name);
        strbuf_printf(out, ": %s", outcome_name(checks[i].outcome));
        if (checks[i].detail[0]) strbuf_append(out, ": ", 2);
        cli_append_name(out, checks[i].detail);
        strbuf_append(out, "\n", 1);
    }
}

void verify_print_claims(const char *const (*claims)[2], size_t n, struct strbuf *out) {
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        if (!claims[i][1]) continue;
        strbuf_printf(out, "%s %s ", some ? "," : "claimed, not checked:", claims[i][0]);
        cli_append_name(out, claims[i][1]);
        some = true;
    }
    if (some) strbuf_append(out, "\n", 1);
}

void verify_add_checks(const struct ree_verify_check *checks, size_t n, struct cJSON *root,
                       struct strbuf *out) {
    cJSON *array = cJSON_AddArrayToObject(root, "checks");
    for (size_t i = 0; i < n; i++) {
        cJSON *check = cJSON_CreateObject();
        cJSON_AddStringToObject(check, "name", checks[i].name);
        cJSON_AddStringToObject(check, "outcome", outcome_name(checks[i].outcome));
        if (checks[i].detail[0]) cJSON_AddStringToObject(check, "detail", checks[i].detail);
        json_put(array, check);
    }
    if (!array) out->failed = true;
}
