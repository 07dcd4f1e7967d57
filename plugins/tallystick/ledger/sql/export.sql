-- name: export_schema_version
-- The migrations that were applied.
SELECT row_to_json(t)::text AS line FROM schema_version t ORDER BY version;

-- name: export_feed
-- Feeds, in the order of their first plans.
SELECT row_to_json(t)::text AS line FROM feed t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY first_planned_at, feed;

-- name: export_generation
-- Lives of logs, in the order in which they were opened.
SELECT row_to_json(t)::text AS line FROM generation t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY generation_id;

-- name: export_broker_snapshot
-- What the broker said, look after look; what it said of each partition is compressed.
SELECT (to_jsonb(t) - 'shown')::text AS line, t.shown FROM broker_snapshot t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY snapshot_id;

-- name: export_plan
-- Plans, in their order.
SELECT row_to_json(t)::text AS line FROM plan t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY plan_id;

-- name: export_batch
-- Batches, in the order in which they were planned.
SELECT row_to_json(t)::text AS line FROM batch t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY batch_number;

-- name: export_feed_retirement
-- Which feeds have ended.
SELECT row_to_json(t)::text AS line FROM feed_retirement t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY feed;

-- name: export_moved_batch
-- Which batches lie below another root by now, in the order in which that was entered.
SELECT row_to_json(t)::text AS line FROM moved_batch t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY t.moved_at, b.batch_number;

-- name: export_plan_batch
-- Which batches each plan was to carry out, its own before the adopted ones.
SELECT row_to_json(t)::text AS line FROM plan_batch t JOIN plan p USING (plan_id)
 WHERE :feed::text IS NULL OR p.feed = :feed
 ORDER BY plan_id, is_adopted, position;

-- name: export_attempt
-- Attempts, by batch and token.
SELECT row_to_json(t)::text AS line FROM attempt t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.batch_number, t.token;

-- name: export_verification
-- Proofs, in the order in which they were kept; both parts of the manifest are compressed.
SELECT (to_jsonb(t) - 'manifest' - 'hashes')::text AS line, t.manifest, t.hashes, t.sha256
  FROM verification t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY t.verification_id;

-- name: export_offset_range
-- Ranges of every state, by log and offset; of the same offset, the older row first.
SELECT row_to_json(t)::text AS line FROM offset_range t JOIN generation g USING (generation_id)
 WHERE :feed::text IS NULL OR g.feed = :feed
 ORDER BY t.generation_id, lower(t.offsets), t.range_id;

-- name: export_tail_anchor
-- The last landed record of each log.
SELECT row_to_json(t)::text AS line FROM tail_anchor t JOIN generation g USING (generation_id)
 WHERE :feed::text IS NULL OR g.feed = :feed
 ORDER BY generation_id;

-- name: export_file
-- Files and what they hold, in the order in which their batches were committed.
SELECT row_to_json(t)::text AS line FROM file t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.commit_number, t.name COLLATE "C";

-- name: export_stored_anew
-- Other checksums of the same bytes, in the order in which they were proven.
SELECT row_to_json(t)::text AS line FROM stored_anew t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY t.proven_at, t.batch_id, t.name COLLATE "C";

-- name: export_hole
-- Offsets without a visible record, by batch, log, class and piece; folded ones last.
SELECT row_to_json(t)::text AS line
  FROM hole t JOIN generation g USING (generation_id) LEFT JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR g.feed = :feed
 ORDER BY b.commit_number, t.generation_id, t.class, t.position, lower(t.runs);

-- name: export_folded_holes
-- How many holes of each batch are folded, in the order of the commits.
SELECT row_to_json(t)::text AS line FROM folded_holes t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.commit_number, t.class;

-- name: export_replaced_file
-- What each repair was planned to replace.
SELECT row_to_json(t)::text AS line FROM replaced_file t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.batch_number, t.old_batch_id, t.name COLLATE "C";

-- name: export_file_retraction
-- What each repair has replaced.
SELECT row_to_json(t)::text AS line FROM file_retraction t JOIN batch b ON b.batch_id = t.replaced_by
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.commit_number, t.batch_id, t.name COLLATE "C";

-- name: export_commit_link
-- The chain of commits, from its beginning.
SELECT row_to_json(t)::text AS line FROM commit_link t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY feed, position;

-- name: export_finding
-- Findings of every state, in the order in which they were first seen.
SELECT row_to_json(t)::text AS line FROM finding t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY finding_id;

-- name: export_waiver_request
-- Who asked for a waiver of which finding, and what became of it.
SELECT row_to_json(t)::text AS line FROM waiver_request t JOIN finding f USING (finding_id)
 WHERE :feed::text IS NULL OR f.feed = :feed
 ORDER BY request_id;

-- name: export_waiver
-- Who accepted which finding.
SELECT row_to_json(t)::text AS line FROM waiver t JOIN finding f USING (finding_id)
 WHERE :feed::text IS NULL OR f.feed = :feed
 ORDER BY waiver_id;

-- name: export_waiver_ending
-- Who has ended a waiver before its time.
SELECT row_to_json(t)::text AS line
  FROM waiver_ending t JOIN waiver w USING (waiver_id) JOIN finding f USING (finding_id)
 WHERE :feed::text IS NULL OR f.feed = :feed
 ORDER BY t.ended_at, waiver_id;

-- name: export_batch_check
-- Deep looks at batches, in their order.
SELECT row_to_json(t)::text AS line FROM batch_check t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY check_id;

-- name: export_file_fingerprint
-- Contents of files as first read, in the order of the commits.
SELECT row_to_json(t)::text AS line FROM file_fingerprint t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.commit_number, t.name COLLATE "C", t.partition, t.hash_version;

-- name: export_report
-- Reports, in the order in which they were kept; the document is compressed.
SELECT (to_jsonb(t) - 'document')::text AS line, t.document FROM report t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY report_id;

-- name: export_completeness
-- What feeds were said to be complete up to.
SELECT row_to_json(t)::text AS line FROM completeness t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY feed;

-- name: export_hour_look
-- Hours' directories that were compared.
SELECT row_to_json(t)::text AS line FROM hour_look t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY feed, path;

-- name: export_directory_look
-- Directories that were as committed when they were asked last.
SELECT row_to_json(t)::text AS line FROM directory_look t JOIN batch b USING (batch_id)
 WHERE :feed::text IS NULL OR b.feed = :feed
 ORDER BY b.commit_number;

-- name: export_told
-- What notifiers have told.
SELECT row_to_json(t)::text AS line FROM told t
 WHERE :feed::text IS NULL OR feed = :feed
 ORDER BY feed, recipient;
