-- name: batch_counts
-- Batches of each feed by state, with what was committed.
SELECT f.feed, b.state::text AS state, count(b.batch_id) AS batches,
       coalesce(sum(b.record_count), 0)::bigint AS record_count,
       coalesce(sum(b.byte_count), 0)::bigint AS byte_count
  FROM feed f LEFT JOIN batch b USING (feed)
 GROUP BY 1, 2 ORDER BY 1, 2;

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
