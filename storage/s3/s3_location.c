/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_location.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define SCHEME "s3://"
#define BUCKET_PLACE "{bucket}"
#define BUCKET_LEAST 3
#define BUCKET_MOST 63
#define PREFIX_MOST 256

void s3_location_deinit(struct s3_location *l)
{
        free(l->bucket);
        free(l->prefix);
        free(l->region);
        free(l->base_url);
        free(l->bucket_path);
        free(l->ca_file);
        free(l->encryption);
        free(l->kms_key);
        *l = (struct s3_location){ 0 };
}

bool is_s3_url(const char *text)
{
        return starts_with(text, SCHEME);
}

static const char *get_first_variable(const char *first, const char *second, const char *standard)
{
        const char *value = getenv(first);

        if (!value || !*value)
                value = second ? getenv(second) : NULL;
        return value && *value ? value : standard;
}

static bool consists_of(const char *text, size_t n, const char *others)
{
        for (size_t i = 0; i < n; i++) {
                if (!(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= '0' && text[i] <= '9') &&
                    !(text[i] && strchr(others, text[i])))
                        return false;
        }
        return true;
}

/* Keys must not have components that are empty or begin with a dot (storage.h). */
static bool is_prefix_valid(const char *prefix, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                bool is_start = i == 0 || prefix[i - 1] == '/';

                if (!consists_of(prefix + i, 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ._=-/") ||
                    (is_start && (prefix[i] == '.' || prefix[i] == '/')))
                        return false;
        }
        return n <= PREFIX_MOST;
}

static enum status split_s3_url(const char *url, struct s3_location *ret, struct error *err)
{
        const char *bucket = url + strlen(SCHEME), *prefix;
        size_t bucket_size = is_s3_url(url) ? strcspn(bucket, "/") : 0, prefix_size;

        if (!is_s3_url(url))
                return error_set(err, ST_USAGE, "'%.100s' is no address of an object store: give s3://BUCKET/PREFIX",
                                 url);
        prefix = bucket + bucket_size + (bucket[bucket_size] == '/');
        prefix_size = strlen(prefix);
        while (prefix_size && prefix[prefix_size - 1] == '/')
                prefix_size--;
        if (bucket_size < BUCKET_LEAST || bucket_size > BUCKET_MOST || !consists_of(bucket, bucket_size, ".-"))
                return error_set(err, ST_USAGE,
                                 "'%.*s' is no name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
                                 (int)(bucket_size < 100 ? bucket_size : 100), bucket);
        if (!is_prefix_valid(prefix, prefix_size))
                return error_set(err, ST_USAGE,
                                 "the prefix '%.80s' is not possible: letters, digits, . _ = - and single slashes, no "
                                 "component that begins with a dot",
                                 prefix);
        ret->bucket = strndup(bucket, bucket_size);
        ret->prefix = strndup(prefix, prefix_size);
        return ret->bucket && ret->prefix ? ST_OK : error_no_memory(err);
}

/* Clients leave out the scheme's own port in the Host header, which is signed. */
static void drop_default_port(char *url)
{
        const char *port = starts_with(url, "https://") ? ":443" : ":80";

        if (ends_with(url, port))
                url[strlen(url) - strlen(port)] = 0;
}

static enum status place_bucket(const char *endpoint, struct s3_location *ret, struct error *err)
{
        const char *place = strstr(endpoint, BUCKET_PLACE);
        const char *host = strstr(endpoint, "://");
        size_t n = strlen(endpoint);
        int made;

        while (n && endpoint[n - 1] == '/')
                n--;
        if (!host || !host[3] ||
            memchr(host + 3, '/', n > (size_t)(host + 3 - endpoint) ? n - (size_t)(host + 3 - endpoint) : 0) ||
            (!starts_with(endpoint, "http://") && !starts_with(endpoint, "https://")))
                return error_set(err, ST_USAGE,
                                 "AWS_ENDPOINT_URL_S3 is '%.100s': give http://HOST[:PORT] or https://HOST[:PORT]",
                                 endpoint);
        if (place)
                made = asprintf(&ret->base_url, "%.*s%s%.*s", (int)(place - endpoint), endpoint, ret->bucket,
                                (int)(n - (size_t)(place - endpoint) - strlen(BUCKET_PLACE)),
                                place + strlen(BUCKET_PLACE));
        else
                made = asprintf(&ret->base_url, "%.*s", (int)n, endpoint);
        if (made < 0)
                ret->base_url = NULL;
        if (made < 0 || asprintf(&ret->bucket_path, "%s%s", place ? "" : "/", place ? "" : ret->bucket) < 0)
                return error_no_memory(err);
        drop_default_port(ret->base_url);
        ret->host = strstr(ret->base_url, "://") + 3;
        return ST_OK;
}

/* A bucket whose name has dots does not match the certificate for *.s3.REGION.amazonaws.com. */
static enum status place_bucket_at_amazon(struct s3_location *ret, struct error *err)
{
        _cleanup_free_ char *endpoint = NULL;
        bool has_dots = strchr(ret->bucket, '.');

        if (asprintf(&endpoint, "https://%ss3.%s.amazonaws.com", has_dots ? "" : BUCKET_PLACE ".", ret->region) < 0) {
                endpoint = NULL;
                return error_no_memory(err);
        }
        return place_bucket(endpoint, ret, err);
}

static enum status copy_variable(const char *name, char **ret, struct error *err)
{
        const char *value = get_first_variable(name, NULL, NULL);

        *ret = value ? strdup(value) : NULL;
        return value && !*ret ? error_no_memory(err) : ST_OK;
}

static bool is_header_text(const char *text)
{
        while (*text > ' ' && *text < 0x7f)
                text++;
        return !*text;
}

static enum status read_encryption(struct s3_location *ret, struct error *err)
{
        enum status st = copy_variable("AWS_SERVER_SIDE_ENCRYPTION", &ret->encryption, err);

        if (!st)
                st = copy_variable("AWS_SSE_KMS_KEY_ID", &ret->kms_key, err);
        if (st)
                return st;
        if (ret->encryption && strcmp(ret->encryption, "AES256") != 0 && strcmp(ret->encryption, "aws:kms") != 0 &&
            strcmp(ret->encryption, "aws:kms:dsse") != 0)
                return error_set(err, ST_USAGE,
                                 "AWS_SERVER_SIDE_ENCRYPTION is '%.60s': give AES256, aws:kms or aws:kms:dsse",
                                 ret->encryption);
        if (ret->kms_key && (!ret->encryption || strcmp(ret->encryption, "AES256") == 0))
                return error_set(err, ST_USAGE,
                                 "AWS_SSE_KMS_KEY_ID needs AWS_SERVER_SIDE_ENCRYPTION=aws:kms or aws:kms:dsse");
        return ret->kms_key && !is_header_text(ret->kms_key)
                       ? error_set(err, ST_USAGE, "AWS_SSE_KMS_KEY_ID is '%.100s', which is no key", ret->kms_key)
                       : ST_OK;
}

enum status s3_location_parse(const char *url, struct s3_location *ret, struct error *err)
{
        const char *endpoint = get_first_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL);
        const char *region = get_first_variable("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");
        enum status st;

        *ret = (struct s3_location){ 0 };
        if (!consists_of(region, strlen(region), "-"))
                return error_set(err, ST_USAGE, "AWS_REGION is '%.60s', which is no region", region);
        st = split_s3_url(url, ret, err);
        if (!st && !(ret->region = strdup(region)))
                st = error_no_memory(err);
        if (!st)
                st = copy_variable("AWS_CA_BUNDLE", &ret->ca_file, err);
        if (!st)
                st = read_encryption(ret, err);
        if (!st)
                st = endpoint ? place_bucket(endpoint, ret, err) : place_bucket_at_amazon(ret, err);
        if (st)
                s3_location_deinit(ret);
        return st;
}
