/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_COMPANIONS_H
#define CAIRN_UPLOADER_COMPANIONS_H

/**
 * @file
 * The files without which a debug file tells only half: what dwz took out of
 * it, and the other halves of its split units (a package beside it, or .dwo
 * files where they were compiled).
 *
 * Threads: the list's.
 */
#include "elf-image/elf_image.h"
#include "uploader/upload_list.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

/** Add what is found of them to the list, and a note for what is not. */
enum status companions_add(struct upload_list *list, const struct elf_image *img, upload_note *note, void *context,
                           struct error *err) MUST_CHECK;

/** Is the file half of another one, which is added when that one is: a .dwo file or a package? */
bool companion_is_half(const struct elf_image *img);

/** For both files of this pair: add one entry. @param id what it is stored under. */
enum status upload_list_append(struct upload_list *list, const struct elf_image *img, const char *path, enum upload_kind kind,
                               const struct build_id *id, struct error *err) MUST_CHECK;

#endif
