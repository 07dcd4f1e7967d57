-- Holes change hands with their offsets. A repair proves the holes of its offsets anew, and may find
-- rows where holes were before: only the holes of the batch that holds the offsets now count.

ALTER TABLE hole ADD COLUMN retracted_by text REFERENCES batch;
COMMENT ON COLUMN hole.retracted_by IS
  'The repair that holds some of these offsets now; null while they count. What it left is a row of
its own.';
COMMENT ON TABLE hole IS
  'Offsets of committed ranges without a visible record, by cause, in pieces of bounded size.
Only rows that no repair has retracted count.';

DROP TRIGGER hole_append_only ON hole;
CREATE TRIGGER hole_kept BEFORE DELETE OR TRUNCATE ON hole
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_delete();

-- What repairs have landed again before this column was there.
WITH repair AS (
       SELECT b.batch_id, b.commit_number, g.generation_id,
              int8range((landed ->> 'from_offset')::bigint, (landed ->> 'until_offset')::bigint)
                AS offsets
         FROM batch b
         JOIN verification v USING (verification_id)
        CROSS JOIN LATERAL jsonb_array_elements(v.manifest::jsonb -> 'ranges') AS landed
         JOIN generation g ON g.feed = b.feed AND g.ordinal = b.ordinal
                          AND g.partition = (landed ->> 'partition')::integer
        WHERE b.committed_by IS NOT NULL
          AND EXISTS (SELECT FROM replaced_file r WHERE r.batch_id = b.batch_id)),
     taken AS (
       SELECT h.batch_id, h.generation_id, h.class, h.position, range_agg(r.offsets) AS offsets,
              (array_agg(r.batch_id ORDER BY r.commit_number DESC))[1] AS newest
         FROM hole h
         JOIN batch proven ON proven.batch_id = h.batch_id
         JOIN repair r ON r.generation_id = h.generation_id AND r.offsets && h.runs
                      AND r.commit_number > proven.commit_number
        GROUP BY h.batch_id, h.generation_id, h.class, h.position),
     gone AS (
       UPDATE hole h SET retracted_by = taken.newest FROM taken
        WHERE (h.batch_id, h.generation_id, h.class, h.position)
            = (taken.batch_id, taken.generation_id, taken.class, taken.position)
    RETURNING h.batch_id, h.generation_id, h.class, h.position, h.runs - taken.offsets AS runs)
INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)
SELECT batch_id, generation_id, class,
       (SELECT max(h.position) FROM hole h
         WHERE (h.batch_id, h.generation_id, h.class)
             = (gone.batch_id, gone.generation_id, gone.class))
         + row_number() OVER (PARTITION BY batch_id, generation_id, class ORDER BY position),
       runs, (SELECT sum(upper(run) - lower(run)) FROM unnest(runs) AS run)
  FROM gone WHERE NOT isempty(runs);

CREATE FUNCTION guard_hole() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.batch_id, NEW.generation_id, NEW.class, NEW.position, NEW.runs, NEW.hole_count)
     IS DISTINCT FROM
     (OLD.batch_id, OLD.generation_id, OLD.class, OLD.position, OLD.runs, OLD.hole_count)
     OR OLD.retracted_by IS NOT NULL
     OR NOT EXISTS (SELECT FROM replaced_file r WHERE r.batch_id = NEW.retracted_by) THEN
    RAISE EXCEPTION 'UPDATE refused: hole is evidence, and only a repair that has landed its'
      ' offsets again retracts it' USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER hole_guard BEFORE UPDATE ON hole
  FOR EACH ROW EXECUTE FUNCTION guard_hole();

DROP INDEX hole_by_generation;
ALTER TABLE hole ADD CONSTRAINT hole_counts_once
  EXCLUDE USING gist (generation_id WITH =, runs WITH &&) WHERE (retracted_by IS NULL);

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
