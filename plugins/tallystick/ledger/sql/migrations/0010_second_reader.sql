-- Deep checks by a second reader: level L4.

ALTER TABLE batch_check
  DROP CONSTRAINT batch_check_level_check,
  ADD CONSTRAINT batch_check_level_check CHECK (level IN ('L2', 'L3', 'L4')),
  ADD COLUMN sample jsonb,
  ADD CONSTRAINT batch_check_sample_at_l4 CHECK ((level = 'L4') = (sample IS NOT NULL));
COMMENT ON TABLE batch_check IS
  'Deep looks at committed batches: L2 read the offset columns again, L3 every row, L4 compared a
sample with the broker by a second reader.';
COMMENT ON COLUMN batch_check.sample IS
  'Of level L4: the turn, how many slices of how many offsets at most, how many offsets were compared,
and what could not be; batch and turn say which offsets these are.';
