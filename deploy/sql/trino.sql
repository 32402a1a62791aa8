-- SPDX-License-Identifier: Apache-2.0
--
-- Cairn's tables and ready views for Trino 435 or later with its Delta Lake connector. The catalog, here `delta`, needs a metastore,
-- which may be a directory, and the right to register tables:
--
--     connector.name=delta_lake
--     hive.metastore=file
--     hive.metastore.catalog.dir=s3://BUCKET/metastore
--     fs.native-s3.enabled=true
--     s3.region=REGION
--     delta.register-table-procedure.enabled=true
--
-- Once, with the address of the tables:

CREATE SCHEMA IF NOT EXISTS delta.cairn;
USE delta.cairn;
CALL delta.system.register_table('cairn', 'samples', 's3://BUCKET/PREFIX/tables/samples');
CALL delta.system.register_table('cairn', 'stacks', 's3://BUCKET/PREFIX/tables/stacks');
CALL delta.system.register_table('cairn', 'locations', 's3://BUCKET/PREFIX/tables/locations');

-- One row per frame of a location, without arrays and rows. place 1 is the innermost function.
-- A location without symbols is one frame, named by its address and object.
CREATE OR REPLACE VIEW location_frames SECURITY INVOKER AS
SELECT location_id, place,
        CASE WHEN cardinality(frames) > 0
                THEN coalesce(element_at(frames, place).function, element_at(frames, place).linkage_name, '[no name]')
        WHEN mapping IS NOT NULL
                THEN concat('0x', digits, ' [', element_at(split(mapping, '/'), -1), ']')
        WHEN digits <> '0' THEN concat('0x', digits)
        ELSE '[unknown]' END AS function,
        element_at(frames, place).file AS file,
        element_at(frames, place).line AS line,
        coalesce(element_at(frames, place).inlined, false) AS inlined,
        build_id, mapping, is_kernel, state, quality
FROM (
        SELECT *, coalesce(nullif(regexp_replace(lower(to_hex(to_big_endian_64(address))), '^0+', ''), ''), '0') AS digits
        FROM locations
)
CROSS JOIN UNNEST(sequence(1, greatest(coalesce(cardinality(frames), 0), 1))) AS places (place);

-- One row per frame of a stack. position 1 is the innermost frame of the leaf.
CREATE OR REPLACE VIEW stack_frames SECURITY INVOKER AS
WITH flat AS (
        SELECT date, stack_id, location_id, depth
        FROM stacks CROSS JOIN UNNEST(location_ids) WITH ORDINALITY AS ids (location_id, depth)
)
SELECT date, stack_id, row_number() OVER (PARTITION BY date, stack_id ORDER BY depth, place) AS position,
        function, file, line, inlined, build_id, mapping, is_kernel, state, quality
FROM flat JOIN location_frames USING (location_id);

-- One row per type, date and stack: the sum of its values. Gauges, such as memory in use, are left out: their sum means
-- nothing (docs/sql-cookbook.md, Gauges).
CREATE OR REPLACE VIEW stack_values SECURITY INVOKER AS
SELECT profile_type, unit, date, stack_id, sum(value) AS value
FROM samples
WHERE NOT regexp_like(profile_type,
        '^[^:]*:(heap-)?((goroutine(s|leak)?|threadcreate|threads|live|objects|space|inuse)(:|$)|(inuse|live)[_-])')
GROUP BY profile_type, unit, date, stack_id;

-- Functions by value: flat is the value of stacks with this leaf, cumulative counts a stack once for each function in it.
CREATE OR REPLACE VIEW top SECURITY INVOKER AS
WITH functions AS (
        SELECT date, stack_id, function, coalesce(file, '') AS file, min(position) AS nearest
        FROM stack_frames GROUP BY date, stack_id, function, coalesce(file, '')
)
SELECT profile_type, unit, function, file, sum(CASE WHEN nearest = 1 THEN value ELSE 0 END) AS flat,
        sum(value) AS cumulative
FROM stack_values JOIN functions USING (date, stack_id)
GROUP BY profile_type, unit, function, file;

-- Folded stacks, root first.
CREATE OR REPLACE VIEW folded SECURITY INVOKER AS
WITH texts AS (
        SELECT date, stack_id, array_join(array_agg(function ORDER BY position DESC), ';') AS stack
        FROM stack_frames GROUP BY date, stack_id
)
SELECT profile_type, stack, sum(value) AS value
FROM stack_values JOIN texts USING (date, stack_id) GROUP BY profile_type, stack;
