// Ranks without MPI: processes of this program, connected by sockets. The logits equal those of one
// process. A rank refuses impossible requests and impossible data from another rank.
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "generate/generator.h"
#include "ranks/codec.h"
#include "ranks/ranks.h"
#include "test.h"

#define MAX_RANKS 4
#define MAX_BATCH 2
#define CHUNK 4
#define N_TOKENS 9
#define HIDDEN 128 // hidden size of the sample model

static const char *model;
static const int32_t tokens[N_TOKENS] = {1, 80, 90, 100, 7, 9, 5, 6, 11};

static struct ree_generator *open_generator(uint32_t rank, uint32_t n_ranks) {
    const struct ree_device_options one_thread = {.size = sizeof one_thread, .n_threads = 1};
    const struct ree_rank own = {rank, n_ranks > 1 ? n_ranks : 0};
    struct ree_generator_options options = {
        .size = sizeof options, .max_batch = MAX_BATCH, .prefill_chunk = CHUNK, .rank = &own};
    struct ree_device *device;
    struct ree_generator *g;
    struct ree_error err;
    REQUIRE(ree_device_open("cpu", &one_thread, &device, &err) == REE_OK);
    enum ree_status status = ree_generator_create(model, device, &options, &g, &err);
    if (status != REE_OK) fprintf(stderr, "%s\n", err.message);
    REQUIRE(status == REE_OK);
    return g;
}

// Runs two sequences, first in chunks of CHUNK tokens, then token by token. Writes all logits to
// *out.
static enum ree_status generate(struct ree_generator *g, float **out, size_t *out_n,
                                struct ree_error *err) {
    *out = NULL;
    *out_n = 0;
    REE_TRY(ree_generator_begin(g, 0, MAX_BATCH, N_TOKENS, err));
    for (int64_t at = 0; at < N_TOKENS;) {
        int32_t ids[MAX_BATCH * CHUNK];
        size_t length = at < 2 * CHUNK ? CHUNK : 1;
        int64_t starts[MAX_BATCH] = {at, at}, rows[MAX_BATCH] = {0, (int64_t)length - 1};
        for (size_t b = 0; b < MAX_BATCH; b++)
            for (size_t i = 0; i < length; i++)
                ids[b * length + i] = tokens[(at + (int64_t)i + 2 * (int64_t)b) % N_TOKENS];
        struct ree_step step = {MAX_BATCH, length, ids, starts, 1, rows};
        struct ree_tensor logits = {0};
        REE_TRY(ree_generator_submit(g, 0, &step, err));
        REE_TRY(ree_generator_collect(g, 0, &logits, err));
        *out = realloc(*out, *out_n * sizeof(float) + logits.nbytes);
        REQUIRE(*out);
        memcpy(*out + *out_n, logits.data, logits.nbytes);
        *out_n += logits.nbytes / sizeof(float);
        ree_tensor_finish(&logits);
        at += (int64_t)length;
    }
    return REE_OK;
}

// Runs a rank from its start to the end of the run. *out is set on rank 0 only.
static enum ree_status be_rank(struct ree_transport *t, float **out, size_t *out_n,
                               struct ree_error *err) {
    const struct ree_ranks_options options = {.size = sizeof options, .agreed = ""};
    uint32_t rank = ree_transport_rank(t);
    struct ree_generator *g = open_generator(rank, ree_transport_n_ranks(t));
    struct ree_ranks *ranks;
    REE_TRY(ree_ranks_join(t, g, &options, &ranks, err));
    if (rank > 0) return ree_ranks_serve(ranks, err);
    REE_TRY(generate(g, out, out_n, err));
    REE_TRY(ree_ranks_end(ranks, err));
    REE_TRY(ree_ranks_release(ranks, err));
    ree_ranks_destroy(ranks);
    return REE_OK;
}

static struct ree_transport *connect(struct ree_link **links, uint32_t n, uint32_t rank,
                                     double deadline) {
    const struct ree_transport_options options = {.deadline = deadline};
    struct ree_transport *t;
    struct ree_error err;
    // The other ranks' sockets belong to the other ranks' processes.
    for (uint32_t i = 0; i < n; i++)
        if (i != rank) links[i]->ops->close(links[i]);
    REQUIRE(ree_transport_create(links[rank], &options, &t, &err) == REE_OK);
    return t;
}

static void make_links(uint32_t n, struct ree_link **links) {
    struct ree_error err;
    fflush(NULL);
    REQUIRE(ree_link_local_create(n, links, &err) == REE_OK);
}

// All ranks close their links together. MPI ensures this by itself. With sockets, a rank that still
// waits for its last message would report the closed connection of another rank as a failure.
static atomic_uint *n_ended; // in memory shared by the ranks' processes

static void wait_for_all_to_end(uint32_t n) {
    atomic_fetch_add(n_ended, 1);
    for (int ms = 0; ms < 60000 && atomic_load(n_ended) < n; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

// Compares the logits of rank 0 with the expected ones. Every rank is a child process, rank 0
// included: the test process computes nothing, because its thread pool would not exist in forked
// children.
static bool is_right(const float *got, size_t n_got, const float *expected, size_t n_expected) {
    return n_got == n_expected && memcmp(got, expected, n_got * sizeof *got) == 0;
}

static void test_bits(uint32_t n, const float *expected, size_t n_expected) {
    struct ree_link *links[MAX_RANKS];
    pid_t pids[MAX_RANKS];
    make_links(n, links);
    atomic_store(n_ended, 0);
    for (uint32_t r = 0; r < n; r++) {
        pids[r] = fork();
        if (pids[r] != 0) continue;
        struct ree_error err = {.message = ""};
        struct ree_transport *t = connect(links, n, r, 60);
        float *got = NULL;
        size_t n_got = 0;
        enum ree_status status = be_rank(t, &got, &n_got, &err);
        if (status != REE_OK) fprintf(stderr, "rank %u: %s\n", r, err.message);
        wait_for_all_to_end(n);
        ree_transport_close(t);
        _exit(status != REE_OK || (r == 0 && !is_right(got, n_got, expected, n_expected)));
    }
    for (uint32_t r = 0; r < n; r++)
        links[r]->ops->close(links[r]);
    for (uint32_t r = 0; r < n; r++) {
        int code;
        CHECK(waitpid(pids[r], &code, 0) == pids[r]);
        CHECK_MSG(WIFEXITED(code) && WEXITSTATUS(code) == 0, "rank %u of %u: %x", r, n,
                  (unsigned)code);
    }
}

// Starts rank 1 of 2. This test is rank 0 and accepts any handshake.
static pid_t start_server(struct ree_transport **out) {
    struct ree_link *links[2];
    struct ree_message handshake;
    struct ree_error err = {.message = ""};
    make_links(2, links);
    pid_t pid = fork();
    if (pid == 0) {
        struct ree_transport *t = connect(links, 2, 1, 60);
        enum ree_status status = be_rank(t, NULL, NULL, &err);
        if (status != REE_OK) ree_transport_fail(t, err.message, 1);
        _exit(status != REE_OK);
    }
    *out = connect(links, 2, 0, 60);
    const struct ree_expected expected = {1u << REE_MESSAGE_HANDSHAKE, 1 << 20, 0};
    CHECK_MSG(ree_transport_receive(*out, 1, &expected, &handshake, &err) == REE_OK, "%s",
              err.message);
    ree_message_finish(&handshake);
    CHECK(ree_transport_send(*out, 1, REE_MESSAGE_WELCOME, 0, 0, NULL, 0, &err) == REE_OK);
    return pid;
}

static void send_numbers(struct ree_transport *t, enum ree_message_kind kind, uint32_t slot,
                         const int64_t *numbers, size_t n) {
    struct ree_part part = {numbers, n * sizeof *numbers};
    struct ree_error err;
    CHECK(ree_transport_send(t, 1, kind, 0, slot, &part, 1, &err) == REE_OK);
}

// Checks that rank 1 answers with a refusal instead of logits, and exits with an error.
static void expect_refusal(struct ree_transport *t, pid_t pid, const char *what,
                           const char *words) {
    const struct ree_expected expected = {1u << REE_MESSAGE_LOGITS | 1u << REE_MESSAGE_POSITIONS,
                                          1 << 26, 0};
    struct ree_message m;
    struct ree_error err = {.message = ""};
    int code;
    enum ree_status status = ree_transport_receive(t, 1, &expected, &m, &err);
    CHECK_MSG(status != REE_OK && strstr(err.message, words), "%s: %s, expected '%s'", what,
              err.message, words);
    if (status == REE_OK) ree_message_finish(&m);
    ree_transport_close(t);
    kill(pid, status == REE_OK ? SIGKILL : 0);
    CHECK_MSG(waitpid(pid, &code, 0) == pid && WIFEXITED(code) && WEXITSTATUS(code) == 1,
              "%s: it ends with an error, not by a signal: %x", what, (unsigned)code);
}

static void test_bounds(int64_t context) {
    const struct {
        const char *what;
        enum ree_message_kind kind;
        uint32_t slot;
        int64_t numbers[3];
        size_t n;
        const char *words;
    } cases[] = {
        {"batch", REE_MESSAGE_BEGIN, 0, {MAX_BATCH + 1, 8, 0}, 2, "a cache slot of 3 sequences"},
        {"huge batch", REE_MESSAGE_BEGIN, 0, {65536, 8, 0}, 2, "a cache slot of 65536 sequences"},
        {"no batch", REE_MESSAGE_BEGIN, 0, {0, 8, 0}, 2, "a cache slot of 0 sequences"},
        {"context", REE_MESSAGE_BEGIN, 0, {1, context + 1, 0}, 2, "a cache slot of 1 sequences"},
        {"negative", REE_MESSAGE_BEGIN, 0, {1, -1, 0}, 2, "a cache slot of 1 sequences"},
        {"set", REE_MESSAGE_BEGIN, 1, {1, 8, 0}, 2, "impossible cache slot"},
        {"rows before a set", REE_MESSAGE_READ, 0, {0, 0, 1}, 3, "cache positions without a name"},
        {"step before a set", REE_MESSAGE_STEP, 0, {0, 0, 1}, 3, "has not begun"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_transport *t;
        pid_t pid = start_server(&t);
        send_numbers(t, cases[i].kind, cases[i].slot, cases[i].numbers, cases[i].n);
        expect_refusal(t, pid, cases[i].what, cases[i].words);
    }
}

// The faults of a step that is otherwise correct.
enum fault {
    TOO_LONG,
    TOO_FAR,
    OTHER_RANK,
    OTHER_TYPE,
    OTHER_WIDTH,
    OTHER_BATCH,
    OTHER_LENGTH,
    TOO_MANY_ROWS,
    N_FAULTS
};

static void test_steps(void) {
    static const char *const words[N_FAULTS] = {"size of a step differs",
                                                "exceeds the positions",
                                                "not the one that the model requires",
                                                "expected float32",
                                                "not the one that the model requires",
                                                "sequences and tokens",
                                                "sequences and tokens",
                                                "positions beyond the end"};
    for (int fault = 0; fault < N_FAULTS; fault++) {
        struct ree_transport *t;
        pid_t pid = start_server(&t);
        const int64_t slot[2] = {1, 8}, too_many[3] = {0, 4, 5};
        int32_t ids[CHUNK + 1] = {1, 2, 3, 4, 5};
        int64_t start = fault == TOO_FAR ? 6 : 0, row = 0;
        struct ree_step step = {1, fault == TOO_LONG ? CHUNK + 1 : CHUNK, ids, &start, 1, &row};
        int64_t dims[4] = {1, (int64_t)step.length, HIDDEN, 1};
        struct ree_tensor value = {0};
        struct ree_boundary boundary = {1, &value};
        struct ree_encoded encoded;
        struct ree_error err;
        if (fault == OTHER_BATCH) dims[0] = 2;
        if (fault == OTHER_LENGTH) dims[1] = CHUNK - 1;
        if (fault == OTHER_WIDTH) dims[2]++;
        REQUIRE(ree_tensor_init(&value, "x", fault == OTHER_TYPE ? REE_I32 : REE_F32,
                                fault == OTHER_RANK ? 4 : 3, dims, &err) == REE_OK);
        send_numbers(t, REE_MESSAGE_BEGIN, 0, slot, 2);
        if (fault == TOO_MANY_ROWS) {
            send_numbers(t, REE_MESSAGE_READ, 0, too_many, 3);
        } else {
            REQUIRE(ree_encode_step(&step, &boundary, &encoded, &err) == REE_OK);
            CHECK(ree_transport_send(t, 1, REE_MESSAGE_STEP, 0, 0, encoded.parts, encoded.n_parts,
                                     &err) == REE_OK);
            ree_encoded_finish(&encoded);
        }
        ree_tensor_finish(&value);
        expect_refusal(t, pid, words[fault], words[fault]);
    }
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    model = argv[1];
    n_ended =
        mmap(NULL, sizeof *n_ended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(n_ended != MAP_FAILED);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct ree_generator *g = open_generator(0, 1);
        struct ree_error err;
        float *logits;
        size_t n;
        REQUIRE(generate(g, &logits, &n, &err) == REE_OK);
        int64_t facts[3] = {(int64_t)n, g->info.context_length, 0};
        bool ok = write(ends[1], facts, sizeof facts) == (ssize_t)sizeof facts;
        for (size_t at = 0; ok && at < n * sizeof *logits;) {
            ssize_t k = write(ends[1], (char *)logits + at, n * sizeof *logits - at);
            ok = k > 0;
            at += (size_t)k;
        }
        _exit(!ok);
    }
    close(ends[1]);
    int64_t facts[3] = {0};
    FILE *file = fdopen(ends[0], "rb");
    REQUIRE(file && fread(facts, sizeof facts, 1, file) == 1 && facts[0] > 0);
    float *expected = malloc((size_t)facts[0] * sizeof *expected);
    REQUIRE(expected &&
            fread(expected, sizeof *expected, (size_t)facts[0], file) == (size_t)facts[0]);
    fclose(file);
    waitpid(pid, NULL, 0);
    test_bounds(facts[1]);
    test_steps();
    for (uint32_t n = 2; n <= MAX_RANKS; n += 2)
        test_bits(n, expected, (size_t)facts[0]);
    free(expected);
    return test_finish();
}
