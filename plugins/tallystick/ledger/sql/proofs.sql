-- name: directories
-- Committed batches with their files as arrays, in the order of the commits; retracted files are not
-- among them.
SELECT b.batch_id, b.feed, b.root, b.ordinal, b.label, b.committed_by, b.state::text AS state,
       held.names, held.lengths, held.checksums, held.record_counts
  FROM batch b
 CROSS JOIN LATERAL (
       SELECT array_agg(f.name) AS names, array_agg(f.length_bytes) AS lengths,
              array_agg(f.checksum) AS checksums, array_agg(f.record_count) AS record_counts
         FROM file f
        WHERE f.batch_id = b.batch_id
          AND NOT EXISTS (SELECT FROM file_retraction gone
                           WHERE gone.batch_id = f.batch_id AND gone.name = f.name)) held
 WHERE b.feed = :feed AND b.committed_by IS NOT NULL
 ORDER BY b.commit_number;

-- name: retracted_files
-- Files of the feed that a repair has replaced.
SELECT gone.batch_id, gone.name
  FROM file_retraction gone JOIN batch b USING (batch_id)
 WHERE b.feed = :feed;

-- name: batches_holding
-- Batches with a file that holds one of these offsets.
SELECT DISTINCT b.batch_id
  FROM batch b JOIN file_slice s USING (batch_id)
 WHERE b.feed = :feed AND b.ordinal = :ordinal AND s.partition = :partition
   AND s.first_offset < :until_offset AND s.last_offset >= :from_offset
 ORDER BY b.batch_id;

-- name: newest_look
-- How far the readers' directories below a root were compared with this ledger.
SELECT changed_ms FROM storage_look WHERE feed = :feed AND root = :root;

-- name: note_look
-- Remember how far they were compared; a slower look never takes it back.
INSERT INTO storage_look AS l (feed, root, changed_ms) VALUES (:feed, :root, :changed_ms)
    ON CONFLICT (feed, root) DO UPDATE SET changed_ms = greatest(l.changed_ms, excluded.changed_ms);
