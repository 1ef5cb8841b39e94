#include "party_receipts.h"
#include "option_groups.h"
#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "status.h"
#include "receipts.h"

#define MAX_TOKENS_FILE ((size_t)64 << 20)

#define AT(field) offsetof(struct party_receipts, field)

// The help of an option for A also documents the one for B.
static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "  --a-receipt FILE, --b-receipt FILE\n"
  "                       the parties' receipts; both may be of a training\n"
  "  --a-salt FILE, --b-salt FILE\n"
  "                       the salt of a private receipt (default: RECEIPT.salt, if it exists)\n"
  "  --a-tokens FILE, --b-tokens FILE\n"
  "                       the tokens of a private receipt, prompt and output: numbers separated\n"
  "                       by commas or white space\n"
  "  --a-public-key FILE|HEX, --b-public-key FILE|HEX\n"
  "                       require that the receipt is signed with this key\n"},
    {.name = "--a-receipt", .value = "FILE", .kind = ROW_STRING, .at = AT(paths[0]), .path = CLI_READS},
    {.name = "--b-receipt", .value = "FILE", .kind = ROW_STRING, .at = AT(paths[1]), .path = CLI_READS},
    {.name = "--a-salt", .value = "FILE", .kind = ROW_STRING, .at = AT(salts[0]), .path = CLI_READS},
    {.name = "--b-salt", .value = "FILE", .kind = ROW_STRING, .at = AT(salts[1]), .path = CLI_READS},
    {.name = "--a-tokens", .value = "FILE", .kind = ROW_STRING, .at = AT(token_paths[0]), .path = CLI_READS},
    {.name = "--b-tokens", .value = "FILE", .kind = ROW_STRING, .at = AT(token_paths[1]), .path = CLI_READS},
    {.name = "--a-public-key", .value = "FILE|HEX", .kind = ROW_STRING, .at = AT(keys[0]), .path = CLI_READS},
    {.name = "--b-public-key", .value = "FILE|HEX", .kind = ROW_STRING, .at = AT(keys[1]), .path = CLI_READS},
    {.name = "--request", .value = "FILE", .kind = ROW_STRING, .at = AT(request_path), .path = CLI_READS,
     .help = "require that both receipts answer this request ('ree-run help request'): a receipt "
             "with another prompt or other parameters is wrong"},
    {.name = "--data", .value = "FILE", .kind = ROW_STRING, .at = AT(data_path), .path = CLI_READS,
     .help = "with receipts of trainings ('ree-run help train'): the samples, to judge which batch a "
             "step read"},
    // clang-format on
};
const struct cli_option_table cli_parties_group = CLI_OPTION_TABLE(rows);

void party_receipts_check(struct cli *cli, const struct party_receipts *s) {
    if (!cli->failed && s->request_path && !s->paths[0] && !s->paths[1])
        cli_usage(cli, "--request requires --a-receipt and --b-receipt");
    if (!cli->failed && s->data_path && (!s->paths[0] || !s->paths[1]))
        cli_usage(cli, "--data requires --a-receipt and --b-receipt");
    for (unsigned k = 0; k < 2; k++)
        cli_path_add_suffixed(CLI_READS, s->paths[k], ".salt");
    for (unsigned k = 0; k < 2 && !cli->failed; k++)
        if (!s->paths[k] && (s->salts[k] || s->keys[k] || s->token_paths[k]))
            cli_usage(cli, "a salt, tokens and a public key require a receipt: --%c-receipt",
                      "ab"[k]);
}

static bool is_between(char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Parses numbers of one to ten digits, below 2^31. `text` must end with a NUL.
static enum ree_status read_ids(const char *text, int32_t *ids, size_t *out_n,
                                struct ree_error *err) {
    size_t n = 0;
    for (const char *at = text;; n++) {
        while (is_between(*at))
            at++;
        if (!*at) break;
        uint64_t id = 0;
        size_t n_digits = 0;
        for (; *at >= '0' && *at <= '9' && n_digits < 11; at++, n_digits++)
            id = 10 * id + (uint64_t)(*at - '0');
        if (n_digits == 0 || n_digits > 10 || id > INT32_MAX || (*at && !is_between(*at)))
            return set_error(err, REE_INVALID, "token %zu is not an integer below 2^31", n);
        ids[n] = (int32_t)id;
    }
    *out_n = n;
    return REE_OK;
}

static enum ree_status load_tokens(struct party_receipts *s, unsigned k, struct ree_error *err) {
    void *bytes;
    size_t nbytes;
    TRY(ree_file_read_small(s->token_paths[k], MAX_TOKENS_FILE, &bytes, &nbytes, err));
    char *text = strndup(bytes, nbytes);
    ree_free(bytes);
    s->ids[k] = malloc((nbytes / 2 + 1) * sizeof *s->ids[k]);
    enum ree_status status =
        text && s->ids[k] ? read_ids(text, s->ids[k], &s->n_ids[k], err) : memory_error(err);
    free(text);
    if (status != REE_OK) prefix_error(err, "%s", s->token_paths[k]);
    return status;
}

// Loads the receipt of party k, which may be one of a training.
static int load_receipt(struct party_receipts *s, unsigned k) {
    struct ree_error err;
    enum ree_status status = ree_receipt_load(s->paths[k], &s->receipts[k], &err);
    if (status == REE_INVALID) {
        struct ree_error other;
        status = ree_training_receipt_load(s->paths[k], &s->trainings[k], &other);
        if (status == REE_OK) return 0;
        // Not if it is the receipt of no training: then the first message says what is wrong.
        if (status != REE_UNSUPPORTED) err = other;
    }
    if (status != REE_OK) return cli_fail(&err);
    int code = cli_receipt_salt(s->receipts[k], s->paths[k], s->salts[k]);
    if (code) return code;
    if (s->token_paths[k] && load_tokens(s, k, &err) != REE_OK) return cli_fail(&err);
    return 0;
}

// Checks and loads what receipts of trainings need.
static int load_training(struct party_receipts *s) {
    struct ree_error err;
    bool is_training = s->trainings[0] || s->trainings[1];
    if (!is_training && s->data_path) {
        cli_error("--data is for receipts of trainings, and these are not");
        return CLI_USAGE;
    }
    if (!is_training) return 0;
    if (s->receipts[0] || s->receipts[1] || s->request || s->salts[0] || s->salts[1] ||
        s->token_paths[0] || s->token_paths[1]) {
        cli_error("the receipt of a training cannot be compared with another one, and has neither "
                  "request, salt nor tokens");
        return CLI_USAGE;
    }
    if (s->data_path && ree_dataset_load(s->data_path, &s->dataset, &err) != REE_OK)
        return cli_fail(&err);
    s->training.dataset = s->dataset;
    for (unsigned k = 0; k < 2; k++) {
        s->training.receipts[k] = s->trainings[k];
        s->training.public_keys[k] = s->keys[k] ? s->public_keys[k] : NULL;
    }
    return 0;
}

int party_receipts_load(struct party_receipts *s) {
    struct ree_error err;
    if (s->request_path && ree_request_load(s->request_path, &s->request, &err) != REE_OK)
        return cli_fail(&err);
    for (unsigned k = 0; k < 2; k++) {
        if (!s->paths[k]) continue;
        int code = load_receipt(s, k);
        if (code) return code;
        if (s->keys[k] && !cli_public_key(s->keys[k], s->public_keys[k])) return CLI_FAILED;
    }
    return load_training(s);
}

void party_receipts_finish(struct party_receipts *s) {
    ree_request_destroy(s->request);
    for (unsigned k = 0; k < 2; k++) {
        free(s->ids[k]);
        ree_receipt_destroy(s->receipts[k]);
        ree_training_receipt_destroy(s->trainings[k]);
    }
    ree_dataset_destroy(s->dataset);
}

void party_receipts_fill(const struct party_receipts *s, struct ree_disputant out[2]) {
    for (unsigned k = 0; k < 2; k++) {
        out[k].receipt = s->receipts[k];
        out[k].public_key = s->keys[k] ? s->public_keys[k] : NULL;
        out[k].tokens = s->ids[k];
        out[k].n_tokens = s->n_ids[k];
    }
}

const struct ree_request *party_request(const struct party_receipts *s) {
    return s->request;
}

const struct ree_training_terms *party_training(const struct party_receipts *s) {
    return s->trainings[0] || s->trainings[1] ? &s->training : NULL;
}

const char *party_receipt_hash(const struct party_receipts *s, unsigned k, const char **out_key) {
    if (s->trainings[k]) {
        const struct ree_training_receipt_info *r = ree_training_receipt_info(s->trainings[k]);
        *out_key = r->public_key;
        return r->receipt_hash;
    }
    if (!s->receipts[k]) return NULL;
    const struct ree_receipt_info *r = ree_receipt_info(s->receipts[k]);
    *out_key = r->public_key;
    return r->receipt_hash;
}
