-- The words of a finding follow its evidence: who reads or accepts a finding that was confirmed reads
-- what the last look saw, not what the first one did.
COMMENT ON COLUMN finding.evidence IS
  'As the last look that confirmed the finding saw it; so are cause and next_step. All else is as it was first stated.';
CREATE OR REPLACE FUNCTION guard_finding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.finding_id, NEW.feed, NEW.code, NEW.verdict, NEW.level, NEW.topic, NEW.generation,
      NEW.partition, NEW.from_offset, NEW.until_offset, NEW.subject, NEW.first_seen_at)
     IS DISTINCT FROM
     (OLD.finding_id, OLD.feed, OLD.code, OLD.verdict, OLD.level, OLD.topic, OLD.generation,
      OLD.partition, OLD.from_offset, OLD.until_offset, OLD.subject, OLD.first_seen_at)
     OR ((NEW.evidence, NEW.cause, NEW.next_step)
         IS DISTINCT FROM (OLD.evidence, OLD.cause, OLD.next_step)
         AND (OLD.state NOT IN ('open', 'waived')
              OR NEW.last_confirmed_at = OLD.last_confirmed_at))
     OR (OLD.closed_at IS NOT NULL
         AND (NEW.closed_at, NEW.closed_by) IS DISTINCT FROM (OLD.closed_at, OLD.closed_by))
     OR (NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN (
           ('open', 'superseded'), ('open', 'remedied'), ('open', 'waived'),
           ('open', 'false_alarm'), ('waived', 'open'), ('waived', 'superseded'),
           ('waived', 'remedied'))) THEN
    RAISE EXCEPTION 'finding %: only its confirmation and its state change', OLD.finding_id
      USING ERRCODE = 'TS001';
  END IF;
  RETURN NEW;
END $$;
