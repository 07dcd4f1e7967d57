-- name: role_exists
-- If the server has a role of this name.
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role) AS role_exists;

-- name: grants_lacking
-- The grants that a role lacks, to run or only to read, each as the statement that makes it.
WITH rights (kind, name, to_run) AS (VALUES
       ('TABLE',    'attempt',            '{SELECT,INSERT,UPDATE}'::text[]),
       ('TABLE',    'batch',              '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'batch_check',        '{SELECT,INSERT}'),
       ('TABLE',    'broker_snapshot',    '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'commit_link',        '{SELECT,INSERT}'),
       ('TABLE',    'completeness',       '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'directory_look',     '{SELECT,INSERT,UPDATE,DELETE}'),
       ('TABLE',    'feed',               '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'feed_retirement',    '{SELECT,INSERT}'),
       ('TABLE',    'file',               '{SELECT,INSERT}'),
       ('TABLE',    'file_fingerprint',   '{SELECT,INSERT}'),
       ('TABLE',    'file_now',           '{SELECT}'),
       ('TABLE',    'file_retraction',    '{SELECT,INSERT}'),
       ('TABLE',    'file_slice',         '{SELECT}'),
       ('TABLE',    'finding',            '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'folded_holes',       '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'generation',         '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'generation_account', '{SELECT}'),
       ('TABLE',    'hole',               '{SELECT,INSERT,UPDATE,DELETE}'),
       ('TABLE',    'moved_batch',        '{SELECT,INSERT}'),
       ('TABLE',    'newest_waiver',      '{SELECT}'),
       ('TABLE',    'offset_range',       '{SELECT,INSERT,UPDATE,DELETE}'),
       ('TABLE',    'plan',               '{SELECT,INSERT}'),
       ('TABLE',    'plan_batch',         '{SELECT,INSERT}'),
       ('TABLE',    'replaced_file',      '{SELECT,INSERT}'),
       ('TABLE',    'report',             '{SELECT,INSERT,DELETE}'),
       ('TABLE',    'schema_version',     '{SELECT}'),
       ('TABLE',    'hour_look',          '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'stored_anew',        '{SELECT,INSERT}'),
       ('TABLE',    'tail_anchor',        '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'told',               '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'verification',       '{SELECT,INSERT,UPDATE}'),
       ('TABLE',    'waiver',             '{SELECT,INSERT}'),
       ('TABLE',    'waiver_ending',      '{SELECT,INSERT}'),
       ('TABLE',    'waiver_request',     '{SELECT,INSERT,UPDATE}'),
       ('SEQUENCE', 'commit_number',      '{USAGE}'),
       ('SEQUENCE', 'look_number',        '{USAGE}'),
       ('FUNCTION', 'are_slices(int4multirange, bigint[], integer[], smallint[], bigint[])', '{EXECUTE}'),
       ('FUNCTION', 'checksums_now(text)', '{EXECUTE}'),
       ('FUNCTION', 'holes_add_up(bigint)', '{EXECUTE}'),
       ('FUNCTION', 'numbers_in(int4multirange)', '{EXECUTE}'),
       ('FUNCTION', 'was_cut(generation)', '{EXECUTE}'),
       ('SCHEMA',   current_schema()::text, '{USAGE}'),
       ('DATABASE', current_database()::text, '{CONNECT}')),
     wanted AS (
       SELECT r.kind, r.name, p.privilege,
              CASE r.kind WHEN 'FUNCTION' THEN r.name ELSE quote_ident(r.name) END AS quoted
         FROM rights r, unnest(r.to_run) AS p(privilege)
        WHERE :to_run::boolean OR p.privilege IN ('SELECT', 'CONNECT')
           OR (r.kind = 'SCHEMA' AND p.privilege = 'USAGE')
           OR r.name LIKE 'numbers_in(%'  -- by the view of slices
           OR r.name LIKE 'checksums_now(%')
SELECT w.privilege || ' on ' || lower(w.kind) || ' ' || w.name AS given,
       format('GRANT %s ON %s %s TO %I', w.privilege, w.kind, w.quoted, :role::text) AS query
  FROM wanted w
 WHERE NOT CASE w.kind
             WHEN 'TABLE' THEN has_table_privilege(:role, w.quoted, w.privilege)
             WHEN 'SEQUENCE' THEN has_sequence_privilege(:role, w.quoted, w.privilege)
             WHEN 'FUNCTION' THEN has_function_privilege(:role, w.quoted, w.privilege)
             WHEN 'SCHEMA' THEN has_schema_privilege(:role, w.name, w.privilege)
             ELSE has_database_privilege(:role, w.name, w.privilege)
           END
 ORDER BY w.kind, w.name, w.privilege;
