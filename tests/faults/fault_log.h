/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_LOG_H
#define CAIRN_TESTS_FAULTS_FAULT_LOG_H

/*
 * The log of a program's modifications of files: a header for each, followed by two paths and the bytes written, in
 * native byte order.
 */
#include <stdint.h>

enum fault_op {
        FAULT_CREATE,    /* path, inode; an unnamed file has no path */
        FAULT_WRITE,     /* inode, offset, bytes; synced: because of O_DSYNC */
        FAULT_TRUNCATE,  /* inode, offset is the new size */
        FAULT_SYNC,      /* inode */
        FAULT_SYNC_LOST, /* inode: a sync failed, and the kernel drops the unwritten pages */
        FAULT_SYNC_DIR,  /* path */
        FAULT_SYNC_ALL,
        FAULT_RENAME, /* path, other */
        FAULT_LINK,   /* path, other */
        FAULT_UNLINK, /* path, a file or a directory */
        FAULT_MKDIR,  /* path */
        FAULT_MARK    /* offset: number of the acknowledged step */
};

struct fault_log_header {
        uint32_t op, synced;
        uint32_t path_size, other_size; /* including the NULs; 0: none */
        uint64_t inode, offset, byte_count;
};

#endif
