-- name: doubt_look
-- Another witness was silent: nothing is proven by this look alone.
UPDATE broker_snapshot SET doubt = :doubt WHERE snapshot_id = :snapshot_id AND doubt IS NULL;

-- name: look_places
-- When the broker was looked at, in the order in which the looks began; those that are whole.
SELECT snapshot_id, looked_at, border_at,
       looked_at > min(looked_at) OVER (ORDER BY look_number DESC) AS is_ahead
  FROM broker_snapshot
 WHERE feed = :feed AND shown IS NOT NULL
 ORDER BY look_number;

-- name: looks
-- What these looks showed; a look may have been thinned out meanwhile.
SELECT snapshot_id, looked_at, taken_at, recorded_at, topic_id, border_at, shown, doubt
  FROM broker_snapshot WHERE snapshot_id = ANY(:snapshot_ids::bigint[]) AND shown IS NOT NULL;

-- name: look_sums
-- The offsets that these looks showed, all partitions together.
SELECT snapshot_id, topic_id, recorded_at, leaderless_count AS leaderless,
       log_start_sum AS log_start, last_stable_sum AS last_stable,
       high_watermark_sum AS high_watermark
  FROM broker_snapshot WHERE snapshot_id = ANY(:snapshot_ids::bigint[]);

-- name: newest_bounds
-- All that the newest look showed, and how long its topic keeps records; when the first unread one may
-- be lost is what the newest report said.
SELECT looked_at, topic_id, shown, is_compacted, retention_ms, retention_bytes,
       (SELECT lost_at FROM report r
         WHERE r.feed = :feed ORDER BY report_id DESC LIMIT 1) AS lost_at
  FROM broker_snapshot WHERE feed = :feed AND shown IS NOT NULL ORDER BY look_number DESC LIMIT 1;

-- name: log_totals
-- What each generation's ranges add up to; what a repair has retracted counts no more.
SELECT g.generation_id, g.frontier - g.first_offset - coalesce(totals.below, 0) AS missing_below,
       coalesce(totals.record_count, 0) AS record_count, coalesce(totals.lost, 0) AS lost
  FROM generation g
  LEFT JOIN (SELECT r.generation_id,
               coalesce(sum(r.record_count) FILTER (WHERE r.state = 'committed'), 0)::bigint
                 AS record_count,
               coalesce(sum(upper(r.offsets) - lower(r.offsets)) FILTER (WHERE r.state = 'lost'), 0)
                 ::bigint AS lost,
               coalesce(sum(upper(r.offsets) - lower(r.offsets))
                 FILTER (WHERE upper(r.offsets) <= g.frontier), 0)::bigint AS below
          FROM offset_range r JOIN generation g USING (generation_id)
         WHERE g.feed = :feed AND r.state IN ('committed', 'lost')
         GROUP BY r.generation_id) totals USING (generation_id)
 WHERE g.feed = :feed;

-- name: hole_totals
-- Holes that count, by class, of each generation and of the windows between the edges; a batch
-- without a window counts before the first of these looks that is not older than its own.
WITH placed AS (
       SELECT b.batch_id,
              CASE WHEN b.window_from IS NULL
                   THEN width_bucket(coalesce(s.looked_at, b.label) - interval '1 microsecond',
                                     :looks_at::timestamptz[]) + 1
                   ELSE width_bucket(b.label, :edges::timestamptz[]) END AS stretch
         FROM batch b JOIN plan p USING (plan_id)
         LEFT JOIN broker_snapshot s USING (snapshot_id)
        WHERE b.feed = :feed AND b.committed_by IS NOT NULL)
SELECT h.generation_id, NULL::integer AS stretch, h.class::text AS hole_class,
       sum(h.hole_count)::bigint AS hole_count
  FROM hole h JOIN generation g USING (generation_id)
 WHERE g.feed = :feed AND h.retracted_by IS NULL
 GROUP BY h.generation_id, h.class
 UNION ALL
SELECT NULL, stretch, class::text, sum(hole_count)::bigint
  FROM placed
  JOIN (SELECT batch_id, class, hole_count FROM hole WHERE retracted_by IS NULL
         UNION ALL
        SELECT batch_id, class, hole_count FROM folded_holes) own USING (batch_id)
 GROUP BY stretch, class;

-- name: window_totals
-- What was landed for the windows that begin between the edges, without files that were retracted;
-- a batch without a window counts before the first of these looks that is not older than its own.
SELECT CASE WHEN b.window_from IS NULL
            THEN width_bucket(coalesce(s.looked_at, b.label) - interval '1 microsecond',
                              :looks_at::timestamptz[]) + 1
            ELSE width_bucket(b.label, :edges::timestamptz[]) END AS stretch,
       count(*) AS batches,
       sum(b.record_count - coalesce(gone.record_count, 0))::bigint AS record_count
  FROM batch b JOIN plan p USING (plan_id)
  LEFT JOIN broker_snapshot s USING (snapshot_id)
  LEFT JOIN (SELECT f.batch_id, sum(f.record_count) AS record_count
               FROM file_retraction JOIN file f USING (batch_id, name)
              GROUP BY f.batch_id) gone USING (batch_id)
 WHERE b.feed = :feed AND b.committed_by IS NOT NULL
 GROUP BY stretch;

-- name: accounted_totals
-- Offsets committed for the first time, or recorded as lost without ever having been committed,
-- between the instants.
WITH retracted AS MATERIALIZED (
       SELECT r.generation_id, r.offsets FROM offset_range r JOIN generation g USING (generation_id)
        WHERE g.feed = :feed AND r.state = 'retracted')
SELECT stretch, sum(span)::bigint AS span
  FROM (SELECT width_bucket(b.committed_at, :instants::timestamptz[]) AS stretch,
               b.record_count + b.hole_count AS span
          FROM batch b
         WHERE b.feed = :feed AND b.committed_by IS NOT NULL
           AND NOT EXISTS (SELECT FROM replaced_file r WHERE r.batch_id = b.batch_id)
         UNION ALL
        SELECT width_bucket(r.recorded_at, :instants::timestamptz[]),
               (SELECT coalesce(sum(upper(part) - lower(part)), 0)::bigint
                  FROM unnest(int8multirange(r.offsets) - coalesce(before.offsets, '{}')) AS part)
          FROM offset_range r JOIN generation g USING (generation_id)
         CROSS JOIN LATERAL (
               SELECT range_agg(c.offsets) AS offsets FROM retracted c
                WHERE c.generation_id = r.generation_id AND c.offsets && r.offsets) before
         WHERE g.feed = :feed AND r.state = 'lost') accounted
 GROUP BY stretch;

-- name: check_ages
-- Committed batches that still hold a file, by the time since their newest look at each level.
SELECT level, stretch, count(*) AS batches, sum(record_count)::bigint AS record_count,
       min(checked_at) AS oldest_at
  FROM (SELECT asked.level, b.record_count, newest.checked_at,
               width_bucket(
                 extract(epoch FROM clock_timestamp() - newest.checked_at)::float8,
                 :ages_seconds::float8[]) AS stretch
          FROM batch b
         CROSS JOIN (VALUES ('L2'), ('L3'), ('L4')) AS asked(level)
          LEFT JOIN LATERAL (
               SELECT c.checked_at FROM batch_check c
                WHERE c.batch_id = b.batch_id AND c.level = asked.level AND c.is_complete
                ORDER BY c.check_id DESC LIMIT 1) newest ON true
         WHERE b.feed = :feed AND b.committed_by IS NOT NULL
           AND EXISTS (SELECT FROM file f
                        WHERE f.batch_id = b.batch_id
                          AND NOT EXISTS (SELECT FROM file_retraction gone
                                           WHERE gone.batch_id = f.batch_id
                                             AND gone.name = f.name))) aged
 GROUP BY level, stretch
 ORDER BY level, stretch;

-- name: directories_at
-- Since when each directory that was as committed was asked no more.
SELECT min(l.compared_at) AS oldest_at
  FROM directory_look l JOIN batch b USING (batch_id)
 WHERE b.feed = :feed;

-- name: newest_window_end
-- The newest end of a window that was planned, at or before an instant.
SELECT max(window_until) AS window_until FROM plan
 WHERE feed = :feed AND window_until <= :until;

-- name: late_rows
-- Late rows in files that are read still, and the newest batch of these. Where an instant is given, of
-- files that have a row from before it, and lie under a later label: others in them may be younger.
SELECT sum(f.late_count)::bigint AS late_count, min(f.oldest_late_at) AS oldest_at,
       (array_agg(b.batch_id ORDER BY b.commit_number DESC))[1] AS batch_id
  FROM file f JOIN batch b USING (batch_id)
 WHERE b.feed = :feed AND f.late_count IS NOT NULL
   AND (:before::timestamptz IS NULL OR (f.oldest_late_at < :before AND b.label >= :before))
   AND NOT EXISTS (SELECT FROM file_retraction gone
                    WHERE gone.batch_id = f.batch_id AND gone.name = f.name);

-- name: store_report
-- Keep a whole report: it is there, or it is not.
INSERT INTO report
       (feed, taken_at, verdict, complete_up_to, lost_at, deepest, silent, made_by, document)
VALUES (:feed, :taken_at, :verdict::verdict, :complete_up_to, :lost_at, :deepest, :silent::text[],
        :made_by::text, :document)
RETURNING report_id;

-- name: tell_complete
-- What the feed is complete up to; who has begun to work it out earlier takes no later one's place.
INSERT INTO completeness (feed, up_to, by, told_at) VALUES (:feed, :up_to, :by, :told_at)
    ON CONFLICT (feed) DO UPDATE
       SET up_to = excluded.up_to, by = excluded.by, told_at = excluded.told_at
     WHERE completeness.told_at <= excluded.told_at;

-- name: newest_report
-- The report that was kept last; of those at or before an instant, where one is given, or the one of
-- a number. None is taken for later than this ledger's clock was when it was kept.
SELECT report_id, document FROM report
 WHERE feed = :feed AND (:until::timestamptz IS NULL OR least(taken_at, recorded_at) <= :until)
   AND (:number::bigint IS NULL OR report_id = :number::bigint)
 ORDER BY report_id DESC LIMIT 1;
