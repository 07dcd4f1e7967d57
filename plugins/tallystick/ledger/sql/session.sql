-- name: keep_alive
-- Ask the client's machine now and then if it is there: a dead one holds nothing for hours. That
-- may outlive us in a pooler's session, where it harms nobody. All else is set for one transaction at a
-- time, for a pooler may give the next one another session.
SELECT set_config('tcp_keepalives_idle', '30', false) AS keepalives_idle,
       set_config('tcp_keepalives_interval', '10', false) AS keepalives_interval,
       set_config('tcp_keepalives_count', '3', false) AS keepalives_count;

-- name: begin_write
-- Begin a transaction that changes something: each statement sees what others have committed.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL TimeZone = 'UTC';
SET LOCAL jit = off;
SET LOCAL lock_timeout = '120s';
SET LOCAL idle_in_transaction_session_timeout = '900s';

-- name: begin_read
-- Begin a transaction that reads: all its statements see the same instant.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL TimeZone = 'UTC';
SET LOCAL jit = off;
SET LOCAL lock_timeout = '120s';
SET LOCAL idle_in_transaction_session_timeout = '900s';

-- name: hurry
-- Set that no statement of the transaction takes longer, and that none waits longer for a lock.
SELECT set_config('statement_timeout', :milliseconds, true) AS statement_timeout,
       set_config('lock_timeout', :milliseconds, true) AS lock_timeout;

-- name: commit
-- End the transaction and keep what it did.
COMMIT;

-- name: rollback
-- End the transaction and keep nothing.
ROLLBACK;

-- name: server_version
-- The server's version as a number: 150004 is 15.4.
SELECT current_setting('server_version_num')::integer AS server_version;

-- name: schema_exists
-- If a ledger was ever migrated here.
SELECT to_regclass('schema_version') IS NOT NULL AS schema_exists;

-- name: schema_version
-- The newest migration that was applied; 0 before the first.
SELECT coalesce(max(version), 0) AS schema_version FROM schema_version;

-- name: lock_migrations
-- Wait until no other migrator is at work; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(7810194213);

-- name: make_schema_version
-- Make the table that remembers migrations.
CREATE TABLE IF NOT EXISTS schema_version (
  version    integer PRIMARY KEY CHECK (version >= 1),
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: record_migration
-- Remember a migration, in the transaction that applied it.
INSERT INTO schema_version (version, name) VALUES (:version, :name);
