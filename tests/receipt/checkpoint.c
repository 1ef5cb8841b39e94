// Checkpoint files: a written file is read back; every truncated or altered file is refused.
#include "receipt/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "test.h"

static const int32_t first[] = {5, 6, 7, 8}, second[] = {1, 2};
static unsigned char caches[3][32];
static const char *const stops[] = {"\xc3\xa9", "end"};
static const int32_t eos[] = {2};

static struct ree_text_checkpoint sample(struct ree_snapshot sequences[3], char hash[65]) {
    struct ree_text_checkpoint c = {.logits_hash = true, .n = 3, .sequences = sequences};
    ree_receipt_init(&c.run);
    memset(hash, 'a', 64);
    hash[64] = 0;
    memcpy(c.run.graph_sha256, hash, 65);
    memcpy(c.run.weights_sha256, hash, 65);
    c.run.sampling.temperature = 0.7f;
    c.run.sampling.seed = UINT64_MAX;
    c.run.max_new_tokens = 9;
    c.run.stops = stops;
    c.run.n_stops = 2;
    c.run.eos = eos;
    c.run.n_eos = 1;
    caches[0][0] = caches[2][31] = 1; // caches[1] stays zero: unknown
    sequences[0] =
        (struct ree_snapshot){.ids = first, .n_prompt = 2, .n = 4, .n_caches = 3, .caches = caches};
    sequences[1] = (struct ree_snapshot){.ids = second,
                                         .n_prompt = 1,
                                         .n = 2,
                                         .is_done = true,
                                         .finish = REE_FINISH_EOS,
                                         .logits_sha256 = hash};
    sequences[2] = (struct ree_snapshot){.ids = second, .n_prompt = 2, .n = 2};
    return c;
}

static void count(void *user, const char *line) {
    if (user) *(const char **)user = strstr(line, "temperature") ? "temperature" : "else";
}

static size_t differences(const struct ree_text_checkpoint *a, const struct ree_text_checkpoint *b,
                          const char **last) {
    struct ree_error err;
    size_t n = 99;
    CHECK(ree_text_checkpoint_compare(a, b, count, last, &n, &err) == REE_OK);
    return n;
}

int main(void) {
    struct ree_snapshot sequences[3];
    struct ree_text_checkpoint c, read;
    struct ree_error err;
    char hash[65], path[] = "/tmp/ree-checkpoint-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    c = sample(sequences, hash);
    REQUIRE(ree_text_checkpoint_write(&c, path, &err) == REE_OK);
    void *bytes;
    size_t n;
    REQUIRE(ree_file_read(path, &bytes, &n, &err) == REE_OK);
    REQUIRE(ree_text_checkpoint_load(path, &read, &err) == REE_OK);
    CHECK(differences(&read, &c, NULL) == 0);
    CHECK(!ree_text_checkpoint_is_done(&read));
    REQUIRE(read.n == 3 && read.sequences[0].n_caches == 3 && read.sequences[2].n_caches == 0);
    CHECK(memcmp(read.sequences[0].caches, caches, sizeof caches) == 0);
    for (size_t i = 0; i < 3; i++) {
        const struct ree_snapshot *is = &read.sequences[i], *was = &sequences[i];
        CHECK(is->n == was->n && is->n_prompt == was->n_prompt && is->is_done == was->is_done);
        CHECK(memcmp(is->ids, was->ids, was->n * sizeof *was->ids) == 0);
    }
    CHECK(read.sequences[1].finish == REE_FINISH_EOS &&
          strcmp(read.sequences[1].logits_sha256, hash) == 0);
    // Compared with checkpoints of other runs.
    const char *last = NULL;
    c.run.sampling.temperature = 0.8f;
    CHECK(differences(&read, &c, &last) == 1 && last && strcmp(last, "temperature") == 0);
    c.run.n_eos = 0;
    c.logits_hash = false;
    sequences[2].n_prompt = 1;
    memcpy(c.run.tokenizer_sha256, hash, sizeof hash);
    CHECK(differences(&read, &c, &last) == 5);
    c.n = 2;
    CHECK(differences(&read, &c, &last) == 5);
    ree_text_checkpoint_finish(&read);
    // A file truncated anywhere, or with any one bit changed, is refused.
    char *text = bytes;
    for (size_t i = 0; i + 1 < n; i++) {
        char *cut = malloc(i + 1);
        REQUIRE(cut);
        memcpy(cut, text, i);
        CHECK(ree_text_checkpoint_decode(cut, i, "cut", &read, &err) == REE_INVALID);
        ree_text_checkpoint_finish(&read);
        free(cut);
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            CHECK(ree_text_checkpoint_decode(text, n, "changed", &read, &err) == REE_INVALID);
            ree_text_checkpoint_finish(&read);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    }
    // So is a file with an unknown field, which no hash covers.
    struct ree_strbuf more;
    ree_strbuf_init(&more);
    ree_strbuf_printf(&more, "{\"x\":1,%.*s", (int)n - 1, text + 1);
    CHECK(ree_text_checkpoint_decode(more.data, more.size, "more", &read, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "x is unknown"), "%s", err.message);
    ree_text_checkpoint_finish(&read);
    ree_strbuf_finish(&more);
    free(bytes);
    unlink(path);
    return test_finish();
}
