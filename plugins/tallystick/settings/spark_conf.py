"""A feed may set all Spark properties that neither break the promise nor carry a secret."""

from __future__ import annotations

import re
from typing import Final

_SET_BY_THE_LANDING: Final = "the landing sets it: it changes what is written"
_WAITED_FOR: Final = "what is landed is read back as soon as spark-submit has ended"

# Property -> why a feed may not set it. `.*` at the end: all properties with that beginning.
REFUSED: Final = {
    "spark.app.name": "the landing names its own application",
    "spark.hadoop.dfs.replication": "set target.replication",
    "spark.hadoop.fs.default.name": "the target's connection names the file system",
    "spark.hadoop.fs.defaultFS": "the target's connection names the file system",
    "spark.hadoop.mapred.output.committer.class": "the landing relies on Spark's own committer",
    "spark.hadoop.mapreduce.fileoutputcommitter.*": "the landing relies on committer version 1",
    "spark.hadoop.mapreduce.output.basename": "the batch and attempt name the files",
    "spark.hadoop.mapreduce.outputcommitter.*": "the landing relies on Spark's own committer",
    "spark.hadoop.parquet.compression.*": "set target.compression and target.compression_level",
    "spark.kubernetes.submission.waitAppCompletion": _WAITED_FOR,
    "spark.jars": "jars belong into the Spark connection",
    "spark.jars.*": "resolving at run time makes every start depend on the network",
    "spark.master": "the Spark connection names the master",
    "spark.redaction.*": "it keeps secrets out of logs and the Spark UI",
    "spark.speculation": "two copies of one task may both write",
    "spark.speculation.*": "two copies of one task may both write",
    "spark.sql.ansi.enforceReservedKeywords": _SET_BY_THE_LANDING,
    "spark.sql.files.maxRecordsPerFile": "set target.target_file_bytes",
    "spark.sql.parquet.compression.codec": "set target.compression",
    "spark.sql.parquet.datetimeRebaseModeInWrite": _SET_BY_THE_LANDING,
    "spark.sql.parquet.output.committer.class": "the landing relies on Spark's own committer",
    "spark.sql.parquet.outputTimestampType": "landed timestamps are TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": _SET_BY_THE_LANDING,
    "spark.sql.redaction.*": "it keeps secrets out of logs and the Spark UI",
    "spark.sql.session.timeZone": _SET_BY_THE_LANDING,
    "spark.sql.sources.commitProtocolClass": "the landing relies on Spark's own committer",
    "spark.sql.sources.outputCommitterClass": "the landing relies on Spark's own committer",
    "spark.sql.sources.useV1SourceList": _SET_BY_THE_LANDING,
    "spark.submit.deployMode": "the Spark connection names the deploy mode",
    "spark.submit.pyFiles": "the landing ships its own code",
    "spark.tallystick.*": "the landing sets it",
    "spark.yarn.preserve.staging.files": "Kafka's secrets would stay in HDFS",
    "spark.yarn.submit.waitAppCompletion": _WAITED_FOR,
    "spark.yarn.maxAppAttempts": "the next try is another attempt, in a directory of its own",
}
_SECRET_KEY: Final = re.compile(
    r"pass(word|wd|phrase)|secret|token$|credential|jaas|access[._-]?key|account[._-]?key|api[._-]?key",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"(password|passwd|secret|token|jaas\.config)\s*=|LoginModule|://[^/\s:@]*:[^/\s@]+@",
    re.IGNORECASE,
)
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9._-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def carries_secret(key: str, value: str) -> bool:
    """True if the property looks like a password, a key or a token: it is never shown again."""
    return bool(_SECRET_KEY.search(key) or _SECRET_VALUE.search(value))


def refusal_of(key: str, value: str) -> str | None:
    """Says why a feed may not set this property to this value; None if it may."""
    if not _KEY.fullmatch(key):
        return "no Spark property: it must begin with spark."
    if carries_secret(key, value):
        return "it looks like a secret, which would show in ps, the log and the Spark UI"
    reason = _reason_against(key)
    if reason:
        # Turning speculation off says what holds anyway.
        return None if (key, value) == ("spark.speculation", "false") else reason
    return "it holds a control character" if _CONTROL.search(value) else None


def _reason_against(key: str) -> str | None:
    for refused, reason in REFUSED.items():
        is_family = refused.endswith(".*")
        if key == refused or (is_family and key.startswith(refused[:-1])):
            return reason
    return None
