/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_OTLP_FIELDS_H
#define CAIRN_PROFILE_FORMATS_OTLP_OTLP_FIELDS_H

/* Field numbers of OTLP messages. Source: opentelemetry-proto 1.11.0, profiles and common. */
enum {
        REQUEST_RESOURCE_PROFILES = 1,
        REQUEST_DICTIONARY = 2,

        DICTIONARY_MAPPINGS = 1,
        DICTIONARY_LOCATIONS = 2,
        DICTIONARY_FUNCTIONS = 3,
        DICTIONARY_LINKS = 4,
        DICTIONARY_STRINGS = 5,
        DICTIONARY_ATTRIBUTES = 6,
        DICTIONARY_STACKS = 7,
        DICTIONARY_TABLES = 8, /* one past the last */

        RESOURCE_PROFILES_RESOURCE = 1,
        RESOURCE_PROFILES_SCOPE_PROFILES = 2,
        RESOURCE_ATTRIBUTES = 1,
        SCOPE_PROFILES_SCOPE = 1,
        SCOPE_PROFILES_PROFILES = 2,
        SCOPE_NAME = 1,
        SCOPE_VERSION = 2,
        SCOPE_ATTRIBUTES = 3,

        PROFILE_SAMPLE_TYPE = 1,
        PROFILE_SAMPLES = 2,
        PROFILE_TIME = 3,
        PROFILE_DURATION = 4,
        PROFILE_PERIOD_TYPE = 5,
        PROFILE_PERIOD = 6,
        PROFILE_ATTRIBUTES = 11,

        SAMPLE_STACK = 1,
        SAMPLE_ATTRIBUTES = 2, /* 2 to 4: otlp_layout.h has those of 1.8.0 and 1.9.0 */
        SAMPLE_LINK = 3,
        SAMPLE_VALUES = 4,
        SAMPLE_TIMESTAMPS = 5,

        STACK_LOCATIONS = 1,

        LOCATION_MAPPING = 1,
        LOCATION_ADDRESS = 2,
        LOCATION_LINES = 3,
        LOCATION_ATTRIBUTES = 4,
        LINE_FUNCTION = 1,
        LINE_LINE = 2,

        FUNCTION_NAME = 1,
        FUNCTION_SYSTEM_NAME = 2,
        FUNCTION_FILENAME = 3,
        FUNCTION_START_LINE = 4,

        MAPPING_START = 1,
        MAPPING_LIMIT = 2,
        MAPPING_FILE_OFFSET = 3,
        MAPPING_FILENAME = 4,
        MAPPING_ATTRIBUTES = 5,

        LINK_TRACE_ID = 1,
        LINK_SPAN_ID = 2,

        VALUE_TYPE_TYPE = 1,
        VALUE_TYPE_UNIT = 2,

        ATTRIBUTE_KEY = 1,
        ATTRIBUTE_VALUE = 2,

        KEY_VALUE_KEY = 1,
        KEY_VALUE_VALUE = 2,
        KEY_VALUE_KEY_STRINDEX = 3,

        ANY_STRING = 1,
        ANY_BOOL = 2,
        ANY_INT = 3,
        ANY_DOUBLE = 4,
        ANY_ARRAY = 5,
        ANY_BYTES = 7,
        ANY_STRINDEX = 8,

        RESPONSE_PARTIAL_SUCCESS = 1,
        PARTIAL_REJECTED = 1,
        PARTIAL_MESSAGE = 2,

        STATUS_CODE = 1,
        STATUS_MESSAGE = 2,
};

/* Attributes that the decoder reads; those of cairn.* carry data that OTLP has no field for. */
#define ATTRIBUTE_BUILD_ID_GNU "process.executable.build_id.gnu"
#define ATTRIBUTE_BUILD_ID_GO "process.executable.build_id.go"
#define ATTRIBUTE_BUILD_ID_HTLHASH "process.executable.build_id.htlhash"
#define ATTRIBUTE_BUILD_ID_PROFILING "process.executable.build_id.profiling"
#define ATTRIBUTE_FRAME_TYPE "profile.frame.type"
#define ATTRIBUTE_ADDRESS_KIND "cairn.address.kind"
#define ATTRIBUTE_PROFILE_TYPE "cairn.profile.type"
#define ATTRIBUTE_STACK_TRUNCATED "cairn.stack.truncated"

#endif
