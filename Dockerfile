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
ENTRYPOINT ["/usr/local/bin/start-hdfs"]

FROM python:3.11-slim-bookworm AS airflow
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps curl \
    && rm -rf /var/lib/apt/lists/*
COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.txt && rm /tmp/requirements.txt
COPY --from=jars /jars/spark-kafka /opt/spark-kafka
COPY dags /opt/tallystick/dags
COPY plugins /opt/tallystick/plugins
COPY spark_jobs /opt/tallystick/spark_jobs
COPY sandbox/spark /opt/tallystick/spark-conf
RUN useradd --system --create-home airflow && install -d -o airflow /opt/airflow
USER airflow
WORKDIR /opt/tallystick
ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tallystick/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tallystick/plugins \
    PYTHONPATH=/opt/tallystick/plugins \
    SPARK_CONF_DIR=/opt/tallystick/spark-conf
