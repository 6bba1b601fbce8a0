"""DuckDB reads the archive as one table."""

import duckdb

import files
import tables

VIEW = """
CREATE OR REPLACE VIEW decisions AS
SELECT *, epoch_us(ts) AS micros, raw->>'$.input.method' AS method
  FROM read_parquet(getvariable('files'), hive_partitioning = true)
"""


class Engine:
    version = "DuckDB " + duckdb.__version__
    examples = 3  # on the page

    def __init__(self, work):
        self.db = duckdb.connect()
        self.db.execute("SET memory_limit = '3GB'")
        self.db.execute(f"SET temp_directory = '{work}/duckdb'")

    def open(self, archive):
        listed = ", ".join(f"'{path}'" for path in files.of(archive))
        self.db.execute(f"SET VARIABLE files = [{listed}]")
        self.db.execute(VIEW)

    def ask(self, _, sql):
        return self.db.execute(sql).fetchall()

    def example(self, language, text, _):
        """Runs the example for DuckDB. Those of engines that are not here are compared with what DuckDB sees."""
        if language != "sql":
            return False
        if text.startswith("-- DuckDB"):
            print(self.db.execute(text).fetchall())
            return True
        seen = self.db.execute("DESCRIBE SELECT * FROM read_parquet(getvariable('files'), hive_partitioning = true)")
        return tables.check(text, [row[:2] for row in seen.fetchall()])

    def close(self):
        self.db.close()
