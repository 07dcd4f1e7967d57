-- What reconciliation needs to prove, to remember, and to repair.
-- A repair lands offsets again that are committed already. Until its commit nothing changes; then
-- the old rows are retracted and the new ones committed in one transaction, so that at every
-- instant each offset is in exactly one committed range.

COMMENT ON TYPE range_state IS 'What is said of a range; the first three exclude one another on every offset. The only steps:
claimed -> committed
claimed -> lost
claimed -> released
committed -> retracted';

-- Ranges that replace others --------------------------------------------------------------------

ALTER TABLE offset_range
  ADD COLUMN replaces boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT offset_range_replaces_while_claimed
    CHECK (NOT replaces OR state IN ('claimed', 'released')),
  DROP CONSTRAINT offset_range_all_accounted_for,
  ADD CONSTRAINT offset_range_all_accounted_for CHECK (
    CASE WHEN state IN ('committed', 'retracted')
         THEN coalesce(record_count + hole_count = upper(offsets) - lower(offsets), false)
         ELSE record_count IS NULL AND hole_count IS NULL END),
  DROP CONSTRAINT offset_range_no_overlap,
  ADD CONSTRAINT offset_range_no_overlap
    EXCLUDE USING gist (generation_id WITH =, offsets WITH &&)
    WHERE (state IN ('claimed', 'committed', 'lost') AND NOT replaces),
  ADD CONSTRAINT offset_range_replaced_once
    EXCLUDE USING gist (generation_id WITH =, offsets WITH &&)
    WHERE (state = 'claimed' AND replaces);
COMMENT ON COLUMN offset_range.replaces IS
  'True for the claim of a repair: its offsets are committed, and stay so until the repair commits.';
COMMENT ON TABLE offset_range IS
  'Offsets [from, until) of a generation. No offset is in two claimed, committed or lost rows,
but for the claim of a repair, which replaces committed ones.';

CREATE OR REPLACE FUNCTION guard_range() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  log generation%ROWTYPE;
BEGIN
  IF TG_OP = 'INSERT' THEN
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
  END IF;
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

CREATE FUNCTION guard_retraction() RETURNS trigger LANGUAGE plpgsql AS $$
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
COMMENT ON FUNCTION guard_retraction() IS
  'What is retracted is committed or lost elsewhere at the end of the same transaction.';
CREATE CONSTRAINT TRIGGER offset_range_retraction AFTER UPDATE ON offset_range
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.state = 'retracted' AND OLD.state = 'committed')
  EXECUTE FUNCTION guard_retraction();

CREATE INDEX hole_by_generation ON hole (generation_id);

CREATE OR REPLACE FUNCTION guard_folding() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  -- Spelled as the predicate of the exclusion constraint, whose index then finds the holder at once.
  SELECT * INTO gone FROM old_rows o
   WHERE o.state <> 'committed'
      OR NOT EXISTS (SELECT FROM offset_range r
                      WHERE r.generation_id = o.generation_id AND r.state = 'committed'
                        AND NOT r.replaces AND r.offsets @> o.offsets)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'DELETE refused: range % of generation % would be forgotten',
      gone.offsets, gone.generation_id USING ERRCODE = 'TS001';
  END IF;
  RETURN NULL;
END $$;

-- Files that are replaced, and files that are retracted ------------------------------------------

CREATE TABLE replaced_file (
  batch_id     text NOT NULL REFERENCES batch,
  old_batch_id text NOT NULL,
  name         text NOT NULL,
  PRIMARY KEY (batch_id, old_batch_id, name),
  FOREIGN KEY (old_batch_id, name) REFERENCES file (batch_id, name)
);
COMMENT ON TABLE replaced_file IS 'The files that a repair''s batch takes the place of, as planned.';
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

-- Findings: how they end -------------------------------------------------------------------------

ALTER TABLE finding
  ADD COLUMN closed_at timestamptz,
  ADD COLUMN closed_by text,
  ADD CONSTRAINT finding_closed_with_reason
    CHECK ((closed_at IS NULL) = (closed_by IS NULL)
       AND (closed_by IS NULL) = (state NOT IN ('remedied', 'false_alarm')));
COMMENT ON COLUMN finding.closed_by IS
  'What closed it, in a sentence: a look that found it no more, a repair, or a person.';
COMMENT ON TYPE finding_state IS 'What became of a finding. The only steps:
open -> superseded
open -> remedied
open -> waived
open -> false_alarm
waived -> open
waived -> superseded
waived -> remedied';
DROP INDEX finding_open_once;
CREATE UNIQUE INDEX finding_standing_once
  ON finding (feed, code, topic, generation, partition, from_offset, until_offset, md5(subject))
  NULLS NOT DISTINCT WHERE state IN ('open', 'waived');

-- A confirmation restates the evidence: who accepts a finding accepts what the last look saw.
COMMENT ON COLUMN finding.evidence IS
  'As the last look that confirmed the finding saw it; all else is as it was first stated.';
CREATE OR REPLACE FUNCTION guard_finding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.finding_id, NEW.feed, NEW.code, NEW.verdict, NEW.level, NEW.topic, NEW.generation,
      NEW.partition, NEW.from_offset, NEW.until_offset, NEW.subject, NEW.cause, NEW.next_step,
      NEW.first_seen_at)
     IS DISTINCT FROM
     (OLD.finding_id, OLD.feed, OLD.code, OLD.verdict, OLD.level, OLD.topic, OLD.generation,
      OLD.partition, OLD.from_offset, OLD.until_offset, OLD.subject, OLD.cause, OLD.next_step,
      OLD.first_seen_at)
     OR (NEW.evidence <> OLD.evidence
         AND (OLD.state NOT IN ('open', 'waived')
              OR NEW.last_confirmed_at = OLD.last_confirmed_at))
     OR (OLD.closed_at IS NOT NULL
         AND (NEW.closed_at, NEW.closed_by) IS DISTINCT FROM (OLD.closed_at, OLD.closed_by))
     OR (NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN (
           ('open', 'superseded'), ('open', 'remedied'), ('open', 'waived'),
           ('open', 'false_alarm'), ('waived', 'open'), ('waived', 'superseded'),
           ('waived', 'remedied'))) THEN
    RAISE EXCEPTION 'finding %: only its confirmation and its state change', OLD.finding_id
      USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;

CREATE TABLE waiver (
  waiver_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  finding_id      bigint NOT NULL REFERENCES finding,
  evidence_sha256 bytea NOT NULL CHECK (octet_length(evidence_sha256) = 32),
  reason          text NOT NULL CHECK (reason <> ''),
  asked_by        text NOT NULL CHECK (asked_by <> ''),
  approved_by     text NOT NULL CHECK (approved_by <> ''),
  expires_at      timestamptz NOT NULL,
  waived_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT waiver_by_two CHECK (lower(asked_by) <> lower(approved_by)),
  CONSTRAINT waiver_expires_later CHECK (expires_at > waived_at)
);
COMMENT ON TABLE waiver IS
  'Two people accepted a finding as it was stated then; void when it expires or its evidence changes.';
CREATE INDEX waiver_by_finding ON waiver (finding_id);
CREATE TRIGGER waiver_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON waiver
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Deep checks ------------------------------------------------------------------------------------

CREATE TABLE file_fingerprint (
  batch_id     text NOT NULL,
  name         text NOT NULL,
  partition    integer NOT NULL CHECK (partition >= 0),
  record_count bigint NOT NULL CHECK (record_count >= 1),
  offset_sum   numeric NOT NULL,
  hash_sums    numeric[] NOT NULL CHECK (cardinality(hash_sums) = 4),
  taken_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (batch_id, name, partition),
  FOREIGN KEY (batch_id, name, partition) REFERENCES file_slice (batch_id, name, partition)
);
COMMENT ON TABLE file_fingerprint IS
  'The content of one slice as the first full read found it: every later one must say the same.';
COMMENT ON COLUMN file_fingerprint.hash_sums IS
  'Sums of the four 32-bit quarters of a 128-bit hash over all columns, for each row.';
CREATE TRIGGER file_fingerprint_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON file_fingerprint
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE batch_check (
  check_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  batch_id    text NOT NULL REFERENCES batch,
  level       text NOT NULL CHECK (level IN ('L2', 'L3')),
  is_clean    boolean NOT NULL,
  is_complete boolean NOT NULL DEFAULT true,
  checked_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT batch_check_clean_if_complete CHECK (is_complete OR NOT is_clean)
);
COMMENT ON TABLE batch_check IS
  'Deep looks at committed batches: L2 read the offset columns again, L3 every row.';
COMMENT ON COLUMN batch_check.is_complete IS
  'False for a try that did not read all: it proves nothing, and only says when it was.';
CREATE INDEX batch_check_newest ON batch_check (batch_id, level, check_id);
CREATE TRIGGER batch_check_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON batch_check
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- How far logs were seen to reach ----------------------------------------------------------------

ALTER TABLE generation ADD COLUMN seen_epoch integer;
COMMENT ON COLUMN generation.seen_epoch IS
  'Leader epoch in which the log was seen to reach last_seen_until: evidence that nothing of it was
cut since.';

-- Reports, and how far the readers' tree was seen ------------------------------------------------

CREATE TABLE report (
  report_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  feed           text NOT NULL,
  taken_at       timestamptz NOT NULL,
  verdict        verdict NOT NULL,
  complete_up_to timestamptz,
  document       text NOT NULL,
  recorded_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE report IS 'Whole reports as JSON, entered in one piece: a reconcile that dies leaves none.';
CREATE INDEX report_by_feed ON report (feed, taken_at);
CREATE TRIGGER report_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON report
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE broker_snapshot
  ADD COLUMN leaderless integer[] NOT NULL DEFAULT '{}',
  ADD COLUMN doubt text CHECK (doubt <> '');
COMMENT ON COLUMN broker_snapshot.doubt IS
  'Why nothing is proven to be complete up to this look: another witness was silent, or the log
has changed and no plan has recorded it yet; null where there was no doubt.';
COMMENT ON COLUMN broker_snapshot.leaderless IS
  'Partitions that could not be asked: their absence from the others says nothing.';
COMMENT ON TABLE broker_snapshot IS
  'What the broker said before each plan and to each reconcile; one row per snapshot, one array
element per partition.';

CREATE TABLE storage_look (
  feed       text NOT NULL REFERENCES feed,
  root       text NOT NULL CHECK (root ~ '^/'),
  changed_ms bigint NOT NULL CHECK (changed_ms >= 0),
  PRIMARY KEY (feed, root)
) WITH (fillfactor = 70);
COMMENT ON TABLE storage_look IS
  'Newest change of a readers'' directory that was compared with this ledger, by the NameNode''s clock.';

-- What all tries of a run have found is that run's news ------------------------------------------

CREATE INDEX plan_by_owner ON plan (feed, owner, planned_at);
