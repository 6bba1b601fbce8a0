#!/bin/bash
# Runs a Java class of Kafka: kafka-run-class.sh CLASS [ARGUMENT...]
# Read from the environment: KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS, KAFKA_LOG4J_OPTS, KAFKA_OPTS.
set -euo pipefail
home=/opt/kafka

read -ra heap <<<"${KAFKA_HEAP_OPTS:--Xmx256M}"
read -ra performance <<<"${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35}"
read -ra extra <<<"${KAFKA_OPTS:-}"

# The setup step writes the configuration that the others log by.
tools_log4j=$home/config/tools-log4j2.yaml
[ -r "$tools_log4j" ] || tools_log4j=/etc/kafka/docker/tools-log4j2.yaml
read -ra log4j <<<"${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=$tools_log4j}"

# One archive of loaded classes for each kind of process; it fits only the class
# path it was made with, so the jars are listed in one fixed order.
case $1 in
kafka.Kafka) archive=$home/cds/server.jsa ;;
kafka.docker.KafkaDockerWrapper) archive=$home/cds/setup.jsa ;;
*) archive=$home/cds/tools.jsa ;;
esac
cds=()
if [ -n "${CDS_RECORD:-}" ]; then
	cds=("-XX:ArchiveClassesAtExit=$archive")
elif [ -r "$archive" ]; then
	cds=("-XX:SharedArchiveFile=$archive" -Xshare:auto)
fi
cds+=(-Xlog:cds=off -Xlog:cds+dynamic=off)

exec java "${heap[@]}" "${performance[@]}" "${cds[@]}" \
	"-Dkafka.logs.dir=$home/logs" "${log4j[@]}" \
	-cp "$(<$home/libs/classpath)" "${extra[@]}" "$@"
