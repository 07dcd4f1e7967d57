# Images for docker-compose.yml. Every version comes from the files that the sandbox uses too:
# requirements.txt, and the POMs under sandbox/poms/. What is fetched is compared with the checksums beside them.

FROM maven:3.9-eclipse-temurin-17 AS jars
COPY sandbox/poms /poms
RUN for part in kafka hdfs spark-kafka; do \
      mvn -B -q -f /poms/$part/pom.xml dependency:copy-dependencies \
          -DincludeScope=runtime -DoutputDirectory=/jars/$part \
      && (cd /jars/$part && sha256sum -c --quiet /poms/$part/jars.sha256) \
      && test "$(ls /jars/$part | wc -l)" = "$(wc -l < /poms/$part/jars.sha256)" || exit 1; \
    done

FROM eclipse-temurin:17-jre AS kafka
COPY --from=jars /jars/kafka /opt/kafka
RUN useradd --system --create-home kafka && install -d -o kafka /var/lib/kafka
USER kafka
COPY sandbox/compose/kafka.properties /etc/kafka/server.properties
COPY --chmod=755 sandbox/compose/kafka.sh /usr/local/bin/start-kafka
COPY --chmod=755 sandbox/compose/kafka_health.sh /usr/local/bin/kafka-health
ENTRYPOINT ["/usr/local/bin/start-kafka"]

FROM eclipse-temurin:17-jre AS hdfs
RUN apt-get update && apt-get install -y --no-install-recommends curl && rm -rf /var/lib/apt/lists/*
COPY --from=jars /jars/hdfs /opt/hdfs
# The jars lack the pages that the daemons' web servers look for.
RUN useradd --system --create-home hdfs && install -d -o hdfs /var/lib/hdfs \
    && mkdir -p /opt/www/webapps/hdfs /opt/www/webapps/datanode
USER hdfs
COPY sandbox/compose/hdfs /etc/hdfs
COPY --chmod=755 sandbox/compose/hdfs.sh /usr/local/bin/start-hdfs
COPY --chmod=755 sandbox/compose/namenode_health.sh /usr/local/bin/namenode-health
ENTRYPOINT ["/usr/local/bin/start-hdfs"]

FROM python:3.11-slim-bookworm AS airflow
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps curl \
    && rm -rf /var/lib/apt/lists/*
COPY requirements.txt sandbox/compose/not_in_image.txt /tmp/
# The pins with their hashes, but for those of the tests' tools. uv, which has its hash there, too, is gone afterwards: pip
# alone would take some minutes more.
RUN awk 'NR == FNR { left_out[$1]; next } /^[a-z]/ { split($1, pin, "=="); kept = !(pin[1] in left_out) } kept' \
        /tmp/not_in_image.txt /tmp/requirements.txt > /tmp/running.txt \
    && awk '/^[a-z]/ { kept = /^uv==/ } kept' /tmp/requirements.txt > /tmp/uv.txt \
    && pip install --no-cache-dir --require-hashes -r /tmp/uv.txt \
    && UV_SYSTEM_CERTS=true uv pip install -q --system --no-cache --require-hashes -r /tmp/running.txt \
    && pip uninstall -q -y uv && rm /tmp/*.txt
COPY --from=jars /jars/spark-kafka /opt/spark-kafka
COPY dags /opt/tallystick/dags
COPY plugins /opt/tallystick/plugins
COPY spark_jobs /opt/tallystick/spark_jobs
COPY sandbox/spark /opt/tallystick/spark-conf
# Without it Spark's client has Hadoop's own defaults, such as three copies of each block.
COPY sandbox/compose/hdfs /etc/hadoop/conf
COPY --chmod=755 sandbox/compose/init.sh /usr/local/bin/init-tallystick
COPY --chmod=755 sandbox/compose/api_server.sh /usr/local/bin/start-api-server
# A new volume takes the owner of the folder that it is mounted on.
RUN useradd --system --uid 999 --create-home airflow && install -d -o airflow /opt/airflow /opt/airflow/logs
USER airflow
WORKDIR /opt/tallystick
ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tallystick/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tallystick/plugins \
    PYTHONPATH=/opt/tallystick/plugins \
    SPARK_CONF_DIR=/opt/tallystick/spark-conf \
    HADOOP_CONF_DIR=/etc/hadoop/conf
