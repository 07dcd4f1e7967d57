-- name: supersede_findings
-- The same key with another verdict: the old statement is closed, and stays readable.
-- Null is compared as -1, which no offset is: only equality can be hashed.
UPDATE finding f SET state = 'superseded'
  FROM unnest(:codes::text[], :verdicts::text[], :topics::text[], :generations::integer[],
              :partitions::integer[], :from_offsets::bigint[], :until_offsets::bigint[],
              :subjects::text[])
       AS seen(code, verdict, topic, generation, partition, from_offset, until_offset, subject)
 WHERE f.feed = :feed AND f.state = 'open' AND f.code = seen.code AND f.topic = seen.topic
   AND f.subject = seen.subject
   AND coalesce(f.generation, -1) = coalesce(seen.generation, -1)
   AND coalesce(f.partition, -1) = coalesce(seen.partition, -1)
   AND coalesce(f.from_offset, -1) = coalesce(seen.from_offset, -1)
   AND coalesce(f.until_offset, -1) = coalesce(seen.until_offset, -1)
   AND f.verdict <> seen.verdict::verdict;

-- name: record_findings
-- Enter findings; one that stands already is confirmed.
INSERT INTO finding
  (feed, code, verdict, level, topic, generation, partition, from_offset, until_offset, subject,
   cause, next_step, evidence)
SELECT :feed, code, verdict::verdict, level, topic, generation, partition, from_offset,
       until_offset, subject, cause, next_step, evidence::jsonb
  FROM unnest(:codes::text[], :verdicts::text[], :levels::text[], :topics::text[],
              :generations::integer[], :partitions::integer[], :from_offsets::bigint[],
              :until_offsets::bigint[], :subjects::text[], :causes::text[], :next_steps::text[],
              :evidences::text[])
       AS seen(code, verdict, level, topic, generation, partition, from_offset, until_offset,
               subject, cause, next_step, evidence)
    ON CONFLICT (feed, code, topic, generation, partition, from_offset, until_offset, md5(subject))
       WHERE state = 'open'
    DO UPDATE SET last_confirmed_at = clock_timestamp();

-- name: open_findings
-- The feed's open findings, oldest first.
SELECT finding_id, code, verdict::text AS verdict, level, topic, generation, partition,
       from_offset, until_offset, subject, cause, next_step, evidence,
       first_seen_at, last_confirmed_at
  FROM finding WHERE feed = :feed AND state = 'open'
 ORDER BY finding_id;
