/* SPDX-License-Identifier: Apache-2.0 */
#include "elf-image/elf_identity.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "common/hash/sha256.h"

#define HTL_PIECE_BYTES 4096
#define HTL_HASH_BYTES 16

bool elf_image_go_build_id(const struct elf_image *img, struct build_id *ret)
{
        const struct elf_section *s = elf_image_section(img, ".note.go.buildid");
        struct elf_note_cursor c;
        enum elf_build_id_kind kind;
        const uint8_t *bytes;
        struct build_id id;
        size_t size;

        if (!s || s->type != SHT_NOTE || elf_section_is_compressed(s) || elf_section_raw(img, s, &bytes, &size, NULL))
                return false;
        elf_notes_begin(&c, bytes, size, s->alignment, img->big_endian);
        if (!elf_notes_build_id(&c, &id, &kind) || kind != ELF_BUILD_ID_GO)
                return false;
        *ret = id;
        return true;
}

static enum status hash_file_part(struct sha256 *sha, int fd, uint64_t offset, size_t size, struct error *err)
{
        uint8_t bytes[HTL_PIECE_BYTES];

        for (size_t done = 0; done < size;) {
                ssize_t n = pread(fd, bytes + done, size - done, (off_t)(offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return error_os(err, n ? errno : EIO, "cannot read the ends of a file");
                done += (size_t)n;
        }
        sha256_update(sha, bytes, size);
        return ST_OK;
}

enum status elf_htlhash(int fd, uint64_t size, struct build_id *ret, struct error *err)
{
        size_t piece = size < HTL_PIECE_BYTES ? (size_t)size : HTL_PIECE_BYTES;
        _cleanup_sha256_ struct sha256 sha = { 0 };
        uint64_t length = htobe64(size);
        uint8_t digest[SHA256_BYTES];
        enum status st = sha256_init(&sha, err);

        if (!st)
                st = hash_file_part(&sha, fd, 0, piece, err);
        if (!st)
                st = hash_file_part(&sha, fd, size - piece, piece, err);
        if (st)
                return st;
        sha256_update(&sha, &length, sizeof length);
        sha256_final(&sha, digest);
        (void)!build_id_from_bytes(ret, digest, HTL_HASH_BYTES);
        return ST_OK;
}
