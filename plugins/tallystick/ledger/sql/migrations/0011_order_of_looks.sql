-- Looks come in the order in which this ledger saw them begin, and none is later than its clock: a
-- machine whose clock is two days ahead, once, must not say what is proven for two days.

CREATE SEQUENCE look_number;
COMMENT ON SEQUENCE look_number IS 'The order in which looks at the broker begin; never a clock.';

ALTER TABLE broker_snapshot ADD COLUMN look_number bigint, ADD COLUMN begun_at timestamptz;
ALTER TABLE broker_snapshot DISABLE TRIGGER broker_snapshot_append_only;
UPDATE broker_snapshot s SET look_number = placed.place, begun_at = s.recorded_at
  FROM (SELECT snapshot_id,
               row_number() OVER (ORDER BY least(taken_at, recorded_at), snapshot_id) AS place
          FROM broker_snapshot) placed
 WHERE placed.snapshot_id = s.snapshot_id;
ALTER TABLE broker_snapshot ENABLE TRIGGER broker_snapshot_append_only;
SELECT setval('look_number', count(*) + 1, false) FROM broker_snapshot;

ALTER TABLE broker_snapshot
  ALTER COLUMN look_number SET DEFAULT nextval('look_number'),
  ALTER COLUMN look_number SET NOT NULL,
  ADD CONSTRAINT broker_snapshot_number_once UNIQUE (look_number),
  ALTER COLUMN begun_at SET DEFAULT clock_timestamp(),
  ALTER COLUMN begun_at SET NOT NULL,
  ADD COLUMN looked_at timestamptz NOT NULL GENERATED ALWAYS AS (least(taken_at, begun_at)) STORED;
COMMENT ON COLUMN broker_snapshot.taken_at IS
  'Before the broker was asked, by the clock of the machine that asked it.';
COMMENT ON COLUMN broker_snapshot.begun_at IS
  'Before the broker was asked, by this ledger''s clock.';
COMMENT ON COLUMN broker_snapshot.look_number IS
  'The place of the look among all, by its beginning: a reconcile enters its look when it ends.';
COMMENT ON COLUMN broker_snapshot.looked_at IS
  'The instant up to which the look may prove something: the earlier one of both clocks.';

DROP INDEX broker_snapshot_by_feed;
CREATE INDEX broker_snapshot_by_feed ON broker_snapshot (feed, look_number);

DROP INDEX report_by_feed;
CREATE INDEX report_by_feed ON report (feed, report_id);
