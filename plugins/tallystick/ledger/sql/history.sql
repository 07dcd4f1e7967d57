-- name: verdict_changes
-- The feed's reports with which another verdict began, those up to an instant, newest first.
SELECT report_id, taken_at, verdict::text AS verdict, complete_up_to, made_by
  FROM (SELECT report_id, taken_at, verdict, complete_up_to, made_by,
               lag(verdict) OVER (ORDER BY report_id) AS verdict_before
          FROM report WHERE feed = :feed) told
 WHERE verdict IS DISTINCT FROM verdict_before
   AND (:until::timestamptz IS NULL OR taken_at <= :until::timestamptz)
 ORDER BY taken_at DESC, report_id DESC LIMIT :most;

-- name: closed_findings
-- Numbers of the feed's findings that were closed, those up to an instant, newest first.
SELECT finding_id FROM finding
 WHERE feed = :feed AND closed_at IS NOT NULL
   AND (:until::timestamptz IS NULL OR closed_at <= :until::timestamptz)
 ORDER BY closed_at DESC, finding_id DESC LIMIT :most;

-- name: waiver_steps
-- Who has asked for waivers of the feed's findings, approved, withdrawn or ended them: what was done at
-- once together, up to an instant, newest first.
SELECT min(taken_at) AS taken_at, step, taken_by, reason, expires_at,
       array_agg(DISTINCT finding_id) AS finding_ids
  FROM (SELECT finding_id, asked_at AS taken_at, 'asked' AS step, asked_by AS taken_by, reason, expires_at
          FROM waiver_request
         UNION ALL
        SELECT finding_id, ended_at, ending, ended_by, reason, expires_at
          FROM waiver_request WHERE ending <> 'approved'
         UNION ALL
        SELECT finding_id, waived_at, 'approved', approved_by, reason, expires_at FROM waiver
         UNION ALL
        SELECT w.finding_id, e.ended_at, 'ended', e.ended_by, e.reason, w.expires_at
          FROM waiver_ending e JOIN waiver w USING (waiver_id)) steps
  JOIN finding f USING (finding_id)
 WHERE f.feed = :feed
 GROUP BY step, taken_by, reason, expires_at, date_trunc('second', taken_at)
HAVING :until::timestamptz IS NULL OR min(taken_at) <= :until::timestamptz
 ORDER BY 1 DESC LIMIT :most;

-- name: recent_runs
-- The newest runs of each feed, oldest first: the offsets that waited at their look, the rows that they
-- landed, and the seconds from plan to publishing. What waited then is what was landed since, beside
-- what waits behind today's frontiers; nobody can tell it of another log, or of a look without all.
WITH run AS (
       SELECT f.feed, p.plan_id, p.planned_at, s.topic_id, s.leaderless_count, s.high_watermark_sum
         FROM feed f
        CROSS JOIN LATERAL (
              SELECT plan_id, planned_at, snapshot_id FROM plan
               WHERE plan.feed = f.feed ORDER BY plan_id DESC LIMIT :most) p
         LEFT JOIN broker_snapshot s USING (snapshot_id)
        WHERE f.feed = ANY(:feeds::text[])
), reach AS (
       SELECT feed, sum(frontier) AS frontier, min(topic_id) AS topic_id
         FROM (SELECT DISTINCT ON (feed, partition) feed, frontier, topic_id FROM generation
                WHERE feed = ANY(:feeds::text[]) ORDER BY feed, partition, ordinal DESC) newest
        GROUP BY feed
), landed AS (
       SELECT plan_id, sum(record_count) AS record_count, sum(span) AS span,
              max(published_at) AS published_at
         FROM (SELECT DISTINCT ON (b.batch_id) run.plan_id, b.record_count, b.published_at,
                      CASE WHEN NOT EXISTS (SELECT FROM replaced_file r WHERE r.batch_id = b.batch_id)
                           THEN b.record_count + b.hole_count END AS span
                 FROM run JOIN plan_batch USING (plan_id) JOIN batch b USING (batch_id)
                WHERE b.committed_by IS NOT NULL
                ORDER BY b.batch_id, run.plan_id DESC) own
        GROUP BY plan_id
)
SELECT run.feed, run.planned_at, coalesce(l.record_count, 0)::bigint AS record_count,
       extract(epoch FROM l.published_at - run.planned_at)::bigint AS seconds,
       CASE WHEN run.leaderless_count = 0 AND run.topic_id = reach.topic_id
            THEN greatest(0, run.high_watermark_sum - reach.frontier
                             + sum(coalesce(l.span, 0)) OVER (PARTITION BY run.feed
                                                              ORDER BY run.plan_id DESC))::bigint
            END AS lag
  FROM run LEFT JOIN landed l USING (plan_id) LEFT JOIN reach USING (feed)
 ORDER BY run.feed, run.plan_id;
