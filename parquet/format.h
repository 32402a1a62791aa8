/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_FORMAT_H
#define CAIRN_PARQUET_FORMAT_H

/*
 * Constants of the Parquet format that Cairn reads or writes.
 * Source: apache/parquet-format, src/main/thrift/parquet.thrift.
 */
#define PARQUET_MAGIC "PAR1"
#define PARQUET_MAGIC_BYTES 4
#define PARQUET_TAIL_BYTES 8 /* footer length and magic */

enum parquet_physical {
        PHYSICAL_BOOLEAN = 0,
        PHYSICAL_INT32 = 1,
        PHYSICAL_INT64 = 2,
        PHYSICAL_INT96 = 3,
        PHYSICAL_FLOAT = 4,
        PHYSICAL_DOUBLE = 5,
        PHYSICAL_BYTE_ARRAY = 6,
        PHYSICAL_FIXED = 7,
};

enum parquet_repetition { REPETITION_REQUIRED = 0, REPETITION_OPTIONAL = 1, REPETITION_REPEATED = 2 };

enum parquet_encoding {
        ENCODING_PLAIN = 0,
        ENCODING_PLAIN_DICTIONARY = 2, /* RLE_DICTIONARY as named by old writers */
        ENCODING_RLE = 3,
        ENCODING_DELTA_BINARY_PACKED = 5,
        ENCODING_DELTA_LENGTH_BYTE_ARRAY = 6,
        ENCODING_RLE_DICTIONARY = 8,
        ENCODING_BYTE_STREAM_SPLIT = 9,
};

enum parquet_codec { CODEC_UNCOMPRESSED = 0, CODEC_ZSTD = 6 };

enum parquet_page { PAGE_DATA = 0, PAGE_INDEX = 1, PAGE_DICTIONARY = 2, PAGE_DATA_V2 = 3 };

enum parquet_converted {
        CONVERTED_UTF8 = 0,
        CONVERTED_MAP = 1,
        CONVERTED_MAP_KEY_VALUE = 2,
        CONVERTED_LIST = 3,
        CONVERTED_ENUM = 4,
        CONVERTED_DATE = 6,
        CONVERTED_TIMESTAMP_MILLIS = 9,
        CONVERTED_TIMESTAMP_MICROS = 10,
        CONVERTED_JSON = 19,
};

/* Fields of the LogicalType union. */
enum parquet_logical {
        LOGICAL_STRING = 1,
        LOGICAL_MAP = 2,
        LOGICAL_LIST = 3,
        LOGICAL_ENUM = 4,
        LOGICAL_DATE = 6,
        LOGICAL_TIMESTAMP = 8,
        LOGICAL_JSON = 12,
};

enum parquet_time_unit { TIME_UNIT_MILLIS = 1, TIME_UNIT_MICROS = 2, TIME_UNIT_NANOS = 3 };

#endif
