/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <endian.h>
#include <string.h>

#include "debuginfo-store/debuginfo_store.h"

static const char *const kinds[OBJECT_KIND_COUNT] = { "debuginfo", "executable", "source", "supplementary",
                                                      "dwp",       "dwo",        "symbols" };

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
        [REFUSED_NOT_SYMBOLS] = "not_symbols",
        [REFUSED_QUALITY] = "quality_mismatch",
        [REFUSED_KIND] = "wrong_kind",
        [REFUSED_OFFSET] = "offset",
        [REFUSED_INCOMPLETE] = "incomplete",
};

const char *object_kind_name(enum object_kind k)
{
        assert(k < OBJECT_KIND_COUNT);
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

void object_make_dwo_id(struct build_id *ret, uint64_t dwo_id)
{
        uint64_t big = htobe64(dwo_id);

        (void)!build_id_from_bytes(ret, &big, sizeof big);
}

int object_name_compare(const void *a, const void *b)
{
        const struct object_name *x = a, *y = b;
        int c = build_id_compare(&x->build_id, &y->build_id);

        return c ? c : (int)x->kind - (int)y->kind;
}

const char *object_source_name(enum object_source s)
{
        return s == SOURCE_UPLOAD ? "upload" : "upstream";
}

bool object_tag_is_valid(const char *text)
{
        size_t n = strlen(text);

        return n < OBJECT_TAG_SIZE &&
               strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+") == n;
}

const char *refusal_name(enum refusal r)
{
        assert(r < sizeof refusals / sizeof *refusals);
        return refusals[r];
}
