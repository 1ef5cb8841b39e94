// ree-prove: command line, result table and proof record.
#include "prove.h"

#include "base/float_env.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "ree-prove [OPTION]...\n"
    "Compares the elementary functions with an independent oracle on every float.\n"
    "\n"
    "  --function NAME   only this function (may be given several times; default: all)\n"
    "  --form FORM       c: the form that the CPU runs (default); integer: the form that shaders\n"
    "                    run\n"
    "  --from X --to Y   range of arguments, as bits in hexadecimal, extended to slices of 2^24\n"
    "  --state FILE      save finished slices in FILE, and continue from there\n"
    "  --threads N       number of threads (default: one per core)\n"
    "  --record FILE     write the table of both forms as Markdown, from --state; computes\n"
    "                    nothing\n"
    "  --hard FILE       write the hard cases of --state as test vectors; computes nothing\n"
    "  --check FILE      check that the table in FILE is complete and about the present sources;\n"
    "                    computes nothing\n"
    "  --list            print the names of the functions\n"
    "\n"
    "Exit status: 0 no mismatches, 1 mismatches, 2 wrong usage\n";

struct selection {
    bool chosen[64];
    bool any;
};

static bool choose(struct selection *selection, const char *name) {
    for (size_t i = 0; i < prove_n_functions; i++) {
        if (strcmp(prove_functions[i].name, name) == 0) {
            selection->chosen[i] = true;
            selection->any = true;
            return true;
        }
    }
    fprintf(stderr, "ree-prove: unknown function '%s'; --list prints the names\n", name);
    return false;
}

static bool parse_bits(const char *text, uint32_t *out) {
    char *end;
    unsigned long long v = strtoull(text, &end, 16);
    if (*text == '\0' || *end != '\0' || v > UINT32_MAX) {
        fprintf(stderr, "ree-prove: '%s' is not a 32-bit hexadecimal number\n", text);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

// Printed in the record, together with a digest of the choice: a proof of a form that is not in use
// proves nothing.
#define CHOICE "Which form, with which exceptions, is behind each `ree_op_*`: %s"

static int write_record(const char *path, struct prove_options options) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "ree-prove: cannot open %s for writing\n", path);
        return 2;
    }
    fprintf(file,
            "# The exhaustive proof\n\n"
            "Every one-argument elementary function of RepOps/1, compared with an independent\n"
            "oracle on all 2^32 arguments: the C library's double function, trusted to 2^-45\n"
            "relative, rounded to binary32; where that error leaves the rounding in doubt, MPFR\n"
            "decides. Made by `ree-prove --state FILE` and `ree-prove --state FILE --record\n"
            "src/repops/PROOF.md`; `tools/prove` is the program.\n\n"
            "Form `c` is what the CPU backend runs (`ree_op_*` of `scalar/ops.h`), made of double\n"
            "or integer arithmetic, or the processor's own; form `integer` is what shaders run\n"
            "(`ree_int_*`, `ree_soft_sqrt`), here as C; `both` where they are one. Devices whose\n"
            "fma is computed in float64 run exp, tanh, sigmoid, sin, cos and tan of form `c`\n"
            "(`fast.glsl` and `fast_trig.glsl` of `shaders/include`).\n"
            "Sources: the first 64 bits of a SHA-256 over the sources the form is made of,\n"
            "comments and blanks removed (`tools/prove/CMakeLists.txt`). A row that is not yet\n"
            "complete for the present sources shows fewer arguments than 4294967296.\n\n"
            "| function | form | made of | arguments | mismatches | settled by MPFR | nearest tie, "
            "ulp | sources |\n"
            "|---|---|---|---:|---:|---:|---:|---|\n");
    uint64_t inputs = 0, mismatches = 0;
    int rows = 0, n_complete = 0;
    for (size_t i = 0; i < prove_n_functions; i++) {
        // If a function's C form is its integer form, one walk covers both.
        bool same = strcmp(prove_functions[i].bodies[PROVE_C], "integer") == 0;
        for (int form = PROVE_C; form <= (same ? PROVE_C : PROVE_INTEGER); form++) {
            struct prove_counts counts;
            options.function = i;
            options.form = (enum prove_form)form;
            bool complete = prove_read_state(&options, &counts);
            fprintf(file, "| %s | %s | %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | ",
                    prove_functions[i].name,
                    same              ? "both"
                    : form == PROVE_C ? "c"
                                      : "integer",
                    prove_functions[i].bodies[form], counts.inputs, counts.mismatches,
                    counts.settled_by_mpfr);
            if (counts.n_hard > 0) fprintf(file, "%.1e", counts.hard[0].distance);
            fprintf(file, " | %s |\n", prove_functions[i].digests[form]);
            inputs += counts.inputs;
            mismatches += counts.mismatches;
            rows++;
            n_complete += complete;
        }
    }
    fprintf(file, "\n" CHOICE "\n", REE_DIGEST_OPS);
    fprintf(file, "\n%d of %d rows complete, %" PRIu64 " comparisons, %" PRIu64 " mismatches.\n",
            n_complete, rows, inputs, mismatches);
    if (fclose(file) != 0) {
        fprintf(stderr, "ree-prove: cannot write %s\n", path);
        return 2;
    }
    return mismatches != 0;
}

// True if a line of the file records a complete walk of this form of this function with its current
// sources.
static bool is_recorded(FILE *file, const char *name, const char *form, const char *body,
                        const char *digest) {
    char begin[128], end[64], line[512];
    snprintf(begin, sizeof begin, "| %s | %s | %s | 4294967296 | 0 | ", name, form, body);
    snprintf(end, sizeof end, " | %s |\n", digest);
    size_t n_begin = strlen(begin), n_end = strlen(end);
    if (fseek(file, 0, SEEK_SET) != 0) return false; // treated as not recorded
    while (fgets(line, sizeof line, file) != NULL) {
        size_t n = strlen(line);
        if (n >= n_begin + n_end && strncmp(line, begin, n_begin) == 0 &&
            strcmp(line + n - n_end, end) == 0)
            return true;
    }
    return false;
}

static bool is_choice_recorded(FILE *file) {
    char wanted[256], line[512];
    snprintf(wanted, sizeof wanted, CHOICE "\n", REE_DIGEST_OPS);
    if (fseek(file, 0, SEEK_SET) != 0) return false;
    while (fgets(line, sizeof line, file) != NULL)
        if (strcmp(line, wanted) == 0) return true;
    return false;
}

static int check_record(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "ree-prove: cannot open %s\n", path);
        return 2;
    }
    int n_missing = 0;
    for (size_t i = 0; i < prove_n_functions; i++) {
        const struct prove_function *f = &prove_functions[i];
        bool same = strcmp(f->bodies[PROVE_C], "integer") == 0;
        for (int form = PROVE_C; form <= (same ? PROVE_C : PROVE_INTEGER); form++) {
            const char *name = same ? "both" : form == PROVE_C ? "c" : "integer";
            if (is_recorded(file, f->name, name, f->bodies[form], f->digests[form])) continue;
            printf("%s: %s (%s) is not proven for its present sources, digest %s\n", path, f->name,
                   name, f->digests[form]);
            n_missing++;
        }
    }
    if (!is_choice_recorded(file)) {
        printf("%s: scalar/ops.h chooses other forms than the proven ones, digest %s\n", path,
               REE_DIGEST_OPS);
        n_missing++;
    }
    fclose(file);
    if (n_missing == 0) printf("%s: complete\n", path);
    return n_missing != 0;
}

static int write_hard_cases(const char *path, struct prove_options options) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "ree-prove: cannot open %s for writing\n", path);
        return 2;
    }
    fprintf(file,
            "// Made by ree-prove --hard. Do not edit.\n"
            "// REE_HARD_CASE(function, argument, result): the arguments whose exact result lies\n"
            "// nearest to a tie, as bits; the results are MPFR's.\n");
    for (size_t i = 0; i < prove_n_functions; i++) {
        // "native" forms have no hard arguments: processors compute them as IEEE 754 says, shaders
        // digit by digit.
        if (strcmp(prove_functions[i].bodies[PROVE_C], "native") == 0) continue;
        struct prove_counts counts;
        options.function = i;
        options.form = PROVE_C;
        prove_read_state(&options, &counts);
        for (size_t j = 0; j < counts.n_hard; j++)
            fprintf(file, "REE_HARD_CASE(%s, 0x%08" PRIX32 "u, 0x%08" PRIX32 "u)\n",
                    prove_functions[i].name, counts.hard[j].x, counts.hard[j].y);
    }
    if (fclose(file) != 0) {
        fprintf(stderr, "ree-prove: cannot write %s\n", path);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv) {
    ree_float_env_set();
    enum { FUNCTION = 256, FORM, FROM, TO, STATE, THREADS, RECORD, HARD, CHECK, LIST, HELP };
    static const struct option long_options[] = {{"function", required_argument, NULL, FUNCTION},
                                                 {"form", required_argument, NULL, FORM},
                                                 {"from", required_argument, NULL, FROM},
                                                 {"to", required_argument, NULL, TO},
                                                 {"state", required_argument, NULL, STATE},
                                                 {"threads", required_argument, NULL, THREADS},
                                                 {"record", required_argument, NULL, RECORD},
                                                 {"hard", required_argument, NULL, HARD},
                                                 {"check", required_argument, NULL, CHECK},
                                                 {"list", no_argument, NULL, LIST},
                                                 {"help", no_argument, NULL, HELP},
                                                 {NULL, 0, NULL, 0}};
    struct selection selection = {0};
    const char *record = NULL, *hard = NULL, *check = NULL;
    struct prove_options options = {.form = PROVE_C, .to = UINT32_MAX};
    options.n_threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int c;
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (c) {
        case FUNCTION:
            if (!choose(&selection, optarg)) return 2;
            break;
        case FORM:
            if (strcmp(optarg, "c") != 0 && strcmp(optarg, "integer") != 0) {
                fprintf(stderr, "ree-prove: --form requires 'c' or 'integer', not '%s'\n", optarg);
                return 2;
            }
            options.form = optarg[0] == 'c' ? PROVE_C : PROVE_INTEGER;
            break;
        case FROM:
            if (!parse_bits(optarg, &options.from)) return 2;
            break;
        case TO:
            if (!parse_bits(optarg, &options.to)) return 2;
            break;
        case STATE: options.state = optarg; break;
        case THREADS:
            options.n_threads = atoi(optarg);
            if (options.n_threads < 1) {
                fprintf(stderr, "ree-prove: --threads requires a positive number\n");
                return 2;
            }
            break;
        case RECORD: record = optarg; break;
        case HARD: hard = optarg; break;
        case CHECK: check = optarg; break;
        case LIST:
            for (size_t i = 0; i < prove_n_functions; i++)
                puts(prove_functions[i].name);
            return 0;
        case HELP: fputs(help, stdout); return 0;
        default: fputs(help, stderr); return 2;
        }
    }
    if (optind != argc || options.from > options.to) {
        fputs(help, stderr);
        return 2;
    }
    if (check != NULL) return check_record(check);
    if (record != NULL || hard != NULL) {
        if (options.state == NULL) {
            fprintf(stderr, "ree-prove: --record and --hard require --state FILE\n");
            return 2;
        }
        int status = record != NULL ? write_record(record, options) : 0;
        int status_hard = hard != NULL ? write_hard_cases(hard, options) : 0;
        return status != 0 ? status : status_hard;
    }
    printf("%-9s %-8s %-8s %12s %10s %8s %12s\n", "function", "form", "made of", "arguments",
           "mismatches", "by MPFR", "nearest tie");
    bool wrong = false;
    for (size_t i = 0; i < prove_n_functions; i++) {
        if (selection.any && !selection.chosen[i]) continue;
        // If the C form is the integer form, one walk is enough.
        if (options.form == PROVE_INTEGER && !selection.any &&
            strcmp(prove_functions[i].bodies[PROVE_C], "integer") == 0)
            continue;
        struct prove_counts counts;
        options.function = i;
        if (!prove_walk(&options, &counts)) return 2;
        printf("%-9s %-8s %-8s %12" PRIu64 " %10" PRIu64 " %8" PRIu64 " %12.1e\n",
               prove_functions[i].name, options.form == PROVE_C ? "c" : "integer",
               prove_functions[i].bodies[options.form], counts.inputs, counts.mismatches,
               counts.settled_by_mpfr, counts.n_hard > 0 ? counts.hard[0].distance : 1.0);
        uint64_t known = sizeof counts.wrong_x / sizeof counts.wrong_x[0];
        for (uint64_t j = 0; j < counts.mismatches && j < known; j++)
            printf("    %s(%08" PRIx32 ") = %08" PRIx32 ", expected %08" PRIx32 "\n",
                   prove_functions[i].name, counts.wrong_x[j], counts.wrong_y[j],
                   counts.wrong_expected[j]);
        fflush(stdout);
        wrong = wrong || counts.mismatches != 0;
    }
    return wrong;
}
