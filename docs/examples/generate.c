// Continues a text with a language model, and prints the text while it is generated.
//
//     generate MODEL TEXT [DEVICE]
//
// MODEL is a folder with a Hugging Face checkpoint, or an ONNX file. DEVICE is cpu (the default),
// vulkan or cuda. The SHA-256 at the end is the same on every device.
#include <ree.h>

#include <stdio.h>
#include <string.h>

// Receives text as soon as later tokens cannot change it. Here there is one prompt, so `sequence`
// is always 0.
static void on_text(void *user, size_t sequence, const char *text, size_t nbytes) {
    FILE *out = user;
    (void)sequence;
    fwrite(text, 1, nbytes, out);
    fflush(out);
}

int main(int argc, char **argv) {
    struct ree_error err = {0};
    struct ree_device *device = NULL;
    struct ree_generator *generator = NULL;
    struct ree_completion *completion = NULL;
    if (argc < 3 || argc > 4) return fprintf(stderr, "usage: %s MODEL TEXT [DEVICE]\n", argv[0]), 2;

    // A device, and the model on it. Functions return 0 if they succeed; `err` has the reason if
    // they do not.
    if (ree_device_open(argc > 3 ? argv[3] : "cpu", NULL, &device, &err)) goto end;
    if (ree_generator_create(argv[1], device, NULL, &generator, &err)) goto end;

    // Options begin with their size, so that a program also runs with newer versions of the
    // library. Fields that are not set have their defaults: greedy sampling, no stop texts.
    struct ree_sampling sampling = ree_greedy;
    sampling.temperature = 0.8F;
    sampling.top_p = 0.95F;
    sampling.seed = 7; // the same seed gives the same text, on every device
    const char *stops[] = {"\n"};
    struct ree_completion_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = 64,
                                             .n_stops = 1,
                                             .stops = stops,
                                             .on_text = on_text,
                                             .user = stdout};
    fputs(argv[2], stdout);
    if (ree_complete_text(generator, argv[2], strlen(argv[2]), &options, &completion, &err))
        goto end;

    // The completion keeps the tokens, the texts and the reason why the answer ended.
    const struct ree_generation *made = ree_completion_generation(completion, 0);
    printf("\n\nfinish  %s\ntokens  %zu  SHA-256 %s\n", ree_finish_name(made->finish), made->n,
           made->tokens_sha256);
end:
    if (err.status) fprintf(stderr, "%s\n", err.message);
    // In reverse order of creation. Every destroy function accepts NULL.
    ree_completion_destroy(completion);
    ree_generator_destroy(generator);
    ree_device_destroy(device);
    return err.status ? 1 : 0;
}
