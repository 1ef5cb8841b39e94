// Properties of characters, by Oniguruma's names.
#include "text/onig.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

struct property {
    const char *name; // in lower case, without spaces, '-' and '_'
    const char *items;
    bool opposite;
};

// Oniguruma defines its POSIX names by Unicode: doc/UNICODE_PROPERTIES and doc/RE, "Unicode Case".
static const struct property properties[] = {
    {"alnum", "\\p{Alphabetic}\\p{Nd}", false},
    {"alpha", "\\p{Alphabetic}", false},
    {"alphabetic", "\\p{Alphabetic}", false},
    {"blank", "\\t\\p{Zs}", false},
    {"cntrl", "\\p{Cc}", false},
    {"digit", "\\p{Nd}", false},
    {"graph", REE_ONIG_SPACE "\\p{Cc}\\p{Cn}\\p{Cs}", true},
    {"lower", "\\p{Lowercase}", false},
    {"print", "\\p{Cc}\\p{Cn}\\p{Cs}", true},
    {"punct", "\\p{P}", false},
    {"posixpunct", "\\p{P}\\p{S}", false}, // [:punct:]
    {"space", REE_ONIG_SPACE, false},
    {"upper", "\\p{Uppercase}", false},
    {"xdigit", REE_ONIG_XDIGIT, false},
    {"word", REE_ONIG_WORD, false},
    {"ascii", "\\x{0}-\\x{7f}", false},
    {"any", "\\x{0}-\\x{10ffff}", false},
    {"assigned", "\\p{Cn}", true},
    {"letter", "\\p{L}", false},
    {"uppercaseletter", "\\p{Lu}", false},
    {"lowercaseletter", "\\p{Ll}", false},
    {"titlecaseletter", "\\p{Lt}", false},
    {"lc", "\\p{Lu}\\p{Ll}\\p{Lt}", false},
    {"casedletter", "\\p{Lu}\\p{Ll}\\p{Lt}", false},
    {"modifierletter", "\\p{Lm}", false},
    {"otherletter", "\\p{Lo}", false},
    {"mark", "\\p{M}", false},
    {"combiningmark", "\\p{M}", false},
    {"nonspacingmark", "\\p{Mn}", false},
    {"spacingmark", "\\p{Mc}", false},
    {"enclosingmark", "\\p{Me}", false},
    {"number", "\\p{N}", false},
    {"decimalnumber", "\\p{Nd}", false},
    {"letternumber", "\\p{Nl}", false},
    {"othernumber", "\\p{No}", false},
    {"punctuation", "\\p{P}", false},
    {"connectorpunctuation", "\\p{Pc}", false},
    {"dashpunctuation", "\\p{Pd}", false},
    {"openpunctuation", "\\p{Ps}", false},
    {"closepunctuation", "\\p{Pe}", false},
    {"initialpunctuation", "\\p{Pi}", false},
    {"finalpunctuation", "\\p{Pf}", false},
    {"otherpunctuation", "\\p{Po}", false},
    {"symbol", "\\p{S}", false},
    {"mathsymbol", "\\p{Sm}", false},
    {"currencysymbol", "\\p{Sc}", false},
    {"modifiersymbol", "\\p{Sk}", false},
    {"othersymbol", "\\p{So}", false},
    {"separator", "\\p{Z}", false},
    {"spaceseparator", "\\p{Zs}", false},
    {"lineseparator", "\\p{Zl}", false},
    {"paragraphseparator", "\\p{Zp}", false},
    {"other", "\\p{C}", false},
    {"control", "\\p{Cc}", false},
    {"format", "\\p{Cf}", false},
    {"surrogate", "\\p{Cs}", false},
    {"privateuse", "\\p{Co}", false},
    {"unassigned", "\\p{Cn}", false},
};

static enum ree_status compiles(const char *pattern) {
    int code = 0;
    PCRE2_SIZE place;
    pcre2_code *made =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &place, NULL);
    pcre2_code_free(made);
    if (made) return REE_OK;
    return code == PCRE2_ERROR_HEAP_FAILED ? REE_NO_MEMORY : REE_INVALID;
}

enum ree_status ree_onig_property(const char *name, size_t n, const char **out_items,
                                  bool *out_opposite, char buffer[80]) {
    char plain[40];
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        if (c == ' ' || c == '-' || c == '_') continue;
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) || size + 1 == sizeof plain)
            return REE_INVALID;
        plain[size++] = c;
    }
    plain[size] = '\0';
    *out_opposite = false;
    *out_items = buffer;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        if (strcmp(plain, properties[i].name) != 0) continue;
        *out_items = properties[i].items;
        *out_opposite = properties[i].opposite;
        return REE_OK;
    }
    if (size == 1 || size == 2) { // general categories, which are case-sensitive in PCRE2
        plain[0] = (char)(plain[0] - 'a' + 'A');
        snprintf(buffer, 80, "\\p{%s}", plain);
        return compiles(buffer);
    }
    // Oniguruma's script names mean the script of a character. PCRE2's plain names would also
    // include its script extensions.
    snprintf(buffer, 80, "\\p{sc:%s}", plain);
    enum ree_status status = compiles(buffer);
    if (status != REE_INVALID) return status;
    snprintf(buffer, 80, "\\p{%s}", plain);
    return compiles(buffer);
}
