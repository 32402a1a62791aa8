/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOL_CACHE_H
#define CAIRN_CLI_SYMBOL_CACHE_H

/**
 * @file
 * Symbol books of files that were read before, kept for the next time
 * (docs/formats/symbol-book.md, "The cache").
 *
 * A cache that cannot be used, for whatever reason, is no cache: nothing here
 * reports an error but by having nothing. A directory, and each book in it, must
 * belong to the user whose rights the process has and to nobody else's to
 * write; so root does not leave files in the cache of the user that it was
 * called by, and nobody is led to a file that somebody else put there.
 *
 * Nothing is synced: after a power cut a book may be cut off, which its
 * checksums tell, and is made again.
 *
 * Threads: a cache belongs to one thread. Any number of processes share a
 * directory: books come by rename and are never changed.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/sha256.h"
#include "symbolizer/extract.h"
#include "symbolizer/symbol_book.h"

struct symbol_cache {
        int directory_fd;              /* -1: there is no cache */
        bool is_settled;               /* the files are old enough that what they are now can be told from a later change */
        char name[SHA256_HEX_MAX + 8]; /* of the book in it */
};

/** The directory where caches of this user are, by the rules above; a descriptor, -1 none. */
int symbol_cache_open_directory(void);

/**
 * The cache for these inputs: $CAIRN_CACHE_DIR, else $XDG_CACHE_HOME/cairn, else $HOME/.cache/cairn.
 * A book belongs to the files as they are (device, number, size, times of change, build-id) and to this very program.
 */
void symbol_cache_open(const struct extract_inputs *in, struct symbol_cache *ret);
void symbol_cache_close(struct symbol_cache *c);

/** The book of the inputs. False when there is none; a damaged one is removed. @param ret symbol_book_close(). */
bool symbol_cache_get(struct symbol_cache *c, struct symbol_book *ret);

/** Keep a book, and drop others, those that were not used for the longest time first, until all take at most max_bytes. */
void symbol_cache_put(struct symbol_cache *c, const struct symbol_book *book, uint64_t max_bytes);

/** Remove the book of the inputs: it turned out to be damaged. */
void symbol_cache_drop(struct symbol_cache *c);

#endif
