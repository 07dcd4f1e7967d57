-- name: feed_heads
-- Each feed that is not retired, or the named one, with its newest report and its newest look.
SELECT f.feed, f.topic, f.described,
       r.report_id, r.taken_at, r.verdict::text AS verdict, r.complete_up_to, r.made_by, r.lost_at,
       s.looked_at, s.border_at, s.shown, s.leaderless_count, c.up_to, c.by, c.told_at,
       logs.partitions, logs.numbers, logs.frontiers, logs.seen, logs.empty
  FROM feed f
  LEFT JOIN completeness c USING (feed)
  LEFT JOIN LATERAL (
       SELECT report_id, taken_at, verdict, complete_up_to, made_by, lost_at FROM report
        WHERE report.feed = f.feed ORDER BY report_id DESC LIMIT 1) r ON true
  LEFT JOIN LATERAL (
       SELECT looked_at, border_at, topic_id, shown, leaderless_count
         FROM broker_snapshot
        WHERE broker_snapshot.feed = f.feed ORDER BY look_number DESC LIMIT 1) s ON true
 CROSS JOIN LATERAL (
       SELECT count(*) AS partitions,
              coalesce(array_agg(g.partition), '{}') AS numbers,
              coalesce(array_agg(g.frontier), '{}') AS frontiers,
              coalesce(array_agg(g.topic_id = s.topic_id), '{}') AS seen,
              coalesce(array_agg(g.frontier = g.first_offset AND g.state <> 'closed'), '{}') AS empty
         FROM (SELECT DISTINCT ON (partition) partition, frontier, topic_id, first_offset, state
                 FROM generation
                WHERE generation.feed = f.feed ORDER BY partition, ordinal DESC) g) logs
 WHERE CASE WHEN :feed::text IS NULL
            THEN NOT EXISTS (SELECT FROM feed_retirement ended WHERE ended.feed = f.feed)
            ELSE f.feed = :feed::text END
 ORDER BY f.feed;

-- name: ended_feeds
-- The feeds that were retired, and when.
SELECT feed, retired_at FROM feed_retirement;

-- name: last_heard
-- When a witness was heard at each level, and since when it is silent to all who asked: by feed. An
-- answer ends the silence that both was asked and is on record before it: a full read takes hours.
SELECT f.feed, asked.level, heard.taken_at AS heard_at, silent.since AS silent_since
  FROM feed f
 CROSS JOIN (VALUES ('L1'), ('L2'), ('L3'), ('L4')) AS asked(level)
  LEFT JOIN LATERAL (
       SELECT taken_at FROM report r
        WHERE r.feed = f.feed AND r.deepest >= asked.level AND NOT asked.level = ANY(r.silent)
        ORDER BY report_id DESC LIMIT 1) heard ON true
 CROSS JOIN LATERAL (
       SELECT min(taken_at) AS since FROM report r
        WHERE r.feed = f.feed AND asked.level = ANY(r.silent)
          AND NOT EXISTS (SELECT FROM report h
                           WHERE h.feed = f.feed AND h.deepest >= asked.level
                             AND NOT asked.level = ANY(h.silent)
                             AND h.report_id > r.report_id AND h.taken_at >= r.taken_at)) silent
 WHERE :feed::text IS NULL OR f.feed = :feed::text;

-- name: findings_ended
-- The numbers of a feed's findings that ended between two instants, both counting, or since the first.
SELECT finding_id FROM finding
 WHERE feed = :feed AND closed_at >= :since
   AND (:until::timestamptz IS NULL OR closed_at <= :until::timestamptz)
 ORDER BY finding_id LIMIT :most;

-- name: report_heads
-- The feed's newest stored reports, those before one, or the one of a number; none is read whole.
SELECT report_id, taken_at, verdict::text AS verdict, complete_up_to, made_by
  FROM report WHERE feed = :feed AND (:before::bigint IS NULL OR report_id < :before::bigint)
   AND (:number::bigint IS NULL OR report_id = :number::bigint)
 ORDER BY report_id DESC LIMIT :most;

-- name: standing_counts
-- How many findings stand, by feed, code, verdict and partition; those that two people accept now
-- count as WAIVED. What was accepted until lately begins anew.
SELECT f.feed, f.partition, f.code,
       CASE WHEN f.state = 'waived' AND newest.is_in_force THEN 'WAIVED' ELSE f.verdict::text END
         AS verdict,
       count(*) AS findings, min(f.first_seen_at) AS since,
       max(greatest(f.first_seen_at, CASE WHEN NOT newest.is_in_force
                                             THEN coalesce(newest.ended_at, newest.expires_at) END))
         AS newest_at
  FROM finding f
  LEFT JOIN newest_waiver newest USING (finding_id)
 WHERE f.state IN ('open', 'waived') AND (:feed::text IS NULL OR f.feed = :feed::text)
 GROUP BY 1, 2, 3, 4 ORDER BY 1, 3, 4, 2;

-- name: newest_runs
-- The newest plans of each feed, or of one, and what became of their batches.
SELECT f.feed, p.plan_id, p.owner, p.window_from, p.window_until, p.planned_at,
       count(b.batch_id) AS batches,
       count(*) FILTER (WHERE b.state = 'published') AS published,
       count(*) FILTER (WHERE b.state = 'abandoned') AS abandoned,
       coalesce(sum(b.record_count), 0)::bigint AS record_count
  FROM feed f
 CROSS JOIN LATERAL (
       SELECT plan_id, owner, window_from, window_until, planned_at FROM plan
        WHERE plan.feed = f.feed ORDER BY plan_id DESC LIMIT :most) p
  LEFT JOIN plan_batch USING (plan_id)
  LEFT JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR f.feed = :feed::text
 GROUP BY f.feed, p.plan_id, p.owner, p.window_from, p.window_until, p.planned_at
 ORDER BY f.feed, p.plan_id DESC;

-- name: newest_logs
-- The newest life of each partition's log, by partition.
SELECT DISTINCT ON (partition) generation_id, partition, ordinal, state::text AS state, topic_id,
       first_offset, frontier
  FROM generation WHERE feed = :feed ORDER BY partition, ordinal DESC;

-- name: totals_of_logs
-- Rows, losses and holes of these generations.
SELECT g.generation_id, landed.record_count, landed.lost, holes.classes, holes.counts
  FROM unnest(:generation_ids::bigint[]) AS g(generation_id)
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(r.record_count) FILTER (WHERE r.state = 'committed'), 0)::bigint
                AS record_count,
              coalesce(sum(upper(r.offsets) - lower(r.offsets)) FILTER (WHERE r.state = 'lost'), 0)
                ::bigint AS lost
         FROM offset_range r
        WHERE r.generation_id = g.generation_id AND r.state IN ('claimed', 'committed', 'lost', 'unreadable')
          AND NOT r.replaces) landed
 CROSS JOIN LATERAL (
       SELECT array_agg(h.class::text) AS classes, array_agg(h.hole_count) AS counts
         FROM (SELECT class, sum(hole_count)::bigint AS hole_count FROM hole
                WHERE hole.generation_id = g.generation_id AND retracted_by IS NULL
                GROUP BY class) h) holes;

-- name: batch_heads
-- Batches without their ranges and proofs, newest first: those of a feed before a number, or these.
SELECT b.batch_number, b.batch_id, b.label, b.window_from, b.window_until, b.state::text AS state,
       b.newest_token, p.owner AS planned_by, b.planned_at, b.committed_at, b.published_at,
       b.published_by, b.record_count, b.hole_count, b.byte_count,
       CASE WHEN b.lease_until > clock_timestamp() THEN b.holder END AS holder,
       committer.owner AS committed_by, newest.outcome,
       (SELECT count(*) FROM file WHERE file.batch_id = b.batch_id) AS files,
       CASE WHEN b.committed_by IS NULL
            THEN (SELECT count(*) FROM offset_range r
                   WHERE r.batch_id = b.batch_id AND r.state = 'claimed')
            ELSE (SELECT coalesce(sum(upper(run) - lower(run)), 0)::bigint
                    FROM (SELECT unnest(range_agg(f.partitions)) AS run
                            FROM file f WHERE f.batch_id = b.batch_id) held) END AS partitions
  FROM batch b JOIN plan p USING (plan_id)
  LEFT JOIN attempt committer ON committer.attempt_id = b.committed_by
  LEFT JOIN attempt newest ON newest.batch_id = b.batch_id AND newest.token = b.newest_token
 WHERE b.feed = :feed
   AND (:before::bigint IS NULL OR b.batch_number < :before::bigint)
   AND (:batch_ids::text[] IS NULL OR b.batch_id = ANY(:batch_ids::text[]))
 ORDER BY b.batch_number DESC LIMIT :most;

-- name: plans_of_run
-- The plans that a run has frozen, each with its batches and with when the feed's next one was.
SELECT p.plan_id, p.window_from, p.window_until, p.planned_at,
       array_remove(array_agg(b.batch_id ORDER BY b.is_adopted, b.position), NULL) AS batch_ids,
       (SELECT n.planned_at FROM plan n
         WHERE n.feed = :feed AND n.plan_id > p.plan_id AND n.owner <> p.owner
         ORDER BY n.plan_id LIMIT 1) AS next_planned_at
  FROM plan p LEFT JOIN plan_batch b USING (plan_id)
 WHERE p.feed = :feed AND p.owner = :owner
 GROUP BY p.plan_id
 ORDER BY p.plan_id;

-- name: findings_first_seen
-- Numbers of findings first seen in a span of time, whatever became of them.
SELECT finding_id FROM finding
 WHERE feed = :feed AND first_seen_at >= :since
   AND (:until::timestamptz IS NULL OR first_seen_at < :until::timestamptz)
 ORDER BY finding_id;

-- name: report_of_run
-- The newest report that a run has made.
SELECT report_id FROM report WHERE feed = :feed AND made_by = :owner
 ORDER BY report_id DESC LIMIT 1;
