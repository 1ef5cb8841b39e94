// Structs that begin with their size: an older, an equal, a newer caller.
#include "base/options.h"
#include "test.h"

#include <string.h>

struct options {
    size_t size;
    uint32_t number;
    uint32_t added; // by this version
    const char *text;
};

static enum ree_status read(struct options *out, const void *options, struct ree_error *err) {
    memset(out, 0xAB, sizeof *out);
    return ree_options_read(out, sizeof *out, options, "ree_test_options", err);
}

static void test_options(void) {
    struct options out, given = {sizeof given, 7, 8, "text"};
    struct ree_error err = {.message = ""};
    static const struct options defaults = {.size = sizeof defaults};
    CHECK(read(&out, NULL, &err) == REE_OK && memcmp(&out, &defaults, sizeof out) == 0);
    CHECK(read(&out, &given, &err) == REE_OK && memcmp(&out, &given, sizeof out) == 0);
    // An older program: `added` and `text` are other memory of the caller, which must not be read.
    given.size = offsetof(struct options, added);
    CHECK(read(&out, &given, &err) == REE_OK);
    CHECK(out.size == sizeof out && out.number == 7 && out.added == 0 && !out.text);
    unsigned char *exact = malloc(sizeof(size_t)); // AddressSanitizer sees a byte too many
    REQUIRE(exact);
    const size_t least = sizeof least;
    memcpy(exact, &least, sizeof least);
    CHECK(read(&out, exact, &err) == REE_OK && memcmp(&out, &defaults, sizeof out) == 0);
    free(exact);

    static const size_t wrong[] = {0, 1, sizeof(size_t) - 1, sizeof given + 100000, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        given.size = wrong[i];
        CHECK(read(&out, &given, &err) == REE_INVALID);
        CHECK(strstr(err.message, "set it to sizeof(struct ree_test_options)"));
        CHECK(read(&out, &given, NULL) == REE_INVALID);
    }
    given.size = 0;
    read(&out, &given, &err);
    CHECK_MSG(strcmp(err.message, "options.size is 0: set it to sizeof(struct ree_test_options)") ==
                  0,
              "%s", err.message);

    // A newer program: the fields that this version does not know must be zero.
    struct {
        struct options known;
        uint64_t unknown[2];
    } newer = {.known = {sizeof newer, 7, 8, "text"}};
    CHECK(read(&out, &newer, &err) == REE_OK && out.size == sizeof out && out.number == 7);
    for (size_t at = 0; at < sizeof newer.unknown; at++) {
        memset(newer.unknown, 0, sizeof newer.unknown);
        ((unsigned char *)newer.unknown)[at] = 1;
        CHECK(read(&out, &newer, &err) == REE_UNSUPPORTED);
        CHECK_MSG(strstr(err.message, "ree_test_options"), "%s", err.message);
    }
}

static void test_stats(void) {
    const struct options stats = {sizeof stats, 7, 8, "text"};
    struct ree_error err = {.message = ""};
    unsigned char out[sizeof stats + 32];
    for (size_t size = sizeof size; size < sizeof out; size++) {
        memset(out, 0xAB, sizeof out);
        memcpy(out, &size, sizeof size);
        CHECK(ree_stats_check(out, sizeof stats, "ree_test_stats", &err) == REE_OK);
        ree_stats_fill(out, &stats, sizeof stats);
        size_t n = size < sizeof stats ? size : sizeof stats;
        CHECK(memcmp(out, &size, sizeof size) == 0);
        CHECK(memcmp(out + sizeof size, (const char *)&stats + sizeof size, n - sizeof size) == 0);
        for (size_t i = n; i < sizeof out; i++)
            CHECK_MSG(out[i] == (i < size ? 0 : 0xAB), "byte %zu with size %zu", i, size);
    }
    static const size_t none;
    CHECK(ree_stats_check(&none, sizeof stats, "ree_test_stats", &err) == REE_INVALID);
    CHECK(strcmp(err.message, "stats.size is 0: set it to sizeof(struct ree_test_stats)") == 0);
}

int main(void) {
    test_options();
    test_stats();
    return test_finish();
}
