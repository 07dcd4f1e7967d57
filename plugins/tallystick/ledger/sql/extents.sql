-- name: logs_of_findings
-- The logs of these partitions and ordinals: which topic they are of, and how far they are landed.
SELECT g.partition, g.ordinal, g.topic_id, g.frontier
  FROM unnest(:partitions::integer[], :ordinals::integer[]) AS asked(partition, ordinal)
  JOIN generation g USING (partition, ordinal)
 WHERE g.feed = :feed;

-- name: files_of_findings
-- What these batches are of, how much they hold or claim, and their files: all, or the one of a name.
SELECT b.batch_id, asked.name AS asked_name, b.label, b.window_from, b.window_until, b.record_count,
       coalesce(b.record_count + b.hole_count,
                (SELECT sum(upper(r.offsets) - lower(r.offsets)) FROM offset_range r
                  WHERE r.batch_id = b.batch_id AND r.state = 'claimed'), 0)::bigint AS span,
       f.name, f.length_bytes, f.checksum, numbers_in(f.partitions) AS partitions, f.first_offsets,
       f.span_blocks, f.span_rests, f.hole_counts
  FROM unnest(:batch_ids::text[], :names::text[]) AS asked(batch_id, name)
  JOIN batch b USING (batch_id)
  LEFT JOIN file f ON f.batch_id = b.batch_id AND (asked.name IS NULL OR f.name = asked.name);

-- name: looks_before
-- By batch, when its plan was made by record time, and the look before that of its plan.
SELECT b.batch_id, s.border_at IS NOT NULL AS is_by_time, before.looked_at, before.topic_id, before.shown
  FROM batch b JOIN plan p USING (plan_id)
  LEFT JOIN broker_snapshot s USING (snapshot_id)
  LEFT JOIN LATERAL (
       SELECT looked_at, topic_id, shown FROM broker_snapshot e
        WHERE e.feed = b.feed AND e.look_number < s.look_number AND e.shown IS NOT NULL
          AND s.border_at IS NULL
        ORDER BY e.look_number DESC LIMIT 1) before ON true
 WHERE b.batch_id = ANY(:batch_ids::text[]);
