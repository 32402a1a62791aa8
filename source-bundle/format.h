/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SOURCE_BUNDLE_FORMAT_H
#define CAIRN_SOURCE_BUNDLE_FORMAT_H

/* Between write.c and read.c: the layout of docs/formats/source-bundle.md. */
#define BUNDLE_MAGIC "CAIRNSRC"
#define BUNDLE_MAGIC_BYTES 8
#define BUNDLE_VERSION 1
#define BUNDLE_ID_BYTES 64
#define BUNDLE_HEADER_BYTES (BUNDLE_MAGIC_BYTES + 4 + 4 + BUNDLE_ID_BYTES + 4 + 4)
#define BUNDLE_ENTRY_BYTES 24

#endif
