// SPDX-License-Identifier: Apache-2.0
// Hand-written assembly of OpenSSL, with CFAs based on other registers, in memory and below the stack pointer.
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <string.h>
int main(void)
{
        static unsigned char data[16384], out[64], key[32], sealed[16384 + 32];
        const EVP_MD *digests[] = { EVP_sha1(), EVP_sha256(), EVP_sha512(), EVP_sha3_256(), EVP_md5() };
        const EVP_CIPHER *ciphers[] = { EVP_aes_256_cbc(), EVP_aes_256_gcm(), EVP_chacha20_poly1305() };
        EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
        BIGNUM *base = BN_new(), *modulus = BN_new(), *result = BN_new();
        BN_CTX *scratch = BN_CTX_new();

        memset(data, 0x5a, sizeof data);
        BN_bin2bn(data, 256, base);
        BN_bin2bn(data, 256, modulus);
        BN_set_bit(modulus, 0);
        for (;;) {
                int n;

                for (unsigned i = 0; i < sizeof digests / sizeof *digests; i++)
                        EVP_Digest(data, sizeof data, out, 0, digests[i], 0);
                for (unsigned i = 0; i < sizeof ciphers / sizeof *ciphers; i++) {
                        EVP_EncryptInit_ex(context, ciphers[i], 0, key, key);
                        EVP_EncryptUpdate(context, sealed, &n, data, sizeof data);
                }
                BN_mod_exp(result, base, base, modulus, scratch);
        }
}
