-- name: enter_recipient
-- Have a row for who is told of a feed, be it never planned: its windows may be late, too.
INSERT INTO told (feed, recipient) VALUES (:feed, :recipient) ON CONFLICT DO NOTHING;

-- name: lock_recipient
-- What they know, held until the transaction ends: two tasks never tell the same news.
SELECT known FROM told WHERE feed = :feed AND recipient = :recipient FOR UPDATE;

-- name: keep_told
-- Remember what they were told.
UPDATE told SET known = :known::jsonb, told_at = clock_timestamp()
 WHERE feed = :feed AND recipient = :recipient;

-- name: ended_since
-- Numbers of findings that do not stand open: of those that were told, and of newer ones.
SELECT finding_id FROM finding
 WHERE feed = :feed AND state <> 'open'
   AND (finding_id = ANY(:numbers::bigint[]) OR finding_id > :after)
 ORDER BY finding_id;

-- name: newest_finding
-- The largest number of a finding of the feed; 0 where it never had one.
SELECT coalesce(max(finding_id), 0) AS newest FROM finding WHERE feed = :feed;
