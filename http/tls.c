/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"

struct tls_pair {
        atomic_uint references;
        gnutls_certificate_credentials_t credentials;
        struct buf cert, key; /* NUL-terminated */
        int64_t expires;
};

struct tls {
        char *cert_path, *key_path;
        pthread_mutex_t lock;
        struct tls_pair *pair;
};

void tls_pair_release(struct tls_pair *p)
{
        if (!p || atomic_fetch_sub(&p->references, 1) > 1)
                return;
        if (p->credentials)
                gnutls_certificate_free_credentials(p->credentials);
        if (p->key.data)
                explicit_bzero(p->key.data, p->key.size);
        buf_deinit(&p->cert);
        buf_deinit(&p->key);
        free(p);
}

static void cleanup_pair(struct tls_pair **p)
{
        tls_pair_release(*p);
}

/*
 * Whether the last line has no line end and does not end a block: GnuTLS skips the beginning of "-----BEGIN", after
 * which the certificate of an issuer would follow.
 */
static bool is_pem_cut_off(const struct buf *text)
{
        const char *begin = (const char *)text->data, *end = begin + text->size, *line;

        while (end > begin && strchr(" \t\r", end[-1]))
                end--;
        for (line = end; line > begin && line[-1] != '\n'; line--)
                ;
        return line < end && ((size_t)(end - line) < strlen("-----END -----") || strncmp(line, "-----END ", 9) != 0 ||
                              strncmp(end - 5, "-----", 5) != 0);
}

static enum status read_pem(const char *what, const char *path, struct buf *ret, struct error *err)
{
        enum status st;

        buf_init(ret, LIMIT_PEM_BYTES);
        st = file_read(path, ret, err);
        if (!st && !buf_cstr(ret))
                st = buf_status(ret, err, path);
        if (!st && is_pem_cut_off(ret))
                st = error_set(err, ST_BAD_DATA, "'%s' is cut off after its last certificate or key", path);
        return st ? error_prefix(err, st, "%s", what) : ST_OK;
}

/* The expiry of the first certificate, which is the server's. */
static enum status read_expiry(const char *path, struct tls_pair *p, struct error *err)
{
        const gnutls_datum_t text = { p->cert.data, (unsigned)p->cert.size };
        gnutls_x509_crt_t cert;
        int r = gnutls_x509_crt_init(&cert);

        if (r < 0)
                return error_no_memory(err);
        r = gnutls_x509_crt_import(cert, &text, GNUTLS_X509_FMT_PEM);
        if (r >= 0)
                p->expires = gnutls_x509_crt_get_expiration_time(cert);
        gnutls_x509_crt_deinit(cert);
        if (r < 0)
                return error_set(
                        err, ST_BAD_DATA,
                        "'%s' holds no certificate (%s); PEM is required: the server's certificate, then its issuers",
                        path, gnutls_strerror(r));
        return ST_OK;
}

/* Check the key alone first, so that the message can name the invalid file. */
static enum status check_key(const char *path, const struct tls_pair *p, struct error *err)
{
        const gnutls_datum_t text = { p->key.data, (unsigned)p->key.size };
        gnutls_x509_privkey_t key;
        int r = gnutls_x509_privkey_init(&key);

        if (r < 0)
                return error_no_memory(err);
        r = gnutls_x509_privkey_import2(key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
        gnutls_x509_privkey_deinit(key);
        if (r < 0)
                return error_set(err, ST_BAD_DATA, "'%s' holds no private key (%s); PEM without a password is required",
                                 path, gnutls_strerror(r));
        return ST_OK;
}

static enum status join_pair(const struct tls *t, struct tls_pair *p, struct error *err)
{
        const gnutls_datum_t cert = { p->cert.data, (unsigned)p->cert.size };
        const gnutls_datum_t key = { p->key.data, (unsigned)p->key.size };
        int r = gnutls_certificate_allocate_credentials(&p->credentials);

        if (r < 0)
                return error_no_memory(err);
        r = gnutls_certificate_set_x509_key_mem(p->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
        if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
                return error_set(
                        err, ST_BAD_DATA,
                        "the key in '%s' does not match the first certificate in '%s', which must be the server's",
                        t->key_path, t->cert_path);
        if (r < 0)
                return error_set(err, ST_BAD_DATA, "cannot use '%s' with '%s': %s", t->cert_path, t->key_path,
                                 gnutls_strerror(r));
        return ST_OK;
}

static enum status read_pair(const struct tls *t, struct tls_pair **ret, struct error *err)
{
        _cleanup_(cleanup_pair) struct tls_pair *p = calloc(1, sizeof *p);
        enum status st;

        if (!p)
                return error_no_memory(err);
        atomic_init(&p->references, 1);
        st = read_pem("TLS certificate", t->cert_path, &p->cert, err);
        if (!st)
                st = read_pem("TLS key", t->key_path, &p->key, err);
        if (!st)
                st = read_expiry(t->cert_path, p, err);
        if (!st)
                st = check_key(t->key_path, p, err);
        if (!st)
                st = join_pair(t, p, err);
        if (!st)
                *ret = steal_ptr(p);
        return st;
}

enum status tls_load(const char *cert_path, const char *key_path, struct tls **ret, struct error *err)
{
        struct tls *t = calloc(1, sizeof *t);
        enum status st;

        if (!t)
                return error_no_memory(err);
        pthread_mutex_init(&t->lock, NULL);
        t->cert_path = strdup(cert_path);
        t->key_path = strdup(key_path);
        st = t->cert_path && t->key_path ? read_pair(t, &t->pair, err) : error_no_memory(err);
        if (st)
                tls_destroy(t);
        else
                *ret = t;
        return st;
}

/* Exchange the paths with those of t. */
static void swap_paths(struct tls *t, char **cert_path, char **key_path)
{
        char *cert = t->cert_path, *key = t->key_path;

        t->cert_path = *cert_path;
        t->key_path = *key_path;
        *cert_path = cert;
        *key_path = key;
}

enum status tls_reload(struct tls *t, const char *cert_path, const char *key_path, struct error *err)
{
        _cleanup_free_ char *cert = strdup(cert_path ? cert_path : t->cert_path);
        _cleanup_free_ char *key = strdup(key_path ? key_path : t->key_path);
        struct tls_pair *fresh, *old;
        enum status st;

        if (!cert || !key)
                return error_no_memory(err);
        swap_paths(t, &cert, &key);
        st = read_pair(t, &fresh, err);
        if (st) {
                swap_paths(t, &cert, &key);
                return st;
        }
        pthread_mutex_lock(&t->lock);
        old = t->pair;
        t->pair = fresh;
        pthread_mutex_unlock(&t->lock);
        tls_pair_release(old);
        return ST_OK;
}

void tls_destroy(struct tls *t)
{
        if (!t)
                return;
        tls_pair_release(t->pair);
        pthread_mutex_destroy(&t->lock);
        free(t->cert_path);
        free(t->key_path);
        free(t);
}

struct tls_pair *tls_pair_acquire(struct tls *t)
{
        struct tls_pair *p;

        pthread_mutex_lock(&t->lock);
        p = t->pair;
        atomic_fetch_add(&p->references, 1);
        pthread_mutex_unlock(&t->lock);
        return p;
}

int64_t tls_get_expiry(struct tls *t)
{
        struct tls_pair *p = tls_pair_acquire(t);
        int64_t expires = p->expires;

        tls_pair_release(p);
        return expires;
}

void tls_pair_apply(struct tls_pair *p, void *session)
{
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, p->credentials);
}

const char *tls_pair_cert(const struct tls_pair *p)
{
        return (const char *)p->cert.data;
}

const char *tls_pair_key(const struct tls_pair *p)
{
        return (const char *)p->key.data;
}
