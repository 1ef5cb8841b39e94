// The files of a receipt: the receipt itself, and the salt of a private one.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/status.h"
#include "receipt/receipt_object.h"

#define MAX_OLD_SALT 4096 // maximum size in bytes of an existing file that a salt replaces

// Returns the path of the receipt's salt file. Release it with ree_free. NULL: out of memory.
static char *salt_path_of(const char *path) {
    size_t size = strlen(path) + sizeof ".salt";
    char *salt_path = ree_alloc(size);
    if (salt_path) snprintf(salt_path, size, "%s.salt", path);
    return salt_path;
}

static enum ree_status write_salt(const struct ree_receipt *receipt, const char *path,
                                  struct ree_error *err) {
    char text[66];
    ree_hex(receipt->salt, text);
    strcpy(text + 64, "\n");
    return ree_file_write_secret(path, text, 65, err);
}

// Writes the receipt completely except for its name, then the salt's file, and then names the
// receipt. If the last step fails, restores the old salt or removes the new one.
static enum ree_status write_with_salt(const struct ree_receipt *receipt, const char *path,
                                       const char *salt_path, struct ree_error *err) {
    struct ree_file_draft *draft;
    struct ree_error ignored;
    void *old = NULL;
    size_t n_old = 0;
    // An unreadable old salt is replaced too.
    bool is_new =
        ree_file_read_small(salt_path, MAX_OLD_SALT, &old, &n_old, &ignored) == REE_NOT_FOUND;
    enum ree_status status = ree_receipt_draft(receipt, path, &draft, err);
    if (status == REE_OK) {
        status = write_salt(receipt, salt_path, err);
        if (status != REE_OK)
            ree_file_abandon(draft);
        else if ((status = ree_file_commit(draft, err)) != REE_OK && is_new)
            unlink(salt_path);
        else if (status != REE_OK && old)
            ree_file_write_secret(salt_path, old, n_old, &ignored);
    }
    ree_free(old);
    return status;
}

enum ree_status ree_receipt_write(const struct ree_receipt *receipt, const char *path,
                                  struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_file_draft *draft;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (!receipt->has_salt) {
        REE_TRY(ree_receipt_draft(receipt, path, &draft, err));
        return ree_file_commit(draft, err);
    }
    char *salt_path = salt_path_of(path);
    if (!salt_path) return ree_no_memory(err);
    enum ree_status status = write_with_salt(receipt, path, salt_path, err);
    ree_free(salt_path);
    return status;
}

// Reads 64 hexadecimal digits, optionally followed by newlines.
static enum ree_status read_salt(const char *path, unsigned char salt[REE_SALT_SIZE],
                                 struct ree_error *err) {
    void *bytes;
    size_t n;
    char hex[65] = "";
    REE_TRY(ree_file_read_small(path, 66, &bytes, &n, err));
    const char *text = bytes;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    if (n == 64) memcpy(hex, text, 64);
    ree_free(bytes);
    if (ree_unhex(hex, salt)) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s: a salt must be 64 hexadecimal digits", path);
}

static enum ree_status load_salt(struct ree_receipt *receipt, const char *path,
                                 struct ree_error *err) {
    unsigned char salt[REE_SALT_SIZE];
    REE_TRY(read_salt(path, salt, err));
    if (ree_receipt_set_salt(receipt, salt)) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s: is the salt of another receipt", path);
}

enum ree_status ree_receipt_load_salt(struct ree_receipt *receipt, const char *path,
                                      struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const char *loaded = receipt->object->path;
    if (!receipt->is_private) {
        if (!path) return REE_OK;
        return ree_fail(err, REE_INVALID, "%s%sis not a private receipt", loaded ? loaded : "",
                        loaded ? " " : "it ");
    }
    if (path) return load_salt(receipt, path, err);
    if (!loaded) return REE_OK;
    char *beside = salt_path_of(loaded);
    if (!beside) return ree_no_memory(err);
    enum ree_status status = access(beside, F_OK) == 0 || errno != ENOENT
                                 ? load_salt(receipt, beside, err)
                                 : REE_OK; // the receipt stays without a salt
    ree_free(beside);
    return status;
}
