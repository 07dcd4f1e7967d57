-- name: enter_feed
-- Make the feed's row where this is its first plan.
INSERT INTO feed (feed, topic) VALUES (:feed, :topic) ON CONFLICT (feed) DO NOTHING;

-- name: lock_feed
-- Take the planning lock: the feed's row, until the transaction ends.
SELECT topic FROM feed WHERE feed = :feed FOR NO KEY UPDATE;

-- name: describe_feed
-- Keep what the feed's file says, where it said something else before.
UPDATE feed SET described = :described::jsonb
 WHERE feed = :feed AND described IS DISTINCT FROM :described::jsonb;

-- name: clock
-- The ledger's clock now.
SELECT clock_timestamp() AS instant;

-- name: begin_look
-- A look's place in the order of all, and the ledger's clock, before the broker is asked.
SELECT nextval('look_number') AS look_number, clock_timestamp() AS begun_at;

-- name: newest_generations
-- The newest generation of every partition, with its tail.
-- One statement: a commit between two could move a range out of both answers.
SELECT g.* FROM generation_account g
 WHERE g.feed = :feed
   AND NOT EXISTS (SELECT FROM generation newer
                    WHERE newer.feed = g.feed AND newer.partition = g.partition
                      AND newer.ordinal > g.ordinal)
 ORDER BY g.partition;

-- name: retired_topic_ids
-- Topic ids of the feed's closed generations that no generation which isn't closed has.
SELECT DISTINCT g.topic_id FROM generation g
 WHERE g.feed = :feed AND g.state = 'closed'
   AND NOT EXISTS (SELECT FROM generation living
                    WHERE living.feed = g.feed AND living.state <> 'closed'
                      AND living.topic_id = g.topic_id);

-- name: newest_tokens
-- The newest token of each of the feed's unfinished batches that nobody holds.
SELECT batch_id, newest_token FROM batch
 WHERE feed = :feed AND state IN ('planned', 'landing', 'verified')
   AND (lease_until IS NULL OR lease_until <= clock_timestamp());

-- name: newest_plan
-- The newest revision of the feed's plan of this window.
SELECT plan_id, planned_at FROM plan
 WHERE feed = :feed AND window_from = :window_from AND window_until = :window_until
 ORDER BY revision DESC LIMIT 1;

-- name: first_plan
-- When this owner first planned the feed; null if it never did.
SELECT min(planned_at) AS planned_at FROM plan WHERE feed = :feed AND owner = :owner;

-- name: plan_batches
-- The batches of a plan, own ones first, each in its order.
SELECT b.batch_id, b.feed, b.root, b.topic, b.cluster_id, b.topic_id, b.ordinal, b.label,
       b.state::text AS state, b.newest_token, b.committed_by, b.holder, b.verification_id,
       (SELECT count(*) FROM attempt a
         WHERE a.batch_id = b.batch_id AND a.application_id IS NOT NULL) AS applications,
       extract(epoch FROM b.lease_until - clock_timestamp())::float8 AS lease_seconds_left,
       b.window_from, b.window_until, pb.is_adopted
  FROM plan_batch pb JOIN batch b USING (batch_id)
 WHERE pb.plan_id = :plan_id
 ORDER BY pb.is_adopted, pb.position;

-- name: record_snapshot
-- Keep what the broker said, before anything is decided on it.
INSERT INTO broker_snapshot
  (feed, look_number, begun_at, taken_at, cluster_id, topic, topic_id, is_compacted, retention_ms,
   retention_bytes, border_at, shown, log_start_sum, last_stable_sum, high_watermark_sum, leaderless_count, doubt)
VALUES
  (:feed, :look_number, :begun_at, :taken_at, :cluster_id, :topic, :topic_id, :is_compacted,
   :retention_ms, :retention_bytes, :border_at::timestamptz, :shown, :log_start_sum,
   :last_stable_sum, :high_watermark_sum, :leaderless_count, :doubt)
RETURNING snapshot_id;

-- name: lock_batches_to_change
-- Lock the unfinished batches that lose something, in the order everybody locks: batches first.
SELECT b.batch_id,
       EXISTS (SELECT FROM offset_range r
                WHERE r.batch_id = b.batch_id AND r.state = 'claimed'
                  AND r.generation_id = ANY(:closed_ids::bigint[])) AS claims_closed
  FROM batch b
 WHERE b.feed = :feed
   AND b.state IN ('planned', 'landing', 'verified')
   AND (b.batch_id = ANY(:batch_ids::text[])
        OR EXISTS (SELECT FROM offset_range r
                    WHERE r.batch_id = b.batch_id AND r.state = 'claimed'
                      AND r.generation_id = ANY(:closed_ids::bigint[])))
 ORDER BY b.batch_id
   FOR NO KEY UPDATE OF b;

-- name: claims_of
-- The ranges that these batches still claim, by batch and partition.
SELECT r.range_id, r.batch_id, r.generation_id, g.topic, g.partition,
       lower(r.offsets) AS from_offset, upper(r.offsets) AS until_offset
  FROM offset_range r JOIN generation g USING (generation_id)
 WHERE r.batch_id = ANY(:batch_ids::text[]) AND r.state = 'claimed'
 ORDER BY r.batch_id, g.partition;

-- name: shrink_claims
-- Give claims their new state and their smaller bounds; what they lose is inserted next.
UPDATE offset_range r
   SET offsets = int8range(cut.from_offset, cut.until_offset),
       state = cut.state::range_state,
       loss_code = cut.loss_code
  FROM unnest(:range_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[],
              :states::text[], :loss_codes::text[])
       AS cut(range_id, from_offset, until_offset, state, loss_code)
 WHERE r.range_id = cut.range_id;

-- name: insert_ranges
-- Enter ranges that are lost, or were released by a batch.
INSERT INTO offset_range (generation_id, offsets, state, batch_id, loss_code, loss_evidence)
SELECT generation_id, int8range(from_offset, until_offset), state::range_state, batch_id,
       loss_code, loss_evidence::jsonb
  FROM unnest(:generation_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[],
              :states::text[], :batch_ids::text[], :loss_codes::text[], :loss_evidences::text[])
       AS lost(generation_id, from_offset, until_offset, state, batch_id, loss_code, loss_evidence)
 ORDER BY generation_id, from_offset;

-- name: release_unreadable
-- Unreadable offsets in these ranges are due again, or lost by the next statement.
UPDATE offset_range r SET state = 'released'
  FROM unnest(:generation_ids::bigint[], :from_offsets::bigint[], :until_offsets::bigint[])
       AS again(generation_id, from_offset, until_offset)
 WHERE r.state = 'unreadable' AND r.generation_id = again.generation_id
   AND r.offsets <@ int8range(again.from_offset, again.until_offset);

-- name: give_up_accepted
-- Unreadable -> lost, where two people have accepted the finding.
UPDATE offset_range r
   SET state = 'lost', loss_code = f.code, loss_evidence = f.evidence
  FROM generation g, finding f JOIN newest_waiver newest USING (finding_id)
 WHERE r.state = 'unreadable' AND g.generation_id = r.generation_id AND g.feed = :feed
   AND f.feed = g.feed AND f.code = :code AND f.state = 'waived' AND newest.is_in_force
   AND f.topic = g.topic
   AND f.partition = g.partition AND f.generation = g.ordinal
   AND r.offsets <@ int8range(f.from_offset, f.until_offset)
RETURNING r.generation_id;

-- name: release_claims
-- Release every claim that these batches still have.
UPDATE offset_range SET state = 'released'
 WHERE state = 'claimed' AND batch_id = ANY(:batch_ids::text[]);

-- name: abandon_empty_batches
-- Give up the batches that have no claim left.
UPDATE batch b
   SET state = 'abandoned', abandoned_at = clock_timestamp(), holder = NULL, lease_until = NULL
 WHERE b.batch_id = ANY(:batch_ids::text[])
   AND NOT EXISTS (SELECT FROM offset_range r
                    WHERE r.batch_id = b.batch_id AND r.state = 'claimed');

-- name: abandon_give_ups
-- End the repairs that claim nothing and that nobody holds: a person who still wants to give the
-- files up says so again.
UPDATE batch b
   SET state = 'abandoned', abandoned_at = clock_timestamp(), holder = NULL, lease_until = NULL
  FROM (SELECT batch_id FROM batch idle
         WHERE idle.feed = :feed AND idle.state IN ('planned', 'landing', 'verified')
           AND (idle.lease_until IS NULL OR idle.lease_until <= clock_timestamp())
           AND EXISTS (SELECT FROM replaced_file f WHERE f.batch_id = idle.batch_id)
           AND NOT EXISTS (SELECT FROM offset_range r
                            WHERE r.batch_id = idle.batch_id AND r.state = 'claimed')
         ORDER BY batch_id
           FOR NO KEY UPDATE SKIP LOCKED) given_up
 WHERE b.batch_id = given_up.batch_id;

-- name: lock_living_generations
-- Lock the feed's generations that aren't closed, in the order everybody locks: by id, after batches.
SELECT generation_id FROM generation
 WHERE feed = :feed AND state <> 'closed' ORDER BY generation_id FOR NO KEY UPDATE;

-- name: end_generations
-- Close or stop generations; nothing more of them is planned.
UPDATE generation g
   SET state = :state::generation_state, ended_at = clock_timestamp(),
       ending_code = ended.code, ending_reason = ended.reason
  FROM unnest(:generation_ids::bigint[], :codes::text[], :reasons::text[])
       AS ended(generation_id, code, reason)
 WHERE g.generation_id = ended.generation_id AND g.feed = :feed;

-- name: open_generations
-- Begin to account for logs of one life of a topic, as far as a look has seen them.
INSERT INTO generation
  (feed, topic, partition, cluster_id, topic_id, ordinal, first_offset, begins_unseen, frontier,
   last_seen_until, seen_epoch, opening_reason)
SELECT :feed, :topic, partition, :cluster_id, :topic_id, :ordinal, first_offset, begins_unseen,
       first_offset, greatest(first_offset, seen_until), seen_epoch, reason
  FROM unnest(:partitions::integer[], :first_offsets::bigint[], :are_unseen::boolean[],
              :seen_until::bigint[], :seen_epochs::integer[], :reasons::text[])
       AS opened(partition, first_offset, begins_unseen, seen_until, seen_epoch, reason)
 ORDER BY partition
RETURNING generation_id, partition;

-- name: see_logs
-- Hand the witness over: how far each log reaches, and in which leader epoch. For open and stopped
-- generations of the very same topic; the caller has asked the witness of before. Where that showed a
-- cut, how far the log reached begins anew. A look that tells no epoch, or an older one, takes no
-- witness's place. Locked in the order everybody locks: by id.
UPDATE generation g
   SET last_seen_until = CASE WHEN moved.is_cut THEN moved.high_watermark
                              ELSE greatest(g.last_seen_until, moved.high_watermark) END,
       seen_epoch = moved.leader_epoch
  FROM (SELECT known.generation_id, seen.high_watermark, seen.leader_epoch,
               known.generation_id = ANY(:cut_ids::bigint[]) AS is_cut
          FROM unnest(:partitions::integer[], :high_watermarks::bigint[], :leader_epochs::integer[])
               AS seen(partition, high_watermark, leader_epoch)
          JOIN generation known USING (partition)
         WHERE known.feed = :feed AND known.state <> 'closed' AND known.topic_id = :topic_id
           AND known.cluster_id = :cluster_id
           AND (known.seen_epoch IS NULL OR known.seen_epoch <= seen.leader_epoch)
           AND (known.last_seen_until <> seen.high_watermark
                OR known.seen_epoch IS DISTINCT FROM seen.leader_epoch)
         ORDER BY known.generation_id
           FOR NO KEY UPDATE OF known) moved
 WHERE g.generation_id = moved.generation_id;

-- name: advance_frontiers
-- Move each frontier to the end of the contiguous prefix that is committed or lost.
-- The generations are locked by an earlier statement, so this one sees every rival's ranges.
UPDATE generation g SET frontier = upper(prefix.run)
  FROM (SELECT touched.generation_id, run
          FROM generation touched
         CROSS JOIN LATERAL (
               SELECT unnest(range_agg(r.offsets)) AS run
                 FROM offset_range r
                WHERE r.generation_id = touched.generation_id
                  AND r.state IN ('committed', 'lost')
                  AND upper(r.offsets) > touched.frontier) settled
         WHERE touched.generation_id = ANY(:generation_ids::bigint[])
           AND run @> touched.frontier) prefix
 WHERE g.generation_id = prefix.generation_id;

-- name: lock_generations
-- Lock generations, in the order everybody locks: by id, after batches.
SELECT generation_id FROM generation
 WHERE generation_id = ANY(:generation_ids::bigint[])
 ORDER BY generation_id FOR NO KEY UPDATE;

-- name: make_plan
-- Enter the plan under the next revision of its window.
INSERT INTO plan (feed, window_from, window_until, revision, owner, snapshot_id, planned_at)
SELECT :feed, :window_from::timestamptz, :window_until::timestamptz, 1 + coalesce(max(revision), 0),
       :owner, :snapshot_id::bigint, :planned_at
  FROM plan
 WHERE feed = :feed AND window_from IS NOT DISTINCT FROM :window_from::timestamptz
   AND window_until IS NOT DISTINCT FROM :window_until::timestamptz
RETURNING plan_id;

-- name: make_batches
-- Enter the plan's own batches, held by the planner.
INSERT INTO batch
  (batch_id, feed, plan_id, root, topic, cluster_id, topic_id, ordinal, label, window_from,
   window_until, holder, lease_until)
SELECT batch_id, :feed, :plan_id, root, topic, cluster_id, topic_id, ordinal, label, window_from,
       window_until, :owner, clock_timestamp() + :lease::interval
  FROM unnest(:batch_ids::text[], :roots::text[], :topics::text[], :cluster_ids::text[],
              :topic_ids::text[], :ordinals::integer[], :labels::timestamptz[],
              :windows_from::timestamptz[], :windows_until::timestamptz[]) WITH ORDINALITY
       AS planned(batch_id, root, topic, cluster_id, topic_id, ordinal, label, window_from,
                  window_until, place)
 ORDER BY place;

-- name: claim_ranges
-- Claim the ranges of the plan's own batches; the schema refuses an offset that is taken.
INSERT INTO offset_range (generation_id, offsets, state, batch_id, replaces)
SELECT g.generation_id, int8range(claim.from_offset, claim.until_offset), 'claimed', claim.batch_id,
       claim.replaces
  FROM unnest(:batch_ids::text[], :generation_ids::bigint[], :partitions::integer[],
              :from_offsets::bigint[], :until_offsets::bigint[], :replaces::boolean[])
       AS claim(batch_id, generation_id, partition, from_offset, until_offset, replaces)
  JOIN generation g ON g.generation_id = claim.generation_id
                   AND g.feed = :feed AND g.partition = claim.partition
 ORDER BY g.generation_id, claim.from_offset;

-- name: replace_files
-- Write down which files a repair's batches take the place of; none that is replaced already.
INSERT INTO replaced_file (batch_id, old_batch_id, name)
SELECT batch_id, old_batch_id, name
  FROM unnest(:batch_ids::text[], :old_batch_ids::text[], :names::text[])
       AS replaced(batch_id, old_batch_id, name)
 WHERE NOT EXISTS (SELECT FROM file_retraction gone
                    WHERE gone.batch_id = replaced.old_batch_id AND gone.name = replaced.name);

-- name: replaced_files
-- The files that these batches replace, by batch and name.
SELECT batch_id, old_batch_id, name FROM replaced_file
 WHERE batch_id = ANY(:batch_ids::text[])
 ORDER BY batch_id, old_batch_id, name COLLATE "C";

-- name: adopt_batches
-- Take over unfinished batches that nobody else holds and nobody is working on at this moment; none
-- that gives files up, which is a repair without a claim.
-- Guards `may_be_adopted` of domain/batches/taking.py, on the rows themselves: a rival may have come
-- since the plan was decided.
UPDATE batch b
   SET holder = :owner, lease_until = clock_timestamp() + :lease::interval
  FROM (SELECT batch_id FROM batch idle
         WHERE idle.batch_id = ANY(:batch_ids::text[]) AND idle.feed = :feed
           AND idle.state IN ('planned', 'landing', 'verified')
           AND (idle.lease_until IS NULL OR idle.lease_until <= clock_timestamp()
                OR idle.holder = :owner)
           AND (NOT EXISTS (SELECT FROM replaced_file f WHERE f.batch_id = idle.batch_id)
                OR EXISTS (SELECT FROM offset_range r
                            WHERE r.batch_id = idle.batch_id AND r.state = 'claimed'))
         ORDER BY batch_id
           FOR NO KEY UPDATE SKIP LOCKED) free
 WHERE b.batch_id = free.batch_id
RETURNING b.batch_id;

-- name: join_batches
-- Write down which batches the plan is to carry out.
INSERT INTO plan_batch (plan_id, batch_id, is_adopted, position)
SELECT :plan_id, batch_id, :is_adopted, place - 1
  FROM unnest(:batch_ids::text[]) WITH ORDINALITY AS joined(batch_id, place);

-- name: left_of_feed
-- What keeps a feed from being retired: batches that are not over, and findings that stand.
SELECT (SELECT count(*) FROM batch
         WHERE feed = :feed AND state NOT IN ('published', 'abandoned')) AS batches,
       (SELECT count(*) FROM finding WHERE feed = :feed AND state = 'open'
           AND verdict::text = ANY (:verdicts::text[])) AS findings;

-- name: retire_feed
-- The feed ends with the last link of its chain.
INSERT INTO feed_retirement (feed, commits, digest, reason, retired_by)
SELECT :feed, count(*), (array_agg(digest ORDER BY position DESC))[1], :reason, :by
  FROM commit_link WHERE feed = :feed
RETURNING commits, digest;
