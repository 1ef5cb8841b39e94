// Trace files: a written trace is read back. A file that is truncated, extended, or has one byte
// changed is refused with a message. A writer that is killed or runs out of space leaves no file.
//
// `trace --write FOLDER` writes the small traces that are the seeds of the fuzz target.
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "trace/trace.h"
#include "test.h"

static char folder[] = "/tmp/ree_trace.XXXXXX";

static void path_of(char out[128], const char *name) {
    snprintf(out, 128, "%s/%s", folder, name);
}

// A header with three nodes, two inputs and a constant. The second node omits one of its inputs and
// one of its outputs; the third has names with characters that JSON must escape.
struct sample {
    struct ree_arena arena;
    struct ree_trace_header header;
    struct ree_trace_input inputs[2];
    struct ree_trace_constant constants[1];
    struct ree_trace_node nodes[3];
    int32_t values[3][3];
    bool omitted[3][2];
};

static void sample_init(struct sample *s) {
    memset(s, 0, sizeof *s);
    ree_arena_init(&s->arena);
    s->inputs[0] = (struct ree_trace_input){"x", -1};
    s->inputs[1] = (struct ree_trace_input){"past", 2};
    s->constants[0].name = "w";
    memset(s->constants[0].digest, 7, sizeof(ree_digest));
    s->nodes[0] = (struct ree_trace_node){.name = "first",
                                          .domain = "",
                                          .op_type = "MatMul",
                                          .opset = 17,
                                          .n_inputs = 2,
                                          .n_outputs = 1};
    s->nodes[1] = (struct ree_trace_node){.name = "",
                                          .domain = "com.microsoft",
                                          .op_type = "Attention",
                                          .opset = 1,
                                          .n_inputs = 3,
                                          .n_outputs = 2};
    s->nodes[2] = (struct ree_trace_node){.name = "\"\\\n\xc3\xa9",
                                          .domain = "",
                                          .op_type = "Relu",
                                          .opset = 23,
                                          .n_inputs = 1,
                                          .n_outputs = 1};
    static const int32_t values[3][3] = {{0, 2}, {3, -1, 1}, {4}};
    memcpy(s->values, values, sizeof values);
    s->omitted[1][1] = true;
    for (int i = 0; i < 3; i++) {
        s->nodes[i].inputs = s->values[i];
        s->nodes[i].omitted = s->omitted[i];
        memset(s->nodes[i].attributes, 16 + i, sizeof(ree_digest));
    }
    s->header.version = REE_TRACE_LATEST;
    memset(s->header.graph_sha256, 'a', 64);
    memset(s->header.weights_sha256, 'b', 64);
    s->header.numerics = "RepOps/1";
    s->header.operation_set = "reproducible";
    s->header.prefill_chunk = 64;
    s->header.n_inputs = 2;
    s->header.inputs = s->inputs;
    s->header.n_constants = 1;
    s->header.constants = s->constants;
    s->header.n_nodes = 3;
    s->header.nodes = s->nodes;
}

#define N_DIGESTS 6 // 2 inputs, then 1 + 2 + 1 outputs

static void sample_step(ree_digest step[N_DIGESTS], uint64_t number) {
    for (int i = 0; i < N_DIGESTS; i++)
        memset(step[i], (int)(number * 16 + (uint64_t)i + 1), sizeof(ree_digest));
    memset(step[4], 0, sizeof(ree_digest)); // an omitted output
}

static void write_sample(const char *path, uint64_t n_steps, ree_digest root) {
    struct ree_error err;
    struct sample s;
    struct ree_trace_writer *w;
    sample_init(&s);
    REQUIRE(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_OK);
    REQUIRE(ree_trace_writer_create(path, 0666, &s.header, &w, &err) == REE_OK);
    for (uint64_t i = 0; i < n_steps; i++) {
        ree_digest step[N_DIGESTS];
        sample_step(step, i);
        REQUIRE(ree_trace_writer_step(w, (const ree_digest *)step, &err) == REE_OK);
        CHECK(access(path, F_OK) != 0); // the file appears only when it is complete
    }
    REQUIRE(ree_trace_writer_finish(w, root, &err) == REE_OK);
    ree_arena_finish(&s.arena);
}

static void test_round(void) {
    char path[128];
    struct ree_error err;
    struct ree_trace *t;
    for (uint64_t n = 0; n < 6; n++) {
        ree_digest root, step[N_DIGESTS];
        path_of(path, "round.trace");
        write_sample(path, n, root);
        CHECK(ree_trace_load(path, &t, &err) == REE_OK);
        CHECK(t->n_steps == n && !memcmp(t->root, root, sizeof root));
        const struct ree_trace_header *h = &t->header;
        CHECK(h->n_values == 7 && h->n_step_digests == N_DIGESTS && h->prefill_chunk == 64);
        CHECK(h->inputs[0].cache_axis == -1 && h->inputs[1].cache_axis == 2);
        CHECK(!strcmp(h->nodes[2].name, "\"\\\n\xc3\xa9") && h->nodes[1].first_output == 4);
        CHECK(h->nodes[1].omitted[1] && !h->nodes[1].omitted[0]);
        CHECK(h->nodes[1].inputs[1] == REE_TRACE_OMITTED && h->nodes[1].inputs[2] == 1);
        for (uint64_t i = 0; i < n; i++) {
            sample_step(step, i);
            CHECK(!memcmp(ree_trace_step(t, i), step, sizeof step));
        }
        CHECK(ree_trace_digest_index(h, 1) == 1 && ree_trace_digest_index(h, 2) == -1);
        CHECK(ree_trace_digest_index(h, 3) == 2 && ree_trace_digest_index(h, 6) == 5);
        ree_trace_destroy(t);
        unlink(path);
    }
}

// Checks that a damaged trace is refused with a message that begins with the file's name.
static void refuse(const unsigned char *bytes, size_t n, const char *what, size_t at) {
    struct ree_error err = {.message = ""};
    struct ree_trace *t;
    enum ree_status status = ree_trace_decode(bytes, n, "spoilt.trace", &t, &err);
    CHECK_MSG(status == REE_INVALID || status == REE_UNSUPPORTED, "%s at %zu: %s", what, at,
              status == REE_OK ? "taken" : err.message);
    CHECK_MSG(!strncmp(err.message, "spoilt.trace: ", 14), "%s at %zu: %s", what, at, err.message);
    if (status == REE_OK) ree_trace_destroy(t);
}

// Returns whether the bytes are a trace with the same root: names of nodes and constants do not
// change it.
static bool has_root(const unsigned char *bytes, size_t n, const ree_digest root) {
    struct ree_error err;
    struct ree_trace *t;
    if (ree_trace_decode(bytes, n, "named.trace", &t, &err) != REE_OK) return false;
    const bool same = memcmp(t->root, root, sizeof(ree_digest)) == 0;
    ree_trace_destroy(t);
    return same;
}

// Counts the characters of the sample's names of nodes and constants.
static size_t name_characters(void) {
    struct sample s;
    sample_init(&s);
    size_t n = strlen(s.constants[0].name);
    for (int i = 0; i < 3; i++)
        n += strlen(s.nodes[i].name);
    ree_arena_finish(&s.arena);
    return n;
}

static void test_spoilt(void) {
    char path[128];
    struct ree_error err;
    ree_digest root;
    void *read;
    size_t n;
    path_of(path, "spoil.trace");
    write_sample(path, 3, root);
    REQUIRE(ree_file_read(path, &read, &n, &err) == REE_OK);
    unsigned char *bytes = malloc(n + 64);
    memcpy(bytes, read, n);
    memset(bytes + n, 0, 64);
    for (size_t size = 0; size < n; size++)
        refuse(bytes, size, "cut", size);
    for (size_t more = 1; more <= 64; more++)
        refuse(bytes, n + more, "lengthened", more);
    size_t n_named = 0;
    for (size_t at = 0; at < n; at++)
        for (int bit = 0; bit < 8; bit += 7) {
            bytes[at] ^= (unsigned char)(1 << bit);
            if (has_root(bytes, n, root))
                n_named++;
            else
                refuse(bytes, n, "flipped", at);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    CHECK_MSG(n_named > 0 && n_named <= 2 * name_characters(), "%zu flips change no root", n_named);
    // Impossible sizes.
    for (int shift = 0; shift < 64; shift += 3) {
        uint64_t value = UINT64_C(1) << shift;
        memcpy(bytes + 12, &value, sizeof value);
        refuse(bytes, n, "header of 2^", (size_t)shift);
        memcpy(bytes, read, n);
        value += 3;
        memcpy(bytes + n - 40, &value, sizeof value);
        refuse(bytes, n, "steps of 2^", (size_t)shift);
        memcpy(bytes, read, n);
    }
    free(bytes);
    free(read);
    unlink(path);
}

// Writes a trace of one step.
static void write_step(const char *path, struct sample *s, ree_digest step[N_DIGESTS]) {
    struct ree_error err;
    struct ree_trace_writer *w;
    ree_digest root;
    REQUIRE(ree_trace_header_complete(&s->header, &s->arena, &err) == REE_OK);
    REQUIRE(ree_trace_writer_create(path, 0666, &s->header, &w, &err) == REE_OK);
    REQUIRE(ree_trace_writer_step(w, (const ree_digest *)step, &err) == REE_OK);
    REQUIRE(ree_trace_writer_finish(w, root, &err) == REE_OK);
}

// A trace that is consistent in itself, but has a value for an output that its node omits.
static void test_value_of_omitted(void) {
    char path[128];
    struct ree_error err;
    struct sample s;
    struct ree_trace *t;
    ree_digest step[N_DIGESTS];
    path_of(path, "omitted.trace");
    sample_init(&s);
    sample_step(step, 0);
    memset(step[4], 9, sizeof step[4]);
    write_step(path, &s, step);
    CHECK(ree_trace_load(path, &t, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "output 1 of node 1"), "%s", err.message);
    ree_arena_finish(&s.arena);
    unlink(path);
}

// A node with many inputs (two bytes each) and many steps: a small file that would take hours to
// hash. It is refused.
static void test_much_work(void) {
    enum { N_INPUTS = 20000, N_STEPS = 20000 };
    char path[128];
    struct ree_error err;
    struct sample s;
    struct ree_trace *t;
    ree_digest step[N_DIGESTS];
    void *bytes;
    size_t n;
    sample_init(&s);
    s.nodes[0].n_inputs = N_INPUTS;
    s.nodes[0].inputs = calloc(N_INPUTS, sizeof *s.nodes[0].inputs);
    path_of(path, "wide.trace");
    sample_step(step, 0);
    write_step(path, &s, step);
    CHECK(ree_trace_load(path, &t, &err) == REE_OK);
    ree_trace_destroy(t);
    REQUIRE(ree_file_read(path, &bytes, &n, &err) == REE_OK);
    // The tail: "end\n", the number of steps, the root.
    size_t n_tail = 4 + 8 + 32, n_more = (N_STEPS - 1) * sizeof step;
    unsigned char *more = calloc(1, n + n_more);
    const uint64_t n_steps = N_STEPS;
    memcpy(more, bytes, n - n_tail);
    memcpy(more + n_more + n - n_tail, (unsigned char *)bytes + n - n_tail, n_tail);
    memcpy(more + n_more + n - 40, &n_steps, sizeof n_steps);
    CHECK(ree_trace_decode(more, n + n_more, "wide", &t, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "in 20000 steps"), "%s", err.message);
    free(more);
    free(bytes);
    free((void *)s.nodes[0].inputs);
    ree_arena_finish(&s.arena);
    unlink(path);
}

// Invalid headers are refused, each with its message.
static void test_header_text(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[]", "it is not an object"},
        {"{\"schema\":\"ree-trace/3\"}", "'schema' is neither ree-trace/2 nor ree-trace/1"},
        {"{\"schema\":\"ree-trace/1\"}", "'model' is not an object"},
        {"{\"schema\":\"ree-trace/2\",\"model\":{}}", "'graph_sha256' is not a SHA-256"},
        {"{", "header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_strbuf file;
        struct ree_error err;
        struct ree_trace *t;
        uint64_t size = strlen(cases[i].text), zero = 0;
        ree_digest root = {0};
        ree_strbuf_init(&file);
        ree_strbuf_append(&file, "ree-trace/1\n", 12);
        ree_strbuf_append(&file, (const char *)&size, 8);
        ree_strbuf_append(&file, cases[i].text, size);
        ree_strbuf_append(&file, "end\n", 4);
        ree_strbuf_append(&file, (const char *)&zero, 8);
        ree_strbuf_append(&file, (const char *)root, sizeof root);
        CHECK(ree_trace_decode(file.data, file.size, "h", &t, &err) == REE_INVALID);
        CHECK_MSG(strstr(err.message, cases[i].message), "%s: %s", cases[i].text, err.message);
        ree_strbuf_finish(&file);
    }
}

static void test_complete(void) {
    struct ree_error err;
    struct sample s;
    sample_init(&s);
    s.values[0][1] = 3; // output of the same node
    CHECK(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "node 0 ('first') reads value 3, which no earlier node computes"),
              "%s", err.message);
    s.values[0][1] = -2;
    CHECK(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_INVALID);
    s.values[0][1] = 2;
    CHECK(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_OK);
    s.nodes[0].name = "\xff";
    CHECK(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_INVALID); // not UTF-8
    s.header.n_inputs = s.header.n_constants = s.header.n_nodes = 0;
    CHECK(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_INVALID);
    ree_arena_finish(&s.arena);
}

// The digest of a cache does not depend on how its positions are divided into calls, but on their
// type and contents.
static void test_rows(void) {
    uint16_t data[2 * 5 * 3], part[2 * 5 * 3];
    for (int i = 0; i < 30; i++)
        data[i] = (uint16_t)(i * 257);
    struct ree_tensor whole = {
        .dtype = REE_F16, .rank = 3, .dims = {2, 5, 3}, .data = data, .nbytes = sizeof data};
    struct ree_cache_digest all, cut;
    ree_cache_digest_begin(&all, &whole, 1);
    ree_cache_digest_add(&all, &whole);
    CHECK(all.n_positions == 5);
    for (int first = 0; first <= 5; first++) {
        ree_cache_digest_begin(&cut, &whole, 1);
        for (int k = 0; k < 2; k++) {
            int from = k ? first : 0, n = k ? 5 - first : first;
            for (int o = 0; o < 2; o++)
                memcpy(part + o * n * 3, data + (o * 5 + from) * 3, (size_t)n * 6);
            struct ree_tensor t = whole;
            t.dims[1] = n;
            t.data = part;
            t.nbytes = (size_t)n * 12;
            ree_cache_digest_add(&cut, &t);
        }
        CHECK_MSG(cut.n_positions == 5 && !memcmp(cut.digest, all.digest, sizeof all.digest),
                  "cut at %d", first);
    }
    struct ree_tensor other = whole;
    other.dtype = REE_BF16;
    ree_cache_digest_begin(&cut, &other, 1);
    ree_cache_digest_add(&cut, &other);
    CHECK(memcmp(cut.digest, all.digest, sizeof all.digest) != 0);
    data[29] ^= 1;
    ree_cache_digest_begin(&cut, &whole, 1);
    ree_cache_digest_add(&cut, &whole);
    CHECK(memcmp(cut.digest, all.digest, sizeof all.digest) != 0);
}

// Runs in a child process: writes many steps until it is killed or reaches the file size limit.
static int write_on(const char *path, bool limited) {
    if (limited) {
        struct rlimit limit = {200000, 200000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    struct ree_error err;
    struct sample s;
    struct ree_trace_writer *w;
    ree_digest step[N_DIGESTS];
    sample_init(&s);
    sample_step(step, 1);
    if (ree_trace_header_complete(&s.header, &s.arena, &err) != REE_OK ||
        ree_trace_writer_create(path, 0666, &s.header, &w, &err) != REE_OK)
        return 3;
    for (int i = 0; i < (limited ? 4000 : 100000000); i++)
        if (ree_trace_writer_step(w, (const ree_digest *)step, &err) != REE_OK) {
            ree_trace_writer_abandon(w);
            return strstr(err.message, path) && err.status == REE_IO ? 0 : 4;
        }
    return ree_trace_writer_finish(w, NULL, &err) == REE_IO ? 0 : 5;
}

static size_t count_files(void) {
    char command[200];
    snprintf(command, sizeof command, "ls %s | wc -l", folder);
    FILE *pipe = popen(command, "r");
    int n = -1;
    REQUIRE(pipe && fscanf(pipe, "%d", &n) == 1);
    pclose(pipe);
    return (size_t)n;
}

static void test_interrupted(void) {
    char path[128];
    struct ree_error err;
    struct ree_trace_writer *w;
    struct sample s;
    int status;
    path_of(path, "interrupted.trace");
    pid_t child = fork();
    if (child == 0) _exit(write_on(path, true));
    waitpid(child, &status, 0);
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "full disk: %d", status);
    CHECK(count_files() == 0);
    for (int i = 0; i < 5; i++) {
        child = fork();
        if (child == 0) _exit(write_on(path, false));
        usleep(20000u * (unsigned)(i + 1));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK(count_files() == 0);
    }
    sample_init(&s);
    REQUIRE(ree_trace_header_complete(&s.header, &s.arena, &err) == REE_OK);
    CHECK(ree_trace_writer_create("/nonexistent/x.trace", 0666, &s.header, &w, &err) ==
          REE_NOT_FOUND);
    CHECK_MSG(strstr(err.message, "/nonexistent/x.trace: cannot create it"), "%s", err.message);
    CHECK(ree_trace_writer_create(folder, 0666, &s.header, &w, &err) == REE_IO);
    // An existing file stays until a complete one replaces it.
    ree_digest root;
    write_sample(path, 2, root);
    CHECK(ree_trace_writer_create(path, 0666, &s.header, &w, &err) == REE_OK);
    ree_trace_writer_abandon(w);
    struct ree_trace *t;
    CHECK(ree_trace_load(path, &t, &err) == REE_OK && t->n_steps == 2);
    ree_trace_destroy(t);
    ree_trace_writer_abandon(NULL);
    ree_arena_finish(&s.arena);
    unlink(path);
}

static int write_seeds(const char *to) {
    for (uint64_t n = 0; n < 3; n++) {
        char path[256];
        ree_digest root;
        snprintf(path, sizeof path, "%s/steps_%d.trace", to, (int)n);
        unlink(path);
        write_sample(path, n, root);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_seeds(argv[2]);
    REQUIRE(mkdtemp(folder));
    test_round();
    test_spoilt();
    test_value_of_omitted();
    test_much_work();
    test_header_text();
    test_complete();
    test_rows();
    test_interrupted();
    CHECK(rmdir(folder) == 0);
    return test_finish();
}
