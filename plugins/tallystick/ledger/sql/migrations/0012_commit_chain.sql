-- The commits of a feed are a chain: each link carries the digest of its manifest and of the link
-- before it. Who removes or changes a committed row later breaks the chain, or contradicts it.

CREATE TABLE commit_link (
  feed            text NOT NULL REFERENCES feed,
  position        bigint NOT NULL CHECK (position >= 1),
  batch_id        text NOT NULL UNIQUE REFERENCES batch,
  manifest_sha256 bytea NOT NULL,
  previous        bytea NOT NULL,
  digest          bytea NOT NULL,
  PRIMARY KEY (feed, position),
  CONSTRAINT commit_link_digest CHECK (digest = pg_catalog.sha256(previous || manifest_sha256))
);
COMMENT ON TABLE commit_link IS
  'The feed''s commits in their order, each bound to its manifest and to all commits before it.';
COMMENT ON COLUMN commit_link.position IS 'The commit''s place among those of the feed, from 1.';
COMMENT ON COLUMN commit_link.previous IS
  'Digest of the link before it; of the feed''s name, for the first one.';
CREATE TRIGGER commit_link_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON commit_link
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION guard_commit_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  head commit_link%ROWTYPE;
BEGIN
  SELECT * INTO head FROM commit_link l WHERE l.feed = NEW.feed ORDER BY l.position DESC LIMIT 1;
  IF NEW.position <> coalesce(head.position, 0) + 1
     OR NEW.previous <> coalesce(head.digest, pg_catalog.sha256(convert_to(NEW.feed, 'UTF8'))) THEN
    RAISE EXCEPTION 'link % of feed % does not continue its chain of commits, which has % link(s)',
      NEW.position, NEW.feed, coalesce(head.position, 0) USING ERRCODE = 'TS002';
  END IF;
  IF NOT EXISTS (SELECT FROM batch b JOIN verification v USING (batch_id, verification_id)
                  WHERE b.batch_id = NEW.batch_id AND b.feed = NEW.feed
                    AND b.committed_by IS NOT NULL AND v.sha256 = NEW.manifest_sha256) THEN
    RAISE EXCEPTION 'link % of feed % does not name a committed manifest of batch %',
      NEW.position, NEW.feed, NEW.batch_id USING ERRCODE = 'TS002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER commit_link_guard BEFORE INSERT ON commit_link
  FOR EACH ROW EXECUTE FUNCTION guard_commit_link();

DO $$
DECLARE
  committed record;
BEGIN
  FOR committed IN
    SELECT b.feed, b.batch_id, v.sha256,
           row_number() OVER (PARTITION BY b.feed ORDER BY b.commit_number) AS position
      FROM batch b JOIN verification v USING (batch_id, verification_id)
     WHERE b.committed_by IS NOT NULL
     ORDER BY b.commit_number
  LOOP
    INSERT INTO commit_link (feed, position, batch_id, manifest_sha256, previous, digest)
    SELECT committed.feed, committed.position, committed.batch_id, committed.sha256, before.digest,
           pg_catalog.sha256(before.digest || committed.sha256)
      FROM (SELECT coalesce(
                     (SELECT l.digest FROM commit_link l
                       WHERE l.feed = committed.feed AND l.position = committed.position - 1),
                     pg_catalog.sha256(convert_to(committed.feed, 'UTF8'))) AS digest) before;
  END LOOP;
END $$;

CREATE FUNCTION guard_commit_linked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM commit_link l WHERE l.batch_id = NEW.batch_id) THEN
    RAISE EXCEPTION 'batch % is committed, and its feed''s chain of commits has no link for it',
      NEW.batch_id USING ERRCODE = 'TS002';
  END IF;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION guard_commit_linked() IS 'No batch is committed beside the chain.';
CREATE CONSTRAINT TRIGGER batch_commit_linked AFTER UPDATE ON batch
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.committed_by IS NOT NULL AND OLD.committed_by IS NULL)
  EXECUTE FUNCTION guard_commit_linked();
