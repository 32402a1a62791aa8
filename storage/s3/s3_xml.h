/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_XML_H
#define CAIRN_STORAGE_S3_XML_H

/**
 * @file
 * XML answers of object stores: small documents without attributes of interest, read by libexpat.
 *
 * Document types are refused, so nothing but the five standard entities is expanded. Texts beyond
 * LIMIT_S3_XML_TEXT_BYTES and nesting beyond LIMIT_S3_XML_DEPTH are ST_TOO_BIG.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/**
 * Called at the end of each element. A failure ends the parse.
 * @param parent  name of the element around it; "" for the outermost.
 * @param text    the text directly within it, all pieces joined.
 */
typedef enum status s3_xml_visit(void *context, const char *parent, const char *name, const char *text,
                                 struct error *err);

enum status s3_xml_parse(const void *data, size_t n, s3_xml_visit *visit, void *context, struct error *err) MUST_CHECK;

/** Copy the text of the first element of this name; ST_NOT_FOUND without one. ST_TOO_BIG when it does not fit. */
enum status s3_xml_find(const void *data, size_t n, const char *name, char *ret, size_t size,
                        struct error *err) MUST_CHECK;

/** A time as in "2026-11-28T20:15:30.000Z", in milliseconds of Unix time; -1 for any other text. */
int64_t s3_parse_time(const char *text);

#endif
