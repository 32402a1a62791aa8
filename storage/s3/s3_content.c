/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_content.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/base64.h"

#define MD5_BYTES 16

struct hashes {
        struct sha256 sha256;
        EVP_MD_CTX *md5; /* owned; NULL: none */
};

static enum status begin_hashes(bool has_md5, struct hashes *ret, struct error *err)
{
        enum status st = sha256_init(&ret->sha256, err);

        ret->md5 = !st && has_md5 ? EVP_MD_CTX_new() : NULL;
        if (st || !has_md5 || (ret->md5 && EVP_DigestInit_ex(ret->md5, EVP_md5(), NULL) == 1))
                return st;
        EVP_MD_CTX_free(ret->md5);
        sha256_deinit(&ret->sha256);
        return error_set(err, ST_UNSUPPORTED, "the bucket demands MD5 checksums, which libcrypto does not have");
}

static void update_hashes(struct hashes *h, const void *data, size_t n)
{
        sha256_update(&h->sha256, data, n);
        if (h->md5)
                EVP_DigestUpdate(h->md5, data, n);
}

static enum status end_hashes(struct hashes *h, struct s3_content *ret, struct error *err)
{
        uint8_t sha256[SHA256_BYTES], md5[MD5_BYTES];
        _cleanup_buf_ struct buf text;

        *ret = (struct s3_content){ 0 };
        buf_init(&text, sizeof ret->md5);
        sha256_final(&h->sha256, sha256);
        sha256_hex(sha256, ret->sha256);
        if (h->md5) {
                EVP_DigestFinal_ex(h->md5, md5, NULL);
                EVP_MD_CTX_free(h->md5);
                base64_encode_append(&text, md5, sizeof md5);
                if (!buf_cstr(&text))
                        return error_no_memory(err);
                snprintf(ret->md5, sizeof ret->md5, "%s", buf_cstr(&text));
        }
        return ST_OK;
}

enum status s3_hash_content(const void *data, size_t n, bool has_md5, struct s3_content *ret, struct error *err)
{
        struct hashes h;
        enum status st = begin_hashes(has_md5, &h, err);

        if (st)
                return st;
        update_hashes(&h, n ? data : "", n);
        return end_hashes(&h, ret, err);
}

ssize_t s3_file_body_read(void *body, void *to, size_t n)
{
        struct s3_file_body *b = body;
        uint64_t left = b->range.size - b->sent;
        ssize_t got = pread(b->fd, to, n < left ? n : (size_t)left, (off_t)(b->range.offset + b->sent));

        if (got > 0)
                b->sent += (uint64_t)got;
        if (got == 0 && left) { /* it became shorter */
                errno = EIO;
                return -1;
        }
        return got;
}

bool s3_file_body_rewind(void *body)
{
        ((struct s3_file_body *)body)->sent = 0;
        return true;
}

enum status s3_hash_file_body(struct s3_file_body *b, bool has_md5, struct s3_content *ret, struct error *err)
{
        _cleanup_free_ uint8_t *chunk = malloc(KiB(64));
        struct hashes h;
        enum status st = chunk ? begin_hashes(has_md5, &h, err) : error_no_memory(err);
        int failed = 0;
        ssize_t n;

        if (st)
                return st;
        s3_file_body_rewind(b);
        while (!failed && b->sent < b->range.size) {
                n = s3_file_body_read(b, chunk, KiB(64));
                if (n < 0)
                        failed = errno;
                else
                        update_hashes(&h, chunk, (size_t)n);
        }
        s3_file_body_rewind(b);
        st = end_hashes(&h, ret, err);
        return failed ? error_os(err, failed, "cannot read what is to be put into the object store") : st;
}
