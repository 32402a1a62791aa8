/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of requests, compared with the examples of the Amazon S3 API Reference. */
#include <string.h>

#include "storage/s3/s3_content.h"
#include "storage/s3/s3_signature.h"
#include "tests/support/suite.h"

#define EXAMPLE_TIME 1369353600 /* 2013-05-24, 00:00 UTC */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* The keys that the examples are signed with. */
static struct s3_credentials credentials = { .access_key = "AKIAIOSFODNN7EXAMPLE",
                                             .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };

static const char *find_line(const struct s3_signed_headers *h, const char *name)
{
        for (size_t i = 0; i < h->count; i++) {
                if (strncmp(h->lines[i], name, strlen(name)) == 0)
                        return h->lines[i];
        }
        return NULL;
}

static void check_signature(struct s3_signing s, const char *names, const char *signature)
{
        _cleanup_s3_signed_headers_ struct s3_signed_headers headers = { 0 };
        char wanted[500];
        struct error err;

        s.host = "examplebucket.s3.amazonaws.com";
        s.region = "us-east-1";
        s.time = EXAMPLE_TIME;
        check_ok(s3_sign(&s, &credentials, &headers, &err), &err);
        snprintf(wanted, sizeof wanted,
                 "authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                 "SignedHeaders=%s,Signature=%s",
                 names, signature);
        ck_assert_str_eq(find_line(&headers, "authorization"), wanted);
        ck_assert_str_eq(find_line(&headers, "x-amz-date"), "x-amz-date: 20130524T000000Z");
        ck_assert_ptr_null(find_line(&headers, "host"));
        ck_assert_ptr_null(headers.lines[headers.count]);
}

START_TEST(range_of_an_object)
{
        check_signature((struct s3_signing){ .method = "GET",
                                             .path = "/test.txt",
                                             .query = "",
                                             .headers = { { "range", "bytes=0-9" } },
                                             .header_count = 1,
                                             .content_sha256 = EMPTY_SHA256 },
                        "host;range;x-amz-content-sha256;x-amz-date",
                        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}
END_TEST

/* Headers are signed in the order of their names, whatever order they have here. */
START_TEST(object_is_put)
{
        struct s3_content content;
        struct error err;

        check_ok(s3_hash_content("Welcome to Amazon S3.", 21, false, &content, &err), &err);
        ck_assert_str_eq(content.md5, "");
        check_signature((struct s3_signing){ .method = "PUT",
                                             .path = "/test%24file.text",
                                             .query = "",
                                             .headers = { { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
                                                          { "date", "Fri, 24 May 2013 00:00:00 GMT" } },
                                             .header_count = 2,
                                             .content_sha256 = content.sha256 },
                        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}
END_TEST

START_TEST(parameter_without_a_value)
{
        check_signature(
                (struct s3_signing){
                        .method = "GET", .path = "/", .query = "lifecycle=", .content_sha256 = EMPTY_SHA256 },
                "host;x-amz-content-sha256;x-amz-date",
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}
END_TEST

START_TEST(list_of_keys)
{
        check_signature(
                (struct s3_signing){
                        .method = "GET", .path = "/", .query = "max-keys=2&prefix=J", .content_sha256 = EMPTY_SHA256 },
                "host;x-amz-content-sha256;x-amz-date",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}
END_TEST

START_TEST(session_token_is_signed)
{
        struct s3_credentials temporary = credentials;
        _cleanup_s3_signed_headers_ struct s3_signed_headers headers = { 0 };
        struct error err;

        temporary.session_token = "token";
        check_ok(s3_sign(&(struct s3_signing){ .method = "GET",
                                               .host = "h",
                                               .path = "/",
                                               .query = "",
                                               .content_sha256 = EMPTY_SHA256,
                                               .region = "r",
                                               .time = EXAMPLE_TIME },
                         &temporary, &headers, &err),
                 &err);
        ck_assert_str_eq(find_line(&headers, "x-amz-security-token"), "x-amz-security-token: token");
        ck_assert_ptr_nonnull(
                strstr(find_line(&headers, "authorization"), "x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
}
END_TEST

TEST_SUITE("s3_signature", range_of_an_object, object_is_put, parameter_without_a_value, list_of_keys,
           session_token_is_signed)
