"""Spark reads the archive with a cluster on this machine: a master, two workers, an executor in each."""

import os
import pathlib

import pyspark
from pyspark.sql import SparkSession

import files

VIEW = """
CREATE OR REPLACE TEMPORARY VIEW decisions AS
SELECT *, unix_micros(ts) AS micros, get_json_object(raw, '$.input.method') AS method FROM archive
"""

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "64",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Engine:
    version = "Spark " + pyspark.__version__
    examples = 1  # on the page

    def __init__(self, work):
        # Spark reads these. Without SPARK_LOCAL_IP it would listen on every address.
        os.environ["SPARK_HOME"] = str(home_in(work / "home"))
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["SPARK_LOCAL_DIRS"] = str(work / "spark")
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("docket")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def open(self, archive):
        read = self.spark.read.option("basePath", f"{archive}/decision_logs")
        read.parquet(*files.of(archive)).createOrReplaceTempView("archive")
        self.spark.sql(VIEW)

    def ask(self, _, sql):
        return self.spark.sql(sql).collect()

    def example(self, language, text, names):
        if language == "python" and "pyspark" in text.splitlines()[0]:
            exec(text, names)
            return True
        return False

    def close(self):
        self.spark.stop()


def home_in(home):
    """A home of links to the installed one. The workers keep files below their home."""
    home.mkdir()
    for entry in pathlib.Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    return home
