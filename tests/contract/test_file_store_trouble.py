"""A real HDFS in trouble: what the store says, and that nothing was moved or left behind."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest

from sandbox import Sandbox
from tallystick.errors import ManifestMismatch, StorageRefused, StorageUnavailable
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.landed_files import write_once
from tests.support.landed_rows import parquet_of, rows_of
from tests.support.sandbox_fixtures import HdfsPlace
from tests.support.store_hdfs import Superuser
from tests.support.store_server import dead_url

pytest_plugins = ["tests.support.store_fixtures"]
MEGABYTE = 1 << 20


@pytest.fixture
def superuser(sandbox: Sandbox, hdfs: HdfsPlace) -> Superuser:
    return Superuser(sandbox, hdfs.webhdfs_url, hdfs.hdfs_url, hdfs.user)


def store_of(hdfs: HdfsPlace, **options: object) -> WebHdfsFileStore:
    settings = {"user": hdfs.user, "answer_seconds": 30.0, "retry_seconds": 1.0, **options}
    return WebHdfsFileStore(NameNodes([hdfs.webhdfs_url], **settings), hdfs.hdfs_url)  # type: ignore[arg-type]


@pytest.fixture
def store(hdfs: HdfsPlace) -> WebHdfsFileStore:
    return store_of(hdfs)


@pytest.fixture
def limited(superuser: Superuser) -> str:
    """A directory right below the root, for quotas and permissions."""
    path = f"/limited-{uuid4().hex}"
    superuser.make(path)
    return path


def test_safe_mode_is_said_and_passes(
    store: WebHdfsFileStore, superuser: Superuser, root: str
) -> None:
    store.write(f"{root}/staging/f", b"ours")
    with superuser.safe_mode():
        for ask in (
            lambda: store.require_writable(root),
            lambda: store.write(f"{root}/g", b""),
            lambda: store.rename_exclusive(f"{root}/staging", f"{root}/target"),
            lambda: store.delete(f"{root}/staging"),
        ):
            with pytest.raises(StorageUnavailable, match="the NameNode is in safe mode") as caught:
                ask()
            assert caught.value.retry
        assert store.read(f"{root}/staging/f") == b"ours"
    store.require_writable(root)
    store.rename_exclusive(f"{root}/staging", f"{root}/target")


def test_a_used_up_space_quota_is_said_before_anything_is_read(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    store.require_writable(limited)
    superuser.limit_space(limited, MEGABYTE)
    with pytest.raises(StorageRefused, match=f"space quota is used up: .*{limited}") as caught:
        store.require_writable(f"{limited}/landing")
    assert not caught.value.retry
    assert [each.name for each in store.entries(f"{limited}/landing/_staging")] == []


def test_a_used_up_name_quota_is_said(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    superuser.limit_names(limited, 2)
    with pytest.raises(StorageRefused, match="name quota is used up"):
        store.require_writable(limited)


def test_a_rename_into_a_full_directory_moves_nothing(
    store: WebHdfsFileStore, superuser: Superuser, limited: str, root: str
) -> None:
    store.write(f"{root}/staging/f", b"12345")
    superuser.limit_space(limited, 1)
    with pytest.raises(StorageRefused, match="space quota"):
        store.rename_exclusive(f"{root}/staging", f"{limited}/target")
    assert store.status(f"{limited}/target") is None
    assert store.read(f"{root}/staging/f") == b"12345"


def test_a_read_only_directory_is_refused(
    hdfs: HdfsPlace, superuser: Superuser, limited: str
) -> None:
    stranger = store_of(hdfs, user="stranger")
    with pytest.raises(StorageRefused, match="Permission denied: user=stranger") as caught:
        stranger.require_writable(limited)
    assert not caught.value.retry


def test_a_root_that_only_lets_into_staging_is_refused(
    hdfs: HdfsPlace, store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    """Landing would go well there, and publishing would not."""
    superuser.make(f"{limited}/_staging", mode="777")
    with pytest.raises(StorageRefused, match="Permission denied"):
        store_of(hdfs, user="stranger").require_writable(limited)
    assert [each.name for each in store.entries(f"{limited}/_staging")] == []


def test_a_quota_where_batches_are_shown_is_said_before_anything_is_read(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    shown_in = f"{limited}/orders"
    superuser.make(shown_in)
    store.require_writable(limited, shown_in)
    superuser.limit_names(shown_in, 1)
    with pytest.raises(StorageRefused, match="name quota is used up"):
        store.require_writable(limited, shown_in)
    assert [each.name for each in store.entries(f"{limited}/_staging")] == []


def landed_by_a_writer_with_umask_077(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    """A batch in staging that nobody else may read."""
    store.write(f"{limited}/staging/f", b"rows")
    superuser.ask("PUT", f"{limited}/staging", op="SETPERMISSION", permission="700")
    superuser.ask("PUT", f"{limited}/staging/f", op="SETPERMISSION", permission="600")


def rights_of(superuser: Superuser, path: str) -> tuple[str, str]:
    found = superuser.ask("GET", path, op="GETFILESTATUS").json()["FileStatus"]
    return found["group"], found["permission"]


def acl_of(superuser: Superuser, path: str) -> list[str]:
    found = superuser.ask("GET", path, op="GETACLSTATUS").json()["AclStatus"]["entries"]
    return sorted(found)


def test_readers_that_a_default_acl_names_read_what_was_renamed_into_it(
    hdfs: HdfsPlace, store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    feed = f"{limited}/feed"
    superuser.make(feed)
    entries = "user::rwx,user:analyst:r-x,group::r-x,other::---"
    default = ",".join(f"default:{each}" for each in entries.split(","))
    superuser.ask("PUT", feed, op="SETACL", aclspec=f"{entries},{default}")
    landed_by_a_writer_with_umask_077(store, superuser, limited)

    store.take_rights(f"{limited}/staging", feed)
    store.rename_exclusive(f"{limited}/staging", f"{feed}/gen=1/batch")
    # What is made there is the measure: HDFS itself gives it what the directory says.
    store.write(f"{feed}/made/f", b"")

    assert store_of(hdfs, user="analyst").read(f"{feed}/gen=1/batch/f") == b"rows"
    with pytest.raises(StorageRefused, match="Permission denied"):
        store_of(hdfs, user="somebody").read(f"{feed}/gen=1/batch/f")
    assert acl_of(superuser, f"{feed}/gen=1/batch") == acl_of(superuser, f"{feed}/made")
    assert acl_of(superuser, f"{feed}/gen=1/batch/f") == ["group::r--", "user:analyst:r--"]


def test_group_and_bits_of_the_directory_are_those_of_what_is_renamed_into_it(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    feed = f"{limited}/feed"
    superuser.make(feed, mode="750")
    superuser.ask("PUT", feed, op="SETOWNER", group="analysts")
    landed_by_a_writer_with_umask_077(store, superuser, limited)

    store.take_rights(f"{limited}/staging", feed)

    assert rights_of(superuser, f"{limited}/staging") == ("analysts", "750")
    assert rights_of(superuser, f"{limited}/staging/f") == ("analysts", "640")


def test_a_directory_that_nobody_gave_rights_opens_nothing(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    landed_by_a_writer_with_umask_077(store, superuser, limited)
    group, _ = rights_of(superuser, f"{limited}/staging")

    store.take_rights(f"{limited}/staging", f"{limited}/feed")

    assert rights_of(superuser, f"{limited}/feed") == (group, "755")
    assert rights_of(superuser, f"{limited}/staging/f") == (group, "600")


def test_rights_that_the_user_may_not_give_are_told_and_hold_nothing_up(
    hdfs: HdfsPlace, superuser: Superuser, limited: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A user gives a file to a group of his own only."""
    superuser.ask("PUT", limited, op="SETPERMISSION", permission="777")
    superuser.make(f"{limited}/feed", mode="777")
    superuser.ask("PUT", f"{limited}/feed", op="SETOWNER", group="analysts")
    stranger = store_of(hdfs, user="stranger")
    stranger.write(f"{limited}/staging/f", b"rows")

    stranger.take_rights(f"{limited}/staging", f"{limited}/feed")

    assert f"{limited}/staging does not get all rights" in caplog.text
    assert stranger.read(f"{limited}/staging/f") == b"rows"


def test_an_unreadable_file_is_refused(
    hdfs: HdfsPlace, store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    store.write(f"{limited}/f", b"secret")
    superuser.ask("PUT", f"{limited}/f", op="SETPERMISSION", permission="600")
    with pytest.raises(StorageRefused, match="Permission denied"):
        store_of(hdfs, user="stranger").read(f"{limited}/f")


def test_a_frozen_name_node_is_unavailable_within_bounds(
    store: WebHdfsFileStore, hdfs: HdfsPlace, superuser: Superuser, root: str
) -> None:
    store.write(f"{root}/staging/f", b"")
    impatient = store_of(hdfs, answer_seconds=2.0)
    with superuser.frozen_name_node():
        began = time.monotonic()
        with pytest.raises(StorageUnavailable, match="did not answer in time"):
            impatient.rename_exclusive(f"{root}/staging", f"{root}/target")
        assert time.monotonic() - began < 10
    assert [each.name for each in store.entries(root)] == ["staging"]


def test_a_dead_name_node_beside_a_live_one_costs_nothing(hdfs: HdfsPlace, root: str) -> None:
    name_nodes = NameNodes([dead_url(), hdfs.webhdfs_url], user=hdfs.user)
    store = WebHdfsFileStore(name_nodes, hdfs.hdfs_url)
    store.write(f"{root}/staging/f", b"x")
    store.rename_exclusive(f"{root}/staging", f"{root}/target")
    assert store.read(f"{root}/target/f") == b"x"


def test_dead_data_nodes_are_unavailable(
    store: WebHdfsFileStore, sandbox: Sandbox, hdfs: HdfsPlace, root: str
) -> None:
    store.write(f"{root}/p.parquet", parquet_of(rows_of({0: range(10)})))
    sandbox.hdfs.datanode.kill()
    try:
        for ask in (store.require_writable, store.read_back):
            with pytest.raises(StorageUnavailable) as caught:
                ask(root)
            assert caught.value.retry
    finally:
        sandbox.hdfs.datanode.start()
    write_once(hdfs.webhdfs_url, hdfs.user)
    store.require_writable(root)
    assert store.read_back(root).record_count == 10


def test_a_file_that_is_still_being_written_is_named(
    store: WebHdfsFileStore, superuser: Superuser, root: str
) -> None:
    content = parquet_of(rows_of({0: range(10)}))
    store.write(f"{root}/p.parquet", content)
    with (
        superuser.open_file(f"{root}/q.parquet", content),
        pytest.raises(ManifestMismatch, match=f"{root}/q.parquet: .* still being written"),
    ):
        store.read_back(root)


def test_a_directory_larger_than_a_page_of_the_listing_is_whole(
    store: WebHdfsFileStore, superuser: Superuser, root: str
) -> None:
    """dfs.ls.limit is 1000."""
    for number in range(1_050):
        superuser.ask("PUT", f"{root}/{number:04}", op="MKDIRS")
    assert [each.name for each in store.entries(root)] == [f"{n:04}" for n in range(1_050)]


def test_bytes_that_lie_in_other_blocks_and_chunks_have_the_checksum_of_before(
    store: WebHdfsFileStore, superuser: Superuser, limited: str
) -> None:
    """What a copy of a file, or of a whole cluster, may change; the bytes are the same."""
    content = bytes(number * 7 % 251 for number in range(1000)) * 2_500
    store.write(f"{limited}/written", content)
    superuser.copy(f"{limited}/written", f"{limited}/blocks", "dfs.blocksize=1048576")
    superuser.copy(f"{limited}/written", f"{limited}/chunks", "dfs.bytes-per-checksum=2048")
    paths = [f"{limited}/{name}" for name in ("written", "blocks", "chunks")]
    committed = {store.checksum(path) for path in paths}

    assert len({each.partition(":")[0] for each in committed}) == len(paths)
    for path in paths:
        for each in committed:
            assert store.checksum_like(path, len(content), each) == each
    store.write(f"{limited}/others", content[:-1] + b"x")
    for each in committed:
        assert store.checksum_like(f"{limited}/others", len(content), each) != each
