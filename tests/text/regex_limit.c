// Match limits of a tokenizer's regular expressions: one limit for all searches of a call, not one
// for each position of the text, each regex or each token. A text that is only long does not reach
// the limit.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test.h"
#include "text/regex.h"

static struct ree_error err;

static struct ree_matcher *make(const char *pattern, size_t n, struct ree_regex **regex) {
    struct ree_matcher *matcher;
    struct ree_str text = {pattern, strlen(pattern)};
    enum ree_status status = ree_regex_create(text, regex, &err);
    CHECK_MSG(status == REE_OK, "%s: %s", pattern, err.message);
    REQUIRE(status == REE_OK && ree_matcher_create(&matcher, &err) == REE_OK);
    ree_matcher_add_text(matcher, n);
    return matcher;
}

// Finds all matches up to the text's end. *out_n: number of matches; *out_last: where the last
// begins.
static enum ree_status find_all(const char *pattern, const char *text, size_t n, size_t *out_n,
                                size_t *out_last) {
    struct ree_regex *regex;
    struct ree_matcher *matcher = make(pattern, n, &regex);
    enum ree_status status = REE_OK;
    bool found = true;
    *out_n = *out_last = 0;
    for (size_t from = 0, start, end; found && from<n; from = end> from ? end : from + 1) {
        status = ree_matcher_find(matcher, regex, text, n, from, &found, &start, &end, &err);
        if (status != REE_OK || !found) break;
        *out_last = start;
        ++*out_n;
    }
    ree_matcher_destroy(matcher);
    ree_regex_destroy(regex);
    return status;
}

static double cpu_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

// A pattern that never matches and takes quadratic time from each position, which is below any
// reasonable limit for one position. Without a common limit 4,000 characters took 20 seconds.
static void test_many_places(void) {
    enum { N = 4000 };
    static char text[N + 1];
    size_t n, last;
    memset(text, 'x', N);
    double start = cpu_seconds();
    CHECK(find_all("(?:x|x)*(?:x|q)*[yz]", text, N, &n, &last) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "failed at byte"), "%s", err.message);
    CHECK_MSG(cpu_seconds() - start < 10, "%.1f s", cpu_seconds() - start); // about 1 s
}

// The same cost in many searches with one matcher.
static void test_many_searches(void) {
    enum { N = 40000, ONE = 400 };
    static char text[N + 1];
    size_t n, last;
    for (size_t i = 0; i < N; i++)
        text[i] = i % ONE == ONE - 1 ? 'q' : 'x';
    double start = cpu_seconds();
    CHECK(find_all("(?:x|z)*x*[xz]*[yz]|q", text, N, &n, &last) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "failed at byte"), "%s", err.message);
    CHECK_MSG(cpu_seconds() - start < 10, "%.1f s", cpu_seconds() - start);
}

// Quadratic time, but on a text of reasonable length.
static void test_costly(void) {
    enum { N = 1000 };
    static char text[N + 1];
    size_t n, last;
    memset(text, 'x', N);
    memcpy(text + 200, "\xC3\xA9", 2); // a character of two bytes
    text[N - 1] = 'y';
    CHECK_MSG(find_all("x*x*[yz]", text, N, &n, &last) == REE_OK, "%s", err.message);
    CHECK_MSG(n == 1 && last == 202, "%zu, the last at %zu", n, last);
    text[N - 1] = 'x';
    CHECK_MSG(find_all("x*x*[yz]", text, 250, &n, &last) == REE_OK, "%s", err.message);
    CHECK(n == 0);
}

// Typical patterns of tokenizers on a long text do not reach the limit.
static void test_long_text(void) {
    enum { N = 1 << 20 };
    static const char gpt2[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    static const char words[] = "(?:a|b)+(?: |$)";
    char *text = malloc(N);
    size_t n, last;
    REQUIRE(text);
    for (size_t i = 0; i < N; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 2);
    CHECK_MSG(find_all(gpt2, text, N, &n, &last) == REE_OK, "%s", err.message);
    CHECK(n == N / 7 + 1);
    CHECK_MSG(find_all(words, text, N, &n, &last) == REE_OK, "%s", err.message);
    CHECK(n == N / 7 + 1);
    memset(text, ' ', N);
    CHECK_MSG(find_all(gpt2, text, N, &n, &last) == REE_OK, "%s", err.message);
    // Words of 20,000 letters, one step for each letter.
    for (size_t i = 0; i < N; i++)
        text[i] = i % 20000 == 19999 ? ' ' : (char)('a' + i % 2);
    CHECK_MSG(find_all(words, text, N, &n, &last) == REE_OK, "%s", err.message);
    CHECK_MSG(n == N / 20000 + 1, "%zu", n);
    free(text);
}

int main(void) {
    test_costly();
    test_long_text();
    test_many_searches();
    test_many_places();
    return test_finish();
}
