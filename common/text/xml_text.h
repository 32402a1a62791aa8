/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_XML_TEXT_H
#define CAIRN_COMMON_TEXT_XML_TEXT_H

/**
 * @file
 * Text in XML documents.
 *
 * Threads: no shared state.
 * Source: Extensible Markup Language (XML) 1.0, 2.2 and 2.4.
 */
#include "common/memory/buf.h"

/** Append text as character data, also for attributes in double quotes. What XML does not have becomes '?': control
 * characters but line ends, bytes that are not UTF-8, U+FFFE and U+FFFF. */
void xml_append_text(struct buf *to, const char *text);

#endif
