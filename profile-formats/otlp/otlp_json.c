/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp/otlp_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "profile-formats/json/json_wire.h"
#include "profile-formats/otlp/otlp_fields.h"

#define ONE(name, number, kind)                                                                                        \
        {                                                                                                              \
                name, number, JSON_WIRE_##kind, false, NULL                                                            \
        }
#define MANY(name, number, kind)                                                                                       \
        {                                                                                                              \
                name, number, JSON_WIRE_##kind, true, NULL                                                             \
        }
#define MESSAGE(name, number, fields)                                                                                  \
        {                                                                                                              \
                name, number, JSON_WIRE_MESSAGE, false, fields                                                         \
        }
#define MESSAGES(name, number, fields)                                                                                 \
        {                                                                                                              \
                name, number, JSON_WIRE_MESSAGE, true, fields                                                          \
        }

/* The fields that otlp_decode() reads. Arrays and maps as values are left out: they cannot be labels. */
static const struct json_wire_field any_value[] = {
        ONE("stringValue", ANY_STRING, TEXT),
        ONE("boolValue", ANY_BOOL, BOOL),
        ONE("intValue", ANY_INT, INTEGER),
        ONE("doubleValue", ANY_DOUBLE, DOUBLE),
        ONE("stringValueStrindex", ANY_STRINDEX, INTEGER),
        { 0 },
};
static const struct json_wire_field key_value[] = {
        ONE("key", KEY_VALUE_KEY, TEXT),
        MESSAGE("value", KEY_VALUE_VALUE, any_value),
        ONE("keyStrindex", KEY_VALUE_KEY_STRINDEX, INTEGER),
        { 0 },
};
static const struct json_wire_field attribute[] = {
        ONE("keyStrindex", ATTRIBUTE_KEY, INTEGER),
        MESSAGE("value", ATTRIBUTE_VALUE, any_value),
        { 0 },
};
static const struct json_wire_field mapping[] = {
        ONE("memoryStart", MAPPING_START, UNSIGNED),           ONE("memoryLimit", MAPPING_LIMIT, UNSIGNED),
        ONE("fileOffset", MAPPING_FILE_OFFSET, UNSIGNED),      ONE("filenameStrindex", MAPPING_FILENAME, INTEGER),
        MANY("attributeIndices", MAPPING_ATTRIBUTES, INTEGER), { 0 },
};
static const struct json_wire_field line[] = {
        ONE("functionIndex", LINE_FUNCTION, INTEGER),
        ONE("line", LINE_LINE, INTEGER),
        { 0 },
};
static const struct json_wire_field location[] = {
        ONE("mappingIndex", LOCATION_MAPPING, INTEGER),
        ONE("address", LOCATION_ADDRESS, UNSIGNED),
        MESSAGES("lines", LOCATION_LINES, line),
        MANY("attributeIndices", LOCATION_ATTRIBUTES, INTEGER),
        { 0 },
};
static const struct json_wire_field function[] = {
        ONE("nameStrindex", FUNCTION_NAME, INTEGER),
        ONE("systemNameStrindex", FUNCTION_SYSTEM_NAME, INTEGER),
        ONE("filenameStrindex", FUNCTION_FILENAME, INTEGER),
        ONE("startLine", FUNCTION_START_LINE, INTEGER),
        { 0 },
};
static const struct json_wire_field link_fields[] = {
        ONE("traceId", LINK_TRACE_ID, HEX),
        ONE("spanId", LINK_SPAN_ID, HEX),
        { 0 },
};
static const struct json_wire_field stack[] = {
        MANY("locationIndices", STACK_LOCATIONS, INTEGER),
        { 0 },
};
static const struct json_wire_field dictionary[] = {
        MESSAGES("mappingTable", DICTIONARY_MAPPINGS, mapping),
        MESSAGES("locationTable", DICTIONARY_LOCATIONS, location),
        MESSAGES("functionTable", DICTIONARY_FUNCTIONS, function),
        MESSAGES("linkTable", DICTIONARY_LINKS, link_fields),
        MANY("stringTable", DICTIONARY_STRINGS, TEXT),
        MESSAGES("attributeTable", DICTIONARY_ATTRIBUTES, attribute),
        MESSAGES("stackTable", DICTIONARY_STACKS, stack),
        { 0 },
};
static const struct json_wire_field value_type[] = {
        ONE("typeStrindex", VALUE_TYPE_TYPE, INTEGER),
        ONE("unitStrindex", VALUE_TYPE_UNIT, INTEGER),
        { 0 },
};
static const struct json_wire_field sample[] = {
        ONE("stackIndex", SAMPLE_STACK, INTEGER),
        MANY("attributeIndices", SAMPLE_ATTRIBUTES, INTEGER),
        ONE("linkIndex", SAMPLE_LINK, INTEGER),
        MANY("values", SAMPLE_VALUES, INTEGER),
        MANY("timestampsUnixNano", SAMPLE_TIMESTAMPS, FIXED64),
        { 0 },
};
static const struct json_wire_field profile[] = {
        MESSAGE("sampleType", PROFILE_SAMPLE_TYPE, value_type),
        MESSAGES("samples", PROFILE_SAMPLES, sample),
        ONE("timeUnixNano", PROFILE_TIME, FIXED64),
        ONE("durationNano", PROFILE_DURATION, UNSIGNED),
        MESSAGE("periodType", PROFILE_PERIOD_TYPE, value_type),
        ONE("period", PROFILE_PERIOD, INTEGER),
        MANY("attributeIndices", PROFILE_ATTRIBUTES, INTEGER),
        MESSAGES("sample", PROFILE_TIME, sample), /* of versions before 1.8.0, so that otlp_check_age() detects them */
        { 0 },
};
static const struct json_wire_field scope[] = {
        ONE("name", SCOPE_NAME, TEXT),
        ONE("version", SCOPE_VERSION, TEXT),
        MESSAGES("attributes", SCOPE_ATTRIBUTES, key_value),
        { 0 },
};
static const struct json_wire_field scope_profiles[] = {
        MESSAGE("scope", SCOPE_PROFILES_SCOPE, scope),
        MESSAGES("profiles", SCOPE_PROFILES_PROFILES, profile),
        { 0 },
};
static const struct json_wire_field resource[] = {
        MESSAGES("attributes", RESOURCE_ATTRIBUTES, key_value),
        { 0 },
};
static const struct json_wire_field resource_profiles[] = {
        MESSAGE("resource", RESOURCE_PROFILES_RESOURCE, resource),
        MESSAGES("scopeProfiles", RESOURCE_PROFILES_SCOPE_PROFILES, scope_profiles),
        { 0 },
};
static const struct json_wire_field request[] = {
        MESSAGES("resourceProfiles", REQUEST_RESOURCE_PROFILES, resource_profiles),
        MESSAGE("dictionary", REQUEST_DICTIONARY, dictionary),
        { 0 },
};

enum status otlp_json_decode(const void *data, size_t n, struct profile *ret, struct error *err)
{
        _cleanup_buf_ struct buf wire;
        struct json_scan s;
        enum status st;

        buf_init(&wire, LIMIT_HTTP_BODY_BYTES);
        json_scan_init(&s, data, n);
        json_wire_append(&s, request, &wire);
        st = buf_status(&wire, err, "an OTLP request in JSON");
        if (!st)
                st = json_scan_end(&s, err);
        return st ? st : otlp_decode_within(wire.data, wire.size, n, ret, err);
}

void otlp_json_put_response(struct buf *ret, uint64_t rejected, const char *message)
{
        struct json_out j;
        char number[24];

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        if (rejected || message) {
                json_out_object(&j, "partialSuccess");
                snprintf(number, sizeof number, "%" PRIu64, rejected);
                json_out_str(&j, "rejectedProfiles", number);
                json_out_str(&j, "errorMessage", message ? message : "");
                json_out_object_end(&j);
        }
        json_out_object_end(&j);
}

void otlp_json_put_status(struct buf *ret, uint32_t code, const char *message)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_uint(&j, "code", code);
        json_out_str(&j, "message", message);
        json_out_object_end(&j);
}
