-- Single offsets that Spark can't read are set aside: no plan asks for them, and no frontier passes
-- them, until a person asks for them again, two people give them up, or the log has lost them.

COMMENT ON TYPE range_state IS 'What is said of a range: no offset is claimed, committed, lost or unreadable twice. The only steps:
claimed -> committed
claimed -> lost
claimed -> released
claimed -> unreadable
unreadable -> lost
unreadable -> released
committed -> retracted';

ALTER TABLE offset_range
  DROP CONSTRAINT offset_range_no_overlap,
  ADD CONSTRAINT offset_range_no_overlap
    EXCLUDE USING gist (generation_id WITH =, offsets WITH &&)
    WHERE (state IN ('claimed', 'committed', 'lost', 'unreadable') AND NOT replaces);
COMMENT ON TABLE offset_range IS
  'Offsets [from, until) of a generation. No offset is in two claimed, committed, lost or unreadable
rows, but for the claim of a repair, which replaces committed ones.';
DROP INDEX offset_range_reach;
CREATE INDEX offset_range_reach ON offset_range (generation_id, upper(offsets))
  WHERE state IN ('claimed', 'committed', 'lost', 'unreadable');
CREATE INDEX offset_range_unreadable ON offset_range (generation_id) WHERE state = 'unreadable';

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

CREATE OR REPLACE VIEW generation_account AS
SELECT g.generation_id, g.feed, g.topic, g.partition, g.cluster_id, g.topic_id, g.ordinal,
       g.state::text AS state, g.first_offset, g.frontier, g.last_seen_until,
       g.read_until, g.seen_epoch,
       a.record_offset, a.leader_epoch, a.content_hash,
       tail.from_offsets, tail.until_offsets, tail.are_unreadable
  FROM generation g
  LEFT JOIN tail_anchor a USING (generation_id)
 CROSS JOIN LATERAL (
       SELECT array_agg(lower(r.offsets) ORDER BY lower(r.offsets)) AS from_offsets,
              array_agg(upper(r.offsets) ORDER BY lower(r.offsets)) AS until_offsets,
              array_agg(r.state = 'unreadable' ORDER BY lower(r.offsets)) AS are_unreadable
         FROM offset_range r
        WHERE r.generation_id = g.generation_id
          AND r.state IN ('claimed', 'committed', 'lost', 'unreadable') AND NOT r.replaces
          AND upper(r.offsets) > g.frontier) tail;
