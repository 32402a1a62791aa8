/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of zstd that are used again. */
#include <check.h>
#include <string.h>

#include "common/compress/zstd_contexts.h"
#include "tests/support/suite.h"

START_TEST(given_context_is_taken_again)
{
        ZSTD_DCtx *first = take_zstd_context(), *second = take_zstd_context();

        ck_assert_ptr_nonnull(first);
        ck_assert_ptr_nonnull(second);
        ck_assert_ptr_ne(first, second);
        give_zstd_context(first);
        ck_assert_ptr_eq(take_zstd_context(), first);
        give_zstd_context(second);
        give_zstd_context(first);
        give_zstd_context(NULL);
}
END_TEST

START_TEST(context_of_damaged_data_unpacks_what_follows)
{
        static const char text[] = "a text that repeats, a text that repeats, a text that repeats";
        ZSTD_DCtx *context = take_zstd_context();
        char packed[256], unpacked[sizeof text];
        size_t n = ZSTD_compress(packed, sizeof packed, text, sizeof text, 1);

        ck_assert(!ZSTD_isError(n));
        ck_assert(ZSTD_isError(ZSTD_decompressDCtx(context, unpacked, sizeof unpacked, packed, n - 1)));
        give_zstd_context(context);
        ck_assert_ptr_eq(take_zstd_context(), context);
        ck_assert_uint_eq(ZSTD_decompressDCtx(context, unpacked, sizeof unpacked, packed, n), sizeof text);
        ck_assert_mem_eq(unpacked, text, sizeof text);
        give_zstd_context(context);
}
END_TEST

/* More at once than are kept: with the sanitizer, those that are not kept would be leaks. */
START_TEST(contexts_beyond_those_kept_are_freed)
{
        ZSTD_DCtx *contexts[2 * ZSTD_CONTEXTS_KEPT];

        for (size_t i = 0; i < 2 * ZSTD_CONTEXTS_KEPT; i++)
                contexts[i] = take_zstd_context();
        for (size_t i = 0; i < 2 * ZSTD_CONTEXTS_KEPT; i++)
                give_zstd_context(contexts[i]);
        for (size_t i = 0; i < ZSTD_CONTEXTS_KEPT; i++)
                ck_assert_ptr_eq(take_zstd_context(), contexts[i]);
        for (size_t i = 0; i < ZSTD_CONTEXTS_KEPT; i++)
                give_zstd_context(contexts[i]);
}
END_TEST

TEST_SUITE("zstd contexts", given_context_is_taken_again, context_of_damaged_data_unpacks_what_follows,
           contexts_beyond_those_kept_are_freed)
