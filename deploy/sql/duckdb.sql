-- SPDX-License-Identifier: Apache-2.0
--
-- Cairn's tables and ready views for DuckDB 1.1 or later. From the service's
-- working directory:
--
--     SET VARIABLE cairn = 'cairn-data/profiles/tables';
--     .read deploy/sql/duckdb.sql
--     SELECT * FROM top LIMIT 20;
--
-- The files of a table are those in its log, not those in its folder: the folder
-- also has files that a later commit replaced, or that are in no commit. The
-- tables are read with the first of these methods that is possible:
--
-- 1. The variable cairn_files, which the output of `cairn store files --sql` sets:
--        cairn store files --sql --data cairn-data >files.sql
--    and .read files.sql instead of the SET VARIABLE above.
-- 2. delta_scan(), if the extension delta is installed. DuckDB 1.5.1 and 1.5.2
--    are excluded, since conditions on `date` return wrong rows with them.
-- 3. Each table's newest checkpoint and the commits after it.
--
-- With 1 and 3, read this file again to see later commits.

SET VARIABLE cairn_way = CASE
        WHEN getvariable('cairn_files') IS NOT NULL THEN 'files'
        WHEN (SELECT bool_or(installed OR loaded) FROM duckdb_extensions() WHERE extension_name = 'delta')
                AND version() NOT IN ('v1.5.1', 'v1.5.2') THEN 'delta'
        ELSE 'log' END;

-- For 3: a statement that reads the newest of these checkpoints and the commits from its version on. The names have 20
-- digits, so their order is that of the versions.
CREATE OR REPLACE TEMP MACRO cairn_log_query(log_files) AS (
WITH files AS (
        SELECT unnest(log_files) AS file
), newest AS (
        SELECT max(file) AS file FROM files WHERE file LIKE '%.checkpoint.parquet'
), commits AS (
        SELECT string_agg('''' || replace(files.file, '''', '''''') || '''', ', ') AS list FROM files, newest
        WHERE files.file LIKE '%.json'
                AND (newest.file IS NULL OR files.file >= replace(newest.file, '.checkpoint.parquet', '.json'))
)
SELECT 'WITH actions AS (SELECT add.path AS added, remove.path AS removed FROM read_json([' || commits.list ||
        '], format = ''newline_delimited'', columns = {add: ''STRUCT(path VARCHAR)'', remove: ''STRUCT(path VARCHAR)''})' ||
        coalesce(' UNION ALL SELECT add.path, NULL FROM read_parquet(''' ||
                replace(newest.file, '''', '''''') || ''')', '') ||
        ') SELECT added AS path FROM actions WHERE added IS NOT NULL ' ||
        'EXCEPT SELECT removed FROM actions WHERE removed IS NOT NULL'
FROM commits, newest);

SET VARIABLE cairn_samples_log = CASE WHEN getvariable('cairn_way') = 'log' THEN cairn_log_query((
                SELECT list(file) FROM glob(coalesce(getvariable('cairn'), '') || '/samples/_delta_log/*')))
        ELSE 'SELECT NULL::VARCHAR AS path WHERE false' END;
SET VARIABLE cairn_samples = CASE WHEN getvariable('cairn_way') = 'files' THEN getvariable('cairn_files')['samples']
        ELSE (SELECT list(getvariable('cairn') || '/samples/' || path) FROM query(getvariable('cairn_samples_log'))) END;
SET VARIABLE cairn_samples_scan = CASE WHEN getvariable('cairn_way') = 'delta'
        THEN 'FROM delta_scan(''' || replace(getvariable('cairn'), '''', '''''') || '/samples'')'
        ELSE 'FROM read_parquet(getvariable(''cairn_samples''), union_by_name = true, hive_partitioning = true)' END;
CREATE OR REPLACE VIEW samples AS FROM query(getvariable('cairn_samples_scan'));

SET VARIABLE cairn_stacks_log = CASE WHEN getvariable('cairn_way') = 'log' THEN cairn_log_query((
                SELECT list(file) FROM glob(coalesce(getvariable('cairn'), '') || '/stacks/_delta_log/*')))
        ELSE 'SELECT NULL::VARCHAR AS path WHERE false' END;
SET VARIABLE cairn_stacks = CASE WHEN getvariable('cairn_way') = 'files' THEN getvariable('cairn_files')['stacks']
        ELSE (SELECT list(getvariable('cairn') || '/stacks/' || path) FROM query(getvariable('cairn_stacks_log'))) END;
SET VARIABLE cairn_stacks_scan = CASE WHEN getvariable('cairn_way') = 'delta'
        THEN 'FROM delta_scan(''' || replace(getvariable('cairn'), '''', '''''') || '/stacks'')'
        ELSE 'FROM read_parquet(getvariable(''cairn_stacks''), union_by_name = true, hive_partitioning = true)' END;
CREATE OR REPLACE VIEW stacks AS FROM query(getvariable('cairn_stacks_scan'));

SET VARIABLE cairn_locations_log = CASE WHEN getvariable('cairn_way') = 'log' THEN cairn_log_query((
                SELECT list(file) FROM glob(coalesce(getvariable('cairn'), '') || '/locations/_delta_log/*')))
        ELSE 'SELECT NULL::VARCHAR AS path WHERE false' END;
SET VARIABLE cairn_locations = CASE WHEN getvariable('cairn_way') = 'files' THEN getvariable('cairn_files')['locations']
        ELSE (SELECT list(getvariable('cairn') || '/locations/' || path) FROM query(getvariable('cairn_locations_log'))) END;
SET VARIABLE cairn_locations_scan = CASE WHEN getvariable('cairn_way') = 'delta'
        THEN 'FROM delta_scan(''' || replace(getvariable('cairn'), '''', '''''') || '/locations'')'
        ELSE 'FROM read_parquet(getvariable(''cairn_locations''), union_by_name = true)' END;
CREATE OR REPLACE VIEW locations AS FROM query(getvariable('cairn_locations_scan'));

-- Stores of earlier releases lack this table.
SET VARIABLE cairn_history_log = coalesce(CASE WHEN getvariable('cairn_way') = 'log' THEN cairn_log_query((
                SELECT list(file) FROM glob(coalesce(getvariable('cairn'), '') || '/function_history/_delta_log/*')))
        END, 'SELECT NULL::VARCHAR AS path WHERE false');
SET VARIABLE cairn_history = CASE WHEN getvariable('cairn_way') = 'files'
        THEN getvariable('cairn_files')['function_history']
        ELSE (SELECT list(getvariable('cairn') || '/function_history/' || path)
                FROM query(getvariable('cairn_history_log'))) END;
-- Without an hour that is over the table has no files.
SET VARIABLE cairn_history_scan = CASE WHEN getvariable('cairn_way') = 'delta'
        THEN 'FROM delta_scan(''' || replace(getvariable('cairn'), '''', '''''') || '/function_history'')'
        WHEN coalesce(len(getvariable('cairn_history')), 0) > 0
        THEN 'FROM read_parquet(getvariable(''cairn_history''), union_by_name = true, hive_partitioning = true)'
        ELSE 'SELECT NULL::TIMESTAMPTZ AS hour, NULL::VARCHAR AS profile_type, NULL::VARCHAR AS unit, ' ||
                'NULL::VARCHAR AS service, NULL::VARCHAR AS version, NULL::VARCHAR AS build_id, NULL::VARCHAR AS runtime, ' ||
                'NULL::VARCHAR AS function, NULL::VARCHAR AS file, NULL::BIGINT AS self, NULL::BIGINT AS total, ' ||
                'NULL::BIGINT AS self_samples, NULL::BIGINT AS samples, NULL::BIGINT AS source_version, ' ||
                'NULL::DATE AS date WHERE false' END;
CREATE OR REPLACE VIEW function_history AS FROM query(getvariable('cairn_history_scan'));

-- The cost of functions by hour, service and version, over all objects.
CREATE OR REPLACE VIEW function_hours AS
SELECT hour, profile_type, unit, service, version, function, file, sum(self)::BIGINT AS self, sum(total)::BIGINT AS total,
        sum(samples)::BIGINT AS samples
FROM function_history GROUP BY ALL HAVING sum(samples) > 0;

-- One row per frame of a stack. position 1 is the innermost frame of the leaf.
-- A location without symbols is one frame, named by its address and object.
CREATE OR REPLACE VIEW stack_frames AS
WITH named AS (
        SELECT location_id, is_kernel, build_id, state, quality, mapping, len(frames) = 0 AS bare,
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
        SELECT date, stack_id, place, build_id, mapping, is_kernel, state, quality, bare, place_name, unnest(frames) AS frame,
                generate_subscripts(frames, 1) AS inner_place
        FROM placed JOIN named USING (location_id)
)
SELECT date, stack_id, row_number() OVER (PARTITION BY date, stack_id ORDER BY place, inner_place) AS position,
        CASE WHEN bare THEN place_name ELSE coalesce(frame.function, frame.linkage_name, '[no name]') END AS function,
        frame.file AS file, frame.line AS line, coalesce(frame.inlined, false) AS inlined, build_id, mapping, is_kernel,
        state, quality
FROM flat;

-- One row per stack and date: its frames as a list, leaf first.
CREATE OR REPLACE VIEW resolved_stacks AS
SELECT date, stack_id, list({'function': function, 'file': file, 'line': line, 'inlined': inlined,
        'mapping': mapping, 'is_kernel': is_kernel, 'state': state} ORDER BY position) AS frames
FROM stack_frames GROUP BY date, stack_id;

-- ---- gauges ----
--
-- The values of a gauge are snapshots of a state, such as memory in use: their sum has no meaning. As in the service
-- (docs/formats/query-api.md, "Sums and averages") its value is the average over the snapshots of each series, summed
-- over the series. A snapshot is all samples of a series with one time.

CREATE OR REPLACE MACRO is_gauge(profile_type) AS
        regexp_matches(profile_type, '^[^:]*:(heap-)?((goroutine(s|leak)?|threadcreate|threads|live|objects|space|inuse)(:|$)|(inuse|live)[_-])');

-- Whether a label describes a process, and not only samples of it.
CREATE OR REPLACE MACRO is_process_label(name) AS
        name IN ('instance', 'job', 'pod', 'node', 'namespace', 'cluster', 'region', 'version', 'target', 'env', 'pid')
        OR regexp_matches(name, '^(service_|host|process_|container|k8s_|cloud_|deployment_)');

-- Whether a label keeps a number of a pprof file, which is not part of a series.
CREATE OR REPLACE MACRO is_hidden_label(name) AS starts_with(name, '__pprof_');

-- Names for the values of gauge_samples(), in the order of the columns.
SET VARIABLE cairn_label_names = (SELECT list(regexp_replace(column_name, '^label_', ''))
        FROM (DESCRIBE samples) WHERE regexp_matches(column_name, '^(profile_type|label_.*)$'));

-- The samples of gauges with a time in [since, until), and their series: the type, the labels that describe a process,
-- and all others that are equal within each snapshot.
CREATE OR REPLACE MACRO gauge_samples(since, until) AS TABLE
WITH chosen AS (
        SELECT *, list_value(*COLUMNS('^(profile_type|label_.*)$')) AS label_values
        FROM (FROM samples UNION ALL BY NAME SELECT NULL::MAP(VARCHAR, VARCHAR) AS labels_rest WHERE false)
        WHERE is_gauge(profile_type) AND time >= since AND time < until
), labelled AS (
        SELECT * EXCLUDE (label_values), list_concat(
                [{'key': x[1], 'value': x[2]} FOR x IN list_zip(getvariable('cairn_label_names'), label_values)
                        IF x[2] <> ''],
                map_entries(labels_rest)) AS labels
        FROM chosen
), parts AS (
        SELECT profile_type, time, [x FOR x IN labels IF is_process_label(x.key)] AS process, labels,
                count(*) OVER (PARTITION BY profile_type, time, process) AS parts
        FROM (SELECT DISTINCT profile_type, time, labels FROM labelled)
), part_labels AS (
        SELECT profile_type, time, process, parts, unnest(labels) AS label FROM parts WHERE parts > 1
), sample_labels AS (
        SELECT profile_type, list(DISTINCT key) AS keys FROM (
                SELECT profile_type, label.key AS key FROM part_labels
                GROUP BY profile_type, time, process, parts, label.key
                HAVING count(DISTINCT label.value) > 1 OR count(*) < parts)
        GROUP BY profile_type
)
SELECT labelled.* EXCLUDE (labels), [x.key || '=' || x.value FOR x IN labels
        IF is_process_label(x.key) OR NOT (is_hidden_label(x.key) OR list_contains(coalesce(keys, []), x.key))] AS series
FROM labelled LEFT JOIN sample_labels USING (profile_type);

-- The same samples, with values to be summed: divided by the number of the series' snapshots.
CREATE OR REPLACE MACRO gauge_averages(since, until) AS TABLE
WITH gauges AS MATERIALIZED (
        FROM gauge_samples(since, until)
), snapshots AS (
        SELECT series, count(DISTINCT time) AS count FROM gauges GROUP BY series
)
SELECT gauges.* REPLACE (value / snapshots.count AS value) FROM gauges JOIN snapshots USING (series);

-- ---- values of stacks ----

-- One row per type, date and stack: the sum of its values, of gauges the average.
CREATE OR REPLACE VIEW stack_values AS
SELECT profile_type, any_value(unit) AS unit, date, stack_id, sum(value)::DECIMAL(38, 9) AS value
FROM samples WHERE NOT is_gauge(profile_type) GROUP BY profile_type, date, stack_id
UNION ALL
SELECT profile_type, any_value(unit) AS unit, date, stack_id, sum(value)::DECIMAL(38, 9) AS value
FROM gauge_averages('-infinity', 'infinity') GROUP BY profile_type, date, stack_id;

-- Folded stacks, root first, for flamegraph.pl and speedscope.
CREATE OR REPLACE VIEW folded AS
WITH texts AS (
        SELECT date, stack_id, string_agg(function, ';' ORDER BY position DESC) AS stack
        FROM stack_frames GROUP BY ALL
)
SELECT profile_type, stack, sum(value)::BIGINT AS value
FROM stack_values JOIN texts USING (date, stack_id) GROUP BY profile_type, stack;

-- Functions by value: flat is the value of stacks with this leaf, cumulative counts a stack once for each function in it.
CREATE OR REPLACE VIEW top AS
WITH functions AS (
        SELECT date, stack_id, function, coalesce(file, '') AS file, min(position) AS nearest
        FROM stack_frames GROUP BY ALL
)
SELECT profile_type, unit, function, file,
        coalesce(sum(value) FILTER (WHERE nearest = 1), 0)::BIGINT AS flat, sum(value)::BIGINT AS cumulative
FROM stack_values JOIN functions USING (date, stack_id)
GROUP BY profile_type, unit, function, file
ORDER BY flat DESC, cumulative DESC, function;
