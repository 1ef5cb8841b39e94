// Plan files: valid ones are read, invalid ones are refused with a reason, and corruption does no
// harm.
#include "graph/partition/plan_file.h"
#include "test.h"
#include "splitmix.h"

#include <string.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "{\"schema\": \"ree-plan/1\", \"graph_sha256\": \"" HASH "\", "

static void check_plan(const char *text, const char *expected) {
    char **ends;
    size_t n;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_plan_parse(text, strlen(text), HASH, &ends, &n, &err);
    CHECK_MSG(status == REE_OK, "%s: %s", text, err.message);
    if (status != REE_OK) return;
    char got[256] = "";
    for (size_t i = 0; i < n; i++) {
        strcat(got, ends[i]);
        strcat(got, ";");
    }
    CHECK_MSG(strcmp(got, expected) == 0, "%s: got %s, expected %s", text, got, expected);
    ree_plan_ends_free(ends, n);
}

static void check_no_plan(const char *text, const char *message) {
    char **ends;
    size_t n;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_plan_parse(text, strlen(text), HASH, &ends, &n, &err);
    CHECK_MSG(status != REE_OK && !ends && n == 0, "%s is read", text);
    CHECK_MSG(strstr(err.message, message), "%s: '%s' is not in '%s'", text, message, err.message);
}

static void test_plans(void) {
    check_plan(HEAD "\"stages\": [{}]}", "");
    check_plan(HEAD "\"stages\": [{\"ends_with\": \"a\"}, {}]}", "a;");
    check_plan(HEAD
               "\"n_partitions\": \"many\", \"stages\": [{\"ends_with\": \"a\", \"nodes\": -1},"
               " {\"ends_with\": \"b\", \"cut\": 7}, {\"weight_bytes\": []}], \"x\": {}}",
               "a;b;");
    check_plan(HEAD "\"stages\": [{\"ends_with\": \"a\"}, {\"ends_with\": null}]}", "a;");
    check_no_plan("", "it is not JSON");
    check_no_plan("[1]", "it is not a JSON object");
    check_no_plan("{}", "has no 'schema'");
    check_no_plan("{\"schema\": 1}", "'schema' is not a string");
    check_no_plan("{\"schema\": \"ree-plan/2\"}", "its schema is 'ree-plan/2'");
    check_no_plan("{\"schema\": \"ree-plan/1\"}",
                  "'graph_sha256', the hash of the graph, is missing");
    check_no_plan("{\"schema\": \"ree-plan/1\", \"graph_sha256\": \"00\"}",
                  "for another model: its graph has the SHA-256 00, this model's has 0123");
    check_no_plan(HEAD "\"stages\": 1}", "'stages' is not a list");
    check_no_plan(HEAD "\"stages\": []}", "'stages' is not a list with at least one stage");
    check_no_plan(HEAD "\"stages\": [1]}", "stage 0 is not an object");
    check_no_plan(
        HEAD "\"stages\": [{}, {}]}",
        "stage 0: 'ends_with', the name of the value that its last node computes, is missing");
    check_no_plan(HEAD "\"stages\": [{\"ends_with\": \"\"}, {}]}",
                  "'ends_with', the name of the value");
    check_no_plan(HEAD "\"stages\": [{\"ends_with\": 3}, {}]}", "'ends_with' is not a string");
    check_no_plan(HEAD "\"stages\": [{\"ends_with\": \"a\"}]}", "stage 0 is the last");
}

static void test_too_many_stages(void) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, "%s\"stages\": [", HEAD);
    for (int i = 0; i < REE_MAX_STAGES; i++)
        ree_strbuf_printf(&text, "{\"ends_with\": \"v%d\"},", i);
    ree_strbuf_printf(&text, "{}]}");
    check_no_plan(text.data, "at most 1024");
    ree_strbuf_finish(&text);
}

static struct splitmix rng = {2463534242};
static uint32_t next_random(void) {
    return (uint32_t)(splitmix_next(&rng) >> 32);
}

// The bytes are in a block of exactly their size, so that a sanitizer sees a read past the end.
static bool parse_copy(const char *text, size_t size) {
    char *copy = malloc(size ? size : 1);
    REQUIRE(copy);
    memcpy(copy, text, size);
    char **ends;
    size_t n;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_plan_parse(copy, size, HASH, &ends, &n, &err);
    CHECK_MSG(status == REE_OK || (err.message[0] && !ends), "an error without a message");
    if (status == REE_OK) ree_plan_ends_free(ends, n);
    free(copy);
    return status == REE_OK;
}

static void test_damaged_plans(void) {
    static const char good[] =
        HEAD "\"n_partitions\": 3, \"stages\": [{\"ends_with\": \"a\\u00e9\", \"nodes\": 12, "
             "\"cut\": {\"values\": [\"a\"], \"reason\": \"one live value\"}}, "
             "{\"ends_with\": \"b\"}, {\"share\": 0.25}]}";
    char text[sizeof good];
    long n_read = 0, n_refused = 0;
    CHECK(parse_copy(good, sizeof good - 1));
    for (size_t n = 0; n + 1 < sizeof good; n++)
        CHECK(!parse_copy(good, n));
    for (int i = 0; i < 40000; i++) {
        memcpy(text, good, sizeof good);
        for (uint32_t k = 1 + next_random() % 3; k > 0; k--) {
            size_t at = next_random() % (sizeof good - 1), from = next_random() % sizeof good;
            text[at] = i % 2 ? (char)next_random() : good[from];
        }
        *(parse_copy(text, sizeof good - 1) ? &n_read : &n_refused) += 1;
    }
    CHECK_MSG(n_read > 100 && n_refused > 100, "%ld read, %ld refused", n_read, n_refused);
    printf("%ld damaged plans read, %ld refused\n", n_read, n_refused);
}

int main(void) {
    test_plans();
    test_too_many_stages();
    test_damaged_plans();
    return test_finish();
}
