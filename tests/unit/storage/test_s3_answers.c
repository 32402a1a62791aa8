/* SPDX-License-Identifier: Apache-2.0 */
/* XML answers of object stores: lists, errors, hostile documents; and addresses of stores. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "storage/s3/s3_page.h"
#include "storage/s3/s3_location.h"
#include "storage/s3/s3_xml.h"
#include "tests/support/suite.h"

static char listed[500];

static enum status append_entry(void *context, const struct s3_page_entry *e, struct error *err)
{
        size_t n = strlen(listed);

        (void)context, (void)err;
        snprintf(listed + n, sizeof listed - n, "%s %s %llu %lld|", e->key, e->upload_id ? e->upload_id : "-",
                 (unsigned long long)e->size, (long long)e->modified_ms);
        return ST_OK;
}

static enum status read_list(const char *text, struct buf *next, struct error *err)
{
        listed[0] = 0;
        buf_init(next, KiB(4));
        return s3_page_read(text, strlen(text), append_entry, NULL, next, err);
}

START_TEST(page_of_keys_is_read)
{
        _cleanup_buf_ struct buf next;
        struct error err;

        check_ok(read_list("<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name><Prefix>p</Prefix>"
                           "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b=</NextContinuationToken>"
                           "<Contents><Key>p/x&lt;1</Key><LastModified>1970-01-01T00:00:02.500Z</LastModified>"
                           "<Size>7</Size><Owner><ID>Key</ID></Owner></Contents>"
                           "<Contents><Key>p/y</Key><LastModified>1970-01-01T00:00:03Z</LastModified><Size>8</Size>"
                           "</Contents><CommonPrefixes><Prefix>p/z/</Prefix></CommonPrefixes></ListBucketResult>",
                           &next, &err),
                 &err);
        ck_assert_str_eq(listed, "p/x<1 - 7 2500|p/y - 8 3000|");
        ck_assert_str_eq(buf_cstr(&next), "a&b=");
}
END_TEST

START_TEST(last_page_has_no_next)
{
        _cleanup_buf_ struct buf next;
        struct error err;

        check_ok(read_list("<ListMultipartUploadsResult><NextKeyMarker>k</NextKeyMarker>"
                           "<IsTruncated>false</IsTruncated><Upload><Key>k</Key><UploadId>u</UploadId>"
                           "<Initiated>1970-01-01T00:00:01Z</Initiated></Upload></ListMultipartUploadsResult>",
                           &next, &err),
                 &err);
        ck_assert_str_eq(listed, "k u 0 1000|");
        ck_assert_uint_eq(next.size, 0);
}
END_TEST

/* Else a cut list would look complete. */
START_TEST(cut_list_without_a_token_is_an_error)
{
        _cleanup_buf_ struct buf next;

        ck_assert_int_eq(read_list("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", &next, NULL),
                         ST_BAD_DATA);
        buf_deinit(&next);
        ck_assert_int_eq(read_list("<ListBucketResult><Contents><Key>a</Key>", &next, NULL), ST_BAD_DATA);
}
END_TEST

START_TEST(document_types_are_refused)
{
        char text[100];

        ck_assert_int_eq(s3_xml_find("<!DOCTYPE a [<!ENTITY b \"bbbb\">]><a>&b;</a>", 44, "a", text, sizeof text, NULL),
                         ST_BAD_DATA);
}
END_TEST

START_TEST(nesting_is_bounded)
{
        _cleanup_buf_ struct buf text;
        char found[10];

        buf_init(&text, KiB(4));
        for (int i = 0; i < LIMIT_S3_XML_DEPTH; i++)
                buf_append_str(&text, "<a>");
        for (int i = 0; i < LIMIT_S3_XML_DEPTH; i++)
                buf_append_str(&text, "</a>");
        ck_assert_int_eq(s3_xml_find(text.data, text.size, "a", found, sizeof found, NULL), ST_OK);
        buf_clear(&text);
        for (int i = 0; i <= LIMIT_S3_XML_DEPTH; i++)
                buf_append_str(&text, "<a>");
        ck_assert_int_eq(s3_xml_find(text.data, text.size, "a", found, sizeof found, NULL), ST_TOO_BIG);
}
END_TEST

START_TEST(code_of_an_error_is_found)
{
        static const char text[] = "<Error><Code>NoSuchKey</Code><Message>The key</Message></Error>";
        char code[20];

        ck_assert_int_eq(s3_xml_find(text, strlen(text), "Code", code, sizeof code, NULL), ST_OK);
        ck_assert_str_eq(code, "NoSuchKey");
        ck_assert_int_eq(s3_xml_find(text, strlen(text), "Region", code, sizeof code, NULL), ST_NOT_FOUND);
        ck_assert_str_eq(code, "");
        ck_assert_int_eq(s3_xml_find(text, strlen(text), "Code", code, 5, NULL), ST_TOO_BIG);
}
END_TEST

START_TEST(times_are_read)
{
        ck_assert_int_eq(s3_parse_time("2026-11-28T20:15:30.125Z"), 1795896930125);
        ck_assert_int_eq(s3_parse_time("2026-11-28T20:15:30Z"), 1795896930000);
        ck_assert_int_eq(s3_parse_time("2026-11-28 20:15:30"), -1);
        ck_assert_int_eq(s3_parse_time("2026-11-28T20:15:30+01:00"), -1);
}
END_TEST

static void check_location(const char *url, const char *endpoint, const char *base, const char *path,
                           const char *prefix)
{
        _cleanup_s3_location_ struct s3_location l = { 0 };
        struct error err;

        setenv("AWS_ENDPOINT_URL_S3", endpoint, 1);
        setenv("AWS_REGION", "eu-central-1", 1);
        check_ok(s3_location_parse(url, &l, &err), &err);
        ck_assert_str_eq(l.base_url, base);
        ck_assert_str_eq(l.host, strstr(base, "://") + 3);
        ck_assert_str_eq(l.bucket_path, path);
        ck_assert_str_eq(l.prefix, prefix);
}

START_TEST(bucket_is_in_the_host_or_in_the_path)
{
        check_location("s3://data/a/b=c/", "", "https://data.s3.eu-central-1.amazonaws.com", "", "a/b=c");
        check_location("s3://my.data", "", "https://s3.eu-central-1.amazonaws.com", "/my.data", "");
        check_location("s3://data/a", "http://[::1]:9000/", "http://[::1]:9000", "/data", "a");
        check_location("s3://data/a", "https://{bucket}.example.org:443", "https://data.example.org", "", "a");
}
END_TEST

START_TEST(wrong_addresses_are_refused)
{
        static const char *const urls[] = { "data/a",        "s3:/data",      "s3://",          "s3://ab",
                                            "s3://Data/a",   "s3://data//",   "s3://data/../a", "s3://data/.a",
                                            "s3://data/a b", "s3://data/a//b" };
        struct s3_location l;

        for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
                enum status st = s3_location_parse(urls[i], &l, NULL);

                if (strcmp(urls[i], "s3://data//") == 0) { /* slashes at the end are dropped */
                        s3_location_deinit(&l);
                        continue;
                }
                ck_assert_msg(st == ST_USAGE, "%s", urls[i]);
        }
        setenv("AWS_ENDPOINT_URL_S3", "127.0.0.1:9000", 1);
        ck_assert_int_eq(s3_location_parse("s3://data/a", &l, NULL), ST_USAGE);
        setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000/path", 1);
        ck_assert_int_eq(s3_location_parse("s3://data/a", &l, NULL), ST_USAGE);
}
END_TEST

TEST_SUITE("s3_answers", page_of_keys_is_read, last_page_has_no_next, cut_list_without_a_token_is_an_error,
           document_types_are_refused, nesting_is_bounded, code_of_an_error_is_found, times_are_read,
           bucket_is_in_the_host_or_in_the_path, wrong_addresses_are_refused)
