// Compiles the pipelines that a model needs on a GPU, without running them. Prints for each the
// time, and what the driver says: registers, spills, scratch memory, code size, subgroups.
//
//     pipelines MODEL [--device SPEC] [--prompt N] [--bits B] [--folder DIR] [--check]
//
//     MODEL         an ONNX file, or a folder with a language model
//     --device SPEC the Vulkan device, by its index or a part of its name (default 0)
//     --prompt N    tokens of the language model's prompt (default 64); 3 tokens are generated
//     --bits B      quantise the language model's weights to 4 or 8 bits (default 0: as they are)
//     --folder DIR  also write the SPIR-V that the driver receives
//     --check       exit with 1 if a pipeline spills vector registers, uses scratch memory,
//                   has more than MAX_WORDS words of SPIR-V, or was not specialized, or if the
//                   driver does not report spills and scratch memory
//
// On a machine without AMD's GPU, with Mesa's RADV:
//
//     export RADV_FORCE_FAMILY=navi21
//     VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/radeon_icd.x86_64.json
//
// Times are CPU time of all threads. The driver's cache makes them too short; disable it with
// MESA_SHADER_CACHE_DISABLE=1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "device/vulkan/compiler.h"
#include "ree.h"

#define MAX_PIPELINES 4096
// Compile time follows from the size of the SPIR-V; unlike time it is the same on every machine.
// The largest module, a product with an epilogue, has less than half of it.
#define MAX_WORDS 40000

struct report {
    struct ree_device *device;
    const char *folder;
    bool checks; // --check
    uint32_t n, n_wrong;
    double seconds[MAX_PIPELINES], total;
    uint64_t n_words;
};

// Returns NULL if the list does not have the name.
static const struct ree_vk_statistic *find(const struct ree_vk_statistic *list, uint32_t n,
                                           const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

// Returns 0 if the list does not have the name.
static uint64_t statistic(const struct ree_vk_statistic *list, uint32_t n, const char *name) {
    const struct ree_vk_statistic *found = find(list, n, name);
    return found ? found->value : 0;
}

static void write_module(const struct report *report, const struct ree_vk_compilation *c) {
    char path[512];
    snprintf(path, sizeof path, "%s/%03u-%s.spv", report->folder, report->n, c->module);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(c->words, 4, c->n_words, file) != c->n_words || fclose(file) != 0) {
        perror(path);
        _exit(1);
    }
}

static void compiled(void *user, const struct ree_vk_compilation *c) {
    struct report *report = user;
    struct ree_vk_statistic list[REE_VK_MAX_STATISTICS];
    const uint32_t n = ree_vk_statistics(report->device, c->pipeline, list);
    const uint64_t spilled = statistic(list, n, "Spilled VGPRs");
    const uint64_t scratch = statistic(list, n, "Scratch size");
    if (report->folder) write_module(report, c);
    printf("%-34s %6zu words %7.3f s", c->module, c->n_words, c->seconds);
    if (n)
        printf(
            "  %3llu registers, %llu spilled, %llu scratch, %llu shared, %llu code, %llu subgroups",
            (unsigned long long)statistic(list, n, "VGPRs"), (unsigned long long)spilled,
            (unsigned long long)scratch, (unsigned long long)statistic(list, n, "LDS size"),
            (unsigned long long)statistic(list, n, "Code size"),
            (unsigned long long)statistic(list, n, "Subgroups per SIMD"));
    const bool lacks_statistics = !find(list, n, "Spilled VGPRs") || !find(list, n, "Scratch size");
    const bool is_wrong = !c->is_specialized || spilled || scratch || c->n_words > MAX_WORDS ||
                          (report->checks && lacks_statistics);
    printf("%s\n", is_wrong ? "  WRONG" : "");
    report->n_wrong += is_wrong;
    report->n_words += c->n_words;
    report->total += c->seconds;
    if (report->n < MAX_PIPELINES) report->seconds[report->n] = c->seconds;
    report->n++;
}

static void fail(const struct ree_error *err) {
    fflush(stdout);
    fprintf(stderr, "pipelines: %s\n", err->message);
    _exit(1);
}

static void compile_generation(const char *model, struct ree_device *device, size_t n_prompt,
                               uint32_t bits) {
    struct ree_error err;
    struct ree_generator *generator;
    const struct ree_model_options model_options = {
        .size = sizeof model_options, .quantize_bits = bits, .quantize_block = bits ? 32 : 0};
    struct ree_generator_options how = {.size = sizeof how, .model = &model_options};
    if (ree_generator_create(model, device, &how, &generator, &err)) fail(&err);
    int32_t *ids = calloc(n_prompt, sizeof *ids);
    if (!ids) abort();
    const struct ree_prompt prompt = {ids, n_prompt};
    const struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = 3};
    struct ree_generation out;
    if (ree_generate(generator, &prompt, 1, &options, &out, NULL, &err)) fail(&err);
    ree_generation_finish(&out);
    free(ids);
    ree_generator_destroy(generator);
}

static void compile_run(const char *path, struct ree_device *device) {
    struct ree_error err;
    struct ree_model *model;
    struct ree_session *session;
    if (ree_model_load(path, NULL, &model, &err)) fail(&err);
    if (ree_session_create(model, device, NULL, &session, &err)) fail(&err);
    const size_t n = ree_model_n_inputs(model), n_outputs = ree_model_n_outputs(model);
    struct ree_tensor *inputs = calloc(n + 1, sizeof *inputs);
    struct ree_tensor *outputs = calloc(n_outputs + 1, sizeof *outputs);
    if (!inputs || !outputs) abort();
    for (size_t i = 0; i < n; i++) {
        const struct ree_port *port = ree_model_input(model, i);
        int64_t dims[REE_MAX_RANK];
        for (uint32_t d = 0; d < port->rank; d++)
            dims[d] = port->dims[d] < 0 ? 1 : port->dims[d];
        if (ree_tensor_init(&inputs[i], port->name, port->dtype, port->rank, dims, &err))
            fail(&err);
    }
    if (ree_session_run(session, inputs, n, outputs, &err)) fail(&err);
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&inputs[i]);
    for (size_t i = 0; i < n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    free(inputs);
    free(outputs);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static struct report report;
    const char *model = NULL, *which = "0";
    size_t n_prompt = 64;
    uint32_t bits = 0;
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            report.checks = true;
        else if (strcmp(argv[i], "--device") == 0 && has_value)
            which = argv[++i];
        else if (strcmp(argv[i], "--prompt") == 0 && has_value)
            n_prompt = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--bits") == 0 && has_value)
            bits = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--folder") == 0 && has_value)
            report.folder = argv[++i];
        else if (argv[i][0] != '-' && !model)
            model = argv[i];
        else
            model = "", i = argc;
    }
    if (!model || !*model || !n_prompt) {
        fprintf(stderr,
                "usage: pipelines MODEL [--device SPEC] [--prompt N] [--bits B] [--folder DIR] "
                "[--check]\n");
        return 2;
    }
    struct ree_error err;
    if (ree_vk_compiler_open(which, compiled, &report, &report.device, &err)) {
        fprintf(stderr, "pipelines: %s\n", err.message);
        fflush(NULL);
        _exit(err.status == REE_UNAVAILABLE ? 77 : 1);
    }
    printf("%s\n", ree_device_name(report.device));
    struct stat info;
    if (stat(model, &info) == 0 && S_ISDIR(info.st_mode))
        compile_generation(model, report.device, n_prompt, bits);
    else
        compile_run(model, report.device);
    const uint32_t n = report.n < MAX_PIPELINES ? report.n : MAX_PIPELINES;
    qsort(report.seconds, n, sizeof *report.seconds, by_size);
    printf("%u pipelines, %llu words: %.2f s, median %.3f s, longest %.3f s; %u wrong\n", report.n,
           (unsigned long long)report.n_words, report.total, n ? report.seconds[n / 2] : 0,
           n ? report.seconds[n - 1] : 0, report.n_wrong);
    fflush(stdout);
    _exit(report.checks && (report.n_wrong || !report.n) ? 1 : 0);
}
