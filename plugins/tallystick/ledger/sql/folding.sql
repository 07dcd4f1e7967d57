-- name: lock_generations_of
-- Lock a feed's generations, in the order everybody locks, before their ranges are read: a commit
-- beside us is seen whole, or waits.
SELECT generation_id FROM generation WHERE feed = :feed
 ORDER BY generation_id FOR NO KEY UPDATE;

-- name: fold_ranges
-- Replace contiguous committed ranges below the frontier by one range each, with their counts.
-- Batches that are not published keep their own ranges. What a batch landed stays in its proof.
WITH settled AS (
       SELECT r.range_id, r.generation_id, r.offsets
         FROM generation g
         JOIN offset_range r USING (generation_id)
         LEFT JOIN batch b USING (batch_id)
        WHERE g.feed = :feed AND r.state = 'committed' AND upper(r.offsets) <= g.frontier
          AND (r.batch_id IS NULL OR b.state = 'published')),
     run AS (
       SELECT generation_id, unnest(range_agg(offsets)) AS offsets
         FROM settled GROUP BY generation_id HAVING count(*) > 1),
     member AS (
       SELECT settled.range_id, run.offsets AS run_offsets,
              count(*) OVER (PARTITION BY run.generation_id, run.offsets) AS range_count
         FROM run JOIN settled ON settled.generation_id = run.generation_id
                              AND settled.offsets <@ run.offsets),
     folded AS (
       DELETE FROM offset_range r USING member
        WHERE r.range_id = member.range_id AND member.range_count > 1
    RETURNING r.generation_id, member.run_offsets, r.record_count, r.hole_count)
INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
SELECT generation_id, run_offsets, 'committed', sum(record_count), sum(hole_count)
  FROM folded GROUP BY generation_id, run_offsets;
