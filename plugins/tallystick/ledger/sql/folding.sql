-- name: lock_generations_of
-- Lock a feed's generations, in the order everybody locks, before their ranges are read: a commit
-- beside us is seen whole, or waits.
SELECT generation_id FROM generation WHERE feed = :feed
 ORDER BY generation_id FOR NO KEY UPDATE;

-- name: fold_ranges
-- Replace contiguous committed ranges below the frontier by one range each, with their counts.
-- Batches that are not published keep their own ranges. What a batch landed stays in its proof.
WITH settled AS (
       SELECT r.range_id, r.generation_id, r.offsets
         FROM generation g
         JOIN offset_range r USING (generation_id)
         LEFT JOIN batch b USING (batch_id)
        WHERE g.feed = :feed AND r.state = 'committed' AND upper(r.offsets) <= g.frontier
          AND (r.batch_id IS NULL OR b.state = 'published')),
     run AS (
       SELECT generation_id, unnest(range_agg(offsets)) AS offsets
         FROM settled GROUP BY generation_id HAVING count(*) > 1),
     member AS (
       SELECT settled.range_id, run.offsets AS run_offsets,
              count(*) OVER (PARTITION BY run.generation_id, run.offsets) AS range_count
         FROM run JOIN settled ON settled.generation_id = run.generation_id
                              AND settled.offsets <@ run.offsets),
     folded AS (
       DELETE FROM offset_range r USING member
        WHERE r.range_id = member.range_id AND member.range_count > 1
    RETURNING r.generation_id, member.run_offsets, r.record_count, r.hole_count)
INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
SELECT generation_id, run_offsets, 'committed', sum(record_count), sum(hole_count)
  FROM folded GROUP BY generation_id, run_offsets;

-- name: fold_holes
-- Replace the holes of batches that were committed before today, and longer ago than holes are kept,
-- by one row for each log and class, or a few where there are many; no more than so many logs and
-- classes at once. The newest such row takes them in while it is short. What each batch had stands in
-- its proof. A batch keeps those of a partition of which it has no row: the second reader finds them
-- by these. A batch of which a repair has taken something keeps all: its proof names holes that are
-- another's by now.
WITH old AS (
       SELECT h.ctid AS place, h.generation_id, h.class, h.runs
         FROM batch b JOIN hole h USING (batch_id) JOIN generation g USING (generation_id)
        WHERE b.feed = :feed AND b.state = 'published'
          AND EXISTS (SELECT FROM file held
                       WHERE held.batch_id = b.batch_id AND held.partitions @> g.partition)
          AND b.committed_at < date_trunc('day', clock_timestamp() - :kept::interval, 'UTC')
          AND h.retracted_by IS NULL
          AND NOT EXISTS (SELECT FROM file_retraction gone WHERE gone.batch_id = b.batch_id)
          AND NOT EXISTS (SELECT FROM hole gone
                           WHERE gone.batch_id = b.batch_id AND gone.retracted_by IS NOT NULL)),
     chosen AS (
       SELECT generation_id, class FROM old GROUP BY generation_id, class HAVING count(*) > 1
        ORDER BY count(*) DESC, generation_id, class LIMIT :most),
     short AS (
       SELECT newest.*
         FROM chosen
        CROSS JOIN LATERAL (
              SELECT h.ctid AS place, h.generation_id, h.class, h.runs FROM hole h
               WHERE h.batch_id IS NULL AND h.generation_id = chosen.generation_id
                 AND h.class = chosen.class AND h.retracted_by IS NULL
               ORDER BY lower(h.reach) DESC LIMIT 1) newest
        WHERE (SELECT count(*) FROM unnest(newest.runs)) < :runs_of_short),
     placed AS (
       SELECT taken.*, sum(n.runs) OVER (PARTITION BY generation_id, class ORDER BY lower(taken.runs))
                       / :runs_per_piece AS piece
         FROM (SELECT old.* FROM old JOIN chosen USING (generation_id, class)
                UNION ALL SELECT * FROM short) taken
        CROSS JOIN LATERAL (SELECT count(*)::integer AS runs FROM unnest(taken.runs)) n),
     gone AS (
       DELETE FROM hole h USING placed p WHERE h.ctid = p.place
    RETURNING h.batch_id, h.generation_id, h.class, p.piece, h.runs, h.hole_count),
     counted AS (
       INSERT INTO folded_holes AS f (batch_id, class, hole_count)
       SELECT batch_id, class, sum(hole_count) FROM gone
        WHERE batch_id IS NOT NULL GROUP BY batch_id, class
           ON CONFLICT (batch_id, class) DO UPDATE SET hole_count = f.hole_count + excluded.hole_count)
INSERT INTO hole (generation_id, class, position, runs, hole_count)
SELECT generation_id, class, 0, range_agg(runs), sum(hole_count)
  FROM gone GROUP BY generation_id, class, piece;

-- name: unfold_holes
-- Give batches their own rows again for those of these holes that are folded. One of which a repair
-- has taken something has them: it was unfolded then, and is never folded again.
WITH own AS (
       SELECT batch_id, generation_id, class::hole_class AS class, runs::int8multirange AS runs
         FROM unnest(:batch_ids::text[], :generation_ids::bigint[], :classes::text[], :runs::text[])
              AS own(batch_id, generation_id, class, runs)
        WHERE NOT EXISTS (SELECT FROM file_retraction gone WHERE gone.batch_id = own.batch_id)
          AND NOT EXISTS (SELECT FROM hole gone
                           WHERE gone.batch_id = own.batch_id AND gone.retracted_by IS NOT NULL)),
     folded AS (
       DELETE FROM hole h
        USING (SELECT generation_id, class, range_agg(runs) AS runs FROM own
                GROUP BY generation_id, class) taken
        WHERE h.batch_id IS NULL AND h.retracted_by IS NULL
          AND h.generation_id = taken.generation_id AND h.class = taken.class
          AND h.runs && taken.runs
    RETURNING h.generation_id, h.class, h.runs, h.runs - taken.runs AS others),
     again AS (
       SELECT own.batch_id, generation_id, class, own.runs * folded.runs AS runs
         FROM own JOIN folded USING (generation_id, class) WHERE own.runs && folded.runs
        UNION ALL
       SELECT NULL, generation_id, class, others FROM folded WHERE NOT isempty(others)),
     numbered AS (
       SELECT batch_id, generation_id, class, runs,
              coalesce((SELECT max(h.position) + 1 FROM hole h
                         WHERE (h.batch_id, h.generation_id, h.class)
                             = (again.batch_id, again.generation_id, again.class)), 0)
              + row_number() OVER (PARTITION BY batch_id, generation_id, class ORDER BY lower(runs))
              - 1 AS position,
              (SELECT sum(upper(run) - lower(run)) FROM unnest(runs) AS run)::bigint AS hole_count
         FROM again),
     counted AS (
       UPDATE folded_holes f SET hole_count = f.hole_count - mine.hole_count
         FROM (SELECT batch_id, class, sum(hole_count) AS hole_count FROM numbered
                GROUP BY batch_id, class) mine
        WHERE f.batch_id = mine.batch_id AND f.class = mine.class)
INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)
SELECT batch_id, generation_id, class, position, runs, hole_count FROM numbered;

-- name: forget_hashes
-- The hashes of last records go where a batch is old and its manifest, which has them, was seen where
-- readers look in these two days; not while a finding about the batch stands, nor where a repair has
-- taken rows away.
UPDATE verification v SET hashes = NULL
  FROM batch b JOIN directory_look l USING (batch_id)
 WHERE b.feed = :feed AND b.state = 'published'
   AND b.committed_at < clock_timestamp() - :kept::interval
   AND l.compared_at > clock_timestamp() - interval '2 days'
   AND v.batch_id = b.batch_id AND v.verification_id = b.verification_id AND v.hashes IS NOT NULL
   AND NOT EXISTS (SELECT FROM replaced_file r WHERE r.old_batch_id = b.batch_id)
   AND NOT EXISTS (SELECT FROM finding f
                    WHERE f.feed = b.feed AND f.state IN ('open', 'waived')
                      AND strpos(f.subject || f.evidence::text, b.batch_id) > 0);

-- name: thin_looks
-- Of old looks at a log the last sound one of each day stays whole, and so the newest of all; and all
-- of days about which a finding stands. What a look added up to stays of each.
UPDATE broker_snapshot s SET shown = NULL
  FROM (SELECT snapshot_id,
               row_number() OVER (PARTITION BY topic_id, date_trunc('day', begun_at, 'UTC')
                                  ORDER BY doubt IS NOT NULL, look_number DESC) AS place
          FROM broker_snapshot
         WHERE feed = :feed AND shown IS NOT NULL
           AND begun_at < date_trunc('day', clock_timestamp() - :kept::interval, 'UTC')) old
 WHERE s.snapshot_id = old.snapshot_id AND old.place > 1
   AND NOT EXISTS (SELECT FROM finding f
                    WHERE f.feed = :feed AND f.state IN ('open', 'waived')
                      AND f.first_seen_at BETWEEN s.begun_at - interval '1 day'
                                              AND s.begun_at + interval '1 day');

-- name: thin_reports
-- Of old reports the last one of each day stays, one with the worst verdict, and all of days about
-- which a finding stands.
DELETE FROM report r
 USING (SELECT report_id,
               row_number() OVER (PARTITION BY date_trunc('day', recorded_at, 'UTC')
                                  ORDER BY report_id DESC) AS from_last,
               row_number() OVER (PARTITION BY date_trunc('day', recorded_at, 'UTC')
                                  ORDER BY verdict DESC, report_id DESC) AS from_worst
          FROM report
         WHERE feed = :feed
           AND recorded_at < date_trunc('day', clock_timestamp() - :kept::interval, 'UTC')) old
 WHERE r.report_id = old.report_id AND old.from_last > 1 AND old.from_worst > 1
   AND NOT EXISTS (SELECT FROM finding f
                    WHERE f.feed = :feed AND f.state IN ('open', 'waived')
                      AND f.first_seen_at BETWEEN r.recorded_at - interval '1 day'
                                              AND r.recorded_at + interval '1 day');
