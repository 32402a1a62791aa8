/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "common/hash/sha256_short.h"
#include "tests/support/suite.h"

/* Source: FIPS 180-4, examples: "abc". */
START_TEST(digest_of_the_standards_example)
{
        char hex[SHA256_HEX_MAX];
        uint8_t digest[SHA256_BYTES];

        sha256_compute_short("abc", 3, digest);
        ck_assert_str_eq(sha256_hex(digest, hex), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

/* All positions of the padding in a block. */
START_TEST(digests_are_those_of_libcrypto)
{
        uint8_t data[300], digest[SHA256_BYTES], expected[SHA256_BYTES];

        for (size_t i = 0; i < sizeof data; i++)
                data[i] = (uint8_t)(i * 37 + i / 7);
        for (size_t n = 0; n <= sizeof data; n++) {
                struct sha256 s;

                ck_assert_int_eq(sha256_init(&s, NULL), ST_OK);
                sha256_update(&s, data, n);
                sha256_final(&s, expected);
                sha256_compute_short(data, n, digest);
                ck_assert_mem_eq(digest, expected, sizeof digest);
        }
}
END_TEST

TEST_SUITE("sha256_short", digest_of_the_standards_example, digests_are_those_of_libcrypto)
