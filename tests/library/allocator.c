// A program that gives libree an allocator of its own. Each block has a header, so the allocator
// knows its size and notices pointers that it did not give. The runs have the same results as with
// malloc, nothing is lost from one run to the next, and if one allocation fails, a run fails with
// REE_NO_MEMORY (or gives its result, if it can do without).
//
//     allocator SAMPLES
#include <ree.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ree_error err;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, err.message);
    exit(1);
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (status == REE_OK) status = (call);                                                     \
    } while (0)

#define LIVE UINT64_C(0x6C6976656C697665)
#define DEAD UINT64_C(0x6465616464656164)

// In front of each block; the block ends with a copy of `mark`.
struct header {
    uint64_t mark;
    size_t size;
};
_Static_assert(sizeof(struct header) == 16, "keeps the alignment of malloc");

static _Atomic long n_calls, n_live, fails_at; // fails_at 0: never
static int user_data;

static void check(void *user, const void *memory) {
    const struct header *h = (const struct header *)memory - 1;
    uint64_t end;
    if (user != &user_data) fail("another user pointer");
    if (h->mark != LIVE) fail("a pointer that was not allocated here, or was released already");
    memcpy(&end, (const char *)memory + h->size, sizeof end);
    if (end != LIVE) fail("a block was written beyond its end");
}

static bool has_memory(void) {
    long at = atomic_load(&fails_at);
    return atomic_fetch_add(&n_calls, 1) + 1 != at;
}

static void *allocate(void *user, size_t size) {
    if (user != &user_data || size == 0) fail("allocate");
    if (!has_memory()) return NULL;
    struct header *h = malloc(sizeof *h + size + sizeof(uint64_t));
    if (!h) return NULL;
    const uint64_t end = LIVE;
    *h = (struct header){LIVE, size};
    memset(h + 1, 0xAB, size);
    memcpy((char *)(h + 1) + size, &end, sizeof end);
    atomic_fetch_add(&n_live, 1);
    return h + 1;
}

static void release(void *user, void *memory) {
    if (!memory) fail("release of NULL");
    check(user, memory);
    ((struct header *)memory - 1)->mark = DEAD;
    atomic_fetch_sub(&n_live, 1);
    free((struct header *)memory - 1);
}

static void *reallocate(void *user, void *memory, size_t size) {
    if (!memory || size == 0) fail("reallocate");
    check(user, memory);
    void *moved = allocate(user, size);
    if (!moved) return NULL;
    const size_t old = ((struct header *)memory - 1)->size;
    memcpy(moved, memory, old < size ? old : size);
    release(user, memory);
    return moved;
}

static char path[4096];
static const char *sample(const char *samples, const char *name) {
    snprintf(path, sizeof path, "%s/%s", samples, name);
    return path;
}

static char *copy(const char *s) {
    char *own = ree_alloc(strlen(s) + 1);
    return own ? strcpy(own, s) : NULL;
}

static enum ree_status run_digits(const char *samples, struct ree_device *device, char hex[65]) {
    struct ree_model *model = NULL;
    struct ree_session *session = NULL;
    struct ree_tensor image = {0}, outputs[1];
    enum ree_status status = REE_OK;
    TRY(ree_model_load(sample(samples, "digits.onnx"), NULL, &model, &err));
    TRY(ree_session_create(model, device, NULL, &session, &err));
    TRY(ree_tensor_load(&image, sample(samples, "seven.npy"), &err));
    if (status == REE_OK) image.name = copy(ree_model_input(model, 0)->name);
    if (status == REE_OK && !image.name) status = REE_NO_MEMORY;
    TRY(ree_session_run(session, &image, 1, outputs, &err));
    if (status == REE_OK) {
        ree_tensors_sha256(outputs, 1, hex);
        ree_tensor_finish(&outputs[0]);
    }
    ree_tensor_finish(&image);
    ree_session_destroy(session);
    ree_model_destroy(model);
    return status;
}

static enum ree_status run_stories(const char *samples, struct ree_device *device, char hex[65]) {
    static const char text[] = "Once upon a time";
    struct ree_generator *generator = NULL;
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_generation out = {0};
    struct ree_prompt prompt = {0};
    int32_t *ids = NULL;
    char *decoded = NULL;
    size_t nbytes;
    enum ree_status status = REE_OK;
    const struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = 4};
    TRY(ree_tokenizer_load(sample(samples, "stories"), &tokenizer, &err));
    TRY(ree_tokenizer_encode(tokenizer, text, strlen(text), REE_ADD_SPECIAL, &ids, &prompt.n,
                             &err));
    prompt.ids = ids;
    TRY(ree_generator_create(sample(samples, "stories"), device, NULL, &generator, &err));
    TRY(ree_generate(generator, &prompt, 1, &options, &out, NULL, &err));
    TRY(ree_tokenizer_decode(tokenizer, out.ids, out.n, 0, &decoded, &nbytes, &err));
    if (status == REE_OK) memcpy(hex, out.tokens_sha256, 65);
    ree_free(decoded);
    ree_free(ids);
    ree_generation_finish(&out);
    ree_generator_destroy(generator);
    ree_tokenizer_destroy(tokenizer);
    return status;
}

// Reads a text and a file with a conversation as prompts.
static enum ree_status run_prompts(const struct ree_tokenizer *tokenizer) {
    static const char line[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\\u0000b\"}]}\n";
    char name[] = "/tmp/ree-allocator-XXXXXX";
    const int fd = mkstemp(name);
    if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line)) fail("a temporary file");
    close(fd);
    struct ree_prompts *prompts = NULL;
    const struct ree_prompts_options options = {
        .size = sizeof options, .tokenizer = tokenizer, .chat_family = "chatml"};
    enum ree_status status = ree_prompts_create(&options, &prompts, &err);
    TRY(ree_prompts_add_text(prompts, "Once", 4, &err));
    TRY(ree_prompts_add_file(prompts, name, &err));
    ree_prompts_destroy(prompts);
    unlink(name);
    return status;
}

static enum ree_status run_receipt(const char *samples, struct ree_device *device) {
    struct ree_generator *generator = NULL;
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_completion *completion = NULL;
    struct ree_receipt *receipt = NULL, *read = NULL;
    struct ree_verification *verification = NULL;
    const struct ree_completion_options options = {.size = sizeof options, .max_new_tokens = 4};
    enum ree_status status = REE_OK;
    TRY(ree_tokenizer_load(sample(samples, "stories"), &tokenizer, &err));
    TRY(run_prompts(tokenizer));
    TRY(ree_generator_create(sample(samples, "stories"), device, NULL, &generator, &err));
    TRY(ree_complete_text(generator, "Once", 4, &options, &completion, &err));
    TRY(ree_receipt_create_text(completion, NULL, &receipt, &err));
    if (status == REE_OK) {
        const char *text = ree_receipt_json(receipt);
        status =
            text ? ree_receipt_parse(text, strlen(text), "receipt", &read, &err) : REE_NO_MEMORY;
    }
    TRY(ree_verify(read, sample(samples, "stories"), device, NULL, NULL, NULL, &verification,
                   &err));
    if (status == REE_OK && ree_verification_verdict(verification) != REE_VERIFIED)
        fail("the receipt is not verified");
    ree_verification_destroy(verification);
    ree_receipt_destroy(read);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(completion);
    ree_generator_destroy(generator);
    ree_tokenizer_destroy(tokenizer);
    return status;
}

static enum ree_status run(const char *samples, char digits[65], char stories[65]) {
    const struct ree_device_options options = {
        .size = sizeof options, .n_threads = 2, .cache_dir = ""};
    struct ree_device *device = NULL;
    enum ree_status status = ree_device_open("cpu", &options, &device, &err);
    TRY(run_digits(samples, device, digits));
    TRY(run_stories(samples, device, stories));
    TRY(run_receipt(samples, device));
    ree_device_destroy(device);
    return status;
}

int main(int argc, char **argv) {
    char digits[65], stories[65], again[2][65];
    if (argc != 2) return 2;
    struct ree_allocator allocator = {allocate, reallocate, release, &user_data};
    struct ree_allocator incomplete = allocator;
    incomplete.realloc = NULL;
    if (ree_set_allocator(&incomplete, &err) != REE_INVALID) fail("an incomplete allocator");
    if (ree_set_allocator(&allocator, &err) != REE_OK) fail("ree_set_allocator");
    if (run(argv[1], digits, stories) != REE_OK) fail("run");
    if (ree_set_allocator(NULL, &err) != REE_INVALID) fail("an allocator set too late");
    // What the first run leaves are records that last as long as the process.
    const long left = atomic_load(&n_live), first = atomic_load(&n_calls);
    if (run(argv[1], again[0], again[1]) != REE_OK) fail("a second run");
    if (strcmp(digits, again[0]) != 0 || strcmp(stories, again[1]) != 0) fail("other results");
    const long n = atomic_load(&n_calls) - first;
    if (n < 500) fail("few allocations");
    if (atomic_load(&n_live) != left) fail("a run leaves blocks");
    long n_failed = 0, n_trials = 0;
    for (long at = 1; at <= n; at += n / 150 + 1) {
        atomic_store(&n_calls, 0);
        atomic_store(&fails_at, at);
        memset(&err, 0, sizeof err);
        enum ree_status status = run(argv[1], again[0], again[1]);
        atomic_store(&fails_at, 0);
        n_trials++;
        n_failed += status != REE_OK;
        if (status == REE_OK && (strcmp(digits, again[0]) != 0 || strcmp(stories, again[1]) != 0))
            fail("other results without memory");
        if (status != REE_OK && status != REE_NO_MEMORY) fail(ree_status_name(status));
        if (atomic_load(&n_live) != left) fail("a failed run leaves blocks");
    }
    if (n_failed < n_trials / 2) fail("exhausted memory was hardly noticed");
    printf("digits %s\nstories %s\n%ld allocations; %ld of %ld runs failed with one missing\n",
           digits, stories, n, n_failed, n_trials);
    return 0;
}
