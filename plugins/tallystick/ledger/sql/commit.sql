-- name: verification
-- The proof that the batch was verified with.
SELECT verification_id, attempt_id, manifest, sha256, hashes FROM verification
 WHERE verification_id = :verification_id;

-- name: commit_batch
-- Commit the batch while this attempt's token is its newest: one row, or somebody else moved first.
-- The batch's own row is compared: a sub-select would read a snapshot, and a rival could slip between.
-- Its lease runs on: whoever has committed it is about to publish it.
UPDATE batch
   SET state = 'committed', committed_by = :attempt_id, committed_at = clock_timestamp(),
       commit_number = nextval('commit_number'), record_count = :record_count,
       hole_count = :hole_count, byte_count = :byte_count
 WHERE batch_id = :batch_id AND state = 'verified' AND newest_token = :token
   AND verification_id = :verification_id;

-- name: commit_ranges
-- Claimed -> committed, for claims that are exactly the manifest's ranges.
UPDATE offset_range r
   SET state = 'committed', record_count = landed.record_count, hole_count = landed.hole_count,
       replaces = false
  FROM unnest(:generation_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[],
              :record_counts::bigint[], :hole_counts::bigint[])
       AS landed(generation_id, from_offset, until_offset, record_count, hole_count)
 WHERE r.batch_id = :batch_id AND r.state = 'claimed'
   AND r.generation_id = landed.generation_id
   AND r.offsets = int8range(landed.from_offset, landed.until_offset);

-- name: parts_not_replaced
-- Rows of replaced files that the repair's claims leave out: the broker has them no more. A file has
-- no row at the holes of its own batch.
SELECT g.generation_id, g.topic, g.partition, lower(part) AS from_offset, upper(part) AS until_offset
  FROM replaced_file replaced
  JOIN batch old ON old.batch_id = replaced.old_batch_id
  JOIN file_slice s ON s.batch_id = replaced.old_batch_id AND s.name = replaced.name
  JOIN generation g ON g.feed = old.feed AND g.partition = s.partition AND g.ordinal = old.ordinal
 CROSS JOIN LATERAL (
       SELECT int8range(s.first_offset, s.last_offset, '[]') AS offsets) held
 CROSS JOIN LATERAL unnest(
       int8multirange(held.offsets)
       - coalesce((SELECT range_agg(c.offsets) FROM offset_range c
                    WHERE c.batch_id = replaced.batch_id AND c.state = 'claimed'
                      AND c.generation_id = g.generation_id), '{}')
       - coalesce((SELECT range_agg(h.runs) FROM hole h
                    WHERE h.batch_id = replaced.old_batch_id
                      AND h.generation_id = g.generation_id AND h.runs && held.offsets), '{}'))
       AS part
 WHERE replaced.batch_id = :batch_id
 ORDER BY g.generation_id, lower(part);

-- name: retract_ranges
-- Committed -> retracted, for every range that these offsets reach into; `shrink_retracted` follows.
UPDATE offset_range r SET state = 'retracted'
 WHERE r.state = 'committed'
   AND EXISTS (SELECT FROM unnest(:generation_ids::bigint[], :from_offsets::bigint[],
                                  :until_offsets::bigint[])
                           AS taken(generation_id, from_offset, until_offset)
                WHERE r.generation_id = taken.generation_id
                  AND r.offsets && int8range(taken.from_offset, taken.until_offset))
RETURNING r.range_id, r.generation_id, lower(r.offsets) AS from_offset,
          upper(r.offsets) AS until_offset, r.hole_count;

-- name: keep_remainders
-- What a retraction leaves of ranges stays committed, with the holes that count there.
INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
SELECT generation_id, offsets, 'committed', upper(offsets) - lower(offsets) - counted.holes,
       counted.holes
  FROM (SELECT generation_id, int8range(from_offset, until_offset) AS offsets
          FROM unnest(:generation_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[])
               AS kept(generation_id, from_offset, until_offset)) kept
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(upper(run) - lower(run)), 0)::bigint AS holes
         FROM (SELECT unnest(range_agg(h.runs * int8multirange(kept.offsets))) AS run
                 FROM hole h
                WHERE h.generation_id = kept.generation_id AND h.runs && kept.offsets
                  AND h.retracted_by IS NULL) runs) counted
RETURNING generation_id, lower(offsets) AS from_offset, hole_count;

-- name: shrink_retracted
-- A retracted row is what was taken of the range; its remainders are committed by now.
UPDATE offset_range r
   SET offsets = int8range(taken.from_offset, taken.until_offset), hole_count = taken.hole_count,
       record_count = taken.until_offset - taken.from_offset - taken.hole_count
  FROM unnest(:range_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[],
              :hole_counts::bigint[]) AS taken(range_id, from_offset, until_offset, hole_count)
 WHERE r.range_id = taken.range_id;

-- name: retract_holes
-- The holes of these offsets count no more; what is left of their runs goes on counting.
WITH taken AS (
       SELECT generation_id, range_agg(int8range(from_offset, until_offset)) AS offsets
         FROM unnest(:generation_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[])
              AS taken(generation_id, from_offset, until_offset)
        GROUP BY generation_id),
     gone AS (
       UPDATE hole h SET retracted_by = :batch_id FROM taken
        WHERE h.generation_id = taken.generation_id AND h.runs && taken.offsets
          AND h.retracted_by IS NULL
    RETURNING h.batch_id, h.generation_id, h.class, h.position, h.runs - taken.offsets AS runs)
INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)
SELECT batch_id, generation_id, class,
       (SELECT max(h.position) FROM hole h
         WHERE (h.batch_id, h.generation_id, h.class)
             = (gone.batch_id, gone.generation_id, gone.class))
         + row_number() OVER (PARTITION BY batch_id, generation_id, class ORDER BY position),
       runs, (SELECT sum(upper(run) - lower(run)) FROM unnest(runs) AS run)
  FROM gone WHERE NOT isempty(runs);

-- name: retract_files
-- The files that this repair replaces are read no more; each of them once, whoever repairs it.
INSERT INTO file_retraction (batch_id, name, replaced_by)
SELECT old_batch_id, name, batch_id FROM replaced_file WHERE batch_id = :batch_id;

-- name: commit_files
-- The batch's files are the ledger's from here on, with what each holds of each partition.
INSERT INTO file (batch_id, name, length_bytes, checksum, record_count, late_count, oldest_late_at,
                  partitions, first_offsets, span_blocks, span_rests, hole_counts)
SELECT :batch_id, name, length_bytes, checksum, record_count, late_count, oldest_late_at,
       partitions, first_offsets, span_blocks, span_rests, hole_counts
  FROM unnest(:names::text[], :lengths::bigint[], :checksums::text[], :record_counts::bigint[],
              :late_counts::bigint[], :oldest_late_at::timestamptz[])
       AS landed(name, length_bytes, checksum, record_count, late_count, oldest_late_at)
  LEFT JOIN (
       SELECT name, range_agg(int4range(partition, partition + 1)) AS partitions,
              array_agg(first_offset ORDER BY partition) AS first_offsets,
              array_agg((span / 32768)::integer ORDER BY partition) AS span_blocks,
              array_agg((span % 32768)::smallint ORDER BY partition) AS span_rests,
              array_agg(span - row_count ORDER BY partition) AS hole_counts
         FROM unnest(:slice_names::text[], :slice_partitions::integer[], :first_offsets::bigint[],
                     :spans::bigint[], :row_counts::bigint[])
              AS slice(name, partition, first_offset, span, row_count)
        GROUP BY name) held USING (name);

-- name: commit_holes
-- Offsets without a visible record, by cause, in pieces.
INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)
SELECT :batch_id, generation_id, class::hole_class, position, runs::int8multirange, hole_count
  FROM unnest(:generation_ids::bigint[], :classes::text[], :positions::integer[], :runs::text[],
              :hole_counts::bigint[])
       AS proven(generation_id, class, position, runs, hole_count);

-- name: move_anchors
-- Remember the last landed record of each partition; an older one never replaces a newer one.
INSERT INTO tail_anchor AS a
       (generation_id, record_offset, leader_epoch, content_hash, hash_version, batch_id)
SELECT generation_id, record_offset, leader_epoch, content_hash, hash_version, :batch_id
  FROM unnest(:generation_ids::bigint[], :record_offsets::bigint[], :leader_epochs::integer[],
              :content_hashes::bytea[], :hash_versions::integer[])
       AS seen(generation_id, record_offset, leader_epoch, content_hash, hash_version)
 ORDER BY generation_id
    ON CONFLICT (generation_id) DO UPDATE
   SET record_offset = excluded.record_offset, leader_epoch = excluded.leader_epoch,
       content_hash = excluded.content_hash, hash_version = excluded.hash_version,
       batch_id = excluded.batch_id
 WHERE a.record_offset < excluded.record_offset;

-- name: move_read_ends
-- Remember how far each log was read; never less far than before. What was planned was seen before:
-- only in a ledger that is rebuilt from manifests does a commit bring the witness with it.
UPDATE generation g
   SET read_until = seen.read_until,
       last_seen_until = greatest(g.last_seen_until, seen.read_until),
       seen_epoch = CASE WHEN g.last_seen_until < seen.read_until
                         THEN greatest(g.seen_epoch, seen.read_epoch) ELSE g.seen_epoch END
  FROM unnest(:generation_ids::bigint[], :read_untils::bigint[], :read_epochs::integer[])
       AS seen(generation_id, read_until, read_epoch)
 WHERE g.generation_id = seen.generation_id
   AND (g.read_until IS NULL OR g.read_until < seen.read_until);

-- name: lock_chain
-- Wait until no other commit of this feed is adding its link. The last lock that a commit takes, so
-- nobody waits in a circle; it ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('commit_link of ' || :feed, 0));

-- name: link_commit
-- Bind the commit to its manifest and to all commits of the feed before it.
INSERT INTO commit_link (feed, position, batch_id, manifest_sha256, previous, digest)
SELECT b.feed, coalesce(head.position, 0) + 1, b.batch_id, v.sha256, before.digest,
       pg_catalog.sha256(before.digest || v.sha256)
  FROM batch b
  JOIN verification v USING (batch_id, verification_id)
  LEFT JOIN LATERAL (
       SELECT l.position, l.digest FROM commit_link l
        WHERE l.feed = b.feed ORDER BY l.position DESC LIMIT 1) head ON true
 CROSS JOIN LATERAL (
       SELECT coalesce(head.digest, pg_catalog.sha256(convert_to(b.feed, 'UTF8'))) AS digest) before
 WHERE b.batch_id = :batch_id;

-- name: end_attempt_committed
-- The attempt committed its batch.
UPDATE attempt SET ended_at = clock_timestamp(), outcome = 'committed'
 WHERE attempt_id = :attempt_id;
