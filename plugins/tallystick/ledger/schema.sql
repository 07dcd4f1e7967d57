-- The ledger's schema as it is after all migrations: generated, for reading. Its reasons are in
-- sql/migrations. Written anew by: python -m tests.support.schema_dump

-- btree_gist, EXTENSION

CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA public;

-- EXTENSION btree_gist, COMMENT

COMMENT ON EXTENSION btree_gist IS 'support for indexing common datatypes in GiST';

-- batch_state, TYPE

CREATE TYPE public.batch_state AS ENUM (
    'planned',
    'landing',
    'verified',
    'committed',
    'published',
    'abandoned'
);

-- TYPE batch_state, COMMENT

COMMENT ON TYPE public.batch_state IS 'Where a batch stands. The only steps:
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

-- finding_state, TYPE

CREATE TYPE public.finding_state AS ENUM (
    'open',
    'superseded',
    'remedied',
    'waived'
);

-- TYPE finding_state, COMMENT

COMMENT ON TYPE public.finding_state IS 'What became of a finding. The only steps:
open -> superseded
open -> remedied
open -> waived
waived -> open
waived -> superseded
waived -> remedied';

-- generation_state, TYPE

CREATE TYPE public.generation_state AS ENUM (
    'open',
    'stopped',
    'closed'
);

-- TYPE generation_state, COMMENT

COMMENT ON TYPE public.generation_state IS 'If offsets of a generation may still be planned. The only steps:
open -> stopped
open -> closed
stopped -> closed';

-- hole_class, TYPE

CREATE TYPE public.hole_class AS ENUM (
    'control',
    'aborted',
    'compacted'
);

-- TYPE hole_class, COMMENT

COMMENT ON TYPE public.hole_class IS 'Why an offset of a landed range has no visible record.';

-- range_state, TYPE

CREATE TYPE public.range_state AS ENUM (
    'claimed',
    'committed',
    'lost',
    'released',
    'retracted',
    'unreadable'
);

-- TYPE range_state, COMMENT

COMMENT ON TYPE public.range_state IS 'What is said of a range: no offset is claimed, committed, lost or unreadable twice. The only steps:
claimed -> committed
claimed -> lost
claimed -> released
claimed -> unreadable
unreadable -> lost
unreadable -> released
committed -> retracted';

-- verdict, TYPE

CREATE TYPE public.verdict AS ENUM (
    'PROVEN_OK',
    'WAIVED',
    'SUSPECTED',
    'UNKNOWN',
    'PROVEN_DUP',
    'PROVEN_LOSS'
);

-- TYPE verdict, COMMENT

COMMENT ON TYPE public.verdict IS 'What is said of an interval, from harmless to worst.';

-- are_slices(int4multirange, bigint[], integer[], smallint[], bigint[]), FUNCTION

CREATE FUNCTION public.are_slices(partitions int4multirange, first_offsets bigint[], span_blocks integer[], span_rests smallint[], hole_counts bigint[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  SELECT count(*) > 0
     AND bool_and(coalesce(s.partition >= 0 AND s.first_offset >= 0 AND s.hole_count >= 0
                           AND s.span_block >= 0 AND s.span_rest >= 0
                           AND s.span_block * 32768::bigint + s.span_rest > s.hole_count, false))
    FROM unnest(numbers_in(partitions), first_offsets, span_blocks, span_rests, hole_counts)
         AS s(partition, first_offset, span_block, span_rest, hole_count)
$$;

-- FUNCTION are_slices(partitions int4multirange, first_offsets bigint[], span_blocks integer[], span_rests smallint[], hole_counts bigint[]), COMMENT

COMMENT ON FUNCTION public.are_slices(partitions int4multirange, first_offsets bigint[], span_blocks integer[], span_rests smallint[], hole_counts bigint[]) IS 'If these are slices of one file: each with rows, one for a partition, partitions ascending.';

-- checksums_now(text), FUNCTION

CREATE FUNCTION public.checksums_now(batch text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  SELECT jsonb_object_agg(s.name, s.checksum ORDER BY s.proven_at)
    FROM stored_anew s WHERE s.batch_id = batch
$$;

-- FUNCTION checksums_now(batch text), COMMENT

COMMENT ON FUNCTION public.checksums_now(batch text) IS 'By name, the checksums of a batch''s files that are stored in another way by now; null for none.';

-- guard_anchor(), FUNCTION

CREATE FUNCTION public.guard_anchor() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF NEW.generation_id <> OLD.generation_id OR NEW.record_offset <= OLD.record_offset THEN
    RAISE EXCEPTION 'generation %: the tail anchor only moves forward, from % to %',
      OLD.generation_id, OLD.record_offset, NEW.record_offset USING ERRCODE = 'TS003';
  END IF;
  RETURN NEW;
END $$;

-- guard_attempt(), FUNCTION

CREATE FUNCTION public.guard_attempt() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_batch(), FUNCTION

CREATE FUNCTION public.guard_batch() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_batch_state(), FUNCTION

CREATE FUNCTION public.guard_batch_state() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_claims_settled(), FUNCTION

CREATE FUNCTION public.guard_claims_settled() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_claims_settled(), COMMENT

COMMENT ON FUNCTION public.guard_claims_settled() IS 'A batch that is over holds no claim.';

-- guard_commit_link(), FUNCTION

CREATE FUNCTION public.guard_commit_link() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_commit_linked(), FUNCTION

CREATE FUNCTION public.guard_commit_linked() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM commit_link l WHERE l.batch_id = NEW.batch_id) THEN
    RAISE EXCEPTION 'batch % is committed, and its feed''s chain of commits has no link for it',
      NEW.batch_id USING ERRCODE = 'TS002';
  END IF;
  RETURN NULL;
END $$;

-- FUNCTION guard_commit_linked(), COMMENT

COMMENT ON FUNCTION public.guard_commit_linked() IS 'No batch is committed beside the chain.';

-- guard_finding(), FUNCTION

CREATE FUNCTION public.guard_finding() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_fingerprint(), FUNCTION

CREATE FUNCTION public.guard_fingerprint() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM file f
                  WHERE (f.batch_id, f.name) = (NEW.batch_id, NEW.name)
                    AND f.partitions @> NEW.partition) THEN
    RAISE EXCEPTION 'file % of batch % holds nothing of partition %',
      NEW.name, NEW.batch_id, NEW.partition USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;

-- guard_folding(), FUNCTION

CREATE FUNCTION public.guard_folding() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_folding(), COMMENT

COMMENT ON FUNCTION public.guard_folding() IS 'Committed ranges may only be removed by the statement that enters one with all their offsets, and
with the sums of their counts.';

-- guard_folding_of_holes(), FUNCTION

CREATE FUNCTION public.guard_folding_of_holes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_folding_of_holes(), COMMENT

COMMENT ON FUNCTION public.guard_folding_of_holes() IS 'Holes may only be removed by the statement that enters the same ones in other rows.';

-- guard_frontier(), FUNCTION

CREATE FUNCTION public.guard_frontier() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_frontier(), COMMENT

COMMENT ON FUNCTION public.guard_frontier() IS 'The frontier never passes an offset that is neither landed, a proven hole, nor recorded as lost.';

-- guard_generation(), FUNCTION

CREATE FUNCTION public.guard_generation() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_hole(), FUNCTION

CREATE FUNCTION public.guard_hole() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_holes_of_range(), FUNCTION

CREATE FUNCTION public.guard_holes_of_range() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_holes_of_range(), COMMENT

COMMENT ON FUNCTION public.guard_holes_of_range() IS 'A range is committed with its own holes and no others: rows + holes = span, in every table.';

-- guard_look(), FUNCTION

CREATE FUNCTION public.guard_look() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_look(), COMMENT

COMMENT ON FUNCTION public.guard_look() IS 'Of each log, each day keeps a look that is whole.';

-- guard_move(), FUNCTION

CREATE FUNCTION public.guard_move() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM batch b WHERE b.batch_id = NEW.batch_id AND b.root = NEW.to_root) THEN
    RAISE EXCEPTION 'batch % does not lie below %, where it was moved', NEW.batch_id, NEW.to_root
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NULL;
END $$;

-- FUNCTION guard_move(), COMMENT

COMMENT ON FUNCTION public.guard_move() IS 'A move is entered together with the place that it leads to.';

-- guard_new_holes(), FUNCTION

CREATE FUNCTION public.guard_new_holes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_new_holes(), COMMENT

COMMENT ON FUNCTION public.guard_new_holes() IS 'Holes count their runs, and come with the ranges that count them, or in place of the same ones.';

-- guard_new_range(), FUNCTION

CREATE FUNCTION public.guard_new_range() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_new_range(), COMMENT

COMMENT ON FUNCTION public.guard_new_range() IS 'A range begins as a claim or as a loss; only what stands for others is entered as committed.';

-- guard_plan(), FUNCTION

CREATE FUNCTION public.guard_plan() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  IF EXISTS (SELECT FROM feed_retirement WHERE feed = NEW.feed) THEN
    RAISE EXCEPTION 'feed % is retired: it is never planned again', NEW.feed
      USING ERRCODE = 'TS003';
  END IF;
  RETURN NEW;
END $$;

-- FUNCTION guard_plan(), COMMENT

COMMENT ON FUNCTION public.guard_plan() IS 'A retired feed lands nothing more.';

-- guard_range_step(), FUNCTION

CREATE FUNCTION public.guard_range_step() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_replaced_file(), FUNCTION

CREATE FUNCTION public.guard_replaced_file() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  -- The plan's row never changes, so this transaction has entered it, and the batch with it.
  IF NOT EXISTS (SELECT FROM batch b JOIN plan p USING (plan_id)
                  WHERE b.batch_id = NEW.batch_id AND p.xmin = pg_current_xact_id()::xid) THEN
    RAISE EXCEPTION 'batch %: which files it replaces is said by its plan', NEW.batch_id
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;

-- guard_retirement(), FUNCTION

CREATE FUNCTION public.guard_retirement() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_retirement(), COMMENT

COMMENT ON FUNCTION public.guard_retirement() IS 'A feed ends whole.';

-- guard_retracted_range(), FUNCTION

CREATE FUNCTION public.guard_retracted_range() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_retracted_range(), COMMENT

COMMENT ON FUNCTION public.guard_retracted_range() IS 'What is retracted is committed or lost elsewhere at the end of the same transaction.';

-- guard_retraction(), FUNCTION

CREATE FUNCTION public.guard_retraction() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_retraction(), COMMENT

COMMENT ON FUNCTION public.guard_retraction() IS 'Only the commit of a repair retracts, and what it replaces alone; holes go with their ranges.';

-- guard_second_life(), FUNCTION

CREATE FUNCTION public.guard_second_life() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_stored_anew(), FUNCTION

CREATE FUNCTION public.guard_stored_anew() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_stored_anew(), COMMENT

COMMENT ON FUNCTION public.guard_stored_anew() IS 'Of the same kind, another checksum is one of other bytes.';

-- guard_thinned_reports(), FUNCTION

CREATE FUNCTION public.guard_thinned_reports() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_thinned_reports(), COMMENT

COMMENT ON FUNCTION public.guard_thinned_reports() IS 'The last report of each day stays, and one with the worst verdict.';

-- guard_verification(), FUNCTION

CREATE FUNCTION public.guard_verification() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- FUNCTION guard_verification(), COMMENT

COMMENT ON FUNCTION public.guard_verification() IS 'Hashes may be forgotten while the manifest that has them is where readers look, as committed.';

-- guard_waiver(), FUNCTION

CREATE FUNCTION public.guard_waiver() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- guard_waiver_request(), FUNCTION

CREATE FUNCTION public.guard_waiver_request() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

-- holes_add_up(bigint), FUNCTION

CREATE FUNCTION public.holes_add_up(log bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  SELECT (SELECT coalesce(sum(h.hole_count), 0) FROM hole h
           WHERE h.generation_id = log AND h.retracted_by IS NULL)
       = (SELECT coalesce(sum(r.hole_count), 0) FROM offset_range r
           WHERE r.generation_id = log AND r.state = 'committed')
$$;

-- FUNCTION holes_add_up(log bigint), COMMENT

COMMENT ON FUNCTION public.holes_add_up(log bigint) IS 'If a log has as many holes on record as its committed ranges count.';

-- numbers_in(int4multirange), FUNCTION

CREATE FUNCTION public.numbers_in(ranges int4multirange) RETURNS integer[]
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  SELECT array_agg(number ORDER BY number)
    FROM unnest(ranges) AS r, generate_series(lower(r), upper(r) - 1) AS number
$$;

-- FUNCTION numbers_in(ranges int4multirange), COMMENT

COMMENT ON FUNCTION public.numbers_in(ranges int4multirange) IS 'All numbers in these ranges, ascending.';

-- refuse_change(), FUNCTION

CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  RAISE EXCEPTION '% refused: % is evidence and never changes', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'TS001';
END $$;

-- FUNCTION refuse_change(), COMMENT

COMMENT ON FUNCTION public.refuse_change() IS 'Keeps append-only tables append-only.';

-- refuse_delete(), FUNCTION

CREATE FUNCTION public.refuse_delete() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
BEGIN
  RAISE EXCEPTION '% refused: rows of % are never removed', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'TS001';
END $$;

-- FUNCTION refuse_delete(), COMMENT

COMMENT ON FUNCTION public.refuse_delete() IS 'Keeps rows that may change from being removed.';

-- generation, TABLE

CREATE TABLE public.generation (
    generation_id bigint NOT NULL,
    feed text NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    cluster_id text NOT NULL,
    topic_id text NOT NULL,
    ordinal integer NOT NULL,
    state public.generation_state DEFAULT 'open'::public.generation_state NOT NULL,
    first_offset bigint NOT NULL,
    begins_unseen boolean DEFAULT false NOT NULL,
    frontier bigint NOT NULL,
    last_seen_until bigint NOT NULL,
    seen_epoch integer,
    read_until bigint,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    opening_reason text NOT NULL,
    ended_at timestamp with time zone,
    ending_code text,
    ending_reason text,
    CONSTRAINT generation_check CHECK (((NOT begins_unseen) OR (first_offset > 0))),
    CONSTRAINT generation_check1 CHECK ((read_until > first_offset)),
    CONSTRAINT generation_ended_with_reason CHECK ((((state = 'open'::public.generation_state) = (ended_at IS NULL)) AND ((ended_at IS NULL) = (ending_code IS NULL)) AND ((ended_at IS NULL) = (ending_reason IS NULL)))),
    CONSTRAINT generation_first_offset_check CHECK ((first_offset >= 0)),
    CONSTRAINT generation_frontier_in_range CHECK ((frontier >= first_offset)),
    CONSTRAINT generation_last_seen_until_check CHECK ((last_seen_until >= 0)),
    CONSTRAINT generation_ordinal_check CHECK ((ordinal >= 1)),
    CONSTRAINT generation_partition_check CHECK ((partition >= 0))
)
WITH (fillfactor='70');

-- TABLE generation, COMMENT

COMMENT ON TABLE public.generation IS 'One life of one topic partition''s log; all offsets hang on one.';

-- COLUMN generation.ordinal, COMMENT

COMMENT ON COLUMN public.generation.ordinal IS 'Which life of the log: 1 for the first.';

-- COLUMN generation.first_offset, COMMENT

COMMENT ON COLUMN public.generation.first_offset IS 'Where the feed''s responsibility begins (included).';

-- COLUMN generation.begins_unseen, COMMENT

COMMENT ON COLUMN public.generation.begins_unseen IS 'If a log that was new to the feed began there already: what was below it, nobody has seen.';

-- COLUMN generation.frontier, COMMENT

COMMENT ON COLUMN public.generation.frontier IS 'End (excluded) of the prefix that is landed, proven hole, or recorded as lost. Never moves back.';

-- COLUMN generation.last_seen_until, COMMENT

COMMENT ON COLUMN public.generation.last_seen_until IS 'Largest high watermark (excluded) that any look showed since the log began, or stopped; with
seen_epoch, the log''s witness.';

-- COLUMN generation.seen_epoch, COMMENT

COMMENT ON COLUMN public.generation.seen_epoch IS 'Leader epoch in which the log was last seen to reach last_seen_until: as long as it, or an older
one, ends no earlier, nothing of the log was cut. A look replaces it after asking it.';

-- COLUMN generation.read_until, COMMENT

COMMENT ON COLUMN public.generation.read_until IS 'End (excluded) of the furthest committed range; null before the first commit.';

-- was_cut(public.generation), FUNCTION

CREATE FUNCTION public.was_cut(log public.generation) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  SELECT log.ending_code = 'A10'
      OR (log.ending_code = 'A3'
          AND EXISTS (SELECT FROM finding f
                       WHERE f.feed = log.feed AND f.topic = log.topic
                         AND f.partition = log.partition AND f.generation = log.ordinal
                         AND f.code = 'A3' AND f.verdict = 'PROVEN_LOSS'))
$$;

-- FUNCTION was_cut(log public.generation), COMMENT

COMMENT ON FUNCTION public.was_cut(log public.generation) IS 'If a later life of the same topic id may hold the same offsets: a finding says that the log was
cut, or a rebuild met the later life in published directories.';

-- attempt, TABLE

CREATE TABLE public.attempt (
    attempt_id text NOT NULL,
    batch_id text NOT NULL,
    token bigint NOT NULL,
    owner text NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    application_id text,
    ended_at timestamp with time zone,
    outcome text,
    swept_at timestamp with time zone,
    CONSTRAINT attempt_attempt_id_check CHECK ((attempt_id ~ '^[0-9a-f]{16,32}$'::text)),
    CONSTRAINT attempt_ended_with_outcome CHECK (((ended_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT attempt_token_check CHECK ((token >= 1))
);

-- TABLE attempt, COMMENT

COMMENT ON TABLE public.attempt IS 'One try to carry out a batch.';

-- COLUMN attempt.outcome, COMMENT

COMMENT ON COLUMN public.attempt.outcome IS 'committed, or failed: and why; null while it lives or after it was killed.';

-- batch, TABLE

CREATE TABLE public.batch (
    batch_id text NOT NULL,
    batch_number bigint NOT NULL,
    feed text NOT NULL,
    plan_id bigint NOT NULL,
    root text NOT NULL,
    topic text NOT NULL,
    cluster_id text NOT NULL,
    topic_id text NOT NULL,
    ordinal integer NOT NULL,
    label timestamp with time zone NOT NULL,
    window_from timestamp with time zone,
    window_until timestamp with time zone,
    state public.batch_state DEFAULT 'planned'::public.batch_state NOT NULL,
    newest_token bigint DEFAULT 0 NOT NULL,
    holder text,
    lease_until timestamp with time zone,
    verification_id bigint,
    committed_by text,
    commit_number bigint,
    record_count bigint,
    hole_count bigint,
    byte_count bigint,
    planned_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    committed_at timestamp with time zone,
    published_at timestamp with time zone,
    published_by text,
    abandoned_at timestamp with time zone,
    CONSTRAINT batch_abandoned_at CHECK (((state = 'abandoned'::public.batch_state) = (abandoned_at IS NOT NULL))),
    CONSTRAINT batch_batch_id_check CHECK ((batch_id ~ '^[0-9a-f]{16,32}$'::text)),
    CONSTRAINT batch_byte_count_check CHECK ((byte_count >= 0)),
    CONSTRAINT batch_committed_once CHECK ((((state = ANY (ARRAY['committed'::public.batch_state, 'published'::public.batch_state])) = (committed_by IS NOT NULL)) AND ((committed_by IS NULL) = (commit_number IS NULL)) AND ((committed_by IS NULL) = (committed_at IS NULL)) AND ((committed_by IS NULL) = (record_count IS NULL)) AND ((committed_by IS NULL) = (hole_count IS NULL)) AND ((committed_by IS NULL) = (byte_count IS NULL)))),
    CONSTRAINT batch_held_with_lease CHECK (((holder IS NULL) = (lease_until IS NULL))),
    CONSTRAINT batch_hole_count_check CHECK ((hole_count >= 0)),
    CONSTRAINT batch_newest_token_check CHECK ((newest_token >= 0)),
    CONSTRAINT batch_ordinal_check CHECK ((ordinal >= 1)),
    CONSTRAINT batch_published_at CHECK (((state = 'published'::public.batch_state) = (published_at IS NOT NULL))),
    CONSTRAINT batch_record_count_check CHECK ((record_count >= 0)),
    CONSTRAINT batch_root_check CHECK ((root ~ '^/'::text)),
    CONSTRAINT batch_verified_with_proof CHECK (((state <> ALL (ARRAY['verified'::public.batch_state, 'committed'::public.batch_state, 'published'::public.batch_state])) OR (verification_id IS NOT NULL))),
    CONSTRAINT batch_window_whole CHECK ((((window_from IS NULL) = (window_until IS NULL)) AND ((window_from IS NULL) OR (window_from < window_until))))
)
WITH (fillfactor='70');

-- TABLE batch, COMMENT

COMMENT ON TABLE public.batch IS 'Ranges decided once, landed and committed together.';

-- COLUMN batch.window_from, COMMENT

COMMENT ON COLUMN public.batch.window_from IS 'Start (included) of the records'' window; null for a run without one, and for a repair.';

-- COLUMN batch.newest_token, COMMENT

COMMENT ON COLUMN public.batch.newest_token IS '0 before the first attempt; a smaller token is dead.';

-- COLUMN batch.lease_until, COMMENT

COMMENT ON COLUMN public.batch.lease_until IS 'By this database''s clock. Only adoption and politeness rest on it; correctness rests on the token.';

-- COLUMN batch.published_by, COMMENT

COMMENT ON COLUMN public.batch.published_by IS 'The run that has published it; null for what a rebuild has entered.';

-- batch_batch_number_seq, SEQUENCE

ALTER TABLE public.batch ALTER COLUMN batch_number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.batch_batch_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- batch_check, TABLE

CREATE TABLE public.batch_check (
    check_id bigint NOT NULL,
    batch_id text NOT NULL,
    level text NOT NULL,
    is_clean boolean NOT NULL,
    is_complete boolean DEFAULT true NOT NULL,
    sample jsonb,
    checked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT batch_check_clean_if_complete CHECK ((is_complete OR (NOT is_clean))),
    CONSTRAINT batch_check_level_check CHECK ((level = ANY (ARRAY['L2'::text, 'L3'::text, 'L4'::text]))),
    CONSTRAINT batch_check_sample_at_l4 CHECK (((level = 'L4'::text) = (sample IS NOT NULL)))
);

-- TABLE batch_check, COMMENT

COMMENT ON TABLE public.batch_check IS 'Deep looks at committed batches: L2 read the offset columns again, L3 every row, L4 compared a
sample with the broker by a second reader.';

-- COLUMN batch_check.is_complete, COMMENT

COMMENT ON COLUMN public.batch_check.is_complete IS 'False for a try that did not read all: it proves nothing, and only says when it was.';

-- COLUMN batch_check.sample, COMMENT

COMMENT ON COLUMN public.batch_check.sample IS 'Of level L4: the turn, how many slices of how many offsets at most, how many offsets were compared,
and what could not be; batch and turn say which offsets these are.';

-- batch_check_check_id_seq, SEQUENCE

ALTER TABLE public.batch_check ALTER COLUMN check_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.batch_check_check_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- look_number, SEQUENCE

CREATE SEQUENCE public.look_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- SEQUENCE look_number, COMMENT

COMMENT ON SEQUENCE public.look_number IS 'The order in which looks at the broker begin; never a clock.';

-- broker_snapshot, TABLE

CREATE TABLE public.broker_snapshot (
    snapshot_id bigint NOT NULL,
    feed text NOT NULL,
    look_number bigint DEFAULT nextval('public.look_number'::regclass) NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    looked_at timestamp with time zone GENERATED ALWAYS AS (LEAST(taken_at, begun_at)) STORED NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    cluster_id text NOT NULL,
    topic text NOT NULL,
    topic_id text NOT NULL,
    is_compacted boolean NOT NULL,
    retention_ms bigint,
    retention_bytes bigint,
    border_at timestamp with time zone,
    shown bytea,
    log_start_sum bigint NOT NULL,
    last_stable_sum bigint NOT NULL,
    high_watermark_sum bigint NOT NULL,
    leaderless_count integer NOT NULL,
    doubt text,
    CONSTRAINT broker_snapshot_doubt_check CHECK ((doubt <> ''::text)),
    CONSTRAINT broker_snapshot_leaderless_count_check CHECK ((leaderless_count >= 0))
);
ALTER TABLE ONLY public.broker_snapshot ALTER COLUMN shown SET STORAGE EXTERNAL;

-- TABLE broker_snapshot, COMMENT

COMMENT ON TABLE public.broker_snapshot IS 'What the broker said to each plan, check, repair and reconcile; one row per snapshot.';

-- COLUMN broker_snapshot.look_number, COMMENT

COMMENT ON COLUMN public.broker_snapshot.look_number IS 'The place of the look among all, by its beginning.';

-- COLUMN broker_snapshot.taken_at, COMMENT

COMMENT ON COLUMN public.broker_snapshot.taken_at IS 'Before the broker was asked, by the clock of the machine that asked it.';

-- COLUMN broker_snapshot.begun_at, COMMENT

COMMENT ON COLUMN public.broker_snapshot.begun_at IS 'Before the broker was asked, by this ledger''s clock.';

-- COLUMN broker_snapshot.looked_at, COMMENT

COMMENT ON COLUMN public.broker_snapshot.looked_at IS 'The instant up to which the look may prove something: the earlier one of both clocks.';

-- COLUMN broker_snapshot.border_at, COMMENT

COMMENT ON COLUMN public.broker_snapshot.border_at IS 'The end of the newest window, of which it said where it lies in each partition; null for a feed
that lands all that is readable.';

-- COLUMN broker_snapshot.shown, COMMENT

COMMENT ON COLUMN public.broker_snapshot.shown IS 'What it said of each partition: JSON, compressed as manifests are. Null for an old look of a day
that has another.';

-- COLUMN broker_snapshot.high_watermark_sum, COMMENT

COMMENT ON COLUMN public.broker_snapshot.high_watermark_sum IS 'Of all partitions, as the other sums are: reports add looks up without reading them.';

-- COLUMN broker_snapshot.leaderless_count, COMMENT

COMMENT ON COLUMN public.broker_snapshot.leaderless_count IS 'Partitions that could not be asked: their absence from the others says nothing.';

-- COLUMN broker_snapshot.doubt, COMMENT

COMMENT ON COLUMN public.broker_snapshot.doubt IS 'Why nothing is proven to be complete up to this look: another witness was silent, or the log
had changed and that could not be recorded with it; null where there was no doubt.';

-- broker_snapshot_snapshot_id_seq, SEQUENCE

ALTER TABLE public.broker_snapshot ALTER COLUMN snapshot_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.broker_snapshot_snapshot_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- commit_link, TABLE

CREATE TABLE public.commit_link (
    feed text NOT NULL,
    "position" bigint NOT NULL,
    batch_id text NOT NULL,
    manifest_sha256 bytea NOT NULL,
    previous bytea NOT NULL,
    digest bytea NOT NULL,
    CONSTRAINT commit_link_digest CHECK ((digest = sha256((previous || manifest_sha256)))),
    CONSTRAINT commit_link_position_check CHECK (("position" >= 1))
);

-- TABLE commit_link, COMMENT

COMMENT ON TABLE public.commit_link IS 'The feed''s commits in their order, each bound to its manifest and to all commits before it.';

-- COLUMN commit_link."position", COMMENT

COMMENT ON COLUMN public.commit_link."position" IS 'The commit''s place among those of the feed, from 1.';

-- COLUMN commit_link.previous, COMMENT

COMMENT ON COLUMN public.commit_link.previous IS 'Digest of the link before it; of the feed''s name, for the first one.';

-- commit_number, SEQUENCE

CREATE SEQUENCE public.commit_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

-- SEQUENCE commit_number, COMMENT

COMMENT ON SEQUENCE public.commit_number IS 'The order of commits; never a clock.';

-- completeness, TABLE

CREATE TABLE public.completeness (
    feed text NOT NULL,
    up_to timestamp with time zone,
    by text NOT NULL,
    told_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT completeness_by_check CHECK ((by = ANY (ARRAY['readable'::text, 'record time'::text])))
)
WITH (fillfactor='70');

-- TABLE completeness, COMMENT

COMMENT ON TABLE public.completeness IS 'What each feed was last said to be complete up to, at the end of a run: pages and metrics read it.';

-- directory_look, TABLE

CREATE TABLE public.directory_look (
    batch_id text NOT NULL,
    digest bytea NOT NULL,
    shown_as bytea,
    compared_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT directory_look_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT directory_look_shown_as_check CHECK ((octet_length(shown_as) = 32))
)
WITH (fillfactor='70');

-- TABLE directory_look, COMMENT

COMMENT ON TABLE public.directory_look IS 'Published directories whose files and manifest were as committed when they were asked last.';

-- COLUMN directory_look.digest, COMMENT

COMMENT ON COLUMN public.directory_look.digest IS 'Of how the directory was listed then, and of what the ledger had of it: while both are as they were,
its files are asked again when they are due.';

-- COLUMN directory_look.shown_as, COMMENT

COMMENT ON COLUMN public.directory_look.shown_as IS 'Of how its parent''s listing showed the directory before: while that is as it was, the directory is
listed again when it is due. NULL where its own time can''t tell that something was changed.';

-- feed, TABLE

CREATE TABLE public.feed (
    feed text NOT NULL,
    topic text NOT NULL,
    first_planned_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    described jsonb,
    CONSTRAINT feed_feed_check CHECK ((feed <> ''::text)),
    CONSTRAINT feed_topic_check CHECK ((topic <> ''::text))
);

-- TABLE feed, COMMENT

COMMENT ON TABLE public.feed IS 'One row per feed that was ever planned; its row lock is the planning lock.';

-- COLUMN feed.described, COMMENT

COMMENT ON COLUMN public.feed.described IS 'What its file said at the newest plan, for pages; null before a plan has told it.';

-- feed_retirement, TABLE

CREATE TABLE public.feed_retirement (
    feed text NOT NULL,
    commits bigint NOT NULL,
    digest bytea,
    reason text NOT NULL,
    retired_by text NOT NULL,
    retired_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT feed_retirement_reason_check CHECK ((btrim(reason) <> ''::text)),
    CONSTRAINT feed_retirement_retired_by_check CHECK ((btrim(retired_by) <> ''::text))
);

-- TABLE feed_retirement, COMMENT

COMMENT ON TABLE public.feed_retirement IS 'Feeds that have ended, who had them ended, and why.';

-- COLUMN feed_retirement.commits, COMMENT

COMMENT ON COLUMN public.feed_retirement.commits IS 'How many links its chain has.';

-- COLUMN feed_retirement.digest, COMMENT

COMMENT ON COLUMN public.feed_retirement.digest IS 'Of the last link; null without one.';

-- file, TABLE

CREATE TABLE public.file (
    batch_id text NOT NULL,
    name text NOT NULL,
    length_bytes bigint NOT NULL,
    checksum text NOT NULL,
    record_count bigint NOT NULL,
    partitions int4multirange,
    first_offsets bigint[],
    span_blocks integer[],
    span_rests smallint[],
    hole_counts bigint[],
    late_count bigint,
    oldest_late_at timestamp with time zone,
    CONSTRAINT file_holds_slices CHECK (((num_nonnulls(partitions, first_offsets, span_blocks, span_rests, hole_counts) = 0) OR public.are_slices(partitions, first_offsets, span_blocks, span_rests, hole_counts))),
    CONSTRAINT file_late_count_check CHECK ((late_count >= 1)),
    CONSTRAINT file_late_whole CHECK (((late_count IS NULL) = (oldest_late_at IS NULL))),
    CONSTRAINT file_length_bytes_check CHECK ((length_bytes >= 0)),
    CONSTRAINT file_name_check CHECK ((name <> ''::text)),
    CONSTRAINT file_record_count_check CHECK ((record_count >= 0))
)
WITH (toast_tuple_target='128');
ALTER TABLE ONLY public.file ALTER COLUMN name SET STORAGE MAIN;
ALTER TABLE ONLY public.file ALTER COLUMN checksum SET STORAGE MAIN;
ALTER TABLE ONLY public.file ALTER COLUMN partitions SET STORAGE MAIN;
ALTER TABLE ONLY public.file ALTER COLUMN first_offsets SET STORAGE MAIN;
ALTER TABLE ONLY public.file ALTER COLUMN span_blocks SET STORAGE MAIN;
ALTER TABLE ONLY public.file ALTER COLUMN span_rests SET STORAGE MAIN;
ALTER TABLE ONLY public.file ALTER COLUMN hole_counts SET STORAGE MAIN;

-- TABLE file, COMMENT

COMMENT ON TABLE public.file IS 'The files of committed batches, and what each holds: one array element for each partition, for a row
for each would be ten times as large. Small numbers leave little when the server compresses them, and
neighbours among partitions nothing.';

-- COLUMN file.partitions, COMMENT

COMMENT ON COLUMN public.file.partitions IS 'Null, as the other columns behind it, for a file without rows.';

-- COLUMN file.span_rests, COMMENT

COMMENT ON COLUMN public.file.span_rests IS 'How many offsets there are from the first to the last one, both included, beside 32,768 times
span_blocks: in one array they would take twice as much.';

-- COLUMN file.hole_counts, COMMENT

COMMENT ON COLUMN public.file.hole_counts IS 'How many offsets between them have no row.';

-- COLUMN file.late_count, COMMENT

COMMENT ON COLUMN public.file.late_count IS 'Rows that are older than the batch''s label; null for none, and where nobody counts them.';

-- file_fingerprint, TABLE

CREATE TABLE public.file_fingerprint (
    batch_id text NOT NULL,
    name text NOT NULL,
    partition integer NOT NULL,
    hash_version integer NOT NULL,
    record_count bigint NOT NULL,
    offset_sum numeric NOT NULL,
    high_hash_sum bigint NOT NULL,
    low_hash_sum bigint NOT NULL,
    taken_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT file_fingerprint_hash_version_check CHECK ((hash_version >= 1)),
    CONSTRAINT file_fingerprint_partition_check CHECK ((partition >= 0)),
    CONSTRAINT file_fingerprint_record_count_check CHECK ((record_count >= 1))
);

-- TABLE file_fingerprint, COMMENT

COMMENT ON TABLE public.file_fingerprint IS 'The content of one slice as the first full read found it: every later one must say the same. Of
another version of the row hash the first full read counts anew.';

-- COLUMN file_fingerprint.hash_version, COMMENT

COMMENT ON COLUMN public.file_fingerprint.hash_version IS 'Of the row hash; only equals are compared.';

-- COLUMN file_fingerprint.high_hash_sum, COMMENT

COMMENT ON COLUMN public.file_fingerprint.high_hash_sum IS 'Sum of the high 64 bits of each row''s hash over all columns, modulo 2^64, signed.';

-- COLUMN file_fingerprint.low_hash_sum, COMMENT

COMMENT ON COLUMN public.file_fingerprint.low_hash_sum IS 'The same of the low 64 bits.';

-- stored_anew, TABLE

CREATE TABLE public.stored_anew (
    batch_id text NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    proven_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

-- TABLE stored_anew, COMMENT

COMMENT ON TABLE public.stored_anew IS 'Files that have another checksum than before, and were read in full then: their bytes are those that
were committed. The newest row of a file says what is compared from then on.';

-- file_now, VIEW

CREATE VIEW public.file_now AS
 SELECT batch_id,
    name,
    length_bytes,
    COALESCE(( SELECT s.checksum
           FROM public.stored_anew s
          WHERE ((s.batch_id = f.batch_id) AND (s.name = f.name))
          ORDER BY s.proven_at DESC
         LIMIT 1), checksum) AS checksum,
    record_count,
    partitions,
    first_offsets,
    span_blocks,
    span_rests,
    hole_counts
   FROM public.file f;

-- VIEW file_now, COMMENT

COMMENT ON VIEW public.file_now IS 'Files with the checksums that they have as they are stored by now.';

-- file_retraction, TABLE

CREATE TABLE public.file_retraction (
    batch_id text NOT NULL,
    name text NOT NULL,
    replaced_by text NOT NULL,
    retracted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

-- TABLE file_retraction, COMMENT

COMMENT ON TABLE public.file_retraction IS 'Committed files that readers read no more, since this batch holds their offsets.';

-- file_slice, VIEW

CREATE VIEW public.file_slice AS
 SELECT f.batch_id,
    f.name,
    s.partition,
    s.first_offset,
    ((s.first_offset + held.span) - 1) AS last_offset,
    (held.span - s.hole_count) AS record_count
   FROM ((public.file f
     CROSS JOIN LATERAL UNNEST(public.numbers_in(f.partitions), f.first_offsets, f.span_blocks, f.span_rests, f.hole_counts) s(partition, first_offset, span_block, span_rest, hole_count))
     CROSS JOIN LATERAL ( SELECT ((s.span_block * (32768)::bigint) + s.span_rest) AS span) held);

-- VIEW file_slice, COMMENT

COMMENT ON VIEW public.file_slice IS 'What a file holds of one partition: first and last offset, both included.';

-- finding, TABLE

CREATE TABLE public.finding (
    finding_id bigint NOT NULL,
    feed text NOT NULL,
    key bytea NOT NULL,
    code text NOT NULL,
    name text NOT NULL,
    verdict public.verdict NOT NULL,
    level text NOT NULL,
    topic text NOT NULL,
    generation integer,
    partition integer,
    from_offset bigint,
    until_offset bigint,
    subject text DEFAULT ''::text NOT NULL,
    cause text NOT NULL,
    next_step text NOT NULL,
    evidence jsonb NOT NULL,
    state public.finding_state DEFAULT 'open'::public.finding_state NOT NULL,
    first_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_confirmed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    closed_at timestamp with time zone,
    closed_by text,
    closed_in text,
    CONSTRAINT finding_check CHECK (((closed_in IS NULL) OR (closed_by IS NOT NULL))),
    CONSTRAINT finding_closed_with_reason CHECK ((((closed_at IS NULL) = (closed_by IS NULL)) AND ((closed_by IS NULL) = (state <> 'remedied'::public.finding_state)))),
    CONSTRAINT finding_key_check CHECK ((octet_length(key) = 32))
);

-- TABLE finding, COMMENT

COMMENT ON TABLE public.finding IS 'What reconciliation stated. Seen again, it is confirmed; with another verdict, it is superseded.';

-- COLUMN finding.key, COMMENT

COMMENT ON COLUMN public.finding.key IS 'SHA-256 of what it is about: the same trouble seen again has the same key.';

-- COLUMN finding.name, COMMENT

COMMENT ON COLUMN public.finding.name IS 'What the trouble is called: where a code has several causes, it says which.';

-- COLUMN finding.generation, COMMENT

COMMENT ON COLUMN public.finding.generation IS 'The generation''s ordinal.';

-- COLUMN finding.subject, COMMENT

COMMENT ON COLUMN public.finding.subject IS 'The path or the batch that it is about, where no interval tells two of a code apart.';

-- COLUMN finding.evidence, COMMENT

COMMENT ON COLUMN public.finding.evidence IS 'As the last look that confirmed the finding saw it; so are cause and next_step. All else is as it
was first stated.';

-- COLUMN finding.closed_by, COMMENT

COMMENT ON COLUMN public.finding.closed_by IS 'What closed it, in a sentence: a look that found it no more, a repair, or a person.';

-- COLUMN finding.closed_in, COMMENT

COMMENT ON COLUMN public.finding.closed_in IS 'The run that has closed it; null where somebody did by hand.';

-- finding_finding_id_seq, SEQUENCE

ALTER TABLE public.finding ALTER COLUMN finding_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.finding_finding_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- folded_holes, TABLE

CREATE TABLE public.folded_holes (
    batch_id text NOT NULL,
    class public.hole_class NOT NULL,
    hole_count bigint NOT NULL,
    CONSTRAINT folded_holes_hole_count_check CHECK ((hole_count >= 0))
);

-- TABLE folded_holes, COMMENT

COMMENT ON TABLE public.folded_holes IS 'How many holes of a batch, of all its logs, stand in rows that are folded over several batches.';

-- offset_range, TABLE

CREATE TABLE public.offset_range (
    range_id bigint NOT NULL,
    generation_id bigint NOT NULL,
    offsets int8range NOT NULL,
    state public.range_state NOT NULL,
    batch_id text,
    replaces boolean DEFAULT false NOT NULL,
    record_count bigint,
    hole_count bigint,
    loss_code text,
    loss_evidence jsonb,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT offset_range_all_accounted_for CHECK (
CASE
    WHEN (state = ANY (ARRAY['committed'::public.range_state, 'retracted'::public.range_state])) THEN COALESCE(((record_count + hole_count) = (upper(offsets) - lower(offsets))), false)
    ELSE ((record_count IS NULL) AND (hole_count IS NULL))
END),
    CONSTRAINT offset_range_claim_has_batch CHECK (((state <> 'claimed'::public.range_state) OR (batch_id IS NOT NULL))),
    CONSTRAINT offset_range_hole_count_check CHECK ((hole_count >= 0)),
    CONSTRAINT offset_range_is_one CHECK (((NOT isempty(offsets)) AND (NOT lower_inf(offsets)) AND (NOT upper_inf(offsets)) AND lower_inc(offsets) AND (NOT upper_inc(offsets)) AND (lower(offsets) >= 0))),
    CONSTRAINT offset_range_loss_has_code CHECK (((state = 'lost'::public.range_state) = (loss_code IS NOT NULL))),
    CONSTRAINT offset_range_record_count_check CHECK ((record_count >= 0)),
    CONSTRAINT offset_range_replaces_while_claimed CHECK (((NOT replaces) OR (state = ANY (ARRAY['claimed'::public.range_state, 'released'::public.range_state]))))
);

-- TABLE offset_range, COMMENT

COMMENT ON TABLE public.offset_range IS 'Offsets [from, until) of a generation. No offset is in two claimed, committed, lost or unreadable
rows, but for the claim of a repair, which replaces committed ones.';

-- COLUMN offset_range.batch_id, COMMENT

COMMENT ON COLUMN public.offset_range.batch_id IS 'Null for a loss that no batch claimed, and for committed ranges folded into one.';

-- COLUMN offset_range.replaces, COMMENT

COMMENT ON COLUMN public.offset_range.replaces IS 'True for the claim of a repair: its offsets are committed, and stay so until the repair commits.';

-- tail_anchor, TABLE

CREATE TABLE public.tail_anchor (
    generation_id bigint NOT NULL,
    record_offset bigint NOT NULL,
    leader_epoch integer,
    content_hash bytea NOT NULL,
    hash_version integer NOT NULL,
    batch_id text NOT NULL,
    CONSTRAINT tail_anchor_content_hash_check CHECK ((octet_length(content_hash) = 16)),
    CONSTRAINT tail_anchor_hash_version_check CHECK ((hash_version >= 1)),
    CONSTRAINT tail_anchor_record_offset_check CHECK ((record_offset >= 0))
)
WITH (fillfactor='70');

-- TABLE tail_anchor, COMMENT

COMMENT ON TABLE public.tail_anchor IS 'The last landed record of a generation: a plan reads it again and compares, before it claims more.';

-- COLUMN tail_anchor.hash_version, COMMENT

COMMENT ON COLUMN public.tail_anchor.hash_version IS 'Of the record hash; only equals are compared.';

-- generation_account, VIEW

CREATE VIEW public.generation_account AS
 SELECT g.generation_id,
    g.feed,
    g.topic,
    g.partition,
    g.cluster_id,
    g.topic_id,
    g.ordinal,
    (g.state)::text AS state,
    g.first_offset,
    g.frontier,
    g.last_seen_until,
    g.read_until,
    g.seen_epoch,
    a.record_offset,
    a.leader_epoch,
    a.content_hash,
    a.hash_version,
    tail.from_offsets,
    tail.until_offsets,
    tail.are_unreadable
   FROM ((public.generation g
     LEFT JOIN public.tail_anchor a USING (generation_id))
     CROSS JOIN LATERAL ( SELECT array_agg(lower(r.offsets) ORDER BY (lower(r.offsets))) AS from_offsets,
            array_agg(upper(r.offsets) ORDER BY (lower(r.offsets))) AS until_offsets,
            array_agg((r.state = 'unreadable'::public.range_state) ORDER BY (lower(r.offsets))) AS are_unreadable
           FROM public.offset_range r
          WHERE ((r.generation_id = g.generation_id) AND (r.state = ANY (ARRAY['claimed'::public.range_state, 'committed'::public.range_state, 'lost'::public.range_state, 'unreadable'::public.range_state])) AND (NOT COALESCE(r.replaces, false)) AND (upper(r.offsets) > g.frontier))) tail);

-- VIEW generation_account, COMMENT

COMMENT ON VIEW public.generation_account IS 'Each generation with its anchor and its tail; never reads below a frontier.';

-- generation_generation_id_seq, SEQUENCE

ALTER TABLE public.generation ALTER COLUMN generation_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.generation_generation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- hole, TABLE

CREATE TABLE public.hole (
    batch_id text,
    generation_id bigint NOT NULL,
    class public.hole_class NOT NULL,
    "position" integer NOT NULL,
    runs int8multirange NOT NULL,
    hole_count bigint NOT NULL,
    retracted_by text,
    reach int8range GENERATED ALWAYS AS (range_merge(runs)) STORED,
    CONSTRAINT hole_hole_count_check CHECK ((hole_count >= 1)),
    CONSTRAINT hole_position_check CHECK (("position" >= 0)),
    CONSTRAINT hole_runs_check CHECK ((NOT isempty(runs)))
);

-- TABLE hole, COMMENT

COMMENT ON TABLE public.hole IS 'Offsets of committed ranges without a visible record, by cause, in pieces of bounded size.
Only rows that no repair has retracted count.';

-- COLUMN hole.batch_id, COMMENT

COMMENT ON COLUMN public.hole.batch_id IS 'Null for holes of several batches, folded into one row; each batch''s own stand in its proof.';

-- COLUMN hole.retracted_by, COMMENT

COMMENT ON COLUMN public.hole.retracted_by IS 'The repair that holds some of these offsets now; null while they count. What it left is a row of
its own.';

-- COLUMN hole.reach, COMMENT

COMMENT ON COLUMN public.hole.reach IS 'From the first hole to the end of the last: what is asked of all rows reads no long list of runs.';

-- hour_look, TABLE

CREATE TABLE public.hour_look (
    feed text NOT NULL,
    path text NOT NULL,
    version text NOT NULL,
    CONSTRAINT hour_look_path_check CHECK ((path ~ '^/'::text)),
    CONSTRAINT hour_look_version_check CHECK ((version <> ''::text))
)
WITH (fillfactor='70');

-- TABLE hour_look, COMMENT

COMMENT ON TABLE public.hour_look IS 'Hours'' directories whose batches were compared with this ledger; each is passed while it is shown the same.';

-- moved_batch, TABLE

CREATE TABLE public.moved_batch (
    batch_id text NOT NULL,
    from_root text NOT NULL,
    to_root text NOT NULL,
    moved_by text NOT NULL,
    moved_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT moved_batch_check CHECK ((to_root <> from_root)),
    CONSTRAINT moved_batch_moved_by_check CHECK ((btrim(moved_by) <> ''::text))
);

-- TABLE moved_batch, COMMENT

COMMENT ON TABLE public.moved_batch IS 'Batches that were found whole below another root, and who had that entered: the only way in which the
place of a published batch changes.';

-- waiver, TABLE

CREATE TABLE public.waiver (
    waiver_id bigint NOT NULL,
    finding_id bigint NOT NULL,
    evidence_sha256 bytea NOT NULL,
    reason text NOT NULL,
    asked_by text NOT NULL,
    approved_by text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    waived_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    request_id bigint,
    CONSTRAINT waiver_approved_by_check CHECK ((approved_by <> ''::text)),
    CONSTRAINT waiver_asked_by_check CHECK ((asked_by <> ''::text)),
    CONSTRAINT waiver_by_two CHECK ((lower(btrim(asked_by)) <> lower(btrim(approved_by)))),
    CONSTRAINT waiver_evidence_sha256_check CHECK ((octet_length(evidence_sha256) = 32)),
    CONSTRAINT waiver_expires_later CHECK ((expires_at > waived_at)),
    CONSTRAINT waiver_reason_check CHECK ((reason <> ''::text))
);

-- TABLE waiver, COMMENT

COMMENT ON TABLE public.waiver IS 'Two people accepted a finding as it was stated then; void when it expires or its evidence changes.';

-- COLUMN waiver.request_id, COMMENT

COMMENT ON COLUMN public.waiver.request_id IS 'What was approved, where each of the two was signed in; null where one command named both.';

-- waiver_ending, TABLE

CREATE TABLE public.waiver_ending (
    waiver_id bigint NOT NULL,
    reason text NOT NULL,
    ended_by text NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT waiver_ending_ended_by_check CHECK ((btrim(ended_by) <> ''::text)),
    CONSTRAINT waiver_ending_reason_check CHECK ((btrim(reason) <> ''::text))
);

-- TABLE waiver_ending, COMMENT

COMMENT ON TABLE public.waiver_ending IS 'One person has ended a waiver before its time. Offsets that were given up by it stay lost.';

-- newest_waiver, VIEW

CREATE VIEW public.newest_waiver AS
 SELECT w.finding_id,
    w.waiver_id,
    w.evidence_sha256,
    w.reason,
    w.asked_by,
    w.approved_by,
    w.expires_at,
    (clock_timestamp() >= w.expires_at) AS has_expired,
    e.ended_by,
    e.ended_at,
    e.reason AS ended_because,
    ((e.waiver_id IS NULL) AND (clock_timestamp() < w.expires_at)) AS is_in_force
   FROM (public.waiver w
     LEFT JOIN public.waiver_ending e USING (waiver_id))
  WHERE (NOT (EXISTS ( SELECT
           FROM public.waiver newer
          WHERE ((newer.finding_id = w.finding_id) AND (newer.waiver_id > w.waiver_id)))));

-- VIEW newest_waiver, COMMENT

COMMENT ON VIEW public.newest_waiver IS 'Of each finding. One that is over counts for nothing, also before the next look opens the finding.';

-- offset_range_range_id_seq, SEQUENCE

ALTER TABLE public.offset_range ALTER COLUMN range_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.offset_range_range_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- plan, TABLE

CREATE TABLE public.plan (
    plan_id bigint NOT NULL,
    feed text NOT NULL,
    window_from timestamp with time zone,
    window_until timestamp with time zone,
    revision integer NOT NULL,
    owner text NOT NULL,
    snapshot_id bigint,
    planned_at timestamp with time zone NOT NULL,
    CONSTRAINT plan_revision_check CHECK ((revision >= 1)),
    CONSTRAINT plan_window_whole CHECK ((((window_from IS NULL) = (window_until IS NULL)) AND ((window_from IS NULL) OR (window_from < window_until))))
);

-- TABLE plan, COMMENT

COMMENT ON TABLE public.plan IS 'A feed and a window name a plan; planning a window again gives it the next revision.';

-- COLUMN plan.planned_at, COMMENT

COMMENT ON COLUMN public.plan.planned_at IS 'When the planning lock was taken: a finding first seen at or after it came with this plan.';

-- plan_batch, TABLE

CREATE TABLE public.plan_batch (
    plan_id bigint NOT NULL,
    batch_id text NOT NULL,
    is_adopted boolean NOT NULL,
    "position" integer NOT NULL,
    CONSTRAINT plan_batch_position_check CHECK (("position" >= 0))
);

-- TABLE plan_batch, COMMENT

COMMENT ON TABLE public.plan_batch IS 'The batches of a plan: its own, and those it adopted.';

-- plan_plan_id_seq, SEQUENCE

ALTER TABLE public.plan ALTER COLUMN plan_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.plan_plan_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- replaced_file, TABLE

CREATE TABLE public.replaced_file (
    batch_id text NOT NULL,
    old_batch_id text NOT NULL,
    name text NOT NULL
);

-- TABLE replaced_file, COMMENT

COMMENT ON TABLE public.replaced_file IS 'The files that a repair''s batch takes the place of, as planned.';

-- report, TABLE

CREATE TABLE public.report (
    report_id bigint NOT NULL,
    feed text NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    verdict public.verdict NOT NULL,
    complete_up_to timestamp with time zone,
    lost_at timestamp with time zone,
    deepest text NOT NULL,
    silent text[] NOT NULL,
    made_by text,
    document bytea NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT report_deepest_check CHECK ((deepest = ANY (ARRAY['L1'::text, 'L2'::text, 'L3'::text, 'L4'::text])))
);
ALTER TABLE ONLY public.report ALTER COLUMN document SET STORAGE EXTERNAL;

-- TABLE report, COMMENT

COMMENT ON TABLE public.report IS 'Whole reports as JSON, entered in one piece: a reconcile that dies leaves none.';

-- COLUMN report.lost_at, COMMENT

COMMENT ON COLUMN public.report.lost_at IS 'When retention may take the first record that is not landed; null where none waits, or nobody knows.';

-- COLUMN report.deepest, COMMENT

COMMENT ON COLUMN public.report.deepest IS 'The level that was asked for.';

-- COLUMN report.silent, COMMENT

COMMENT ON COLUMN public.report.silent IS 'The levels at which a witness did not answer.';

-- COLUMN report.made_by, COMMENT

COMMENT ON COLUMN public.report.made_by IS 'The run that has made it; null for one that was made by hand.';

-- COLUMN report.document, COMMENT

COMMENT ON COLUMN public.report.document IS 'JSON, compressed as manifests are.';

-- report_report_id_seq, SEQUENCE

ALTER TABLE public.report ALTER COLUMN report_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.report_report_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- schema_version, TABLE

CREATE TABLE public.schema_version (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT schema_version_version_check CHECK ((version >= 1))
);

-- told, TABLE

CREATE TABLE public.told (
    feed text NOT NULL,
    recipient text NOT NULL,
    known jsonb,
    told_at timestamp with time zone,
    CONSTRAINT told_recipient_check CHECK ((recipient ~ '^[0-9a-f]{16}$'::text)),
    CONSTRAINT told_when CHECK (((known IS NULL) = (told_at IS NULL)))
)
WITH (fillfactor='70');

-- TABLE told, COMMENT

COMMENT ON TABLE public.told IS 'What each notifier of a feed has told. Its row is locked while it tells more, and kept after that: a
task that dies in between tells it again.';

-- COLUMN told.recipient, COMMENT

COMMENT ON COLUMN public.told.recipient IS 'Digest of the notifier as the feed''s file names it.';

-- verification, TABLE

CREATE TABLE public.verification (
    verification_id bigint NOT NULL,
    batch_id text NOT NULL,
    attempt_id text NOT NULL,
    isolation text NOT NULL,
    manifest bytea NOT NULL,
    sha256 bytea NOT NULL,
    file_sha256 bytea NOT NULL,
    hashes bytea,
    verified_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT verification_file_sha256_check CHECK ((octet_length(file_sha256) = 32)),
    CONSTRAINT verification_isolation_check CHECK ((isolation = ANY (ARRAY['read_committed'::text, 'read_uncommitted'::text]))),
    CONSTRAINT verification_sha256_check CHECK ((octet_length(sha256) = 32))
);
ALTER TABLE ONLY public.verification ALTER COLUMN manifest SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.verification ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- TABLE verification, COMMENT

COMMENT ON TABLE public.verification IS 'The proof of an attempt: the manifest''s very text, in two parts.';

-- COLUMN verification.manifest, COMMENT

COMMENT ON COLUMN public.verification.manifest IS 'The text without the hashes of last records, and with the sha256 of the whole text;
compressed by xz: half of what this server''s own compression leaves.';

-- COLUMN verification.sha256, COMMENT

COMMENT ON COLUMN public.verification.sha256 IS 'Of that before it was compressed; whoever reads it compares, and the chain of commits holds it.';

-- COLUMN verification.file_sha256, COMMENT

COMMENT ON COLUMN public.verification.file_sha256 IS 'Of the whole text: of the file beside the data.';

-- COLUMN verification.hashes, COMMENT

COMMENT ON COLUMN public.verification.hashes IS 'The hashes of last records, compressed; null once the batch is old: the rows of its files have them.';

-- verification_verification_id_seq, SEQUENCE

ALTER TABLE public.verification ALTER COLUMN verification_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.verification_verification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- waiver_request, TABLE

CREATE TABLE public.waiver_request (
    request_id bigint NOT NULL,
    finding_id bigint NOT NULL,
    evidence_sha256 bytea NOT NULL,
    reason text NOT NULL,
    asked_by text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ending text,
    ended_by text,
    ended_at timestamp with time zone,
    CONSTRAINT waiver_request_asked_by_check CHECK ((btrim(asked_by) <> ''::text)),
    CONSTRAINT waiver_request_by_two CHECK (((ending <> 'approved'::text) OR (lower(btrim(asked_by)) <> lower(btrim(ended_by))))),
    CONSTRAINT waiver_request_ended_by_check CHECK ((btrim(ended_by) <> ''::text)),
    CONSTRAINT waiver_request_ending_check CHECK ((ending = ANY (ARRAY['approved'::text, 'withdrawn'::text, 'replaced'::text]))),
    CONSTRAINT waiver_request_ends_whole CHECK ((num_nulls(ending, ended_by, ended_at) = ANY (ARRAY[0, 3]))),
    CONSTRAINT waiver_request_evidence_sha256_check CHECK ((octet_length(evidence_sha256) = 32)),
    CONSTRAINT waiver_request_expires_later CHECK ((expires_at > asked_at)),
    CONSTRAINT waiver_request_reason_check CHECK ((btrim(reason) <> ''::text))
);

-- TABLE waiver_request, COMMENT

COMMENT ON TABLE public.waiver_request IS 'One person asks that a finding is accepted as it is stated then; somebody else may approve it.';

-- COLUMN waiver_request.ending, COMMENT

COMMENT ON COLUMN public.waiver_request.ending IS 'replaced: it was void, for its end had come or the evidence had changed, and somebody asked anew.';

-- waiver_request_request_id_seq, SEQUENCE

ALTER TABLE public.waiver_request ALTER COLUMN request_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.waiver_request_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- waiver_waiver_id_seq, SEQUENCE

ALTER TABLE public.waiver ALTER COLUMN waiver_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.waiver_waiver_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- attempt attempt_of_batch, CONSTRAINT

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_of_batch UNIQUE (batch_id, attempt_id);

-- attempt attempt_pkey, CONSTRAINT

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (attempt_id);

-- attempt attempt_token_once, CONSTRAINT

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_token_once UNIQUE (batch_id, token);

-- batch batch_batch_number_key, CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_batch_number_key UNIQUE (batch_number);

-- batch_check batch_check_pkey, CONSTRAINT

ALTER TABLE ONLY public.batch_check
    ADD CONSTRAINT batch_check_pkey PRIMARY KEY (check_id);

-- batch batch_commit_number_key, CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_commit_number_key UNIQUE (commit_number);

-- batch batch_pkey, CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_pkey PRIMARY KEY (batch_id);

-- broker_snapshot broker_snapshot_number_once, CONSTRAINT

ALTER TABLE ONLY public.broker_snapshot
    ADD CONSTRAINT broker_snapshot_number_once UNIQUE (look_number);

-- broker_snapshot broker_snapshot_pkey, CONSTRAINT

ALTER TABLE ONLY public.broker_snapshot
    ADD CONSTRAINT broker_snapshot_pkey PRIMARY KEY (snapshot_id);

-- commit_link commit_link_batch_id_key, CONSTRAINT

ALTER TABLE ONLY public.commit_link
    ADD CONSTRAINT commit_link_batch_id_key UNIQUE (batch_id);

-- commit_link commit_link_pkey, CONSTRAINT

ALTER TABLE ONLY public.commit_link
    ADD CONSTRAINT commit_link_pkey PRIMARY KEY (feed, "position");

-- completeness completeness_pkey, CONSTRAINT

ALTER TABLE ONLY public.completeness
    ADD CONSTRAINT completeness_pkey PRIMARY KEY (feed);

-- directory_look directory_look_pkey, CONSTRAINT

ALTER TABLE ONLY public.directory_look
    ADD CONSTRAINT directory_look_pkey PRIMARY KEY (batch_id);

-- feed feed_pkey, CONSTRAINT

ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_pkey PRIMARY KEY (feed);

-- feed_retirement feed_retirement_pkey, CONSTRAINT

ALTER TABLE ONLY public.feed_retirement
    ADD CONSTRAINT feed_retirement_pkey PRIMARY KEY (feed);

-- file_fingerprint file_fingerprint_pkey, CONSTRAINT

ALTER TABLE ONLY public.file_fingerprint
    ADD CONSTRAINT file_fingerprint_pkey PRIMARY KEY (batch_id, name, partition, hash_version);

-- file file_pkey, CONSTRAINT

ALTER TABLE ONLY public.file
    ADD CONSTRAINT file_pkey PRIMARY KEY (batch_id, name);

-- file_retraction file_retraction_pkey, CONSTRAINT

ALTER TABLE ONLY public.file_retraction
    ADD CONSTRAINT file_retraction_pkey PRIMARY KEY (batch_id, name);

-- finding finding_pkey, CONSTRAINT

ALTER TABLE ONLY public.finding
    ADD CONSTRAINT finding_pkey PRIMARY KEY (finding_id);

-- folded_holes folded_holes_pkey, CONSTRAINT

ALTER TABLE ONLY public.folded_holes
    ADD CONSTRAINT folded_holes_pkey PRIMARY KEY (batch_id, class);

-- generation generation_ordinal_once, CONSTRAINT

ALTER TABLE ONLY public.generation
    ADD CONSTRAINT generation_ordinal_once UNIQUE (feed, partition, ordinal);

-- generation generation_pkey, CONSTRAINT

ALTER TABLE ONLY public.generation
    ADD CONSTRAINT generation_pkey PRIMARY KEY (generation_id);

-- hole hole_counts_once, CONSTRAINT

ALTER TABLE ONLY public.hole
    ADD CONSTRAINT hole_counts_once EXCLUDE USING gist (generation_id WITH =, runs WITH &&) WHERE ((retracted_by IS NULL));

-- hole hole_piece_once, CONSTRAINT

ALTER TABLE ONLY public.hole
    ADD CONSTRAINT hole_piece_once UNIQUE (batch_id, generation_id, class, "position");

-- hour_look hour_look_pkey, CONSTRAINT

ALTER TABLE ONLY public.hour_look
    ADD CONSTRAINT hour_look_pkey PRIMARY KEY (feed, path);

-- moved_batch moved_batch_pkey, CONSTRAINT

ALTER TABLE ONLY public.moved_batch
    ADD CONSTRAINT moved_batch_pkey PRIMARY KEY (batch_id, moved_at);

-- offset_range offset_range_no_overlap, CONSTRAINT

ALTER TABLE ONLY public.offset_range
    ADD CONSTRAINT offset_range_no_overlap EXCLUDE USING gist (generation_id WITH =, offsets WITH &&) WHERE (((state = ANY (ARRAY['claimed'::public.range_state, 'committed'::public.range_state, 'lost'::public.range_state, 'unreadable'::public.range_state])) AND (NOT replaces)));

-- offset_range offset_range_pkey, CONSTRAINT

ALTER TABLE ONLY public.offset_range
    ADD CONSTRAINT offset_range_pkey PRIMARY KEY (range_id);

-- offset_range offset_range_replaced_once, CONSTRAINT

ALTER TABLE ONLY public.offset_range
    ADD CONSTRAINT offset_range_replaced_once EXCLUDE USING gist (generation_id WITH =, offsets WITH &&) WHERE (((state = 'claimed'::public.range_state) AND replaces));

-- plan_batch plan_batch_once, CONSTRAINT

ALTER TABLE ONLY public.plan_batch
    ADD CONSTRAINT plan_batch_once UNIQUE (batch_id, plan_id);

-- plan_batch plan_batch_pkey, CONSTRAINT

ALTER TABLE ONLY public.plan_batch
    ADD CONSTRAINT plan_batch_pkey PRIMARY KEY (plan_id, is_adopted, "position");

-- plan plan_pkey, CONSTRAINT

ALTER TABLE ONLY public.plan
    ADD CONSTRAINT plan_pkey PRIMARY KEY (plan_id);

-- plan plan_revision_once, CONSTRAINT

ALTER TABLE ONLY public.plan
    ADD CONSTRAINT plan_revision_once UNIQUE NULLS NOT DISTINCT (feed, window_from, window_until, revision);

-- replaced_file replaced_file_pkey, CONSTRAINT

ALTER TABLE ONLY public.replaced_file
    ADD CONSTRAINT replaced_file_pkey PRIMARY KEY (batch_id, old_batch_id, name);

-- report report_pkey, CONSTRAINT

ALTER TABLE ONLY public.report
    ADD CONSTRAINT report_pkey PRIMARY KEY (report_id);

-- schema_version schema_version_pkey, CONSTRAINT

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);

-- stored_anew stored_anew_pkey, CONSTRAINT

ALTER TABLE ONLY public.stored_anew
    ADD CONSTRAINT stored_anew_pkey PRIMARY KEY (batch_id, name, proven_at);

-- tail_anchor tail_anchor_pkey, CONSTRAINT

ALTER TABLE ONLY public.tail_anchor
    ADD CONSTRAINT tail_anchor_pkey PRIMARY KEY (generation_id);

-- told told_pkey, CONSTRAINT

ALTER TABLE ONLY public.told
    ADD CONSTRAINT told_pkey PRIMARY KEY (feed, recipient);

-- verification verification_of_batch, CONSTRAINT

ALTER TABLE ONLY public.verification
    ADD CONSTRAINT verification_of_batch UNIQUE (batch_id, verification_id);

-- verification verification_pkey, CONSTRAINT

ALTER TABLE ONLY public.verification
    ADD CONSTRAINT verification_pkey PRIMARY KEY (verification_id);

-- waiver_ending waiver_ending_pkey, CONSTRAINT

ALTER TABLE ONLY public.waiver_ending
    ADD CONSTRAINT waiver_ending_pkey PRIMARY KEY (waiver_id);

-- waiver waiver_pkey, CONSTRAINT

ALTER TABLE ONLY public.waiver
    ADD CONSTRAINT waiver_pkey PRIMARY KEY (waiver_id);

-- waiver waiver_request_id_key, CONSTRAINT

ALTER TABLE ONLY public.waiver
    ADD CONSTRAINT waiver_request_id_key UNIQUE (request_id);

-- waiver_request waiver_request_pkey, CONSTRAINT

ALTER TABLE ONLY public.waiver_request
    ADD CONSTRAINT waiver_request_pkey PRIMARY KEY (request_id);

-- attempt_committed_once, INDEX

CREATE UNIQUE INDEX attempt_committed_once ON public.attempt USING btree (batch_id) WHERE (outcome = 'committed'::text);

-- attempt_unswept, INDEX

CREATE INDEX attempt_unswept ON public.attempt USING btree (batch_id) WHERE (swept_at IS NULL);

-- batch_by_feed, INDEX

CREATE INDEX batch_by_feed ON public.batch USING btree (feed, batch_number);

-- batch_by_publisher, INDEX

CREATE INDEX batch_by_publisher ON public.batch USING btree (published_by) WHERE (published_by IS NOT NULL);

-- batch_check_newest, INDEX

CREATE INDEX batch_check_newest ON public.batch_check USING btree (batch_id, level, check_id);

-- batch_not_over, INDEX

CREATE INDEX batch_not_over ON public.batch USING btree (feed, batch_number) WHERE (state = ANY (ARRAY['planned'::public.batch_state, 'landing'::public.batch_state, 'verified'::public.batch_state, 'committed'::public.batch_state]));

-- broker_snapshot_by_feed, INDEX

CREATE INDEX broker_snapshot_by_feed ON public.broker_snapshot USING btree (feed, look_number);

-- broker_snapshot_shown, INDEX

CREATE INDEX broker_snapshot_shown ON public.broker_snapshot USING btree (feed, begun_at) WHERE (shown IS NOT NULL);

-- file_late, INDEX

CREATE INDEX file_late ON public.file USING btree (batch_id) WHERE (late_count IS NOT NULL);

-- file_retraction_by_batch, INDEX

CREATE INDEX file_retraction_by_batch ON public.file_retraction USING btree (replaced_by);

-- finding_standing_once, INDEX

CREATE UNIQUE INDEX finding_standing_once ON public.finding USING btree (feed, key) WHERE (state = ANY (ARRAY['open'::public.finding_state, 'waived'::public.finding_state]));

-- generation_open_once, INDEX

CREATE UNIQUE INDEX generation_open_once ON public.generation USING btree (feed, partition) WHERE (state = 'open'::public.generation_state);

-- offset_range_lost, INDEX

CREATE INDEX offset_range_lost ON public.offset_range USING btree (generation_id) WHERE (state = 'lost'::public.range_state);

-- offset_range_one_per_batch, INDEX

CREATE UNIQUE INDEX offset_range_one_per_batch ON public.offset_range USING btree (batch_id, generation_id) WHERE (state = ANY (ARRAY['claimed'::public.range_state, 'committed'::public.range_state]));

-- offset_range_reach, INDEX

CREATE INDEX offset_range_reach ON public.offset_range USING btree (generation_id, upper(offsets)) WHERE (state = ANY (ARRAY['claimed'::public.range_state, 'committed'::public.range_state, 'lost'::public.range_state, 'unreadable'::public.range_state]));

-- offset_range_unreadable, INDEX

CREATE INDEX offset_range_unreadable ON public.offset_range USING btree (generation_id) WHERE (state = 'unreadable'::public.range_state);

-- plan_batch_one_maker, INDEX

CREATE UNIQUE INDEX plan_batch_one_maker ON public.plan_batch USING btree (batch_id) WHERE (NOT is_adopted);

-- plan_by_feed, INDEX

CREATE INDEX plan_by_feed ON public.plan USING btree (feed, plan_id);

-- plan_by_owner, INDEX

CREATE INDEX plan_by_owner ON public.plan USING btree (feed, owner, planned_at);

-- report_by_feed, INDEX

CREATE INDEX report_by_feed ON public.report USING btree (feed, report_id);

-- verification_with_hashes, INDEX

CREATE INDEX verification_with_hashes ON public.verification USING btree (batch_id) WHERE (hashes IS NOT NULL);

-- waiver_by_finding, INDEX

CREATE INDEX waiver_by_finding ON public.waiver USING btree (finding_id);

-- waiver_request_by_finding, INDEX

CREATE INDEX waiver_request_by_finding ON public.waiver_request USING btree (finding_id);

-- waiver_request_once, INDEX

CREATE UNIQUE INDEX waiver_request_once ON public.waiver_request USING btree (finding_id) WHERE (ending IS NULL);

-- attempt attempt_guard, TRIGGER

CREATE TRIGGER attempt_guard BEFORE UPDATE ON public.attempt FOR EACH ROW EXECUTE FUNCTION public.guard_attempt();

-- attempt attempt_kept, TRIGGER

CREATE TRIGGER attempt_kept BEFORE DELETE OR TRUNCATE ON public.attempt FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- batch_check batch_check_append_only, TRIGGER

CREATE TRIGGER batch_check_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.batch_check FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- batch batch_claims_settled, TRIGGER

CREATE CONSTRAINT TRIGGER batch_claims_settled AFTER UPDATE ON public.batch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.state = ANY (ARRAY['committed'::public.batch_state, 'published'::public.batch_state, 'abandoned'::public.batch_state]))) EXECUTE FUNCTION public.guard_claims_settled();

-- batch batch_commit_linked, TRIGGER

CREATE CONSTRAINT TRIGGER batch_commit_linked AFTER UPDATE ON public.batch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.committed_by IS NOT NULL) AND (old.committed_by IS NULL))) EXECUTE FUNCTION public.guard_commit_linked();

-- batch batch_guard, TRIGGER

CREATE TRIGGER batch_guard BEFORE INSERT OR UPDATE ON public.batch FOR EACH ROW EXECUTE FUNCTION public.guard_batch();

-- batch batch_kept, TRIGGER

CREATE TRIGGER batch_kept BEFORE DELETE OR TRUNCATE ON public.batch FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- batch batch_state_guard, TRIGGER

CREATE TRIGGER batch_state_guard BEFORE UPDATE OF state ON public.batch FOR EACH ROW EXECUTE FUNCTION public.guard_batch_state();

-- broker_snapshot broker_snapshot_append_only, TRIGGER

CREATE TRIGGER broker_snapshot_append_only BEFORE DELETE OR TRUNCATE ON public.broker_snapshot FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- broker_snapshot broker_snapshot_guard, TRIGGER

CREATE TRIGGER broker_snapshot_guard BEFORE UPDATE ON public.broker_snapshot FOR EACH ROW EXECUTE FUNCTION public.guard_look();

-- commit_link commit_link_append_only, TRIGGER

CREATE TRIGGER commit_link_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.commit_link FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- commit_link commit_link_guard, TRIGGER

CREATE TRIGGER commit_link_guard BEFORE INSERT ON public.commit_link FOR EACH ROW EXECUTE FUNCTION public.guard_commit_link();

-- feed feed_append_only, TRIGGER

CREATE TRIGGER feed_append_only BEFORE DELETE OR UPDATE OF feed, topic, first_planned_at OR TRUNCATE ON public.feed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- feed_retirement feed_retirement_append_only, TRIGGER

CREATE TRIGGER feed_retirement_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.feed_retirement FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- feed_retirement feed_retirement_is_whole, TRIGGER

CREATE TRIGGER feed_retirement_is_whole BEFORE INSERT ON public.feed_retirement FOR EACH ROW EXECUTE FUNCTION public.guard_retirement();

-- file file_append_only, TRIGGER

CREATE TRIGGER file_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.file FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- file_fingerprint file_fingerprint_append_only, TRIGGER

CREATE TRIGGER file_fingerprint_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.file_fingerprint FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- file_fingerprint file_fingerprint_guard, TRIGGER

CREATE TRIGGER file_fingerprint_guard BEFORE INSERT ON public.file_fingerprint FOR EACH ROW EXECUTE FUNCTION public.guard_fingerprint();

-- file_retraction file_retraction_append_only, TRIGGER

CREATE TRIGGER file_retraction_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.file_retraction FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- file_retraction file_retraction_of_repair, TRIGGER

CREATE CONSTRAINT TRIGGER file_retraction_of_repair AFTER INSERT ON public.file_retraction DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.guard_retraction();

-- finding finding_guard, TRIGGER

CREATE TRIGGER finding_guard BEFORE UPDATE ON public.finding FOR EACH ROW EXECUTE FUNCTION public.guard_finding();

-- finding finding_kept, TRIGGER

CREATE TRIGGER finding_kept BEFORE DELETE OR TRUNCATE ON public.finding FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- folded_holes folded_holes_kept, TRIGGER

CREATE TRIGGER folded_holes_kept BEFORE DELETE OR TRUNCATE ON public.folded_holes FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- generation generation_frontier_covered, TRIGGER

CREATE TRIGGER generation_frontier_covered AFTER UPDATE ON public.generation REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.guard_frontier();

-- generation generation_guard, TRIGGER

CREATE TRIGGER generation_guard BEFORE INSERT OR UPDATE ON public.generation FOR EACH ROW EXECUTE FUNCTION public.guard_generation();

-- generation generation_kept, TRIGGER

CREATE TRIGGER generation_kept BEFORE DELETE OR TRUNCATE ON public.generation FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- generation generation_second_life, TRIGGER

CREATE TRIGGER generation_second_life BEFORE INSERT ON public.generation FOR EACH ROW EXECUTE FUNCTION public.guard_second_life();

-- hole hole_counted, TRIGGER

CREATE TRIGGER hole_counted AFTER INSERT ON public.hole REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.guard_new_holes();

-- hole hole_folded, TRIGGER

CREATE TRIGGER hole_folded AFTER DELETE ON public.hole REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.guard_folding_of_holes();

-- hole hole_guard, TRIGGER

CREATE TRIGGER hole_guard BEFORE UPDATE ON public.hole FOR EACH ROW EXECUTE FUNCTION public.guard_hole();

-- hole hole_kept, TRIGGER

CREATE TRIGGER hole_kept BEFORE TRUNCATE ON public.hole FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- hole hole_retraction, TRIGGER

CREATE CONSTRAINT TRIGGER hole_retraction AFTER UPDATE ON public.hole DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.guard_retraction();

-- moved_batch moved_batch_append_only, TRIGGER

CREATE TRIGGER moved_batch_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.moved_batch FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- moved_batch moved_batch_lies_there, TRIGGER

CREATE CONSTRAINT TRIGGER moved_batch_lies_there AFTER INSERT ON public.moved_batch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.guard_move();

-- offset_range offset_range_folded, TRIGGER

CREATE TRIGGER offset_range_folded AFTER DELETE ON public.offset_range REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.guard_folding();

-- offset_range offset_range_guard_new, TRIGGER

CREATE TRIGGER offset_range_guard_new BEFORE INSERT ON public.offset_range FOR EACH ROW EXECUTE FUNCTION public.guard_new_range();

-- offset_range offset_range_guard_step, TRIGGER

CREATE TRIGGER offset_range_guard_step BEFORE UPDATE ON public.offset_range FOR EACH ROW EXECUTE FUNCTION public.guard_range_step();

-- offset_range offset_range_holes, TRIGGER

CREATE CONSTRAINT TRIGGER offset_range_holes AFTER UPDATE ON public.offset_range DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.state = 'committed'::public.range_state) AND (old.state = 'claimed'::public.range_state))) EXECUTE FUNCTION public.guard_holes_of_range();

-- offset_range offset_range_kept, TRIGGER

CREATE TRIGGER offset_range_kept BEFORE TRUNCATE ON public.offset_range FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- offset_range offset_range_replaced, TRIGGER

CREATE CONSTRAINT TRIGGER offset_range_replaced AFTER UPDATE ON public.offset_range DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.state = 'retracted'::public.range_state) AND (old.state = 'committed'::public.range_state))) EXECUTE FUNCTION public.guard_retracted_range();

-- offset_range offset_range_retraction, TRIGGER

CREATE CONSTRAINT TRIGGER offset_range_retraction AFTER UPDATE ON public.offset_range DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.state = 'retracted'::public.range_state) AND (old.state = 'committed'::public.range_state))) EXECUTE FUNCTION public.guard_retraction();

-- plan plan_append_only, TRIGGER

CREATE TRIGGER plan_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.plan FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- plan_batch plan_batch_append_only, TRIGGER

CREATE TRIGGER plan_batch_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.plan_batch FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- plan plan_of_a_feed_that_lives, TRIGGER

CREATE TRIGGER plan_of_a_feed_that_lives BEFORE INSERT ON public.plan FOR EACH ROW EXECUTE FUNCTION public.guard_plan();

-- replaced_file replaced_file_append_only, TRIGGER

CREATE TRIGGER replaced_file_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.replaced_file FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- replaced_file replaced_file_is_planned, TRIGGER

CREATE TRIGGER replaced_file_is_planned BEFORE INSERT ON public.replaced_file FOR EACH ROW EXECUTE FUNCTION public.guard_replaced_file();

-- report report_append_only, TRIGGER

CREATE TRIGGER report_append_only BEFORE UPDATE OR TRUNCATE ON public.report FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- report report_thinned, TRIGGER

CREATE TRIGGER report_thinned AFTER DELETE ON public.report REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.guard_thinned_reports();

-- stored_anew stored_anew_append_only, TRIGGER

CREATE TRIGGER stored_anew_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.stored_anew FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- stored_anew stored_anew_is_of_another_kind, TRIGGER

CREATE TRIGGER stored_anew_is_of_another_kind BEFORE INSERT ON public.stored_anew FOR EACH ROW EXECUTE FUNCTION public.guard_stored_anew();

-- tail_anchor tail_anchor_guard, TRIGGER

CREATE TRIGGER tail_anchor_guard BEFORE UPDATE ON public.tail_anchor FOR EACH ROW EXECUTE FUNCTION public.guard_anchor();

-- tail_anchor tail_anchor_kept, TRIGGER

CREATE TRIGGER tail_anchor_kept BEFORE DELETE OR TRUNCATE ON public.tail_anchor FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- verification verification_append_only, TRIGGER

CREATE TRIGGER verification_append_only BEFORE DELETE OR TRUNCATE ON public.verification FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- verification verification_guard, TRIGGER

CREATE TRIGGER verification_guard BEFORE UPDATE ON public.verification FOR EACH ROW EXECUTE FUNCTION public.guard_verification();

-- waiver waiver_append_only, TRIGGER

CREATE TRIGGER waiver_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.waiver FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- waiver waiver_as_asked, TRIGGER

CREATE TRIGGER waiver_as_asked BEFORE INSERT ON public.waiver FOR EACH ROW EXECUTE FUNCTION public.guard_waiver();

-- waiver_ending waiver_ending_append_only, TRIGGER

CREATE TRIGGER waiver_ending_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.waiver_ending FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

-- waiver_request waiver_request_guard, TRIGGER

CREATE TRIGGER waiver_request_guard BEFORE UPDATE ON public.waiver_request FOR EACH ROW EXECUTE FUNCTION public.guard_waiver_request();

-- waiver_request waiver_request_kept, TRIGGER

CREATE TRIGGER waiver_request_kept BEFORE DELETE OR TRUNCATE ON public.waiver_request FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_delete();

-- attempt attempt_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- batch_check batch_check_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.batch_check
    ADD CONSTRAINT batch_check_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- batch batch_committed_by_own_attempt, FK CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_committed_by_own_attempt FOREIGN KEY (batch_id, committed_by) REFERENCES public.attempt(batch_id, attempt_id);

-- batch batch_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- batch batch_plan_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_plan_id_fkey FOREIGN KEY (plan_id) REFERENCES public.plan(plan_id);

-- batch batch_verification, FK CONSTRAINT

ALTER TABLE ONLY public.batch
    ADD CONSTRAINT batch_verification FOREIGN KEY (batch_id, verification_id) REFERENCES public.verification(batch_id, verification_id);

-- broker_snapshot broker_snapshot_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.broker_snapshot
    ADD CONSTRAINT broker_snapshot_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- commit_link commit_link_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.commit_link
    ADD CONSTRAINT commit_link_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- commit_link commit_link_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.commit_link
    ADD CONSTRAINT commit_link_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- directory_look directory_look_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.directory_look
    ADD CONSTRAINT directory_look_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- feed_retirement feed_retirement_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.feed_retirement
    ADD CONSTRAINT feed_retirement_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- file file_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.file
    ADD CONSTRAINT file_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- file_fingerprint file_fingerprint_batch_id_name_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.file_fingerprint
    ADD CONSTRAINT file_fingerprint_batch_id_name_fkey FOREIGN KEY (batch_id, name) REFERENCES public.file(batch_id, name);

-- file_retraction file_retraction_batch_id_name_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.file_retraction
    ADD CONSTRAINT file_retraction_batch_id_name_fkey FOREIGN KEY (batch_id, name) REFERENCES public.file(batch_id, name);

-- file_retraction file_retraction_replaced_by_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.file_retraction
    ADD CONSTRAINT file_retraction_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES public.batch(batch_id);

-- folded_holes folded_holes_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.folded_holes
    ADD CONSTRAINT folded_holes_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- generation generation_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.generation
    ADD CONSTRAINT generation_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- hole hole_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.hole
    ADD CONSTRAINT hole_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- hole hole_generation_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.hole
    ADD CONSTRAINT hole_generation_id_fkey FOREIGN KEY (generation_id) REFERENCES public.generation(generation_id);

-- hole hole_retracted_by_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.hole
    ADD CONSTRAINT hole_retracted_by_fkey FOREIGN KEY (retracted_by) REFERENCES public.batch(batch_id);

-- hour_look hour_look_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.hour_look
    ADD CONSTRAINT hour_look_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- moved_batch moved_batch_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.moved_batch
    ADD CONSTRAINT moved_batch_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- offset_range offset_range_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.offset_range
    ADD CONSTRAINT offset_range_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- offset_range offset_range_generation_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.offset_range
    ADD CONSTRAINT offset_range_generation_id_fkey FOREIGN KEY (generation_id) REFERENCES public.generation(generation_id);

-- plan_batch plan_batch_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.plan_batch
    ADD CONSTRAINT plan_batch_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- plan_batch plan_batch_plan_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.plan_batch
    ADD CONSTRAINT plan_batch_plan_id_fkey FOREIGN KEY (plan_id) REFERENCES public.plan(plan_id);

-- plan plan_feed_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.plan
    ADD CONSTRAINT plan_feed_fkey FOREIGN KEY (feed) REFERENCES public.feed(feed);

-- plan plan_snapshot_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.plan
    ADD CONSTRAINT plan_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES public.broker_snapshot(snapshot_id);

-- replaced_file replaced_file_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.replaced_file
    ADD CONSTRAINT replaced_file_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- replaced_file replaced_file_old_batch_id_name_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.replaced_file
    ADD CONSTRAINT replaced_file_old_batch_id_name_fkey FOREIGN KEY (old_batch_id, name) REFERENCES public.file(batch_id, name);

-- stored_anew stored_anew_batch_id_name_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.stored_anew
    ADD CONSTRAINT stored_anew_batch_id_name_fkey FOREIGN KEY (batch_id, name) REFERENCES public.file(batch_id, name);

-- tail_anchor tail_anchor_batch_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.tail_anchor
    ADD CONSTRAINT tail_anchor_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch(batch_id);

-- tail_anchor tail_anchor_generation_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.tail_anchor
    ADD CONSTRAINT tail_anchor_generation_id_fkey FOREIGN KEY (generation_id) REFERENCES public.generation(generation_id);

-- verification verification_of_attempt, FK CONSTRAINT

ALTER TABLE ONLY public.verification
    ADD CONSTRAINT verification_of_attempt FOREIGN KEY (batch_id, attempt_id) REFERENCES public.attempt(batch_id, attempt_id);

-- waiver_ending waiver_ending_waiver_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.waiver_ending
    ADD CONSTRAINT waiver_ending_waiver_id_fkey FOREIGN KEY (waiver_id) REFERENCES public.waiver(waiver_id);

-- waiver waiver_finding_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.waiver
    ADD CONSTRAINT waiver_finding_id_fkey FOREIGN KEY (finding_id) REFERENCES public.finding(finding_id);

-- waiver_request waiver_request_finding_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.waiver_request
    ADD CONSTRAINT waiver_request_finding_id_fkey FOREIGN KEY (finding_id) REFERENCES public.finding(finding_id);

-- waiver waiver_request_id_fkey, FK CONSTRAINT

ALTER TABLE ONLY public.waiver
    ADD CONSTRAINT waiver_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.waiver_request(request_id);
