-- name: batch_places
-- Committed batches without their files, in the order of the commits.
SELECT b.batch_id, b.feed, b.root, b.ordinal, b.label, b.committed_by, b.state::text AS state,
       v.file_sha256 AS manifest_sha256,
       CASE WHEN v.hashes IS NULL THEN v.sha256 END AS account_sha256
  FROM batch b JOIN verification v USING (verification_id)
 WHERE b.feed = :feed AND b.committed_by IS NOT NULL
 ORDER BY b.commit_number;

-- name: directories
-- Committed batches, or these of them, with their files as arrays, in the order of the commits;
-- retracted files are not among them.
SELECT b.batch_id, b.feed, b.root, b.ordinal, b.label, b.committed_by, b.state::text AS state,
       v.file_sha256 AS manifest_sha256,
       CASE WHEN v.hashes IS NULL THEN v.sha256 END AS account_sha256,
       held.names, held.lengths, held.checksums, held.record_counts
  FROM batch b JOIN verification v USING (verification_id)
 CROSS JOIN LATERAL (
       SELECT array_agg(f.name) AS names, array_agg(f.length_bytes) AS lengths,
              array_agg(f.checksum) AS checksums, array_agg(f.record_count) AS record_counts
         FROM file_now f
        WHERE f.batch_id = b.batch_id
          AND NOT EXISTS (SELECT FROM file_retraction gone
                           WHERE gone.batch_id = f.batch_id AND gone.name = f.name)) held
 WHERE b.feed = :feed AND b.committed_by IS NOT NULL
   AND (:batch_ids::text[] IS NULL OR b.batch_id = ANY(:batch_ids::text[]))
 ORDER BY b.commit_number;

-- name: record_checksum
-- A file is stored in another way, and has the bytes that were committed.
INSERT INTO stored_anew (batch_id, name, checksum) VALUES (:batch_id, :name, :checksum);

-- name: replacements
-- Files of the feed that a repair has replaced, and by which batch.
SELECT gone.batch_id, gone.name, gone.replaced_by
  FROM file_retraction gone JOIN batch b USING (batch_id)
 WHERE b.feed = :feed;

-- name: batches_holding
-- Batches with a file that holds one of these offsets.
SELECT DISTINCT b.batch_id
  FROM batch b JOIN file held USING (batch_id) JOIN file_slice s USING (batch_id, name)
 WHERE b.feed = :feed AND b.ordinal = :ordinal AND held.partitions @> :partition::integer
   AND s.partition = :partition AND s.first_offset < :until_offset AND s.last_offset >= :from_offset
 ORDER BY b.batch_id;

-- name: committed_within
-- The committed parts of these offsets. Spelled as the predicate of the exclusion constraint, whose
-- index finds them.
SELECT greatest(lower(r.offsets), :from_offset::bigint) AS from_offset,
       least(upper(r.offsets), :until_offset::bigint) AS until_offset
  FROM offset_range r JOIN generation g USING (generation_id)
 WHERE g.feed = :feed AND g.ordinal = :ordinal AND g.partition = :partition
   AND r.state = 'committed' AND NOT r.replaces
   AND r.offsets && int8range(:from_offset, :until_offset)
 ORDER BY lower(r.offsets);

-- name: compared_hours
-- The hours' directories that were compared with this ledger, as they were shown.
SELECT path, version FROM hour_look WHERE feed = :feed;

-- name: note_hours
-- Remember as what they were compared. A feed without a plan has no row to keep it under, and is
-- looked at in full again.
INSERT INTO hour_look (feed, path, version)
SELECT feed, path, version
  FROM feed CROSS JOIN unnest(:paths::text[], :versions::text[]) AS seen(path, version)
 WHERE feed = :feed
 ORDER BY path
    ON CONFLICT (feed, path) DO UPDATE SET version = excluded.version;

-- name: directory_looks
-- Directories that were as committed when they were asked, no longer ago than this, and that no look
-- at their rows has found otherwise since, or could not read. What L4 says is of the broker, too.
-- While a log that keeps less than a week may have their rows, a seventh of what it keeps is the most.
-- A repair changes what the ledger has of a directory, without a change of the directory at first.
SELECT l.batch_id, l.digest,
       CASE WHEN NOT EXISTS (SELECT FROM file_retraction gone WHERE gone.batch_id = l.batch_id)
            THEN l.shown_as END AS shown_as
  FROM directory_look l JOIN batch b USING (batch_id)
 CROSS JOIN (SELECT least((SELECT make_interval(secs => least(s.retention_ms, 604800000) / 1000.0)
                             FROM broker_snapshot s WHERE s.feed = :feed
                            ORDER BY s.look_number DESC LIMIT 1), '7 days') AS retention) kept
 WHERE b.feed = :feed
   AND l.compared_at > clock_timestamp()
                       - CASE WHEN b.committed_at > clock_timestamp() - kept.retention
                              THEN least(:every::interval, kept.retention / 7)
                              ELSE :every::interval END
   AND l.compared_at <= clock_timestamp()
   AND NOT EXISTS (SELECT FROM batch_check c
                    WHERE c.batch_id = l.batch_id AND c.level <> 'L4' AND NOT c.is_clean
                      AND c.checked_at > l.compared_at);

-- name: note_directory_looks
-- Directories are as committed, by a look that began then.
INSERT INTO directory_look (batch_id, digest, shown_as, compared_at)
SELECT batch_id, digest, shown_as, :compared_at
  FROM unnest(:batch_ids::text[], :digests::bytea[], :shown_as::bytea[])
       AS seen(batch_id, digest, shown_as)
 ORDER BY batch_id
    ON CONFLICT (batch_id) DO UPDATE
   SET digest = excluded.digest, shown_as = excluded.shown_as, compared_at = excluded.compared_at;

-- name: note_shown_directories
-- What was listed in directories is what was compared before; only how they were shown is news.
UPDATE directory_look l SET shown_as = seen.shown_as
  FROM (SELECT batch_id, s.shown_as
          FROM directory_look
          JOIN unnest(:batch_ids::text[], :digests::bytea[], :shown_as::bytea[])
               AS s(batch_id, digest, shown_as) USING (batch_id, digest)
         WHERE directory_look.shown_as IS DISTINCT FROM s.shown_as
         ORDER BY batch_id FOR UPDATE OF directory_look) seen
 WHERE l.batch_id = seen.batch_id;

-- name: forget_directory_looks
-- Directories are not as committed, so each look asks them again. Two looks lock rows in one order.
DELETE FROM directory_look
 WHERE batch_id IN (SELECT batch_id FROM directory_look WHERE batch_id = ANY(:batch_ids::text[])
                     ORDER BY batch_id FOR UPDATE);

-- name: hole_counts
-- Holes that count, of each generation by class.
SELECT h.generation_id, h.class::text AS hole_class, sum(h.hole_count)::bigint AS hole_count
  FROM hole h JOIN generation g USING (generation_id)
 WHERE g.feed = :feed AND h.retracted_by IS NULL
 GROUP BY h.generation_id, h.class;

-- name: offsets_due
-- Published batches whose rows were not looked at for so long, or were not as they should be then:
-- these first, then never-tried ones, then by the age of the last try. One that can't be read waits
-- its turn like all others.
SELECT b.batch_id, b.record_count
  FROM batch b
  LEFT JOIN LATERAL (
       SELECT c.checked_at, c.is_clean FROM batch_check c
        WHERE c.batch_id = b.batch_id AND c.level <> 'L4' AND c.is_complete
        ORDER BY c.check_id DESC LIMIT 1) newest ON true
  LEFT JOIN LATERAL (
       SELECT c.checked_at, c.is_clean OR NOT c.is_complete AS is_no_trouble FROM batch_check c
        WHERE c.batch_id = b.batch_id AND c.level <> 'L4' ORDER BY c.check_id DESC LIMIT 1) tried ON true
 WHERE b.feed = :feed AND b.state = 'published' AND b.record_count > 0
   AND EXISTS (SELECT FROM file f
                WHERE f.batch_id = b.batch_id AND f.record_count > 0
                  AND NOT EXISTS (SELECT FROM file_retraction gone
                                   WHERE gone.batch_id = f.batch_id AND gone.name = f.name))
   AND (newest.checked_at IS NULL OR NOT newest.is_clean
        OR newest.checked_at <= clock_timestamp() - :every::interval)
 ORDER BY coalesce(tried.is_no_trouble, true), tried.checked_at NULLS FIRST, b.commit_number
 LIMIT :most;
