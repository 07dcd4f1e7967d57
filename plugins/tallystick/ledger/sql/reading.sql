-- name: batches
-- Batches as they stand now, oldest first: of a feed all, or those that are planned, landing or
-- verified; or the one of an id.
SELECT b.batch_id, b.feed, b.root, b.topic, b.cluster_id, b.topic_id, b.ordinal, b.label,
       b.state::text AS state, b.newest_token, b.committed_by, b.holder, b.verification_id,
       (SELECT count(*) FROM attempt a
         WHERE a.batch_id = b.batch_id AND a.application_id IS NOT NULL) AS applications,
       extract(epoch FROM b.lease_until - clock_timestamp())::float8 AS lease_seconds_left,
       b.window_from, b.window_until, b.planned_at, b.committed_at, b.published_at
  FROM batch b
 WHERE (:feed::text IS NULL OR b.feed = :feed::text)
   AND (:batch_id::text IS NULL OR b.batch_id = :batch_id::text)
   AND (NOT :only_unfinished::boolean OR b.state IN ('planned', 'landing', 'verified'))
 ORDER BY b.batch_number;

-- name: attempts
-- All attempts of these batches, by token.
SELECT a.attempt_id, a.batch_id, a.token, a.owner, a.started_at, a.application_id, a.ended_at,
       a.outcome
  FROM attempt a JOIN batch b USING (batch_id)
 WHERE a.batch_id = ANY(:batch_ids::text[])
 ORDER BY b.batch_number, a.token;

-- name: newest_checks
-- The newest deep look at each of these batches, by level.
SELECT DISTINCT ON (batch_id, level) batch_id, level, is_clean, is_complete, checked_at
  FROM batch_check WHERE batch_id = ANY(:batch_ids::text[])
 ORDER BY batch_id, level, check_id DESC;

-- name: replaced_batches
-- Those of the batches of which repairs have taken files: which repairs, and if all files are taken.
SELECT gone.batch_id, array_agg(DISTINCT gone.replaced_by ORDER BY gone.replaced_by) AS replaced_by,
       count(*) = (SELECT count(*) FROM file f WHERE f.batch_id = gone.batch_id) AS is_whole
  FROM file_retraction gone WHERE gone.batch_id = ANY(:batch_ids::text[])
 GROUP BY gone.batch_id;

-- name: offset_records
-- One offset in each life of a partition's log, the newest first: its range, and the hole that it is.
SELECT g.ordinal, g.topic_id, g.state = 'closed' AS has_ended, g.first_offset, g.begins_unseen,
       r.state::text AS state, coalesce(r.batch_id, h.batch_id) AS batch_id, r.loss_code,
       h.class::text AS hole
  FROM generation g
  LEFT JOIN offset_range r
    ON r.generation_id = g.generation_id AND r.offsets @> :offset::bigint
   AND r.state IN ('claimed', 'committed', 'lost', 'unreadable') AND NOT r.replaces
  LEFT JOIN hole h
    ON h.generation_id = g.generation_id AND h.runs @> :offset::bigint AND h.retracted_by IS NULL
 WHERE g.feed = :feed AND g.partition = :partition
 ORDER BY g.ordinal DESC;

-- name: batches_at
-- The batches whose window holds an instant; or those of the first plan after it that made any. None
-- that is given up.
SELECT batch_id FROM batch
 WHERE feed = :feed AND state <> 'abandoned'
   AND CASE WHEN :by_window::boolean
            THEN window_from <= :at::timestamptz AND window_until > :at::timestamptz
            ELSE plan_id = (SELECT plan_id FROM batch
                             WHERE feed = :feed AND state <> 'abandoned' AND planned_at > :at::timestamptz
                             ORDER BY batch_number LIMIT 1) END
 ORDER BY batch_number;

-- name: manifests_of
-- The committed proofs of these batches.
SELECT b.batch_id, v.manifest, v.sha256, v.hashes, b.root,
       checksums_now(b.batch_id) AS checksums
  FROM batch b JOIN verification v USING (verification_id)
 WHERE b.batch_id = ANY(:batch_ids::text[]) AND b.committed_by IS NOT NULL;

-- name: committed_batches
-- Batches after their commit, with their proofs, in the order of the commits: the one of an id, or a
-- feed's that are not published.
SELECT b.batch_id, b.committed_by, b.state::text AS state, v.manifest, v.sha256, v.hashes,
       v.file_sha256, b.root, checksums_now(b.batch_id) AS checksums,
       ARRAY(SELECT gone.name FROM file_retraction gone WHERE gone.batch_id = b.batch_id) AS replaced
  FROM batch b JOIN verification v USING (verification_id)
 WHERE b.committed_by IS NOT NULL
   AND (:batch_id::text IS NULL OR b.batch_id = :batch_id::text)
   AND (:feed::text IS NULL OR (b.feed = :feed::text AND b.state = 'committed'))
 ORDER BY b.commit_number;

-- name: mark_published
-- committed -> published, once.
UPDATE batch SET state = 'published', published_at = clock_timestamp(), published_by = :owner,
       holder = NULL, lease_until = NULL
 WHERE batch_id = :batch_id AND state = 'committed';

-- name: end_not_shown
-- Readers see the batch: nothing is said of it any more for not being published.
UPDATE finding f SET state = 'remedied', closed_at = clock_timestamp(),
       closed_by = 'Batch ' || b.batch_id || ' is published.', closed_in = b.published_by
  FROM batch b
 WHERE b.batch_id = :batch_id AND f.feed = b.feed AND f.code = :code AND f.subject = b.batch_id
   AND f.state IN ('open', 'waived');

-- name: published_by
-- The feed's batches that a run has published, in all its tries.
SELECT batch_id FROM batch WHERE feed = :feed AND published_by = :owner ORDER BY batch_number;

-- name: dead_attempts
-- Attempts that can never commit any more, or are published, and whose directories are not swept.
SELECT a.attempt_id, a.batch_id, a.token, a.owner, b.root,
       (b.committed_by IS NOT DISTINCT FROM a.attempt_id) AS has_committed,
       b.state IN ('published', 'abandoned') AS is_over
  FROM attempt a JOIN batch b USING (batch_id)
 WHERE a.swept_at IS NULL AND b.feed = :feed
   AND (a.token < b.newest_token
        OR b.state IN ('published', 'abandoned')
        OR b.committed_by <> a.attempt_id)
 ORDER BY b.batch_number, a.token;

-- name: batches_among
-- Those of the batches that are the feed's, and in one of these states.
SELECT batch_id FROM batch
 WHERE feed = :feed AND state::text = ANY(:states::text[]) AND batch_id = ANY(:batch_ids::text[])
 ORDER BY batch_number;

-- name: offsets_at_risk
-- What these batches have claimed and no commit holds. The offsets of a repair are committed already,
-- to files that may be gone: they are at risk until each of these files was replaced. What was lost
-- with such a file no attempt of the repair has held; what could not be read, an earlier one may have.
-- What a batch has released may be lost by now, for another batch or for none. A commit whose rows, or
-- whose file, a finding doubts holds nothing: what the batch has landed is at risk again, until another
-- file took the place of that one. Which codes do so, the rules say (Trait).
WITH gone AS (
  SELECT g.generation_id, range_agg(r.offsets) AS offsets
    FROM offset_range r JOIN generation g USING (generation_id)
   WHERE r.state = 'lost'
     AND g.feed IN (SELECT feed FROM batch WHERE batch_id = ANY(:batch_ids::text[]))
   GROUP BY g.generation_id
), doubted AS (
  SELECT g.generation_id, range_agg(int8range(f.from_offset, f.until_offset)) AS offsets
    FROM finding f JOIN generation g
      ON g.feed = f.feed AND g.partition = f.partition AND g.ordinal = f.generation
   WHERE (f.code = ANY(:doubting_rows::text[])
          OR (f.code = ANY(:doubting_a_file::text[]) AND f.evidence ? 'file'))
     AND f.state IN ('open', 'waived')
     AND f.feed IN (SELECT feed FROM batch WHERE batch_id = ANY(:batch_ids::text[]))
     AND NOT EXISTS (SELECT FROM file_retraction old
                      WHERE old.batch_id = f.evidence ->> 'batch' AND old.name = f.evidence ->> 'file')
   GROUP BY g.generation_id
), held AS (
  SELECT r.batch_id, r.generation_id, r.state::text AS state, r.replaces,
         int8multirange(r.offsets)
         - CASE WHEN EXISTS (SELECT FROM replaced_file old
                              WHERE old.batch_id = r.batch_id
                                AND NOT EXISTS (SELECT FROM file_retraction gone
                                                 WHERE gone.batch_id = old.old_batch_id
                                                   AND gone.name = old.name))
                THEN '{}'
                ELSE coalesce((SELECT range_agg(c.offsets) FROM offset_range c
                                WHERE c.generation_id = r.generation_id AND c.state = 'committed'
                                  AND NOT c.replaces AND c.offsets && r.offsets), '{}')
                     - coalesce((SELECT d.offsets FROM doubted d
                                  WHERE d.generation_id = r.generation_id), '{}') END AS offsets
    FROM offset_range r
   WHERE r.batch_id = ANY(:batch_ids::text[])
     AND (r.state IN ('claimed', 'released', 'unreadable')
          OR (r.state = 'lost' AND r.loss_code <> :given_up))
  UNION ALL
  -- By its files: its ranges may be folded into others.
  SELECT b.batch_id, g.generation_id, 'committed', false,
         range_agg(int8range(s.first_offset, s.last_offset + 1))
         * (coalesce((SELECT d.offsets FROM doubted d WHERE d.generation_id = g.generation_id), '{}')
            + coalesce((SELECT l.offsets FROM gone l WHERE l.generation_id = g.generation_id), '{}'))
    FROM batch b JOIN file_slice s USING (batch_id)
    JOIN generation g ON g.feed = b.feed AND g.partition = s.partition AND g.ordinal = b.ordinal
   WHERE b.batch_id = ANY(:batch_ids::text[]) AND b.committed_by IS NOT NULL
   GROUP BY b.batch_id, g.generation_id
)
SELECT h.batch_id, CASE WHEN l.offsets && part THEN 'lost' ELSE h.state END AS state,
       h.replaces, g.state::text AS log_state, g.topic, g.partition,
       g.cluster_id, g.topic_id, lower(part) AS from_offset, upper(part) AS until_offset
  FROM held h JOIN generation g USING (generation_id) LEFT JOIN gone l USING (generation_id)
 CROSS JOIN LATERAL unnest(h.offsets) AS part
 ORDER BY h.batch_id, g.generation_id, lower(part);

-- name: committed_copies
-- The committed files, but the retracted ones, that hold offsets which this batch has claimed or
-- landed, with the offsets that both have: its attempts may hold the same rows.
WITH asked AS (
  SELECT g.feed, g.ordinal, g.partition, r.offsets
    FROM offset_range r JOIN generation g USING (generation_id)
   WHERE r.batch_id = :batch_id
  UNION
  -- By its files: its ranges may be folded into others.
  SELECT b.feed, b.ordinal, s.partition, int8range(s.first_offset, s.last_offset + 1)
    FROM batch b JOIN file_slice s USING (batch_id)
   WHERE b.batch_id = :batch_id AND b.committed_by IS NOT NULL
)
SELECT b.batch_id, b.feed, b.root, b.topic, b.ordinal, b.label, b.committed_by,
       b.state::text AS state, f.name, f.length_bytes, f.checksum,
       s.partition,
       greatest(lower(a.offsets), s.first_offset) AS from_offset,
       least(upper(a.offsets), s.last_offset + 1) AS until_offset
  FROM asked a
  JOIN batch b ON b.feed = a.feed AND b.ordinal = a.ordinal AND b.committed_by IS NOT NULL
  JOIN file_now f ON f.batch_id = b.batch_id
  JOIN file_slice s ON s.batch_id = f.batch_id AND s.name = f.name AND s.partition = a.partition
   AND s.first_offset < upper(a.offsets) AND s.last_offset >= lower(a.offsets)
 WHERE NOT EXISTS (SELECT FROM file_retraction gone
                    WHERE gone.batch_id = f.batch_id AND gone.name = f.name)
 ORDER BY b.commit_number, f.name COLLATE "C", s.partition, lower(a.offsets);

-- name: enter_move
-- Who says that published batches lie below another root.
INSERT INTO moved_batch (batch_id, from_root, to_root, moved_by)
SELECT batch_id, root, :to_root, :owner FROM batch
 WHERE batch_id = ANY(:batch_ids::text[]) AND state = 'published' AND root = :from_root;

-- name: move_batches
-- They lie there from now on.
UPDATE batch SET root = :to_root
 WHERE batch_id = ANY(:batch_ids::text[]) AND state = 'published' AND root = :from_root;

-- name: roots
-- Every root below which the feed has batches; with the former ones, from which some were moved.
SELECT root FROM batch WHERE feed = :feed
 UNION
SELECT m.from_root FROM moved_batch m JOIN batch b USING (batch_id)
 WHERE b.feed = :feed AND :with_former::boolean
 ORDER BY root;

-- name: on_record
-- What the feed has landed, from where to where and how; and which others have landed this topic.
SELECT (SELECT topic FROM feed WHERE feed = :feed) AS topic,
       ARRAY(SELECT DISTINCT root FROM batch WHERE feed = :feed ORDER BY root) AS roots,
       ARRAY(SELECT DISTINCT v.isolation FROM batch b JOIN verification v USING (verification_id)
              WHERE b.feed = :feed AND b.committed_by IS NOT NULL) AS isolations,
       ARRAY(SELECT f.feed FROM feed f LEFT JOIN feed_retirement ended USING (feed)
              WHERE f.topic = :topic AND f.feed <> :feed AND ended.feed IS NULL) AS others,
       (SELECT format('%s on %s: %s', retired_by,
                      to_char(retired_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), reason)
          FROM feed_retirement WHERE feed = :feed) AS retired;

-- name: waiting_batches
-- Unfinished batches that nobody holds, and since when: a lease that was given back leaves no date,
-- but the attempt that gave it back has one. A committed batch has waited since its commit: while its
-- lease runs it is on its way, unless it is on record (N3) that it could not be published.
SELECT b.batch_id, b.state::text AS state,
       extract(epoch FROM clock_timestamp()
         - coalesce(b.committed_at, b.lease_until, newest.ended_at, b.planned_at))::float8 AS seconds
  FROM batch b
  LEFT JOIN attempt newest ON newest.batch_id = b.batch_id AND newest.token = b.newest_token
 WHERE b.feed = :feed AND b.state IN ('planned', 'landing', 'verified', 'committed')
   AND (b.lease_until IS NULL OR b.lease_until <= clock_timestamp()
        OR (b.state = 'committed'
            AND EXISTS (SELECT FROM finding f
                         WHERE f.feed = b.feed AND f.code = :code AND f.name = :name
                           AND f.subject = b.batch_id AND f.state IN ('open', 'waived'))))
 ORDER BY b.batch_number;

-- name: mark_swept
-- The attempt's staging directory is gone.
UPDATE attempt SET swept_at = clock_timestamp()
 WHERE attempt_id = :attempt_id AND swept_at IS NULL;

-- name: files
-- All committed files of the feed but the retracted ones, or all of a batch, in the order of commit,
-- then by name.
SELECT b.batch_id, b.committed_by, b.state::text AS state, f.name, f.length_bytes, f.checksum,
       numbers_in(f.partitions) AS partitions, f.first_offsets, f.span_blocks, f.span_rests,
       f.hole_counts, gone.replaced_by
  FROM batch b JOIN file_now f USING (batch_id) LEFT JOIN file_retraction gone USING (batch_id, name)
 WHERE b.committed_by IS NOT NULL
   AND (:feed::text IS NULL OR (b.feed = :feed::text AND gone.replaced_by IS NULL))
   AND (:batch_id::text IS NULL OR b.batch_id = :batch_id::text)
 ORDER BY b.commit_number, f.name COLLATE "C";

-- name: bytes_per_record
-- Landed bytes per row over the feed's newest batches that hold rows.
SELECT sum(byte_count)::float8 / sum(record_count)::float8 AS bytes_per_record
  FROM (SELECT byte_count, record_count FROM batch
         WHERE feed = :feed AND record_count > 0
         ORDER BY batch_number DESC LIMIT 20) newest;

-- name: all_generations
-- All generations of the feed by partition, oldest first, each with its tail.
SELECT * FROM generation_account WHERE feed = :feed ORDER BY partition, ordinal;

-- name: claimed_generations
-- The generations of which a batch claims offsets, by partition.
SELECT * FROM generation_account
 WHERE generation_id IN (SELECT r.generation_id FROM offset_range r
                          WHERE r.batch_id = :batch_id AND r.state = 'claimed')
 ORDER BY partition;

-- name: ended_generations
-- The logs that are stopped and have no later life, and those that ended with their topic, by partition,
-- oldest first: each with the finding code and the reason.
SELECT a.*, g.ending_code, g.ending_reason
  FROM generation g JOIN generation_account a USING (generation_id)
 WHERE g.feed = :feed
   AND (g.ending_code = :recreated
        OR (g.state = 'stopped'
            AND NOT EXISTS (SELECT FROM generation later
                             WHERE later.feed = g.feed AND later.partition = g.partition
                               AND later.ordinal > g.ordinal)))
 ORDER BY g.partition, g.ordinal;

-- name: unseen_beginnings
-- The logs that began above 0 when the feed first saw them, by partition, oldest first.
SELECT a.* FROM generation g JOIN generation_account a USING (generation_id)
 WHERE g.feed = :feed AND g.begins_unseen ORDER BY g.partition, g.ordinal;

-- name: lost_ranges
-- Ranges recorded as lost, by partition and offset.
SELECT r.generation_id, lower(r.offsets) AS from_offset, upper(r.offsets) AS until_offset,
       r.loss_code
  FROM offset_range r JOIN generation g USING (generation_id)
 WHERE g.feed = :feed AND r.state = 'lost'
 ORDER BY g.partition, g.ordinal, lower(r.offsets);
