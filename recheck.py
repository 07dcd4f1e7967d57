"""Recheck what Tallystick says of a feed, without one line of Tallystick: see docs/recheck.md.

From the lines of `ledger export FEED`, the files, and Kafka where it still has the records, each
partition gets a verdict beside the newest report's. Exit code 0: all are the same; 1: they are not.
"""

import json
import re
import sys
from collections import defaultdict
from hashlib import sha256
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from fsspec.core import url_to_fs

LOSS, DUP, UNKNOWN, WAIVED = "PROVEN_LOSS", "PROVEN_DUP", "UNKNOWN", "WAIVED"
WORST_LAST = ("PROVEN_OK", WAIVED, "SUSPECTED", UNKNOWN, DUP, LOSS)
JUDGED = {"A8", "A9", "B2", "C1"}  # all else that the report says is taken over
UNSEEN = re.compile(r"/(\.|_(?![^/]*=))")  # names that no reader of directories reads
KEYS = ("code", "generation", "partition", "from_offset", "until_offset")


def _minus(runs, gone):  # what of some offsets [from, until) is not in others
    for a, b in (*gone, (0, 0)):
        runs = [p for x, y in runs for p in ((x, min(y, a)), (max(x, b), y)) if p[0] < p[1]]
    return runs


def _path_of(m, name, is_published):  # of a batch's file, by its manifest
    hour = f"dt={m['label'][:10]}/hour={m['label'][11:13]}"
    shown = f"{m['feed']}/gen={m['generation']}/{hour}/batch={m['batch']}"
    staged = f"_staging/{m['batch']}/{m['attempt']}/data"
    return f"{m['root']}/{shown if is_published else staged}/{name}"


def _rows_in(content):  # by partition and offset: time, key, value and headers of each row
    table, found = pq.read_table(pa.BufferReader(content)), defaultdict(lambda: defaultdict(list))
    times = table["timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False).cast("int64")
    for ms, row in zip(times.to_pylist(), table.drop(["timestamp"]).to_pylist(), strict=True):
        told = (ms, row["key"], row["value"], row["headers"] or [])
        found[row["partition"]][row["offset"]].append(told)
    return found


def _logged(kafka, m, partition, run):  # the same of the records that the log still has
    admin, asked = AdminClient(kafka), TopicCollection([m["topic"]])
    if str(admin.describe_topics(asked)[m["topic"]].result().topic_id) != m["topic_id"]:
        return {}  # another life of the topic
    asks = {"group.id": "recheck", "enable.auto.commit": False, "enable.partition.eof": True}
    asks |= {**kafka, "auto.offset.reset": "earliest", "isolation.level": m["isolation"]}
    consumer, found = Consumer(asks), {}
    consumer.assign([TopicPartition(m["topic"], partition, run[0])])
    while (each := consumer.poll(60)) and not each.error() and each.offset() < run[1]:
        headers = [{"key": key, "value": value} for key, value in each.headers() or ()]
        found[each.offset()] = [(each.timestamp()[1], each.key(), each.value(), headers)]
    consumer.close()
    if each is None or (each.error() and each.error().name() != "_PARTITION_EOF"):
        raise OSError(f"Kafka did not answer: {each and each.error()}")
    return found


class _Recheck:  # one export: what its commits say, in the order of their chain; what was found
    def __init__(self, tables):
        self.tables, self.found, self.slices = tables, [], []  # slices that readers are to see
        self.batches = {each["batch_id"]: each for each in tables["batch"]}
        self.commits, self.replaced = {}, {}  # manifests; files, each with the repair
        self.held = defaultdict(list)  # by generation and partition: runs of rows, and of holes

    def find(self, verdict, cause, *keys):  # without a place it is of the whole feed
        keys = (*keys, None, None, None, None)[:5]
        self.found.append(dict(zip(KEYS, keys, strict=True), verdict=verdict, cause=cause))

    def read_chain(self, digest):  # each commit, bound to its manifest and to all commits before it
        digests, keys = [digest], ("previous", "manifest_sha256", "digest")
        texts = {each["verification_id"]: each["manifest"] for each in self.tables["verification"]}
        for link in self.tables["commit_link"]:
            row = self.batches.get(link["batch_id"], {})
            text = texts.get(row.get("verification_id"), "")
            told = [digests[-1], sha256(text.encode()).hexdigest()]
            digests.append(sha256(bytes.fromhex("".join(told))).hexdigest())
            if [link[each][2:] for each in keys] != [*told, digests[-1]]:
                self.find(UNKNOWN, f"commit {link['position']} is not as it was chained", "chain")
            if text:
                self.commits[link["batch_id"]] = m = json.loads(text) | {"root": row["root"]}
                self.replaced |= dict.fromkeys(map(tuple, m["replaces"]), m["batch"])
        committed = {key for key, each in self.batches.items() if each["committed_by"]}
        for batch in committed ^ self.commits.keys():
            self.find(UNKNOWN, f"batch {batch} is in only one of ledger and chain", "chain")
        return digests

    def read_ranges(self):  # the ledger's ranges, beside what its commits hold
        for m in self.commits.values():
            holes = {each["partition"]: [*chain(*each["holes"].values())] for each in m["ranges"]}
            for partition, runs in holes.items():
                self.held[m["generation"], partition] += runs
            for file in (f for f in m["files"] if (m["batch"], f["name"]) not in self.replaced):
                for each in file["slices"]:
                    log = (m["generation"], each["partition"])
                    run = (each["first_offset"], each["last_offset"] + 1)
                    self.slices.append((m, file, log, run, holes[log[1]]))
                    self.held[log].append(run)
        for row in self.tables["generation"]:
            log, said = (row["ordinal"], row["partition"]), defaultdict(list)
            for each in self.tables["offset_range"]:
                if each["generation_id"] == row["generation_id"]:
                    said[each["state"]] += [tuple(map(int, re.findall("[0-9]+", each["offsets"])))]
                    if each["state"] == "lost":
                        self.find(LOSS, "is lost", each["loss_code"], *log, *said["lost"][-1])
            held, settled = self.held[log], said["committed"] + said["lost"]
            wanted = [*held, (row["first_offset"], row["frontier"])]
            for run in _minus(said["committed"], held) + _minus(wanted, settled):
                self.find(UNKNOWN, "ledger and chain do not agree on it", "chain", *log, *run)

    def read_files(self, fs, top, kafka):  # as they are now, and what lies beside them
        shown = {key for key, each in self.batches.items() if each["state"] == "published"}
        roots = {f"{m['root']}/{m['feed']}" for m in self.commits.values()}
        strays = {path for root in roots for path in fs.find(top + root)}
        later = [key for key, repair in self.replaced.items() if repair not in shown]  # to be moved
        strays -= {top + _path_of(self.commits[batch], name, True) for batch, name in later}
        for m, file, log, run, holes in self.slices:
            strays.discard(path := top + _path_of(m, file["name"], m["batch"] in shown))
            try:
                content = fs.cat_file(path)
                sums = fs.ukey(path) if "webhdfs" in fs.protocol else {"algorithm": "sha256"}
                kind, told = sums["algorithm"], sums.get("bytes", sha256(content).hexdigest())
                kind = f"{coding}/{kind}" if (coding := fs.info(path).get("ecPolicy")) else kind
                if f"{kind}:{told}" != (was := file["checksum"]) and was.startswith(f"{kind}:"):
                    self.find(LOSS, f"{path} is not as it was committed", "C1", *log, *run)
                    continue
                rows = _rows_in(content)[log[1]]
                records = _logged(kafka, m, log[1], run) if kafka else {}
                planned = set(range(*run)).difference(*(range(*each) for each in holes))
                unlike = {at for at, each in rows.items() if len(each) > 1} | planned ^ rows.keys()
                unlike |= {at for at, each in records.items() if each != rows.get(at)}
                if unlike:
                    words = f"{len(unlike)} offsets of {path} are not as planned, or as in Kafka"
                    self.find(LOSS, words, "rows", *log, min(unlike), max(unlike) + 1)
            except (OSError, ValueError, pa.ArrowException, KafkaException) as error:
                gone = isinstance(error, FileNotFoundError) and (LOSS, f"{path} is gone", "A8")
                self.find(*(gone or (UNKNOWN, str(error), "U1")), *log, *run)
        for path in (each for each in sorted(strays) if not UNSEEN.search(each.removeprefix(top))):
            self.read_stray(path, fs)

    def read_stray(self, path, fs):  # readers see it, and nobody has committed it there
        try:
            generation = int(re.search("/gen=([0-9]+)/", path)[1])
            rows = _rows_in(fs.cat_file(path))
        except (TypeError, KeyError, OSError, ValueError, pa.ArrowException):
            generation, rows = None, {}  # nothing landed
        mine = [f for f in self.found if (f["code"], f["generation"]) == ("A8", generation)]
        gone = [each for each in mine if each["from_offset"] in rows.get(each["partition"], ())]
        for each in gone:  # nothing is lost while another file may hold it
            each |= {"verdict": UNKNOWN, "cause": f"{each['cause']}; {path} may be it"}
        if not gone:
            self.find("SUSPECTED", f"{path} was committed by nobody", "A9")
        for partition, some in rows.items() if not gone else ():
            log, edges = (generation, partition), (min(some), max(some) + 1)
            runs = [(a, b) for a, b in self.held[log] if a < edges[1] and b > edges[0]]
            if any(a <= at < b for at in some for a, b in runs):
                self.find(DUP, f"{path} has committed offsets", "B2", *log, *edges)


def main(export, files, *settings):
    """Read all, say each partition's verdict."""
    tables = defaultdict(list)
    with open(export, encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            tables[row.pop("table")].append(row)
    feed, count = tables["export"][0]["feed"], sum(map(len, tables.values())) - 2
    if not feed or not tables["report"] or [each["rows"] for each in tables["end"]] != [count]:
        return print("This is not the whole export of one feed with a report.") or 3
    kafka, it = dict(each.split("=", 1) for each in settings), _Recheck(tables)
    digests = it.read_chain(sha256(feed.encode()).hexdigest())
    print(f"{feed}: {len(digests) - 1} commits. Keep the last one's digest: head={digests[-1]}")
    if kafka.pop("head", digests[-1]) not in digests:
        it.find(UNKNOWN, "the chain does not have the digest that was kept", "chain")
    it.read_ranges()
    it.read_files(*url_to_fs(files.rstrip("/")), kafka)
    report, differs = json.loads(tables["report"][-1]["document"]), False
    told = [f | {"verdict": WAIVED} if f["state"] == "waived" else f for f in report["findings"]]
    waived = [[f[key] for key in KEYS] for f in told if f["verdict"] == WAIVED]
    it.found = [f | {"verdict": WAIVED} if [f[k] for k in KEYS] in waived else f for f in it.found]
    it.found += [each for each in told if each["code"] not in JUDGED]
    for part in report["partitions"]:
        mine = [each for each in it.found if each["partition"] in (None, part["partition"])]
        best = UNKNOWN if part["lag"] and part["frontier"] == part["first_offset"] else "PROVEN_OK"
        worst = max([best, *(each["verdict"] for each in mine)], key=WORST_LAST.index)
        line = "    {code} {verdict} [{from_offset}, {until_offset}): {cause}".format
        head = f"{report['topic']}-{part['partition']}: {worst}, the report: {part['verdict']}"
        print(head, *(line(**each) for each in mine), sep="\n")
        differs |= worst != part["verdict"] or any(each["code"] == "chain" for each in mine)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
