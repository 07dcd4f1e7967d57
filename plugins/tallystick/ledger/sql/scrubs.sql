-- name: scrub_due
-- Published batches that were never read in full, or not for so long, or whose last full read found
-- something, with the bytes of their files that still stand. Never-tried ones come first, then by the
-- age of the last try: one that can't be read waits its turn like all others.
SELECT b.batch_id, held.byte_count, newest.checked_at
  FROM batch b
 CROSS JOIN LATERAL (
       SELECT sum(f.length_bytes)::bigint AS byte_count FROM file f
        WHERE f.batch_id = b.batch_id AND f.record_count > 0
          AND NOT EXISTS (SELECT FROM file_retraction gone
                           WHERE gone.batch_id = f.batch_id AND gone.name = f.name)) held
  LEFT JOIN LATERAL (
       SELECT c.checked_at, c.is_clean FROM batch_check c
        WHERE c.batch_id = b.batch_id AND c.level = 'L3' AND c.is_complete
        ORDER BY c.check_id DESC LIMIT 1) newest ON true
  LEFT JOIN LATERAL (
       SELECT c.checked_at FROM batch_check c
        WHERE c.batch_id = b.batch_id AND c.level = 'L3'
        ORDER BY c.check_id DESC LIMIT 1) tried ON true
 WHERE b.feed = :feed AND b.state = 'published' AND held.byte_count IS NOT NULL
   AND (newest.checked_at IS NULL OR NOT newest.is_clean
        OR newest.checked_at <= clock_timestamp() - make_interval(secs => :every_seconds::float8))
 ORDER BY tried.checked_at NULLS FIRST, b.commit_number;

-- name: scrub_standing
-- How many published batches with standing files there are, how many of them were never read in full,
-- and when the one was that was read longest ago.
SELECT count(*) AS batches, count(*) FILTER (WHERE newest.checked_at IS NULL) AS never_read,
       min(newest.checked_at) AS oldest_read_at
  FROM batch b
  LEFT JOIN LATERAL (
       SELECT c.checked_at FROM batch_check c
        WHERE c.batch_id = b.batch_id AND c.level = 'L3' AND c.is_complete
        ORDER BY c.check_id DESC LIMIT 1) newest ON true
 WHERE b.feed = :feed AND b.state = 'published'
   AND EXISTS (SELECT FROM file f
                WHERE f.batch_id = b.batch_id AND f.record_count > 0
                  AND NOT EXISTS (SELECT FROM file_retraction gone
                                   WHERE gone.batch_id = f.batch_id AND gone.name = f.name));

-- name: standing_files
-- The files of these batches that no repair has retracted.
SELECT f.batch_id, f.name FROM file f
 WHERE f.batch_id = ANY(:batch_ids::text[])
   AND NOT EXISTS (SELECT FROM file_retraction gone
                    WHERE gone.batch_id = f.batch_id AND gone.name = f.name);

-- name: fingerprints_of
-- What the first full read of these batches found, slice by slice, by this version of the row hash.
SELECT p.batch_id, p.name, p.partition, p.record_count, p.offset_sum, p.high_hash_sum,
       p.low_hash_sum, s.first_offset, s.last_offset
  FROM file_fingerprint p JOIN file_slice s USING (batch_id, name, partition)
 WHERE p.batch_id = ANY(:batch_ids::text[]) AND p.hash_version = :hash_version;

-- name: record_fingerprints
-- Keep what a full read found, for slices of which nothing is on record yet: the first one counts.
INSERT INTO file_fingerprint
       (batch_id, name, partition, hash_version, record_count, offset_sum, high_hash_sum,
        low_hash_sum)
SELECT :batch_id, name, partition, :hash_version, record_count, offset_sum, high_hash_sum,
       low_hash_sum
  FROM unnest(:names::text[], :partitions::integer[], :record_counts::bigint[],
              :offset_sums::numeric[], :high_hash_sums::bigint[], :low_hash_sums::bigint[])
       AS taken(name, partition, record_count, offset_sum, high_hash_sum, low_hash_sum)
    ON CONFLICT (batch_id, name, partition, hash_version) DO NOTHING;

-- name: record_checks
-- Deep looks at batches have taken place; one that is not complete leaves its batch due.
INSERT INTO batch_check (batch_id, level, is_clean, is_complete, sample)
SELECT batch_id, :level, :is_clean, :is_complete, :sample::jsonb
  FROM unnest(:batch_ids::text[]) AS looked(batch_id);

-- name: samples_due
-- Published batches of this log with offsets at the log's start or beyond, rows or holes, that no
-- repair has taken over, in partitions whose generation is the batch's and open. What is a hole by its
-- proof may be a record to another reader. Never-tried ones come first, the newest before all, then
-- by the age of the last try: one that can't be read waits its turn like all others. `newest` is how
-- many batches are looked at, null for all of them.
SELECT b.batch_id, tried.tries, tried.is_compared
  FROM (SELECT * FROM batch
         WHERE feed = :feed AND state = 'published' AND topic_id = :topic_id
         ORDER BY batch_number DESC LIMIT :newest::bigint) b
 CROSS JOIN LATERAL (
       SELECT count(*) AS tries, max(c.check_id) AS newest,
              coalesce(bool_or(c.is_complete), false) AS is_compared
         FROM batch_check c
        WHERE c.batch_id = b.batch_id AND c.level = 'L4') tried
 WHERE EXISTS (
       SELECT FROM (
              SELECT s.partition, s.last_offset FROM file_slice s
               WHERE s.batch_id = b.batch_id
                 AND NOT EXISTS (SELECT FROM file_retraction gone
                                  WHERE gone.batch_id = s.batch_id AND gone.name = s.name)
              UNION ALL
              SELECT of_hole.partition, upper(h.runs) - 1
                FROM hole h JOIN generation of_hole USING (generation_id)
               WHERE h.batch_id = b.batch_id AND h.retracted_by IS NULL
                 AND NOT EXISTS (SELECT FROM file_retraction gone
                                  WHERE gone.batch_id = h.batch_id)) held
         JOIN unnest(:partitions::integer[], :log_starts::bigint[]) AS log(partition, start)
           ON log.partition = held.partition AND held.last_offset >= log.start
         JOIN generation g
           ON g.feed = b.feed AND g.partition = held.partition AND g.ordinal = b.ordinal
          AND g.topic_id = b.topic_id AND g.state = 'open')
 ORDER BY tried.newest NULLS FIRST, b.batch_number DESC;

-- name: look_after_cleaning
-- Of this life of a topic, the first whole look after the last one that saw a cleanup policy with
-- `compact`: null where none came after it, and no row where none saw one.
SELECT (SELECT later.shown FROM broker_snapshot later
         WHERE later.feed = :feed AND later.topic_id = :topic_id AND later.leaderless_count = 0
           AND later.shown IS NOT NULL AND later.look_number > cleaning.look_number
         ORDER BY later.look_number LIMIT 1) AS shown
  FROM broker_snapshot cleaning
 WHERE cleaning.feed = :feed AND cleaning.topic_id = :topic_id AND cleaning.is_compacted
 ORDER BY cleaning.look_number DESC LIMIT 1;
