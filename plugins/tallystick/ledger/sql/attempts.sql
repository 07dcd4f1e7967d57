-- name: lock_batch
-- The batch's own row, locked: whoever holds it decides what happens next.
SELECT b.batch_id, b.feed, b.state::text AS state, b.newest_token, b.committed_by, b.holder,
       b.verification_id,
       extract(epoch FROM b.lease_until - clock_timestamp())::float8 AS lease_seconds_left
  FROM batch b WHERE b.batch_id = :batch_id
   FOR NO KEY UPDATE;

-- name: attempt
-- One attempt.
SELECT attempt_id, batch_id, token, owner, outcome FROM attempt WHERE attempt_id = :attempt_id;

-- name: unheard_seconds
-- For how long nobody has heard of an attempt: since its end, since a newer one began, or since its
-- lease ran out.
SELECT extract(epoch FROM clock_timestamp()
         - coalesce(a.ended_at, newer.started_at, b.lease_until, b.abandoned_at,
                    a.started_at))::float8 AS seconds
  FROM attempt a JOIN batch b USING (batch_id)
  LEFT JOIN attempt newer ON newer.batch_id = a.batch_id AND newer.token = a.token + 1
 WHERE a.attempt_id = :attempt_id;

-- name: make_attempt
-- Enter an attempt under the next token of its batch.
INSERT INTO attempt (attempt_id, batch_id, token, owner)
VALUES (:attempt_id, :batch_id, :token, :owner);

-- name: hand_batch_over
-- Make this attempt the batch's newest; every older token is dead from here on.
UPDATE batch
   SET state = 'landing', newest_token = :token, holder = :owner,
       lease_until = clock_timestamp() + :lease::interval
 WHERE batch_id = :batch_id;

-- name: renew_lease
-- Hold the batch for another while, if this attempt is the newest and can still commit.
UPDATE batch SET holder = :owner, lease_until = clock_timestamp() + :lease::interval
 WHERE batch_id = :batch_id AND newest_token = :token AND state IN ('landing', 'verified')
   AND EXISTS (SELECT FROM attempt a WHERE a.attempt_id = :attempt_id
                AND a.batch_id = :batch_id AND a.token = :token);

-- name: record_application
-- Keep the Spark application's id, if this attempt is the newest and can still commit.
UPDATE attempt a SET application_id = :application_id
  FROM batch b
 WHERE a.attempt_id = :attempt_id AND a.batch_id = :batch_id AND a.token = :token
   AND b.batch_id = a.batch_id AND b.newest_token = a.token AND b.state IN ('landing', 'verified');

-- name: record_failure
-- Keep why an attempt ended, and its application only where the batch may be to blame; one that
-- committed has not failed.
UPDATE attempt SET ended_at = clock_timestamp(), outcome = 'failed: ' || :reason,
       application_id = CASE WHEN :blames_batch THEN application_id END
 WHERE attempt_id = :attempt_id AND token = :token AND outcome IS DISTINCT FROM 'committed';

-- name: give_lease_back
-- Let the next attempt begin at once.
UPDATE batch SET holder = NULL, lease_until = NULL
 WHERE batch_id = :batch_id AND newest_token = :token AND holder = :owner
   AND state IN ('landing', 'verified')
   AND EXISTS (SELECT FROM attempt a WHERE a.attempt_id = :attempt_id
                AND a.batch_id = :batch_id AND a.token = :token);

-- name: record_verification
-- Keep what the manifest says, compressed, and the hashes of last records beside it.
INSERT INTO verification (batch_id, attempt_id, isolation, manifest, sha256, file_sha256, hashes)
VALUES (:batch_id, :attempt_id, :isolation, :manifest, :digest, :file_digest, :hashes)
RETURNING verification_id;

-- name: mark_verified
-- landing -> verified, while this attempt's token is the newest.
UPDATE batch SET state = 'verified', verification_id = :verification_id
 WHERE batch_id = :batch_id AND newest_token = :token AND state IN ('landing', 'verified');
