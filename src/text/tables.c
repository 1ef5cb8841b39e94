// Names the Unicode tables that tokenization depends on.
#include "ree.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <utf8proc.h>

void ree_text_tables(char *out, size_t size) {
    char version[64] = "?", unicode[64] = "?"; // PCRE2 requires at least 24 bytes
    pcre2_config(PCRE2_CONFIG_VERSION, version);
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, unicode);
    snprintf(out, size, "PCRE2 %s (Unicode %s), utf8proc %s (Unicode %s)", version, unicode,
             utf8proc_version(), utf8proc_unicode_version());
}
