"""pyarrow reads the archive, one day at a time. It has no SQL, so each question is a function here."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import files

FLIPS = ["subject", "path", "micros", "decision_id", "verdict"]


class Engine:
    version = "pyarrow " + pa.__version__
    examples = 1  # on the page

    def __init__(self, _):
        self.archive = None

    def example(self, language, text, names):
        if language == "python" and "pyarrow" in text.splitlines()[0]:
            exec(text, names)
            return True
        return False

    def close(self):
        pass

    def open(self, archive):
        partitions = ds.partitioning(pa.schema([("day", pa.string())]), flavor="hive")
        self.archive = ds.dataset(files.of(archive), format="parquet", partitioning=partitions)

    def ask(self, name, _):
        return getattr(self, name)()

    def days(self):
        """The day, its decisions, the sum of their offsets, the least and the greatest id."""
        for day, rows in self.each_day({name: ds.field(name) for name in ["source_offset", "decision_id"]}):
            ids = pc.min_max(rows["decision_id"]).as_py()
            yield day, rows.num_rows, pc.sum(rows["source_offset"]).as_py(), ids["min"], ids["max"]

    def rates(self):
        """The path and month, all decisions and those that were denied."""
        columns = {"path": ds.field("path"), "denied": (ds.field("verdict") == "denied").cast("int64")}
        parts = []
        for day, rows in self.each_day(columns):
            counted = rows.group_by("path").aggregate([([], "count_all"), ("denied", "sum")])
            parts.append(counted.append_column("month", pa.array([day[:7]] * len(counted), pa.string())))
        total = pa.concat_tables(parts).group_by(["path", "month"])
        return rows_of(total.aggregate([("count_all", "sum"), ("denied_sum", "sum")]))

    def flips(self):
        """The subject, its flips, the first and the last. A flip is a verdict that differs from the one before."""
        parts, last = [], None
        for _, rows in self.each_day(columns_of(FLIPS), ds.field("subject").is_valid()):
            rows = pa.concat_tables([last, rows] if last else [rows]).combine_chunks()
            rows = rows.sort_by([(name, "ascending") for name in ["subject", "path", "micros", "decision_id"]])
            earlier, later = rows.slice(0, max(len(rows) - 1, 0)), rows.slice(1)
            same = pc.and_(equal(earlier["subject"], later["subject"]), equal(earlier["path"], later["path"]))
            flipped = pc.and_(same, pc.not_equal(earlier["verdict"], later["verdict"]))
            counted = later.filter(flipped).group_by("subject")
            parts.append(counted.aggregate([([], "count_all"), ("micros", "min"), ("micros", "max")]))
            last = pa.concat_tables([earlier.filter(pc.invert(same)), rows.slice(max(len(rows) - 1, 0))])
        total = pa.concat_tables(parts).group_by("subject")
        return rows_of(total.aggregate([("count_all", "sum"), ("micros_min", "min"), ("micros_max", "max")]))

    def rules(self):
        """The ten paths that denied most: denials, subjects, the first and the last denial."""
        denied = (ds.field("verdict") == "denied") & ds.field("path").is_valid()
        parts = []
        for _, rows in self.each_day(columns_of(["path", "subject", "micros"]), denied):
            counted = rows.group_by(["path", "subject"])
            parts.append(counted.aggregate([([], "count_all"), ("micros", "min"), ("micros", "max")]))
        total = pa.concat_tables(parts).group_by("path").aggregate([
            ("count_all", "sum"), ("subject", "count_distinct"), ("micros_min", "min"), ("micros_max", "max")])
        return rows_of(total.sort_by([("count_all_sum", "descending"), ("path", "ascending")]).slice(0, 10))

    def payloads(self):
        """The member input.method of the last day's payloads, and how many have it."""
        counted = Counter()
        for _, rows in self.each_day({"raw": ds.field("raw")}, newest=1):
            for part in rows["raw"].chunks:
                counted.update(method(json.loads(raw.as_py())) for raw in part)
        return counted.items()

    def each_day(self, columns, where=None, newest=0):
        """The days in order, each with these columns of its decisions; only so many of the newest, or all with 0."""
        pieces = {}
        for piece in self.archive.get_fragments():
            pieces.setdefault(ds.get_partition_keys(piece.partition_expression)["day"], []).append(piece.path)
        for day in sorted(pieces)[-newest:]:
            yield day, ds.dataset(pieces[day], format="parquet").to_table(columns=columns, filter=where)


def columns_of(names):
    return {name: ds.field("ts").cast("int64") if name == "micros" else ds.field(name) for name in names}


def equal(left, right):
    """Equality in which NULL equals NULL."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(pc.equal(left, right), False))


def method(payload):
    asked = payload.get("input")
    return asked.get("method") if isinstance(asked, dict) else None


def rows_of(table):
    return zip(*(column.to_pylist() for column in table.columns))
