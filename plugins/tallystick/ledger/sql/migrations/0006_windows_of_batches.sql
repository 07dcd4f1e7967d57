-- A batch has a window of its own: a run that catches up lands each record under its own window.

ALTER TABLE batch
  ADD COLUMN window_from  timestamptz,
  ADD COLUMN window_until timestamptz,
  ADD CONSTRAINT batch_window_whole CHECK (
        (window_from IS NULL) = (window_until IS NULL)
    AND (window_from IS NULL OR window_from < window_until));
COMMENT ON COLUMN batch.window_from IS
  'Start (included) of the records'' window; null for a run without one, and for a repair.';

UPDATE batch b SET window_from = p.window_from, window_until = p.window_until
  FROM plan p WHERE p.plan_id = b.plan_id;

CREATE FUNCTION guard_batch_window() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'batch %: its window never changes', OLD.batch_id USING ERRCODE = 'TS002';
END $$;
CREATE TRIGGER batch_window_guard BEFORE UPDATE ON batch FOR EACH ROW
  WHEN ((NEW.window_from, NEW.window_until) IS DISTINCT FROM (OLD.window_from, OLD.window_until))
  EXECUTE FUNCTION guard_batch_window();
