-- name: past_bounds
-- What looks at one life of the topic showed of some partitions, oldest first: the newest ones, and
-- the first of every hour for some time before, however many there were since.
WITH known AS (
       SELECT snapshot_id, taken_at FROM broker_snapshot
        WHERE feed = :feed AND topic_id = :topic_id),
     newest AS (SELECT snapshot_id FROM known ORDER BY snapshot_id DESC LIMIT :most),
     hourly AS (
       SELECT DISTINCT ON (date_trunc('hour', taken_at)) snapshot_id FROM known
        WHERE taken_at > (SELECT max(taken_at) FROM known) - :reach::interval
        ORDER BY date_trunc('hour', taken_at), snapshot_id)
SELECT s.taken_at, shown.partition, shown.high_watermark, shown.last_stable_offset
  FROM broker_snapshot s
 CROSS JOIN LATERAL unnest(s.partitions, s.high_watermarks, s.last_stable_offsets)
       AS shown(partition, high_watermark, last_stable_offset)
 WHERE s.snapshot_id IN (SELECT snapshot_id FROM newest UNION SELECT snapshot_id FROM hourly)
   AND shown.partition = ANY(:partitions::integer[])
 ORDER BY s.taken_at, s.snapshot_id;

-- name: has_overlap_constraint
-- If the schema's own constraint against overlaps stands: then no two rows overlap.
SELECT EXISTS (SELECT FROM pg_constraint
                WHERE conname = 'offset_range_no_overlap' AND convalidated
                  AND conrelid = 'offset_range'::regclass) AS is_there;

-- name: generations_with_gaps
-- Generations whose committed and lost ranges do not add up to all that is below the frontier. Where
-- no two overlap, that is a gap.
SELECT g.generation_id
  FROM generation g
  LEFT JOIN (
       SELECT r.generation_id, sum(least(upper(r.offsets), mine.frontier) - lower(r.offsets)) AS spans
         FROM offset_range r JOIN generation mine USING (generation_id)
        WHERE mine.feed = :feed AND r.state IN ('committed', 'lost')
          AND lower(r.offsets) < mine.frontier
        GROUP BY r.generation_id) settled USING (generation_id)
 WHERE g.feed = :feed AND coalesce(settled.spans, 0) <> g.frontier - g.first_offset;

-- name: unsound_generations
-- Generations whose committed and lost ranges add up to more than they cover together, or do not
-- cover everything below the frontier.
SELECT g.generation_id
  FROM generation g
  LEFT JOIN (
       SELECT r.generation_id, range_agg(r.offsets) AS held,
              sum(upper(r.offsets) - lower(r.offsets)) AS spans
         FROM offset_range r JOIN generation mine USING (generation_id)
        WHERE mine.feed = :feed AND r.state IN ('committed', 'lost')
        GROUP BY r.generation_id) settled USING (generation_id)
 WHERE g.feed = :feed
   AND ((SELECT sum(upper(run) - lower(run)) FROM unnest(settled.held) AS run) < settled.spans
        OR NOT int8range(g.first_offset, g.frontier)
               <@ coalesce(settled.held, '{}'::int8multirange));

-- name: settled_ranges
-- The committed and lost ranges of some generations, by offset.
SELECT r.generation_id, lower(r.offsets) AS from_offset, upper(r.offsets) AS until_offset
  FROM offset_range r
 WHERE r.generation_id = ANY(:generation_ids::bigint[]) AND r.state IN ('committed', 'lost')
 ORDER BY r.generation_id, lower(r.offsets), upper(r.offsets);
