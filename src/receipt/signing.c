// Ed25519 (RFC 8032) with OpenSSL: signatures of receipts and the key files.
#include "receipt/receipt_internal.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"

#define KEY_SIZE 32
#define MAX_KEY_FILE ((size_t)1 << 20)

static const char tag[] = "ree-signature/1";

#define MESSAGE_SIZE (sizeof tag + sizeof(ree_digest))

// Writes the message that the signature of a receipt with this hash covers. Returns false if it is
// not a hash.
static bool message_of(const char *receipt_hash, unsigned char out[MESSAGE_SIZE]) {
    memcpy(out, tag, sizeof tag);
    return ree_unhex(receipt_hash, out + sizeof tag);
}

// A signature consists of two halves of 32 bytes, R and S.
static void hex_of_signature(const unsigned char *bytes, char out[129]) {
    ree_hex(bytes, out);
    ree_hex(bytes + 32, out + 64);
}

static bool signature_of_hex(const char *hex, unsigned char out[REE_SIGNATURE_SIZE]) {
    char half[65];
    if (strlen(hex) != 128) return false;
    memcpy(half, hex, 64);
    half[64] = 0;
    return ree_unhex(half, out) && ree_unhex(hex + 64, out + 32);
}

// Returns whether the key is a point of small order: one signature by it holds for many messages,
// so it binds nobody. RFC 8032 does not exclude these keys. They are the points whose order divides
// 8, in all their encodings; the sign bit, the highest of the last byte, is ignored.
static bool is_weak(const ree_digest key) {
    static const ree_digest points[] = {
        {0},
        {1},
        {0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4,
         0x89, 0xF2, 0xEF, 0x98, 0xF0, 0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6,
         0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05},
        {0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B,
         0x76, 0x0D, 0x10, 0x67, 0x0F, 0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39,
         0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A},
    };
    ree_digest y;
    memcpy(y, key, sizeof y);
    y[31] &= 0x7F;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (memcmp(y, points[i], sizeof y) == 0) return true;
    // p - 1, and p and p + 1, which are other encodings of 0 and 1; p = 2^255 - 19
    bool is_high = y[0] >= 0xEC && y[0] <= 0xEE && y[31] == 0x7F;
    for (size_t i = 1; i < 31; i++)
        is_high &= y[i] == 0xFF;
    return is_high;
}

bool ree_ed25519_holds(const char *public_key, const void *message, size_t nbytes,
                       const unsigned char signature[REE_SIGNATURE_SIZE], bool *out_failed) {
    ree_digest bytes;
    *out_failed = false;
    if (!ree_unhex(public_key, bytes) || is_weak(bytes)) return false;
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, sizeof bytes);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    // Any 32 bytes are accepted as a key, so a failure before EVP_DigestVerify means that memory is
    // exhausted.
    *out_failed = !key || !ctx || EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) != 1;
    bool ok =
        !*out_failed && EVP_DigestVerify(ctx, signature, REE_SIGNATURE_SIZE, message, nbytes) == 1;
    if (!ok && ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE) *out_failed = true;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok;
}

bool ree_hash_signature_holds(const char *receipt_hash, const char *public_key,
                              const char *signature, bool *out_failed) {
    unsigned char message[MESSAGE_SIZE], bytes[REE_SIGNATURE_SIZE];
    *out_failed = false;
    return message_of(receipt_hash, message) && signature_of_hex(signature, bytes) &&
           ree_ed25519_holds(public_key, message, sizeof message, bytes, out_failed);
}

bool ree_receipt_signature_holds(const struct ree_receipt *receipt, bool *out_failed) {
    return ree_hash_signature_holds(receipt->receipt_hash, receipt->public_key, receipt->signature,
                                    out_failed);
}

// Without this callback, OpenSSL would prompt for a password on the terminal.
static int no_password(char *buffer, int size, int writing, void *user) {
    (void)buffer, (void)size, (void)writing, (void)user;
    return -1;
}

static EVP_PKEY *parse_key(const void *pem, size_t n, bool is_private) {
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    if (!bio) return NULL;
    EVP_PKEY *key = is_private ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL)
                               : PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL);
    BIO_free(bio);
    ERR_clear_error();
    if (key && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519) return key;
    EVP_PKEY_free(key);
    return NULL;
}

// Reads a key file: a private key or, unless need_private is set, a public key. Release *out with
// EVP_PKEY_free.
static enum ree_status read_key(const char *path, bool need_private, EVP_PKEY **out,
                                struct ree_error *err) {
    void *pem;
    size_t n;
    struct stat info;
    if (need_private && stat(path, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077))
        return ree_fail(err, REE_INVALID,
                        "%s: other users can access this private key (mode %04o); run chmod 600 %s",
                        path, (unsigned)info.st_mode & 07777, path);
    REE_TRY(ree_file_read_small(path, MAX_KEY_FILE, &pem, &n, err));
    *out = parse_key(pem, n, true);
    if (!*out && !need_private) *out = parse_key(pem, n, false);
    bool is_encrypted = memmem(pem, n, "ENCRYPTED", 9) != NULL;
    OPENSSL_cleanse(pem, n);
    ree_free(pem);
    if (*out) return REE_OK;
    if (is_encrypted)
        return ree_fail(err, REE_UNSUPPORTED, "%s: keys with a password are not supported", path);
    return ree_fail(err, REE_INVALID, "%s: it does not contain an Ed25519 %skey in PEM form", path,
                    need_private ? "private " : "");
}

static bool public_half(const EVP_PKEY *key, char hex[65]) {
    unsigned char bytes[KEY_SIZE];
    size_t n = sizeof bytes;
    hex[0] = 0;
    if (EVP_PKEY_get_raw_public_key(key, bytes, &n) != 1 || n != sizeof bytes) return false;
    ree_hex(bytes, hex);
    return true;
}

static enum ree_status openssl_failed(struct ree_error *err, const char *what) {
    char why[256];
    ERR_error_string_n(ERR_get_error(), why, sizeof why);
    ERR_clear_error();
    return ree_fail(err, REE_INTERNAL, "OpenSSL cannot %s: %s", what, why);
}

enum ree_status ree_ed25519_sign(const char *key_path, const void *message, size_t nbytes,
                                 char public_key[65], unsigned char signature[REE_SIGNATURE_SIZE],
                                 struct ree_error *err) {
    size_t n = REE_SIGNATURE_SIZE;
    EVP_PKEY *key;
    REE_TRY(read_key(key_path, true, &key, err));
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestSign(ctx, signature, &n, message, nbytes) == 1 && n == REE_SIGNATURE_SIZE &&
              public_half(key, public_key);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok ? REE_OK : openssl_failed(err, "sign");
}

enum ree_status ree_hash_sign(const char *receipt_hash, const char *key_path, char public_key[65],
                              char signature[129], struct ree_error *err) {
    unsigned char message[MESSAGE_SIZE], bytes[REE_SIGNATURE_SIZE];
    char key[65];
    if (!message_of(receipt_hash, message))
        return ree_fail(err, REE_INVALID, "the receipt is not sealed, so it has no hash");
    // A failure leaves an older signature as it was.
    REE_TRY(ree_ed25519_sign(key_path, message, sizeof message, key, bytes, err));
    memcpy(public_key, key, sizeof key);
    hex_of_signature(bytes, signature);
    return REE_OK;
}

enum ree_status ree_receipt_sign(struct ree_receipt *receipt, const char *key_path,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    REE_TRY(ree_hash_sign(receipt->receipt_hash, key_path, receipt->public_key, receipt->signature,
                          err));
    receipt->is_signed = true;
    return REE_OK;
}

enum ree_status ree_key_check(const char *path, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    EVP_PKEY *key;
    REE_TRY(read_key(path, true, &key, err));
    EVP_PKEY_free(key);
    return REE_OK;
}

enum ree_status ree_key_public(const char *path, char public_key[65], struct ree_error *err) {
    REE_FLOAT_ENV_API();
    EVP_PKEY *key;
    public_key[0] = 0;
    REE_TRY(read_key(path, false, &key, err));
    bool ok = public_half(key, public_key);
    EVP_PKEY_free(key);
    return ok ? REE_OK : openssl_failed(err, "read the public key");
}

// Writes the private or the public key to a new file.
static enum ree_status write_half(const EVP_PKEY *key, bool is_private, const char *path,
                                  struct ree_error *err) {
    // A private key uses OpenSSL's secure heap if there is one; its memory is cleared on release.
    BIO *bio = BIO_new(is_private ? BIO_s_secmem() : BIO_s_mem());
    char *pem = NULL;
    long n = 0;
    if (bio && (is_private ? PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)
                           : PEM_write_bio_PUBKEY(bio, key)) == 1)
        n = BIO_get_mem_data(bio, &pem);
    enum ree_status status =
        n > 0 ? ree_file_create(path, pem, (size_t)n, is_private ? 0600 : 0644, err)
              : openssl_failed(err, "write the key");
    if (is_private && n > 0) OPENSSL_cleanse(pem, (size_t)n);
    BIO_free(bio);
    return status;
}

enum ree_status ree_key_create(const char *path, char public_key[65], struct ree_error *err) {
    REE_FLOAT_ENV_API();
    public_key[0] = 0;
    size_t size = strlen(path) + sizeof ".pub";
    char *public_path = ree_alloc(size);
    if (!public_path) return ree_no_memory(err);
    snprintf(public_path, size, "%s.pub", path);
    EVP_PKEY *key = NULL;
    enum ree_status status = REE_OK;
    // Fail early; ree_file_create checks again.
    if (access(path, F_OK) == 0)
        status = ree_fail(err, REE_IO, "%s: it already exists", path);
    else if (!(key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")) || !public_half(key, public_key))
        status = openssl_failed(err, "make a key");
    // Write the public key first: then a private key never exists without it, and no private key
    // has to be removed after a failure.
    if (status == REE_OK) status = write_half(key, false, public_path, err);
    if (status == REE_OK) {
        status = write_half(key, true, path, err);
        if (status != REE_OK) unlink(public_path);
    }
    if (status != REE_OK) public_key[0] = 0;
    EVP_PKEY_free(key);
    ree_free(public_path);
    return status;
}

static bool is_hex_key(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

enum ree_status ree_key_named(const char *text, char key[65], struct ree_error *err) {
    REE_FLOAT_ENV_API();
    if (!is_hex_key(text)) return ree_key_public(text, key, err);
    for (size_t i = 0; i <= 64; i++)
        key[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
    return REE_OK;
}

enum ree_status ree_key_parse(const char *hex, char key[65], struct ree_error *err) {
    if (is_hex_key(hex)) return ree_key_named(hex, key, err);
    return ree_fail(err, REE_INVALID, "the public key is not 64 hexadecimal digits");
}
