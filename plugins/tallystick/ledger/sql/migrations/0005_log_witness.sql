-- A log has one witness: how far it was seen to reach, and in which leader epoch. It is handed over
-- from look to look, each of which asks the one before.

ALTER TABLE generation DROP COLUMN read_epoch;
COMMENT ON COLUMN generation.last_seen_until IS
  'Largest high watermark (excluded) that any look showed; with seen_epoch, the log''s witness.';
COMMENT ON COLUMN generation.seen_epoch IS
  'Leader epoch in which the log was last seen to reach last_seen_until: as long as it, or an older
one, ends no earlier, nothing of the log was cut. A look replaces it after asking it.';

CREATE VIEW generation_account AS
SELECT g.generation_id, g.feed, g.topic, g.partition, g.cluster_id, g.topic_id, g.ordinal,
       g.state::text AS state, g.first_offset, g.frontier, g.last_seen_until,
       g.read_until, g.seen_epoch,
       a.record_offset, a.leader_epoch, a.content_hash,
       tail.from_offsets, tail.until_offsets
  FROM generation g
  LEFT JOIN tail_anchor a USING (generation_id)
 CROSS JOIN LATERAL (
       SELECT array_agg(lower(r.offsets) ORDER BY lower(r.offsets)) AS from_offsets,
              array_agg(upper(r.offsets) ORDER BY lower(r.offsets)) AS until_offsets
         FROM offset_range r
        WHERE r.generation_id = g.generation_id
          AND r.state IN ('claimed', 'committed', 'lost') AND NOT r.replaces
          AND upper(r.offsets) > g.frontier) tail;
COMMENT ON VIEW generation_account IS
  'Each generation with its anchor and its tail; never reads below a frontier.';
