-- name: lock_told_findings
-- Hold what stands already, in one order for everybody: two looks that tell the same wait in turn.
SELECT finding_id FROM finding
 WHERE feed = :feed AND key = ANY (:keys::bytea[]) AND state IN ('open', 'waived')
 ORDER BY finding_id
   FOR NO KEY UPDATE;

-- name: supersede_findings
-- The same key with another verdict: the old statement is closed, and stays readable.
UPDATE finding f SET state = 'superseded'
  FROM unnest(:keys::bytea[], :verdicts::text[]) AS seen(key, verdict)
 WHERE f.feed = :feed AND f.key = seen.key AND f.state IN ('open', 'waived')
   AND f.verdict <> seen.verdict::verdict;

-- name: confirm_findings
-- What stands already is confirmed, with the evidence as it is now, and the words that follow it.
UPDATE finding f
   SET last_confirmed_at = clock_timestamp(), cause = seen.cause, next_step = seen.next_step,
       evidence = seen.evidence::jsonb
  FROM unnest(:keys::bytea[], :causes::text[], :next_steps::text[], :evidences::text[])
       AS seen(key, cause, next_step, evidence)
 WHERE f.feed = :feed AND f.key = seen.key AND f.state IN ('open', 'waived');

-- name: record_findings
-- Enter findings that do not stand yet. An insert that runs into a conflict would use up a number, and
-- people wonder about the gaps: so the ones that stand are left out here. A look that enters the same
-- at this very moment is confirmed.
INSERT INTO finding
  (feed, key, code, name, verdict, level, topic, generation, partition, from_offset, until_offset,
   subject, cause, next_step, evidence)
SELECT :feed, key, code, name, verdict::verdict, level, topic, generation, partition, from_offset,
       until_offset, subject, cause, next_step, evidence::jsonb
  FROM unnest(:keys::bytea[], :codes::text[], :names::text[], :verdicts::text[], :levels::text[],
              :topics::text[], :generations::integer[], :partitions::integer[], :from_offsets::bigint[],
              :until_offsets::bigint[], :subjects::text[], :causes::text[], :next_steps::text[],
              :evidences::text[])
       AS seen(key, code, name, verdict, level, topic, generation, partition, from_offset,
               until_offset, subject, cause, next_step, evidence)
 WHERE NOT EXISTS (
         SELECT FROM finding f
          WHERE f.feed = :feed AND f.key = seen.key AND f.state IN ('open', 'waived'))
    ON CONFLICT (feed, key) WHERE state IN ('open', 'waived')
    DO UPDATE SET last_confirmed_at = clock_timestamp();

-- name: void_waivers
-- What was waived is open again where its evidence is another now, or its waiver is over.
UPDATE finding f SET state = 'open'
  FROM newest_waiver newest
 WHERE f.feed = :feed AND f.state = 'waived' AND newest.finding_id = f.finding_id
   AND (NOT newest.is_in_force
        OR EXISTS (
             SELECT FROM unnest(:keys::bytea[], :verdicts::text[], :digests::bytea[])
                         AS seen(key, verdict, digest)
              WHERE f.key = seen.key AND f.verdict = seen.verdict::verdict
                AND newest.evidence_sha256 <> seen.digest));

-- name: findings
-- A feed's findings, all or those that stand, or those of these numbers; oldest first.
SELECT f.finding_id, f.feed, f.code, f.name, f.verdict::text AS verdict, f.level, f.topic,
       f.generation, f.partition, f.from_offset, f.until_offset, f.subject, f.cause,
       f.next_step, f.evidence, f.first_seen_at, f.last_confirmed_at, f.closed_at, f.closed_by, f.closed_in,
       CASE WHEN f.state = 'waived' AND NOT newest.is_in_force THEN 'open' ELSE f.state::text END
         AS state,
       newest.reason, newest.asked_by, newest.approved_by, newest.expires_at, newest.has_expired,
       newest.evidence_sha256, newest.ended_by, newest.ended_at, newest.ended_because
  FROM finding f
  LEFT JOIN newest_waiver newest USING (finding_id)
 WHERE (:feed::text IS NULL OR f.feed = :feed::text)
   AND (:finding_ids::bigint[] IS NULL OR f.finding_id = ANY (:finding_ids::bigint[]))
   AND (NOT :only_standing::boolean OR f.state IN ('open', 'waived'))
 ORDER BY f.finding_id;

-- name: close_findings
-- End findings that stand, each with what ended it; none that was confirmed since it was found.
UPDATE finding f
   SET state = 'remedied', closed_at = clock_timestamp(), closed_by = ended.reason, closed_in = :run
  FROM unnest(:finding_ids::bigint[], :reasons::text[], :confirmed_ats::timestamptz[])
       AS ended(finding_id, reason, confirmed_at)
 WHERE f.finding_id = ended.finding_id AND f.feed = :feed AND f.state IN ('open', 'waived')
   AND (ended.confirmed_at IS NULL OR f.last_confirmed_at = ended.confirmed_at);

-- name: lock_findings
-- These findings' rows, in one order for everybody, held until the transaction ends.
SELECT finding_id FROM finding WHERE finding_id = ANY (:finding_ids::bigint[])
 ORDER BY finding_id
   FOR NO KEY UPDATE;

-- name: enter_waivers
-- What two people have accepted, for the evidence as it is now; a request that was approved, if any.
INSERT INTO waiver
  (finding_id, evidence_sha256, reason, asked_by, approved_by, expires_at, request_id)
SELECT * FROM unnest(:finding_ids::bigint[], :digests::bytea[], :reasons::text[], :asked_bys::text[],
                     :approved_bys::text[], :ends::timestamptz[], :request_ids::bigint[]);

-- name: waive_findings
-- open -> waived; one whose waiver is over is so already, and has a newer waiver now.
UPDATE finding SET state = 'waived'
 WHERE finding_id = ANY (:finding_ids::bigint[]) AND state = 'open';

-- name: end_waivers
-- The findings are open again from now on.
INSERT INTO waiver_ending (waiver_id, reason, ended_by)
SELECT waiver_id, :reason, :ended_by FROM newest_waiver WHERE finding_id = ANY (:finding_ids::bigint[]);

-- name: waiver_requests
-- The newest request for a waiver of each of these findings, whatever became of it; or their requests
-- of these numbers.
SELECT DISTINCT ON (r.finding_id)
       r.request_id, r.finding_id, r.evidence_sha256, r.reason, r.asked_by, r.expires_at, r.asked_at,
       r.ending, r.ended_by, r.ended_at, clock_timestamp() >= r.expires_at AS has_expired
  FROM waiver_request r
 WHERE r.finding_id = ANY (:finding_ids::bigint[])
   AND (:request_ids::bigint[] IS NULL OR r.request_id = ANY (:request_ids::bigint[]))
 ORDER BY r.finding_id, r.request_id DESC;

-- name: waiting_requests
-- The requests of all feeds that nobody has ended, of findings that are open, oldest first.
SELECT f.feed, r.request_id, r.finding_id, r.evidence_sha256, r.reason, r.asked_by, r.expires_at,
       r.asked_at, r.ending, r.ended_by, r.ended_at, false AS has_expired, f.evidence
  FROM waiver_request r
  JOIN finding f USING (finding_id)
  LEFT JOIN newest_waiver newest USING (finding_id)
 WHERE r.ending IS NULL AND r.expires_at > clock_timestamp()
   AND (f.state = 'open' OR (f.state = 'waived' AND NOT newest.is_in_force))
 ORDER BY r.request_id;

-- name: enter_waiver_requests
-- What one person asks for, of the evidence as it is now; what is asked at once has one instant.
INSERT INTO waiver_request (finding_id, evidence_sha256, reason, asked_by, expires_at, asked_at)
SELECT *, statement_timestamp()
  FROM unnest(:finding_ids::bigint[], :digests::bytea[], :reasons::text[], :asked_bys::text[],
              :ends::timestamptz[]);

-- name: end_waiver_requests
-- Requests that stand are approved, withdrawn, or replaced by newer ones.
UPDATE waiver_request SET ending = :ending, ended_by = :ended_by, ended_at = clock_timestamp()
 WHERE request_id = ANY (:request_ids::bigint[]) AND ending IS NULL;
