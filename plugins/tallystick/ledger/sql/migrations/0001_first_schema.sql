-- The ledger: what was claimed, committed and lost, and the evidence for it.
-- Ranges are half-open, [from, until). Whatever the schema can refuse, it refuses.

CREATE EXTENSION IF NOT EXISTS btree_gist;

-- States ---------------------------------------------------------------------------------------

CREATE TYPE batch_state AS ENUM
  ('planned', 'landing', 'verified', 'committed', 'published', 'abandoned');
COMMENT ON TYPE batch_state IS 'Where a batch stands. The only steps:
planned -> landing
landing -> landing
verified -> landing
landing -> verified
verified -> verified
verified -> committed
committed -> published
planned -> abandoned
landing -> abandoned
verified -> abandoned';

CREATE TYPE range_state AS ENUM ('claimed', 'committed', 'lost', 'released');
COMMENT ON TYPE range_state IS 'What is said of a range; the first three exclude one another on every offset. The only steps:
claimed -> committed
claimed -> lost
claimed -> released';

CREATE TYPE generation_state AS ENUM ('open', 'stopped', 'closed');
COMMENT ON TYPE generation_state IS 'If offsets of a generation may still be planned. The only steps:
open -> stopped
open -> closed
stopped -> closed';

CREATE TYPE hole_class AS ENUM ('control', 'aborted', 'compacted');
COMMENT ON TYPE hole_class IS 'Why an offset of a landed range has no visible record.';

CREATE TYPE verdict AS ENUM
  ('PROVEN_OK', 'BENIGN_HOLE', 'WAIVED', 'SUSPECTED', 'UNKNOWN', 'PROVEN_DUP', 'PROVEN_LOSS');
COMMENT ON TYPE verdict IS 'What is said of an interval, from harmless to worst.';

CREATE TYPE finding_state AS ENUM ('open', 'superseded', 'remedied', 'waived', 'false_alarm');
COMMENT ON TYPE finding_state IS 'What became of a finding. The only steps:
open -> superseded
open -> remedied
open -> waived
open -> false_alarm
waived -> open';

-- Refusals that several tables share -----------------------------------------------------------

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% refused: % is evidence and never changes', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'TS001';
END $$;
COMMENT ON FUNCTION refuse_change() IS 'Keeps append-only tables append-only.';

CREATE FUNCTION refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% refused: rows of % are never removed', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'TS001';
END $$;
COMMENT ON FUNCTION refuse_delete() IS 'Keeps rows that may change from being removed.';

-- Feeds and the logs they read -----------------------------------------------------------------

CREATE TABLE feed (
  feed       text PRIMARY KEY CHECK (feed <> ''),
  topic      text NOT NULL CHECK (topic <> ''),
  first_planned_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE feed IS 'One row per feed that was ever planned; its row lock is the planning lock.';

CREATE TABLE generation (
  generation_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed            text NOT NULL REFERENCES feed,
  topic           text NOT NULL,
  partition       integer NOT NULL CHECK (partition >= 0),
  cluster_id      text NOT NULL,
  topic_id        text NOT NULL,
  ordinal         integer NOT NULL CHECK (ordinal >= 1),
  state           generation_state NOT NULL DEFAULT 'open',
  first_offset    bigint NOT NULL CHECK (first_offset >= 0),
  frontier        bigint NOT NULL,
  last_seen_until bigint NOT NULL CHECK (last_seen_until >= 0),
  read_until      bigint CHECK (read_until > first_offset),
  read_epoch      integer,
  opened_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  opening_reason  text NOT NULL,
  ended_at        timestamptz,
  ending_code     text,
  ending_reason   text,
  CONSTRAINT generation_ordinal_once UNIQUE (feed, partition, ordinal),
  CONSTRAINT generation_frontier_in_range CHECK (frontier >= first_offset),
  CONSTRAINT generation_ended_with_reason
    CHECK ((state = 'open') = (ended_at IS NULL)
       AND (ended_at IS NULL) = (ending_code IS NULL)
       AND (ended_at IS NULL) = (ending_reason IS NULL))
) WITH (fillfactor = 70);
COMMENT ON TABLE generation IS 'One life of one topic partition''s log; all offsets hang on one.';
COMMENT ON COLUMN generation.first_offset IS 'Where the feed''s responsibility begins (included).';
COMMENT ON COLUMN generation.frontier IS
  'End (excluded) of the prefix that is landed, proven hole, or recorded as lost. Never moves back.';
COMMENT ON COLUMN generation.last_seen_until IS
  'Largest high watermark (excluded) that any snapshot showed.';
COMMENT ON COLUMN generation.read_until IS
  'End (excluded) of the furthest committed range; null before the first commit.';
COMMENT ON COLUMN generation.read_epoch IS
  'Leader epoch just before that range was read: evidence that the log was not cut since.';
COMMENT ON COLUMN generation.ordinal IS 'Which life of the log: 1 for the first.';

CREATE UNIQUE INDEX generation_open_once ON generation (feed, partition) WHERE state = 'open';

CREATE FUNCTION guard_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'open' OR NEW.frontier <> NEW.first_offset THEN
      RAISE EXCEPTION 'generation of %-%: opens in state open, with the frontier at its first offset',
        NEW.topic, NEW.partition USING ERRCODE = 'TS002';
    END IF;
    RETURN NEW;
  END IF;
  IF (NEW.generation_id, NEW.feed, NEW.topic, NEW.partition, NEW.cluster_id, NEW.topic_id,
      NEW.ordinal, NEW.first_offset, NEW.opened_at, NEW.opening_reason)
     IS DISTINCT FROM
     (OLD.generation_id, OLD.feed, OLD.topic, OLD.partition, OLD.cluster_id, OLD.topic_id,
      OLD.ordinal, OLD.first_offset, OLD.opened_at, OLD.opening_reason) THEN
    RAISE EXCEPTION 'generation %: its identity never changes', OLD.generation_id
      USING ERRCODE = 'TS002';
  END IF;
  IF NEW.frontier < OLD.frontier THEN
    RAISE EXCEPTION 'generation %: the frontier never moves back, from % to %',
      OLD.generation_id, OLD.frontier, NEW.frontier USING ERRCODE = 'TS003';
  END IF;
  IF NEW.last_seen_until < OLD.last_seen_until THEN
    RAISE EXCEPTION 'generation %: last_seen_until never moves back, from % to %',
      OLD.generation_id, OLD.last_seen_until, NEW.last_seen_until USING ERRCODE = 'TS003';
  END IF;
  IF NEW.read_until < OLD.read_until OR (NEW.read_until IS NULL AND OLD.read_until IS NOT NULL) THEN
    RAISE EXCEPTION 'generation %: read_until never moves back, from % to %',
      OLD.generation_id, OLD.read_until, NEW.read_until USING ERRCODE = 'TS003';
  END IF;
  IF NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN
     (('open', 'stopped'), ('open', 'closed'), ('stopped', 'closed')) THEN
    RAISE EXCEPTION 'generation %: no step from % to %', OLD.generation_id, OLD.state, NEW.state
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER generation_guard BEFORE INSERT OR UPDATE ON generation
  FOR EACH ROW EXECUTE FUNCTION guard_generation();
CREATE TRIGGER generation_kept BEFORE DELETE OR TRUNCATE ON generation
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

CREATE TABLE broker_snapshot (
  snapshot_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed               text NOT NULL REFERENCES feed,
  taken_at           timestamptz NOT NULL,
  recorded_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  cluster_id         text NOT NULL,
  topic              text NOT NULL,
  topic_id           text NOT NULL,
  is_compacted       boolean NOT NULL,
  retention_ms       bigint,
  partitions         integer[] NOT NULL,
  log_start_offsets  bigint[] NOT NULL,
  high_watermarks    bigint[] NOT NULL,
  last_stable_offsets bigint[] NOT NULL,
  leader_epochs      integer[] NOT NULL,
  CONSTRAINT broker_snapshot_same_length CHECK (
        cardinality(log_start_offsets) = cardinality(partitions)
    AND cardinality(high_watermarks) = cardinality(partitions)
    AND cardinality(last_stable_offsets) = cardinality(partitions)
    AND cardinality(leader_epochs) = cardinality(partitions))
);
COMMENT ON TABLE broker_snapshot IS
  'What the broker said before each plan; one row per snapshot, one array element per partition.';
CREATE INDEX broker_snapshot_by_feed ON broker_snapshot (feed, snapshot_id);
CREATE TRIGGER broker_snapshot_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON broker_snapshot
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Plans, batches, attempts ---------------------------------------------------------------------

CREATE TABLE plan (
  plan_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed         text NOT NULL REFERENCES feed,
  window_from  timestamptz,
  window_until timestamptz,
  revision     integer NOT NULL CHECK (revision >= 1),
  owner        text NOT NULL,
  snapshot_id  bigint REFERENCES broker_snapshot,
  planned_at   timestamptz NOT NULL,
  CONSTRAINT plan_revision_once UNIQUE NULLS NOT DISTINCT (feed, window_from, window_until, revision),
  CONSTRAINT plan_window_whole CHECK (
        (window_from IS NULL) = (window_until IS NULL)
    AND (window_from IS NULL OR window_from < window_until))
);
COMMENT ON TABLE plan IS
  'A feed and a window name a plan; planning a window again gives it the next revision.';
COMMENT ON COLUMN plan.planned_at IS
  'When the planning lock was taken: a finding first seen at or after it came with this plan.';
CREATE TRIGGER plan_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON plan
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE SEQUENCE commit_number;
COMMENT ON SEQUENCE commit_number IS 'The order of commits; never a clock.';

CREATE TABLE batch (
  batch_id      text PRIMARY KEY CHECK (batch_id ~ '^[0-9a-f]{16,32}$'),
  batch_number  bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  feed          text NOT NULL REFERENCES feed,
  plan_id       bigint NOT NULL REFERENCES plan,
  root          text NOT NULL CHECK (root ~ '^/'),
  topic         text NOT NULL,
  cluster_id    text NOT NULL,
  topic_id      text NOT NULL,
  ordinal       integer NOT NULL CHECK (ordinal >= 1),
  label         timestamptz NOT NULL,
  state         batch_state NOT NULL DEFAULT 'planned',
  newest_token  bigint NOT NULL DEFAULT 0 CHECK (newest_token >= 0),
  holder        text,
  lease_until   timestamptz,
  verification_id bigint,
  committed_by  text,
  commit_number bigint UNIQUE,
  record_count  bigint CHECK (record_count >= 0),
  hole_count    bigint CHECK (hole_count >= 0),
  byte_count    bigint CHECK (byte_count >= 0),
  planned_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  committed_at  timestamptz,
  published_at  timestamptz,
  abandoned_at  timestamptz,
  CONSTRAINT batch_held_with_lease CHECK ((holder IS NULL) = (lease_until IS NULL)),
  CONSTRAINT batch_verified_with_proof
    CHECK (state NOT IN ('verified', 'committed', 'published') OR verification_id IS NOT NULL),
  CONSTRAINT batch_committed_once CHECK (
        (state IN ('committed', 'published')) = (committed_by IS NOT NULL)
    AND (committed_by IS NULL) = (commit_number IS NULL)
    AND (committed_by IS NULL) = (committed_at IS NULL)
    AND (committed_by IS NULL) = (record_count IS NULL)
    AND (committed_by IS NULL) = (hole_count IS NULL)
    AND (committed_by IS NULL) = (byte_count IS NULL)),
  CONSTRAINT batch_published_at CHECK ((state = 'published') = (published_at IS NOT NULL)),
  CONSTRAINT batch_abandoned_at CHECK ((state = 'abandoned') = (abandoned_at IS NOT NULL))
) WITH (fillfactor = 70);
COMMENT ON TABLE batch IS 'Ranges decided once, landed and committed together.';
COMMENT ON COLUMN batch.newest_token IS '0 before the first attempt; a smaller token is dead.';
COMMENT ON COLUMN batch.lease_until IS
  'By this database''s clock. Only adoption and politeness rest on it; correctness rests on the token.';
CREATE INDEX batch_by_feed ON batch (feed, batch_number);
CREATE INDEX batch_unfinished ON batch (feed, batch_number)
  WHERE state IN ('planned', 'landing', 'verified', 'committed');

CREATE TABLE plan_batch (
  plan_id    bigint NOT NULL REFERENCES plan,
  batch_id   text NOT NULL REFERENCES batch,
  is_adopted boolean NOT NULL,
  position   integer NOT NULL CHECK (position >= 0),
  PRIMARY KEY (plan_id, is_adopted, position),
  CONSTRAINT plan_batch_once UNIQUE (batch_id, plan_id)
);
COMMENT ON TABLE plan_batch IS 'The batches of a plan: its own, and those it adopted.';
CREATE UNIQUE INDEX plan_batch_one_maker ON plan_batch (batch_id) WHERE NOT is_adopted;
CREATE TRIGGER plan_batch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON plan_batch
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE attempt (
  attempt_id     text PRIMARY KEY CHECK (attempt_id ~ '^[0-9a-f]{16,32}$'),
  batch_id       text NOT NULL REFERENCES batch,
  token          bigint NOT NULL CHECK (token >= 1),
  owner          text NOT NULL,
  started_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  application_id text,
  ended_at       timestamptz,
  outcome        text,
  swept_at       timestamptz,
  CONSTRAINT attempt_token_once UNIQUE (batch_id, token),
  CONSTRAINT attempt_of_batch UNIQUE (batch_id, attempt_id),
  CONSTRAINT attempt_ended_with_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
COMMENT ON TABLE attempt IS 'One try to carry out a batch.';
COMMENT ON COLUMN attempt.outcome IS 'committed, or failed: and why; null while it lives or after it was killed.';
CREATE UNIQUE INDEX attempt_committed_once ON attempt (batch_id) WHERE outcome = 'committed';
CREATE INDEX attempt_unswept ON attempt (batch_id) WHERE swept_at IS NULL;

CREATE FUNCTION guard_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.attempt_id, NEW.batch_id, NEW.token, NEW.owner, NEW.started_at)
     IS DISTINCT FROM (OLD.attempt_id, OLD.batch_id, OLD.token, OLD.owner, OLD.started_at) THEN
    RAISE EXCEPTION 'attempt %: its identity never changes', OLD.attempt_id USING ERRCODE = 'TS002';
  END IF;
  IF OLD.outcome = 'committed' AND NEW.outcome IS DISTINCT FROM 'committed' THEN
    RAISE EXCEPTION 'attempt % has committed: its outcome never changes', OLD.attempt_id
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER attempt_guard BEFORE UPDATE ON attempt
  FOR EACH ROW EXECUTE FUNCTION guard_attempt();
CREATE TRIGGER attempt_kept BEFORE DELETE OR TRUNCATE ON attempt
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

CREATE TABLE verification (
  verification_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  batch_id        text NOT NULL,
  attempt_id      text NOT NULL,
  manifest        text NOT NULL,
  sha256          bytea NOT NULL,
  verified_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT verification_of_attempt FOREIGN KEY (batch_id, attempt_id)
    REFERENCES attempt (batch_id, attempt_id),
  CONSTRAINT verification_of_batch UNIQUE (batch_id, verification_id),
  CONSTRAINT verification_hash CHECK (sha256 = pg_catalog.sha256(convert_to(manifest, 'UTF8')))
);
COMMENT ON TABLE verification IS 'The proof of an attempt: the manifest''s very text, and its hash.';
CREATE TRIGGER verification_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON verification
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE batch
  ADD CONSTRAINT batch_verification FOREIGN KEY (batch_id, verification_id)
    REFERENCES verification (batch_id, verification_id),
  ADD CONSTRAINT batch_committed_by_own_attempt FOREIGN KEY (batch_id, committed_by)
    REFERENCES attempt (batch_id, attempt_id);

CREATE FUNCTION guard_batch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'planned' OR NEW.newest_token <> 0 THEN
      RAISE EXCEPTION 'batch % begins as planned, without an attempt', NEW.batch_id
        USING ERRCODE = 'TS002';
    END IF;
    RETURN NEW;
  END IF;
  IF (NEW.batch_id, NEW.batch_number, NEW.feed, NEW.plan_id, NEW.root, NEW.topic, NEW.cluster_id,
      NEW.topic_id, NEW.ordinal, NEW.label, NEW.planned_at)
     IS DISTINCT FROM
     (OLD.batch_id, OLD.batch_number, OLD.feed, OLD.plan_id, OLD.root, OLD.topic, OLD.cluster_id,
      OLD.topic_id, OLD.ordinal, OLD.label, OLD.planned_at) THEN
    RAISE EXCEPTION 'batch %: its identity never changes', OLD.batch_id USING ERRCODE = 'TS002';
  END IF;
  IF NEW.newest_token < OLD.newest_token THEN
    RAISE EXCEPTION 'batch %: tokens only grow, from % to %',
      OLD.batch_id, OLD.newest_token, NEW.newest_token USING ERRCODE = 'TS003';
  END IF;
  IF OLD.committed_by IS NOT NULL AND
     (NEW.committed_by, NEW.commit_number, NEW.committed_at, NEW.verification_id, NEW.newest_token,
      NEW.record_count, NEW.hole_count, NEW.byte_count)
     IS DISTINCT FROM
     (OLD.committed_by, OLD.commit_number, OLD.committed_at, OLD.verification_id, OLD.newest_token,
      OLD.record_count, OLD.hole_count, OLD.byte_count) THEN
    RAISE EXCEPTION 'batch % is committed: its commit never changes', OLD.batch_id
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER batch_guard BEFORE INSERT OR UPDATE ON batch
  FOR EACH ROW EXECUTE FUNCTION guard_batch();

CREATE FUNCTION guard_batch_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.state, NEW.state) NOT IN (
      ('planned', 'landing'),
      ('landing', 'landing'),
      ('verified', 'landing'),
      ('landing', 'verified'),
      ('verified', 'verified'),
      ('verified', 'committed'),
      ('committed', 'published'),
      ('planned', 'abandoned'),
      ('landing', 'abandoned'),
      ('verified', 'abandoned')) THEN
    RAISE EXCEPTION 'batch %: no step from % to %', OLD.batch_id, OLD.state, NEW.state
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER batch_state_guard BEFORE UPDATE OF state ON batch
  FOR EACH ROW EXECUTE FUNCTION guard_batch_state();
CREATE TRIGGER batch_kept BEFORE DELETE OR TRUNCATE ON batch
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

-- Ranges: the heart ----------------------------------------------------------------------------

CREATE TABLE offset_range (
  range_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  generation_id bigint NOT NULL REFERENCES generation,
  offsets       int8range NOT NULL,
  state         range_state NOT NULL,
  batch_id      text REFERENCES batch,
  record_count  bigint CHECK (record_count >= 0),
  hole_count    bigint CHECK (hole_count >= 0),
  loss_code     text,
  loss_evidence jsonb,
  recorded_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT offset_range_is_one CHECK (
        NOT isempty(offsets) AND NOT lower_inf(offsets) AND NOT upper_inf(offsets)
    AND lower_inc(offsets) AND NOT upper_inc(offsets)
    AND lower(offsets) >= 0),
  CONSTRAINT offset_range_claim_has_batch CHECK (state <> 'claimed' OR batch_id IS NOT NULL),
  CONSTRAINT offset_range_loss_has_code CHECK ((state = 'lost') = (loss_code IS NOT NULL)),
  CONSTRAINT offset_range_all_accounted_for CHECK (
    CASE WHEN state = 'committed'
         THEN coalesce(record_count + hole_count = upper(offsets) - lower(offsets), false)
         ELSE record_count IS NULL AND hole_count IS NULL END),
  CONSTRAINT offset_range_no_overlap
    EXCLUDE USING gist (generation_id WITH =, offsets WITH &&)
    WHERE (state IN ('claimed', 'committed', 'lost'))
);
COMMENT ON TABLE offset_range IS
  'Offsets [from, until) of a generation. No offset is in two claimed, committed or lost rows.';
COMMENT ON COLUMN offset_range.batch_id IS
  'Null for a loss that no batch claimed, and for committed ranges folded into one.';
CREATE UNIQUE INDEX offset_range_one_per_batch ON offset_range (batch_id, generation_id)
  WHERE state IN ('claimed', 'committed');
CREATE INDEX offset_range_reach ON offset_range (generation_id, upper(offsets))
  WHERE state IN ('claimed', 'committed', 'lost');
CREATE INDEX offset_range_lost ON offset_range (generation_id) WHERE state = 'lost';

CREATE FUNCTION guard_range() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  log generation%ROWTYPE;
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT * INTO log FROM generation g WHERE g.generation_id = NEW.generation_id;
    -- Below the frontier all is committed or lost already: there a row can only stand for others
    -- that are removed with it.
    IF NEW.state = 'committed'
       AND (NEW.batch_id IS NOT NULL OR upper(NEW.offsets) > log.frontier) THEN
      RAISE EXCEPTION 'a range is claimed before it is committed' USING ERRCODE = 'TS002';
    END IF;
    IF NEW.state = 'claimed' AND log.state <> 'open' THEN
      RAISE EXCEPTION '%-% is %: nothing of generation % is claimed any more',
        log.topic, log.partition, log.state, NEW.generation_id USING ERRCODE = 'TS002';
    END IF;
    IF lower(NEW.offsets) < log.first_offset THEN
      RAISE EXCEPTION '%-% %: generation % begins at offset %',
        log.topic, log.partition, NEW.offsets, NEW.generation_id, log.first_offset
        USING ERRCODE = 'TS002';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.state <> 'claimed' THEN
    RAISE EXCEPTION 'range % % is %: it never changes', OLD.range_id, OLD.offsets, OLD.state
      USING ERRCODE = 'TS002';
  END IF;
  IF (NEW.range_id, NEW.generation_id, NEW.batch_id, NEW.recorded_at)
     IS DISTINCT FROM (OLD.range_id, OLD.generation_id, OLD.batch_id, OLD.recorded_at)
     OR NOT NEW.offsets <@ OLD.offsets
     OR (NEW.state = 'committed' AND NEW.offsets <> OLD.offsets) THEN
    RAISE EXCEPTION 'range % %: a claim may only shrink', OLD.range_id, OLD.offsets
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER offset_range_guard BEFORE INSERT OR UPDATE ON offset_range
  FOR EACH ROW EXECUTE FUNCTION guard_range();
CREATE TRIGGER offset_range_kept BEFORE TRUNCATE ON offset_range
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

CREATE FUNCTION guard_folding() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  SELECT * INTO gone FROM old_rows o
   WHERE o.state <> 'committed'
      OR NOT EXISTS (SELECT FROM offset_range r
                      WHERE r.generation_id = o.generation_id AND r.state = 'committed'
                        AND r.offsets @> o.offsets)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'DELETE refused: range % of generation % would be forgotten',
      gone.offsets, gone.generation_id USING ERRCODE = 'TS001';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_folding() IS
  'A committed range may only be removed by the statement that enters one which holds all its offsets.';
CREATE TRIGGER offset_range_folded AFTER DELETE ON offset_range
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_folding();

CREATE FUNCTION guard_frontier() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  passed record;
BEGIN
  SELECT n.generation_id, o.frontier AS was, n.frontier AS is_now INTO passed
    FROM new_rows n JOIN old_rows o USING (generation_id)
   WHERE n.frontier > o.frontier
     AND NOT coalesce((
           SELECT int8range(o.frontier, n.frontier) <@ range_agg(r.offsets)
             FROM offset_range r
            WHERE r.generation_id = n.generation_id
              AND r.state IN ('committed', 'lost')
              AND upper(r.offsets) > o.frontier), false)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'generation %: the frontier can''t go from % to %, not all between is committed or lost',
      passed.generation_id, passed.was, passed.is_now USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_frontier() IS
  'The frontier never passes an offset that is neither landed, a proven hole, nor recorded as lost.';
CREATE TRIGGER generation_frontier_covered AFTER UPDATE ON generation
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_frontier();

CREATE FUNCTION guard_claims_settled() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  standing bigint;
BEGIN
  SELECT count(*) INTO standing FROM offset_range r
   WHERE r.batch_id = NEW.batch_id AND r.state = 'claimed';
  IF standing > 0 THEN
    RAISE EXCEPTION 'batch % is %, but % of its ranges are still claimed',
      NEW.batch_id, NEW.state, standing USING ERRCODE = 'TS002';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_claims_settled() IS 'A batch that is over holds no claim.';
CREATE CONSTRAINT TRIGGER batch_claims_settled AFTER UPDATE ON batch
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.state IN ('committed', 'published', 'abandoned'))
  EXECUTE FUNCTION guard_claims_settled();

-- What was landed ------------------------------------------------------------------------------

CREATE TABLE file (
  batch_id     text NOT NULL REFERENCES batch,
  name         text NOT NULL CHECK (name <> ''),
  length_bytes bigint NOT NULL CHECK (length_bytes >= 0),
  checksum     text NOT NULL,
  record_count bigint NOT NULL CHECK (record_count >= 0),
  PRIMARY KEY (batch_id, name)
);
COMMENT ON TABLE file IS 'The files of committed batches.';
CREATE TRIGGER file_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON file
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE file_slice (
  batch_id      text NOT NULL,
  name          text NOT NULL,
  partition     integer NOT NULL CHECK (partition >= 0),
  first_offset  bigint NOT NULL CHECK (first_offset >= 0),
  last_offset   bigint NOT NULL,
  record_count  bigint NOT NULL CHECK (record_count >= 1),
  PRIMARY KEY (batch_id, name, partition),
  FOREIGN KEY (batch_id, name) REFERENCES file (batch_id, name),
  CONSTRAINT file_slice_fits CHECK (last_offset - first_offset + 1 >= record_count)
);
COMMENT ON TABLE file_slice IS
  'What a file holds of one partition: first and last offset, both included.';
CREATE TRIGGER file_slice_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON file_slice
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE hole (
  batch_id      text NOT NULL REFERENCES batch,
  generation_id bigint NOT NULL REFERENCES generation,
  class         hole_class NOT NULL,
  position      integer NOT NULL CHECK (position >= 0),
  runs          int8multirange NOT NULL CHECK (NOT isempty(runs)),
  hole_count    bigint NOT NULL CHECK (hole_count >= 1),
  PRIMARY KEY (batch_id, generation_id, class, position)
);
COMMENT ON TABLE hole IS
  'Offsets of committed ranges without a visible record, by cause, in pieces of bounded size.';
CREATE TRIGGER hole_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON hole
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE tail_anchor (
  generation_id bigint PRIMARY KEY REFERENCES generation,
  record_offset bigint NOT NULL CHECK (record_offset >= 0),
  leader_epoch  integer,
  content_hash  bytea NOT NULL CHECK (octet_length(content_hash) = 16),
  batch_id      text NOT NULL REFERENCES batch
) WITH (fillfactor = 70);
COMMENT ON TABLE tail_anchor IS
  'The last landed record of a generation: every plan reads it again and compares.';

CREATE FUNCTION guard_anchor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.generation_id <> OLD.generation_id OR NEW.record_offset <= OLD.record_offset THEN
    RAISE EXCEPTION 'generation %: the tail anchor only moves forward, from % to %',
      OLD.generation_id, OLD.record_offset, NEW.record_offset USING ERRCODE = 'TS003';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tail_anchor_guard BEFORE UPDATE ON tail_anchor
  FOR EACH ROW EXECUTE FUNCTION guard_anchor();
CREATE TRIGGER tail_anchor_kept BEFORE DELETE OR TRUNCATE ON tail_anchor
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

-- What was found -------------------------------------------------------------------------------

CREATE TABLE finding (
  finding_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed              text NOT NULL,
  code              text NOT NULL,
  verdict           verdict NOT NULL,
  level             text NOT NULL,
  topic             text NOT NULL,
  generation        integer,
  partition         integer,
  from_offset       bigint,
  until_offset      bigint,
  subject           text NOT NULL DEFAULT '',
  cause             text NOT NULL,
  next_step         text NOT NULL,
  evidence          jsonb NOT NULL,
  state             finding_state NOT NULL DEFAULT 'open',
  first_seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_confirmed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE finding IS
  'What reconciliation stated. Seen again, it is confirmed; with another verdict, it is superseded.';
COMMENT ON COLUMN finding.subject IS
  'The path or the batch that it is about, where no interval tells two of a code apart.';
COMMENT ON COLUMN finding.generation IS 'The generation''s ordinal.';
-- A path may be longer than an index entry, so its hash stands for it.
CREATE UNIQUE INDEX finding_open_once
  ON finding (feed, code, topic, generation, partition, from_offset, until_offset, md5(subject))
  NULLS NOT DISTINCT WHERE state = 'open';

CREATE FUNCTION guard_finding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.finding_id, NEW.feed, NEW.code, NEW.verdict, NEW.level, NEW.topic, NEW.generation,
      NEW.partition, NEW.from_offset, NEW.until_offset, NEW.subject, NEW.cause, NEW.next_step,
      NEW.evidence, NEW.first_seen_at)
     IS DISTINCT FROM
     (OLD.finding_id, OLD.feed, OLD.code, OLD.verdict, OLD.level, OLD.topic, OLD.generation,
      OLD.partition, OLD.from_offset, OLD.until_offset, OLD.subject, OLD.cause, OLD.next_step,
      OLD.evidence, OLD.first_seen_at)
     OR (NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN (
           ('open', 'superseded'), ('open', 'remedied'), ('open', 'waived'),
           ('open', 'false_alarm'), ('waived', 'open'))) THEN
    RAISE EXCEPTION 'finding %: only its confirmation and its state change', OLD.finding_id
      USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER finding_guard BEFORE UPDATE ON finding
  FOR EACH ROW EXECUTE FUNCTION guard_finding();
CREATE TRIGGER finding_kept BEFORE DELETE OR TRUNCATE ON finding
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();
