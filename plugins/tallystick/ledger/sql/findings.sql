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
-- What was waived is open again where its evidence is another now, or its waiver has expired.
UPDATE finding f SET state = 'open'
  FROM (SELECT DISTINCT ON (finding_id) finding_id, evidence_sha256, expires_at
          FROM waiver ORDER BY finding_id, waiver_id DESC) newest
 WHERE f.feed = :feed AND f.state = 'waived' AND newest.finding_id = f.finding_id
   AND (newest.expires_at <= clock_timestamp()
        OR EXISTS (
             SELECT FROM unnest(:keys::bytea[], :verdicts::text[], :digests::bytea[])
                         AS seen(key, verdict, digest)
              WHERE f.key = seen.key AND f.verdict = seen.verdict::verdict
                AND newest.evidence_sha256 <> seen.digest));

-- name: findings
-- A feed's findings, all or those that stand, or the finding of one number; oldest first.
-- Each with its newest waiver; one that has expired counts for nothing, also before the next look
-- notes it.
SELECT f.finding_id, f.feed, f.code, f.name, f.verdict::text AS verdict, f.level, f.topic,
       f.generation, f.partition, f.from_offset, f.until_offset, f.subject, f.cause,
       f.next_step, f.evidence, f.first_seen_at, f.last_confirmed_at, f.closed_at, f.closed_by,
       CASE WHEN f.state = 'waived' AND newest.has_expired THEN 'open' ELSE f.state::text END
         AS state,
       newest.reason, newest.asked_by, newest.approved_by, newest.expires_at, newest.has_expired,
       newest.evidence_sha256
  FROM finding f
  LEFT JOIN LATERAL (
         SELECT w.reason, w.asked_by, w.approved_by, w.expires_at, w.evidence_sha256,
                clock_timestamp() >= w.expires_at AS has_expired
           FROM waiver w WHERE w.finding_id = f.finding_id
          ORDER BY w.waiver_id DESC LIMIT 1) newest ON true
 WHERE (:feed::text IS NULL OR f.feed = :feed::text)
   AND (:finding_id::bigint IS NULL OR f.finding_id = :finding_id::bigint)
   AND (NOT :only_standing::boolean OR f.state IN ('open', 'waived'))
 ORDER BY f.finding_id;

-- name: close_findings
-- End findings that stand, each with what ended it; none that was confirmed since it was found.
UPDATE finding f
   SET state = 'remedied', closed_at = clock_timestamp(), closed_by = ended.reason
  FROM unnest(:finding_ids::bigint[], :reasons::text[], :confirmed_ats::timestamptz[])
       AS ended(finding_id, reason, confirmed_at)
 WHERE f.finding_id = ended.finding_id AND f.feed = :feed AND f.state IN ('open', 'waived')
   AND (ended.confirmed_at IS NULL OR f.last_confirmed_at = ended.confirmed_at);

-- name: lock_finding
-- One finding's row, held until the transaction ends.
SELECT finding_id FROM finding WHERE finding_id = :finding_id FOR NO KEY UPDATE;

-- name: enter_waiver
-- What two people have accepted, for the evidence as it is now; a request that was approved, if any.
INSERT INTO waiver
  (finding_id, evidence_sha256, reason, asked_by, approved_by, expires_at, request_id)
VALUES (:finding_id, :digest, :reason, :asked_by, :approved_by, :expires_at, :request_id);

-- name: waive_finding
-- open -> waived; one whose waiver has expired is so already, and has a newer waiver now.
UPDATE finding SET state = 'waived' WHERE finding_id = :finding_id AND state = 'open';

-- name: waiver_request
-- The newest request for a waiver of a finding, whatever became of it; or its request of a number.
SELECT r.request_id, r.finding_id, r.evidence_sha256, r.reason, r.asked_by, r.expires_at, r.asked_at,
       r.ending, r.ended_by, r.ended_at, clock_timestamp() >= r.expires_at AS has_expired
  FROM waiver_request r
 WHERE r.finding_id = :finding_id
   AND (:request_id::bigint IS NULL OR r.request_id = :request_id::bigint)
 ORDER BY r.request_id DESC LIMIT 1;

-- name: waiting_requests
-- The requests of all feeds that nobody has ended, of findings that are open, oldest first.
SELECT f.feed, r.request_id, r.finding_id, r.evidence_sha256, r.reason, r.asked_by, r.expires_at,
       r.asked_at, r.ending, r.ended_by, r.ended_at, false AS has_expired, f.evidence
  FROM waiver_request r JOIN finding f USING (finding_id)
 WHERE r.ending IS NULL AND r.expires_at > clock_timestamp() AND f.state = 'open'
 ORDER BY r.request_id;

-- name: enter_waiver_request
-- What one person asks for, of the evidence as it is now.
INSERT INTO waiver_request (finding_id, evidence_sha256, reason, asked_by, expires_at)
VALUES (:finding_id, :digest, :reason, :asked_by, :expires_at)
RETURNING request_id;

-- name: end_waiver_request
-- A request that stands is approved, withdrawn, or replaced by a newer one.
UPDATE waiver_request SET ending = :ending, ended_by = :ended_by, ended_at = clock_timestamp()
 WHERE request_id = :request_id AND ending IS NULL;
