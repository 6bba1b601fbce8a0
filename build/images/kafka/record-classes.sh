#!/bin/bash
# Runs at build time: records the classes that setup, server and tools load, so
# that the JVM maps them at start (a start takes a third of the time).
set -euo pipefail
export CDS_RECORD=yes CLUSTER_ID=5L6g3nShT-eMCtK--X86sw
mkdir -p /opt/kafka/cds

/opt/kafka/bin/kafka-run-class.sh kafka.docker.KafkaDockerWrapper setup \
	--default-configs-dir /etc/kafka/docker \
	--mounted-configs-dir /mnt/shared/config \
	--final-configs-dir /opt/kafka/config

/opt/kafka/bin/kafka-server-start.sh /opt/kafka/config/server.properties >/tmp/server.log 2>&1 &
server=$!
for _ in {1..300}; do
	if grep -q 'Kafka Server started' /tmp/server.log; then break; fi
	sleep 0.2
done
grep -q 'Kafka Server started' /tmp/server.log || {
	cat /tmp/server.log
	exit 1
}

/opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 --create --topic warm-up --partitions 1
unset CDS_RECORD
echo warm-up | /opt/kafka/bin/kafka-console-producer.sh --bootstrap-server localhost:9092 --topic warm-up
/opt/kafka/bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic warm-up --from-beginning \
	--group warm-up --max-messages 1 --timeout-ms 30000

kill "$server"
wait "$server" || true # a server that was told to stop says 143
ls -l /opt/kafka/cds/{setup,server,tools}.jsa
rm -rf /tmp/kraft-combined-logs /tmp/server.log /opt/kafka/config/* /opt/kafka/logs/*
