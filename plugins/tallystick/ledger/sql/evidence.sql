-- name: past_bounds
-- What looks at one life of the topic showed, oldest first: the newest ones, and
-- the first of every hour for some time before, however many there were since.
WITH known AS (
       SELECT snapshot_id, look_number, looked_at FROM broker_snapshot
        WHERE feed = :feed AND topic_id = :topic_id AND shown IS NOT NULL),
     newest AS (SELECT snapshot_id FROM known ORDER BY look_number DESC LIMIT :most),
     hourly AS (
       SELECT DISTINCT ON (date_trunc('hour', looked_at)) snapshot_id FROM known
        WHERE looked_at > (SELECT max(looked_at) FROM known) - :reach::interval
        ORDER BY date_trunc('hour', looked_at), look_number)
SELECT s.looked_at, s.shown
  FROM broker_snapshot s
 WHERE s.snapshot_id IN (SELECT snapshot_id FROM newest UNION SELECT snapshot_id FROM hourly)
 ORDER BY s.looked_at, s.look_number;

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

-- name: tried_batches
-- Unfinished batches that were tried: how often in vain, why the last time, and for how long the
-- newest attempt has held it by now.
SELECT b.batch_id,
       count(*) FILTER (WHERE a.outcome LIKE 'failed: %' OR a.token < b.newest_token) AS failures,
       (array_agg(a.outcome ORDER BY a.token DESC)
          FILTER (WHERE a.outcome LIKE 'failed: %'))[1] AS last_failure,
       CASE WHEN b.lease_until > clock_timestamp() THEN extract(epoch FROM clock_timestamp()
         - max(a.started_at) FILTER (WHERE a.token = b.newest_token AND a.ended_at IS NULL))::float8
       END AS held_seconds
  FROM batch b JOIN attempt a USING (batch_id)
 WHERE b.feed = :feed AND b.state IN ('planned', 'landing', 'verified')
 GROUP BY b.batch_id;

-- name: idle_seconds
-- How long ago a run gave its last sign: a plan, an attempt's end, or a lease, perhaps still to end.
SELECT extract(epoch FROM clock_timestamp() - greatest(
         (SELECT p.planned_at FROM plan p WHERE p.feed = :feed ORDER BY p.plan_id DESC LIMIT 1),
         (SELECT max(b.lease_until) FROM batch b
           WHERE b.feed = :feed AND b.state IN ('planned', 'landing', 'verified', 'committed')),
         (SELECT max(a.ended_at) FROM attempt a JOIN plan_batch pb USING (batch_id)
           WHERE pb.plan_id = (SELECT p.plan_id FROM plan p WHERE p.feed = :feed
                                ORDER BY p.plan_id DESC LIMIT 1))))::float8 AS seconds;

-- name: left_unread
-- What was seen of logs that a rebuild has closed, and that they hold neither as committed nor as
-- lost, past their frontiers: no plan looks at a closed log.
SELECT g.generation_id, lower(part) AS from_offset, upper(part) AS until_offset
  FROM generation g
 CROSS JOIN LATERAL (
       SELECT coalesce(range_agg(r.offsets), '{}') AS held, max(upper(r.offsets)) AS until_offset
         FROM offset_range r
        WHERE r.generation_id = g.generation_id AND r.state IN ('committed', 'lost', 'claimed')
          AND upper(r.offsets) > g.frontier) known
 CROSS JOIN LATERAL unnest(
       int8multirange(int8range(g.frontier,
                                greatest(g.frontier, g.last_seen_until, known.until_offset)))
       - known.held) AS part
 WHERE g.feed = :feed AND g.state = 'closed' AND g.ending_code = :rebuilt
 ORDER BY g.generation_id, lower(part);

-- name: committed_in_two_lives
-- Offsets that two lives of one topic id have committed, though nothing says that the log was cut
-- at or below them. Where it was cut and nobody could say at which offset, none of them is told.
SELECT newer.generation_id, older.ordinal AS earlier, lower(part) AS from_offset,
       upper(part) AS until_offset
  FROM generation older
  JOIN generation newer USING (feed, partition, cluster_id, topic_id)
 CROSS JOIN LATERAL (
       SELECT range_agg(r.offsets) AS offsets FROM offset_range r
        WHERE r.generation_id = older.generation_id AND r.state = 'committed') held
 CROSS JOIN LATERAL (
       SELECT range_agg(r.offsets) AS offsets FROM offset_range r
        WHERE r.generation_id = newer.generation_id AND r.state = 'committed') again
 CROSS JOIN LATERAL (
       SELECT min(coalesce(told.cut_at, 0)) AS place FROM generation life
        CROSS JOIN LATERAL (
              SELECT CASE WHEN bool_and(f.evidence ? 'cut_at')
                          THEN min((f.evidence ->> 'cut_at')::bigint) END AS cut_at
                FROM finding f
               WHERE f.feed = life.feed AND f.topic = life.topic
                 AND f.partition = life.partition AND f.generation = life.ordinal
                 AND f.code = ANY(:cut_codes::text[]) AND f.verdict = 'PROVEN_LOSS') told
        WHERE life.feed = older.feed AND life.partition = older.partition
          AND life.ordinal >= older.ordinal AND life.ordinal < newer.ordinal
          AND was_cut(life)) lowest_cut
 CROSS JOIN LATERAL unnest(held.offsets * again.offsets
                           * int8multirange(int8range(0, lowest_cut.place))) AS part
 WHERE older.feed = :feed AND older.ordinal < newer.ordinal
 ORDER BY newer.generation_id, lower(part);
