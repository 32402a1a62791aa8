/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "debuginfo-store/store.h"

static const char *const kinds[OBJECT_KIND_COUNT] = { "debuginfo", "executable", "source" };

static const char *const refusals[] = {
        [REFUSED_NOT] = "accepted",
        [REFUSED_NOT_ELF] = "not_elf",
        [REFUSED_TRUNCATED] = "truncated",
        [REFUSED_BUILD_ID] = "build_id_mismatch",
        [REFUSED_HASH] = "hash_mismatch",
        [REFUSED_SIZE] = "size_mismatch",
        [REFUSED_TOO_BIG] = "too_big",
        [REFUSED_ENCODING] = "bad_encoding",
        [REFUSED_NO_SYMBOLS] = "no_symbols",
        [REFUSED_NOT_BETTER] = "not_better",
        [REFUSED_NOT_SOURCE] = "not_source",
        [REFUSED_OFFSET] = "offset",
        [REFUSED_INCOMPLETE] = "incomplete",
};

const char *object_kind_name(enum object_kind k)
{
        return kinds[k];
}

bool object_kind_parse(const char *name, enum object_kind *ret)
{
        for (unsigned k = 0; k < OBJECT_KIND_COUNT; k++) {
                if (strcmp(name, kinds[k]) == 0) {
                        *ret = (enum object_kind)k;
                        return true;
                }
        }
        return false;
}

const char *object_source_name(enum object_source s)
{
        return s == SOURCE_UPLOAD ? "upload" : "upstream";
}

bool object_label_valid(const char *text)
{
        size_t n = strlen(text);

        return n < OBJECT_LABEL_SIZE && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+") == n;
}

const char *refusal_name(enum refusal r)
{
        return refusals[r];
}
