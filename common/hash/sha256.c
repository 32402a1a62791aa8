/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash/sha256.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "common/text.h"

enum status sha256_init(struct sha256 *s, struct error *err)
{
        EVP_MD_CTX *context = EVP_MD_CTX_new();

        if (!context)
                return error_no_memory(err);
        if (EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
                EVP_MD_CTX_free(context);
                return error_set(err, ST_UNSUPPORTED, "libcrypto has no SHA-256");
        }
        s->context = context;
        return ST_OK;
}

void sha256_deinit(struct sha256 *s)
{
        EVP_MD_CTX_free(s->context);
        s->context = NULL;
}

void sha256_update(struct sha256 *s, const void *data, size_t n)
{
        int ok = EVP_DigestUpdate(s->context, data, n);

        assert(ok == 1);
        (void)ok;
}

void sha256_final(struct sha256 *s, uint8_t ret[static SHA256_BYTES])
{
        int ok = EVP_DigestFinal_ex(s->context, ret, NULL);

        assert(ok == 1);
        (void)ok;
        sha256_deinit(s);
}

bool hmac_sha256(const void *key, size_t key_size, const void *data, size_t n, uint8_t ret[static SHA256_BYTES])
{
        return HMAC(EVP_sha256(), key, (int)key_size, data, n, ret, NULL) != NULL;
}

bool sha256_equal(const uint8_t a[static SHA256_BYTES], const uint8_t b[static SHA256_BYTES])
{
        return CRYPTO_memcmp(a, b, SHA256_BYTES) == 0;
}

const char *sha256_hex(const uint8_t digest[static SHA256_BYTES], char out[static SHA256_HEX_MAX])
{
        return hex_encode(digest, SHA256_BYTES, out);
}

bool sha256_parse(const char *hex, uint8_t ret[static SHA256_BYTES])
{
        uint8_t digest[SHA256_BYTES];

        if (strlen(hex) != 2 * SHA256_BYTES || !hex_decode(hex, SHA256_BYTES, digest))
                return false;
        memcpy(ret, digest, SHA256_BYTES);
        return true;
}
