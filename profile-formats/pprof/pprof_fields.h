/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_PPROF_FIELDS_H
#define CAIRN_PROFILE_FORMATS_PPROF_PPROF_FIELDS_H

/*
 * A comment that states the id of a sample type: "# cairn type NAME = ID", where NAME is that of the file's sample
 * type. Readers do not show comments that begin with '#'.
 */
#define TYPE_COMMENT_PREFIX "# cairn type "
#define TYPE_COMMENT_SEPARATOR " = "

/* Field numbers of perftools.profiles. Source: google/pprof proto/profile.proto. */
enum {
        PPROF_SAMPLE_TYPE = 1,
        PPROF_SAMPLE = 2,
        PPROF_MAPPING = 3,
        PPROF_LOCATION = 4,
        PPROF_FUNCTION = 5,
        PPROF_STRING_TABLE = 6,
        PPROF_DROP_FRAMES = 7,
        PPROF_KEEP_FRAMES = 8,
        PPROF_TIME_NANOS = 9,
        PPROF_DURATION_NANOS = 10,
        PPROF_PERIOD_TYPE = 11,
        PPROF_PERIOD = 12,
        PPROF_COMMENT = 13,
        PPROF_DEFAULT_SAMPLE_TYPE = 14,

        PPROF_VALUE_TYPE_TYPE = 1,
        PPROF_VALUE_TYPE_UNIT = 2,

        PPROF_SAMPLE_LOCATION_ID = 1,
        PPROF_SAMPLE_VALUE = 2,
        PPROF_SAMPLE_LABEL = 3,

        PPROF_LABEL_KEY = 1,
        PPROF_LABEL_STR = 2,
        PPROF_LABEL_NUM = 3,
        PPROF_LABEL_NUM_UNIT = 4,

        PPROF_ID = 1, /* of mappings, locations and functions */

        PPROF_MAPPING_START = 2,
        PPROF_MAPPING_LIMIT = 3,
        PPROF_MAPPING_FILE_OFFSET = 4,
        PPROF_MAPPING_FILENAME = 5,
        PPROF_MAPPING_BUILD_ID = 6,
        PPROF_MAPPING_HAS_FUNCTIONS = 7,
        PPROF_MAPPING_HAS_FILENAMES = 8,
        PPROF_MAPPING_HAS_LINE_NUMBERS = 9,
        PPROF_MAPPING_HAS_INLINE_FRAMES = 10,

        PPROF_LOCATION_MAPPING_ID = 2,
        PPROF_LOCATION_ADDRESS = 3,
        PPROF_LOCATION_LINE = 4,

        PPROF_LINE_FUNCTION_ID = 1,
        PPROF_LINE_LINE = 2,

        PPROF_FUNCTION_NAME = 2,
        PPROF_FUNCTION_SYSTEM_NAME = 3,
        PPROF_FUNCTION_FILENAME = 4,
        PPROF_FUNCTION_START_LINE = 5,
};

#endif
