-- name: batch_counts
-- Batches of each feed by state, with what was committed.
SELECT f.feed, b.state::text AS state, count(b.batch_id) AS batches,
       coalesce(sum(b.record_count), 0)::bigint AS record_count,
       coalesce(sum(b.byte_count), 0)::bigint AS byte_count
  FROM feed f LEFT JOIN batch b USING (feed)
 GROUP BY 1, 2 ORDER BY 1, 2;

-- name: code_counts
-- Standing findings of each feed by code; those that two people accept now count as WAIVED.
SELECT f.feed, f.code,
       CASE WHEN f.state = 'waived' AND newest.is_in_force THEN 'WAIVED' ELSE f.verdict::text END
         AS verdict,
       count(*) AS findings
  FROM finding f
  LEFT JOIN LATERAL (
       SELECT clock_timestamp() < w.expires_at AS is_in_force FROM waiver w
        WHERE w.finding_id = f.finding_id ORDER BY w.waiver_id DESC LIMIT 1) newest ON true
 WHERE f.state IN ('open', 'waived')
 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: newest_batches
-- The newest published batch of each feed, and when its attempt began, was proven and ended. What a
-- rebuild has entered had no attempt of ours, and is left out.
SELECT f.feed, b.planned_at, a.started_at, v.verified_at, b.committed_at, b.published_at,
       b.byte_count, b.record_count
  FROM feed f
 CROSS JOIN LATERAL (
       SELECT * FROM batch WHERE batch.feed = f.feed AND batch.state = 'published'
        ORDER BY batch.batch_number DESC LIMIT 1) b
  JOIN attempt a ON a.attempt_id = b.committed_by
  JOIN verification v ON v.verification_id = b.verification_id
 ORDER BY f.feed;
