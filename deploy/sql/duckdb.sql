-- SPDX-License-Identifier: Apache-2.0
--
-- Cairn's tables and ready views for DuckDB 1.1 or later. From the service's
-- working directory:
--
--     SET VARIABLE cairn = 'cairn-data/profiles/tables';
--     .read deploy/sql/duckdb.sql
--     SELECT * FROM top LIMIT 20;
--
-- Which files are in a table is said by its log, not by its folder: the folder
-- also has files that a later commit replaced, or that no commit names. Read
-- this file again to see what was committed since. (With the extension of that
-- name, delta_scan() does the same.)

SET VARIABLE cairn_samples = (
        SELECT list(getvariable('cairn') || '/samples/' || path) FROM (
                SELECT add.path AS path FROM read_json(getvariable('cairn') || '/samples/_delta_log/*.json',
                        format = 'newline_delimited', columns = {add: 'STRUCT(path VARCHAR)'}) WHERE add.path IS NOT NULL
                EXCEPT
                SELECT remove.path FROM read_json(getvariable('cairn') || '/samples/_delta_log/*.json',
                        format = 'newline_delimited', columns = {remove: 'STRUCT(path VARCHAR)'})));

SET VARIABLE cairn_stacks = (
        SELECT list(getvariable('cairn') || '/stacks/' || path) FROM (
                SELECT add.path AS path FROM read_json(getvariable('cairn') || '/stacks/_delta_log/*.json',
                        format = 'newline_delimited', columns = {add: 'STRUCT(path VARCHAR)'}) WHERE add.path IS NOT NULL
                EXCEPT
                SELECT remove.path FROM read_json(getvariable('cairn') || '/stacks/_delta_log/*.json',
                        format = 'newline_delimited', columns = {remove: 'STRUCT(path VARCHAR)'})));

SET VARIABLE cairn_locations = (
        SELECT list(getvariable('cairn') || '/locations/' || path) FROM (
                SELECT add.path AS path FROM read_json(getvariable('cairn') || '/locations/_delta_log/*.json',
                        format = 'newline_delimited', columns = {add: 'STRUCT(path VARCHAR)'}) WHERE add.path IS NOT NULL
                EXCEPT
                SELECT remove.path FROM read_json(getvariable('cairn') || '/locations/_delta_log/*.json',
                        format = 'newline_delimited', columns = {remove: 'STRUCT(path VARCHAR)'})));

CREATE OR REPLACE VIEW samples AS
        FROM read_parquet(getvariable('cairn_samples'), union_by_name = true, hive_partitioning = true);
CREATE OR REPLACE VIEW stacks AS
        FROM read_parquet(getvariable('cairn_stacks'), hive_partitioning = true);
CREATE OR REPLACE VIEW locations AS
        FROM read_parquet(getvariable('cairn_locations'));

-- One row per frame of a stack. position 1 is the innermost frame of the leaf.
-- A location without symbols is one frame, named by its address and object.
CREATE OR REPLACE VIEW stack_frames AS
WITH named AS (
        SELECT location_id, is_kernel, state, mapping, len(frames) = 0 AS bare,
                CASE WHEN len(frames) > 0 THEN frames ELSE [NULL] END AS frames,
                CASE WHEN mapping IS NOT NULL
                        THEN '0x' || lower(to_hex(coalesce(address, 0))) || ' [' || parse_filename(mapping) || ']'
                WHEN coalesce(address, 0) <> 0 THEN '0x' || lower(to_hex(address))
                ELSE '[unknown]' END AS place_name
        FROM locations
), placed AS (
        SELECT date, stack_id, unnest(location_ids) AS location_id, generate_subscripts(location_ids, 1) AS place
        FROM stacks
), flat AS (
        SELECT date, stack_id, place, mapping, is_kernel, state, bare, place_name, unnest(frames) AS frame,
                generate_subscripts(frames, 1) AS inner_place
        FROM placed JOIN named USING (location_id)
)
SELECT date, stack_id, row_number() OVER (PARTITION BY date, stack_id ORDER BY place, inner_place) AS position,
        CASE WHEN bare THEN place_name ELSE coalesce(frame.function, frame.linkage_name, '[no name]') END AS function,
        frame.file AS file, frame.line AS line, coalesce(frame.inlined, false) AS inlined, mapping, is_kernel, state
FROM flat;

-- One row per stack and date: its frames as a list, leaf first.
CREATE OR REPLACE VIEW resolved_stacks AS
SELECT date, stack_id, list({'function': function, 'file': file, 'line': line, 'inlined': inlined,
        'mapping': mapping, 'is_kernel': is_kernel, 'state': state} ORDER BY position) AS frames
FROM stack_frames GROUP BY date, stack_id;

-- Folded stacks, root first, as flamegraph.pl and speedscope read them.
CREATE OR REPLACE VIEW folded AS
WITH sums AS (
        SELECT profile_type, date, stack_id, sum(value)::BIGINT AS value FROM samples GROUP BY ALL
), texts AS (
        SELECT date, stack_id, string_agg(function, ';' ORDER BY position DESC) AS stack
        FROM stack_frames GROUP BY ALL
)
SELECT profile_type, stack, sum(value)::BIGINT AS value
FROM sums JOIN texts USING (date, stack_id) GROUP BY profile_type, stack;

-- Functions by value: flat is where the leaf was, cumulative counts a stack once for each function in it.
CREATE OR REPLACE VIEW top AS
WITH sums AS (
        SELECT profile_type, any_value(unit) AS unit, date, stack_id, sum(value) AS value
        FROM samples GROUP BY profile_type, date, stack_id
), functions AS (
        SELECT date, stack_id, function, coalesce(file, '') AS file, min(position) AS nearest
        FROM stack_frames GROUP BY ALL
)
SELECT profile_type, unit, function, file,
        coalesce(sum(value) FILTER (WHERE nearest = 1), 0)::BIGINT AS flat, sum(value)::BIGINT AS cumulative
FROM sums JOIN functions USING (date, stack_id)
GROUP BY profile_type, unit, function, file
ORDER BY flat DESC, cumulative DESC, function;
