-- A log has one life under one topic id, unless it was cut: a second life that begins below what
-- the first one holds would land the same records twice.

CREATE FUNCTION was_cut(log generation) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT log.ending_code = 'A10'
      OR (log.ending_code IN ('A3', 'A4')
          AND EXISTS (SELECT FROM finding f
                       WHERE f.feed = log.feed AND f.topic = log.topic
                         AND f.partition = log.partition AND f.generation = log.ordinal
                         AND f.code IN ('A3', 'A4') AND f.verdict = 'PROVEN_LOSS'))
$$;
COMMENT ON FUNCTION was_cut(generation) IS
  'If a later life of the same topic id may hold the same offsets: a finding says that the log was
cut, or a rebuild met the later life in published directories.';

CREATE FUNCTION guard_second_life() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earlier generation%ROWTYPE;
BEGIN
  SELECT * INTO earlier FROM generation g
   WHERE g.feed = NEW.feed AND g.partition = NEW.partition
     AND g.cluster_id = NEW.cluster_id AND g.topic_id = NEW.topic_id
     AND NEW.first_offset < greatest(g.frontier, g.read_until) AND was_cut(g) IS NOT TRUE
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '%-% generation % would begin at % below the end of generation %, of the same'
      ' topic id, and no finding says that the log was cut',
      NEW.topic, NEW.partition, NEW.ordinal, NEW.first_offset, earlier.ordinal
      USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER generation_second_life BEFORE INSERT ON generation
  FOR EACH ROW EXECUTE FUNCTION guard_second_life();
