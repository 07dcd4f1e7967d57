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
