// Runs folders of ONNX test cases (operator tests, and models with expected outputs) on a device.
// On request also runs them on a second device and in variants, which must give the same bytes.
#include "case.h"
#include "compare.h"
#include "coverage.h"
#include "exceptions.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: onnx_cases [options] FOLDER...\n"
    "  --device DEVICE      the device that runs the cases (default cpu)\n"
    "  --compare-with DEV   also run on this device, and compare bytes\n"
    "  --variants           also run without fusion and without folding, and compare bytes\n"
    "  --exceptions FILE    the list of cases that are expected to fail\n"
    "  --coverage FILE      fail if a passing case is not covered by FILE, or if no case passes\n"
    "                       for an entry of FILE; the latter is not checked if only some cases\n"
    "                       run\n"
    "  --write-coverage FILE  write the coverage of the passing cases\n"
    "  --only GLOB          only cases with matching names\n"
    "  --sample N/D         only cases whose name hashes to less than N modulo D\n"
    "  --default-sample N/D the same; REE_TEST_SAMPLE, if it is set, has priority\n"
    "  --threads N, --isa ISA, --validation\n"
    "  --hashes             print one SHA-256 for each data set\n"
    "  --verbose            print every case\n";

struct options {
    const char *device, *second, *exceptions, *only, *coverage, *write_coverage;
    uint32_t sample_n, sample_d;
    struct ree_device_options device_options;
    bool variants, hashes, verbose;
};

enum outcome { PASSED, FAILED, BAD_DATA };

struct counts {
    size_t passed, failed, expected, unexpected, bad_data, cpu_alone;
};

struct runner {
    const struct options *options;
    struct ree_device *device, *second;
    struct exceptions exceptions;
    struct counts counts;
    struct coverage coverage; // of cases that passed or are for the CPU alone
    struct coverage run;      // of all cases whose expected output is correct
};

static uint64_t fnv1a(const char *s) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return hash;
}

static void finish_outputs(struct ree_tensor *outputs, size_t n) {
    for (size_t i = 0; outputs && i < n; i++)
        ree_tensor_finish(&outputs[i]);
    free(outputs);
}

// Runs the model once; returns NULL with a message on failure.
static struct ree_tensor *run_once(struct ree_model *model, struct ree_device *device, bool no_fuse,
                                   const struct case_data *data, struct ree_error *err) {
    struct ree_session *session = NULL;
    struct ree_session_options options = {.size = sizeof options, .no_fuse = no_fuse};
    struct ree_tensor *outputs = calloc(ree_model_n_outputs(model) + 1, sizeof *outputs);
    if (!outputs) abort();
    if (ree_session_create(model, device, &options, &session, err) != REE_OK ||
        ree_session_run(session, data->inputs, data->n_inputs, outputs, err) != REE_OK) {
        free(outputs);
        outputs = NULL;
    }
    ree_session_destroy(session);
    return outputs;
}

// Runs a variant and compares its bytes with those of the first run.
static bool check_variant(struct ree_model *model, struct ree_device *device, bool no_fuse,
                          const struct case_data *data, const struct ree_tensor *want,
                          const char *what, struct ree_error *err) {
    size_t n = ree_model_n_outputs(model);
    struct ree_tensor *got = run_once(model, device, no_fuse, data, err);
    bool same = got != NULL;
    char reason[REE_ERROR_MAX / 2];
    if (!got) snprintf(reason, sizeof reason, "%.500s", err->message);
    for (size_t i = 0; same && i < n; i++)
        same = compare_bytes(&got[i], &want[i], reason, sizeof reason);
    if (!same) snprintf(err->message, sizeof err->message, "%s: %s", what, reason);
    finish_outputs(got, n);
    return same;
}

static bool check_variants(const struct runner *r, const char *path, struct ree_model *model,
                           const struct case_data *data, const struct ree_tensor *outputs,
                           struct ree_error *err) {
    if (r->second &&
        !check_variant(model, r->second, false, data, outputs, ree_device_name(r->second), err))
        return false;
    if (!r->options->variants) return true;
    if (!check_variant(model, r->device, true, data, outputs, "without fusion", err)) return false;
    struct ree_model *unfolded;
    struct ree_model_options options = {.size = sizeof options, .no_fold = true};
    if (ree_model_load(path, &options, &unfolded, err) != REE_OK) return false;
    bool same = check_variant(unfolded, r->device, false, data, outputs, "without folding", err);
    ree_model_destroy(unfolded);
    return same;
}

static enum outcome run_set(const struct runner *r, const char *base, const char *path, size_t set,
                            struct ree_model *model, struct ree_error *err) {
    struct case_data data;
    if (case_load(base, set, model, &data, err) != REE_OK) return FAILED;
    if (data.contradicts_model) {
        case_finish(&data);
        return BAD_DATA;
    }
    size_t n = ree_model_n_outputs(model);
    struct ree_tensor *outputs = run_once(model, r->device, false, &data, err);
    bool ok = outputs != NULL;
    if (ok && data.n_outputs != n) {
        snprintf(err->message, sizeof err->message, "%zu outputs, expected %zu", n, data.n_outputs);
        ok = false;
    }
    for (size_t i = 0; ok && i < n; i++) {
        char reason[REE_ERROR_MAX / 2];
        ok = compare_with_oracle(&outputs[i], &data.outputs[i], reason, sizeof reason);
        if (!ok)
            snprintf(err->message, sizeof err->message, "output '%.200s' %s", outputs[i].name,
                     reason);
    }
    ok = ok && check_variants(r, path, model, &data, outputs, err);
    if (ok && r->options->hashes) {
        char hex[65];
        ree_tensors_sha256(outputs, n, hex);
        printf("%s  %s %zu\n", hex, base, set);
    }
    finish_outputs(outputs, n);
    case_finish(&data);
    return ok ? PASSED : FAILED;
}

static enum outcome run_case(const struct runner *r, const char *base, struct ree_error *err) {
    char path[4096];
    case_model_path(base, path, sizeof path);
    struct ree_model *model;
    if (ree_model_load(path, NULL, &model, err) != REE_OK) return FAILED;
    size_t n_sets = case_n_sets(base);
    enum outcome outcome = n_sets > 0 ? PASSED : FAILED;
    if (n_sets == 0) snprintf(err->message, sizeof err->message, "no test_data_set_0");
    for (size_t set = 0; outcome == PASSED && set < n_sets; set++)
        outcome = run_set(r, base, path, set, model, err);
    ree_model_destroy(model);
    return outcome;
}

static const struct exception *find_exception(const struct runner *r, const char *base,
                                              const char *name) {
    char path[4096];
    struct ree_model *model;
    case_model_path(base, path, sizeof path);
    struct ree_error err = {0};
    if (ree_model_inspect(path, &model, &err) != REE_OK) model = NULL;
    const struct exception *found = exceptions_find(&r->exceptions, base, name, model, err.message);
    ree_model_destroy(model);
    return found;
}

static void cover(struct coverage *coverage, const char *base) {
    char path[4096];
    case_model_path(base, path, sizeof path);
    coverage_add(coverage, path);
}

// Devices lack float64 functions and report it. This is not a failure and says nothing about the
// CPU.
static bool for_cpu_alone(const struct ree_error *err) {
    return err->status == REE_UNSUPPORTED && strstr(err->message, "runs only on the CPU");
}

// Prints the digest as well, because a "case" rule of exceptions.h needs it.
static void print_failure(const char *base, const char *name, const char *reason) {
    char digest[CASE_DIGEST_LENGTH + 1];
    case_digest(base, digest);
    printf("FAILED    %s@%s: %s\n", name, digest, reason);
}

static void account(struct runner *r, const char *root, const char *name) {
    char base[4000];
    snprintf(base, sizeof base, "%s/%s", root, name);
    const struct exception *rule = find_exception(r, base, name);
    struct ree_error err = {0};
    enum outcome outcome = run_case(r, base, &err);
    bool may_be_bad = rule && strcmp(rule->kind, "data") == 0;
    bool is_one_release = rule && strcmp(rule->kind, "case") == 0;
    if (may_be_bad && outcome != BAD_DATA) rule = NULL;
    if (outcome == PASSED || (outcome == FAILED && !is_one_release)) cover(&r->run, base);
    if (outcome == BAD_DATA && !may_be_bad) {
        r->counts.failed++;
        print_failure(base, name, "its data contradicts the model, and no rule says so");
    } else if (outcome == BAD_DATA) {
        r->counts.bad_data++;
        if (r->options->verbose) printf("bad data  %s\n", name);
    } else if (outcome == PASSED && !rule) {
        r->counts.passed++;
        cover(&r->coverage, base);
        if (r->options->verbose) printf("pass      %s\n", name);
    } else if (outcome == PASSED) {
        r->counts.unexpected++;
        printf("PASSED    %s, though expected to fail (%s:%s): %s\n", name, rule->kind,
               rule->pattern, rule->reason);
    } else if (!rule && for_cpu_alone(&err)) {
        r->counts.cpu_alone++;
        cover(&r->coverage, base);
        if (r->options->verbose) printf("cpu alone %s: %s\n", name, err.message);
    } else if (rule) {
        r->counts.expected++;
        if (r->options->verbose) printf("expected  %s (%s): %s\n", name, rule->reason, err.message);
    } else {
        r->counts.failed++;
        print_failure(base, name, err.message);
    }
    fflush(stdout);
}

static bool selected(const struct options *o, const char *name) {
    return (!o->only || fnmatch(o->only, name, 0) == 0) && fnv1a(name) % o->sample_d < o->sample_n;
}

static bool parse_sample(struct options *o, const char *text) {
    return sscanf(text, "%u/%u", &o->sample_n, &o->sample_d) == 2 && o->sample_d > 0 &&
           o->sample_n > 0;
}

// Returns the index of the first folder, or 0 after printing the usage.
static int parse(int argc, char **argv, struct options *o) {
    *o = (struct options){.device = "cpu"};
    const char *usual = "1/1";
    int i = 1;
    bool ok = true;
    for (; ok && i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--variants") == 0) {
            o->variants = true;
        } else if (strcmp(name, "--hashes") == 0) {
            o->hashes = true;
        } else if (strcmp(name, "--verbose") == 0) {
            o->verbose = true;
        } else if (strcmp(name, "--validation") == 0) {
            o->device_options.validation = true;
        } else {
            i++;
            ok = value != NULL;
            if (!ok) break;
            if (strcmp(name, "--device") == 0)
                o->device = value;
            else if (strcmp(name, "--compare-with") == 0)
                o->second = value;
            else if (strcmp(name, "--exceptions") == 0)
                o->exceptions = value;
            else if (strcmp(name, "--coverage") == 0)
                o->coverage = value;
            else if (strcmp(name, "--write-coverage") == 0)
                o->write_coverage = value;
            else if (strcmp(name, "--only") == 0)
                o->only = value;
            else if (strcmp(name, "--threads") == 0)
                o->device_options.n_threads = (uint32_t)atoi(value);
            else if (strcmp(name, "--isa") == 0)
                o->device_options.cpu_isa = value;
            else if (strcmp(name, "--default-sample") == 0)
                usual = value;
            else
                ok = strcmp(name, "--sample") == 0 && parse_sample(o, value);
        }
    }
    const char *sample = getenv("REE_TEST_SAMPLE");
    if (ok && o->sample_d == 0) ok = parse_sample(o, sample ? sample : usual);
    if (ok && i < argc) return i;
    fputs(usage, stderr);
    return 0;
}

// Opens a device; exits with 77 if the machine has no device of this kind.
static struct ree_device *open_device(const char *spec, const struct ree_device_options *options) {
    struct ree_error err;
    struct ree_device *device;
    enum ree_status status = ree_device_open(spec, options, &device, &err);
    if (status == REE_OK) return device;
    printf("%s: %s\n", status == REE_UNAVAILABLE ? "skipped" : "FAILED", err.message);
    exit(status == REE_UNAVAILABLE ? 77 : 1);
}

int main(int argc, char **argv) {
    struct options options;
    int first = parse(argc, argv, &options);
    if (!first) return 2;
    struct runner r = {.options = &options};
    if (options.exceptions && !exceptions_read(&r.exceptions, options.exceptions)) return 2;
    options.device_options.size = sizeof options.device_options;
    r.device = open_device(options.device, &options.device_options);
    if (options.second) r.second = open_device(options.second, NULL);
    printf("on %s%s%s\n", ree_device_name(r.device), r.second ? ", bytes compared with " : "",
           r.second ? ree_device_name(r.second) : "");

    size_t n_selected = 0;
    bool complete = !options.only && options.sample_n >= options.sample_d;
    for (int i = first; i < argc; i++) {
        char **names;
        size_t n;
        if (!cases_list(argv[i], &names, &n)) {
            printf("%s: no such folder\n", argv[i]);
            continue;
        }
        for (size_t j = 0; j < n; j++)
            if (selected(&options, names[j])) {
                n_selected++;
                account(&r, argv[i], names[j]);
            }
        cases_free(names, n);
    }
    bool covered = true;
    if (options.write_coverage) covered = coverage_write(&r.coverage, options.write_coverage);
    if (options.coverage)
        covered &= coverage_check(&r.coverage, complete ? &r.run : NULL, options.coverage);
    coverage_finish(&r.coverage);
    coverage_finish(&r.run);
    ree_device_destroy(r.second);
    ree_device_destroy(r.device);
    exceptions_finish(&r.exceptions);
    if (n_selected == 0) {
        printf("skipped: no test cases here\n");
        return 77;
    }
    printf("%zu cases: %zu passed, %zu failed as listed, %zu failed, %zu passed unexpectedly, "
           "%zu with contradictory data, %zu for the CPU alone\n",
           n_selected, r.counts.passed, r.counts.expected, r.counts.failed, r.counts.unexpected,
           r.counts.bad_data, r.counts.cpu_alone);
    return r.counts.failed || r.counts.unexpected || !covered;
}
