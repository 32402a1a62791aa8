# SPDX-License-Identifier: Apache-2.0
"""How each reader opens tables in files, or in the S3-compatible store that the environment names."""
import os

STORE = os.environ.get("AWS_ENDPOINT_URL_S3", "")
KEY, SECRET = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")


def is_remote(path):
    return path.startswith("s3://")


def delta_options(path):
    """storage_options of delta-rs and Polars."""
    return {"AWS_ENDPOINT_URL": STORE, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET} if is_remote(path) else None


def file_system(path):
    """The file system of pyarrow, and the path in it."""
    import pyarrow.fs
    if not is_remote(path):
        return pyarrow.fs.LocalFileSystem(), path
    scheme, host = STORE.split("://")
    return pyarrow.fs.S3FileSystem(access_key=KEY, secret_key=SECRET, endpoint_override=host, scheme=scheme,
                                   region="us-east-1"), path[len("s3://"):]


def connect_duckdb(path, *extensions):
    import duckdb
    from duckdb_extensions import import_extension
    connection = duckdb.connect()
    for extension in (*extensions, *(["httpfs"] if is_remote(path) else [])):
        import_extension(extension)
        connection.execute(f"LOAD {extension}")
    if is_remote(path):
        scheme, host = STORE.split("://")
        connection.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', ENDPOINT '{host}', "
                           f"URL_STYLE 'path', USE_SSL {str(scheme == 'https').lower()}, REGION 'us-east-1')")
    return connection


def name_clickhouse_table(path):
    """The table function that reads a table."""
    if is_remote(path):
        return f"deltaLake('{STORE}/{path[len('s3://'):]}/', '{KEY}', '{SECRET}')"
    return f"deltaLakeLocal('{path}')"


def open_spark(path):
    import pyspark.sql
    packages = "io.delta:delta-spark_2.12:3.3.2" + (",org.apache.hadoop:hadoop-aws:3.3.4" if is_remote(path) else "")
    builder = (pyspark.sql.SparkSession.builder.master("local[1]")
               .config("spark.jars.packages", packages)
               .config("spark.jars.ivy", os.environ["SPARK_IVY"])
               .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
               .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
               .config("spark.sql.session.timeZone", "UTC")
               .config("spark.sql.shuffle.partitions", "1")
               .config("spark.databricks.delta.snapshotPartitions", "1")
               .config("spark.ui.showConsoleProgress", "false")
               .config("spark.ui.enabled", "false"))
    if is_remote(path):
        for name, value in {"endpoint": STORE, "access.key": KEY, "secret.key": SECRET, "path.style.access": "true",
                            "connection.ssl.enabled": str(STORE.startswith("https:")).lower()}.items():
            builder = builder.config(f"spark.hadoop.fs.s3a.{name}", value)
    return builder.getOrCreate()


def name_spark_table(path):
    return path.replace("s3://", "s3a://")
