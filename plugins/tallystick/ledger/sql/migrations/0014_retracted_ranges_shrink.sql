-- A retracted row is what a repair has taken. Of a folded range, which spans many batches, it was the
-- whole: an export showed millions of retracted offsets where one file had given way.

CREATE OR REPLACE FUNCTION guard_range() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  log generation%ROWTYPE;
  left_over int8multirange;
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
  -- The repair that retracts a range takes a part of it only, and commits the rest anew: within its
  -- own transaction the row shrinks to what was taken.
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
