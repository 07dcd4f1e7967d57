-- The ledger: what was claimed, committed and lost, and the evidence for it.
-- Ranges are half-open, [from, until). Whatever the schema can refuse, it refuses.
-- Each function gets a fixed search_path when its migration ends (paths_lacking): names in it are this
-- schema's, whatever temporary tables its caller has.

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

CREATE TYPE range_state AS ENUM
  ('claimed', 'committed', 'lost', 'released', 'retracted', 'unreadable');
COMMENT ON TYPE range_state IS 'What is said of a range: no offset is claimed, committed, lost or unreadable twice. The only steps:
claimed -> committed
claimed -> lost
claimed -> released
claimed -> unreadable
unreadable -> lost
unreadable -> released
committed -> retracted';

CREATE TYPE generation_state AS ENUM ('open', 'stopped', 'closed');
COMMENT ON TYPE generation_state IS 'If offsets of a generation may still be planned. The only steps:
open -> stopped
open -> closed
stopped -> closed';

CREATE TYPE hole_class AS ENUM ('control', 'aborted', 'compacted');
COMMENT ON TYPE hole_class IS 'Why an offset of a landed range has no visible record.';

CREATE TYPE verdict AS ENUM
  ('PROVEN_OK', 'WAIVED', 'SUSPECTED', 'UNKNOWN', 'PROVEN_DUP', 'PROVEN_LOSS');
COMMENT ON TYPE verdict IS 'What is said of an interval, from harmless to worst.';

CREATE TYPE finding_state AS ENUM ('open', 'superseded', 'remedied', 'waived');
COMMENT ON TYPE finding_state IS 'What became of a finding. The only steps:
open -> superseded
open -> remedied
open -> waived
waived -> open
waived -> superseded
waived -> remedied';

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
  first_planned_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  described  jsonb
);
COMMENT ON TABLE feed IS 'One row per feed that was ever planned; its row lock is the planning lock.';
COMMENT ON COLUMN feed.described IS
  'What its file said at the newest plan, for pages; null before a plan has told it.';
CREATE TRIGGER feed_append_only
  BEFORE UPDATE OF feed, topic, first_planned_at OR DELETE OR TRUNCATE ON feed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

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
  begins_unseen   boolean NOT NULL DEFAULT false CHECK (NOT begins_unseen OR first_offset > 0),
  frontier        bigint NOT NULL,
  last_seen_until bigint NOT NULL CHECK (last_seen_until >= 0),
  seen_epoch      integer,
  read_until      bigint CHECK (read_until > first_offset),
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
COMMENT ON COLUMN generation.begins_unseen IS
  'If a log that was new to the feed began there already: what was below it, nobody has seen.';
COMMENT ON COLUMN generation.frontier IS
  'End (excluded) of the prefix that is landed, proven hole, or recorded as lost. Never moves back.';
-- A log has one witness. It is handed over from look to look, each of which asks the one before.
COMMENT ON COLUMN generation.last_seen_until IS
  'Largest high watermark (excluded) that any look showed since the log began, or stopped; with
seen_epoch, the log''s witness.';
COMMENT ON COLUMN generation.seen_epoch IS
  'Leader epoch in which the log was last seen to reach last_seen_until: as long as it, or an older
one, ends no earlier, nothing of the log was cut. A look replaces it after asking it.';
COMMENT ON COLUMN generation.read_until IS
  'End (excluded) of the furthest committed range; null before the first commit.';
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
      NEW.ordinal, NEW.first_offset, NEW.begins_unseen, NEW.opened_at, NEW.opening_reason)
     IS DISTINCT FROM
     (OLD.generation_id, OLD.feed, OLD.topic, OLD.partition, OLD.cluster_id, OLD.topic_id,
      OLD.ordinal, OLD.first_offset, OLD.begins_unseen, OLD.opened_at, OLD.opening_reason) THEN
    RAISE EXCEPTION 'generation %: its identity never changes', OLD.generation_id
      USING ERRCODE = 'TS002';
  END IF;
  IF NEW.frontier < OLD.frontier THEN
    RAISE EXCEPTION 'generation %: the frontier never moves back, from % to %',
      OLD.generation_id, OLD.frontier, NEW.frontier USING ERRCODE = 'TS003';
  END IF;
  IF NEW.last_seen_until < OLD.last_seen_until AND NEW.state <> 'stopped' THEN
    RAISE EXCEPTION 'generation %: last_seen_until never moves back, from % to %',
      OLD.generation_id, OLD.last_seen_until, NEW.last_seen_until USING ERRCODE = 'TS003';
  END IF;
  IF NEW.seen_epoch < OLD.seen_epoch OR (NEW.seen_epoch IS NULL AND OLD.seen_epoch IS NOT NULL) THEN
    RAISE EXCEPTION 'generation %: seen_epoch never moves back, from % to %',
      OLD.generation_id, OLD.seen_epoch, NEW.seen_epoch USING ERRCODE = 'TS003';
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
  IF NEW.state = OLD.state AND (NEW.ended_at, NEW.ending_code, NEW.ending_reason)
     IS DISTINCT FROM (OLD.ended_at, OLD.ending_code, OLD.ending_reason) THEN
    RAISE EXCEPTION 'generation %: why it ended never changes', OLD.generation_id
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER generation_guard BEFORE INSERT OR UPDATE ON generation
  FOR EACH ROW EXECUTE FUNCTION guard_generation();
CREATE TRIGGER generation_kept BEFORE DELETE OR TRUNCATE ON generation
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

-- Looks come in the order in which this ledger saw them begin, and none is later than its clock: a
-- machine whose clock is two days ahead, once, must not say what is proven for two days.

CREATE SEQUENCE look_number;
COMMENT ON SEQUENCE look_number IS 'The order in which looks at the broker begin; never a clock.';

CREATE TABLE broker_snapshot (
  snapshot_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed               text NOT NULL REFERENCES feed,
  look_number        bigint NOT NULL DEFAULT nextval('look_number'),
  taken_at           timestamptz NOT NULL,
  begun_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  looked_at          timestamptz NOT NULL GENERATED ALWAYS AS (least(taken_at, begun_at)) STORED,
  recorded_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  cluster_id         text NOT NULL,
  topic              text NOT NULL,
  topic_id           text NOT NULL,
  is_compacted       boolean NOT NULL,
  retention_ms       bigint,
  retention_bytes    bigint,
  border_at          timestamptz,
  shown              bytea,
  log_start_sum      bigint NOT NULL,
  last_stable_sum    bigint NOT NULL,
  high_watermark_sum bigint NOT NULL,
  leaderless_count   integer NOT NULL CHECK (leaderless_count >= 0),
  doubt              text CHECK (doubt <> ''),
  CONSTRAINT broker_snapshot_number_once UNIQUE (look_number)
);
ALTER TABLE broker_snapshot ALTER shown SET STORAGE EXTERNAL;
COMMENT ON TABLE broker_snapshot IS
  'What the broker said to each plan, check, repair and reconcile; one row per snapshot.';
COMMENT ON COLUMN broker_snapshot.shown IS
  'What it said of each partition: JSON, compressed as manifests are. Null for an old look of a day
that has another.';
COMMENT ON COLUMN broker_snapshot.border_at IS
  'The end of the newest window, of which it said where it lies in each partition; null for a feed
that lands all that is readable.';
COMMENT ON COLUMN broker_snapshot.high_watermark_sum IS
  'Of all partitions, as the other sums are: reports add looks up without reading them.';
COMMENT ON COLUMN broker_snapshot.taken_at IS
  'Before the broker was asked, by the clock of the machine that asked it.';
COMMENT ON COLUMN broker_snapshot.begun_at IS
  'Before the broker was asked, by this ledger''s clock.';
COMMENT ON COLUMN broker_snapshot.look_number IS
  'The place of the look among all, by its beginning.';
COMMENT ON COLUMN broker_snapshot.looked_at IS
  'The instant up to which the look may prove something: the earlier one of both clocks.';
COMMENT ON COLUMN broker_snapshot.doubt IS
  'Why nothing is proven to be complete up to this look: another witness was silent, or the log
had changed and that could not be recorded with it; null where there was no doubt.';
COMMENT ON COLUMN broker_snapshot.leaderless_count IS
  'Partitions that could not be asked: their absence from the others says nothing.';
CREATE INDEX broker_snapshot_by_feed ON broker_snapshot (feed, look_number);
CREATE INDEX broker_snapshot_shown ON broker_snapshot (feed, begun_at) WHERE shown IS NOT NULL;

CREATE FUNCTION guard_look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- A doubt is added, and never taken back.
  IF OLD.doubt IS NULL AND NEW.doubt IS NOT NULL
     AND to_jsonb(NEW) - '{doubt,looked_at}'::text[] = to_jsonb(OLD) - '{doubt,looked_at}'::text[] THEN
    RETURN NEW;
  END IF;
  -- Rows that this very statement has thinned before are seen as they are now. NEW has no value yet
  -- for a column that is generated.
  IF NEW.shown IS NOT NULL
     OR to_jsonb(NEW) - '{shown,looked_at}'::text[] <> to_jsonb(OLD) - '{shown,looked_at}'::text[]
     OR NOT EXISTS (SELECT FROM broker_snapshot s
                     WHERE s.feed = OLD.feed AND s.topic_id = OLD.topic_id
                       AND s.shown IS NOT NULL AND s.snapshot_id <> OLD.snapshot_id
                       AND s.begun_at >= date_trunc('day', OLD.begun_at, 'UTC')
                       AND s.begun_at < date_trunc('day', OLD.begun_at, 'UTC')
                                         + interval '24 hours') THEN
    RAISE EXCEPTION 'UPDATE refused: broker_snapshot is evidence and never changes; only what it'
      ' shows of each partition goes, where another look of its day has it'
      USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_look() IS 'Of each log, each day keeps a look that is whole.';
CREATE TRIGGER broker_snapshot_guard BEFORE UPDATE ON broker_snapshot
  FOR EACH ROW EXECUTE FUNCTION guard_look();
CREATE TRIGGER broker_snapshot_append_only BEFORE DELETE OR TRUNCATE ON broker_snapshot
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
CREATE INDEX plan_by_feed ON plan (feed, plan_id);
CREATE INDEX plan_by_owner ON plan (feed, owner, planned_at);
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
  window_from   timestamptz,
  window_until  timestamptz,
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
  published_by  text,
  abandoned_at  timestamptz,
  CONSTRAINT batch_window_whole CHECK (
        (window_from IS NULL) = (window_until IS NULL)
    AND (window_from IS NULL OR window_from < window_until)),
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
COMMENT ON COLUMN batch.window_from IS
  'Start (included) of the records'' window; null for a run without one, and for a repair.';
COMMENT ON COLUMN batch.newest_token IS '0 before the first attempt; a smaller token is dead.';
COMMENT ON COLUMN batch.lease_until IS
  'By this database''s clock. Only adoption and politeness rest on it; correctness rests on the token.';
CREATE INDEX batch_by_feed ON batch (feed, batch_number);
COMMENT ON COLUMN batch.published_by IS
  'The run that has published it; null for what a rebuild has entered.';
CREATE INDEX batch_by_publisher ON batch (published_by) WHERE published_by IS NOT NULL;
CREATE INDEX batch_not_over ON batch (feed, batch_number)
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
  IF OLD.outcome = 'committed' AND (NEW.outcome, NEW.ended_at, NEW.application_id)
     IS DISTINCT FROM (OLD.outcome, OLD.ended_at, OLD.application_id) THEN
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
  isolation       text NOT NULL CHECK (isolation IN ('read_committed', 'read_uncommitted')),
  manifest        bytea NOT NULL,
  sha256          bytea NOT NULL CHECK (octet_length(sha256) = 32),
  file_sha256     bytea NOT NULL CHECK (octet_length(file_sha256) = 32),
  hashes          bytea,
  verified_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT verification_of_attempt FOREIGN KEY (batch_id, attempt_id)
    REFERENCES attempt (batch_id, attempt_id),
  CONSTRAINT verification_of_batch UNIQUE (batch_id, verification_id)
);
ALTER TABLE verification  -- what is compressed gets no smaller
  ALTER manifest SET STORAGE EXTERNAL,
  ALTER hashes SET STORAGE EXTERNAL;
COMMENT ON TABLE verification IS 'The proof of an attempt: the manifest''s very text, in two parts.';
COMMENT ON COLUMN verification.manifest IS
  'The text without the hashes of last records, and with the sha256 of the whole text;
compressed by xz: half of what this server''s own compression leaves.';
COMMENT ON COLUMN verification.sha256 IS
  'Of that before it was compressed; whoever reads it compares, and the chain of commits holds it.';
COMMENT ON COLUMN verification.file_sha256 IS 'Of the whole text: of the file beside the data.';
COMMENT ON COLUMN verification.hashes IS
  'The hashes of last records, compressed; null once the batch is old: the rows of its files have them.';
CREATE INDEX verification_with_hashes ON verification (batch_id) WHERE hashes IS NOT NULL;

CREATE FUNCTION guard_verification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.hashes IS NOT NULL
     OR to_jsonb(NEW) - 'hashes' <> to_jsonb(OLD) - 'hashes'
     OR NOT EXISTS (SELECT FROM batch b JOIN directory_look l USING (batch_id)
                     WHERE b.batch_id = NEW.batch_id AND b.verification_id = NEW.verification_id
                       AND b.state = 'published'
                       AND l.compared_at > clock_timestamp() - interval '2 days') THEN
    RAISE EXCEPTION 'UPDATE refused: verification is evidence and never changes; only hashes of a'
      ' published manifest go, once it was seen beside its files' USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_verification() IS
  'Hashes may be forgotten while the manifest that has them is where readers look, as committed.';
CREATE TRIGGER verification_guard BEFORE UPDATE ON verification
  FOR EACH ROW EXECUTE FUNCTION guard_verification();
CREATE TRIGGER verification_append_only BEFORE DELETE OR TRUNCATE ON verification
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
  IF NEW.root <> OLD.root AND OLD.state = 'published'
     AND to_jsonb(NEW) - 'root' = to_jsonb(OLD) - 'root'
     AND EXISTS (SELECT FROM moved_batch m
                  WHERE m.batch_id = OLD.batch_id AND m.from_root = OLD.root
                    AND m.to_root = NEW.root AND m.xmin = pg_current_xact_id()::xid) THEN
    RETURN NEW;
  END IF;
  IF (NEW.batch_id, NEW.batch_number, NEW.feed, NEW.plan_id, NEW.root, NEW.topic, NEW.cluster_id,
      NEW.topic_id, NEW.ordinal, NEW.label, NEW.window_from, NEW.window_until, NEW.planned_at)
     IS DISTINCT FROM
     (OLD.batch_id, OLD.batch_number, OLD.feed, OLD.plan_id, OLD.root, OLD.topic, OLD.cluster_id,
      OLD.topic_id, OLD.ordinal, OLD.label, OLD.window_from, OLD.window_until, OLD.planned_at) THEN
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
  IF OLD.state IN ('published', 'abandoned') AND NEW IS DISTINCT FROM OLD THEN
    RAISE EXCEPTION 'batch % is %: it never changes', OLD.batch_id, OLD.state
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

-- A published batch may lie below another root by now, where somebody has moved all of it. Its manifest
-- still says for which root it was landed.

CREATE TABLE moved_batch (
  batch_id  text NOT NULL REFERENCES batch,
  from_root text NOT NULL,
  to_root   text NOT NULL CHECK (to_root <> from_root),
  moved_by  text NOT NULL CHECK (btrim(moved_by) <> ''),
  moved_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (batch_id, moved_at)
);
COMMENT ON TABLE moved_batch IS
  'Batches that were found whole below another root, and who had that entered: the only way in which the
place of a published batch changes.';
CREATE TRIGGER moved_batch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON moved_batch
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION guard_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM batch b WHERE b.batch_id = NEW.batch_id AND b.root = NEW.to_root) THEN
    RAISE EXCEPTION 'batch % does not lie below %, where it was moved', NEW.batch_id, NEW.to_root
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_move() IS 'A move is entered together with the place that it leads to.';
CREATE CONSTRAINT TRIGGER moved_batch_lies_there AFTER INSERT ON moved_batch
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION guard_move();

-- The chain of commits --------------------------------------------------------------------------
-- The commits of a feed are a chain: each link carries the digest of its manifest and of the link
-- before it. Who removes or changes a committed row later breaks the chain, or contradicts it.

CREATE TABLE commit_link (
  feed            text NOT NULL REFERENCES feed,
  position        bigint NOT NULL CHECK (position >= 1),
  batch_id        text NOT NULL UNIQUE REFERENCES batch,
  manifest_sha256 bytea NOT NULL,
  previous        bytea NOT NULL,
  digest          bytea NOT NULL,
  PRIMARY KEY (feed, position),
  CONSTRAINT commit_link_digest CHECK (digest = pg_catalog.sha256(previous || manifest_sha256))
);
COMMENT ON TABLE commit_link IS
  'The feed''s commits in their order, each bound to its manifest and to all commits before it.';
COMMENT ON COLUMN commit_link.position IS 'The commit''s place among those of the feed, from 1.';
COMMENT ON COLUMN commit_link.previous IS
  'Digest of the link before it; of the feed''s name, for the first one.';
CREATE TRIGGER commit_link_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON commit_link
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A feed that has ended ----------------------------------------------------------------------------
-- Nobody plans it again: what it has landed is all that there will be, and its last link names it.

CREATE TABLE feed_retirement (
  feed       text PRIMARY KEY REFERENCES feed,
  commits    bigint NOT NULL,
  digest     bytea,
  reason     text NOT NULL CHECK (btrim(reason) <> ''),
  retired_by text NOT NULL CHECK (btrim(retired_by) <> ''),
  retired_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE feed_retirement IS 'Feeds that have ended, who had them ended, and why.';
COMMENT ON COLUMN feed_retirement.commits IS 'How many links its chain has.';
COMMENT ON COLUMN feed_retirement.digest IS 'Of the last link; null without one.';
CREATE TRIGGER feed_retirement_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON feed_retirement
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION guard_retirement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM batch WHERE feed = NEW.feed AND state NOT IN ('published', 'abandoned'))
     OR NOT EXISTS (
        SELECT FROM (SELECT count(*) AS commits, (array_agg(digest ORDER BY position DESC))[1] AS last
                       FROM commit_link WHERE feed = NEW.feed) chain
         WHERE chain.commits = NEW.commits AND chain.last IS NOT DISTINCT FROM NEW.digest) THEN
    RAISE EXCEPTION 'feed % has batches that are not over, or another last link', NEW.feed
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_retirement() IS 'A feed ends whole.';
CREATE TRIGGER feed_retirement_is_whole BEFORE INSERT ON feed_retirement
  FOR EACH ROW EXECUTE FUNCTION guard_retirement();

CREATE FUNCTION guard_plan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM feed_retirement WHERE feed = NEW.feed) THEN
    RAISE EXCEPTION 'feed % is retired: it is never planned again', NEW.feed
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_plan() IS 'A retired feed lands nothing more.';
CREATE TRIGGER plan_of_a_feed_that_lives BEFORE INSERT ON plan
  FOR EACH ROW EXECUTE FUNCTION guard_plan();

CREATE FUNCTION guard_commit_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  head commit_link%ROWTYPE;
BEGIN
  SELECT * INTO head FROM commit_link l WHERE l.feed = NEW.feed ORDER BY l.position DESC LIMIT 1;
  IF NEW.position <> coalesce(head.position, 0) + 1
     OR NEW.previous <> coalesce(head.digest, pg_catalog.sha256(convert_to(NEW.feed, 'UTF8'))) THEN
    RAISE EXCEPTION 'link % of feed % does not continue its chain of commits, which has % link(s)',
      NEW.position, NEW.feed, coalesce(head.position, 0) USING ERRCODE = 'TS002';
  END IF;
  IF NOT EXISTS (SELECT FROM batch b JOIN verification v USING (batch_id, verification_id)
                  WHERE b.batch_id = NEW.batch_id AND b.feed = NEW.feed
                    AND b.committed_by IS NOT NULL AND v.sha256 = NEW.manifest_sha256) THEN
    RAISE EXCEPTION 'link % of feed % does not name a committed manifest of batch %',
      NEW.position, NEW.feed, NEW.batch_id USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER commit_link_guard BEFORE INSERT ON commit_link
  FOR EACH ROW EXECUTE FUNCTION guard_commit_link();

CREATE FUNCTION guard_commit_linked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM commit_link l WHERE l.batch_id = NEW.batch_id) THEN
    RAISE EXCEPTION 'batch % is committed, and its feed''s chain of commits has no link for it',
      NEW.batch_id USING ERRCODE = 'TS002';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_commit_linked() IS 'No batch is committed beside the chain.';
CREATE CONSTRAINT TRIGGER batch_commit_linked AFTER UPDATE ON batch
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.committed_by IS NOT NULL AND OLD.committed_by IS NULL)
  EXECUTE FUNCTION guard_commit_linked();

-- Ranges: the heart ----------------------------------------------------------------------------

CREATE TABLE offset_range (
  range_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  generation_id bigint NOT NULL REFERENCES generation,
  offsets       int8range NOT NULL,
  state         range_state NOT NULL,
  batch_id      text REFERENCES batch,
  replaces      boolean NOT NULL DEFAULT false,
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
  CONSTRAINT offset_range_replaces_while_claimed
    CHECK (NOT replaces OR state IN ('claimed', 'released')),
  CONSTRAINT offset_range_all_accounted_for CHECK (
    CASE WHEN state IN ('committed', 'retracted')
         THEN coalesce(record_count + hole_count = upper(offsets) - lower(offsets), false)
         ELSE record_count IS NULL AND hole_count IS NULL END),
  CONSTRAINT offset_range_no_overlap
    EXCLUDE USING gist (generation_id WITH =, offsets WITH &&)
    WHERE (state IN ('claimed', 'committed', 'lost', 'unreadable') AND NOT replaces),
  CONSTRAINT offset_range_replaced_once
    EXCLUDE USING gist (generation_id WITH =, offsets WITH &&)
    WHERE (state = 'claimed' AND replaces)
);
COMMENT ON TABLE offset_range IS
  'Offsets [from, until) of a generation. No offset is in two claimed, committed, lost or unreadable
rows, but for the claim of a repair, which replaces committed ones.';
COMMENT ON COLUMN offset_range.batch_id IS
  'Null for a loss that no batch claimed, and for committed ranges folded into one.';
COMMENT ON COLUMN offset_range.replaces IS
  'True for the claim of a repair: its offsets are committed, and stay so until the repair commits.';
CREATE UNIQUE INDEX offset_range_one_per_batch ON offset_range (batch_id, generation_id)
  WHERE state IN ('claimed', 'committed');
CREATE INDEX offset_range_reach ON offset_range (generation_id, upper(offsets))
  WHERE state IN ('claimed', 'committed', 'lost', 'unreadable');
CREATE INDEX offset_range_lost ON offset_range (generation_id) WHERE state = 'lost';
CREATE INDEX offset_range_unreadable ON offset_range (generation_id) WHERE state = 'unreadable';

CREATE FUNCTION guard_new_range() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  log generation%ROWTYPE;
BEGIN
  SELECT * INTO log FROM generation g WHERE g.generation_id = NEW.generation_id;
  -- A row can only stand for others that are removed with it, below the frontier, where all is
  -- committed or lost already; or for what a retraction leaves of one.
  IF NEW.state = 'committed'
     AND (NEW.batch_id IS NOT NULL
          OR (upper(NEW.offsets) > log.frontier
              AND NOT EXISTS (SELECT FROM offset_range r
                               WHERE r.generation_id = NEW.generation_id
                                 AND r.state = 'retracted' AND r.offsets @> NEW.offsets))) THEN
    RAISE EXCEPTION 'a range is claimed before it is committed' USING ERRCODE = 'TS002';
  END IF;
  IF NEW.state = 'retracted' THEN
    RAISE EXCEPTION 'a range is committed before it is retracted' USING ERRCODE = 'TS002';
  END IF;
  -- A rebuild closes a log that has a later life on record, and still enters what is published.
  IF NEW.state = 'claimed' AND log.state <> 'open'
     AND log.ending_code IS DISTINCT FROM 'A10' THEN
    RAISE EXCEPTION '%-% is %: nothing of generation % is claimed any more',
      log.topic, log.partition, log.state, NEW.generation_id USING ERRCODE = 'TS002';
  END IF;
  IF NEW.state = 'unreadable' AND log.state <> 'open' THEN
    RAISE EXCEPTION '%-% is %: nothing of generation % is set aside any more',
      log.topic, log.partition, log.state, NEW.generation_id USING ERRCODE = 'TS002';
  END IF;
  IF NEW.state = 'claimed' AND NEW.replaces AND NOT coalesce((
       SELECT NEW.offsets <@ range_agg(r.offsets) FROM offset_range r
        WHERE r.generation_id = NEW.generation_id AND r.state = 'committed'
          AND NOT r.replaces AND r.offsets && NEW.offsets), false) THEN
    RAISE EXCEPTION '%-% %: only what is committed can be replaced',
      log.topic, log.partition, NEW.offsets USING ERRCODE = 'TS002';
  END IF;
  IF lower(NEW.offsets) < log.first_offset THEN
    RAISE EXCEPTION '%-% %: generation % begins at offset %',
      log.topic, log.partition, NEW.offsets, NEW.generation_id, log.first_offset
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_new_range() IS
  'A range begins as a claim or as a loss; only what stands for others is entered as committed.';
CREATE TRIGGER offset_range_guard_new BEFORE INSERT ON offset_range
  FOR EACH ROW EXECUTE FUNCTION guard_new_range();

-- The repair that retracts a range takes a part of it only, and commits the rest anew: within its own
-- transaction the retracted row shrinks to what was taken.

CREATE FUNCTION guard_range_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  left_over int8multirange;
BEGIN
  IF OLD.state = 'committed' AND NEW.state = 'retracted' THEN
    IF (NEW.range_id, NEW.generation_id, NEW.batch_id, NEW.offsets, NEW.record_count,
        NEW.hole_count, NEW.recorded_at)
       IS DISTINCT FROM
       (OLD.range_id, OLD.generation_id, OLD.batch_id, OLD.offsets, OLD.record_count,
        OLD.hole_count, OLD.recorded_at) THEN
      RAISE EXCEPTION 'range % %: retracted, it stays as it was', OLD.range_id, OLD.offsets
        USING ERRCODE = 'TS002';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.state = 'retracted' AND NEW.state = 'retracted'
     AND EXISTS (SELECT FROM offset_range r WHERE r.range_id = OLD.range_id
                    AND r.xmin = pg_current_xact_id()::xid) THEN
    left_over := int8multirange(OLD.offsets) - int8multirange(NEW.offsets);
    IF (NEW.range_id, NEW.generation_id, NEW.batch_id, NEW.recorded_at)
       IS DISTINCT FROM (OLD.range_id, OLD.generation_id, OLD.batch_id, OLD.recorded_at)
       OR NOT NEW.offsets <@ OLD.offsets
       OR NOT coalesce((SELECT left_over <@ range_agg(r.offsets) FROM offset_range r
                         WHERE r.generation_id = OLD.generation_id AND r.state = 'committed'
                           AND NOT r.replaces AND r.offsets && OLD.offsets),
                       isempty(left_over)) THEN
      RAISE EXCEPTION 'range % %: retracted, it shrinks to what was taken',
        OLD.range_id, OLD.offsets USING ERRCODE = 'TS002';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.state = 'unreadable' AND NEW.state IN ('released', 'lost') THEN
    IF (NEW.range_id, NEW.generation_id, NEW.batch_id, NEW.offsets, NEW.recorded_at)
       IS DISTINCT FROM
       (OLD.range_id, OLD.generation_id, OLD.batch_id, OLD.offsets, OLD.recorded_at) THEN
      RAISE EXCEPTION 'range % %: asked for again or given up, it stays as it was',
        OLD.range_id, OLD.offsets USING ERRCODE = 'TS002';
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
     OR NEW.state = 'retracted'
     OR (NEW.state = 'committed' AND NEW.offsets <> OLD.offsets)
     OR (NEW.replaces <> OLD.replaces AND NEW.state <> 'committed') THEN
    RAISE EXCEPTION 'range % %: a claim may only shrink', OLD.range_id, OLD.offsets
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER offset_range_guard_step BEFORE UPDATE ON offset_range
  FOR EACH ROW EXECUTE FUNCTION guard_range_step();
CREATE TRIGGER offset_range_kept BEFORE TRUNCATE ON offset_range
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

CREATE FUNCTION guard_folding() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  -- Spelled as the predicate of the exclusion constraint, whose index then finds the holder at once:
  -- a join would compare all ranges of a log.
  WITH held AS MATERIALIZED (
    SELECT o.*, (SELECT r FROM offset_range r
                  WHERE r.generation_id = o.generation_id AND r.state = 'committed'
                    AND NOT r.replaces AND r.offsets @> o.offsets) AS holder
      FROM old_rows o)
  SELECT h.generation_id, range_merge(range_agg(h.offsets)) AS offsets INTO gone
    FROM held h
   GROUP BY h.generation_id, (h.holder).range_id
  HAVING (h.holder).range_id IS NULL OR bool_or(h.state <> 'committed')
      OR sum(h.record_count) <> min((h.holder).record_count)
      OR sum(h.hole_count) <> min((h.holder).hole_count)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'DELETE refused: range % of generation % would be forgotten, or counted anew',
      gone.offsets, gone.generation_id USING ERRCODE = 'TS001';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_folding() IS
  'Committed ranges may only be removed by the statement that enters one with all their offsets, and
with the sums of their counts.';
CREATE TRIGGER offset_range_folded AFTER DELETE ON offset_range
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_folding();

CREATE FUNCTION guard_retracted_range() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT coalesce((SELECT NEW.offsets <@ range_agg(r.offsets) FROM offset_range r
                    WHERE r.generation_id = NEW.generation_id
                      AND r.state IN ('committed', 'lost') AND NOT r.replaces
                      AND r.offsets && NEW.offsets), false) THEN
    RAISE EXCEPTION 'range % % of generation % is retracted, and nothing has taken its place',
      NEW.range_id, NEW.offsets, NEW.generation_id USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_retracted_range() IS
  'What is retracted is committed or lost elsewhere at the end of the same transaction.';
CREATE CONSTRAINT TRIGGER offset_range_replaced AFTER UPDATE ON offset_range
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.state = 'retracted' AND OLD.state = 'committed')
  EXECUTE FUNCTION guard_retracted_range();

CREATE FUNCTION guard_frontier() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  passed record;
BEGIN
  -- On its own, or the planner trusts in LIMIT to find one early, and compares all rows with all.
  WITH moved AS MATERIALIZED (
    SELECT n.generation_id, o.frontier AS was, n.frontier AS is_now
      FROM new_rows n JOIN old_rows o USING (generation_id)
     WHERE n.frontier > o.frontier)
  SELECT * INTO passed FROM moved m
   WHERE NOT coalesce((
           SELECT int8range(m.was, m.is_now) <@ range_agg(r.offsets)
             FROM offset_range r
            WHERE r.generation_id = m.generation_id
              AND r.state IN ('committed', 'lost')
              AND upper(r.offsets) > m.was), false)
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

CREATE FUNCTION numbers_in(ranges int4multirange) RETURNS integer[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(number ORDER BY number)
    FROM unnest(ranges) AS r, generate_series(lower(r), upper(r) - 1) AS number
$$;
COMMENT ON FUNCTION numbers_in(int4multirange) IS 'All numbers in these ranges, ascending.';

CREATE FUNCTION are_slices(
  partitions int4multirange, first_offsets bigint[], span_blocks integer[], span_rests smallint[],
  hole_counts bigint[]
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT count(*) > 0
     AND bool_and(coalesce(s.partition >= 0 AND s.first_offset >= 0 AND s.hole_count >= 0
                           AND s.span_block >= 0 AND s.span_rest >= 0
                           AND s.span_block * 32768::bigint + s.span_rest > s.hole_count, false))
    FROM unnest(numbers_in(partitions), first_offsets, span_blocks, span_rests, hole_counts)
         AS s(partition, first_offset, span_block, span_rest, hole_count)
$$;
COMMENT ON FUNCTION are_slices(int4multirange, bigint[], integer[], smallint[], bigint[]) IS
  'If these are slices of one file: each with rows, one for a partition, partitions ascending.';

CREATE TABLE file (
  batch_id      text NOT NULL REFERENCES batch,
  name          text NOT NULL CHECK (name <> ''),
  length_bytes  bigint NOT NULL CHECK (length_bytes >= 0),
  checksum      text NOT NULL,
  record_count  bigint NOT NULL CHECK (record_count >= 0),
  partitions    int4multirange,
  first_offsets bigint[],
  span_blocks   integer[],
  span_rests    smallint[],
  hole_counts   bigint[],
  late_count    bigint CHECK (late_count >= 1),
  oldest_late_at timestamptz,
  PRIMARY KEY (batch_id, name),
  CONSTRAINT file_late_whole CHECK ((late_count IS NULL) = (oldest_late_at IS NULL)),
  CONSTRAINT file_holds_slices
    CHECK (num_nonnulls(partitions, first_offsets, span_blocks, span_rests, hole_counts) = 0
           OR are_slices(partitions, first_offsets, span_blocks, span_rests, hole_counts))
);
-- The server compresses a row of more than two kilobytes, column by column, until it has fewer: here
-- until all columns are compressed, and none of them is moved out of the row. A name or a checksum
-- that is moved out takes twice as much.
ALTER TABLE file
  SET (toast_tuple_target = 128),
  ALTER name SET STORAGE MAIN,
  ALTER checksum SET STORAGE MAIN,
  ALTER partitions SET STORAGE MAIN,
  ALTER first_offsets SET STORAGE MAIN,
  ALTER span_blocks SET STORAGE MAIN,
  ALTER span_rests SET STORAGE MAIN,
  ALTER hole_counts SET STORAGE MAIN;
COMMENT ON TABLE file IS
  'The files of committed batches, and what each holds: one array element for each partition, for a row
for each would be ten times as large. Small numbers leave little when the server compresses them, and
neighbours among partitions nothing.';
COMMENT ON COLUMN file.partitions IS 'Null, as the other columns behind it, for a file without rows.';
COMMENT ON COLUMN file.span_rests IS
  'How many offsets there are from the first to the last one, both included, beside 32,768 times
span_blocks: in one array they would take twice as much.';
COMMENT ON COLUMN file.hole_counts IS 'How many offsets between them have no row.';
COMMENT ON COLUMN file.late_count IS
  'Rows that are older than the batch''s label; null for none, and where nobody counts them.';
CREATE INDEX file_late ON file (batch_id) WHERE late_count IS NOT NULL;
CREATE TRIGGER file_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON file
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE VIEW file_slice AS
SELECT f.batch_id, f.name, s.partition, s.first_offset, s.first_offset + held.span - 1 AS last_offset,
       held.span - s.hole_count AS record_count
  FROM file f
 CROSS JOIN LATERAL unnest(numbers_in(f.partitions), f.first_offsets, f.span_blocks, f.span_rests,
                           f.hole_counts)
       AS s(partition, first_offset, span_block, span_rest, hole_count)
 CROSS JOIN LATERAL (SELECT s.span_block * 32768::bigint + s.span_rest AS span) held;
COMMENT ON VIEW file_slice IS
  'What a file holds of one partition: first and last offset, both included.';

-- How a file is stored may change while its bytes stay: other blocks, another cluster, erasure coding.
-- Its checksum is another one then. What was committed stays in the manifest, and in `file`.

CREATE TABLE stored_anew (
  batch_id  text NOT NULL,
  name      text NOT NULL,
  checksum  text NOT NULL,
  proven_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (batch_id, name, proven_at),
  FOREIGN KEY (batch_id, name) REFERENCES file (batch_id, name)
);
COMMENT ON TABLE stored_anew IS
  'Files that have another checksum than before, and were read in full then: their bytes are those that
were committed. The newest row of a file says what is compared from then on.';
CREATE TRIGGER stored_anew_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON stored_anew
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE VIEW file_now AS
SELECT f.batch_id, f.name, f.length_bytes,
       coalesce((SELECT s.checksum FROM stored_anew s
                  WHERE s.batch_id = f.batch_id AND s.name = f.name
                  ORDER BY s.proven_at DESC LIMIT 1), f.checksum) AS checksum,
       f.record_count, f.partitions, f.first_offsets, f.span_blocks, f.span_rests, f.hole_counts
  FROM file f;
COMMENT ON VIEW file_now IS 'Files with the checksums that they have as they are stored by now.';

CREATE FUNCTION guard_stored_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM file_now f JOIN batch b USING (batch_id)
                  WHERE f.batch_id = NEW.batch_id AND f.name = NEW.name
                    AND b.committed_by IS NOT NULL
                    AND split_part(f.checksum, ':', 1) <> split_part(NEW.checksum, ':', 1)) THEN
    RAISE EXCEPTION 'file % of batch %: a checksum takes another one''s place where it is of another'
      ' kind, and the file is committed', NEW.name, NEW.batch_id USING ERRCODE = 'TS003';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION guard_stored_anew() IS
  'Of the same kind, another checksum is one of other bytes.';
CREATE TRIGGER stored_anew_is_of_another_kind BEFORE INSERT ON stored_anew
  FOR EACH ROW EXECUTE FUNCTION guard_stored_anew();

CREATE FUNCTION checksums_now(batch text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_object_agg(s.name, s.checksum ORDER BY s.proven_at)
    FROM stored_anew s WHERE s.batch_id = batch
$$;
COMMENT ON FUNCTION checksums_now(text) IS
  'By name, the checksums of a batch''s files that are stored in another way by now; null for none.';

-- A repair lands offsets again that are committed already. Until its commit nothing changes; then the
-- old rows are retracted and the new ones committed in one transaction, so that at every instant each
-- offset is in exactly one committed range.

CREATE TABLE replaced_file (
  batch_id     text NOT NULL REFERENCES batch,
  old_batch_id text NOT NULL,
  name         text NOT NULL,
  PRIMARY KEY (batch_id, old_batch_id, name),
  FOREIGN KEY (old_batch_id, name) REFERENCES file (batch_id, name)
);
COMMENT ON TABLE replaced_file IS 'The files that a repair''s batch takes the place of, as planned.';
CREATE FUNCTION guard_replaced_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The plan's row never changes, so this transaction has entered it, and the batch with it.
  IF NOT EXISTS (SELECT FROM batch b JOIN plan p USING (plan_id)
                  WHERE b.batch_id = NEW.batch_id AND p.xmin = pg_current_xact_id()::xid) THEN
    RAISE EXCEPTION 'batch %: which files it replaces is said by its plan', NEW.batch_id
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER replaced_file_is_planned BEFORE INSERT ON replaced_file
  FOR EACH ROW EXECUTE FUNCTION guard_replaced_file();
CREATE TRIGGER replaced_file_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON replaced_file
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE file_retraction (
  batch_id     text NOT NULL,
  name         text NOT NULL,
  replaced_by  text NOT NULL REFERENCES batch,
  retracted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (batch_id, name),
  FOREIGN KEY (batch_id, name) REFERENCES file (batch_id, name)
);
COMMENT ON TABLE file_retraction IS
  'Committed files that readers read no more, since this batch holds their offsets.';
CREATE INDEX file_retraction_by_batch ON file_retraction (replaced_by);
CREATE TRIGGER file_retraction_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON file_retraction
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Holes change hands with their offsets. A repair proves the holes of its offsets anew, and may find
-- rows where holes were before: only the holes of the batch that holds the offsets now count.

CREATE TABLE hole (
  batch_id      text REFERENCES batch,
  generation_id bigint NOT NULL REFERENCES generation,
  class         hole_class NOT NULL,
  position      integer NOT NULL CHECK (position >= 0),
  runs          int8multirange NOT NULL CHECK (NOT isempty(runs)),
  hole_count    bigint NOT NULL CHECK (hole_count >= 1),
  retracted_by  text REFERENCES batch,
  reach         int8range GENERATED ALWAYS AS (range_merge(runs)) STORED,
  CONSTRAINT hole_piece_once UNIQUE (batch_id, generation_id, class, position),
  CONSTRAINT hole_counts_once
    EXCLUDE USING gist (generation_id WITH =, runs WITH &&) WHERE (retracted_by IS NULL)
);
COMMENT ON TABLE hole IS
  'Offsets of committed ranges without a visible record, by cause, in pieces of bounded size.
Only rows that no repair has retracted count.';
COMMENT ON COLUMN hole.reach IS
  'From the first hole to the end of the last: what is asked of all rows reads no long list of runs.';
COMMENT ON COLUMN hole.batch_id IS
  'Null for holes of several batches, folded into one row; each batch''s own stand in its proof.';
COMMENT ON COLUMN hole.retracted_by IS
  'The repair that holds some of these offsets now; null while they count. What it left is a row of
its own.';
CREATE FUNCTION guard_hole() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.batch_id, NEW.generation_id, NEW.class, NEW.position, NEW.runs, NEW.hole_count)
     IS DISTINCT FROM
     (OLD.batch_id, OLD.generation_id, OLD.class, OLD.position, OLD.runs, OLD.hole_count)
     OR OLD.retracted_by IS NOT NULL THEN
    RAISE EXCEPTION 'UPDATE refused: hole is evidence, and only a repair that has landed its'
      ' offsets again retracts it' USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER hole_guard BEFORE UPDATE ON hole
  FOR EACH ROW EXECUTE FUNCTION guard_hole();
CREATE TRIGGER hole_kept BEFORE TRUNCATE ON hole
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

CREATE FUNCTION guard_folding_of_holes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  SELECT * INTO gone
    FROM (SELECT o.generation_id, o.class, bool_or(o.retracted_by IS NOT NULL) AS is_retracted,
                 range_agg(o.runs) AS runs, sum(o.hole_count) AS hole_count
            FROM old_rows o GROUP BY o.generation_id, o.class) removed
   WHERE removed.is_retracted
      OR NOT coalesce((SELECT removed.runs <@ range_agg(h.runs) FROM hole h
                        WHERE h.generation_id = removed.generation_id AND h.class = removed.class
                          AND h.retracted_by IS NULL AND h.runs && removed.runs), false)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'DELETE refused: % holes of generation % would be forgotten',
      gone.hole_count, gone.generation_id USING ERRCODE = 'TS001';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_folding_of_holes() IS
  'Holes may only be removed by the statement that enters the same ones in other rows.';
CREATE TRIGGER hole_folded AFTER DELETE ON hole
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_folding_of_holes();

CREATE TABLE folded_holes (
  batch_id   text NOT NULL REFERENCES batch,
  class      hole_class NOT NULL,
  hole_count bigint NOT NULL CHECK (hole_count >= 0),
  PRIMARY KEY (batch_id, class)
);
COMMENT ON TABLE folded_holes IS
  'How many holes of a batch, of all its logs, stand in rows that are folded over several batches.';
CREATE TRIGGER folded_holes_kept BEFORE DELETE OR TRUNCATE ON folded_holes
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

CREATE FUNCTION holes_add_up(log bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT (SELECT coalesce(sum(h.hole_count), 0) FROM hole h
           WHERE h.generation_id = log AND h.retracted_by IS NULL)
       = (SELECT coalesce(sum(r.hole_count), 0) FROM offset_range r
           WHERE r.generation_id = log AND r.state = 'committed')
$$;
COMMENT ON FUNCTION holes_add_up(bigint) IS
  'If a log has as many holes on record as its committed ranges count.';

CREATE FUNCTION guard_new_holes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  wrong record;
BEGIN
  SELECT * INTO wrong FROM new_rows n
   WHERE lower_inf(n.runs) OR upper_inf(n.runs)
      OR n.hole_count <> (SELECT sum(upper(run) - lower(run)) FROM unnest(n.runs) AS run)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'holes % of generation % are not %',
      wrong.reach, wrong.generation_id, wrong.hole_count USING ERRCODE = 'TS002';
  END IF;
  -- What this very transaction commits is added up by its range, and where it retracts holes, by
  -- these: when it ends.
  WITH others AS MATERIALIZED (
    SELECT DISTINCT n.generation_id FROM new_rows n
     WHERE NOT EXISTS (SELECT FROM offset_range r
                        WHERE r.batch_id = n.batch_id AND r.generation_id = n.generation_id
                          AND r.state = 'committed' AND r.offsets @> n.reach
                          AND r.xmin = pg_current_xact_id()::xid))
  SELECT * INTO wrong FROM others o
   WHERE CASE WHEN holes_add_up(o.generation_id) THEN false
              ELSE o.generation_id NOT IN (SELECT h.generation_id FROM hole h
                                            WHERE h.retracted_by IS NOT NULL
                                              AND h.xmin = pg_current_xact_id()::xid) END
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'generation %: its committed ranges count other holes', wrong.generation_id
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_new_holes() IS
  'Holes count their runs, and come with the ranges that count them, or in place of the same ones.';
CREATE TRIGGER hole_counted AFTER INSERT ON hole REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_new_holes();

-- A committed range, its holes and its files count no more by the same act alone.

CREATE FUNCTION guard_retraction() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  gone jsonb := to_jsonb(NEW);
  log bigint := gone ->> 'generation_id';
BEGIN
  -- The newest link of the feed is this transaction's own, and that repair's.
  IF NOT EXISTS (
       SELECT FROM (SELECT l.batch_id, l.xmin AS made_by FROM commit_link l
                     WHERE l.feed = coalesce(
                             (SELECT g.feed FROM generation g WHERE g.generation_id = log),
                             (SELECT b.feed FROM batch b WHERE b.batch_id = gone ->> 'batch_id'))
                     ORDER BY l.position DESC LIMIT 1) newest
         JOIN replaced_file r USING (batch_id)
        WHERE newest.made_by = pg_current_xact_id()::xid
          AND CASE TG_TABLE_NAME
                WHEN 'hole' THEN r.batch_id = gone ->> 'retracted_by'
                WHEN 'file_retraction'
                THEN (r.batch_id, r.old_batch_id, r.name)
                   = (gone ->> 'replaced_by', gone ->> 'batch_id', gone ->> 'name')
                ELSE true END) THEN
    RAISE EXCEPTION '% % is retracted, and no repair commits that replaces it', TG_TABLE_NAME, gone
      USING ERRCODE = 'TS003';
  END IF;
  IF NOT holes_add_up(log) THEN
    RAISE EXCEPTION 'generation %: its committed ranges count other holes', log
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_retraction() IS
  'Only the commit of a repair retracts, and what it replaces alone; holes go with their ranges.';
CREATE CONSTRAINT TRIGGER offset_range_retraction AFTER UPDATE ON offset_range
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.state = 'retracted' AND OLD.state = 'committed')
  EXECUTE FUNCTION guard_retraction();
CREATE CONSTRAINT TRIGGER hole_retraction AFTER UPDATE ON hole
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION guard_retraction();
CREATE CONSTRAINT TRIGGER file_retraction_of_repair AFTER INSERT ON file_retraction
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION guard_retraction();

CREATE FUNCTION guard_holes_of_range() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  on_record bigint;
BEGIN
  SELECT coalesce(sum(h.hole_count), 0) INTO on_record FROM hole h
   WHERE h.generation_id = NEW.generation_id AND h.runs && NEW.offsets AND h.retracted_by IS NULL;
  IF on_record <> NEW.hole_count THEN
    RAISE EXCEPTION 'range % % of generation %: committed with % holes, and % are on record there',
      NEW.range_id, NEW.offsets, NEW.generation_id, NEW.hole_count, on_record
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_holes_of_range() IS
  'A range is committed with its own holes and no others: rows + holes = span, in every table.';
CREATE CONSTRAINT TRIGGER offset_range_holes AFTER UPDATE ON offset_range
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.state = 'committed' AND OLD.state = 'claimed')
  EXECUTE FUNCTION guard_holes_of_range();

CREATE TABLE tail_anchor (
  generation_id bigint PRIMARY KEY REFERENCES generation,
  record_offset bigint NOT NULL CHECK (record_offset >= 0),
  leader_epoch  integer,
  content_hash  bytea NOT NULL CHECK (octet_length(content_hash) = 16),
  hash_version  integer NOT NULL CHECK (hash_version >= 1),
  batch_id      text NOT NULL REFERENCES batch
) WITH (fillfactor = 70);
COMMENT ON TABLE tail_anchor IS
  'The last landed record of a generation: a plan reads it again and compares, before it claims more.';
COMMENT ON COLUMN tail_anchor.hash_version IS 'Of the record hash; only equals are compared.';

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

CREATE VIEW generation_account AS
SELECT g.generation_id, g.feed, g.topic, g.partition, g.cluster_id, g.topic_id, g.ordinal,
       g.state::text AS state, g.first_offset, g.frontier, g.last_seen_until,
       g.read_until, g.seen_epoch,
       a.record_offset, a.leader_epoch, a.content_hash, a.hash_version,
       tail.from_offsets, tail.until_offsets, tail.are_unreadable
  FROM generation g
  LEFT JOIN tail_anchor a USING (generation_id)
 CROSS JOIN LATERAL (
       SELECT array_agg(lower(r.offsets) ORDER BY lower(r.offsets)) AS from_offsets,
              array_agg(upper(r.offsets) ORDER BY lower(r.offsets)) AS until_offsets,
              array_agg(r.state = 'unreadable' ORDER BY lower(r.offsets)) AS are_unreadable
         FROM offset_range r
        WHERE r.generation_id = g.generation_id
          AND r.state IN ('claimed', 'committed', 'lost', 'unreadable')
          -- Not as the exclusion constraint has it: its index knows no frontier, offset_range_reach does.
          AND NOT coalesce(r.replaces, false)
          AND upper(r.offsets) > g.frontier) tail;
COMMENT ON VIEW generation_account IS
  'Each generation with its anchor and its tail; never reads below a frontier.';

-- What was found -------------------------------------------------------------------------------

CREATE TABLE finding (
  finding_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed              text NOT NULL,
  key               bytea NOT NULL CHECK (octet_length(key) = 32),
  code              text NOT NULL,
  name              text NOT NULL,
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
  last_confirmed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  closed_at         timestamptz,
  closed_by         text,
  closed_in         text CHECK (closed_in IS NULL OR closed_by IS NOT NULL),
  CONSTRAINT finding_closed_with_reason
    CHECK ((closed_at IS NULL) = (closed_by IS NULL)
       AND (closed_by IS NULL) = (state <> 'remedied'))
);
COMMENT ON TABLE finding IS
  'What reconciliation stated. Seen again, it is confirmed; with another verdict, it is superseded.';
COMMENT ON COLUMN finding.key IS
  'SHA-256 of what it is about: the same trouble seen again has the same key.';
COMMENT ON COLUMN finding.name IS
  'What the trouble is called: where a code has several causes, it says which.';
COMMENT ON COLUMN finding.subject IS
  'The path or the batch that it is about, where no interval tells two of a code apart.';
COMMENT ON COLUMN finding.generation IS 'The generation''s ordinal.';
-- The words of a finding follow its evidence: who reads or accepts a finding that was confirmed reads
-- what the last look saw, not what the first one did.
COMMENT ON COLUMN finding.evidence IS
  'As the last look that confirmed the finding saw it; so are cause and next_step. All else is as it
was first stated.';
COMMENT ON COLUMN finding.closed_by IS
  'What closed it, in a sentence: a look that found it no more, a repair, or a person.';
COMMENT ON COLUMN finding.closed_in IS 'The run that has closed it; null where somebody did by hand.';
CREATE UNIQUE INDEX finding_standing_once ON finding (feed, key) WHERE state IN ('open', 'waived');

CREATE FUNCTION guard_finding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.finding_id, NEW.feed, NEW.key, NEW.code, NEW.name, NEW.verdict, NEW.level, NEW.topic,
      NEW.generation, NEW.partition, NEW.from_offset, NEW.until_offset, NEW.subject, NEW.first_seen_at)
     IS DISTINCT FROM
     (OLD.finding_id, OLD.feed, OLD.key, OLD.code, OLD.name, OLD.verdict, OLD.level, OLD.topic,
      OLD.generation, OLD.partition, OLD.from_offset, OLD.until_offset, OLD.subject, OLD.first_seen_at)
     OR ((NEW.evidence, NEW.cause, NEW.next_step)
         IS DISTINCT FROM (OLD.evidence, OLD.cause, OLD.next_step)
         AND (OLD.state NOT IN ('open', 'waived')
              OR NEW.last_confirmed_at = OLD.last_confirmed_at))
     OR (OLD.closed_at IS NOT NULL
         AND (NEW.closed_at, NEW.closed_by, NEW.closed_in)
             IS DISTINCT FROM (OLD.closed_at, OLD.closed_by, OLD.closed_in))
     OR (NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN (
           ('open', 'superseded'), ('open', 'remedied'), ('open', 'waived'),
           ('waived', 'open'), ('waived', 'superseded'), ('waived', 'remedied'))) THEN
    RAISE EXCEPTION 'finding %: only its confirmation and its state change', OLD.finding_id
      USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER finding_guard BEFORE UPDATE ON finding
  FOR EACH ROW EXECUTE FUNCTION guard_finding();
CREATE TRIGGER finding_kept BEFORE DELETE OR TRUNCATE ON finding
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

-- A name with blanks around it, or in other letters, is the same person's.
CREATE TABLE waiver_request (
  request_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  finding_id      bigint NOT NULL REFERENCES finding,
  evidence_sha256 bytea NOT NULL CHECK (octet_length(evidence_sha256) = 32),
  reason          text NOT NULL CHECK (btrim(reason) <> ''),
  asked_by        text NOT NULL CHECK (btrim(asked_by) <> ''),
  expires_at      timestamptz NOT NULL,
  asked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  ending          text CHECK (ending IN ('approved', 'withdrawn', 'replaced')),
  ended_by        text CHECK (btrim(ended_by) <> ''),
  ended_at        timestamptz,
  CONSTRAINT waiver_request_ends_whole CHECK (num_nulls(ending, ended_by, ended_at) IN (0, 3)),
  CONSTRAINT waiver_request_by_two
    CHECK (ending <> 'approved' OR lower(btrim(asked_by)) <> lower(btrim(ended_by))),
  CONSTRAINT waiver_request_expires_later CHECK (expires_at > asked_at)
);
COMMENT ON TABLE waiver_request IS
  'One person asks that a finding is accepted as it is stated then; somebody else may approve it.';
COMMENT ON COLUMN waiver_request.ending IS
  'replaced: it was void, for its end had come or the evidence had changed, and somebody asked anew.';
CREATE UNIQUE INDEX waiver_request_once ON waiver_request (finding_id) WHERE ending IS NULL;
CREATE INDEX waiver_request_by_finding ON waiver_request (finding_id);

CREATE TABLE waiver (
  waiver_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  finding_id      bigint NOT NULL REFERENCES finding,
  evidence_sha256 bytea NOT NULL CHECK (octet_length(evidence_sha256) = 32),
  reason          text NOT NULL CHECK (reason <> ''),
  asked_by        text NOT NULL CHECK (asked_by <> ''),
  approved_by     text NOT NULL CHECK (approved_by <> ''),
  expires_at      timestamptz NOT NULL,
  waived_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  request_id      bigint UNIQUE REFERENCES waiver_request,
  CONSTRAINT waiver_by_two CHECK (lower(btrim(asked_by)) <> lower(btrim(approved_by))),
  CONSTRAINT waiver_expires_later CHECK (expires_at > waived_at)
);
COMMENT ON TABLE waiver IS
  'Two people accepted a finding as it was stated then; void when it expires or its evidence changes.';
COMMENT ON COLUMN waiver.request_id IS
  'What was approved, where each of the two was signed in; null where one command named both.';
CREATE INDEX waiver_by_finding ON waiver (finding_id);
CREATE TRIGGER waiver_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON waiver
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE waiver_ending (
  waiver_id bigint PRIMARY KEY REFERENCES waiver,
  reason    text NOT NULL CHECK (btrim(reason) <> ''),
  ended_by  text NOT NULL CHECK (btrim(ended_by) <> ''),
  ended_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE waiver_ending IS
  'One person has ended a waiver before its time. Offsets that were given up by it stay lost.';
CREATE TRIGGER waiver_ending_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON waiver_ending
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE VIEW newest_waiver AS
SELECT w.finding_id, w.waiver_id, w.evidence_sha256, w.reason, w.asked_by, w.approved_by, w.expires_at,
       clock_timestamp() >= w.expires_at AS has_expired,
       e.ended_by, e.ended_at, e.reason AS ended_because,
       e.waiver_id IS NULL AND clock_timestamp() < w.expires_at AS is_in_force
  FROM waiver w
  LEFT JOIN waiver_ending e USING (waiver_id)
 WHERE NOT EXISTS (SELECT FROM waiver newer
                    WHERE newer.finding_id = w.finding_id AND newer.waiver_id > w.waiver_id);
COMMENT ON VIEW newest_waiver IS
  'Of each finding. One that is over counts for nothing, also before the next look opens the finding.';

CREATE FUNCTION guard_waiver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.request_id IS NOT NULL AND NOT EXISTS (
       SELECT FROM waiver_request r
        WHERE r.request_id = NEW.request_id AND r.ending IS NULL
          AND (r.finding_id, r.evidence_sha256, r.reason, r.asked_by, r.expires_at)
              = (NEW.finding_id, NEW.evidence_sha256, NEW.reason, NEW.asked_by, NEW.expires_at)) THEN
    RAISE EXCEPTION 'waiver of finding %: request % does not stand, or asks for something else',
      NEW.finding_id, NEW.request_id USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER waiver_as_asked BEFORE INSERT ON waiver
  FOR EACH ROW EXECUTE FUNCTION guard_waiver();

CREATE FUNCTION guard_waiver_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ending IS NOT NULL
     OR (NEW.request_id, NEW.finding_id, NEW.evidence_sha256, NEW.reason, NEW.asked_by,
         NEW.expires_at, NEW.asked_at)
        IS DISTINCT FROM
        (OLD.request_id, OLD.finding_id, OLD.evidence_sha256, OLD.reason, OLD.asked_by,
         OLD.expires_at, OLD.asked_at) THEN
    RAISE EXCEPTION 'waiver request %: only its end is entered, once', OLD.request_id
      USING ERRCODE = 'TS001';
  END IF;
  IF NEW.ending = 'approved' AND NOT EXISTS (
       SELECT FROM waiver w WHERE w.request_id = NEW.request_id AND w.approved_by = NEW.ended_by) THEN
    RAISE EXCEPTION 'waiver request %: no waiver of % stands for it', NEW.request_id, NEW.ended_by
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER waiver_request_guard BEFORE UPDATE ON waiver_request
  FOR EACH ROW EXECUTE FUNCTION guard_waiver_request();
CREATE TRIGGER waiver_request_kept BEFORE DELETE OR TRUNCATE ON waiver_request
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

-- Second lives of a log ------------------------------------------------------------------------
-- A log has one life under one topic id, unless it was cut: a second life that begins below what
-- the first one holds would land the same records twice.

CREATE FUNCTION was_cut(log generation) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT log.ending_code = 'A10'
      OR (log.ending_code = 'A3'
          AND EXISTS (SELECT FROM finding f
                       WHERE f.feed = log.feed AND f.topic = log.topic
                         AND f.partition = log.partition AND f.generation = log.ordinal
                         AND f.code = 'A3' AND f.verdict = 'PROVEN_LOSS'))
$$;
COMMENT ON FUNCTION was_cut(generation) IS
  'If a later life of the same topic id may hold the same offsets: a finding says that the log was
cut, or a rebuild met the later life in published directories.';

CREATE FUNCTION guard_second_life() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earlier generation%ROWTYPE;
BEGIN
  SELECT * INTO earlier FROM generation g
   WHERE g.feed = NEW.feed AND g.partition = NEW.partition
     AND g.cluster_id = NEW.cluster_id AND g.topic_id = NEW.topic_id
     AND NEW.first_offset < greatest(g.frontier, g.read_until) AND was_cut(g) IS NOT TRUE
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '%-% generation % would begin at % below the end of generation %, of the same'
      ' topic id, and no finding says that the log was cut',
      NEW.topic, NEW.partition, NEW.ordinal, NEW.first_offset, earlier.ordinal
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER generation_second_life BEFORE INSERT ON generation
  FOR EACH ROW EXECUTE FUNCTION guard_second_life();

-- Deep checks ------------------------------------------------------------------------------------

CREATE TABLE file_fingerprint (
  batch_id       text NOT NULL,
  name           text NOT NULL,
  partition      integer NOT NULL CHECK (partition >= 0),
  hash_version   integer NOT NULL CHECK (hash_version >= 1),
  record_count   bigint NOT NULL CHECK (record_count >= 1),
  offset_sum     numeric NOT NULL,
  high_hash_sum  bigint NOT NULL,
  low_hash_sum   bigint NOT NULL,
  taken_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (batch_id, name, partition, hash_version),
  FOREIGN KEY (batch_id, name) REFERENCES file (batch_id, name)
);
COMMENT ON TABLE file_fingerprint IS
  'The content of one slice as the first full read found it: every later one must say the same. Of
another version of the row hash the first full read counts anew.';
COMMENT ON COLUMN file_fingerprint.hash_version IS 'Of the row hash; only equals are compared.';
COMMENT ON COLUMN file_fingerprint.high_hash_sum IS
  'Sum of the high 64 bits of each row''s hash over all columns, modulo 2^64, signed.';
COMMENT ON COLUMN file_fingerprint.low_hash_sum IS 'The same of the low 64 bits.';
CREATE FUNCTION guard_fingerprint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM file f
                  WHERE (f.batch_id, f.name) = (NEW.batch_id, NEW.name)
                    AND f.partitions @> NEW.partition) THEN
    RAISE EXCEPTION 'file % of batch % holds nothing of partition %',
      NEW.name, NEW.batch_id, NEW.partition USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER file_fingerprint_guard BEFORE INSERT ON file_fingerprint
  FOR EACH ROW EXECUTE FUNCTION guard_fingerprint();
CREATE TRIGGER file_fingerprint_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON file_fingerprint
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE batch_check (
  check_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  batch_id    text NOT NULL REFERENCES batch,
  level       text NOT NULL CHECK (level IN ('L2', 'L3', 'L4')),
  is_clean    boolean NOT NULL,
  is_complete boolean NOT NULL DEFAULT true,
  sample      jsonb,
  checked_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT batch_check_clean_if_complete CHECK (is_complete OR NOT is_clean),
  CONSTRAINT batch_check_sample_at_l4 CHECK ((level = 'L4') = (sample IS NOT NULL))
);
COMMENT ON TABLE batch_check IS
  'Deep looks at committed batches: L2 read the offset columns again, L3 every row, L4 compared a
sample with the broker by a second reader.';
COMMENT ON COLUMN batch_check.is_complete IS
  'False for a try that did not read all: it proves nothing, and only says when it was.';
COMMENT ON COLUMN batch_check.sample IS
  'Of level L4: the turn, how many slices of how many offsets at most, how many offsets were compared,
and what could not be; batch and turn say which offsets these are.';
CREATE INDEX batch_check_newest ON batch_check (batch_id, level, check_id);
CREATE TRIGGER batch_check_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON batch_check
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Reports, and how far the readers' tree was seen ------------------------------------------------

CREATE TABLE report (
  report_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed           text NOT NULL,
  taken_at       timestamptz NOT NULL,
  verdict        verdict NOT NULL,
  complete_up_to timestamptz,
  lost_at        timestamptz,
  deepest        text NOT NULL CHECK (deepest IN ('L1', 'L2', 'L3', 'L4')),
  silent         text[] NOT NULL,
  made_by        text,
  document       bytea NOT NULL,
  recorded_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE report ALTER document SET STORAGE EXTERNAL;
COMMENT ON COLUMN report.lost_at IS
  'When retention may take the first record that is not landed; null where none waits, or nobody knows.';
COMMENT ON COLUMN report.deepest IS 'The level that was asked for.';
COMMENT ON COLUMN report.silent IS 'The levels at which a witness did not answer.';
COMMENT ON COLUMN report.made_by IS 'The run that has made it; null for one that was made by hand.';
COMMENT ON COLUMN report.document IS 'JSON, compressed as manifests are.';
COMMENT ON TABLE report IS 'Whole reports as JSON, entered in one piece: a reconcile that dies leaves none.';
CREATE INDEX report_by_feed ON report (feed, report_id);
CREATE TRIGGER report_append_only BEFORE UPDATE OR TRUNCATE ON report
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE completeness (
  feed    text PRIMARY KEY,
  up_to   timestamptz,
  by      text NOT NULL CHECK (by IN ('readable', 'record time')),
  told_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);
COMMENT ON TABLE completeness IS
  'What each feed was last said to be complete up to, at the end of a run: pages and metrics read it.';

CREATE FUNCTION guard_thinned_reports() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  SELECT * INTO gone FROM old_rows o
   WHERE NOT coalesce((SELECT max(r.report_id) > o.report_id AND max(r.verdict) >= o.verdict
                         FROM report r
                        WHERE r.feed = o.feed
                          AND r.recorded_at >= date_trunc('day', o.recorded_at, 'UTC')
                          AND r.recorded_at < date_trunc('day', o.recorded_at, 'UTC')
                                              + interval '24 hours'), false)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'DELETE refused: report % is evidence, the last or the worst of its day',
      gone.report_id USING ERRCODE = 'TS001';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_thinned_reports() IS
  'The last report of each day stays, and one with the worst verdict.';
CREATE TRIGGER report_thinned AFTER DELETE ON report REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_thinned_reports();

CREATE TABLE hour_look (
  feed    text NOT NULL REFERENCES feed,
  path    text NOT NULL CHECK (path ~ '^/'),
  version text NOT NULL CHECK (version <> ''),
  PRIMARY KEY (feed, path)
) WITH (fillfactor = 70);
COMMENT ON TABLE hour_look IS
  'Hours'' directories whose batches were compared with this ledger; each is passed while it is shown the same.';

CREATE TABLE directory_look (
  batch_id    text PRIMARY KEY REFERENCES batch,
  digest      bytea NOT NULL CHECK (octet_length(digest) = 32),
  shown_as    bytea CHECK (octet_length(shown_as) = 32),
  compared_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);
COMMENT ON TABLE directory_look IS
  'Published directories whose files and manifest were as committed when they were asked last.';
COMMENT ON COLUMN directory_look.digest IS
  'Of how the directory was listed then, and of what the ledger had of it: while both are as they were,
its files are asked again when they are due.';
COMMENT ON COLUMN directory_look.shown_as IS
  'Of how its parent''s listing showed the directory before: while that is as it was, the directory is
listed again when it is due. NULL where its own time can''t tell that something was changed.';

-- What people were told ----------------------------------------------------------------------------

CREATE TABLE told (
  feed      text NOT NULL,
  recipient text NOT NULL CHECK (recipient ~ '^[0-9a-f]{16}$'),
  known     jsonb,
  told_at   timestamptz,
  PRIMARY KEY (feed, recipient),
  CONSTRAINT told_when CHECK ((known IS NULL) = (told_at IS NULL))
) WITH (fillfactor = 70);
COMMENT ON TABLE told IS
  'What each notifier of a feed has told. Its row is locked while it tells more, and kept after that: a
task that dies in between tells it again.';
COMMENT ON COLUMN told.recipient IS 'Digest of the notifier as the feed''s file names it.';
